"""Numbers and quoted words as a person writes them in a sentence."""

from __future__ import annotations

import re

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def signed(number: float, digits: int = 3) -> str:
    """A number with a true minus sign."""
    return f"{number:.{digits}f}".replace("-", "−")


def small(number: float) -> str:
    """A probability in two digits: 0.25, 0.0034, 4.6·10⁻⁶."""
    if number >= 1e-4 or number <= 0:
        return f"{number:.2g}"
    digits, _, power = f"{number:.1e}".partition("e")
    return f"{digits}·10{str(int(power)).translate(RAISED)}"


def quoted(text: str) -> str:
    """A text in quotation marks, for a sentence: letters that run from right to left leave the order of what stands around them
    alone."""
    return f"“\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}”" if RIGHT_TO_LEFT.search(text) else f"“{text}”"
