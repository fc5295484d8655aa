"""A run's best weights so far as a checkpoint: `python -m training export runs/reverse --out checkpoints/reverse`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from seqdemo.checkpoints import bundled_folder, save, shared_folder, write_manifest
from seqdemo.checkpoints.folder import CARD, CONFIG, METRICS, WEIGHTS
from seqdemo.checkpoints.store import open_folder
from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from training.build import BEST, STATE, Model, model_of, put, read_best, read_recipe, read_tokenizers, trained
from training.data.public import FINGERPRINTS
from training.headlines import recorded
from training.overrides import OF_MODEL, OF_RECIPE
from training.recipes import RECIPES, Recipe
from training.runstate import states, values_of, whole

TOLD = ("minutes", "licence", "about")  # what a recipe says of itself; it changes no weight


def export(run: Path, out: Path | None = None) -> Path:
    """Write the checkpoint of the run in folder `run` into `out`, by default into `run` itself. A run in progress may go on."""
    state, folder = Path(run) / STATE, Path(out or run)
    recipe = read_recipe(state)
    source_text, target_text = read_tokenizers(state)
    model = model_of(recipe, source_text, target_text)
    fill_best(model, state / BEST)
    shared = shared_folder() if folder.resolve().parent == bundled_folder().resolve() else None
    config = {**describe(recipe), **trained_on(recipe, state)}
    save(folder, model.eval(), config, source_text, target_text, shared=shared)
    forget_others_figures(folder)
    return folder


def forget_others_figures(folder: Path) -> None:
    """Figures, and the card that tells them, do not stay beside other bytes than they were measured of."""
    opened, _ = open_folder(folder)
    measured = recorded(folder).get("files", {})
    if METRICS in opened and any(opened.manifest[name]["sha256"] != measured.get(name) for name in (WEIGHTS, CONFIG)):
        for name in (METRICS, CARD):
            (folder / name).unlink(missing_ok=True)
        write_manifest(folder)


def fill_best(model: Model, file: Path) -> None:
    weights = read_best(file)
    names = {name for name, _ in trained(model)}
    if set(weights) != names:
        raise InputError(f"{file} is of another model than its recipe: {', '.join(sorted(set(weights) ^ names)[:5])}.")
    put(model, weights)


def describe(recipe: Recipe) -> dict[str, Any]:
    """What config.json says beside the model's shape."""
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
    """What config.json says of the data and the recipe, once a state that knows them has been saved."""
    fingerprint = next((values_of(data)["circumstances"]["data"] for path in states(state) if (data := whole(path))), "")
    if not fingerprint:
        return {}
    verified = fingerprint == FINGERPRINTS.get(recipe.data)
    return {"trained_on": {"data": recipe.data, "fingerprint": fingerprint, "verified": verified, "changes": changes(recipe)}}


def changes(recipe: Recipe) -> list[str]:
    """The values of --set that make this recipe out of the shipped one of its name."""
    shipped = RECIPES.get(recipe.name, recipe)
    own = [name for name in OF_RECIPE if name not in TOLD and getattr(recipe, name) != getattr(shipped, name)]
    models = [{name: {**default_sizes(), **one.model}[name] for name in OF_MODEL} for one in (recipe, shipped)]
    shape = [f"{name}={written(models[0][name])}" for name in OF_MODEL if models[0][name] != models[1][name]]
    return [*(f"{name}={written(getattr(recipe, name))}" for name in own), *shape]


def default_sizes() -> dict[str, Any]:
    return {field.name: field.default for field in fields(ModelConfig)}


def written(value: Any) -> str:
    """As --set takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value).removesuffix(".0")
