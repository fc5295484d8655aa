"""Attention: the five scores, one `attend` that masks, normalises and sums for all of them, and how a step consults the edits.

h is an encoder state, q the decoder's query. Keys are what a score makes of the encoder states once per sentence; queries
come as B sentences x K beams, N is the number of heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.edits import AttentionBlend, AttentionDraw, AttentionRow, ClampGate, Edit
from seqdemo.errors import InputError
from seqdemo.network.cells import Ask
from seqdemo.network.packed import tanh


class Score(nn.Module):
    def __init__(self, states: int, query: int, size: int) -> None:
        super().__init__()
        self.size = size

    def keys(self, states_BSH: Tensor) -> Tensor:
        return states_BSH

    def forward(self, query_BKH: Tensor, keys_BSA: Tensor) -> Tensor:
        raise NotImplementedError


class Dot(Score):
    """q . h"""

    def forward(self, query_BKH: Tensor, keys_BSA: Tensor) -> Tensor:
        return torch.bmm(query_BKH, keys_BSA.transpose(1, 2))


class Bilinear(Dot):
    """q W h"""

    def __init__(self, states: int, query: int, size: int) -> None:
        super().__init__(states, query, size)
        self.W = nn.Linear(states, query, bias=False)

    def keys(self, states_BSH: Tensor) -> Tensor:
        return self.W(states_BSH)  # type: ignore[no-any-return]


class ScaledDot(Score):
    """(W h) . (U q) / sqrt(d)"""

    def __init__(self, states: int, query: int, size: int) -> None:
        super().__init__(states, query, size)
        self.W = nn.Linear(states, size, bias=False)
        self.U = nn.Linear(query, size, bias=False)

    def keys(self, states_BSH: Tensor) -> Tensor:
        return self.W(states_BSH)  # type: ignore[no-any-return]

    def forward(self, query_BKH: Tensor, keys_BSA: Tensor) -> Tensor:
        return self.U(query_BKH) @ keys_BSA.transpose(1, 2) / math.sqrt(self.size)  # type: ignore[no-any-return]


class Additive(Score):
    """v . tanh(U q + W h)"""

    def __init__(self, states: int, query: int, size: int) -> None:
        super().__init__(states, query, size)
        self.W = nn.Linear(states, size, bias=False)
        self.U = nn.Linear(query, size)
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, states_BSH: Tensor) -> Tensor:
        return self.W(states_BSH)  # type: ignore[no-any-return]

    def forward(self, query_BKH: Tensor, keys_BSA: Tensor) -> Tensor:
        return self.v(tanh(self.U(query_BKH)[:, :, None] + keys_BSA[:, None])).squeeze(3)  # type: ignore[no-any-return]


class KeysQueries(Score):
    """sigma(W_k h) . sigma(W_q s), sigma = tanh"""

    def __init__(self, states: int, query: int, size: int) -> None:
        super().__init__(states, query, size)
        self.W_k = nn.Linear(states, size)
        self.W_q = nn.Linear(query, size)

    def keys(self, states_BSH: Tensor) -> Tensor:
        return tanh(self.W_k(states_BSH))

    def forward(self, query_BKH: Tensor, keys_BSA: Tensor) -> Tensor:
        return tanh(self.W_q(query_BKH)) @ keys_BSA.transpose(1, 2)


SCORES: dict[str, type[Score]] = {
    "dot": Dot,
    "scaled-dot": ScaledDot,
    "bilinear": Bilinear,
    "additive": Additive,
    "keys-queries": KeysQueries,
}


def padding(mask_BS: Tensor) -> Tensor | None:
    """The padded positions, B x 1 x S; None if there are none. A source that is all padding is refused."""
    if bool(mask_BS.all()):
        return None
    if not bool(mask_BS.any(1).all()):
        raise InputError("There is nothing to attend to: a source without a single real position.")
    return ~mask_BS[:, None]


def attend(
    scores_BKS: Tensor, padding_B1S: Tensor | None, states_BSH: Tensor, edit: Callable[[Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """alpha_j = softmax_j(e_j);  c = sum_j alpha_j h_j.  Padding gets exactly 0."""
    if padding_B1S is not None:
        scores_BKS = scores_BKS.masked_fill(padding_B1S, -math.inf)
    weights_BKS = F.softmax(scores_BKS, dim=2)
    if edit:
        weights_BKS = edit(weights_BKS)
    return weights_BKS, torch.bmm(weights_BKS.to(states_BSH.dtype), states_BSH)


def likeliest(weights_KS: Tensor) -> Tensor:
    """Hard attention: 1 at the heaviest position, 0 elsewhere."""
    return F.one_hot(weights_KS.argmax(1), weights_KS.shape[1]).to(weights_KS.dtype)


def drawn(weights_KS: Tensor, number_K: Tensor) -> Tensor:
    """1 at the position where the running sum of the weights passes the row's number in [0, 1)."""
    mass_KS = weights_KS.double().cumsum(1)
    passed_K1 = torch.searchsorted(mass_KS, number_K[:, None] * mass_KS[:, -1:], right=True)
    return F.one_hot(passed_K1.squeeze(1).clamp(max=weights_KS.shape[1] - 1), weights_KS.shape[1]).to(weights_KS.dtype)


def half_drawn(weights_KS: Tensor) -> tuple[Tensor, Tensor]:
    """For training: half of the rows, chosen at random, look at one position drawn by their weights, the others at all, as soft
    attention does (Xu et al. 2015). Returns the rows of attention, and which of them were drawn."""
    rows_K = torch.rand(len(weights_KS), device=weights_KS.device) < 0.5
    position_K = torch.multinomial(weights_KS.detach().float(), 1).squeeze(1)
    one_KS = F.one_hot(position_K, weights_KS.shape[1]).to(weights_KS.dtype)
    return torch.where(rows_K[:, None], one_KS, weights_KS), rows_K


def at(position_K: Tensor, positions: tuple[int, ...] | None) -> Tensor:
    """Which rows stand at one of the positions (None: all)."""
    if positions is None:
        return torch.ones_like(position_K, dtype=torch.bool)
    return torch.isin(position_K, torch.tensor(positions, dtype=torch.long))


def clamped(value_KH: Tensor, edit: ClampGate, rows_K: Tensor) -> Tensor:
    assert not isinstance(edit.value, str)
    chosen_H = torch.ones(value_KH.shape[1], dtype=torch.bool)
    if edit.units is not None:
        chosen_H.zero_()[list(edit.units)] = True
    held = torch.tensor(edit.value, dtype=value_KH.dtype)
    return torch.where(rows_K[:, None] & chosen_H, held, value_KH)


def felt(edit: Edit) -> bool:
    """Whether the edit can change a step: it acts at some position, on some unit, by some amount."""
    if isinstance(edit, AttentionBlend):
        return bool(edit.factor) and edit.positions != ()
    if isinstance(edit, ClampGate):
        return () not in (edit.units, edit.positions)
    return isinstance(edit, (AttentionRow, AttentionDraw))


def edited(what_if: WhatIf, mask_BS: Tensor, position_K: Tensor, weights_BKS: Tensor) -> Tensor:
    """The weights of a network whose attention has one layer and one head."""
    return what_if.attention(0, weights_BKS[:, :, None], mask_BS, position_K).squeeze(2)


class WhatIf:
    """The edits of a run that act inside a step: attention rows, blends and clamps. `held_BN` says which edit applies to which
    row of the batch; without it, all apply to all rows. Clamps to 'mean' must be numbers."""

    def __init__(self, edits: Sequence[Edit], held_BN: Tensor | None = None) -> None:
        self.edits = [(edit, None if held_BN is None else held_BN[:, n]) for n, edit in enumerate(edits) if felt(edit)]
        if any(isinstance(edit, ClampGate) and edit.value == "mean" for edit, _ in self.edits):
            raise InputError(
                "A gate held at its mean needs an output for the mean: call `resolve` on the edits, or give numbers."
            )

    def __bool__(self) -> bool:
        return bool(self.edits)

    def cell(self, part: str, layer: int, direction: str = "forward") -> Callable[[Tensor], Ask] | None:
        """The what-if of this cell's terms, a function of the position of every row; None if no edit concerns it."""
        clamps = [
            (edit, held_B)
            for edit, held_B in self.edits
            if isinstance(edit, ClampGate) and (edit.part, edit.layer, edit.direction) == (part, layer, direction)
        ]

        def ask_at(position_K: Tensor) -> Ask:
            def held(name: str, value_KH: Tensor) -> Tensor:
                for edit, held_B in clamps:
                    if edit.gate == name:
                        value_KH = clamped(value_KH, edit, rows(at(position_K, edit.positions), held_B))
                return value_KH

            return held

        return ask_at if clamps else None

    def attention(self, layer: int, weights_BKNS: Tensor, mask_BS: Tensor, position_K: Tensor) -> Tensor:
        """The weights of a layer's heads: first the blends, then the rows that replace the outcome."""
        for edit, held_B in self.edits:
            if isinstance(edit, AttentionBlend) and edit.towards != "nothing":
                goal_B11S = goal(edit.towards, mask_BS).to(weights_BKNS.dtype)[:, None, None]
                moved = torch.lerp(weights_BKNS, goal_B11S.expand_as(weights_BKNS), float(edit.factor))
                where = heads(edit, layer, rows(at(position_K, edit.positions), held_B), weights_BKNS)
                weights_BKNS = torch.where(where, moved, weights_BKNS)
        for edit, held_B in self.edits:
            if isinstance(edit, AttentionRow):
                given_S = weights_BKNS.new_zeros(weights_BKNS.shape[3])
                given_S[: len(edit.weights)] = as_row(edit.weights)
                where = heads(edit, layer, rows(position_K == edit.position, held_B), weights_BKNS)
                weights_BKNS = torch.where(where, given_S, weights_BKNS)
        return weights_BKNS

    def one_position(self, weights_KS: Tensor, position_K: Tensor) -> Tensor:
        """Of hard attention: the heaviest position, or the one that a seed draws for this step of the output."""
        chosen_KS = likeliest(weights_KS)
        for edit, held_B in self.edits:
            if isinstance(edit, AttentionDraw):
                number = {step: np.random.default_rng((edit.seed, step)).random() for step in set(position_K.tolist())}
                number_K = torch.tensor([number[step] for step in position_K.tolist()], dtype=torch.float64)
                where_K = rows(torch.ones_like(position_K, dtype=torch.bool), held_B)
                chosen_KS = torch.where(where_K[:, None], drawn(weights_KS, number_K), chosen_KS)
        return chosen_KS

    def context(self, layer: int, context_BKNH: Tensor, position_K: Tensor) -> Tensor:
        """The context of a layer's heads, scaled by the blends towards nothing."""
        for edit, held_B in self.edits:
            if isinstance(edit, AttentionBlend) and edit.towards == "nothing":
                where = heads(edit, layer, rows(at(position_K, edit.positions), held_B), context_BKNH)
                context_BKNH = torch.where(where, context_BKNH * (1 - edit.factor), context_BKNH)
        return context_BKNH


def what_if_of(edits: Sequence[Edit], held_BN: Tensor | None = None) -> WhatIf | None:
    """The what-if of these edits; None if none of them acts inside a step."""
    asked = WhatIf(edits, held_BN)
    return asked if asked else None


def as_row(weights: Sequence[float]) -> Tensor:
    """These weights as a row that sums to 1 as exactly as float32 can: what rounding leaves over goes to the largest."""
    exact_S = torch.tensor(weights, dtype=torch.float64)
    row_S = exact_S.div(exact_S.sum()).float()
    row_S[row_S.argmax()] += 1 - row_S.double().sum()
    return row_S


def rows(there_K: Tensor, held_B: Tensor | None) -> Tensor:
    """Which of the rows at the position of an edit it applies to."""
    return there_K if held_B is None else there_K & held_B.repeat_interleave(len(there_K) // len(held_B))


def heads(edit: AttentionRow | AttentionBlend, layer: int, rows_K: Tensor, like_BKNX: Tensor) -> Tensor:
    """The heads of these rows that the edit changes (B, K, N, 1)."""
    meant_N = torch.full((like_BKNX.shape[2],), edit.layer in (None, layer))
    if edit.head is not None:
        meant_N &= torch.arange(len(meant_N)) == edit.head
    return (rows_K.view(*like_BKNX.shape[:2], 1) & meant_N)[..., None]


def goal(towards: str, mask_BS: Tensor) -> Tensor:
    """The row that a blend moves to: equal weights at all real positions, or all weight on the last."""
    if towards == "uniform":
        return mask_BS / mask_BS.sum(1, keepdim=True)
    return torch.nn.functional.one_hot(mask_BS.sum(1) - 1, mask_BS.shape[1])
