"""How a run begins, is saved, and resumes: with the same bits if the circumstances are the same, with a message if they are
not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from seqdemo.errors import InputError
from training.recipes import Recipe
from training.run import build, runstate, watch
from training.run.build import BEST, RECIPE, TOKENIZERS, put, read_recipe, trained, write_recipe
from training.run.machine import peak_memory
from training.run.origin import COMMITS, note_commit
from training.run.overrides import TOLD

if TYPE_CHECKING:
    from training.run.fit import Run

LOG, REPORT = "metrics.jsonl", "report.html"

Say = Callable[[str], None]


class Start(NamedTuple):
    """What to do with a run that is already in the folder."""

    resume: bool = False
    fresh: bool = False


NEW = Start()


def refuse_mixing(state: Path, recipe: Recipe, start: Start) -> None:
    """Refuse to put two runs into one folder, or a run into a folder with other files."""
    folder = state.parent
    if not start.fresh and not state.exists() and folder.is_dir() and next(folder.iterdir(), None):
        raise InputError(f"{folder} holds other files and no run. Name another --out, or write over them with --fresh.")
    if (state / RECIPE).exists() and not start.fresh:
        if not start.resume:
            raise InputError(
                f"{state.parent} already holds a run. Go on with --resume, or delete it and start again with --fresh."
            )
        refuse_changes(read_recipe(state), recipe)


def prepare(state: Path, recipe: Recipe, start: Start) -> None:
    """Make the folder ready."""
    with runstate.writing(state):
        if start.fresh:
            clear(state)
        state.mkdir(parents=True, exist_ok=True)
        write_recipe(state, recipe)
        note_commit(state)


def clear(state: Path) -> None:
    """Delete a run's own files and nothing else. Its recipe goes last: until then the folder still counts as a run."""
    run = state.parent
    texts = [path for stem in ("source", "target") for path in state.glob(f"{stem}.*")]
    logs = [run / LOG, run / REPORT, state / watch.ALIGNMENTS, state / TOKENIZERS, state / BEST, state / COMMITS]
    for path in [*runstate.states(state), *texts, *logs, state / RECIPE]:
        path.unlink(missing_ok=True)


def refuse_changes(before: Recipe, now: Recipe) -> None:
    old, new = asdict(before), asdict(now)
    changed = [f"{name} was {old[name]!r}, now {new[name]!r}" for name in old if old[name] != new[name] and name not in TOLD]
    if changed:
        raise InputError(
            f"This run has another recipe: {'; '.join(changed)}. Go on with the old values, or begin a new run in another --out."
        )


def circumstances(run: Run) -> dict[str, Any]:
    """A run resumes only with the same data and number of processes. If the rest is the same too, it resumes bit for bit."""
    return {
        "data": run.fingerprint,
        "processes": run.ranks.world,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "device": run.ranks.device.type,
        "bfloat16": run.bf16,
        "products": torch.get_float32_matmul_precision(),
    }


def save(run: Run) -> None:
    """Save the weights, their average, the best so far, the optimizer's moments, random states, what is carried from batch to
    batch, and the place in the data."""
    if not all(bool(value.isfinite().all()) for _, value in trained(run.model)):
        raise diverged(run)
    own = {"random": runstate.random_states(run.ranks.device), "carried": run.task.carried()}
    ranks = dict(enumerate(run.ranks.gathered(own)))
    moments = {str(index): dict(state) for index, state in run.optimizer.state_dict()["state"].items()}
    parameters = {"model": dict(trained(run.model)), "average": run.average, "best": run.best}
    tree = {**parameters, "optimizer": moments, "ranks": ranks}
    values = {"progress": asdict(run.progress), "circumstances": circumstances(run)}
    if run.ranks.first:
        runstate.save(run.state, run.progress.step, runstate.flatten(tree), values)


def diverged(run: Run) -> InputError:
    return InputError(
        f"The loss is no longer a number at step {run.progress.step:,}. A state that was saved before is still good; "
        f"a smaller rate helps: --fresh --set rate={run.recipe.rate / 2:g}"
    )


def take_up(run: Run, say: Say) -> None:
    """Resume from the newest intact state, if there is one. Later lines of the log are removed."""
    saved = runstate.load(run.state)
    steps = run.ranks.gathered(saved.values["progress"]["step"] if saved else 0)
    if len(set(steps)) > 1:
        raise InputError(f"The processes do not find the same state in {run.folder}: it must be one folder that all of them see.")
    if saved:
        for complaint in saved.complaints:
            say(complaint)
        compare(saved.values["circumstances"], circumstances(run), say)
        restore(run, saved)
        say(f"Going on at step {run.progress.step:,} of {run.steps:,}.")
    if run.ranks.first:
        write_best(run)
        for log in (run.folder / LOG, run.state / watch.ALIGNMENTS):
            runstate.truncate(log, run.progress.step)


def write_best(run: Run) -> None:
    """Write the best weights, if dev has been measured. The state holds them too, so a resumed run does not trust the file."""
    if run.best:
        build.write_best(run.state, run.best, run.progress.best_step)


def compare(before: dict[str, Any], now: dict[str, Any], say: Say) -> None:
    if before["data"] != now["data"]:
        raise InputError("The data are not those that this run began with. Give it those again, or begin another run.")
    if before["processes"] != now["processes"]:
        raise InputError(f"This run is one of {before['processes']} processes, not {now['processes']}; start as many again.")
    differ = [f"{name} {before[name]} before, {now[name]} now" for name in before if before[name] != now[name]]
    if differ:
        say(f"The run goes on, but its results will not be equal to the bit: {'; '.join(differ)}.")


def restore(run: Run, saved: runstate.Saved) -> None:
    """Restore a state. What is carried from batch to batch is restored when its epoch has begun."""
    device = run.ranks.device
    put(run.model, runstate.under(saved.tensors, "model"))
    run.best = runstate.under(saved.tensors, "best")
    average = runstate.under(saved.tensors, "average")
    run.average = {name: average[name].to(device, copy=True) for name in run.average}
    state = copy.deepcopy(run.optimizer.state_dict())
    for name, tensor in runstate.under(saved.tensors, "optimizer").items():
        index, _, key = name.partition("/")
        state["state"].setdefault(int(index), {})[key] = tensor.clone()
    run.optimizer.load_state_dict(state)
    run.progress = type(run.progress)(**saved.values["progress"])
    own = runstate.under(saved.tensors, f"ranks/{run.ranks.rank}")
    runstate.restore_random_states(runstate.under(own, "random"), device)
    run.carried = {name: tensor.to(device) for name, tensor in runstate.under(own, "carried").items()}


def farewell(run: Run, code: int) -> str:
    progress, minutes = run.progress, run.progress.seconds / 60
    if code:
        return f"Stopped and saved at step {progress.step:,} of {run.steps:,}; --resume goes on from here."
    early = f" No better dev {run.recipe.metric} in {progress.waited} evaluations." if progress.step < run.steps else ""
    return (
        f"Done in {minutes:.1f} core-minutes (budget {run.recipe.minutes}), with {peak_memory() / 1e9:.2f} GB of memory at most."
        f"{early} Best dev {run.recipe.metric} {progress.best:.2f} at step {progress.best_step:,}. "
        f"The checkpoint is {run.folder}, its report {run.folder / REPORT}. Next:\n"
        f"  python -m training evaluate {run.folder}"
    )
