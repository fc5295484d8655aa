"""From the turns of a walk to what a search hands back. Arrays are put together once, at the end, for all sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqdemo.config import SearchOptions
from seqdemo.records import FINISHED, KEPT, PRUNED, Certificate, Hypothesis, SearchTree
from seqdemo.search.slots import Rule
from seqdemo.search.walk import Turn, Walked

TREE_KINDS = ("i4", "i4", "i4", "f4", "f8", "i2", "i1", "f4")  # of SearchTree's columns
End = tuple[int, int]  # the step and the column at which a hypothesis ends


@dataclass(frozen=True)
class Found:
    """What one search of one sentence found. `hypotheses` are best first; `certificate` comes with exact search; `options`
    and `limit` are those of the search."""

    tree: SearchTree
    hypotheses: tuple[Hypothesis, ...]
    certificate: Certificate | None = None
    options: SearchOptions | None = None
    limit: int = 0

    def complete(self, hypothesis: Hypothesis) -> bool:
        """It ended, or was cut at the limit: not a prefix at which the search broke off."""
        return hypothesis.finished or 0 < self.limit <= len(hypothesis.tokens)

    def with_empty(self, logp: float) -> Found:
        """Its certificate, which must be there, with another log probability of the empty output."""
        assert self.certificate is not None
        return replace(self, certificate=replace(self.certificate, empty_logp=logp))


class Field(NamedTuple):
    """All turns of a walk as arrays: sentence x step x candidate (or x slot). Unused places have total -inf."""

    slot: np.ndarray
    token: np.ndarray
    logp: np.ndarray
    total: np.ndarray
    carried: np.ndarray
    column: np.ndarray


def empty_tree() -> SearchTree:
    none = np.zeros(0)
    return SearchTree(*(none.astype(kind) for kind in TREE_KINDS))


def assemble(walked: Walked, rule: Rule, eos: int, nbest: int, record: bool) -> list[Found]:
    field = gathered(walked.turns, len(walked.lengths))
    listed = ranked_hypotheses(walked, field, eos, nbest)
    if not record:
        return [Found(empty_tree(), tuple(hypothesis for hypothesis, _ in ranked)) for ranked in listed]
    trees, node_BTC = grow_trees(walked.lengths, field, rule, eos)
    return [
        Found(
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
        np.zeros(shape, turns[0].candidates.logp_BC.numpy().dtype),
        np.full(shape, -math.inf),
        np.zeros(shape, np.bool_),
        np.zeros((sentences, len(turns), slots), np.int64),
    )
    for step, turn in enumerate(turns):
        for whole, part in zip(field, (*turn.candidates, turn.column_BW)):
            if part is not None:
                whole[turn.sentences, step, : part.shape[1]] = part.numpy()
    return field


def ranked_hypotheses(walked: Walked, field: Field, eos: int, nbest: int) -> list[list[tuple[Hypothesis, End]]]:
    """Of each sentence, best first, with where they end."""
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


def grow_trees(lengths: np.ndarray, field: Field, rule: Rule, eos: int) -> tuple[list[SearchTree], np.ndarray]:
    """The tree of each sentence, and the row in it of every (sentence, step, column)."""
    sentences, steps, width = field.token.shape
    real_BTC = (field.total > -math.inf) & ~field.carried & (np.arange(steps)[:, None] < lengths[:, None, None])
    count_B = real_BTC.reshape(sentences, -1).sum(1)
    first_B = np.cumsum(count_B) - count_B
    node_BTC = np.cumsum(real_BTC).reshape(real_BTC.shape) - 1 - first_B[:, None, None]
    parent_BTC = np.full(real_BTC.shape, -1)
    slot_node_BTW = np.take_along_axis(node_BTC, field.column, 2)
    parent_BTC[:, 1:] = np.take_along_axis(slot_node_BTW[:, :-1], field.slot[:, 1:], 2)
    rank_C = np.arange(width) % (rule.group or width)
    fate_BTC = fates(field, rule.within, eos)
    columns = (
        np.broadcast_to(np.arange(steps)[:, None], real_BTC.shape),
        parent_BTC,
        field.token,
        field.logp,
        field.total,
        np.broadcast_to(rank_C, real_BTC.shape),
        fate_BTC,
        shortfalls(field, fate_BTC, rule.within, eos),
    )
    rows = [np.split(column[real_BTC].astype(kind), first_B[1:]) for column, kind in zip(columns, TREE_KINDS)]
    return [SearchTree(*parts) for parts in zip(*rows)], node_BTC


def fates(field: Field, within: int, eos: int) -> np.ndarray:
    kept = np.zeros(field.token.shape, np.bool_)
    np.put_along_axis(kept, field.column, True, 2)
    ends = field.token == eos
    finished = ends & (kept if not within else np.arange(ends.shape[2]) < within)
    return np.where(finished, FINISHED, np.where(kept & ~ends, KEPT, PRUNED))


def shortfalls(field: Field, fate_BTC: np.ndarray, within: int, eos: int) -> np.ndarray:
    """By how much a pruned candidate's total fell short of the last that was taken: of the last place where ending counts
    for one that ends, of the last hypothesis that goes on for any other."""
    if not within:
        return np.zeros(fate_BTC.shape)
    counting = min(within, field.total.shape[2]) - 1
    last_going = np.take_along_axis(field.total, field.column[:, :, -1:], 2)
    bar = np.where(field.token == eos, field.total[:, :, counting : counting + 1], last_going)
    pruned = (fate_BTC == PRUNED) & (field.total > -math.inf)
    missed: np.ndarray = np.subtract(bar, field.total, out=np.zeros(field.total.shape), where=pruned)
    return missed
