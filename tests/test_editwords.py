"""Edits in words: what the chips of a column say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from seqdemo.config import ModelConfig
from seqdemo.edits import AttentionBlend, AttentionDraw, AttentionRow
from seqdemo.ui.answers import state_sentence

HEADS: dict[str, Any] = {"decoder": "transformer", "embedding": 8, "attention_heads": 2, "feed_forward": 8, "features": 0}
PICTURE: dict[str, Any] = {"encoder": "image", "cnn": "efficientnet-lite0"}


def says(edit: Any, **config: Any) -> str:
    return state_sentence(edit, SimpleNamespace(model=SimpleNamespace(config=ModelConfig(30, 30, **config))))


@pytest.mark.parametrize(
    "named, heads",
    [
        ({}, "of all heads "),
        ({"layer": 1, "head": 0}, "of head 1 in layer 2 "),
        ({"layer": 0}, "of all heads in layer 1 "),
        ({"head": 1}, "of head 2 in every layer "),
    ],
)
def test_an_attention_edit_says_which_of_several_heads_it_changes(named: dict[str, Any], heads: str) -> None:
    assert says(AttentionRow(2, (1.0, 0.0), **named), **HEADS) == f"attention {heads}set by hand while piece 3 is written"
    assert says(AttentionBlend(0.5, **named), **HEADS) == f"attention {heads}50 % towards uniform"


def test_of_a_single_head_there_is_nothing_to_tell() -> None:
    assert says(AttentionRow(0, (1.0,))) == "attention set by hand while piece 1 is written"


def test_hard_attention_looks_at_the_heaviest_place_of_a_row() -> None:
    assert says(AttentionRow(2, (0.2, 0.5, 0.3)), hard=True) == "looks at place 2 while piece 3 is written"
    weights = tuple(float(cell == 5) for cell in range(9))
    assert says(AttentionRow(0, weights), hard=True, **PICTURE) == "looks at the cell in row 2, column 3 while piece 1 is written"


def test_a_blend_of_hard_attention_towards_uniform_says_what_comes_of_it() -> None:
    assert says(AttentionBlend(0.75), hard=True) == "attention 75 % towards uniform: the heaviest place stays the heaviest"
    assert says(AttentionBlend(1.0), hard=True).endswith("100 % towards uniform: all places tie, so the first is looked at")
    assert says(AttentionBlend(1.0, "nothing"), hard=True) == "attention 100 % towards nothing"


def test_the_last_state_of_a_photograph_is_its_bottom_right_cell() -> None:
    assert says(AttentionBlend(0.5, "last"), **PICTURE) == "attention 50 % towards the bottom right cell"


def test_drawn_places_are_told_with_their_seed() -> None:
    assert says(AttentionDraw(7), hard=True) == "looks at places drawn with seed 7"
    assert says(AttentionDraw(7), hard=True, **PICTURE) == "looks at cells drawn with seed 7"
