"""Start a child process for one piece of work, read its messages, and end it at the deadline."""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECRETS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "_KEY")
GRACE = 1.0  # seconds a child gets to remove its partial files before it is killed
REFUSED = "refused-file"  # the kind of a failure whose detail is a sentence for the person


class Failure(Exception):
    """A failure in the child: its kind in one word, and a detail."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


@dataclass(frozen=True)
class Watch:
    """How a caller follows and ends a child's work. `seconds` count from the creation of this object, over all children."""

    seconds: float
    progress: Callable[[int, int], None] | None = None
    cancelled: Callable[[], bool] | None = None
    note: Callable[[str], None] | None = None
    silence: float = math.inf  # seconds that the child may say nothing
    begun: float = field(default_factory=time.monotonic)

    def remaining(self) -> float:
        return self.begun + self.seconds - time.monotonic()

    def check(self) -> None:
        if self.cancelled and self.cancelled():
            raise Failure("cancelled")
        if self.remaining() <= 0:
            raise Failure("deadline", f"{self.seconds:g}")


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not any(word in name.upper() for word in SECRETS)}


def run_child(work: str, request: dict[str, Any], watch: Watch, variables: Mapping[str, str] | None = None) -> Any:
    """The result of the function `work` ("module.function") in a process of its own, or a Failure. The process never outlives
    the deadline. `variables`: its environment; without one it gets this process's, less every secret."""
    watch.check()
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("process.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=without_secrets(os.environ) if variables is None else dict(variables),
        start_new_session=True,  # Ctrl-C reaches the parent, which ends the child
        text=True,
        encoding="utf-8",
    )
    try:
        lines = _lines_of(child)
        _send(child, {**request, "work": work, "deadline": watch.remaining()})
        return _answer(lines, watch)
    finally:
        _end(child)


def _send(child: subprocess.Popen[str], request: dict[str, Any]) -> None:
    assert child.stdin
    try:
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()
    except BrokenPipeError:
        raise Failure("crashed") from None


def _lines_of(child: subprocess.Popen[str]) -> queue.Queue[str]:
    """The child's lines as they arrive; an empty text at the end."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert child.stdout
        with child.stdout:
            for line in child.stdout:
                lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


def _answer(lines: queue.Queue[str], watch: Watch) -> Any:
    heard = time.monotonic()
    while True:
        watch.check()
        if time.monotonic() - heard > watch.silence:
            raise Failure("silent", f"{watch.silence:g}")
        try:
            line = lines.get(timeout=0.05)
        except queue.Empty:
            continue
        heard = time.monotonic()
        if not line:
            raise Failure("crashed")
        message = _message(line)
        if "result" in message:
            return message["result"]
        if "error" in message:
            raise Failure(*message["error"])
        if "progress" in message and watch.progress:
            watch.progress(*message["progress"])
        if "note" in message and watch.note:
            watch.note(message["note"])


def _message(line: str) -> dict[str, Any]:
    """The message in a line; empty for a line that some library printed."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdin:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
