"""Models that visitors of the app named. They are loaded without a token, shared between visitors, and bounded in number and
size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from seqdemo.checkpoints.checkpoint import Checkpoint
from seqdemo.checkpoints.folder import MB
from seqdemo.errors import InputError
from seqdemo.hub import cache
from seqdemo.hub.loading import load
from seqdemo.hub.places import checked_id

PATIENCE = 10.0  # seconds that a visitor waits for the downloads of others


class Key(NamedTuple):
    """What a session keeps in place of the model: a repository and a commit."""

    repo: str
    revision: str


class VisitorModels:
    """The most recently used models, at most `count` and `ceiling` bytes. A session keeps a Key and asks for the model each
    time; a dropped model is loaded again from the cache on disk, without a request. `openings`: how many may be downloaded at
    the same time, each by its own process. `put_away` is called with every model that is dropped."""

    def __init__(
        self,
        count: int = 4,
        ceiling: int = 512 * MB,
        openings: int = 4,
        opener: Callable[..., Checkpoint] = load,
        put_away: Callable[[Checkpoint], None] = lambda checkpoint: None,
    ) -> None:
        self.count, self.ceiling, self.opener, self.put_away = count, ceiling, opener, put_away
        self.doors = threading.BoundedSemaphore(openings)
        self.held: OrderedDict[Key, Checkpoint] = OrderedDict()
        self.lock = threading.Lock()
        self.opening: dict[str, tuple[threading.Lock, int]] = {}

    def visit(
        self,
        repo: str,
        revision: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        deadline: float | None = None,
    ) -> Checkpoint:
        """The checkpoint of a repository that a stranger named; `repo` and `revision` of the result make its Key."""
        wanted = self._exact(Key(*checked_id(repo, revision)))
        found = self._held(wanted)
        if found:
            return found
        with self._alone(wanted.repo):
            wanted = self._exact(wanted)
            found = self._held(wanted)
            if found:
                return found
            with self._door():
                opened = self.opener(*wanted, anonymous=True, progress=progress, cancelled=cancelled, deadline=deadline)
            self._keep(Key(wanted.repo, opened.revision), opened)
            return opened

    def get(self, key: Key) -> Checkpoint:
        return self.visit(*key)

    def _exact(self, key: Key) -> Key:
        """The key with the commit that the cache holds for a branch."""
        snapshot = cache.snapshot(cache.visitors_folder(), *key)
        return Key(key.repo, snapshot.name) if snapshot else key

    def _held(self, key: Key) -> Checkpoint | None:
        with self.lock:
            if key in self.held:
                self.held.move_to_end(key)
            return self.held.get(key)

    @contextmanager
    def _door(self) -> Iterator[None]:
        if not self.doors.acquire(timeout=PATIENCE):
            raise InputError("Several other visitors are loading models just now; try again in a minute.")
        try:
            yield
        finally:
            self.doors.release()

    def _keep(self, key: Key, checkpoint: Checkpoint) -> None:
        if checkpoint.size > self.ceiling:
            raise InputError(f"{key.repo} takes {checkpoint.size // MB} MB of memory; {self.ceiling // MB} MB are allowed here.")
        with self.lock:
            self.held[key] = checkpoint
            gone = []
            while len(self.held) > self.count or sum(each.size for each in self.held.values()) > self.ceiling:
                gone.append(self.held.popitem(last=False)[1])
        for each in gone:
            self.put_away(each)

    def holds(self, checkpoint: Checkpoint) -> bool:
        with self.lock:
            return any(each is checkpoint for each in self.held.values())

    @contextmanager
    def _alone(self, repo: str) -> Iterator[None]:
        """Open a repository in one thread at a time; the second thread then finds it loaded."""
        with self.lock:
            lock, waiting = self.opening.get(repo, (threading.Lock(), 0))
            self.opening[repo] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self.lock:
                lock, waiting = self.opening[repo]
                if waiting == 1:
                    del self.opening[repo]
                else:
                    self.opening[repo] = lock, waiting - 1
