"""Traces -> Plotly figures: alignment, gates, saturation, probabilities. Scales are fixed, so figures side by side compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from seqdemo.errors import InputError
from seqdemo.figures.labels import escaped, isolated, label, labels
from seqdemo.figures.look import ACCENT, COLOURS, DIVERGING, LAYOUT, ROW, SEQUENTIAL, figure, numbers, places, rounded
from seqdemo.records import Trace

FROM_ONE = {"x0": 1, "dx": 1, "y0": 1, "dy": 1}
OPEN_GATES = ("input", "forget", "output", "update", "reset")  # between 0 and 1


def _named(pieces: Sequence[str], count: int, word: str) -> list[str]:
    """The pieces' labels; where there are not as many as states (a photograph's cells have none), numbers from 1."""
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


def alignment(trace: Trace, title: str = "Alignment") -> go.Figure:
    """Attention weights a_tj: one row a target piece t, one column a source state j; each row sums to 1."""
    heatmap, rows, columns = _alignment_heatmap(trace, colorbar={"title": {"text": "weight"}, "thickness": 12})
    return figure(
        heatmap,
        title={"text": escaped(title)},
        height=120 + ROW * max(4, len(rows)),
        xaxis=places(columns, side="top", tickangle=-60 if len(columns) > 8 else 0),
        yaxis=places(rows, down=True),
        margin={"l": 16, "r": 16, "t": 110, "b": 16},
    )


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


def unit_order(values: np.ndarray, by: str = "number") -> np.ndarray:
    """Units (columns of `values`) by number, by variance over time, or by saturation (share of time below 0.1 or above 0.9)."""
    if by == "number":
        return np.arange(values.shape[1])
    keys = {"variance": values.var(0), "saturation": ((values < 0.1) | (values > 0.9)).mean(0)}
    if by not in keys:
        raise InputError(f"Units are sorted by number, {' or '.join(keys)}, not by {by!r}.")
    return np.argsort(-keys[by], kind="stable")


def _gate(trace: Trace, name: str) -> np.ndarray:
    if name not in trace.gates:
        raise InputError(f"This trace has no gate {name!r}; it has {', '.join(trace.gates) or 'none'}.")
    return np.asarray(trace.gates[name], dtype=float)


def gates(trace: Trace, name: str, by: str = "number") -> go.Figure:
    """One gate (or cell, or hidden state) over time: one column a step, one row a unit, sorted as `unit_order` does."""
    values = _gate(trace, name)
    units = unit_order(values, by)
    part, gate = name.split(".")[0], name.rsplit(".", 1)[-1]
    steps = _named(trace.source if part == "encoder" else trace.target, len(values), "step")
    is_open = gate in OPEN_GATES
    largest = 1.0 if is_open else max(1.0, float(np.abs(values).max(initial=0.0)))
    heatmap = go.Heatmap(
        x0=1,
        dx=1,
        z=rounded(values[:, units].T),
        customdata=[[int(unit)] * len(steps) for unit in units],
        hovertemplate="unit %{customdata}, step %{x}<br>" + escaped(gate) + " %{z:.3f}<extra></extra>",
        zmin=0 if is_open else -largest,
        zmax=largest,
        colorscale=SEQUENTIAL if is_open else DIVERGING,
        colorbar={"title": {"text": escaped(gate)}, "thickness": 12},
    )
    return figure(
        heatmap,
        title={"text": escaped(name)},
        height=max(260, min(900, 140 + 6 * len(units))),
        xaxis=places(steps, side="top", tickangle=-60 if len(steps) > 8 else 0),
        yaxis=numbers("unit" if by == "number" else f"units, by {by}", showgrid=False, autorange="reversed"),
        margin={"l": 16, "r": 16, "t": 110, "b": 16},
    )


def saturation(trace: Trace, part: str = "decoder.0", low: float = 0.1, high: float = 0.9) -> go.Figure:
    """Each unit of each gate: the share of steps it is nearly open (above `high`) against nearly shut (below `low`)."""
    names = [name for name in trace.gates if name.startswith(f"{part}.") and name.rsplit(".", 1)[-1] in OPEN_GATES]
    if not names:
        raise InputError(
            f"{part} has no gates that open and shut; the parts with gates are {', '.join(_parts(trace)) or 'none'}."
        )
    dots = []
    for place, name in enumerate(names):
        values, gate = _gate(trace, name), name.rsplit(".", 1)[-1]
        dots.append(
            go.Scatter(
                x=rounded((values > high).mean(0)),
                y=rounded((values < low).mean(0)),
                mode="markers",
                name=gate,
                marker={"color": COLOURS[place], "symbol": place, "size": 8, "opacity": 0.65},
                customdata=list(range(values.shape[1])),
                hovertemplate=f"{gate}, unit %{{customdata}}<br>open %{{x:.0%}}, shut %{{y:.0%}}<extra></extra>",
            )
        )
    span = {"range": [-0.03, 1.03], "tickformat": ".0%"}
    return figure(
        *dots,
        title={"text": escaped(f"Saturation of {part}")},
        height=460,
        xaxis=numbers(f"share of steps above {high:g}", **span),
        yaxis=numbers(f"share of steps below {low:g}", **span),
        showlegend=True,
    )


def _parts(trace: Trace) -> list[str]:
    parts = (name.rsplit(".", 1)[0] for name in trace.gates if name.rsplit(".", 1)[-1] in OPEN_GATES)
    return list(dict.fromkeys(parts))


def probabilities(trace: Trace) -> go.Figure:
    """The probability of every piece given those before it; hover shows what else the model considered there."""
    steps = labels(trace.target)
    considered = [
        "<br>".join(f"{isolated(label(name))} {math.exp(logp):.1%}" for name, logp in zip(pieces, logps))
        for pieces, logps in zip(trace.top_pieces, np.asarray(trace.top_logps, dtype=float).tolist())
    ]
    bars = go.Bar(
        x=list(range(1, len(steps) + 1)),
        y=rounded(np.exp(trace.logps)),
        marker={"color": ACCENT},
        hovertext=considered,
        hovertemplate="p = %{y:.3f}<br>considered:<br>%{hovertext}<extra></extra>",
    )
    return figure(
        bars,
        title={"text": f"Probability of each piece; log probability of all {trace.total:.3f}"},
        height=320,
        xaxis=places(steps, tickangle=-60 if len(steps) > 8 else 0),
        yaxis=numbers("probability", range=[0, 1]),
    )
