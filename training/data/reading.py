"""Helpers of all readers: numbered lines, members of archives, and sentences for unusable files."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from seqdemo.errors import InputError

Problems = list[str]  # rows that cannot be used, each as "file:line: reason"
Pair = tuple[str, str]

SPLITS = ("train", "dev", "test")
PACKED: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
DAMAGED = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError)


def lines(rows: Iterable[bytes], label: str, problems: Problems) -> Iterator[tuple[int, str]]:
    """Numbered lines of UTF-8 text; only LF and CR LF end a line."""
    for number, row in enumerate(rows, 1):
        row = row.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield number, (row.removeprefix(b"\xef\xbb\xbf") if number == 1 else row).decode("utf-8")
        except UnicodeDecodeError:
            problems.append(f"{label}:{number}: not UTF-8")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn any error with the file into a sentence that says what to do."""
    try:
        yield
    except DAMAGED as error:
        raise InputError(f"{path} cannot be read ({error}). Delete it and fetch it again.") from None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a plain, .xz or .gz file."""
    with readable(path), PACKED.get(path.suffix, open)(path, "rb") as stream:
        yield stream


@contextmanager
def zip_member(archive: Path, wanted: Callable[[str], bool], what: str) -> Iterator[BinaryIO]:
    """The first member whose bare name is `wanted`, read in place."""
    with readable(archive), zipfile.ZipFile(archive) as members:
        names = [name for name in members.namelist() if wanted(bare(name)) and not name.startswith("__MACOSX")]
        if not names:
            raise InputError(f"{archive} holds no {what}. Delete it and fetch it again.")
        with members.open(names[0]) as stream:
            yield cast(BinaryIO, stream)


def bare(name: str) -> str:
    return PurePosixPath(name).name


def first_existing(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).exists()), None)


def missing(what: str, folder: Path, *names: str) -> InputError:
    return InputError(f"{what} is not in {folder}: expected {' or '.join(names)}. Leave out --data to download it.")
