from __future__ import annotations

import numpy as np
import pytest
import torch

from seqdemo.config import BOS, ModelConfig
from seqdemo.network.model import LanguageModel
from training.measure import reading


def tiny(cell: str = "lstm-b") -> LanguageModel:
    return LanguageModel(
        ModelConfig(9, encoder="none", cell=cell, embedding=5, decoder_hidden=6, decoder_layers=2, features=0)
    ).eval()


def ids(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(4, 9, count)


@pytest.mark.parametrize("count", [1, 7, 64, 65, 200, 1001])
def test_stretches_cover_every_character_and_leave_none_over(count: int) -> None:
    starts, length = reading.stretches(10, 10 + count, rows=8)
    covered = {position for start in starts for position in range(start, start + length)}
    assert covered == set(range(10, 10 + count))
    assert len(starts) <= 8


def test_a_stretch_costs_what_the_model_says_of_it_after_its_run_up() -> None:
    model, text = tiny(), ids(30)
    found = reading.read(model, text, np.array([4, 17]), length=8, run_up=4).logps_RL
    for row, start in enumerate((4, 17)):
        given = torch.tensor([[BOS, *text[start - 4 : start + 7]]])
        with torch.no_grad():
            logp = torch.log_softmax(model(given)[0], 2)[0]
        expected = [float(logp[4 + i, text[start + i]]) for i in range(8)]
        assert found[row] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("cell", ["lstm-b", "gru"])
def test_states_are_those_after_each_character_of_the_stretch_layer_by_layer(cell: str) -> None:
    model, text = tiny(cell), ids(12)
    units = [9, 0, 4]
    kept = reading.read(model, text, np.array([3]), length=5, run_up=3, keep=units).states_RLU
    assert kept is not None and kept.shape == (1, 5, 3)
    with torch.no_grad():
        for i in range(5):
            _, state = model(torch.tensor([[BOS, *text[: 4 + i]]]))
            layers = [getattr(layer, "c", layer.h) for layer in state.layers]
            assert kept[0, i] == pytest.approx(torch.cat(layers, 1)[0, units].numpy(), abs=1e-6)
