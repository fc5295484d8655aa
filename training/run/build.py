"""From a recipe to tokenizers, model and task. A run's folder is a checkpoint; its folder `state` holds everything else."""

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
from seqdemo.network.model import LanguageModel, Network, Seq2Seq
from seqdemo.network.single import Single
from seqdemo.network.transformer import Transformer
from seqdemo.text import Tokenizer, load_tokenizer
from training.data.batches import Photographs, Sentences, train_tokenizers
from training.data.features import of_dataset
from training.data.records import Dataset
from training.recipes import Recipe
from training.run.cnn_weights import shipped
from training.run.runstate import values_of, write_atomically
from training.tasks.task import PairTask, Task, TextTask

STATE, RECIPE, TOKENIZERS, BEST = "state", "recipe.json", "tokenizers.json", "best.safetensors"

WITHOUT_RECIPE = "Delete it and give the command this run began with, with --resume"
WITHOUT_TOKENIZERS = f"Delete {TOKENIZERS} beside it and go on with --resume, which makes them again from the same data"
REQUIRED = {field.name for field in fields(Recipe) if field.default is MISSING and field.default_factory is MISSING}


def write_recipe(state: Path, recipe: Recipe) -> None:
    write_atomically(state / RECIPE, json.dumps(asdict(recipe), default=dict, indent=1, ensure_ascii=False).encode())


def read_recipe(state: Path) -> Recipe:
    """The recipe of a run. Fields that were added since then have their defaults."""
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
    """Read a tokenizer file and verify its checksum, which runs of older versions lack."""
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
    """The tokenizers, trained once and then read from the run."""
    if not (state / TOKENIZERS).exists():
        make_tokenizers(recipe, dataset, state)
    return read_tokenizers(state)


def model_of(recipe: Recipe, source_text: Tokenizer | None, target_text: Tokenizer) -> Network:
    torch.manual_seed(recipe.seed)
    if recipe.task == "complete":
        return LanguageModel(ModelConfig(len(target_text), encoder="none", **recipe.model))
    if recipe.task == "caption":
        captioner = Seq2Seq(ModelConfig(len(target_text), encoder="image", **recipe.model))
        captioner.encoder.cnn.load_state_dict(shipped(captioner.config.cnn).state_dict())  # type: ignore[union-attr]
        return captioner
    if source_text is None:
        raise InputError(f"Recipe {recipe.name} has no source to read.")
    config = ModelConfig(len(target_text), source_vocabulary=len(source_text), **recipe.model)
    return (Transformer if config.is_transformer else Single if config.is_single else Seq2Seq)(config)


def task_of(
    recipe: Recipe, dataset: Dataset, source_text: Tokenizer | None, target_text: Tokenizer, features: Path = Path("features")
) -> Task:
    """`features` is the folder of the CNN's features of the photographs, shared by all runs."""
    if recipe.task == "complete":
        return TextTask(recipe, dataset, target_text)
    if source_text is not None:
        return PairTask(recipe, dataset, Sentences(recipe, source_text, target_text))
    seen = of_dataset(dataset, shipped(recipe.model["cnn"], recipe.model.get("finer", False)), features)
    return PairTask(recipe, dataset, Photographs(recipe, seen, target_text))


def trained(model: Network) -> Iterator[tuple[str, Tensor]]:
    """The trained parameters by name, without those of a CNN."""
    return ((name, value) for name, value in model.named_parameters() if value.requires_grad)


def write_best(state: Path, parameters: dict[str, Tensor], step: int) -> None:
    """Write the best weights, in a file that allows damage to be detected."""
    write_atomically(
        state / BEST, safetensors_bytes(parameters, {"values": json.dumps({"step": step, "sha256": seal(parameters)})})
    )


def read_best(file: Path) -> dict[str, Tensor]:
    if not file.exists():
        raise InputError(f"{file} is not there yet: it appears with the first evaluation on dev data.")
    data = file.read_bytes()
    try:
        parameters = parse(data)
        whole = values_of(data)["sha256"] == seal(parameters)
    except (SafetensorError, ValueError, KeyError):
        whole = False
    if not whole:
        raise InputError(f"{file} is damaged. Go on with the run (fit ... --resume): it writes the file again.")
    return parameters


def seal(parameters: dict[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name in sorted(parameters):
        found.update(name.encode() + parameters[name].numpy().tobytes())
    return found.hexdigest()


def put(model: Network, parameters: dict[str, Tensor]) -> None:
    """Copy these numbers into the model's own tensors."""
    with torch.no_grad():
        for name, value in trained(model):
            if name in parameters:
                value.copy_(parameters[name])
