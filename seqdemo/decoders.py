"""Where the context enters: four decoders whose few lines differ in order.

e is the embedding of the token before, s the top hidden vector, c the context, r the features the readout sees:
r = tanh(W [s; c]), or [s; c] itself. B sentences, K beam rows (sentence-major, the same number a sentence).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from seqdemo.attention import SCORES, attend, padding
from seqdemo.cells import Ask, Gates, Stack, State
from seqdemo.config import ModelConfig
from seqdemo.products import tanh
from seqdemo.state import Memory


class WhatIf(Protocol):
    """How a decoder consults the edits of a run: about the gates of a layer, about attention, about the context vector."""

    def gates(self, layer: int, position_K: Tensor) -> Ask: ...

    def weights(self, weights_BKS: Tensor, mask_BS: Tensor, position_K: Tensor) -> Tensor: ...

    def context(self, context_BKH: Tensor, position_K: Tensor) -> Tensor: ...


class DecoderState(NamedTuple):
    layers: tuple[State, ...]
    position_K: Tensor  # how many tokens this row has read
    memory: Memory
    feed_KR: Tensor | None = None  # attend-after: the features before, fed back
    attended_KS: Tensor | None = None  # with attention: the sum of its rows so far


class DecoderStep(NamedTuple):
    features_KR: Tensor
    state: DecoderState
    weights_KS: Tensor | None
    gates: list[Gates]  # by layer


class Decoder(nn.Module):
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
        """All that can be computed once a sentence."""
        return memory._replace(padding_B1S=padding(memory.mask_BS))

    def start(self, memory: Memory) -> DecoderState:
        """s_0 = tanh(V summary), one row a sentence."""
        h_LKH = tanh(self.bridge(memory.summary_BH)).chunk(self.layers, 1)
        position_K = torch.zeros(len(memory.mask_BS), dtype=torch.long, device=memory.mask_BS.device)
        return DecoderState(self.stack.initial(list(h_LKH)), position_K, memory)

    def step(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> DecoderStep:
        raise NotImplementedError

    def features(self, s_KH: Tensor, c_KH: Tensor | None) -> Tensor:
        seen = torch.cat([s_KH, c_KH], 1) if self.read_context and c_KH is not None else s_KH
        return tanh(self.mix(seen)) if self.mix else seen

    def recur(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None) -> tuple[Tensor, tuple[State, ...], list[Gates]]:
        ask = (lambda layer: what_if.gates(layer, state.position_K)) if what_if else None
        layers, gates = self.stack.step(zx_KG, state.layers, ask)
        return layers[-1].h, layers, gates


class ContextOnce(Decoder):
    """s_0 = tanh(V h_T);  s_t = RNN(s_{t-1}, e);  r = tanh(W s_t)"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, 0)

    def step(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> DecoderStep:
        s_KH, layers, gates = self.recur(zx_KG, state, what_if)
        return DecoderStep(self.features(s_KH, None), state._replace(layers=layers, position_K=state.position_K + 1), None, gates)


class ContextEach(Decoder):
    """s_0 = tanh(V h_T);  s_t = RNN(s_{t-1}, [e; h_T]);  r = tanh(W [s_t; h_T])"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.memory_size)

    def prepare(self, memory: Memory) -> Memory:
        assert self.enter
        return super().prepare(memory)._replace(context_BSG=self.enter(memory.summary_BH)[:, None])

    def step(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> DecoderStep:
        memory = state.memory
        assert memory.context_BSG is not None
        zx_KG = (zx_KG.unflatten(0, (len(memory.mask_BS), -1)) + memory.context_BSG).flatten(0, 1)
        s_KH, layers, gates = self.recur(zx_KG, state, what_if)
        beams = len(zx_KG) // len(memory.mask_BS)
        c_KH = memory.summary_BH if beams == 1 else memory.summary_BH.repeat_interleave(beams, 0)
        return DecoderStep(self.features(s_KH, c_KH), state._replace(layers=layers, position_K=state.position_K + 1), None, gates)


class Attending(Decoder):
    def __init__(self, config: ModelConfig, context: int) -> None:
        super().__init__(config, context)
        self.score = SCORES[config.score](config.memory_size, config.decoder_hidden, config.attention)

    def prepare(self, memory: Memory) -> Memory:
        return super().prepare(memory)._replace(keys_BSA=self.score.keys(memory.states_BSH))

    def start(self, memory: Memory) -> DecoderState:
        return super().start(memory)._replace(attended_KS=torch.zeros_like(memory.mask_BS, dtype=memory.states_BSH.dtype))

    def look(self, query_KH: Tensor, state: DecoderState, what_if: WhatIf | None) -> tuple[Tensor, Tensor]:
        """weights_KS and context_KH for one query a row."""
        memory, position_K = state.memory, state.position_K
        query_BKH = query_KH.view(len(memory.mask_BS), -1, query_KH.shape[1])
        scores_BKS = self.score(query_BKH, memory.keys_BSA)
        edit: Callable[[Tensor], Tensor] | None = None
        if what_if:
            edit = lambda weights_BKS: what_if.weights(weights_BKS, memory.mask_BS, position_K)  # noqa: E731
        weights_BKS, context_BKH = attend(scores_BKS, memory.padding_B1S, memory.states_BSH, edit)
        if what_if:
            context_BKH = what_if.context(context_BKH, position_K)
        return weights_BKS.flatten(0, 1), context_BKH.flatten(0, 1)

    def done(
        self,
        r_KR: Tensor,
        state: DecoderState,
        layers: tuple[State, ...],
        weights_KS: Tensor,
        gates: list[Gates],
        feed_KR: Tensor | None,
    ) -> DecoderStep:
        assert state.attended_KS is not None
        after = DecoderState(layers, state.position_K + 1, state.memory, feed_KR, state.attended_KS + weights_KS)
        return DecoderStep(r_KR, after, weights_KS, gates)


class AttendBefore(Attending):
    """Bahdanau: c_t = attend(s_{t-1});  s_t = RNN(s_{t-1}, [e; c_t]);  r = tanh(W [s_t; c_t])"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.memory_size)

    def step(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> DecoderStep:
        assert self.enter
        weights_KS, c_KH = self.look(state.layers[-1].h, state, what_if)
        s_KH, layers, gates = self.recur(zx_KG + self.enter(c_KH), state, what_if)
        return self.done(self.features(s_KH, c_KH), state, layers, weights_KS, gates, None)


class AttendAfter(Attending):
    """Luong with input feeding: s_t = RNN(s_{t-1}, [e; r_{t-1}]);  c_t = attend(s_t);  r_t = tanh(W [s_t; c_t])"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, config.features or config.readout_input)

    def start(self, memory: Memory) -> DecoderState:
        feed_KR = memory.states_BSH.new_zeros(len(memory.mask_BS), self.features_size)
        return super().start(memory)._replace(feed_KR=feed_KR)

    def step(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> DecoderStep:
        assert self.enter
        s_KH, layers, gates = self.recur(zx_KG + self.enter(state.feed_KR), state, what_if)
        weights_KS, c_KH = self.look(s_KH, state, what_if)
        r_KR = self.features(s_KH, c_KH)
        return self.done(r_KR, state, layers, weights_KS, gates, r_KR)


DECODERS: dict[str, type[Decoder]] = {
    "context-once": ContextOnce,
    "context-each": ContextEach,
    "attend-before": AttendBefore,
    "attend-after": AttendAfter,
}
