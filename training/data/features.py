"""Features of many photographs, computed once.

A frozen CNN gives the same grid for the same photograph in every epoch, so training reads the grids from a file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqdemo.errors import InputError
from seqdemo.images import STRETCH, read_picture
from seqdemo.network.cnn import EfficientNetLite
from training.data.download import alone
from training.data.records import Dataset

SAVED_EVERY = 100  # photographs that a killed run may have to compute again
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Features:
    """`grids` is photographs x views x cells x channels in float16, mapped from the file; cells go row by row. View 0 is the
    photograph and view 1, where there is one, its mirror image. `names` are the photographs' file names."""

    names: tuple[str, ...]
    grids: np.ndarray


def extract(
    pictures: Sequence[Path], cnn: EfficientNetLite, out: Path, flips: bool = True, progress: Progress = lambda done, total: None
) -> Features:
    """Compute the grids into `out` (.npy, with its description in .json beside it), or open them when they are there.

    After a kill it resumes where it stopped. `out` appears only when it is complete.
    """
    plan = plan_of(pictures, cnn, flips)
    with alone(out):
        if not out.exists():
            compute(pictures, cnn, out, plan, progress)
    if json.loads(described(out).read_text()) != plan:
        raise InputError(f"{out} holds features of other photographs or another CNN; delete it or choose another file.")
    return load(out)


def compute(pictures: Sequence[Path], cnn: EfficientNetLite, out: Path, plan: dict[str, Any], progress: Progress) -> None:
    grids, done = started(out, plan, (len(pictures), plan["views"], cnn.grid**2, cnn.channels))
    for index in range(done, len(pictures)):
        grids[index] = views(pictures[index], cnn, plan["views"] > 1)
        if (index + 1) % SAVED_EVERY == 0 or index + 1 == len(pictures):
            grids.flush()
            write_json(noted(out), {"plan": plan, "done": index + 1})
            progress(index + 1, len(pictures))
    write_json(described(out), plan)
    os.replace(unfinished(out), out)
    noted(out).unlink(missing_ok=True)


def load(file: Path) -> Features:
    names = tuple(name for name, _ in json.loads(described(file).read_text())["pictures"])
    return Features(names, np.load(file, mmap_mode="r"))


def plan_of(pictures: Sequence[Path], cnn: EfficientNetLite, flips: bool) -> dict[str, Any]:
    """Everything the features depend on; JSON."""
    weights = hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in cnn.state_dict().values())).hexdigest()
    files = [[picture.name, picture.stat().st_size] for picture in pictures]
    return {"cnn": kind(cnn), "weights": weights, "stretch": STRETCH, "views": 1 + flips, "pictures": files}


def kind(cnn: EfficientNetLite) -> str:
    return f"{cnn.name}-finer" if cnn.finer else cnn.name


def described(out: Path) -> Path:
    return out.with_suffix(".json")


def unfinished(out: Path) -> Path:
    return out.with_suffix(".partial.npy")


def noted(out: Path) -> Path:
    """The progress of an unfinished run, and its plan."""
    return out.with_suffix(".partial.json")


def started(out: Path, plan: dict[str, Any], shape: tuple[int, ...]) -> tuple[np.memmap, int]:
    """The unfinished file and the number of photographs in it: of an earlier run with the same plan, or new."""
    if noted(out).exists() and unfinished(out).exists():
        note = json.loads(noted(out).read_text())
        if note["plan"] == plan:
            return np.lib.format.open_memmap(unfinished(out), mode="r+"), note["done"]
    out.parent.mkdir(parents=True, exist_ok=True)
    noted(out).unlink(missing_ok=True)
    return np.lib.format.open_memmap(unfinished(out), mode="w+", dtype=np.float16, shape=shape), 0


@torch.inference_mode()
def views(picture: Path, cnn: EfficientNetLite, flips: bool) -> np.ndarray:
    """The grids of a photograph and, with `flips`, of its mirror image: views x cells x channels."""
    try:
        pixels = read_picture(picture, cnn.size).pixels
    except InputError as error:
        raise InputError(f"{picture}: {error}") from error
    grids = [cnn(pixels_3HW[None]).flatten(2) for pixels_3HW in (pixels, pixels.flip(-1))[: 1 + flips]]
    return torch.cat(grids).transpose(1, 2).half().numpy()


def write_json(file: Path, value: Any) -> None:
    """Replace the file as a whole."""
    temporary = file.with_name(file.name + ".new")
    temporary.write_text(json.dumps(value))
    os.replace(temporary, file)


def of_dataset(
    dataset: Dataset, cnn: EfficientNetLite, folder: Path, progress: Progress = lambda done, total: None
) -> list[Features]:
    """The features of each split's photographs, kept in `folder`; those of train with their mirror images."""
    found = []
    for name, split in dataset.splits().items():
        pictures = sorted({example.picture for example in split if example.picture})
        found.append(extract(pictures, cnn, folder / f"{kind(cnn)}-{name}.npy", name == "train", progress))
    return found
