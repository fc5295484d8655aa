"""Replies of the loopback Hub, and the faults that may befall them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    announced: int | None = None  # Content-Length, where it is not the body's
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
    """Accepts, and says nothing for so long; then the true answer."""
    return lambda answer: replace(answer(), wait=seconds)


def lost(answer: Callable[[], Reply]) -> Reply:
    """Does what was asked; the reply never arrives."""
    answer()
    return Reply(end="silence")


def reset(answer: Callable[[], Reply]) -> Reply:
    return replace(answer(), end="reset")


def truncated(answer: Callable[[], Reply]) -> Reply:
    reply = answer()
    return replace(reply, body=reply.body[: len(reply.body) // 2], announced=len(reply.body), end="close")


def truncated_and_silent(seconds: float) -> Fault:
    """Half the body, and then nothing for so long."""
    return lambda answer: replace(truncated(answer), pause=seconds)


def shorter(answer: Callable[[], Reply]) -> Reply:
    """Half the body, and consistent in itself."""
    reply = answer()
    return replace(reply, body=reply.body[: len(reply.body) // 2], announced=len(reply.body) // 2)


def flip(answer: Callable[[], Reply]) -> Reply:
    reply = answer()
    at = len(reply.body) - 5
    return replace(reply, body=reply.body[:at] + bytes([reply.body[at] ^ 4]) + reply.body[at + 1 :])


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
