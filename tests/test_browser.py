"""The pages in Chromium, over a toy model: what a person sees, hovers, clicks, types and saves."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.browser_visits import PAGES, Visit, unfold
from tests.shared import PATIENCE

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser
HOSTILE = [
    "${document.body.x=1}",
    "{{x}} ${1+1}",
    "<img src=x onerror='window.hacked=1'>",
    "\u202egnp.exe",
    "Z" + "\u0351" * 60,
    "a\x01b",
]


def is_stop(told: Any) -> bool:
    """Whether a request, its response or its route stops a question."""
    request = getattr(told, "request", told)
    return "/component_server" in request.url and '"fn_name":"give_up"' in request.post_data


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_with_a_worked_result_and_asks_nobody_else(visit: Visit, path: str) -> None:
    page = visit.open(path)
    if path != "models":
        assert all(visit.outputs())
        assert len(page.inner_text(".s-finding")) > 20
        assert page.locator("[role=treeitem]").count() or page.locator(".s-text span").count() or page.locator(".s-frame").count()
    page.wait_for_timeout(300)
    assert visit.errors == [] and visit.foreign == []


def test_the_worked_result_needs_no_model(visit: Visit, served: Any) -> None:
    before = served[1].asked
    visit.open()
    visit.page.wait_for_timeout(200)
    assert served[1].asked == before


@pytest.mark.parametrize("path", ["", "language-model", "models"])
def test_the_page_is_drawn_before_the_scripts_of_gradio_come(visit: Visit, path: str) -> None:
    visit.page.route("**/assets/*.js", lambda route: route.abort())
    page = visit.open(path)
    assert page.locator(".s-early h1").count() == 1
    if path != "models":
        assert all(visit.outputs())


def test_what_is_typed_before_gradio_is_there_is_decoded_when_it_is(visit: Visit) -> None:
    held: list[Any] = []
    scripts = "**/assets/HTML*.js"
    keeps = True
    visit.page.route(scripts, lambda route: held.append(route) if keeps else route.continue_())
    with visit.page.expect_request(scripts):
        page = visit.open()
    page.fill("#s-input", "Zwei Hunde rennen")
    page.wait_for_timeout(400)
    assert visit.calls == 0 and page.locator(".s-early").count() == 1
    keeps = False
    for route in held:
        route.continue_()
    page.wait_for_function("seqdemo.page.columns.B.source.pieces.join('').includes('Hunde')")
    assert page.locator(".s-early").count() == 0 and page.input_value("#s-input") == "Zwei Hunde rennen"
    assert page.evaluate("document.activeElement.id") == "s-input"


def test_typing_decodes_again_and_the_link_follows(visit: Visit) -> None:
    page = visit.come()
    first = visit.outputs()
    page.fill("#s-input", "Zwei Hunde rennen")
    page.wait_for_function("first => document.querySelector('#s-column-b .s-output').innerText !== first", arg=first[1])
    visit.settle()
    assert "Zwei+Hunde+rennen" in page.url
    assert "Zwei" in page.inner_text(".s-reads")


def test_the_numbers_add_up_on_the_page(visit: Visit) -> None:
    page = visit.open()
    numbers = page.locator("#s-column-b .s-chip-number").all_inner_texts()
    total = float(page.locator("#s-column-b [data-total]").get_attribute("data-total"))
    assert sum(float(number.replace("−", "-")) for number in numbers) == pytest.approx(total, abs=0.005 * len(numbers))


def test_differing_words_are_marked_in_both_columns(visit: Visit) -> None:
    page = visit.open()
    a, b = visit.outputs()
    assert (a == b) == (page.locator("[data-differs]").count() == 0)
    assert page.locator("#s-column-a [data-differs]").count() > 0


def test_taking_and_refusing_a_node_decodes_b_and_names_the_price(visit: Visit) -> None:
    page = visit.come()
    node = page.locator("[role=treeitem][aria-level='1']").nth(1)
    name = node.locator("text").first.text_content()
    node.click()
    page.get_by_role("button", name="Take this").click()
    visit.settle()
    assert "starts with" in page.inner_text("#s-column-b .s-edits")
    assert visit.outputs()[1].startswith(name.lstrip("‿")[:3])
    assert "Price: the untouched model" in page.inner_text("#s-column-b .s-price")
    page.get_by_role("button", name="Remove: ").click()
    visit.settle()
    best = page.locator("[role=treeitem][aria-level='1']").first
    best.click()
    refused = visit.outputs()[1]
    page.get_by_role("button", name="Never this").click()
    visit.settle()
    assert "never starts with" in page.inner_text("#s-column-b .s-edits")
    assert visit.outputs()[1] != refused


def test_of_several_edits_each_shows_its_own_price(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    page.evaluate("() => { const page = seqdemo.page; page.editPath('Ban', ['▁I']); page.editPath('Ban', ['▁a']); }")
    visit.settle()
    assert page.locator("#s-column-b .s-edit .s-number").all_inner_texts() == ["log p −0.25", "log p −0.50"]


def test_a_click_in_the_tree_is_followed_by_everything(visit: Visit) -> None:
    page = visit.come()
    finished = page.locator("[role=treeitem][aria-label*='finished']").last
    finished.click()
    visit.settle()
    page.click("#s-tab-alignment")
    tokens = page.evaluate("seqdemo.page.columns.B.trace.asked")
    assert tokens == page.evaluate("seqdemo.page.chosen('B').tokens")
    assert tokens != page.evaluate("seqdemo.page.columns.B.hypotheses[0].tokens")


def test_what_stands_beside_a_dropped_node_is_hidden_by_no_other(visit: Visit) -> None:
    page = visit.come()
    page.check(".s-pruned")
    page.locator("[role=treeitem][aria-label*='pruned'][aria-level='1']").first.click()
    visit.settle()
    hidden = page.evaluate("""() => {
      const all = (selector) => [...document.querySelectorAll(`[role=treeitem] ${selector}`)];
      const place = (element) => element.getBoundingClientRect();
      const notes = all("text").filter((text) => /missed by|dropped next/.test(text.textContent)).map(place);
      const boxes = all("rect").map(place);
      const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
      return notes.map((note) => boxes.some((box) => meet(note, box)));
    }""")
    assert hidden and not any(hidden)


def test_the_tree_is_walked_with_the_keyboard(visit: Visit) -> None:
    page = visit.come()
    page.locator("[role=treeitem][aria-level='1']").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.getAttribute('aria-level')")
    assert focused in ("1", "2")
    page.keyboard.press("Enter")
    visit.settle()
    assert page.locator(".s-card .s-quote").count() == 1


def test_tabs_are_walked_with_the_keyboard(visit: Visit) -> None:
    page = visit.come()
    page.focus("#s-tab-tree")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "s-tab-alignment"
    assert page.is_visible("#s-panel-alignment") and not page.is_visible("#s-panel-tree")


def test_a_word_under_the_pointer_lights_its_partners(visit: Visit) -> None:
    page = visit.come()
    page.hover("#s-column-b .s-output .s-atom >> nth=0")
    assert page.locator(".s-source-line .s-lit").count() >= 1
    page.hover(".s-source-line .s-atom >> nth=0")
    assert page.locator("#s-column-a .s-output .s-lit").count() >= 1
    assert page.locator("#s-column-b .s-output .s-lit").count() >= 1
    page.hover("h1")
    assert page.locator(".s-lit").count() == 0


def test_the_overlay_follows_the_pointer_without_the_server(visit: Visit) -> None:
    page = visit.come("caption")
    visit.settle()
    before, picture = visit.calls, "document.querySelector('.s-overlay').toDataURL()"
    page.hover(".s-overlay-word >> nth=1")
    second = page.evaluate(picture)
    page.hover(".s-overlay-word >> nth=3")
    assert page.evaluate(picture) != second
    assert visit.calls == before


def test_a_photograph_of_ones_own_is_captioned(visit: Visit, tmp_path: Path) -> None:
    from PIL import Image

    page = visit.come("caption")
    first = visit.outputs()
    Image.effect_noise((300, 200), 60).convert("RGB").save(tmp_path / "mine.png")
    page.set_input_files("#s-photo", tmp_path / "mine.png")
    page.wait_for_function("first => document.querySelector('#s-column-b .s-output').innerText !== first", arg=first[1])
    visit.settle()
    assert "photo=own" in page.url and "mine" not in page.url


@pytest.mark.parametrize("kind", ["heic", "svg", "cut short", "not a picture", "bomb"])
def test_a_photograph_that_cannot_be_used_gets_a_sentence(visit: Visit, tmp_path: Path, kind: str) -> None:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("1", (9000, 9000)).save(stream, "PNG")
    files = {
        "heic": b"\x00\x00\x00\x18ftypheic" + bytes(200),
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>window.hacked=1</script></svg>",
        "cut short": stream.getvalue()[:300],
        "not a picture": b"hello" * 100,
        "bomb": stream.getvalue(),
    }
    page = visit.come("caption")
    (tmp_path / "own.png").write_bytes(files[kind])
    page.set_input_files("#s-photo", tmp_path / "own.png")
    page.wait_for_selector("#s-column-b .s-message:visible")
    told = page.inner_text("#s-column-b .s-message")
    assert told.endswith(".") and len(told) > 20 and "went wrong" not in told
    assert page.evaluate("window.hacked") is None


def test_a_link_restores_what_was_seen(visit: Visit, browser: Any) -> None:
    page = visit.come()
    page.fill("#s-input", "Drei kleine Katzen")
    page.select_option("#s-column-a .s-strategy", "beam")
    page.fill("#s-column-b input[data-option=beam]", "8")
    visit.settle()
    page.locator("[role=treeitem][aria-label*='finished']").last.click()
    visit.settle()
    page.click("#s-tab-gates")
    visit.settle()
    kept = (visit.outputs(), page.inner_text(".s-finding"))
    again = Visit(browser, visit.address)
    again.open(page.url.removeprefix(visit.address + "/"))
    again.page.wait_for_function("window.seqdemo.page && seqdemo.page.columns.A && seqdemo.page.columns.B")
    again.settle()
    assert (again.outputs(), again.page.inner_text(".s-finding")) == kept
    assert again.page.is_visible("#s-panel-gates")
    again.context.close()


def test_swap_copy_reset_and_attention_off(visit: Visit) -> None:
    page = visit.come()
    a, b = visit.outputs()
    before = visit.calls
    page.get_by_role("button", name="Swap A and B").click()
    assert visit.outputs() == [b, a] and visit.calls == before
    page.get_by_role("button", name="Copy A to B").click()
    visit.settle()
    assert visit.outputs() == [b, b]
    page.get_by_role("button", name="Switch attention off in B").click()
    visit.settle()
    assert page.eval_on_selector("#s-column-b .s-model", "node => node.value") == "translator-de-en-plain"
    assert "cannot be compared" in page.inner_text(".s-finding") or "Two models" in page.inner_text(".s-finding")
    page.get_by_role("button", name="Reset the page").click()
    visit.settle()
    assert visit.outputs() == [a, b]


def test_a_model_keeps_its_colour_among_the_curves_whichever_is_in_b(visit: Visit) -> None:
    page = visit.come("#tab=attention")
    legend = "[...document.querySelectorAll('.s-curve-names li')].map((node) => node.textContent)"
    page.wait_for_selector(".s-curves .s-curve-names li")
    before = page.evaluate(legend)
    page.click("[data-key=twin]")
    visit.settle()
    assert before and page.evaluate(legend) == before


def test_dimming_attention_is_an_edit_of_b(visit: Visit) -> None:
    page = visit.come()
    page.click("#s-tab-attention")
    page.locator("#s-dim").fill("0.5")
    page.locator("#s-dim").dispatch_event("change")
    visit.settle()
    assert "attention 50 % towards uniform" in page.inner_text("#s-column-b .s-edits")
    page.wait_for_selector("#s-panel-attention canvas")
    assert page.locator("#s-panel-attention canvas").count() == 1


def test_reranking_stays_in_the_browser(visit: Visit, served: Any) -> None:
    page = visit.come()
    unfold(page, "#s-column-b .s-more")
    page.select_option("#s-column-b select[data-option=length_norm]", "power")
    visit.settle()
    asked, calls = served[1].asked, visit.calls
    before = page.inner_text("#s-column-b .s-scores")
    page.evaluate("() => { seqdemo.page.asker.schedule = () => {}; seqdemo.page.setOption('B', 'alpha', 2); }")
    assert page.inner_text("#s-column-b .s-scores") != before
    scores = page.evaluate("seqdemo.page.columns.B.hypotheses.map((h) => [h.score, h.total / h.tokens.length ** 2])")
    assert all(score == pytest.approx(expected) for score, expected in scores)
    assert (served[1].asked, visit.calls) == (asked, calls)


def test_the_outputs_show_a_score_only_where_it_is_not_the_log_probability(visit: Visit) -> None:
    page = visit.come("#open=nbest-b")
    visit.settle()
    heads = "#s-column-b .s-nbest th"
    assert page.locator(heads).all_inner_texts()[1:] == ["output", "log probability"]
    page.evaluate("seqdemo.page.setOption('B', 'length_norm', 'power')")
    visit.settle()
    assert page.locator(heads).all_inner_texts()[1:] == ["output", "log probability", "normalised score"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("path", ["", "language-model"])
def test_hostile_text_is_text(visit: Visit, path: str, text: str) -> None:
    page = visit.come(path)
    page.fill("#s-input", text)
    visit.settle()
    assert page.evaluate("window.hacked === undefined && document.body.x === undefined")
    assert page.locator(".s-root img[onerror]").count() == 0
    assert visit.errors == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_text_over_the_limit_gets_a_sentence_and_no_answer_until_it_is_shorter(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    before, calls = visit.outputs(), visit.calls
    text = page.input_value("#s-input")
    put = """(text) => { const a = document.querySelector('#s-input'); a.value = text;
        a.dispatchEvent(new Event('input', {bubbles: true})); }"""
    page.evaluate(put, "x" * 100000)
    assert "100,000 characters" in page.inner_text(".s-input .s-message")
    answers = page.locator(".s-output:visible, .s-reads:visible, .s-column .s-numbers:visible")
    assert not answers.count() and page.locator(".s-column .s-message:visible").count() == 2
    assert "s-faded" in str(page.get_attribute(".s-panels", "class"))
    page.evaluate(put, text)
    visit.settle()
    assert visit.outputs() == before and answers.count() == 5 and not page.locator(".s-message:visible").count()
    assert visit.calls == calls  # the answer was known
    assert "s-faded" not in str(page.get_attribute(".s-panels", "class"))


def test_a_mistake_is_told_and_the_next_answer_clears_it(visit: Visit) -> None:
    page = visit.come()
    page.fill("#s-input", " ".join("w" for _ in range(200)))
    page.wait_for_selector("#s-column-b .s-message:visible")
    assert "120 pieces" in page.inner_text("#s-column-b .s-message")
    page.fill("#s-input", "kurz")
    page.wait_for_selector("#s-column-b .s-message", state="hidden")


def test_exact_search_shows_progress_and_stops(visit: Visit, served: Any) -> None:
    page = visit.come()
    served[1].cancelled.clear()
    page.select_option("#s-column-b .s-strategy", "exact")
    page.wait_for_function("document.querySelector('.s-busy').innerText.includes('prefixes followed')")
    page.get_by_role("button", name="Stop").click()
    assert served[1].cancelled.wait(PATIENCE)
    assert "Stopped" in page.inner_text(".s-busy")
    assert page.evaluate("Boolean(document.activeElement.closest('.s-column'))")  # the keyboard goes on below the button
    page.select_option("#s-column-b .s-strategy", "greedy")
    visit.settle()
    assert "agree" in page.inner_text(".s-finding")


def test_a_search_that_is_stopped_before_the_server_has_taken_it_never_begins(visit: Visit, served: Any) -> None:
    page = visit.come()
    held: list[Any] = []
    page.route("**/queue/join*", lambda route: held.append(route))
    with page.expect_request("**/queue/join*"):
        page.select_option("#s-column-b .s-strategy", "exact")
    with page.expect_response(is_stop):
        page.get_by_role("button", name="Stop").click()
    page.select_option("#s-column-b .s-strategy", "greedy")
    page.wait_for_function("document.querySelector('.s-finding').innerText.includes('agree')")
    visit.settle()
    asked = served[1].asked
    with page.expect_response("**/queue/join*"):
        held[0].continue_()
    page.unroute("**/queue/join*")
    page.select_option("#s-column-b .s-strategy", "exact")  # the server begins questions in their order
    page.wait_for_function("document.querySelector('.s-busy').innerText.includes('prefixes followed')")
    assert served[1].asked == asked + 1 and visit.errors == []


def test_a_stop_that_comes_late_ends_its_own_search_and_not_the_next_one(visit: Visit, served: Any) -> None:
    page = visit.come()
    served[1].cancelled.clear()
    held: list[Any] = []
    searching = "document.querySelector('.s-busy').innerText.includes('prefixes followed')"
    page.select_option("#s-column-b .s-strategy", "exact")
    page.wait_for_function(searching)
    page.route("**/component_server/", lambda route: held.append(route) if is_stop(route) else route.continue_())
    with page.expect_request("**/queue/join*"):  # another search in the place of the first one
        page.fill("#s-input", "Zwei Hunde rennen")
    page.wait_for_function(searching)
    held[0].continue_()
    assert served[1].cancelled.wait(PATIENCE)
    told = page.inner_text(".s-busy")
    page.wait_for_function("told => document.querySelector('.s-busy').innerText !== told", arg=told)
    assert page.evaluate(searching)
    page.unroute("**/component_server/")
    served[1].cancelled.clear()
    page.get_by_role("button", name="Stop").click()
    assert served[1].cancelled.wait(PATIENCE) and visit.errors == []


def test_closing_the_tab_frees_the_worker(visit: Visit, served: Any) -> None:
    page = visit.come()
    served[1].cancelled.clear()
    page.select_option("#s-column-b .s-strategy", "exact")
    page.wait_for_function("document.querySelector('.s-busy').innerText.includes('prefixes followed')")
    page.close()
    assert served[1].cancelled.wait(PATIENCE)  # what comes to its own end is not cancelled


def test_the_last_of_many_changes_wins(visit: Visit) -> None:
    page = visit.come()
    for size in (2, 3, 4, 6, 7):
        page.fill("#s-column-b input[data-option=beam]", str(size))
        page.wait_for_timeout(60)
    visit.settle()
    assert page.evaluate("seqdemo.page.columns.B.spec.options.beam") == 7


def test_figures_and_results_are_saved(visit: Visit, tmp_path: Path) -> None:
    page = visit.come()

    def saved(click: Any) -> bytes:
        with page.expect_download() as waiting:
            click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path.read_bytes()

    for tab in ("tree", "alignment", "gates"):
        page.click(f"#s-tab-{tab}")
        visit.settle()
        buttons = page.locator(f"#s-panel-{tab} .s-tools:visible").first
        assert saved(lambda buttons=buttons: buttons.get_by_text("PNG").click()).startswith(b"\x89PNG")
        root = ET.fromstring(saved(lambda buttons=buttons: buttons.get_by_text("SVG").click()))
        assert root.tag.endswith("svg") and len(list(root.iter())) > 20
    told = json.loads(saved(lambda: page.get_by_role("button", name="Trace as JSON").click()))
    weights = told["columns"]["B"]["trace"]["attention"]
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in weights)
    assert b"column,rank,text" in saved(lambda: page.get_by_role("button", name="n-best as CSV").click())
    page.get_by_role("button", name="As Python").click()
    compile(page.inner_text(".s-code pre"), "snippet", "exec")


@pytest.mark.parametrize("tab", ["tree", "alignment", "gates"])
def test_every_figure_has_a_table(visit: Visit, tab: str) -> None:
    page = visit.come()
    page.click(f"#s-tab-{tab}")
    visit.settle()
    page.locator(f"#s-panel-{tab} .s-tools:visible button", has_text="As a table").first.click()
    page.wait_for_selector(f"#s-panel-{tab} table:visible")
    assert page.locator(f"#s-panel-{tab} table:visible tbody tr").count() > 3


def test_the_unit_that_tracks_a_quotation_is_found(visit: Visit) -> None:
    page = visit.come("language-model")
    visit.settle()
    assert page.input_value(".s-unit") == "3"  # the measured one, from the start
    page.get_by_role("button", name="Next unit").click()
    assert page.input_value(".s-unit") == "4"
    colours = page.eval_on_selector_all(".s-text span", "(nodes) => nodes.map((node) => node.style.background).join()")
    page.get_by_role("button", name="quotation").click()
    assert "quotation" in page.inner_text("#s-panel-text .s-says >> nth=1")
    assert page.input_value(".s-unit") == "3"
    assert colours != page.eval_on_selector_all(".s-text span", "(nodes) => nodes.map((node) => node.style.background).join()")
    page.get_by_role("button", name="Probability").click()
    page.wait_for_function("/nats a character.* 1\\.25/.test(document.querySelector('#s-panel-text').innerText)")


def test_a_model_that_read_something_else_is_one_click_away(visit: Visit) -> None:
    page = visit.come("language-model")
    page.fill("#s-input", "my own (text")
    page.wait_for_function("seqdemo.page.columns.B.source.pieces.join('') === 'my own (text'")
    visit.settle()
    page.get_by_role("button", name="comments").click()
    page.get_by_role("button", name="See it in letters-of-code").click()
    page.wait_for_function("seqdemo.page.columns.B.spec.checkpoint === 'letters-of-code'")
    visit.settle()
    page.wait_for_function("document.querySelector('.s-unit').value === '2'")
    assert page.input_value("#s-input") == "my own (text"
    assert page.evaluate("Object.values(seqdemo.page.columns).map((column) => column.spec.checkpoint)") == ["letters-of-code"] * 2
    page.get_by_role("button", name="letters-english", exact=True).click()
    page.wait_for_function("seqdemo.page.columns.A.spec.checkpoint === 'letters-english'")
    assert page.input_value("#s-input") == "my own (text"


def test_words_taken_on_a_continuation_begin_after_the_text(visit: Visit) -> None:
    page = visit.come("language-model")
    page.click("#s-tab-tree")
    page.select_option("#s-column-b .s-strategy", "beam")
    visit.settle()
    node = page.locator("[role=treeitem][aria-level='1']").nth(1)
    name = node.locator("text").first.text_content()
    node.click()
    page.get_by_role("button", name="Take this").click()
    visit.settle()
    assert not page.is_visible("#s-column-b .s-message")
    assert visit.outputs()[1].startswith(name)
    page.get_by_role("button", name="As Python").click()
    given = len(page.input_value("#s-input"))
    assert f"Force(position={given}, " in page.inner_text(".s-code pre")


def test_another_language_keeps_the_word_and_the_link(visit: Visit) -> None:
    page = visit.come("transliterate")
    page.fill("#s-input", "namaste")
    assert page.locator("#s-language option").all_inner_texts() == ["Hindi (Devanagari)", "Urdu (Arabic)"]
    page.select_option("#s-language", "ur")
    visit.settle()
    page.wait_for_function("location.hash.includes('language=ur')")
    assert page.input_value("#s-input") == "namaste"
    assert page.evaluate("seqdemo.page.message(['A'], {}).language") == "ur"


def test_an_example_is_no_longer_marked_once_its_text_is_another(visit: Visit) -> None:
    page = visit.come()
    assert page.locator(".s-example[aria-pressed=true]").count() == 1 and page.inner_text(".s-shows")
    page.fill("#s-input", "etwas anderes")
    assert page.locator(".s-example[aria-pressed=true]").count() == 0 and not page.inner_text(".s-shows")


def test_beside_an_alignment_stands_how_often_it_looks_at_the_right_place(visit: Visit) -> None:
    page = visit.come("#tab=alignment")
    told = page.inner_text("#s-panel-alignment .s-trust")
    assert "37.7 %" in told and "3,533 sure links" in told and told.count("How far to trust the map") == 1
    assert "That is the mean of 2 heads. By itself, layer 2, head 2 aligns best: 30.5 % wrong or missed." in told
    page = visit.come("transliterate#tab=alignment")
    visit.settle()
    told = page.inner_text("#s-panel-alignment .s-trust")
    assert "93.0 %" in told and "900 words" in told and "mostly points at what is written" in told
    page.select_option("#s-language", "ur")
    visit.settle()
    told = page.inner_text("#s-panel-alignment .s-trust")
    assert "98.5 %" in told and "120 words" in told and "one position early" in told


def test_every_page_leads_to_the_page_of_the_endpoints(visit: Visit) -> None:
    for path in PAGES:
        link = visit.come(path).get_by_role("link", name="For programs: the API")
        assert link.evaluate("(link) => link.href") == f"{visit.address}/programs"
    link.click()
    for name in ("/translate", "/transliterate", "/caption", "/complete", "/score", "/trace"):
        visit.page.wait_for_function("name => document.body?.innerText.includes(name)", arg=name)
    left = "(node) => node.getBoundingClientRect().left + parseFloat(getComputedStyle(node).paddingLeft)"
    assert visit.page.eval_on_selector(".s-programs", left) >= 12, "the words keep off the window's edge"


def test_the_answer_that_a_person_wanted_is_scored_beside_the_outputs(visit: Visit) -> None:
    page = visit.come()
    visit.settle()
    assert not page.is_visible("#s-wanted")  # beside an example stands what people wrote
    page.fill("#s-input", "ein eigener Satz")
    page.fill("#s-wanted", "I like it")
    visit.settle()
    for side in "ab":
        told = page.inner_text(f"#s-column-{side} .s-wanted-score")
        assert told.startswith("Your answer: log probability") and "than this output" in told and "Least expected" in told


def test_the_map_says_how_far_to_trust_it(visit: Visit) -> None:
    told = visit.open("caption").inner_text(".s-trust")
    assert "58.0 %" in told and "56.3 %" in told and "middle of the picture" in told
