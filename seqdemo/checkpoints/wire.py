"""The Hub's client as the child uses it: no call without a time-out, no wait beyond the deadline, no header that is a path;
and what went wrong, by kind. Imports huggingface_hub, so only the child imports this."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from huggingface_hub import errors, get_session, set_client_factory
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

from seqdemo.checkpoints.client import Failure
from seqdemo.errors import InputError

T = TypeVar("T")
TRIES = 3
TRANSIENT = ("server", "cut-short", "slow", "rate-limited")
TAG = re.compile(r'(W/)?"?[A-Za-z0-9_-]{1,128}"?')
FILE_NAMES = {"ETag": TAG, "X-Linked-Etag": TAG, "X-Repo-Commit": re.compile("[0-9a-f]{40}")}  # the library makes paths of them


class TooManyRequests(Exception):
    def __init__(self, seconds: int) -> None:
        super().__init__(str(seconds))
        self.seconds = seconds


class Hostile(Exception):
    pass


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def remaining(self) -> float:
        return self.end - time.monotonic()


def use_careful_client(timeout: float) -> None:
    """Every request of the library gets a time-out, and every answer is looked at before the library acts on it."""

    def look_at(response: httpx.Response) -> None:
        if response.status_code == 429:  # the library would wait as long as it is told, or not at all, by call
            raise TooManyRequests(retry_after(response))
        for header, harmless in FILE_NAMES.items():
            if header in response.headers and not harmless.fullmatch(response.headers[header]):
                raise Hostile(f"{header}: {response.headers[header][:100]!r}")

    hooks: dict[str, list[Callable[..., Any]]] = {"request": get_session().event_hooks["request"], "response": [look_at]}

    def factory() -> httpx.Client:
        return httpx.Client(event_hooks=hooks, follow_redirects=True, timeout=timeout)

    set_client_factory(factory)


def holds(listed: Any, data: bytes) -> bool:
    """Whether an entry of a repository's listing is of these bytes: sha256 for large files, git's own sum for small ones."""
    if listed.lfs:
        return bool(listed.lfs.sha256 == hashlib.sha256(data).hexdigest())
    return bool(listed.blob_id == hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest())


def retry_after(response: httpx.Response) -> int:
    """Seconds to wait; the Hub says it in either header."""
    found = re.search(r"r\s*=\s*0\s*;\s*t\s*=\s*(\d+)", response.headers.get("ratelimit", ""))
    value = found[1] if found else response.headers.get("retry-after", "")
    return int(value) if value.isdigit() and len(value) < 7 else 1


def attempt(call: Callable[[], T], deadline: Deadline) -> T:
    """Once more after what passes by itself. The library retries some of these in some calls, and none in others."""
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
    pause = float(detail) if kind == "rate-limited" else 0.5 * number
    if kind not in TRANSIENT or number == TRIES or pause > deadline.remaining():
        return False
    time.sleep(pause)
    return True


def classify(error: BaseException) -> tuple[str, str]:
    """The kind of a failure, a key of `sentences.SENTENCES`, and a detail."""
    if isinstance(error, Failure):
        return error.kind, error.detail
    if isinstance(error, InputError):
        return "refused-file", str(error)
    if isinstance(error, TooManyRequests):
        return "rate-limited", str(error.seconds)
    if isinstance(error, Hostile):
        return "hostile", str(error)
    if isinstance(error, errors.OfflineModeIsEnabled):
        return "offline-mode", ""
    if isinstance(error, errors.LocalEntryNotFoundError | RuntimeError) and error.__cause__:  # what the library wraps
        return classify(error.__cause__)
    for kind, name in ((errors.GatedRepoError, "gated"), (errors.DisabledRepoError, "disabled")):
        if isinstance(error, kind):
            return name, ""
    if isinstance(error, errors.HfHubHTTPError) and error.response is not None:
        return _by_status(error, error.response)
    if isinstance(error, errors.FileMetadataError | json.JSONDecodeError):
        return "not-a-hub", ""
    if isinstance(error, errors.LocalTokenNotFoundError):
        return "no-token", ""
    if isinstance(error, httpx.TransportError):
        return _by_transport(error)
    if isinstance(error, OSError):
        return _by_errno(error)
    if isinstance(error, ValueError):  # the library's own checks, among them the card's metadata
        return "rejected", str(error)[:500]
    return "unknown", f"{type(error).__name__}: {str(error)[:300]}"


def _by_status(error: errors.HfHubHTTPError, response: httpx.Response) -> tuple[str, str]:
    status = response.status_code
    said = response.headers.get("X-Error-Message") or error.server_message or response.reason_phrase
    if status == 401 and re.search(r"invalid (credentials|user|token)|expired|revoked", f"{said} {error}", re.IGNORECASE):
        return "revoked", ""
    for kind, name in (
        (errors.RevisionNotFoundError, "no-revision"),
        (errors.RemoteEntryNotFoundError, "no-file"),
        (errors.RepositoryNotFoundError, "not-found"),
    ):
        if isinstance(error, kind):
            return name, ""
    named = {401: "not-found", 402: "payment", 403: "forbidden", 404: "not-found", 409: "conflict", 412: "conflict"}
    return named.get(status, "server" if status >= 500 else "rejected"), f"{status}, {said[:300]}"


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
    """The proxy that the environment prescribes for this address; empty without one."""
    parts = urlsplit(url)
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all") or ""
    return "" if proxy_bypass(parts.hostname or "") else found


def _by_errno(error: OSError) -> tuple[str, str]:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk-full", ""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
        return "unwritable", str(error.filename or "")
    if error.errno == errno.EFBIG:
        return "too-big", ""
    if "Consistency check failed" in str(error):
        return "cut-short", ""
    return "unknown", f"{type(error).__name__}: {str(error)[:300]}"
