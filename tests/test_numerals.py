"""Numbers as a person writes them."""

from __future__ import annotations

import pytest

from seqdemo.numerals import signed, small
from seqdemo.text import quoted


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.256, "0.26"),
        (0.00034, "0.00034"),
        (0.0000046, "4.6·10⁻⁶"),
        (9.99e-5, "1.0·10⁻⁴"),
        (3e-12, "3.0·10⁻¹²"),
    ],
)
def test_a_small_probability_has_two_digits_and_a_power_of_ten(number: float, text: str) -> None:
    assert small(number) == text


def test_a_negative_number_has_a_minus_sign() -> None:
    assert (signed(-4.231), signed(0.5, 1)) == ("−4.231", "0.5")


def test_a_sentence_keeps_its_order_around_letters_that_run_from_right_to_left() -> None:
    assert quoted("broke") == "“broke”"
    assert quoted("\u0645\u062d") == "“\u2068\u0645\u062d\u2069”"
