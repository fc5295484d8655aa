"""Tiny checkpoints of every task, saved in a folder: random weights, sharpened until searches differ as on trained models."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from torch import nn

from seqdemo.checkpoints import Checkpoint, save
from seqdemo.config import EOS, ModelConfig
from seqdemo.hub import load
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.text import Characters, Subwords, Words

SIZES: dict[str, Any] = {"embedding": 16, "encoder_hidden": 12, "decoder_hidden": 20, "attention": 12, "features": 16}
SHARP = 0.7  # standard deviation of the weights
RECURRENT = 0.2  # of those from state to state: larger ones make chaos, which no trained model is
WORDS = {
    "de": "der die ein eine hund katze kind frau mann laufen spielen singen im auf garten haus ball gras rot gross",
    "en": "the a one dog cat child woman man runs plays sings in on garden house ball grass red big",
}
TASKS = ("translate", "transliterate", "caption", "complete")
GATE = {"translate": "forget", "transliterate": "update", "caption": "output", "complete": "input"}  # one that its cell has


def sentences(language: str, count: int = 300) -> list[str]:
    chance = random.Random(language)
    return [" ".join(chance.choices(WORDS[language].split(), k=chance.randint(3, 8))).capitalize() + "." for _ in range(count)]


def sharpened(model: nn.Module, seed: int, hurry: float, readout: float = 0.8) -> nn.Module:
    """Weights large enough to decide things, a CNN whose weights shrink nothing on the way, and ending ahead by `hurry`. Seeds
    are chosen so that outputs end, and that beam search often beats greedy search and exact search both."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            scale = readout if "readout" in name else RECURRENT if name.endswith(".U") else SHARP
            if "encoder.cnn" in name:
                scale = (2 / weight[0].numel()) ** 0.5 if weight.dim() == 4 else 0.0
            weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
        model.readout.b[EOS] += hurry  # type: ignore[union-attr, index, operator]
    return model.eval()


def translator(folder: Path) -> Path:
    source, target = Subwords.train(sentences("de"), 70), Subwords.train(sentences("en"), 60)
    model = sharpened(Seq2Seq(ModelConfig(len(target), len(source), **SIZES)), seed=7, hurry=2)
    config = {"name": "tiny-translator", "task": "translate", "source_language": "de", "target_language": "en"}
    return save(folder, model, config, source, target)


def transliterator(folder: Path) -> Path:
    source = Characters.train(["abcdefghijklmnopqrstuvwxyz"], tags=("hi", "ur"))
    target = Characters.train(["अआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसहािीुूेैोौ्ं", "ابپتٹجچحخدڈذرڑزسشصضطظعغفقکگلمنوہی"])
    model = sharpened(Seq2Seq(ModelConfig(len(target), len(source), cell="gru", score="bilinear", **SIZES)), seed=1, hurry=4)
    return save(
        folder, model, {"name": "tiny-transliterator", "task": "transliterate", "languages": ["hi", "ur"]}, source, target
    )


def captioner(folder: Path) -> Path:
    target = Words.train(sentences("en"))
    model = sharpened(Seq2Seq(ModelConfig(len(target), encoder="image", cnn="efficientnet-lite0", **SIZES)), seed=5, hurry=2)
    return save(folder, model, {"name": "tiny-captioner", "task": "caption"}, None, target)


def completer(folder: Path) -> Path:
    target = Characters.train(["\n".join(sentences("en"))], keep_space=True)
    sizes = {"embedding": 12, "decoder_hidden": 24, "decoder_layers": 2, "features": 0}
    model = sharpened(LanguageModel(ModelConfig(len(target), encoder="none", **sizes)), seed=7, hurry=1, readout=1.6)  # type: ignore[arg-type]
    return save(folder, model, {"name": "tiny-completer", "task": "complete"}, None, target)


MAKERS = dict(zip(TASKS, (translator, transliterator, captioner, completer)))


def checkpoint(folder: Path, task: str) -> Checkpoint:
    return load(MAKERS[task](folder / f"tiny-{task}"))
