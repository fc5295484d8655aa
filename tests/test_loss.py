"""The loss against torch's own cross-entropy, value and gradient."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from seqdemo.config import PAD
from training.tasks import loss as module
from training.tasks.loss import token_loss, unevenness


def by_torch(logits_BTV: Tensor, said_BT: Tensor, smoothing: float) -> Tensor:
    rows_KV = logits_BTV.flatten(0, 1).float()
    return F.cross_entropy(rows_KV, said_BT.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum")


def both(logits_BTV: Tensor, said_BT: Tensor, smoothing: float) -> list[tuple[Tensor, Tensor]]:
    found = []
    for loss in (token_loss, by_torch):
        leaf = logits_BTV.clone().requires_grad_()
        value = loss(leaf, said_BT, smoothing)
        (value / 7).backward()
        assert leaf.grad is not None
        found.append((value.detach(), leaf.grad))
    return found


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(2, 40),
    st.sampled_from([0.0, 0.1, 0.5]),
    st.floats(0.1, 60),
    st.integers(0, 99),
)
def test_value_and_gradient_are_those_of_cross_entropy(
    rows: int, steps: int, vocabulary: int, smoothing: float, scale: float, seed: int
) -> None:
    torch.manual_seed(seed)
    said_BT = torch.randint(0, vocabulary, (rows, steps))
    (value, slope), (wanted, wanted_slope) = both(scale * torch.randn(rows, steps, vocabulary), said_BT, smoothing)
    assert float(value) == pytest.approx(float(wanted), rel=2e-5, abs=1e-4)
    assert (slope - wanted_slope).abs().max() < 1e-6


def test_rows_are_taken_in_parts_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    logits_BTV, said_BT = torch.randn(5, 7, 30), torch.randint(0, 30, (5, 7))
    whole = both(logits_BTV, said_BT, 0.1)[0]
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 90)
    parts = both(logits_BTV, said_BT, 0.1)[0]
    assert torch.allclose(whole[0], parts[0]) and torch.equal(whole[1], parts[1])


def test_padding_counts_for_nothing() -> None:
    logits_BTV, said_BT = torch.randn(2, 3, 9), torch.tensor([[4, 5, PAD], [PAD, PAD, PAD]])
    value, slope = both(logits_BTV, said_BT, 0.1)[0]
    assert float(value) == pytest.approx(float(by_torch(logits_BTV[:1, :2], said_BT[:1, :2], 0.1)), rel=1e-6)
    assert not slope[0, 2].any() and not slope[1].any()


def test_half_precision_logits_get_a_gradient_of_their_kind() -> None:
    logits_BTV, said_BT = torch.randn(4, 6, 50).bfloat16(), torch.randint(1, 50, (4, 6))
    (value, slope), (wanted, wanted_slope) = both(logits_BTV, said_BT, 0.1)
    assert slope.dtype == torch.bfloat16 and float(value) == pytest.approx(float(wanted), rel=1e-5)
    assert (slope - wanted_slope).abs().max() < 1e-2 * wanted_slope.abs().max()  # rounded twice to 8 bits


def test_a_word_thought_impossible_costs_much_and_never_nan() -> None:
    logits_BTV = torch.tensor([[[300.0, -300.0, 0.0, 5.0]]])
    (value, slope), (wanted, _) = both(logits_BTV, torch.tensor([[1]]), 0.0)
    assert float(value) == float(wanted) == 600.0 and slope.isfinite().all()


def test_attention_is_even_when_every_state_got_its_share_by_the_end() -> None:
    said_BT = torch.tensor([[True, True, False]])
    moving, staying = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]), torch.tensor([[[1.0, 0.0]] * 3])
    assert float(unevenness(moving, said_BT)) == 0.0
    assert float(unevenness(staying, said_BT)) == pytest.approx(2.0)  # (2 - 1)^2 + (0 - 1)^2
