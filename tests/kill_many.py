"""Trainings killed at random moments, and inside the write of a state; each is resumed and must end with the same bits as an
undisturbed run.

    python -m tests.kill_many --runs 100
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from tests.small_runs import SUBWORDS, WORDS, forks, train
from training.run import fit, runstate
from training.run.fit import Saving
from training.run.resume import LOG, Start

KINDS = {recipe.name: replace(recipe, epochs=1.5, evaluations=2, dev_size=5) for recipe in (WORDS, SUBWORDS)}
SAVING = Saving(steps=3)
PLACES = ("half", "unsynced", "unnamed", "named", "two")  # where inside the write of a state a process dies


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying_write(place: str, after: int) -> None:
    """From now on, the write of state number `after` kills this process at that place."""
    whole, count = runstate.write_atomically, 0

    def write(path: Path, data: bytes) -> None:
        nonlocal count
        count += path.name.startswith("state-")
        if not path.name.startswith("state-") or count != after:
            return whole(path, data)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        if place in ("half", "unsynced"):
            temporary.write_bytes(data[: len(data) // 2] if place == "half" else data)
        elif place == "unnamed":
            runstate.os.replace = lambda *_: die()  # type: ignore[assignment]
            whole(path, data)
        elif place == "named":
            runstate.sync_folder = lambda _: die()  # type: ignore[assignment]
            whole(path, data)
        else:
            whole(path, data)  # the old ones have not been deleted yet
        die()

    runstate.write_atomically = write  # type: ignore[assignment]


def train_here(kind: str, folder: str, place: str = "", after: int = 0) -> None:
    if place:
        dying_write(place, after)
    fit.report.write = lambda _: Path()  # type: ignore[attr-defined]
    train(KINDS[kind], Path(folder), Start(resume=True), SAVING)


def killed(kind: str, folder: Path, seconds: float = 0.0, place: str = "", after: int = 0) -> bool:
    """Train in a process of its own; kill it after some seconds, or let it die inside a write. Whether it was killed."""
    process = forks().Process(target=train_here, args=(kind, str(folder), place, after))
    process.start()
    process.join(seconds or None)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def bits(folder: Path) -> dict[str, bytes]:
    """The complete result of a run, except the time it took."""
    saved = runstate.load(folder / "state")
    assert saved
    tensors = {name: tensor.numpy().tobytes() for name, tensor in saved.tensors.items()}
    files = (LOG, "model.safetensors", "state/best.safetensors", "state/alignments.jsonl")
    return {**tensors, **{name: (folder / name).read_bytes() for name in files if (folder / name).exists()}}


def kill_once(kind: str, number: int, folder: Path, seconds: float, inside: bool) -> None:
    """A run that dies at a random moment of the `seconds` it takes; one that was done before then is begun again."""
    rng = random.Random(number)
    if inside:
        assert killed(kind, folder, place=PLACES[number % len(PLACES)], after=rng.randint(1, 6))
        return
    moment = rng.uniform(0.1, 1.0) * seconds
    while not killed(kind, folder, seconds=moment):
        shutil.rmtree(folder)
        moment *= 0.7


def many(kind: str, runs: int, inside: int, folder: Path) -> int:
    """How many of the killed runs ended equal to the one that was left alone."""
    killed(kind, folder / "warm")
    begun = time.monotonic()
    assert not killed(kind, folder / "alone")
    seconds = time.monotonic() - begun
    expected, equal = bits(folder / "alone"), 0
    for number in range(runs):
        kill_once(kind, number, folder / str(number), seconds, number < inside)
        killed(kind, folder / str(number))
        equal += bits(folder / str(number)) == expected
    return equal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="words")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--inside", type=int, default=25, help="of these inside the write of a state")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        equal = many(options.kind, options.runs, options.inside, Path(folder))
    print(f"{options.runs} runs killed, {options.inside} of them inside the write of a state: {equal} equal to the bit")
    return 0 if equal == options.runs else 1


if __name__ == "__main__":
    sys.exit(main())
