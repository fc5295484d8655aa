"""What a loop needs to know of a kind of model: its batches, its loss, its score on dev."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from seqdemo.config import BOS, EOS, PAD, SearchOptions
from seqdemo.errors import InputError
from seqdemo.model import LanguageModel, LanguageState, Seq2Seq
from seqdemo.search import search
from seqdemo.text import Tokenizer
from training import metrics
from training.batches import PASSAGE, Batch, Epoch, Pairs, openings, readings, windows
from training.data.records import Dataset, Example
from training.loss import token_loss, unevenness
from training.recipes import Recipe

DEV_CHARACTERS = 200_000  # of a text, to choose the best weights by


class Loss(NamedTuple):
    """A sum over tokens, and how many: ranks add both before they divide."""

    total: Tensor
    tokens: int


class Score(NamedTuple):
    metric: float  # larger is better
    loss: float  # nats a token
    sample: tuple[str, str, str]  # source, reference, output


class Task(Protocol):
    def epoch(self, number: int) -> Epoch[Any]: ...

    def loss(self, model: nn.Module, batch: Any, smoothing: float) -> Loss: ...

    def shard(self, batch: Any, rank: int, world: int) -> Any: ...

    def evaluate(self, model: nn.Module) -> Score: ...

    def carried(self) -> dict[str, Tensor]: ...

    def carry_on(self, model: nn.Module, tensors: dict[str, Tensor]) -> None: ...


class PairTask:
    """Pairs: translation, transliteration, captions, the toy."""

    def __init__(self, recipe: Recipe, dataset: Dataset, pairs: Pairs) -> None:
        self.recipe, self.pairs = recipe, pairs
        self.train = [example for example in dataset.train for _ in range(recipe.weigh.get(example.origin, 1))]
        self.dev = dataset.dev.sample(recipe.dev_size, seed=0).examples
        self.scheduled = 0.0

    def epoch(self, number: int) -> Epoch[Batch]:
        return self.pairs.batches(self.train, number)

    def shard(self, batch: Batch, rank: int, world: int) -> Batch:
        return batch.shard(rank, world)

    def loss(self, model: nn.Module, batch: Batch, smoothing: float) -> Loss:
        assert isinstance(model, Seq2Seq)
        target_in_BT = batch.target_in_BT
        if self.scheduled and model.training:
            target_in_BT = self.own_guesses(model, batch)
        taught = model.taught(batch.source, batch.mask_BS, target_in_BT)
        total = token_loss(taught.logits_BTV, batch.target_out_BT, smoothing)
        if self.recipe.spread and model.training and taught.weights:
            total = total + self.recipe.spread * unevenness(torch.stack(taught.weights, 1), batch.target_out_BT != PAD)
        return Loss(total, batch.tokens)

    def own_guesses(self, model: nn.Module, batch: Batch) -> Tensor:
        """Scheduled sampling: some of the words read are what the model itself would have said there."""
        with torch.no_grad():
            said_BT = model(batch.source, batch.mask_BS, batch.target_in_BT).argmax(2)
        replaced_BT = torch.rand(batch.target_in_BT.shape, device=said_BT.device) < self.scheduled
        replaced_BT[:, 0] = False
        return torch.where(replaced_BT, said_BT.roll(1, 1), batch.target_in_BT)

    def outputs(self, model: Seq2Seq, examples: list[Example], options: SearchOptions, rows: int = 100) -> list[str]:
        sources = self.pairs.sources(examples)
        order = np.argsort(sources.lengths, kind="stable")
        texts = [""] * len(examples)
        for start in range(0, len(order), rows):
            group = order[start : start + rows].tolist()
            step, state = model.stepper(model.encode(*sources.stack(group)))
            limits = [self.pairs.limit(int(sources.lengths[row])) for row in group]
            for row, found in zip(group, search(step, state, len(group), options, limits, record=False)):
                texts[row] = self.pairs.target_text.decode(found.hypotheses[0].tokens)
        return texts

    def dev_loss(self, model: nn.Module) -> float:
        """A quarter of a batch at a time: its logits, in full precision, would be the most memory that a run ever takes."""
        quarters = (batch.shard(turn, 4) for batch in self.pairs.batches(self.dev) for turn in range(4))
        parts = [self.loss(model, quarter, 0.0) for quarter in quarters]
        return sum(float(part.total) for part in parts) / sum(part.tokens for part in parts)

    def evaluate(self, model: nn.Module) -> Score:
        assert isinstance(model, Seq2Seq)
        texts = self.outputs(model, self.dev, SearchOptions(strategy="greedy", nbest=1))
        first = self.dev[0]
        return Score(
            METRICS[self.recipe.metric](texts, self.dev), self.dev_loss(model), (first.source, first.references[0], texts[0])
        )

    def carried(self) -> dict[str, Tensor]:
        return {}

    def carry_on(self, model: nn.Module, tensors: dict[str, Tensor]) -> None:
        pass


def mean_bleu(texts: list[str], examples: list[Example]) -> float:
    """The mean over origins of each one's BLEU, so that no test set drowns another."""
    scores = []
    for origin in sorted({example.origin for example in examples}):
        rows = [(text, list(example.references)) for text, example in zip(texts, examples) if example.origin == origin]
        scores.append(metrics.bleu([text for text, _ in rows], [references for _, references in rows])["bleu"])
    return float(np.mean(scores))


def exact(texts: list[str], examples: list[Example]) -> float:
    return metrics.exact_match(texts, [example.references for example in examples])


def cider(texts: list[str], examples: list[Example]) -> float:
    return metrics.cider(texts, [example.references for example in examples])


METRICS = {"bleu": mean_bleu, "exact": exact, "cider": cider}


class TextTask:
    """One long text, read in passages side by side; the state goes on from window to window until the next <bos>."""

    def __init__(self, recipe: Recipe, dataset: Dataset, text: Tokenizer) -> None:
        self.recipe, self.text = recipe, text
        self.train_ids = self.ids(dataset.train.examples[0].references[0])
        self.dev_ids = self.ids(dataset.dev.examples[0].references[0])[:DEV_CHARACTERS]
        self.starts = openings(self.train_ids[1:], text.encode("\n").ids[0])
        self.state: LanguageState | None = None

    def ids(self, text: str) -> np.ndarray:
        return np.array([BOS, *self.text.encode(text).ids, EOS], dtype=np.int32)

    def epoch(self, number: int) -> Epoch[tuple[Tensor, Tensor]]:
        """Each epoch starts elsewhere in the text, so that windows do not always break at the same places."""
        recipe, text = self.recipe, self.train_ids[1:]
        shift = int(np.random.default_rng([recipe.seed, number]).integers(len(text)))
        return readings(text, self.starts, recipe.streams, recipe.window, shift)

    def shard(self, batch: tuple[Tensor, Tensor], rank: int, world: int) -> tuple[Tensor, Tensor]:
        if world > self.recipe.streams:
            raise InputError(f"{self.recipe.streams} streams are too few for {world} processes: --set streams={world} or more.")
        return batch[0][rank::world], batch[1][rank::world]

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor], smoothing: float) -> Loss:
        inputs, outputs = batch
        logits_BTV, state = model(inputs, None if inputs[0, 0] == BOS else self.state)
        self.state = detach(state)
        return Loss(token_loss(logits_BTV, outputs, smoothing), outputs.numel())

    def evaluate(self, model: nn.Module) -> Score:
        assert isinstance(model, LanguageModel)
        nats = self.nats(model, self.dev_ids)
        return Score(-nats, nats, ("", "", self.sample(model)))

    def nats(self, model: LanguageModel, ids: np.ndarray) -> float:
        """Of passages as long as those it learns from, each after <bos>."""
        state, total, tokens = None, 0.0, 0
        for inputs, outputs in windows(ids, -(-len(ids) // PASSAGE), 500):
            if state is None:
                inputs[:, 0] = BOS
            logits_BTV, state = model(inputs, state)
            total, tokens = total + float(token_loss(logits_BTV, outputs)), tokens + outputs.numel()
        return total / tokens

    def sample(self, model: LanguageModel) -> str:
        step, state = model.stepper()
        options = SearchOptions(strategy="sample", temperature=0.7, nbest=1)
        return self.text.decode(search(step, state, 1, options, [120], record=False)[0].hypotheses[0].tokens)

    def carried(self) -> dict[str, Tensor]:
        if self.state is None:
            return {}
        leaves = {
            f"{layer}.{name}": leaf for layer, state in enumerate(self.state.layers) for name, leaf in state._asdict().items()
        }
        return {**leaves, "position": self.state.position_K}

    def carry_on(self, model: nn.Module, tensors: dict[str, Tensor]) -> None:
        if tensors:
            assert isinstance(model, LanguageModel)
            blank = model.start(len(tensors["position"]))
            layers = tuple(
                type(state)(*(tensors[f"{layer}.{name}"] for name in state._fields)) for layer, state in enumerate(blank.layers)
            )
            self.state = LanguageState(layers, tensors["position"])


def detach(state: LanguageState) -> LanguageState:
    layers = tuple(type(layer)(*(leaf.detach() for leaf in layer)) for layer in state.layers)
    return LanguageState(layers, state.position_K)
