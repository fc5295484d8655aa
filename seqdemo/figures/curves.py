"""Logs and metrics -> Plotly curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from seqdemo.errors import InputError
from seqdemo.figures.labels import escaped
from seqdemo.figures.look import COLOURS, DASHES, figure, numbers, places

BUCKET = ("unit", "from", "to", "inputs")  # the other columns of a bucket are scores
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


def _metric(rows: Sequence[Mapping[str, Any]], *others: str) -> str:
    """The one column of a table of metrics that is not among `others`."""
    return next(name for name in rows[0] if name not in others)


def quality_by_length(metrics: Mapping[str, Mapping[str, Any]]) -> go.Figure:
    """Checkpoint name -> its metrics: the task's score in each bucket of source length."""
    tables = {name: table["by_length"] for name, table in metrics.items() if table.get("by_length")}
    if not tables:
        raise InputError("None of these checkpoints has scores by source length in its metrics.json; evaluate them again.")
    first = next(iter(tables.values()))
    metric = _metric(first, *BUCKET)
    starts = sorted({row["from"]: _bucket(row) for rows in tables.values() for row in rows}.items())
    place = {start: index + 1 for index, (start, _) in enumerate(starts)}
    lines = {name: ([place[row["from"]] for row in rows], [row[metric] for row in rows]) for name, rows in tables.items()}
    axis = places([text for _, text in starts], title={"text": f"source length in {escaped(first[0]['unit'])}"})
    return curves(lines, "Quality by source length", "", metric, xaxis=axis)


def _bucket(row: Mapping[str, Any]) -> str:
    return f"{row['from']}+" if row["to"] is None else f"{row['from']}\N{EN DASH}{row['to']}"
