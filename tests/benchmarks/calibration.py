"""How fast this machine is: CPU seconds of a loop of Python, 0.25 on the reference machine. Every benchmark prints it.

python -m tests.benchmarks.calibration
"""

from __future__ import annotations

import time

REFERENCE = 0.25
LOOP = """
s = 0
for i in range(5_000_000):
    s += i
"""  # run with global names, as at the top of a script: with a function's local names it takes less than half the time


def calibration() -> float:
    """The fastest of three, because other work on the machine can only slow it down."""
    code, taken = compile(LOOP, "calibration", "exec"), []
    for _ in range(3):
        begun = time.process_time()
        exec(code, {})
        taken.append(time.process_time() - begun)
    return min(taken)


def print_calibration() -> None:
    seconds = calibration()
    print(
        f"calibration: 5 million turns of a Python loop take {seconds:.3f} s, {seconds / REFERENCE:.2f} times the reference's",
        flush=True,
    )


if __name__ == "__main__":
    print_calibration()
