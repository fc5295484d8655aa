"""One step of a replay in full: every vector that it computed, all logits, and each cell's equations worked out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from seqdemo.edits import Edit, whole
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.explain.replay import Source, inputs_of, source_tensors
from seqdemo.explain.worked import worked
from seqdemo.network.attention import WhatIf, what_if_of
from seqdemo.network.model import Network, Recurrent, log_probabilities
from seqdemo.records import StepInFull
from seqdemo.state import by_head


def before(network: Network, source: Source, target: Sequence[int], position: int, what_if: WhatIf | None) -> Any:
    """The state after all tokens but the one before `position` have been read."""
    if position:
        return network.teach(*source_tensors(source), inputs_of(target)[:, :position], what_if).state
    return network.start(network.read(*source_tensors(source), what_if))


@torch.inference_mode()
def step_in_full(
    network: Network,
    source: Source,
    target: Sequence[int],
    step: int,
    edits: tuple[Edit, ...] = (),
    piece: Callable[[int], str] = str,
) -> StepInFull:
    """The step that says target[step]. The other arguments have been checked already."""
    if not whole(step, len(target)):
        raise InputError(f"Step {step!r} is outside this output of {len(target)} pieces, counted from 0.")
    what_if, read_1T = what_if_of(edits), inputs_of(target)
    state = before(network, source, target, step, what_if)
    done = network.step(read_1T[:, step], state, what_if)
    seen = done.seen
    logits_1V = network.readout(done.features_KR)
    last = {"features": done.features_KR, "logits": logits_1V, "logps": log_probabilities(logits_1V)}
    equations = {}
    if isinstance(network, Recurrent):
        last["decoder.embedding"] = network.embed_target(read_1T[:, step])
        terms = EQUATIONS[network.config.cell]
        for layer, cell in enumerate(network.decoder.stack.cells):
            named = {term.name: seen[f"decoder.{layer}.{term.name}"] for term in terms}
            parts = worked(cell, terms, seen[f"decoder.{layer}.sent"], state.layers[layer]._asdict(), named)
            equations.update({f"decoder.{layer}.{name}": values for name, values in parts.items()})
    return StepInFull(
        step=int(step),
        read=piece(int(read_1T[0, step])),
        said=piece(target[step]),
        vectors={name: value[0].float().numpy() for name, value in (by_head(seen) | last).items()},
        equations={name: {part: value.numpy() for part, value in parts.items()} for name, parts in equations.items()},
    )
