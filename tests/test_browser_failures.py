"""What the pages show where a column has no answer, and which edits another input takes away."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser_visits import Visit

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser
UNSAYABLE = quote(json.dumps([{"kind": "Require", "word": "platypus"}]))
MOUNTED = "window.seqdemo && seqdemo.page && seqdemo.page.asker && !document.querySelector('.s-early')"


def opened(visit: Visit, path: str) -> Any:
    """Open a page of which a column, or both, will have no answer."""
    visit.page.goto(f"{visit.address}/{path}")
    visit.page.wait_for_function(MOUNTED)
    visit.settle()
    return visit.page


def bent(visit: Visit) -> Any:
    """B with a row of attention that was set by hand."""
    page = opened(visit, "#tab=alignment&open=hands-piece")
    page.get_by_role("button", name="Diagonal").click()
    visit.settle()
    assert page.locator("#s-column-b .s-edit").count() == 1 and page.is_visible(".s-result")
    return page


def test_a_row_of_attention_goes_with_the_text_it_was_made_for(visit: Visit) -> None:
    page = bent(visit)
    page.fill("#s-input", "Guten Tag")
    page.wait_for_function("seqdemo.page.state.input.text === 'Guten Tag'")
    visit.settle()
    assert not page.locator("#s-column-b .s-edit").count() and not page.locator(".s-message:visible").count()
    told = "Left out of column B, because it belongs to the text before: the attention at step 1. Undo brings it back."
    assert page.inner_text("#s-column-b .s-edits") == told and not page.is_visible(".s-result")
    assert page.evaluate("seqdemo.page.history.steps.at(-1).words") == "Typed “Guten Tag”; left out of B: the attention at step 1"
    page.get_by_role("button", name="Undo").click()
    visit.settle()
    assert page.locator("#s-column-b .s-edit").count() == 1 and "Left out" not in page.inner_text("#s-column-b .s-edits")
    assert visit.errors == []


@pytest.mark.parametrize(
    ("path", "tab", "drawing"),
    [
        ("", "tree", "[role=treeitem]"),
        ("", "alignment", ".s-half >> nth=0 >> .s-grid-cells"),
        ("", "gates", "canvas"),
        ("caption", "alignment", ".s-overlay"),
    ],
)
def test_where_b_has_no_answer_a_is_drawn(visit: Visit, path: str, tab: str, drawing: str) -> None:
    page = opened(visit, f"{path}#tab={tab}&b.edits={UNSAYABLE}")
    assert page.locator(f"#s-panel-{tab} >> {drawing}").first.is_visible()
    said = page.inner_text("#s-column-b .s-message")
    assert "no pieces for “platypus”" in said and page.inner_text("#s-column-b .s-edit").startswith("must say “platypus”")
    shown = page.inner_text(f"#s-panel-{tab}")
    assert "no attention" not in shown and "now writes" not in shown and "Reading" not in shown
    if tab == "alignment" and not path:
        assert said in page.inner_text(".s-half >> nth=1") and not page.locator(".s-half >> nth=1 >> canvas:visible").count()
    assert visit.errors == []


def test_where_b_fails_after_an_answer_nothing_of_that_answer_stands(visit: Visit) -> None:
    page = bent(visit)
    page.evaluate("seqdemo.page.words.must('B', 'platypus')")
    page.wait_for_selector("#s-column-b .s-message:visible")
    visit.settle()
    assert not page.locator(".s-half >> nth=1 >> canvas:visible").count() and not page.is_visible(".s-result")
    assert not page.locator("#s-column-b .s-edit .s-badge").count() and not page.is_visible("#s-column-b .s-price")
    assert page.locator(".s-half >> nth=0 >> .s-grid-cells").is_visible()
    page.get_by_role("button", name="Undo").click()
    visit.settle()
    assert page.is_visible(".s-result") and page.locator(".s-half >> nth=1 >> .s-grid-cells").is_visible()
    assert visit.errors == []


def test_the_text_of_a_column_without_an_answer_gives_way_to_the_other(visit: Visit) -> None:
    page = opened(visit, f"language-model#b.edits={UNSAYABLE}")
    assert "Column B has no answer." in page.inner_text("#s-panel-text")
    page.get_by_role("button", name="Look at A").click()
    visit.settle()
    assert page.locator("#s-panel-text .s-switch >> nth=0 >> [aria-pressed=true]").inner_text().startswith("A")
    assert visit.errors == []


@pytest.mark.parametrize("tab", ["tree", "alignment", "gates", "attention"])
def test_where_neither_has_an_answer_the_views_say_so(visit: Visit, tab: str) -> None:
    page = opened(visit, f"#tab={tab}&text={'%20'.join(['w'] * 200)}")
    assert page.locator(".s-column .s-message:visible").count() == 2
    assert page.inner_text(f"#s-panel-{tab}").strip() == "There is nothing to draw until a column has an answer."
    assert visit.violations() == []
    page.fill("#s-input", "kurz")
    page.wait_for_selector(".s-column .s-message", state="hidden")
    visit.settle()
    assert "nothing to draw" not in page.inner_text(f"#s-panel-{tab}") and visit.errors == []
