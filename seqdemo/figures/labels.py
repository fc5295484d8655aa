"""Pieces as labels of Plotly's figures. A piece is always drawn as visible text, never as markup, a formula or control
characters.

js/signs.json lists the hidden characters and what is shown for them; the pages' drawings use it too.
"""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Iterable
from pathlib import Path

SIGNS = json.loads((Path(__file__).parent / "js" / "signs.json").read_text("utf-8"))
LONGEST = 32
DOTTED_CIRCLE = "\N{DOTTED CIRCLE}"
OPEN_BOX = "\N{OPEN BOX}"


def _visible_char(char: str) -> str:
    code = ord(char)
    if str(code) in SIGNS["pictures"]:
        return str(SIGNS["pictures"][str(code)])
    if code in SIGNS["kept"] or not any(low <= code <= high for low, high in SIGNS["hidden"]):
        return char
    return chr(0x2400 + code) if code < 32 else f"[U+{code:04X}]"  # the Unicode picture of a control, else its number


def _clings(text: str, at: int) -> bool:
    """Whether the character at `at` belongs to the one before it: a combining sign, or one after a joiner."""
    return unicodedata.category(text[at])[0] == "M" or ord(text[at]) in SIGNS["kept"] or text[at - 1] == "\u200d"


def cut(text: str) -> str:
    """Cut to at most 32 characters, without separating a letter from its signs."""
    if len(text) <= LONGEST:
        return text
    end = LONGEST - 1
    while end and _clings(text, end):
        end -= 1
    return text[:end] + "\N{HORIZONTAL ELLIPSIS}"


def visible(piece: str) -> str:
    """The piece with spaces and controls made visible, a lone combining mark on a dotted circle, cut at 32 characters."""
    if not piece:
        return "\N{EMPTY SET}"
    if piece == " ":
        return OPEN_BOX
    carrier = DOTTED_CIRCLE if unicodedata.category(piece[0]).startswith("M") else ""
    return carrier + "".join(OPEN_BOX if char == " " else _visible_char(char) for char in cut(piece))


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
