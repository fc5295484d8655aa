"""How candidates and hypotheses are ranked: a top-k that settles ties, and the score of a finished hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from seqdemo.config import SearchOptions, length_penalty
from seqdemo.errors import InputError

BLOCKS = range(64, 129)  # numbers a block
MANY = 2**17  # from so many numbers on, a top-k by blocks is the quicker one
LEAST = torch.finfo(torch.float32).tiny  # stands for an attention sum of exactly 0, whose logarithm would rank nothing


def top(scores_KV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row, largest first, equal ones by lower index; `torch.topk` promises no order among them.

    One more than asked is looked at: only where it equals the last one taken is the choice itself contested, and only
    those rows are sorted in full.
    """
    width = scores_KV.shape[1]
    count = min(count, width)
    values_KC, places_KC = largest(scores_KV, min(count + 1, width))
    if (values_KC[:, 1:] == values_KC[:, :-1]).any():
        values_KC, places_KC = _settle_ties(scores_KV, values_KC, places_KC, count)
    return values_KC[:, :count], places_KC[:, :count]


def largest(scores_KV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`torch.topk`; over many rows of many numbers in two thirds of its time, by looking only into the `count` blocks of
    each row with the largest maxima: the others hold none that these do not match."""
    rows, width = scores_KV.shape
    block = block_of(width) if scores_KV.numel() >= MANY and scores_KV.is_contiguous() else 0
    blocks = width // block if block else 0
    if blocks < 4 * count:
        return scores_KV.topk(count, dim=1)
    blocks_NM = scores_KV.view(-1, block)
    block_KC = blocks_NM.amax(1).view(rows, blocks).topk(count, dim=1, sorted=False).indices
    first_K1 = torch.arange(rows)[:, None] * blocks
    values_KC, at_KC = blocks_NM.index_select(0, (block_KC + first_K1).flatten()).view(rows, -1).topk(count, dim=1)
    return values_KC, block_KC.gather(1, at_KC.div(block, rounding_mode="floor")) * block + at_KC % block


@cache
def block_of(width: int) -> int:
    """Into what a row is cut: without rest, and so that hardly any number is left over where 32 are compared at once."""
    return min((size for size in BLOCKS if width % size == 0), key=lambda size: size % 32, default=0)


def _settle_ties(scores_KV: Tensor, values_KC: Tensor, places_KC: Tensor, count: int) -> tuple[Tensor, Tensor]:
    places_KC, order_KC = places_KC.sort(dim=1)
    values_KC, by_value_KC = values_KC.gather(1, order_KC).sort(dim=1, descending=True, stable=True)
    places_KC = places_KC.gather(1, by_value_KC)
    if values_KC.shape[1] > count:
        contested_K = (values_KC[:, count - 1] == values_KC[:, count]) & values_KC[:, count].isfinite()
        rows = contested_K.nonzero().squeeze(1)
        if len(rows):
            places_KC[rows, :count] = scores_KV[rows].sort(dim=1, descending=True, stable=True).indices[:, :count]
    return values_KC, places_KC


@dataclass(frozen=True)
class Scoring:
    """score(y) = sum_t log p(y_t) / penalty(n) + coverage(y), with n = |y| counting <eos> when present and never <bos>.

    penalty: 1 | n^alpha | ((5 + n) / 6)^alpha; coverage(y) = weight * sum_j log min(1, sum_t a_tj) over the real source
    positions j, never above 0.
    """

    norm: str
    alpha: float
    weight: float

    @staticmethod
    def of(options: SearchOptions, state: Any) -> Scoring:
        if options.coverage > 0 and getattr(state, "attended_KS", None) is None:
            raise InputError("The coverage penalty needs a model with attention; set the coverage to 0 for this one.")
        return Scoring(options.length_norm, options.alpha, options.coverage)

    def penalty(self, length: Any) -> Any:
        """Of one token at least: what has been cut before its first is not divided by nothing."""
        length = length.double().clamp(min=1.0) if isinstance(length, Tensor) else max(float(length), 1.0)
        return length_penalty(length, self.norm, self.alpha)

    def score(self, total: Any, length: Any, coverage: Any = 0.0) -> Any:
        return total / self.penalty(length) + coverage

    def reach(self, total: Any, shortest: Any, longest: Any) -> Any:
        """No hypothesis that continues one of this total and ends between the two lengths can score higher: log
        probabilities only lower the total, coverage is at most 0, and the penalty is monotone in the length."""
        ends = total / self.penalty(shortest), total / self.penalty(longest)
        return torch.maximum(*ends) if isinstance(total, Tensor) else max(ends)

    def coverage(self, state: Any) -> Tensor | None:
        """weight * sum_j log min(1, attended_j) of every row; None where it plays no part."""
        if not self.weight:
            return None
        attended_KS = state.attended_KS.double().clamp(LEAST, 1.0).log()
        memory = getattr(state, "memory", None)
        if memory is not None:
            mask_BS = memory.mask_BS
            mask_KS = mask_BS.repeat_interleave(len(attended_KS) // len(mask_BS), dim=0)
            attended_KS = attended_KS.masked_fill(~mask_KS, 0.0)
        coverage_K: Tensor = self.weight * attended_KS.sum(1)
        return coverage_K
