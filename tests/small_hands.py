"""Models for the tests of hands: one of every task, and a Transformer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from seqdemo.checkpoints import Checkpoint, save
from seqdemo.config import ModelConfig, SearchOptions
from seqdemo.edits import ClampGate, Edit
from seqdemo.hub import load
from seqdemo.network.model import Seq2Seq
from seqdemo.network.transformer import Transformer
from seqdemo.playground import Run, run
from seqdemo.prompts import Prompt
from seqdemo.text import Pieces
from tests import tiny

INPUTS: dict[str, Any] = {"translate": "Der hund singt.", "transliterate": "namaste", "complete": "The dog "}
TASKS = (*tiny.TASKS, "transformer")
ATTENDING = ("translate", "transliterate", "caption", "transformer")


class Models:
    """Each is made once, in this folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoint = cache(self.made)

    def made(self, task: str) -> Checkpoint:
        makers = {"transformer": transformer, "hard": hard}
        return makers[task](self.folder) if task in makers else tiny.checkpoint(self.folder, task)

    def run(self, task: str, edits: tuple[Edit, ...] = (), **options: Any) -> Run:
        checkpoint = self.checkpoint(task)
        return run(checkpoint, given(checkpoint), SearchOptions(**{"max_length": 8, **options}), edits)


def given(checkpoint: Checkpoint) -> Any:
    if checkpoint.task != "caption":
        return INPUTS[checkpoint.task]
    cnn: Any = checkpoint.model.encoder.cnn
    torch.manual_seed(1)
    with torch.inference_mode():  # as a picture is seen
        return Prompt(Pieces((), (), ()), torch.rand(1, cnn.grid**2, cnn.channels), 12)


def transformer(folder: Path) -> Checkpoint:
    translator = tiny.checkpoint(folder, "translate")
    source, target = translator.source_text, translator.target_text
    sizes: dict[str, Any] = {"embedding": 16, "attention_heads": 2, "feed_forward": 24, "features": 0}
    config = ModelConfig(len(target), len(source), decoder="transformer", encoder_layers=2, decoder_layers=2, **sizes)  # type: ignore[arg-type]
    torch.manual_seed(3)
    model = Transformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    about = {"name": "tiny-transformer", "task": "translate", "source_language": "de", "target_language": "en"}
    return load(save(folder / "tiny-transformer", model, about, source, target))


def hard(folder: Path) -> Checkpoint:
    """The translator, looking at one position at a time."""
    translator: Any = tiny.checkpoint(folder, "translate")
    model = Seq2Seq(replace(translator.model.config, hard=True))
    model.load_state_dict(translator.model.bare().state_dict())
    about = {"name": "tiny-hard", "task": "translate", "source_language": "de", "target_language": "en"}
    return load(save(folder / "tiny-hard", model, about, translator.source_text, translator.target_text))


def clamp(task: str) -> tuple[Edit, ...]:
    """An edit that clamps a gate of the model; none for a Transformer."""
    return () if task == "transformer" else (ClampGate("decoder", tiny.GATE.get(task, tiny.GATE["translate"]), 0.6),)
