"""The one place where text, model, search and trace meet.

prompt (checked, cut up)  ->  search under edits  ->  the tree, the hypotheses and their prices
        ->  replay of any of them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import BOS, EOS, SearchOptions
from seqdemo.edits import (
    AttentionBlend,
    AttentionRow,
    Ban,
    ClampGate,
    Edit,
    Force,
    check_edits,
    check_options,
    forced_pieces,
)
from seqdemo.errors import InputError
from seqdemo.model import LanguageModel, Seq2Seq, StepFunction
from seqdemo.prompts import MOST_CHARACTERS, MOST_PIECES, MOST_TEXT, Prompt, cut_up, far_from_training, prepare, tokenizer, unseen
from seqdemo.records import Certificate, Hypothesis, Price, SearchError, SearchTree, Trace
from seqdemo.search import Found, search
from seqdemo.search import search_error as error_between
from seqdemo.state import Memory, join, select
from seqdemo.text import Pieces
from seqdemo.trace import check_source, follow, holds, positions_of, price_of_state, price_of_tokens, resolve
from seqdemo.whatif import WhatIf, constrain

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
    prices: tuple[Price, ...] = ()

    @property
    def source(self) -> Pieces:
        return self.prompt.pieces

    @property
    def limit(self) -> int:
        """How long an output might be."""
        return longest(self.prompt, self.options)


def check(checkpoint: Checkpoint, prompt: Prompt, edits: tuple[Edit, ...], options: SearchOptions) -> None:
    """Every edit fits the model, the input and the options."""
    given, model = len(prompt.prefix), model_of(checkpoint)
    check_source(model, prompt.source)
    check_edits(edits, model.config, positions_of(model, prompt.source), room(prompt, options))
    if any(isinstance(edit, (Force, Ban)) and edit.position < given for edit in edits):
        raise InputError(f"The first {given} pieces are the text that was given; force or ban from position {given} on.")
    check_options(edits, options, given, longest(prompt, options))


def edited(checkpoint: Checkpoint, prompt: Prompt, edits: tuple[Edit, ...], options: SearchOptions) -> tuple[Edit, ...]:
    """The edits, checked, with every clamp to the mean made numbers: each unit's mean over the untouched greedy output,
    whatever is searched for or replayed."""
    check(checkpoint, prompt, edits, options)
    edits = tuple(edits)
    if not any(isinstance(edit, ClampGate) and edit.value == "mean" for edit in edits):
        return edits
    greedy = find(checkpoint, [prompt], SearchOptions(strategy="greedy"), record=False)[0].hypotheses[0].tokens
    return resolve(model_of(checkpoint), prompt.source, prompt.prefix + greedy, edits, room(prompt, options))


def longest(prompt: Prompt, options: SearchOptions) -> int:
    """How long an output may be: a language model goes on for as long as it is asked to."""
    asked = options.max_length or prompt.limit
    return asked if prompt.source is None else min(prompt.limit, asked)


def room(prompt: Prompt, options: SearchOptions) -> int:
    """The most pieces an output can have, with those that were given."""
    return len(prompt.prefix) + longest(prompt, options)


def model_of(checkpoint: Checkpoint) -> Seq2Seq | LanguageModel:
    assert isinstance(checkpoint.model, (Seq2Seq, LanguageModel))
    return checkpoint.model


def encode(model: Seq2Seq, prompts: Sequence[Prompt], what_if: WhatIf) -> Memory:
    if isinstance(prompts[0].source, Tensor):
        return model.encode(torch.cat([prompt.source for prompt in prompts]))  # type: ignore[misc]
    ids = [torch.tensor(prompt.pieces.ids) for prompt in prompts]
    source_BS = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    return model.encode(source_BS, source_BS != 0, what_if.encoder())


def find(
    checkpoint: Checkpoint,
    prompts: Sequence[Prompt],
    options: SearchOptions,
    edits: tuple[Edit, ...] = (),
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    record: bool = True,
) -> list[Found]:
    """Search all prompts in one batch. A gate held at its mean is for `run`."""
    for prompt in prompts:
        check(checkpoint, prompt, edits, options)
    with torch.inference_mode():
        free, start = begin(model_of(checkpoint), prompts, WhatIf(edits))
        step, state = constrain(free, start, edits, [len(prompt.prefix) for prompt in prompts])
        given, limits = [prompt.prefix for prompt in prompts], [longest(prompt, options) for prompt in prompts]
        told: dict[str, Any] = {"given": given, "progress": progress, "cancel": cancel, "record": record}
        found = search(step, state, len(prompts), options, limits, **told)
        return found if step is free else certified(found, free, start, given)


def begin(model: Seq2Seq | LanguageModel, prompts: Sequence[Prompt], what_if: WhatIf) -> tuple[StepFunction, Any]:
    """The step function, and its state when all is read but the last token before each output, <bos> or one that was given."""
    asked = what_if if what_if else None
    if isinstance(model, Seq2Seq):
        return model.stepper(encode(model, prompts, what_if), asked)
    step, state = model.stepper(len(prompts), asked)
    return step, read_on(step, state, [(BOS, *prompt.prefix)[:-1] for prompt in prompts])


def read_on(step: StepFunction, state: Any, texts: Sequence[tuple[int, ...]]) -> Any:
    """The state after each row has read its text; the shorter ones wait for the longest."""
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


def certified(found: list[Found], free: StepFunction, state: Any, given: Sequence[tuple[int, ...]]) -> list[Found]:
    """Words were forced or banned: the certificates tell what the model by itself gives the empty output."""
    if not all(one.certificate for one in found):
        return found
    last_B = torch.tensor([(BOS, *text)[-1] for text in given])
    logp_B = free(last_B, state)[0][:, EOS].tolist()
    return [one.with_empty(logp) for one, logp in zip(found, logp_B)]


def run(
    checkpoint: Checkpoint,
    given: Any,
    options: SearchOptions | None = None,
    edits: tuple[Edit, ...] = (),
    language: str = "",
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Run:
    """Decode one input (text, a picture, or a Prompt) and record how; under edits, say what they cost."""
    options = options or SearchOptions()
    prompt = given if isinstance(given, Prompt) else prepare(checkpoint, given, language)
    edits = edited(checkpoint, prompt, edits, options)
    (found,) = find(checkpoint, [prompt], options, edits, progress, cancel)
    hypotheses = obedient(found, prompt, edits)
    if not hypotheses:
        raise InputError("Nothing whole can be said under these options and edits; take one of them back, or search for longer.")
    texts = texts_of(checkpoint, prompt, hypotheses)
    prices = priced(checkpoint, prompt, options, edits, hypotheses[0].tokens, cancel) if edits else ()
    return Run(checkpoint.name, checkpoint.task, prompt, options, edits, found.tree, hypotheses, texts, found.certificate, prices)


def obedient(found: Found, prompt: Prompt, edits: tuple[Edit, ...]) -> tuple[Hypothesis, ...]:
    """The hypotheses that hold what was forced; with words forced or banned none that broke off, which would have no price."""
    if not any(isinstance(edit, (Force, Ban)) for edit in edits):
        return found.hypotheses
    forced = forced_pieces(edits)
    return tuple(one for one in found.hypotheses if found.complete(one) and holds(prompt.prefix + one.tokens, forced))


def texts_of(checkpoint: Checkpoint, prompt: Prompt, hypotheses: Sequence[Hypothesis]) -> tuple[str, ...]:
    """As a person would write them; of a language model with the beginning that was given."""
    text = tokenizer(checkpoint.target_text)
    return tuple(text.decode(prompt.prefix + hypothesis.tokens) for hypothesis in hypotheses)


def priced(
    checkpoint: Checkpoint,
    prompt: Prompt,
    options: SearchOptions,
    edits: tuple[Edit, ...],
    new: tuple[int, ...],
    cancel: Cancel | None = None,
) -> tuple[Price, ...]:
    """Two prices, never mixed: of the words forced or banned, and of the rows, blends and gates edited."""
    model, prefix, prices = model_of(checkpoint), prompt.prefix, []
    words = tuple(edit for edit in edits if isinstance(edit, (Force, Ban)))
    inside = tuple(edit for edit in edits if isinstance(edit, (AttentionRow, AttentionBlend, ClampGate)))
    if words:
        (found,) = find(checkpoint, [prompt], options, (), None, cancel, record=False)
        if not found.hypotheses or not found.complete(found.hypotheses[0]):
            raise InputError("Without the edits this search finds nothing whole to compare with; let it search for longer.")
        old = prefix + found.hypotheses[0].tokens
        prices.append(price_of_tokens(model, prompt.source, old, prefix + new, words, room(prompt, options)))
    if inside:
        prices.append(price_of_state(model, prompt.source, prefix + new, inside, room(prompt, options)))
    return tuple(prices)


def search_error(exact: Run, beam: Run) -> SearchError:
    """Whether a beam missed the best output, by an exact search of the same input under the same edits."""
    if (exact.checkpoint, exact.edits) != (beam.checkpoint, beam.edits) or not exact.prompt.reads_as(beam.prompt):
        raise InputError("Compare searches of the same input, by the same checkpoint and under the same edits.")
    return error_between(*(Found(one.tree, one.hypotheses, one.certificate, one.options, one.limit) for one in (exact, beam)))


def replay(checkpoint: Checkpoint, run: Run, tokens: Sequence[int]) -> Trace:
    """The Trace of one hypothesis or any other path of the run's tree, under the run's edits."""
    return trace(checkpoint, run.prompt, tokens, run.edits, run.options)


def trace(
    checkpoint: Checkpoint,
    prompt: Prompt,
    tokens: Sequence[int],
    edits: tuple[Edit, ...] = (),
    options: SearchOptions | None = None,
) -> Trace:
    """The Trace of any tokens; `options` are those of the search that the edits were made for."""
    text, model, options = tokenizer(checkpoint.target_text), model_of(checkpoint), options or SearchOptions()
    edits = edited(checkpoint, prompt, edits, options)
    target = prompt.prefix + tuple(tokens)
    return follow(model, prompt.source, target, edits, prompt.pieces.strings, text.piece, room(prompt, options))


def scores(checkpoint: Checkpoint, asked: Sequence[tuple[Prompt, tuple[int, ...]]]) -> list[list[float]]:
    """The log probability of every token of these outputs, which are read side by side."""
    prompts, outputs = zip(*asked)
    read_BT = torch.nn.utils.rnn.pad_sequence([torch.tensor((BOS, *tokens)) for tokens in outputs], batch_first=True)
    columns = []
    with torch.inference_mode():
        step, state = begin(model_of(checkpoint), prompts, WhatIf(()))
        for read_B, said_B in zip(read_BT.unbind(1), read_BT[:, 1:].unbind(1)):
            logp_BV, state = step(read_B, state)
            columns.append(logp_BV.gather(1, said_B[:, None]).double())
    return [row[: len(tokens)] for row, tokens in zip(torch.cat(columns, 1).tolist(), outputs)]


def score(checkpoint: Checkpoint, given: Any, target: str, language: str = "") -> Trace:
    """The probability of a given output, piece by piece, its end included; of a language model, of a whole text."""
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
    priced_blank = "" if all(pieces.known) else f"{unseen(pieces, 'the output')}; it prices a blank there."
    return replace(prompt, far=f"{prompt.far} {priced_blank}".strip()), (*pieces.ids, EOS)
