"""Data by name: `load("multi30k+tatoeba", folder)`, with splits that do not leak and a fingerprint that names them."""

from __future__ import annotations

from pathlib import Path

from seqdemo.errors import InputError
from training.data.records import Dataset, Example, Split, fingerprint
from training.data.sets import BUILDERS, builder

__all__ = ["BUILDERS", "Dataset", "Example", "Split", "load"]

FINGERPRINTS: dict[str, str] = {}


def load(name: str, folder: Path | None = None) -> Dataset:
    """The set `name` from the local `folder`."""
    build = builder(name)
    if folder is not None and not folder.is_dir():
        raise InputError(f"There is no data folder {folder}. Give another with --data, or leave it out to download.")
    problems: list[str] = []
    parts = build(folder or Path(), problems)
    train, dev, test = Split(parts.train), Split(parts.dev), Split(parts.test)
    mark = fingerprint(train, dev, test)
    return Dataset(name, train, dev, test, mark, mark == FINGERPRINTS.get(name), tuple(parts.notes), tuple(problems))
