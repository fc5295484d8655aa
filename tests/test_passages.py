"""How a language model reads its one long text in training."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.config import BOS, EOS
from training.data import batches
from training.data.batches import openings, readings

NEWLINE = 3
TEXT = np.array([5, 6, 7, NEWLINE, NEWLINE, 8, 9, 10, NEWLINE, NEWLINE, NEWLINE, 11, 12, NEWLINE, EOS], dtype=np.int32)


def test_paragraphs_open_after_blank_lines_and_at_the_start() -> None:
    assert openings(TEXT, NEWLINE).tolist() == [0, 5, 11]


def test_a_passage_starts_with_bos_at_a_paragraph_and_goes_on_from_window_to_window() -> None:
    (first_in, first_out), (then_in, then_out), *_ = readings(TEXT, openings(TEXT, NEWLINE), streams=2, window=3, shift=5)
    assert first_in.tolist() == [[BOS, 8, 9], [BOS, 5, 6]]  # the second passage goes round to the start of the text
    assert first_out.tolist() == [[8, 9, 10], [5, 6, 7]]
    assert then_in[:, 0].tolist() == first_out[:, -1].tolist()
    assert then_out[0].tolist() == [NEWLINE, NEWLINE, NEWLINE]


@given(shift=st.integers(0, 499), streams=st.integers(1, 5), window=st.integers(1, 40))
def test_every_output_follows_its_input_in_the_text(shift: int, streams: int, window: int) -> None:
    text = np.random.default_rng(0).integers(NEWLINE, 9, 500)
    starts = openings(text, NEWLINE)
    read = 0
    for inputs, outputs in readings(text, starts, streams, window, shift):
        read += outputs.numel()
        assert (inputs[:, 1:] == outputs[:, :-1]).all()
        assert ((inputs == BOS).any(1) == (inputs[:, 0] == BOS)).all()
    assert 500 - streams < read <= 500


def test_long_texts_begin_anew_every_few_thousand_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PASSAGE", 20)
    text = np.random.default_rng(1).integers(NEWLINE, 9, 400)
    begun = [bool((inputs[:, 0] == BOS).all()) for inputs, _ in readings(text, openings(text, NEWLINE), 4, 10, 0)]
    assert begun == [True, False] * 5
