"""A run's best weights so far as a checkpoint: `python -m training export runs/reverse --out checkpoints/reverse`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from safetensors.torch import load as parse

from seqdemo.checkpoints import bundled_folder, save, shared_folder
from seqdemo.errors import InputError
from training.build import BEST, STATE, Model, model_of, put, read_recipe, read_tokenizers, trained
from training.recipes import Recipe


def export(run: Path, out: Path | None = None) -> Path:
    """Write the checkpoint of the run in folder `run` into `out`, by default into `run` itself. A run in progress may go on."""
    state, folder = Path(run) / STATE, Path(out or run)
    recipe = read_recipe(state)
    source_text, target_text = read_tokenizers(state)
    model = model_of(recipe, source_text, target_text)
    fill_best(model, state / BEST)
    shared = shared_folder() if folder.resolve().parent == bundled_folder().resolve() else None
    return save(folder, model.eval(), describe(recipe), source_text, target_text, shared=shared)


def fill_best(model: Model, file: Path) -> None:
    if not file.exists():
        raise InputError(f"{file} is not there yet: it appears with the first evaluation on dev data.")
    weights, names = parse(file.read_bytes()), {name for name, _ in trained(model)}
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
