"""Lines in, answers out, in the same order: what stands between a stream of bytes and the playground.

bytes -> Line -> Prompt -> batches of like length -> Answer -> one line, or one object, of output

A line that cannot be used is answered by a sentence, and the rest go on.
"""

from __future__ import annotations

import codecs
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any, BinaryIO, NamedTuple, TextIO

from seqdemo.checkpoints import Checkpoint, load
from seqdemo.checkpoints import names as checkpoint_names
from seqdemo.config import LANGUAGE_NAMES, SearchOptions
from seqdemo.errors import InputError
from seqdemo.playground import find, scorable, scores, texts_of
from seqdemo.prompts import Prompt, prepare, target_language, tokenizer
from seqdemo.search import UNDER_WAY, Found

DEFAULTS = {
    "translate": ("translator-de-en",),
    "transliterate": ("transliterator-indic", "transliterator-hi-attention"),
    "caption": ("captioner",),
    "complete": ("lm-tolstoy",),
    "score": ("translator-de-en",),
}
MOST_BYTES = 2**20  # of one line
ROWS = 320  # of the model, at most, a batch
LARGEST_BATCH = 64
BATCHES = 8  # a window, inside which inputs are sorted by length
FEW_PICTURES = 16  # a window: pictures take memory
PATIENCE = 0.02  # seconds to wait for a window to fill
LATER = object()
SHOWN_AS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Line(NamedTuple):
    number: int
    text: str
    error: str = ""


class Answer(NamedTuple):
    """`outputs` best first, or an `error`; `more` is what else an exact search or an unusual input has to tell."""

    line: Line
    outputs: tuple[dict[str, Any], ...] = ()
    error: str = ""
    more: dict[str, Any] = {}


@dataclass(frozen=True)
class Job:
    """What becomes of each line."""

    checkpoint: Checkpoint
    options: SearchOptions
    language: str = ""
    scoring: bool = False

    @property
    def batch(self) -> int:
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


def open_checkpoint(command: str, name: str | None, language: str) -> Checkpoint:
    """By name, folder or user/name, checked against what is asked of it."""
    wanted = name or next((known for known in DEFAULTS[command] if known in checkpoint_names()), DEFAULTS[command][-1])
    folder = Path(wanted)
    checkpoint = load(folder.resolve() if folder.parent != Path() and folder.is_dir() else wanted)
    if command not in ("score", checkpoint.task):
        raise InputError(f"{checkpoint.name} cannot {command}; it can {checkpoint.task}.")
    target_language(checkpoint, language)
    return checkpoint


def silent_choice(checkpoint: Checkpoint, language: str) -> str:
    """A line that says which language was chosen, and from which, where nobody did."""
    chosen = target_language(checkpoint, language)
    if language or len(checkpoint.languages) < 2:
        return ""
    return f"Written in {LANGUAGE_NAMES.get(chosen, chosen)}; choose with --to: {', '.join(checkpoint.languages)}.\n"


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """Lines end with a line feed and nothing else; what is not UTF-8, or too long to be meant, is an error of its own line."""
    number = 0
    while data := stream.readline(MOST_BYTES):
        number += 1
        whole = data
        while len(data) == MOST_BYTES and not data.endswith(b"\n"):
            data = stream.readline(MOST_BYTES)
        yield parse_line(number, whole, whole is not data)


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
    """Up to `size` lines that are there, without waiting long for more: a file comes in full windows, typed lines one by one."""
    waiting: Queue[Any] = Queue(2 * size)  # of lines; then an error, or None at the end

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
    """A line that can be answered: what the model reads and, where an output is to be scored, its tokens and its text."""

    prompt: Prompt
    tokens: tuple[int, ...] = ()
    text: str = ""

    @property
    def length(self) -> int:
        return len(self.prompt.pieces.ids) + len(self.tokens)


def answers(job: Job, lines: Sequence[Line], shown: Callable[[int], None] = lambda done: None) -> list[Answer]:
    """One answer a line, in the order of the lines; worked out in batches of like length."""
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
    """`source TAB target`; of a language model the whole line is the text."""
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
    return [answer(job, line, prompt, outcome) for line, prompt, outcome in zip(lines, prompts, searched(job, prompts))]


def searched(job: Job, prompts: Sequence[Prompt]) -> list[Found | str]:
    """What was found, or why nothing was; one input that does not fit the options spoils no other."""
    try:
        return [*find(job.checkpoint, prompts, job.options, record=False)]
    except InputError as error:
        if len(prompts) == 1:
            return [str(error)]
        return [outcome for prompt in prompts for outcome in searched(job, [prompt])]


def answer(job: Job, line: Line, prompt: Prompt, found: Found | str) -> Answer:
    if isinstance(found, str):
        return Answer(line, error=found)
    if not found.hypotheses:
        return Answer(line, error="Nothing can be said under these options; loosen them.")
    piece = tokenizer(job.checkpoint.target_text).piece
    outputs = tuple(
        {
            "text": text,
            "tokens": list(one.tokens),
            "logp": one.total,
            "score": one.score,
            "pieces": [piece(token) for token in one.tokens],
            "logps": list(one.logps),
            "finished": one.finished,
        }
        for text, one in zip(texts_of(job.checkpoint, prompt, found.hypotheses), found.hypotheses)
    )
    more = noted(prompt)
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
        found.append(Answer(line, (one,), more=noted(prompt)))
    return found


def noted(prompt: Prompt) -> dict[str, Any]:
    return {"note": prompt.far} if prompt.far else {}


def finite(value: Any) -> Any:
    """JSON knows no infinities: null."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(found: Answer) -> str:
    what = {"error": found.error} if found.error else {"outputs": found.outputs, **found.more}
    return json.dumps(finite({"input": found.line.text, **what}), ensure_ascii=False, allow_nan=False)


def as_text(found: Answer, scoring: bool) -> str:
    """The outputs on one line, TABs between them; line breaks and TABs inside them are written as in a string."""
    return "\t".join(f"{each['logp']:.4f}" if scoring else each["text"].translate(SHOWN_AS) for each in found.outputs)


class Progress:
    """One line on a terminal that says how far it is; on anything else nothing."""

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


def converse(job: Job, given: BinaryIO, out: TextIO, err: TextIO, as_objects: bool) -> int:
    """Answer every line; 1 if any could not be."""
    progress, done, failed = Progress(err), 0, False
    try:
        for window in windows(read_lines(given), job.window):
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
    """What a person should know of an answer that the line itself does not say."""
    certificate = found.more.get("certificate", {"proved": True})
    unproved = "" if certificate["proved"] else certificate["sentence"]
    return found.error or " ".join(filter(None, (found.more.get("note", ""), unproved)))
