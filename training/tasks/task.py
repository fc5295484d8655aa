"""The task of a model as the training loop uses it: batches, loss, score on dev."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import BOS, EOS, PAD, SearchOptions
from seqdemo.errors import InputError
from seqdemo.network.coders import DecoderState
from seqdemo.network.model import Network
from seqdemo.search import search
from seqdemo.text import Tokenizer
from training.data.batches import PASSAGE, Batch, Epoch, Pairs, openings, readings, windows
from training.data.records import Dataset, Example
from training.measure import metrics
from training.recipes import Recipe
from training.tasks.loss import LOOKS, entropy, guessing, looks, returns, said_logp, token_loss, unevenness
from training.tasks.reward import DRAWS, Rewards, reward_loss

MOVING = 0.9  # how much of the baseline stays at each batch
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

    def loss(self, model: Network, batch: Any, smoothing: float) -> Loss: ...

    def shard(self, batch: Any, rank: int, world: int) -> Any: ...

    def evaluate(self, model: Network) -> Score: ...

    def carried(self) -> dict[str, Tensor]: ...

    def carry_on(self, model: Network, tensors: dict[str, Tensor]) -> None: ...


class PairTask:
    """Pairs: translation, transliteration, captions, the toy."""

    def __init__(self, recipe: Recipe, dataset: Dataset, pairs: Pairs) -> None:
        self.recipe, self.pairs = recipe, pairs
        self.train = [example for example in dataset.train for _ in range(recipe.weigh.get(example.origin, 1))]
        self.dev = dataset.dev.sample(recipe.dev_size, seed=0).examples
        self.done = 0.0  # share of the training
        self.baseline: float | None = None  # of hard attention: the mean log probability of a word, moving

    def epoch(self, number: int) -> Epoch[Batch]:
        return self.pairs.batches(self.train, number)

    def shard(self, batch: Batch, rank: int, world: int) -> Batch:
        return batch.shard(rank, world)

    def loss(self, model: Network, batch: Batch, smoothing: float) -> Loss:
        target_in_BT = batch.target_in_BT
        if self.recipe.rewarded and self.done >= 1 - self.recipe.rewarded and model.training:
            return Loss(*reward_loss(model, batch.shard(0, DRAWS), self.rewards))  # draws about as many captions as the batch has
        if self.recipe.sampled and model.training:
            target_in_BT = self.own_guesses(model, batch)
        if model.config.hard and model.training:
            return self.hard_loss(model, batch, target_in_BT, smoothing)
        spread = self.recipe.spread if model.training and model.config.has_attention else 0.0
        taught = model.teach(None, None, target_in_BT, keep=("cross",) if spread else (), state=self.begun(model, batch))
        total = token_loss(model.readout(taught.features_BTR), batch.target_out_BT, smoothing)
        for weights_BTS in taught.seen.values():
            total = total + spread / len(taught.seen) * unevenness(weights_BTS, batch.target_out_BT != PAD)
        return Loss(total, batch.tokens)

    def begun(self, model: Network, batch: Batch) -> Any:
        """The state before <bos>. In training the summaries of some sources are hidden, so that the decoder learns to look at
        their states."""
        memory, hidden = model.read(batch.source, batch.mask_BS), self.recipe.summary_dropout
        assert memory is not None
        if hidden and model.training:
            shown_B1 = torch.rand(len(batch.source), 1, device=batch.source.device) >= hidden
            memory = memory._replace(summary_BH=memory.summary_BH * shown_B1)
        return model.start(memory, len(batch.source))

    def hard_loss(self, model: Network, batch: Batch, target_in_BT: Tensor, smoothing: float) -> Loss:
        """-log p of the words under the positions that were drawn; REINFORCE with a moving baseline, which trains the positions;
        a bonus for entropy, and a penalty on uneven attention."""
        recipe, said_BT = self.recipe, batch.target_out_BT != PAD
        taught = model.teach(None, None, target_in_BT, keep=LOOKS, state=self.begun(model, batch))
        logits_BTV = model.readout(taught.features_BTR)
        weights_BTS, chosen_BTS, drawn_BT = looks(taught.seen)
        logp_BT = said_logp(logits_BTV, batch.target_out_BT)
        usual = float((logp_BT * said_BT).sum() / said_BT.sum())
        self.baseline = usual if self.baseline is None else MOVING * self.baseline + (1 - MOVING) * usual
        return_BT = returns(logp_BT, self.baseline, said_BT)
        total = token_loss(logits_BTV, batch.target_out_BT, smoothing)
        total = total + recipe.reinforce * guessing(weights_BTS, chosen_BTS, drawn_BT & said_BT, return_BT)
        total = total - recipe.entropy * entropy(weights_BTS, said_BT)
        return Loss(total + recipe.spread * unevenness(weights_BTS, said_BT), batch.tokens)

    @cached_property
    def rewards(self) -> Rewards:
        return Rewards(self.train, self.pairs.target_text)

    def own_guesses(self, model: Network, batch: Batch) -> Tensor:
        """Scheduled sampling: some input words are replaced by the model's own guesses."""
        with torch.no_grad():
            taught = model.teach(batch.source, batch.mask_BS, batch.target_in_BT)
            said_BT = model.readout(taught.features_BTR).argmax(2)
        replaced_BT = torch.rand(batch.target_in_BT.shape, device=said_BT.device) < self.recipe.sampled * self.done
        replaced_BT[:, 0] = False
        return torch.where(replaced_BT, said_BT.roll(1, 1), batch.target_in_BT)

    def outputs(self, model: Network, examples: list[Example], options: SearchOptions, rows: int = 100) -> list[str]:
        sources = self.pairs.sources(examples)
        order = np.argsort(sources.lengths, kind="stable")
        texts = [""] * len(examples)
        for start in range(0, len(order), rows):
            group = order[start : start + rows].tolist()
            step, state = model.stepper(model.read(*sources.stack(group)))
            limits = [self.pairs.limit(int(sources.lengths[row])) for row in group]
            for row, found in zip(group, search(step, state, len(group), options, limits, record=False)):
                texts[row] = self.pairs.target_text.decode(found.hypotheses[0].tokens)
        return texts

    def dev_loss(self, model: Network) -> float:
        """Compute a quarter of a batch at a time, because the logits of a whole batch in full precision would be a run's peak of
        memory."""
        quarters = (batch.shard(turn, 4) for batch in self.pairs.batches(self.dev) for turn in range(4))
        parts = [self.loss(model, quarter, 0.0) for quarter in quarters]
        return sum(float(part.total) for part in parts) / sum(part.tokens for part in parts)

    def evaluate(self, model: Network) -> Score:
        texts = self.outputs(model, self.dev, SearchOptions(strategy="greedy", nbest=1))
        first = self.dev[0]
        return Score(
            METRICS[self.recipe.metric](texts, self.dev), self.dev_loss(model), (first.source, first.references[0], texts[0])
        )

    def carried(self) -> dict[str, Tensor]:
        return {} if self.baseline is None else {"baseline": torch.tensor(self.baseline, dtype=torch.float64)}

    def carry_on(self, model: Network, tensors: dict[str, Tensor]) -> None:
        if tensors:
            self.baseline = float(tensors["baseline"])


def mean_bleu(texts: list[str], examples: list[Example]) -> float:
    """The mean of the BLEU of each origin, so that all test sets have equal weight."""
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
        self.state: DecoderState | None = None

    def ids(self, text: str) -> np.ndarray:
        return np.array([BOS, *self.text.encode(text).ids, EOS], dtype=np.int32)

    def epoch(self, number: int) -> Epoch[tuple[Tensor, Tensor]]:
        """Each epoch starts at another place in the text, so that windows do not always break at the same places."""
        recipe, text = self.recipe, self.train_ids[1:]
        shift = int(np.random.default_rng([recipe.seed, number]).integers(len(text)))
        return readings(text, self.starts, recipe.streams, recipe.window, shift)

    def shard(self, batch: tuple[Tensor, Tensor], rank: int, world: int) -> tuple[Tensor, Tensor]:
        if world > self.recipe.streams:
            raise InputError(f"{self.recipe.streams} streams are too few for {world} processes: --set streams={world} or more.")
        return batch[0][rank::world], batch[1][rank::world]

    def loss(self, model: Network, batch: tuple[Tensor, Tensor], smoothing: float) -> Loss:
        inputs, outputs = batch
        taught = model.teach(None, None, inputs, state=None if inputs[0, 0] == BOS else self.state)
        self.state = detach(taught.state)
        return Loss(token_loss(model.readout(taught.features_BTR), outputs, smoothing), outputs.numel())

    def evaluate(self, model: Network) -> Score:
        nats = self.nats(model, self.dev_ids)
        return Score(-nats, nats, ("", "", self.sample(model)))

    def nats(self, model: Network, ids: np.ndarray) -> float:
        """Nats per character, of passages as long as those of training, each after <bos>."""
        state, total, tokens = None, 0.0, 0
        for inputs, outputs in windows(ids, -(-len(ids) // PASSAGE), 500):
            if state is None:
                inputs[:, 0] = BOS
            taught = model.teach(None, None, inputs, state=state)
            total, state = total + float(token_loss(model.readout(taught.features_BTR), outputs)), taught.state
            tokens += outputs.numel()
        return total / tokens

    def sample(self, model: Network) -> str:
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

    def carry_on(self, model: Network, tensors: dict[str, Tensor]) -> None:
        if tensors:
            blank = model.start(rows=len(tensors["position"]))
            layers = tuple(
                type(state)(*(tensors[f"{layer}.{name}"] for name in state._fields)) for layer, state in enumerate(blank.layers)
            )
            self.state = blank._replace(layers=layers, position_K=tensors["position"])


def detach(state: DecoderState) -> DecoderState:
    return state._replace(layers=tuple(type(layer)(*(leaf.detach() for leaf in layer)) for layer in state.layers))
