"""A run's best weights so far as a checkpoint: `python -m training export runs/reverse --out checkpoints/reverse`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from seqdemo.checkpoints import save, shared_folder, shipped_folder, write_manifest
from seqdemo.checkpoints.checkpoint import open_folder
from seqdemo.checkpoints.folder import CARD, CONFIG, METRICS, WEIGHTS
from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from seqdemo.network.model import Network
from training.data.public import FINGERPRINTS
from training.measure.headlines import recorded
from training.recipes import RECIPES, Recipe
from training.run.build import BEST, STATE, model_of, put, read_best, read_recipe, read_tokenizers, trained
from training.run.origin import commits_of
from training.run.overrides import OF_MODEL, OF_RECIPE, TOLD, written
from training.run.runstate import states, values_of, whole

ELSEWHERE = (*TOLD, "name", "task", "data", "model", "languages", "source_language", "target_language")  # of config.json


def export(run: Path, out: Path | None = None, precision: str = "float16") -> Path:
    """Write the checkpoint of the run in folder `run` into `out`, by default into `run` itself. The run may still be in
    progress. `precision` is that of the file."""
    state, folder = Path(run) / STATE, Path(out or run)
    recipe = read_recipe(state)
    source_text, target_text = read_tokenizers(state)
    model = model_of(recipe, source_text, target_text)
    fill_best(model, state / BEST)
    shared = shared_folder() if folder.resolve().parent == shipped_folder().resolve() else None
    config = {**describe(recipe), **trained_on(recipe, state)}
    save(folder, model.eval(), config, source_text, target_text, shared=shared, precision=precision)
    forget_others_figures(folder)
    return folder


def forget_others_figures(folder: Path) -> None:
    """Remove figures and the card if they were measured on other weights."""
    opened, _ = open_folder(folder)
    measured = recorded(folder).get("files", {})
    if METRICS in opened and any(opened.manifest[name]["sha256"] != measured.get(name) for name in (WEIGHTS, CONFIG)):
        for name in (METRICS, CARD):
            (folder / name).unlink(missing_ok=True)
        write_manifest(folder)


def fill_best(model: Network, file: Path) -> None:
    parameters = read_best(file)
    names = {name for name, _ in trained(model)}
    if set(parameters) != names:
        raise InputError(f"{file} is of another model than its recipe: {', '.join(sorted(set(parameters) ^ names)[:5])}.")
    put(model, parameters)


def describe(recipe: Recipe) -> dict[str, Any]:
    """The entries of config.json beside the model's shape."""
    said = {
        "name": recipe.name,
        "task": recipe.task,
        "languages": list(recipe.languages) if len(recipe.languages) > 1 else [],
        "source_language": recipe.source_language,
        "target_language": recipe.target_language,
        "licence": recipe.licence,
        "about": recipe.about,
    }
    return {key: value for key, value in said.items() if value}


def trained_on(recipe: Recipe, state: Path) -> dict[str, Any]:
    """The data and the recipe for config.json, once a state that records them has been saved."""
    fingerprint = next((values_of(data)["circumstances"]["data"] for path in states(state) if (data := whole(path))), "")
    if not fingerprint:
        return {}
    found = {
        "data": recipe.data,
        "fingerprint": fingerprint,
        "verified": fingerprint == FINGERPRINTS.get(recipe.data),
        "changes": changes(recipe),
        "recipe": values(recipe),
        "commits": commits_of(state),
    }
    return {"trained_on": found}


def values(recipe: Recipe) -> dict[str, Any]:
    """The values that determine the weights beside the model's shape and the data, as JSON."""
    own = {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name not in ELSEWHERE}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in own.items()}


def changes(recipe: Recipe) -> list[str]:
    """The values of --set that turn the shipped recipe of this name into this one."""
    shipped = RECIPES.get(recipe.name, recipe)
    own = [name for name in OF_RECIPE if name not in TOLD and getattr(recipe, name) != getattr(shipped, name)]
    models = [{name: {**default_sizes(), **one.model}[name] for name in OF_MODEL} for one in (recipe, shipped)]
    shape = [f"{name}={written(models[0][name])}" for name in OF_MODEL if models[0][name] != models[1][name]]
    return [*(f"{name}={written(getattr(recipe, name))}" for name in own), *shape]


def default_sizes() -> dict[str, Any]:
    return {field.name: field.default for field in fields(ModelConfig)}
