"""Fixtures that are made once for all workers of a test run."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from filelock import FileLock

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 180.0  # seconds that a test waits for what takes one; a slow and busy machine is no fault of the product
PORTS = range(10_000, 32_000)
ROOT = Path(__file__).resolve().parent.parent
TOY = "python -m training fit reverse --out runs/reverse"  # as the README has it


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first worker fills with `make`, while the others wait."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        if not Path(f"{folder}.full").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            Path(f"{folder}.full").touch()
    return folder


class Toy(NamedTuple):
    """The README's toy, trained as the README says; tests read its folder and change only copies of it."""

    folder: Path
    status: int
    said: str
    seconds: float  # of the processor


def train_toy(folder: Path, surroundings: dict[str, str]) -> None:
    command = TOY.replace("runs/", f"{folder}/")
    before = os.times()
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT, env=surroundings, capture_output=True, text=True)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    told = {"status": done.returncode, "said": done.stdout + done.stderr, "seconds": seconds}
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the README's commands, in which `python` is the Python of these tests."""
    programs = tmp_path_factory.mktemp("bin")
    for name in ("python", "python3"):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (programs / name).chmod(0o755)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory, surroundings: dict[str, str]) -> Toy:
    folder = once(tmp_path_factory, "toy", lambda folder: train_toy(folder, surroundings))
    return Toy(folder / "reverse", **json.loads((folder / "told.json").read_text(encoding="utf-8")))


def new_page(browser: Browser, **context: Any) -> Page:
    page = browser.new_page(**context)
    page.set_default_timeout(1000 * PATIENCE)
    return page


def free_port() -> int:
    """A port for a server that is started in a moment. It is none of those that the system gives to connections: one of them
    might take it first."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
