"""How the tests are spread over the cores of this machine, and how long they take here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# How many times as long as the loop of tests/benchmarks/calibration.py one worker would need for all the tests. When they have
# grown, measure again on an idle machine: seconds of `python3 tools/test.py` x workers, by what `python -m
# tests.benchmarks.calibration` says. (The processor time of a run is less: it leaves out most of the browser's.)
LOOPS = 5_000
WITH_COVERAGE = 1.15
MOST_WORKERS = 8  # each holds PyTorch, a model or two and sometimes a browser: about a gigabyte
MOST_USED = 4  # of the workers, while the longest files run


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(arguments: list[str]) -> list[str]:
    """More arguments of pytest: one worker a core, and each file on one worker, so that its fixtures are made once."""
    if cores() == 1 or any("no:xdist" in word or word.startswith(("-n", "--numprocesses")) for word in arguments):
        return []
    return ["-n", str(min(cores(), MOST_WORKERS)), "--dist", "loadfile", "--no-loadscope-reorder"]


def calibration(python: str = sys.executable) -> float:
    """Measured in the Python that runs the tests, which may be faster or slower than this one."""
    ask = "from tests.benchmarks.calibration import calibration; print(calibration())"
    return float(subprocess.run([python, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def seconds(loop: float, workers: int, coverage: bool) -> float:
    return LOOPS * loop * (WITH_COVERAGE if coverage else 1) / min(workers, MOST_USED)


def forecast(arguments: list[str], python: str = sys.executable) -> str:
    told = spread(arguments)
    workers = int(told[1]) if told else 1
    minutes = seconds(calibration(python), workers, any(word.startswith("--cov") for word in arguments)) / 60
    side = f"{workers} at a time" if workers > 1 else "one after the other"
    return f"All the tests take about {minutes:.0f} minutes on this machine when it is idle, {side}; a selection takes less."
