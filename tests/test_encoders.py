"""What an encoder hands over: padding and batch-mates change nothing, and the right-to-left half is the left-to-right one of
the sentence turned round."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from seqdemo.config import terms
from seqdemo.network.attention import WhatIf
from seqdemo.network.cells import CELLS, Ask
from seqdemo.network.coders import Encoded, ImageEncoder, TextEncoder, mirror, reorder
from seqdemo.network.inference import packed_copy
from seqdemo.network.packed import packable
from tests.small_models import small_config, stir

LENGTHS = (5, 1, 3)


def encoder_of(cell: str = "gru", layers: int = 2, both: bool = True, dropout: float = 0.0) -> TextEncoder:
    config = small_config(cell=cell, encoder_layers=layers, bidirectional=both, dropout=dropout)
    encoder = TextEncoder(config).double().eval()
    stir(encoder)
    return encoder


def read(encoder: TextEncoder, x_BSE: Tensor, lengths: tuple[int, ...]) -> Encoded:
    with torch.no_grad():
        mask_BS = torch.arange(x_BSE.shape[1]) < torch.tensor(lengths)[:, None]
        found: Encoded = encoder(x_BSE, mask_BS)
    return found


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.integers(0, 3))
def test_mirror_turns_the_real_part_round_and_leaves_padding(lengths: list[int], spare: int) -> None:
    steps = max(lengths) + spare
    x_BS1 = torch.arange(len(lengths) * steps).view(len(lengths), steps, 1)
    turned_BS1 = reorder(x_BS1, mirror(torch.tensor(lengths), steps))
    for row, length in enumerate(lengths):
        assert turned_BS1[row, :length].tolist() == x_BS1[row, :length].flip(0).tolist()
        assert turned_BS1[row, length:].tolist() == x_BS1[row, length:].tolist()


@pytest.mark.parametrize("both", [False, True], ids=["one-direction", "both-directions"])
@pytest.mark.parametrize("cell", CELLS)
def test_padding_and_batch_mates_change_nothing(cell: str, both: bool) -> None:
    encoder = encoder_of(cell, both=both)
    x_BSE = torch.randn(3, 5, 16, dtype=torch.float64)
    together = read(encoder, torch.cat([x_BSE, torch.full((3, 2, 16), 9.0)], 1), LENGTHS)
    for row, length in enumerate(LENGTHS):
        alone = read(encoder, x_BSE[row : row + 1, :length], (length,))
        assert (together.memory.states_BSH[row, :length] - alone.memory.states_BSH[0]).abs().max() < 1e-12
        assert (together.memory.summary_BH[row] - alone.memory.summary_BH[0]).abs().max() < 1e-12


def test_the_backward_half_is_the_forward_half_of_the_sentence_turned_round() -> None:
    encoder = encoder_of("lstm", layers=1)
    forward, backward = encoder.layers[0]  # type: ignore[misc]
    backward.load_state_dict(forward.state_dict())
    x_1SE = torch.randn(1, 6, 16, dtype=torch.float64)
    there, back = read(encoder, x_1SE, (6,)).memory, read(encoder, x_1SE.flip(1), (6,)).memory
    left, right = there.states_BSH.chunk(2, 2)
    assert (right - back.states_BSH.chunk(2, 2)[0].flip(1)).abs().max() < 1e-12
    assert torch.equal(there.summary_BH, torch.cat([left[:, -1], right[:, 0]], 1))


def test_gates_stand_in_the_order_of_the_positions() -> None:
    encoder = encoder_of("lstm", layers=2)
    found = read(encoder, torch.randn(3, 5, 16, dtype=torch.float64), LENGTHS)
    names = ("sent", *terms("lstm"))
    assert set(found.seen) == {f"encoder.{la}.{way}.{name}" for la in (0, 1) for way in ("forward", "backward") for name in names}
    mask_BS = torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    for way, wanted_BSH in zip(("forward", "backward"), found.memory.states_BSH.chunk(2, 2)):
        assert torch.equal(found.seen[f"encoder.1.{way}.hidden"][mask_BS], wanted_BSH[mask_BS])


@pytest.mark.parametrize("cell", CELLS)
def test_whoever_asks_for_no_gates_gets_the_same_states(cell: str) -> None:
    encoder = TextEncoder(small_config(cell=cell, encoder_hidden=32, encoder_layers=2)).eval()
    stir(encoder)
    x_BSE, mask_BS = torch.randn(3, 5, 16), torch.arange(5) < torch.tensor(LENGTHS)[:, None]
    with torch.no_grad():
        told, untold = (packed_copy(encoder, {})(x_BSE, mask_BS, closely=closely) for closely in (True, False))
    assert told.seen and not untold.seen
    assert bool(packed_copy(encoder, {}).whole) is (packable() and cell in ("lstm", "lstm-b"))
    for found in (told.memory, untold.memory):
        found.states_BSH[~mask_BS] = 0
    assert (told.memory.states_BSH - untold.memory.states_BSH).abs().max() < 1e-6
    assert (told.memory.summary_BH - untold.memory.summary_BH).abs().max() < 1e-6


def test_a_what_if_is_asked_by_layer_direction_and_position() -> None:
    encoder, asked = encoder_of("lstm", layers=2), set()

    class Asking(WhatIf):
        def __bool__(self) -> bool:
            return True

        def cell(self, part: str, layer: int, direction: str = "forward") -> Callable[[Tensor], Ask]:
            assert part == "encoder"

            def at(position_B: Tensor) -> Ask:
                def answer(name: str, value: Tensor) -> Tensor:
                    asked.update((layer, direction, position, name) for position in position_B.tolist())
                    here_B1 = (position_B == 2)[:, None] & ((layer, direction, name) == (1, "backward", "hidden"))
                    return value.masked_fill(here_B1, 0.0)

                return answer

            return at

    x_BSE, mask_BS = torch.randn(2, 4, 16, dtype=torch.float64), torch.arange(4) < torch.tensor([[4], [3]])
    with torch.no_grad():
        edited, untouched = encoder(x_BSE, mask_BS, Asking(())).memory.states_BSH, encoder(x_BSE, mask_BS).memory.states_BSH
    names = terms("lstm")
    assert asked == {(la, d, t, n) for la in (0, 1) for d in ("forward", "backward") for t in range(4) for n in names}
    assert not edited[:, 2, 16:].any(), "position 2 is clamped in both sentences, though one is shorter"
    changed_BS = (edited != untouched).any(2)
    assert changed_BS[:, :3].all() and not changed_BS[0, 3]  # the backward cell reads what lies before 2 after it
    assert torch.equal(edited[..., :16], untouched[..., :16])


def test_dropout_acts_between_layers_in_training_alone() -> None:
    for layers, noisy in ((1, False), (2, True)):
        encoder = encoder_of(layers=layers, dropout=0.5)
        x_1SE, mask_1S = torch.randn(1, 4, 16, dtype=torch.float64), torch.ones(1, 4, dtype=torch.bool)
        calm = encoder(x_1SE, mask_1S).memory.states_BSH
        assert torch.equal(calm, encoder(x_1SE, mask_1S).memory.states_BSH)
        assert torch.equal(calm, encoder.train()(x_1SE, mask_1S).memory.states_BSH) is not noisy


class Halves(nn.Module):
    """In the place of a CNN: a picture of 3 x 4 x 4 becomes a grid of 2 x 2 cells of 5 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.conv(x)
        return found


def test_an_image_encoder_gives_one_state_a_cell_and_a_pooled_summary() -> None:
    cnn = Halves()
    encoder = ImageEncoder(small_config(encoder="image", cnn="efficientnet-lite0"), cnn, 5).eval()
    pictures = torch.randn(2, 3, 4, 4)
    grid_BSC = encoder.grid(pictures)
    assert torch.equal(grid_BSC[:, 1], cnn(pictures)[:, :, 0, 1])  # row by row
    memory = encoder(grid_BSC).memory
    wanted = torch.tanh(grid_BSC @ encoder.states.weight.T + encoder.states.bias)
    assert torch.allclose(memory.states_BSH, wanted, atol=1e-6) and memory.mask_BS.all()
    pooled = torch.tanh(grid_BSC.mean(1) @ encoder.summary.weight.T + encoder.summary.bias)
    assert torch.allclose(memory.summary_BH, pooled, atol=1e-6)
    assert not any(value.requires_grad for value in cnn.parameters())


def test_training_drops_the_same_channels_of_a_photograph_in_all_cells() -> None:
    encoder = ImageEncoder(small_config(encoder="image", cnn="efficientnet-lite0", dropout=0.5), Halves(), 5).train()
    alike_BSC = torch.randn(8, 1, 5).expand(-1, 4, -1)
    states_BSH = encoder(alike_BSC).memory.states_BSH
    assert torch.equal(states_BSH, states_BSH[:, :1].expand_as(states_BSH))
    assert not torch.allclose(states_BSH, encoder.eval()(alike_BSC).memory.states_BSH)
