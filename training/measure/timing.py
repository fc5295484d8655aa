"""How long a model takes to decode inputs one at a time and in batches, in turns with another model."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.hub import load
from seqdemo.playground import find
from seqdemo.prompts import Prompt
from training.measure.decoding import Progress, batches, prompts, quiet
from training.measure.evaluate import load_data
from training.measure.looks import add, figures

SIZES = (1, 64)  # inputs that are decoded together
INPUTS = 192  # of dev
ROUNDS = 5  # in which the two take turns
BEAM = SearchOptions(beam=5)


def timing(
    folder: Path, beside: Path, data: Path | None = None, dataset: str = "", record: bool = False, progress: Progress = quiet
) -> dict[str, Any]:
    """Milliseconds of the processor an input, of both; with `record` they stand in the metrics.json of the first."""
    both = [load(Path(folder)), load(Path(beside))]
    if both[0].task != both[1].task or both[0].task == "complete":
        raise InputError(f"{both[1].name} and {both[0].name} do not read the same inputs, so their times cannot be compared.")
    loaded = load_data(both[0], dataset, data)
    before = figures(both[0], loaded.name) if record else {}
    examples = loaded.dev.sample(INPUTS, seed=0).examples
    inputs = [prompts(one, examples) for one in both]
    rows = [compared(both, inputs, size, progress) for size in SIZES]
    count = parameters(both[1])
    found = {
        "split": "dev",
        "inputs": len(examples),
        "beam": BEAM.beam,
        "beside": both[1].name,
        "parameters": count,
        "batches": rows,
    }
    if record:
        add(before, Path(folder), "timing", found)
    return found


def compared(both: list[Checkpoint], inputs: list[list[Prompt]], size: int, progress: Progress) -> dict[str, float]:
    """The medians of all rounds, and the median ratio of the two in the same round."""
    taken: list[list[float]] = [[], []]
    for turn in range(ROUNDS):
        for seconds, checkpoint, own in zip(taken, both, inputs):
            seconds.append(processor_seconds(checkpoint, own, size))
        progress(f"batches of {size}", turn + 1, ROUNDS)
    ours, theirs = ([1_000 * one / len(inputs[0]) for one in seconds] for seconds in taken)
    ratio = statistics.median(one / other for one, other in zip(ours, theirs))
    return {"size": size, "ms": statistics.median(ours), "beside_ms": statistics.median(theirs), "ratio": ratio}


def processor_seconds(checkpoint: Checkpoint, inputs: list[Prompt], size: int) -> float:
    """For all inputs, those of similar length together."""
    ordered = sorted(inputs, key=lambda prompt: len(prompt.pieces.ids))
    began = time.process_time()
    for group in batches(range(len(ordered)), size):
        find(checkpoint, [ordered[index] for index in group], BEAM, record=False)
    return time.process_time() - began


def parameters(checkpoint: Checkpoint) -> int:
    return sum(value.numel() for value in checkpoint.model.parameters())


def sentences(found: dict[str, Any]) -> str:
    """A line a batch size."""
    told = f"milliseconds of one core an input, beam {found['beam']}, {found['inputs']} inputs of {found['split']}"
    lines = [
        f"batches of {row['size']:<3}{row['ms']:8.2f}, {found['beside']} {row['beside_ms']:.2f}: {row['ratio']:.2f} times"
        for row in found["batches"]
    ]
    return "\n".join([told, *lines])
