"""The app wherever it may stand: alone, mounted, behind a prefix, embedded, framed, with a password, rendered on the server."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from seqdemo.ui import launch
from seqdemo.ui.theme import theme
from tests.shared import PATIENCE, free_port, new_page
from tests.toy_app import toy_app

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    page: Any = new_page(browser, viewport={"width": 1280, "height": 900})
    page.mistakes = []
    page.on("pageerror", lambda error: page.mistakes.append(str(error)))
    yield page
    page.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    app, _ = toy_app(tmp_path_factory.mktemp("cards"))
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True)
    yield address
    app.close()


def served(app: Any, port: int) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{port}"
    until = time.monotonic() + PATIENCE
    while not server.started and time.monotonic() < until:
        time.sleep(0.02)
    yield address
    server.should_exit = True
    thread.join(PATIENCE)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[str]:
    """Gradio's own way to mount an app: nothing of launch.py is in force."""
    outer = FastAPI()
    gr.mount_gradio_app(outer, toy_app(tmp_path)[0], path="/tools/seqdemo", theme=theme())
    for address in served(outer, free_port()):
        yield f"{address}/tools/seqdemo"


def web_component() -> str:
    """What Gradio's gradio.js, which public sites take from elsewhere, imports."""
    text = (Path(gr.__file__).parent / "templates" / "frontend" / "gradio.js").read_text()
    return re.findall(r'import\("\./([^"]+)"\)', text)[0]


class Host(BaseHTTPRequestHandler):
    """Another site: it embeds or frames the app, or passes requests on from below a prefix."""

    app = ""

    def do_GET(self) -> None:
        script = f'<script type="module" src="{self.app}{web_component()}"></script>'
        page = {
            "/embed": f'{script}<gradio-app src="{self.app}"></gradio-app>',
            "/frame": f'<iframe src="{self.app}" style="width:1200px;height:880px"></iframe>',
        }.get(self.path, "")
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"<!doctype html><title>Another site</title>{page}".encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def site(alone: str) -> Iterator[str]:
    host = type("Site", (Host,), {"app": alone})
    server = ThreadingHTTPServer(("127.0.0.1", 0), host)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"  # another origin than 127.0.0.1
    server.shutdown()


def proxy_to(address: str, prefix: str) -> FastAPI:
    """What nginx does for an app behind a prefix that it takes off."""
    outer = FastAPI()
    fresh = httpx.Limits(max_keepalive_connections=0)  # the server may close one that is kept just when it is used again
    client = httpx.AsyncClient(base_url=address, timeout=PATIENCE, limits=fresh)

    async def forward(path: str, request: Request) -> StreamingResponse:
        kept = {name: value for name, value in request.headers.items() if name not in ("host", "accept-encoding")}
        asked = client.build_request(
            request.method, f"/{path}", params=request.query_params, headers=kept, content=await request.body()
        )
        answer = await client.send(asked, stream=True)
        headers = {name: value for name, value in answer.headers.items() if name not in ("content-length", "content-encoding")}
        return StreamingResponse(answer.aiter_bytes(), answer.status_code, headers)

    outer.add_api_route(prefix + "/{path:path}", forward, methods=["GET", "POST", "HEAD"])
    return outer


def works(frame: Any, page: Any, path: str = "") -> None:
    """A worked result stands there, and a new sentence is decoded."""
    output = frame.locator("#s-column-b .s-output")
    output.wait_for()
    before = output.inner_text()
    assert before
    frame.locator("#s-input").fill("Zwei Hunde rennen")
    until = time.monotonic() + PATIENCE
    while output.inner_text() == before and time.monotonic() < until:
        page.wait_for_timeout(50)
    assert output.inner_text() != before
    padding = frame.locator("#s-column-b").evaluate("node => getComputedStyle(node).borderTopWidth")
    assert padding != "0px"  # its sheet is there
    assert page.mistakes == []


def test_alone(page: Any, alone: str) -> None:
    page.goto(alone)
    works(page, page)


def test_mounted_in_another_app(page: Any, mounted: str) -> None:
    page.goto(mounted)
    works(page, page)
    page.goto(f"{mounted}/transliterate")
    page.locator("#s-column-b .s-output").wait_for()


def test_behind_a_proxy_with_a_prefix(page: Any, tmp_path: Path) -> None:
    app, _ = toy_app(tmp_path)
    port = free_port()
    launch.launch(app, prevent_thread_lock=True, quiet=True, port=port, root_path="/inner/seqdemo")
    try:
        for address in served(proxy_to(f"http://127.0.0.1:{port}", "/inner/seqdemo"), free_port()):
            page.goto(f"{address}/inner/seqdemo/")
            works(page, page)
    finally:
        app.close()


def test_embedded_as_a_web_component(page: Any, site: str) -> None:
    page.goto(f"{site}/embed")
    works(page, page)


def test_in_a_frame_of_another_origin(page: Any, site: str) -> None:
    page.goto(f"{site}/frame")
    works(page.frame_locator("iframe"), page)


def test_with_a_password(page: Any, tmp_path: Path) -> None:
    app, _ = toy_app(tmp_path)
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True, auth=("me", "secret"))
    try:
        page.goto(address)
        page.get_by_label("username").fill("me")
        page.get_by_label("password").fill("secret")
        page.get_by_role("button", name="Login").click()
        works(page, page)
    finally:
        app.close()


@pytest.mark.skipif(shutil.which("node") is None, reason="Gradio renders on the server only where node is installed")
def test_rendered_by_gradio_s_own_server(page: Any, tmp_path: Path) -> None:
    app, _ = toy_app(tmp_path)
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True, ssr_mode=True)
    try:
        page.goto(address)
        works(page, page)
    finally:
        app.close()
