"""report.html of a run: how it learned, where it looked meanwhile, what it gets right and wrong. It needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import torch

from seqdemo.figures import alignment_grid, learning, page
from training.data.records import Example
from training.measure.scores import SCORING, Output
from training.run import runstate, watch
from training.run.build import BEST, put, read_best
from training.run.machine import peak_memory
from training.run.resume import LOG, REPORT
from training.tasks.task import PairTask

if TYPE_CHECKING:
    from training.run.fit import Run

AGES = 6
SHOWN = 10

Section = tuple[str, str, go.Figure]


def write(run: Run) -> Path:
    """Write the report of a finished run, about its best weights."""
    path = run.folder / REPORT
    lines = list(runstate.lines(run.folder / LOG))
    sections = [*curves(run, lines), *alignments(run)]
    before = summary(run) + samples(lines) + examples(run)
    runstate.write_atomically(path, page(f"Training of {run.recipe.name}", sections, before).encode())
    return path


def curves(run: Run, lines: Sequence[dict[str, Any]]) -> Iterator[Section]:
    metric = f"dev {run.recipe.metric}"
    names = {"loss": "training", "dev_loss": "dev", "metric": metric, "rate": "learning rate", "norm": "gradient norm"}
    told = [{names.get(key, key): value for key, value in line.items()} for line in lines]
    yield (
        "Loss",
        "Nats a token: on training batches, with dropout and label smoothing, and on dev data, without.",
        learning(told, "training", "dev", title="nats a token"),
    )
    yield f"Dev {run.recipe.metric}", "Of the weights as they would have been shipped then.", learning(told, metric)
    yield "Learning rate", "Up in a straight line, down as half a cosine.", learning(told, "learning rate")
    yield "Gradient norm", f"Before it is clipped to {run.recipe.clip:g}.", learning(told, "gradient norm")


def alignments(run: Run) -> Iterator[Section]:
    """Each fixed example at up to AGES ages of the model."""
    for example, lines in watch.by_example(runstate.lines(run.state / watch.ALIGNMENTS)).items():
        traces = {f"step {line['step']:,}": watch.trace_of(line) for line in ages(lines)}
        sentence = f"Where the model looked (columns) for each piece of its output (rows) while it learned. It reads: {example}"
        yield "An alignment as it grows", sentence, alignment_grid(traces)


def ages(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first, the last, and some evenly between."""
    if len(lines) <= AGES:
        return list(lines)
    return [lines[round(place * (len(lines) - 1) / (AGES - 1))] for place in range(AGES)]


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = "".join(f"<th align=left>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table cellpadding=6><tr>{cells}</tr>{body}</table>"


def summary(run: Run) -> str:
    progress, recipe = run.progress, run.recipe
    rows = [
        ("what it is", recipe.about),
        ("steps", f"{progress.step:,} of {run.steps:,}"),
        ("core-minutes", f"{progress.seconds / 60:.1f} of {recipe.minutes}"),
        ("memory at most", f"{peak_memory() / 1e9:.2f} GB since it last began or went on"),
        (f"best dev {recipe.metric}", f"{progress.best:.2f} at step {progress.best_step:,}"),
        ("data", f"{recipe.data}, fingerprint {run.fingerprint[:12]}"),
    ]
    return table(("", ""), rows)


def samples(lines: Sequence[dict[str, Any]]) -> str:
    """The model's output for the same input at each evaluation."""
    judged = [line for line in lines if "sample" in line]
    rows = [(f"{line['step']:,}", f"{line['metric']:.2f}", line["sample"]) for line in judged]
    return "<h2>The same example at every evaluation</h2>" + table(("step", "dev", "it says"), rows)


def examples(run: Run) -> str:
    """The dev examples whose outputs score worst and best."""
    if not isinstance(run.task, PairTask):
        return ""
    rows = scored(run, run.task)
    head = ("score", "source", "output", "reference")
    return "".join(
        f"<h2>{title}</h2>{table(head, chosen)}"
        for title, chosen in (("Worst dev examples", rows[:SHOWN]), ("Best dev examples", rows[::-1][:SHOWN]))
    )


def scored(run: Run, task: PairTask) -> list[tuple[str, str, str, str]]:
    """(score, source, output, reference) of every dev example under the best weights, worst first."""
    put(run.judged, read_best(run.state / BEST))
    with torch.no_grad():
        texts = task.outputs(run.judged.for_inference(), task.dev, watch.GREEDY)
    single = SCORING[run.recipe.task].single
    found: list[tuple[float, str, Example]] = [
        (single(Output((text,), (0.0,), (0,)), example), text, example) for text, example in zip(texts, task.dev)
    ]
    found.sort(key=lambda row: row[0])
    return [(f"{score:.1f}", example.source, text, " / ".join(example.references[:3])) for score, text, example in found]
