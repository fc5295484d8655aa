"""The training loop.

batch -> -log p of every target token -> backward -> clip -> AdamW -> running average; a state on disk from time to time.
"""

from __future__ import annotations

import copy
import ctypes
import json
import math
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from seqdemo.config import ModelConfig
from seqdemo.model import LanguageModel, Seq2Seq
from seqdemo.text import Tokenizer, load_tokenizer
from training import runstate
from training.batches import Photographs, Sentences, train_tokenizers
from training.cnn_weights import shipped
from training.data import load as load_data
from training.data.records import Dataset
from training.features import of_dataset
from training.recipes import Recipe
from training.tasks import PairTask, Score, Task, TextTask

SAVE_SECONDS = 120.0
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of malloc.h


@dataclass
class Progress:
    """Where a run stands. `best` is the best dev metric so far, `waited` the evaluations since."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # of this epoch, already used
    best: float = -math.inf
    waited: int = 0
    seconds: float = 0.0


def tokenizers_of(recipe: Recipe, dataset: Dataset, folder: Path) -> tuple[Tokenizer | None, Tokenizer]:
    """The run's tokenizers: made once, then read from its folder."""
    listing = folder / "tokenizers.json"
    if not listing.exists():
        source, target = train_tokenizers(recipe, dataset)
        specs = {"target": target.save(folder, "target")}
        if source is not None:
            specs["source"] = specs["target"] if source is target else source.save(folder, "source")
        runstate.write_atomically(listing, json.dumps(specs).encode())
    specs = json.loads(listing.read_bytes())
    target = load_tokenizer(folder, specs["target"])
    if "source" not in specs:
        return None, target
    return (target if specs["source"] == specs["target"] else load_tokenizer(folder, specs["source"])), target


def build(recipe: Recipe, dataset: Dataset, folder: Path) -> tuple[nn.Module, Task]:
    source_text, target_text = tokenizers_of(recipe, dataset, folder)
    torch.manual_seed(recipe.seed)
    if recipe.task == "complete":
        model: nn.Module = LanguageModel(ModelConfig(target_vocabulary=len(target_text), encoder="none", **recipe.model))
        return model, TextTask(recipe, dataset, target_text)
    if source_text is None:
        captioner = Seq2Seq(ModelConfig(target_vocabulary=len(target_text), encoder="image", **recipe.model))
        cnn = shipped(captioner.config.cnn)
        captioner.encoder.cnn.load_state_dict(cnn.state_dict())
        features = of_dataset(dataset, cnn, folder.parent / "features")
        return captioner, PairTask(recipe, dataset, Photographs(recipe, features, target_text))
    model = Seq2Seq(ModelConfig(target_vocabulary=len(target_text), source_vocabulary=len(source_text), **recipe.model))
    return model, PairTask(recipe, dataset, Sentences(recipe, source_text, target_text))


def rate_at(progress: float, warmup: float) -> float:
    """A straight line up to 1, then half a cosine down to 0."""
    if progress < warmup:
        return progress / warmup
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warmup) / (1 - warmup))))


def optimizer_for(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """Weights decay, biases and single vectors do not."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98), eps=1e-9, fused=True)


class Run:
    """One training: everything that changes lives here, and `tensors`/`restore` take all of it to disk and back."""

    def __init__(self, recipe: Recipe, dataset: Dataset, folder: Path) -> None:
        self.recipe, self.dataset, self.folder = recipe, dataset, folder
        self.model, self.task = build(recipe, dataset, folder)
        self.optimizer = optimizer_for(self.model, recipe)
        self.average = {name: value.detach().clone() for name, value in self.trained()} if recipe.average else {}
        self.progress = Progress()
        self.batches = sum(1 for _ in self.task.epoch(0))
        self.steps = max(1, round(recipe.epochs * self.batches))

    def trained(self) -> Iterator[tuple[str, Tensor]]:
        return ((name, value) for name, value in self.model.named_parameters() if value.requires_grad)

    def step(self, batch: Any) -> tuple[float, float, int]:
        """Loss per token, gradient norm, tokens."""
        recipe, fraction = self.recipe, self.progress.step / self.steps
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.rate * rate_at(fraction + 1 / self.steps, recipe.warmup)
        if isinstance(self.task, PairTask):
            self.task.scheduled = recipe.sampled * fraction
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.bf16 and bf16_pays()):
            loss = self.task.loss(self.model, batch, recipe.label_smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        (loss.total / loss.tokens).backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), recipe.clip)
        self.optimizer.step()
        self.follow_average()
        self.progress.step += 1
        return float(loss.total.detach()) / loss.tokens, float(norm), loss.tokens

    def follow_average(self) -> None:
        """m = d m + (1 - d) w, with a smaller d while young."""
        if self.average:
            keep = min(self.recipe.average, (1 + self.progress.step) / (10 + self.progress.step))
            with torch.no_grad():
                torch._foreach_lerp_(list(self.average.values()), [value.detach() for _, value in self.trained()], 1 - keep)

    @contextmanager
    def averaged(self) -> Iterator[nn.Module]:
        """The model in evaluation, with the running average for weights where there is one."""
        kept = {name: value.detach().clone() for name, value in self.trained()} if self.average else {}
        self.model.eval()
        try:
            self.put(self.average)
            with torch.no_grad():
                yield self.model
        finally:
            self.put(kept)
            self.model.train()

    def put(self, weights: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, value in self.trained():
                if name in weights:
                    value.copy_(weights[name])

    def weights(self) -> dict[str, Tensor]:
        return self.average or {name: value.detach() for name, value in self.trained()}

    def tensors(self) -> dict[str, Tensor]:
        moments = {str(index): dict(state) for index, state in self.optimizer.state_dict()["state"].items()}
        return runstate.flatten(
            {
                "model": dict(self.trained()),
                "average": self.average,
                "optimizer": moments,
                "random": runstate.random_states(),
                "carried": self.task.carried(),
            }
        )

    def restore(self, saved: runstate.Saved) -> dict[str, Tensor]:
        """Everything but what is carried from batch to batch, which is returned: it goes in once its epoch has begun."""
        self.put(runstate.under(saved.tensors, "model"))
        average = runstate.under(saved.tensors, "average")
        self.average = {name: average[name].clone() for name in self.average}
        state = copy.deepcopy(self.optimizer.state_dict())
        moments = runstate.under(saved.tensors, "optimizer")
        for name, tensor in moments.items():
            index, _, key = name.partition("/")
            state["state"].setdefault(int(index), {})[key] = tensor.clone()
        self.optimizer.load_state_dict(state)
        runstate.restore_random_states(runstate.under(saved.tensors, "random"))
        self.progress = Progress(**saved.values["progress"])
        return runstate.under(saved.tensors, "carried")


def bf16_pays() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def keep_memory() -> None:
    """Ask glibc not to hand freed memory back: at these sizes the page faults of taking it again cost a fifth of a step."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**28)):
            getattr(libc, "mallopt", lambda *_: 0)(option, value)


class Stop:
    """SIGTERM and Ctrl-C ask; the loop stops at the next step."""

    def __init__(self) -> None:
        self.code = 0
        signal.signal(signal.SIGTERM, self.ask)
        signal.signal(signal.SIGINT, self.ask)

    def ask(self, number: int, _: FrameType | None) -> None:
        self.code = 128 + number


def fit(recipe: Recipe, data: Path | None, folder: Path, resume: bool = False, log: Any = print) -> int:
    """Train `recipe` in `folder`; returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    stop = Stop()
    keep_memory()
    torch.set_float32_matmul_precision("medium")
    dataset = load_data(recipe.data, data)
    run = Run(recipe, dataset, folder)
    carried: dict[str, Tensor] = {}
    if resume and (saved := runstate.load(folder)):
        for complaint in saved.complaints:
            log(complaint)
        carried = run.restore(saved)
        log(f"Resumed at step {run.progress.step:,} of {run.steps:,}.")
    runstate.write_atomically(folder / "recipe.json", json.dumps(asdict(recipe), default=dict, indent=1).encode())
    size = sum(value.numel() for _, value in run.trained())
    log(
        f"{recipe.name}: {size:,} parameters, {run.steps:,} steps, {run.batches:,} batches an epoch, {len(dataset.train):,} examples."
    )
    code = loop(run, stop, carried, log)
    if code == 0:
        log(f"Done: best dev {recipe.metric} {run.progress.best:.2f}.")
    return code


def loop(run: Run, stop: Stop, carried: dict[str, Tensor], log: Any) -> int:
    progress, every = run.progress, max(1, run.steps // run.recipe.evaluations)
    saved_at = shown_at = time.monotonic()
    tokens, losses, norm = 0, [], 0.0
    started = time.process_time()
    while progress.step < run.steps and progress.waited <= run.recipe.patience:
        batches = run.task.epoch(progress.epoch)
        for _ in range(progress.batch):
            next(batches)
        run.task.carry_on(run.model, carried)
        carried = {}
        for batch in batches:
            loss, norm, count = run.step(batch)
            progress.batch += 1
            losses.append(loss)
            tokens += count
            if time.monotonic() - shown_at > 20:
                rate = tokens / (time.process_time() - started)
                done = progress.step / run.steps
                log(
                    f"epoch {progress.epoch} step {progress.step:,}/{run.steps:,} ({done:.0%}) loss {sum(losses) / len(losses):.3f} norm {norm:.2f} {rate:,.0f} tokens a core-second"
                )
                shown_at, tokens, losses, started = time.monotonic(), 0, [], time.process_time()
            if progress.step % every == 0 or progress.step == run.steps:
                judge(run, log)
            if stop.code or time.monotonic() - saved_at > SAVE_SECONDS:
                runstate.save(run.folder, progress.step, run.tensors(), {"progress": asdict(progress)})
                saved_at = time.monotonic()
                if stop.code:
                    log(f"Stopped at step {progress.step:,}; --resume goes on from here.")
                    return stop.code
            if progress.step >= run.steps or progress.waited > run.recipe.patience:
                break
        else:
            progress.epoch, progress.batch = progress.epoch + 1, 0
    runstate.save(run.folder, progress.step, run.tensors(), {"progress": asdict(progress)})
    return 0


def judge(run: Run, log: Any) -> None:
    """Dev metric of the averaged weights; the best are kept beside the state."""
    with run.averaged() as model:
        score: Score = run.task.evaluate(model)
    progress = run.progress
    line = {
        "step": progress.step,
        "epoch": progress.epoch,
        "metric": score.metric,
        "dev_loss": score.loss,
        "sample": score.sample[2],
    }
    with open(run.folder / "metrics.jsonl", "a") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
    log(
        f"  dev {run.recipe.metric} {score.metric:.2f}, {score.loss:.3f} nats a token; {score.sample[0]!r} -> {score.sample[2]!r}"
    )
    if score.metric > progress.best:
        progress.best, progress.waited = score.metric, 0
        from safetensors.torch import save

        weights = {name: value.detach().clone().contiguous() for name, value in run.weights().items()}
        runstate.write_atomically(run.folder / "best.safetensors", save(weights, {"step": str(progress.step)}))
    else:
        progress.waited += 1
