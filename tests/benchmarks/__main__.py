"""Runs every benchmark, one after the other; with --smoke each in its smallest form, to see that it still runs.

python -m tests.benchmarks [--smoke] [--against folder] [name ...]
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path

from tests.benchmarks import against


def names() -> list[str]:
    files = (file for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_"))
    return sorted(file.stem for file in files if "def main(" in file.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Figures of speed, beside the machine's own.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which of {', '.join(names())}; all if none is named")
    parser.add_argument("--smoke", action="store_true", help="one repetition each: whether they run, not how fast")
    parser.add_argument(
        "--against", type=Path, metavar="folder", help="another tree of this project: how many times as fast is this one"
    )
    given = parser.parse_args()
    for name in given.names or names():
        if given.against:
            print(f"\n{name}, against {given.against}", flush=True)
            against.compare(name, given.against)
            continue
        benchmark = importlib.import_module(f"tests.benchmarks.{name}")
        if given.smoke and hasattr(benchmark, "REPEATS"):
            benchmark.REPEATS = 1
        start = time.monotonic()
        print(f"\n{name}", flush=True)
        benchmark.main()
        print(f"({time.monotonic() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
