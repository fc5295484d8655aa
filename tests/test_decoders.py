"""The four decoders against their equations, and what they owe to beams, what-ifs and padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from seqdemo.errors import InputError
from seqdemo.network.attention import SCORES
from seqdemo.network.cells import Ask, keep
from seqdemo.network.coders import DECODERS, Attending, Decoder, DecoderState
from seqdemo.state import Memory, select
from tests.small_models import small_config, stir

ATTENDING = ("attend-before", "attend-after")
STATES, HIDDEN, FEATURES = 32, 32, 16


def decoder_of(name: str, **changes: object) -> Decoder:
    decoder = DECODERS[name](small_config(decoder=name, **changes)).double().eval()  # type: ignore[arg-type, call-arg]
    stir(decoder)
    return decoder


def memory_of(lengths: tuple[int, ...] = (5, 2, 4)) -> Memory:
    rows, steps = len(lengths), max(lengths)
    mask_BS = torch.arange(steps) < torch.tensor(lengths)[:, None]
    return Memory(torch.randn(rows, steps, STATES, dtype=torch.float64), mask_BS, torch.randn(rows, STATES, dtype=torch.float64))


def inputs(decoder: Decoder, rows: int) -> Tensor:
    return decoder.stack.first.project(torch.randn(rows, 16, dtype=torch.float64))


def attention(decoder: Decoder, query_BH: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
    """One sentence after the other, its padding cut off."""
    assert isinstance(decoder, Attending)
    weights_BS, context_BH = torch.zeros_like(memory.mask_BS, dtype=torch.float64), []
    for row, length in enumerate(memory.mask_BS.sum(1).tolist()):
        states_1SH = memory.states_BSH[row : row + 1, :length]
        scores = decoder.score(query_BH[row].view(1, 1, -1), decoder.score.keys(states_1SH))
        weights_BS[row, :length] = scores[0, 0].softmax(0)
        context_BH.append(weights_BS[row, :length] @ states_1SH[0])
    return weights_BS, torch.stack(context_BH)


def written_out(decoder: Decoder, name: str, zx_KG: Tensor, state: DecoderState) -> tuple[Tensor, Tensor, Tensor | None]:
    """s_t, r_t and the attention row, in the words of the docstrings."""
    memory, cell = state.memory, decoder.stack.first
    weights = None
    if name == "context-once":
        s = cell.step(zx_KG, state.layers[0])[0].h
        seen = s
    elif name == "context-each":
        assert decoder.enter
        s = cell.step(zx_KG + memory.summary_BH @ decoder.enter.weight.T, state.layers[0])[0].h
        seen = torch.cat([s, memory.summary_BH], 1)
    elif name == "attend-before":
        assert decoder.enter
        weights, c = attention(decoder, state.layers[0].h, memory)
        s = cell.step(zx_KG + c @ decoder.enter.weight.T, state.layers[0])[0].h
        seen = torch.cat([s, c], 1)
    else:
        assert decoder.enter and state.feed_KR is not None
        s = cell.step(zx_KG + state.feed_KR @ decoder.enter.weight.T, state.layers[0])[0].h
        weights, c = attention(decoder, s, memory)
        seen = torch.cat([s, c], 1)
    if not decoder.read_context:
        seen = s
    return s, torch.tanh(seen @ decoder.mix.weight.T + decoder.mix.bias) if decoder.mix else seen, weights


@pytest.mark.parametrize("features", [FEATURES, 0], ids=["mixed", "bare"])
@pytest.mark.parametrize(
    ("name", "context"), [(name, context) for name in DECODERS for context in (True, False) if context or name != "attend-after"]
)
def test_a_decoder_is_its_equations(name: str, features: int, context: bool) -> None:
    decoder = decoder_of(name, features=features, context_to_readout=context)
    with torch.no_grad():
        memory = decoder.prepare(memory_of())
        state = decoder.start(memory)
        s_0 = torch.tanh(memory.summary_BH @ decoder.bridge.weight.T + decoder.bridge.bias)
        assert (state.layers[0].h - s_0).abs().max() < 1e-12
        attended = torch.zeros_like(memory.mask_BS, dtype=torch.float64)
        for position in range(3):
            zx_KG = inputs(decoder, 3)
            s, r, weights = written_out(decoder, name, zx_KG, state)
            done = decoder.write(zx_KG, state)
            assert state.position_K.tolist() == [position] * 3
            assert (done.state.layers[0].h - s).abs().max() < 1e-12
            assert (done.features_KR - r).abs().max() < 1e-12 and r.shape[1] == decoder.features_size
            assert torch.equal(done.seen["decoder.0.hidden"], done.state.layers[0].h)
            if weights is None:
                assert "decoder.0.cross" not in done.seen and done.state.attended_KS is None
            else:
                attended += weights
                assert (done.seen["decoder.0.cross"][:, 0] - weights).abs().max() < 1e-12
                assert done.state.attended_KS is not None and (done.state.attended_KS - attended).abs().max() < 1e-12
            state = done.state


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", DECODERS)
def test_beams_of_a_sentence_decode_as_if_each_had_it_alone(name: str, score: str) -> None:
    decoder = decoder_of(name, score=score, decoder_layers=2)
    with torch.no_grad():
        memory = decoder.prepare(memory_of())
        beams, zx_KG = 4, inputs(decoder, 12)
        start = decoder.start(memory)
        state = decoder.write(zx_KG, select(start, torch.arange(3).repeat_interleave(beams))).state
        together = decoder.write(zx_KG, state)
        for row in range(12):
            only = torch.tensor([row // beams])
            alone = select(state, torch.tensor([row]), only)
            done = decoder.write(zx_KG[row : row + 1], alone)
            assert (done.features_KR[0] - together.features_KR[row]).abs().max() < 1e-12
            for seen, value in together.seen.items():
                assert (done.seen[seen][0] - value[row]).abs().max() < 1e-12


@pytest.mark.parametrize("name", DECODERS)
def test_padding_of_the_source_changes_nothing(name: str) -> None:
    decoder, memory = decoder_of(name), memory_of((3, 3))
    spare = Memory(
        torch.cat([memory.states_BSH, torch.full((2, 4, STATES), 7.0)], 1),
        torch.cat([memory.mask_BS, torch.zeros(2, 4, dtype=torch.bool)], 1),
        memory.summary_BH,
    )
    zx_KG = inputs(decoder, 2)
    with torch.no_grad():
        plain, padded = (decoder.write(zx_KG, decoder.start(decoder.prepare(given))) for given in (memory, spare))
    assert (plain.features_KR - padded.features_KR).abs().max() < 1e-12
    if "decoder.0.cross" in padded.seen:
        assert not padded.seen["decoder.0.cross"][:, :, 3:].any()


@pytest.mark.parametrize("name", DECODERS)
def test_a_sentence_without_a_word_is_an_error(name: str) -> None:
    memory = memory_of()
    blank = memory._replace(mask_BS=memory.mask_BS.clone().index_fill_(0, torch.tensor([1]), False))
    with pytest.raises(InputError, match="nothing to attend to"):
        decoder_of(name).prepare(blank)


class Recorder:
    """A what-if that notes what it is asked and answers as it is told."""

    def __init__(self, row: Tensor | None = None, dim: float = 1.0) -> None:
        self.row, self.dim, self.asked = row, dim, []  # type: ignore[var-annotated]

    def cell(self, part: str, layer: int, direction: str = "forward") -> Callable[[Tensor], Ask]:
        def ask(position_K: Tensor) -> Ask:
            self.asked.append(("cell", layer, position_K.tolist()))
            return keep

        return ask

    def attention(self, layer: int, weights_BKNS: Tensor, mask_BS: Tensor, position_K: Tensor) -> Tensor:
        self.asked.append(("attention", tuple(weights_BKNS.shape), position_K.tolist()))
        return weights_BKNS if self.row is None else self.row.expand_as(weights_BKNS)

    def context(self, layer: int, context_BKNH: Tensor, position_K: Tensor) -> Tensor:
        self.asked.append(("context", tuple(context_BKNH.shape), position_K.tolist()))
        return context_BKNH * self.dim


def stepped(decoder: Decoder, memory: Memory, what_if: Recorder | None) -> Iterator[Tensor]:
    torch.manual_seed(1)
    state = decoder.start(decoder.prepare(memory))
    for _ in range(2):
        done = decoder.write(inputs(decoder, 3), state, what_if)
        state = done.state
        yield done.features_KR


@pytest.mark.parametrize("name", ATTENDING)
def test_a_what_if_is_asked_about_gates_attention_and_context(name: str) -> None:
    decoder, memory, asking = decoder_of(name, decoder_layers=2), memory_of(), Recorder()
    untouched, asked = list(stepped(decoder, memory, None)), list(stepped(decoder, memory, asking))
    assert all(torch.equal(before, after) for before, after in zip(untouched, asked))
    wanted = [kind for position in (0, 1) for kind in sorted(("cell0", "cell1", "attention", "context"))]
    labels = [f"cell{entry[1]}" if entry[0] == "cell" else entry[0] for entry in asking.asked]
    assert sorted(labels[:4]) + sorted(labels[4:]) == wanted
    assert [entry[2] for entry in asking.asked] == [[0] * 3] * 4 + [[1] * 3] * 4
    for what_if in (Recorder(row=torch.eye(5, dtype=torch.float64)[0]), Recorder(dim=0.5)):
        assert not torch.equal(next(stepped(decoder, memory, what_if)), untouched[0])


@pytest.mark.parametrize("name", ATTENDING)
def test_a_row_on_one_state_makes_that_state_the_context(name: str) -> None:
    decoder, memory = decoder_of(name), memory_of()
    alone = Memory(memory.states_BSH[:, :1], memory.mask_BS[:, :1], memory.summary_BH)
    edited = next(stepped(decoder, memory, Recorder(row=torch.eye(5, dtype=torch.float64)[0])))
    assert (edited - next(stepped(decoder, alone, None))).abs().max() < 1e-12
