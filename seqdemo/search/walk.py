"""The loop that greedy, beam and sampling share: step, mask, let the rule choose, move the state, until all are done."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import PAD, SearchOptions
from seqdemo.search.ranking import Scoring
from seqdemo.search.slots import Candidates, Rule
from seqdemo.state import select

StepFunction = Callable[[Tensor, Any], tuple[Tensor, Any]]
Cancel = Callable[[], bool]

DROP_AT = 0.25  # sentences leave the batch when this share of it is done


class Turn(NamedTuple):
    """What the search saw at one step, and of which sentences."""

    sentences: np.ndarray
    candidates: Candidates
    column_BW: Tensor


class Walked(NamedTuple):
    """A finished walk: its turns, how many of them each sentence took, and where its hypotheses end in them."""

    turns: list[Turn]
    lengths: np.ndarray
    scores: np.ndarray  # (sentence, hypothesis), -inf: none
    steps: np.ndarray
    columns: np.ndarray


def allowed(logp_KV: Tensor, written: int, last_B: Tensor, history_KT: Tensor | None, options: SearchOptions, eos: int) -> Tensor:
    """The same log probabilities, -inf where the options forbid a token; nothing is renormalised."""
    if written < options.min_length:
        logp_KV = logp_KV.index_fill(1, torch.tensor([eos]), -math.inf)
    if history_KT is not None:
        logp_KV = without_repeats(logp_KV, history_KT, options.no_repeat)
    if options.at_limit == "force" and last_B.any():
        last_K = last_B.repeat_interleave(len(logp_KV) // len(last_B))
        others_V = torch.arange(logp_KV.shape[1]) != eos
        logp_KV = logp_KV.masked_fill(last_K[:, None] & others_V, -math.inf)
    return logp_KV


def forbids(options: SearchOptions) -> bool:
    """Whether `allowed` ever changes anything."""
    return bool(options.min_length or options.no_repeat) or options.at_limit == "force"


def side_by_side(given: Sequence[Sequence[int]]) -> Tensor:
    """Texts as rows; before the shorter ones <pad>, which is never said."""
    longest = max(map(len, given))
    return torch.tensor([[PAD] * (longest - len(text)) + list(text) for text in given], dtype=torch.long)


def without_repeats(logp_KV: Tensor, history_KT: Tensor, n: int) -> Tensor:
    """-inf for every token that would write an n-gram of the row's history again."""
    if history_KT.shape[1] < n:
        return logp_KV
    grams_KGn = history_KT.unfold(1, n, 1)
    tail_Kn = history_KT[:, history_KT.shape[1] - n + 1 :]
    row_N, gram_N = (grams_KGn[:, :, :-1] == tail_Kn[:, None]).all(2).nonzero(as_tuple=True)
    return logp_KV.index_put((row_N, grams_KGn[row_N, gram_N, -1]), torch.tensor(-math.inf, dtype=logp_KV.dtype))


class Walk:
    """One search of many sentences under one rule. A sentence that is done stays a while, unheeded, until enough are."""

    def __init__(
        self,
        step: StepFunction,
        state: Any,
        rule: Rule,
        options: SearchOptions,
        scoring: Scoring,
        limits: Sequence[int],
        *,
        bos: int,
        eos: int,
        given: Sequence[Sequence[int]],
        cancel: Cancel | None = None,
    ) -> None:
        self.step, self.state, self.rule, self.options, self.scoring = step, state, rule, options, scoring
        self.eos, self.cancel = eos, cancel
        self.limits_B = torch.tensor(limits)
        self.sentences = np.arange(len(limits))
        self.open_B = torch.ones(len(limits), dtype=torch.bool)
        self.going = len(limits)  # how many are open
        slots = rule.slots.total_BW.shape[1]
        self.tokens_K = torch.tensor([text[-1] if text else bos for text in given]).repeat_interleave(slots)
        self.history_KT = side_by_side(given).repeat_interleave(slots, 0) if options.no_repeat else None
        self.turns: list[Turn] = []
        self.lengths = np.zeros(len(limits), dtype=np.int64)
        self.endings: list[tuple[np.ndarray, tuple[np.ndarray, ...]]] = []

    def run(self) -> Walked:
        while True:
            self.advance()
            if not self.going:
                return self.walked()
            self.move()

    def advance(self) -> None:
        written = len(self.turns)
        last_B = self.limits_B <= written + 1
        if self.cancel is not None and self.cancel():
            last_B = torch.ones_like(last_B)
        logp_KV, self.state = self.step(self.tokens_K, self.state)
        logp_KV = allowed(logp_KV, written, last_B, self.history_KT, self.options, self.eos)
        choice = self.rule.choose(logp_KV, written, last_B, self.scoring.coverage(self.state))
        self.turns.append(Turn(self.sentences, choice.candidates, choice.column_BW))
        finishing_B = choice.done_B & self.open_B
        if finishing_B.any():
            self.finish(finishing_B)

    def finish(self, finishing_B: Tensor) -> None:
        """Note what these sentences have to offer; whatever their rows still do changes nothing."""
        self.open_B = self.open_B & ~finishing_B
        rows = finishing_B.numpy()
        self.going -= int(rows.sum())
        self.lengths[self.sentences[rows]] = len(self.turns)
        self.endings.append((self.sentences[rows], tuple(leaf.numpy()[rows] for leaf in self.rule.endings())))

    def move(self) -> None:
        """Give each slot the state of the row it continues; where enough sentences are done, only the others go on."""
        _, found, column_BW = self.turns[-1]
        sentences, before = len(found.slot_BC), len(self.tokens_K) // len(found.slot_BC)
        rows_BW = found.slot_BC.gather(1, column_BW) + torch.arange(sentences)[:, None] * before
        tokens_BW = found.token_BC.gather(1, column_BW)
        kept_B = None
        if self.going <= (1 - DROP_AT) * sentences:
            kept_B = self.open_B.nonzero().squeeze(1)
            rows_BW, tokens_BW = rows_BW[kept_B], tokens_BW[kept_B]
            self.drop(kept_B)
        self.tokens_K = tokens_BW.flatten()
        rows_K = rows_BW.flatten()
        if kept_B is not None or not torch.equal(rows_K, torch.arange(sentences * before)):
            self.state, self.history_KT = select((self.state, self.history_KT), rows_K, kept_B)
        if self.history_KT is not None:
            self.history_KT = torch.cat([self.history_KT, self.tokens_K[:, None]], 1)

    def drop(self, kept_B: Tensor) -> None:
        self.rule.keep(kept_B)
        self.sentences = self.sentences[kept_B.numpy()]
        self.limits_B = self.limits_B[kept_B]
        self.open_B = self.open_B[kept_B]

    def walked(self) -> Walked:
        shape = (len(self.lengths), max(leaves[0].shape[1] for _, leaves in self.endings))
        scores, steps, columns = np.full(shape, -math.inf), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for sentences, leaves in self.endings:
            for whole, part in zip((scores, steps, columns), leaves):
                whole[sentences, : part.shape[1]] = part
        return Walked(self.turns, self.lengths, scores, steps, columns)
