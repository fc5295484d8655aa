"""Traces -> Plotly figures: alignment, gates, saturation, probabilities. Scales are fixed, so figures side by side compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from seqdemo.errors import InputError
from seqdemo.figures.labels import escaped, isolated, labels
from seqdemo.figures.look import LAYOUT, SEQUENTIAL, places, rounded
from seqdemo.records import Trace

FROM_ONE = {"x0": 1, "dx": 1, "y0": 1, "dy": 1}


def _named(pieces: Sequence[str], count: int, word: str) -> list[str]:
    """The pieces' labels, or numbers from 1 if there are not as many pieces as states (as for the cells of a photograph)."""
    return labels(pieces) if len(pieces) == count else [f"{word} {place + 1}" for place in range(count)]


def _attention(trace: Trace) -> np.ndarray:
    if trace.attention is None:
        raise InputError("This model has no attention, so there is no alignment to draw; choose a checkpoint with attention.")
    return np.asarray(trace.attention, dtype=float)


def _alignment_heatmap(trace: Trace, **more: Any) -> tuple[go.Heatmap, list[str], list[str]]:
    weights = _attention(trace)
    rows, columns = _named(trace.target, weights.shape[0], "step"), _named(trace.source, weights.shape[1], "state")
    pairs = [[f"{isolated(row)} \N{LEFTWARDS ARROW} {isolated(column)}" for column in columns] for row in rows]
    hover = "%{text}<br>weight %{z:.3f}<extra></extra>"
    heatmap = go.Heatmap(
        **FROM_ONE,
        z=rounded(weights),
        text=pairs,
        hovertemplate=hover,
        zmin=0,
        zmax=1,
        colorscale=SEQUENTIAL,
        xgap=1,
        ygap=1,
        **more,
    )
    return heatmap, rows, columns


def alignment_grid(traces: Mapping[str, Trace], across: int = 3) -> go.Figure:
    """Several alignments on one colour scale, each under its name."""
    if not traces:
        raise InputError("There is no alignment to draw; give at least one trace.")
    down = math.ceil(len(traces) / across)
    across = min(across, len(traces))
    grid = make_subplots(rows=down, cols=across, subplot_titles=[escaped(name) for name in traces])
    for place, trace in enumerate(traces.values()):
        row, column = place // across + 1, place % across + 1
        heatmap, rows, columns = _alignment_heatmap(trace)
        grid.add_trace(heatmap.update(coloraxis="coloraxis"), row=row, col=column)
        grid.update_xaxes(places(columns, tickangle=-60), row=row, col=column)
        grid.update_yaxes(places(rows, down=True), row=row, col=column)
    longest = max(len(trace.target) for trace in traces.values())
    scale = {"cmin": 0, "cmax": 1, "colorscale": SEQUENTIAL, "colorbar": {"title": {"text": "weight"}, "thickness": 12}}
    return grid.update_layout(LAYOUT).update_layout(coloraxis=scale, height=60 + down * (130 + 18 * max(4, longest)))
