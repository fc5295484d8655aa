"""Exact searches of many sentences that share the model's steps: each keeps its own frontier, their chunks go in one call.

The rows of a call are sentence-major and as many for each sentence, so a shorter chunk is filled up with copies of its first
row, which nobody looks at.
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
from seqdemo.search.ranking import Scoring
from seqdemo.search.recording import Found
from seqdemo.search.walk import StepFunction
from seqdemo.state import join, select

TOGETHER = 128  # rows of a shared call, at most; with more, a row costs no less
UNDER_WAY = TOGETHER // FIRST_DESCENT  # searches at a time, as each holds states and open prefixes


def run_together(step: StepFunction, searches: Iterable[ExactSearch], scoring: Scoring) -> list[Found]:
    """What each finds, in order. A search begins when one before it has ended, if too many are under way."""
    numbered = enumerate(searches)
    going: list[tuple[int, ExactSearch]] = []
    found: dict[int, Found] = {}
    while True:
        going += islice(numbered, UNDER_WAY - len(going))
        if not going:
            return [found[number] for number in range(len(found))]
        expand(step, company([search for _, search in going]), scoring)
        found.update((number, search.found()) for number, search in going if not search.going)
        going = [(number, search) for number, search in going if search.going]


def company(searches: list[ExactSearch]) -> list[ExactSearch]:
    """Who shares the next call: the widest chunk and those that come next, while at least half of all places are filled."""
    widest_first = sorted(searches, key=lambda search: -len(search.chunk.token_K))
    width = len(widest_first[0].chunk.token_K)
    fitting = widest_first[: max(1, TOGETHER // width)]
    rows = accumulate(len(search.chunk.token_K) for search in fitting)
    return fitting[: sum(2 * filled >= width * places for places, filled in enumerate(rows, 1))]


def expand(step: StepFunction, searches: list[ExactSearch], scoring: Scoring) -> None:
    """Expand the chunks of all these in one call."""
    by_state: dict[int, list[ExactSearch]] = {}
    for search in searches:
        by_state.setdefault(id(search.chunk.held), []).append(search)
    width = max(len(search.chunk.token_K) for search in searches)
    parts = [rows_of([search.chunk for search in group], width) for group in by_state.values()]
    searches = [search for group in by_state.values() for search in group]
    token_K = filled([search.chunk.token_K for search in searches], width)
    logp_KV, state = step(torch.from_numpy(token_K), parts[0] if len(parts) == 1 else join(parts))
    table_KV = logp_KV.numpy()
    if table_KV.max() > ROUNDING:
        raise InputError("Exact search needs log probabilities, which are never above 0; this step gave one that is.")
    held = Held(state, len(searches), width, coverage_of(scoring, state))
    for first, search in zip(range(0, len(table_KV), width), searches):
        search.expand(table_KV[first : first + len(search.chunk.token_K)], held, first)


def rows_of(chunks: list[Chunk], width: int) -> Any:
    """The state that these chunks continue, all the same one, as far as they do."""
    held = chunks[0].held
    sentences = [chunk.sentence for chunk in chunks]
    everyone = sentences == list(range(held.sentences))
    if everyone and held.width == width == 1:
        return held.state
    row_K = torch.from_numpy(filled([chunk.row_K for chunk in chunks], width))
    return select(held.state, row_K, None if everyone else torch.tensor(sentences))


def filled(parts: list[np.ndarray], width: int) -> np.ndarray:
    """The parts one after the other, each filled up to this width with its first."""
    return np.concatenate([piece for part in parts for piece in (part, part[:1].repeat(width - len(part)))])


def coverage_of(scoring: Scoring, state: Any) -> np.ndarray | None:
    coverage_K = scoring.coverage(state)
    return None if coverage_K is None else coverage_K.numpy()
