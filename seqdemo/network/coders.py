"""The two sides of a recurrent network: encoders turn a source into a Memory, decoders write from it.

h_t = RNN(h_{t-1}, e(x_t)), from the left, and with `bidirectional` also from the right: state t is [forward_t; backward_t],
the summary [forward_S; backward_1].

Decoders differ in where the context enters. e is the embedding of the token before, s the top hidden vector, c the context,
r the features the readout sees: r = tanh(W [s; c]), or [s; c] itself. B sentences, K beam rows (sentence-major, the same
number per sentence).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.config import ModelConfig
from seqdemo.edits import DIRECTIONS
from seqdemo.network.attention import SCORES, WhatIf, attend, edited, half_drawn, likeliest, padding
from seqdemo.network.cells import CELLS, LSTM, Ask, Cell, LSTMForgetBias, Stack, State, keep, unroll
from seqdemo.network.packed import WholeLSTM, linear_map, packable, tanh
from seqdemo.state import Memory, Seen, Step, Told

PLAIN_LSTMS = (LSTM, LSTMForgetBias)
Turn = Callable[[Tensor], Tensor]


class Encoded(NamedTuple):
    """A Memory, and what was computed on the way, by path, in the order of the positions: 'encoder.0.backward.forget'
    (B, S, units). Empty unless asked for."""

    memory: Memory
    seen: Seen


def mirror(lengths_B: Tensor, steps: int) -> Tensor:
    """For each row, the positions that reverse its real part and keep its padding in place."""
    position_BS = torch.arange(steps, device=lengths_B.device).expand(len(lengths_B), steps)
    turned_BS = lengths_B[:, None] - 1 - position_BS
    return torch.where(turned_BS >= 0, turned_BS, position_BS)


def reorder(x_BSH: Tensor, order_BS: Tensor) -> Tensor:
    rows, steps = order_BS.shape
    row_B1 = torch.arange(rows, device=order_BS.device)[:, None]
    return x_BSH.flatten(0, 1).index_select(0, (row_B1 * steps + order_BS).flatten()).view_as(x_BSH)


def unturned(x_BSH: Tensor) -> Tensor:
    return x_BSH


def backwards(mask_BS: Tensor) -> tuple[Turn, Turn]:
    """Two functions of values over the positions (B, S, ...): their real part reversed, with the padding in place, and their last
    real entry. Without padding these are a flip and a slice."""
    if bool(mask_BS.all()):
        return (lambda x_BSH: x_BSH.flip(1)), (lambda x_BSH: x_BSH[:, -1])
    lengths_B = mask_BS.sum(1)
    order_BS, last_B11 = mirror(lengths_B, mask_BS.shape[1]), (lengths_B - 1)[:, None, None]
    return (
        lambda x_BSH: reorder(x_BSH, order_BS),
        lambda x_BSH: x_BSH.gather(1, last_B11.expand(-1, 1, x_BSH.shape[2])).squeeze(1),
    )


class TextEncoder(nn.Module):
    """Each layer reads the states of the one below; backward cells read the mirrored sentence, so that padding always comes
    last and never touches a real state."""

    least_precision = "float32"  # `whole` supports no other, and a replay must use the same weights
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

    def derived(self) -> dict[str, Any]:
        if not packable():
            return {}
        places = itertools.product(range(len(self.layers)), self.directions)
        cells = {(layer, direction): self.cell(layer, direction) for layer, direction in places}
        lstms = {place: cell for place, cell in cells.items() if type(cell) in PLAIN_LSTMS and cell.W.dtype == torch.float32}
        return {"whole": {place: WholeLSTM(cell.W, cell.U, cell.b) for place, cell in lstms.items()}}

    def forward(self, x_BSE: Tensor, mask_BS: Tensor, what_if: WhatIf | None = None, closely: bool = True) -> Encoded:
        turn, last = backwards(mask_BS)
        seen: Seen = {}
        ends: list[Tensor] = []
        for layer in range(len(self.layers)):
            if layer:
                x_BSE = F.dropout(x_BSE, self.dropout, self.training)
            outputs, ends = [], []
            for direction in self.directions:
                turned = turn if direction == "backward" else unturned
                states_BSH, named = self.read(x_BSE, turned, layer, direction, what_if, closely)
                ends.append(last(states_BSH))
                outputs.append(turned(states_BSH))
                for name, value_BSH in named.items():
                    seen[f"encoder.{layer}.{direction}.{name}"] = turned(value_BSH)
            x_BSE = torch.cat(outputs, 2)
        return Encoded(Memory(x_BSE, mask_BS, torch.cat(ends, 1)), seen)

    def read(
        self, x_BSE: Tensor, turned: Turn, layer: int, direction: str, what_if: WhatIf | None, closely: bool
    ) -> tuple[Tensor, Seen]:
        """The states and the terms, in the order in which the cell reads."""
        x_BSE = turned(x_BSE)
        whole = self.whole.get((layer, direction))
        ask_at = what_if.cell("encoder", layer, direction) if what_if else None
        if whole and not (ask_at or closely):
            return whole(x_BSE), {}
        cell = self.cell(layer, direction)
        zx_BSG = linear_map(x_BSE, cell.W, whole.sent_b) if whole else cell.project(x_BSE)  # the same numbers in either way
        start_BH = zx_BSG.new_zeros(len(x_BSE), self.hidden)
        here_BS = torch.arange(x_BSE.shape[1], device=x_BSE.device).expand(len(x_BSE), -1)
        states, seen = unroll(cell, zx_BSG, cell.initial(start_BH), ask_at, turned(here_BS))
        named = {name: torch.stack([step[name] for step in seen], 1) for name in seen[0]} if closely else {}
        return torch.stack([state.h for state in states], 1), {"sent": zx_BSG, **named} if closely else {}


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
        """Dropout leaves out a channel in all cells or in none. If each cell lost channels of its own, the mean of many cells
        would lose almost nothing and a single cell much, so attention would learn to look everywhere."""
        grid_BSC = F.dropout1d(grid_BSC.transpose(1, 2), self.dropout, self.training).transpose(1, 2)
        mask_BS = torch.ones(grid_BSC.shape[:2], dtype=torch.bool, device=grid_BSC.device)
        memory = Memory(tanh(self.states(grid_BSC)), mask_BS, tanh(self.summary(grid_BSC.mean(1))))
        return Encoded(memory, {})


class DecoderState(NamedTuple):
    layers: tuple[State, ...]
    position_K: Tensor  # how many tokens this row has read
    memory: Memory | None = None  # None: nothing was read, as in a language model
    feed_KR: Tensor | None = None  # attend-after: the features of the step before
    attended_KS: Tensor | None = None  # with attention: the sum of its rows so far


class Writer(nn.Module):
    """The common part of a decoder and a language model: s_t = RNN(s_{t-1}, x_t);  r_t = tanh(W seen), or what was seen
    itself."""

    stack: Stack
    mix: nn.Linear | None

    def write(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> Step:
        """One step, `zx_KG` being what the token sends to the first cell (W e + b)."""
        raise NotImplementedError

    def recur(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None) -> tuple[Tensor, tuple[State, ...], Told]:
        asks: list[Ask] = []
        if what_if:
            ask_at = (what_if.cell("decoder", layer) for layer in range(len(state.layers)))
            asks = [ask(state.position_K) if ask else keep for ask in ask_at]
        layers, seen = self.stack.step(zx_KG, state.layers, asks)
        return layers[-1].h, layers, tuple((f"decoder.{layer}", named) for layer, named in enumerate(seen))

    def features(self, seen_KX: Tensor) -> Tensor:
        return tanh(self.mix(seen_KX)) if self.mix else seen_KX


class Decoder(Writer):
    """`context` is the width of what enters the cell beside e (0: nothing)."""

    def __init__(self, config: ModelConfig, context: int) -> None:
        super().__init__()
        self.stack = Stack(config.cell, config.embedding, config.decoder_hidden, config.decoder_layers, config.dropout)
        self.bridge = nn.Linear(config.memory_size, config.decoder_hidden * config.decoder_layers)
        self.enter = nn.Linear(context, self.stack.first.width, bias=False) if context else None
        self.mix = nn.Linear(config.readout_input, config.features) if config.features else None
        self.features_size = config.features or config.readout_input
        self.read_context = config.readout_input > config.decoder_hidden
        self.layers = config.decoder_layers

    def prepare(self, memory: Memory) -> Memory:
        """Compute whatever is needed only once per sentence."""
        return memory._replace(padding_B1S=padding(memory.mask_BS))

    def start(self, memory: Memory) -> DecoderState:
        """s_0 = tanh(V summary), one row per sentence."""
        h_LKH = tanh(self.bridge(memory.summary_BH)).chunk(self.layers, 1)
        position_K = torch.zeros(len(memory.mask_BS), dtype=torch.long, device=memory.mask_BS.device)
        return DecoderState(self.stack.initial(list(h_LKH)), position_K, memory)

    def with_context(self, s_KH: Tensor, c_KH: Tensor) -> Tensor:
        """What the features are made of: [s; c], or s alone where the context does not reach the readout."""
        return torch.cat([s_KH, c_KH], 1) if self.read_context else s_KH


class ContextOnce(Decoder):
    """s_0 = tanh(V h_T);  s_t = RNN(s_{t-1}, e);  r = tanh(W s_t)"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, 0)

    def write(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> Step:
        s_KH, layers, seen = self.recur(zx_KG, state, what_if)
        return Step(self.features(s_KH), state._replace(layers=layers, position_K=state.position_K + 1), seen)


class ContextEach(Decoder):
    """s_0 = tanh(V h_T);  s_t = RNN(s_{t-1}, [e; h_T]);  r = tanh(W [s_t; h_T])"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.memory_size)

    def prepare(self, memory: Memory) -> Memory:
        """What h_T sends to the cell."""
        assert self.enter
        return super().prepare(memory)._replace(prepared=self.enter(memory.summary_BH))

    def write(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> Step:
        assert state.memory
        summary_BH, sent_BG = state.memory.summary_BH, state.memory.prepared
        beams = len(zx_KG) // len(summary_BH)
        zx_KG = (zx_KG.unflatten(0, (-1, beams)) + sent_BG[:, None]).flatten(0, 1)
        s_KH, layers, seen = self.recur(zx_KG, state, what_if)
        c_KH = summary_BH if beams == 1 else summary_BH.repeat_interleave(beams, 0)
        r_KR = self.features(self.with_context(s_KH, c_KH))
        after = state._replace(layers=layers, position_K=state.position_K + 1)
        return Step(r_KR, after, (*seen, ("decoder.0", {"context": c_KH})))


class Attending(Decoder):
    def __init__(self, config: ModelConfig, context: int) -> None:
        super().__init__(config, context)
        self.score = SCORES[config.score](config.memory_size, config.decoder_hidden, config.attention)
        self.hard = config.hard

    def prepare(self, memory: Memory) -> Memory:
        """The keys of all states."""
        return super().prepare(memory)._replace(prepared=self.score.keys(memory.states_BSH))

    def start(self, memory: Memory) -> DecoderState:
        return super().start(memory)._replace(attended_KS=torch.zeros_like(memory.mask_BS, dtype=memory.states_BSH.dtype))

    def look(self, query_KH: Tensor, state: DecoderState, what_if: WhatIf | None) -> tuple[Tensor, Tensor, Told]:
        """context_KH and weights_KS for one query a row, and other values of interest."""
        memory, position_K = state.memory, state.position_K
        assert memory
        scores_BKS = self.score(query_KH.view(len(memory.mask_BS), -1, query_KH.shape[1]), memory.prepared)

        edit = partial(edited, what_if, memory.mask_BS, position_K) if what_if else None
        weights_BKS, context_BKH = attend(scores_BKS, memory.padding_B1S, memory.states_BSH, edit)
        chosen: Seen = {}
        if self.hard:
            chosen = self.choose(weights_BKS.flatten(0, 1), position_K, what_if)
            weights_BKS = chosen["cross"].view_as(weights_BKS)
            context_BKH = torch.bmm(weights_BKS.to(memory.states_BSH.dtype), memory.states_BSH)
        if what_if:
            context_BKH = what_if.context(0, context_BKH[:, :, None], position_K).squeeze(2)
        rows = len(query_KH)
        weights_KS, context_KH = weights_BKS.view(rows, -1), context_BKH.view(rows, -1)
        seen = {"query": query_KH, "scores": scores_BKS.view(rows, -1), "cross": weights_KS[:, None], "context": context_KH}
        return context_KH, weights_KS, (("decoder.0", {**chosen, **seen}),)

    def choose(self, weights_KS: Tensor, position_K: Tensor, what_if: WhatIf | None) -> Seen:
        """Hard attention: the one position, the distribution it comes from, and in training which rows drew it."""
        told = {"distribution": weights_KS[:, None]}
        if self.training:
            cross_KS, drawn_K = half_drawn(weights_KS)
            return {**told, "cross": cross_KS, "drawn": drawn_K}
        return {**told, "cross": what_if.one_position(weights_KS, position_K) if what_if else likeliest(weights_KS)}

    def done(self, r_KR: Tensor, state: DecoderState, layers: tuple[State, ...], weights_KS: Tensor, *told: Told) -> Step:
        assert state.attended_KS is not None
        feed_KR = None if state.feed_KR is None else r_KR
        after = DecoderState(layers, state.position_K + 1, state.memory, feed_KR, state.attended_KS + weights_KS)
        return Step(r_KR, after, tuple(itertools.chain(*told)))


class AttendBefore(Attending):
    """Bahdanau: c_t = attend(s_{t-1});  s_t = RNN(s_{t-1}, [e; c_t]);  r = tanh(W [s_t; c_t])"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.memory_size)

    def write(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> Step:
        assert self.enter
        c_KH, weights_KS, looked = self.look(state.layers[-1].h, state, what_if)
        s_KH, layers, seen = self.recur(self.enter(c_KH).add_(zx_KG), state, what_if)
        r_KR = self.features(self.with_context(s_KH, c_KH))
        return self.done(r_KR, state, layers, weights_KS, seen, looked)


class AttendAfter(Attending):
    """Luong with input feeding: s_t = RNN(s_{t-1}, [e; r_{t-1}]);  c_t = attend(s_t);  r_t = tanh(W [s_t; c_t])"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.features or config.readout_input)

    def start(self, memory: Memory) -> DecoderState:
        feed_KR = memory.states_BSH.new_zeros(len(memory.mask_BS), self.features_size)
        return super().start(memory)._replace(feed_KR=feed_KR)

    def write(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> Step:
        assert self.enter
        s_KH, layers, seen = self.recur(self.enter(state.feed_KR).add_(zx_KG), state, what_if)
        c_KH, weights_KS, looked = self.look(s_KH, state, what_if)
        r_KR = self.features(self.with_context(s_KH, c_KH))
        return self.done(r_KR, state, layers, weights_KS, seen, looked)


DECODERS: dict[str, type[Decoder]] = {
    "context-once": ContextOnce,
    "context-each": ContextEach,
    "attend-before": AttendBefore,
    "attend-after": AttendAfter,
}
