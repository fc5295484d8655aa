"""Exact search: batched branch and bound over all outputs, with a certificate. Searches of many sentences share the model's
steps: each has its own frontier, and their chunks are put into one call.

A prefix y_1..y_d is open while some continuation may still enter the list of the best. Log probabilities are at most 0, so
totals only fall and nothing below a prefix has a higher total than the prefix: with plain totals a prefix is closed as soon as
its total is not above the worst of the list. With a length penalty, d < n <= limit and coverage at most 0,

    score(y) <= max(total / penalty(d + 1), total / penalty(limit)),

as the penalty is monotone; that bound is valid but loose, so normalised searches often end unproved.
"""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any

import numpy as np
import torch

from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import FINISHED, KEPT, PRUNED, Certificate, Hypothesis, Scoring, SearchResult, SearchTree, empty_tree
from seqdemo.search.frontier import ROUNDING, Chunk, Held, Nodes, Opening, Rows
from seqdemo.search.hypotheses import turns
from seqdemo.search.rules import Now, Rules, refuse_broken
from seqdemo.state import Logits, Scores, StepFunction, join, logp_of, select

Progress = Callable[[int, float, float], None]
Cancel = Callable[[], bool]

FIRST_DESCENT = 5  # rows per chunk until the first descent has reached its end, as a beam of this width would go
CHUNK = 256  # and from then on
TOGETHER = 128  # rows of a shared call, at most; with more, a row costs no less
UNDER_WAY = TOGETHER // FIRST_DESCENT  # searches at a time, as each holds states and open prefixes

REASONS = {
    "expansions": "The budget ended after {count}",
    "frontier": "The budget of open prefixes ended after {count}",
    "cancelled": "The search was stopped after {count}",
}


def best_above(score_N: np.ndarray, bound: float, count: int) -> np.ndarray:
    """The places of the `count` highest values above the bound, highest first, equal ones by lower index."""
    (place_N,) = (score_N > bound).nonzero()
    if len(place_N) > count:
        least = np.partition(score_N[place_N], -count)[-count]
        place_N = place_N[score_N[place_N] >= least]
    return place_N[(-score_N[place_N]).argsort(kind="stable")][:count]


class ExactSearch:
    """Exact search for one sentence: while it is `going`, it asks for its `chunk` to be expanded.

    * The first descent goes down with the five best continuations at each length, as a beam would (where words are required,
      at every number of missing tokens), which gives a good list early. After it, the deepest open prefixes are expanded
      first, the best of them first, up to 256 at a time.
    * It looks for the best n = `nbest` of all outputs. Each further one widens the search, so ask for one if time matters.
    * Outputs are those that end within the limit and, unless the limit forces <eos>, those cut at the limit.
    * The tree has every prefix that was expanded, every output that was among the best when it was found, and of each prefix
      the best continuation that was pruned: by how much its total missed what it had to exceed.
    * When the budget of expansions or of open prefixes is spent, or `cancel()` says so, what was found comes back with the
      highest score that may still be open. If no output was complete by then, the best prefix at hand does, unfinished.
    """

    def __init__(
        self,
        start: Held,
        sentence: int,
        options: SearchOptions,
        rules: Rules,
        scoring: Scoring,
        limit: int,
        *,
        bos: int,
        eos: int,
        given: Sequence[int],
        progress: Progress | None,
        cancel: Cancel | None,
        record: bool,
    ) -> None:
        self.options, self.rules, self.scoring, self.limit = options, rules, scoring, limit
        self.given = len(given)
        self.eos, self.eos_1 = eos, np.array([eos])
        self.progress, self.cancel, self.record = progress, cancel, record
        self.best: list[tuple[float, int, bool]] = []  # (-score, node, finished), best first
        self.stack: list[Opening] = []
        self.nodes = Nodes()
        self.descending, self.too_wide = True, False
        self.expansions = 0
        self.empty_logp = -math.inf
        last = given[-1] if given else bos
        self.chunk = Chunk(start, np.array([sentence]), rules.start([given]), np.array([last]), np.zeros(1), np.array([-1]), 0)
        self.going, self.reason = True, ""
        self.began = time.perf_counter()

    def expand(self, logp_KV: np.ndarray, scores: Scores, held: Held, first: int) -> None:
        """Use the model's scores for the chunk, and choose the next chunk. `scores` and `held` are those of all rows of the
        call; the chunk's are the ones from `first` on, and `logp_KV` their log probabilities."""
        self.look(logp_KV, scores, held, first)
        if self.progress is not None:
            best = -self.best[0][0] if self.best else -math.inf
            self.progress(self.expansions, best, max(self.bound(), self.open_score()))
        self.reason = self.reason_to_stop()
        chunk = None if self.reason else self.next_chunk()
        self.going = chunk is not None
        self.chunk = chunk or self.chunk

    def look(self, logp_KV: np.ndarray, scores: Scores, held: Held, first: int) -> None:
        """Look at every continuation of these prefixes: list the complete ones, open the others."""
        chunk, written = self.chunk, self.chunk.written + 1
        self.expansions += len(logp_KV)
        if not chunk.written:
            self.empty_logp = float(logp_KV[0, self.eos])
        if self.rules:
            logp_KV = self.allowed(Logits.of(scores), first)
        coverage_K = None if held.coverage_K is None else held.coverage_K[first : first + len(logp_KV)]
        if written == self.limit:
            self.enlist(logp_KV, np.arange(logp_KV.shape[1]), coverage_K)
            return
        self.enlist(logp_KV[:, self.eos, None], self.eos_1, coverage_K)
        logp_KV = logp_KV.copy()
        logp_KV[:, self.eos] = -math.inf
        self.stack.append(Opening(chunk, held, first, logp_KV))

    def allowed(self, logits: Logits, first: int) -> np.ndarray:
        """The chunk's log probabilities under the rules."""
        chunk, count = self.chunk, len(self.chunk.token_K)
        now = Now(chunk.written, torch.full((count,), self.given), torch.full((count,), self.limit - chunk.written), self.eos)
        own = Logits(*(part[first : first + count] for part in logits))
        return logp_of(self.rules.apply(own, now, chunk.said)).numpy()

    def enlist(self, logp_KC: np.ndarray, token_C: np.ndarray, coverage_K: np.ndarray | None) -> None:
        """Put the prefixes continued by these tokens on the list of the best, if they are good enough."""
        chunk, bound = self.chunk, self.bound()
        total_M = (chunk.total_K[:, None] + logp_KC).ravel()
        coverage_M = 0.0 if coverage_K is None else coverage_K.repeat(len(token_C))
        score_M = self.scoring.score(total_M, chunk.written + 1, coverage_M)
        place_N = best_above(score_M, bound, self.options.nbest)
        if not len(place_N):
            return
        row_N, token_N = place_N // len(token_C), token_C[place_N % len(token_C)]
        fate_N = np.where(token_N == self.eos, FINISHED, KEPT)
        logp_N = logp_KC[row_N, place_N % len(token_C)]
        node_N = self.nodes.add(chunk.written, chunk.node_K[row_N], token_N, logp_N, total_M[place_N], fate_N)
        for score, node, fate in zip(score_M[place_N].tolist(), node_N.tolist(), fate_N.tolist()):
            bisect.insort(self.best, (-score, node, fate == FINISHED))
        del self.best[self.options.nbest :]

    def next_chunk(self) -> Chunk | None:
        """The best of the deepest open prefixes; None when nothing is open."""
        while self.stack:
            opening = self.stack[-1]
            floor = self.floor(opening.written)
            if opening.best <= floor:
                self.close(floor)
                self.descending = False
                continue
            if not self.descending and opening.table_KV is not None:
                opening.list_above(floor)
                self.too_wide = self.open_rows() > self.options.frontier
            size = min(FIRST_DESCENT if self.descending else CHUNK, self.options.expansions - self.expansions)
            spread = self.descending and opening.table_KV is not None and len(self.rules.pieces)
            return self.seat(opening, self.spread(opening, size, floor) if spread else opening.take(size, floor))
        return None

    def spread(self, opening: Opening, count: int, floor: float) -> Rows:
        """Of the continuations above the floor, the best at every number of missing tokens in turn, as a beam takes them."""
        row_N, token_N = opening.among(count, self.rules.pieces.numpy(), floor)
        rows_N, tokens_N = torch.from_numpy(row_N), torch.from_numpy(token_N)
        then = Now(opening.written, torch.full_like(rows_N, self.given), rows_N * 0 + self.limit - opening.written, self.eos)
        missing_N = self.rules.missing(then, self.rules.after(select(opening.said, rows_N), tokens_N))
        assert missing_N is not None
        order_N = turns(opening.totals(row_N, token_N)[None], missing_N.numpy()[None])[0, :count]
        return opening.follow(row_N[order_N], token_N[order_N])

    def seat(self, opening: Opening, rows: Rows) -> Chunk:
        if opening.best == -math.inf:
            self.close(self.floor(opening.written))  # its state is no longer needed
        kept_N = np.full(len(rows.token_N), KEPT)
        node_N = self.nodes.add(opening.written - 1, opening.node_K[rows.row_N], rows.token_N, rows.logp_N, rows.total_N, kept_N)
        said = opening.said
        if self.rules:
            said = self.rules.after(select(said, torch.from_numpy(rows.row_N)), torch.from_numpy(rows.token_N))
        row_K = opening.first + rows.row_N
        return Chunk(opening.held, row_K, said, rows.token_N, rows.total_N, node_N, opening.written)

    def close(self, floor: float) -> None:
        """Close the last opening: its best continuations missed the floor."""
        opening = self.stack.pop()
        if self.record:
            rows = opening.left()
            pruned_N, missed_N = np.full(len(rows.token_N), PRUNED), floor - rows.total_N
            self.nodes.add(opening.written - 1, opening.node_K[rows.row_N], *rows[1:], pruned_N, missed_N)

    def open_rows(self) -> int:
        """How many prefixes are open. If there seem to be too many, those that were closed meanwhile are removed first."""
        if sum(map(len, self.stack)) > self.options.frontier:
            for opening in self.stack:
                if opening.table_KV is None:
                    opening.list_above(self.floor(opening.written))
        return sum(map(len, self.stack))

    def bound(self) -> float:
        """The score to beat: the worst of a full list."""
        return -self.best[-1][0] if len(self.best) == self.options.nbest else -math.inf

    def floor(self, written: int) -> float:
        """The total that an open prefix of `written` tokens must exceed: `Scoring.reach` solved for the total."""
        bound = self.bound()
        return min(bound * float(self.scoring.penalty(length)) for length in (written + 1, self.limit))

    def open_score(self) -> float:
        """An upper bound on the scores of all outputs that are still open."""
        reaches = (self.scoring.reach(opening.best, opening.written + 1, self.limit) for opening in self.stack)
        return float(max(reaches, default=-math.inf))

    def reason_to_stop(self) -> str:
        if self.expansions >= self.options.expansions:
            return "expansions"
        if self.too_wide:
            return "frontier"
        return "cancelled" if self.cancel is not None and self.cancel() else ""

    def found(self) -> SearchResult:
        tree, place = self.nodes.grown()
        hypotheses = tuple(self.hypothesis(tree, int(place[node]), -score, done) for score, node, done in self.best)
        open_score = self.open_score()
        places = sum(hypothesis.score >= open_score for hypothesis in hypotheses)
        certificate = Certificate(
            proved=places > 0,
            expansions=self.expansions,
            bound=hypotheses[0].score if places else open_score,
            empty_logp=self.empty_logp,
            sentence=self.sentence(places, open_score),
            seconds=time.perf_counter() - self.began,
        )
        hypotheses = hypotheses or (self.unfinished(tree, place),)
        if not self.record:
            return SearchResult(empty_tree(), tuple(replace(hypothesis, node=-1) for hypothesis in hypotheses), certificate)
        return SearchResult(tree, hypotheses, certificate)

    def hypothesis(self, tree: SearchTree, node: int, score: float, finished: bool) -> Hypothesis:
        rows = tree.path(node)
        total = float(tree.total[node]) if rows else 0.0
        return Hypothesis(tree.tokens(node), tuple(tree.logp[rows].tolist()), total, score, finished, node)

    def unfinished(self, tree: SearchTree, place: np.ndarray) -> Hypothesis:
        node = int(self.chunk.node_K[0])
        coverage_K = self.chunk.held.coverage_K
        coverage = 0.0 if coverage_K is None else float(coverage_K[self.chunk.row_K[0]])
        score = self.scoring.score(float(self.chunk.total_K[0]), self.chunk.written, coverage)
        return self.hypothesis(tree, int(place[node]) if node >= 0 else -1, score, False)

    def sentence(self, places: int, open_score: float) -> str:
        count = f"{self.expansions:,} expansion{'s' if self.expansions > 1 else ''}"
        if not self.best and open_score == -math.inf:
            return f"Every path is a dead end after {count}: no complete output was found."
        if self.best and places == len(self.best):
            return f"Proved after {count}: {'nothing better exists' if places == 1 else f'these are the {places} best'}."
        ahead = REASONS[self.reason].format(count=count)
        if not self.best:
            return f"{ahead}: no complete output was found."
        left = f"{open_score:.4f}".replace("-", "−")
        ahead = f"{ahead}: nothing better than {left} can remain."
        if places:
            return f"{ahead} The best {places} of the {len(self.best)} are proved."
        if self.scoring.norm != "none":
            return f"{ahead} With length normalisation a longer output may always catch up, so this bound is loose."
        return ahead


def search_exactly(
    step: StepFunction,
    state: Any,
    options: SearchOptions,
    rules: Sequence[Rules],
    scoring: Scoring,
    limits: Sequence[int],
    given: Sequence[Sequence[int]],
    **more: Any,
) -> list[SearchResult]:
    """Exact search of each sentence, whose rules, limit and given tokens these are. `more` goes to each `ExactSearch`."""
    start = Held(state, len(limits), 1, scoring.coverage(state))
    searches = (
        ExactSearch(start, sentence, options, own, scoring, limit, given=text, **more)
        for sentence, (own, limit, text) in enumerate(zip(rules, limits, given))
    )
    return run_together(step, searches, scoring)


def run_together(step: StepFunction, searches: Iterable[ExactSearch], scoring: Scoring) -> list[SearchResult]:
    """The result of each search, in order. If too many are running, a search begins when an earlier one has ended."""
    numbered = enumerate(searches)
    going: list[tuple[int, ExactSearch]] = []
    found: dict[int, SearchResult] = {}
    while True:
        going += islice(numbered, UNDER_WAY - len(going))
        if not going:
            return [found[number] for number in range(len(found))]
        expand(step, company([search for _, search in going]), scoring)
        found.update((number, search.found()) for number, search in going if not search.going)
        going = [(number, search) for number, search in going if search.going]


def company(searches: list[ExactSearch]) -> list[ExactSearch]:
    """The searches that share the next call: the one with the widest chunk and the next widest, while at least half of all rows
    are used."""
    widest_first = sorted(searches, key=lambda search: -len(search.chunk.token_K))
    width = len(widest_first[0].chunk.token_K)
    fitting = widest_first[: max(1, TOGETHER // width)]
    rows = accumulate(len(search.chunk.token_K) for search in fitting)
    return fitting[: sum(2 * filled >= width * places for places, filled in enumerate(rows, 1))]


def expand(step: StepFunction, searches: list[ExactSearch], scoring: Scoring) -> None:
    """Expand the chunks of all these searches in one call. Its rows are sentence-major and as many for each sentence, so a
    shorter chunk is filled up with copies of its first row, which are ignored."""
    by_state: dict[int, list[ExactSearch]] = {}
    for search in searches:
        by_state.setdefault(id(search.chunk.held), []).append(search)
    width = max(len(search.chunk.token_K) for search in searches)
    parts = [rows_of([search.chunk for search in group], width) for group in by_state.values()]
    searches = [search for group in by_state.values() for search in group]
    token_K = filled([search.chunk.token_K for search in searches], width)
    scores, state = step(torch.from_numpy(token_K), parts[0] if len(parts) == 1 else join(parts))
    table_KV = logp_of(scores).numpy()
    if not table_KV.max() <= ROUNDING:
        refuse_broken(Logits.of(scores))
        raise InputError("Exact search needs log probabilities, which are never above 0; this step gave one that is.")
    held = Held(state, len(searches), width, scoring.coverage(state))
    for first, search in zip(range(0, len(token_K), width), searches):
        search.expand(table_KV[first : first + len(search.chunk.token_K)], scores, held, first)


def rows_of(chunks: list[Chunk], width: int) -> Any:
    """The rows of a state that these chunks continue. All of them continue the same state."""
    held = chunks[0].held
    sentences = [chunk.sentence for chunk in chunks]
    everyone = sentences == list(range(held.sentences))
    if everyone and held.width == width == 1:
        return held.state
    row_K = torch.from_numpy(filled([chunk.row_K for chunk in chunks], width))
    return select(held.state, row_K, None if everyone else torch.tensor(sentences))


def filled(parts: list[np.ndarray], width: int) -> np.ndarray:
    """The parts joined, each filled up to this width with copies of its first row."""
    return np.concatenate([piece for part in parts for piece in (part, part[:1].repeat(width - len(part)))])
