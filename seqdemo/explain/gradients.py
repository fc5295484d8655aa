"""Gradients on demand: which source words an output piece depends on, and how much of the distant past a state still holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqdemo.config import EOS
from seqdemo.edits import DIRECTIONS, Edit, whole
from seqdemo.errors import InputError
from seqdemo.explain.replay import Source, check, check_source, check_target, inputs_of, source_tensors
from seqdemo.moved import warn
from seqdemo.network.attention import WhatIf, what_if_of
from seqdemo.network.cells import Ask, Cell, keep
from seqdemo.network.coders import DecoderState
from seqdemo.network.model import Network, Recurrent

MOST_STEPS = 120  # that gradients are followed through
MOST_TURNS, CLOSE = 2_000, 1e-9  # of a power iteration


def connectivity(
    network: Network, source: Source, target: Sequence[int], position: int, edits: tuple[Edit, ...] = ()
) -> np.ndarray:
    """d log p(y_t) / d e(x_j) for t = `position`: an array of source position x embedding."""
    if network.config.encoder != "text":
        raise InputError("Connectivity needs a text as input; this model has none.")
    check(network, source, target, edits)
    if not whole(position, len(target)):
        raise InputError(f"Position {position} is outside this output of {len(target)} pieces, counted from 0.")
    what_if, network = what_if_of(edits), network.bare()
    with torch.inference_mode(False), torch.enable_grad():
        ids_1S, mask_1S = source_tensors(source)
        x_1SE = cast(Any, network).embed_source(ids_1S).detach().requires_grad_()
        read_1T = inputs_of(target[: position + 1])
        r_1R = network.teach(x_1SE, mask_1S, read_1T, what_if).features_BTR[:, -1]
        logp = F.log_softmax(network.readout(r_1R), 1)[0, target[position]]
        (gradient_1SE,) = torch.autograd.grad(logp, [x_1SE])
    return np.asarray(gradient_1SE[0])


def gradient_norms(
    network: Network,
    source: Source,
    direction: str = "forward",
    layer: int = 0,
    target: Sequence[int] = (),
    edits: tuple[Edit, ...] = (),
) -> np.ndarray:
    """The norm of d state_T / d state_t for every t: how far a small change of an early state still moves the last one. It is
    the largest singular value of the product of the Jacobians of the steps between. For an encoder or a language model (which
    reads <bos> before `source`), the state is that of one layer. With `target`, it is the decoder's whole state, all layers and
    the input feeding, while it says these tokens.
    """
    if max(len(target), 0 if isinstance(source, Tensor) else len(source or ())) > MOST_STEPS:
        raise InputError(f"Gradients are followed through at most {MOST_STEPS} pieces; shorten the text.")
    if not isinstance(network, Recurrent):
        raise InputError("Gradients through time are those of a recurrent network; this one is not.")
    encoder = network.config.encoder
    if encoder == "image" and not target:
        raise InputError("This model reads a picture, all of it at once; give the tokens of an output.")
    if encoder != "none" and target and (direction, layer) != ("forward", 0):
        raise InputError(
            "With the tokens of an output the state is the decoder's, all layers together: leave direction and layer out."
        )
    network, what_if = network.bare(), WhatIf(edits)
    with torch.inference_mode(False), torch.no_grad():
        if encoder == "none":
            return _through_text(network, source, direction, layer, what_if)
        if target:
            return _through_decoder(network, source, target, what_if)
        return _through_encoder(network, source, direction, layer, what_if)


def through_time(*args: Any, **kwargs: Any) -> np.ndarray:
    """The old name of `gradient_norms`."""
    warn("seqdemo.explain.gradients.through_time", "seqdemo.gradient_norms", 3)
    return gradient_norms(*args, **kwargs)


def _through_encoder(network: Any, source: Source, direction: str, layer: int, what_if: WhatIf) -> np.ndarray:
    config = network.config
    directions = DIRECTIONS[: 1 + config.bidirectional] if config.encoder == "text" else ()
    if direction not in directions:
        raise InputError(f"This encoder does not read in the direction {direction!r}.")
    check_layer(layer, config.encoder_layers)
    check_source(network, source)
    ids_1S, mask_1S = source_tensors(source)
    x_1SE = network.embed_source(ids_1S)
    if layer:
        seen = network.read_closely(x_1SE, mask_1S, what_if)[1]
        x_1SE = torch.cat([seen[f"encoder.{layer - 1}.{each}.hidden"] for each in directions], 2)
    cell: Cell = network.stack.cells[layer] if config.is_single else network.encoder.cell(layer, direction)
    steps = list(enumerate(cell.project(x_1SE).unbind(1)))
    ask_at = what_if.cell("encoder", layer, direction)
    return _through_cell(cell, steps[::-1] if direction == "backward" else steps, ask_at)


def _through_text(network: Any, text: Source, direction: str, layer: int, what_if: WhatIf) -> np.ndarray:
    if direction != "forward":
        raise InputError(f"A language model does not read in the direction {direction!r}.")
    text = () if isinstance(text, Tensor) else tuple(text or ())
    if not text:
        raise InputError("Gradients through time need at least one piece: give a text, or the tokens of an output.")
    check_target(network, text)
    check_layer(layer, len(network.decoder.stack.cells))
    read_1T = inputs_of((*text, EOS))
    x_1TE = network.embed_target(read_1T)
    if layer:
        below = f"decoder.{layer - 1}.hidden"
        x_1TE = network.teach(None, None, read_1T, what_if, (below,)).seen[below]
    cell = cast(Cell, network.decoder.stack.cells[layer])
    return _through_cell(cell, list(enumerate(cell.project(x_1TE).unbind(1))), what_if.cell("decoder", layer))[1:]


def check_layer(layer: int, layers: int) -> None:
    if not whole(layer, layers):
        raise InputError(f"There is no layer {layer!r}: this part has {layers}, counted from 0.")


Input = tuple[int, Tensor]  # the position of a step, and what its cell is sent


def _through_cell(cell: Cell, steps: Sequence[Input], ask_at: Callable[[Tensor], Ask] | None) -> np.ndarray:
    start = cell.initial(steps[0][1].new_zeros(1, cell.hidden))
    kind, size = type(start), len(start)

    def step(flat: Tensor, position: int, zx_1G: Tensor) -> Tensor:
        ask = ask_at(torch.tensor([position])) if ask_at else keep
        return torch.cat(tuple(cell.step(zx_1G, kind(*flat[None].chunk(size, 1)), ask)[0]), 1)[0]

    return _stretches(step, torch.cat(tuple(start), 1)[0], steps)


def _through_decoder(network: Any, source: Source, target: Sequence[int], what_if: WhatIf) -> np.ndarray:
    check_target(network, target)
    check_source(network, source)
    start = network.start(network.read(*source_tensors(source), what_if))
    sizes = [leaf.shape[1] for leaf in _carried(start)]

    def step(flat: Tensor, position: int, zx_1G: Tensor) -> Tensor:
        leaves = iter(flat[None].split(sizes, 1))
        layers = tuple(type(layer)(*(next(leaves) for _ in layer)) for layer in start.layers)
        state = start._replace(layers=layers, feed_KR=next(leaves, None), position_K=torch.tensor([position]))
        return torch.cat(_carried(network.decoder.write(zx_1G, state, what_if).state), 1)[0]

    return _stretches(step, torch.cat(_carried(start), 1)[0], list(enumerate(network.entered(inputs_of(target)).unbind(1))))


def _carried(state: DecoderState) -> list[Tensor]:
    """The tensors of a decoder's state that later steps compute with."""
    return [leaf for layer in state.layers for leaf in layer] + ([] if state.feed_KR is None else [state.feed_KR])


def _stretches(step: Callable[[Tensor, int, Tensor], Tensor], start: Tensor, inputs: Sequence[Input]) -> np.ndarray:
    """One number for the state after each input: how far a small change of it moves the last state. For the last state it is
    1."""
    states = [step(start, *inputs[0])]
    for given in inputs[1:]:
        states.append(step(states[-1], *given))
    product, norms = torch.eye(len(start), dtype=start.dtype), [1.0]
    for state, given in zip(states[-2::-1], inputs[:0:-1]):
        product = product @ torch.func.jacrev(partial(_after, step, given))(state).detach()
        norms.append(stretch(product))
    return np.array(norms[::-1])


def _after(step: Callable[[Tensor, int, Tensor], Tensor], given: Input, state: Tensor) -> Tensor:
    return step(state, *given)


def stretch(matrix_NM: Tensor) -> float:
    """The largest singular value of M, by power iteration on M' M: a full decomposition for a thousand units takes a second a
    step. Squares of small entries would become 0, so M is divided by its largest entry first."""
    largest = float(matrix_NM.abs().amax())
    if not 0 < largest < math.inf:
        return largest
    matrix_NM = matrix_NM / largest
    vector_M = torch.linspace(1, 2, matrix_NM.shape[1], dtype=matrix_NM.dtype)
    before, squared = -1.0, 0.0
    for _ in range(MOST_TURNS):
        vector_M = matrix_NM.T @ (matrix_NM @ (vector_M / vector_M.norm()))
        before, squared = squared, float(vector_M.norm())
        if not squared or abs(squared - before) <= CLOSE * squared:
            break
    return largest * math.sqrt(squared)
