"""Cells against torch's fused ones, and where torch has none, against their equations written out in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqdemo.config import terms
from seqdemo.network.cells import CELLS, GRU, Cell, HiddenCell, Stack, unroll
from seqdemo.network.coders import TextEncoder
from seqdemo.network.inference import packed_copy
from tests.small_models import small_config, stir

FUSED: dict[str, type[nn.RNNBase]] = {"lstm": nn.LSTM, "lstm-b": nn.LSTM, "gru": nn.GRU, "elman": nn.RNN}
TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}
LENGTHS = (9, 4, 1, 7, 8) * 4
SIZE, INPUT = 64, 16  # rows x size is enough for the fast tanh


def as_ours(cell: Cell, rows: Tensor) -> Tensor:
    """Torch orders the gates i, f, g, o; a cell here i, f, o, g."""
    if cell.blocks != 4:
        return rows
    i, f, g, o = rows.chunk(4)
    return torch.cat([i, f, o, g])


def give_weights(cell: Cell, fused: nn.RNNBase, suffix: str) -> None:
    """Torch has two biases that are added up; only in the GRU's candidate does the second stand inside the reset."""
    W, U, b_ih, b_hh = (
        as_ours(cell, getattr(fused, f"{name}_{suffix}")) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    b = b_ih + b_hh
    with torch.no_grad():
        if isinstance(cell, GRU):
            cell.d.copy_(b_hh[2 * cell.hidden :])
            b[2 * cell.hidden :] = b_ih[2 * cell.hidden :]
        cell.W.copy_(W)
        cell.U.copy_(U.t())
        cell.b.copy_(b)


def a_pair(name: str, layers: int, both: bool, dtype: torch.dtype) -> tuple[TextEncoder, nn.RNNBase]:
    """An encoder and torch's fused one, of the same weights."""
    config = small_config(cell=name, embedding=INPUT, encoder_hidden=SIZE, encoder_layers=layers, bidirectional=both)
    encoder = TextEncoder(config).to(dtype).eval()
    fused = FUSED[name](INPUT, SIZE, layers, batch_first=True, bidirectional=both).to(dtype)
    for layer, cells in enumerate(encoder.layers):
        for cell, direction in zip(cells.children(), ("", "_reverse")):
            give_weights(cell, fused, f"l{layer}{direction}")  # type: ignore[arg-type]
    return encoder, fused


def padded_batch(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    x_BSE = torch.randn(len(LENGTHS), max(LENGTHS), INPUT, dtype=dtype)
    return x_BSE, torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


@pytest.mark.parametrize("how", ["plain", "packed", "without-gates"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("both", [False, True], ids=["one-direction", "both-directions"])
@pytest.mark.parametrize("name", FUSED)
def test_hand_stepped_cells_equal_torchs_fused_ones(name: str, both: bool, layers: int, dtype: torch.dtype, how: str) -> None:
    encoder, fused = a_pair(name, layers, both, dtype)
    x_BSE, mask_BS = padded_batch(dtype)
    with torch.no_grad():
        reader = encoder if how == "plain" else packed_copy(encoder, {})
        found = reader(x_BSE, mask_BS, closely=how != "without-gates").memory
        wanted = fused(pack_padded_sequence(x_BSE, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False))
    wanted_BSH, _ = pad_packed_sequence(wanted[0], batch_first=True)
    last = wanted[1][0] if isinstance(wanted[1], tuple) else wanted[1]
    wanted_BH = torch.cat(list(last[-len(encoder.directions) :]), 1)
    assert (found.states_BSH - wanted_BSH)[mask_BS].abs().max() < TOLERANCE[dtype]
    assert (found.summary_BH - wanted_BH).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("name", FUSED)
def test_gradients_equal_those_of_torchs_fused_cells(name: str) -> None:
    encoder, fused = a_pair(name, 2, True, torch.float64)
    x_BSE, mask_BS = padded_batch(torch.float64)
    mine_BSE, theirs_BSE = x_BSE.clone().requires_grad_(), x_BSE.clone().requires_grad_()
    (encoder(mine_BSE, mask_BS).memory.states_BSH * mask_BS[:, :, None]).sin().sum().backward()
    packed = pack_padded_sequence(theirs_BSE, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False)
    pad_packed_sequence(fused(packed)[0], batch_first=True)[0].sin().sum().backward()
    assert mine_BSE.grad is not None and theirs_BSE.grad is not None
    assert (mine_BSE.grad - theirs_BSE.grad).abs().max() < 1e-12
    cell: Cell = encoder.layers[0][0]  # type: ignore[index, assignment]
    assert cell.U.grad is not None
    theirs = fused.weight_hh_l0.grad
    assert isinstance(theirs, Tensor) and (cell.U.grad.t() - as_ours(cell, theirs)).abs().max() < 1e-11


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


class Written:
    """A cell's weights as NumPy blocks: self.W[i] x, self.U[i] h, self.b[i]."""

    def __init__(self, cell: Cell) -> None:
        hidden = cell.hidden
        self.W = np.split(cell.W.detach().numpy(), cell.blocks)
        self.U = [block.T for block in np.split(cell.U.detach().numpy(), cell.past_blocks, axis=1)]
        self.b = np.split(cell.b.detach().numpy(), cell.blocks)
        self.d = cell.d.detach().numpy() if hasattr(cell, "d") else np.zeros(hidden)


Step = Callable[[Written, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def gate(w: Written, index: int, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    return w.W[index] @ x + w.U[index] @ h + w.b[index]


def elman(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.tanh(gate(w, 0, x, h)), c


def lstm(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, f, o = (sigmoid(gate(w, index, x, h)) for index in range(3))
    c = f * c + i * np.tanh(gate(w, 3, x, h))
    return o * np.tanh(c), c


def lstm_without_input(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    f, o = (sigmoid(gate(w, index, x, h)) for index in range(2))
    c = f * c + np.tanh(gate(w, 2, x, h))
    return o * np.tanh(c), c


def lstm_without_forget(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, o = (sigmoid(gate(w, index, x, h)) for index in range(2))
    c = c + i * np.tanh(gate(w, 2, x, h))
    return o * np.tanh(c), c


def lstm_without_output(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, f = (sigmoid(gate(w, index, x, h)) for index in range(2))
    c = f * c + i * np.tanh(gate(w, 2, x, h))
    return np.tanh(c), c


def gru(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r, z = sigmoid(gate(w, 0, x, h)), sigmoid(gate(w, 1, x, h))
    n = np.tanh(w.W[2] @ x + w.b[2] + r * (w.U[2] @ h + w.d))
    return (1 - z) * n + z * h, c


def mut1(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z = sigmoid(w.W[0] @ x + w.b[0])
    r = sigmoid(w.W[1] @ x + w.U[0] @ h + w.b[1])
    bare = x if len(x) == len(h) else w.W[2] @ x
    n = np.tanh(w.U[1] @ (r * h) + np.tanh(bare) + w.b[2])
    return n * z + h * (1 - z), c


def mut2(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z = sigmoid(w.W[0] @ x + w.U[0] @ h + w.b[0])
    bare = x if len(x) == len(h) else w.W[1] @ x
    r = sigmoid(bare + w.U[1] @ h + w.b[1])
    n = np.tanh(w.U[2] @ (r * h) + w.W[2] @ x + w.b[2])
    return n * z + h * (1 - z), c


def mut3(w: Written, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z = sigmoid(w.W[0] @ x + w.U[0] @ np.tanh(h) + w.b[0])
    r = sigmoid(w.W[1] @ x + w.U[1] @ h + w.b[1])
    n = np.tanh(w.U[2] @ (r * h) + w.W[2] @ x + w.b[2])
    return n * z + h * (1 - z), c


WRITTEN: dict[str, Step] = {
    "elman": elman,
    "lstm": lstm,
    "lstm-b": lstm,
    "lstm-i": lstm_without_input,
    "lstm-f": lstm_without_forget,
    "lstm-o": lstm_without_output,
    "gru": gru,
    "mut1": mut1,
    "mut2": mut2,
    "mut3": mut3,
}


def new_cell(name: str, inputs: int = INPUT, dtype: torch.dtype = torch.float64) -> Cell:
    cell = CELLS[name](inputs, SIZE)
    stir(cell)
    return cell.to(dtype)


@pytest.mark.parametrize("inputs", [INPUT, SIZE], ids=["other-size", "same-size"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_cell_is_its_equations(name: str, inputs: int) -> None:
    cell = new_cell(name, inputs)
    written, x_KTI = Written(cell), torch.randn(3, 6, inputs, dtype=torch.float64)
    h_KH = torch.randn(3, SIZE, dtype=torch.float64)
    with torch.no_grad():
        states, _ = unroll(cell, cell.project(x_KTI), cell.initial(h_KH))
    for row in range(3):
        h, c = h_KH[row].numpy(), np.zeros(SIZE)
        for t, state in enumerate(states):
            h, c = WRITTEN[name](written, x_KTI[row, t].numpy(), h, c)
            assert np.abs(state.h[row].numpy() - h).max() < 1e-12
            if isinstance(state, HiddenCell):
                assert np.abs(state.c[row].numpy() - c).max() < 1e-12


@pytest.mark.parametrize("name", CELLS)
def test_gates_come_by_name_in_their_ranges(name: str) -> None:
    cell = new_cell(name, dtype=torch.float32)
    with torch.no_grad():
        states, gates = unroll(cell, cell.project(3 * torch.randn(5, 7, INPUT)), cell.initial(torch.zeros(5, SIZE)))
    for state, named in zip(states, gates):
        assert tuple(named) == terms(name)
        assert torch.equal(named["hidden"], state.h)
        for gate_name, value in named.items():
            assert value.shape == (5, SIZE)
            if gate_name in ("input", "forget", "output", "update", "reset"):
                assert value.min() >= 0 and value.max() <= 1
            elif gate_name != "cell":
                assert value.abs().max() <= 1


@pytest.mark.parametrize("name", CELLS)
def test_a_what_if_is_asked_about_every_gate_and_its_answer_counts(name: str) -> None:
    cell, asked = new_cell(name), []
    zx_KG = cell.project(torch.randn(2, INPUT, dtype=torch.float64))
    state, _ = cell.step(zx_KG, cell.initial(torch.randn(2, SIZE, dtype=torch.float64)))
    untouched, _ = cell.step(zx_KG, state)
    for wanted in terms(name):

        def ask(gate_name: str, value: Tensor, wanted: str = wanted) -> Tensor:
            asked.append(gate_name)
            return torch.full_like(value, 0.321) if gate_name == wanted else value

        edited, gates = cell.step(zx_KG, state, ask)
        assert torch.equal(gates[wanted], torch.full_like(edited.h, 0.321))
        assert not torch.equal(edited.h, untouched.h)
    assert set(asked) == set(terms(name))


def clamped(**values: float) -> Callable[[str, Tensor], Tensor]:
    return lambda name, value: torch.full_like(value, values[name]) if name in values else value


def test_classic_questions_about_an_lstm_have_their_answers() -> None:
    cell = new_cell("lstm")
    zx_KG = cell.project(torch.randn(2, INPUT, dtype=torch.float64))
    before = HiddenCell(torch.randn(2, SIZE, dtype=torch.float64), torch.randn(2, SIZE, dtype=torch.float64))
    reset, _ = cell.step(zx_KG, before, clamped(forget=0, input=0))
    assert torch.equal(reset.c, torch.zeros_like(before.c))
    summed, gates = cell.step(zx_KG, before, clamped(forget=1, input=1))
    assert torch.allclose(summed.c, before.c + gates["candidate"], atol=1e-15)
    forgetful, gates = cell.step(zx_KG, before, clamped(forget=0))
    assert torch.equal(forgetful.c, gates["input"] * gates["candidate"])


def test_the_forget_bias_starts_at_0_as_in_torch_and_at_1_in_lstm_b() -> None:
    assert torch.equal(CELLS["lstm"](3, 5).b, torch.zeros(20))
    assert torch.equal(CELLS["lstm-b"](3, 5).b.detach().view(4, 5)[1], torch.ones(5))
    assert CELLS["lstm-b"](3, 5).b.sum() == 5


@pytest.mark.parametrize("name", CELLS)
def test_a_stack_feeds_each_layer_the_hidden_vector_below(name: str) -> None:
    stack = Stack(name, INPUT, SIZE, 3, dropout=0.5).double().eval()
    stir(stack)
    x_KI = torch.randn(2, INPUT, dtype=torch.float64)
    start = stack.initial([torch.randn(2, SIZE, dtype=torch.float64) for _ in range(3)])
    after, seen = stack.step(stack.first.project(x_KI), start)
    below = x_KI
    for layer, (cell, before, found) in enumerate(zip(stack.cells, start, after)):
        sent = cell.project(below)  # type: ignore[operator]
        wanted, _ = cell.step(sent, before)  # type: ignore[operator]
        assert torch.equal(found.h, wanted.h) and torch.equal(seen[layer]["hidden"], wanted.h)
        assert torch.equal(seen[layer]["sent"], sent)
        below = found.h


def test_dropout_acts_between_layers_in_training_alone() -> None:
    stack = Stack("gru", INPUT, SIZE, 2, dropout=0.5)
    zx_KG, start = stack.first.project(torch.randn(4, INPUT)), stack.initial([torch.randn(4, SIZE)] * 2)
    calm, _ = stack.eval().step(zx_KG, start)
    again, _ = stack.eval().step(zx_KG, start)
    noisy, _ = stack.train().step(zx_KG, start)
    assert torch.equal(calm[1].h, again[1].h)
    assert torch.equal(calm[0].h, noisy[0].h) and not torch.equal(calm[1].h, noisy[1].h)


@pytest.mark.parametrize("name", CELLS)
def test_one_small_step_does_not_depend_on_its_batch_mates(name: str) -> None:
    cell = new_cell(name, dtype=torch.float32)
    zx_KG, h_KH = cell.project(torch.randn(5, INPUT)), torch.randn(5, SIZE)
    together, _ = cell.step(zx_KG, cell.initial(h_KH))
    alone, _ = cell.step(zx_KG[2:3], cell.initial(h_KH[2:3]))
    assert (together.h[2] - alone.h[0]).abs().max() < 1e-6
