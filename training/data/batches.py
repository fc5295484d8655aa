"""From examples to batches: tokenizers of a recipe, ids, length buckets.

Everything is a function of (recipe, dataset, epoch). The order of an epoch follows from its number alone, so a run can resume in
the middle of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import BOS, EOS, PAD
from seqdemo.text import Characters, Subwords, Tokenizer, Words
from training.data.features import Features
from training.data.merges import Dropout, Merges
from training.data.records import Dataset, Example
from training.recipes import Recipe

T = TypeVar("T")
BUCKETS = 100  # batches that are sorted by length together
PASSAGE = 4_000  # characters a language model reads from one <bos>


class Batch(NamedTuple):
    source: Tensor  # ids (B, S), or pictures' grids (B, cells, channels)
    mask_BS: Tensor | None
    target_in_BT: Tensor
    target_out_BT: Tensor
    rows_B: Tensor | None = None  # which examples these are

    @property
    def tokens(self) -> int:
        return int((self.target_out_BT != PAD).sum())

    def shard(self, rank: int, world: int) -> Batch:
        """Every world-th row, padded to the width of the whole batch. A rank without rows gets one that does not count."""
        if rank >= len(self.target_in_BT):
            alone = self.shard(0, len(self.target_in_BT))
            return alone._replace(target_out_BT=torch.full_like(alone.target_out_BT, PAD))
        return Batch(*(None if part is None else part[rank::world] for part in self))  # type: ignore[arg-type]


def train_tokenizers(recipe: Recipe, dataset: Dataset) -> tuple[Tokenizer | None, Tokenizer]:
    """The tokenizers of source and target; the same one if they share their embeddings."""
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


@dataclass(frozen=True)
class Epoch(Generic[T]):
    """The batches of an epoch, each made when it is needed."""

    count: int
    make: Callable[[int], T]

    def __len__(self) -> int:
        return self.count

    def after(self, used: int) -> Iterator[T]:
        return map(self.make, range(used, self.count))

    def __iter__(self) -> Iterator[T]:
        return self.after(0)


class TextSources:
    """Sources as piece numbers."""

    def __init__(self, ids: list[np.ndarray]) -> None:
        self.ids = ids
        self.lengths = np.array([len(row) for row in ids])

    def stack(self, rows: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        source_BS = pad([self.ids[row] for row in rows])
        return source_BS, source_BS != PAD


class GridSources:
    """Photographs as the CNN's grids: row and view of each in the file of features."""

    def __init__(self, grids: np.ndarray, rows: np.ndarray, views: np.ndarray) -> None:
        self.grids, self.rows, self.views = grids, rows, views
        self.lengths = np.full(len(rows), grids.shape[2])

    def stack(self, rows: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        grid_BSC = np.stack([self.grids[self.rows[row], self.views[row]] for row in rows])
        return torch.from_numpy(grid_BSC.astype(np.float32)), None


Sources = TextSources | GridSources


class Pairs:
    """Batches of (source, target), bucketed by length."""

    def __init__(self, recipe: Recipe, target_text: Tokenizer) -> None:
        self.recipe, self.target_text = recipe, target_text

    def sources(self, examples: Sequence[Example], epoch: int | None = None) -> Sources:
        """The sources; with an epoch, as training reads them in that epoch."""
        raise NotImplementedError

    def limit(self, source_length: int) -> int:
        """The length limit of an output for this source."""
        raise NotImplementedError

    def target_ids(self, text: str) -> np.ndarray:
        return np.array([BOS, *self.target_text.encode(text).ids, EOS], dtype=np.int32)

    def batches(self, examples: Sequence[Example], epoch: int | None = None) -> Epoch[Batch]:
        """In random order with an epoch, otherwise in order of length."""
        sources = self.sources(examples, epoch)
        targets = [self.target_ids(example.references[0]) for example in examples]
        lengths_N2 = np.stack([[len(target) for target in targets], sources.lengths], 1)
        rng = None if epoch is None else np.random.default_rng([self.recipe.seed, epoch, 1])
        groups = grouped(lengths_N2, self.recipe.tokens, rng)

        def make(index: int) -> Batch:
            target_BT = pad([targets[row] for row in groups[index]])
            rows_B = torch.from_numpy(groups[index])
            return Batch(*sources.stack(groups[index].tolist()), target_BT[:, :-1], target_BT[:, 1:], rows_B)

        return Epoch(len(groups), make)


class Sentences(Pairs):
    def __init__(self, recipe: Recipe, source_text: Tokenizer, target_text: Tokenizer) -> None:
        super().__init__(recipe, target_text)
        self.source_text = source_text
        self.merges = Merges(source_text) if isinstance(source_text, Subwords) and recipe.subword_dropout else None

    def limit(self, source_length: int) -> int:
        return 2 * source_length + 10

    def sources(self, examples: Sequence[Example], epoch: int | None = None) -> TextSources:
        if epoch is None:
            return TextSources([self.source_ids(example) for example in examples])
        rng = np.random.default_rng([self.recipe.seed, epoch])
        varied = (self.varied(example, rng) for example in examples)
        if not self.merges:
            return TextSources([self.source_ids(example) for example in varied])
        dropout = Dropout(self.merges, self.recipe.subword_dropout, np.random.default_rng([self.recipe.seed, epoch, 2]))
        return TextSources([dropout.ids(example.source) for example in varied])

    def varied(self, example: Example, rng: np.random.Generator) -> Example:
        stopped = self.recipe.stop_dropout and example.source.endswith(".") and rng.random() < self.recipe.stop_dropout
        return example._replace(source=example.source[:-1]) if stopped else example

    def source_ids(self, example: Example) -> np.ndarray:
        if isinstance(self.source_text, Characters):
            ids = self.source_text.encode(example.source, example.language if len(self.recipe.languages) > 1 else "").ids
        else:
            ids = self.source_text.encode(example.source).ids
        return np.array(ids, dtype=np.int32)


class Photographs(Pairs):
    """`features` holds the grids of each split's photographs; in training half of them are mirrored."""

    def __init__(self, recipe: Recipe, features: Sequence[Features], target_text: Tokenizer) -> None:
        super().__init__(recipe, target_text)
        self.place = {name: (part.grids, row) for part in features for row, name in enumerate(part.names)}

    def limit(self, source_length: int) -> int:
        return 40

    def sources(self, examples: Sequence[Example], epoch: int | None = None) -> GridSources:
        places = [self.place[example.source] for example in examples]
        rows = np.array([row for _, row in places])
        views = np.zeros(len(rows), dtype=np.int64)
        if epoch is not None:
            views = np.random.default_rng([self.recipe.seed, epoch]).integers(places[0][0].shape[1], size=len(rows))
        return GridSources(places[0][0], rows, views)


def grouped(lengths_N2: np.ndarray, tokens: int, rng: np.random.Generator | None) -> list[np.ndarray]:
    """The rows of each batch: at most `tokens` target tokens, sentences of similar length, in random order."""
    order = np.arange(len(lengths_N2)) if rng is None else rng.permutation(len(lengths_N2))
    chunk = max(1, BUCKETS * tokens // max(1, int(lengths_N2[:, 0].mean())))
    groups: list[np.ndarray] = []
    for start in range(0, len(order), chunk):
        rows = order[start : start + chunk]
        rows = rows[np.lexsort((lengths_N2[rows, 1], lengths_N2[rows, 0]))]
        groups.extend(cut(rows, lengths_N2[rows, 0], tokens))
    return groups if rng is None else [groups[index] for index in rng.permutation(len(groups))]


def cut(rows: np.ndarray, lengths_N: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or (end + 1 - start) * (lengths_N[end] - 1) > tokens:
            yield rows[start:end]
            start = end


def windows(ids: np.ndarray, streams: int, window: int) -> Epoch[tuple[Tensor, Tensor]]:
    """A long text as `streams` texts read side by side, `window` characters at a time: (input, output)."""
    length = (len(ids) - 1) // streams
    inputs = torch.from_numpy(ids[: streams * length].astype(np.int64)).view(streams, length)
    outputs = torch.from_numpy(ids[1 : streams * length + 1].astype(np.int64)).view(streams, length)

    def make(index: int) -> tuple[Tensor, Tensor]:
        part = slice(index * window, (index + 1) * window)
        return inputs[:, part], outputs[:, part]

    return Epoch(-(-length // window), make)


def openings(ids: np.ndarray, newline: int) -> np.ndarray:
    """The places where the text or a paragraph begins."""
    blank = (ids[:-2] == newline) & (ids[1:-1] == newline) & (ids[2:] != newline)
    return np.concatenate([[0], np.flatnonzero(blank) + 2])


def readings(ids: np.ndarray, starts: np.ndarray, streams: int, window: int, shift: int) -> Epoch[tuple[Tensor, Tensor]]:
    """Nearly the whole text, from `shift` characters on, in passages of PASSAGE characters. Each begins with <bos> at the start
    of a paragraph, like a text that a user types; `streams` of them are read side by side."""
    rounds = max(1, len(ids) // (streams * PASSAGE))
    length = max(1, len(ids) // (streams * rounds))
    edges = (shift + length * np.arange(streams * rounds)) % len(ids)
    starts = starts[np.searchsorted(starts, edges) % len(starts)].reshape(rounds, streams, 1)
    parts = -(-length // window)

    def make(index: int) -> tuple[Tensor, Tensor]:
        turn, part = divmod(index, parts)
        places = starts[turn] + np.arange(part * window, min(length, (part + 1) * window))
        inputs, outputs = (ids.take(where, mode="wrap").astype(np.int64) for where in (places - 1, places))
        if part == 0:
            inputs[:, 0] = BOS
        return torch.from_numpy(inputs), torch.from_numpy(outputs)

    return Epoch(rounds * parts, make)
