"""-log p of the target tokens, summed, with label smoothing.

loss = sum_t  -(1 - s) log p(y_t) - s / V sum_v log p(v);  d loss / d logits = p - (1 - s) [v = y_t] - s / V

The gradient is made in the forward pass, a few rows at a time while they lie in the cache: as separate passes over all of
rows x vocabulary, loss and gradient took a quarter of a training step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqdemo.config import PAD
from seqdemo.state import Seen

LOOKS = ("distribution", "cross", "drawn")  # the values of a step of hard attention
TINY = 1e-20  # below any weight that is ever drawn
NUMBERS_AT_ONCE = 2**18  # a megabyte of float32


class TokenLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits_KV: Tensor, said_K: Tensor, smoothing: float) -> Tensor:
        vocabulary, wide = logits_KV.shape[1], torch.float64 if logits_KV.dtype == torch.float64 else torch.float32
        gradient_KV = torch.empty_like(logits_KV)
        total = logits_KV.new_zeros((), dtype=torch.float64)
        rows = max(1, NUMBERS_AT_ONCE // vocabulary)
        for part_PV, said_P, found_PV in zip(logits_KV.split(rows), said_K.split(rows), gradient_KV.split(rows)):
            loss_P, slope_PV = loss_and_slope(part_PV.to(wide), said_P[:, None], smoothing)
            real_P = said_P != PAD
            total += loss_P.masked_fill(~real_P, 0.0).sum(dtype=torch.float64)
            found_PV.copy_(slope_PV.mul_(real_P[:, None]))
        ctx.save_for_backward(gradient_KV)
        return total.to(wide)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        (gradient_KV,) = ctx.saved_tensors
        return gradient_KV * slope.to(gradient_KV.dtype), None, None


def loss_and_slope(logits_PV: Tensor, said_P1: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss of each row, and its derivative by the logits."""
    even = smoothing / logits_PV.shape[1]
    p_PV = logits_PV.softmax(1)
    best_P1, at_P1 = logits_PV.max(1, keepdim=True)
    log_sum_P1 = best_P1 - p_PV.gather(1, at_P1).log()
    said_logp_P1 = logits_PV.gather(1, said_P1) - log_sum_P1
    every_logp_P1 = logits_PV.sum(1, keepdim=True) - logits_PV.shape[1] * log_sum_P1
    loss_P1 = -(1 - smoothing) * said_logp_P1 - even * every_logp_P1
    slope_PV = p_PV.sub_(even).scatter_add_(1, said_P1, torch.full_like(best_P1, smoothing - 1))
    return loss_P1.squeeze(1), slope_PV


def token_loss(logits_BTV: Tensor, target_out_BT: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The sum over real tokens."""
    loss: Tensor = TokenLoss.apply(logits_BTV.flatten(0, 1), target_out_BT.flatten(), label_smoothing)  # type: ignore[no-untyped-call]
    return loss


def looks(seen: Seen) -> tuple[Tensor, Tensor, Tensor]:
    """The weights (B, T, S), the chosen positions (one-hot, or the weights themselves), and whether they were drawn (B, T)."""
    return seen["decoder.0.distribution.0"], seen["decoder.0.cross.0"], seen["decoder.0.drawn"]


def guessing(weights_BTS: Tensor, chosen_BTS: Tensor, drawn_BT: Tensor, return_BT: Tensor) -> Tensor:
    """REINFORCE: - sum_t R_t log a_t(j_t) over the steps whose position j_t was drawn from the weights a_t. The gradient is, on
    average, that of the expected log probability of the words (Xu et al. 2015, with the words after the draw alone)."""
    return -(return_BT * looked_logp(weights_BTS, chosen_BTS, drawn_BT)).sum()


def looked_logp(weights_BTS: Tensor, chosen_BTS: Tensor, drawn_BT: Tensor) -> Tensor:
    """log a_t(j_t) where the position j_t was drawn, 0 elsewhere."""
    return (weights_BTS.clamp_min(TINY).log() * chosen_BTS.detach()).sum(-1) * drawn_BT


def returns(logp_BT: Tensor, baseline: float, said_BT: Tensor) -> Tensor:
    """R_t = sum_{t' >= t} (log p(y_t') - b): how much better than usual it went on from there."""
    better_BT = (logp_BT - baseline) * said_BT
    return better_BT.flip(1).cumsum(1).flip(1)


def entropy(weights_BTS: Tensor, said_BT: Tensor) -> Tensor:
    """- sum_j a_tj log a_tj, summed over real steps."""
    return -(weights_BTS * weights_BTS.clamp_min(TINY).log()).sum(2).mul(said_BT).sum()


def said_logp(logits_BTV: Tensor, target_out_BT: Tensor) -> Tensor:
    """log p(y_t), without a gradient."""
    logits_BTV = logits_BTV.detach()
    return logits_BTV.gather(2, target_out_BT[..., None]).squeeze(2).float() - logits_BTV.float().logsumexp(2)


def unevenness(weights_BTS: Tensor, said_BT: Tensor) -> Tensor:
    """sum_j (sum_t a_tj - T / S)^2, summed over the batch: 0 where every state got an equal share of attention over time."""
    attended_BS = (weights_BTS * said_BT[:, :, None]).sum(1)
    share_B1 = said_BT.sum(1, keepdim=True) / weights_BTS.shape[2]
    return (attended_BS - share_B1).square().sum()
