"""Numbers as a person writes them in a sentence."""

from __future__ import annotations

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
