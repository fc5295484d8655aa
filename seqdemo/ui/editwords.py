"""Edits in words, as the pages tell them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from seqdemo.config import EOS, ModelConfig, switches
from seqdemo.edits import AttentionBlend, AttentionDraw, AttentionRow, Ban, ClampGate, Edit, Force, Require, edit_to_json
from seqdemo.text import quoted

BLENDS = {"uniform": "towards uniform", "last": "towards the last state", "nothing": "towards nothing"}
CORNER = "towards the bottom right cell"  # the last state of a photograph


def told_edit(edit: Edit, checkpoint: Any, given: int = 0) -> dict[str, Any]:
    """`checkpoint` is the model that was asked; words count from the first piece after the `given` ones."""
    text = checkpoint.target_text
    if isinstance(edit, (Force, Ban)):
        edit = replace(edit, position=edit.position - given)
        pieces = [text.piece(token) for token in edit.tokens]
        return {**edit_to_json(edit), "pieces": pieces, "says": words_sentence(edit, text)}
    if isinstance(edit, Require):
        word = text.decode(edit.spellings[0])
        return {**edit_to_json(edit), "word": word, "says": f"must say {quoted(word)} somewhere"}
    return {**edit_to_json(edit), "says": state_sentence(edit, checkpoint)}


def words_sentence(edit: Force | Ban, text: Any) -> str:
    """What is forced or forbidden, and where."""
    end = " ⟨end⟩" if EOS in edit.tokens else ""
    words = quoted(f"{text.decode(edit.tokens)}{end}") if len(edit.tokens) > 1 or not end else "the end"
    if edit.position:
        return f"{'writes' if isinstance(edit, Force) else 'never writes'} {words} from piece {edit.position + 1} on"
    return f"{'starts' if isinstance(edit, Force) else 'never starts'} with {words}"


def state_sentence(edit: Edit, checkpoint: Any) -> str:
    """An edit inside the network, in words."""
    config = checkpoint.model.config
    if isinstance(edit, AttentionBlend):
        return blend_sentence(edit, config)
    if isinstance(edit, AttentionRow) and config.hard:
        return f"looks at {place_of(edit, config)} while piece {edit.position + 1} is written"
    if isinstance(edit, AttentionRow):
        return f"attention{of_heads(edit, config)} set by hand while piece {edit.position + 1} is written"
    if isinstance(edit, AttentionDraw):
        return f"looks at {'cells' if config.encoder == 'image' else 'places'} drawn with seed {edit.seed}"
    if isinstance(edit, ClampGate):
        return clamp_sentence(edit, config)
    return type(edit).__name__.lower()


def blend_sentence(edit: AttentionBlend, config: ModelConfig) -> str:
    """How far attention is dimmed, and towards what. Of hard attention, which looks at the heaviest place, also what a blend
    towards uniform comes to."""
    towards = CORNER if edit.towards == "last" and config.encoder == "image" else BLENDS[edit.towards]
    comes_to = ""
    if config.hard and edit.towards == "uniform":
        comes_to = (
            ": all places tie, so the first is looked at" if edit.factor == 1 else ": the heaviest place stays the heaviest"
        )
    return f"attention{of_heads(edit, config)} {round(edit.factor * 100)} % {towards}{comes_to}"


def place_of(edit: AttentionRow, config: ModelConfig) -> str:
    """The one place that hard attention looks at: the heaviest, and the first of several."""
    at = edit.weights.index(max(edit.weights))
    if config.encoder != "image":
        return f"place {at + 1}"
    row, column = divmod(at, math.isqrt(len(edit.weights)))
    return f"the cell in row {row + 1}, column {column + 1}"


def of_heads(edit: AttentionBlend | AttentionRow, config: ModelConfig) -> str:
    """Which heads of several an attention edit changes."""
    if config.attention_layers * config.heads == 1:
        return ""
    if edit.layer is None and edit.head is None:
        return " of all heads"
    heads = "all heads" if edit.head is None else f"head {edit.head + 1}"
    return f" of {heads} in {'every layer' if edit.layer is None else f'layer {edit.layer + 1}'}"


def clamp_sentence(edit: ClampGate, config: ModelConfig) -> str:
    """'forget gate held at 0, all 400 units'"""
    units = config.encoder_hidden if edit.part == "encoder" else config.decoder_hidden
    layers = config.encoder_layers if edit.part == "encoder" else config.decoder_layers
    value = "its mean" if edit.value == "mean" else "given values"
    if isinstance(edit.value, (int, float)):
        value = f"{edit.value:g}".replace("-", "−")
    kind = f"{edit.gate} gate" if edit.gate in switches() else {"candidate": "candidate"}.get(edit.gate, f"{edit.gate} state")
    where = [
        *([f"layer {edit.layer + 1}"] if layers > 1 else []),
        *(["encoder"] if edit.part == "encoder" else []),
        *([edit.direction] if edit.part == "encoder" and config.bidirectional else []),
    ]
    named = f"{kind} ({', '.join(where)})" if where else kind
    return f"{named} held at {value}, {of_units(edit.units, units)}{at_steps(edit.positions)}"


def of_units(chosen: Sequence[int] | None, units: int) -> str:
    if chosen is None or len(set(chosen)) == units:
        return f"all {units} units"
    return f"unit {chosen[0]} of {units}" if len(chosen) == 1 else f"{len(set(chosen))} of {units} units"


def at_steps(positions: Sequence[int] | None) -> str:
    if positions is None:
        return ""
    steps = sorted(set(positions))
    if len(steps) == 1:
        return f", at step {steps[0] + 1}"
    together = steps and steps == list(range(steps[0], steps[-1] + 1))
    return f", at steps {steps[0] + 1} to {steps[-1] + 1}" if together else f", at {len(steps)} steps"
