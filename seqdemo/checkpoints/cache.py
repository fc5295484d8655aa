"""The Hub's cache on disk, read and kept tidy without asking the network or the library."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

from seqdemo.checkpoints.folder import MANIFEST, Folder, parse_manifest, replace_file
from seqdemo.errors import InputError

COMMIT = re.compile("[0-9a-f]{40}")
ORPHAN_SECONDS = 600.0
IN_USE_SECONDS = 120.0  # longer than one load takes
GB = 1 << 30


def cache_folder() -> Path:
    """Where huggingface_hub keeps its downloads."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or Path(home) / "hub").expanduser()


def visitors_folder() -> Path:
    """What strangers named lies apart: a private file that a token once brought into the other cache is never served to them."""
    return cache_folder().with_name("seqdemo-visitors")


def repo_folder(cache: Path, repo: str) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def snapshot(cache: Path, repo: str, revision: str) -> Path | None:
    """The complete snapshot of a commit, or of the commit last seen for a branch; None if there is none."""
    storage = repo_folder(cache, repo)
    commit = revision
    if not COMMIT.fullmatch(revision):
        try:
            commit = (storage / "refs" / revision).read_text()[:100].strip()
        except OSError:
            return None
    path = storage / "snapshots" / commit
    return path if COMMIT.fullmatch(commit) and complete(path, cache) else None


def complete(path: Path, cache: Path) -> bool:
    """Whether every file the manifest names is there; what is in them is checked when they are read."""
    try:
        folder = Folder(path, cache)
        return all(name in folder for name in parse_manifest(folder.read(MANIFEST)))
    except (InputError, OSError):
        return False


def remember(cache: Path, repo: str, revision: str, commit: str) -> None:
    if not COMMIT.fullmatch(revision):
        path = repo_folder(cache, repo) / "refs" / revision
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, commit.encode())


def sweep(cache: Path, repo: str = "*", seconds: float = ORPHAN_SECONDS) -> list[Path]:
    """Remove partial downloads that nobody writes any more; a process that was killed leaves them, and the library keeps them
    for ever. Times in the future (a clock that was set back) count as old."""
    removed = []
    for path in repo_folder(cache, repo).parent.glob(f"{repo_folder(cache, repo).name}/blobs/*.incomplete"):
        with contextlib.suppress(OSError):
            if abs(time.time() - path.lstat().st_mtime) > seconds:
                path.unlink()
                removed.append(path)
    return removed


def trim(cache: Path, ceiling: int = 2 * GB, untouched: float = IN_USE_SECONDS) -> list[Path]:
    """Remove the repositories that were used longest ago until the rest fits."""
    found = [(path.stat().st_mtime, _size(path), path) for path in cache.glob("models--*") if path.is_dir()]
    total, removed = sum(size for _, size, _ in found), []
    for used, size, path in sorted(found):
        if total > ceiling and time.time() - used > untouched:
            shutil.rmtree(path, ignore_errors=True)
            total -= size
            removed.append(path)
    return removed


def touch(cache: Path, repo: str) -> None:
    with contextlib.suppress(OSError):
        os.utime(repo_folder(cache, repo))


def _size(path: Path) -> int:
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())
