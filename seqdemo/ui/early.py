"""The page before Gradio: the document loads our sheet and scripts first, holds the worked result, and draws it while Gradio's
scripts are still loading. When Gradio's component mounts, it takes over the drawing (js/shell.js)."""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from seqdemo.ui import assets
from seqdemo.ui.catalogue import PAGES, WORDS

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
APP = b"<gradio-app"
PREVIEW = re.compile(rb"<meta\s+(?:property|name)=\"(?:og|twitter):[^>]*>\s*")
DRAW = b"<script>window.seqdemo.early()</script>\n"
GRADIO = re.compile(rb'<script type="module" crossorigin src="([^"]+)"></script>')
# Gradio's scripts are asked for when the first drawing stands: on a slow line they would come beside what it needs.
THEN_GRADIO = b"""<script>{
  const gradio = document.createElement("script");
  Object.assign(gradio, { type: "module", crossOrigin: "", src: "SOURCE" });
  document.head.append(gradio);
}</script>
"""
# An alignment of three words. It stands in the document: browsers ask for an icon's file again at every change of the address.
WEIGHTS = ((1, 0.3, 0.12), (0.12, 0.3, 1), (0.3, 1, 0.12))
CELLS = "".join(
    f'<rect x="{1 + 10 * column}" y="{1 + 10 * row}" width="9" height="9" rx="2" fill-opacity="{weight}"/>'
    for row, weights in enumerate(WEIGHTS)
    for column, weight in enumerate(weights)
)
ICON = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 31 31" fill="#1f94a8">{CELLS}</svg>'
ICON_TAG = f'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml,{quote(ICON)}" />'.encode()


class EarlyPage:
    """Wraps the server: it serves the pages' sheet and scripts, and adds their tags and a link preview to every document of the
    app."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Any, send: Send) -> None:
        page = scope["type"] == "http" and scope["method"] == "GET"
        folder, _, name = scope["path"].rpartition("/") if page else ("", "", "")
        asset = assets.served(name) if folder.endswith(f"/{assets.FOLDER}") else None
        if asset:
            await serve(asset, scope, send)
        else:
            await self.app(scope, receive, Document(send, scope) if page else send)


def takes(scope: Message, coding: str) -> bool:
    """Whether the browser accepts this coding (gzip or br)."""
    told = b",".join(value for name, value in scope["headers"] if name.lower() == b"accept-encoding")
    return coding.encode() in [part.split(b";")[0].strip() for part in told.lower().split(b",")]


async def serve(asset: assets.Asset, scope: Message, send: Send) -> None:
    coding = next((coding for coding in ("br", "gzip") if takes(scope, coding)), "")
    body = assets.packed(asset, coding) if coding else asset.body
    headers = [
        (b"content-type", asset.kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"public, max-age=31536000, immutable"),
        (b"vary", b"accept-encoding"),
        (b"x-content-type-options", b"nosniff"),
        *([(b"content-encoding", coding.encode())] if coding else []),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Document:
    """Collects an HTML response until it is complete; passes on everything else."""

    def __init__(self, send: Send, scope: Message) -> None:
        self.send, self.path, self.packed = send, str(scope["path"]), takes(scope, "gzip")
        self.home = home_of(scope)
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
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        plain = not any(name.lower() == b"content-encoding" for name, _ in headers)
        body = drawn_early(self.body, self.path, self.home) if plain else self.body
        if plain and self.packed:
            body = gzip.compress(body, 5, mtime=0)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
        await self.send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await self.send({"type": "http.response.body", "body": body})
        self.start, self.body = None, b""


def is_html(message: Message) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/html") for name, value in message.get("headers", ()))


def home_of(scope: Message) -> str:
    """Where the app stands as a visitor sees it, also behind a proxy: those who draw previews take only whole addresses."""
    told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    scheme = (told.get("x-forwarded-proto") or str(scope.get("scheme", "http"))).split(",")[0].strip()
    host = told.get("x-forwarded-host", told.get("host", "")).split(",")[0].strip()
    return f"{scheme}://{host}{str(scope.get('root_path', '')).rstrip('/')}"


def drawn_early(document: bytes, path: str = "/", home: str = "") -> bytes:
    """The document with our tags. Documents without an app are left unchanged."""
    if APP not in document or b"<head>" not in document:
        return document
    document = PREVIEW.sub(b"", document).replace(b"</head>", preview(path, home).encode() + ICON_TAG + b"</head>", 1)
    scripts = assets.tags("js") + assets.result_tag(document.decode("utf-8", "replace"))
    document = document.replace(b"<head>", b"<head>" + scripts.encode(), 1)  # requested before Gradio's own
    document = document.replace(b"</head>", assets.tags("css").encode() + b"</head>", 1)  # and takes precedence over Gradio's
    gradio = GRADIO.search(document)
    document = GRADIO.sub(b"", document, 1)
    then = THEN_GRADIO.replace(b"SOURCE", gradio[1]) if gradio else b""
    return document.replace(APP, DRAW + then + APP, 1)


def preview(path: str, home: str) -> str:
    """The preview of a shared link to this page: its title and sentence, and the project's picture."""
    page = path.strip("/").rsplit("/", 1)[-1]
    words = WORDS.get(next((task for task, address in PAGES.items() if address == page), page), WORDS["translate"])
    facts = {
        "og:type": "website",
        "og:site_name": "seqdemo",
        "og:title": f"seqdemo: {words['title']}",
        "og:description": words["lead"],
        "og:image": f"{home}/{assets.preview_picture()}",
        "og:image:alt": "Two searches through one network, and the tree of every path they considered",
        "twitter:card": "summary_large_image",
        "description": words["lead"],
    }
    return "".join(f'<meta name="{name}" property="{name}" content="{html.escape(text)}" />' for name, text in facts.items())
