"""What a click costs: the replay of a hypothesis with every gate against the greedy pass that found it, and its way to a page.

CPU time of one thread, median of 7, interleaved. To reach: a replay within one greedy pass; under 5 ms as text.

    python -m tests.benchmarks.replay_speed
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable

import torch

from seqdemo.config import ModelConfig
from seqdemo.explain.replay import follow
from seqdemo.figures.payloads import trace_payload
from seqdemo.records import from_json, to_json
from tests.benchmarks.calibration import print_calibration
from tests.benchmarks.decoding_speed import REPEATS, STEPS, Decoding, once

DECODERS = ("context-once", "context-each", "attend-before", "attend-after")


def medians(*calls: Callable[[], object]) -> list[float]:
    """Milliseconds of each, taken in turns."""
    taken = [[once(call, 0.03) for call in calls] for _ in range(REPEATS + 1)][1:]
    return [1000 * statistics.median(column) for column in zip(*taken)]


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def measure(decoder: str) -> None:
    decoding = Decoding(ModelConfig(6_000, 6_000, decoder=decoder, share_embeddings=True, tie_readout=True))
    source, tokens = decoding.source(1)[0].tolist(), decoding.decode(1, 1)
    trace = follow(decoding.model, source, tokens)
    replay, recorded, bare = medians(
        lambda: follow(decoding.model, source, tokens),
        lambda: decoding.decode(1, 1),
        lambda: decoding.decode(1, 1, record=False),
    )
    stored = json.dumps(to_json(trace))
    ways = {
        "record -> text": lambda: json.dumps(to_json(trace)),
        "text -> record": lambda: from_json(json.loads(stored)),
        "payload -> text": lambda: json.dumps(trace_payload(trace, tokens, "all")),
    }
    numbers = sum(values.size for values in trace.gates.values())
    print(f"{decoder}: {STEPS} steps, {len(trace.gates)} gates, {numbers:,} numbers")
    print(f"  greedy pass {recorded:6.2f} ms ({bare:.2f} without its tree)   replay {replay:6.2f} ms   {verdict(replay <= bare)}")
    for name, cost in zip(ways, medians(*ways.values())):
        print(f"  {name:<16} {cost:6.2f} ms   {verdict(cost < 5)}")
    print(f"  {len(stored) / 1e3:.0f} kB as a record, {len(ways['payload -> text']()) / 1e3:.0f} kB as a payload")  # type: ignore[arg-type]


def main() -> None:
    print_calibration()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for decoder in DECODERS:
        measure(decoder)


if __name__ == "__main__":
    main()
