"""Packed weights and the fast tanh against torch's own."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from seqdemo import products
from seqdemo.cells import CELLS
from seqdemo.model import Seq2Seq, prepared
from seqdemo.products import Packed, packable, tanh, twin
from tests.small_models import sentences, small

packing = pytest.mark.skipif(not packable(), reason="this torch cannot pack weights; parameters serve as they are")


@packing
@settings(max_examples=60)
@given(st.integers(1, 70), st.integers(1, 700), st.integers(1, 700), st.integers(0, 2**16))
def test_products_with_a_packed_weight_equal_torchs(rows: int, inputs: int, outputs: int, seed: int) -> None:
    torch.manual_seed(seed)
    weight_OI, b_O = torch.randn(outputs, inputs) / inputs**0.5, torch.randn(outputs)
    x_KI, z_KO = torch.randn(rows, inputs), torch.randn(rows, outputs)
    W, U = Packed(weight_OI, past=False), Packed(weight_OI.t().contiguous(), past=True)
    pairs = [
        (F.linear(x_KI, W, b_O), F.linear(x_KI, weight_OI, b_O)),
        (F.linear(x_KI, W), F.linear(x_KI, weight_OI)),
        (F.linear(x_KI[:, None], W, b_O), F.linear(x_KI[:, None], weight_OI, b_O)),
        (torch.addmm(z_KO, x_KI, U), torch.addmm(z_KO, x_KI, weight_OI.t())),
        (x_KI @ U, x_KI @ weight_OI.t()),
    ]
    for found, wanted in pairs:
        assert found.shape == wanted.shape and (found - wanted).abs().max() < 1e-5


@packing
def test_a_big_weight_and_a_strided_input_agree_too() -> None:
    weight_OI = torch.randn(2048, 512) / 512**0.5
    x_KI, z_KO = torch.randn(5, 3, 512)[:, 1], torch.randn(5, 3, 2048)[:, 2]
    assert (F.linear(x_KI, Packed(weight_OI, False)) - F.linear(x_KI, weight_OI)).abs().max() < 1e-5  # type: ignore[arg-type]
    U = Packed(weight_OI.t().contiguous(), True)
    assert (torch.addmm(z_KO, x_KI, U) - torch.addmm(z_KO, x_KI, weight_OI.t())).abs().max() < 1e-5  # type: ignore[call-overload]


@packing
def test_what_a_packed_weight_cannot_do_is_refused() -> None:
    with pytest.raises(TypeError):
        torch.sum(Packed(torch.randn(20, 20), past=False))  # type: ignore[call-overload]


@packing
@pytest.mark.parametrize("cell", CELLS)
def test_a_twin_shares_parameters_and_leaves_the_model_as_it_is(cell: str) -> None:
    model = small(cell=cell)
    state = copy.deepcopy(model.state_dict())
    other = twin(model)
    assert other is not model and isinstance(vars(other.readout)["weight"], Packed)
    assert other.embed_target is model.embed_target and other.readout.b is model.readout.b
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert type(other.decoder) is type(model.decoder)


def test_without_the_private_operators_parameters_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    model, source_BS = small(), sentences((5, 3))
    with torch.no_grad():
        packed = model.encode(source_BS, source_BS != 0).states_BSH
    monkeypatch.setattr(products, "packable", lambda: False)
    again: Seq2Seq = copy.deepcopy(model)
    with torch.no_grad():
        plain = again.encode(source_BS, source_BS != 0).states_BSH
        assert prepared(again).model is again
    assert (packed - plain).abs().max() < 1e-5


def test_only_float32_is_packed() -> None:
    layer = nn.Linear(32, 32).double()
    assert twin(layer) is layer


@given(st.floats(-60, 60), st.integers(0, 2**16))
def test_the_fast_tanh_is_tanh(centre: float, seed: int) -> None:
    torch.manual_seed(seed)
    z = centre + torch.randn(products.FEW_NUMBERS + 7)
    with torch.no_grad():
        assert (tanh(z).double() - torch.tanh(z.double())).abs().max() < 3e-7
        assert torch.equal(tanh(z.double()), torch.tanh(z.double()))
    z = z.requires_grad_()
    assert torch.equal(tanh(z), torch.tanh(z))


def test_the_fast_tanh_at_the_ends() -> None:
    z = torch.tensor([float("inf"), -float("inf"), 1e4, -1e4, 0.0]).repeat(products.FEW_NUMBERS)
    with torch.no_grad():
        assert torch.equal(tanh(z), torch.tanh(z))
        assert tanh(torch.full((products.FEW_NUMBERS,), float("nan"))).isnan().all()
