"""In the child process: get the file sizes of a repository, then download exactly the files of its manifest into the Hub's
cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

from seqdemo.checkpoints.folder import (
    CARD,
    CONFIG,
    MANIFEST,
    MAX_TOTAL,
    MB,
    METRICS,
    WEIGHTS,
    ceiling,
    parse_manifest,
    read_plain,
)
from seqdemo.child.limits import limit, limit_memory
from seqdemo.child.parent import Failure
from seqdemo.errors import InputError
from seqdemo.hub import cache
from seqdemo.hub.wire import Deadline, attempt, by_kind, classify, listing, use_careful_client

CALL_SECONDS = 10.0
MEMORY = 1 << 30  # beyond what the imports use; the largest file is read as a whole
MAX_FILES = 30
UNSEEN = ("not-found", "no-account")  # the answers to somebody who may not see a repository
Say = Callable[..., None]
Progress = Callable[[int, int], None]


class Remote:
    """One repository at one commit."""

    def __init__(self, request: dict[str, Any], token: bool | None) -> None:
        self.repo, self.token, self.deadline = request["repo"], token, Deadline(request["deadline"])
        self.cache = Path(request["cache"])
        use_careful_client(CALL_SECONDS)
        found = listing(HfApi(token=token), request, self.deadline, CALL_SECONDS)
        self.sha = found.commit
        self.listed = {name: file for name, file in found.files.items() if "/" not in name}
        self.sizes = {name: file.size for name, file in self.listed.items()}
        for name in (MANIFEST, CONFIG, WEIGHTS):
            if name not in self.sizes:
                raise InputError(f"{self.repo} is not a seqdemo checkpoint: it has no {name}.")

    def fetch(self, name: str, meter: type[tqdm] | None = None) -> bytes:
        """The file's bytes, from the cache or downloaded. The library checks neither, so bytes that differ from the listing are
        removed from the cache and downloaded once more."""
        for _ in range(2):
            path = Path(attempt(lambda: self.bring(name, meter), self.deadline))
            data = read_plain(path.resolve(), ceiling(name), name)
            if self.listed[name].holds(data):
                return data
            cache.discard(path)
        raise Failure("damaged", name)

    def bring(self, name: str, meter: type[tqdm] | None) -> str:
        return hf_hub_download(self.repo, name, revision=self.sha, cache_dir=self.cache, token=self.token, tqdm_class=meter)

    def wanted(self) -> list[str]:
        """The manifest, the files it names, and the card. Their sizes are checked before any of them is downloaded."""
        self.check_size([MANIFEST])
        named = parse_manifest(self.fetch(MANIFEST))
        lacking = sorted(set(named) - set(self.sizes) - {CARD, METRICS})
        if lacking:
            raise InputError(f"{self.repo} lacks {', '.join(lacking[:5])}, which its {MANIFEST} names.")
        names = [MANIFEST, *(name for name in self.sizes if name in named or name == CARD)]
        names = list(dict.fromkeys(names))
        self.check_size(names)
        return names

    def check_size(self, names: list[str]) -> None:
        if len(names) > MAX_FILES:
            raise InputError(f"{self.repo} names {len(names)} files; a checkpoint has at most {MAX_FILES}.")
        for name in names:
            size = self.sizes[name]
            if size is None:
                raise InputError(f"{self.repo} does not say how large {name} is; it is not downloaded.")
            if size > ceiling(name):
                raise InputError(f"{self.repo}: {name} has {size:,} bytes, more than the {ceiling(name):,} such a file may have.")
        total = sum(self.sizes[name] or 0 for name in names)
        if total > MAX_TOTAL:
            raise InputError(f"{self.repo} has {total / MB:.0f} MB of files; at most {MAX_TOTAL // MB} MB are downloaded.")


def open_remote(request: dict[str, Any]) -> Remote:
    """Open the repository, with the user's own token if allowed. An expired token does not keep them from a public
    repository."""
    if request["anonymous"]:
        return Remote(request, False)
    try:
        return Remote(request, None)
    except Exception as error:
        if classify(error)[0] != "revoked":
            raise
        try:
            return Remote(request, False)
        except Exception as again:
            raise (error if classify(again)[0] in UNSEEN else again) from None


@by_kind
def look(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """What a download would fetch: the commit and the number of bytes. Only the listing is requested."""
    limit_memory(MEMORY)
    remote = open_remote(request)
    remote.check_size([MANIFEST, CONFIG, WEIGHTS])
    sizes = {
        name: size or 0 for name, size in remote.sizes.items() if Path(name).suffix in (".json", ".safetensors", ".model", ".md")
    }
    return {"revision": remote.sha, "bytes": sum(sizes.values())}


@by_kind
def download(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """Download all files, or raise an exception. The branch's entry in the cache is written last, so that it always names a
    complete snapshot."""
    limit_memory(MEMORY)
    limit(RLIMIT_FSIZE=request["ceiling"])
    folder, repo, revision = Path(request["cache"]), request["repo"], request["revision"]
    cache.sweep(folder, repo)
    remote = open_remote(request)
    make(folder)
    cache.clear_the_way(folder, repo, revision, remote.sha)
    names = remote.wanted()
    total, done = sum(remote.sizes[name] or 0 for name in names), 0

    def progress(done: int, total: int) -> None:
        say(progress=[done, total])

    for name in names:
        progress(done, total)
        remote.fetch(name, meter_of(progress, done, total))
        done += remote.sizes[name] or 0
    progress(total, total)
    cache.remember(folder, repo, revision, remote.sha)
    return {"revision": remote.sha}


def make(folder: Path) -> None:
    """Make the cache folder. On a drive that is gone, it is the drive that is not found."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError:
        raise Failure("unwritable", str(folder)) from None


def meter_of(progress: Progress, before: int, total: int) -> type[tqdm]:
    """A stand-in for the client's progress bar, which passes the number of bytes on."""

    class Meter(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.bytes = 0
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            self.bytes += int(n or 0)
            progress(min(before + self.bytes, total), total)
            return None

    return Meter
