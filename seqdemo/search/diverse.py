"""Beams whose candidates are not ranked by log probability alone: groups and siblings that differ, and a beam that samples."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqdemo.search.beam import candidates, top
from seqdemo.search.hypotheses import Candidates, Slots, of_each
from seqdemo.search.rules import Ahead
from seqdemo.state import Logits


def ranked_otherwise(logits: Logits, changes: Logits, slots: Slots, count: int) -> Candidates:
    """The best candidates, ranked by `changes` added to the ranking value of their hypotheses. Their log probabilities are those
    of `logits`."""
    found = candidates(changes, slots._replace(total_BW=slots.ranked_by_BW), count)
    value_BN = logits.values_KV.numpy().reshape(len(found.slot_BC), -1)
    logp_BC = of_each(value_BN, found.slot_BC * logits.values_KV.shape[1] + found.token_BC)
    logp_BC = logp_BC - of_each(logits.total_K1.numpy().reshape(slots.total_BW.shape), found.slot_BC)
    logp_BC[found.total_BC == -math.inf] = -math.inf
    if found.carried_BC is not None:
        logp_BC[found.carried_BC & (found.total_BC > -math.inf)] = 0.0
    total_BC = of_each(slots.total_BW, found.slot_BC) + logp_BC
    return found._replace(logp_BC=logp_BC, total_BC=total_BC, rank_BC=found.total_BC)


class Siblings:
    """Diverse siblings (Li et al. 2016): the k-th best continuation of a hypothesis pays k * rate, from the second step on.
    What was paid stays paid, also in the score."""

    groups = 1

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates:
        values_KV = logits.values_KV
        if (slots.step_BW >= 0).any():
            value_KC, token_KC = top(values_KV, count)
            value_KC = value_KC - self.rate * torch.arange(1, value_KC.shape[1] + 1)
            values_KV = torch.full_like(values_KV, -math.inf).scatter(1, token_KC, value_KC)
        return ranked_otherwise(logits, Logits(values_KV, logits.total_K1), slots, count)


class Groups:
    """Diverse beam search (Vijayakumar et al. 2016): groups of the beam choose one after the other, and a token costs
    `strength` for each time that it is among the best candidates of an earlier group at this step, as many as a group holds.
    What was paid stays paid, also in the score. The columns of a group stand together."""

    def __init__(self, groups: int, width: int, strength: float) -> None:
        self.groups, self.each, self.strength = groups, width // groups, strength

    def __call__(self, logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates:
        sentences, held = slots.total_BW.shape
        values_BGWV = logits.values_KV.reshape(sentences, self.groups, held // self.groups, -1)
        total_BGW1 = logits.total_K1.reshape(*values_BGWV.shape[:3], 1)
        said_BV = values_BGWV.new_zeros(sentences, values_BGWV.shape[3])
        parts = []
        for group in range(self.groups):
            own = slice(group * values_BGWV.shape[2], (group + 1) * values_BGWV.shape[2])
            values_BWV, total_K1 = values_BGWV[:, group], total_BGW1[:, group].reshape(-1, 1)
            charged_KV = (values_BWV - self.strength * said_BV[:, None]).flatten(0, 1)
            own_slots = Slots._make(None if leaf is None else leaf[:, own] for leaf in slots)
            own_logits = Logits(values_BWV.flatten(0, 1), total_K1)
            found = ranked_otherwise(own_logits, Logits(charged_KV, total_K1), own_slots, count // self.groups)
            best, says = (torch.from_numpy(part[:, : self.each]) for part in (found.token_BC, fresh(found)))
            said_BV.scatter_add_(1, best, says.to(said_BV.dtype))
            parts.append(widened(found._replace(slot_BC=found.slot_BC + own.start), count // self.groups, group))
        return Candidates(*(np.concatenate(leaves, 1) for leaves in zip(*parts)))


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


class Perturbed:
    """Stochastic beam search (Kool et al. 2019): the beam holds the outputs of highest perturbed log probability G, which are
    distinct samples without replacement. Of the root G ~ Gumbel(0); the children c of a hypothesis h, of log probability l_c,

        g_c ~ Gumbel(l_c),   Z = max_c g_c,   G_c = -log(exp(-G_h) - exp(-Z) + exp(-g_c)),

    which are Gumbels of theirs under the condition that the largest is G_h. Where rules forbid tokens, the rest share what
    is left, as in sampling. Every sentence is drawn with the same random numbers.
    """

    groups = 1

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates:
        sentences, width = slots.total_BW.shape
        total_K1, rank_K1 = (torch.from_numpy(part.reshape(-1, 1)) for part in (slots.total_BW, slots.ranked_by_BW))
        logp_KV = (logits.values_KV - logits.total_K1).double() + total_K1
        step = int(slots.step_BW.max()) + 1
        noise_WV = torch.from_numpy(np.random.default_rng((self.seed, step)).gumbel(size=(width, logp_KV.shape[1])))
        drawn_KV = logp_KV + noise_WV.repeat(sentences, 1)
        if slots.rank_BW is not None:
            drawn_KV = under_maximum(drawn_KV, rank_K1)
            drawn_KV = drawn_KV.masked_fill(logp_KV == -math.inf, -math.inf)
        more_KV = drawn_KV - rank_K1.clamp(min=torch.finfo(torch.float64).min)
        return ranked_otherwise(logits, Logits(more_KV, torch.zeros_like(more_KV[:, :1])), slots, count)


def under_maximum(drawn_KV: Tensor, largest_K1: Tensor) -> Tensor:
    """G = -log(exp(-largest) - exp(-Z) + exp(-g)), in the form that does not overflow (appendix B.3 of the paper)."""
    below_KV = drawn_KV - drawn_KV.amax(1, keepdim=True)  # g - Z
    v_KV = largest_K1 - drawn_KV + torch.log1p(-below_KV.exp())
    return largest_K1 - v_KV.clamp(min=0) - torch.log1p((-v_KV.abs()).exp())
