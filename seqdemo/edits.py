"""What-ifs as values. An edit names a change to one decoding; an empty tuple of edits changes nothing, bit for bit.

Positions count target tokens from 0 (the first token after <bos>); source positions count encoder states from 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from seqdemo.config import CELL_GATES, EOS, ModelConfig, SearchOptions, from_json
from seqdemo.errors import InputError

BLENDS = ("uniform", "last", "nothing")
PARTS = ("encoder", "decoder")
DIRECTIONS = ("forward", "backward")
MOST_EDITS = 50


def plain(value: Any) -> Any:
    """Numbers of NumPy, such as those of a Trace, as Python's own; arrays as tuples."""
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    return tuple(map(plain, value)) if isinstance(value, tuple) else value.item() if isinstance(value, np.generic) else value


class Plain:
    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, plain(value))


@dataclass(frozen=True)
class Force(Plain):
    """The target tokens from `position` on must be `tokens` (a word of several pieces is one edit)."""

    position: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Ban(Plain):
    """The target tokens from `position` on must not be exactly `tokens`."""

    position: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class AttentionRow(Plain):
    """At target `position` attention is this row, over the source; it is normalised to sum to 1."""

    position: int
    weights: tuple[float, ...]


@dataclass(frozen=True)
class AttentionBlend(Plain):
    """At every step (or only at `positions`) attention moves by `factor` towards 'uniform', 'last' or 'nothing'.

    'nothing' leaves the row and scales the context vector by 1 - factor.
    """

    factor: float
    towards: str = "uniform"
    positions: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ClampGate(Plain):
    """Gate `gate` of layer `layer` is held at `value` for the given units and steps (None: all of them).

    `value` is a number, 'mean' (each unit's mean over the untouched greedy output), or one number for each unit of the layer.
    """

    part: str  # encoder | decoder
    gate: str
    value: float | str | tuple[float, ...]
    layer: int = 0
    direction: str = "forward"  # encoder only
    units: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None


Edit = Force | Ban | AttentionRow | AttentionBlend | ClampGate
EDITS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Force, Ban, AttentionRow, AttentionBlend, ClampGate)}


def edit_to_json(edit: Edit) -> dict[str, Any]:
    return {"kind": type(edit).__name__, **asdict(edit)}


def edit_from_json(value: Any) -> Edit:
    """The edit `edit_to_json` was given; anybody may post anything here."""
    kind = EDITS.get(str(value.get("kind"))) if isinstance(value, dict) else None
    if kind is None:
        raise InputError(f"An edit is one of {', '.join(EDITS)}.")
    plain = {name: tuple(item) if isinstance(item, list) else item for name, item in value.items() if name != "kind"}
    edit: Edit = from_json(kind, plain)
    return edit


def check_edits(edits: tuple[Edit, ...], config: ModelConfig, source_length: int, limit: int) -> None:
    """Every edit fits the model, the source (in encoder states) and the longest output; otherwise a sentence says why not."""
    if not isinstance(edits, (tuple, list)) or not all(isinstance(edit, tuple(EDITS.values())) for edit in edits):
        raise InputError(f"Edits are a tuple, and each is one of {', '.join(EDITS)}.")
    if len(edits) > MOST_EDITS:
        raise InputError(f"At most {MOST_EDITS} edits at once.")
    for edit in edits:
        if isinstance(edit, (Force, Ban)):
            check_tokens(edit, config, limit)
        elif isinstance(edit, ClampGate):
            check_clamp(edit, config, source_length, limit)
        elif isinstance(edit, AttentionRow):
            check_row(edit, config, source_length, limit)
        else:
            check_blend(edit, config, limit)
    check_agreement([edit for edit in edits if isinstance(edit, (Force, Ban))])


def whole(value: Any, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e6


def check_tokens(edit: Force | Ban, config: ModelConfig, limit: int) -> None:
    tokens = edit.tokens
    if not isinstance(tokens, tuple) or not tokens or not all(whole(token, config.target_vocabulary) for token in tokens):
        raise InputError(f"A forced or banned word is one or more piece numbers below {config.target_vocabulary}.")
    check_place(edit.position, limit)
    check_place(edit.position + len(tokens) - 1, limit)


def check_place(position: Any, limit: int) -> None:
    if not whole(position, limit):
        raise InputError(f"Position {position} is outside this output, which has room for {limit} pieces, counted from 0.")


def forced_pieces(edits: Iterable[Edit]) -> list[tuple[int, int]]:
    """Every forced piece: its position, and which it is."""
    return [place for edit in edits if isinstance(edit, Force) for place in enumerate(edit.tokens, edit.position)]


def check_agreement(edits: list[Force | Ban]) -> None:
    forced: dict[int, int] = {}
    for position, token in forced_pieces(edits):
        if forced.setdefault(position, token) != token:
            raise InputError(f"Two different pieces are forced at position {position}; take one of the edits back.")
    if EOS in forced.values() and max(forced) > min(position for position, token in forced.items() if token == EOS):
        raise InputError("An edit forces the output to end before the place of another; take one of them back.")
    for edit in edits:
        if isinstance(edit, Ban) and all(forced.get(edit.position + k) == token for k, token in enumerate(edit.tokens)):
            raise InputError(f"What stands at position {edit.position} is both forced and banned; take one of the edits back.")


def check_attention(config: ModelConfig) -> None:
    if not config.has_attention:
        raise InputError("This model has no attention to edit; choose a checkpoint with attention.")


def check_row(edit: AttentionRow, config: ModelConfig, source_length: int, limit: int) -> None:
    check_attention(config)
    check_place(edit.position, limit)
    row = edit.weights
    if not isinstance(row, tuple) or len(row) != source_length:
        raise InputError(f"An attention row for this source has {source_length} weights, one for each of its positions.")
    if not all(number(weight) and weight >= 0 for weight in row) or sum(row) <= 0:
        raise InputError("The weights of an attention row are numbers from 0 up, and at least one is above 0.")


def check_positions(positions: tuple[int, ...] | None, limit: int) -> None:
    if positions is None:
        return
    if not isinstance(positions, tuple):
        raise InputError("Positions are a tuple of whole numbers, counted from 0.")
    for position in positions:
        check_place(position, limit)


def check_source_positions(positions: tuple[int, ...] | None, length: int) -> None:
    if positions is not None and not (isinstance(positions, tuple) and all(whole(position, length) for position in positions)):
        raise InputError(f"Positions of this source are whole numbers from 0 to {length - 1}.")


def check_blend(edit: AttentionBlend, config: ModelConfig, limit: int) -> None:
    check_attention(config)
    check_positions(edit.positions, limit)
    if edit.towards not in BLENDS:
        raise InputError(f"Attention can be blended towards {', '.join(BLENDS)}, not {edit.towards!r}.")
    if not number(edit.factor) or not 0 <= edit.factor <= 1:
        raise InputError(f"The blend factor is a number from 0 to 1, not {edit.factor!r}.")


def check_clamp(edit: ClampGate, config: ModelConfig, source_length: int, limit: int) -> None:
    gates = CELL_GATES[config.cell]
    if edit.gate not in gates:
        raise InputError(f"The {config.cell} cell has no {edit.gate!r} gate; it has {', '.join(gates)}.")
    if edit.part not in PARTS or (edit.part == "encoder" and config.encoder != "text"):
        raise InputError(f"This model has no recurrent part {edit.part!r}.")
    layers, units = (
        (config.encoder_layers, config.encoder_hidden)
        if edit.part == "encoder"
        else (config.decoder_layers, config.decoder_hidden)
    )
    if not whole(edit.layer, layers):
        raise InputError(f"The {edit.part} has {layers} layer{'s' * (layers > 1)}, counted from 0.")
    if edit.direction not in DIRECTIONS[: 1 + (edit.part == "encoder" and config.bidirectional)]:
        raise InputError(f"This {edit.part} does not read in the direction {edit.direction!r}.")
    if edit.units is not None and not (isinstance(edit.units, tuple) and all(whole(unit, units) for unit in edit.units)):
        raise InputError(f"Units of this layer are whole numbers from 0 to {units - 1}.")
    if edit.part == "encoder":
        check_source_positions(edit.positions, source_length)
    else:
        check_positions(edit.positions, limit)
    check_value(edit.value, units)


def check_value(value: Any, units: int) -> None:
    if isinstance(value, tuple):
        if len(value) != units or not all(map(number, value)):
            raise InputError(f"A list of values holds one number for each of the layer's {units} units.")
    elif value != "mean" and not number(value):
        raise InputError(f"A gate is held at a number or at 'mean', not {value!r}.")


def check_options(edits: tuple[Edit, ...], options: SearchOptions, given: int, limit: int) -> None:
    """No edit contradicts an option of the search, for an output of at most `limit` pieces after the `given` ones."""
    forced = dict(forced_pieces(edits))
    for position, token in forced.items():
        if token == EOS and position - given < options.min_length:
            raise InputError(
                f"The output is forced to end at position {position}, before its minimum length of {options.min_length}; "
                "lower that, or take the edit back."
            )
    if options.at_limit == "force":
        check_last_place([edit for edit in edits if isinstance(edit, Ban)], forced, given + limit - 1)
    if options.no_repeat:
        check_repeats(forced, options.no_repeat)


def check_last_place(bans: list[Ban], forced: dict[int, int], last: int) -> None:
    """Where the options force the end there, no edit says otherwise."""
    for ban in bans:
        said = all(forced.get(position) == token for position, token in enumerate(ban.tokens[:-1], ban.position))
        if ban.tokens[-1] == EOS and ban.position + len(ban.tokens) - 1 == last and said:
            raise InputError(f"At the limit, position {last}, the output must end, and an edit bans that; take one of them back.")
    if forced.get(last, EOS) != EOS:
        raise InputError(f"At the limit, position {last}, the output must end; force another piece earlier, or raise the limit.")


def check_repeats(forced: dict[int, int], n: int) -> None:
    seen = set()
    for first in forced:
        gram = tuple(forced.get(position) for position in range(first, first + n))
        if gram in seen and None not in gram:
            raise InputError(f"What is forced at position {first} repeats, and repeats of {n} are off; take one of the two back.")
        seen.add(gram)
