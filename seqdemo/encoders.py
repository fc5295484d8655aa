"""Encoders: a source in, a Memory out.

h_t = RNN(h_{t-1}, e(x_t)), from the left, and with `bidirectional` also from the right: state t is [forward_t; backward_t],
the summary [forward_S; backward_1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.cells import CELLS, Ask, Cell, Gates, State, unroll
from seqdemo.config import ModelConfig
from seqdemo.products import tanh
from seqdemo.state import Memory

AskAt = Callable[[int, str, Tensor], Ask]  # (layer, direction, position of each row) -> what-if
DIRECTIONS = ("forward", "backward")


class Encoded(NamedTuple):
    """A Memory, and the gates of every step by layer and direction, in the order of the positions (for the backward cells,
    of the positions of the longest sentence: a shorter one is read later)."""

    memory: Memory
    gates: dict[tuple[int, str], list[Gates]]


def mirror(lengths_B: Tensor, steps: int) -> Tensor:
    """For each row the positions that turn its real part round and leave its padding where it is."""
    position_BS = torch.arange(steps, device=lengths_B.device).expand(len(lengths_B), steps)
    turned_BS = lengths_B[:, None] - 1 - position_BS
    return torch.where(turned_BS >= 0, turned_BS, position_BS)


def reorder(x_BSH: Tensor, order_BS: Tensor) -> Tensor:
    rows, steps = order_BS.shape
    row_B1 = torch.arange(rows, device=order_BS.device)[:, None]
    return x_BSH.flatten(0, 1).index_select(0, (row_B1 * steps + order_BS).flatten()).view_as(x_BSH)


class TextEncoder(nn.Module):
    """Each layer reads the states of the one below; backward cells read the mirrored sentence, so that padding always comes
    last and never touches a real state."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.directions = DIRECTIONS if config.bidirectional else DIRECTIONS[:1]
        width = config.encoder_hidden * len(self.directions)
        sizes = [config.embedding] + [width] * (config.encoder_layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(CELLS[config.cell](size, config.encoder_hidden) for _ in self.directions) for size in sizes
        )
        self.hidden, self.dropout = config.encoder_hidden, config.dropout

    def forward(self, x_BSE: Tensor, mask_BS: Tensor, ask: AskAt | None = None) -> Encoded:
        lengths_B = mask_BS.sum(1)
        order_BS = mirror(lengths_B, mask_BS.shape[1])
        every: dict[tuple[int, str], list[Gates]] = {}
        ends: list[Tensor] = []
        for layer, cells in enumerate(self.layers):
            if layer:
                x_BSE = F.dropout(x_BSE, self.dropout, self.training)
            outputs, ends = [], []
            for name, cell in zip(self.directions, cells.children()):
                states_BSH, end_BH, gates = self.read(cast(Cell, cell), x_BSE, lengths_B, order_BS, name, layer, ask)
                outputs.append(states_BSH)
                ends.append(end_BH)
                every[layer, name] = gates
            x_BSE = torch.cat(outputs, 2)
        return Encoded(Memory(x_BSE, mask_BS, torch.cat(ends, 1)), every)

    def read(
        self, cell: Cell, x_BSE: Tensor, lengths_B: Tensor, order_BS: Tensor, direction: str, layer: int, ask: AskAt | None
    ) -> tuple[Tensor, Tensor, list[Gates]]:
        backward = direction == "backward"
        zx_BSG = cell.project(reorder(x_BSE, order_BS) if backward else x_BSE)
        asked = (lambda t: ask(layer, direction, order_BS[:, t] if backward else torch.full_like(lengths_B, t))) if ask else None
        start: State = cell.initial(zx_BSG.new_zeros(len(lengths_B), self.hidden))
        states, gates = unroll(cell, zx_BSG, start, asked)
        states_BSH = torch.stack([state.h for state in states], 1)
        last_B1H = (lengths_B - 1)[:, None, None].expand(-1, 1, self.hidden)
        end_BH = states_BSH.gather(1, last_B1H).squeeze(1)
        return (reorder(states_BSH, order_BS), end_BH, gates[::-1]) if backward else (states_BSH, end_BH, gates)


class ImageEncoder(nn.Module):
    """h_j = tanh(W g_j): one state for each cell g_j of the CNN's grid; the summary is tanh(V mean_j g_j)."""

    def __init__(self, config: ModelConfig, cnn: nn.Module, channels: int) -> None:
        super().__init__()
        self.cnn = cnn.requires_grad_(False)
        self.states = nn.Linear(channels, config.encoder_hidden)
        self.summary = nn.Linear(channels, config.encoder_hidden)
        self.dropout = config.dropout

    def grid(self, pictures_B3XY: Tensor) -> Tensor:
        with torch.no_grad():
            return self.cnn(pictures_B3XY).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]

    def forward(self, grid_BSC: Tensor) -> Encoded:
        grid_BSC = F.dropout(grid_BSC, self.dropout, self.training)
        mask_BS = torch.ones(grid_BSC.shape[:2], dtype=torch.bool, device=grid_BSC.device)
        memory = Memory(tanh(self.states(grid_BSC)), mask_BS, tanh(self.summary(grid_BSC.mean(1))))
        return Encoded(memory, {})
