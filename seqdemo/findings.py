"""The answers to questions of hands: the next word under an attention row, a ranking of units, film strips and more.

Plain frozen records. Edits in them can be given to `run` as they are; positions count as those of edits do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from seqdemo.edits import Ban, ClampGate, Edit, Force, Require, edit_to_json
from seqdemo.presets import Preset
from seqdemo.records import Price


@dataclass(frozen=True)
class Bar:
    """A piece and its probability."""

    token: int
    piece: str
    p: float


@dataclass(frozen=True)
class UnderRow:
    """The next word under one attention row: the likeliest pieces, and the probability of the piece that is there now."""

    weights: tuple[float, ...] | None  # None: the model has no attention
    p: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class NextWord:
    """The next word at one place of an output, with the model's own attention (`own`) and under each of the given rows."""

    position: int
    said: Bar  # the piece that is there now
    own: UnderRow
    rows: tuple[UnderRow, ...] = ()


@dataclass(frozen=True)
class Elsewhere:
    """With all attention `at` this source position, another piece is the likeliest."""

    at: int
    bar: Bar


@dataclass(frozen=True)
class RowBound:
    """How far the probability of a word moves when all attention lies on one source position, for each of them in turn."""

    position: int
    said: Bar
    own: float  # its probability under the row that the model has there
    each: tuple[float, ...]  # its probability for each source position
    least_at: int
    most_at: int
    moves: float  # the largest distance from `own`
    says_else: tuple[Elsewhere, ...]
    depends: bool
    says: str

    @property
    def least(self) -> float:
        return self.each[self.least_at]

    @property
    def most(self) -> float:
        return self.each[self.most_at]


@dataclass(frozen=True)
class Word:
    """A word that could stand at a place. `p` is the product of the probabilities of its pieces."""

    text: str
    pieces: tuple[str, ...]
    tokens: tuple[int, ...]
    p: float
    exact: bool  # exactly what was typed
    edit: Force
    ban: Ban


@dataclass(frozen=True)
class MustBeSaid:
    """A word that must stand anywhere, in one of its spellings."""

    edit: Require
    text: str
    spellings: tuple[tuple[str, ...], ...]  # in pieces


@dataclass(frozen=True)
class Words:
    """The words that begin as typed, at a place of an output, best first: by `p` times the probability that the word ends there.
    The typed text itself comes last if others push it out."""

    position: int
    typed: str
    said: Bar
    best: float  # the probability of the likeliest piece there
    words: tuple[Word, ...] = ()
    require: MustBeSaid | None = None


@dataclass(frozen=True)
class Badge:
    """What a word costs, in nats: `here`, how much likelier the model's own best is at its place; `whole`, how much likelier
    the whole output is than the one without it; `greedy`, than that of greedy search without any word (None: not known)."""

    here: float | None
    whole: float
    greedy: float | None
    says: str


@dataclass(frozen=True)
class UnitChange:
    """How the log probability of a word changes when one unit is held at its mean."""

    unit: int
    change: float


@dataclass(frozen=True)
class UnitGroup:
    """The same for the first `size` units of the ranking together, beside random groups of as many."""

    size: int
    best: float
    random: tuple[float, ...]
    edit: ClampGate


@dataclass(frozen=True)
class UnitRanking:
    """Which units matter for one word: all units of a layer, the most needed first. `edit` with `units` filled in holds any."""

    position: int
    length: int  # of the word, in pieces
    word: str
    part: str
    direction: str
    layer: int
    what: str  # cell | hidden
    over: str  # input | sample: over what the means were taken
    means: str  # the same in words
    logp: float  # of the word, with no unit held
    units: tuple[UnitChange, ...]
    groups: tuple[UnitGroup, ...]
    edit: ClampGate
    seconds: float


@dataclass(frozen=True)
class Follower:
    """A unit that follows a place in a text; `auc` is above 0.5 if its value rises inside the place, else below."""

    layer: int
    unit: int
    auc: float


@dataclass(frozen=True)
class Followers:
    """The units that follow a place best, and the clamps that hold them together as outside of it, or as inside."""

    place: str  # quotation | comment
    sample: str  # over which texts, in words
    what: str  # cell | hidden
    units: tuple[Follower, ...]
    outside: tuple[ClampGate, ...]
    inside: tuple[ClampGate, ...]


@dataclass(frozen=True)
class Closing:
    """Of so many texts that begin inside a place, how many close it: as the model is (`free`), and under the clamps (`held`)."""

    place: str
    sample: str
    given: int  # letters that the model read of each
    of: int
    free: int
    held: int
    free_texts: tuple[str, ...]
    held_texts: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """One picture of a film strip: the output at one setting."""

    label: str
    value: float | str
    text: str
    pieces: tuple[str, ...]
    tokens: tuple[int, ...]
    logps: tuple[float, ...]
    logp: float
    score: float
    length: int
    finished: bool
    seconds: float
    differs_at: int | None = None  # the first piece that differs from the frame all are compared with
    changed: bool = False  # it differs from the frame before
    price: Price | None = None
    edits: tuple[Edit, ...] = ()  # what gives this frame, beside the edits in force
    options: Mapping[str, Any] | None = None  # options that give this frame
    worse: bool = False  # more search found something worse
    likeness: float | None = None  # to the wanted answer, from 0 to 1
    proved: bool | None = None
    certificate: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Pooled:
    """An output of some frame of a beam's strip, with everything needed to rank it again."""

    text: str
    tokens: tuple[int, ...]
    logp: float
    length: int
    coverage: float | None  # sum_j log min(1, sum_t a_tj); None: no attention
    k: int  # the smallest beam that returned it; 0: only exact search did
    frames: tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """The answer a person wanted, and how likely the model finds it."""

    text: str
    logp: float


@dataclass(frozen=True)
class Strip:
    """A film strip. `base` is the frame that the others are compared with, `flips` the first one whose output differs from it."""

    along: str  # dimmer | beam | precision
    frames: tuple[Frame, ...]
    base: int
    flips: int | None
    wanted: Wanted | None = None
    pool: tuple[Pooled, ...] = ()
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A word that somebody wants at a place."""

    text: str
    pieces: tuple[str, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Way:
    """One way to make the model say a word at a place; if none was `found`, how near it came.

    `edits` are added to those in force. `price` is the ordinary one, of the last of them; of several bans together, that of all
    words. `cost` makes the ways comparable: how much likelier the model, as it is, finds the new output than the old.
    """

    way: str  # ban | earlier | row | units | force
    found: bool
    best: float  # the highest probability that the word reached there
    says: str
    edits: tuple[Edit, ...] = ()
    text: str = ""
    tokens: tuple[int, ...] = ()
    size: str = ""
    amount: float = 0.0
    price: Price | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Ways:
    """The ways to make the model say a word. `cheapest` is the number of the cheapest one found; forcing the word does not
    count."""

    position: int
    word: Asked
    p: float  # the probability of the word there without any change
    ways: tuple[Way, ...]
    cheapest: int | None
    says: str
    seconds: float


@dataclass(frozen=True)
class AtToken:
    """How open a gate is at a piece: for one text at its place `at`, for a sample over `count` places."""

    piece: str
    mean: float
    at: int | None = None
    count: int = 1


@dataclass(frozen=True)
class GateMeans:
    """The mean over the units of one gate, by piece."""

    name: str  # decoder.0.forget
    part: str
    direction: str
    layer: int
    gate: str
    units: int
    mean: float
    tokens: tuple[str, ...]
    means: tuple[float, ...]
    counts: tuple[int, ...] | None
    shut: tuple[AtToken, ...]
    open: tuple[AtToken, ...]


@dataclass(frozen=True)
class GateReport:
    """When each gate closes and opens, over the input at hand or over a recorded sample."""

    over: str  # input | sample
    sample: str | None  # what the sample is
    cell: str
    gates: tuple[GateMeans, ...]
    presets: tuple[Preset, ...]


def told(value: Any, tell: Callable[[Edit], Any] = edit_to_json) -> Any:
    """A finding as JSON, with null in place of infinities; `tell` turns an edit into JSON."""
    if isinstance(value, Edit):
        return tell(value)
    if hasattr(value, "__dataclass_fields__"):
        known = {item.name: getattr(value, item.name) for item in fields(value)}
        return {name: told(item, tell) for name, item in known.items()}
    if isinstance(value, Mapping) or hasattr(value, "_asdict"):
        value = value if isinstance(value, Mapping) else value._asdict()
        return {str(name): told(item, tell) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [told(item, tell) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
