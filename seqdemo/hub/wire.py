"""The Hub's client as the child process uses it: every call has a time-out, no wait exceeds the deadline, answers and headers
are bounded and checked; and failures are classified. It imports huggingface_hub, so only the child imports it."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from huggingface_hub import HfApi, errors, get_session, set_client_factory
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

from seqdemo.child.parent import Failure
from seqdemo.errors import InputError
from seqdemo.hub.cache import git_sum, is_commit
from seqdemo.hub.faults import endpoint

T = TypeVar("T")
Work = Callable[[dict[str, Any], Callable[..., None]], Any]
TRIES = 3
TRANSIENT = ("server", "cut-short", "slow", "rate-limited", "garbled", "expired-link")
MOST_ANSWER = 8 << 20  # bytes of an answer other than a file; a listing of 10,000 files needs a quarter of it
LONGEST_PAUSE = 10**9
TAG = re.compile(r'(W/)?"?[A-Za-z0-9_-]{1,128}"?')
FILE_NAMES = {"ETag": TAG, "X-Linked-Etag": TAG, "X-Repo-Commit": re.compile("[0-9a-f]{40}")}  # the library uses them as paths


class TooManyRequests(Exception):
    """`seconds`: the pause that the Hub asks for; None if it does not say."""

    def __init__(self, seconds: int | None) -> None:
        super().__init__(str(seconds))
        self.seconds = seconds


class ServerFault(Exception):
    pass


class Hostile(Exception):
    pass


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def remaining(self) -> float:
        return self.end - time.monotonic()


class Bounded(httpx.SyncByteStream):
    """A response body that raises an exception when it becomes too long."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __iter__(self) -> Iterator[bytes]:
        total = 0
        for chunk in self.stream:
            total += len(chunk)
            if total > MOST_ANSWER:
                raise Hostile(f"an answer of more than {MOST_ANSWER >> 20} MB")
            yield chunk

    def close(self) -> None:
        self.stream.close()


def use_careful_client(timeout: float) -> None:
    """Give every request of the library a time-out, and check every answer before the library uses it."""

    def look_at(response: httpx.Response) -> None:
        if response.status_code == 429:  # the library waits as long as the answer says, or not at all, depending on the call
            raise TooManyRequests(retry_after(response))
        if response.status_code >= 500:  # the library retries for minutes, or not at all, depending on the call
            raise ServerFault(f"{response.status_code}, {response.headers.get('X-Error-Message') or response.reason_phrase}")
        for header, harmless in FILE_NAMES.items():
            if header in response.headers and not harmless.fullmatch(response.headers[header]):
                raise Hostile(f"{header}: {response.headers[header][:100]!r}")
        if is_read_whole(response):
            if response.headers.get("Content-Encoding", "identity") != "identity":  # a kilobyte may decompress to a megabyte
                raise Hostile("a packed answer, which was not asked for")
            response.stream = Bounded(response.stream)

    hooks: dict[str, list[Callable[..., Any]]] = {"request": get_session().event_hooks["request"], "response": [look_at]}

    def factory() -> httpx.Client:
        unpacked = {"Accept-Encoding": "identity"}
        return httpx.Client(event_hooks=hooks, follow_redirects=True, timeout=timeout, headers=unpacked)

    set_client_factory(factory)


def is_read_whole(response: httpx.Response) -> bool:
    """Whether the library reads the answer into memory. It writes a file to the disk piece by piece."""
    request = response.request
    is_file = request.method == "GET" and response.is_success and not request.url.path.startswith("/api/")
    return request.method != "HEAD" and not is_file


def retry_after(response: httpx.Response) -> int | None:
    """The seconds to wait, from one of two headers; by the standard the second may also be a date."""
    found = re.search(r"r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", response.headers.get("ratelimit", ""))
    value = (found[1] if found else response.headers.get("retry-after", "")).strip()
    if re.fullmatch("[0-9]+", value):
        return min(int(value[:12]), LONGEST_PAUSE)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    until = (date.replace(tzinfo=date.tzinfo or timezone.utc) - datetime.now(timezone.utc)).total_seconds()
    return min(math.ceil(until), LONGEST_PAUSE) if until > 0 else None


# What a repository holds


class Listed(NamedTuple):
    """A file of a repository's listing, with its sha256 if it is large, or git's own hash if it is small."""

    size: int | None
    sha256: str
    git: str

    def holds(self, data: bytes) -> bool:
        return self.sha256 == hashlib.sha256(data).hexdigest() if self.sha256 else self.git == git_sum(data)


@dataclass(frozen=True)
class Listing:
    commit: str
    private: bool
    files: dict[str, Listed]


def listing(api: HfApi, request: dict[str, Any], deadline: Deadline, timeout: float) -> Listing:
    """The current content of the repository. It is checked here, because the library accepts any JSON as a listing."""

    def call() -> Listing:
        try:
            found: Any = api.repo_info(
                request["repo"],
                repo_type=request.get("kind", "model"),
                revision=request.get("revision"),
                files_metadata=True,
                timeout=timeout,
            )
            files = {_text(file.rfilename): _listed(file) for file in found.siblings or ()}
            return Listing(_text(found.sha), bool(found.private), files)
        except (json.JSONDecodeError, UnicodeError):
            raise
        except ValueError as error:  # such as a date of another form
            raise Failure("garbled") from error

    found = attempt(well_formed(call), deadline)
    if not is_commit(found.commit):
        raise Hostile(f"commit {found.commit[:100]!r}")
    return found


def well_formed(call: Callable[..., T]) -> Callable[..., T]:
    """A call of the library that fails in one way when the answer is JSON of another form, of which the library takes any."""

    def told(*args: Any, **kwargs: Any) -> T:
        try:
            return call(*args, **kwargs)
        except (TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
            raise Failure("garbled") from error
        except ValueError as error:
            if MALFORMED.search(str(error)):
                raise Failure("garbled") from error
            raise

    return told


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _listed(file: Any) -> Listed:
    if not (file.size is None or (type(file.size) is int and file.size >= 0)):
        raise TypeError
    return Listed(file.size, _text(file.lfs.sha256) if file.lfs else "", file.blob_id if isinstance(file.blob_id, str) else "")


# Trying again


def attempt(call: Callable[[], T], deadline: Deadline) -> T:
    """Try again after failures that pass by themselves. The library retries some of them in some calls, and none in others."""
    for number in range(1, TRIES + 1):
        try:
            return call()
        except Exception as error:
            if not waited(error, number, deadline):
                raise
    raise AssertionError


def waited(error: Exception, number: int, deadline: Deadline) -> bool:
    """Whether to try again, after the pause that this failure asks for."""
    kind, detail = classify(error)
    pause = float(detail) if kind == "rate-limited" and detail else 0.5 * number
    if kind not in TRANSIENT or number == TRIES or pause > deadline.remaining():
        return False
    time.sleep(pause)
    return True


# What went wrong


def by_kind(work: Work) -> Work:
    """Run a piece of work and turn every exception into a Failure with its kind."""

    @functools.wraps(work)
    def told(request: dict[str, Any], say: Callable[..., None]) -> Any:
        try:
            return work(request, say)
        except InputError:
            raise
        except Exception as error:
            raise Failure(*classify(error)) from error

    return told


def classify(error: BaseException) -> tuple[str, str]:
    """The kind of a failure, a key of `faults.SENTENCES`, and a detail."""
    if isinstance(error, Failure):
        return error.kind, error.detail
    if isinstance(error, TooManyRequests):
        return "rate-limited", "" if error.seconds is None else str(error.seconds)
    if isinstance(error, ServerFault):
        return "server", str(error)[:300]
    if isinstance(error, (Hostile, MemoryError)):
        return "hostile", str(error) or "an answer that fills the memory"
    if isinstance(error, errors.OfflineModeIsEnabled):
        return "offline-mode", ""
    if isinstance(error, (errors.LocalEntryNotFoundError, RuntimeError)) and error.__cause__:  # exceptions that the library wraps
        return classify(error.__cause__)
    if isinstance(error, errors.HfHubHTTPError) and error.response is not None:
        return _by_status(error, error.response)
    if isinstance(error, errors.FileMetadataError):
        return "not-a-hub", ""
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return _by_text(error.doc if isinstance(error, json.JSONDecodeError) else error.object)
    if isinstance(error, errors.LocalTokenNotFoundError):
        return "no-token", ""
    if isinstance(error, UnicodeEncodeError):  # nothing else in a request is chosen by the user and unchecked
        return "revoked", ""
    if isinstance(error, ImportError) and "socksio" in str(error):
        return "proxy", "SOCKS needs `pip install socksio`"
    if isinstance(error, (httpx.TooManyRedirects, httpx.UnsupportedProtocol, httpx.InvalidURL)):  # a link that leads nowhere
        return "not-a-hub", ""
    if isinstance(error, httpx.DecodingError):
        return "garbled", ""
    if isinstance(error, httpx.TransportError):
        return _by_transport(error)
    if isinstance(error, OSError):
        return _by_errno(error)
    if isinstance(error, ValueError):  # the library's own checks, among them the card's metadata
        return "rejected", str(error)[:500]
    return "unknown", f"{type(error).__name__}: {str(error)[:300]}"


REFUSALS = (  # the class follows X-Error-Code; that of a gated repository is a subclass of not found, so it comes first
    (errors.GatedRepoError, "gated"),
    (errors.DisabledRepoError, "disabled"),
    (errors.RevisionNotFoundError, "no-revision"),
    (errors.RemoteEntryNotFoundError, "no-file"),
    (errors.RepositoryNotFoundError, "not-found"),
)
STATUSES = {402: "payment", 403: "forbidden", 404: "not-found", 408: "slow", 409: "conflict", 412: "conflict", 413: "full"}
OF_FILES = {401: "expired-link", 403: "expired-link", 404: "no-file", 410: "no-file"}  # of the store that signed links lead to
MALFORMED = re.compile("improperly formatted|malformed response", re.IGNORECASE)  # the library's words for it
NO_ROOM = re.compile("storage|quota", re.IGNORECASE)


def _by_status(error: errors.HfHubHTTPError, response: httpx.Response) -> tuple[str, str]:
    for kind, name in REFUSALS:
        if isinstance(error, kind):
            return name, ""
    status, url = response.status_code, response.request.url
    said = f"{status}, {(response.headers.get('X-Error-Message') or error.server_message or response.reason_phrase)[:300]}"
    if status == 407:
        return "proxy", proxy_used(str(url)) or said
    if origin(str(url)) != origin(endpoint()):
        return OF_FILES.get(status, "rejected"), said
    if response.headers.get("Content-Type", "").startswith("text/html"):  # the Hub's own errors are JSON or plain text
        return "not-a-hub", ""
    signed = "authorization" in response.request.headers
    if status == 401:  # the Hub gives the same answer for a missing repository and a bad token; whether a token was sent decides
        return ("revoked" if signed else "not-found"), ""
    if status == 403 and (NO_ROOM.search(said) or not signed):
        return ("full" if signed else "no-account"), said
    if status == 404 and "/resolve/" in url.path:
        return "no-file", ""
    return STATUSES.get(status, "rejected"), said


def origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _by_text(text: Any) -> tuple[str, str]:
    """The kind of an answer that is no JSON: a web page, or bits that changed on the way."""
    start = text[:200].lstrip()
    return ("not-a-hub" if start.startswith(b"<" if isinstance(start, bytes) else "<") else "garbled"), ""


def _by_transport(error: httpx.TransportError) -> tuple[str, str]:
    text = str(error)
    if isinstance(error, httpx.ProxyError):
        return "proxy", text[:200]
    if isinstance(error, httpx.TimeoutException):
        return "slow", ""
    if isinstance(error, httpx.ConnectError):
        if re.search("certificate|ssl", text, re.IGNORECASE):
            return "certificate", text[:200]
        if proxy := proxy_used(str(error.request.url)):
            return "proxy", proxy
        return ("refused", "") if re.search("refused|reset", text, re.IGNORECASE) else ("no-connection", text[:200])
    return "cut-short", ""


def proxy_used(url: str) -> str:
    """The proxy that the environment sets for this address; empty if there is none."""
    parts = urlsplit(url)
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all") or ""
    return "" if proxy_bypass(parts.hostname or "") else found


def _by_errno(error: OSError) -> tuple[str, str]:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk-full", ""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
        return "unwritable", str(error.filename or "")
    if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
        return "obstructed", str(error.filename or "")
    if error.errno == errno.EFBIG:
        return "too-big", ""
    if "Consistency check failed" in str(error):
        return "cut-short", ""
    return "unknown", f"{type(error).__name__}: {str(error)[:300]}"
