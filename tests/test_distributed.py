from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from seqdemo import hub as models
from seqdemo.errors import InputError
from tests.kill_many import bits
from tests.shared import PATIENCE, free_port
from tests.small_runs import SIZES, SUBWORDS, TEXT, WORDS, forks, train
from tests.test_fit import StopAt
from training.recipes import Recipe
from training.run import runstate
from training.run.resume import LOG, NEW, Start

EXACT = {
    "words": replace(WORDS, model={**SIZES, "dropout": 0.0}, epochs=4),
    "one row a batch": replace(WORDS, model={**SIZES, "dropout": 0.0}, tokens=12, epochs=0.3),
    "subwords": replace(SUBWORDS, model={**SUBWORDS.model, "dropout": 0.0}, epochs=6),
    "text": replace(TEXT, model={**TEXT.model, "dropout": 0.0}, epochs=2),
}


def one_of_many(rank: int, world: int, port: int, recipe: Recipe, folder: Path, start: Start, stop: int, double: bool) -> None:
    """What torchrun does for a process, then a training in it; the last one is asked to stop at step `stop`."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    sys.exit(train(recipe, folder, start, display=StopAt(stop if rank == world - 1 else 0)))


def train_together(
    recipe: Recipe, folder: Path, world: int = 2, start: Start = NEW, stop: int = 0, double: bool = True
) -> list[int]:
    port = free_port()
    arguments = [(rank, world, port, recipe, folder, start, stop, double) for rank in range(world)]
    processes = [forks().Process(target=one_of_many, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(5 * PATIENCE)
        process.kill()
    return [process.exitcode or 0 for process in processes]


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / LOG).read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


@pytest.mark.parametrize("kind", EXACT)
def test_two_processes_have_the_losses_of_one(kind: str, tmp_path: Path) -> None:
    assert train_together(EXACT[kind], tmp_path / "two") == [0, 0]
    assert train_together(EXACT[kind], tmp_path / "one", world=1) == [0]
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == len(two) >= 50
    assert max(abs(a - b) for a, b in zip(one, two)) < 1e-9
    assert models.load(tmp_path / "two").name == EXACT[kind].name


@pytest.mark.parametrize("recipe", [WORDS, TEXT], ids=["words", "text"])
def test_all_stop_when_one_is_asked_and_go_on_to_the_bit(recipe: Recipe, tmp_path: Path) -> None:
    """Each process has its own dropout, and its own rows of a language model's state."""
    assert train_together(recipe, tmp_path / "alone", double=False) == [0, 0]
    assert train_together(recipe, tmp_path / "stopped", stop=10, double=False) == [143, 143]
    saved = runstate.load(tmp_path / "stopped/state")
    assert saved and saved.values["progress"]["step"] == 10
    assert not torch.equal(saved.tensors["ranks/0/random/cpu"], saved.tensors["ranks/1/random/cpu"])
    with pytest.raises(InputError, match="one of 2 processes, not 1"):
        train(recipe, tmp_path / "stopped", Start(resume=True))
    assert train_together(recipe, tmp_path / "stopped", start=Start(resume=True), double=False) == [0, 0]
    assert bits(tmp_path / "stopped") == bits(tmp_path / "alone")


def test_torchrun_trains_the_toy(tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    fit = ["-m", "training", "fit", "reverse", "--epochs", "0.03", "--out", str(tmp_path / "run")]
    done = subprocess.run([*torchrun, *fit], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Done in") == 1, "one process speaks"
    assert models.load(tmp_path / "run").name == "reverse"
