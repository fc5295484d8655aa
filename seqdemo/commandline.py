"""Lines in, answers out, in the same order: the layer between a stream of bytes and the playground.

bytes -> Line -> Prompt -> batches of like length -> Answer -> one line, or one object, of output

A line that cannot be used gets a sentence as its answer, and the others are still answered.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import Any, BinaryIO, NamedTuple, TextIO

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import LANGUAGE_NAMES, TOLERANCE, SearchOptions
from seqdemo.edits import Edit
from seqdemo.errors import InputError
from seqdemo.hub import load
from seqdemo.hub import names as checkpoint_names
from seqdemo.playground import Run, find, network_of, run, scorable, scores, texts_of
from seqdemo.prompts import Prompt, prepare, target_language, tokenizer
from seqdemo.records import output_to_json, to_json
from seqdemo.search import UNDER_WAY, SearchResult

DEFAULTS = {
    "translate": ("translator-de-en",),
    "transliterate": ("transliterator-indic", "transliterator-hi-attention"),
    "caption": ("captioner",),
    "complete": ("lm-tolstoy",),
    "score": ("translator-de-en",),
}
HANDS = "translate"  # whose first model answers a question about its output, if none is named
TASKS = ("translate", "transliterate", "caption", "complete")
MOST_BYTES = 2**20  # of one line
ROWS = 320  # rows of the model in a batch, at most
LARGEST_BATCH = 64
BATCHES = 8  # lines in a window, within which inputs are sorted by length
FEW_PICTURES = 16  # pictures in a window, because they take memory
PATIENCE = 0.02  # seconds to wait for a window to fill
LATER = object()
SHOWN_AS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Line(NamedTuple):
    number: int
    text: str
    error: str = ""


class Answer(NamedTuple):
    """`outputs` best first, or an `error`; `more` holds the certificate of an exact search, a note on an unusual input and the
    like."""

    line: Line
    outputs: tuple[dict[str, Any], ...] = ()
    error: str = ""
    more: dict[str, Any] = {}
    told: str = ""  # in one line, where there are no outputs


@dataclass(frozen=True)
class Job:
    """What to do with each line."""

    checkpoint: Checkpoint
    options: SearchOptions
    language: str = ""
    scoring: bool = False
    edits: tuple[Edit, ...] = ()
    hand: str = ""  # what is asked about each best output, with which settings
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def batch(self) -> int:
        if self.edits or self.hand:
            return 1
        if self.scoring:
            return LARGEST_BATCH
        if self.options.strategy == "exact":
            return UNDER_WAY
        rows = {"greedy": 1, "sample": self.options.samples}.get(self.options.strategy, self.options.beam)
        return min(LARGEST_BATCH, max(1, ROWS // rows))

    @property
    def window(self) -> int:
        if self.checkpoint.task == "caption":
            return min(self.batch, FEW_PICTURES)
        return self.batch if self.options.strategy == "exact" else self.batch * BATCHES


def open_checkpoint(command: str, name: str | None, language: str, precision: str = "float32") -> Checkpoint:
    """Open a checkpoint by name, folder or user/name, and check that it can do the task."""
    defaults = DEFAULTS.get(command, DEFAULTS[HANDS])
    wanted = next((known for known in defaults if known in checkpoint_names()), defaults[-1]) if name is None else name
    folder = Path(wanted)
    checkpoint = load(folder.resolve() if folder.parent != Path() and folder.is_dir() else wanted, precision=precision)
    if command in TASKS and command != checkpoint.task:
        raise InputError(f"{checkpoint.name} cannot {command}; it can {checkpoint.task}.")
    target_language(checkpoint, language)
    return checkpoint


def silent_choice(checkpoint: Checkpoint, language: str) -> str:
    """A line that tells the language and its alternatives if the user chose none."""
    chosen = target_language(checkpoint, language)
    if language or len(checkpoint.languages) < 2:
        return ""
    return f"Written in {LANGUAGE_NAMES.get(chosen, chosen)}; choose with --to: {', '.join(checkpoint.languages)}.\n"


def lower_precision(checkpoint: Checkpoint) -> str:
    """A line on what a precision below float32 means for this model."""
    note = network_of(checkpoint).precision_note
    return f"{note}\n" if note else ""


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """Lines end with a line feed only. A line that is not UTF-8, or far too long, becomes an error for that line."""
    number = 0
    while data := stream.readline(MOST_BYTES):
        number += 1
        whole = data
        while len(data) == MOST_BYTES and not data.endswith(b"\n"):
            data = stream.readline(MOST_BYTES)
        yield parse_line(number, whole, whole is not data)


def arguments(texts: Sequence[str]) -> Iterator[Line]:
    """The arguments of a command as lines. Unlike those of a file, they may hold line feeds."""
    return (parse_line(number, os.fsencode(text), False) for number, text in enumerate(texts, 1))


def parse_line(number: int, data: bytes, cut: bool) -> Line:
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    if number == 1:
        data = data.removeprefix(codecs.BOM_UTF8)
    if cut or len(data) >= MOST_BYTES:
        start = data[:1000].decode(errors="ignore")
        return Line(number, start, f"This line is longer than {MOST_BYTES:,} bytes; break it up.")
    try:
        return Line(number, data.decode())
    except UnicodeDecodeError as error:
        sentence = f"This line is not UTF-8 text (byte {error.start + 1}); convert it first."
        return Line(number, data.decode(errors="replace"), sentence)


def windows(lines: Iterator[Line], size: int) -> Iterator[list[Line]]:
    """Up to `size` available lines, without a long wait for more: a file gives full windows, typed lines come one by one."""
    waiting: Queue[Any] = Queue(2 * size)  # lists of lines; at the end an error or None

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except Exception as error:
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    item: Any = waiting.get()
    while isinstance(item, Line):
        window = [item]
        while len(window) < size and isinstance(item := soon(waiting), Line):
            window.append(item)
        yield window
        if item is LATER or isinstance(item, Line):
            item = waiting.get()
    if item is not None:
        raise item


def soon(waiting: Queue[Any]) -> Any:
    try:
        return waiting.get(timeout=PATIENCE)
    except Empty:
        return LATER


class Question(NamedTuple):
    """A valid line: the model's input and, if an output is to be scored, its tokens and text."""

    prompt: Prompt
    tokens: tuple[int, ...] = ()
    text: str = ""

    @property
    def length(self) -> int:
        return len(self.prompt.pieces.ids) + len(self.tokens)


def answers(job: Job, lines: Sequence[Line], shown: Callable[[int], None] = lambda done: None) -> list[Answer]:
    """One answer for each line, in their order, computed in batches of similar length."""
    asked = [question(job, line) for line in lines]
    found = {place: given for place, given in enumerate(asked) if isinstance(given, Answer)}
    waiting = [(place, given) for place, given in enumerate(asked) if isinstance(given, Question)]
    waiting.sort(key=lambda item: item[1].length)
    for start in range(0, len(waiting), job.batch):
        places, batch = zip(*waiting[start : start + job.batch])
        worked_out = (scored if job.scoring else decoded)(job, [lines[place] for place in places], batch)
        found.update(zip(places, worked_out))
        shown(len(found))
    return [found[place] for place in range(len(lines))]


def question(job: Job, line: Line) -> Question | Answer:
    try:
        if line.error:
            raise InputError(line.error)
        return pair(job, line.text) if job.scoring else Question(prepare(job.checkpoint, line.text, job.language))
    except InputError as error:
        return Answer(line, error=str(error))


def pair(job: Job, text: str) -> Question:
    """`source TAB target`; for a language model the whole line is the text."""
    source, tab, target = text.partition("\t")
    if job.checkpoint.task == "complete":
        source, target = "", text
    elif not tab:
        raise InputError("A line to score is a source, a TAB, and a target; this one has no TAB.")
    elif "\t" in target:
        raise InputError("A line to score is a source, a TAB, and a target; this one has more than one TAB.")
    return Question(*scorable(job.checkpoint, source, target, language=job.language), target)


def decoded(job: Job, lines: Sequence[Line], asked: Sequence[Question]) -> list[Answer]:
    prompts = [one.prompt for one in asked]
    if job.edits or job.hand:
        return [tried(job, line, prompt) for line, prompt in zip(lines, prompts)]
    return [answer(job, line, prompt, outcome) for line, prompt, outcome in zip(lines, prompts, searched(job, prompts))]


def tried(job: Job, line: Line, prompt: Prompt) -> Answer:
    """Decoded under edits, with what they cost; or the answer to a question about the best output."""
    try:
        found = run(job.checkpoint, prompt, job.options, job.edits)
        if not job.hand:
            whole = answer(job, line, prompt, found)
            prices = {name: [to_json(price) for price in getattr(found, name)] for name in ("prices", "own_prices")}
            return whole._replace(more={**whole.more, **prices})
        from seqdemo.hands.lines import answered

        more, told = answered(job.hand, job.checkpoint, found, job.settings)
    except InputError as error:
        return Answer(line, error=str(error))
    return Answer(line, more={**more, **noted(job.checkpoint, prompt)}, told=told)


def searched(job: Job, prompts: Sequence[Prompt]) -> list[SearchResult | str]:
    """The results, or the reason why there are none. An input that does not fit the options affects no other."""
    try:
        return [*find(job.checkpoint, prompts, job.options, record=False)]
    except InputError as error:
        if len(prompts) == 1:
            return [str(error)]
        return [outcome for prompt in prompts for outcome in searched(job, [prompt])]


def answer(job: Job, line: Line, prompt: Prompt, found: SearchResult | Run | str) -> Answer:
    if isinstance(found, str):
        return Answer(line, error=found)
    if not found.hypotheses:
        return Answer(line, error="No output is possible under these options; relax them.")
    piece = tokenizer(job.checkpoint.target_text).piece
    outputs = tuple(
        output_to_json(one, text, piece)
        for text, one in zip(texts_of(job.checkpoint, prompt, found.hypotheses), found.hypotheses)
    )
    more = noted(job.checkpoint, prompt)
    if len(job.checkpoint.languages) > 1:
        more["language"] = prompt.language
    if found.certificate:
        more["certificate"] = vars(found.certificate)
    return Answer(line, outputs, more=more)


def scored(job: Job, lines: Sequence[Line], asked: Sequence[Question]) -> list[Answer]:
    piece = tokenizer(job.checkpoint.target_text).piece
    found = []
    for line, (prompt, tokens, text), logps in zip(lines, asked, scores(job.checkpoint, [one[:2] for one in asked])):
        pieces, total = [piece(token) for token in tokens], sum(logps)
        one = {"text": text, "tokens": list(tokens), "logp": total, "score": total, "pieces": pieces, "logps": logps}
        found.append(Answer(line, (one,), more=noted(job.checkpoint, prompt)))
    return found


def noted(checkpoint: Checkpoint, prompt: Prompt) -> dict[str, Any]:
    """Beside the answer: a note on an unusual input, the precision of the weights, and its tolerance, by which times 1 + |total|
    a search and its replay may differ."""
    said = {"note": prompt.far} if prompt.far else {}
    return {**said, "precision": checkpoint.precision, "tolerance": TOLERANCE[checkpoint.precision]}


def finite(value: Any) -> Any:
    """Null in place of infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(found: Answer) -> str:
    outputs = {"outputs": found.outputs} if found.outputs else {}
    what = {"error": found.error} if found.error else {**outputs, **found.more}
    return json.dumps(finite({"input": found.line.text, **what}), ensure_ascii=False, allow_nan=False)


def as_text(found: Answer, scoring: bool) -> str:
    """The outputs on one line, TABs between them; line breaks and TABs inside them are written as in a string."""
    if found.told:
        return found.told.translate(SHOWN_AS | {ord("\t"): "\t"})
    return "\t".join(f"{each['logp']:.4f}" if scoring else each["text"].translate(SHOWN_AS) for each in found.outputs)


class Progress:
    """A line of progress on a terminal; nothing elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.shown = stream, stream.isatty()
        self.stands, self.began = False, time.perf_counter()

    def show(self, done: int) -> None:
        if self.shown:
            rate = done / max(1e-9, time.perf_counter() - self.began)
            self.stream.write(f"\r\033[K{done:,} lines, {rate:,.1f} a second")
            self.stream.flush()
            self.stands = True

    def clear(self) -> None:
        if self.stands:
            self.stream.write("\r\033[K")
            self.stream.flush()
            self.stands = False


def converse(job: Job, lines: Iterator[Line], out: TextIO, err: TextIO, as_objects: bool) -> int:
    """Answer every line; return 1 if some could not be answered."""
    progress, done, failed = Progress(err), 0, False
    try:
        for window in windows(lines, job.window):
            found = answers(job, window, lambda count, before=done: progress.show(before + count))  # type: ignore[misc]
            done += len(window)
            told = [] if as_objects else [f"line {each.line.number}: {remark}\n" for each in found if (remark := remark_on(each))]
            if told or out.isatty():
                progress.clear()
            out.writelines((as_json(each) if as_objects else as_text(each, job.scoring)) + "\n" for each in found)
            err.writelines(told)
            out.flush()
            err.flush()
            failed |= any(each.error for each in found)
    finally:
        progress.clear()
    return int(failed)


def remark_on(found: Answer) -> str:
    """Remarks on an answer that the output line itself does not hold."""
    certificate = found.more.get("certificate", {"proved": True})
    unproved = "" if certificate["proved"] else certificate["sentence"]
    return found.error or " ".join(filter(None, (found.more.get("note", ""), unproved)))
