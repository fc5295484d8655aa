"""The pages in Chromium: a phone, dark and light, and what axe-core finds wrong for people who cannot see or point."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seqdemo.ui import assets
from tests.browser_visits import PAGES, Visit

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_never_scrolls_sideways(visit: Visit, path: str) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = visit.come(path)
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= 390
    for tab in page.locator("[role=tab]").all():
        tab.click()
        page.wait_for_timeout(150)
        assert page.evaluate(wide) <= 390, tab.inner_text()


@pytest.mark.parametrize("path", PAGES)
def test_nor_does_it_before_gradio_has_come(visit: Visit, path: str) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    visit.page.route("**/assets/*.js", lambda route: route.abort())
    assert visit.open(path).evaluate("document.documentElement.scrollWidth") <= 390


def test_dark_is_kept_from_page_to_page(visit: Visit) -> None:
    page = visit.come()
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate("document.body.classList.contains('dark')")
    visit.open("models")
    assert page.evaluate("document.body.classList.contains('dark')")
    page.wait_for_selector(".s-early", state="detached")
    assert page.evaluate("document.body.classList.contains('dark')")
    assert page.evaluate("getComputedStyle(document.querySelector('.s-column')).backgroundColor") == "rgb(21, 26, 35)"


def test_a_ticked_box_is_seen_to_be_ticked(browser: Any, served: Any) -> None:
    """In Gradio's own style the tick is white, on whatever is below."""
    visit = Visit(browser, served[0], color_scheme="light")
    box = visit.come().locator("#s-pruned")
    looks = []
    for ticked in (False, True):
        box.set_checked(ticked)
        looks.append(np.asarray(Image.open(io.BytesIO(box.screenshot())).convert("L"), dtype=float))
    assert looks[0].mean() - looks[1].mean() > 50
    visit.context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(browser: Any, served: Any, path: str, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")
    visit = Visit(browser, served[0], color_scheme=theme)
    page = visit.come(path)
    page.evaluate(script)
    tabs = page.locator("[role=tab]").all() or [None]
    for tab in tabs:
        if tab:
            tab.click()
            page.wait_for_timeout(200)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        told = [(row["id"], node["html"][:160], node["failureSummary"][:200]) for row in found for node in row["nodes"][:3]]
        assert told == [], (tab and tab.inner_text(), told)
    visit.context.close()


def test_the_first_result_waits_for_no_model_and_little_else(visit: Visit) -> None:
    page = visit.open()
    entries = page.evaluate("performance.getEntriesByType('resource').map((entry) => new URL(entry.name).pathname)")
    assert visit.calls == 0 and not [path for path in entries if "/queue/join" in path or "/upload" in path]
    assert len(page.content().encode()) < 1_500_000
    assert len(assets.head().encode()) < 250_000
