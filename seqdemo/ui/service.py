"""Models, runs and replays behind the pages. Importing this loads no torch; the first question does.

Results are pure functions of their question, so one bounded memory of runs serves everybody and a replay need not search again.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from seqdemo.config import SearchOptions
from seqdemo.edits import Edit
from seqdemo.records import Trace

MOST_RUNS = 48
MOST_NODES = 400_000  # of all remembered trees together
PHOTO = 25_000  # a photograph takes as much memory as so many nodes


@dataclass(frozen=True)
class Question:
    """One column's run. `given` is a text, or the bytes of a photograph."""

    checkpoint: str
    revision: str
    given: str | bytes
    options: SearchOptions
    edits: tuple[Edit, ...] = ()
    language: str | None = None


@dataclass(frozen=True)
class Found:
    """A run and the checkpoint it came from."""

    checkpoint: Any
    run: Any
    traces: list[Trace] = field(default_factory=list)


class Service:
    """What the pages ask; the tests put a toy with the same methods in its place."""

    def __init__(self) -> None:
        self.runs: OrderedDict[Any, Found] = OrderedDict()
        self.lock = threading.Lock()
        self.loading = threading.Lock()
        self.loaded: dict[str, Any] = {}
        self.shelf: Any = None

    def checkpoint(self, name: str, revision: str = "") -> Any:
        """A bundled checkpoint by name, a visitor's by repository and commit."""
        if "/" in name:
            return self.visitors().visit(name, revision or None)
        if name in self.loaded:  # nobody waits for another model that comes over the network
            return self.loaded[name]
        with self.loading:
            if name not in self.loaded:
                from seqdemo.checkpoints import load

                self.loaded[name] = load(name)
            return self.loaded[name]

    def visitors(self) -> Any:
        from seqdemo.checkpoints import ModelShelf

        with self.lock:
            if self.shelf is None:
                self.shelf = ModelShelf(put_away=self._forget)
            return self.shelf

    def look(self, repo: str, revision: str = "", cancelled: Callable[[], bool] | None = None) -> Any:
        """What loading a repository would fetch; nothing is downloaded."""
        from seqdemo.checkpoints import look

        return look(repo, revision or None, cancelled=cancelled)

    def run(
        self,
        question: Question,
        progress: Callable[..., None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Found:
        key = question if isinstance(question.given, str) else _photo_key(question)
        with self.lock:
            if key in self.runs:
                self.runs.move_to_end(key)
                return self.runs[key]
        single_thread()
        from seqdemo import playground

        checkpoint = self.checkpoint(question.checkpoint, question.revision)
        run = playground.run(
            checkpoint,
            question.given,
            question.options,
            edits=question.edits,
            language=question.language or "",
            progress=progress,
            cancel=cancel,
        )
        found = Found(checkpoint, run)
        if not (cancel and cancel()):
            self._remember(key, found)
        return found

    def best_trace(self, found: Found) -> Trace:
        """The replay of the best hypothesis, made once."""
        if not found.traces:
            found.traces.append(self._replay(found, found.run.hypotheses[0].tokens))
        return found.traces[0]

    def replay(self, question: Question, tokens: tuple[int, ...]) -> Trace:
        return self._replay(self.run(question), tokens)

    def _replay(self, found: Found, tokens: tuple[int, ...]) -> Trace:
        from seqdemo import playground

        return playground.replay(found.checkpoint, found.run, tokens)

    def given_pieces(self, question: Question) -> int:
        """How many pieces of the output are the person's own text."""
        from seqdemo.prompts import prepare

        checkpoint = self.checkpoint(question.checkpoint, question.revision)
        return len(prepare(checkpoint, question.given, question.language or "").prefix)

    def score(self, question: Question, target: str) -> Trace:
        """The replay of an output the person gives."""
        single_thread()
        from seqdemo import playground

        checkpoint = self.checkpoint(question.checkpoint, question.revision)
        return playground.score(checkpoint, question.given, target, language=question.language or "")

    def warm(self, names: list[str]) -> None:
        """Load what the pages open with, so that the first question does not wait for it."""
        single_thread()
        for name in names:
            self.checkpoint(name)

    def _remember(self, key: Any, found: Found) -> None:
        with self.lock:
            if self.shelf and "/" in found.checkpoint.name and not self.shelf.holds(found.checkpoint):
                return  # put away meanwhile: the run would keep its model in memory
            self.runs[key] = found
            while len(self.runs) > MOST_RUNS or sum(map(weight, self.runs.values())) > MOST_NODES:
                self.runs.popitem(last=False)

    def _forget(self, checkpoint: Any) -> None:
        """A model that was put away leaves memory only when no run holds it."""
        with self.lock:
            for key in [key for key, found in self.runs.items() if found.checkpoint is checkpoint]:
                del self.runs[key]


def weight(found: Found) -> int:
    return len(found.run.tree) + PHOTO * (found.run.prompt.picture is not None)


def _photo_key(question: Question) -> Any:
    assert isinstance(question.given, bytes)
    digest = hashlib.sha256(question.given).hexdigest()
    return (question.checkpoint, question.revision, digest, question.options, question.edits, question.language)


def single_thread() -> None:
    """Two visitors on two cores are served best with one thread each."""
    import torch

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
