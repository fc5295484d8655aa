"""A visit to the pages over a toy model, for the tests in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seqdemo.ui import launch
from seqdemo.ui.freeze import freeze
from tests.shared import PATIENCE, free_port
from tests.toy_app import toy_app

PAGES = ["", "transliterate", "caption", "language-model", "models"]

# Whether all that was asked has been answered, and all that comes later stands there: hands, menus, curves, pictures.
AT_REST = """() => {
  const { page } = seqdemo;
  const seen = (node) => node.getClientRects().length > 0;
  const all = (names, holds) => [...document.querySelectorAll(names)].filter(seen).every(holds);
  const painted = (canvas) => canvas.getContext("2d").getImageData(9, 9, 1, 1).data[3] === 255;
  return page.asker.idle() && (!page.hand || [...page.hand.lanes.values()].every((lane) => !lane.busy))
    && all(".s-hands[open]", (node) => node.querySelector(":scope > div"))
    && all(".s-card > .s-wordmenu, .s-popover, .s-curves details > div", (node) => node.firstChild)
    && all(".s-overlay", painted) && all("img:not([loading=lazy])", (image) => image.complete);
}"""
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"  # sizes that changed have been drawn


def is_question(request: Any) -> bool:
    """A long question goes through the queue, a short one past it."""
    return "/queue/join" in request.url or ("/component_server" in request.url and '"fn_name":"short"' in request.post_data)


class Visit:
    """A page in a fresh context, with its log and its requests."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.address = address
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True, **context)
        self.context.set_default_timeout(1000 * PATIENCE)
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
        self.calls += is_question(request)

    def open(self, path: str = "") -> Any:
        """Open a page and wait until something is drawn, possibly before Gradio is loaded."""
        self.page.goto(f"{self.address}/{path}")
        self.page.wait_for_selector(".s-compare table, .s-column .s-line", state="attached")
        return self.page

    def come(self, path: str = "") -> Any:
        """Wait until the page is mounted in Gradio's."""
        self.open(path)
        self.page.wait_for_selector(".s-early", state="detached")
        return self.page

    def outputs(self) -> list[str]:
        return [self.page.inner_text(f"#s-column-{side} .s-output") for side in "ab"]

    def violations(self) -> list[tuple[str, str, str]]:
        """What axe-core finds wrong on the page as it stands: rule, part of the page, and why."""
        axe = pytest.importorskip("axe_playwright_python")
        if self.page.evaluate("typeof axe === 'undefined'"):
            self.page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [(row["id"], node["html"][:160], node["failureSummary"][:200]) for row in found for node in row["nodes"][:3]]

    def settle(self) -> None:
        """Wait until all questions are answered and all of it is drawn."""
        self.page.wait_for_function(AT_REST)
        self.page.evaluate(FRAMES)


def unfold(page: Any, part: str) -> None:
    """Open the <details> `part` by its summary, and wait for what it folds: some of it is built only then."""
    page.click(f"{part} > summary")
    page.wait_for_selector(f"{part}[open] > :not(summary)")


def brush_two_cells(visit: Visit) -> None:
    """Drag over the first two of the toy's 7 x 7 cells of the photograph."""
    box = visit.page.locator(".s-overlay").bounding_box()
    assert box
    mouse = visit.page.mouse
    mouse.move(box["x"] + 5, box["y"] + 5)
    mouse.down()
    mouse.move(box["x"] + box["width"] / 7 * 1.5, box["y"] + 5)
    mouse.up()
    visit.settle()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("cards")
    app, service = toy_app(root)
    freeze(root, service)
    app.close()
    app, service = toy_app(root)
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True)
    yield address.rstrip("/"), service
    app.close()


@pytest.fixture
def visit(browser: Any, served: Any) -> Iterator[Visit]:
    visit = Visit(browser, served[0])
    yield visit
    visit.context.close()
