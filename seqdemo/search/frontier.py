"""The open prefixes of an exact search, and the tree it has built. They are NumPy arrays, because most are tiny.

K prefixes of a chunk, N continuations of them, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from seqdemo.records import TREE_KINDS, SearchTree, empty_tree

LAST_RANK = np.iinfo(TREE_KINDS[5]).max
ROUNDING = 1e-6  # the margin of a first filter in single precision, so that it drops nothing that double precision keeps


class Held(NamedTuple):
    """The model's state after a step: `width` rows for each of its sentences."""

    state: Any
    sentences: int
    width: int
    coverage_K: np.ndarray | None


class Rows(NamedTuple):
    """Open prefixes: the row of the chunk they continue, the token they add, and their total."""

    row_N: np.ndarray
    token_N: np.ndarray
    logp_N: np.ndarray
    total_N: np.ndarray

    def cut(self, start: int, end: int) -> Rows:
        return Rows(self.row_N[start:end], self.token_N[start:end], self.logp_N[start:end], self.total_N[start:end])


NO_ROWS = Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


class Chunk(NamedTuple):
    """Prefixes of one length that are expanded together, all of one sentence of the state they continue."""

    held: Held
    row_K: np.ndarray  # of that state
    said: Any  # what the rules remember of each prefix
    token_K: np.ndarray
    total_K: np.ndarray  # float64
    node_K: np.ndarray  # -1: the empty prefix
    written: int  # tokens

    @property
    def sentence(self) -> int:
        return int(self.row_K[0]) // self.held.width


class Opening:
    """The open continuations of an expanded chunk: first the whole table, then a list, best first.

    `best` is the highest total that is still open, -inf when nothing is; `best_K` and `likeliest_K` are the total and the token
    of each prefix's best continuation that is neither taken nor listed.
    """

    def __init__(self, chunk: Chunk, held: Held, first: int, table_KV: np.ndarray) -> None:
        """The state after the chunk is in the rows of `held` from `first` on. This object may write to the table."""
        self.held, self.first = held, first
        self.said, self.written = chunk.said, chunk.written + 1
        self.node_K, self.total_K = chunk.node_K, chunk.total_K
        self.table_KV: np.ndarray | None = table_KV
        self.likeliest_K = table_KV.argmax(1)
        self.best_K = self.total_K + table_KV[np.arange(len(table_KV)), self.likeliest_K]
        self.best = max(self.best_K.tolist())
        self.rows = NO_ROWS

    def __len__(self) -> int:
        return len(self.rows.total_N)

    def list_above(self, floor: float) -> None:
        """Turn the table into the list of continuations above the floor, or shorten a list to those above it."""
        if self.table_KV is None:
            self._keep(self.rows.cut(0, self._above(floor)))
        else:
            self._keep(self._listed(self.table_KV, floor))
            self.table_KV = None

    def _above(self, floor: float) -> int:
        """How many of the list are above the floor."""
        return int(np.count_nonzero(self.rows.total_N > floor))

    def _keep(self, rows: Rows) -> None:
        self.rows = rows
        self.best = float(rows.total_N[0]) if len(rows.total_N) else -math.inf

    def _listed(self, table_KV: np.ndarray, floor: float) -> Rows:
        (above_K,) = (self.best_K > floor).nonzero()
        least_K = floor - self.total_K[above_K]
        least_K = (least_K - ROUNDING * (1 + np.abs(least_K))).astype(table_KV.dtype)
        (place_N,) = (table_KV[above_K] > least_K[:, None]).ravel().nonzero()
        row_N, token_N = above_K[place_N // table_KV.shape[1]], place_N % table_KV.shape[1]
        logp_N = table_KV[row_N, token_N]
        total_N = self.total_K[row_N] + logp_N
        order_N = (-total_N).argsort(kind="stable")[: np.count_nonzero(total_N > floor)]
        listed = Rows(row_N[order_N], token_N[order_N], logp_N[order_N], total_N[order_N])
        table_KV[listed.row_N, listed.token_N] = -math.inf
        self.likeliest_K = table_KV.argmax(1)
        self.best_K = self.total_K + table_KV[np.arange(len(table_KV)), self.likeliest_K]
        return listed

    def left(self) -> Rows:
        """The best continuation of each prefix among those not taken yet, best first."""
        total_K, token_K = self.best_K.copy(), self.likeliest_K.copy()
        listed_N, first_N = np.unique(self.rows.row_N, return_index=True)
        total_K[listed_N], token_K[listed_N] = self.rows.total_N[first_N], self.rows.token_N[first_N]
        order_N = (-total_K).argsort(kind="stable")[: np.count_nonzero(total_K > -math.inf)]
        total_N = total_K[order_N]
        return Rows(order_N, token_K[order_N], total_N - self.total_K[order_N], total_N)

    def take(self, count: int, floor: float) -> Rows:
        """Remove and return the best open rows, at most `count`, all above the floor."""
        if self.table_KV is not None:
            return self._taken(self.table_KV, count, floor)
        taken = self.rows.cut(0, min(count, self._above(floor)))
        self._keep(self.rows.cut(len(taken.total_N), len(self)))
        return taken

    def _taken(self, table_KV: np.ndarray, count: int, floor: float) -> Rows:
        """Take rows one by one: the likeliest continuation of the best prefix, which is then replaced by the next one."""
        taken: list[tuple[int, int, float, float]] = []
        totals, bests, tokens = self.total_K.tolist(), self.best_K.tolist(), self.likeliest_K.tolist()
        while len(taken) < count and self.best > floor:
            row = bests.index(self.best)
            logp_V, token = table_KV[row], tokens[row]
            taken.append((row, token, float(logp_V[token]), self.best))
            logp_V[token] = -math.inf
            tokens[row] = token = int(logp_V.argmax())
            bests[row] = totals[row] + float(logp_V[token])
            self.best = max(bests)
        self.best_K, self.likeliest_K = np.array(bests), np.array(tokens)
        row_N, token_N, logp_N, total_N = map(np.array, zip(*taken))
        return Rows(row_N, token_N, logp_N, total_N)

    def totals(self, row_N: np.ndarray, token_N: np.ndarray) -> np.ndarray:
        assert self.table_KV is not None
        total_N: np.ndarray = self.total_K[row_N] + self.table_KV[row_N, token_N]
        return total_N

    def among(self, count: int, tokens_A: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
        """The rows and tokens of continuations above the floor: the `count` best of each prefix, and these tokens."""
        assert self.table_KV is not None
        best_KC = (-self.table_KV).argsort(1, kind="stable")[:, :count]
        token_KN = np.concatenate([best_KC, np.broadcast_to(tokens_A, (len(best_KC), len(tokens_A)))], 1)
        width = self.table_KV.shape[1]
        place_N = np.unique(np.arange(len(token_KN))[:, None] * width + token_KN)
        row_N, token_N = place_N // width, place_N % width
        above_N = self.totals(row_N, token_N) > floor
        return row_N[above_N], token_N[above_N]

    def follow(self, row_N: np.ndarray, token_N: np.ndarray) -> Rows:
        """Remove and return these continuations, best first."""
        assert self.table_KV is not None
        order_N = (-self.totals(row_N, token_N)).argsort(kind="stable")
        row_N, token_N = row_N[order_N], token_N[order_N]
        rows = Rows(row_N, token_N, self.table_KV[row_N, token_N], self.totals(row_N, token_N))
        self.table_KV[row_N, token_N] = -math.inf
        self.likeliest_K = self.table_KV.argmax(1)
        self.best_K = self.total_K + self.table_KV[np.arange(len(self.table_KV)), self.likeliest_K]
        self.best = max(self.best_K.tolist())
        return rows


class Nodes:
    """The tree so far, in the order of the search."""

    def __init__(self) -> None:
        self.count = 0
        self.parts: list[tuple[Any, ...]] = []  # (step, parent_N, token_N, logp_N, total_N, fate_N, missed_N)

    def add(
        self,
        step: int,
        parent_N: np.ndarray,
        token_N: np.ndarray,
        logp_N: np.ndarray,
        total_N: np.ndarray,
        fate_N: np.ndarray,
        missed_N: np.ndarray | None = None,
    ) -> np.ndarray:
        """Add nodes of one length, best first."""
        missed_N = np.zeros(len(token_N)) if missed_N is None else missed_N
        self.parts.append((step, parent_N, token_N, logp_N, total_N, fate_N, missed_N))
        self.count += len(token_N)
        return np.arange(self.count - len(token_N), self.count)

    def grown(self) -> tuple[SearchTree, np.ndarray]:
        """The tree in the order of its steps, and the new row of each node (-1 for the empty prefix)."""
        if not self.parts:
            return empty_tree(), np.zeros(0, np.int64)
        steps, *columns = zip(*self.parts)
        step = np.repeat(steps, [len(part) for part in columns[0]])
        parent, token, logp, total, fate, missed = map(np.concatenate, columns)
        order = step.argsort(kind="stable")
        place = np.empty(self.count + 1, np.int64)
        place[order], place[-1] = np.arange(self.count), -1
        values = (step, place[parent], token, logp, total, ranks(step, total), fate, missed)
        return SearchTree(*(column[order].astype(kind) for column, kind in zip(values, TREE_KINDS))), place


def ranks(step_N: np.ndarray, total_N: np.ndarray) -> np.ndarray:
    """For each node, how many of the same step have a higher total."""
    order_N = np.lexsort((-total_N, step_N))
    first_N = np.searchsorted(step_N[order_N], step_N[order_N])
    rank_N = np.empty(len(step_N), np.int64)
    rank_N[order_N] = np.arange(len(step_N)) - first_N
    return np.minimum(rank_N, LAST_RANK)
