"""Sampling: one path a sample, drawn token by token."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.search.ranking import Scoring, top
from seqdemo.search.slots import Candidates, Choice, Endings, empty_slots, keep_sentences, seat

SURE = 1e-6  # top-p counts a set whose mass misses p by rounding alone as reaching it
BELOW_ONE = 1 - 1e-9  # keeps u * mass below the mass, so that a token of probability 0 is never drawn


def distribution(logp_KV: Tensor, temperature: float, top_k: int, top_p: float) -> Tensor:
    """What is drawn from: q(y) = p(y)^(1/temperature) / Z, over the top_k most probable tokens (0: all), and of these the
    smallest set, most probable first, whose mass reaches top_p."""
    scores_KV = logp_KV.double() / temperature
    if top_k:
        best_KC, token_KC = top(scores_KV, top_k)
        scores_KV = torch.full_like(scores_KV, -math.inf).scatter(1, token_KC, best_KC)
    if top_p < 1:
        sorted_KV, token_KV = scores_KV.sort(dim=1, descending=True, stable=True)
        mass_KV = sorted_KV.softmax(1)
        over_KV = mass_KV.cumsum(1) - mass_KV >= top_p - SURE
        over_KV[:, 0] = False
        scores_KV = scores_KV.scatter(1, token_KV, sorted_KV.masked_fill(over_KV, -math.inf))
    return scores_KV.softmax(1)


def draw(probability_KV: Tensor, number_K: Tensor) -> Tensor:
    """The token at which the running sum of probabilities passes the row's number in [0, 1)."""
    mass_KV = probability_KV.cumsum(1)
    passed_K1 = torch.searchsorted(mass_KV, number_K[:, None] * mass_KV[:, -1:], right=True)
    return passed_K1.squeeze(1).clamp(max=probability_KV.shape[1] - 1)


def random_numbers(seed: int, samples: int, steps: int) -> Tensor:
    """Uniform in [0, 1), one row a sample. A sample's numbers depend on the seed and on which sample it is, on nothing
    else: batch-mates and further samples change none of them."""
    rows = [np.random.default_rng((seed, sample)).random(steps) for sample in range(samples)]
    return torch.from_numpy(np.stack(rows)) * BELOW_ONE


class Sample:
    """`samples` independent outputs a sentence, each drawn from the model's distribution as temperature, top-k and top-p
    modify it. The recorded log probabilities are the model's own, not the modified ones.

    * Every sentence is drawn with the same random numbers, so what it gets does not depend on its batch-mates.
    * A sample ends with <eos>, at the length limit, or where nothing can follow; in the latter cases it is unfinished.
    * All samples come back, equal ones too, ranked by score. The tree holds one path a sample, and beside each drawn
      token the `shown` most probable ones.
    """

    within = 0

    def __init__(self, sentences: int, options: SearchOptions, longest: int, shown: int, scoring: Scoring, eos: int) -> None:
        self.options, self.shown, self.scoring, self.eos = options, shown, scoring, eos
        self.group = shown + 1
        self.slots = empty_slots(sentences, options.samples)
        self.number_ST = random_numbers(options.seed, options.samples, longest)

    def choose(self, logp_KV: Tensor, step: int, last_B: Tensor, coverage_K: Tensor | None) -> Choice:
        options = self.options
        probability_KV = distribution(logp_KV, options.temperature, options.top_k, options.top_p)
        drawn_K = draw(probability_KV, self.number_ST[:, step].repeat(len(last_B)))
        found, column_BW = self._beside(logp_KV, drawn_K)
        self.slots = seat(self.slots, found, column_BW, step, coverage_K, self.eos)
        return Choice(found, column_BW, last_B | self.slots.ended_BW.all(1))

    def _beside(self, logp_KV: Tensor, drawn_K: Tensor) -> tuple[Candidates, Tensor]:
        """The most probable tokens of each row, then the drawn one where it is not among them; and its column."""
        sentences, samples = self.slots.total_BW.shape
        shown_KC, token_KC = top(logp_KV, self.shown) if self.shown else (logp_KV[:, :0], drawn_K[:, None][:, :0])
        logp_K1 = logp_KV.gather(1, drawn_K[:, None])
        same_KC = torch.cat([token_KC == drawn_K[:, None], torch.ones_like(logp_K1, dtype=torch.bool)], 1)
        at_K1 = same_KC.int().argmax(1, keepdim=True)
        ended_K1 = self.slots.ended_BW.view(-1, 1) | (logp_K1 == -math.inf)
        extra_K1 = logp_K1.masked_fill(at_K1 < token_KC.shape[1], -math.inf)
        logp_KC = torch.cat([shown_KC, extra_K1], 1).masked_fill(ended_K1, 0.0)
        token_KC = torch.cat([token_KC, drawn_K[:, None]], 1)
        group = self.group = logp_KC.shape[1]
        total_KC = self.slots.total_BW.view(-1, 1) + logp_KC
        slot_BC = torch.arange(samples).repeat_interleave(group).expand(sentences, -1)
        by_sentence = (
            leaf.view(sentences, -1) for leaf in (token_KC, logp_KC, total_KC, ended_K1.expand(-1, group).contiguous())
        )
        return Candidates(slot_BC, *by_sentence), at_K1.view(sentences, samples) + torch.arange(samples) * group

    def keep(self, sentences_B: Tensor) -> None:
        self.slots = keep_sentences(self.slots, sentences_B)

    def endings(self) -> Endings:
        slots = self.slots
        return Endings(self.scoring.score(slots.total_BW, slots.step_BW + 1, slots.coverage_BW), slots.step_BW, slots.column_BW)
