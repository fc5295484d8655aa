"""The pages in Chromium: a phone, dark and light, and what axe-core finds wrong for people who cannot see or point."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seqdemo.ui import assets
from tests.browser_visits import PAGES, Visit, unfold

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser

# Opens whatever folds and is seen, also what is built only then; whether all of it is open and stands there.
ALL_OPEN = """() => {
  const seen = [...document.querySelectorAll("details")].filter((node) => node.getClientRects().length > 0);
  const shut = seen.filter((node) => !node.open);
  for (const node of shut) node.open = true;
  return !shut.length && seen.every((node) => node.childElementCount > 1);
}"""


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_never_scrolls_sideways(visit: Visit, path: str) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = visit.come(path)
    visit.settle()
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= 390
    for tab in page.locator("[role=tab]").all():
        tab.click()
        visit.settle()
        assert page.evaluate(wide) <= 390, tab.inner_text()


@pytest.mark.parametrize(("path", "empty"), [("transliterate", ".s-popover input"), ("models", "#s-repo")])
def test_a_value_looks_like_one_and_a_placeholder_does_not(visit: Visit, path: str, empty: str) -> None:
    page = visit.come(path)
    if path != "models":
        visit.settle()
        page.click("#s-column-b .s-word >> nth=0")
    page.wait_for_selector(empty, state="attached")
    ink, muted = page.evaluate("""() => ["ink", "muted"].map((name) => {
      const node = document.querySelector(".s-root").appendChild(document.createElement("p"));
      node.style.color = `var(--s-${name})`;
      return getComputedStyle(node).color;
    })""")
    colours = "(names) => [...document.querySelectorAll(names)].map((node) => getComputedStyle(node).color)"
    assert set(page.evaluate(colours, ".s-root :is(select, input[type=number], input[type=text])")) == {ink}
    assert page.evaluate(f"getComputedStyle(document.querySelector('{empty}'), '::placeholder').color") == muted != ink


def test_the_figure_of_the_models_page_fits_a_phone(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = visit.come("models")
    page.wait_for_selector(".s-plot .scatterlayer .trace")
    inside = """() => {
      const plot = document.querySelector(".s-plot"), right = plot.getBoundingClientRect().right;
      const texts = [...plot.querySelectorAll("svg text")].map((text) => text.getBoundingClientRect());
      return plot.scrollWidth <= plot.clientWidth && texts.every((text) => text.right <= right);
    }"""
    page.wait_for_function(inside)  # Plotly draws again when it has its place


def test_what_is_alike_in_a_and_b_stands_side_by_side(visit: Visit) -> None:
    page = visit.come()
    page.evaluate("seqdemo.page.fold('options-b', true)")
    page.wait_for_selector("#s-column-b .s-more .s-fields")
    tops = "(name) => ['a', 'b'].map((side) => document.querySelector(`#s-column-${side} ${name}`).getBoundingClientRect().top)"
    for part in (".s-output", ".s-numbers", ".s-nbest", ".s-options"):
        one, other = page.evaluate(tops, part)
        assert abs(one - other) < 1, part


def test_options_open_in_one_column_leave_no_hole_in_the_other(visit: Visit) -> None:
    page = visit.come()
    gap = """() => { const box = (name) => document.querySelector(`#s-column-a ${name}`).getBoundingClientRect();
      return [box('.s-output').top - box('.s-controls').bottom, box('.s-options').top - box('.s-nbest').bottom]; }"""
    before = page.evaluate(gap)
    unfold(page, "#s-column-b .s-more")
    assert page.evaluate(gap) == before


def test_maps_of_gates_stand_side_by_side_however_long_their_words(visit: Visit) -> None:
    page = visit.come("#tab=gates")
    visit.settle()
    page.eval_on_selector(".s-gate-figure figcaption", "(node) => node.append(' and more words'.repeat(20))")
    tops = """(nodes) => nodes.slice(0, 2).map((node) =>
      [node, node.querySelector('.s-grid')].map((part) => part.getBoundingClientRect().top))"""
    one, other = page.eval_on_selector_all(".s-gate-figure", tops)
    assert one == other


def test_on_a_phone_every_tab_of_the_views_is_seen(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    for path in ("", "language-model"):
        page = visit.come(path)
        places = page.eval_on_selector_all(
            ".s-tabs [role=tab]",
            "(nodes) => nodes.map((node) => [node.getBoundingClientRect().left, node.getBoundingClientRect().right])",
        )
        assert len(places) >= 3 and all(left >= 0 and right <= 390 for left, right in places)


def test_a_photograph_keeps_its_shape_beside_a_long_list_of_examples(visit: Visit) -> None:
    page = visit.come("caption")
    visit.settle()
    shape = "(node) => [node.clientWidth / node.clientHeight, node.naturalWidth / node.naturalHeight]"
    page.eval_on_selector(".s-input-side", "(node) => node.style.minHeight = '600px'")
    shown, own = page.eval_on_selector(".s-photo", shape)
    assert shown == pytest.approx(own, rel=0.02)


def test_a_card_that_is_opened_is_read_without_scrolling_inside_it(visit: Visit) -> None:
    page = visit.come("models")
    unfold(page, "article [data-key='captioner.card']")
    page.eval_on_selector(
        ".s-model-card", "(node) => node.append(...Array.from({length: 99}, () => document.createElement('p')))"
    )
    page.eval_on_selector_all(".s-model-card p", "(nodes) => nodes.forEach((node) => node.append('words'))")
    assert page.eval_on_selector(".s-model-card", "(node) => node.scrollHeight === node.clientHeight")


def test_on_a_phone_pills_keep_their_height_and_numbers_their_digits(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = visit.come("transliterate")
    heights = page.eval_on_selector_all(
        ".s-examples > .s-example", "(nodes) => nodes.map((node) => node.getBoundingClientRect().height)"
    )
    assert heights and max(heights) < 40
    edges = "(nodes) => nodes.map((node) => node.getBoundingClientRect().right)"
    assert max(page.eval_on_selector_all(".s-examples > .s-example", edges)) <= 390, "no example is cut"
    unfold(page, "#s-column-b .s-nbest details")
    lines = "(nodes) => nodes.map((node) => node.getClientRects().length && node.scrollHeight)"
    assert max(page.eval_on_selector_all("#s-column-b .s-nbest td:first-child", lines)) < 34, "a rank stands in one line"
    page.select_option("#s-column-b .s-strategy", "exact")
    unfold(page, "#s-column-b .s-more")
    budget = page.locator("#s-column-b [data-option=expansions]")
    assert budget.evaluate("(node) => node.scrollWidth <= node.clientWidth") and budget.bounding_box()["width"] > 100  # type: ignore[index]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_browser_s_own_parts_follow_the_theme(browser: Any, served: Any, theme: str) -> None:
    visit = Visit(browser, served[0], color_scheme=theme)
    assert visit.come().evaluate("getComputedStyle(document.body).colorScheme") == theme
    visit.context.close()


def test_a_tip_opens_by_a_tap_and_describes_what_was_tapped(browser: Any, served: Any) -> None:
    visit = Visit(browser, served[0], has_touch=True)
    page = visit.come()
    for names, nth in ((".s-chip", 0), (".s-node", 1), (".s-term", 0)):
        page.locator(names).nth(nth).tap()
        page.wait_for_selector(f":nth-match({names}, {nth + 1})[aria-describedby=s-tip]")  # a browser tells of a tap later
        assert page.inner_text("#s-tip:visible")
        assert page.locator("[aria-describedby=s-tip]").count() == 1
    visit.context.close()


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
    box = visit.come().locator(".s-pruned")
    looks = []
    for ticked in (False, True):
        box.set_checked(ticked)
        looks.append(np.asarray(Image.open(io.BytesIO(box.screenshot(animations="disabled"))).convert("L"), dtype=float))
    assert looks[0].mean() - looks[1].mean() > 50
    visit.context.close()


@pytest.mark.parametrize("wide", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_with_everything_open(browser: Any, served: Any, path: str, theme: str, wide: int) -> None:
    visit = Visit(browser, served[0], color_scheme=theme)
    visit.page.set_viewport_size({"width": wide, "height": 844})
    page = visit.come(path)
    if path == "models":
        page.wait_for_selector(".s-plot .scatterlayer .trace")
    tabs = page.locator("[role=tab]").all() or [None]
    for tab in tabs:
        if tab:
            tab.click()
            visit.settle()
        page.wait_for_function(ALL_OPEN)
        visit.settle()
        assert visit.violations() == [], tab and tab.inner_text()
    visit.context.close()


def test_the_first_result_waits_for_no_model_and_little_else(visit: Visit) -> None:
    page = visit.open()
    entries = page.evaluate("performance.getEntriesByType('resource').map((entry) => new URL(entry.name).pathname)")
    assert visit.calls == 0 and not [path for path in entries if "/queue/join" in path or "/upload" in path]
    assert len(page.content().encode()) < 1_500_000
    assert sum(len(assets.packed(asset, "br")) for asset in assets.pages().values()) < 100_000
