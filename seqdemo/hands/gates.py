"""When a gate closes, over the input at hand or over a recorded sample of dev text.

A gate closes where the mean over its units is smallest. The report names the pieces that the steps read: for which input does it
close?
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import ModelConfig, switches
from seqdemo.errors import InputError
from seqdemo.explain.replay import positions_of
from seqdemo.findings import AtToken, GateMeans, GateReport
from seqdemo.hands.place import Cancel, Progress
from seqdemo.hands.sample import READ_FIRST, follow, sample_for
from seqdemo.network.model import Network
from seqdemo.playground import Run, checkpoint_of, replay
from seqdemo.presets import presets

MOST_TOLD, FEWEST = 10, 3  # pieces with the lowest and highest means; in a sample, how often a piece must occur


def gate_report(
    checkpoint: Checkpoint | Network,
    run: Run,
    tokens: Sequence[int] = (),
    over: str = "input",
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> GateReport:
    """When each gate closes and opens: over this input and output, under the run's edits ('input'), or over a recorded sample of
    dev text, without any edit ('sample'). Beside it classic questions, such as to forget everything, as clamps for this input."""
    checkpoint = checkpoint_of(checkpoint)
    config: ModelConfig = checkpoint.model.config  # type: ignore[assignment]
    if over not in ("input", "sample"):
        raise InputError(f"Gates are looked at over 'input' or 'sample', not {over!r}.")
    asked = presets(config, positions_of(checkpoint.model, run.prompt.source))  # type: ignore[arg-type]
    if over == "input":
        trace = replay(checkpoint, run, tuple(tokens) or run.hypotheses[0].tokens)
        rows = {"encoder": trace.source, "decoder": (READ_FIRST, *trace.target[:-1])}
        gates = [of_text(name, values, rows[name.split(".")[0]]) for name, values in trace.gates.items() if is_switch(name)]
        return GateReport(over, None, config.cell, tuple(gates), asked)
    sample = sample_for(checkpoint, run.prompt.language)
    followed = follow(checkpoint, sample, progress, cancel)
    gates = [
        of_sample(name, values, part.pieces)
        for part in followed.values()
        for name, values in part.terms.items()
        if is_switch(name)
    ]
    return GateReport(over, sample.title, config.cell, tuple(gates), asked)


def is_switch(name: str) -> bool:
    return name.rpartition(".")[2] in switches()


def of_text(path: str, values_TH: np.ndarray, pieces: Sequence[str]) -> GateMeans:
    """The means by place."""
    means_T = values_TH.mean(1, dtype=np.float64)
    told = [AtToken(piece, float(mean), at) for at, (piece, mean) in enumerate(zip(pieces, means_T))]
    return gate_means(path, values_TH, told, None)


def of_sample(path: str, values_NH: np.ndarray, pieces: Sequence[str]) -> GateMeans:
    """The means by piece, for pieces that occur often enough."""
    names, which_N, counts = np.unique(np.array(pieces), return_inverse=True, return_counts=True)
    means = np.bincount(which_N, values_NH.mean(1, dtype=np.float64)) / counts
    told = [
        AtToken(str(name), float(mean), None, int(count)) for name, mean, count in zip(names, means, counts) if count >= FEWEST
    ]
    return gate_means(path, values_NH, told, tuple(each.count for each in told))


def gate_means(name: str, values_NH: np.ndarray, told: list[AtToken], counts: tuple[int, ...] | None) -> GateMeans:
    part, layer, *way, gate = name.split(".")
    ranked = sorted(told, key=lambda each: each.mean)
    return GateMeans(
        name=name,
        part=part,
        direction=way[0] if way else "forward",
        layer=int(layer),
        gate=gate,
        units=values_NH.shape[1],
        mean=float(values_NH.mean(dtype=np.float64)),
        tokens=tuple(each.piece for each in told),
        means=tuple(each.mean for each in told),
        counts=counts,
        shut=tuple(ranked[:MOST_TOLD]),
        open=tuple(ranked[::-1][:MOST_TOLD]),
    )
