"""Trainings that take a second: invented data and the smallest models of every kind."""

from __future__ import annotations

import multiprocessing
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqdemo.network.cnn import EfficientNetLite
from training.data.features import Features
from training.data.records import Dataset, Example, Split
from training.recipes import Recipe
from training.run import build, fit
from training.run.display import Display, Silent
from training.run.resume import NEW, Start

SIZES = {"embedding": 12, "encoder_hidden": 12, "decoder_hidden": 16, "attention": 8, "features": 12, "dropout": 0.2}

WORDS = Recipe(
    name="words",
    task="transliterate",
    data="words",
    minutes=1,
    model=SIZES,
    epochs=3,
    tokens=120,
    rate=5e-3,
    average=0.99,
    label_smoothing=0.1,
    metric="exact",
    evaluations=4,
    dev_size=20,
    bf16=False,
)
SUBWORDS = replace(
    WORDS,
    name="subwords",
    task="translate",
    tokenizer="subwords",
    pieces=60,
    subword_dropout=0.3,
    stop_dropout=0.3,
    metric="bleu",
    model={**SIZES, "features": 12, "share_embeddings": True, "tie_readout": True},
)
TAGS = replace(WORDS, name="tags", languages=("up", "down"))
TEXT = Recipe(
    name="text",
    task="complete",
    data="text",
    minutes=1,
    model={"embedding": 12, "decoder_hidden": 16, "features": 0, "decoder_layers": 2, "dropout": 0.2},
    epochs=6,
    window=10,
    streams=8,
    average=0.99,
    metric="nats",
    evaluations=3,
    bf16=False,
)
PHOTOGRAPHS = replace(
    WORDS,
    name="photographs",
    task="caption",
    tokenizer="words",
    metric="cider",
    tokens=50,
    model={**SIZES, "cnn": "efficientnet-lite0"},
)
COLOURS = ("red", "green", "blue", "white")


def word(rng: random.Random, longest: int = 8) -> str:
    return "".join(rng.choice("abcdefgh") for _ in range(rng.randint(2, longest)))


def dataset(name: str, train: list[Example], dev: list[Example]) -> Dataset:
    return Dataset(name, Split(train), Split(dev), Split(dev), name * 8, False, ())


def words(size: int = 300, longest: int = 8) -> Dataset:
    """A word, and the word backwards."""
    rng = random.Random(7)
    made = [word(rng, longest) for _ in range(size + 20)]
    examples = [Example(one, (one[::-1],), "", None, "words") for one in made]
    return dataset("words", examples[20:], examples[:20])


def sentences(size: int = 200) -> Dataset:
    """Sentences with a full stop, each to itself with its words in reverse."""
    rng = random.Random(8)
    vocabulary = [word(rng, 4) for _ in range(12)]
    made = [[rng.choice(vocabulary) for _ in range(rng.randint(1, 5))] for _ in range(size + 20)]
    examples = [Example(" ".join(one) + ".", (" ".join(one[::-1]) + ".",), "", None, "sentences") for one in made]
    return dataset("sentences", examples[20:], examples[:20])


def tagged(size: int = 300) -> Dataset:
    """A word, and what becomes of it in two languages: capitals, or the word backwards."""
    pairs = words(size)

    def both(split: Split) -> list[Example]:
        return [
            example._replace(references=(text,), language=tag)
            for example in split
            for tag, text in (("up", example.source.upper()), ("down", example.source[::-1]))
        ]

    return dataset("tags", both(pairs.train), both(pairs.dev))


def text(size: int = 3_000) -> Dataset:
    rng = random.Random(9)
    train, dev = (" ".join(word(rng, 5) for _ in range(count // 4)) for count in (size, size // 4))
    return dataset("text", [Example("", (train,), "", None, "text")], [Example("", (dev,), "", None, "text")])


def photographs(size: int = 60) -> Dataset:
    """Names of pictures that are never opened, each with its colours as a caption; `seen` invents the CNN's features."""
    rng = random.Random(10)
    made = [tuple(rng.choice(COLOURS) for _ in range(2)) for _ in range(size + 10)]
    named = [(Path(f"{number}-{'-'.join(pair)}.jpg"), pair) for number, pair in enumerate(made)]
    examples = [Example(path.name, (f"A {one} and a {two} square.",), "", path, "photographs") for path, (one, two) in named]
    return dataset("photographs", examples[10:], examples[:10])


def seen(made: Dataset, cnn: EfficientNetLite, *_: object) -> list[Features]:
    """A grid of two kinds of cells for each picture, told by its colours, and its mirror image."""
    codes = np.random.default_rng(1).normal(size=(len(COLOURS), cnn.channels))
    found = []
    for split in (made.train, made.dev):
        names = tuple(example.source for example in split)
        pairs = [[codes[COLOURS.index(colour)] for colour in name[:-4].split("-")[1:]] for name in names]
        grids = np.repeat(np.array(pairs)[:, None], cnn.grid**2 // 2 + 1, axis=2)[:, :, : cnn.grid**2]
        found.append(Features(names, np.concatenate([grids, grids[:, :, ::-1]], 1).astype(np.float16)))
    return found


DATA = {"words": words, "subwords": sentences, "tags": tagged, "text": text, "photographs": photographs}


def forks() -> Any:
    """Processes that start with everything imported, because imports take longer than the half-second trainings of many
    tests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.small_runs", "torch._dynamo"])
    return context


def train(
    recipe: Recipe, folder: Path, start: Start = NEW, saving: fit.Saving = fit.OFTEN, display: Display | None = None
) -> int:
    """`fit` on the invented data that go with a recipe's name."""
    loaded, fit.load_data = fit.load_data, lambda *_: DATA[recipe.name]()
    looked, build.of_dataset = build.of_dataset, seen
    torch.set_num_threads(1)
    try:
        return fit.fit(recipe, None, folder, start, "cpu", saving, display or Silent())
    finally:
        fit.load_data, build.of_dataset = loaded, looked
