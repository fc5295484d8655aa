"""Helpers of the Hub's tests: places to look at and messages to expect."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqdemo import hub as models
from seqdemo.hub import cache
from tests.shared import PATIENCE

REPO = "owner/small"
WEIGHTS = "resolve/.*model.safetensors|/lfs/"
NOWHERE = "http://127.0.0.1:9"


@contextmanager
def within() -> Iterator[None]:
    """Before what hangs for this long would have gone on."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < PATIENCE


@contextmanager
def refused(kind: str, says: str) -> Iterator[None]:
    with within(), pytest.raises(models.HubError, match=says) as caught:
        yield
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def blob(name: str = "model.safetensors") -> Path:
    """Where the cache keeps the bytes of a file."""
    (path,) = cache.repo_folder(cache.cache_folder(), REPO).glob(f"snapshots/*/{name}")
    return path.resolve()


def partial_files() -> list[Path]:
    walked = os.walk(cache.cache_folder())  # folders may vanish meanwhile
    return [Path(folder) / name for folder, _, names in walked for name in names if name.endswith(".incomplete")]
