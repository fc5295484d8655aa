"""Download public files into the cache. Broken downloads are resumed; files are checked, and renamed only when complete."""

from __future__ import annotations

import hashlib
import http.client
import logging
import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from seqdemo.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

ATTEMPTS = 5
PAUSE = 1.0  # seconds before the second attempt; doubled each time
TIMEOUT = 30.0
LONGEST_PAUSE = 60.0
CHUNK = 1 << 18
AGENT = "Mozilla/5.0 (compatible; seqdemo)"  # some hosts refuse Python's default

Report = Callable[[int, int], None]  # bytes here, bytes in all (0: unknown)


@dataclass(frozen=True)
class File:
    """A file at an address (`url`), or in a dataset repository of the Hub (`repo`), and where it goes in the data folder."""

    path: str
    url: str = ""
    repo: str = ""
    sha256: str = ""  # of the recorded edition, where it is known

    @property
    def home(self) -> str:
        return self.url or f"https://huggingface.co/datasets/{self.repo}"


def cache_folder() -> Path:
    """`$SEQDEMO_CACHE`, or `seqdemo` in the user's cache folder."""
    own = os.environ.get("SEQDEMO_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return (Path(own) if own else base / "seqdemo").expanduser() / "data"


def fetch_all(files: Iterable[File], folder: Path, show: bool = True) -> None:
    """Every file that is not in the folder yet, with a progress bar on standard error (the Hub's client draws its own)."""
    absent = [file for file in files if not (folder / file.path).exists()]
    for file in absent:
        if file.repo:
            fetch(file, folder)
    if not any(file.url for file in absent):
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not show) as progress:
        for file in absent:
            if file.url:
                fetch(file, folder, partial(_advance, progress, progress.add_task(file.path, total=None)))


def _advance(progress: Progress, task: TaskID, here: int, total: int) -> None:
    progress.update(task, completed=here, total=total or None)


def fetch(file: File, folder: Path, report: Report = lambda here, total: None) -> Path:
    """The file in the folder, downloaded if it is missing. Processes that want the same file wait for one another."""
    target = folder / file.path
    try:
        with alone(target):
            if not target.exists():
                _fetch_from_hub(file, target) if file.repo else _fetch_from_address(file, target, report)
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror or error}). Make room, or set SEQDEMO_CACHE.") from None
    return target


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """A lock for processes that make the same file or folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        yield


# ------------------------------------------------------------------------------------------------------------------ Hub


def _fetch_from_hub(file: File, target: Path) -> None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import logging as log

    before = log.get_verbosity()
    log.set_verbosity(logging.ERROR)  # the client would tell of every attempt
    try:
        hf_hub_download(file.repo, target.name, repo_type="dataset", local_dir=target.parent, token=False)
    except Exception as error:  # the client passes on errors of its HTTP library, which may change
        raise failed(file, in_words(error)) from None
    finally:
        log.set_verbosity(before)


def failed(file: File, reason: str) -> InputError:
    return InputError(
        f"{file.home} could not be fetched ({reason}): run the command again, which goes on with what has arrived, "
        f"or give a folder that holds {file.path} with --data."
    )


def in_words(error: BaseException) -> str:
    """Why a file did not come, by the first of these errors that is known, else by the first sentence of the innermost."""
    known: list[tuple[type[BaseException], str]] = [
        (socket.gaierror, "its host is not found; is there a connection to the Internet?"),
        (ConnectionRefusedError, "the connection was refused"),
        (TimeoutError, "there was no answer in time"),
    ]
    for each in chain(error):
        for kind, words in known:
            if isinstance(each, kind):
                return words
    return re.split(r"(?<=[.!?])\s|\n", str(each).strip())[0].rstrip(".") or type(each).__name__


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came from."""
    while error is not None:
        yield error
        reason = getattr(error, "reason", None)
        error = reason if isinstance(reason, BaseException) else error.__cause__ or error.__context__


# -------------------------------------------------------------------------------------------------------------- address


class Interrupted(Exception):
    """The transfer stopped or the server was busy; another attempt may succeed."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def _fetch_from_address(file: File, target: Path, report: Report) -> None:
    part = target.with_name(target.name + ".part")
    _until_whole(file, target, part, report)
    found = sha256(part)
    if file.sha256 and found != file.sha256:
        # The file was damaged on the way, or the public file has changed; the same bytes twice mean the latter.
        _discard(part)
        _until_whole(file, target, part, report)
        again = sha256(part)
        if again not in (file.sha256, found):
            _discard(part)
            raise InputError(f"{file.url} arrived damaged twice (sha256 {found[:12]}, then {again[:12]}). Try another network.")
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    os.replace(part, target)
    _validator(part).unlink(missing_ok=True)


def _until_whole(file: File, target: Path, part: Path, report: Report) -> None:
    """Try until the part is complete. Only attempts without new bytes count against the limit."""
    vain = 0
    while True:
        before = _size(part)
        try:
            return _transfer(file, part, report)
        except Interrupted as stop:
            vain = 1 if _size(part) > before else vain + 1
            if vain >= ATTEMPTS:
                raise failed(file, str(stop)) from None
            time.sleep(min(stop.wait or PAUSE * 2 ** (vain - 1), LONGEST_PAUSE))


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _transfer(file: File, part: Path, report: Report) -> None:
    """Make one request, from the end of the part if the server still has the same file, otherwise from the start."""
    have = _size(part) if _validator(part).exists() else 0
    headers = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": _validator(part).read_text()}
    try:
        response = urllib.request.urlopen(urllib.request.Request(file.url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{have}":
            return  # nothing is missing: the last run stopped just before the renaming
        raise _refused(file, part, error) from None
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(in_words(error)) from None
    with response:
        start = _start(response, have)
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else 0
        if not start:
            _discard(part)
        _remember(response, part)
        with part.open("r+b" if start else "wb") as stream:
            stream.seek(start)
            stream.truncate()
            _copy(response, stream.write, start, total, report)


def _copy(response: http.client.HTTPResponse, write: Callable[[bytes], int], here: int, total: int, report: Report) -> None:
    while True:
        try:
            piece = response.read(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise Interrupted(in_words(error)) from None
        if not piece:
            break
        write(piece)
        here += len(piece)
        report(here, total)
    if total and here != total:
        raise Interrupted(f"{here:,} of {total:,} bytes arrived")


def _start(response: http.client.HTTPResponse, have: int) -> int:
    """The place of the answer's first byte in the file. A server without ranges, or with a new file, sends everything."""
    if response.status != 206:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if not match or int(match[1]) > have:
        raise Interrupted("the server sent another range than the one asked for")
    return int(match[1])


def _refused(file: File, part: Path, error: urllib.error.HTTPError) -> Exception:
    if error.code == 416:  # the part does not fit the server's file
        _discard(part)
        return Interrupted("the file has another length now")
    if error.code in (408, 425, 429) or error.code >= 500:
        after = error.headers.get("Retry-After", "")
        return Interrupted(f"HTTP {error.code}", float(after) if after.isdecimal() else 0.0)
    return InputError(f"{file.url} answers {error.code} {error.reason}. Find the file elsewhere and give its folder with --data.")


def _validator(part: Path) -> Path:
    return part.with_name(part.name + ".etag")


def _remember(response: http.client.HTTPResponse, part: Path) -> None:
    """Save what can prove later that the file is still the same; without it the transfer starts again."""
    tag = response.headers.get("ETag", "")
    proof = tag if tag.startswith('"') else response.headers.get("Last-Modified", "")
    if proof:
        _validator(part).write_text(proof)
    else:
        _validator(part).unlink(missing_ok=True)


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator(part).unlink(missing_ok=True)


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()
