"""The pages' state in Chromium: links, undo, Back and Forward, and what no request may carry."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser_visits import Visit, unfold

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser

FORCE = quote(json.dumps([{"kind": "Force", "position": 0, "pieces": ["▁like"]}]))
BAN = quote(
    json.dumps([{"kind": "Ban", "position": 0, "pieces": ["▁it"]}, {"kind": "Ban", "position": 0, "pieces": ["▁I", "▁feel"]}])
)
DIM = quote(json.dumps([{"kind": "AttentionBlend", "factor": 0.35, "towards": "last", "positions": None}]))

# What a person did, as a script; after each, the page is as the link must restore it.
TRANSLATE = {
    "text": "page.setText('Grüße & Küsse ${1+1} #?= 😀')",
    "right to left": "page.setText('שלום עולם')",
    "beam": "page.setOption('B', 'beam', 8)",
    "two searches": "page.setOption('A', 'strategy', 'sample'); page.setOption('B', 'strategy', 'greedy')",
    "draws": "page.setOption('B', 'strategy', 'sample'); page.setOption('B', 'samples', 9); page.setOption('B', 'seed', 7)",
    "norm": "page.setOption('B', 'length_norm', 'gnmt'); page.setOption('B', 'alpha', 1.7)",
    "twin": "page.attentionOff()",
    "swapped": "page.setOption('B', 'beam', 3); page.swap()",
    "copied": "page.copyToB()",
    "dimmed": "page.dim(0.65, 'nothing'); page.open('attention')",
    "forced": "page.selectNode('B', 1); page.editPath('Force', page.selectedNode('B').pieces)",
    "forbidden": "page.selectNode('B', 0); page.editPath('Ban', page.selectedNode('B').pieces)",
    "pruned node": "page.look({pruned: true}); page.selectNode('B', page.columns.B.tree.fate.indexOf(1))",
    "last output": "page.selectOutput('B', page.columns.B.hypotheses.at(-1)); page.fold('nbest-b', true)",
    "a step back in time": "page.look({until: 1})",
    "tree of A": "page.update((s) => ({...s, view: {...s.view, tree: 'A'}}), '')",
    "unfolded": "page.look({opened: [0, 1]})",
    "alignment": "page.open('alignment')",
    "gates": "page.open('gates')",
    "gates of A": "page.open('gates'); page.look({gates: 'A', part: 'encoder.0.backward', order: 'variance'})",
    "gates by token": "page.open('gates'); page.look({order: 'token', step: 1})",
    "options open": "page.fold('options-a', true); page.fold('options-b', true)",
    "on tour": "page.update((s) => ({...s, view: {...s.view, tour: 2, pruned: true}}), 'Tour, step 2')",
    "steps open": "page.fold('steps', true)",
    "equation": "page.fold('equation-tree', true)",
    "as Python": "page.fold('python', true)",
    "menu of a word": "document.querySelectorAll('#s-column-b .s-word')[1].click()",
    "tree as a table": "press('#s-panel-tree')",
    "alignment of B as a table": "page.open('alignment'); press('#s-panel-alignment .s-half:last-child')",
    "gates and switches as tables": "page.open('gates'); await drawn('#s-panel-gates'); press('#s-panel-gates')",
    "curves as a table": "page.open('attention'); await drawn('#s-panel-attention'); press('#s-panel-attention')",
}
OTHERS = {
    "transliterate": {
        "word": "page.setText('dilli')",
        "language": "page.setLanguage('ur')",
        "letters forced": "page.selectNode('B', 0); page.editPath('Force', page.selectedNode('B').pieces)",
        "alignment": "page.open('alignment'); page.selectOutput('A', page.columns.A.hypotheses.at(-1))",
    },
    "caption": {
        "photograph": "page.useExample(page.setup.examples[1])",
        "word": "page.look({word: 2, looks: 'A'})",
        "map as a table": "press('#s-panel-alignment')",
        "veil": "page.look({veil: 0.25, word: 1})",
        "tree": "page.open('tree')",
        "all examples": "page.fold('examples', true)",
    },
    "language-model": {
        "unit": "page.look({unit: 5, layer: 0})",
        "text as a table": "press('#s-panel-text')",
        "probability": "page.look({by: 'probability'})",
        "text of A": "page.look({coloured: 'A', unit: 2})",
        "model": "page.setModel('letters-of-code')",
        "text": "page.setText('my own (text'); page.open('tree')",
        "gates": "page.open('gates'); page.look({gates: 'A'})",
    },
}
MADE = {"": TRANSLATE, **OTHERS}
GIVEN = [f"#b.edits={FORCE}", f"#b.edits={BAN}&tab=alignment", f"#a.edits={DIM}", "#a.strategy=beam&a.beam=7&a.output=2"]

HELPERS = """
const buttons = (part) => [...document.querySelectorAll(part + ' .s-tools button')];
const tables = (part) => buttons(part).filter((node) => node.textContent === 'As a table');
const press = (part) => tables(part).forEach((node) => node.click());
const drawn = async (part) => { while (!tables(part).length) await new Promise(requestAnimationFrame); };
"""

SEEN = """() => {
  const shown = (node) => node.getClientRects().length > 0;
  const all = (names) => [...document.querySelectorAll(names)].filter(shown);
  const text = (node) => node.innerText || node.textContent;
  const words = ['.s-finding', '.s-columns', '.s-panels', '.s-reads', '.s-shows', '.s-far', '.s-popover', '.s-code'];
  return {
    fields: all('input, select, textarea').map((node) => node.type === 'checkbox' ? node.checked : node.value),
    boxes: all('[role=treeitem]').map((node) => node.getAttribute('aria-label') + node.getAttribute('aria-selected')),
    drawn: all('canvas').map((node) => node.toDataURL().length + node.toDataURL().slice(-40)),
    colours: all('.s-text span').map((node) => node.style.background),
    words: words.map((name) => all(name).map(text).join()),
    open: all('details').map((node) => node.open),
  };
}"""


def ready(visit: Visit) -> None:
    visit.page.wait_for_function("window.seqdemo.page && seqdemo.page.answered()")
    visit.settle()


def told_alike(visit: Visit, browser: Any, name: str = "") -> None:
    """The link in a fresh browser draws the same."""
    page = visit.page
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(2, 2)
    ready(visit)
    seen = page.evaluate(SEEN)
    again = Visit(browser, visit.address)
    again.come(page.url.removeprefix(visit.address + "/"))
    ready(again)
    again.page.mouse.move(2, 2)
    assert again.page.url == page.url, name
    assert not again.page.locator(".s-page > div > .s-message").count(), name
    there = again.page.evaluate(SEEN)
    for part in seen:
        assert there[part] == seen[part], (name, part)
    assert again.errors == [], name
    again.context.close()


@pytest.mark.parametrize("path", MADE)
def test_a_link_restores_all_that_was_seen(visit: Visit, browser: Any, path: str) -> None:
    page = visit.come(path)
    for name, script in MADE[path].items():
        page.evaluate("seqdemo.page.reset()")
        ready(visit)
        page.evaluate(f"async () => {{ const page = seqdemo.page; {HELPERS} {script}; }}")
        ready(visit)
        assert "#" in page.url, name
        told_alike(visit, browser, name)


@pytest.mark.parametrize("link", GIVEN, ids=range(len(GIVEN)))
def test_a_link_from_elsewhere_is_restored_too(visit: Visit, browser: Any, link: str) -> None:
    visit.come(link)
    ready(visit)
    told_alike(visit, browser)


def test_an_old_link_opens_and_is_told_by_words_from_then_on(visit: Visit) -> None:
    page = visit.come()
    ready(visit)
    force = quote(
        json.dumps(
            [{"kind": "Force", "position": 0, "tokens": page.evaluate("seqdemo.page.columns.A.hypotheses[0].tokens.slice(0, 1)")}]
        )
    )
    piece = page.evaluate("seqdemo.page.columns.A.hypotheses[0].pieces[0]")
    picked = page.evaluate("seqdemo.page.columns.A.hypotheses[0].tokens.join('.')")
    visit.come(f"?text=Zwei+Hunde&b.edits={force}&a.pick={picked}&__theme=dark")
    ready(visit)
    assert page.input_value("#s-input") == "Zwei Hunde"
    assert page.evaluate("location.search") == "?__theme=dark"
    link = page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    assert json.loads(link["b.edits"]) == [{"kind": "Force", "position": 0, "pieces": [piece]}]
    assert "tokens" not in page.url and "pick" not in link
    assert "starts with" in page.inner_text("#s-column-b .s-edits")


@pytest.mark.parametrize(
    "link", ["?tab=text", "#b.beam=2.5", "#a.edits=[{}]", "#opened=1;2", "#b.edits=%7B", "#%E0%A4%A", "#a.row=99999", "?text=%ff"]
)
def test_a_malformed_link_never_breaks_the_page(visit: Visit, link: str) -> None:
    page = visit.come(link)
    ready(visit)
    assert all(visit.outputs()) and visit.errors == []
    assert page.locator("[role=tabpanel]:visible").count() == 1
    if link not in ("#a.row=99999", "?text=%ff"):
        assert "in this link" in page.inner_text(".s-page > div > .s-message")


def test_weights_that_changed_since_are_named_and_so_are_the_edits_they_cost(visit: Visit) -> None:
    clamp = quote(json.dumps([{"kind": "ClampGate", "part": "decoder", "gate": "forget", "value": 0}]))
    page = visit.come(f"#b.edits={clamp}&b.row=2&b.revision=0123456789ab")
    ready(visit)
    said = page.inner_text(".s-page > div > .s-message")
    assert "have changed since this link was made" in said and "the forget gate held at 0" in said
    assert not page.is_visible("#s-column-b .s-edit")


def test_a_look_at_a_view_is_a_step_that_names_it_as_a_person_does(visit: Visit) -> None:
    page = visit.come("#open=steps")
    for tab, words in (("alignment", "Looked at where the model looks"), ("gates", "Looked at the gates")):
        page.click(f"#s-tab-{tab}")
        ready(visit)
        assert page.locator(".s-history li").last.inner_text() == words


def test_undo_redo_and_the_steps_in_words(visit: Visit) -> None:
    page = visit.come()
    ready(visit)
    first = visit.outputs()
    page.fill("#s-column-b input[data-option=beam]", "2")
    ready(visit)
    page.select_option("#s-column-b .s-strategy", "greedy")
    ready(visit)
    page.locator("[role=treeitem][aria-level='1']").first.click()
    page.get_by_role("button", name="Take this").click()
    ready(visit)
    unfold(page, ".s-history")
    steps = page.locator(".s-history li").all_inner_texts()
    assert steps[0] == "The page as it opened"
    assert steps[1:3] == ["B: Beam size 2", "B: Strategy Greedy"]
    assert steps[3].startswith("Looked at “") and steps[4].startswith("Forced “") and "at word 1 of B" in steps[4]
    calls = visit.calls
    page.locator("h1").click()
    for _ in range(4):
        page.keyboard.press("Control+z")
    assert visit.outputs() == first and page.input_value("#s-column-b .s-strategy") == "beam"
    page.keyboard.press("Control+Shift+z")
    assert page.input_value("#s-column-b input[data-option=beam]") == "2"
    page.locator(".s-history li button").last.click()
    assert "starts with" in page.inner_text("#s-column-b .s-edits")
    page.get_by_role("button", name="Undo").click()
    assert not page.is_visible("#s-column-b .s-edit")
    page.wait_for_timeout(300)
    assert visit.calls == calls  # what was answered before needs no server


def test_in_a_text_field_ctrl_z_is_the_browser_s(visit: Visit) -> None:
    page = visit.come()
    ready(visit)
    page.select_option("#s-column-b .s-strategy", "greedy")
    ready(visit)
    page.focus("#s-input")
    page.keyboard.press("End")
    page.keyboard.type(" und")
    ready(visit)
    page.keyboard.press("Control+z")
    ready(visit)
    assert page.input_value("#s-column-b .s-strategy") == "greedy"
    assert not page.input_value("#s-input").endswith("und")


def test_back_and_forward_move_between_examples_and_pages(visit: Visit) -> None:
    page = visit.come()
    ready(visit)
    texts = [page.input_value("#s-input")]
    examples = page.locator(".s-example:visible")
    for number in (1, 2):
        examples.nth(number).click()
        ready(visit)
        texts.append(page.input_value("#s-input"))
    assert len(set(texts)) == 3
    page.get_by_role("link", name="Models", exact=True).click()
    page.wait_for_selector(".s-cards article")
    for text in (texts[2], texts[1], texts[0]):
        page.go_back()
        page.wait_for_function("text => (document.querySelector('#s-input') || {}).value === text", arg=text)
    page.go_forward()
    page.wait_for_function("text => document.querySelector('#s-input').value === text", arg=texts[1])
    ready(visit)
    assert "".join(page.evaluate("seqdemo.page.columns.B.source.pieces")).replace("▁", " ").strip() == texts[1]


def test_undo_brings_the_photograph_of_a_caption_back(visit: Visit) -> None:
    page = visit.come("caption")
    ready(visit)
    first = page.get_attribute(".s-photo", "src")
    page.evaluate("seqdemo.page.useExample(seqdemo.page.setup.examples[1])")
    ready(visit)
    assert page.get_attribute(".s-photo", "src") != first
    page.get_by_role("button", name="Undo").click()
    ready(visit)
    assert page.get_attribute(".s-photo", "src") == first


def test_what_is_typed_stands_in_no_requested_address(visit: Visit) -> None:
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    page = visit.come("#text=erstes+geheimnis")
    ready(visit)
    page.fill("#s-input", "zweites geheimnis")
    ready(visit)
    page.locator("[role=treeitem]").first.click()
    page.get_by_role("button", name="Take this").click()
    ready(visit)
    page.get_by_role("link", name="Models", exact=True).click()
    page.wait_for_selector(".s-cards article")
    page.go_back()
    page.wait_for_selector("#s-input")
    ready(visit)
    assert visit.calls >= 2
    assert not [url for url in asked if "geheimnis" in url.split("#")[0]]


def test_taking_a_letter_means_the_same_letter_in_another_model(visit: Visit) -> None:
    """P1: the models of A and B number their letters differently; what travels is the letter."""
    page = visit.come("transliterate#a.strategy=beam&tree=A")
    ready(visit)
    node = page.locator("[role=treeitem][aria-level='1']").nth(2)
    letter = node.locator("text").first.text_content()
    node.click()
    page.get_by_role("button", name="Take this").click()
    ready(visit)
    assert page.evaluate("seqdemo.page.message(['B'], {}).columns.B.edits") == [
        {"kind": "Force", "position": 0, "pieces": [letter]}
    ]
    assert page.evaluate("seqdemo.page.columns.B.hypotheses[0].pieces[0]") == letter


def test_a_draw_is_selected_by_its_own_rows(visit: Visit) -> None:
    """P4: draws share their beginnings; the output that was clicked is the one that is shown and lit."""
    page = visit.come("#b.strategy=sample&b.samples=12&b.temperature=2")
    ready(visit)
    unfold(page, "#s-column-b .s-nbest details")
    picks = page.locator("#s-column-b .s-pick")
    assert picks.count() > 1
    for number in range(picks.count()):
        picks.nth(number).click()
        ready(visit)
        wanted = page.evaluate("number => seqdemo.page.columns.B.hypotheses[number]", number)
        assert page.locator(".s-node[aria-selected=true]").get_attribute("data-node") == str(wanted["node"])
        assert page.evaluate("seqdemo.page.chosen('B').place") == wanted["place"]


def test_the_card_of_a_node_tells_that_node(visit: Visit) -> None:
    """P3: after "Take this" another tree stands there; what is told of a node is told of a node of that tree."""
    page = visit.come()
    ready(visit)
    page.locator("[role=treeitem][aria-level='2']").nth(1).click()
    ready(visit)
    page.get_by_role("button", name="Take this").click()
    ready(visit)
    assert page.locator(".s-card .s-quote").count() == 0
    node = page.locator("[role=treeitem][aria-level='2']").first
    node.click()
    ready(visit)
    label = node.get_attribute("aria-label")
    assert label and label[label.index("sum so far") :].split(",")[0] in page.inner_text(".s-card")
    assert page.get_by_role("button", name="Never this").count() == 1


def test_after_stop_the_controls_say_what_the_results_are_of(visit: Visit) -> None:
    page = visit.come()
    ready(visit)
    page.select_option("#s-column-b .s-strategy", "exact")
    page.wait_for_function("document.querySelector('.s-busy').innerText.includes('prefixes followed')")
    page.get_by_role("button", name="Stop").click()
    assert page.input_value("#s-column-b .s-strategy") == "beam" and "exact" not in page.url
    page.locator("[role=treeitem][aria-level='1']").nth(1).click()
    ready(visit)
    assert not page.is_visible(".s-busy button")


def test_the_same_search_in_both_is_one_click_away(visit: Visit) -> None:
    page = visit.come()
    ready(visit)
    page.select_option("#s-column-b .s-model", "translator-de-en-plain")
    ready(visit)
    assert "differ in model and in search" in page.inner_text(".s-offer")
    page.get_by_role("button", name="beam 5 in both").click()
    ready(visit)
    assert page.input_value("#s-column-a .s-strategy") == "beam"
    assert not page.inner_text(".s-offer")
    page.get_by_role("button", name="Reset the page").click()
    page.get_by_role("button", name="Switch attention off in B").click()
    ready(visit)
    assert page.input_value("#s-column-b .s-strategy") == page.input_value("#s-column-a .s-strategy") == "greedy"


def test_the_photograph_chosen_last_is_the_one_that_is_asked(visit: Visit) -> None:
    page = visit.come("caption")
    ready(visit)
    page.evaluate("""() => {
      const page = seqdemo.page;
      window.come = {};
      page.upload = (file) => new Promise((done) => (window.come[file.name] = () => done({ path: file.name })));
      page.asker.trigger = () => {};
      const given = (name) => ({ dataTransfer: { files: [new File(['x'], name)] } });
      const place = document.querySelector('.s-input');
      const choose = (name) => place.dispatchEvent(Object.assign(new Event('drop'), given(name)));
      choose('slow');
      choose('quick');
    }""")
    for name in ("quick", "slow"):
        page.evaluate("async (name) => { window.come[name](); await new Promise((done) => setTimeout(done)); }", name)
        assert page.evaluate("seqdemo.page.state.input.photo") == "quick"
