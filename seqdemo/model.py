"""Seq2Seq and LanguageModel: encode, forward (teacher forcing), stepper (for search).

p(y_1..y_T | x) = prod_t softmax(E r_t + b)[y_t],  r_t = the decoder's features after reading y_{t-1}.

Where no gradients are asked for, encoding and `stepper` work on what is `Prepared` from the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.cells import Gates, Stack
from seqdemo.config import BOS, PAD, ModelConfig
from seqdemo.decoders import DECODERS, DecoderState, WhatIf
from seqdemo.encoders import AskAt, Encoded, ImageEncoder, TextEncoder
from seqdemo.products import tanh, twin
from seqdemo.state import Memory

StepFunction = Callable[[Tensor, Any], tuple[Tensor, Any]]
NEVER_SAID = torch.tensor([PAD, BOS])


class Prepared(NamedTuple):
    """What can be derived from a model's weights once: they themselves as inference likes them, and for every word of the
    target vocabulary what it sends to the first decoder cell."""

    stamp: tuple[tuple[int, int], ...]  # of the weights it was derived from
    model: Any  # None: nothing is gained, the model itself serves (which, named here, could never be freed)
    table_VG: Tensor


_prepared: WeakKeyDictionary[nn.Module, Prepared] = WeakKeyDictionary()
_preparing = Lock()


def prepared(model: Seq2Seq | LanguageModel) -> Prepared:
    """The model's Prepared, made at the first call and again when a weight has changed since."""
    stamp = tuple((weight.data_ptr(), -1 if weight.is_inference() else weight._version) for weight in weights(model))
    with _preparing:
        found = _prepared.get(model)
        if found is None or found.stamp != stamp:
            with torch.no_grad():
                like = twin(model)
                found = _prepared[model] = Prepared(stamp, None if like is model else like, model.table())
        return found._replace(model=model) if found.model is None else found


def weights(module: nn.Module) -> Iterator[Tensor]:
    """All parameters, one that stands in two places twice; `parameters()` takes twice the time to find them."""
    yield from (weight for weight in module._parameters.values() if weight is not None)
    for child in module._modules.values():
        if child is not None:
            yield from weights(child)


def inferring(model: nn.Module) -> bool:
    return not (model.training or torch.is_grad_enabled())


def log_probabilities(logits_KV: Tensor) -> Tensor:
    """Log softmax, and -inf for <pad> and <bos>, which are never said; the others keep theirs. Written over the logits where
    no gradient needs them: at many rows a second array of that size costs more than the arithmetic."""
    never = NEVER_SAID.to(logits_KV.device)
    if logits_KV.requires_grad:
        return torch.log_softmax(logits_KV, 1).index_fill(1, never, -torch.inf)
    return torch.log_softmax(logits_KV, 1, out=logits_KV).index_fill_(1, never, -torch.inf)


def embedding(vocabulary: int, size: int) -> nn.Embedding:
    table = nn.Embedding(vocabulary, size)
    nn.init.normal_(table.weight, std=size**-0.5)
    return table


class Readout(nn.Module):
    """logits = E r + b; E is the embedding of the target itself where the two are tied."""

    def __init__(self, features: int, vocabulary: int, table: nn.Embedding | None) -> None:
        super().__init__()
        self.weight = table.weight if table else nn.Parameter(torch.empty(vocabulary, features))
        self.b = nn.Parameter(torch.zeros(vocabulary))
        if not table:
            nn.init.normal_(self.weight, std=features**-0.5)

    def forward(self, r: Tensor) -> Tensor:
        return F.linear(r, self.weight, self.b)


class Taught(NamedTuple):
    """What teacher forcing gives: the logits, and with attention the rows of every step."""

    logits_BTV: Tensor
    weights: list[Tensor]


class Seq2Seq(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_target = embedding(config.target_vocabulary, config.embedding)
        if config.encoder == "text":
            self.embed_source = (
                self.embed_target if config.share_embeddings else embedding(config.source_vocabulary, config.embedding)
            )
            self.encoder: TextEncoder | ImageEncoder = TextEncoder(config)
        else:
            self.encoder = image_encoder(config)
        self.decoder = DECODERS[config.decoder](config)  # type: ignore[call-arg]
        table = self.embed_target if config.tie_readout else None
        self.readout = Readout(self.decoder.features_size, config.target_vocabulary, table)

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)

    def encode(self, source: Tensor, mask_BS: Tensor | None = None, ask: AskAt | None = None) -> Memory:
        """`source` is ids (B, S) with a mask, or the CNN's grid (B, cells, channels), or pictures (B, 3, side, side)."""
        return self.inference().read(source, mask_BS, ask, with_gates=False).memory

    def encode_with_gates(self, source: Tensor, mask_BS: Tensor | None = None, ask: AskAt | None = None) -> Encoded:
        return self.inference().read(source, mask_BS, ask, with_gates=True)

    def inference(self) -> Seq2Seq:
        """The model as it computes fastest now."""
        return prepared(self).model if inferring(self) else self

    def read(self, source: Tensor, mask_BS: Tensor | None, ask: AskAt | None, with_gates: bool) -> Encoded:
        if isinstance(self.encoder, ImageEncoder):
            grid_BSC = self.encoder.grid(source) if source.dim() == 4 else source
            encoded = self.encoder(grid_BSC)
        else:
            encoded = self.encoder(self.drop(self.embed_source(source)), mask_BS, ask, with_gates)
        return Encoded(self.decoder.prepare(encoded.memory), encoded.gates)

    def table(self) -> Tensor:
        """What every word of the target vocabulary sends to the first cell of the decoder."""
        return self.decoder.stack.first.project(self.embed_target.weight)

    def forward(self, source: Tensor, mask_BS: Tensor | None, target_in_BT: Tensor) -> Tensor:
        """Teacher forcing: logits_BTV."""
        return self.taught(source, mask_BS, target_in_BT).logits_BTV

    def taught(self, source: Tensor, mask_BS: Tensor | None, target_in_BT: Tensor) -> Taught:
        state = self.decoder.start(self.encode(source, mask_BS))
        zx_BTG = self.decoder.stack.first.project(self.drop(self.embed_target(target_in_BT)))
        features, weights = [], []
        for zx_BG in zx_BTG.unbind(1):
            done = self.decoder.step(zx_BG, state)
            features.append(done.features_KR)
            if done.weights_KS is not None:
                weights.append(done.weights_KS)
            state = done.state
        return Taught(self.readout(self.drop(torch.stack(features, 1))), weights)

    def stepper(self, memory: Memory, what_if: WhatIf | None = None) -> tuple[StepFunction, DecoderState]:
        """The step function search knows, and the state before <bos> is read: one row a sentence."""
        model, table_VG = prepared(self)[1:] if inferring(self) else (self, self.table())
        decoder, readout = model.decoder, model.readout

        def step(tokens_K: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
            done = decoder.step(F.embedding(tokens_K, table_VG), state, what_if)
            return log_probabilities(readout(done.features_KR)), done.state

        return step, decoder.start(memory)


class LanguageState(NamedTuple):
    layers: tuple[Any, ...]
    position_K: Tensor


class LanguageModel(nn.Module):
    """p(y_1..y_T) = prod_t p(y_t | y_<t);  s_t = RNN(s_{t-1}, e(y_{t-1}));  p = softmax(E r_t + b),  r_t = s_t or tanh(W s_t)"""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_target = embedding(config.target_vocabulary, config.embedding)
        self.stack = Stack(config.cell, config.embedding, config.decoder_hidden, config.decoder_layers, config.dropout)
        self.mix = nn.Linear(config.decoder_hidden, config.features) if config.features else None
        table = self.embed_target if config.tie_readout else None
        self.readout = Readout(config.features or config.decoder_hidden, config.target_vocabulary, table)

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)

    def start(self, rows: int = 1) -> LanguageState:
        h_KH = self.embed_target.weight.new_zeros(rows, self.config.decoder_hidden)
        position_K = torch.zeros(rows, dtype=torch.long, device=h_KH.device)
        return LanguageState(self.stack.initial([h_KH] * self.config.decoder_layers), position_K)

    def read(
        self, zx_KG: Tensor, state: LanguageState, what_if: WhatIf | None = None
    ) -> tuple[Tensor, LanguageState, list[Gates]]:
        ask = (lambda layer: what_if.gates(layer, state.position_K)) if what_if else None
        layers, gates = self.stack.step(zx_KG, state.layers, ask)
        s_KH = layers[-1].h
        return tanh(self.mix(s_KH)) if self.mix else s_KH, LanguageState(layers, state.position_K + 1), gates

    def forward(self, target_in_BT: Tensor, state: LanguageState | None = None) -> tuple[Tensor, LanguageState]:
        """Logits_BTV, and the state after the last token, to go on from."""
        state = state or self.start(len(target_in_BT))
        zx_BTG = self.stack.first.project(self.drop(self.embed_target(target_in_BT)))
        features = []
        for zx_BG in zx_BTG.unbind(1):
            r_BR, state, _ = self.read(zx_BG, state)
            features.append(r_BR)
        return self.readout(self.drop(torch.stack(features, 1))), state

    def table(self) -> Tensor:
        return self.stack.first.project(self.embed_target.weight)

    def stepper(self, rows: int = 1, what_if: WhatIf | None = None) -> tuple[StepFunction, LanguageState]:
        model, table_VG = prepared(self)[1:] if inferring(self) else (self, self.table())

        def step(tokens_K: Tensor, state: LanguageState) -> tuple[Tensor, LanguageState]:
            r_KR, state, _ = model.read(F.embedding(tokens_K, table_VG), state, what_if)
            return log_probabilities(model.readout(r_KR)), state

        return step, self.start(rows)


def image_encoder(config: ModelConfig) -> ImageEncoder:
    from seqdemo.cnn import EfficientNetLite

    cnn = EfficientNetLite(config.cnn)
    return ImageEncoder(config, cnn, cnn.channels)
