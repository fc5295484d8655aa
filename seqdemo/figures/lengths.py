"""Quality by the length of the input: the points of a measured table to draw, and their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

FEWEST = 30  # inputs; a score over fewer says little
SURE = 1.96  # standard deviations on either side: 95 %


def bucket_name(row: Mapping[str, Any]) -> str:
    return f"{row['from']}+" if row["to"] is None else f"{row['from']}\N{EN DASH}{row['to']}"


def wilson(percent: float, inputs: int) -> tuple[float, float]:
    """The 95 % interval of a share of right answers, in per cent: (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)."""
    p, z = percent / 100, SURE
    middle = p + z * z / (2 * inputs)
    half = z * math.sqrt(p * (1 - p) / inputs + z * z / (4 * inputs * inputs))
    whole = 1 + z * z / inputs
    return 100 * (middle - half) / whole, 100 * (middle + half) / whole


def length_points(rows: Sequence[Mapping[str, Any]], column: str) -> list[dict[str, Any]]:
    """One point per bucket of at least 30 inputs, with its interval: the measured one, or that of a share of right answers."""
    points = []
    for row in rows:
        inputs = int(row.get("inputs", 0))
        if inputs < FEWEST or column not in row:
            continue
        point = {"at": row["from"], "label": bucket_name(row), "value": row[column], "count": inputs}
        if row.get("interval"):
            point["low"], point["high"] = row["interval"]
        elif column.startswith("top"):
            point["low"], point["high"] = wilson(row[column], inputs)
        points.append(point)
    return points
