"""Hands on the model in Chromium: what a person does to words, rows and gates, by mouse, touch and keyboard."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pytest

from tests.browser_visits import Visit, brush_two_cells

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser
FOCUSED = "document.activeElement.className"


def edits(visit: Visit, side: str = "b") -> list[dict[str, Any]]:
    """Of a column, as its link tells them."""
    link = visit.page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    return json.loads(link.get(f"{side}.edits", "[]"))


def chips(visit: Visit) -> list[str]:
    return visit.page.locator("#s-column-b .s-edit").all_inner_texts()


def test_two_clicks_put_another_word_into_b_and_a_stays(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    before = visit.outputs()[0]
    assert not page.locator("script[src*='seqdemo-assets/later-']").count()  # what nobody asked for does not come
    page.click("#s-column-a .s-word >> nth=0")
    visit.settle()
    assert page.is_visible("#s-column-a .s-popover") and "probability" in page.inner_text("#s-column-a .s-wordmenu-head")
    assert page.locator("script[src*='seqdemo-assets/later-']").count() == 1
    other = page.inner_text("#s-column-a .s-alternative bdi >> nth=0")
    page.click("#s-column-a .s-alternative >> nth=0")
    visit.settle()
    assert not page.is_visible("#s-column-a .s-popover")
    assert visit.outputs()[0] == before and visit.outputs()[1].startswith(other)
    assert [edit["kind"] for edit in edits(visit)] == ["Force"] and "▁" + other in edits(visit)[0]["pieces"]
    assert page.evaluate("seqdemo.page.columns.B.spec.options.strategy") == "greedy"  # the search of A: the word alone differs
    assert "Forced" in page.evaluate("seqdemo.page.history.steps.at(-1).words")
    assert "whole sentence" in chips(visit)[0]


def test_the_menu_of_a_word_opens_and_closes_by_keyboard(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    page.focus("#s-column-b .s-word >> nth=0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("#s-column-b .s-popover button:focus")
    assert page.inner_text(":focus") == "Take this"
    page.keyboard.press("Escape")
    assert not page.is_visible("#s-column-b .s-popover") and page.evaluate(FOCUSED).startswith("s-word")
    page.keyboard.press("Enter")
    page.wait_for_selector("#s-column-b .s-popover button:focus")
    page.get_by_role("button", name="Never this").focus()
    page.keyboard.press("Enter")
    visit.settle()
    assert [edit["kind"] for edit in edits(visit)] == ["Ban"] and page.evaluate(FOCUSED).startswith("s-word")


def test_words_stack_and_each_is_taken_back_alone(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    page.evaluate("() => { const {words} = seqdemo.page; words.take('B', ['▁I']); words.take('B', ['▁I', '▁feel', '▁good']); }")
    page.evaluate("() => { seqdemo.page.words.must('B', 'red'); seqdemo.page.words.never('B', ['▁it']); }")
    visit.settle()
    wanted = [("Force", ["▁I"]), ("Force", ["▁feel", "▁good"]), ("Require", None), ("Ban", ["▁it"])]
    assert [(edit["kind"], edit.get("pieces")) for edit in edits(visit)] == wanted
    assert "must say “red” somewhere" in chips(visit)[2]
    page.locator("#s-column-b .s-edit button").first.click()
    visit.settle()
    assert [(edit["kind"], edit.get("pieces")) for edit in edits(visit)] == wanted[1:]
    page.get_by_role("button", name="Undo").click()
    visit.settle()
    assert len(edits(visit)) == 4 and "red" in unquote(page.url)


def test_a_word_that_the_model_cannot_spell_is_told_in_a_sentence(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    page.click("#s-column-b .s-word >> nth=0")
    page.fill("#s-column-b .s-popover input", "platypus")
    page.get_by_role("button", name="“platypus” must be said").click()
    page.wait_for_selector("#s-column-b .s-message:not([hidden])")
    assert [(edit["kind"], edit["word"]) for edit in edits(visit)] == [("Require", "platypus")]
    assert "no pieces for “platypus”" in page.inner_text("#s-column-b .s-message")


def test_what_is_typed_for_one_box_is_gone_at_another_and_after_a_reset(visit: Visit) -> None:
    page = visit.come()
    visit.settle()

    def typed_at(box: str) -> str:
        page.click(f".s-node[aria-level='1'] >> nth={box}")
        page.wait_for_selector(".s-card input:visible")
        visit.settle()
        return page.input_value(".s-card input")

    assert typed_at("0") == ""
    page.fill(".s-card input", "dog")
    page.wait_for_selector(".s-card button:has-text('“dog” must be said')")
    assert typed_at("1") == "" and page.inner_text(".s-card button >> nth=2") == "Must be said"
    page.fill(".s-card input", "dog")
    page.get_by_role("button", name="Reset the page").click()
    visit.settle()
    assert typed_at("1") == "" and page.inner_text(".s-card button >> nth=2") == "Must be said"


def test_a_finger_opens_the_menu_of_a_word_and_of_a_box(browser: Any, served: Any) -> None:
    visit = Visit(browser, served[0], has_touch=True)
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = visit.come()
    visit.settle()
    page.tap("#s-column-b .s-word >> nth=0")
    never = page.wait_for_selector("#s-column-b .s-popover button:has-text('Never this')")
    visit.settle()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    never.tap()
    page.wait_for_function("location.hash.includes('Ban')")  # a browser tells of a tap later
    visit.settle()
    page.tap(".s-node >> nth=1")
    page.tap(".s-card button:has-text('Take this')")
    page.wait_for_function("location.hash.includes('Force')")
    visit.settle()
    assert [edit["kind"] for edit in edits(visit)] == ["Ban", "Force"]
    visit.context.close()


GRID_B = "#s-panel-alignment .s-half >> nth=1 >> .s-grid-cells"


def open_rows(visit: Visit, path: str = "#tab=alignment&open=hands-piece") -> Any:
    page = visit.come(path)
    page.wait_for_selector(".s-hands[open] > div")  # the tools come when they are asked for
    visit.settle()
    return page


def at_cell(visit: Visit, row: int, column: int) -> tuple[float, float]:
    """Where a cell of B's alignment stands on the screen."""
    cells = visit.page.locator(GRID_B)
    cells.scroll_into_view_if_needed()
    box, names = cells.bounding_box(), visit.page.evaluate("seqdemo.page.columns.B.trace")
    assert box
    wide, high = (box["width"] - 8) / len(names["source"]), (box["height"] - 8) / len(names["pieces"])
    return box["x"] + (column + 0.5) * wide, box["y"] + (row + 0.5) * high


def test_a_row_follows_the_hand_and_b_is_decoded_when_it_lets_go(visit: Visit) -> None:
    page = open_rows(visit)
    before = visit.calls
    x, y = at_cell(visit, 1, 0)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 8):
        page.mouse.move(x, y - 9 * step)
    assert edits(visit) == [] and visit.calls == before  # nothing is decoded while it moves
    page.mouse.up()
    visit.settle()
    (row,) = edits(visit)
    assert (row["kind"], row["position"]) == ("AttentionRow", 1) and sum(row["weights"]) == pytest.approx(1, abs=1e-4)
    assert row["weights"][0] > 0.4 and "attention set by hand" in chips(visit)[0]
    assert "by hand" in page.evaluate("seqdemo.page.history.steps.at(-1).words")


def test_a_row_follows_a_finger(browser: Any, served: Any) -> None:
    visit = Visit(browser, served[0], has_touch=True)
    page = open_rows(visit)
    x, y = at_cell(visit, 1, 0)
    touch = visit.context.new_cdp_session(page)

    def finger(kind: str, *points: tuple[float, float]) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    cells = page.locator(GRID_B).element_handle()
    top = page.evaluate("cells => cells.getBoundingClientRect().top", cells)
    finger("touchStart", (x, y))
    for step in range(1, 8):
        finger("touchMove", (x, y - 9 * step))
    assert edits(visit) == []
    finger("touchEnd")
    page.wait_for_function("location.hash.includes('AttentionRow')")
    visit.settle()
    assert [(row["kind"], row["position"]) for row in edits(visit)] == [("AttentionRow", 1)] and edits(visit)[0]["weights"][
        0
    ] > 0.4
    # What is under the finger stays where it is; above it B has grown by its edit.
    page.wait_for_function("([cells, top]) => Math.abs(cells.getBoundingClientRect().top - top) < 2", arg=[cells, top])
    visit.context.close()


def test_a_click_forces_attention_on_a_cell_and_a_second_one_lets_go(visit: Visit) -> None:
    page = open_rows(visit)
    for wanted in ([0.0, 1.0], []):
        page.mouse.click(*at_cell(visit, 0, 1))
        visit.settle()
        assert [row["weights"][:2] for row in edits(visit)] == ([wanted] if wanted else [])
    page.focus(GRID_B)
    for key in ("ArrowRight", "Home", "PageUp", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    visit.settle()
    assert edits(visit)[0]["position"] == 1 and edits(visit)[0]["weights"][0] == 1
    page.keyboard.press("+")
    visit.settle()
    assert page.evaluate("document.activeElement.className").startswith("s-grid-cells")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("Uniform", lambda own: [1 / len(own)] * len(own)),
        ("Pin", lambda own: own),
        ("Shift right", lambda own: [0, *own[:-2], own[-2] + own[-1]]),
        ("Shift left", lambda own: [own[0] + own[1], *own[2:], 0]),
        ("Only here", lambda own: [float(place == own.index(max(own))) for place in range(len(own))]),
        ("Shuffle", sorted),
    ],
)
def test_a_button_sets_the_row(visit: Visit, name: str, row: Any) -> None:
    page = open_rows(visit)
    page.locator(".s-row-hands:visible select").select_option("2")
    own = page.evaluate("seqdemo.page.columns.B.trace.attention.slice(2 * seqdemo.page.columns.B.trace.source.length)")
    own = own[: page.evaluate("seqdemo.page.columns.B.trace.source.length")]
    page.get_by_role("button", name=name, exact=True).click()
    visit.settle()
    (told,) = edits(visit)
    weights = sorted(told["weights"]) if name == "Shuffle" else told["weights"]
    assert told["position"] == 2 and weights == pytest.approx(row(own), abs=1e-4)
    page.get_by_role("button", name="Let go", exact=True).click()
    visit.settle()
    assert edits(visit) == []


def test_painting_the_photograph_says_where_to_look(visit: Visit) -> None:
    page = open_rows(visit, "caption#open=hands-cell")
    picture = page.locator(".s-overlay")
    picture.scroll_into_view_if_needed()
    for away in (False, True):
        brush_two_cells(visit)
        told = edits(visit)
        assert [row["weights"][:3] for row in told] == ([] if away else [[0.5, 0.5, 0]])
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    visit.settle()
    assert [row["weights"].index(1) for row in edits(visit)] == [1]


GATES = "#tab=gates&open=hands-gates"


def test_a_question_of_the_lectures_holds_its_gates_and_lets_them_go(visit: Visit) -> None:
    page = open_rows(visit, GATES)
    question = page.locator(".s-questions button", has_text="reset").first
    question.click()
    visit.settle()
    assert [(edit["part"], edit["gate"], edit["value"]) for edit in edits(visit)] == [
        ("decoder", "forget", 0),
        ("decoder", "input", 0),
    ]
    assert question.get_attribute("aria-pressed") == "true" and "B now writes" in page.inner_text(".s-result:visible")
    assert "held at 0" in chips(visit)[0] and "reset" in page.evaluate("seqdemo.page.history.steps.at(-1).words")
    page.locator(".s-questions button", has_text="never forget").first.click()
    visit.settle()
    assert [(edit["gate"], edit["value"]) for edit in edits(visit)] == [("forget", 1)]  # one question at a time
    page.locator(".s-questions button", has_text="cut the sentence's last state").click()
    visit.settle()
    ends = page.evaluate("[seqdemo.page.columns.B.trace.source.length - 1, 0]")
    assert [edit["positions"] for edit in edits(visit) if edit["gate"] == "hidden"] == [[end] for end in ends]
    page.locator(".s-questions button", has_text="never forget").first.click()
    page.locator(".s-questions button", has_text="cut the sentence's last state").click()
    visit.settle()
    assert edits(visit) == []


def test_another_model_says_which_edits_it_leaves_out_and_undo_brings_them_back(visit: Visit) -> None:
    page = open_rows(visit, GATES)
    page.locator(".s-questions button", has_text="never forget").first.click()
    visit.settle()
    page.select_option("#s-column-b .s-model", "translator-de-en-plain")
    visit.settle()
    left = "the forget gate held at 1"
    note = page.locator("#s-column-b .s-edits")
    assert note.inner_text() == f"Left out of column B, because it belongs to the model before: {left}. Undo brings it back."
    assert page.evaluate("seqdemo.page.history.steps.at(-1).words").endswith(f"; left out of B: {left}")
    page.get_by_role("button", name="Undo").click()
    visit.settle()
    assert len(edits(visit)) == 1 and "Left out" not in note.inner_text()
    page.get_by_role("button", name="Redo").click()
    visit.settle()
    assert edits(visit) == [] and left in note.inner_text()


def test_the_way_back_from_attention_off_restores_the_search(visit: Visit) -> None:
    page = visit.come("#tab=attention")
    visit.settle()
    search = "(({strategy, beam}) => [strategy, beam])(seqdemo.page.state.columns[1].options)"
    before = page.evaluate(search)
    assert "greedy instead of beam" in page.inner_text("#s-panel-attention .s-choice >> nth=0")
    page.locator("#s-panel-attention button[data-key=twin]").click()
    visit.settle()
    assert page.evaluate(search)[0] == "greedy"
    assert "; B: greedy instead of beam" in page.evaluate("seqdemo.page.history.steps.at(-1).words")
    page.locator("#s-panel-attention button[data-key=twin]").click()
    visit.settle()
    assert page.evaluate(search) == before


def test_a_slider_holds_a_gate_by_mouse_and_by_keys(visit: Visit) -> None:
    page = open_rows(visit, GATES)
    row = page.locator(".s-hold[data-key=forget]")
    row.get_by_role("button", name="held at 0").click()
    visit.settle()
    assert [edit["value"] for edit in edits(visit)] == [0]
    row.locator("input").focus()
    page.keyboard.press("ArrowRight")
    visit.settle()
    page.wait_for_function("location.hash.includes('0.05')")
    assert page.evaluate("document.activeElement.type") == "range" and [edit["value"] for edit in edits(visit)] == [0.05]
    row.get_by_role("button", name="the model's own").click()
    visit.settle()
    assert edits(visit) == []


def test_only_painted_units_and_steps_are_held(visit: Visit) -> None:
    page = open_rows(visit, GATES)
    page.get_by_role("button", name="Only what I paint").click()
    cells = page.locator("#s-panel-gates .s-grid-cells").first
    cells.focus()
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    assert "Painted: 3 units, steps 1 to 2." in page.inner_text(".s-hands:visible >> nth=0")
    page.locator(".s-hold[data-key=forget]").get_by_role("button", name="held at 1").click()
    visit.settle()
    assert [(edit["units"], edit["positions"]) for edit in edits(visit)] == [([0, 1, 2], [0, 1])]
    page.get_by_role("button", name="At all steps").click()
    page.locator(".s-hold[data-key=forget]").get_by_role("button", name="held at 1").click()
    visit.settle()
    assert [(edit["units"], edit["positions"]) for edit in edits(visit)][1] == ([0, 1, 2], None)


def test_a_painted_part_tells_what_holds_it_and_puts_out_the_question_it_breaks(visit: Visit) -> None:
    page = open_rows(visit, GATES)
    question = page.locator(".s-questions button", has_text="never forget").first
    question.click()
    visit.settle()
    page.get_by_role("button", name="Only what I paint").click()
    assert "Drag over a map below" in page.inner_text(".s-hands:visible >> nth=0")
    page.locator("#s-panel-gates .s-grid-cells").first.focus()
    for key in ("Home", "PageUp", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    row = page.locator(".s-hold[data-key=forget]")
    assert row.locator("output").inner_text() == "held at 1, and not only there"
    assert row.get_by_role("button", name="held at 1").get_attribute("aria-pressed") == "true"
    assert row.get_by_role("button", name="the model's own").get_attribute("aria-disabled") == "true"
    assert question.get_attribute("aria-pressed") == "true"
    row.get_by_role("button", name="held at 0").click()
    visit.settle()
    assert row.locator("output").inner_text() == "held at 0" and question.get_attribute("aria-pressed") == "false"
    page.get_by_role("button", name="All units, all steps").click()
    assert row.locator("output").inner_text() == "held in part"


def test_a_finger_paints_beyond_what_is_in_view(browser: Any, served: Any) -> None:
    """On a narrow screen: the map scrolls on while the finger rests at its edge."""
    visit = Visit(browser, served[0], has_touch=True)
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = open_rows(visit, GATES)
    page.add_style_tag(content="#s-panel-gates .s-grid { max-width: 180px }")  # as if there were more units
    page.get_by_role("button", name="Only what I paint").tap()
    page.wait_for_function("seqdemo.page.asker.idle()")
    cells = page.locator("#s-panel-gates .s-grid-cells").first
    cells.scroll_into_view_if_needed()
    pane = page.locator("#s-panel-gates .s-grid").first.bounding_box()
    assert pane and cells.bounding_box()["width"] > pane["width"]
    touch = visit.context.new_cdp_session(page)

    def finger(kind: str, *points: tuple[float, float]) -> None:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    y = cells.bounding_box()["y"] + 30
    finger("touchStart", (pane["x"] + pane["width"] - 60, y))
    finger("touchMove", (pane["x"] + pane["width"] - 30, y))
    finger("touchMove", (pane["x"] + pane["width"] - 2, y))
    end = "(pane) => pane.scrollLeft > 20 && pane.scrollLeft + pane.clientWidth >= pane.scrollWidth - 1"
    page.wait_for_function(f"() => ({end})(document.querySelector('#s-panel-gates .s-grid'))")
    finger("touchEnd")
    page.wait_for_function("document.querySelector('.s-hands[open]').innerText.includes('Painted:')")
    page.locator(".s-hold[data-key=forget]").get_by_role("button", name="held at 1").tap()
    page.wait_for_function("location.hash.includes('ClampGate')")
    visit.settle()
    assert edits(visit)[0]["units"][-1] == 47 and len(edits(visit)[0]["units"]) > 10
    visit.context.close()


@pytest.mark.parametrize("link", [GATES, "#tab=alignment&open=hands-piece"])
def test_a_link_restores_what_hands_did(visit: Visit, link: str) -> None:
    page = open_rows(visit, link)
    if "gates" in link:
        page.locator(".s-questions button", has_text="hide the cell").first.click()
    else:
        page.get_by_role("button", name="Uniform", exact=True).click()
    visit.settle()
    done, address = edits(visit), page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(".s-early", state="detached")
    visit.settle()
    assert edits(visit) == done and page.locator(".s-hands[open]:visible").count() == 1


def test_a_long_search_is_asked_about_once_it_has_an_answer(visit: Visit) -> None:
    page = open_rows(visit)
    page.evaluate("window.asked = []")
    heard = "asked.push(message.column.options.strategy)"
    page.evaluate(f"() => {{ seqdemo.page.hand.line.hand = async (message) => ({heard}, {{}}); }}")
    page.select_option("#s-column-b .s-strategy", "exact")
    page.wait_for_timeout(300)
    assert page.evaluate("asked") == []
    page.get_by_role("button", name="Stop").click()
    page.select_option("#s-column-b .s-strategy", "greedy")
    page.wait_for_function("asked.includes('greedy')")
