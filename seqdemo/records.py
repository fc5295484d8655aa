"""What a search and a replay leave behind: plain NumPy arrays and tuples, JSON in and out, no torch.

Any framework could write these records; figures and pages read nothing else.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

KEPT, PRUNED, FINISHED = 0, 1, 2
FATES = ("kept", "pruned", "finished")


def array_to_json(array: np.ndarray) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "base64": base64.b64encode(array.tobytes()).decode("ascii")}


def array_from_json(value: dict[str, Any]) -> np.ndarray:
    array: Any = np.frombuffer(base64.b64decode(value["base64"]), dtype=value["dtype"]).reshape(value["shape"])
    return np.array(array)


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


@dataclass(frozen=True)
class SearchTree:
    """The search as it was walked, one row a node, in the order of the steps; parents come before children."""

    step: np.ndarray  # int32, 0 for the first token
    parent: np.ndarray  # int32, a row of this tree, or -1 for the root
    token: np.ndarray  # int32
    logp: np.ndarray  # float32, log p of the token alone
    total: np.ndarray  # float64, the sum along the path
    rank: np.ndarray  # int16, among the step's candidates, 0 is the best
    fate: np.ndarray  # int8: KEPT, PRUNED or FINISHED
    missed: np.ndarray  # float32

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


@dataclass(frozen=True)
class Hypothesis:
    """One output. `total` is the sum of `logps`; `score` is total / penalty(n) + coverage, what ranks it."""

    tokens: tuple[int, ...]  # with <eos> when finished, without <bos>
    logps: tuple[float, ...]
    total: float
    score: float
    finished: bool
    node: int = -1  # its row in the tree; -1 where the search kept no tree


@dataclass(frozen=True)
class Certificate:
    """What exact search can vouch for."""

    proved: bool  # no output of those the options allow scores higher
    expansions: int  # prefixes whose continuations were all looked at
    bound: float  # nothing that was not found can score higher than this
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
class Trace:
    """Everything a replay shows of one hypothesis. Gates are named 'decoder.0.forget', 'encoder.0.backward.input' and so on,
    each an array of time x unit; 'cell' and 'hidden' stand among them."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    tokens: tuple[int, ...]
    logps: np.ndarray  # float64 (T,)
    top_tokens: np.ndarray  # int32 (T, k)
    top_logps: np.ndarray  # float32 (T, k)
    top_pieces: tuple[tuple[str, ...], ...]
    attention: np.ndarray | None  # float32 (T, S); None without attention
    gates: dict[str, np.ndarray] = field(default_factory=dict)
    edits: tuple[dict[str, Any], ...] = ()

    @property
    def total(self) -> float:
        return float(self.logps.sum())


@dataclass(frozen=True)
class Price:
    """What an edit costs, in log probability. Of 'tokens' (force, ban): the untouched model's view of the new output against
    the old. Of a 'state' (row, blend, clamp): the edited model's view of the same tokens against the untouched one's."""

    kind: str  # tokens | state
    change: float  # after - before
    before: float
    after: float
    gaps: tuple[float, ...] = ()  # at each forced token: the model's own best minus it


def to_json(record: Any) -> dict[str, Any]:
    """A record as JSON; arrays keep their exact bytes, and -inf, which JSON does not know, becomes null."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return array_to_json(value)
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        if isinstance(value, (tuple, list)):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and value == -math.inf else value

    return {"kind": type(record).__name__, **{item.name: plain(getattr(record, item.name)) for item in fields(record)}}


def from_json(value: dict[str, Any]) -> Any:
    """The record `to_json` was given."""

    def rebuilt(item: Any) -> Any:
        if isinstance(item, dict):
            return array_from_json(item) if "base64" in item else {name: rebuilt(inner) for name, inner in item.items()}
        return tuple(rebuilt(inner) for inner in item) if isinstance(item, list) else item

    def read(kind: str, item: Any) -> Any:
        """What is missing where a number must stand was -inf."""
        if kind == "float" and item is None:
            return -math.inf
        if kind == "tuple[float, ...]":
            return tuple(-math.inf if each is None else each for each in item)
        return rebuilt(item)

    kinds = {kind.__name__: kind for kind in (SearchTree, Hypothesis, Certificate, SearchError, Trace, Price)}
    kind = kinds[value["kind"]]
    return kind(**{item.name: read(str(item.type), value[item.name]) for item in fields(kind) if item.name in value})
