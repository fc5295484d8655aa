"""Several processes under torchrun. Each computes the gradients of its rows of a batch; their sum is the gradient of the
batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from seqdemo.network.model import Network
from training.tasks.task import Loss, Task

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Ranks:
    """This process among `world` of them; the first one, 0, writes."""

    rank: int = 0
    world: int = 1
    device: torch.device = CPU

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sums(self, *values: float) -> list[float]:
        """Each value summed over the processes."""
        return self.reduced(values, dist.ReduceOp.SUM)

    def most(self, *values: float) -> list[float]:
        """Each value's largest over the processes."""
        return self.reduced(values, dist.ReduceOp.MAX)

    def reduced(self, values: Sequence[float], how: Any) -> list[float]:
        if self.world == 1:
            return list(values)
        together = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(together, how)
        return together.tolist()

    def gathered(self, value: Any) -> list[Any]:
        """The value of every process, on every process."""
        found = [value] * self.world
        if self.world > 1:
            dist.all_gather_object(found, value)
        return found

    def told(self, value: Any) -> Any:
        """The first process's value, on every process."""
        return self.gathered(value)[0]

    @contextmanager
    def first_first(self) -> Iterator[None]:
        """Run this in the first process, which makes files, and then in the others, which read them."""
        if not self.first:
            dist.barrier()
        yield
        if self.first and self.world > 1:
            dist.barrier()


ALONE = Ranks()


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """The group of processes that torchrun started, or this one alone."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks(device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Ranks(dist.get_rank(), world, device)
        dist.barrier()
    finally:
        dist.destroy_process_group()


class Summed(nn.Module):
    """-log p summed over the target tokens of a batch."""

    def __init__(self, model: Network, task: Task) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Any, smoothing: float) -> Loss:
        return self.task.loss(self.model, batch, smoothing)


def summed(model: Network, task: Task, ranks: Ranks) -> nn.Module:
    """The loss as a module. Over several processes its gradients are their mean."""
    loss = Summed(model, task)
    return DistributedDataParallel(loss, broadcast_buffers=False) if ranks.world > 1 else loss
