"""The five scores, and one `attend` that masks, normalises and sums for all of them.

h is an encoder state, q the decoder's query. Keys are what a score makes of the encoder states once a sentence; queries
come as B sentences x K beams.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.errors import InputError
from seqdemo.products import tanh


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
        return query_BKH @ keys_BSA.transpose(1, 2)


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
    """Where not to look, B x 1 x S; None when every position is real. A source that is all padding is an error."""
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
