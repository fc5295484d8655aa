"""The one place where text, model, search and trace meet.

prompt  ->  prepare (check, cut up, encode)  ->  search under edits  ->  the tree, the hypotheses and their prices
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
from seqdemo.images import Picture, read_picture
from seqdemo.model import LanguageModel, Seq2Seq, StepFunction
from seqdemo.records import Certificate, Hypothesis, Price, SearchTree, Trace
from seqdemo.search import Found, search
from seqdemo.state import Memory, join, select
from seqdemo.text import SPACE_MARK, Characters, Pieces, Tokenizer
from seqdemo.trace import Source, check_source, follow, holds, positions_of, price_of_state, price_of_tokens, resolve
from seqdemo.whatif import WhatIf, constrain

MOST_PIECES = 120
MOST_CHARACTERS = 1_000
MOST_TEXT = 5_000  # characters, for a language model
CAPTION_LIMIT = 40
COMPLETION_LIMIT = 120
USUAL_PIECES = 40  # few training sentences are longer

Progress = Callable[[int, float, float], None]
Cancel = Callable[[], bool]


@dataclass(frozen=True)
class Prompt:
    """An input, ready for a model: what it is cut into, what the model reads, and how far it lies from training data."""

    pieces: Pieces
    source: Source  # for a language model None: its prompt is the beginning of the output
    limit: int  # the longest output
    far: str = ""
    picture: Picture | None = None
    language: str = ""

    @property
    def prefix(self) -> tuple[int, ...]:
        return self.pieces.ids if self.source is None else ()


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


def usable_text(which: Tokenizer, text: Any, most: int) -> str:
    """The text, if it is one and, as `which` reads it, has at most so many characters."""
    if not isinstance(text, str):
        raise InputError("The input must be text.")
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise InputError("This text holds half of a character (a lone surrogate); paste it again from its source.")
    length = len(which.clean(text))
    if length > most:
        raise InputError(f"This text has {length:,} characters; the limit is {most:,}. Shorten it.")
    return text


def cut_up(which: Tokenizer, text: Any, most: int, tag: str = "") -> Pieces:
    """A text in pieces. Where some are unknown, a letter or digit at least must be known: else the model would read blanks."""
    text = usable_text(which, text, most)
    pieces = which.encode(text, tag) if isinstance(which, Characters) else which.encode(text)
    read = list(zip(pieces.strings, pieces.known))[bool(tag) :]
    if not all(pieces.known) and not any(known and any(map(str.isalnum, string)) for string, known in read):
        raise InputError("The model knows none of these letters; type a text in the language and script it was trained on.")
    return pieces


def tokenizer(which: Tokenizer | None) -> Tokenizer:
    if which is None:
        raise InputError("This checkpoint has no tokenizer for that side.")
    return which


def prepare(checkpoint: Checkpoint, given: Any, language: str = "") -> Prompt:
    """Text, or for a captioner a picture (bytes, a path, or one opened by Pillow), as a Prompt."""
    if checkpoint.task == "caption":
        return prepare_picture(checkpoint, given)
    if checkpoint.task == "complete":
        pieces = cut_up(tokenizer(checkpoint.target_text), given, MOST_TEXT)
        return Prompt(pieces, None, COMPLETION_LIMIT, far_from_training(pieces))
    source_text = tokenizer(checkpoint.source_text)
    language = target_language(checkpoint, language)
    tagged = isinstance(source_text, Characters) and len(checkpoint.languages) > 1
    pieces = cut_up(source_text, given, MOST_CHARACTERS, language if tagged else "")
    if len(pieces.ids) <= tagged:
        raise InputError("There is no text to read: type at least one letter.")
    if len(pieces.ids) > MOST_PIECES:
        raise InputError(f"This text is {len(pieces.ids)} pieces long; the limit is {MOST_PIECES}. Shorten it.")
    return Prompt(pieces, pieces.ids, 2 * len(pieces.ids) + 10, far_from_training(pieces), language=language)


def target_language(checkpoint: Checkpoint, asked: str) -> str:
    """The language asked for, or the first there is; '' where a checkpoint names none."""
    only = str(checkpoint.config.get("target_language", ""))
    languages = checkpoint.languages or ((only,) if only else ())
    if asked and asked not in languages:
        known = f"it knows {', '.join(languages)}" if languages else "leave the language out"
        raise InputError(f"{checkpoint.name} has no target language {asked!r}; {known}.")
    return asked or (languages[0] if languages else "")


def prepare_picture(checkpoint: Checkpoint, given: Any) -> Prompt:
    if given is None:
        raise InputError("There is no picture: drop one, paste one, or choose an example.")
    encoder: Any = seq2seq(checkpoint).encoder
    picture = read_picture(given, encoder.cnn.size)
    with torch.inference_mode():
        grid_1SC = encoder.grid(picture.pixels[None])
    return Prompt(Pieces((), (), ()), grid_1SC, CAPTION_LIMIT, picture=picture)


def seq2seq(checkpoint: Checkpoint) -> Seq2Seq:
    if not isinstance(checkpoint.model, Seq2Seq):
        raise InputError(f"{checkpoint.name} is a language model; it has no source to read.")
    return checkpoint.model


def unseen(pieces: Pieces, what: str = "this") -> str:
    unknown = sum(not known for known in pieces.known)
    number = "1 piece" if unknown == 1 else f"{unknown} pieces"
    return f"The model has never seen {number} of {what}"


def far_from_training(pieces: Pieces) -> str:
    """A sentence when this input is unlike what models here were trained on; empty otherwise."""
    words = max(1, sum(piece.startswith(SPACE_MARK) for piece in pieces.strings))
    if not all(pieces.known):
        return f"{unseen(pieces)}; it reads a blank there."
    if any(piece.startswith(SPACE_MARK) for piece in pieces.strings) and len(pieces.ids) > 3.5 * words + 3:
        return "These words fall into unusually small pieces: the model hardly saw any like them in training."
    if len(pieces.ids) > USUAL_PIECES and SPACE_MARK in "".join(pieces.strings):
        return "This is longer than nearly everything the model was trained on."
    return ""


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
