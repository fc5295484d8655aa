"""Decoding against what the machine can do at best: CPU time of one thread, median of 7, float32, the tree recorded.

The floor of a call is the sum over its products of max(operations / product rate, bytes / bandwidth), where rate and
bandwidth are measured in the same run, in between, on weights of the size the encoder and the decoder really have.

    python -m tests.benchmarks.decoding_speed
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from seqdemo.config import EOS, ModelConfig, SearchOptions
from seqdemo.model import Seq2Seq
from seqdemo.products import Packed
from seqdemo.records import to_json
from seqdemo.search import search
from seqdemo.trace import follow

SOURCE, STEPS, REPEATS, BEAM = 12, 12, 7, 5
SHAPES = {
    "vocabulary 8,000, embedding 256, encoder 2x256, decoder 512, bilinear, readout 512 x 8,000": ModelConfig(
        target_vocabulary=8_000, source_vocabulary=8_000, decoder_hidden=512, score="bilinear", features=512
    ),
    "the translator's: vocabulary 6,000, tied, embedding 256, encoder 2x256, decoder 400, additive": ModelConfig(
        target_vocabulary=6_000, source_vocabulary=6_000, share_embeddings=True, tie_readout=True
    ),
}


class Product(NamedTuple):
    """`times` products of `rows` x `inputs` by `inputs` x `outputs`."""

    part: str  # encoder | decoder: whose weights lie in the cache together
    rows: int
    inputs: int
    outputs: int
    times: int = 1

    @property
    def operations(self) -> int:
        return 2 * self.rows * self.inputs * self.outputs

    @property
    def bytes(self) -> int:
        return 4 * (self.inputs * self.outputs + self.rows * (self.inputs + self.outputs))


def encoder_products(config: ModelConfig, rows: int) -> Iterator[Product]:
    gates = 4 * config.encoder_hidden
    yield Product("encoder", rows * SOURCE, config.embedding, gates, 2)
    yield Product("encoder", rows, config.encoder_hidden, gates, 2 * SOURCE)
    yield Product("encoder", rows, config.memory_size, config.decoder_hidden)
    yield Product("encoder", rows * SOURCE, config.memory_size, key_size(config))


def step_products(config: ModelConfig, rows: int, times: int) -> Iterator[Product]:
    gates = 4 * config.decoder_hidden
    yield Product("decoder", rows, config.features, gates, times)
    yield Product("decoder", rows, config.decoder_hidden, gates, times)
    if config.score == "additive":
        yield Product("decoder", rows, config.decoder_hidden, config.attention, times)
    yield Product("decoder", rows, config.readout_input, config.features, times)
    yield Product("decoder", rows, config.features, config.target_vocabulary, times)


def key_size(config: ModelConfig) -> int:
    return config.attention if config.score == "additive" else config.decoder_hidden


def products(config: ModelConfig, sentences: int, beam: int) -> list[Product]:
    first = step_products(config, sentences, 1)
    return [*encoder_products(config, sentences), *first, *step_products(config, sentences * beam, STEPS - 1)]


def once(call: Callable[[], object], least: float = 0.0) -> float:
    """CPU seconds of a call, made again until `least` seconds have passed."""
    began, calls = time.process_time(), 0
    while not calls or time.process_time() - began < least:
        call()
        calls += 1
    return (time.process_time() - began) / calls


class Machine:
    """Operations and bytes a second, as measured now."""

    def __init__(self, config: ModelConfig) -> None:
        self.weight, self.x = Packed(torch.randn(2048, 1024), past=False), torch.randn(320, 1024)
        self.bytes = {
            part: sum(4 * p.inputs * p.outputs for p in products(config, 1, 1) if p.part == part and p.times >= STEPS - 1)
            for part in ("encoder", "decoder")
        }
        self.numbers = {part: torch.randn(size // 4) for part, size in self.bytes.items()}
        self.rates: list[float] = []
        self.bandwidths: dict[str, list[float]] = {part: [] for part in self.bytes}

    def measure(self) -> None:
        self.rates.append(2 * 320 * 1024 * 2048 / once(lambda: self.weight.linear(self.x), 0.02))
        for part, numbers in self.numbers.items():
            self.bandwidths[part].append(self.bytes[part] / once(numbers.sum, 0.02))

    def floor(self, listed: list[Product]) -> float:
        rate = statistics.median(self.rates)
        bandwidth = {part: statistics.median(values) for part, values in self.bandwidths.items()}
        return sum(p.times * max(p.operations / rate, p.bytes / bandwidth[p.part]) for p in listed)


class Decoding:
    """One model of random weights that never ends a sentence of its own accord."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.model = Seq2Seq(config).eval()
        with torch.no_grad():
            self.model.readout.b[EOS] = -50.0

    def source(self, sentences: int) -> Tensor:
        return torch.randint(4, self.config.source_vocabulary, (sentences, SOURCE))

    @torch.inference_mode()
    def decode(self, sentences: int, beam: int, record: bool = True) -> tuple[int, ...]:
        source_BS = self.source(sentences)
        step, state = self.model.stepper(self.model.encode(source_BS, torch.ones_like(source_BS, dtype=torch.bool)))
        options = SearchOptions(strategy="greedy") if beam == 1 else SearchOptions(beam=beam)
        return search(step, state, sentences, options, [STEPS] * sentences, record=record)[0].hypotheses[0].tokens


def measure(config: ModelConfig) -> None:
    decoding, machine = Decoding(config), Machine(config)
    cases = [(sentences, beam) for sentences in (1, 64) for beam in (1, BEAM)]
    seconds: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    for repeat in range(REPEATS + 1):
        for sentences, beam in cases:
            machine.measure()
            taken = once(lambda sentences=sentences, beam=beam: decoding.decode(sentences, beam), 0.05)  # type: ignore[misc]
            if repeat:
                seconds[sentences, beam].append(taken)
    print(f"  product rate {statistics.median(machine.rates) / 1e9:.0f} GFLOP/s", end="")
    for part, values in machine.bandwidths.items():
        print(f", {machine.bytes[part] / 1e6:.0f} MB of {part} weights at {statistics.median(values) / 1e9:.0f} GB/s", end="")
    print()
    for (sentences, beam), taken in seconds.items():
        floor, median = machine.floor(products(config, sentences, beam)), statistics.median(taken)
        name = f"batch {sentences}, {'greedy' if beam == 1 else f'beam {beam}'}"
        print(f"  {name:<18} {1000 * median:8.2f} ms   floor {1000 * floor:8.2f} ms   ratio {median / floor:5.2f}")
    explain(decoding)


def explain(decoding: Decoding) -> None:
    """A replay against the greedy pass, and the bytes a page gets."""
    tokens = decoding.decode(1, 1)
    source = decoding.source(1)[0].tolist()
    replays, passes, dumps = [], [], []
    for _ in range(REPEATS):
        replays.append(once(lambda: follow(decoding.model, source, tokens), 0.05))
        passes.append(once(lambda: decoding.decode(1, 1), 0.05))
    trace = follow(decoding.model, source, tokens)
    dumps = [once(lambda: to_json(trace)) for _ in range(REPEATS)]
    replay, greedy, dump = (1000 * statistics.median(values) for values in (replays, passes, dumps))
    print(f"  replay with every gate {replay:.2f} ms against a greedy pass {greedy:.2f} ms; to JSON {dump:.2f} ms")


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, config in SHAPES.items():
        print(name)
        measure(config)


if __name__ == "__main__":
    main()
