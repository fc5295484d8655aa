"""Search problems with known outcomes: tables as step functions, and enumeration of all outputs as their judge."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.records import SearchTree
from seqdemo.state import Memory

_DATA = json.loads((Path(__file__).parent / "data" / "decoding_cases.json").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = _DATA["cases"]
PROCESSORS: list[dict[str, Any]] = _DATA["processors"]

BOS, EOS = 1, 2

Lookup = Callable[[tuple[int, ...]], Sequence[float]]  # what was read, <bos> first -> log p of each token
Output = tuple[float, float, tuple[int, ...]]  # score, total, tokens


# --------------------------------------------------------------------------------------------------------- worked examples


def lookup_step(lookup: Lookup, dtype: torch.dtype = torch.float64) -> tuple[Any, Tensor]:
    """A step function for one sentence whose state is what each row has read."""

    def step(tokens_K: Tensor, read_KT: Tensor) -> tuple[Tensor, Tensor]:
        read_KT = torch.cat([read_KT, tokens_K[:, None]], 1)
        return torch.tensor([list(lookup(tuple(row))) for row in read_KT.tolist()], dtype=dtype), read_KT

    return step, torch.empty((1, 0), dtype=torch.long)


def case_lookup(case: dict[str, Any]) -> Lookup:
    model, size = case["model"], case["vocab_size"]

    def row(read: tuple[int, ...]) -> Any:
        table, written = model["table"], read[1:]
        if model["kind"] == "markov":
            return table[read[-1]]
        if model["kind"] == "markov_step":  # a table for each step, over and over
            return table[len(written) % len(table)][read[-1]]
        if model["kind"] == "step":
            return table[len(written)] if len(written) < len(table) else model["default"]
        return table.get(" ".join(map(str, written)), model["default"])

    def lookup(read: tuple[int, ...]) -> list[float]:
        values = row(read)
        if isinstance(values, dict):
            nothing = 0.0 if model["scale"] == "prob" else -math.inf
            values = [values.get(str(token), nothing) for token in range(size)]
        if model["scale"] == "prob":
            return [math.log(value) if value > 0 else -math.inf for value in values]
        return [-math.inf if value is None else value for value in values]

    return lookup


# ------------------------------------------------------------------------------------------------------------ random tables


class TableState(NamedTuple):
    written_K: Tensor
    memory: Memory  # states_BSH: the table of each sentence, (steps * tokens) x tokens
    attended_KS: Tensor


class Tables:
    """One random table a sentence, log p of a token given the step and the token before; and attention over 4 positions, the
    last of them padding in every other sentence. `banned` is the share of impossible tokens, `dead` that of tokens after
    which nothing is possible; with `levels`, ties abound."""

    SOURCE = 4

    def __init__(
        self, seed: int, sentences: int, vocabulary: int, steps: int, levels: int = 0, banned: float = 0.0, dead: float = 0.0
    ) -> None:
        torch.manual_seed(seed)
        logits = torch.randn(sentences, steps, vocabulary, vocabulary) * 1.5
        if levels:
            logits = torch.randint(levels, logits.shape).float()
        allowed = torch.rand(logits.shape) >= banned
        allowed[..., EOS] = True
        logp = logits.masked_fill(~allowed, -math.inf).log_softmax(-1)
        self.logp = logp.masked_fill(torch.rand(logp.shape[:-1])[..., None] < dead, -math.inf)
        self.weights = torch.rand(sentences, steps, vocabulary, self.SOURCE)
        self.mask = torch.ones(sentences, self.SOURCE, dtype=torch.bool)
        self.mask[1::2, -1] = False
        self.vocabulary, self.steps = vocabulary, steps

    def step(self, tokens_K: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        sentences = len(state.memory.mask_BS)
        width = len(tokens_K) // sentences
        place_K = state.written_K.clamp(max=self.steps - 1) * self.vocabulary + tokens_K
        row_BW = place_K.view(sentences, width)
        both = state.memory.states_BSH.gather(1, row_BW[:, :, None].expand(-1, -1, self.vocabulary + self.SOURCE)).flatten(0, 1)
        logp_KV, weights_KS = both[:, : self.vocabulary], both[:, self.vocabulary :]
        return logp_KV, TableState(state.written_K + 1, state.memory, state.attended_KS + weights_KS)

    def start(self, sentences: Sequence[int] | None = None) -> TableState:
        chosen = torch.tensor(range(len(self.logp)) if sentences is None else sentences, dtype=torch.long)
        both_BSH = torch.cat([self.logp, self.weights], -1)[chosen].flatten(1, 2)
        memory = Memory(both_BSH, self.mask[chosen], both_BSH[:, 0])
        return TableState(torch.zeros(len(chosen), dtype=torch.long), memory, torch.zeros(len(chosen), self.SOURCE))

    def lookup(self, sentence: int = 0) -> Lookup:
        rows = self.logp[sentence].double().tolist()
        return lambda read: rows[min(len(read), self.steps) - 1][read[-1]]

    def coverage(self, tokens: Sequence[int], sentence: int = 0) -> float:
        """sum_j log min(1, attended_j) over the real positions."""
        attended = [0.0] * self.SOURCE
        for place, token in enumerate((BOS, *tokens[:-1])):
            weights = self.weights[sentence, min(place, self.steps - 1), token].tolist()
            attended = [have + weight for have, weight in zip(attended, weights)]
        return sum(math.log(min(1.0, have)) for have, real in zip(attended, self.mask[sentence].tolist()) if real)


# ------------------------------------------------------------------------------------------------------------------- judges


def penalty(length: int, options: SearchOptions) -> float:
    if options.length_norm == "power":
        return float(length) ** options.alpha
    return float(((5 + length) / 6) ** options.alpha) if options.length_norm == "gnmt" else 1.0


def repeats(tokens: Sequence[int], n: int) -> bool:
    grams = [tuple(tokens[place : place + n]) for place in range(len(tokens) - n + 1)]
    return n > 0 and len(set(grams)) < len(grams)


def total_of(lookup: Lookup, tokens: Sequence[int], bos: int = BOS) -> float:
    return math.fsum(lookup((bos, *tokens[:place]))[token] for place, token in enumerate(tokens))


def all_outputs(
    lookup: Lookup, vocabulary: int, limit: int, options: SearchOptions, coverage: Callable[[Sequence[int]], float] | None = None
) -> list[Output]:
    """Every output the options allow, best first: those that end within the limit and, unless they are forced to, those cut."""
    found = []
    inner_tokens = [token for token in range(vocabulary) if token != EOS]
    for length in range(1, limit + 1):
        ends = range(vocabulary) if length == limit and options.at_limit == "cut" else (EOS,)
        for tokens in ((*inner, end) for inner in itertools.product(inner_tokens, repeat=length - 1) for end in ends):
            if repeats(tokens, options.no_repeat) or (tokens[-1] == EOS and length <= options.min_length):
                continue
            total = total_of(lookup, tokens)
            extra = options.coverage * coverage(tokens) if coverage else 0.0
            if total > -math.inf:
                found.append((total / penalty(length, options) + extra, total, tokens))
    return sorted(found, key=lambda output: (-output[0], output[2]))


def check_tree(tree: SearchTree, eos: int = EOS) -> None:
    """Properties of every tree: parents come first and were kept, totals add up, only pruned nodes have a shortfall."""
    for node in tree:
        parent = tree[node.parent] if node.parent >= 0 else None
        assert node.parent < node.index and node.step == (parent.step + 1 if parent else 0)
        assert parent is None or parent.fate == "kept"
        assert math.isclose(node.total, (parent.total if parent else 0.0) + node.logp, abs_tol=1e-6)
        assert math.isfinite(node.total) and (node.fate != "finished" or node.token == eos)
        assert node.missed >= 0 if node.fate == "pruned" else node.missed == 0
    assert list(tree.step) == sorted(tree.step)
