"""The page before Gradio: sheet, scripts and worked result stand in the document itself and are drawn while the scripts of Gradio
are on their way. When its component mounts, it takes over what stands there (js/shell.js)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from seqdemo.ui import assets

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
APP = b"<gradio-app"
DRAW = b"<script>window.seqdemo.early()</script>\n"


class EarlyPage:
    """Wraps the server: into every document of the app it puts the pages' sheet and scripts."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Any, send: Send) -> None:
        page = scope["type"] == "http" and scope["method"] == "GET"
        await self.app(scope, receive, Document(send) if page else send)


class Document:
    """Holds an HTML answer back until it is whole; passes anything else on."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.start: Message | None = None
        self.body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and is_html(message):
            self.start = message
        elif self.start is None or message["type"] != "http.response.body":
            await self.send(message)
        else:
            self.body += message.get("body", b"")
            if not message.get("more_body"):
                await self.finish(self.start)

    async def finish(self, start: Message) -> None:
        body = drawn_early(self.body)
        kept = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        await self.send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await self.send({"type": "http.response.body", "body": body})
        self.start, self.body = None, b""


def is_html(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in message.get("headers", ()))


def drawn_early(document: bytes) -> bytes:
    """Whatever holds no app stays as it is."""
    if APP not in document or b"</head>" not in document:
        return document
    head, body = document.split(b"</head>", 1)
    return head + assets.head().encode() + b"</head>" + body.replace(APP, DRAW + APP, 1)
