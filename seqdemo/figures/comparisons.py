"""The metrics of several models side by side, as Plotly figures. A model has one colour and one sign in all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from seqdemo.errors import InputError
from seqdemo.figures.labels import escaped
from seqdemo.figures.lengths import length_points
from seqdemo.figures.look import COLOURS, DASHES, ROW, figure, numbers, places
from seqdemo.figures.metrics import Metrics, interval_of, score_of, tables_of

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


class Point(NamedTuple):
    at: int  # from 1, along the axis
    value: float
    interval: tuple[float, float] | None
    told: str


def _ends(points: Sequence[Point]) -> dict[str, Any]:
    """The bars of the 95 % intervals; none for figures without one."""
    above, below = ([_beyond(point, end) for point in points] for end in (1, 0))
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1.2, "width": 4}


def _beyond(point: Point, end: int) -> float:
    return abs(point.interval[end] - point.value) if point.interval else 0.0


def _look(place: int) -> dict[str, Any]:
    colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
    return {
        "line": {"color": colour, "dash": dash},
        "marker": {"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 9, "color": colour},
    }


def _sure(interval: tuple[float, float] | None) -> str:
    return f"<br>95 % interval {interval[0]:.1f} to {interval[1]:.1f}" if interval else "<br>no interval was measured"


def _title(text: str) -> dict[str, Any]:
    """Small and from the left edge, so that it is not cut on a phone."""
    return {"text": escaped(text), "font": {"size": 14}, "x": 0, "xanchor": "left", "xref": "paper"}


def _lines(
    lines: Mapping[str, list[Point]],
    names: Sequence[str],
    title: str,
    up: str,
    across: dict[str, Any],
    told_of: Mapping[str, str] | None = None,
) -> go.Figure:
    """One line a model. `told_of`: name -> what the legend says of its line."""
    drawn, said = [], told_of or {}
    for place, name in enumerate(names):
        points = lines.get(name, [])
        if points:
            told = [f"<b>{escaped(name)}</b><br>{point.told}" for point in points]
            drawn.append(
                go.Scatter(
                    x=[point.at for point in points],
                    y=[point.value for point in points],
                    error_y=_ends(points),
                    name="<br>".join(filter(None, (escaped(name), said.get(name)))),
                    mode="lines+markers",
                    text=told,
                    hovertemplate="%{text}<extra></extra>",
                    **_look(place),
                )
            )
    legend = {"orientation": "h", "y": -0.24, "yanchor": "top"}
    axes = {"xaxis": across, "yaxis": numbers(up, rangemode="tozero")}
    height = 440 + (38 if said else 20) * len(drawn)  # under each other on a phone
    return figure(*drawn, title=_title(title), height=height, legend=legend, showlegend=True, **axes)


def by_length(metrics: Mapping[str, Metrics], test: str = "", title: str = "") -> go.Figure:
    """The score of each length that 30 inputs or more have, with its 95 % interval where one was measured."""
    tables, test = tables_of(metrics, test, "by_length")
    column, score = score_of(metrics)
    found = {name: length_points(rows, column) for name, rows in tables.items()}
    starts = sorted({(point["at"], point["label"]) for points in found.values() for point in points})
    at = {start: place for place, (start, _) in enumerate(starts, 1)}
    lines = {
        name: [
            Point(
                at[point["at"]],
                point["value"],
                (sure := (point["low"], point["high"]) if "low" in point else None),
                f"{score} {point['value']:.1f} at {point['label']}, {point['count']:,} inputs{_sure(sure)}",
            )
            for point in points
        ]
        for name, points in found.items()
    }
    unit = next(iter(tables.values()))[0]["unit"]
    across = places([label for _, label in starts], title={"text": f"input length in {unit}"})
    return _lines(lines, list(metrics), f"{score} by the length of the input, {title or test}", score, across)


def beam_quality(metrics: Mapping[str, Metrics], test: str = "", title: str = "") -> go.Figure:
    """Checkpoint name -> its metrics.json: the score with every beam size. More beams are not always better. A
    model may have been measured on a part of the test set: the legend tells."""
    tables, test = tables_of(metrics, test, "by_beam")
    column, score = score_of(metrics)
    whole = {name: int(metrics[name]["tests"][test].get("inputs", 0)) for name in tables}
    counts = {name: (int(rows[0].get("inputs", 0)), whole[name]) for name, rows in tables.items()}
    return _by_size(tables, metrics, "size", column, f"{score} by the size of the beam, {title or test}", score, counts)


def search_errors(metrics: Mapping[str, Metrics], test: str = "", title: str = "") -> go.Figure:
    """How often a beam misses an output that the model finds likelier, in per cent of a sample."""
    tables = {name: every["search"]["beams"] for name, every in metrics.items() if every.get("search", {}).get("beams")}
    if not tables:
        raise InputError("No metrics.json here counts search errors; evaluate these checkpoints to have them counted.")
    counts = {name: (int(metrics[name]["search"].get("inputs", 0)), 0) for name in tables}
    title = "Search errors by the size of the beam"
    return _by_size(tables, metrics, "beam", "search_errors", title, "search errors, %", counts)


def _by_size(
    tables: Mapping[str, Any],
    metrics: Mapping[str, Metrics],
    size: str,
    column: str,
    title: str,
    up: str,
    counts: Mapping[str, tuple[int, int]],
) -> go.Figure:
    """`counts`: for each model, how many inputs it was measured on and how many the test set has; 0 if unknown."""
    sizes = sorted({row[size] for rows in tables.values() for row in rows})
    told = {name: _counted(*each) for name, each in counts.items()}

    def point(name: str, row: Mapping[str, Any]) -> Point:
        sure = interval_of({"inputs": counts[name][0]}, column, row[column])
        said = f"{up} {row[column]:.1f} at beam {row[size]}{', ' * bool(told[name])}{told[name]}{_sure(sure)}"
        return Point(sizes.index(row[size]) + 1, row[column], sure, said)

    lines = {name: [point(name, row) for row in rows] for name, rows in tables.items()}
    across = places([str(number) for number in sizes], title={"text": "beam size"})
    return _lines(lines, list(metrics), title, up, across, told)


def _counted(inputs: int, whole: int) -> str:
    """'only 166 of 4,442 inputs'; empty where nobody counted."""
    if inputs < whole and inputs:
        return f"only {inputs:,} of {whole:,} inputs"
    return f"{'all ' * bool(whole)}{inputs:,} inputs" if inputs else ""


def scores(metrics: Mapping[str, Metrics], test: str = "", title: str = "") -> go.Figure:
    """The main figure of a test set, one row per model, with its 95 % interval where one was measured."""
    column, score = score_of(metrics)
    drawn = []
    for place, (name, every) in enumerate(metrics.items(), 1):
        tables = every.get("tests", {}).get(test, {})
        value = (tables.get("beam") or tables.get("greedy") or {}).get(column)
        if value is not None:
            drawn.append((place, name, Point(place, value, interval_of(tables, column, value), "")))
    if not drawn:
        raise InputError(f"No metrics.json here has figures of the test set {test!r}.")
    rows = [
        go.Scatter(
            x=[point.value],
            y=[place],
            error_x=_ends([point]),
            mode="markers",
            text=[f"<b>{escaped(name)}</b><br>{score} {point.value:.1f}{_sure(point.interval)}"],
            hovertemplate="%{text}<extra></extra>",
            marker=_look(place - 1)["marker"],
        )
        for place, name, point in drawn
    ]
    axes = {"xaxis": numbers(score), "yaxis": places([escaped(name) for name in metrics], down=True)}
    height = 150 + 2 * ROW * len(metrics)
    return figure(*rows, title=_title(f"{score}, {title or test}"), height=height, showlegend=False, **axes)


KINDS: dict[str, tuple[str, Callable[..., go.Figure]]] = {
    "length": ("by the length of the input", by_length),
    "scores": ("on the whole test set", scores),
    "beams": ("by the size of the beam", beam_quality),
    "errors": ("search errors by the size of the beam", search_errors),
}
