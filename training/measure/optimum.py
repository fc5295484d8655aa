"""How often search misses the model's own best output, and how often that output is empty: exact search on a sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, SearchOptions
from seqdemo.playground import find
from seqdemo.prompts import Prompt
from seqdemo.search import SearchResult
from training.measure.decoding import Progress, batch_size, batches, decode, quiet, shared

MARGIN = 1e-4  # nats by which an output must be likelier to count as better
PLAIN = SearchOptions(nbest=1)


class Optimum(NamedTuple):
    """The best output that exact search found; its total is -inf if it found none. `proved`: no other output is better."""

    total: float
    tokens: int
    empty: bool
    proved: bool


def optima(checkpoint: Checkpoint, inputs: Sequence[Prompt], expansions: int, progress: Progress = quiet) -> list[Optimum]:
    options = replace(PLAIN, strategy="exact", expansions=expansions)
    order = sorted(range(len(inputs)), key=lambda index: len(inputs[index].pieces.ids))

    def work(mine: list[int]) -> list[Optimum]:
        results: list[Optimum] = []
        for group in batches(mine, batch_size(options)):
            found = find(checkpoint, [inputs[index] for index in group], options, record=False)
            results += [optimum_of(one) for one in found]
            progress("exact search", len(results), len(mine))
        return results

    return shared(work, order)


def optimum_of(found: SearchResult) -> Optimum:
    assert found.certificate is not None
    best = found.hypotheses[0]
    total = best.total if found.complete(best) else -math.inf
    return Optimum(total, len(best.tokens), best.tokens[:1] == (EOS,), found.certificate.proved)


def shortfalls(
    checkpoint: Checkpoint, inputs: Sequence[Prompt], beams: Sequence[int], expansions: int, progress: Progress = quiet
) -> dict[str, Any]:
    """Rates in per cent. A search error is an output that is less likely than one that exact search found. All searches here
    maximise the plain log probability, without length normalisation.
    """
    best = optima(checkpoint, inputs, expansions, progress)
    proved = [one for one in best if one.proved]
    rows = []
    for beam in beams:
        outputs = decode(checkpoint, inputs, replace(PLAIN, beam=beam), f"beam {beam}, plain", progress)
        missed = [one.total > output.totals[0] + MARGIN for one, output in zip(best, outputs)]
        tokens = sum(output.lengths[0] for output in outputs) / len(outputs)
        rows.append({"beam": beam, "search_errors": 100 * sum(missed) / len(missed), "tokens": tokens})
    return {
        "inputs": len(best),
        "expansions": expansions,
        "proved": len(proved),
        "empty_optimum": 100 * sum(one.empty for one in proved) / max(1, len(proved)),
        "optimum_tokens": sum(one.tokens for one in proved) / max(1, len(proved)),
        "beams": rows,
    }
