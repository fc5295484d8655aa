"""A search tree -> a Plotly figure, left to right by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from seqdemo.figures.labels import isolated, label
from seqdemo.figures.look import ACCENT, COLOURS, INK, MUTED, ROW, figure, places
from seqdemo.records import FATES, FINISHED, KEPT, PRUNED, SearchTree

MOST_NAMED = 160  # more names would cover each other
FATE_LOOKS = ((KEPT, "circle", ACCENT), (PRUNED, "x-thin-open", MUTED), (FINISHED, "diamond", COLOURS[1]))


def shown_rows(tree: SearchTree, best: int = -1, most: int = 400) -> np.ndarray:
    """Which rows of a tree to draw: all of them, or, past `most`, only the paths that lead to the end of the search."""
    if len(tree) <= most:
        return np.arange(len(tree))
    last = int(tree.step.max())
    ends = np.flatnonzero((tree.fate == FINISHED) | ((tree.fate == KEPT) & (tree.step == last)))
    keep = np.zeros(len(tree), dtype=bool)
    for end in [*ends.tolist(), *([best] if best >= 0 else [])]:
        while end >= 0 and not keep[end]:
            keep[end] = True
            end = int(tree.parent[end])
    return np.flatnonzero(keep)


def heights(tree: SearchTree, rows: Sequence[int]) -> dict[int, float]:
    """Where each row stands: leaves one below the other, better ranks above, a parent amid its children; -1 is the root."""
    children: dict[int, list[int]] = {-1: []}
    for row in sorted(rows, key=lambda row: (int(tree.step[row]), int(tree.rank[row]))):
        children.setdefault(int(tree.parent[row]), []).append(row)
    place: dict[int, float] = {}
    leaves, stack = 0, [(-1, False)]
    while stack:
        row, entered = stack.pop()
        below = children.get(row, [])
        if not below:
            place[row], leaves = float(leaves), leaves + 1
        elif entered:
            place[row] = (place[below[0]] + place[below[-1]]) / 2
        else:
            stack += [(row, True), *((child, False) for child in reversed(below))]
    return place


def _edges(tree: SearchTree, rows: Sequence[int], height: Mapping[int, float], **line: Any) -> go.Scatter:
    x: list[float | None] = []
    y: list[float | None] = []
    for row in rows:
        step, parent = int(tree.step[row]), int(tree.parent[row])
        x += [step, step + 1, None]
        y += [height[parent], height[row], None]
    return go.Scatter(x=x, y=y, mode="lines", hoverinfo="skip", showlegend=False, line=line)


def _hover(tree: SearchTree, row: int, name: str) -> str:
    node = tree[row]
    missed = f"<br>missed by {node.missed:.3f}" if node.fate == FATES[PRUNED] else ""
    numbers = f"log p {node.logp:.3f}, total {node.total:.3f}<br>rank {node.rank + 1} of step {node.step + 1}"
    return f"{isolated(name)}<br>{numbers}, {node.fate}{missed}"


def _dots(
    tree: SearchTree, rows: Sequence[int], height: Mapping[int, float], names: Mapping[int, str], **look: Any
) -> go.Scatter:
    tokens = [names[int(tree.token[row])] for row in rows]
    return go.Scatter(
        x=[int(tree.step[row]) + 1 for row in rows],
        y=[height[row] for row in rows],
        text=tokens,
        textposition="top center",
        customdata=list(rows),
        hovertext=[_hover(tree, row, name) for row, name in zip(rows, tokens)],
        hovertemplate="%{hovertext}<extra></extra>",
        **look,
    )


def _start(height: float) -> go.Scatter:
    marker = {"color": INK, "symbol": "square", "size": 9}
    return go.Scatter(x=[0], y=[height], mode="markers", marker=marker, showlegend=False, hovertemplate="start<extra></extra>")


def tree(tree: SearchTree, piece: Callable[[int], str], best: int = -1, most: int = 400) -> go.Figure:
    """The search from left to right, one column a step; the path to row `best` stands out.

    Past `most` candidates, those that lead nowhere are folded away and the title says how many.
    """
    rows = shown_rows(tree, best, most).tolist()
    height = heights(tree, rows)
    path = tree.path(best) if best >= 0 else []
    names = {int(token): label(piece(int(token))) for token in np.unique(tree.token[rows])}
    others = [row for row in rows if row not in set(path)]
    drawn = [
        _edges(tree, others, height, color=MUTED, width=1),
        _edges(tree, path, height, color=ACCENT, width=3),
        _start(height[-1]),
    ]
    mode = "markers+text" if len(rows) <= MOST_NAMED else "markers"
    for fate, symbol, colour in FATE_LOOKS:
        marker = {"symbol": symbol, "color": colour, "size": 9, "line": {"color": colour, "width": 1.5}}
        chosen = [row for row in rows if tree.fate[row] == fate]
        drawn.append(_dots(tree, chosen, height, names, name=FATES[fate], mode=mode, marker=marker))
    folded = len(tree) - len(rows)
    steps = [str(step + 1) for step in range(int(tree.step.max(initial=-1)) + 1)]
    return figure(
        *drawn,
        title={"text": f"Search tree ({folded:,} candidates folded away)" if folded else "Search tree"},
        height=int(min(2400, max(280, 140 + ROW * (max(height.values()) + 1)))),
        xaxis=places(steps, title={"text": "step"}, range=[-0.4, len(steps) + 0.6]),
        yaxis={"visible": False, "autorange": "reversed"},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1.0, "xanchor": "right"},
    )
