"""What the command line tells of a question about the best output: the finding as JSON, and in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seqdemo.checkpoints import Checkpoint
from seqdemo.errors import InputError
from seqdemo.findings import (
    AtToken,
    Closing,
    Followers,
    GateReport,
    NextWord,
    RowBound,
    Strip,
    UnitRanking,
    Ways,
    Words,
    told,
)
from seqdemo.hands.gates import gate_report
from seqdemo.hands.rows import next_word, row_bound
from seqdemo.hands.strips import sweep
from seqdemo.hands.tracking import closing, followers
from seqdemo.hands.units import rank_units
from seqdemo.hands.wanted import cheapest
from seqdemo.hands.words import candidates
from seqdemo.numerals import small
from seqdemo.playground import Run
from seqdemo.text import SPACE_MARK

MOST_TOLD = 10  # units in a line
Settings = dict[str, Any]


def answered(hand: str, checkpoint: Checkpoint, run: Run, settings: Settings) -> tuple[dict[str, Any], str]:
    """The finding about the best output. `settings` are the further arguments; by default the place is the first written
    piece."""
    made = {"position": len(run.prompt.prefix), **settings} if hand in PLACED else settings
    finding, line = HANDS[hand]
    found = finding(checkpoint, run, run.hypotheses[0].tokens, **made)
    return told(found), "\t".join(line(found))


def next_under(checkpoint: Checkpoint, run: Run, tokens: Sequence[int], position: int, row: Any = None, **more: Any) -> NextWord:
    return next_word(checkpoint, run, tokens, position, [row] if row else [], **more)


def swept(checkpoint: Checkpoint, run: Run, _: Sequence[int], **more: Any) -> Strip:
    return sweep(checkpoint, run, **more)


def wanted(checkpoint: Checkpoint, run: Run, _: Sequence[int], position: int, word: str = "") -> Ways:
    if not word.strip():
        raise InputError("Name the word that it should say, with --word.")
    return cheapest(checkpoint, run, position, word)


def following(checkpoint: Checkpoint, _: Run, __: Sequence[int], place: str = "") -> Followers:
    return followers(checkpoint, place)


def counted(checkpoint: Checkpoint, run: Run, _: Sequence[int], place: str = "") -> Closing:
    return closing(checkpoint, run, place)


def chance(p: float) -> str:
    """0.8123, and 9.5·10⁻⁶ where four decimals would not tell it."""
    return f"{p:.4f}" if p >= 1e-3 else small(p)


def bars(found: NextWord) -> list[str]:
    return [f"{bar.piece} {chance(bar.p)}" for bar in (found.rows[0] if found.rows else found.own).bars]


def sentence(found: RowBound) -> list[str]:
    return [found.says]


def words(found: Words) -> list[str]:
    return [f"{word.text} {chance(word.p)}" for word in found.words]


def units(found: UnitRanking) -> list[str]:
    return [f"{one.unit} {one.change:+.4f}" for one in found.units[:MOST_TOLD]]


def frames(found: Strip) -> list[str]:
    return [f"{frame.label}: {frame.text}" for frame in found.frames]


def ways(found: Ways) -> list[str]:
    return [found.says, *(f"{way.size}: {way.text}" for way in found.ways if way.found)]


def gates(found: GateReport) -> list[str]:
    told = [f"{gate.name} shut at {quoted(gate.shut[0])}, open at {quoted(gate.open[0])}" for gate in found.gates if gate.shut]
    return told or ["This model has no gates."]


def quoted(at: AtToken) -> str:
    """Its piece as a person writes it, without the mark of a word's beginning."""
    return f"“{at.piece.removeprefix(SPACE_MARK) or at.piece}”"


def layers(found: Followers) -> list[str]:
    return [f"layer {one.layer}, unit {one.unit}: AUC {one.auc:.4f}" for one in found.units]


def closed(found: Closing) -> list[str]:
    return [f"{found.free} of {found.of} close their {found.place}, {found.held} as held"]


PLACED = ("next", "bound", "words", "units", "cheapest")  # those that are about a place of the output
HANDS: dict[str, tuple[Callable[..., Any], Callable[[Any], list[str]]]] = {
    "next": (next_under, bars),
    "bound": (row_bound, sentence),
    "words": (candidates, words),
    "units": (rank_units, units),
    "sweep": (swept, frames),
    "cheapest": (wanted, ways),
    "gates": (gate_report, gates),
    "followers": (following, layers),
    "closing": (counted, closed),
}
