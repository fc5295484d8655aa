"""The Hub's cache on disk, read and cleaned without the network or the Hub's library. Other programs use it too, and a file in
it may be of any kind: nothing here opens what is not a plain file."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seqdemo.checkpoints.folder import MANIFEST, Folder, belongs, parse_manifest, read_plain, replace_file
from seqdemo.errors import InputError

COMMIT = re.compile("[0-9a-f]{40}")
SHA256 = re.compile("[0-9a-f]{64}")
ORPHAN_SECONDS = 600.0
IN_USE_SECONDS = 120.0  # longer than one load takes
GB = 1 << 30


def is_commit(value: Any) -> bool:
    return isinstance(value, str) and COMMIT.fullmatch(value) is not None


def cache_folder() -> Path:
    """Where huggingface_hub keeps its downloads."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or Path(home) / "hub").expanduser()


def visitors_folder() -> Path:
    """Repositories that strangers named have a cache of their own, so that private files, fetched with a token, are never served
    to them."""
    return cache_folder().with_name("seqdemo-visitors")


def repo_folder(cache: Path, repo: str) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def snapshot(cache: Path, repo: str, revision: str) -> Path | None:
    """The complete snapshot of a commit, or of the commit last seen for a branch, or None."""
    storage = repo_folder(cache, repo)
    commit = revision
    if not is_commit(revision):
        try:
            commit = read_plain(storage / "refs" / revision, 100).decode("ascii", "replace").strip()
        except (InputError, OSError):
            return None
    path = storage / "snapshots" / commit
    return path if is_commit(commit) and complete(path, cache) else None


def complete(path: Path, cache: Path) -> bool:
    """Whether all files that the manifest names are there. Their contents are checked when they are read."""
    try:
        folder = Folder(path, cache)
        return all(name in folder for name in parse_manifest(folder.read(MANIFEST)))
    except (InputError, OSError):
        return False


def remember(cache: Path, repo: str, revision: str, commit: str) -> None:
    if not is_commit(revision):
        path = repo_folder(cache, repo) / "refs" / revision
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, commit.encode())


def clear_the_way(cache: Path, repo: str, revision: str, commit: str) -> None:
    """Where the library expects plain files or links to plain files, remove everything else: pipes, devices, folders, and links
    that lead in a circle or out of the repository. Where it expects folders, remove what is none. The same for its locks."""
    storage = repo_folder(cache, repo)
    locks = cache / ".locks" / storage.name
    folders = (storage, storage / "refs", storage / "blobs", storage / "snapshots", storage / "snapshots" / commit)
    for path in (*folders, locks.parent, locks):
        if os.path.lexists(path) and not path.is_dir():
            remove(path)
    reference = [] if is_commit(revision) else [storage / "refs" / revision]
    for path in [*reference, *_inside(storage / "blobs"), *_inside(storage / "snapshots" / commit)]:
        if not _is_file_of(path, storage) and belongs_here(path):
            remove(path)
    for path in _inside(locks):
        if not _is_file_of(path, locks):
            remove(path)


def belongs_here(path: Path) -> bool:
    """Whether the library could have put this here. A folder may belong to a repository, but not under the name of a
    checkpoint's file."""
    return not (path.is_dir() and not path.is_symlink() and "snapshots" in path.parts) or belongs(path.name)


def _inside(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield Path(entry.path)


def _is_file_of(path: Path, storage: Path) -> bool:
    try:
        real = path.resolve(strict=True)
        return stat.S_ISREG(real.lstat().st_mode) and storage.resolve() in real.parents
    except FileNotFoundError:
        return not path.is_symlink()  # it no longer exists, or it links to a missing blob
    except (OSError, RuntimeError):  # a link that leads in a circle
        return False


def remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def discard(path: Path) -> None:
    """Remove a file of a snapshot, and the blob it links to."""
    with contextlib.suppress(OSError, RuntimeError):
        remove(path.resolve())
    remove(path)


def discard_damaged(cache: Path, folder: Path) -> list[str]:
    """Remove the files of a snapshot whose bytes do not fit the hash in the name of their blob. Systems without links have no
    such names: there, all files of the checkpoint are removed."""
    damaged = []
    with contextlib.suppress(InputError, OSError):
        opened = Folder(folder, cache)
        for name, path in opened.paths.items():
            linked = path.parent.name == "blobs"
            if belongs(name) and not (linked and blob_holds(path)):
                discard(folder / name)
                damaged.append(name)
    return damaged


def blob_holds(path: Path) -> bool:
    """Whether the bytes fit the hash that is the blob's name: sha256 for large files, git's own for small ones."""
    data = path.read_bytes()
    if SHA256.fullmatch(path.name):
        return path.name == hashlib.sha256(data).hexdigest()
    return path.name == git_sum(data)


def git_sum(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sweep(cache: Path, repo: str = "*", seconds: float = ORPHAN_SECONDS) -> list[Path]:
    """Remove partial downloads that killed processes left behind; the library would keep them forever. Times in the future
    (after a clock was set back) count as old."""
    removed = []
    for path in repo_folder(cache, repo).parent.glob(f"{repo_folder(cache, repo).name}/blobs/*.incomplete"):
        with contextlib.suppress(OSError):
            if abs(time.time() - path.lstat().st_mtime) > seconds:
                path.unlink()
                removed.append(path)
    return removed


def trim(cache: Path, ceiling: int = 2 * GB, untouched: float = IN_USE_SECONDS) -> list[Path]:
    """Remove the least recently used repositories until the rest fits."""
    found = sorted(_repositories(cache))
    total, removed = sum(size for _, size, _ in found), []
    for used, size, path in found:
        if total > ceiling and time.time() - used > untouched:
            shutil.rmtree(path, ignore_errors=True)
            total -= size
            removed.append(path)
    return removed


def touch(cache: Path, repo: str) -> None:
    with contextlib.suppress(OSError):
        os.utime(repo_folder(cache, repo))


def _repositories(cache: Path) -> Iterator[tuple[float, int, Path]]:
    """When each was last used, its size and its folder. Other processes may be adding and removing some."""
    for path in cache.glob("models--*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir():
                yield path.stat().st_mtime, _size(path), path


def _size(path: Path) -> int:
    """The bytes of all plain files in a folder."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found = os.lstat(os.path.join(folder, name))
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total
