"""The first ten seconds: what to do first is marked on the page, and a tour points at the real controls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser_visits import PAGES, Visit

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser

# What the ring stands around, and whether it is on screen and not below the bar of the tour.
POINTED = """(targets) => {
  const ring = document.querySelector(".s-ring").getBoundingClientRect();
  const seen = (node) => node.getClientRects().length > 0;
  const node = targets.map((names) => [...document.querySelectorAll(names)].find(seen)).find(Boolean);
  const box = node.getBoundingClientRect(), bar = document.querySelector(".s-tour").getBoundingClientRect();
  const around = ["left", "top", "right", "bottom"].every((edge) => Math.abs(ring[edge] - box[edge]) < 7);
  return { around, seen: box.bottom > 0 && box.top < innerHeight && !(bar.height && box.top > bar.top) };
}"""


def tour_of(page: Any) -> Any:
    return page.evaluate("seqdemo.page.views.find((view) => view.tour).tour")


def wait_for_ring(page: Any, targets: list[str], what: str = "around && seen") -> None:
    """The ring follows what moves."""
    page.wait_for_function(f"(targets) => {{ const {{ around, seen }} = ({POINTED})(targets); return {what}; }}", arg=targets)


@pytest.mark.parametrize("path", PAGES[:-1])
def test_what_to_do_first_is_said_and_marked_until_it_is_done(visit: Visit, path: str) -> None:
    page = visit.come(path)
    visit.settle()
    tour = tour_of(page)
    assert page.is_visible(".s-lead p") and tour["next"] in page.inner_text(".s-first")
    assert page.is_visible(".s-ring")
    wait_for_ring(page, tour["targets"], "around")
    page.hover("#s-column-b .s-output .s-atom >> nth=0")
    assert not page.is_visible(".s-ring") and tour["next"] in page.inner_text(".s-first")


@pytest.mark.parametrize("wide", [1280, 390])
@pytest.mark.parametrize("path", PAGES[:-1])
def test_every_step_of_a_tour_points_at_a_control_that_is_there(visit: Visit, path: str, wide: int) -> None:
    visit.page.set_viewport_size({"width": wide, "height": 844})
    page = visit.come(path)
    visit.settle()
    steps = tour_of(page)["steps"]
    assert len(steps) >= 3
    page.click(".s-tour-start")
    for number, step in enumerate(steps, 1):
        visit.settle()
        assert page.inner_text(".s-tour p") == f"{number} of {len(steps)}. {step['says']}"
        wait_for_ring(page, step["targets"])
        assert page.evaluate("document.activeElement.closest('.s-tour') !== null")
        if number < len(steps):
            page.keyboard.press("Enter")  # on Next
    page.get_by_role("button", name="End of the tour").click()
    assert not page.is_visible(".s-tour") and not page.is_visible(".s-ring")
    assert page.evaluate("document.activeElement.className") == "s-tour-start"
    assert visit.errors == []


def test_a_tour_is_left_at_any_time_and_undo_goes_back_through_it(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    page.fill("#s-input", "mein eigener Satz")
    visit.settle()
    page.click(".s-tour-start")
    page.keyboard.press("Escape")
    assert not page.is_visible(".s-tour")
    for _ in range(2):
        page.get_by_role("button", name="Undo").click()
    assert page.input_value("#s-input") == "mein eigener Satz" and not page.is_visible(".s-tour")


def test_a_link_resumes_a_tour(visit: Visit, browser: Any) -> None:
    page = visit.come()
    visit.settle()
    page.click(".s-tour-start")
    page.click(".s-tour [data-key=next]")
    visit.settle()
    again = Visit(browser, visit.address)
    again.come(page.url.removeprefix(visit.address + "/"))
    again.settle()
    assert again.page.inner_text(".s-tour p") == page.inner_text(".s-tour p")
    again.page.click(".s-tour [data-key=back]")
    assert again.page.inner_text(".s-tour p").startswith("1 of")
    again.context.close()


def test_the_tour_follows_what_a_person_does(visit: Visit) -> None:
    """Once a box is picked, the next thing to press is in the ring."""
    page = visit.come("#tour=2&pruned=1")
    visit.settle()
    page.locator("[role=treeitem][aria-label*='pruned']").first.click()
    visit.settle()
    wait_for_ring(page, [".s-card .s-primary"], "around")
    page.get_by_role("button", name="Take this").click()
    visit.settle()
    assert page.is_visible("#s-column-b .s-price") and page.inner_text(".s-tour p").startswith("2 of")


@pytest.mark.parametrize("link", ["#tour=99", "#tour=-1", "#tour=two"])
def test_a_tour_that_does_not_exist_is_left_out_of_a_link(visit: Visit, link: str) -> None:
    page = visit.come(link)
    visit.settle()
    assert not page.is_visible(".s-tour") and "cannot be read" in page.inner_text(".s-page > div > .s-message")
