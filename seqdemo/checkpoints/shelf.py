"""Models that visitors named: loaded without a token, shared between them, and never more than fit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from seqdemo.checkpoints import cache
from seqdemo.checkpoints.folder import MB
from seqdemo.checkpoints.library import load, repository
from seqdemo.checkpoints.store import Checkpoint
from seqdemo.errors import InputError

PATIENCE = 10.0  # seconds a visitor waits until others have finished fetching


class Key(NamedTuple):
    """What a session keeps instead of the model: a repository and the commit it saw."""

    repo: str
    revision: str


class ModelShelf:
    """The models used last, at most `count` of them and `ceiling` bytes. A session holds a Key and asks for the model each
    time: one that was put away comes back from the disk's cache without a request. `openings`: how many may be fetched at
    the same time, each by a process of its own. `put_away` is told of every model that has to go."""

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
        """The checkpoint of a repository id that a stranger typed; `repo` and `revision` of the result make its Key."""
        wanted = self._exact(Key(*repository(repo, revision)))
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
        """With the commit that the cache has of a branch."""
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
        """One opening of a repository at a time: who asks second finds it on the shelf."""
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
