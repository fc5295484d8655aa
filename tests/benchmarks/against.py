"""The rows of the benchmarks in this tree and in another one, taken in turns in one run: how many times as fast this tree is.

Each tree works in a process of its own, with its own benchmarks; only names that both know are used. A ratio above 1 says that
this tree is faster; it is the median over the rounds of the ratios within a round.

    git worktree add ../old <commit>
    python -m tests.benchmarks --against ../old [name ...]
"""

from __future__ import annotations

import ctypes
import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROUNDS, SECONDS = 9, 0.3  # of each row; a round takes at least so many CPU seconds in each tree
Rows = dict[str, Callable[[], object]]
INPUTS = 20  # of the exact searches one by one
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's mallopt


def decoding_rows(benchmark: Any) -> Rows:
    rows: Rows = {}
    for name, config in benchmark.SHAPES.items():
        decoding = benchmark.Decoding(config)
        for sentences in (1, 64):
            for beam in (1, benchmark.BEAM):
                what = f"{name.split(',')[0]}: batch {sentences}, {'greedy' if beam == 1 else f'beam {beam}'}"
                rows[what] = lambda decoding=decoding, sentences=sentences, beam=beam: decoding.decode(sentences, beam)  # type: ignore[misc]
    return rows


def replay_rows(benchmark: Any) -> Rows:
    from seqdemo.config import ModelConfig

    rows: Rows = {}
    for decoder in benchmark.DECODERS:
        decoding = benchmark.Decoding(ModelConfig(6_000, 6_000, decoder=decoder, share_embeddings=True, tie_readout=True))
        source, tokens = decoding.source(1)[0].tolist(), decoding.decode(1, 1)
        rows[f"{decoder}: replay"] = lambda model=decoding.model, source=source, tokens=tokens: benchmark.follow(  # type: ignore[misc]
            model, source, tokens
        )
        rows[f"{decoder}: greedy"] = lambda decoding=decoding: decoding.decode(1, 1)  # type: ignore[misc]
    return rows


def search_rows(benchmark: Any) -> Rows:
    from seqdemo.config import SearchOptions

    step, rows = benchmark.Step(), {}
    kinds = {
        "greedy": SearchOptions(strategy="greedy"),
        "beam 5": SearchOptions(),
        "beam 5, free": SearchOptions(finished="free", early="never"),
    }
    cases = {f"{number} x {name}": (number, benchmark.STEPS, kind) for number in (1, 64) for name, kind in kinds.items()}
    cases["1 x beam 100, 60 steps"] = 1, 60, SearchOptions(beam=100)
    for samples in (10, 100):
        cases[f"1 x {samples} samples"] = 1, benchmark.STEPS, SearchOptions(strategy="sample", samples=samples)

    def searched(number: int, steps: int, options: SearchOptions, record: bool) -> Callable[[], object]:
        return lambda: benchmark.search(step, step.start(number), number, options, [steps] * number, record=record)

    for name, case in cases.items():
        for record in (False, True):
            rows[f"{name}{', recorded' if record else ''}"] = searched(*case, record)
    return rows


def exact_rows(benchmark: Any) -> Rows:
    rows: Rows = {}
    for name, text in benchmark.INPUTS.items():
        if name in benchmark.names():
            checkpoint = benchmark.load(name)
            inputs = text.replace("\n", "|").replace("  ", "").strip("|").split("|")[: benchmark.REPEATS]
            prompts = [benchmark.prepare(checkpoint, text) for text in inputs]
            rows[f"{name}: one by one"] = (
                lambda checkpoint=checkpoint, prompts=prompts: [  # type: ignore[misc]
                    benchmark.find(checkpoint, [prompt], benchmark.USUAL) for prompt in prompts[:INPUTS]
                ]
            )
            rows[f"{name}: all at once"] = lambda checkpoint=checkpoint, prompts=prompts: benchmark.find(  # type: ignore[misc]
                checkpoint, prompts, benchmark.USUAL
            )
    return rows


def training_rows(benchmark: Any) -> Rows:
    training = benchmark.Training(benchmark.RECIPES["translator-de-en"])
    batch = benchmark.batch_of(training.config, training.recipe.tokens)
    return {"a step of the translator": lambda: training.step(batch)}


ROWS: dict[str, Callable[[Any], Rows]] = {
    "decoding_speed": decoding_rows,
    "exact_speed": exact_rows,
    "replay_speed": replay_rows,
    "search_recording": search_rows,
    "training_speed": training_rows,
}


def keep_memory() -> None:
    """Keep what is freed. Otherwise glibc may give large pieces back and fetch them again page by page; whether it does depends
    on what the process did before, which would favour one of the trees."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)
    for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1)):
        mallopt(option, value)


def work(name: str) -> None:
    """The process of one tree: for each given row and number of seconds it prints the CPU seconds of a call."""
    import torch

    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = ROWS[name](importlib.import_module(f"tests.benchmarks.{name}"))
    print(json.dumps(list(rows)), flush=True)
    for line in sys.stdin:
        row, least = json.loads(line)
        began, calls = time.process_time(), 0
        while not calls or time.process_time() - began < least:
            rows[row]()
            calls += 1
        print(json.dumps((time.process_time() - began) / calls), flush=True)


class Tree:
    """One tree at work on one benchmark."""

    def __init__(self, folder: Path, name: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), name]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rows: list[str] = self.read()

    def read(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"The benchmark ended with code {self.process.wait()} in {self.process.args}.")
        return json.loads(line)

    def seconds(self, row: str, least: float) -> float:
        assert self.process.stdin
        print(json.dumps([row, least]), file=self.process.stdin, flush=True)
        return float(self.read())

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def ratios(name: str, other: Path, rounds: int = ROUNDS, least: float = SECONDS) -> Iterator[tuple[str, float, float, float]]:
    """For each row, the seconds of a call here and there, and how many times as fast it is here."""
    here, there = Tree(Path(__file__).resolve().parents[2], name), Tree(other, name)
    for row in here.rows:
        if row in there.rows:
            for tree in (here, there):
                tree.seconds(row, 0.0)
            taken = [(here.seconds(row, least), there.seconds(row, least)) for _ in range(rounds)]
            mine, theirs = (statistics.median(column) for column in zip(*taken))
            yield row, mine, theirs, statistics.median(there / here for here, there in taken)
    here.end()
    there.end()


def compare(name: str, other: Path) -> None:
    if name not in ROWS:
        print("  has no rows that two trees can be compared by")
        return
    for row, mine, theirs, ratio in ratios(name, other):
        print(f"  {row:<44} {1000 * mine:9.2f} ms   there {1000 * theirs:9.2f} ms   {ratio:5.2f} times as fast", flush=True)


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())
    work(sys.argv[1])
