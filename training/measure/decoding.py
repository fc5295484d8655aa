"""Decode many inputs with one checkpoint, as the playground does, in batches of similar length shared among ranks."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch.distributed as dist

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import SearchOptions
from seqdemo.playground import find
from seqdemo.prompts import Prompt, prepare
from seqdemo.search import UNDER_WAY, SearchResult
from training.data.records import Example
from training.measure.scores import Output

ROWS = 320  # beam rows a batch

Progress = Callable[[str, int, int], None]
Item = TypeVar("Item")


def quiet(what: str, done: int, total: int) -> None:
    """A progress that shows nothing."""


def ranks() -> tuple[int, int]:
    """(rank, world), with the group begun when torchrun started this process."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        dist.init_process_group("gloo")
        atexit.register(dist.destroy_process_group)
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def shared(work: Callable[[list[int]], list[Item]], order: Sequence[int]) -> list[Item]:
    """The results of `work` for all indices. Each rank computes every world-th; all ranks get all results."""
    rank, world = ranks()
    mine = list(order[rank::world])
    done = list(zip(mine, work(mine))) if mine else []
    gathered: list[Any] = [done]
    if world > 1:
        gathered = [None] * world
        dist.all_gather_object(gathered, done)
    by_index = dict(pair for part in gathered for pair in part)
    return [by_index[index] for index in range(len(order))]


def prompts(checkpoint: Checkpoint, examples: Sequence[Example], progress: Progress = quiet) -> list[Prompt]:
    """All inputs as prompts, prepared once for all searches."""

    def work(mine: list[int]) -> list[Prompt]:
        made = []
        for index in mine:
            example = examples[index]
            made.append(prepare(checkpoint, example.picture or example.source, example.language))
            if example.picture:
                progress("photographs", len(made), len(mine))
        return made

    everything = range(len(examples))
    return shared(work, everything) if checkpoint.task == "caption" else work(list(everything))


def batches(order: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(order), size):
        yield list(order[start : start + size])


def batch_size(options: SearchOptions) -> int:
    """The number of inputs in one call of `find`."""
    if options.strategy == "exact":
        return UNDER_WAY
    return max(1, ROWS // (1 if options.strategy == "greedy" else options.beam))


def decode(
    checkpoint: Checkpoint, inputs: Sequence[Prompt], options: SearchOptions, what: str = "", progress: Progress = quiet
) -> list[Output]:
    """The outputs of every input, in order."""
    order = sorted(range(len(inputs)), key=lambda index: len(inputs[index].pieces.ids))

    def work(mine: list[int]) -> list[Output]:
        outputs: list[Output] = []
        for group in batches(mine, batch_size(options)):
            found = find(checkpoint, [inputs[index] for index in group], options, record=False)
            outputs += [output_of(checkpoint, one) for one in found]
            progress(what, len(outputs), len(mine))
        return outputs

    return shared(work, order)


def output_of(checkpoint: Checkpoint, found: SearchResult) -> Output:
    """Texts, raw log probabilities and lengths of the n best."""
    assert checkpoint.target_text is not None
    return Output(
        tuple(checkpoint.target_text.decode(hypothesis.tokens) for hypothesis in found.hypotheses),
        tuple(hypothesis.total for hypothesis in found.hypotheses),
        tuple(len(hypothesis.tokens) for hypothesis in found.hypotheses),
    )
