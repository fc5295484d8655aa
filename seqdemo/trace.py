"""Replay: one teacher-forced pass over given tokens that keeps everything a person may want to look at.

It shares no code with the search, and so checks it: the log probabilities of a replay are those of the hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from seqdemo.cells import Gates
from seqdemo.config import BOS, EOS, PAD
from seqdemo.edits import ClampGate, Edit, check_edits, edit_to_json, forced_pieces, whole
from seqdemo.errors import InputError
from seqdemo.model import NEVER_SAID, LanguageModel, Seq2Seq, log_probabilities
from seqdemo.records import Price, Trace
from seqdemo.whatif import WhatIf, resolved

Source = Sequence[int] | Tensor | None  # piece numbers, a picture (or its grid), or nothing for a language model
Model = Seq2Seq | LanguageModel
ALTERNATIVES = 10


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
        check_picture(model, source)
    elif model.config.encoder == "text" and (
        isinstance(source, Tensor) or not source or not all(whole(token, vocabulary) and token != PAD for token in source)
    ):
        raise InputError(f"A source has at least one piece, each a number below {vocabulary} and none of them <pad>.")


def check_picture(model: Model, source: Tensor) -> None:
    cnn = cast(Any, model).encoder.cnn
    shapes = {(3, cnn.size, cnn.size), (cnn.grid**2, cnn.channels)}
    if tuple(source.shape) not in shapes | {(1, *shape) for shape in shapes}:
        raise InputError(f"A picture is 3 x {cnn.size} x {cnn.size}, its grid {cnn.grid**2} x {cnn.channels}; this is not.")


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
