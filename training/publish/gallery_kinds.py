"""The kinds of examples in the gallery: how each is searched for, and the sentence made from its numbers.

A kind looks at cases and returns hits: an input, the two columns to compare, how telling it is (`weight`) and what sort of
hit it is (`group`). The sentence is made later, from the two runs as a page would show them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, SearchOptions
from seqdemo.edits import AttentionBlend, AttentionRow, Edit
from seqdemo.numerals import RAISED
from seqdemo.playground import Run, trace
from seqdemo.prompts import Prompt
from seqdemo.records import Hypothesis
from seqdemo.search import SearchResult
from training.data.records import Example
from training.measure.scores import SCORING, Output
from training.publish.photographs import Photo

GREEDY, BEAM, LARGE, EXACT = (
    SearchOptions(strategy="greedy"),
    SearchOptions(beam=5),
    SearchOptions(beam=50),
    SearchOptions(strategy="exact", expansions=5_000),
)
OFF = (AttentionBlend(1.0, "uniform"),)
CLEAR = 0.05  # nats by which an output must be likelier
WORSE = 10.0  # points of the single output's score by which it must be worse
BROKEN = 30.0
MOST_PLACES, MOST_CELLS, MOST_PIECES = 10, 25, 14  # the most places, grid cells and pieces that are tried


class Case(NamedTuple):
    example: Example
    prompt: Prompt
    photo: Photo | None = None


class Column(NamedTuple):
    options: SearchOptions
    edits: tuple[Edit, ...] = ()
    checkpoint: str = ""  # another than the example's


class Hit(NamedTuple):
    case: Case
    weight: float
    group: str
    first: Column
    second: Column


class Find(Protocol):
    def __call__(self, cases: Sequence[Case], options: SearchOptions, edits: tuple[Edit, ...] = ()) -> list[SearchResult]: ...


class Kind(NamedTuple):
    """`criterion` is the rule that an input must fulfil, in words; the file holds it beside the counts."""

    title: str
    criterion: str
    tasks: tuple[str, ...]
    most: int  # inputs looked at
    search: Callable[[Checkpoint, Sequence[Case], Find], list[Hit]]
    caption: Callable[[Checkpoint, Hit, Run, Run], str]
    attention: bool = False

    def suits(self, checkpoint: Checkpoint) -> bool:
        attends = bool(getattr(checkpoint.model, "config").has_attention)  # noqa: B009
        return checkpoint.task in self.tasks and (attends or not self.attention)


# ------------------------------------------------------------------------------------------------------ words for numbers


def text_of(checkpoint: Checkpoint, tokens: Sequence[int]) -> str:
    assert checkpoint.target_text is not None
    return checkpoint.target_text.decode(tokens)


def quality(checkpoint: Checkpoint, case: Case, found: Hypothesis) -> float:
    """The score of one output against the input's references; 0 where there are none."""
    if not case.example.references or checkpoint.task not in SCORING:
        return 0.0
    output = Output((text_of(checkpoint, found.tokens),), (found.total,), (len(found.tokens),))
    return SCORING[checkpoint.task].single(output, case.example)


def best(found: Sequence[SearchResult]) -> list[Hypothesis]:
    return [one.hypotheses[0] for one in found]


def times(nats: float) -> str:
    """e^nats in words."""
    if nats > math.log(9_999):
        power = f"{nats / math.log(10):.0f}".translate(RAISED)
        return f"10{power} times"
    ratio = math.exp(nats)
    return f"{ratio:.2f} times" if ratio < 2 else f"{ratio:.1f} times" if ratio < 20 else f"{ratio:,.0f} times"


def place(checkpoint: Checkpoint, tokens: Sequence[int], position: int) -> str:
    """The word (or letter) that the piece at a position belongs to."""
    if tokens[position] == EOS:
        return "the end"
    if checkpoint.task in ("transliterate", "complete"):
        return f"letter {position + 1}"
    return f"word {max(1, len(text_of(checkpoint, tokens[: position + 1]).split()))}"


def parting(a: Sequence[int], b: Sequence[int]) -> int:
    """Where two outputs first differ."""
    return next((i for i, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), min(len(a), len(b)) - 1)


def size_of(case: Case) -> str:
    """Short, medium or long, so that examples of every size are kept."""
    length = len(case.prompt.pieces.ids)
    return "short" if length < 8 else "middling" if length < 16 else "long"


# ------------------------------------------------------------------------------------------------------------- the kinds


def greedy_loses(checkpoint: Checkpoint, cases: Sequence[Case], find: Find) -> list[Hit]:
    hits = []
    for case, a, b in zip(cases, best(find(cases, GREEDY)), best(find(cases, BEAM))):
        if b.total > a.total + CLEAR:
            gain = quality(checkpoint, case, b) - quality(checkpoint, case, a)
            hits.append(Hit(case, gain + min(b.total - a.total, 5.0), size_of(case), Column(GREEDY), Column(BEAM)))
    return hits


def say_greedy(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    mine, other = a.hypotheses[0], b.hypotheses[0]
    at = parting(mine.tokens, other.tokens)
    return (
        f"Beam 5 finds an output that is {times(other.total - mine.total)} as likely. Greedy lost it at "
        f"{place(checkpoint, mine.tokens, at)}, where its own choice looked {times(mine.logps[at] - other.logps[at])} as likely."
    )


def beam_loses(checkpoint: Checkpoint, cases: Sequence[Case], find: Find) -> list[Hit]:
    hits = []
    for case, a, found in zip(cases, best(find(cases, BEAM)), find(cases, EXACT)):
        b = found.hypotheses[0]
        if found.certificate and found.certificate.proved and b.total > a.total + CLEAR:
            group = "empty" if b.tokens[:1] == (EOS,) else "shorter" if len(b.tokens) < len(a.tokens) else "other"
            hits.append(Hit(case, b.total - a.total, group, Column(BEAM), Column(EXACT)))
    return hits


def say_optimum(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    mine, optimum = a.hypotheses[0], b.hypotheses[0]
    if optimum.tokens[:1] == (EOS,):
        what = "it is the empty one"
    else:
        sizes = f", {len(optimum.tokens)} pieces with the end where beam 5 has {len(mine.tokens)}"
        what = f"“{b.texts[0]}”{sizes if len(optimum.tokens) != len(mine.tokens) else ''}"
    return f"Exact search proves which output is likeliest of all: {what}. It is {times(optimum.total - mine.total)} as likely."


def larger_is_worse(checkpoint: Checkpoint, cases: Sequence[Case], find: Find) -> list[Hit]:
    hits = []
    for case, a, b in zip(cases, best(find(cases, BEAM)), best(find(cases, LARGE))):
        loss = quality(checkpoint, case, a) - quality(checkpoint, case, b)
        if b.total > a.total + CLEAR and loss >= WORSE:
            hits.append(Hit(case, loss, size_of(case), Column(BEAM), Column(LARGE)))
    return hits


def say_larger(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    gain = times(b.hypotheses[0].total - a.hypotheses[0].total)
    if checkpoint.task == "transliterate":
        worse = "people write it as beam 5 has it, and nobody as beam 50 has it"
    else:
        scores = [quality(checkpoint, hit.case, one.hypotheses[0]) for one in (a, b)]
        worse = f"against the references chrF falls from {scores[0]:.0f} to {scores[1]:.0f}"
    return f"Beam 50 finds an output that is {gain} as likely, and worse: {worse}."


def attention_matters(checkpoint: Checkpoint, cases: Sequence[Case], find: Find) -> list[Hit]:
    """By the references; without any, by the output with the model's own attention."""
    hits = []
    for case, a, b in zip(cases, best(find(cases, BEAM)), best(find(cases, BEAM, OFF))):
        wanted = case.example.references or (text_of(checkpoint, a.tokens),)
        judged = case._replace(example=case.example._replace(references=wanted))
        loss = quality(checkpoint, judged, a) - quality(checkpoint, judged, b)
        if loss >= BROKEN and a.total > trace(checkpoint, case.prompt, b.tokens).total + CLEAR:
            hits.append(Hit(case, loss, size_of(case), Column(BEAM), Column(BEAM, OFF)))
    return hits


def say_off(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    return (
        f"With attention spread evenly over the source, “{a.texts[0]}” becomes “{b.texts[0]}”. With attention as it was, the "
        f"first is {times(a.hypotheses[0].total - b.prices[-1].before)} as likely as the second."
    )


def rows_tried(checkpoint: Checkpoint, case: Case, found: Hypothesis) -> Iterator[AttentionRow]:
    """All attention on one state, at the beginning of every word."""
    states = len(case.prompt.pieces.ids) or case.prompt.source.shape[1]  # type: ignore[union-attr]
    step = -(-states // MOST_CELLS)
    begun, before = [], 0
    for position in range(len(found.tokens) - 1):
        words = len(units(checkpoint, text_of(checkpoint, found.tokens[: position + 1])))
        if words > before:
            begun.append(position)
        before = words
    for position in begun[:MOST_PLACES]:
        for state in range(0, states, step):
            yield AttentionRow(position, tuple(float(j == state) for j in range(states)))


def units(checkpoint: Checkpoint, text: str) -> list[str]:
    return list(text) if checkpoint.task == "transliterate" else text.split()


def flipped(checkpoint: Checkpoint, old: str, new: str) -> tuple[str, str] | None:
    """The one word (or letter) in which two outputs differ."""
    a, b = units(checkpoint, old), units(checkpoint, new)
    changed = [pair for pair in zip(a, b) if pair[0] != pair[1]]
    return changed[0] if len(a) == len(b) and len(changed) == 1 else None


def frequent(checkpoint: Checkpoint, word: str) -> bool:
    """Whether the vocabulary has the word as one piece, its punctuation aside."""
    assert checkpoint.target_text is not None
    return len(checkpoint.target_text.encode(word.strip(".,!?")).ids) == 1


def row_flips(checkpoint: Checkpoint, cases: Sequence[Case], find: Find) -> list[Hit]:
    """The best flip of an input: its new word is frequent and long, preferably in an output that was right."""
    hits = []
    for case in (case for case in cases if len(case.prompt.pieces.ids) <= MOST_PIECES):
        (old,) = best(find([case], GREEDY))
        flips = []
        for row in rows_tried(checkpoint, case, old):
            (new,) = best(find([case], GREEDY, (row,)))
            pair = flipped(checkpoint, text_of(checkpoint, old.tokens), text_of(checkpoint, new.tokens))
            if pair and parting(old.tokens, new.tokens) == row.position:
                weight = min(map(len, pair)) + 10 * frequent(checkpoint, pair[1]) + quality(checkpoint, case, old) / 10
                flips.append(Hit(case, weight, pair[1], Column(GREEDY), Column(GREEDY, (row,))))
        hits += sorted(flips, key=lambda hit: -hit.weight)[:1]
    return hits


def say_row(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    (row,) = hit.second.edits
    assert isinstance(row, AttentionRow)
    where, pieces = row.weights.index(max(row.weights)), hit.case.prompt.pieces.strings
    side = math.isqrt(len(row.weights))
    what = f"“{pieces[where].strip('▁')}”" if pieces else f"the cell in row {where // side + 1}, column {where % side + 1}"
    old, new = a.texts[0], b.texts[0]
    if checkpoint.task != "transliterate":
        old, new = flipped(checkpoint, old, new) or (old, new)
    return (
        f"All attention on {what} at {place(checkpoint, a.hypotheses[0].tokens, row.position)}: “{old}” becomes “{new}”. "
        f"The edit changes the log probability of the new output by {b.prices[-1].change:+.1f}."
    )


class Loop(NamedTuple):
    """A phrase said several times in a row, and the mean probability of a piece in its first and its last turn."""

    phrase: str
    turns: int
    first: float
    last: float


def loop_in(checkpoint: Checkpoint, found: Hypothesis) -> Loop | None:
    """Words that are said three times in a row; for a transliterator, letters."""
    text = text_of(checkpoint, found.tokens)
    pattern = r"(\S+?)\1{2,}" if checkpoint.task == "transliterate" else r"(?<!\S)(\S.*?)(?:\s+\1){2,}(?!\S)"
    match = re.search(pattern, text, re.DOTALL)
    if match is None:
        return None
    phrase = match.group(1)
    starts = [turn.start() + match.start() for turn in re.finditer(re.escape(phrase), match.group(0))]
    ends = [len(text_of(checkpoint, found.tokens[: position + 1])) for position in range(len(found.tokens))]
    turns = []
    for start in (starts[0], starts[-1]):
        logps = [logp for logp, end in zip(found.logps, ends) if start < end <= start + len(phrase)]
        turns.append(math.exp(sum(logps) / len(logps)) if logps else 0.0)
    return Loop(phrase, len(starts), turns[0], turns[1])


def repeats(checkpoint: Checkpoint, cases: Sequence[Case], find: Find) -> list[Hit]:
    cure = SearchOptions("sample", temperature=0.7) if checkpoint.task == "complete" else SearchOptions(beam=5, no_repeat=2)
    hits = []
    for case, a in zip(cases, best(find(cases, GREEDY))):
        loop = loop_in(checkpoint, a)
        if loop:
            hits.append(Hit(case, loop.turns * len(loop.phrase), loop.phrase, Column(GREEDY), Column(cure)))
    return hits


def say_loop(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    loop = loop_in(checkpoint, a.hypotheses[0])
    assert loop is not None
    out = "gets out" if loop_in(checkpoint, b.hypotheses[0]) is None else "does not get out"
    cure = f"Sampling {out}" if b.options.strategy == "sample" else "Column B may say no pair of pieces twice"
    return (
        f"Greedy search says “{loop.phrase}” {loop.turns} times in a row: a piece of it has probability {loop.first:.2f} in the "
        f"first turn and {loop.last:.2f} in the last. {cure}."
    )
