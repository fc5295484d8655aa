"""The state of a run on disk: written atomically, verified when read, the one before kept.

One safetensors file a save, named state-<step>-<first 16 digits of its sha256>, so that a damaged file shows itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load as parse
from safetensors.torch import save as dump
from torch import Tensor

from seqdemo.errors import InputError

KEEP = 2


class Saved(NamedTuple):
    tensors: dict[str, Tensor]
    values: dict[str, Any]
    complaints: tuple[str, ...]


def write_atomically(path: Path, data: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder: after a crash the old file or the new one is there, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def flatten(tree: Any, prefix: str = "") -> dict[str, Tensor]:
    """Tensors of nested dicts under dotted-by-slash names."""
    if isinstance(tree, Tensor):
        return {prefix: tree}
    return {
        name: leaf
        for key, value in tree.items()
        for name, leaf in flatten(value, f"{prefix}/{key}" if prefix else str(key)).items()
    }


def under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): value for name, value in tensors.items() if name.startswith(f"{prefix}/")}


def save(folder: Path, step: int, tensors: dict[str, Tensor], values: dict[str, Any]) -> Path:
    distinct = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    data = dump(distinct, {"values": json.dumps(values)})
    path = folder / f"state-{step:08d}-{hashlib.sha256(data).hexdigest()[:16]}.safetensors"
    write_atomically(path, data)
    for old in sorted(folder.glob("state-*.safetensors"))[:-KEEP]:
        old.unlink(missing_ok=True)
    for leftover in folder.glob(".state-*.tmp"):
        leftover.unlink(missing_ok=True)
    return path


def load(folder: Path) -> Saved | None:
    """The newest whole state; `complaints` names the damaged ones passed over. None where there is none at all."""
    complaints = []
    for path in sorted(folder.glob("state-*.safetensors"), reverse=True):
        data = path.read_bytes()
        if path.stem.rpartition("-")[2] != hashlib.sha256(data).hexdigest()[:16]:
            complaints.append(f"{path.name} is damaged; going back to the state before it.")
            continue
        size = int.from_bytes(data[:8], "little")
        values = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["values"])
        return Saved(parse(data), values, tuple(complaints))
    if complaints:
        raise InputError(" ".join(complaints) + " No whole state is left: start again without --resume.")
    return None


def random_states() -> dict[str, Tensor]:
    return {"torch": torch.get_rng_state()}


def restore_random_states(states: dict[str, Tensor]) -> None:
    torch.set_rng_state(states["torch"])
