"""The training loop.

batch -> -log p of every target token -> backward -> clip -> AdamW -> running average; a state on disk from time to time.
"""

from __future__ import annotations

import copy
import gc
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seqdemo.network.model import Network
from training.data import load as load_data
from training.data.records import Dataset
from training.recipes import Recipe
from training.run import report, resume, runstate, watch
from training.run.build import STATE, model_of, put, task_of, tokenizers_of, trained
from training.run.display import Display
from training.run.distributed import ALONE, Ranks, joined, summed
from training.run.export import export
from training.run.machine import MUCH, Stop, bf16_pays, choose_device, give_back, tuned
from training.tasks.task import PairTask, Score

POINTS = 500  # lines of training in the log


@dataclass
class Progress:
    """The progress of a run."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that have been used
    best: float = -math.inf  # dev metric
    best_loss: float = math.inf
    best_step: int = 0
    waited: int = 0  # evaluations since the best
    losses: float = 0.0  # since the last line of the log
    counted: int = 0
    seconds: float = 0.0  # of one core


class Step(NamedTuple):
    loss: float  # nats a token
    norm: float  # of the gradient, before clipping
    rate: float
    tokens: int


class Saving(NamedTuple):
    """A state is written after so many steps or seconds, whichever comes first."""

    steps: int = 1_000
    seconds: float = 120.0


OFTEN = Saving()


def rate_at(progress: float, warmup: float) -> float:
    """A straight line up to 1, then half a cosine down to 0."""
    if progress < warmup:
        return progress / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warmup) / (1 - warmup))))


def optimizer_for(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """The optimizer. Weight decay applies to matrices, not to biases and other vectors."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in learning if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in learning if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98), eps=1e-9, fused=True)


class Run:
    """One training: everything that changes. resume.py saves and restores all of it."""

    def __init__(self, recipe: Recipe, dataset: Dataset, folder: Path, ranks: Ranks = ALONE) -> None:
        self.recipe, self.folder, self.state, self.ranks = recipe, folder, folder / STATE, ranks
        with ranks.first_first():
            self.state.mkdir(parents=True, exist_ok=True)
            texts = tokenizers_of(recipe, dataset, self.state)
            self.task = task_of(recipe, dataset, *texts, folder.parent / "features")
        self.model: Network = model_of(recipe, *texts).to(ranks.device)
        self.judged: Network = copy.deepcopy(self.model).to("cpu").eval()
        torch.manual_seed(recipe.seed + ranks.rank)
        self.loss = summed(self.model, self.task, ranks)
        self.optimizer = optimizer_for(self.model, recipe)
        self.average = {name: value.detach().clone() for name, value in trained(self.model)} if recipe.average else {}
        self.best: dict[str, Tensor] = {}  # the best averaged weights so far, by dev
        self.bf16 = recipe.bf16 and bf16_pays(ranks.device)
        self.fingerprint, self.examples = dataset.fingerprint, len(dataset.train)
        self.batches = len(self.task.epoch(0))
        self.steps = max(1, round(recipe.epochs * self.batches))
        self.progress = Progress()
        self.carried: dict[str, Tensor] = {}

    def batches_left(self) -> Iterator[Any]:
        """The unused batches, epoch after epoch, until the steps are done or dev has not improved for too long."""
        progress = self.progress
        while not self.over():
            left = self.task.epoch(progress.epoch).after(progress.batch)
            self.task.carry_on(self.model, self.carried)
            self.carried = {}
            for batch in left:
                progress.batch += 1
                yield batch
                if self.over():
                    return
            progress.epoch, progress.batch = progress.epoch + 1, 0
            del left  # free an epoch's arrays before the next epoch's are made
            give_back()

    def over(self) -> bool:
        return self.progress.step >= self.steps or self.progress.waited > self.recipe.patience

    def step(self, batch: Any) -> Step:
        """g = d/dw (sum of -log p) / tokens, clipped;  w <- AdamW(w, g);  m <- d m + (1 - d) w"""
        recipe, ranks, done = self.recipe, self.ranks, self.progress.step / self.steps
        rate = recipe.rate * rate_at(done + 1 / self.steps, recipe.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if isinstance(self.task, PairTask):
            self.task.done = done
        mine = moved(self.task.shard(batch, ranks.rank, ranks.world), ranks.device)
        with torch.autocast(ranks.device.type, torch.bfloat16, enabled=self.bf16):
            total, count = self.loss(mine, recipe.label_smoothing)
        loss, tokens = ranks.sums(float(total.detach()), count)
        self.optimizer.zero_grad(set_to_none=True)
        (total * (ranks.world / tokens)).backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimizer.step()
        self.follow_average()
        self.progress.step += 1
        return Step(loss / tokens, float(norm), rate, round(tokens))

    def follow_average(self) -> None:
        """m <- d m + (1 - d) w, with a smaller d at first."""
        if self.average:
            keep = min(self.recipe.average, (1 + self.progress.step) / (10 + self.progress.step))
            with torch.no_grad():
                torch._foreach_lerp_(list(self.average.values()), [value.detach() for _, value in trained(self.model)], 1 - keep)

    def parameters(self) -> dict[str, Tensor]:
        """The weights that are evaluated and shipped."""
        return self.average or {name: value.detach() for name, value in trained(self.model)}


def moved(batch: Any, device: torch.device) -> Any:
    """The same batch, its tensors on the device."""
    if device.type == "cpu":
        return batch
    parts = [part if part is None else part.to(device) for part in batch]
    return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)


# ------------------------------------------------------------------------------------------------------------------ the loop


def fit(
    recipe: Recipe,
    data: Path | None,
    folder: Path,
    start: resume.Start = resume.NEW,
    device: str = "",
    saving: Saving = OFTEN,
    display: Display | None = None,
) -> int:
    """Train `recipe` in `folder`, which becomes a checkpoint; returns the exit code."""
    chosen, display = choose_device(device), display or Display()
    with tuned(chosen), joined(chosen) as ranks:
        if ranks.first:
            resume.refuse_mixing(folder / STATE, recipe, start)
        dataset = load_data(recipe.data, data)
        if ranks.first:
            resume.prepare(folder / STATE, recipe, start)
        with runstate.writing(folder / STATE):
            run = Run(recipe, dataset, folder, ranks)
            resume.take_up(run, display.say)
            with display.shown(run), Stop() as stop:
                code = loop(run, stop, saving, display)
            if code == 0 and ranks.first:
                export(folder)
                report.write(run)
            farewell = resume.farewell(run, code)
            del run  # the object that sums the gradients must be freed before the group of processes ends
            gc.collect()
    display.say(farewell)
    return code


def loop(run: Run, stop: Stop, saving: Saving, display: Display) -> int:
    saved, saved_at, started = run.progress.step, time.monotonic(), time.process_time()
    for batch in run.batches_left():
        done = run.step(batch)
        log(run, done)
        display.stepped(run, done)
        give_back(above=MUCH)
        if evaluation_due(run):
            judge(run, display)
        late = run.ranks.first and time.monotonic() - saved_at > saving.seconds
        code, due = run.ranks.most(stop.asked, late or run.progress.step - saved >= saving.steps)
        if code or due or run.over():
            run.progress.seconds += time.process_time() - started
            give_back()
            resume.save(run)
            give_back()
            saved, saved_at, started = run.progress.step, time.monotonic(), time.process_time()
        if code:
            return int(code)
    return 0


def log(run: Run, done: Step) -> None:
    """A line from time to time, with the mean loss since the last."""
    progress = run.progress
    if not math.isfinite(done.loss + done.norm):
        raise resume.diverged(run)
    progress.losses, progress.counted = progress.losses + done.loss, progress.counted + 1
    if progress.step % max(1, run.steps // POINTS) == 0 or run.over():
        loss, progress.losses, progress.counted = progress.losses / progress.counted, 0.0, 0
        line = {"step": progress.step, "epoch": progress.epoch, "loss": loss, "rate": done.rate, "norm": done.norm}
        if run.ranks.first:
            runstate.append(run.folder / resume.LOG, line)


def evaluation_due(run: Run) -> bool:
    """`evaluations` times, evenly spread, the last one at the end."""
    step, times = run.progress.step, run.recipe.evaluations
    return step * times // run.steps != (step - 1) * times // run.steps


def judge(run: Run, display: Display) -> None:
    """Evaluate the averaged weights on dev (ties are decided by the dev loss) and keep the best beside the state."""
    progress, score = run.progress, None
    if run.ranks.first:
        give_back()
        put(run.judged, {name: value.cpu() for name, value in run.parameters().items()})
        judged = run.judged.for_inference()
        with torch.no_grad():
            score = run.task.evaluate(judged)
        note(run, score, judged)
        display.judged(run, score)
        give_back()
    metric, loss = run.ranks.told(score and (score.metric, score.loss))
    progress.waited += 1
    if (metric, -loss) > (progress.best, -progress.best_loss):
        progress.best, progress.best_loss, progress.best_step, progress.waited = metric, loss, progress.step, 0
        if run.ranks.first:
            run.best = {name: value.to("cpu", copy=True).contiguous() for name, value in run.parameters().items()}
            resume.write_best(run)


def note(run: Run, score: Score, judged: Network) -> None:
    """Log the evaluation, and where the model looked in a few examples."""
    where = {"step": run.progress.step, "epoch": run.progress.epoch}
    runstate.append(run.folder / resume.LOG, {**where, "metric": score.metric, "dev_loss": score.loss, "sample": score.sample[2]})
    for line in watch.alignments(run.task, judged):
        runstate.append(run.state / watch.ALIGNMENTS, {**where, **line})
