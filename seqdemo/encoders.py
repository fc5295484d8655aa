"""Encoders: a source in, a Memory out.

h_t = RNN(h_{t-1}, e(x_t)), from the left, and with `bidirectional` also from the right: state t is [forward_t; backward_t],
the summary [forward_S; backward_1].
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.cells import CELLS, LSTM, Ask, Cell, Gates, LSTMForgetBias, unroll
from seqdemo.config import ModelConfig
from seqdemo.products import WholeLSTM, tanh
from seqdemo.state import Memory

# (layer, direction) -> None where the cell is left alone, otherwise (position of each row) -> what-if
AskAt = Callable[[int, str], Callable[[Tensor], Ask] | None]
DIRECTIONS = ("forward", "backward")
PLAIN_LSTMS = (LSTM, LSTMForgetBias)


class Encoded(NamedTuple):
    """A Memory, and the gates of every step by layer and direction, in the order of the positions (for the backward cells,
    of the positions of the longest sentence: a shorter one is read later). No gates where nobody asked for them."""

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

    whole: Mapping[tuple[int, str], WholeLSTM] = {}  # the cells that can read a sentence at once

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.directions = DIRECTIONS if config.bidirectional else DIRECTIONS[:1]
        width = config.encoder_hidden * len(self.directions)
        sizes = [config.embedding] + [width] * (config.encoder_layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(CELLS[config.cell](size, config.encoder_hidden) for _ in self.directions) for size in sizes
        )
        self.hidden, self.dropout = config.encoder_hidden, config.dropout

    def cell(self, layer: int, direction: str) -> Cell:
        return cast(Any, self.layers[layer])[self.directions.index(direction)]  # type: ignore[no-any-return]

    def for_inference(self) -> dict[str, Any]:
        places = itertools.product(range(len(self.layers)), self.directions)
        cells = {(layer, direction): self.cell(layer, direction) for layer, direction in places}
        return {"whole": {place: WholeLSTM(cell.W, cell.U, cell.b) for place, cell in cells.items() if type(cell) in PLAIN_LSTMS}}

    def forward(self, x_BSE: Tensor, mask_BS: Tensor, ask: AskAt | None = None, with_gates: bool = True) -> Encoded:
        lengths_B = mask_BS.sum(1)
        order_BS = mirror(lengths_B, mask_BS.shape[1])
        every: dict[tuple[int, str], list[Gates]] = {}
        ends: list[Tensor] = []
        for layer in range(len(self.layers)):
            if layer:
                x_BSE = F.dropout(x_BSE, self.dropout, self.training)
            outputs, ends = [], []
            for direction in self.directions:
                turned_BS = order_BS if direction == "backward" else None
                states_BSH, gates = self.read(x_BSE, turned_BS, layer, direction, ask, with_gates)
                last_B1H = (lengths_B - 1)[:, None, None].expand(-1, 1, self.hidden)
                ends.append(states_BSH.gather(1, last_B1H).squeeze(1))
                outputs.append(states_BSH if turned_BS is None else reorder(states_BSH, turned_BS))
                every[layer, direction] = gates if turned_BS is None else gates[::-1]
            x_BSE = torch.cat(outputs, 2)
        return Encoded(Memory(x_BSE, mask_BS, torch.cat(ends, 1)), every)

    def read(
        self, x_BSE: Tensor, turned_BS: Tensor | None, layer: int, direction: str, ask: AskAt | None, with_gates: bool
    ) -> tuple[Tensor, list[Gates]]:
        """States and gates in the order in which the cell reads."""
        if turned_BS is not None:
            x_BSE = reorder(x_BSE, turned_BS)
        whole = self.whole.get((layer, direction))
        ask_here = ask(layer, direction) if ask else None
        if whole and not (ask_here or with_gates):
            return whole(x_BSE), []
        cell = self.cell(layer, direction)
        zx_BSG = cell.project(x_BSE)
        start_BH = zx_BSG.new_zeros(len(x_BSE), self.hidden)
        here_B = torch.zeros(len(x_BSE), dtype=torch.long, device=x_BSE.device)
        asked = (lambda t: ask_here(here_B + t if turned_BS is None else turned_BS[:, t])) if ask_here else None
        states, gates = unroll(cell, zx_BSG, cell.initial(start_BH), asked)
        return torch.stack([state.h for state in states], 1), gates


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
