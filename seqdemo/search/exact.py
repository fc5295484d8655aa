"""Exact search: batched branch and bound over all outputs, with a certificate.

A prefix y_1..y_d is open while something that continues it may still make the list of the best. Log probabilities are at
most 0, so totals only fall and nothing below a prefix has a higher total than the prefix: with plain totals a prefix is
closed as soon as its total is not above the worst of the list. With a length penalty, d < n <= limit and coverage at most 0,

    score(y) <= max(total / penalty(d + 1), total / penalty(limit)),

as the penalty is monotone; that bound is valid but loose, so normalised searches often end unproved.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import FINISHED, KEPT, Certificate, Hypothesis, SearchTree
from seqdemo.search.ranking import Scoring, top
from seqdemo.search.recording import TREE_KINDS, Found, empty_tree
from seqdemo.search.walk import Cancel, StepFunction, allowed
from seqdemo.state import select

Progress = Callable[[int, float, float], None]

FIRST_DESCENT = 5  # rows a chunk until the first descent has reached its end, as a beam of this width would go
CHUNK = 256  # and from then on
ROUNDING = 1e-6  # a first sieve in single precision lets this much more through than the one in double precision

REASONS = {
    "expansions": "Budget spent after {count}",
    "frontier": "Budget of open prefixes spent after {count}",
    "cancelled": "Stopped after {count}",
}


class Rows(NamedTuple):
    """Open prefixes: the row of the state they continue, the token they add, and what it makes of the total."""

    row_N: Tensor
    token_N: Tensor
    logp_N: Tensor
    total_N: Tensor


class Chunk(NamedTuple):
    """Prefixes of one length that are expanded together."""

    state: Any
    history_KT: Tensor | None
    token_K: Tensor
    total_K: Tensor  # float64
    node_K: Tensor  # -1: the empty prefix
    written: int  # tokens


class Opening:
    """What is open below an expanded chunk: first the whole table of continuations, then a list, best first.

    `best` is the highest total that is still open, -inf when nothing is.
    """

    def __init__(self, chunk: Chunk, state: Any, logp_KV: Tensor) -> None:
        self.state, self.history_KT = state, chunk.history_KT
        self.node_K, self.total_K, self.written = chunk.node_K, chunk.total_K, chunk.written + 1
        self.table_KV: Tensor | None = logp_KV
        none = torch.empty(0, dtype=torch.long)
        self.rows = Rows(none, none, logp_KV.new_empty(0), self.total_K.new_empty(0))
        self.best = self._best()

    def _best(self) -> float:
        if self.table_KV is not None:
            return float((self.total_K + self.table_KV.amax(1)).amax())
        return float(self.rows.total_N[0]) if len(self) else -math.inf

    def __len__(self) -> int:
        return len(self.rows.total_N)

    def list_above(self, floor: float) -> None:
        """From the table to the list of what is above the floor; from a list, to what is left of it."""
        if self.table_KV is None:
            self.rows = Rows(*(part[: int((self.rows.total_N > floor).sum())] for part in self.rows))
        else:
            self.rows = self._listed(self.table_KV, floor)
            self.table_KV = None
        self.best = self._best()

    def _listed(self, table_KV: Tensor, floor: float) -> Rows:
        least_K = floor - self.total_K
        least_K = (least_K - ROUNDING * (1 + least_K.abs())).to(table_KV.dtype)
        row_N, token_N = (table_KV > least_K[:, None]).nonzero(as_tuple=True)
        logp_N = table_KV[row_N, token_N]
        total_N, order_N = (self.total_K[row_N] + logp_N).sort(descending=True, stable=True)
        order_N = order_N[: int((total_N > floor).sum())]
        return Rows(row_N[order_N], token_N[order_N], logp_N[order_N], total_N[: len(order_N)])

    def take(self, count: int, floor: float) -> Rows:
        """The best open rows, at most `count` and all above the floor; they are open no more."""
        if self.table_KV is None:
            taken = Rows(*(part[:count] for part in self.rows))
            self.rows = Rows(*(part[count:] for part in self.rows))
        else:
            taken = self._taken(self.table_KV, count)
        self.best = self._best()
        return Rows(*(part[: int((taken.total_N > floor).sum())] for part in taken))

    def _taken(self, table_KV: Tensor, count: int) -> Rows:
        total_1N, place_1N = top((self.total_K[:, None] + table_KV).view(1, -1), count)
        row_N, token_N = place_1N[0].div(table_KV.shape[1], rounding_mode="floor"), place_1N[0] % table_KV.shape[1]
        logp_N = table_KV[row_N, token_N]
        table_KV[row_N, token_N] = -math.inf
        return Rows(row_N, token_N, logp_N, total_1N[0])


class Nodes:
    """The tree as it grows, in the order of the search."""

    def __init__(self) -> None:
        self.count = 0
        self.parts: list[tuple[int, Tensor, Tensor, Tensor, Tensor, Tensor]] = []

    def add(self, step: int, parent_N: Tensor, token_N: Tensor, logp_N: Tensor, total_N: Tensor, fate_N: Tensor) -> Tensor:
        """Siblings and cousins of one length, best first."""
        self.parts.append((step, parent_N, token_N, logp_N, total_N, fate_N))
        self.count += len(token_N)
        return torch.arange(self.count - len(token_N), self.count)

    def grown(self) -> tuple[SearchTree, np.ndarray]:
        """The tree in the order of its steps, and where each node went."""
        if not self.parts:
            return empty_tree(), np.zeros(0, np.int64)
        steps, *columns = zip(*self.parts)
        sizes = [len(part) for part in columns[0]]
        parent, token, logp, total, fate = (torch.cat(column).numpy() for column in columns)
        step = np.repeat(steps, sizes)
        rank = np.minimum(np.concatenate([np.arange(size) for size in sizes]), np.iinfo(np.int16).max)
        order = np.argsort(step, kind="stable")
        place = np.empty(self.count, np.int64)
        place[order] = np.arange(self.count)
        parent = np.where(parent < 0, -1, place[parent])
        values = (step, parent, token, logp, total, rank, fate, np.zeros(self.count))
        return SearchTree(*(column[order].astype(kind) for column, kind in zip(values, TREE_KINDS))), place


class ExactSearch:
    """Exact search for one sentence; `run` once.

    * The first descent goes down with the five best continuations at each length, as a beam would, which gives a good list
      early. After it, the deepest open prefixes are expanded first, best first among them, up to 256 at a time.
    * The best n = `nbest` of all outputs are sought: every further one widens the search, so ask for one where time counts.
    * Outputs are those that end within the limit and, unless the limit forces <eos>, those cut at the limit.
    * When the budget of expansions or of open prefixes is spent, or `cancel()` says so, what was found comes back with the
      highest score that may still be open. If no output was complete by then, the best prefix at hand does, unfinished.
    """

    def __init__(
        self, step: StepFunction, state: Any, options: SearchOptions, scoring: Scoring, limit: int, *, bos: int, eos: int
    ) -> None:
        self.step, self.options, self.scoring, self.limit = step, options, scoring, limit
        self.eos, self.eos_1 = eos, torch.tensor([eos])
        self.best: list[tuple[float, int, bool]] = []  # (-score, node, finished), best first
        self.stack: list[Opening] = []
        self.nodes = Nodes()
        self.descending, self.too_wide = True, False
        self.expansions = 0
        self.empty_logp = -math.inf
        history_KT = torch.empty((1, 0), dtype=torch.long) if options.no_repeat else None
        nothing = torch.zeros(1, dtype=torch.float64)
        self.chunk = Chunk(state, history_KT, torch.tensor([bos]), nothing, torch.tensor([-1]), 0)

    def run(self, progress: Progress | None, cancel: Cancel | None, record: bool) -> Found:
        began = time.perf_counter()
        chunk: Chunk | None = self.chunk
        reason = ""
        while chunk is not None and not reason:
            self.expand(chunk)
            if progress is not None:
                progress(self.expansions, -self.best[0][0] if self.best else -math.inf, max(self.bound(), self.open_score()))
            reason = self.reason_to_stop(cancel)
            chunk = None if reason else self.next_chunk()
        return self.found(reason, began, record)

    def expand(self, chunk: Chunk) -> None:
        """Look at every continuation of these prefixes: list what is complete, open the rest."""
        self.chunk, written = chunk, chunk.written + 1
        logp_KV, state = self.step(chunk.token_K, chunk.state)
        if logp_KV.amax() > ROUNDING:
            raise InputError("Exact search needs log probabilities, which are never above 0; this step gave one that is.")
        self.expansions += len(logp_KV)
        if not chunk.written:
            self.empty_logp = float(logp_KV[0, self.eos])
        last_B = torch.tensor([written == self.limit])
        logp_KV = allowed(logp_KV, chunk.written, last_B, chunk.history_KT, self.options, self.eos)
        coverage_K = self.scoring.coverage(state)
        if written == self.limit:
            self.enlist(chunk, logp_KV, torch.arange(logp_KV.shape[1]), coverage_K)
            return
        self.enlist(chunk, logp_KV[:, self.eos, None], self.eos_1, coverage_K)
        self.stack.append(Opening(chunk, state, logp_KV.index_fill(1, self.eos_1, -math.inf)))

    def enlist(self, chunk: Chunk, logp_KC: Tensor, token_C: Tensor, coverage_K: Tensor | None) -> None:
        """Put the prefixes continued by these tokens on the list of the best, where they belong there."""
        total_KC = chunk.total_K[:, None] + logp_KC
        score_KC = self.scoring.score(total_KC, chunk.written + 1, 0.0 if coverage_K is None else coverage_K[:, None])
        if float(score_KC.amax()) <= self.bound():
            return
        score_1N, place_1N = top(score_KC.reshape(1, -1), self.options.nbest)
        place_N = place_1N[0][score_1N[0] > self.bound()]
        row_N, token_N = place_N.div(len(token_C), rounding_mode="floor"), token_C[place_N % len(token_C)]
        logp_N, total_N = logp_KC.flatten()[place_N], total_KC.flatten()[place_N]
        fate_N = torch.where(token_N == self.eos, FINISHED, KEPT)
        node_N = self.nodes.add(chunk.written, chunk.node_K[row_N], token_N, logp_N, total_N, fate_N)
        for score, node, fate in zip(score_1N[0].tolist(), node_N.tolist(), fate_N.tolist()):
            bisect.insort(self.best, (-score, node, fate == FINISHED))
        del self.best[self.options.nbest :]

    def next_chunk(self) -> Chunk | None:
        """The deepest open prefixes, the best of them; None when nothing is open."""
        while self.stack:
            opening = self.stack[-1]
            floor = self.floor(opening.written)
            if opening.best <= floor:
                self.stack.pop()
                self.descending = False
                continue
            if not self.descending and opening.table_KV is not None:
                opening.list_above(floor)
                self.too_wide = self.open_rows() > self.options.frontier
            size = FIRST_DESCENT if self.descending else CHUNK
            return self.seat(opening, opening.take(min(size, self.options.expansions - self.expansions), floor))
        return None

    def seat(self, opening: Opening, rows: Rows) -> Chunk:
        if opening.best == -math.inf:
            self.stack.pop()  # its state is no longer needed
        kept_N = torch.full_like(rows.token_N, KEPT)
        node_N = self.nodes.add(opening.written - 1, opening.node_K[rows.row_N], rows.token_N, rows.logp_N, rows.total_N, kept_N)
        state, history_KT = select((opening.state, opening.history_KT), rows.row_N)
        if history_KT is not None:
            history_KT = torch.cat([history_KT, rows.token_N[:, None]], 1)
        return Chunk(state, history_KT, rows.token_N, rows.total_N, node_N, opening.written)

    def open_rows(self) -> int:
        """How many prefixes are open; those that have been closed meanwhile are thrown away if it would be too many."""
        if sum(map(len, self.stack)) > self.options.frontier:
            for opening in self.stack:
                if opening.table_KV is None:
                    opening.list_above(self.floor(opening.written))
        return sum(map(len, self.stack))

    def bound(self) -> float:
        """The score to beat: the worst of a full list."""
        return -self.best[-1][0] if len(self.best) == self.options.nbest else -math.inf

    def floor(self, written: int) -> float:
        """The total an open prefix of so many tokens must exceed: `Scoring.reach` solved for the total."""
        return float(min(self.bound() * self.scoring.penalty(length) for length in (written + 1, self.limit)))

    def open_score(self) -> float:
        """No output that is still open scores higher."""
        reaches = (self.scoring.reach(opening.best, opening.written + 1, self.limit) for opening in self.stack)
        return float(max(reaches, default=-math.inf))

    def reason_to_stop(self, cancel: Cancel | None) -> str:
        if self.expansions >= self.options.expansions:
            return "expansions"
        if self.too_wide:
            return "frontier"
        return "cancelled" if cancel is not None and cancel() else ""

    def found(self, reason: str, began: float, record: bool) -> Found:
        tree, place = self.nodes.grown()
        hypotheses = tuple(self.hypothesis(tree, int(place[node]), -score, done) for score, node, done in self.best)
        open_score = self.open_score()
        places = sum(hypothesis.score >= open_score for hypothesis in hypotheses)
        certificate = Certificate(
            proved=places > 0,
            expansions=self.expansions,
            bound=hypotheses[0].score if places else open_score,
            empty_logp=self.empty_logp,
            sentence=self.sentence(reason, places, open_score),
            seconds=time.perf_counter() - began,
        )
        hypotheses = hypotheses or (self.unfinished(tree, place),)
        if not record:
            return Found(empty_tree(), tuple(replace(hypothesis, node=-1) for hypothesis in hypotheses), certificate)
        return Found(tree, hypotheses, certificate)

    def hypothesis(self, tree: SearchTree, node: int, score: float, finished: bool) -> Hypothesis:
        rows = tree.path(node)
        total = float(tree.total[node]) if rows else 0.0
        return Hypothesis(tree.tokens(node), tuple(tree.logp[rows].tolist()), total, score, finished, node)

    def unfinished(self, tree: SearchTree, place: np.ndarray) -> Hypothesis:
        node = int(self.chunk.node_K[0])
        coverage_K = self.scoring.coverage(self.chunk.state)
        coverage = 0.0 if coverage_K is None else float(coverage_K[0])
        score = self.scoring.score(float(self.chunk.total_K[0]), self.chunk.written, coverage)
        return self.hypothesis(tree, int(place[node]) if node >= 0 else -1, score, False)

    def sentence(self, reason: str, places: int, open_score: float) -> str:
        count = f"{self.expansions:,} expansion{'s' if self.expansions > 1 else ''}"
        if not self.best and open_score == -math.inf:
            return f"Every path is a dead end after {count}: no complete output was found."
        if self.best and places == len(self.best):
            return f"Proved after {count}: {'nothing better exists' if places == 1 else f'these are the {places} best'}."
        ahead = REASONS[reason].format(count=count)
        if not self.best:
            return f"{ahead}: no complete output was found."
        ahead = f"{ahead}: nothing better than {open_score:.4f} can remain."
        if places:
            return f"{ahead} The best {places} of the {len(self.best)} are proved."
        if self.scoring.norm != "none":
            return f"{ahead} With length normalisation a longer output may always catch up, so this bound is loose."
        return ahead
