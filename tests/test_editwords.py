"""Edits in words: what the chips of a column say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from seqdemo.config import ModelConfig
from seqdemo.edits import AttentionBlend, AttentionRow
from seqdemo.ui.editwords import state_sentence

HEADS: dict[str, Any] = {"decoder": "transformer", "embedding": 8, "attention_heads": 2, "feed_forward": 8, "features": 0}


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
def test_an_attention_edit_says_which_of_several_heads_it_changes(named: dict[str, int], heads: str) -> None:
    assert says(AttentionRow(2, (1.0, 0.0), **named), **HEADS) == f"attention {heads}set by hand while piece 3 is written"
    assert says(AttentionBlend(0.5, **named), **HEADS) == f"attention {heads}50 % towards uniform"


def test_of_a_single_head_there_is_nothing_to_tell() -> None:
    assert says(AttentionRow(0, (1.0,))) == "attention set by hand while piece 1 is written"
