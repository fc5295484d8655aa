"""The pages by keyboard: no control loses the focus, a skip link leads to each view, and removed controls pass the focus on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser_visits import FRAMES, Visit

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser

FOCUSED = "document.activeElement === document.body ? '' : document.activeElement.outerHTML.slice(0, 120)"
# Every control that is seen, in the order of the document. Left out: what opens a window of the browser's own.
CONTROLS = """() => {
  const own = ["button", "select", "input:not([type=file])", "summary", "canvas[tabindex='0']", "svg[tabindex='0']"];
  const names = [...own, "[role=treeitem][tabindex='0']"].join();
  const away = /Copy link|Trace as JSON|n-best as CSV|Save the|Switch between light/;
  const name = (node) => (node.getAttribute("aria-label") || "") + node.textContent;
  const seen = (node) => node.getClientRects().length > 0 && !away.test(name(node));
  window.walked = [...document.querySelectorAll(names)].filter((node) => seen(node) && !node.disabled);
  return window.walked.length;
}"""


def press(page: Any, number: int) -> None:
    """Does with a control what a person does by keyboard."""
    kind = page.evaluate("number => (window.walked[number].type || window.walked[number].localName)", number)
    if kind in ("select-one", "range"):
        page.keyboard.press("ArrowDown")
    elif kind == "number":
        page.keyboard.press("ArrowUp")
    elif kind == "text":
        page.keyboard.type("a")
    elif kind in ("canvas", "svg", "g"):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
    else:
        page.keyboard.press("Enter" if kind != "checkbox" else "Space")


@pytest.mark.parametrize(
    ("path", "tab"),
    [
        ("", "tree"),
        ("", "alignment"),
        ("", "gates"),
        ("", "attention"),
        ("caption", "alignment"),
        ("language-model", "text"),
        ("models", ""),
    ],
)
def test_no_control_loses_the_focus(visit: Visit, path: str, tab: str) -> None:
    page = visit.come(path)
    visit.settle()
    if tab:
        page.click(f"#s-tab-{tab}")
        visit.settle()
    count = page.evaluate(CONTROLS)
    assert count > 20
    lost = []
    for number in range(count):
        there = page.evaluate(
            "number => window.walked[number].isConnected && window.walked[number].getClientRects().length > 0", number
        )
        if not there:
            continue  # an earlier one has changed the page
        page.evaluate("number => window.walked[number].focus()", number)
        before = page.evaluate(FOCUSED)
        press(page, number)
        page.evaluate(FRAMES)
        if not page.evaluate(FOCUSED):
            lost.append(before)
    visit.settle()
    page.wait_for_timeout(300)
    assert lost == [] and page.evaluate(FOCUSED) and visit.errors == []


def test_the_focus_and_the_scroll_stay_when_an_answer_comes(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    page.focus("#s-column-b input[data-option=beam]")
    page.evaluate("window.scrollTo(0, 200)")
    before = page.evaluate("window.kept = document.activeElement, scrollY")
    page.keyboard.press("ArrowUp")
    visit.settle()
    assert page.evaluate("document.activeElement === window.kept") and page.evaluate("scrollY") == before
    assert page.evaluate("seqdemo.page.columns.B.spec.options.beam") == 6


def test_the_focus_stays_on_an_example_that_is_chosen_from_all_of_them(visit: Visit) -> None:
    page = visit.come("caption")
    visit.settle()
    page.locator(".s-all-examples summary").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".s-all-examples[open] button")
    example = page.locator(".s-all-examples button >> nth=-1")
    example.focus()
    page.evaluate("window.kept = document.activeElement")
    page.keyboard.press("Enter")
    visit.settle()
    assert example.get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.activeElement === window.kept") and page.locator(".s-all-examples[open]").count() == 1


def test_an_edit_that_is_taken_back_hands_the_focus_on(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    page.evaluate("() => { const page = seqdemo.page; page.editPath('Ban', ['▁I']); page.editPath('Ban', ['▁a']); }")
    visit.settle()
    for left in (1, 0):
        page.locator("#s-column-b .s-edit button").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("#s-column-b .s-edit:visible").count() == left
        assert page.evaluate(FOCUSED)


def test_every_view_is_one_jump_away(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    names = page.locator(".s-skip a").all_inner_texts()
    assert names[0] == "Skip to the outputs" and len(names) == 1 + page.locator("[role=tab]").count()
    address = page.url
    page.locator(".s-skip a", has_text="Gates").focus()
    page.keyboard.press("Enter")
    assert page.is_visible("#s-panel-gates") and page.evaluate("document.activeElement.id") == "s-panel-gates"
    assert "s-panel" not in page.url and address.split("#")[0] == page.url.split("#")[0]


@pytest.mark.parametrize("what", [".s-term >> nth=0", ".s-fields label >> nth=0"])
def test_a_tip_opens_by_focus_and_by_tap_and_describes_what_it_is_of(browser: Any, served: Any, what: str) -> None:
    visit = Visit(browser, served[0], has_touch=True)
    page = visit.come()
    visit.settle()
    page.evaluate("seqdemo.page.fold('options-a', true)")
    page.locator(what).tap()
    page.wait_for_selector(".s-tip")  # a browser tells of a tap later
    assert len(page.inner_text(".s-tip")) > 10
    assert page.locator(what).get_attribute("aria-describedby") == "s-tip"
    page.keyboard.press("Escape")
    visit.context.close()


@pytest.mark.parametrize("key", ["nbest-b", "equation-tree", "options-a", "steps"])
def test_a_redraw_right_after_a_click_does_not_close_what_the_click_has_opened(visit: Visit, key: str) -> None:
    page = visit.come()
    visit.settle()
    redrawn = "['state', 'answer'].forEach((event) => seqdemo.page.tell(event))"
    page.evaluate(f"document.querySelector('[data-key={key}] > summary').click(); {redrawn}")
    page.wait_for_selector(f"[data-key={key}][open] > :not(summary)")
    page.evaluate(f"document.querySelector('[data-key={key}] > summary').click(); {redrawn}")
    page.wait_for_selector(f"[data-key={key}]:not([open])")
    visit.settle()
    assert page.locator(f"[data-key={key}][open]").count() == 0 and not page.evaluate(f"seqdemo.page.isOpen('{key}')")
