"""load: a shipped model by name, a folder, or a repository. A repository is read from the Hub's cache if it is there, without
any request; otherwise a child process with a deadline downloads it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from seqdemo.checkpoints.checkpoint import Checkpoint, load_bare, load_folder
from seqdemo.checkpoints.folder import CONFIG, MAX_TOTAL, Damaged, shipped_names
from seqdemo.child.parent import Watch
from seqdemo.errors import InputError, shown
from seqdemo.hub import cache
from seqdemo.hub.asking import ask_hub
from seqdemo.hub.faults import TO_STRANGERS, HubError
from seqdemo.hub.places import Place, Repository, checked_id, hub_owner, pinned, resolve
from seqdemo.hub.publication import push_to_hub
from seqdemo.network.model import LanguageModel as LanguageModel
from seqdemo.network.model import Network
from seqdemo.network.model import Seq2Seq as Seq2Seq
from seqdemo.network.packed import refuse_precision
from seqdemo.network.pretrained import WAYS

T = TypeVar("T")
DEADLINE = 30.0
MOST_SECONDS = 86_400
_reading = threading.Lock()


class Offer(NamedTuple):
    """What loading a repository would fetch."""

    repo: str
    revision: str  # the commit
    bytes: int
    cached: bool


def load(
    name: str | Path,
    revision: str | None = None,
    *,
    precision: str = "float32",
    anonymous: bool = False,
    refresh: bool = False,
    deadline: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Checkpoint:
    """A shipped name ("translator-de-en"), a repository on the Hub ("user/name"), or a folder ("./folder", or a Path).

    A repository is read from the cache if it is there; `refresh` asks the Hub for a newer commit of the branch. `anonymous`: use
    no token, as for everything that a stranger names. `progress(done, total)` counts bytes. `precision`: float32, bfloat16 or
    int8, for searches and replays; the last two need instructions of the processor.
    """
    refuse_precision(precision)
    use = partial(load_strangers_place if anonymous else load_place, precision=precision)
    watch = Watch(seconds_of(deadline), progress, cancelled)
    try:
        return visit(resolve(name, revision, anonymous, refresh), watch, use)
    except HubError as error:
        if anonymous or not (Path(name) / CONFIG).is_file():
            raise
        raise InputError(f"{error} There is a folder of that name: write ./{name} for it.") from None


def from_pretrained(kind: type[Network], name: str | Path, revision: str | None, deadline: float | None) -> Network:
    def use(place: Place) -> Network:
        return load_bare(place.folder, place.home, kind, place.trusted)

    return visit(resolve(name, revision), Watch(seconds_of(deadline)), use)


WAYS.update(from_pretrained=from_pretrained, push_to_hub=push_to_hub)


def seconds_of(deadline: float | None) -> float:
    """The caller's deadline, after a check; without one, the default."""
    if deadline is not None and (isinstance(deadline, bool) or not isinstance(deadline, (int, float)) or not deadline > 0):
        raise InputError(f"deadline must be a number of seconds above 0, not {shown(deadline)}.")
    return deadline or default_deadline()


def default_deadline() -> float:
    """The seconds that one load may spend on the network."""
    named = os.environ.get("SEQDEMO_HUB_DEADLINE", "")
    try:
        seconds = float(named) if named else DEADLINE
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < MOST_SECONDS:  # also false for NaN
        raise InputError(f"SEQDEMO_HUB_DEADLINE must be a number of seconds from 0 to {MOST_SECONDS:,}, not {named!r}.")
    return seconds


def load_strangers_place(place: Place, precision: str) -> Checkpoint:
    """Load a stranger's folder. One at a time, because the files may be large."""
    with _reading:
        return load_place(place, precision)


def load_place(place: Place, precision: str) -> Checkpoint:
    return load_folder(place.folder, place.home, place.name, place.revision, place.trusted, precision)


def visit(place: Place | Repository, watch: Watch, use: Callable[[Place], T]) -> T:
    """Call `use` on the folder. If a file of a cached repository is damaged, call it again on a fresh copy."""
    if isinstance(place, Place):
        return use(place)
    warm = None if place.refresh else cache.snapshot(place.cache, place.id, place.revision)
    found = place_of(place, warm) if warm else fetch(place, watch)
    cache.touch(place.cache, place.id)
    try:
        return use(found)
    except Damaged as damage:
        return use_fresh_copy(place, found, watch, use, damage)


def use_fresh_copy(repo: Repository, place: Place, watch: Watch, use: Callable[[Place], T], damage: Damaged) -> T:
    """Download the same commit again. The damaged files are removed first, so that no other program reads them from this cache,
    even if the download fails."""
    cache.discard_damaged(repo.cache, place.folder)
    same = Repository(repo.id, place.revision, repo.name, repo.anonymous)
    try:
        fresh = fetch(same, watch)
    except InputError as error:
        raise InputError(f"The cached copy of {repo.id} is damaged ({damage}) and a fresh one did not come: {error}") from None
    return use(fresh)


def place_of(repo: Repository, folder: Path) -> Place:
    return Place(folder, repo.cache, repo.name or repo.id, folder.name)


def fetch(repo: Repository, watch: Watch) -> Place:
    """Download what is missing in the cache, or damaged."""
    if repo.anonymous:
        cache.touch(repo.cache, repo.id)
        cache.sweep(repo.cache)
        cache.trim(repo.cache)
    commit = ask("download", repo, watch, ceiling=MAX_TOTAL)["revision"]
    return place_of(repo, cache.repo_folder(repo.cache, repo.id) / "snapshots" / commit)


def ask(work: str, repo: Repository, watch: Watch, **more: object) -> dict[str, Any]:
    request = {"repo": repo.id, "revision": repo.revision, "cache": str(repo.cache), "anonymous": repo.anonymous, **more}
    table = TO_STRANGERS if repo.anonymous else None
    return ask_hub(f"download.{work}", request, watch, repo.anonymous, table)  # type: ignore[no-any-return]


def stand_ins(note: Callable[[str], None] = print, seconds: float = 120.0) -> list[Path]:
    """Folders of checkpoints that are missing here, taken from the account SEQDEMO_HUB_OWNER and downloaded if the cache lacks
    them. Those that do not arrive within `seconds` in all are reported and left out."""
    watch, found, shipped = Watch(seconds), [], shipped_names()
    for name in pinned(hub_owner()):
        if name in shipped:
            continue
        try:
            rest = min(default_deadline(), max(watch.remaining(), 0.0))
            found.append(visit(resolve(name, None), Watch(rest), lambda place: place.folder))
        except InputError as error:
            note(f"{name} is not offered: {error}")
    return found


def look(
    repo: str,
    revision: str | None = None,
    deadline: float | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Offer:
    """What loading a stranger's repository would download. No token is used and nothing is downloaded."""
    wanted = Repository(*checked_id(repo, revision), anonymous=True)
    warm = cache.snapshot(wanted.cache, wanted.id, wanted.revision)
    if warm:
        return Offer(wanted.id, warm.name, 0, True)
    found = ask("look", wanted, Watch(seconds_of(deadline), cancelled=cancelled))
    return Offer(wanted.id, found["revision"], found["bytes"], False)
