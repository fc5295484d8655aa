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

from seqdemo.config import EOS, PRECISIONS, ModelConfig, SearchOptions
from seqdemo.errors import InputError
from seqdemo.explain.replay import follow
from seqdemo.network.model import Seq2Seq
from seqdemo.network.packed import Packed
from seqdemo.network.transformer import Transformer
from seqdemo.records import to_json
from seqdemo.search import search
from tests.benchmarks.calibration import print_calibration

SOURCE, STEPS, REPEATS, BEAM = 12, 12, 7, 5
SHAPES = {
    "vocabulary 8,000, embedding 256, encoder 2x256, decoder 512, bilinear, readout 512 x 8,000": ModelConfig(
        target_vocabulary=8_000, source_vocabulary=8_000, decoder_hidden=512, score="bilinear", features=512
    ),
    "the translator's: vocabulary 6,000, tied, embedding 256, encoder 2x256, decoder 400, additive": ModelConfig(
        target_vocabulary=6_000, source_vocabulary=6_000, share_embeddings=True, tie_readout=True
    ),
}


EQUAL = "the translator's LSTM, and a Transformer of its size: 3 and 2 blocks of 256 units, 4 heads, 512 within"
TRANSFORMER = ModelConfig(
    target_vocabulary=6_000,
    source_vocabulary=6_000,
    share_embeddings=True,
    tie_readout=True,
    decoder="transformer",
    features=0,
    attention_heads=4,
    feed_forward=512,
    encoder_layers=3,
    decoder_layers=2,
)


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
    """CPU seconds of a call, repeated until `least` seconds have passed."""
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
        self.rates.append(2 * 320 * 1024 * 2048 / once(lambda: self.weight.times(self.x), 0.02))
        for part, numbers in self.numbers.items():
            self.bandwidths[part].append(self.bytes[part] / once(numbers.sum, 0.02))

    def floor(self, listed: list[Product]) -> float:
        rate = statistics.median(self.rates)
        bandwidth = {part: statistics.median(values) for part, values in self.bandwidths.items()}
        return sum(p.times * max(p.operations / rate, p.bytes / bandwidth[p.part]) for p in listed)


class Decoding:
    """A model with random weights that never ends a sentence before the limit."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        bare = (Transformer if config.is_transformer else Seq2Seq)(config).eval()
        with torch.no_grad():
            bare.readout.b[EOS] = -50.0
        self.model = bare.for_inference()

    def source(self, sentences: int) -> Tensor:
        return torch.randint(4, self.config.source_vocabulary, (sentences, SOURCE))

    @torch.inference_mode()
    def decode(self, sentences: int, beam: int, record: bool = True) -> tuple[int, ...]:
        source_BS = self.source(sentences)
        step, state = self.model.stepper(self.model.read(source_BS, torch.ones_like(source_BS, dtype=torch.bool)))
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
    lower_precisions(decoding, cases)


def beside_a_transformer(config: ModelConfig) -> None:
    """The time of an LSTM and of a Transformer of equal size, in turns."""
    models = {"LSTM": Decoding(config), "Transformer": Decoding(TRANSFORMER)}
    sizes = {name: sum(value.numel() for value in one.model.parameters()) for name, one in models.items()}
    print("  " + ", ".join(f"{name} of {size:,} parameters" for name, size in sizes.items()))
    for sentences in (1, 64):
        taken: dict[str, list[float]] = {name: [] for name in models}
        for _ in range(REPEATS):
            for name, one in models.items():
                taken[name].append(once(lambda: one.decode(sentences, BEAM), 0.05))  # noqa: B023
        told = ", ".join(f"{name} {1000 * statistics.median(values):.2f} ms" for name, values in taken.items())
        ratio = statistics.median(theirs / ours for ours, theirs in zip(taken["LSTM"], taken["Transformer"]))
        print(f"  batch {sentences}, beam {BEAM}: {told}, ratio {ratio:.2f}")


def lower_precisions(decoding: Decoding, cases: list[tuple[int, int]]) -> None:
    """The speed relative to float32, measured in turns. Precisions that the processor lacks are reported."""
    networks = {"float32": decoding.model}
    for precision in PRECISIONS[1:]:
        try:
            networks[precision] = decoding.model.for_inference(precision)
        except InputError as error:
            print(f"  {error}")
    for sentences, beam in cases:
        taken: dict[str, list[float]] = {name: [] for name in networks}
        for _ in range(REPEATS):
            for name, decoding.model in networks.items():
                taken[name].append(once(lambda: decoding.decode(sentences, beam), 0.05))  # noqa: B023
        ratios = {
            name: statistics.median(whole / low for whole, low in zip(taken["float32"], values))
            for name, values in taken.items()
            if name != "float32"
        }
        told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        print(f"  batch {sentences}, {'greedy' if beam == 1 else f'beam {beam}'}: times as fast as float32: {told}")
    decoding.model = networks["float32"]


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
    print_calibration()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, config in SHAPES.items():
        print(name)
        measure(config)
    print(EQUAL)
    beside_a_transformer(list(SHAPES.values())[-1])


if __name__ == "__main__":
    main()
