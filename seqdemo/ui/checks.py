"""Every check on what a browser or a program sends, in one place. Nothing here trusts a component's limits."""

from __future__ import annotations

import math
import re
import unicodedata
from pathlib import Path
from typing import Any

from seqdemo.config import MAX_STEPS, MAX_VOCABULARY, SearchOptions, from_json
from seqdemo.edits import EDITS, AttentionBlend, AttentionRow, Ban, ClampGate, Edit, Force
from seqdemo.errors import InputError
from seqdemo.ui.fields import FIELDS, relevant

MOST_CHARACTERS = 1_000
MOST_TEXT = 3_000  # for a language model: what two visitors' columns read within a second or so
MOST_EDITS = 20
MOST_PHOTO_BYTES = 5 * 1024 * 1024
TASKS = ("translate", "transliterate", "caption", "complete")


def text_of(value: Any, most: int = MOST_CHARACTERS) -> str:
    """A person's text: NULs and lone surrogates become U+FFFD, the form is NFC, the length is bounded."""
    if not isinstance(value, str):
        raise InputError("The text must be a string.")
    if len(value) > most:
        raise InputError(f"That is {len(value):,} characters; this page takes up to {most:,}. Shorten it.")
    clean = "".join("\ufffd" if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in value)
    return unicodedata.normalize("NFC", clean)


def most_characters(task: str) -> int:
    return MOST_TEXT if task == "complete" else MOST_CHARACTERS


def object_of(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{what} must be a JSON object.")
    return value


def name_of(value: Any, names: list[str], what: str) -> str:
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{what} {str(value)[:80]!r} is not loaded here; choose one of {', '.join(names) or 'none'}.")
    return value


VISITOR_MODEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}@[0-9a-f]{40}")
MOST_MODELS = 8


def visitor_models(value: Any) -> list[str]:
    """The models a visitor has loaded, as user/name@commit."""
    items = _listed(value or [], "The loaded models")
    return [item for item in items[:MOST_MODELS] if isinstance(item, str) and VISITOR_MODEL.fullmatch(item)]


def options_of(value: Any) -> SearchOptions:
    """The search options of a column, within the pages' own limits."""
    options = relevant(object_of(value, "The options"))
    limits = {field["name"]: field for field in FIELDS if "min" in field}
    for name, given in options.items():
        field = limits.get(name)
        if field is None:
            continue
        number = isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given)
        if not number or not field["min"] <= given <= field["max"]:
            raise InputError(f"{field['label']} must be a number from {field['min']:,} to {field['max']:,}.")
        options[name] = int(given) if field["kind"] == "int" and given == int(given) else given
    built: SearchOptions = from_json(SearchOptions, options)
    return built


def tokens_of(value: Any, most: int = MAX_STEPS) -> tuple[int, ...]:
    """Token ids of a path; an empty path is one too."""
    whole = isinstance(value, (list, tuple)) and all(isinstance(token, int) and not isinstance(token, bool) for token in value)
    if not whole or len(value) > most or any(not 0 <= token < MAX_VOCABULARY for token in value):
        raise InputError("A path must be a list of token numbers.")
    return tuple(value)


def _position(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MAX_STEPS:
        raise InputError(f"A position must be a whole number from 0 to {MAX_STEPS - 1:,}.")
    return value


def _share(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InputError(f"{what} must be a number from 0 to 1.")
    return float(value)


def _whole_numbers(value: Any, what: str) -> tuple[int, ...] | None:
    return None if value is None else tuple(_position(item) for item in _listed(value, what))


def _listed(value: Any, what: str) -> list[Any]:
    if not isinstance(value, (list, tuple)) or len(value) > MAX_STEPS:
        raise InputError(f"{what} must be a list of numbers.")
    return list(value)


def _clamp(values: dict[str, Any]) -> ClampGate:
    part, gate = values.get("part"), values.get("gate")
    if part not in ("encoder", "decoder") or not isinstance(gate, str) or len(gate) > 20:
        raise InputError("A clamped gate needs its part (encoder or decoder) and its name.")
    value = values.get("value")
    if isinstance(value, (list, tuple)):
        value = tuple(float(item) for item in _finite(value))
    elif value != "mean":
        value = _finite([value])[0]
    direction = "backward" if values.get("direction") == "backward" else "forward"
    units, positions = (_whole_numbers(values.get(name), name) for name in ("units", "positions"))
    return ClampGate(part, gate, value, _position(values.get("layer", 0)), direction, units, positions)


def _finite(values: Any) -> list[float]:
    items = _listed(values, "Values")
    if any(isinstance(item, bool) or not isinstance(item, (int, float)) or not math.isfinite(item) for item in items):
        raise InputError("Values must be finite numbers.")
    return [float(item) for item in items]


def edit_of(value: Any) -> Edit:
    values = object_of(value, "An edit")
    kind = EDITS.get(values.get("kind", ""))
    if kind in (Force, Ban):
        tokens = tokens_of(values.get("tokens"))
        if not tokens:
            raise InputError("A forced or forbidden path needs at least one token.")
        position = _position(values.get("position"))
        return Force(position, tokens) if kind is Force else Ban(position, tokens)
    if kind is AttentionBlend:
        if values.get("towards", "uniform") not in ("uniform", "last", "nothing"):
            raise InputError("Attention can be blended towards uniform, last or nothing.")
        return AttentionBlend(
            _share(values.get("factor"), "The share"),
            values.get("towards", "uniform"),
            _whole_numbers(values.get("positions"), "positions"),
        )
    if kind is AttentionRow:
        weights = _finite(values.get("weights"))
        if min(weights, default=-1.0) < 0 or sum(weights) <= 0:
            raise InputError("An attention row needs weights that are not negative and not all 0.")
        return AttentionRow(_position(values.get("position")), tuple(weights))
    if kind is ClampGate:
        return _clamp(values)
    raise InputError(f"An edit must be one of {', '.join(EDITS)}.")


def edits_of(value: Any) -> tuple[Edit, ...]:
    items = _listed(value or [], "Edits")
    if len(items) > MOST_EDITS:
        raise InputError(f"At most {MOST_EDITS} edits at once; remove some.")
    return tuple(edit_of(item) for item in items)


def upload_of(value: Any, folder: Path) -> Path:
    """A path the browser was given for its own upload: inside the upload folder, there, and not too large."""
    if not isinstance(value, str) or "\x00" in value or len(value) > 1_000:
        raise InputError("The photograph cannot be found; choose it again.")
    path = Path(value).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise InputError("The photograph is no longer on the server: uploads are deleted within the hour. Choose it again.")
    if path.stat().st_size > MOST_PHOTO_BYTES:
        raise InputError("This file is larger than 5 MB. Save it smaller and try again.")
    return path
