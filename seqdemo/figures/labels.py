"""Pieces as labels. Whatever a piece holds is drawn as text: never as markup, a formula, a control or nothing at all."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable

LONGEST = 32
JOINERS = "\u200c\u200d"  # they shape Indic and Arabic letters, so they stay
DOTTED_CIRCLE = "\N{DOTTED CIRCLE}"
OPEN_BOX = "\N{OPEN BOX}"


def _visible_char(char: str) -> str:
    category = unicodedata.category(char)
    if char == " ":
        return OPEN_BOX
    if ord(char) < 32:
        return chr(0x2400 + ord(char))  # the Unicode picture of that control
    if category == "Cs":
        return "\N{REPLACEMENT CHARACTER}"
    if category.startswith(("C", "Z")) and category != "Co" and char not in JOINERS:
        return f"U+{ord(char):04X}"
    return char


def visible(piece: str) -> str:
    """The piece with spaces and controls made visible, a lone combining mark on a dotted circle, cut at 32 characters."""
    if not piece:
        return "\N{EMPTY SET}"
    shown = piece if len(piece) <= LONGEST else piece[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
    carrier = DOTTED_CIRCLE if unicodedata.category(shown[0]).startswith("M") else ""
    return carrier + "".join(map(_visible_char, shown))


def escaped(text: str) -> str:
    """Text that Plotly draws as it stands: it reads HTML tags and entities, and between two dollars a formula."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def label(piece: str) -> str:
    return escaped(visible(piece))


def labels(pieces: Iterable[str]) -> list[str]:
    return [label(piece) for piece in pieces]


def isolated(text: str) -> str:
    """A label that keeps its own direction inside a sentence of another."""
    return f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
