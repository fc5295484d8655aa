"""The Transformer of Vaswani et al. (2017) with pre-norm layers, to compare with the recurrent networks.

    x_t = sqrt(D) E[y_t] + position(t)
    head(Q, K, V) = softmax(Q K' / sqrt(d)) V,   d = D / heads
    encoder block   x = x + W_o heads(n(x), n(x));  x = x + W_2 relu(W_1 n(x))
    decoder block   x = x + W_o heads(n(x), n(x) up to here);  x = x + W_o heads(n(x), encoder states);
                    x = x + W_2 relu(W_1 n(x))
    features r = n(x), logits = E r + b

B sentences, K beam rows per sentence or T target positions, S source positions, N heads, D width, d width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from seqdemo.network.attention import WhatIf, padding
from seqdemo.network.model import Network, Readout, embedding
from seqdemo.state import Memory, Seen, Step, Taught, grown, is_kept

LONGEST_WAVE = 10_000.0


def positions(place: Tensor, width: int) -> Tensor:
    """position(t) = [sin(t w_0), sin(t w_1), ..., cos(t w_0), cos(t w_1), ...], w_i = 10000^(-2 i / D); one vector per place."""
    frequency = torch.exp(torch.arange(0, width, 2, device=place.device) * (-math.log(LONGEST_WAVE) / width))
    angle = place[..., None] * frequency
    return torch.cat([angle.sin(), angle.cos()], -1)[..., :width]


class Heads(nn.Module):
    """Attention with several heads: queries from one side, keys and values from another."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        """(..., D) as (..., N, d)"""
        parts: Tensor = x.unflatten(-1, (self.heads, -1))
        return parts

    def weights(self, query_BKD: Tensor, key_BSD: Tensor, hidden_BK1S: Tensor | None) -> Tensor:
        """softmax(Q K' / sqrt(d)) for each head; hidden positions get exactly 0."""
        q_BKNd, k_BSNd = self.split(query_BKD), self.split(key_BSD)
        scores_BKNS = torch.einsum("bknd,bsnd->bkns", q_BKNd, k_BSNd) / math.sqrt(q_BKNd.shape[-1])
        if hidden_BK1S is not None:
            scores_BKNS = scores_BKNS.masked_fill(hidden_BK1S, -math.inf)
        weights_BKNS: Tensor = scores_BKNS.softmax(3)
        return weights_BKNS

    def context(self, weights_BKNS: Tensor, value_BSD: Tensor) -> Tensor:
        return torch.einsum("bkns,bsnd->bknd", weights_BKNS, self.split(value_BSD))

    def merge(self, context_BKNd: Tensor) -> Tensor:
        merged: Tensor = self.out(context_BKNd.flatten(2))
        return merged


class FeedForward(nn.Module):
    """W_2 relu(W_1 x)"""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.widen, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.narrow(self.widen(x).relu())  # type: ignore[no-any-return]


class EncoderBlock(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.embedding
        self.look, self.think = Heads(width, config.attention_heads), FeedForward(width, config.feed_forward)
        self.norm_look, self.norm_think = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x_BSD: Tensor, hidden_B11S: Tensor | None) -> tuple[Tensor, Tensor]:
        n_BSD = self.norm_look(x_BSD)
        weights_BSNS = self.look.weights(self.look.query(n_BSD), self.look.key(n_BSD), hidden_B11S)
        x_BSD = x_BSD + self.drop(self.look.merge(self.look.context(weights_BSNS, self.look.value(n_BSD))))
        return x_BSD + self.drop(self.think(self.norm_think(x_BSD))), weights_BSNS


class Source(NamedTuple):
    """The keys and values of the encoder's states, as one decoder block sees them."""

    key_BSD: Tensor
    value_BSD: Tensor


class Past(NamedTuple):
    """The keys and values of what a block has read, one row per beam row; one place is added at every step."""

    key_KTD: Tensor
    value_KTD: Tensor


class DecoderBlock(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        width, self.layer = config.embedding, layer
        self.look_back, self.look = (Heads(width, config.attention_heads) for _ in range(2))
        self.think = FeedForward(width, config.feed_forward)
        self.norm_back, self.norm_look, self.norm_think = (nn.LayerNorm(width) for _ in range(3))
        self.drop = nn.Dropout(config.dropout)

    def source(self, states_BSD: Tensor) -> Source:
        return Source(self.look.key(states_BSD), self.look.value(states_BSD))

    def past(self, n_BTD: Tensor) -> Past:
        return Past(self.look_back.key(n_BTD), self.look_back.value(n_BTD))

    def back(self, x_BKD: Tensor, n_BKD: Tensor, past: Past, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
        """Self-attention over what the row has read so far."""
        weights = self.look_back.weights(self.look_back.query(n_BKD), past.key_KTD, hidden)
        return x_BKD + self.drop(self.look_back.merge(self.look_back.context(weights, past.value_KTD))), weights

    def across(self, x_BKD: Tensor, memory: Memory, what_if: WhatIf | None, position_K: Tensor) -> tuple[Tensor, Tensor]:
        """Attention to the source, under the edits of this layer's heads."""
        source: Source = memory.prepared[self.layer]
        hidden = None if memory.padding_B1S is None else memory.padding_B1S[:, None]
        weights_BKNS = self.look.weights(self.look.query(self.norm_look(x_BKD)), source.key_BSD, hidden)
        if what_if:
            weights_BKNS = what_if.attention(self.layer, weights_BKNS, memory.mask_BS, position_K)
        context_BKNd = self.look.context(weights_BKNS, source.value_BSD)
        if what_if:
            context_BKNd = what_if.context(self.layer, context_BKNd, position_K)
        return x_BKD + self.drop(self.look.merge(context_BKNd)), weights_BKNS

    def thought(self, x_BKD: Tensor) -> Tensor:
        return x_BKD + self.drop(self.think(self.norm_think(x_BKD)))  # type: ignore[no-any-return]


class TransformerState(NamedTuple):
    blocks: tuple[Past, ...]
    position_K: Tensor  # how many tokens this row has read
    memory: Memory
    attended_KS: Tensor  # the sum of the last block's rows so far, the mean over its heads


class Transformer(Network):
    """p(y_1..y_T | x) = prod_t p(y_t | y_<t, x), with attention in the place of recurrence."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if not config.is_transformer:
            raise InputError(f"A Transformer has decoder 'transformer', not {config.decoder!r}.")
        self.config = config
        self.embed_target = embedding(config.target_vocabulary, config.embedding)
        self.embed_source = self.embed_target
        if not config.share_embeddings:
            self.embed_source = embedding(config.source_vocabulary, config.embedding)
        self.encoder = nn.ModuleList(EncoderBlock(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderBlock(config, layer) for layer in range(config.decoder_layers))
        self.norm_read, self.norm_written = nn.LayerNorm(config.embedding), nn.LayerNorm(config.embedding)
        table = self.embed_target if config.tie_readout else None
        self.readout = Readout(config.embedding, config.target_vocabulary, table)

    def entered(self, x: Tensor, place: Tensor) -> Tensor:
        """sqrt(D) e + position(t)"""
        width = self.config.embedding
        return F.dropout(math.sqrt(width) * x + positions(place, width), self.config.dropout, self.training)

    def read(self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None) -> Memory:
        return self.read_closely(source, mask_BS, what_if)[0]

    def read_closely(
        self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None
    ) -> tuple[Memory, Seen]:
        assert source is not None and mask_BS is not None
        e_BSD = source if source.is_floating_point() else self.embed_source(source)
        x_BSD = self.entered(e_BSD, torch.arange(e_BSD.shape[1], device=e_BSD.device))
        padding_B1S, seen = padding(mask_BS), Seen()
        hidden = None if padding_B1S is None else padding_B1S[:, None]
        for layer, block in enumerate(self.encoder):
            x_BSD, weights_BSNS = block(x_BSD, hidden)
            seen[f"encoder.{layer}.self"] = weights_BSNS
        states_BSD = self.norm_read(x_BSD)
        sources = tuple(block.source(states_BSD) for block in self.decoder)  # type: ignore[operator]
        real_BS1 = mask_BS[..., None].to(states_BSD.dtype)
        summary_BD = (states_BSD * real_BS1).sum(1) / real_BS1.sum(1)
        return Memory(states_BSD, mask_BS, summary_BD, sources, padding_B1S), seen

    def start(self, memory: Memory | None = None, rows: int = 1) -> TransformerState:
        assert memory is not None
        sentences, states = len(memory.mask_BS), memory.states_BSH
        nothing = states.new_zeros(sentences, 0, self.config.embedding)
        position_K = torch.zeros(sentences, dtype=torch.long, device=states.device)
        blocks = tuple(Past(nothing, nothing) for _ in self.decoder)
        return TransformerState(blocks, position_K, memory, torch.zeros_like(memory.mask_BS, dtype=states.dtype))

    def step(self, tokens_K: Tensor, state: TransformerState, what_if: WhatIf | None = None) -> Step:
        memory, position_K = state.memory, state.position_K
        sentences, deepest = len(memory.mask_BS), state.blocks[0].key_KTD.shape[1] + 1
        x_K1D = self.entered(self.embed_target(tokens_K), position_K)[:, None]
        ahead_KT = torch.arange(deepest, device=position_K.device) > position_K[:, None]
        hidden = ahead_KT[:, None, None] if bool(ahead_KT.any()) else None
        pasts, told, cross_BKNS = [], [], None
        for layer, (block, before) in enumerate(zip(self.decoder, state.blocks)):
            n_K1D = block.norm_back(x_K1D)  # type: ignore[operator]
            now = block.past(n_K1D)  # type: ignore[operator]
            past = Past(*(grown(old, new.squeeze(1), position_K) for old, new in zip(before, now)))
            x_K1D, back_K1NT = block.back(x_K1D, n_K1D, past, hidden)  # type: ignore[operator]
            x_BKD, cross_BKNS = block.across(  # type: ignore[operator]
                x_K1D.view(sentences, -1, x_K1D.shape[2]), memory, what_if, position_K
            )
            x_K1D = block.thought(x_BKD).flatten(0, 1)[:, None]  # type: ignore[operator]
            told.append((f"decoder.{layer}", {"self": back_K1NT.squeeze(1), "cross": cross_BKNS.flatten(0, 1)}))
            pasts.append(past)
        assert cross_BKNS is not None
        attended_KS = state.attended_KS + cross_BKNS.mean(2).flatten(0, 1)
        after = TransformerState(tuple(pasts), position_K + 1, memory, attended_KS)
        return Step(self.norm_written(x_K1D.squeeze(1)), after, tuple(told))

    def follow(self, target_in_BT: Tensor, state: Any, what_if: WhatIf | None, keep: Collection[str]) -> Taught:
        """All steps at once: position t sees what stands up to it."""
        assert not bool(state.position_K.any()), "a Transformer is taught from <bos> on"
        memory, seen = state.memory, Seen()
        rows, steps = target_in_BT.shape
        place_T = torch.arange(steps, device=target_in_BT.device)
        x_BTD = self.entered(self.embed_target(target_in_BT), place_T)
        ahead_T1T = (place_T > place_T[:, None])[:, None]
        pasts, cross_BTNS = [], memory.states_BSH[:, :0, None]
        for layer, block in enumerate(self.decoder):
            n_BTD = block.norm_back(x_BTD)  # type: ignore[operator]
            past = block.past(n_BTD)  # type: ignore[operator]
            x_BTD, back_BTNT = block.back(x_BTD, n_BTD, past, ahead_T1T)  # type: ignore[operator]
            x_BTD, cross_BTNS = block.across(x_BTD, memory, what_if, place_T.repeat(rows))  # type: ignore[operator]
            x_BTD = block.thought(x_BTD)  # type: ignore[operator]
            seen[f"decoder.{layer}.self"], seen[f"decoder.{layer}.cross"] = back_BTNT, cross_BTNS
            pasts.append(past)
        after = TransformerState(tuple(pasts), torch.full((rows,), steps), memory, cross_BTNS.mean(2).sum(1))
        return Taught(self.norm_written(x_BTD), after, {name: value for name, value in seen.items() if is_kept(name, keep)})
