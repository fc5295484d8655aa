"""The state of a run on disk: written atomically, verified when read, with the previous one kept.

Each save is one safetensors file, named state-<step>-<first 16 digits of its sha256>, so that damage is detected.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load as parse
from safetensors.torch import save as dump
from torch import Tensor

from seqdemo.checkpoints.folder import replace_file
from seqdemo.errors import InputError

PATTERN = "state-*.safetensors"


class Saved(NamedTuple):
    tensors: dict[str, Tensor]
    values: dict[str, Any]
    complaints: tuple[str, ...]


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary file, fsync, rename, fsync the folder: after a crash the old file or the new one is there,
    complete."""
    replace_file(path, data)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, if the system can (Windows cannot)."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def flatten(tree: Any, prefix: str = "") -> dict[str, Tensor]:
    """Tensors of nested dicts under names joined by slashes."""
    if isinstance(tree, Tensor):
        return {prefix: tree}
    return {
        name: leaf
        for key, value in tree.items()
        for name, leaf in flatten(value, f"{prefix}/{key}" if prefix else str(key)).items()
    }


def under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): value for name, value in tensors.items() if name.startswith(f"{prefix}/")}


def states(folder: Path) -> list[Path]:
    """Newest first."""
    return sorted(folder.glob(PATTERN), reverse=True)


def save(folder: Path, step: int, tensors: dict[str, Tensor], values: dict[str, Any]) -> Path:
    """Write this state and keep only the newest intact one before it. A later state can only be a damaged one that was
    skipped."""
    path = write(folder, step, tensors, values)
    before = next((old for old in states(folder) if old.name < path.name and intact(old)), None)
    for old in {*states(folder), *folder.glob(".state-*.part")} - {path, before}:
        old.unlink(missing_ok=True)
    return path


def write(folder: Path, step: int, tensors: dict[str, Tensor], values: dict[str, Any]) -> Path:
    distinct = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
    data = dump(distinct, {"values": json.dumps(values)})
    path = folder / f"state-{step:08d}-{hashlib.sha256(data).hexdigest()[:16]}.safetensors"
    write_atomically(path, data)
    return path


def load(folder: Path) -> Saved | None:
    """The newest intact state, or None if there are no states; `complaints` names damaged ones that were skipped."""
    complaints: list[str] = []
    for path in states(folder):
        data = whole(path)
        if data is not None:
            return Saved(parse(data), values_of(data), tuple(complaints))
        complaints.append(f"{path.name} is damaged; going back to the state before it.")
    if complaints:
        raise InputError(f"{' '.join(complaints)} No whole state is left in {folder}: start again with --fresh.")
    return None


def whole(path: Path) -> bytes | None:
    """The file's bytes, if they fit the hash in its name."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    return data if named(path, hashlib.sha256(data).hexdigest()) else None


def intact(path: Path) -> bool:
    """Whether the file is intact; it is read in small parts."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while part := file.read(2**20):
                found.update(part)
    except OSError:
        return False
    return named(path, found.hexdigest())


def named(path: Path, sha256: str) -> bool:
    return path.stem.rpartition("-")[2] == sha256[:16]


def values_of(data: bytes) -> dict[str, Any]:
    size = int.from_bytes(data[:8], "little")
    values: dict[str, Any] = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["values"])
    return values


def unwritable(error: OSError, folder: Path) -> InputError:
    """A sentence for a run's folder that cannot be written."""
    reasons = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "your quota is used up", errno.EROFS: "it is read-only"}
    reason = reasons.get(error.errno or 0, error.strerror or str(error))
    newest = next((path for path in states(folder) if intact(path)), None)
    kept = f"{newest.name} is intact: solve this problem, then go on with --resume." if newest else "No state had been saved yet."
    return InputError(f"The run cannot be written to {folder}: {reason}. {kept}")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Inside this context, errors of writing become a sentence."""
    try:
        yield
    except OSError as error:
        raise unwritable(error, folder) from error


def append(path: Path, line: dict[str, Any]) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; the last may have been cut off in the middle."""
    if path.exists():
        for text in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                line = json.loads(text)
            except ValueError:
                continue
            yield line


def truncate(path: Path, step: int) -> None:
    """Remove the lines logged after `step`; they will be logged again."""
    kept = [json.dumps(line, ensure_ascii=False) + "\n" for line in lines(path) if line["step"] <= step]
    if path.exists():
        write_atomically(path, "".join(kept).encode())


def random_states(device: torch.device) -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def restore_random_states(states: dict[str, Tensor], device: torch.device) -> None:
    """Restore the random states. If the state was saved without a GPU, a GPU starts from the recipe's seed."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
