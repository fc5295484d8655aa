"""What weights in bfloat16 and int8 change, on dev: quality, the share of outputs that differ from float32's, and the time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import PRECISIONS, SearchOptions
from seqdemo.hub import load
from training.data.records import Dataset
from training.measure import long_texts
from training.measure.decoding import Progress, decode, prompts, quiet
from training.measure.evaluate import load_data
from training.measure.looks import add, figures
from training.measure.scores import SCORING

INPUTS = 200  # of dev
CHARACTERS = 20_000  # of dev, for a language model
ROUNDS = 3  # in which the precisions take turns

Measured = tuple[float, list[str]]  # a figure, and the outputs
Measure = Callable[[Checkpoint], tuple[Measured, float]]  # and the seconds


def precisions(
    folder: Path, data: Path | None = None, dataset: str = "", record: bool = False, progress: Progress = quiet
) -> dict[str, Any]:
    """The figures of each precision; `record` also writes them into the folder's metrics.json."""
    checkpoint = load(Path(folder))
    checkpoints = {precision: checkpoint.in_precision(precision) for precision in PRECISIONS}
    loaded = load_data(checkpoint, dataset, data)
    before = figures(checkpoint, loaded.name) if record else {}
    way = reading if checkpoint.task == "complete" else writing
    found = compared(checkpoints, way(checkpoint, loaded, progress))
    if record:
        add(before, Path(folder), "precisions", found)
    return found


def compared(checkpoints: dict[str, Checkpoint], measure: Measure) -> dict[str, Any]:
    """Figure, share of other outputs and time against float32, the median of pairs from the same round."""
    seconds: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    measured: dict[str, Measured] = {}
    for _ in range(ROUNDS):
        for precision, one in checkpoints.items():
            measured[precision], taken = measure(one)
            seconds[precision].append(taken)
    usual, task = measured["float32"][1], checkpoints["float32"].task
    found: dict[str, Any] = {"split": "dev", "figure": "nats" if task == "complete" else SCORING[task].main}
    for precision, (figure, outputs) in measured.items():
        row: dict[str, float] = {"figure": figure}
        if precision != "float32" and usual:
            row["differ"] = 100 * sum(one != other for one, other in zip(outputs, usual)) / len(usual)
        if precision != "float32":
            row["time"] = statistics.median(own / whole for own, whole in zip(seconds[precision], seconds["float32"]))
        found[precision] = row
    return {**found, "inputs": len(usual)}


def writing(checkpoint: Checkpoint, dataset: Dataset, progress: Progress) -> Measure:
    """The main figure and the outputs of a beam of 5, and the processor's seconds for the searches."""
    examples, scoring = dataset.dev.sample(INPUTS, seed=0).examples, SCORING[checkpoint.task]
    inputs = prompts(checkpoint, examples, progress)

    def measure(one: Checkpoint) -> tuple[Measured, float]:
        began = time.process_time()
        outputs = decode(one, inputs, SearchOptions(beam=5), one.precision, progress)
        taken = time.process_time() - began
        return (scoring.figures(outputs, examples)[scoring.main], [output.texts[0] for output in outputs]), taken

    return measure


def reading(checkpoint: Checkpoint, dataset: Dataset, progress: Progress) -> Measure:
    """Nats per character of a language model, which writes nothing here."""
    text = dataset.dev.examples[0].references[0][:CHARACTERS]

    def measure(one: Checkpoint) -> tuple[Measured, float]:
        began = time.process_time()
        figure = long_texts.nats(one, "", text)["nats_per_character"]
        return (figure, []), time.process_time() - began

    return measure


def sentences(found: dict[str, Any]) -> str:
    """One line per precision."""
    lines = []
    for precision in PRECISIONS:
        row = found[precision]
        told = [f"{found['figure']} {row['figure']:.3f}"]
        told += [f"{row['differ']:.1f} % of {found['inputs']} outputs differ"] if "differ" in row else []
        told += [f"{row['time']:.2f} times the time of float32"] if "time" in row else []
        lines.append(f"{precision:<10}{', '.join(told)}")
    return "\n".join(lines)
