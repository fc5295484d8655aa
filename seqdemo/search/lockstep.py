"""Exact searches of many sentences that share the model's steps: each has its own frontier, and their chunks are put into one
call.

The rows of a call are sentence-major and as many for each sentence, so a shorter chunk is filled up with copies of its first
row, which are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, islice
from typing import Any

import numpy as np
import torch

from seqdemo.errors import InputError
from seqdemo.search.exact import FIRST_DESCENT, ExactSearch
from seqdemo.search.frontier import ROUNDING, Chunk, Held
from seqdemo.search.hypotheses import Scoring, SearchResult
from seqdemo.search.rules import refuse_broken
from seqdemo.state import Logits, StepFunction, join, logp_of, select

TOGETHER = 128  # rows of a shared call, at most; with more, a row costs no less
UNDER_WAY = TOGETHER // FIRST_DESCENT  # searches at a time, as each holds states and open prefixes


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
    """Expand the chunks of all these searches in one call."""
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
