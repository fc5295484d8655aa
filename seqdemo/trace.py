"""Replay: one teacher-forced pass over given tokens that keeps everything a person may want to look at.

It shares no code with the search, and so checks it: the log probabilities of a replay are those of the hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from seqdemo.cells import Cell, Gates
from seqdemo.config import BOS, EOS
from seqdemo.edits import ClampGate, Edit, check_edits, edit_to_json, forced_pieces, whole
from seqdemo.encoders import TextEncoder
from seqdemo.errors import InputError
from seqdemo.model import NEVER_SAID, LanguageModel, Seq2Seq, log_probabilities
from seqdemo.records import Price, Trace
from seqdemo.whatif import WhatIf, resolved

Source = Sequence[int] | Tensor | None  # piece numbers, a picture (or its grid), or nothing for a language model
Model = Seq2Seq | LanguageModel
ALTERNATIVES = 10
MOST_JACOBIANS = 120  # each has (twice the hidden size) squared numbers, and all are held at once


class Replay(NamedTuple):
    """The raw outcome of a pass: logp_TV, attention rows, and gates by name as lists over time."""

    logp_TV: Tensor
    weights: list[Tensor]
    gates: dict[str, list[Tensor]]


def source_tensors(source: Source) -> tuple[Tensor, Tensor | None]:
    if isinstance(source, Tensor):
        return (source if source.dim() in (4, 3) and source.shape[0] == 1 else source[None]), None
    ids_1S = torch.tensor([list(source or ())], dtype=torch.long)
    return ids_1S, torch.ones_like(ids_1S, dtype=torch.bool)


def collect(gates: dict[str, list[Tensor]], prefix: str, named: Gates) -> None:
    for name, value in named.items():
        gates.setdefault(f"{prefix}.{name}", []).append(value)


def replay(model: Model, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = ()) -> Replay:
    """Force or ban edits change nothing here: the tokens are given, and their prices are the untouched model's."""
    what_if = WhatIf(edits)
    asked = what_if if what_if else None
    gates: dict[str, list[Tensor]] = {}
    weights: list[Tensor] = []
    inputs_1T = torch.tensor([[BOS, *target[:-1]]], dtype=torch.long)
    if isinstance(model, LanguageModel):
        features = _read_text(model, inputs_1T, asked, gates)
    else:
        features, weights = _read_pair(model, source, inputs_1T, what_if, gates)
    return Replay(log_probabilities(model.readout(torch.cat(features))), weights, gates)


def _read_text(model: LanguageModel, inputs_1T: Tensor, asked: WhatIf | None, gates: dict[str, list[Tensor]]) -> list[Tensor]:
    state, features = model.start(1), []
    for zx_1G in model.stack.first.project(model.embed_target(inputs_1T)).unbind(1):
        r_1R, state, layers = model.read(zx_1G, state, asked)
        features.append(r_1R)
        for layer, named in enumerate(layers):
            collect(gates, f"decoder.{layer}", named)
    return features


def _read_pair(
    model: Seq2Seq, source: Source, inputs_1T: Tensor, what_if: WhatIf, gates: dict[str, list[Tensor]]
) -> tuple[list[Tensor], list[Tensor]]:
    encoded = model.encode_with_gates(*source_tensors(source), what_if.encoder())
    for (layer, direction), steps in encoded.gates.items():
        for named in steps:
            collect(gates, f"encoder.{layer}.{direction}", named)
    state = model.decoder.start(encoded.memory)
    features: list[Tensor] = []
    weights: list[Tensor] = []
    asked = what_if if what_if else None
    for zx_1G in model.decoder.stack.first.project(model.embed_target(inputs_1T)).unbind(1):
        done = model.decoder.step(zx_1G, state, asked)
        features.append(done.features_KR)
        state = done.state
        if done.weights_KS is not None:
            weights.append(done.weights_KS)
        for layer, named in enumerate(done.gates):
            collect(gates, f"decoder.{layer}", named)
    return features, weights


def check_target(model: Model, target: Sequence[int]) -> None:
    vocabulary = model.config.target_vocabulary
    if not target or not all(whole(token, vocabulary) and token >= EOS for token in target):
        raise InputError(f"A replay needs at least one piece, each a number below {vocabulary} and neither <pad> nor <bos>.")


def check_source(model: Model, source: Source) -> None:
    vocabulary = model.config.source_vocabulary
    if model.config.encoder == "image":
        if not isinstance(source, Tensor):
            raise InputError("This model reads a picture, or the grid its CNN made of one.")
    elif model.config.encoder == "text" and (
        isinstance(source, Tensor) or not source or not all(whole(token, vocabulary) for token in source)
    ):
        raise InputError(f"A source has at least one piece, each a number below {vocabulary}.")


def positions_of(model: Model, source: Source) -> int:
    """How many states the encoder makes of it."""
    if not isinstance(source, Tensor):
        return len(source or ())
    read = source_tensors(source)[0]
    return int(cast(Any, model).encoder.cnn.grid ** 2) if read.dim() == 4 else read.shape[1]


def check(model: Model, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = (), room: int = 0) -> None:
    """All that a replay is given fits the model. `room` is the length of the longest output the edits may speak of."""
    check_target(model, target)
    check_source(model, source)
    check_edits(edits, model.config, positions_of(model, source), max(room, len(target)))


def follow(
    model: Model,
    source: Source,
    target: Sequence[int],
    edits: tuple[Edit, ...] = (),
    source_pieces: Sequence[str] = (),
    piece: Callable[[int], str] = str,
    room: int = 0,
) -> Trace:
    """The Trace of the tokens `target` (with <eos> where they end), under `edits`, which may speak of an output of up to
    `room` pieces where `target` is only the beginning of one."""
    check(model, source, target, edits, room)
    with torch.inference_mode():
        found = replay(model, source, target, edits)
        logp_TV = found.logp_TV
        logps_T = logp_TV.gather(1, torch.tensor(target, dtype=torch.long)[:, None]).squeeze(1)
        top = logp_TV.topk(min(ALTERNATIVES, logp_TV.shape[1] - len(NEVER_SAID)), 1)
        gates = {name: torch.cat(steps).float().numpy() for name, steps in found.gates.items()}
        attention = torch.cat(found.weights).float().numpy() if found.weights else None
    top_tokens = top.indices.numpy().astype(np.int32)
    return Trace(
        source=tuple(source_pieces),
        target=tuple(map(piece, target)),
        tokens=tuple(target),
        logps=logps_T.double().numpy(),
        top_tokens=top_tokens,
        top_logps=top.values.float().numpy(),
        top_pieces=tuple(tuple(map(piece, row)) for row in top_tokens.tolist()),
        attention=attention,
        gates=gates,
        edits=tuple(map(edit_to_json, edits)),
    )


def resolve(model: Model, source: Source, target: Sequence[int], edits: tuple[Edit, ...], room: int = 0) -> tuple[Edit, ...]:
    """The edits with each clamp to 'mean' made numbers: every unit's mean over the untouched replay of `target`."""
    check(model, source, target, edits, room)
    if not any(isinstance(edit, ClampGate) and edit.value == "mean" for edit in edits):
        return edits
    with torch.inference_mode():
        gates = replay(model, source, target).gates

    def mean(edit: ClampGate) -> tuple[float, ...]:
        where = f"encoder.{edit.layer}.{edit.direction}" if edit.part == "encoder" else f"decoder.{edit.layer}"
        return tuple(torch.cat(gates[f"{where}.{edit.gate}"]).mean(0).tolist())

    return resolved(edits, mean)


def logp_of(
    model: Model, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = (), room: int = 0
) -> tuple[float, np.ndarray]:
    """The log probability of `target`, and the whole distribution at each step (T, V)."""
    check(model, source, target, edits, room)
    with torch.inference_mode():
        logp_TV = replay(model, source, target, edits).logp_TV
    return float(logp_TV.gather(1, torch.tensor(target)[:, None]).double().sum()), logp_TV.numpy()


def price_of_tokens(
    model: Model, source: Source, old: Sequence[int], new: Sequence[int], edits: tuple[Edit, ...], room: int = 0
) -> Price:
    """What forcing or banning cost: the untouched model's log probability of the new output minus that of the old one, and
    for each forced token how far it lay behind the model's own best at that step."""
    check(model, source, new, edits, room)
    forced = forced_pieces(edits)
    if not holds(new, forced):
        raise InputError("This output does not hold what was forced, so it has no price; give the output of a search that did.")
    before, _ = logp_of(model, source, old)
    after, logp_TV = logp_of(model, source, new)
    gaps = tuple(float(logp_TV[position].max() - logp_TV[position, token]) for position, token in forced)
    return Price("tokens", after - before, before, after, gaps)


def holds(tokens: Sequence[int], forced: Sequence[tuple[int, int]]) -> bool:
    return all(position < len(tokens) and tokens[position] == token for position, token in forced)


def price_of_state(model: Model, source: Source, target: Sequence[int], edits: tuple[Edit, ...], room: int = 0) -> Price:
    """What an edited row, blend or gate costs: the edited model's log probability minus the untouched one's, same tokens."""
    before, _ = logp_of(model, source, target)
    after, _ = logp_of(model, source, target, edits, room)
    return Price("state", after - before, before, after, ())


def connectivity(model: Seq2Seq, source: Sequence[int], target: Sequence[int], position: int) -> np.ndarray:
    """d log p(y_t) / d e(x_j) for t = `position`: an array of source position x embedding."""
    if model.config.encoder != "text":
        raise InputError("Connectivity is that of an output piece to the words read; this model reads none.")
    check(model, source, target)
    if not whole(position, len(target)):
        raise InputError(f"Position {position} is outside this output of {len(target)} pieces, counted from 0.")
    caught: list[Tensor] = []
    hook = _embedding_leaf(caught)
    with torch.enable_grad():
        encoded = model.encoder(hook(model.embed_source(source_tensors(source)[0])), source_tensors(source)[1])
        state = model.decoder.start(model.decoder.prepare(encoded.memory))
        inputs_1T = torch.tensor([[BOS, *target[:position]]], dtype=torch.long)
        for zx_1G in model.decoder.stack.first.project(model.embed_target(inputs_1T)).unbind(1):
            done = model.decoder.step(zx_1G, state)
            state = done.state
        logp = F.log_softmax(model.readout(done.features_KR), 1)[0, target[position]]
        (gradient_1SE,) = torch.autograd.grad(logp, caught)
    return gradient_1SE[0].numpy()


def _embedding_leaf(caught: list[Tensor]) -> Callable[[Tensor], Tensor]:
    def leaf(x: Tensor) -> Tensor:
        caught.append(x.detach().requires_grad_())
        return caught[-1]

    return leaf


def through_time(model: Model, source: Sequence[int], direction: str = "forward") -> np.ndarray:
    """The norm of d state_T / d state_t for every t, in the first layer of the encoder (or of a language model, which reads
    <bos> before `source`): how much of a distant past a small push still reaches. The product of the Jacobians of the steps
    between, its largest stretch. Of the layers above nothing is said."""
    if len(source) > MOST_JACOBIANS:
        raise InputError(f"Gradients are followed through at most {MOST_JACOBIANS} pieces, not {len(source)}; shorten the text.")
    if isinstance(model, LanguageModel):
        return _through_text(model, source, direction)
    cell = _first_cell(model, direction)
    check_source(model, source)
    steps = cell.project(model.embed_source(torch.tensor([list(source)])).detach()).unbind(1)
    return _stretches(cell, steps[::-1] if direction == "backward" else steps)


def _through_text(model: LanguageModel, text: Sequence[int], direction: str) -> np.ndarray:
    check_target(model, text)
    if direction != "forward":
        raise InputError(f"A language model does not read in the direction {direction!r}.")
    cell = model.stack.first
    return _stretches(cell, cell.project(model.embed_target(torch.tensor([[BOS, *text]])).detach()).unbind(1))[1:]


def _first_cell(model: Seq2Seq, direction: str) -> Cell:
    if not isinstance(model.encoder, TextEncoder) or direction not in model.encoder.directions:
        raise InputError(f"This encoder does not read in the direction {direction!r}.")
    first: Any = model.encoder.layers[0]
    cell: Cell = first[model.encoder.directions.index(direction)]
    return cell


def _stretches(cell: Cell, steps: Sequence[Tensor]) -> np.ndarray:
    state = cell.initial(steps[0].new_zeros(1, cell.hidden))
    kind, size = type(state), len(state)

    def flat_step(flat: Tensor, zx_1G: Tensor) -> Tensor:
        return torch.cat(tuple(cell.step(zx_1G, kind(*flat[None].chunk(size, 1)))[0]), 1)[0]

    flat, jacobians = torch.cat(tuple(state), 1)[0], []
    for zx_1G in steps:
        jacobians.append(torch.func.jacrev(flat_step)(flat, zx_1G).detach())
        flat = flat_step(flat, zx_1G).detach()
    product, norms = torch.eye(len(flat), dtype=flat.dtype), [1.0]
    for jacobian in reversed(jacobians[1:]):
        product = product @ jacobian
        norms.append(float(torch.linalg.matrix_norm(product, 2)))
    return np.array(norms[::-1])
