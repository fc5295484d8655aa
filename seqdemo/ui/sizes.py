"""The number of parameters of a model and the cost of a step: every formula, with its numbers filled in.

V target words, E embedding, H units, M width of an encoder state, A keys and queries, R features, S source pieces. Multiply-adds
are those of the equations; a table of input products, made once, saves some of them in practice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from seqdemo.config import ModelConfig
from seqdemo.equations import blocks

# The side of a CNN's grid, the channels of a cell, and those that features of a finer stage add.
GRIDS = {"efficientnet-lite0": (7, 320, 224), "efficientnet-lite1": (8, 320, 224), "efficientnet-lite2": (9, 352, 240)}
ONCE, READING, WRITING, CELL = "per input", "per piece read", "per piece written", "per grid cell"
SOURCE_PIECES = 20  # source pieces for which attention is counted, unless a grid fixes their number


@dataclass(frozen=True)
class Part:
    """A part of the model: its parameters and its multiply-adds, `work` times `every`."""

    name: str
    formula: str  # with letters
    filled: str  # with numbers
    parameters: int
    work: int
    every: str


def product(*factors: int) -> str:
    return " · ".join(f"{factor:,}" for factor in factors)


def linear(name: str, letters: str, inputs: int, outputs: int, every: str, bias: bool = True) -> Part:
    filled = product(inputs, outputs) + (f" + {outputs:,}" if bias else "")
    return Part(name, letters, filled, inputs * outputs + outputs * bias, inputs * outputs, every)


def cell(name: str, kind: str, inputs: int, hidden: int, every: str) -> Part:
    fed, past = blocks(kind)
    extra = hidden if kind == "gru" else 0
    formula = f"{fed}·H·I + {past}·H·H + {fed}·H" + (" + H" if extra else "")
    filled = f"{product(fed, hidden, inputs)} + {product(past, hidden, hidden)} + {product(fed, hidden)}" + (
        f" + {hidden:,}" if extra else ""
    )
    work = fed * hidden * inputs + past * hidden * hidden
    return Part(name, formula, filled, work + fed * hidden + extra, work, every)


def encoder_parts(config: ModelConfig) -> list[Part]:
    if config.encoder == "image":
        (_, channels, more), size = GRIDS[config.cnn], config.encoder_hidden
        channels += more * config.finer
        return [
            linear("Encoder: grid cell to state", "C·M + M", channels, size, CELL),
            linear("Encoder: the whole picture", "C·M + M", channels, size, ONCE),
        ]
    if config.is_single:
        inputs = [config.embedding] + [config.decoder_hidden] * (config.decoder_layers - 1)
        return [read_again(config, layer, size) for layer, size in enumerate(inputs, 1)]
    directions = ("left to right", "right to left") if config.bidirectional else ("left to right",)
    inputs = [config.embedding] + [config.encoder_hidden * len(directions)] * (config.encoder_layers - 1)
    return [
        cell(f"Encoder layer {layer}, {direction}", config.cell, size, config.encoder_hidden, READING)
        for layer, size in enumerate(inputs, 1)
        for direction in directions
    ]


def read_again(config: ModelConfig, layer: int, inputs: int) -> Part:
    """A single network reads and writes with the same cells, so reading costs work but no parameters."""
    made = cell("", config.cell, inputs, config.decoder_hidden, READING)
    return Part(f"Reading with decoder layer {layer}", f"(work: {made.formula})", made.filled, 0, made.work, READING)


def score_parts(config: ModelConfig) -> list[Part]:
    M, D, A = config.memory_size, config.decoder_hidden, config.attention
    S, reading = (GRIDS[config.cnn][0] ** 2, CELL) if config.encoder == "image" else (SOURCE_PIECES, READING)
    kind = config.score
    parts = []
    if kind == "bilinear":
        parts = [linear("Attention keys", "M·H", M, D, reading, bias=False)]
    elif kind != "dot":
        keys_biased = kind == "keys-queries"
        parts = [linear("Attention keys", "M·A" + (" + A" if keys_biased else ""), M, A, reading, bias=keys_biased)]
        query_biased = kind in ("additive", "keys-queries")
        parts.append(linear("Attention query", "H·A" + (" + A" if query_biased else ""), D, A, WRITING, bias=query_biased))
    if kind == "additive":
        parts.append(Part(f"Attention scores, S = {S}", "A (work: S·A)", f"{A:,}", A, S * A, WRITING))
    else:
        width = {"dot": M, "bilinear": D}.get(kind, A)
        parts.append(
            Part(f"Attention scores, S = {S}", "(work: S times the key's width)", product(S, width), 0, S * width, WRITING)
        )
    return [*parts, Part(f"Attention context, S = {S}", "(work: S·M)", product(S, M), 0, S * M, WRITING)]


def decoder_parts(config: ModelConfig) -> list[Part]:
    H, layers = config.decoder_hidden, config.decoder_layers
    parts = []
    context = 0
    if config.encoder != "none" and not config.is_single:
        parts.append(linear("Decoder start", "M·(H·layers) + H·layers", config.memory_size, H * layers, ONCE))
        feed = config.features or config.readout_input
        context = {"context-once": 0, "attend-after": feed}.get(config.decoder, config.memory_size)
    if context:
        width = blocks(config.cell)[0] * H
        every = ONCE if config.decoder == "context-each" else WRITING
        parts.append(linear("Context into the cell", "context · blocks·H", context, width, every, bias=False))
    inputs = [config.embedding] + [H] * (layers - 1)
    parts += [cell(f"Decoder layer {layer}", config.cell, size, H, WRITING) for layer, size in enumerate(inputs, 1)]
    if config.has_attention:
        parts += score_parts(config)
    if config.features:
        parts.append(linear("Features", "[H; M]·R + R", config.readout_input, config.features, WRITING))
    return parts


def transformer_parts(config: ModelConfig) -> list[Part]:
    """Every block's heads, feed-forward layer and norms; S source pieces, as many in the target."""
    D, F = config.embedding, config.feed_forward

    def heads(name: str, every: str) -> Part:
        formula, filled = "4·(D·D + D) (work: 4·D·D + 2·S·D)", f"4·({product(D, D)} + {D:,})"
        return Part(name, formula, filled, 4 * (D * D + D), 4 * D * D + 2 * SOURCE_PIECES * D, every)

    def think(name: str, every: str) -> Part:
        return Part(name, "2·D·F + F + D", f"{product(2, D, F)} + {F:,} + {D:,}", 2 * D * F + F + D, 2 * D * F, every)

    def norms(name: str, count: int, every: str) -> Part:
        return Part(name, f"{2 * count}·D", product(2 * count, D), 2 * count * D, 0, every)

    found = []
    for block in range(1, config.encoder_layers + 1):
        found += [
            heads(f"Encoder block {block}, self-attention", READING),
            think(f"Encoder block {block}, feed-forward", READING),
        ]
        found.append(norms(f"Encoder block {block}, norms", 2, READING))
    for block in range(1, config.decoder_layers + 1):
        found += [heads(f"Decoder block {block}, {what}", WRITING) for what in ("self-attention", "attention to the source")]
        found.append(think(f"Decoder block {block}, feed-forward", WRITING))
        found.append(norms(f"Decoder block {block}, norms", 3, WRITING))
    return [*found, norms("Norms of what was read and written", 2, WRITING)]


def readout_part(config: ModelConfig) -> Part:
    V, R = config.target_vocabulary, config.features or config.readout_input
    if config.tie_readout:
        return Part("Readout, tied to the embedding", "V (work: V·R)", f"{V:,}", V, V * R, WRITING)
    return linear("Readout", "R·V + V", R, V, WRITING)


def parts(config: ModelConfig) -> list[Part]:
    """All parts of a model except its CNN, which is pretrained."""
    V, E = config.target_vocabulary, config.embedding
    shared = " (source and target)" if config.share_embeddings else ""
    found = [Part(f"Embedding{shared}", "V·E", product(V, E), V * E, 0, WRITING)]
    if config.encoder == "text" and not config.share_embeddings:
        found.append(
            Part("Embedding of the source", "V·E", product(config.source_vocabulary, E), config.source_vocabulary * E, 0, READING)
        )
    if config.is_transformer:
        return [*found, *transformer_parts(config), readout_part(config)]
    if config.encoder != "none":
        found += encoder_parts(config)
    return [*found, *decoder_parts(config), readout_part(config)]


def sizes(config: ModelConfig) -> dict[str, Any]:
    """The table of the Models page."""
    found = parts(config)
    return {
        "parts": [vars(part) for part in found],
        "parameters": sum(part.parameters for part in found),
        "work": {every: sum(part.work for part in found if part.every == every) for every in (READING, CELL, WRITING, ONCE)},
        "bytes": sum(part.parameters for part in found) * 2,
        "megabytes": math.ceil(sum(part.parameters for part in found) * 2 / 2**20),
    }
