"""What-ifs as values. An edit names a change to one decoding; an empty tuple of edits changes nothing, bit for bit.

Positions count target tokens from 0 (the first token after <bos>); source positions count encoder states from 0.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Force:
    """The target tokens from `position` on must be `tokens` (a word of several pieces is one edit)."""

    position: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Ban:
    """The target tokens from `position` on must not be exactly `tokens`."""

    position: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class AttentionRow:
    """At target `position` attention is this row, over the source; it is normalised to sum to 1."""

    position: int
    weights: tuple[float, ...]


@dataclass(frozen=True)
class AttentionBlend:
    """At every step (or only at `positions`) attention moves by `factor` towards 'uniform', 'last' or 'nothing'.

    'nothing' leaves the row and scales the context vector by 1 - factor.
    """

    factor: float
    towards: str = "uniform"
    positions: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ClampGate:
    """Gate `gate` of layer `layer` is held at `value` for the given units and steps (None: all of them).

    `value` is a number, 'mean' (each unit's mean over the untouched run), or one number a unit.
    """

    part: str  # encoder | decoder
    gate: str
    value: Any
    layer: int = 0
    direction: str = "forward"  # encoder only: forward | backward
    units: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None


Edit = Force | Ban | AttentionRow | AttentionBlend | ClampGate
EDITS = {kind.__name__: kind for kind in (Force, Ban, AttentionRow, AttentionBlend, ClampGate)}


def edit_to_json(edit: Edit) -> dict[str, Any]:
    return {"kind": type(edit).__name__, **asdict(edit)}
