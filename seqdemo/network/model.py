"""The interface of every network, and the recurrent networks Seq2Seq and LanguageModel.

    memory = network.read(source, mask)          None where there is nothing to read
    state = network.start(memory, rows)          one row per sentence, before <bos>
    done = network.step(tokens_K, state)         one token per row
    logits = network.readout(done.features_KR)

`teach` takes the same steps over given tokens. Search, replay, training and gradients use nothing else of a network.

p(y_1..y_T | x) = prod_t softmax(E r_t + b)[y_t],  r_t = the features after reading y_{t-1}.

A network computes with its own parameters; `for_inference` makes one of constant weights that computes faster.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.config import BOS, PAD, ModelConfig
from seqdemo.errors import InputError
from seqdemo.moved import warn
from seqdemo.network.attention import WhatIf
from seqdemo.network.cells import Stack
from seqdemo.network.coders import DECODERS, DecoderState, ImageEncoder, TextEncoder, Writer
from seqdemo.network.inference import WithInference
from seqdemo.network.packed import linear_map
from seqdemo.network.pretrained import Pretrained
from seqdemo.state import Memory, Seen, Step, StepFunction, Taught, by_head, is_kept, stacked

NEVER_SAID = torch.tensor([PAD, BOS])


class Network(WithInference, Pretrained):
    """Parameters, and the equations that use them."""

    config: ModelConfig
    readout: nn.Module  # features -> logits

    def read(self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None) -> Memory | None:
        """A Memory of the sources, one row each. `source` is ids (B, S) with a mask, their embeddings, the grid of a
        CNN (B, cells, channels) or pictures (B, 3, side, side)."""
        raise NotImplementedError

    def read_closely(
        self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None
    ) -> tuple[Memory | None, Seen]:
        """The Memory, and everything computed on the way, by path: 'encoder.0.backward.forget' (B, S, units)."""
        raise NotImplementedError

    def start(self, memory: Memory | None = None, rows: int = 1) -> Any:
        """The state before <bos>: one row for each sentence of the memory, or `rows` rows without a memory. `seqdemo.state` says
        what a state may be."""
        raise NotImplementedError

    def step(self, tokens_K: Tensor, state: Any, what_if: WhatIf | None = None) -> Step:
        """Read one token per row. K is a multiple of the number of sentences in the memory."""
        raise NotImplementedError

    def teach(
        self,
        source: Tensor | None,
        mask_BS: Tensor | None,
        target_in_BT: Tensor,
        what_if: WhatIf | None = None,
        keep: Collection[str] = (),
        state: Any = None,
    ) -> Taught:
        """Teacher forcing: read the source, then all of these tokens, from <bos> on. `keep` names the values to return (see
        `is_kept`). With `state`, continue from there and read no source."""
        seen: Seen = {}
        if state is None and keep:
            memory, seen = self.read_closely(source, mask_BS, what_if)
            state = self.start(memory, len(target_in_BT))
        elif state is None:
            state = self.start(self.read(source, mask_BS, what_if), len(target_in_BT))
        done = self.follow(target_in_BT, state, what_if, keep)
        read = {name: value for name, value in seen.items() if is_kept(name, keep)}
        return done._replace(seen=by_head(read | done.seen))

    def follow(self, target_in_BT: Tensor, state: Any, what_if: WhatIf | None, keep: Collection[str]) -> Taught:
        """The steps of `teach` after this state."""
        raise NotImplementedError

    def forward(self, source: Tensor, mask_BS: Tensor | None, target_in_BT: Tensor) -> Tensor:
        """Teacher forcing: logits_BTV."""
        logits_BTV: Tensor = self.readout(self.teach(source, mask_BS, target_in_BT).features_BTR)
        return logits_BTV

    def stepper(self, memory: Memory | None = None, what_if: WhatIf | None = None, rows: int = 1) -> tuple[StepFunction, Any]:
        """The step function for a search, and the state before <bos>."""
        refuse_devices(self)

        def step(tokens_K: Tensor, state: Any) -> tuple[Tensor, Any]:
            done = self.step(tokens_K, state, what_if)
            return log_probabilities(self.readout(done.features_KR), own=True), done.state

        return step, self.start(memory, rows)


def log_probabilities(logits_KV: Tensor, own: bool = False) -> Tensor:
    """Log softmax, at least in float32. <pad> and <bos>, which are never said, get -inf; the others keep their values. With
    `own` the logits are overwritten, because for many rows a second array costs more than the arithmetic."""
    single = logits_KV.dtype in (torch.bfloat16, torch.float16)
    if logits_KV.requires_grad:  # the gradient of a log softmax is made from its result, so this cannot be written on
        logp_KV = torch.log_softmax(logits_KV, 1, dtype=torch.float32 if single else None)
        return logp_KV.index_fill(1, NEVER_SAID.to(logp_KV.device), -torch.inf)
    if single:
        logits_KV, own = logits_KV.float(), True
    logp_KV = torch.log_softmax(logits_KV, 1, out=logits_KV if own else None)
    logp_KV.narrow(1, 0, len(NEVER_SAID)).fill_(-torch.inf)  # the first two tokens
    return logp_KV


def refuse_devices(network: Any) -> None:
    """Searches and replays compute on the processor."""
    device = network.embed_target.weight.device
    if device.type != "cpu":
        raise InputError(
            f"Searches and replays compute on the processor, and these weights lie on {device}; give them for_inference(), which "
            "makes a copy on the processor, or move the network with .cpu()."
        )


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
        return linear_map(r, self.weight, self.b)


class Recurrent(Network):
    """A network whose decoder is a stack of cells. `decoder` is the part that writes; in a language model it is the network
    itself."""

    embed_target: nn.Embedding
    decoder: Any
    table_VG: Tensor | None = None  # for inference: what every word of the target vocabulary sends to the first cell

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)

    def entered(self, tokens: Tensor) -> Tensor:
        """What these tokens send to the first cell of the decoder: W e + b."""
        if self.table_VG is not None:
            return F.embedding(tokens, self.table_VG)
        sent: Tensor = self.decoder.stack.first.project(self.drop(self.embed_target(tokens)))
        return sent

    def derived(self) -> dict[str, Any]:
        return {"table_VG": self.decoder.stack.first.project(self.embed_target.weight)}

    def step(self, tokens_K: Tensor, state: Any, what_if: WhatIf | None = None) -> Step:
        done: Step = self.decoder.write(self.entered(tokens_K), state, what_if)
        return done

    def follow(self, target_in_BT: Tensor, state: Any, what_if: WhatIf | None, keep: Collection[str]) -> Taught:
        features: list[Tensor] = []
        steps: dict[str, list[Tensor]] = {}
        for zx_BG in self.entered(target_in_BT).unbind(1):
            done = self.decoder.write(zx_BG, state, what_if)
            state = done.state
            features.append(done.features_KR)
            if keep:
                for name, value in done.seen.items():
                    if is_kept(name, keep):
                        steps.setdefault(name, []).append(value)
        return Taught(self.drop(torch.stack(features, 1)), state, {name: stacked(values) for name, values in steps.items()})


class Seq2Seq(Recurrent):
    """p(y_1..y_T | x) = prod_t p(y_t | y_<t, x): an encoder reads x, a decoder writes y."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.encoder == "none":
            raise InputError("A Seq2Seq reads a text or an image; with encoder 'none' the model is a LanguageModel.")
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

    def read(self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None) -> Memory:
        return self.encoded(source, mask_BS, what_if, closely=False)[0]

    def read_closely(
        self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None
    ) -> tuple[Memory, Seen]:
        return self.encoded(source, mask_BS, what_if, closely=True)

    def encode(self, source: Tensor, mask_BS: Tensor | None = None) -> Memory:
        """The old name of `read`."""
        warn("Seq2Seq.encode", "Seq2Seq.read", 3)
        return self.read(source, mask_BS)

    def encoded(
        self, source: Tensor | None, mask_BS: Tensor | None, what_if: WhatIf | None, closely: bool
    ) -> tuple[Memory, Seen]:
        assert source is not None
        if isinstance(self.encoder, ImageEncoder):
            memory, seen = self.encoder(self.encoder.grid(source) if source.dim() == 4 else source)
        else:
            x_BSE = source if source.is_floating_point() else self.embed_source(source)
            memory, seen = self.encoder(self.drop(x_BSE), mask_BS, what_if, closely)
        return self.decoder.prepare(memory), seen

    def start(self, memory: Memory | None = None, rows: int = 1) -> DecoderState:
        """s_0 from the memory's summary, one row for each of its sentences."""
        assert memory is not None
        started: DecoderState = self.decoder.start(memory)
        return started


class OneStack(Recurrent, Writer):
    """One stack of cells that is the decoder and the whole network at once.

    s_t = RNN(s_{t-1}, e(y_{t-1}));  p = softmax(E r_t + b),  r_t = s_t or tanh(W s_t)
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_target = embedding(config.target_vocabulary, config.embedding)
        self.stack = Stack(config.cell, config.embedding, config.decoder_hidden, config.decoder_layers, config.dropout)
        self.mix = nn.Linear(config.decoder_hidden, config.features) if config.features else None
        table = self.embed_target if config.tie_readout else None
        self.readout = Readout(config.features or config.decoder_hidden, config.target_vocabulary, table)

    @property
    def decoder(self) -> OneStack:
        return self

    def blank(self, rows: int) -> tuple[Any, ...]:
        """s_0 = 0"""
        h_KH = self.embed_target.weight.new_zeros(rows, self.config.decoder_hidden)
        return self.stack.initial([h_KH] * self.config.decoder_layers)

    def write(self, zx_KG: Tensor, state: DecoderState, what_if: WhatIf | None = None) -> Step:
        s_KH, layers, seen = self.recur(zx_KG, state, what_if)
        return Step(self.features(s_KH), state._replace(layers=layers, position_K=state.position_K + 1), seen)


class LanguageModel(OneStack):
    """p(y_1..y_T) = prod_t p(y_t | y_<t): it has no source and reads only its own text."""

    def __init__(self, config: ModelConfig) -> None:
        if config.encoder != "none":
            raise InputError(f"A LanguageModel reads nothing beside its own text: its encoder is 'none', not {config.encoder!r}.")
        super().__init__(config)

    def read(self, source: Tensor | None = None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None) -> None:
        return None

    def read_closely(
        self, source: Tensor | None = None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None
    ) -> tuple[None, Seen]:
        return None, {}

    def start(self, memory: Memory | None = None, rows: int = 1) -> DecoderState:
        return DecoderState(self.blank(rows), torch.zeros(rows, dtype=torch.long, device=self.embed_target.weight.device))

    def forward(  # type: ignore[override]
        self, target_in_BT: Tensor, state: DecoderState | None = None
    ) -> tuple[Tensor, DecoderState]:
        """Logits_BTV, and the state after the last token, from which one can continue."""
        taught = self.teach(None, None, target_in_BT, state=state)
        return self.readout(taught.features_BTR), taught.state


def image_encoder(config: ModelConfig) -> ImageEncoder:
    from seqdemo.network.cnn import EfficientNetLite

    cnn = EfficientNetLite(config.cnn, config.finer)
    return ImageEncoder(config, cnn, cnn.channels)
