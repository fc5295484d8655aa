"""Attention of several heads, and hard attention, in Chromium: which hands are offered, and what they change.

The toy models have one head and soft attention; the page is told otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser_visits import Visit, brush_two_cells

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser

HEADS = """(() => {
  const { page } = seqdemo, { trace } = page.columns.B, steps = trace.pieces.length;
  const own = Float32Array.from({ length: steps * steps }, (_, i) => Number(i % steps === 0));
  const last = Float32Array.from(trace.attention, (_, i) => Number(i % trace.source.length === trace.source.length - 1));
  trace.heads = [{ name: "mean", weights: trace.attention }, { name: "layer 1, head 1", layer: 0, head: 0, weights: last },
    { name: "writing, layer 1, head 1", own: "target", weights: own }];
  page.tell("answer");
})()"""
HARD = "seqdemo.page.card('captioner').hard = true; seqdemo.page.tell('answer')"
PANEL = "#s-panel-alignment"


def opened(visit: Visit, path: str) -> Any:
    page = visit.come(path)
    page.wait_for_selector(".s-hands[open] > div")
    visit.settle()
    return page


def edits(visit: Visit) -> Any:
    return visit.page.evaluate("seqdemo.page.state.columns[1].edits")


def test_the_row_of_the_head_that_is_shown_is_pinned_and_the_edit_names_the_head(visit: Visit) -> None:
    page = opened(visit, "#tab=alignment&open=hands-piece")
    page.evaluate(HEADS)
    assert "all heads" in page.inner_text(f"{PANEL} .s-row-hands")
    page.locator(f"{PANEL} .s-half >> nth=1 >> select").select_option(label="layer 1, head 1")
    assert "layer 1, head 1 alone" in page.inner_text(f"{PANEL} .s-row-hands")
    page.get_by_role("button", name="Pin").click()
    visit.settle()
    (row,) = edits(visit)
    assert (row["layer"], row["head"], row["weights"][-1]) == (0, 0, 1)
    assert page.evaluate("seqdemo.page.history.steps.at(-1).words").endswith("layer 1, head 1")


def test_self_attention_is_told_and_its_hands_are_not_offered(visit: Visit) -> None:
    page = opened(visit, "#tab=alignment&open=hands-piece")
    page.evaluate(HEADS)
    page.locator(f"{PANEL} .s-half >> nth=1 >> select").select_option(label="writing, layer 1, head 1")
    assert not page.is_visible(f"{PANEL} .s-row-hands")
    told = page.inner_text(PANEL)
    assert "Self-attention of the decoder" in told and "cannot be moved by hand" in told and "In A: Each row" in told
    page.locator(f"{PANEL} .s-half >> nth=1 >> button", has_text="As a table").click()
    heads = page.locator(f"{PANEL} .s-half >> nth=1 >> thead th").all_inner_texts()
    assert heads[:2] == ["written", "start"]


def test_of_hard_attention_one_cell_is_chosen_and_cells_are_drawn_by_a_seed(visit: Visit) -> None:
    page = opened(visit, "caption#open=hands-cell.equation-alignment")
    page.evaluate(HARD)
    assert "This attention is hard" in page.inner_text(PANEL) and "argmax" in page.inner_text(f"{PANEL} .s-equation")
    assert page.locator(f"{PANEL} .s-row-hands button", has_text="Uniform").count() == 0
    page.locator(".s-overlay").scroll_into_view_if_needed()
    brush_two_cells(visit)
    assert [row["weights"][:3] for row in edits(visit)] == [[0, 1, 0]]
    page.get_by_role("button", name="Let go").click()
    page.get_by_role("button", name="A drawn cell").click()
    page.get_by_role("button", name="Draw again").click()
    assert edits(visit) == [{"kind": "AttentionDraw", "seed": 1}] and "AttentionDraw" in page.url
    page.keyboard.press("Control+z")
    assert edits(visit) == [{"kind": "AttentionDraw", "seed": 0}]
