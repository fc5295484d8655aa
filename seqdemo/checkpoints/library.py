"""load and names: which place a name stands for, and the order in which places are asked."""

from __future__ import annotations

from pathlib import Path

from seqdemo.checkpoints.bundled import bundled_folder, bundled_names
from seqdemo.checkpoints.description import NAME
from seqdemo.checkpoints.folder import CONFIG
from seqdemo.checkpoints.store import Checkpoint, load_folder
from seqdemo.errors import InputError


def names() -> list[str]:
    return bundled_names()


def load(name: str | Path, revision: str | None = None) -> Checkpoint:
    """A bundled name, or a folder (a path that starts with . or / or ~, or a Path)."""
    if isinstance(name, Path) or name.startswith((".", "/", "~")):
        return load_folder(Path(name).expanduser())
    if NAME.fullmatch(name) and (bundled_folder() / name / CONFIG).is_file():
        return load_folder(bundled_folder() / name, name=name, trusted=True)
    raise InputError(f"There is no checkpoint {name!r}; there are {', '.join(names()) or 'none'}.")
