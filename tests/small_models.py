"""Models small enough to try every combination of their parts, and batches for them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seqdemo.config import BOS, EOS, PAD, ModelConfig
from seqdemo.model import LanguageModel, Seq2Seq

VOCABULARY = 23


def small_config(**changes: Any) -> ModelConfig:
    values: dict[str, Any] = {
        "target_vocabulary": VOCABULARY,
        "source_vocabulary": VOCABULARY,
        "embedding": 16,
        "encoder_hidden": 16,
        "decoder_hidden": 32,
        "attention": 16,
        "features": 16,
        "score": "additive",
        **changes,
    }
    return ModelConfig(**values)


def stir(module: nn.Module, scale: float = 0.2) -> None:
    """Biases start at 0 or 1, which would hide where they go."""
    with torch.no_grad():
        for value in module.parameters():
            value.add_(torch.randn_like(value) * scale)


def small(**changes: Any) -> Seq2Seq:
    model = Seq2Seq(small_config(**changes)).eval()
    stir(model)
    return model


def small_language(**changes: Any) -> LanguageModel:
    values = {"target_vocabulary": VOCABULARY, "encoder": "none", "embedding": 16, "decoder_hidden": 24, "features": 0}
    model = LanguageModel(ModelConfig(**{**values, **changes})).eval()
    stir(model)
    return model


def sentences(lengths: tuple[int, ...], vocabulary: int = VOCABULARY) -> Tensor:
    """Rows of random ids, padded on the right."""
    source_BS = torch.randint(4, vocabulary, (len(lengths), max(lengths)))
    for row, length in zip(source_BS, lengths):
        row[length:] = PAD
    return source_BS


def targets(lengths: tuple[int, ...], vocabulary: int = VOCABULARY) -> tuple[Tensor, Tensor]:
    """What the decoder reads and what it should say, as in training."""
    said = sentences(lengths, vocabulary)
    read_BT = torch.cat([torch.full((len(lengths), 1), BOS), said], 1)
    say_BT = torch.cat([said, torch.full((len(lengths), 1), PAD)], 1)
    say_BT[torch.arange(len(lengths)), torch.tensor(lengths)] = EOS
    return read_BT, say_BT
