"""load and names: which place a name stands for, and the order in which places are asked.

Bundled first; then what the Hub's cache holds, without any request; then the network, in a child process with a deadline.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from seqdemo.checkpoints import cache
from seqdemo.checkpoints.bundled import bundled_folder, bundled_names
from seqdemo.checkpoints.client import Failure, Watch, run_child
from seqdemo.checkpoints.description import NAME
from seqdemo.checkpoints.folder import CONFIG, MAX_TOTAL, Damaged
from seqdemo.checkpoints.pins import hub_owner, pinned
from seqdemo.checkpoints.sentences import HubError, hub_error
from seqdemo.checkpoints.store import Checkpoint, load_folder
from seqdemo.errors import InputError, shown

T = TypeVar("T")
DEADLINE = 30.0
NONE_HERE = "none: set SEQDEMO_CHECKPOINTS to the folder checkpoints of a clone, or say user/name for one on the Hub"
MOST_SECONDS = 86_400
_reading = threading.Lock()
REPO = re.compile(r"(?!.*(\.\.|--))[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}")
REVISION = re.compile(r"(?!.*(\.\.|//|\.lock))[A-Za-z0-9_][A-Za-z0-9._/-]{0,99}")


class Place(NamedTuple):
    """A folder to read: `home` is how far links may lead, `trusted` whether its tokenizers are parsed in this process."""

    folder: Path
    home: Path | None = None
    name: str = ""
    revision: str = ""
    trusted: bool = False


@dataclass(frozen=True)
class Source:
    """A repository on the Hub, and how it may be asked for."""

    repo: str
    revision: str = "main"
    name: str = ""
    anonymous: bool = False
    refresh: bool = False

    @property
    def cache(self) -> Path:
        return cache.visitors_folder() if self.anonymous else cache.cache_folder()


class Offer(NamedTuple):
    """What loading a repository would fetch."""

    repo: str
    revision: str  # the commit
    bytes: int
    cached: bool


def names() -> list[str]:
    """Every name `load` knows without an owner: the bundled ones, and those the account of SEQDEMO_HUB_OWNER stands in for."""
    return sorted({*bundled_names(), *pinned(hub_owner())})


def load(
    name: str | Path,
    revision: str | None = None,
    *,
    anonymous: bool = False,
    refresh: bool = False,
    deadline: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Checkpoint:
    """A bundled name ("translator-de-en"), a repository on the Hub ("user/name"), or a folder ("./folder", or a Path).

    A repository is taken from the cache where it is there; `refresh` asks the Hub for a newer commit of the branch.
    `anonymous`: read without any token, as everything that a stranger names. `progress(done, total)` counts bytes.
    """
    watch = Watch(deadline or default_deadline(), progress, cancelled)
    try:
        return visit(resolve(name, revision, anonymous, refresh), watch, load_strangers_place if anonymous else load_place)
    except HubError as error:
        if anonymous or not (Path(name) / CONFIG).is_file():
            raise
        raise InputError(f"{error} There is a folder of that name: write ./{name} for it.") from None


def default_deadline() -> float:
    """Seconds for all that one load asks of the network."""
    named = os.environ.get("SEQDEMO_HUB_DEADLINE", "")
    try:
        seconds = float(named) if named else DEADLINE
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < MOST_SECONDS:  # NaN is neither
        raise InputError(f"SEQDEMO_HUB_DEADLINE must be a number of seconds from 0 to {MOST_SECONDS:,}, not {named!r}.")
    return seconds


def load_strangers_place(place: Place) -> Checkpoint:
    """One at a time: files of strangers may be large, and memory counts once."""
    with _reading:
        return load_place(place)


def load_place(place: Place) -> Checkpoint:
    return load_folder(place.folder, place.home, place.name, place.revision, place.trusted)


def resolve(name: str | Path, revision: str | None, anonymous: bool = False, refresh: bool = False) -> Place | Source:
    if isinstance(name, Path) or name.startswith((".", "/", "~")) or name.count("/") > 1:
        return Place(Path(name).expanduser())
    if "/" in name:
        return Source(*repository(name, revision), name, anonymous, refresh)
    if NAME.fullmatch(name) and (bundled_folder() / name / CONFIG).is_file():
        return Place(bundled_folder() / name, name=name, trusted=True)
    owner = hub_owner()
    if owner and NAME.fullmatch(name):
        return Source(*repository(f"{owner}/seqdemo-{name}", revision or pinned(owner).get(name)), name, anonymous, refresh)
    raise InputError(
        f"There is no checkpoint {shown(name)}; there are {', '.join(names()) or NONE_HERE}. A folder is written ./folder."
    )


def repository(repo: str, revision: str | None) -> tuple[str, str]:
    """A repository id and revision that are nothing else: no path, no address."""
    repo, revision = repo.strip(), (revision or "").strip() or "main"
    if not REPO.fullmatch(repo):
        raise InputError(f"A repository on the Hub is written user/name, not {repo[:100]!r}.")
    if not REVISION.fullmatch(revision):
        raise InputError(f"A revision is a commit, a branch or a tag, not {revision[:100]!r}.")
    return repo, revision


def visit(source: Place | Source, watch: Watch, use: Callable[[Place], T]) -> T:
    """`use` on the folder; where a file of a cached repository is damaged, once more on a fresh copy."""
    if isinstance(source, Place):
        return use(source)
    warm = None if source.refresh else cache.snapshot(source.cache, source.repo, source.revision)
    place = place_of(source, warm) if warm else fetch(source, watch)
    cache.touch(source.cache, source.repo)
    try:
        return use(place)
    except Damaged as damage:
        return use_fresh_copy(source, place, watch, use, damage)


def use_fresh_copy(source: Source, place: Place, watch: Watch, use: Callable[[Place], T], damage: Damaged) -> T:
    """Of the commit whose copy is damaged, not of a newer one."""
    same = Source(source.repo, place.revision, source.name, source.anonymous)
    try:
        fresh = fetch(same, watch)
    except InputError as error:
        raise InputError(
            f"The cached copy of {source.repo} is damaged ({damage}) and a fresh one did not come: {error}"
        ) from None
    return use(fresh)


def place_of(source: Source, folder: Path) -> Place:
    return Place(folder, source.cache, source.name or source.repo, folder.name)


def fetch(source: Source, watch: Watch) -> Place:
    """Download into the cache what is not there, or is there and damaged."""
    if source.anonymous:
        cache.trim(source.cache)
    commit = ask_child("download", source, watch, ceiling=MAX_TOTAL)["revision"]
    folder = cache.repo_folder(source.cache, source.repo) / "snapshots" / commit
    return place_of(source, folder)


def stand_ins(note: Callable[[str], None] = print, seconds: float = 120.0) -> list[Path]:
    """Folders of the checkpoints that are not bundled and for which the account of SEQDEMO_HUB_OWNER stands in, fetched where
    the cache lacks them. What does not come within `seconds` in all is said and left out."""
    watch, found, bundled = Watch(seconds), [], bundled_names()
    for name in pinned(hub_owner()):
        if name in bundled:
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
    """What loading a stranger's repository would fetch, asked without a token; nothing is downloaded."""
    source = Source(*repository(repo, revision), anonymous=True)
    warm = cache.snapshot(source.cache, source.repo, source.revision)
    if warm:
        return Offer(source.repo, warm.name, 0, True)
    found = ask_child("look", source, Watch(deadline or default_deadline(), cancelled=cancelled))
    return Offer(source.repo, found["revision"], found["bytes"], False)


def ask_child(task: str, source: Source, watch: Watch, **more: object) -> dict[str, Any]:
    request = {
        "repo": source.repo,
        "revision": source.revision,
        "cache": str(source.cache),
        "anonymous": source.anonymous,
        **more,
    }
    try:
        return run_child(task, request, watch, source.anonymous)  # type: ignore[no-any-return]
    except Failure as failure:
        raise hub_error(failure, source.repo, source.revision, str(source.cache)) from None
