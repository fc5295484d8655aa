"""What search itself costs, and what recording the tree adds: CPU time of one thread, median, ms a call.

The step is a stand-in with a model's cost: one 5,120-wide product for the cell, one readout over 8,000 tokens.
`bare` is that step alone, called as often with as many rows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from seqdemo.config import SearchOptions
from seqdemo.search import search
from tests.benchmarks.calibration import print_calibration

VOCABULARY, HIDDEN, GATES, STEPS, REPEATS = 8_000, 512, 5_120, 12, 7


class State(NamedTuple):
    h_KH: Tensor
    c_KH: Tensor


class Step:
    """Decodes at a model's speed; <eos> is kept away so that every search takes all its steps."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.cell = torch.randn(GATES, HIDDEN) / HIDDEN**0.5
        self.readout = torch.randn(VOCABULARY, HIDDEN) / HIDDEN**0.5
        self.bias = torch.zeros(VOCABULARY).index_fill(0, torch.tensor([2]), -50.0)
        self.embed = torch.randn(VOCABULARY, HIDDEN)
        self.rows = 0

    def __call__(self, tokens_K: Tensor, state: State) -> tuple[Tensor, State]:
        gates = F.linear(self.embed[tokens_K] + state.h_KH, self.cell).tanh()
        h_KH = gates[:, :HIDDEN] * 2 + 0.1 * state.c_KH
        return F.log_softmax(F.linear(h_KH, self.readout, self.bias), 1), State(h_KH, gates[:, HIDDEN : 2 * HIDDEN])

    def start(self, rows: int) -> State:
        return State(torch.zeros(rows, HIDDEN), torch.zeros(rows, HIDDEN))


def timed(*calls: Callable[[], object]) -> list[float]:
    """Median CPU milliseconds of each, interleaved so that a busy moment hits all alike."""
    seconds: list[list[float]] = [[] for _ in calls]
    for repeat in range(REPEATS + 1):
        for call, taken in zip(calls, seconds):
            began = time.process_time()
            call()
            if repeat:
                taken.append(time.process_time() - began)
    return [1000 * statistics.median(taken) for taken in seconds]


def measure(name: str, sentences: int, steps: int, options: SearchOptions) -> None:
    step = Step()
    width = {"greedy": 1, "sample": options.samples}.get(options.strategy, options.beam)

    @torch.inference_mode()
    def bare() -> None:
        state = step.start(sentences * width)
        tokens_K = torch.ones(len(state.h_KH), dtype=torch.long)
        for _ in range(steps):
            _, state = step(tokens_K, state)

    def decode(record: bool) -> None:
        search(step, step.start(sentences), sentences, options, [steps] * sentences, record=record)

    plain, without, with_tree = timed(bare, lambda: decode(False), lambda: decode(True))
    share = (with_tree / without - 1) * 100
    print(f"{name:<24} bare {plain:8.1f}   search {without:8.1f}   recording {with_tree:8.1f}   recording adds {share:5.1f} %")


def main() -> None:
    print_calibration()
    torch.set_num_threads(1)
    for sentences in (1, 64):
        measure(f"{sentences} x greedy", sentences, STEPS, SearchOptions(strategy="greedy"))
        measure(f"{sentences} x beam 5", sentences, STEPS, SearchOptions())
        measure(f"{sentences} x beam 5, free", sentences, STEPS, SearchOptions(finished="free", early="never"))
    measure("1 x beam 100, 60 steps", 1, 60, SearchOptions(beam=100))
    measure("1 x 10 samples", 1, STEPS, SearchOptions(strategy="sample", samples=10))
    measure("1 x 100 samples", 1, STEPS, SearchOptions(strategy="sample", samples=100))


if __name__ == "__main__":
    main()
