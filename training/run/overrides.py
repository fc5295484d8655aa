"""Changes to a recipe from the command line: `--set rate=0.001 --set decoder_hidden=128`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from math import isfinite
from typing import Any

from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from training.recipes import Recipe

OF_RECIPE = {field.name: field for field in fields(Recipe) if field.name not in ("name", "task", "model", "weigh")}
TOLD = ("minutes", "licence", "about")  # fields that describe a recipe and change no weight
NOT_SET = ("encoder", "source_vocabulary", "target_vocabulary")  # determined by the task and the data
OF_MODEL = {field.name: field for field in fields(ModelConfig) if field.name not in NOT_SET}
YES, NO = ("true", "yes", "1"), ("false", "no", "0")


def changed(recipe: Recipe, settings: Iterable[str]) -> Recipe:
    """The recipe with each `name=value` applied to its own fields, or to those of its model."""
    own: dict[str, Any] = {}
    model = dict(recipe.model)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in {**OF_RECIPE, **OF_MODEL}:
            known = ", ".join([*OF_RECIPE, *OF_MODEL])
            raise InputError(f"--set takes name=value, not {setting!r}. The names are {known}.")
        if name in OF_RECIPE:
            own[name] = parsed(name, text, getattr(recipe, name))
        else:
            model[name] = parsed(name, text, recipe.model.get(name, OF_MODEL[name].default))
    return replace(recipe, **own, model=model)


def parsed(name: str, text: str, before: Any) -> Any:
    """The text converted to the type of the old value."""
    try:
        if isinstance(before, bool):
            return {**dict.fromkeys(YES, True), **dict.fromkeys(NO, False)}[text.lower()]
        if isinstance(before, tuple):
            return tuple(part for part in text.split(",") if part)
        if isinstance(before, (int, float)):
            return number(name, text)
    except (KeyError, ValueError):
        kind = "true or false" if isinstance(before, bool) else "a whole number" if is_whole(name) else "a number"
        raise InputError(f"{name} must be {kind}, not {text!r}.") from None
    return text


def number(name: str, text: str) -> float:
    value = int(text) if is_whole(name) else float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def is_whole(name: str) -> bool:
    return {**OF_RECIPE, **OF_MODEL}[name].type == "int"


def written(value: Any) -> str:
    """A value as --set accepts it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return ",".join(value) if isinstance(value, tuple) else str(value)


def listed(recipes: Iterable[Recipe]) -> str:
    """The table of recipes."""
    rows = [("recipe", "task", "data", "minutes", "what it is")]
    rows += [(one.name, one.task, one.data, str(one.minutes), one.about) for one in recipes]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[4]]) for row in rows)


def described(recipe: Recipe) -> str:
    """One recipe, field by field, with its model's."""
    told = {**asdict(recipe), "model": ""}
    told = {name: value for name, value in told.items() if value not in ("", 0, 0.0, (), {})}
    lines = [f"{name:<18}{', '.join(value) if isinstance(value, tuple) else value}" for name, value in told.items()]
    return "\n".join([*lines, "model", *(f"  {name:<16}{value}" for name, value in recipe.model.items())])
