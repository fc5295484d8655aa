"""How a page stops a long question: by the name that it gave the question.

Gradio's own way stops everything of one kind that a page has under way when the stop arrives, which may be the next question,
and it cannot stop a question that the server has not taken yet. By its name a stop ends one question, whichever comes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MOST_EARLY = 1_000  # stops that came before their questions, or after them
LONGEST_NAME = 80


class Stops:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: dict[str, threading.Event] = {}
        self.early: OrderedDict[str, None] = OrderedDict()

    @contextmanager
    def of(self, message: Any) -> Iterator[threading.Event]:
        """An event that is set as soon as the question is stopped; a question without a name is never stopped by one."""
        name, stopped = name_of(message), threading.Event()
        with self.lock:
            if name in self.early:
                stopped.set()
            elif name:
                self.running[name] = stopped
        try:
            yield stopped
        finally:
            with self.lock:
                self.running.pop(name, None)

    def stop(self, message: Any) -> None:
        name = name_of(message)
        with self.lock:
            if name in self.running:
                self.running[name].set()
            elif name:
                self.early[name] = None
                while len(self.early) > MOST_EARLY:
                    self.early.popitem(last=False)


def name_of(message: Any) -> str:
    """The name in a message from a browser, or nothing if there is none that could be kept."""
    name = message.get("ticket") if isinstance(message, dict) else ""
    return name if isinstance(name, str) and len(name) <= LONGEST_NAME else ""
