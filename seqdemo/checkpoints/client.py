"""Work in a child process, with a deadline; and the switches of the Hub's client, in one place, each with its reason."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SWITCHES = {
    # Files here are 20 MB at most. Xet's transfers know neither these time-outs nor our size cap, and keep their own cache.
    "HF_HUB_DISABLE_XET": "1",
    # How long the first look at a file and the wait between two chunks may take; the client's own 10 s each add up to minutes.
    "HF_HUB_ETAG_TIMEOUT": "5",
    "HF_HUB_DOWNLOAD_TIMEOUT": "8",
    # The child talks JSON on its output and reports progress itself.
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
}
THE_USERS_OWN = ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")
SECRETS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "_KEY")
GRACE = 1.0  # seconds a child gets to remove its partial files before it is killed


class Failure(Exception):
    """What went wrong in the child: a kind from `sentences.py`, and a detail."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


@dataclass(frozen=True)
class Watch:
    """How a caller follows and ends a child's work; `seconds` count from here, over all children of one piece of work."""

    seconds: float
    progress: Callable[[int, int], None] | None = None
    cancelled: Callable[[], bool] | None = None
    note: Callable[[str], None] | None = None
    begun: float = field(default_factory=time.monotonic)

    def remaining(self) -> float:
        return self.begun + self.seconds - time.monotonic()

    def check(self) -> None:
        if self.cancelled and self.cancelled():
            raise Failure("cancelled")
        if self.remaining() <= 0:
            raise Failure("deadline", f"{self.seconds:g}")


def environment(anonymous: bool) -> dict[str, str]:
    """The switches; time-outs that the user chose stay. An anonymous child is given no secret, and told to look for none."""
    own = {name: os.environ[name] for name in THE_USERS_OWN if name in os.environ}
    variables = {**os.environ, **SWITCHES, **own}
    if anonymous:
        variables = {name: value for name, value in variables.items() if not any(word in name.upper() for word in SECRETS)}
        variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1"
    return variables


def run_child(task: str, request: dict[str, Any], watch: Watch, anonymous: bool = True) -> Any:
    """The child's result, or a Failure; it never outlives the deadline."""
    watch.check()
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(anonymous),
        start_new_session=True,  # Ctrl-C reaches the parent, which ends the child
        text=True,
        encoding="utf-8",
    )
    try:
        lines = _lines_of(child)
        _send(child, {**request, "task": task, "deadline": watch.remaining()})
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
    """Its lines as they come; an empty text at the end."""
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
    while True:
        watch.check()
        try:
            line = lines.get(timeout=0.05)
        except queue.Empty:
            continue
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
    """A library may print a line of its own; that is no message."""
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
