"""Which unit of a character language model knows where it is: inside a quotation, a comment, parentheses, how deep indented.

A label says, after each character, what is true of the text read so far (NaN where that cannot be known). The unit is found
by search over all units on dev text, and its figure is measured on test text that the search has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from training.metrics import auc, correlation

Labels = dict[str, np.ndarray]  # name -> float32, one value a character
DEPTHS = ("indentation",)  # measured by correlation; the others are true or false and measured by AUC


def labels_of(text: str) -> Labels:
    """Labels of C code where comments abound, of prose elsewhere."""
    return code_labels(text) if text.count("/*") * 5_000 > len(text) else prose_labels(text)


def prose_labels(text: str) -> Labels:
    """Quotation marks and parentheses; a paragraph's end closes both, as printers do when a speech goes on."""
    quotation, parentheses = np.zeros(len(text), np.float32), np.zeros(len(text), np.float32)
    quoted, depth = False, 0
    for t, char in enumerate(text):
        if char == "\n" and text[t - 1 : t] == "\n":
            quoted, depth = False, 0
        elif char == '"':
            quoted = not quoted
        elif char in "()":
            depth = depth + 1 if char == "(" else max(0, depth - 1)
        quotation[t], parentheses[t] = quoted, depth > 0
    return {"quotation": quotation, "parentheses": parentheses}


def code_labels(text: str) -> Labels:
    """Strings, comments and parentheses of C, and how many blanks the line began with (known once they are over)."""
    found: Labels = {name: np.zeros(len(text), np.float32) for name in ("quotation", "comment", "parentheses", "indentation")}
    depth, blanks, leading = 0, 0, True
    for t, (char, place) in enumerate(zip(text, places(text))):
        if place == "code" and char in "()":
            depth = depth + 1 if char == "(" else max(0, depth - 1)
        elif char == "\n" and text[t - 1 : t] == "}":
            depth = 0  # a function's end: whatever a macro left open is closed
        if char == "\n":
            blanks, leading = 0, True
        elif leading and char == " ":
            blanks += 1
        else:
            leading = False
        found["quotation"][t] = place == "string"
        found["comment"][t] = place == "comment"
        found["parentheses"][t] = depth > 0
        found["indentation"][t] = math.nan if leading else blanks
    return found


def places(text: str) -> Iterator[str]:
    """Where one is after each character of C: code, string, character, comment or line (a // comment).

    A quote belongs to the string it opens, not to the one it closes; `/` is code until `*` follows.
    """
    place, edge, escaped = "code", -2, False  # edge: where the last comment opened or closed
    for t, char in enumerate(text):
        if escaped:
            escaped = False
        elif place in ("string", "character"):
            escaped = char == "\\"
            if char == {"string": '"', "character": "'"}[place] or char == "\n":
                place = "code"
        elif place == "comment":
            if char == "/" and text[t - 1] == "*" and t - edge > 1:
                place, edge = "code", t
        elif place == "line":
            place = "code" if char == "\n" else "line"
        elif char in "\"'":
            place = "string" if char == '"' else "character"
        elif char in "*/" and t - edge > 1 and text[t - 1 : t] == "/":
            place, edge = ("comment" if char == "*" else "line"), t
        yield place


def nothing_open(labels: Labels, place: int) -> bool:
    """Whether a reader who begins at `place` has missed nothing that still matters there."""
    return place == 0 or not any(labels_N[place - 1] > 0 for name, labels_N in labels.items() if name not in DEPTHS)


def search(states_NU: np.ndarray, labels_N: np.ndarray, measure: Callable[[np.ndarray, np.ndarray], float]) -> tuple[int, float]:
    """The unit whose value tells the label best, either way up, and by how much (negative: it falls where the label rises)."""
    known_N = ~np.isnan(labels_N)
    values = [measure(column_N[known_N], labels_N[known_N]) for column_N in states_NU.T]
    best = int(np.nanargmax(np.abs(values)))
    return best, values[best]


def separation(values_N: np.ndarray, labels_N: np.ndarray) -> float:
    """2 AUC - 1: from -1 (always below) over 0 (no use) to 1 (always above)."""
    return 2 * auc(values_N, labels_N > 0) - 1


class Choice(NamedTuple):
    """The unit that tells a label best on the text it was sought on, which way up, and how well (from 0 to 1)."""

    unit: int
    sign: int
    figure: float


def choose(states_NU: np.ndarray, labels: Labels) -> dict[str, Choice]:
    """For each label that is both true and false somewhere."""
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
    """As it is told: a separation as the AUC it came from."""
    return value if name in DEPTHS else (1 + value) / 2
