"""Models small enough to try every combination of their parts, and batches for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seqdemo.checkpoints import save
from seqdemo.config import BOS, EOS, PAD, ModelConfig, SearchOptions
from seqdemo.network.model import LanguageModel, Network, Seq2Seq, log_probabilities
from seqdemo.search import search
from seqdemo.text import SPECIALS, Characters

VOCABULARY = 23
LETTERS = Characters([*SPECIALS, *"abcd"])


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
    """Give all biases random values, because 0 and 1 would hide mistakes in their places."""
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


def learn(network: Network, wanted: Callable[[Tensor], Tensor], steps: int, rate: float, rows: int = 48) -> Network:
    """Train a network of LETTERS to write what `wanted` makes of strings of two to four letters."""
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    start_B1, end_B1 = torch.full((rows, 1), BOS), torch.full((rows, 1), EOS)
    for step in range(steps):
        source_BS = torch.randint(4, len(LETTERS), (rows, 2 + step % 3))
        said_BS = wanted(source_BS)
        logits_BTV = network(source_BS, torch.ones_like(source_BS, dtype=torch.bool), torch.cat([start_B1, said_BS], 1))
        loss = nn.functional.cross_entropy(logits_BTV.flatten(0, 1), torch.cat([said_BS, end_B1], 1).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval()


def learnt(folder: Path, kind: type[Network], shape: dict[str, Any], wanted: Callable[[Tensor], Tensor], **how: Any) -> Path:
    """A network of this kind that has learnt what `wanted` makes of short strings, saved."""
    torch.manual_seed(0)
    network = kind(ModelConfig(len(LETTERS), source_vocabulary=len(LETTERS), **shape))  # type: ignore[call-arg]
    learn(network, wanted, **how)
    return save(folder, network, {"name": "toy", "task": "transliterate"}, LETTERS, LETTERS)


def check_every_search(bare: Any, source_BS: Tensor, fast: bool) -> None:
    """Every kind of search runs, and exact search finds the best of all outputs."""
    bare.readout.weight.mul_(3)
    network = bare.for_inference() if fast else bare
    for options in (
        SearchOptions(strategy="greedy"),
        SearchOptions(beam=4),
        SearchOptions(beam=4, finished="free"),
        SearchOptions(strategy="sample", samples=3),
        SearchOptions(strategy="exact", nbest=1),
    ):
        step, state = network.stepper(network.read(source_BS, source_BS != PAD))
        found = search(step, state, len(source_BS), options, [4] * len(source_BS))
    for source_S, exact in zip(source_BS, found):
        total, tokens = best_of_all(bare, source_S[source_S != PAD][None], 4)
        assert exact.certificate is not None and exact.certificate.proved and exact.hypotheses[0].tokens == tokens
        assert abs(exact.hypotheses[0].total - total) <= 1e-4


def best_of_all(network: Network, source_1S: Tensor, limit: int) -> tuple[float, tuple[int, ...]]:
    """Every output that ends within the limit, or is cut there, scored by teacher forcing."""
    words = range(EOS + 1, network.config.target_vocabulary)
    outputs = [(*body, EOS) for length in range(limit) for body in itertools.product(words, repeat=length)]
    outputs += list(itertools.product(words, repeat=limit))
    found = []
    for output in outputs:
        read_1T = torch.tensor([[BOS, *output[:-1]]])
        logp_TV = log_probabilities(
            network.readout(network.teach(source_1S, torch.ones_like(source_1S).bool(), read_1T).features_BTR[0])
        )
        found.append((sum(logp_TV[t, token].item() for t, token in enumerate(output)), output))
    return max(found)
