"""The look that all figures share. Imports no torch.

Axes are whole numbers from 1 and carry the pieces as tick labels, so repeated pieces have separate places. Backgrounds are
transparent and there is no template: the page around a figure decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from seqdemo.figures.labels import escaped

LOOK = json.loads((Path(__file__).parent / "js" / "look.json").read_text("utf-8"))["light"]  # the pages' own colours
COLOURS = tuple(LOOK["colours"][f"model-{number}"] for number in range(1, 9))  # of models, never those of columns A and B
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # to tell lines apart without colour


def scale(name: str) -> list[list[Any]]:
    """A scale of the look as Plotly wants it: where each of its colours stands between 0 and 1."""
    colours = LOOK["scales"][name]
    return [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]


SEQUENTIAL = scale("weights")
FONT = {"family": "system-ui, 'Noto Sans', 'Noto Sans Devanagari', sans-serif", "size": 13}

MOST_TICKS = 80
ROW = 22  # pixels


LAYOUT: dict[str, Any] = {
    "template": None,
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": FONT,
    "margin": {"l": 16, "r": 16, "t": 44, "b": 16},
    "dragmode": False,
    "hoverlabel": {"align": "left"},
}


def figure(*traces: Any, **layout: Any) -> go.Figure:
    return go.Figure(list(traces)).update_layout({**LAYOUT, **layout})


def places(names: Sequence[str], down: bool = False, **more: Any) -> dict[str, Any]:
    """An axis of whole numbers, one per name, from top to bottom if `down`. Of more than 80 names only every second (third ...)
    is shown."""
    every = max(1, math.ceil(len(names) / MOST_TICKS))
    shown = range(1, len(names) + 1, every)
    axis = {"type": "linear", "tickmode": "array", "tickvals": list(shown), "ticktext": [names[place - 1] for place in shown]}
    ends = [0.5, len(names) + 0.5]
    return {**axis, "range": ends[::-1] if down else ends, "showgrid": False, "zeroline": False, "automargin": True, **more}


def numbers(title: str, **more: Any) -> dict[str, Any]:
    return {
        "title": {"text": escaped(title)},
        "gridcolor": "rgba(148,163,184,0.35)",
        "zeroline": False,
        "automargin": True,
        **more,
    }


def rounded(values: np.ndarray) -> list[Any]:
    return list(np.round(np.asarray(values, dtype=float), 5).tolist())
