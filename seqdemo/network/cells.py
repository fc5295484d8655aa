"""Recurrent cells, one equation-shaped `step` each.

Every cell works in two halves. `project(x)` is the input's contribution to the gates (W x + b), computed for many steps at once
or looked up in a table. `step(zx, state)` adds the contribution of the past, and returns the new state and all terms by name
(`seqdemo.equations` lists them). Before a term is used, it passes through `gate(name, value)`, where a what-if may replace it.

K rows, T steps, I input, H hidden, G gate units of a cell (a multiple of H). Letters are those of the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.network.packed import plus_product, tanh
from seqdemo.state import Seen

Ask = Callable[[str, Tensor], Tensor]


def keep(_: str, value: Tensor) -> Tensor:
    return value


class Hidden(NamedTuple):
    h: Tensor


class HiddenCell(NamedTuple):
    h: Tensor
    c: Tensor


State = Any  # Hidden or HiddenCell: something with .h


class Cell(nn.Module):
    """W: what the input sends to `blocks` vectors of hidden size; U: what the past sends to `past_blocks` of them (stored
    with its rows on the side of h, so that a step multiplies by the parameter itself)."""

    blocks = 1
    past_blocks = 1

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.inputs, self.hidden = inputs, hidden
        self.W = nn.Parameter(torch.empty(self.blocks * hidden, inputs))
        self.U = nn.Parameter(torch.empty(hidden, self.past_blocks * hidden))
        self.b = nn.Parameter(torch.zeros(self.blocks * hidden))
        nn.init.xavier_uniform_(self.W)
        for block in self.U.data.split(hidden, 1):
            nn.init.orthogonal_(block)

    @property
    def width(self) -> int:
        return self.blocks * self.hidden

    def project(self, x: Tensor) -> Tensor:
        return F.linear(x, self.W, self.b)

    def initial(self, h_KH: Tensor) -> State:
        return Hidden(h_KH)

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        raise NotImplementedError


class Elman(Cell):
    """h' = tanh(W x + U h + b)"""

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        h = gate("hidden", tanh(plus_product(zx_KG, state.h, self.U)))
        return Hidden(h), {"hidden": h}


class LSTM(Cell):
    """i, f, o = sigmoid(W x + U h + b);  g = tanh(W x + U h + b);  c' = f * c + i * g;  h' = o * tanh(c')

    The forget bias starts at 0, as in torch; LSTM-b starts it at 1.
    """

    blocks = past_blocks = 4

    def initial(self, h_KH: Tensor) -> State:
        return HiddenCell(h_KH, torch.zeros_like(h_KH))

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        z = plus_product(zx_KG, state.h, self.U)
        opened, new = z.split((3 * self.hidden, self.hidden), 1)
        i, f, o = torch.sigmoid(opened).chunk(3, 1)
        i, f, o = gate("input", i), gate("forget", f), gate("output", o)
        g = gate("candidate", tanh(new))
        c = gate("cell", torch.addcmul(i * g, f, state.c))
        h = gate("hidden", o * tanh(c))
        return HiddenCell(h, c), {"input": i, "forget": f, "output": o, "candidate": g, "cell": c, "hidden": h}


class LSTMForgetBias(LSTM):
    """i, f, o = sigmoid(W x + U h + b);  g = tanh(W x + U h + b);  c' = f * c + i * g;  h' = o * tanh(c')

    LSTM-b: its forget bias starts at 1, so that it remembers before it has learnt what to forget.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        nn.init.ones_(self.b.data[hidden : 2 * hidden])


class AblatedLSTM(LSTM):
    """The LSTM without one of its gates: that gate is 1 everywhere."""

    blocks = past_blocks = 3
    gates: tuple[str, str] = ("", "")

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        z = plus_product(zx_KG, state.h, self.U)
        opened, new = z.split((2 * self.hidden, self.hidden), 1)
        gates = {name: gate(name, value) for name, value in zip(self.gates, torch.sigmoid(opened).chunk(2, 1))}
        g = gate("candidate", tanh(new))
        kept = gates["forget"] * state.c if "forget" in gates else state.c
        c = gate("cell", kept + (gates["input"] * g if "input" in gates else g))
        h = gate("hidden", gates["output"] * tanh(c) if "output" in gates else tanh(c))
        return HiddenCell(h, c), {**gates, "candidate": g, "cell": c, "hidden": h}


class LSTMNoInput(AblatedLSTM):
    """f, o = sigmoid(W x + U h + b);  g = tanh(W x + U h + b);  c' = f * c + g;  h' = o * tanh(c')

    LSTM-i: the LSTM without its input gate.
    """

    gates = ("forget", "output")


class LSTMNoForget(AblatedLSTM):
    """i, o = sigmoid(W x + U h + b);  g = tanh(W x + U h + b);  c' = c + i * g;  h' = o * tanh(c')

    LSTM-f: the LSTM without its forget gate.
    """

    gates = ("input", "output")


class LSTMNoOutput(AblatedLSTM):
    """i, f = sigmoid(W x + U h + b);  g = tanh(W x + U h + b);  c' = f * c + i * g;  h' = tanh(c')

    LSTM-o: the LSTM without its output gate.
    """

    gates = ("input", "forget")


class GRU(Cell):
    """r, z = sigmoid(W x + U h + b);  n = tanh(W x + b + r * (U h + d));  h' = (1 - z) * n + z * h

    The reset gate acts after the product with U, as in torch; Cho et al. (2014) apply it before: U (r * h).
    """

    blocks = past_blocks = 3

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.d = nn.Parameter(torch.zeros(hidden))

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        sizes = (2 * self.hidden, self.hidden)
        (x_gates, x_new), (h_gates, h_new) = zx_KG.split(sizes, 1), (state.h @ self.U).split(sizes, 1)
        r, z = torch.sigmoid(x_gates + h_gates).chunk(2, 1)
        r, z = gate("reset", r), gate("update", z)
        n = gate("candidate", tanh(x_new + r * (h_new + self.d)))
        h = gate("hidden", (1 - z) * n + z * state.h)
        return Hidden(h), {"reset": r, "update": z, "candidate": n, "hidden": h}


class MUT(Cell):
    """What Jozefowicz et al. (2015) found by search. They add the bare input x to hidden-sized vectors in one place; there
    `W x` is x itself where the sizes agree, and x passes through W where they differ (they almost always do)."""

    blocks = 3
    packable = False  # a step multiplies by blocks of U, not by the whole
    bare: tuple[int, int] | None = None  # rows of W (in units of H) that stand for the bare input

    def weight(self) -> Tensor:
        if self.bare is None or self.inputs != self.hidden:
            return self.W
        start, end = (edge * self.hidden for edge in self.bare)
        eye = torch.eye(self.hidden, dtype=self.W.dtype, device=self.W.device)
        return torch.cat([self.W[:start], eye, self.W[end:]])

    def project(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight(), self.b)

    def mix(self, z: Tensor, r: Tensor, n: Tensor, h: Tensor, gate: Ask) -> tuple[State, Seen]:
        h = gate("hidden", z * n + (1 - z) * h)
        return Hidden(h), {"update": z, "reset": r, "candidate": n, "hidden": h}


class MUT1(MUT):
    """z = sigmoid(W x + b);  r = sigmoid(W x + U h + b);  n = tanh(U (r * h) + tanh(W x) + b);  h' = z * n + (1 - z) * h"""

    past_blocks = 2
    bare = (2, 3)

    def project(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight(), torch.cat([self.b[: 2 * self.hidden], torch.zeros_like(self.b[: self.hidden])]))

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        (x_z, x_r, x), (U_r, U_h) = zx_KG.chunk(3, 1), self.U.chunk(2, 1)
        z = gate("update", torch.sigmoid(x_z))
        r = gate("reset", torch.sigmoid(x_r + state.h @ U_r))
        n = gate("candidate", tanh((r * state.h) @ U_h + tanh(x) + self.b[2 * self.hidden :]))
        return self.mix(z, r, n, state.h, gate)


class MUT2(MUT):
    """z, r = sigmoid(W x + U h + b);  n = tanh(U (r * h) + W x + b);  h' = z * n + (1 - z) * h"""

    past_blocks = 3
    bare = (1, 2)

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        (x_z, x_r, x_h), (U_z, U_r, U_h) = zx_KG.chunk(3, 1), self.U.chunk(3, 1)
        z = gate("update", torch.sigmoid(x_z + state.h @ U_z))
        r = gate("reset", torch.sigmoid(x_r + state.h @ U_r))
        n = gate("candidate", tanh((r * state.h) @ U_h + x_h))
        return self.mix(z, r, n, state.h, gate)


class MUT3(MUT):
    """z = sigmoid(W x + U tanh(h) + b);  r = sigmoid(W x + U h + b);  n = tanh(U (r * h) + W x + b);  h' = z * n + (1 - z) * h"""

    past_blocks = 3

    def step(self, zx_KG: Tensor, state: State, gate: Ask = keep) -> tuple[State, Seen]:
        (x_z, x_r, x_h), (U_z, U_r, U_h) = zx_KG.chunk(3, 1), self.U.chunk(3, 1)
        z = gate("update", torch.sigmoid(x_z + tanh(state.h) @ U_z))
        r = gate("reset", torch.sigmoid(x_r + state.h @ U_r))
        n = gate("candidate", tanh((r * state.h) @ U_h + x_h))
        return self.mix(z, r, n, state.h, gate)


CELLS: dict[str, type[Cell]] = {
    "elman": Elman,
    "lstm": LSTM,
    "lstm-b": LSTMForgetBias,
    "lstm-i": LSTMNoInput,
    "lstm-f": LSTMNoForget,
    "lstm-o": LSTMNoOutput,
    "gru": GRU,
    "mut1": MUT1,
    "mut2": MUT2,
    "mut3": MUT3,
}


class Stack(nn.Module):
    """The layers of a decoder, all of one kind of cell. The hidden vector of each is the input of the next, with dropout
    between."""

    def __init__(self, name: str, inputs: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [inputs] + [hidden] * (layers - 1)
        self.cells = nn.ModuleList(CELLS[name](size, hidden) for size in sizes)
        self.dropout = dropout

    @property
    def first(self) -> Cell:
        return self.cells[0]  # type: ignore[return-value]

    def initial(self, h_LKH: list[Tensor]) -> tuple[State, ...]:
        return tuple(cell.initial(h_KH) for cell, h_KH in zip(self.cells, h_LKH))  # type: ignore[operator]

    def step(self, zx_KG: Tensor, states: tuple[State, ...], asks: Sequence[Ask] = ()) -> tuple[tuple[State, ...], list[Seen]]:
        """The state after the step, and for each layer the terms of its cell and what it was sent (W x + b). `asks` are the
        what-ifs of the layers, if there are any."""
        after: list[State] = []
        seen: list[Seen] = []
        for layer, (cell, state) in enumerate(zip(self.cells, states)):
            if layer:
                zx_KG = cell.project(F.dropout(after[-1].h, self.dropout, self.training))  # type: ignore[operator]
            state, named = cell.step(zx_KG, state, asks[layer] if asks else keep)  # type: ignore[operator]
            after.append(state)
            named["sent"] = zx_KG
            seen.append(named)
        return tuple(after), seen


def unroll(
    cell: Cell, zx_KTG: Tensor, state: State, ask_at: Callable[[Tensor], Ask] | None = None, position_KT: Tensor | None = None
) -> tuple[list[State], list[Seen]]:
    """The states after each step, and the terms of each; `ask_at(position_KT[:, t])` is the what-if of step t."""
    states: list[State] = []
    seen: list[Seen] = []
    for t, zx_KG in enumerate(zx_KTG.unbind(1)):
        state, named = cell.step(zx_KG, state, ask_at(position_KT[:, t]) if ask_at and position_KT is not None else keep)
        states.append(state)
        seen.append(named)
    return states, seen
