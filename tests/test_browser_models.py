"""The Models page: a comparison first, cards as they are meant to be read, the form of the Hub last."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser_visits import Visit, unfold

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser


def test_it_opens_on_a_comparison_and_the_form_of_the_hub_stands_last(visit: Visit) -> None:
    page = visit.come("models")
    page.wait_for_selector(".s-plot .js-plotly-plot .scatterlayer .trace")
    parts = page.eval_on_selector_all(".s-page > *", "(nodes) => nodes.map((node) => node.className)")
    assert "s-compare" in parts[0] and "s-cards" in parts[1] and "s-hub" in parts[2] and len(parts) == 3
    heads = page.locator(".s-compare thead th").all_inner_texts()
    assert heads[:3] == ["model", "what it is", "parameters"]
    assert page.locator(".s-compare tbody tr").count() == 2
    page.wait_for_function("document.querySelectorAll('.s-plot .scatterlayer .trace').length === 2")
    assert visit.errors == [] and visit.foreign == []


def test_another_task_has_its_own_table_and_figure(visit: Visit) -> None:
    page = visit.come("models")
    page.wait_for_selector(".s-plot .scatterlayer .trace")
    page.locator(".s-compare [data-key=transliterate]").focus()
    page.keyboard.press("Enter")
    assert page.locator(".s-compare tbody th").all_inner_texts() == ["transliterator", "transliterator-plain"]
    page.wait_for_function("document.querySelector('.s-plot .legendtext')?.textContent === 'transliterator'")
    assert page.evaluate("document.activeElement.dataset.key") == "transliterate"


def test_a_name_in_the_table_leads_to_its_card(visit: Visit) -> None:
    page = visit.come("models")
    page.locator(".s-compare tbody a", has_text="translator-de-en-plain").click()
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "translator-de-en-plain"
    assert "#" not in page.url


def test_a_card_is_rendered_and_nothing_in_it_is_markup(visit: Visit) -> None:
    page = visit.come("models")
    article = page.locator("article[aria-label='captioner']")
    unfold(page, "article [data-key='captioner.card']")
    card = article.locator(".s-model-card")
    assert card.locator("h4").inner_text() == "captioner" and card.locator("h5").inner_text() == "Figures"
    assert card.locator("code").first.inner_text() == "<b>words</b>" and card.locator("strong").inner_text() == "means"
    assert card.locator("li").all_inner_texts() == ["one point, which goes on", "another"]
    assert card.locator("td").all_inner_texts() == ["30.0"] and card.locator("pre").inner_text().startswith('load("captioner")')
    links = card.locator("a")
    assert links.count() == 1 and links.first.get_attribute("rel") == "noopener noreferrer"
    assert page.evaluate("window.hacked") is None and card.locator("img").count() == 0
    assert "onerror" in card.inner_text() and "license" not in card.inner_text()


def test_what_is_folded_out_stays_so_when_the_list_changes(visit: Visit) -> None:
    page = visit.come("models")
    summary = page.locator("article[aria-label='captioner'] summary", has_text="Every part")
    summary.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("article[aria-label='captioner'] table")
    page.evaluate("window.kept = document.activeElement, seqdemo.page.show()")
    assert (
        page.evaluate("document.activeElement === window.kept")
        and page.locator("article[aria-label='captioner'] table").count() == 1
    )


def test_a_link_restores_what_is_compared_and_what_is_open(visit: Visit, browser: Any) -> None:
    page = visit.come("models")
    page.click(".s-compare [data-key=transliterate]")
    unfold(page, "article [data-key='captioner.card']")
    again = Visit(browser, visit.address)
    there = again.come(page.url.removeprefix(visit.address + "/"))
    assert there.locator(".s-compare tbody th").all_inner_texts() == ["transliterator", "transliterator-plain"]
    assert there.eval_on_selector_all("details[open]", "(nodes) => nodes.map((node) => node.dataset.key)") == ["captioner.card"]
    assert there.url == page.url and again.errors == []
    again.context.close()


def test_what_a_link_asks_for_that_there_is_not_is_named(visit: Visit) -> None:
    page = visit.come("models#task=juggle&open=nothing")
    assert "“task=juggle” in this link cannot be read" in page.inner_text("[role=alert]")
    assert page.locator(".s-compare tbody tr").count() == 2 and visit.errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_words_of_the_figure_can_be_read_in_both_themes(browser: Any, served: Any, theme: str) -> None:
    visit = Visit(browser, served[0], color_scheme=theme)
    page = visit.come("models")
    ink = page.evaluate("getComputedStyle(document.querySelector('.s-root')).color")
    words = [".legendtext", ".gtitle", ".xtick text", ".ytick text", ".xtitle", ".ytitle"]
    for name in words:
        page.wait_for_selector(f".s-plot {name}")
    script = "(names) => names.map((name) => getComputedStyle(document.querySelector('.s-plot ' + name)).fill)"
    assert page.evaluate(script, words) == [ink] * len(words)
    visit.context.close()
