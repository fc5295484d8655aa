"""Logs and metrics -> Plotly curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from seqdemo.errors import InputError
from seqdemo.figures.labels import escaped
from seqdemo.figures.look import COLOURS, DASHES, figure, numbers, places
from seqdemo.figures.metrics import Table, score_of, tables_of

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


def beam_quality(metrics: Mapping[str, Mapping[str, Any]], test: str = "") -> go.Figure:
    """Checkpoint name -> its metrics.json: the score with every beam size. More beams are not always better."""
    tables, test = tables_of(metrics, test, "by_beam")
    column, name = score_of(metrics)
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
