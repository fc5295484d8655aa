"""Shared fixtures are made by one worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import ROOT, once

WORKER = """
import time
from pathlib import Path
from types import SimpleNamespace
from tests.shared import once

def make(folder):
    time.sleep(0.2)
    with Path("made").open("a") as file:
        file.write("once ")
    (folder / "thing").write_text("whole")

factory = SimpleNamespace(getbasetemp=lambda: Path("worker{number}").absolute())
print((once(factory, "things", make) / "thing").read_text())
"""


def test_workers_that_ask_at_once_get_what_one_of_them_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    codes = [WORKER.replace("{number}", str(number)) for number in range(3)]
    workers = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True) for code in codes]
    assert [worker.communicate()[0] for worker in workers] == ["whole\n"] * 3
    assert (tmp_path / "made").read_text() == "once "


def test_what_could_not_be_made_is_not_taken_for_whole(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def fails(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        once(tmp_path_factory, "broken", fails)
    made = once(tmp_path_factory, "broken", lambda folder: (folder / "whole").touch())
    assert [file.name for file in made.iterdir()] == ["whole"]
