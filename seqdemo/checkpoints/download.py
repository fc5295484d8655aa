"""In the child: ask a repository's sizes, then fetch exactly the files its manifest names into the Hub's cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

from seqdemo.checkpoints import cache
from seqdemo.checkpoints.client import Failure
from seqdemo.checkpoints.folder import CARD, CONFIG, MANIFEST, MAX_TOTAL, MB, METRICS, WEIGHTS, ceiling, parse_manifest
from seqdemo.checkpoints.wire import Deadline, attempt, classify, holds, use_careful_client
from seqdemo.errors import InputError

CALL_SECONDS = 10.0
MAX_FILES = 30
Progress = Callable[[int, int], None]


class Remote:
    """One repository at one commit."""

    def __init__(self, request: dict[str, Any], token: bool | None) -> None:
        self.repo, self.token, self.deadline = request["repo"], token, Deadline(request["deadline"])
        use_careful_client(CALL_SECONDS)
        api = HfApi(token=token)
        info = attempt(
            lambda: api.model_info(self.repo, revision=request["revision"], files_metadata=True, timeout=CALL_SECONDS),
            self.deadline,
        )
        self.sha = str(info.sha)
        if not cache.COMMIT.fullmatch(self.sha):
            raise Failure("hostile", f"commit {self.sha[:100]!r}")
        self.listed = {file.rfilename: file for file in info.siblings or () if "/" not in file.rfilename}
        self.sizes = {name: file.size for name, file in self.listed.items()}
        for name in (MANIFEST, CONFIG, WEIGHTS):
            if name not in self.sizes:
                raise InputError(f"{self.repo} is not a seqdemo checkpoint: it has no {name}.")

    def fetch(self, name: str, request: dict[str, Any], meter: type[tqdm] | None = None) -> bytes:
        """The file's bytes, in the cache already or now. The library looks neither at what it has cached nor at what it gets:
        bytes that are not those of the listing are fetched again once."""
        for again in (False, True):
            data = self.bring(name, Path(request["cache"]), again, meter)
            if holds(self.listed[name], data):
                return data
        raise Failure("damaged", name)

    def bring(self, name: str, folder: Path, again: bool, meter: type[tqdm] | None) -> bytes:
        def call() -> str:
            if again:  # where links are not supported the library would leave the old copy in the snapshot
                (cache.repo_folder(folder, self.repo) / "snapshots" / self.sha / name).unlink(missing_ok=True)
            return hf_hub_download(
                self.repo,
                name,
                revision=self.sha,
                cache_dir=folder,
                token=self.token,
                force_download=again,
                tqdm_class=meter,
            )

        return Path(attempt(call, self.deadline)).read_bytes()

    def wanted(self, request: dict[str, Any]) -> list[str]:
        """The manifest, what it names, and the card; their sizes are known and capped before any of them is fetched."""
        self.check_size([MANIFEST])
        named = parse_manifest(self.fetch(MANIFEST, request))
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
    """With the person's own token where allowed; a token that is no longer valid must not bar a public repository."""
    if request["anonymous"]:
        return Remote(request, False)
    try:
        return Remote(request, None)
    except Exception as error:
        if classify(error)[0] != "revoked":
            raise
        try:
            return Remote(request, False)
        except Exception:
            raise error from None


def look(request: dict[str, Any]) -> dict[str, Any]:
    """What a download would fetch: commit and bytes. Nothing but the listing is asked for."""
    remote = open_remote(request)
    remote.check_size([MANIFEST, CONFIG, WEIGHTS])
    sizes = {
        name: size or 0 for name, size in remote.sizes.items() if Path(name).suffix in (".json", ".safetensors", ".model", ".md")
    }
    return {"revision": remote.sha, "bytes": sum(sizes.values())}


def download(request: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """All files or an exception; the branch's entry in the cache is written last, so it always names a complete snapshot."""
    cache.sweep(Path(request["cache"]), request["repo"])
    remote = open_remote(request)
    names = remote.wanted(request)
    total, done = sum(remote.sizes[name] or 0 for name in names), 0
    for name in names:
        progress(done, total)
        remote.fetch(name, request, meter_of(progress, done, total))
        done += remote.sizes[name] or 0
    progress(total, total)
    cache.remember(Path(request["cache"]), request["repo"], request["revision"], remote.sha)
    return {"revision": remote.sha}


def meter_of(progress: Progress, before: int, total: int) -> type[tqdm]:
    """The client reports bytes to a progress bar; this one passes them on."""

    class Meter(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.bytes = 0
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            self.bytes += int(n or 0)
            progress(min(before + self.bytes, total), total)
            return None

    return Meter
