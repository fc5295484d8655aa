"""A visit to the pages over a toy model, for the tests in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from seqdemo.ui import launch
from seqdemo.ui.freeze import freeze
from tests.toy_app import toy_app

PAGES = ["", "transliterate", "caption", "language-model", "models"]


class Visit:
    """A page in a fresh context; what it logged and whom it asked."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.address = address
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True, **context)
        self.context.set_default_timeout(90_000)  # a busy machine is no fault of the pages
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.calls = 0
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self.seen)

    def seen(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.foreign.append(request.url)
        self.calls += "/queue/join" in request.url

    def open(self, path: str = "") -> Any:
        """As soon as something is drawn, which may be before Gradio has come."""
        self.page.goto(f"{self.address}/{path}")
        self.page.wait_for_selector(".s-cards article, .s-column .s-line", state="attached")
        return self.page

    def come(self, path: str = "") -> Any:
        """When the page stands in Gradio's."""
        self.open(path)
        self.page.wait_for_selector(".s-early", state="detached")
        return self.page

    def outputs(self) -> list[str]:
        return [self.page.inner_text(f"#s-column-{side} .s-output") for side in "ab"]

    def settle(self) -> None:
        """Until what was asked has been answered."""
        idle = "(() => { const a = seqdemo.page.asker; return !a.flight && !a.waiting().length && !a.replays.size; })()"
        self.page.wait_for_function(idle)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("cards")
    app, service = toy_app(root)
    freeze(root, service)
    app.close()
    app, service = toy_app(root)
    _, address, _ = launch.launch(app, prevent_thread_lock=True, quiet=True)
    yield address.rstrip("/"), service
    app.close()


@pytest.fixture
def visit(browser: Any, served: Any) -> Iterator[Visit]:
    visit = Visit(browser, served[0])
    yield visit
    visit.context.close()
