"""The hypotheses a search holds, the candidates of each step, and what becomes of them: their scores, and the tree.

B sentences, W slots per sentence (K = B * W rows of the model), C candidates per sentence. Slots and columns are numbered from 0.
A search notes its turns; trees and hypotheses are put together once, at the end, for all sentences. These are NumPy arrays: for
so few numbers, NumPy starts an operation in half of torch's time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from seqdemo.records import FINISHED, KEPT, PRUNED, TREE_KINDS, Hypothesis, SearchResult, SearchTree, empty_tree
from seqdemo.search.rules import Now, Rules
from seqdemo.state import Logits, select

End = tuple[int, int]  # the step and the column at which a hypothesis ends


class Slots(NamedTuple):
    """The hypotheses a search holds. The last token of each stands in the record at (step, column)."""

    total_BW: np.ndarray  # float64; -inf: the slot is empty
    ended_BW: np.ndarray  # bool: it is finished, its total frozen
    step_BW: np.ndarray  # -1: nothing written yet
    column_BW: np.ndarray
    coverage_BW: np.ndarray  # coverage penalty when its last token was written
    rank_BW: np.ndarray | None = None  # float64, what ranks it; None: its total

    @property
    def ranked_by_BW(self) -> np.ndarray:
        return self.total_BW if self.rank_BW is None else self.rank_BW

    def without(self, gone_BW: np.ndarray) -> Slots:
        """The same slots without these hypotheses."""
        rank_BW = None if self.rank_BW is None else np.where(gone_BW, -math.inf, self.rank_BW)
        ended_BW = self.ended_BW & ~gone_BW
        return self._replace(total_BW=np.where(gone_BW, -math.inf, self.total_BW), ended_BW=ended_BW, rank_BW=rank_BW)


class Candidates(NamedTuple):
    """The continuations a step looks at, best first."""

    slot_BC: np.ndarray  # the hypothesis it continues
    token_BC: np.ndarray
    logp_BC: np.ndarray
    total_BC: np.ndarray  # float64; -inf: not a candidate
    carried_BC: np.ndarray | None = None  # True: no new token, but a finished hypothesis that holds its place
    level_BC: np.ndarray | None = None  # it competes with those of its level: missing tokens, or group; None: with all
    rank_BC: np.ndarray | None = None  # float64, what ranks it; None: its total


class Choice(NamedTuple):
    """The choice of a step: which column takes each slot of the next step, and which sentences are done."""

    candidates: Candidates
    column_BW: np.ndarray
    done_B: np.ndarray


class Endings(NamedTuple):
    """The hypotheses that a search can return, N per sentence in any order; score -inf: none."""

    score_BN: np.ndarray
    step_BN: np.ndarray
    column_BN: np.ndarray


class Ahead(NamedTuple):
    """What each candidate of a step would miss of what the rules require."""

    rules: Rules
    now: Now
    states: tuple[Any, ...]

    @property
    def pieces_A(self) -> Tensor:
        """The tokens that can lower it."""
        return self.rules.pieces

    def missing(self, rows_N: Tensor, tokens_N: Tensor) -> Tensor:
        """How many tokens each of these rows misses after it said its token."""
        then = Now(self.now.written + 1, self.now.given_K[rows_N], self.now.room_K[rows_N] - 1, self.now.eos)
        missing_N = self.rules.missing(then, self.rules.after(select(self.states, rows_N), tokens_N))
        assert missing_N is not None
        return missing_N


class Propose(Protocol):
    """A function that finds the candidates of a step."""

    def __call__(self, logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates: ...


class Chooser(Protocol):
    """Decides which candidates go on. `slots` always holds the hypotheses of the rows the model sees next."""

    slots: Slots
    within: int  # a candidate that ends is finished if it is among the first `within` of its group; 0: if it is chosen
    group: int  # columns that belong together in the ranking; 0: all

    def choose(
        self, logits: Logits, step: int, last_B: np.ndarray, coverage_K: np.ndarray | None, ahead: Ahead | None = None
    ) -> Choice: ...

    def keep(self, kept_N: np.ndarray) -> None: ...

    def endings(self) -> Endings: ...


def of_each(part_BN: np.ndarray, place_BC: np.ndarray) -> np.ndarray:
    """For each sentence, the entries at these places."""
    found_BC: np.ndarray = part_BN[np.arange(len(part_BN))[:, None], place_BC]
    return found_BC


def best_first(score_BN: np.ndarray) -> np.ndarray:
    """The places of each sentence's scores, the highest first, equal ones by lower place."""
    place_BN: np.ndarray = np.argsort(-score_BN, axis=1, kind="stable")
    return place_BN


def turns(total_BN: np.ndarray, level_BN: np.ndarray) -> np.ndarray:
    """The order in which candidates get places: one of each level in turn, lowest level first; within a level by total."""
    best_BN = best_first(total_BN)
    level_BN = of_each(level_BN, best_BN)
    levels = int(level_BN.max()) + 1
    before_BNL = (level_BN[:, :, None] == np.arange(levels)).cumsum(1)
    turn_BN = np.take_along_axis(before_BNL, level_BN[:, :, None], 2)[:, :, 0] * levels + level_BN
    turn_BN[of_each(total_BN, best_BN) == -math.inf] = levels * (total_BN.shape[1] + 1)
    return of_each(best_BN, turn_BN.argsort(axis=1, kind="stable"))


def fresh(found: Candidates) -> np.ndarray:
    """Which candidates add a token."""
    real_BC: np.ndarray = found.total_BC > -math.inf
    return real_BC if found.carried_BC is None else real_BC & ~found.carried_BC


def widened(found: Candidates, columns: int, group: int) -> Candidates:
    """The candidates of a group with its number, and as many columns in every step."""
    carried_BC = np.zeros(found.slot_BC.shape, bool) if found.carried_BC is None else found.carried_BC
    level_BC = np.full(found.slot_BC.shape, group)
    lacking = ((0, 0), (0, columns - found.slot_BC.shape[1]))
    none = {"total_BC": -math.inf, "rank_BC": -math.inf, "level_BC": group}
    leaves = found._replace(carried_BC=carried_BC, level_BC=level_BC)._asdict()
    return Candidates(**{name: np.pad(leaf, lacking, constant_values=none.get(name, 0)) for name, leaf in leaves.items()})


def empty_slots(sentences: int, width: int) -> Slots:
    """`width` slots per sentence, each holding the empty hypothesis."""
    shape = (sentences, width)
    return Slots(np.zeros(shape), np.zeros(shape, bool), np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape))


def seat(
    slots: Slots, candidates: Candidates, column_BW: np.ndarray, step: int, coverage_K: np.ndarray | None, eos: int
) -> Slots:
    """The slots after the candidates in these columns took them. A carried one keeps the content of its old slot."""
    total_BW = of_each(candidates.total_BC, column_BW)
    ended_BW = of_each(candidates.token_BC, column_BW) == eos
    step_BW = np.full(column_BW.shape, step)
    sat_BW = column_BW
    from_BW = of_each(candidates.slot_BC, column_BW)
    if coverage_K is None:
        coverage_BW = np.zeros(total_BW.shape)
    else:
        coverage_BW = of_each(coverage_K.reshape(len(column_BW), -1), from_BW)
    if candidates.carried_BC is not None:
        carried_BW = of_each(candidates.carried_BC, column_BW)
        ended_BW = ended_BW | carried_BW
        step_BW = np.where(carried_BW, of_each(slots.step_BW, from_BW), step_BW)
        sat_BW = np.where(carried_BW, of_each(slots.column_BW, from_BW), column_BW)
        coverage_BW = np.where(carried_BW, of_each(slots.coverage_BW, from_BW), coverage_BW)
    rank_BW = None if candidates.rank_BC is None else of_each(candidates.rank_BC, column_BW)
    return Slots(total_BW, ended_BW & (total_BW > -math.inf), step_BW, sat_BW, coverage_BW, rank_BW)


def keep_sentences(slots: Slots, kept_N: np.ndarray) -> Slots:
    return Slots._make(None if leaf is None else leaf[kept_N] for leaf in slots)


@cache
def first_of_each(sentences: int, columns: int, width: int, groups: int) -> np.ndarray:
    """The first columns of every group, `width` in all, for each sentence."""
    each = columns // groups
    first_W = (np.arange(groups)[:, None] * each + np.arange(min(width // groups, each))).ravel()
    return np.broadcast_to(first_W, (sentences, len(first_W)))


class Turn(NamedTuple):
    """One step of the search: the sentences, their candidates and the chosen columns."""

    sentences: np.ndarray
    candidates: Candidates
    column_BW: np.ndarray


class Walked(NamedTuple):
    """A finished walk: its turns, the number of turns of each sentence, and where its hypotheses end."""

    turns: list[Turn]
    lengths: np.ndarray
    scores: np.ndarray  # (sentence, hypothesis), -inf: none
    steps: np.ndarray
    columns: np.ndarray


class Field(NamedTuple):
    """All turns of a walk as arrays: sentence x step x candidate (or x slot). Unused places have total -inf."""

    slot: np.ndarray
    token: np.ndarray
    logp: np.ndarray
    total: np.ndarray
    carried: np.ndarray
    level: np.ndarray
    rank: np.ndarray  # what ranks it
    column: np.ndarray


def assemble(walked: Walked, chooser: Chooser, eos: int, nbest: int, record: bool) -> list[SearchResult]:
    field = gathered(walked.turns, len(walked.lengths))
    listed = ranked_hypotheses(walked, field, eos, nbest)
    if not record:
        return [SearchResult(empty_tree(), tuple(hypothesis for hypothesis, _ in ranked)) for ranked in listed]
    trees, node_BTC = grow_trees(walked.lengths, field, chooser, eos)
    return [
        SearchResult(
            tree, tuple(replace(hypothesis, node=int(nodes_TC[end]) if hypothesis.tokens else -1) for hypothesis, end in ranked)
        )
        for tree, nodes_TC, ranked in zip(trees, node_BTC, listed)
    ]


def gathered(turns: list[Turn], sentences: int) -> Field:
    width = max(turn.candidates.total_BC.shape[1] for turn in turns)
    slots = max(turn.column_BW.shape[1] for turn in turns)
    shape = (sentences, len(turns), width)
    field = Field(
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int32),
        np.zeros(shape, turns[0].candidates.logp_BC.dtype),
        np.full(shape, -math.inf),
        np.zeros(shape, np.bool_),
        np.zeros(shape, np.int64),
        np.full(shape, -math.inf),
        np.zeros((sentences, len(turns), slots), np.int64),
    )
    step = 0
    for _, alike in groupby(turns, key=form):
        together = list(alike)
        for whole, parts in zip(field, zip(*((*turn.candidates, turn.column_BW) for turn in together))):
            if parts[0] is not None:
                whole[together[0].sentences, step : step + len(parts), : parts[0].shape[1]] = np.stack(parts, 1)
        step += len(together)
    return field


def form(turn: Turn) -> tuple[object, ...]:
    """What turns have in common that are gathered in one go: sentences and sizes."""
    return id(turn.sentences), turn.column_BW.shape, *(part if part is None else part.shape for part in turn.candidates)


def ranked_hypotheses(walked: Walked, field: Field, eos: int, nbest: int) -> list[list[tuple[Hypothesis, End]]]:
    """The hypotheses of each sentence, best first, and where they end."""
    order = np.argsort(-walked.scores, axis=1, kind="stable")[:, :nbest]
    scores, steps, columns = (np.take_along_axis(part, order, 1) for part in (walked.scores, walked.steps, walked.columns))
    sentence_H, place_H = np.nonzero(scores > -math.inf)
    step_H, column_H = steps[sentence_H, place_H], columns[sentence_H, place_H]
    token_HT, logp_HT = paths(field, sentence_H, step_H, column_H)
    listed: list[list[tuple[Hypothesis, End]]] = [[] for _ in walked.lengths]
    for row, (sentence, step, column) in enumerate(zip(sentence_H.tolist(), step_H.tolist(), column_H.tolist())):
        tokens = tuple(token_HT[row, : step + 1].tolist())
        logps = tuple(logp_HT[row, : step + 1].tolist())
        total = float(field.total[sentence, step, column]) if step >= 0 else 0.0
        score = float(scores[sentence, place_H[row]])
        listed[sentence].append((Hypothesis(tokens, logps, total, score, tokens[-1:] == (eos,)), (step, column)))
    return listed


def paths(field: Field, sentence_H: np.ndarray, step_H: np.ndarray, column_H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and log probabilities of the hypotheses that end there, walked backwards all at once."""
    steps = int(step_H.max(initial=-1)) + 1
    token_HT = np.zeros((len(step_H), steps), np.int64)
    logp_HT = np.zeros((len(step_H), steps))
    at_H = column_H.copy()
    for step in reversed(range(steps)):
        on = step_H >= step
        here = (sentence_H[on], step, at_H[on])
        token_HT[on, step], logp_HT[on, step] = field.token[here], field.logp[here]
        if step:
            at_H[on] = field.column[sentence_H[on], step - 1, field.slot[here]]
    return token_HT, logp_HT


def grow_trees(lengths: np.ndarray, field: Field, chooser: Chooser, eos: int) -> tuple[list[SearchTree], np.ndarray]:
    """The tree of each sentence, and the row in it of every (sentence, step, column)."""
    sentences, steps, width = field.token.shape
    real_BTC = (field.total > -math.inf) & ~field.carried & (np.arange(steps)[:, None] < lengths[:, None, None])
    count_B = real_BTC.reshape(sentences, -1).sum(1)
    first_B = np.cumsum(count_B) - count_B
    node_BTC = np.cumsum(real_BTC).reshape(real_BTC.shape) - 1 - first_B[:, None, None]
    parent_BTC = np.full(real_BTC.shape, -1)
    slot_node_BTW = np.take_along_axis(node_BTC, field.column, 2)
    parent_BTC[:, 1:] = np.take_along_axis(slot_node_BTW[:, :-1], field.slot[:, 1:], 2)
    rank_C = np.arange(width) % (chooser.group or width)
    fate_BTC = fates(field, chooser, eos)
    ranked = bool((field.rank > -math.inf).any())
    if not ranked:
        field.rank[:] = field.total
    plain = not ranked and not field.level.any()
    columns = (
        np.broadcast_to(np.arange(steps)[:, None], real_BTC.shape),
        parent_BTC,
        field.token,
        field.logp,
        field.total,
        np.broadcast_to(rank_C, real_BTC.shape),
        fate_BTC,
        shortfalls(field, fate_BTC, chooser.within, eos) if plain else shortfalls_by_level(field, fate_BTC),
    )
    rows = [np.split(column[real_BTC].astype(kind), first_B[1:]) for column, kind in zip(columns, TREE_KINDS)]
    if ranked:
        rows.append(np.split(field.rank[real_BTC], first_B[1:]))
    return [SearchTree(*parts) for parts in zip(*rows)], node_BTC


def fates(field: Field, chooser: Chooser, eos: int) -> np.ndarray:
    kept = np.zeros(field.token.shape, np.bool_)
    np.put_along_axis(kept, field.column, True, 2)
    ends = field.token == eos
    place_C = np.arange(ends.shape[2]) % (chooser.group or ends.shape[2])
    finished = ends & (kept if not chooser.within else place_C < chooser.within)
    return np.where(finished, FINISHED, np.where(kept & ~ends, KEPT, PRUNED))


def shortfalls(field: Field, fate_BTC: np.ndarray, within: int, eos: int) -> np.ndarray:
    """By how much a pruned candidate's total fell short of the last one taken: for one that ends, of the last place in which an
    end counts; for any other, of the last hypothesis that goes on."""
    if not within:
        return np.zeros(fate_BTC.shape)
    counting = min(within, field.total.shape[2]) - 1
    last_going = np.take_along_axis(field.total, field.column[:, :, -1:], 2)
    bar = np.where(field.token == eos, field.total[:, :, counting : counting + 1], last_going)
    pruned = (fate_BTC == PRUNED) & (field.total > -math.inf)
    missed: np.ndarray = np.subtract(bar, field.total, out=np.zeros(field.total.shape), where=pruned)
    return missed


def shortfalls_by_level(field: Field, fate_BTC: np.ndarray) -> np.ndarray:
    """The same if candidates compete within levels, or are not ranked by their totals: by how much a pruned one's ranking value
    fell short of the last one taken at its level; 0 if none was taken."""
    missed = np.zeros(fate_BTC.shape)
    real = field.total > -math.inf
    for level in range(int(field.level.max()) + 1):
        here = real & (field.level == level)
        taken = here & (fate_BTC != PRUNED)
        bar = np.where(taken, field.rank, math.inf).min(2, keepdims=True)
        pruned = here & (fate_BTC == PRUNED) & (bar < math.inf)
        np.subtract(bar, field.rank, out=missed, where=pruned)
    return np.maximum(missed, 0)
