"""Where a model looks while it learns: the alignments of the same few dev examples at every evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from seqdemo.config import SearchOptions
from seqdemo.explain.replay import follow
from seqdemo.network.model import Network
from seqdemo.records import Trace
from seqdemo.search import search
from training.data.batches import Sentences
from training.data.records import Example
from training.tasks.task import PairTask, Task

ALIGNMENTS = "alignments.jsonl"
EXAMPLES = 3
SHORTEST, LONGEST = 3, 16  # pieces of the source, so that an alignment has something to show and can be read

GREEDY = SearchOptions(strategy="greedy", nbest=1)


def fixed(task: PairTask) -> list[Example]:
    """The first dev examples of readable length, or simply the first if there are none."""
    lengths = task.pairs.sources(task.dev).lengths
    readable = [example for example, length in zip(task.dev, lengths) if SHORTEST <= length <= LONGEST]
    return (readable or task.dev)[:EXAMPLES]


def alignments(task: Task, model: Network) -> Iterator[dict[str, Any]]:
    """For each fixed example: its pieces, the model's greedy output, and the attention between them."""
    if isinstance(task, PairTask) and model.config.has_attention:
        for example in fixed(task):
            yield alignment(task, model, example)


def alignment(task: PairTask, model: Network, example: Example) -> dict[str, Any]:
    source, mask_BS = task.pairs.sources([example]).stack([0])
    ids = source[0].tolist() if mask_BS is not None else []
    step, state = model.stepper(model.read(source, mask_BS))
    limit = task.pairs.limit(source.shape[1])
    tokens = search(step, state, 1, GREEDY, [limit], record=False)[0].hypotheses[0].tokens
    pieces = [task.pairs.source_text.piece(index) for index in ids] if isinstance(task.pairs, Sentences) else []
    trace = follow(model, ids or source, tokens, (), pieces, task.pairs.target_text.piece)
    assert trace.attention is not None
    weights = np.round(trace.attention.astype(float), 3).tolist()
    return {"example": example.source, "source": trace.source, "target": trace.target, "attention": weights}


def trace_of(line: dict[str, Any]) -> Trace:
    """The Trace for a figure, from a line of the log."""
    steps = len(line["target"])
    nothing = np.zeros((steps, 0))
    return Trace(
        source=tuple(line["source"]),
        target=tuple(line["target"]),
        tokens=(0,) * steps,
        logps=np.zeros(steps),
        top_tokens=nothing.astype(np.int32),
        top_logps=nothing.astype(np.float32),
        top_pieces=((),) * steps,
        seen={"decoder.0.cross.0": np.array(line["attention"], dtype=np.float32)},
    )


def by_example(lines: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Example -> its alignments, earliest model first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        found.setdefault(line["example"], []).append(line)
    return found
