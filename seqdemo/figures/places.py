"""Labels of each place of a text: inside a quotation, a comment, parentheses, how deep indented.

A label describes the text read up to each character (NaN if unknown). The page and the measurements use the same labels to
find the unit of a language model that tracks one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

Labels = dict[str, np.ndarray]  # name -> float32, one value per character


def labels_of(text: str) -> Labels:
    """Labels of C code if the text has many comments, otherwise of prose."""
    return code_labels(text) if text.count("/*") * 5_000 > len(text) else prose_labels(text)


def prose_labels(text: str) -> Labels:
    """Quotation marks and parentheses. The end of a paragraph closes both, as in print, where a continued speech opens again."""
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
