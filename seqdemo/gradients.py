"""Gradients on demand: which words read an output piece hangs on, and how much of a distant past a state still holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqdemo.cells import Cell
from seqdemo.config import BOS, EOS
from seqdemo.decoders import DecoderState
from seqdemo.edits import whole
from seqdemo.encoders import TextEncoder
from seqdemo.errors import InputError
from seqdemo.model import LanguageModel, Seq2Seq
from seqdemo.trace import Model, Source, check, check_source, check_target, replay, source_tensors

MOST_STEPS = 120  # that gradients are followed through
MOST_TURNS, CLOSE = 2_000, 1e-9  # of a power iteration


def connectivity(model: Seq2Seq, source: Sequence[int], target: Sequence[int], position: int) -> np.ndarray:
    """d log p(y_t) / d e(x_j) for t = `position`: an array of source position x embedding."""
    if model.config.encoder != "text":
        raise InputError("Connectivity is that of an output piece to the words read; this model reads none.")
    check(model, source, target)
    if not whole(position, len(target)):
        raise InputError(f"Position {position} is outside this output of {len(target)} pieces, counted from 0.")
    with torch.inference_mode(False), torch.enable_grad():
        ids_1S, mask_1S = source_tensors(source)
        x_1SE = model.embed_source(ids_1S).detach().requires_grad_()
        state = model.decoder.start(model.decoder.prepare(model.encoder(x_1SE, mask_1S).memory))
        inputs_1T = torch.tensor([[BOS, *target[:position]]], dtype=torch.long)
        for zx_1G in model.decoder.stack.first.project(model.embed_target(inputs_1T)).unbind(1):
            done = model.decoder.step(zx_1G, state)
            state = done.state
        logp = F.log_softmax(model.readout(done.features_KR), 1)[0, target[position]]
        (gradient_1SE,) = torch.autograd.grad(logp, [x_1SE])
    return np.asarray(gradient_1SE[0])


def through_time(
    model: Model, source: Source, direction: str = "forward", layer: int = 0, target: Sequence[int] = ()
) -> np.ndarray:
    """The norm of d state_T / d state_t for every t: how much of a distant past a small push still reaches. It is the largest
    stretch of the product of the Jacobians of the steps between.

    Of an encoder, or of a language model, which reads <bos> before `source`: of one layer, whose state does not reach those
    below. With `target`, of the decoder while it says that: of all that it carries on, layers and input feeding together.
    """
    if max(len(target), 0 if isinstance(source, Tensor) else len(source or ())) > MOST_STEPS:
        raise InputError(f"Gradients are followed through at most {MOST_STEPS} pieces; shorten the text.")
    with torch.inference_mode(False), torch.no_grad():
        if isinstance(model, LanguageModel):
            return _through_text(model, source, direction, layer)
        return _through_decoder(model, source, target) if target else _through_encoder(model, source, direction, layer)


def _through_encoder(model: Seq2Seq, source: Source, direction: str, layer: int) -> np.ndarray:
    encoder = model.encoder
    if not isinstance(encoder, TextEncoder) or direction not in encoder.directions:
        raise InputError(f"This encoder does not read in the direction {direction!r}.")
    check_layer(layer, len(encoder.layers))
    check_source(model, source)
    ids_1S, mask_1S = source_tensors(source)
    x_1SE = model.embed_source(ids_1S)
    if layer:
        gates = encoder(x_1SE, mask_1S).gates
        below = [torch.cat([named["hidden"] for named in gates[layer - 1, each]]) for each in encoder.directions]
        x_1SE = torch.cat(below, 1)[None]
    steps = encoder.cell(layer, direction).project(x_1SE).unbind(1)
    return _through_cell(encoder.cell(layer, direction), steps[::-1] if direction == "backward" else steps)


def _through_text(model: LanguageModel, text: Source, direction: str, layer: int) -> np.ndarray:
    if direction != "forward":
        raise InputError(f"A language model does not read in the direction {direction!r}.")
    text = () if isinstance(text, Tensor) else tuple(text or ())
    check_target(model, text)
    check_layer(layer, len(model.stack.cells))
    x_1TE = model.embed_target(torch.tensor([[BOS, *text]]))
    if layer:
        x_1TE = torch.cat(replay(model, None, (*text, EOS)).gates[f"decoder.{layer - 1}.hidden"])[None]
    cell = cast(Cell, model.stack.cells[layer])
    return _through_cell(cell, cell.project(x_1TE).unbind(1))[1:]


def check_layer(layer: int, layers: int) -> None:
    if not whole(layer, layers):
        raise InputError(f"There is no layer {layer!r}: this part has {layers}, counted from 0.")


def _through_cell(cell: Cell, steps: Sequence[Tensor]) -> np.ndarray:
    start = cell.initial(steps[0].new_zeros(1, cell.hidden))
    kind, size = type(start), len(start)

    def step(flat: Tensor, zx_1G: Tensor) -> Tensor:
        return torch.cat(tuple(cell.step(zx_1G, kind(*flat[None].chunk(size, 1)))[0]), 1)[0]

    return _stretches(step, torch.cat(tuple(start), 1)[0], steps)


def _through_decoder(model: Seq2Seq, source: Source, target: Sequence[int]) -> np.ndarray:
    check_target(model, target)
    check_source(model, source)
    decoder = model.decoder
    start = decoder.start(model.read(*source_tensors(source), None, with_gates=False).memory)
    sizes = [leaf.shape[1] for leaf in _carried(start)]

    def step(flat: Tensor, zx_1G: Tensor) -> Tensor:
        leaves = iter(flat[None].split(sizes, 1))
        layers = tuple(type(layer)(*(next(leaves) for _ in layer)) for layer in start.layers)
        state = start._replace(layers=layers, feed_KR=next(leaves, None))
        return torch.cat(_carried(decoder.step(zx_1G, state).state), 1)[0]

    inputs_1T = torch.tensor([[BOS, *target[:-1]]], dtype=torch.long)
    steps = decoder.stack.first.project(model.embed_target(inputs_1T)).unbind(1)
    return _stretches(step, torch.cat(_carried(start), 1)[0], steps)


def _carried(state: DecoderState) -> list[Tensor]:
    """All of a decoder's state that later steps compute with."""
    return [leaf for layer in state.layers for leaf in layer] + ([] if state.feed_KR is None else [state.feed_KR])


def _stretches(step: Callable[[Tensor, Tensor], Tensor], start: Tensor, inputs: Sequence[Tensor]) -> np.ndarray:
    """Of the states after each input, the last one's being 1."""
    states = [step(start, inputs[0])]
    for zx_1G in inputs[1:]:
        states.append(step(states[-1], zx_1G))
    product, norms = torch.eye(len(start), dtype=start.dtype), [1.0]
    for state, zx_1G in zip(states[-2::-1], inputs[:0:-1]):
        product = product @ torch.func.jacrev(step)(state, zx_1G).detach()
        norms.append(stretch(product))
    return np.array(norms[::-1])


def stretch(matrix_NM: Tensor) -> float:
    """Its largest singular value, by power iteration on M' M: a decomposition of a thousand units takes a second a step."""
    vector_M = torch.linspace(1, 2, matrix_NM.shape[1], dtype=matrix_NM.dtype)
    before, squared = -1.0, 0.0
    for _ in range(MOST_TURNS):
        vector_M = matrix_NM.T @ (matrix_NM @ (vector_M / vector_M.norm()))
        before, squared = squared, float(vector_M.norm())
        if not squared or abs(squared - before) <= CLOSE * squared:
            break
    return math.sqrt(squared)
