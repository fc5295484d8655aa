"""From a recipe to what trains: tokenizers, model, task. A run's folder is a checkpoint; `state` in it is all the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as parse
from safetensors.torch import save as safetensors_bytes
from torch import Tensor

from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from seqdemo.model import LanguageModel, Seq2Seq
from seqdemo.text import Tokenizer, load_tokenizer
from training.batches import Photographs, Sentences, train_tokenizers
from training.cnn_weights import shipped
from training.data.records import Dataset
from training.features import of_dataset
from training.recipes import Recipe
from training.runstate import values_of, write_atomically
from training.tasks import PairTask, Task, TextTask

STATE, RECIPE, TOKENIZERS, BEST = "state", "recipe.json", "tokenizers.json", "best.safetensors"

WITHOUT_RECIPE = "Delete it and give the command this run began with, with --resume"
WITHOUT_TOKENIZERS = f"Delete {TOKENIZERS} beside it and go on with --resume, which makes them again from the same data"
REQUIRED = {field.name for field in fields(Recipe) if field.default is MISSING and field.default_factory is MISSING}

Model = Seq2Seq | LanguageModel


def write_recipe(state: Path, recipe: Recipe) -> None:
    write_atomically(state / RECIPE, json.dumps(asdict(recipe), default=dict, indent=1, ensure_ascii=False).encode())


def read_recipe(state: Path) -> Recipe:
    """The recipe of a run. Fields that are new since then have their defaults, which is what the run had."""
    if not (state / RECIPE).exists():
        raise InputError(f"There is no run in {state.parent}: no {STATE}/{RECIPE}. Begin one with python -m training fit.")
    try:
        values = json.loads((state / RECIPE).read_bytes())
    except (OSError, ValueError) as error:
        raise damaged(state / RECIPE, WITHOUT_RECIPE) from error
    if not isinstance(values, dict) or not REQUIRED.issubset(values):
        raise damaged(state / RECIPE, WITHOUT_RECIPE)
    return recipe_from(values)


def damaged(file: Path, remedy: str) -> InputError:
    return InputError(f"{file} is damaged. {remedy}, or start again with --fresh.")


def recipe_from(values: dict[str, Any]) -> Recipe:
    unknown = sorted(set(values) - {field.name for field in fields(Recipe)})
    if unknown:
        raise InputError(f"This run has {', '.join(unknown)} in its recipe, which this version does not know.")
    fitting: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return Recipe(**fitting)


def make_tokenizers(recipe: Recipe, dataset: Dataset, state: Path) -> None:
    source, target = train_tokenizers(recipe, dataset)
    specs = {"target": write_tokenizer(target, state, "target")}
    if source is not None:
        specs["source"] = specs["target"] if source is target else write_tokenizer(source, state, "source")
    write_atomically(state / TOKENIZERS, json.dumps(specs).encode())


def write_tokenizer(text: Tokenizer, state: Path, stem: str) -> dict[str, str]:
    return {**text.save(state, stem), "sha256": hashlib.sha256(text.dump()).hexdigest()}


def read_tokenizer(state: Path, spec: dict[str, str]) -> Tokenizer:
    """Runs of older versions have no checksum."""
    file = state / spec["file"]
    if not file.is_file():
        raise damaged(file, WITHOUT_TOKENIZERS)
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if spec.get("sha256", found) != found:
        raise damaged(file, WITHOUT_TOKENIZERS)
    return load_tokenizer(state, spec)


def read_tokenizers(state: Path) -> tuple[Tokenizer | None, Tokenizer]:
    """(source, target) of a run; the same object twice where both sides share their pieces."""
    try:
        specs = json.loads((state / TOKENIZERS).read_bytes())
        target = read_tokenizer(state, specs["target"])
        if "source" not in specs:
            return None, target
        return (target if specs["source"] == specs["target"] else read_tokenizer(state, specs["source"])), target
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise damaged(state / TOKENIZERS, WITHOUT_TOKENIZERS) from error


def tokenizers_of(recipe: Recipe, dataset: Dataset, state: Path) -> tuple[Tokenizer | None, Tokenizer]:
    """Made once, then read from the run."""
    if not (state / TOKENIZERS).exists():
        make_tokenizers(recipe, dataset, state)
    return read_tokenizers(state)


def model_of(recipe: Recipe, source_text: Tokenizer | None, target_text: Tokenizer) -> Model:
    torch.manual_seed(recipe.seed)
    if recipe.task == "complete":
        return LanguageModel(ModelConfig(len(target_text), encoder="none", **recipe.model))
    if recipe.task == "caption":
        captioner = Seq2Seq(ModelConfig(len(target_text), encoder="image", **recipe.model))
        captioner.encoder.cnn.load_state_dict(shipped(captioner.config.cnn).state_dict())  # type: ignore[union-attr]
        return captioner
    if source_text is None:
        raise InputError(f"Recipe {recipe.name} has no source to read.")
    return Seq2Seq(ModelConfig(len(target_text), source_vocabulary=len(source_text), **recipe.model))


def task_of(
    recipe: Recipe, dataset: Dataset, source_text: Tokenizer | None, target_text: Tokenizer, features: Path = Path("features")
) -> Task:
    """`features` is the folder where what the CNN sees in each photograph is kept, for every run that wants it."""
    if recipe.task == "complete":
        return TextTask(recipe, dataset, target_text)
    if source_text is not None:
        return PairTask(recipe, dataset, Sentences(recipe, source_text, target_text))
    seen = of_dataset(dataset, shipped(recipe.model["cnn"]), features)
    return PairTask(recipe, dataset, Photographs(recipe, seen, target_text))


def trained(model: Model) -> Iterator[tuple[str, Tensor]]:
    """The parameters that learn, by name; a CNN's stay as they came."""
    return ((name, value) for name, value in model.named_parameters() if value.requires_grad)


def write_best(state: Path, weights: dict[str, Tensor], step: int) -> None:
    """What ships; the file tells its own damage."""
    write_atomically(state / BEST, safetensors_bytes(weights, {"values": json.dumps({"step": step, "sha256": seal(weights)})}))


def read_best(file: Path) -> dict[str, Tensor]:
    if not file.exists():
        raise InputError(f"{file} is not there yet: it appears with the first evaluation on dev data.")
    data = file.read_bytes()
    try:
        weights = parse(data)
        whole = values_of(data)["sha256"] == seal(weights)
    except (SafetensorError, ValueError, KeyError):
        whole = False
    if not whole:
        raise InputError(f"{file} is damaged. Go on with the run (fit ... --resume): it writes the file again.")
    return weights


def seal(weights: dict[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name in sorted(weights):
        found.update(name.encode() + weights[name].numpy().tobytes())
    return found.hexdigest()


def put(model: Model, weights: dict[str, Tensor]) -> None:
    """Write these numbers into the model's own tensors."""
    with torch.no_grad():
        for name, value in trained(model):
            if name in weights:
                value.copy_(weights[name])
