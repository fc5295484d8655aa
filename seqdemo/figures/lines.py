"""Logs and metrics -> Plotly curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from seqdemo.errors import InputError
from seqdemo.figures.labels import escaped
from seqdemo.figures.look import COLOURS, DASHES, figure, numbers, places

SCORE_OF_TASK = {"translate": ("bleu", "BLEU"), "transliterate": ("top1", "right, %"), "caption": ("bleu4", "BLEU-4")}

Table = Sequence[Mapping[str, Any]]
Curve = tuple[Sequence[float], Sequence[float]]


def curves(lines: Mapping[str, Curve], title: str, across: str, up: str, **layout: Any) -> go.Figure:
    """Named lines on one pair of axes, told apart by colour and dash."""
    drawn = [
        go.Scatter(
            x=list(x),
            y=list(y),
            name=escaped(name),
            mode="lines+markers" if len(x) <= 60 else "lines",
            line={"color": COLOURS[place % len(COLOURS)], "dash": DASHES[place % len(DASHES)]},
        )
        for place, (name, (x, y)) in enumerate(lines.items())
    ]
    axes = {"xaxis": numbers(across, showgrid=False), "yaxis": numbers(up)}
    return figure(*drawn, title={"text": escaped(title)}, height=360, showlegend=len(lines) > 1, **{**axes, **layout})


def learning(rows: Sequence[Mapping[str, Any]], *columns: str, across: str = "step", title: str = "") -> go.Figure:
    """Columns of a training log against its steps; a row that lacks a column is left out of its line."""
    lines: dict[str, Curve] = {}
    for column in columns:
        told = [row for row in rows if row.get(column) is not None]
        lines[column] = ([row[across] for row in told], [row[column] for row in told])
    return curves(lines, title or ", ".join(columns), across, "" if len(columns) > 1 else columns[0])


def _tables(metrics: Mapping[str, Mapping[str, Any]], test: str, table: str) -> tuple[dict[str, Table], str]:
    """Checkpoint name -> its rows for the test set (by default the first that one of them has), and the name of that set."""
    tests = [name for every in metrics.values() for name, rows in every.get("tests", {}).items() if rows.get(table)]
    test = test or next(iter(tests), "")
    found = {
        name: every["tests"][test][table] for name, every in metrics.items() if every.get("tests", {}).get(test, {}).get(table)
    }
    if not found:
        known = f" It has {', '.join(dict.fromkeys(tests))}." if tests else " Evaluate these checkpoints to have it measured."
        raise InputError(f"No metrics.json here has {table.replace('_', ' ')} for the test set {test!r}.{known}")
    return found, test


def _score(metrics: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """The column and the name of the score that stands for the task."""
    task = next(iter(metrics.values())).get("task", "")
    return SCORE_OF_TASK.get(task, SCORE_OF_TASK["translate"])


def _bucket(row: Mapping[str, Any]) -> str:
    return f"{row['from']}+" if row["to"] is None else f"{row['from']}\N{EN DASH}{row['to']}"


def quality_by_length(metrics: Mapping[str, Mapping[str, Any]], test: str = "") -> go.Figure:
    """Checkpoint name -> its metrics.json: the score of each bucket of source length."""
    tables, test = _tables(metrics, test, "by_length")
    column, name = _score(metrics)
    buckets = dict(sorted({row["from"]: _bucket(row) for rows in tables.values() for row in rows}.items()))
    place = {start: number for number, start in enumerate(buckets, 1)}
    lines = {key: ([place[row["from"]] for row in rows], [row[column] for row in rows]) for key, rows in tables.items()}
    unit = next(iter(tables.values()))[0]["unit"]
    axis = places(list(buckets.values()), title={"text": f"source length in {escaped(unit)}"})
    return curves(lines, f"Quality by source length, {test}", "", name, xaxis=axis)


def beam_quality(metrics: Mapping[str, Mapping[str, Any]], test: str = "") -> go.Figure:
    """Checkpoint name -> its metrics.json: the score with every beam size. More beams are not always better."""
    tables, test = _tables(metrics, test, "by_beam")
    column, name = _score(metrics)
    return _by_size(tables, "size", column, f"Quality by beam size, {test}", name)


def search_errors(metrics: Mapping[str, Mapping[str, Any]]) -> go.Figure:
    """How often a beam misses an output the model finds likelier, by its size, in per cent of a sample."""
    tables = {name: every["search"]["beams"] for name, every in metrics.items() if every.get("search", {}).get("beams")}
    if not tables:
        raise InputError("No metrics.json here counts search errors; evaluate these checkpoints to have them counted.")
    return _by_size(tables, "beam", "search_errors", "Search errors by beam size", "search errors, %")


def _by_size(tables: Mapping[str, Table], size: str, column: str, title: str, up: str) -> go.Figure:
    sizes = sorted({row[size] for rows in tables.values() for row in rows})
    lines = {name: ([sizes.index(row[size]) + 1 for row in rows], [row[column] for row in rows]) for name, rows in tables.items()}
    return curves(lines, title, "", up, xaxis=places([str(number) for number in sizes], title={"text": "beam size"}))
