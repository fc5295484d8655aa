"""Replies of the loopback Hub, and the faults that may befall them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.shared import PATIENCE


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    announced: int | None = None  # Content-Length, where it is not the body's
    times: int = 1  # the body is sent so often
    end: str = ""  # close: after the body | reset: in the middle of it | silence: no answer at all
    wait: float = 0.0  # seconds before the answer
    pause: float = 0.0  # and after its body


def js(value: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


def error(status: int, code: str = "", message: str = "", **headers: str) -> Reply:
    named = {"X-Error-Code": code, "X-Error-Message": message}
    body = {"error": message or code or str(status)}
    return js(body, status, **{name: value for name, value in named.items() if value}, **headers)


Fault = Callable[[Callable[[], Reply]], Reply]


def status(code: int, name: str = "", message: str = "", **headers: str) -> Fault:
    return lambda answer: error(code, name, message, **{key.replace("_", "-"): value for key, value in headers.items()})


def hang(seconds: float) -> Fault:
    """Accept the request, wait so long, then send the true answer."""
    return lambda answer: replace(answer(), wait=seconds)


def until(event: threading.Event) -> Fault:
    """Accept the request, and send the true answer when this has happened."""

    def fault(answer: Callable[[], Reply]) -> Reply:
        event.wait(PATIENCE)
        return answer()

    return fault


def deaf(answer: Callable[[], Reply]) -> Reply:
    """Do nothing for a long time."""
    return Reply(wait=PATIENCE)


def lost(answer: Callable[[], Reply]) -> Reply:
    """Carry out the request, but never send the reply."""
    answer()
    return Reply(end="silence")


def reset(answer: Callable[[], Reply]) -> Reply:
    return replace(answer(), end="reset")


def truncated(answer: Callable[[], Reply]) -> Reply:
    reply = answer()
    return replace(reply, body=reply.body[: len(reply.body) // 2], announced=len(reply.body), end="close")


def truncated_and_silent(seconds: float) -> Fault:
    """Send half the body, then nothing for so long."""
    return lambda answer: replace(truncated(answer), pause=seconds)


def shorter(answer: Callable[[], Reply]) -> Reply:
    """Send half the body with consistent headers."""
    reply = answer()
    return replace(reply, body=reply.body[: len(reply.body) // 2], announced=len(reply.body) // 2)


def endless(answer: Callable[[], Reply]) -> Reply:
    """A terabyte of blanks, which stand before JSON without an error."""
    return Reply(200, b" " * (1 << 20), {"Content-Type": "application/json"}, announced=1 << 40, times=1 << 20)


def flip(answer: Callable[[], Reply]) -> Reply:
    reply = answer()
    at = len(reply.body) - 5
    return replace(reply, body=reply.body[:at] + bytes([reply.body[at] ^ 4]) + reply.body[at + 1 :])


def not_text(answer: Callable[[], Reply]) -> Reply:
    reply = answer()
    return replace(reply, body=reply.body[:-3] + b"\xff\xff\xff")


def portal(answer: Callable[[], Reply]) -> Reply:
    return Reply(200, b"<html>Please log in to this network</html>", {"Content-Type": "text/html"})


def headers(**changes: str) -> Fault:
    """The true answer with headers replaced, or with an empty text left out; _ stands for -."""

    def fault(answer: Callable[[], Reply]) -> Reply:
        reply = answer()
        named = {name.replace("_", "-"): value for name, value in changes.items()}
        merged = {name: value for name, value in {**reply.headers, **named}.items() if value}
        return replace(reply, headers=merged)

    return fault


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    origin: str

    @property
    def token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    def json(self) -> Any:
        return json.loads(self.body)
