"""Scores against their formulas, attention against torch's, and what masks and edits do."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from seqdemo.config import SCORE_NAMES
from seqdemo.errors import InputError
from seqdemo.network.attention import SCORES, ScaledDot, Score, attend, padding
from tests.small_models import stir

STATES, QUERY, SIZE = 6, 8, 5


def new_score(name: str) -> Score:
    score = SCORES[name](QUERY if name == "dot" else STATES, QUERY, SIZE).double()
    stir(score)
    return score


def numbers(score: Score) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy() for name, value in score.named_parameters()}


Formula = Callable[[dict[str, np.ndarray], np.ndarray, np.ndarray], float]
FORMULAS: dict[str, Formula] = {
    "dot": lambda w, q, h: q @ h,
    "bilinear": lambda w, q, h: q @ w["W.weight"] @ h,
    "scaled-dot": lambda w, q, h: (w["W.weight"] @ h) @ (w["U.weight"] @ q) / math.sqrt(SIZE),
    "additive": lambda w, q, h: float(w["v.weight"][0] @ np.tanh(w["U.weight"] @ q + w["U.bias"] + w["W.weight"] @ h)),
    "keys-queries": lambda w, q, h: np.tanh(w["W_k.weight"] @ h + w["W_k.bias"]) @ np.tanh(w["W_q.weight"] @ q + w["W_q.bias"]),
}


def test_every_named_score_exists_and_has_its_formula_here() -> None:
    assert tuple(SCORES) == SCORE_NAMES and set(FORMULAS) == set(SCORES)


@pytest.mark.parametrize("name", SCORES)
def test_a_score_is_its_formula(name: str) -> None:
    score = new_score(name)
    query_BKH = torch.randn(2, 3, QUERY, dtype=torch.float64)
    states_BSH = torch.randn(2, 4, QUERY if name == "dot" else STATES, dtype=torch.float64)
    with torch.no_grad():
        found = score(query_BKH, score.keys(states_BSH))
    assert found.shape == (2, 3, 4)
    for b, k, s in np.ndindex(2, 3, 4):
        wanted = FORMULAS[name](numbers(score), query_BKH[b, k].numpy(), states_BSH[b, s].numpy())
        assert abs(float(found[b, k, s]) - wanted) < 1e-12


@pytest.mark.parametrize("name", SCORES)
def test_many_queries_at_once_score_as_one_by_one_in_float32(name: str) -> None:
    score = SCORES[name](64, 64, 64)
    stir(score)
    query_BKH, states_BSH = torch.randn(4, 5, 64), torch.randn(4, 7, 64)
    with torch.no_grad():
        keys_BSA = score.keys(states_BSH)
        together = score(query_BKH, keys_BSA)
        alone = torch.cat([score(query_BKH[:, k : k + 1], keys_BSA) for k in range(5)], 1)
    assert (together - alone).abs().max() < 1e-4  # the scores themselves reach hundreds


def mask_of(lengths: list[int]) -> Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("lengths", [[7, 3, 1], [5, 5, 5]], ids=["padded", "full"])
def test_scaled_dot_attention_equals_torchs(lengths: list[int], dtype: torch.dtype) -> None:
    score = ScaledDot(STATES, QUERY, SIZE).to(dtype)
    query_BKH, states_BSH = torch.randn(3, 4, QUERY, dtype=dtype), torch.randn(3, max(lengths), STATES, dtype=dtype)
    mask_BS = mask_of(lengths)
    keys_BSA = score.keys(states_BSH)
    weights_BKS, context_BKH = attend(score(query_BKH, keys_BSA), padding(mask_BS), states_BSH)
    theirs = F.scaled_dot_product_attention(score.U(query_BKH), keys_BSA, states_BSH, attn_mask=mask_BS[:, None])
    assert (context_BKH - theirs).abs().max() < 2e-6
    assert torch.equal(weights_BKS == 0, ~mask_BS[:, None].expand_as(weights_BKS))


def test_a_source_of_padding_alone_is_an_error_and_not_nan() -> None:
    mask_BS = torch.tensor([[True, True], [False, False]])
    with pytest.raises(InputError, match="nothing to attend to"):
        padding(mask_BS)
    assert padding(torch.ones(2, 3, dtype=torch.bool)) is None


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.floats(0.01, 30), st.integers(0, 2**16))
def test_rows_sum_to_1_lie_in_their_range_and_leave_padding_at_0(lengths: list[int], scale: float, seed: int) -> None:
    torch.manual_seed(seed)
    mask_BS = mask_of(lengths)
    states_BSH = torch.randn(len(lengths), max(lengths), STATES)
    weights_BKS, context_BKH = attend(scale * torch.randn(len(lengths), 3, max(lengths)), padding(mask_BS), states_BSH)
    assert (weights_BKS.sum(2) - 1).abs().max() < 1e-6
    assert weights_BKS.min() >= 0 and weights_BKS.max() <= 1 + 1e-6
    assert not weights_BKS[~mask_BS[:, None].expand_as(weights_BKS)].any()
    for row, length in enumerate(lengths):
        real_SH = states_BSH[row, :length]
        assert (context_BKH[row] <= real_SH.amax(0) + 1e-5).all() and (context_BKH[row] >= real_SH.amin(0) - 1e-5).all()


@pytest.mark.parametrize("name", SCORES)
def test_attention_treats_the_states_as_a_set(name: str) -> None:
    score, order = new_score(name), torch.tensor([3, 0, 4, 1, 2])
    query_BKH = torch.randn(2, 3, QUERY, dtype=torch.float64)
    states_BSH = torch.randn(2, 5, QUERY if name == "dot" else STATES, dtype=torch.float64)

    def look(states_BSH: Tensor) -> tuple[Tensor, Tensor]:
        return attend(score(query_BKH, score.keys(states_BSH)), None, states_BSH)

    (weights, context), (shuffled, same) = look(states_BSH), look(states_BSH[:, order])
    assert (weights[:, :, order] - shuffled).abs().max() < 1e-12 and (context - same).abs().max() < 1e-12


def test_an_edit_replaces_the_row_that_the_context_is_made_of() -> None:
    states_BSH, scores_BKS = torch.randn(1, 3, 2), torch.randn(1, 2, 3)
    last = torch.tensor([0.0, 0.0, 1.0]).expand(1, 2, 3)
    weights_BKS, context_BKH = attend(scores_BKS, None, states_BSH, lambda _: last)
    assert torch.equal(weights_BKS, last) and torch.equal(context_BKH, states_BSH[:, 2:].expand(1, 2, 2))
    untouched, same = attend(scores_BKS, None, states_BSH), attend(scores_BKS, None, states_BSH, lambda weights: weights)
    assert all(torch.equal(before, after) for before, after in zip(untouched, same))
