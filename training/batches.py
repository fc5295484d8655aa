"""From examples to batches: tokenizers of a recipe, ids, length buckets, and the loss of one batch.

Everything is a function of (recipe, dataset, epoch): the order of an epoch can be made again from its number alone, which
is what lets a run resume in the middle of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sentencepiece
import torch
from torch import Tensor
from torch.nn import functional as F

from seqdemo.config import BOS, EOS, PAD
from seqdemo.model import LanguageModel, LanguageState, Seq2Seq
from seqdemo.text import Characters, Subwords, Tokenizer, Words
from training.data.records import Dataset, Example
from training.recipes import Recipe

BUCKETS = 100  # batches that are sorted by length together


class Batch(NamedTuple):
    source: Tensor  # ids (B, S), or pictures' grids (B, cells, channels)
    mask_BS: Tensor | None
    target_in_BT: Tensor
    target_out_BT: Tensor

    @property
    def tokens(self) -> int:
        return int((self.target_out_BT != PAD).sum())

    def shard(self, rank: int, world: int) -> Batch:
        """Every world-th row; the shape stays as wide as the whole batch's, which changes nothing."""
        return Batch(*(None if part is None else part[rank::world] for part in self))  # type: ignore[arg-type]


def train_tokenizers(recipe: Recipe, dataset: Dataset) -> tuple[Tokenizer | None, Tokenizer]:
    """Source and target; one for both where they share their embeddings."""
    examples = dataset.train.examples
    sources = [example.source for example in examples]
    targets = [reference for example in examples for reference in example.references]
    if recipe.tokenizer == "words":
        return None, Words.train(targets, recipe.least)
    if recipe.task == "complete":
        return None, Characters.train(targets, least=recipe.least, keep_space=True)
    if recipe.tokenizer == "subwords":
        joint = Subwords.train([*sources, *targets], recipe.pieces)
        return joint, joint
    tags = recipe.languages if len(recipe.languages) > 1 else ()
    return Characters.train(sources, tags, recipe.least), Characters.train(targets, least=recipe.least)


def pad(rows: list[np.ndarray]) -> Tensor:
    out = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for row, ids in zip(out, rows):
        row[: len(ids)] = ids
    return torch.from_numpy(out)


def collate(sources: list[np.ndarray], targets: list[np.ndarray]) -> Batch:
    source_BS, target_BT = pad(sources), pad(targets)
    return Batch(source_BS, source_BS != PAD, target_BT[:, :-1], target_BT[:, 1:])


class Corpus(NamedTuple):
    sources: list[np.ndarray]
    targets: list[np.ndarray]  # with <bos> and <eos>


@dataclass
class Sentences:
    """Batches of sentence pairs, bucketed by length."""

    recipe: Recipe
    source_text: Tokenizer
    target_text: Tokenizer

    def source_ids(self, example: Example, rng: np.random.Generator | None = None) -> np.ndarray:
        text, recipe = example.source, self.recipe
        if rng is not None and recipe.stop_dropout and text.endswith(".") and rng.random() < recipe.stop_dropout:
            text = text[:-1]
        if isinstance(self.source_text, Subwords):
            ids = self.source_text.encode(text, recipe.subword_dropout if rng is not None else 0.0).ids
        elif isinstance(self.source_text, Characters):
            ids = self.source_text.encode(text, example.language if len(recipe.languages) > 1 else "").ids
        else:
            ids = self.source_text.encode(text).ids
        return np.array(ids, dtype=np.int32)

    def target_ids(self, text: str) -> np.ndarray:
        return np.array([BOS, *self.target_text.encode(text).ids, EOS], dtype=np.int32)

    def corpus(self, examples: list[Example], epoch: int | None = None) -> Corpus:
        """With an epoch, sources are cut up with that epoch's dropout."""
        rng = None
        if epoch is not None:
            rng = np.random.default_rng([self.recipe.seed, epoch])
            sentencepiece.set_random_generator_seed(self.recipe.seed * 1000 + epoch)
        sources = [self.source_ids(example, rng) for example in examples]
        return Corpus(sources, [self.target_ids(example.references[0]) for example in examples])

    def groups(self, corpus: Corpus, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Indices of each batch: at most `tokens` target tokens, sentences of similar length together, in random order."""
        lengths = np.array([(len(target), len(source)) for source, target in zip(corpus.sources, corpus.targets)])
        order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
        chunk = max(1, BUCKETS * self.recipe.tokens // max(1, int(lengths[:, 0].mean())))
        groups: list[np.ndarray] = []
        for start in range(0, len(order), chunk):
            rows = order[start : start + chunk]
            rows = rows[np.lexsort((lengths[rows, 1], lengths[rows, 0]))]
            groups.extend(self.cut(rows, lengths[rows, 0]))
        return groups if rng is None else [groups[index] for index in rng.permutation(len(groups))]

    def cut(self, rows: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
        start = 0
        for end in range(1, len(rows) + 1):
            if end == len(rows) or (end + 1 - start) * (lengths[end] - 1) > self.recipe.tokens:
                yield rows[start:end]
                start = end

    def epoch(self, examples: list[Example], number: int | None) -> Iterator[Batch]:
        corpus = self.corpus(examples, number)
        rng = None if number is None else np.random.default_rng([self.recipe.seed, number, 1])
        for group in self.groups(corpus, rng):
            yield collate([corpus.sources[index] for index in group], [corpus.targets[index] for index in group])


def token_loss(logits_BTV: Tensor, target_out_BT: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """The sum over real tokens of -log p."""
    return F.cross_entropy(
        logits_BTV.flatten(0, 1), target_out_BT.flatten(), ignore_index=PAD, label_smoothing=label_smoothing, reduction="sum"
    )


def windows(ids: np.ndarray, streams: int, window: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A long text as `streams` texts read side by side, `window` characters at a time: (input, output)."""
    length = (len(ids) - 1) // streams
    inputs = torch.from_numpy(ids[: streams * length].astype(np.int64)).view(streams, length)
    outputs = torch.from_numpy(ids[1 : streams * length + 1].astype(np.int64)).view(streams, length)
    for start in range(0, length, window):
        yield inputs[:, start : start + window], outputs[:, start : start + window]


__all__ = [
    "Batch",
    "Corpus",
    "LanguageModel",
    "LanguageState",
    "Sentences",
    "Seq2Seq",
    "collate",
    "token_loss",
    "train_tokenizers",
    "windows",
]
