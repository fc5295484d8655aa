"""Gradients: each is compared with differences, or with a Jacobian taken another way."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seqdemo.config import BOS, EOS, ModelConfig
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.explain.gradients import connectivity, gradient_norms, stretch
from seqdemo.explain.replay import distributions, follow
from seqdemo.network.coders import DECODERS
from seqdemo.network.model import LanguageModel
from tests.test_trace import SOURCE, VOCABULARY, tiny


def writer(layers: int = 1) -> LanguageModel:
    torch.manual_seed(0)
    sizes = {"embedding": 8, "decoder_hidden": 12, "features": 0, "decoder_layers": layers}
    return LanguageModel(ModelConfig(VOCABULARY, encoder="none", **sizes)).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("position", [0, 2])
def test_connectivity_is_the_slope_of_the_log_probability(position: int) -> None:
    model, target = tiny().double(), (4, 5, 6, EOS)
    gradient_SE = connectivity(model, SOURCE, target, position)
    push = torch.zeros(len(SOURCE), 12, dtype=torch.float64)
    push[1, 3] = 1e-5
    plain = model.embed_source.forward

    def total(sign: int) -> float:
        model.embed_source.forward = lambda ids: plain(ids) + sign * push  # type: ignore[method-assign]
        value = distributions(model, SOURCE, target)[position, target[position]]
        model.embed_source.forward = plain  # type: ignore[method-assign]
        return float(value)

    assert gradient_SE[1, 3] == pytest.approx((total(1) - total(-1)) / 2e-5, rel=1e-4, abs=1e-8)


def largest_stretch(cell: Any, zx_1TG: torch.Tensor, state: Any) -> float:
    """The spectral norm of d (state after these steps) / d state."""

    def after(flat: torch.Tensor) -> torch.Tensor:
        now = type(state)(*flat[None].chunk(len(state), 1))
        for zx_1G in zx_1TG.unbind(1):
            now, _ = cell.step(zx_1G, now)
        return torch.cat(tuple(now), 1)[0]

    jacobian = torch.autograd.functional.jacobian(after, torch.cat(tuple(state), 1)[0].detach())
    return float(torch.linalg.matrix_norm(jacobian, 2))


@pytest.mark.parametrize("cell", EQUATIONS)
def test_gradients_through_time_are_the_largest_stretch_of_the_jacobian(cell: str) -> None:
    model = tiny(cell).double()
    norms = gradient_norms(model, SOURCE)
    assert len(norms) == len(SOURCE) and norms[-1] == pytest.approx(1)
    read = model.encoder.layers[0][0]
    zx = read.project(model.embed_source(torch.tensor([SOURCE]))).detach()
    state = read.initial(torch.zeros(1, 8, dtype=torch.float64))
    for t in range(3):
        state, _ = read.step(zx[:, t], state)

    assert norms[2] == pytest.approx(largest_stretch(read, zx[:, 3:5], state), rel=1e-6)


@pytest.mark.parametrize("layer", [0, 1])
def test_gradients_through_a_text_begin_after_its_opening(layer: int) -> None:
    model = writer(layers=2).double()
    norms = gradient_norms(model, (4, 5, 6), layer=layer)
    cell: Any = model.stack.cells[layer]
    x = model.embed_target(torch.tensor([[BOS, 4, 5, 6]]))
    if layer:
        x = torch.from_numpy(follow(model, None, (4, 5, 6, EOS)).gates["decoder.0.hidden"]).double()[None]
    zx, state = cell.project(x).detach(), cell.initial(torch.zeros(1, 12, dtype=torch.float64))
    for t in range(2):
        state, _ = cell.step(zx[:, t], state)
    assert len(norms) == 3 and norms[0] == pytest.approx(largest_stretch(cell, zx[:, 2:4], state), rel=1e-5)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_an_upper_layer_reads_the_states_of_the_one_below(direction: str) -> None:
    model = tiny(encoder_layers=2).double()
    norms = gradient_norms(model, SOURCE, direction, layer=1)
    gates = follow(model, SOURCE, (4, EOS)).gates
    below = [torch.from_numpy(gates[f"encoder.0.{each}.hidden"]).double() for each in ("forward", "backward")]
    cell = model.encoder.cell(1, direction)
    zx = cell.project(torch.cat(below, 1))[None].detach()
    zx = zx.flip(1) if direction == "backward" else zx
    state, _ = cell.step(zx[:, 0], cell.initial(torch.zeros(1, 8, dtype=torch.float64)))
    assert norms[0] == pytest.approx(largest_stretch(cell, zx[:, 1:], state), rel=1e-5)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_decoder_is_followed_with_all_it_carries_on(decoder: str) -> None:
    model, target = tiny(decoder=decoder).double(), (4, 5, 6, EOS)
    norms = gradient_norms(model, SOURCE, target=target)
    ids = torch.tensor([SOURCE])
    start = model.decoder.start(model.read(ids, ids > 0))
    zx_T = model.decoder.stack.first.project(model.embed_target(torch.tensor([BOS, *target[:-1]]))).detach()

    def leaves(state: Any) -> tuple[torch.Tensor, ...]:
        return (*state.layers[0], *([] if state.feed_KR is None else [state.feed_KR]))

    def after(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = start._replace(layers=(type(start.layers[0])(*given[:2]),), feed_KR=given[2] if len(given) > 2 else None)
        for zx in zx_T[2:]:
            state = model.decoder.write(zx[None], state).state
        return leaves(state)

    state = start
    for zx in zx_T[:2]:
        state = model.decoder.write(zx[None], state).state
    blocks = torch.autograd.functional.jacobian(after, tuple(leaf.detach() for leaf in leaves(state)))
    whole = torch.cat([torch.cat([block[0, :, 0] for block in row], 1) for row in blocks])
    assert len(norms) == 4 and norms[1] == pytest.approx(float(torch.linalg.matrix_norm(whole, 2)), rel=1e-6)


def test_the_largest_stretch_is_the_largest_singular_value() -> None:
    for matrix in (
        torch.randn(40, 40, dtype=torch.float64),
        torch.eye(5),
        torch.zeros(3, 3),
        torch.diag(torch.tensor([1.0, 3, 2])),
        torch.diag(torch.tensor([1.0, 3, 2])) * 1e-30,
        torch.eye(3) * 1e30,
    ):
        assert stretch(matrix) == pytest.approx(float(torch.linalg.matrix_norm(matrix.double(), 2)), rel=1e-5)


def test_gradients_are_to_be_had_where_none_are_kept() -> None:
    model = tiny()
    with torch.inference_mode():
        assert len(gradient_norms(model, SOURCE)) == len(SOURCE)
        assert connectivity(model, SOURCE, (4, EOS), 0).shape == (len(SOURCE), 12)


def test_what_has_no_gradients_to_show_is_told_so() -> None:
    language = writer()
    for position in (1.5, True, -1, 2, "0"):
        with pytest.raises(InputError, match="outside this output of 2 pieces"):
            connectivity(tiny(), SOURCE, (4, EOS), position)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Connectivity needs a text as input; this model has none"):
        connectivity(language, SOURCE, (4, EOS), 0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="does not read in the direction 'backward'"):
        gradient_norms(language, (4, 5), "backward")
    for model in (tiny(), language):
        with pytest.raises(InputError, match="at least one piece"):
            gradient_norms(model, ())
        with pytest.raises(InputError, match="at most 120 pieces"):
            gradient_norms(model, (4,) * 121)
    for model, layer in ((tiny(), 1), (language, -1), (tiny(), "0")):
        with pytest.raises(InputError, match="There is no layer"):
            gradient_norms(model, SOURCE, layer=layer)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="A source has at least one piece"):
        connectivity(tiny(), (), (4, EOS), 0)
