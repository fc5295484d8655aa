"""Logs -> Plotly curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from seqdemo.figures.labels import escaped
from seqdemo.figures.look import COLOURS, DASHES, figure, numbers

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
