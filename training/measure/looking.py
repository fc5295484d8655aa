"""Where a transliterator looks while it writes: at the letters that spell the sign, or beside them?

Measured on plain words of dev: words of three signs or more, each of which is spelt by one or two Latin letters, in order, in
one way only (`spellings.plain`). The model reads the native word as in training. The row of a sign is right at shift k if its
heaviest position, less k, is one of the letters that spell the sign. At 0 it looks at what it writes, at -1 at the letter
before. No word of dev is in train.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import BOS, PAD
from seqdemo.edits import DIRECTIONS
from seqdemo.network.model import Network
from seqdemo.prompts import prepare
from training.data.batches import pad
from training.data.records import Example
from training.measure.decoding import batches
from training.measure.spellings import Span, plain

SHIFTS = (-1, 0, 1)
FEWEST_SIGNS = 3  # in a shorter word every position is near a right one
ROWS = 200  # words a batch
RULE = "words of three signs or more, each spelt by one or two Latin letters, in order, in one way only"


class Plain(NamedTuple):
    """A word, and which letters of its source spell each of its signs."""

    latin: str
    native: str
    language: str
    spans: tuple[Span, ...]


def plain_words(examples: Iterable[Example]) -> list[Plain]:
    """Every pair of a source and one of its references that is plain."""
    pairs = ((example, native) for example in examples for native in example.references if len(native) >= FEWEST_SIGNS)
    cut = ((example, native, plain(native, example.source, example.language)) for example, native in pairs)
    return [Plain(example.source, native, example.language, spans) for example, native, spans in cut if spans]


def network(checkpoint: Checkpoint) -> Network:
    assert isinstance(checkpoint.model, Network)
    return checkpoint.model


def rows(model: Network, source_BS: Tensor, target_in_BT: Tensor, head: str = "") -> Tensor:
    """Attention rows (B, T, S): of the head that is named, 'layer.head' counted from 0, or the mean of all."""
    taught = model.teach(source_BS, source_BS != PAD, target_in_BT, keep=("cross",))
    if head:
        layer, number = head.split(".")
        return taught.seen[f"decoder.{layer}.cross.{number}"]
    return torch.stack(list(taught.seen.values())).mean(0)


def heads_of(checkpoint: Checkpoint) -> list[str]:
    """The names of the heads, if there are several: 'layer.head', counted from 0."""
    config = network(checkpoint).config
    names = [f"{layer}.{head}" for layer in range(config.attention_layers) for head in range(config.heads)]
    return names if len(names) > 1 else []


class Batch(NamedTuple):
    source_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor


def batch_of(checkpoint: Checkpoint, words: Sequence[Plain]) -> Batch:
    target_text = checkpoint.target_text
    assert target_text is not None
    sources = [np.array(prepare(checkpoint, word.latin, word.language).pieces.ids) for word in words]
    targets = [np.array((BOS, *target_text.encode(word.native).ids)) for word in words]
    return Batch(pad(sources), pad([ids[:-1] for ids in targets]), pad([ids[1:] for ids in targets]))


@torch.inference_mode()
def heaviest(checkpoint: Checkpoint, words: Sequence[Plain], head: str = "") -> list[list[int]]:
    """For each sign of each word the position of the greatest weight, counted in letters: a tag before them is at -1."""
    model = network(checkpoint)
    found: list[list[int]] = []
    for mine in batches(range(len(words)), ROWS):
        part = [words[index] for index in mine]
        made = batch_of(checkpoint, part)
        at_BT = rows(model, made.source_BS, made.target_in_BT, head).argmax(2) - int(len(checkpoint.languages) > 1)
        found.extend(row[: len(word.spans)] for row, word in zip(at_BT.tolist(), part))
    return found


@torch.inference_mode()
def without_halves(checkpoint: Checkpoint, words: Sequence[Plain]) -> dict[str, float]:
    """Per cent of the signs that the model predicts, reading the word so far, with the states it attends to whole, and with
    one direction's half of them at its mean over the words. Keys and first state stay: only what it fetches is poorer."""
    right = dict.fromkeys(("whole", *DIRECTIONS), 0)
    for mine in batches(range(len(words)), ROWS):
        made = batch_of(checkpoint, [words[index] for index in mine])
        for half in right:
            right[half] += predicted(network(checkpoint), made, half)
    signs = sum(len(word.spans) for word in words)
    return {half: 100 * count / signs for half, count in right.items()}


def predicted(model: Network, made: Batch, half: str) -> int:
    memory = model.read(made.source_BS, made.source_BS != PAD)
    assert memory is not None
    if half in DIRECTIONS:
        states_BSH = memory.states_BSH.clone()
        size = states_BSH.shape[2] // 2
        part_BSH = states_BSH[..., :size] if half == "forward" else states_BSH[..., size:]
        part_BSH[:] = part_BSH[made.source_BS != PAD].mean(0)
        memory = memory._replace(states_BSH=states_BSH)
    taught = model.teach(made.source_BS, made.source_BS != PAD, made.target_in_BT, state=model.start(memory, len(made.source_BS)))
    said_BT = model.readout(taught.features_BTR).argmax(2)
    return int(((said_BT == made.target_out_BT) & (made.target_out_BT != PAD)).sum())


def shares(words: Sequence[Plain], positions: Sequence[Sequence[int]]) -> dict[str, float]:
    """Per cent of the signs whose heaviest position is a right one, by shift."""
    pairs = [(at, span) for word, row in zip(words, positions) for at, span in zip(row, word.spans)]
    return {f"{shift:+d}" if shift else "0": 100 * right(pairs, shift) / len(pairs) for shift in SHIFTS}


def right(pairs: Iterable[tuple[int, Span]], shift: int) -> int:
    return sum(span.start <= at - shift < span.end for at, span in pairs)


def looking(checkpoint: Checkpoint, examples: Sequence[Example]) -> dict[str, Any]:
    """Words, signs and shares, of all languages together and of each; without a plain word, nothing."""
    words = plain_words(examples)
    positions = heaviest(checkpoint, words)
    if not words:
        return {}
    codes = sorted({word.language for word in words})
    where = {code: [index for index, word in enumerate(words) if word.language == code] for code in codes}
    apart = {
        code: counted([words[index] for index in mine], [positions[index] for index in mine]) for code, mine in where.items()
    }
    config = network(checkpoint).config
    both = config.bidirectional and not config.is_transformer
    halves = {"predicted": without_halves(checkpoint, words)} if both else {}
    right_of = {head: shares(words, heaviest(checkpoint, words, head))["0"] for head in heads_of(checkpoint)}
    heads: dict[str, Any] = {"heads": right_of, "best_head": max(right_of, key=lambda head: right_of[head])} if right_of else {}
    return {"rule": RULE, **counted(words, positions), **halves, **heads, "languages": apart}


def counted(words: Sequence[Plain], positions: Sequence[Sequence[int]]) -> dict[str, Any]:
    return {"words": len(words), "signs": sum(map(len, positions)), "right": shares(words, positions)}
