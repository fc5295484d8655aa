"""The one place where text, model, search and trace meet.

prompt (checked, cut up)  ->  search under edits  ->  the tree, the hypotheses and their prices
        ->  replay of any of them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqdemo.checkpoints import Checkpoint
from seqdemo.checkpoints.checkpoint import Baggage
from seqdemo.config import BOS, EOS, PAD, TOLERANCE, SearchOptions, plain
from seqdemo.edits import Ban, ClampGate, Edit, Force, Require, check_edits, check_options, holds, is_word
from seqdemo.errors import InputError, shown
from seqdemo.explain.replay import (
    check_source,
    check_target,
    means_in,
    places_of,
    positions_of,
    priced,
    scored,
    trace_of,
    worded_prices,
)
from seqdemo.explain.step import step_in_full
from seqdemo.findings import Badge
from seqdemo.network.attention import WhatIf, what_if_of
from seqdemo.network.model import Network, refuse_devices
from seqdemo.prompts import MOST_CHARACTERS, MOST_PIECES, MOST_TEXT, Prompt, cut_up, far_from_training, prepare, tokenizer, unseen
from seqdemo.records import Certificate, Hypothesis, Price, SearchError, SearchTree, StepInFull, Trace
from seqdemo.search import NEVER, Required, Rule, SearchResult, error_between, search, word_rules
from seqdemo.state import StepFunction, join, select
from seqdemo.text import Pieces, Tokenizer, longer_word, quoted

Progress = Callable[[int, float, float], None]
Cancel = Callable[[], bool]


@dataclass(frozen=True)
class Run:
    """One search and what came of it. `texts` are the hypotheses as a person would write them."""

    checkpoint: str
    task: str
    prompt: Prompt
    options: SearchOptions
    edits: tuple[Edit, ...]
    tree: SearchTree
    hypotheses: tuple[Hypothesis, ...]
    texts: tuple[str, ...]
    certificate: Certificate | None = None
    prices: tuple[Price, ...] = ()  # of all words together, and of all rows, blends and clamps together
    own_prices: tuple[Price, ...] = ()  # of each edit by itself, in their order
    precision: str = "float32"  # of the weights

    @property
    def source(self) -> Pieces:
        return self.prompt.pieces

    @property
    def tolerance(self) -> float:
        """A replay's total may differ from the search's by this much times 1 + |total|."""
        return TOLERANCE[self.precision]

    @property
    def limit(self) -> int:
        """The longest possible output."""
        return longest(self.prompt, self.options)


def check(checkpoint: Checkpoint, prompt: Prompt, edits: tuple[Edit, ...], options: SearchOptions) -> None:
    """Check that every edit fits the model, the input and the options."""
    if not isinstance(options, SearchOptions):
        raise InputError(f"Options are SearchOptions, such as SearchOptions(beam=3), not {shown(options)}.")
    given, model = len(prompt.prefix), network_of(checkpoint)
    check_source(model, prompt.source)
    prefix = Force(given, options.prefix) if options.prefix else None
    check_edits(edits, model.config, positions_of(model, prompt.source), room(prompt, options), prefix)
    if any(isinstance(edit, (Force, Ban)) and edit.position < given for edit in edits):
        raise InputError(f"The first {given} pieces are the text that was given; force or ban from position {given} on.")
    edits = (prefix, *edits) if prefix else edits
    check_options(edits, options, given, longest(prompt, options))
    check_room(edits, options, given, longest(prompt, options))


def check_room(edits: tuple[Edit, ...], options: SearchOptions, given: int, limit: int) -> None:
    """Check that the required words fit into an output of at most `limit` pieces, beside what is forced and banned."""
    for rule in rules_of_words(edits, options):
        if isinstance(rule, Required) and (needed := rule.needed(given)) > limit:
            if needed >= NEVER:
                raise InputError("What is forced or banned leaves no place for a required word; take one of the edits back.")
            raise InputError(
                f"The required words do not fit: with what is forced they need {needed} pieces, and this output has room for "
                f"{limit}. Require less, or raise the maximum length."
            )


def rules_of_words(edits: Sequence[Edit], options: SearchOptions) -> list[Rule]:
    """What is forced, banned and required, as rules of the search."""
    forced = [(edit.position, edit.tokens) for edit in edits if isinstance(edit, Force)]
    banned = [(edit.position, edit.tokens) for edit in edits if isinstance(edit, Ban)]
    return word_rules(options, EOS, forced, banned, [edit.spellings for edit in edits if isinstance(edit, Require)])


def edited(checkpoint: Checkpoint, prompt: Prompt, edits: tuple[Edit, ...], options: SearchOptions) -> tuple[Edit, ...]:
    """The edits, checked. Clamps to 'mean' become numbers: each unit's mean over the greedy output without edits."""
    check(checkpoint, prompt, edits, options)
    edits = tuple(edits)
    if not any(isinstance(edit, ClampGate) and edit.value == "mean" for edit in edits):
        return edits
    greedy = searched(checkpoint, [prompt], SearchOptions(strategy="greedy"))[0].hypotheses[0].tokens
    return means_in(network_of(checkpoint), prompt.source, prompt.prefix + greedy, edits)


def longest(prompt: Prompt, options: SearchOptions) -> int:
    """The most pieces of an output: what the options ask for, and with a source at most the prompt's limit."""
    asked = options.max_length or prompt.limit
    return asked if prompt.source is None else min(prompt.limit, asked)


def room(prompt: Prompt, options: SearchOptions) -> int:
    """The most pieces an output can have, including those that were given."""
    return len(prompt.prefix) + longest(prompt, options)


def checkpoint_of(given: Checkpoint | Network) -> Checkpoint:
    """A checkpoint itself; for a network, the checkpoint that it came from, with the network's current parameters."""
    if isinstance(given, Checkpoint):
        return given
    if not isinstance(given, Network):
        raise InputError(f"Give a checkpoint, as load(...) returns it, not {shown(given)}.")
    packed = given.baggage or Baggage()
    if packed.target_text is None:
        raise InputError("This network has no tokenizers; take one by from_pretrained, or save() it with them and load() it.")
    config = packed.config
    return Checkpoint(config["name"], config["task"], given.eval(), packed.source_text, packed.target_text, config)


def network_of(checkpoint: Checkpoint) -> Network:
    assert isinstance(checkpoint.model, Network)
    refuse_devices(checkpoint.model)
    return checkpoint.model


def sources_of(prompts: Sequence[Prompt]) -> tuple[Tensor | None, Tensor | None]:
    """The network's input for these prompts, and its mask: texts padded to the longest, grids of pictures, or nothing."""
    if prompts[0].source is None:
        return None, None
    if isinstance(prompts[0].source, Tensor):
        return torch.cat([prompt.source for prompt in prompts]), None  # type: ignore[misc]
    source_BS = pad_sequence([torch.tensor(prompt.pieces.ids) for prompt in prompts], batch_first=True)
    return source_BS, source_BS != PAD


def find(
    checkpoint: Checkpoint,
    prompts: Sequence[Prompt],
    options: SearchOptions,
    edits: tuple[Edit, ...] = (),
    record: bool = True,
    **how: Any,
) -> list[SearchResult]:
    """Check the arguments and search all prompts in one batch; `how` as in `searched`. Clamps to 'mean' need `run`."""
    if not prompts:
        return []
    for prompt in prompts:
        check(checkpoint, prompt, edits, options)
    return searched(checkpoint, prompts, options, edits, record=record, **how)


@torch.inference_mode()
def searched(
    checkpoint: Checkpoint,
    prompts: Sequence[Prompt],
    options: SearchOptions,
    edits: tuple[Edit, ...] = (),
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    record: bool = False,
    words: Sequence[Sequence[Edit]] = (),
) -> list[SearchResult]:
    """Search all prompts in one batch. The edits apply to all of them and have been checked; `words[b]` apply to prompt b
    alone."""
    step, state = begin(network_of(checkpoint), prompts, what_if_of(edits))
    given, limits = [prompt.prefix for prompt in prompts], [longest(prompt, options) for prompt in prompts]
    told: dict[str, Any] = {"given": given, "progress": progress, "cancel": cancel, "record": record}
    own = [rules_of_words(each, options) for each in words]
    return search(step, state, len(prompts), options, limits, rules=rules_of_words(edits, options), own=own, **told)


def begin(network: Network, prompts: Sequence[Prompt], what_if: WhatIf | None) -> tuple[StepFunction, Any]:
    """The step function, and the state that has read all tokens before the output except the last (<bos>, or a given one)."""
    step, state = network.stepper(network.read(*sources_of(prompts), what_if), what_if, len(prompts))
    if any(prompt.prefix for prompt in prompts):
        state = read_on(step, state, [(BOS, *prompt.prefix)[:-1] for prompt in prompts])
    return step, state


def read_on(step: StepFunction, state: Any, texts: Sequence[tuple[int, ...]]) -> Any:
    """The state after each row has read its text. Rows with shorter texts leave the batch earlier."""
    longest_first = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    state, waiting = select(state, torch.tensor(longest_first)), []
    reading = [texts[row] for row in longest_first]
    for tokens in zip_longest(*reading):
        going = sum(token is not None for token in tokens)
        if going < len(reading):
            waiting.append(select(state, torch.arange(going, len(reading))))
            state, reading = select(state, torch.arange(going)), reading[:going]
        _, state = step(torch.tensor(tokens[:going]), state)
    return select(join([state, *reversed(waiting)]), torch.tensor(longest_first).argsort())


def run(
    checkpoint: Checkpoint | Network,
    given: Any,
    options: SearchOptions | None = None,
    edits: tuple[Edit, ...] = (),
    language: str = "",
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Run:
    """Decode one input (text, a picture, or a Prompt) and record the search; with edits, also what they cost. Instead of a
    checkpoint, a network from from_pretrained may be given: it is set to eval() and computes with its current parameters."""
    checkpoint, options = checkpoint_of(checkpoint), options or SearchOptions()
    prompt = given if isinstance(given, Prompt) else prepare(checkpoint, given, language)
    edits = edited(checkpoint, prompt, edits, options)
    (found,) = searched(checkpoint, [prompt], options, edits, progress, cancel, record=True)
    hypotheses = at_least_one(obedient(found, prompt, edits))
    texts = texts_of(checkpoint, prompt, hypotheses)
    prices = prices_of(checkpoint, prompt, options, edits, hypotheses[0].tokens, cancel) if edits else ((), ())
    told = (checkpoint.name, checkpoint.task, prompt, options, edits)
    return Run(*told, found.tree, hypotheses, texts, found.certificate, *prices, network_of(checkpoint).precision or "float32")


def obedient(found: SearchResult, prompt: Prompt, edits: tuple[Edit, ...]) -> tuple[Hypothesis, ...]:
    """The hypotheses that hold what was forced and required. With edits of words, unfinished ones are left out, because they
    have no price."""
    if not any(map(is_word, edits)):
        return found.hypotheses
    given = len(prompt.prefix)
    return tuple(one for one in found.hypotheses if found.complete(one) and holds(prompt.prefix + one.tokens, edits, given))


def at_least_one(outputs: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    if not outputs:
        raise InputError(
            "No complete output is possible under these options and edits; remove one of them, or search for longer."
        )
    return outputs


def texts_of(checkpoint: Checkpoint, prompt: Prompt, hypotheses: Sequence[Hypothesis]) -> tuple[str, ...]:
    """The outputs as a person would write them; those of a language model with the given beginning."""
    text = tokenizer(checkpoint.target_text)
    return tuple(text.decode(prompt.prefix + hypothesis.tokens) for hypothesis in hypotheses)


def prices_of(
    checkpoint: Checkpoint,
    prompt: Prompt,
    options: SearchOptions,
    edits: tuple[Edit, ...],
    new: tuple[int, ...],
    cancel: Cancel | None = None,
) -> tuple[tuple[Price, ...], tuple[Price, ...]]:
    """The joint prices and the price of each edit. They need further searches: one without any word, and one without each
    word."""
    inside = tuple(edit for edit in edits if not is_word(edit))
    words = {n: edit for n, edit in enumerate(edits) if is_word(edit)}
    without = {n: tuple(other for m, other in words.items() if m != n) for n in words}
    asked = list(dict.fromkeys([(), *without.values()])) if words else []  # each search once, whatever it serves
    found = searched(checkpoint, [prompt] * len(asked), options, inside, cancel=cancel, words=asked) if asked else []
    if not all(one.hypotheses and one.complete(one.hypotheses[0]) for one in found):
        raise InputError("Without the edits this search finds no complete output to compare with; let it search for longer.")
    outputs = {left: prompt.prefix + one.hypotheses[0].tokens for left, one in zip(asked, found)}
    new = prompt.prefix + new
    return priced(
        network_of(checkpoint), prompt.source, edits, new, outputs.get((), new), {n: outputs[left] for n, left in without.items()}
    )


def badges(checkpoint: Checkpoint | Network, run: Run, trace: Trace | None = None) -> tuple[Badge | None, ...]:
    """What each word of the run's edits costs, at its place and in the whole output, in figures and in words; None for the edits
    inside the network. `trace`: the replay of the best output, if it is there."""
    if not any(map(is_word, run.edits)):
        return tuple(None for _ in run.edits)
    checkpoint, best = checkpoint_of(checkpoint), run.hypotheses[0]
    inside = tuple(edit for edit in run.edits if not is_word(edit))
    options = SearchOptions(strategy="greedy", max_length=run.options.max_length)
    (found,) = searched(checkpoint, [run.prompt], options, inside)
    greedy = best.total - found.hypotheses[0].total if found.complete(found.hypotheses[0]) else None
    trace, given = trace or replay(checkpoint, run, best.tokens), len(run.prompt.prefix)
    found_badges = worded_prices(run.edits, run.own_prices, trace, given, greedy, run.task)
    text = tokenizer(checkpoint.target_text)
    return tuple(badge and in_longer_word(badge, edit, text, trace.tokens, given) for edit, badge in zip(run.edits, found_badges))


def in_longer_word(badge: Badge, edit: Edit, text: Tokenizer, target: tuple[int, ...], given: int) -> Badge:
    """The badge of a required word, with the longer word that it is a part of."""
    longer = longer_word(text, target, places_of(edit, target, given)) if isinstance(edit, Require) else ""
    return replace(badge, says=f"{badge.says}; as part of {quoted(longer)}") if longer else badge


def search_error(exact: Run, beam: Run) -> SearchError:
    """Whether a beam missed the best output, as an exact search of the same input under the same edits tells."""
    if (exact.checkpoint, exact.edits) != (beam.checkpoint, beam.edits) or not exact.prompt.reads_as(beam.prompt):
        raise InputError("Compare searches of the same input, by the same checkpoint and under the same edits.")
    if exact.precision != beam.precision:
        raise InputError(f"Compare searches in one precision: these are in {exact.precision} and {beam.precision}.")
    proof, walked = (SearchResult(one.tree, one.hypotheses, one.certificate, one.options, one.limit) for one in (exact, beam))
    return error_between(proof, walked, TOLERANCE[exact.precision])


@overload
def replay(checkpoint: Checkpoint | Network, run: Run, tokens: Sequence[int]) -> Trace: ...


@overload
def replay(checkpoint: Checkpoint | Network, run: Run, tokens: Sequence[int], step: int) -> StepInFull: ...


def replay(checkpoint: Checkpoint | Network, run: Run, tokens: Sequence[int], step: int | None = None) -> Trace | StepInFull:
    """The Trace of one hypothesis or any other path of the run's tree, under the run's edits; with `step`, that step of it
    in full, counted from 0 (of a language model, from the beginning of the whole text)."""
    checkpoint = checkpoint_of(checkpoint)
    network, target = said(checkpoint, run.prompt, tokens)
    piece, source = tokenizer(checkpoint.target_text).piece, run.prompt.source
    if step is None:
        return trace_of(network, source, target, run.edits, run.prompt.pieces.strings, piece)
    return step_in_full(network, source, target, step, run.edits, piece)


def said(checkpoint: Checkpoint, prompt: Prompt, tokens: Sequence[int]) -> tuple[Network, tuple[int, ...]]:
    """The network, and all tokens of the output: the given text of a language model, then these."""
    network, target = network_of(checkpoint), prompt.prefix + plain(tuple(tokens))
    check_target(network, target)
    return network, target


def trace(
    checkpoint: Checkpoint,
    prompt: Prompt,
    tokens: Sequence[int],
    edits: tuple[Edit, ...] = (),
    options: SearchOptions | None = None,
) -> Trace:
    """The Trace of any tokens; `options` are those of the search that the edits were made for."""
    edits = edited(checkpoint, prompt, edits, options or SearchOptions())
    network, target = said(checkpoint, prompt, tokens)
    piece = tokenizer(checkpoint.target_text).piece
    return trace_of(network, prompt.source, target, edits, prompt.pieces.strings, piece)


@torch.inference_mode()
def scores(checkpoint: Checkpoint, asked: Sequence[tuple[Prompt, tuple[int, ...]]]) -> list[list[float]]:
    """The log probability of every token of these outputs, computed in one batch."""
    if not asked:
        return []
    prompts, outputs = zip(*asked)
    return [said_T.double().tolist() for said_T, _ in scored(network_of(checkpoint), *sources_of(prompts), outputs)]


def score(checkpoint: Checkpoint | Network, given: Any, target: str, language: str = "") -> Trace:
    """The probability of a given output, piece by piece, its end included; of a language model, of a whole text."""
    checkpoint = checkpoint_of(checkpoint)
    return trace(checkpoint, *scorable(checkpoint, given, target, language))


def scorable(checkpoint: Checkpoint, given: Any, target: Any, language: str = "") -> tuple[Prompt, tuple[int, ...]]:
    """What `score` replays. The prompt's `far` speaks of the output too."""
    text = tokenizer(checkpoint.target_text)
    if checkpoint.task == "complete":
        pieces = cut_up(text, given + target if isinstance(given, str) and isinstance(target, str) else None, MOST_TEXT)
        if not pieces.ids:
            raise InputError("There is no text to score: type at least one character.")
        return Prompt(Pieces((), (), ()), None, len(pieces.ids), far_from_training(pieces)), pieces.ids
    prompt = given if isinstance(given, Prompt) else prepare(checkpoint, given, language)
    pieces = cut_up(text, target, MOST_CHARACTERS)
    if len(pieces.ids) > MOST_PIECES:
        raise InputError(f"This output is {len(pieces.ids)} pieces long; the limit is {MOST_PIECES}. Shorten it.")
    blank = "" if all(pieces.known) else f"{unseen(pieces, 'the output')}; a blank is scored in its place."
    return replace(prompt, far=f"{prompt.far} {blank}".strip()), (*pieces.ids, EOS)
