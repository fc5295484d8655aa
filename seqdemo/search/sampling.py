"""Sampling: one path per sample, drawn token by token."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.records import Scoring
from seqdemo.search.hypotheses import Ahead, Candidates, Choice, Endings, empty_slots, keep_sentences, seat
from seqdemo.search.rules import refuse_broken
from seqdemo.state import Logits, arrays, top

SURE = 1e-6  # tolerance for rounding when top-p compares a mass with p
BELOW_ONE = 1 - 1e-9  # keeps u * mass below the mass, so that a token of probability 0 is never drawn


def distribution(
    values_KV: Tensor, temperature: float, top_k: int, top_p: float, typical: float = 1.0, min_p: float = 0.0
) -> Tensor:
    """The distribution to draw from, q(y) = p(y)^(1/temperature) / Z, over the tokens that pass four filters in turn: the top_k
    most probable ones (0: all); the smallest set, most probable first, whose mass reaches top_p; those of at least min_p times
    the largest q; and the smallest set, those first whose surprisal -log q is nearest to the entropy of q, whose mass reaches
    `typical` (Meister et al. 2023)."""
    scores_KV = values_KV.to(torch.float64, copy=True)
    if temperature != 1:
        scores_KV.div_(temperature)
    if top_k:
        best_KC, token_KC = top(scores_KV, top_k)
        scores_KV = torch.full_like(scores_KV, -math.inf).scatter(1, token_KC, best_KC)
    if top_p < 1:
        sorted_KV, token_KV = scores_KV.sort(dim=1, descending=True, stable=True)
        mass_KV = sorted_KV.softmax(1)
        over_KV = mass_KV.cumsum(1) - mass_KV >= top_p - SURE
        over_KV[:, 0] = False
        scores_KV = scores_KV.scatter(1, token_KV, sorted_KV.masked_fill(over_KV, -math.inf))
    if min_p:
        scores_KV = scores_KV.masked_fill(scores_KV < scores_KV.amax(1, keepdim=True) + math.log(min_p), -math.inf)
    if typical < 1:
        scores_KV = nearest_to_entropy(scores_KV, typical)
    return scores_KV.softmax(1)


def nearest_to_entropy(scores_KV: Tensor, mass: float) -> Tensor:
    """The scores of the smallest set, nearest to the expected surprisal first, whose probability reaches `mass`."""
    logq_KV = scores_KV.log_softmax(1)
    q_KV = logq_KV.exp()
    entropy_K1 = -(q_KV * logq_KV).nansum(1, keepdim=True)
    order_KV = (-logq_KV - entropy_K1).abs().sort(dim=1, stable=True).indices
    sorted_KV = q_KV.gather(1, order_KV)
    over_KV = sorted_KV.cumsum(1) - sorted_KV >= mass - SURE
    over_KV[:, 0] = False
    return scores_KV.masked_fill(torch.zeros_like(over_KV).scatter(1, order_KV, over_KV), -math.inf)


def draw(probability_KV: Tensor, number_K: Tensor) -> Tensor:
    """The token at which the running sum of probabilities passes the row's number in [0, 1)."""
    mass_KV = probability_KV.cumsum(1)
    passed_K1 = torch.searchsorted(mass_KV, number_K[:, None] * mass_KV[:, -1:], right=True)
    return passed_K1.squeeze(1).clamp(max=probability_KV.shape[1] - 1)


def random_numbers(seed: int, samples: int, steps: int) -> Tensor:
    """Uniform in [0, 1), one row per sample. A sample's numbers depend only on the seed and the number of the sample, not on the
    batch or on further samples."""
    rows = [np.random.default_rng((seed, sample)).random(steps) for sample in range(samples)]
    return torch.from_numpy(np.stack(rows)) * BELOW_ONE


class Sample:
    """`samples` independent outputs per sentence, each drawn from the model's distribution as temperature, top-k and top-p
    modify it. The recorded log probabilities are the model's own, not the modified ones.

    * Every sentence uses the same random numbers, so its samples do not depend on the others of the batch.
    * A sample ends with <eos>, at the length limit, or where nothing can follow; in the latter cases it is unfinished.
    * All samples are returned, equal ones too, ranked by score. The tree holds one path per sample, and beside each drawn
      token the `shown` most probable ones.
    """

    within = 0

    def __init__(self, sentences: int, options: SearchOptions, longest: int, shown: int, scoring: Scoring, eos: int) -> None:
        self.options, self.shown, self.scoring, self.eos = options, shown, scoring, eos
        self.group = shown + 1
        self.slots = empty_slots(sentences, options.samples)
        self.number_ST = random_numbers(options.seed, options.samples, longest)

    def choose(
        self, logits: Logits, step: int, last_B: np.ndarray, coverage_K: np.ndarray | None, ahead: Ahead | None = None
    ) -> Choice:
        options = self.options
        shaped_by = (options.temperature, options.top_k, options.top_p, options.typical, options.min_p)
        probability_KV = distribution(logits.values_KV, *shaped_by)
        if probability_KV[:, 0].isnan().any():
            refuse_broken(logits)
        drawn_K = draw(probability_KV, self.number_ST[:, step].repeat(len(last_B)))
        found, column_BW = self._beside(logits, drawn_K)
        self.slots = seat(self.slots, found, column_BW, step, coverage_K, self.eos)
        return Choice(found, column_BW, last_B | self.slots.ended_BW.all(1))

    def _beside(self, logits: Logits, drawn_K: Tensor) -> tuple[Candidates, np.ndarray]:
        """The most probable tokens of each row, then the drawn one if it is not among them; and its column."""
        sentences, samples = self.slots.total_BW.shape
        drawn_K1 = drawn_K[:, None]
        listed_KC = torch.cat([top(logits.values_KV, self.shown)[1], drawn_K1], 1) if self.shown else drawn_K1
        token_KC, logp_KC = arrays((listed_KC, logits.values_KV.gather(1, listed_KC) - logits.total_K1))
        at_K1 = (token_KC == token_KC[:, -1:]).argmax(1)[:, None]
        ended_K1 = self.slots.ended_BW.reshape(-1, 1) | (logp_KC[:, -1:] == -math.inf)
        logp_KC[:, -1:][at_K1 < token_KC.shape[1] - 1] = -math.inf
        logp_KC[ended_K1[:, 0]] = 0.0
        group = self.group = logp_KC.shape[1]
        total_KC = self.slots.total_BW.reshape(-1, 1) + logp_KC
        slot_BC = np.arange(samples).repeat(group)[None].repeat(sentences, 0)
        listed = (token_KC, logp_KC, total_KC, ended_K1.repeat(group, 1))
        token_BC, logp_BC, total_BC, carried_BC = (leaf.reshape(sentences, -1) for leaf in listed)
        column_BW = at_K1.reshape(sentences, samples) + np.arange(samples) * group
        return Candidates(slot_BC, token_BC, logp_BC, total_BC, carried_BC), column_BW

    def keep(self, kept_N: np.ndarray) -> None:
        self.slots = keep_sentences(self.slots, kept_N)

    def endings(self) -> Endings:
        slots = self.slots
        return Endings(self.scoring.score(slots.total_BW, slots.step_BW + 1, slots.coverage_BW), slots.step_BW, slots.column_BW)
