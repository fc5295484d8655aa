"""Models, runs and replays behind the pages, and who computes when. Importing this loads no torch; the first question does.

Results depend only on their question, so one bounded cache of runs serves everybody, and a replay needs no new search.

Short questions get the cores in their order; long ones let them go first. A long piece of work (an exact search, a ranking of
hundreds of units) waits for one of a few places, learns how many wait before it, and pauses between its steps while a short
question is being answered. It pauses for at most `PATIENCE` at a time, so it ends even under load.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from seqdemo.config import SearchOptions
from seqdemo.edits import Edit, is_word
from seqdemo.errors import InputError
from seqdemo.findings import Badge
from seqdemo.records import Trace

MOST_RUNS = 48
MOST_NODES = 400_000  # of all remembered trees together
MOST_PLACES = 8  # kept with each
PHOTO = 25_000  # a photograph counts as so many nodes

Progress = Callable[..., None]
Cancel = Callable[[], bool]
CORES = 2  # short questions at a time, and long ones
MOST_WAITING = 8
PATIENCE = 0.25  # seconds that a long piece of work pauses for short ones, at most
LOOK = 0.05  # seconds between two checks whether the user has stopped waiting


class Lanes:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.short_running = 0
        self.short_waiting: deque[object] = deque()
        self.long_running = 0
        self.long_waiting: deque[object] = deque()

    @contextmanager
    def short(self) -> Iterator[None]:
        """A place for a question that is answered within a moment."""
        me = object()
        with self.changed:
            self.short_waiting.append(me)
            self.changed.wait_for(lambda: self.short_running < CORES and self.short_waiting[0] is me)
            self.short_waiting.popleft()
            self.short_running += 1
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                self.short_running -= 1
                self.changed.notify_all()

    @contextmanager
    def long(self, tell: Callable[[int], None], cancelled: Callable[[], bool]) -> Iterator[None]:
        """A place for long work. `tell(n)` is called with the number of those that wait before it, each time that it changes."""
        if not self._wait_for_a_place(tell, cancelled):
            raise InputError("Stopped before it began.")
        try:
            yield
        finally:
            with self.changed:
                self.long_running -= 1
                self.changed.notify_all()

    def _wait_for_a_place(self, tell: Callable[[int], None], cancelled: Callable[[], bool]) -> bool:
        me, told = object(), -1
        with self.changed:
            if len(self.long_waiting) >= MOST_WAITING:
                raise InputError(f"{MOST_WAITING} long searches are waiting already. Try again in a minute.")
            self.long_waiting.append(me)
            while not (begins := self.long_running < CORES and self.long_waiting[0] is me) and not cancelled():
                before = self.long_waiting.index(me)
                if before != told:
                    tell(before)
                    told = before
                self.changed.wait(LOOK)
            self.long_waiting.remove(me)
            self.long_running += begins
            self.changed.notify_all()
            return begins

    def make_way(self) -> None:
        """Called by long work between two of its steps."""
        until = time.monotonic() + PATIENCE
        with self.changed:
            self.changed.wait_for(lambda: not (self.short_running or self.short_waiting), until - time.monotonic())


@dataclass(frozen=True)
class Question:
    """One column's run. `given` is a text, or the bytes of a photograph."""

    checkpoint: str
    revision: str
    given: str | bytes
    options: SearchOptions
    edits: tuple[Edit, ...] = ()
    language: str | None = None
    precision: str = "float32"

    @property
    def is_long(self) -> bool:
        """Nobody knows beforehand how long an exact search takes."""
        return self.options.strategy == "exact"


@dataclass(frozen=True)
class Found:
    """A run, the checkpoint it came from, and what was made of it since: the replay of the best output, places asked about."""

    checkpoint: Any
    run: Any
    traces: list[Trace] = field(default_factory=list)
    places: OrderedDict[Any, Any] = field(default_factory=OrderedDict)


class Service:
    """The models behind the pages. Tests replace it by a toy with the same methods."""

    def __init__(self) -> None:
        self.runs: OrderedDict[Any, Found] = OrderedDict()
        self.lock = threading.Lock()
        self.loading = threading.Lock()
        self.loaded: dict[str, Any] = {}
        self.named: Any = None
        self.lanes = Lanes()

    def checkpoint(self, name: str, revision: str = "") -> Any:
        """A shipped checkpoint by name, a visitor's by repository and commit."""
        if "/" in name:
            return self.visitors().visit(name, revision or None)
        if name in self.loaded:  # no waiting for another model that is being downloaded
            return self.loaded[name]
        with self.loading:
            if name not in self.loaded:
                from seqdemo.hub import load

                self.loaded[name] = load(name)
            return self.loaded[name]

    def asked_of(self, question: Question) -> Any:
        """The checkpoint in the question's precision, made once. Visitors' models exist in float32 only."""
        checkpoint = self.checkpoint(question.checkpoint, question.revision)
        if question.precision == "float32":
            return checkpoint
        if "/" in question.checkpoint:
            raise InputError("A model from the Hub computes in float32 here; another precision is for the models of this app.")
        with self.loading:
            key = f"{question.checkpoint} in {question.precision}"
            if key not in self.loaded:
                self.loaded[key] = checkpoint.in_precision(question.precision)
            return self.loaded[key]

    def visitors(self) -> Any:
        from seqdemo.hub import VisitorModels

        with self.lock:
            if self.named is None:
                self.named = VisitorModels(put_away=self._forget)
            return self.named

    def look(self, repo: str, revision: str = "", cancelled: Callable[[], bool] | None = None) -> Any:
        """What loading a repository would fetch; nothing is downloaded."""
        from seqdemo.hub import look

        return look(repo, revision or None, cancelled=cancelled)

    def has(self, question: Question) -> bool:
        """Whether its run is remembered."""
        with self.lock:
            return _key(question) in self.runs

    def run(self, question: Question, progress: Progress | None = None, cancel: Cancel | None = None) -> Found:
        key = _key(question)
        with self.lock:
            if key in self.runs:
                self.runs.move_to_end(key)
                return self.runs[key]
        checkpoint = self.asked_of(question)
        if question.is_long:
            found = self._run_long(checkpoint, question, progress or _nobody_listens, cancel or _nobody_stops)
        else:
            with self.lanes.short():
                found = self._run(checkpoint, question, progress, cancel)
        if not (cancel and cancel()):
            self._remember(key, found)
        return found

    def _run_long(self, checkpoint: Any, question: Question, progress: Progress, cancel: Cancel) -> Found:
        """Run long work in a place of its own, pausing for short questions at every step."""

        def step(*facts: Any) -> None:
            progress(*facts)
            self.lanes.make_way()

        with self.lanes.long(progress, cancel):
            return self._run(checkpoint, question, step, cancel)

    def _run(self, checkpoint: Any, question: Question, progress: Progress | None, cancel: Cancel | None) -> Found:
        single_thread()
        from seqdemo import playground

        run = playground.run(
            checkpoint,
            question.given,
            question.options,
            edits=question.edits,
            language=question.language or "",
            progress=progress,
            cancel=cancel,
        )
        return Found(checkpoint, run)

    def best_trace(self, found: Found) -> Trace:
        """The replay of the best hypothesis, made once."""
        if not found.traces:
            found.traces.append(self._replay(found, found.run.hypotheses[0].tokens))
        return found.traces[0]

    def replay(
        self, question: Question, tokens: tuple[int, ...], progress: Progress | None = None, cancel: Cancel | None = None
    ) -> Trace:
        return self._replay(self.run(question, progress, cancel), tokens)

    def _replay(self, found: Found, tokens: tuple[int, ...]) -> Trace:
        from seqdemo import playground

        with self.lanes.short():
            return playground.replay(found.checkpoint, found.run, tokens)

    def place(self, found: Found, tokens: tuple[int, ...], position: int) -> Any:
        """An output of a run up to a place, cached with the run, because hands ask about it repeatedly."""
        with self.lock:
            if (tokens, position) in found.places:
                found.places.move_to_end((tokens, position))
                return found.places[tokens, position]
        from seqdemo.hands.place import Place

        with self.lanes.short():
            place = Place(found.checkpoint, found.run, tokens, position)
        with self.lock:
            found.places[tokens, position] = place
            while len(found.places) > MOST_PLACES:
                found.places.popitem(last=False)
        return place

    def badges(self, found: Found) -> tuple[Badge | None, ...]:
        """What each word of the run's edits costs, in words; nothing where it has none."""
        if not any(map(is_word, found.run.edits)):
            return ()
        from seqdemo import playground

        trace = self.best_trace(found)
        with self.lanes.short():
            return playground.badges(found.checkpoint, found.run, trace)

    def given_pieces(self, question: Question) -> int:
        """How many pieces of the output are the person's own text."""
        from seqdemo.prompts import prepare

        checkpoint = self.checkpoint(question.checkpoint, question.revision)
        return len(prepare(checkpoint, question.given, question.language or "").prefix)

    def score(self, question: Question, target: str) -> Trace:
        """The replay of an output that the user gives."""
        single_thread()
        from seqdemo import playground

        checkpoint = self.asked_of(question)
        with self.lanes.short():
            return playground.score(checkpoint, question.given, target, language=question.language or "")

    def warm(self, names: list[str]) -> None:
        """Load what the pages open with, so that the first question does not wait for it."""
        single_thread()
        for name in names:
            self.checkpoint(name)

    def _remember(self, key: Any, found: Found) -> None:
        with self.lock:
            if self.named and "/" in found.checkpoint.name and not self.named.holds(found.checkpoint):
                return  # dropped meanwhile: the run would keep its model in memory
            self.runs[key] = found
            while len(self.runs) > MOST_RUNS or sum(map(weight, self.runs.values())) > MOST_NODES:
                self.runs.popitem(last=False)

    def _forget(self, checkpoint: Any) -> None:
        """Forget the runs of a dropped model, so that its memory is freed."""
        with self.lock:
            for key in [key for key, found in self.runs.items() if found.checkpoint is checkpoint]:
                del self.runs[key]


def _nobody_listens(*_: Any) -> None:
    pass


def _nobody_stops() -> bool:
    return False


def weight(found: Found) -> int:
    return len(found.run.tree) + PHOTO * (found.run.prompt.picture is not None)


def _key(question: Question) -> Any:
    """The key of a run in the cache; a photograph is represented by its hash."""
    if isinstance(question.given, str):
        return question
    return replace(question, given=hashlib.sha256(question.given).hexdigest())


def single_thread() -> None:
    """Two visitors on two cores are served best with one thread each."""
    import torch

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
