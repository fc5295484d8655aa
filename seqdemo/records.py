"""The results of searches and replays, and how outputs are scored: plain NumPy arrays and tuples, JSON in and out, no torch.

Any framework could write these records; figures and pages read nothing else.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from seqdemo.config import SearchOptions, length_penalty
from seqdemo.errors import InputError

KEPT, PRUNED, FINISHED = 0, 1, 2
FATES = ("kept", "pruned", "finished")
TREE_KINDS = ("i4", "i4", "i4", "f4", "f8", "i2", "i1", "f4")  # of SearchTree's columns
LEAST = float(np.finfo(np.float32).tiny)  # replaces an attention sum of exactly 0, whose logarithm is -inf


def array_to_json(array: np.ndarray) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "base64": base64.b64encode(array.tobytes()).decode("ascii")}


def array_from_json(value: dict[str, Any]) -> np.ndarray:
    array: Any = np.frombuffer(base64.b64decode(value["base64"]), dtype=value["dtype"]).reshape(value["shape"])
    return np.array(array)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, arrays in shape, kind and every number (NaN is NaN)."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return type(one) is type(other) and bool(one == other)


class Record:
    """A frozen record that may hold arrays. It equals another one with the same numbers."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(same(value, getattr(other, name)) for name, value in vars(self).items())


@dataclass(frozen=True)
class Node:
    """A view of one row of a SearchTree."""

    index: int
    step: int
    parent: int  # -1: the root, <bos>
    token: int
    logp: float
    total: float
    rank: int
    fate: str
    missed: float  # by how much a pruned node's total fell short of what was kept (in exact search, of what it had to exceed)


@dataclass(frozen=True, eq=False)
class SearchTree(Record):
    """The tree of a search, one row per node, in the order of the steps; parents come before children."""

    step: np.ndarray  # int32, 0 for the first token
    parent: np.ndarray  # int32, a row of this tree, or -1 for the root
    token: np.ndarray  # int32
    logp: np.ndarray  # float32, log p of the token alone
    total: np.ndarray  # float64, the sum along the path
    rank: np.ndarray  # int16, among the step's candidates, 0 is the best
    fate: np.ndarray  # int8: KEPT, PRUNED or FINISHED
    missed: np.ndarray  # float32
    ranked_by: np.ndarray | None = None  # float64: what ranked it where that is not its total (penalised or perturbed)

    def __len__(self) -> int:
        return len(self.token)

    def __getitem__(self, index: int) -> Node:
        return Node(
            index,
            int(self.step[index]),
            int(self.parent[index]),
            int(self.token[index]),
            float(self.logp[index]),
            float(self.total[index]),
            int(self.rank[index]),
            FATES[self.fate[index]],
            float(self.missed[index]),
        )

    def __iter__(self) -> Iterator[Node]:
        return (self[index] for index in range(len(self)))

    def path(self, index: int) -> list[int]:
        """Rows from the first token to `index`."""
        rows = []
        while index >= 0:
            rows.append(index)
            index = int(self.parent[index])
        return rows[::-1]

    def tokens(self, index: int) -> tuple[int, ...]:
        return tuple(int(self.token[row]) for row in self.path(index))


def empty_tree() -> SearchTree:
    none = np.zeros(0)
    return SearchTree(*(none.astype(kind) for kind in TREE_KINDS))


@dataclass(frozen=True)
class Hypothesis:
    """One output. `total` is the sum of `logps`; `score` is total / penalty(n) + coverage, what ranks it."""

    tokens: tuple[int, ...]  # with <eos> when finished, without <bos>
    logps: tuple[float, ...]
    total: float
    score: float
    finished: bool
    node: int = -1  # its row in the tree; -1 if the search kept no tree


@dataclass(frozen=True)
class Certificate:
    """What an exact search has proved."""

    proved: bool  # no output of those the options allow scores higher
    expansions: int  # prefixes whose continuations were all examined
    bound: float  # no other output can score higher than this
    empty_logp: float  # log probability of the empty output, <eos> at once, also where options or edits keep the model from it
    sentence: str
    seconds: float


@dataclass(frozen=True)
class SearchError:
    """Whether a beam missed the best output: known to have, known not to have, or (None) not known."""

    missed: bool | None
    gap: float | None  # score of exact search's best minus that of the beam's best; None where one has no complete output
    sentence: str


@dataclass(frozen=True)
class SearchResult:
    """The result of one search for one sentence. `hypotheses` are best first; `certificate` comes with exact search; `options`
    and `limit` are those of the search."""

    tree: SearchTree
    hypotheses: tuple[Hypothesis, ...]
    certificate: Certificate | None = None
    options: SearchOptions | None = None
    limit: int = 0

    def complete(self, hypothesis: Hypothesis) -> bool:
        """Whether it ended or was cut at the limit, in contrast to a search that was stopped."""
        return hypothesis.finished or 0 < self.limit <= len(hypothesis.tokens)


@dataclass(frozen=True)
class Scoring:
    """score(y) = sum_t log p(y_t) / penalty(n) + coverage(y), with n = |y| counting <eos> when present and never <bos>.

    penalty: 1 | n^alpha | ((5 + n) / 6)^alpha; coverage(y) = weight * sum_j log min(1, sum_t a_tj) over the real source
    positions j, never above 0.
    """

    norm: str
    alpha: float
    weight: float

    @staticmethod
    def of(options: SearchOptions, state: Any) -> Scoring:
        if options.coverage > 0 and getattr(state, "attended_KS", None) is None:
            raise InputError("The coverage penalty needs a model with attention; set the coverage to 0 for this one.")
        return Scoring(options.length_norm, options.alpha, options.coverage)

    def penalty(self, length: Any) -> Any:
        """The length penalty, for a length of at least 1, so that an empty output is not divided by 0."""
        length = np.maximum(length, 1.0) if isinstance(length, np.ndarray) else max(float(length), 1.0)
        return length_penalty(length, self.norm, self.alpha)

    def score(self, total: Any, length: Any, coverage: Any = 0.0) -> Any:
        return total / self.penalty(length) + coverage

    def reach(self, total: Any, shortest: Any, longest: Any) -> Any:
        """No hypothesis that continues one of this total and ends between the two lengths can score higher: log
        probabilities only lower the total, coverage is at most 0, and the penalty is monotone in the length."""
        ends = total / self.penalty(shortest), total / self.penalty(longest)
        return np.maximum(*ends) if isinstance(total, np.ndarray) else max(ends)

    def coverage(self, state: Any) -> np.ndarray | None:
        """weight * sum_j log min(1, attended_j) of every row; None if the weight is 0."""
        if not self.weight:
            return None
        attended_KS = state.attended_KS.double().clamp(LEAST, 1.0).log()
        memory = getattr(state, "memory", None)
        if memory is not None:
            mask_BS = memory.mask_BS
            mask_KS = mask_BS.repeat_interleave(len(attended_KS) // len(mask_BS), dim=0)
            attended_KS = attended_KS.masked_fill(~mask_KS, 0.0)
        coverage_K: np.ndarray = self.weight * attended_KS.sum(1).numpy()
        return coverage_K


def is_attention(name: str) -> bool:
    """Whether a name in `seen` is the attention of a head ('decoder.0.cross.3') and not a term of a cell
    ('decoder.0.forget')."""
    return name.split(".")[-2:-1] in (["cross"], ["self"], ["distribution"])


@dataclass(frozen=True, eq=False)
class Trace(Record):
    """Everything a replay shows of one hypothesis.

    `seen` maps a path part.layer.what[.head] to an array with one row per step (in the encoder, one per source position):
    'decoder.0.forget' and 'encoder.0.backward.cell' (rows, units), 'decoder.0.cross.3' (rows, source positions).
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    tokens: tuple[int, ...]
    logps: np.ndarray  # float64 (T,)
    top_tokens: np.ndarray  # int32 (T, k)
    top_logps: np.ndarray  # float32 (T, k)
    top_pieces: tuple[tuple[str, ...], ...]
    seen: dict[str, np.ndarray] = field(default_factory=dict)
    edits: tuple[dict[str, Any], ...] = ()
    precision: str = "float32"  # of the weights

    @property
    def total(self) -> float:
        return float(self.logps.sum())

    @property
    def attention(self) -> np.ndarray | None:
        """Attention to the source, float32 (T, S): the mean over the heads of the last layer that has any; None if none has."""
        heads = [name for name in self.seen if is_attention(name) and ".cross." in name]
        if not heads:
            return None
        last = max(int(name.split(".")[1]) for name in heads)
        rows = [self.seen[name] for name in heads if name.startswith(f"decoder.{last}.")]
        return rows[0] if len(rows) == 1 else np.stack(rows).mean(0, dtype=np.float32)

    @property
    def distribution(self) -> np.ndarray | None:
        """Of hard attention: what the one position of each row was chosen from, float32 (T, S)."""
        return self.seen.get("decoder.0.distribution.0")

    @property
    def gates(self) -> dict[str, np.ndarray]:
        """The terms of the cells among `seen`: gates, candidates, cells and hidden states."""
        return {name: values for name, values in self.seen.items() if not is_attention(name)}


@dataclass(frozen=True, eq=False)
class StepInFull(Record):
    """One complete step of a replay. `vectors` holds everything it computed, by path, with 'features', 'logits' and 'logps'.
    `equations` holds for each term of a cell ('decoder.0.forget') the value of every part of its equation ('U h', 'W x + U h'),
    one number per unit."""

    step: int
    read: str  # the piece that it read, <bos> at first
    said: str  # the piece that was said after it
    vectors: dict[str, np.ndarray]
    equations: dict[str, dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Erasure(Record):
    """How the log probability of each piece changes when one source position is taken away: (T, S), with minus without.

    `how`: with 'mean', its embedding (or the picture's cell) was replaced by the mean; with 'mask', attention could not look
    there.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    tokens: tuple[int, ...]
    how: str  # mean | mask
    logps: np.ndarray  # float64 (T,): with all of the source
    change: np.ndarray  # float64 (T, S)


@dataclass(frozen=True)
class Price:
    """What one cause costs, in log probability.

    Kind 'tokens', for words (force, ban, require): the model, under the edits inside it, scores the new output and the one that
    the search finds without the words. Kind 'state', for rows, blends and clamps: the new output is scored with and without
    them. `edit` is the number of the run's edit that it belongs to, with all others in force on both sides; -1: all of its kind
    together.
    """

    kind: str  # tokens | state
    change: float  # after - before
    before: float
    after: float
    gaps: tuple[float, ...] = ()  # at each forced token: the model's own best minus it
    edit: int = -1


def value_to_json(value: Any) -> Any:
    """A field of a record as JSON. Arrays keep their exact bytes; -inf, which JSON lacks, becomes null."""
    if isinstance(value, np.ndarray):
        return array_to_json(value)
    if isinstance(value, dict):
        return {name: value_to_json(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [value_to_json(item) for item in value]
    return None if isinstance(value, float) and value == -math.inf else value


def output_to_json(hypothesis: Hypothesis, text: str, piece: Callable[[int], str]) -> dict[str, Any]:
    """One output in the words of the command line and of the endpoints."""
    return {
        "text": text,
        "tokens": list(hypothesis.tokens),
        "logp": hypothesis.total,
        "score": hypothesis.score,
        "pieces": [piece(token) for token in hypothesis.tokens],
        "logps": list(hypothesis.logps),
        "finished": hypothesis.finished,
    }


def to_json(record: Any) -> dict[str, Any]:
    """A record as JSON."""
    return {"kind": type(record).__name__, **{item.name: value_to_json(getattr(record, item.name)) for item in fields(record)}}


def from_json(value: dict[str, Any]) -> Any:
    """The inverse of `to_json`."""

    def rebuilt(item: Any) -> Any:
        if isinstance(item, dict):
            return array_from_json(item) if "base64" in item else {name: rebuilt(inner) for name, inner in item.items()}
        return tuple(rebuilt(inner) for inner in item) if isinstance(item, list) else item

    def read(kind: str, item: Any) -> Any:
        """A field from JSON; null in place of a number was -inf."""
        if kind == "float" and item is None:
            return -math.inf
        if kind == "tuple[float, ...]":
            return tuple(-math.inf if each is None else each for each in item)
        return rebuilt(item)

    records = (SearchTree, Hypothesis, Certificate, SearchError, Trace, StepInFull, Erasure, Price)
    kinds = {kind.__name__: kind for kind in records}
    kind = kinds.get(value["kind"], Price)  # a price's own kind (tokens or state) overwrites the record's name
    if kind is Trace and "gates" in value:  # as an earlier version wrote it
        attention = {} if value["attention"] is None else {"decoder.0.cross.0": value["attention"]}
        value = {**value, "seen": {**value["gates"], **attention}}
    return kind(**{item.name: read(str(item.type), value[item.name]) for item in fields(kind) if item.name in value})
