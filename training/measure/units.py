"""Which unit of a character language model tracks its place: inside a quotation, a comment, parentheses, how deep indented.

The labels are those of seqdemo.figures.places. The unit is found by a search over all units on dev text; its figure is measured
on test text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from seqdemo.figures.places import Labels
from training.measure.metrics import auc, correlation

DEPTHS = ("indentation",)  # measured by correlation; the others are true or false and measured by AUC


def nothing_open(labels: Labels, place: int) -> bool:
    """Whether nothing is open at `place`, so that one can begin to read there."""
    return place == 0 or not any(labels_N[place - 1] > 0 for name, labels_N in labels.items() if name not in DEPTHS)


def search(states_NU: np.ndarray, labels_N: np.ndarray, measure: Callable[[np.ndarray, np.ndarray], float]) -> tuple[int, float]:
    """The unit whose value separates the label best, and its separation (negative: it falls where the label rises)."""
    known_N = ~np.isnan(labels_N)
    values = [measure(column_N[known_N], labels_N[known_N]) for column_N in states_NU.T]
    best = int(np.nanargmax(np.abs(values)))
    return best, values[best]


def separation(values_N: np.ndarray, labels_N: np.ndarray) -> float:
    """2 AUC - 1: from -1 (always below) over 0 (no use) to 1 (always above)."""
    return 2 * auc(values_N, labels_N > 0) - 1


class Choice(NamedTuple):
    """The unit that separates a label best on the text of the search, its sign, and how well (from 0 to 1)."""

    unit: int
    sign: int
    figure: float


def choose(states_NU: np.ndarray, labels: Labels) -> dict[str, Choice]:
    """The choice for each label that is both true and false somewhere."""
    chosen = {}
    for name, labels_N in labels.items():
        if name in DEPTHS or 0 < np.nansum(labels_N) < len(labels_N):
            unit, value = search(states_NU, labels_N, measure_of(name))
            chosen[name] = Choice(unit, 1 if value > 0 else -1, scaled(name, abs(value)))
    return chosen


def judge(name: str, choice: Choice, values_N: np.ndarray, labels_N: np.ndarray) -> dict[str, Any]:
    """The chosen unit's row in the metrics, `values_N` being what it said on text that the choice has not seen."""
    known_N = ~np.isnan(labels_N)
    on_test = scaled(name, choice.sign * measure_of(name)(values_N[known_N], labels_N[known_N]))
    figure = "correlation" if name in DEPTHS else "auc"
    return {"unit": choice.unit, "sign": choice.sign, "measure": figure, "dev": choice.figure, "test": on_test}


def measure_of(name: str) -> Callable[[np.ndarray, np.ndarray], float]:
    return correlation if name in DEPTHS else separation


def scaled(name: str, value: float) -> float:
    """A separation as the AUC that it came from."""
    return value if name in DEPTHS else (1 + value) / 2
