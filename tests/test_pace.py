"""How the tests are spread over cores, and what is said about the time they take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import calibration
from tools import pace

FOLDER = Path(calibration.__file__).parent
BENCHMARKS = [file for file in sorted(FOLDER.glob("[!_]*.py")) if "def main(" in file.read_text("utf-8")]


def test_each_core_has_a_worker_with_whole_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "cores", lambda: 2)
    assert pace.spread([])[:4] == pace.spread(["-q", "tests/test_cells.py"])[:4] == ["-n", "2", "--dist", "loadfile"]
    monkeypatch.setattr(pace, "cores", lambda: 100)
    assert pace.spread([])[1] == str(pace.MOST_WORKERS)


@pytest.mark.parametrize("told", [["-n", "0"], ["-n0"], ["--numprocesses=3"], ["-p", "no:xdist"], ["-pno:xdist"]])
def test_a_number_of_workers_that_is_given_is_kept(monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    monkeypatch.setattr(pace, "cores", lambda: 4)
    assert pace.spread(["-q", *told]) == []


def test_one_core_has_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "cores", lambda: 1)
    assert pace.spread([]) == []


def test_the_forecast_follows_the_machine_its_workers_and_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pace.seconds(0.5, 2, False) == 2 * pace.seconds(0.25, 2, False) == pace.seconds(0.5, 1, False) / 2
    assert pace.seconds(0.25, 2, True) > pace.seconds(0.25, 2, False)
    monkeypatch.setattr(pace, "cores", lambda: 2)
    monkeypatch.setattr(pace, "calibration", lambda python: 60 / pace.LOOPS * 2 * 3)
    assert pace.forecast(["-q"]).startswith("All the tests take about 3 minutes on this machine")
    assert "about 6 minutes" in pace.forecast(["-n", "0"]) and "one after the other" in pace.forecast(["-n", "0"])


def test_the_calibration_runs_in_the_environment_of_the_tests() -> None:
    assert 0.01 < pace.calibration() < 100


def test_workers_run_what_one_process_runs(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): assert False\n")
    for arguments in (["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"], ["-p", "no:xdist"]):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, str(tmp_path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_every_benchmark_prints_the_calibration(file: Path) -> None:
    assert "    print_calibration()\n" in file.read_text("utf-8").split("def main(", 1)[1]
