"""The look that all figures share. Imports no torch.

Axes are whole numbers from 1 and carry the pieces as tick labels, so repeated pieces keep places of their own. Backgrounds are
transparent and there is no template: the page around a figure decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from seqdemo.figures.labels import escaped

ACCENT, MUTED, INK = "#4f46e5", "#94a3b8", "#334155"
COLOURS = (ACCENT, "#c2410c", "#0f766e", "#be185d", "#a16207", "#0369a1")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")  # told apart without colour, too
SEQUENTIAL = [[0.0, "#f5f3ff"], [0.25, "#c7d2fe"], [0.5, "#818cf8"], [0.75, "#4338ca"], [1.0, "#1e1b4b"]]
DIVERGING = [[0.0, "#1e40af"], [0.25, "#93c5fd"], [0.5, "#f8fafc"], [0.75, "#fdba74"], [1.0, "#9a3412"]]
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
    """An axis of whole numbers, one a name, `down` for from top to bottom; past 80 names every second (third ...) is written."""
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
