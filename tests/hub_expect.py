"""What the tests of the Hub look at and look for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqdemo import checkpoints
from seqdemo.checkpoints import cache

REPO = "owner/small"
WEIGHTS = "resolve/.*model.safetensors|/lfs/"
NOWHERE = "http://127.0.0.1:9"


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds


@contextmanager
def refused(kind: str, says: str, seconds: float = 20) -> Iterator[None]:
    with within(seconds), pytest.raises(checkpoints.HubError, match=says) as caught:
        yield
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def blob(name: str = "model.safetensors") -> Path:
    """Where the cache keeps the bytes of a file."""
    (path,) = cache.repo_folder(cache.cache_folder(), REPO).glob(f"snapshots/*/{name}")
    return path.resolve()


def partial_files() -> list[Path]:
    return list(cache.cache_folder().rglob("*.incomplete"))
