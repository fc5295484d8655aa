"""Hands on the shipped models, read off the screen: prices, strips and means equal what the library computes by itself."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, SearchOptions
from seqdemo.edits import Edit, Force, is_word
from seqdemo.explain.replay import places_of
from seqdemo.hands.gates import gate_report
from seqdemo.hands.strips import sweep
from seqdemo.hub import load
from seqdemo.playground import Run, run, trace
from seqdemo.records import Trace
from seqdemo.ui import launch
from seqdemo.ui.answers import edits_of, options_of
from seqdemo.ui.catalogue import Catalogue
from tests.browser_visits import Visit
from tests.shared import free_port

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser
PUT = """() => { const page = seqdemo.page, {trace, spec} = page.columns.B;
  const wide = trace.attention ? trace.attention.length / trace.pieces.length : 0;
  const row = {kind: 'AttentionRow', position: 1, weights: Array.from({length: wide}, (_, j) => Number(j === wide - 1))};
  const clamp = page.card(spec.checkpoint).presets[0].edits[0];
  const edits = [WHAT];
  const columns = page.state.columns.map((column, i) => i ? {...column, selection: null, edits} : column);
  page.update((state) => ({...state, columns}), ''); }"""
ROW, CLAMP = PUT.replace("WHAT", "row"), PUT.replace("WHAT", "clamp")
OTHER = """() => { const {trace, hypotheses: [{pieces}]} = seqdemo.page.columns.B, own = trace.pieces.length - trace.asked.length;
  const other = trace.top[own + 1].map(([piece]) => piece).find((piece) => piece !== pieces[1]);
  seqdemo.page.words.take('B', [pieces[0], other]); }"""
NEVER = "() => seqdemo.page.words.never('B', seqdemo.page.columns.B.hypotheses[0].pieces.slice(0, 2))"
DIM = "() => seqdemo.page.dim(0.75, 'uniform')"
KINDS = {"force": OTHER, "ban": NEVER, "row": ROW, "blend": DIM, "clamp": CLAMP}
PAGES = {"": "very", "transliterate": "", "caption": "two", "language-model": "the"}  # and a word that must be said
TASK = {"": "translate", "transliterate": "transliterate", "caption": "caption", "language-model": "complete"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    app = launch.build()
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True)
    yield address.rstrip("/")
    app.close()


def number(text: str) -> float:
    return float(text.replace("−", "-"))


RATIO = re.compile("(10[⁰¹²³⁴⁵⁶⁷⁸⁹]+|[\\d.,]+)(?:×| times) (less likely|likelier)")
LARGE = math.log(9_999)  # from here on a ratio is told as a power of ten


def told_changes(text: str) -> list[float]:
    """The log of every ratio that a badge tells."""
    raised = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    found = []
    for ratio, way in RATIO.findall(text):
        power = ratio.startswith("10") and ratio[2:].translate(raised) != ratio[2:]
        nats = int(ratio[2:].translate(raised)) * math.log(10) if power else math.log(float(ratio.replace(",", "")))
        found.append(nats if way == "likelier" else -nats)
    return found


def badge_again(checkpoint: Checkpoint, edit: Edit, before: Run, after: Trace, old: Trace) -> list[float]:
    """The changes that the badge of the only edit tells, by the library alone: a word's at its place and against greedy search's
    output, that of the same output otherwise. Those are left out that the page calls equal."""
    if not is_word(edit):
        return [change for change in (after.total - old.total,) if abs(change) >= 0.005]
    start = len(before.prompt.prefix)
    here = sum(float(after.top_logps[place, 0] - after.logps[place]) for place in places_of(edit, after.tokens, start))
    greedy = run(checkpoint, before.prompt, SearchOptions(strategy="greedy", max_length=before.options.max_length))
    gain = after.total - trace(checkpoint, before.prompt, greedy.hypotheses[0].tokens).total
    return [change for change in (-here, gain) if abs(change) >= math.log(1.05)]


def priced_again(page: Any, task: str) -> tuple[float, float, list[float]]:
    """What the price says of the new output and of the old one, and what the badge tells, by the library alone."""
    state = page.evaluate("({input: seqdemo.page.state.input, column: seqdemo.page.state.columns[1]})")
    tokens = tuple(page.evaluate("seqdemo.page.columns.B.hypotheses[0].tokens"))
    checkpoint = load(state["column"]["checkpoint"])
    example = state["input"]["example"]
    given = Catalogue(launch.checkpoints_folder()).example_photo(example) if task == "caption" else state["input"]["text"]
    options: SearchOptions = options_of(state["column"]["options"])
    language = state["input"]["language"] or ""
    before = run(checkpoint, given, options, language=language)
    start = len(before.prompt.prefix)
    link = [
        {**edit, "position": edit["position"] + start} if edit["kind"] in ("Force", "Ban") else edit
        for edit in state["column"]["edits"]
    ]
    edits = edits_of(link, lambda: checkpoint.target_text)
    if is_word(edits[0]):
        after, old = trace(checkpoint, before.prompt, tokens), trace(checkpoint, before.prompt, before.hypotheses[0].tokens)
    else:
        after, old = trace(checkpoint, before.prompt, tokens, edits), trace(checkpoint, before.prompt, tokens)
    return after.total, old.total, badge_again(checkpoint, edits[0], before, after, old)


@pytest.mark.parametrize("path", PAGES)
def test_every_price_on_the_screen_is_that_of_a_replay(browser: Any, address: str, path: str) -> None:
    visit = Visit(browser, address)
    page = visit.come(path)
    visit.settle()
    kinds = dict(KINDS)
    if PAGES[path]:
        kinds["require"] = f"() => seqdemo.page.words.must('B', {json.dumps(PAGES[path])})"
    if path == "language-model":
        kinds = {kind: script for kind, script in kinds.items() if kind not in ("row", "blend")}
    for kind, script in kinds.items():
        page.evaluate("() => seqdemo.page.reset()")
        visit.settle()
        if path == "transliterate":  # B opens as the twin without attention
            page.get_by_role("button", name="Copy A to B").click()
            visit.settle()
        page.evaluate(script)
        visit.settle()
        assert not page.is_visible("#s-column-b .s-message"), (kind, page.inner_text("#s-column-b .s-message"))
        found = re.search(r"log probability ([−\d.]+) against ([−\d.]+)", page.inner_text("#s-column-b .s-price"))
        assert found, kind
        *again, changes = priced_again(page, TASK[path])
        assert [number(text) for text in found.groups()] == pytest.approx(again, abs=0.0051), kind
        told = page.inner_text("#s-column-b .s-edit")
        assert (
            ("this place" in told or "the whole" in told)
            if kind in ("force", "ban", "require")
            else "the edited model finds this" in told
        ), kind
        shown = told_changes(told)
        assert len(shown) == len(changes), (kind, told, changes)
        for one, other in zip(shown, changes):
            assert one == pytest.approx(other, abs=1.2 if abs(other) > LARGE else 0.05), (kind, told)
    assert visit.errors == []
    visit.context.close()


def nearly_tied() -> tuple[str, int, str, str]:
    """A sentence of the gallery that greedy search loses by one early word, nearly tied with another: the sentence, the place of
    that word, the other word, and what a person wrote, which greedy search writes too once it is forced."""
    translator, greedy = load("translator-de-en"), SearchOptions(strategy="greedy")
    gallery = json.loads((launch.checkpoints_folder() / "gallery.json").read_text("utf-8"))["examples"]["translate"]
    for row in gallery:
        wrong = run(translator, row["text"], greedy)
        told = trace(translator, wrong.prompt, wrong.hypotheses[0].tokens)
        for place in range(2):
            for rank in (1, 2):
                token = told.top_tokens[place, rank].item()
                tie = told.top_logps[place, 0] - told.top_logps[place, rank] < math.log(2)
                saved = run(translator, row["text"], greedy, (Force(place, (token,)),)) if tie and token > EOS else wrong
                if saved.texts[0] in row["references"] and wrong.texts[0] not in row["references"]:
                    return row["text"], place, saved.texts[0].split()[place], saved.texts[0]
    raise AssertionError("no sentence of the gallery is lost by one early word")


def test_the_lecture_s_example_works_by_two_clicks(browser: Any, address: str) -> None:
    text, place, word, wanted = nearly_tied()
    visit = Visit(browser, address)
    page = visit.come("")
    page.fill("#s-input", text)
    page.wait_for_function(
        "text => seqdemo.page.columns.A.source.text === text || seqdemo.page.state.input.text === text", arg=text
    )
    visit.settle()
    wrong = visit.outputs()[0]
    assert wrong != wanted
    page.click(f"#s-column-a .s-word >> nth={place}")
    page.click(f"#s-column-a .s-alternative:has(bdi:text-is('{word}'))")
    visit.settle()
    assert visit.outputs() == [wrong, wanted]
    told = page.inner_text("#s-column-b .s-edit")
    here, whole = told_changes(told)
    assert (
        -math.log(2.05) < here < 0 < whole
        and "less likely than the model's likeliest choice at this place; the whole sentence" in told
    )
    assert visit.errors == []
    visit.context.close()


def test_as_python_says_what_hands_did(browser: Any, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Words, a row and a gate in one column: the code that the page shows writes what the page shows."""
    visit = Visit(browser, address)
    page = visit.come("")
    visit.settle()
    for script in (
        OTHER,
        "() => seqdemo.page.words.must('B', 'very')",
        PUT.replace("WHAT", "...page.state.columns[1].edits, row, clamp"),
    ):
        page.evaluate(script)
        visit.settle()
    assert page.locator("#s-column-b .s-edit").count() == 4
    page.get_by_role("button", name="As Python").click()
    exec(page.inner_text(".s-code pre"), {})  # what anybody would paste
    total, _, text = capsys.readouterr().out.splitlines()[0].strip().split(maxsplit=2)
    shown = page.evaluate(
        "({total: seqdemo.page.columns.B.hypotheses[0].total, text: seqdemo.page.columns.B.hypotheses[0].text})"
    )
    assert (float(total), text) == (pytest.approx(shown["total"], abs=0.001), shown["text"])
    visit.context.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    visit = Visit(browser, address)
    yield visit
    assert visit.errors == []
    visit.context.close()


def opened(visit: Visit, link: str) -> Any:
    page = visit.come(link)
    page.wait_for_selector(".s-hands[open] > div")
    visit.settle()
    return page


def found_of(page: Any) -> tuple[Checkpoint, Run]:
    """What column B shows, found by the library alone."""
    column = page.evaluate("seqdemo.page.state.columns[1]")
    checkpoint = load(column["checkpoint"])
    return checkpoint, run(checkpoint, page.input_value("#s-input"), options_of(column["options"]))


def test_a_way_to_another_word_brings_it_about_and_is_taken_back(visit: Visit) -> None:
    page = opened(visit, "#open=hands-ways")
    before = visit.outputs()
    page.locator(".s-hands[open] select").select_option("1")
    page.fill(".s-hands[open] input[type=text]", "made")
    page.keyboard.press("Enter")
    page.wait_for_selector(".s-ways .s-cheapest")
    assert visit.violations() == []
    page.click(".s-cheapest button")
    visit.settle()
    assert visit.outputs()[0] == before[0] and visit.outputs()[1].split()[1] == "made"
    page.click(".s-cheapest button")
    visit.settle()
    assert visit.outputs() == before


def test_a_film_strip_marks_where_the_output_changes_and_ranks_it_anew(visit: Visit) -> None:
    page = opened(visit, "#open=hands-strips")
    page.get_by_role("button", name="Decode with every beam size").click()
    page.wait_for_selector(".s-reranked li")
    rows = page.locator(".s-strip-table tbody tr")
    assert rows.count() == 9 and page.locator(".s-strip-table .s-flip").count() == 1
    said = [number(text) for text in rows.locator("td:nth-child(3)").all_inner_texts()]
    assert said[0] == pytest.approx(page.evaluate("seqdemo.page.columns.A.hypotheses[0].total"), abs=0.001)  # k = 1 is greedy
    calls = visit.calls
    first = page.inner_text(".s-reranked li >> nth=0")
    page.locator(".s-hands[open] select").select_option("power")
    assert page.inner_text(".s-reranked li >> nth=0") != first and visit.calls == calls  # without a question to the server
    page.get_by_role("button", name="Show all").click()
    told = page.inner_text(".s-hands[open] [role=status] >> text=finished outputs")
    assert f"met {page.locator('.s-reranked li').count()} different" in told and page.locator(".s-reranked li").count() > 6
    rows.nth(1).get_by_role("button").click()
    visit.settle()
    assert page.evaluate("seqdemo.page.columns.B.hypotheses[0].total") == pytest.approx(said[1], abs=0.001)


def test_the_dimmer_and_the_precisions_are_strips_of_what_the_library_finds(visit: Visit) -> None:
    page = opened(visit, "#tab=attention&open=hands-dimmer")
    page.get_by_role("button", name="Decode at each step of the dimmer").click()
    page.wait_for_function(
        "document.querySelectorAll('.s-strip-table tbody tr').length === 5 && !document.querySelector('.s-stop')"
    )
    said = [number(text) for text in page.locator(".s-strip-table td:nth-child(3)").all_inner_texts()]
    frames = sweep(*found_of(page), "dimmer").frames
    assert said == pytest.approx([frame.logp for frame in frames], abs=0.001)
    assert "of attention" in page.inner_text(".s-table-wrap + .s-says")
    page.goto("about:blank")
    opened(visit, "#open=hands-strips").get_by_role("button", name="Decode in every precision").click()
    page.wait_for_function(
        "document.querySelectorAll('.s-strip-table tbody tr').length === 3 && !document.querySelector('.s-stop')"
    )
    assert page.locator(".s-strip-table tbody th").all_inner_texts() == ["float32", "bfloat16", "int8"]


def test_the_gates_of_an_input_and_of_a_sample_are_told_by_piece(visit: Visit) -> None:
    page = opened(visit, "#tab=gates&open=hands-times")
    checkpoint, found = found_of(page)
    tables = []
    for name, over in (("In this input and output of B", "input"), ("Over a recorded sample of texts", "sample")):
        page.get_by_role("button", name=name).click()
        page.wait_for_function(
            "text => (document.querySelector('.s-hands table caption') || {}).textContent?.startsWith(text)", arg=name[:4]
        )
        means = [float(text) for text in page.locator(".s-hands table td:nth-child(2)").all_inner_texts()]
        report = gate_report(checkpoint, found, found.hypotheses[0].tokens, over)
        assert means == pytest.approx([gate.mean for gate in report.gates], abs=0.0051)
        tables.append(page.inner_text(".s-hands table"))
    assert tables[0] != tables[1]


def test_units_are_ranked_beside_chance_and_one_is_held(visit: Visit) -> None:
    page = opened(visit, "#tab=gates&open=hands-units")
    page.get_by_role("button", name="Rank the units").click()
    page.wait_for_selector(".s-ranking .s-bars")
    changes = [number(text) for text in page.locator(".s-ranking > div >> nth=0 >> .s-number").all_inner_texts()]
    assert changes == sorted(changes) and page.locator(".s-ranking .s-bar-signed i").count() > 10
    assert visit.violations() == []
    unit = page.locator(".s-ranking .s-bars button").first
    unit.click()
    visit.settle()
    assert unit.get_attribute("aria-pressed") == "true" and "held at" in page.inner_text("#s-column-b .s-edit")
    page.fill("#s-input", "Guten Tag.")
    page.wait_for_function("!document.querySelector('.s-ranking .s-bars')")  # it was of another sentence


def test_a_quotation_does_not_close_while_the_units_that_follow_it_are_held(visit: Visit) -> None:
    page = opened(visit, "language-model#open=hands-closing")
    page.get_by_role("button", name="Count the texts that close it").click()
    page.wait_for_function("document.querySelector('.s-hands[open]').innerText.includes('hold a unit or a gate first')")
    page.get_by_role("button", name="Find the units").click()
    all_of_them = page.get_by_role("button", name="as if outside a quotation")
    all_of_them.click()
    visit.settle()
    assert all_of_them.get_attribute("aria-pressed") == "true"
    units = page.locator("[aria-label='Hold one of them'] button")
    assert page.locator("#s-column-b .s-edit").count() == units.count() > 2
    page.get_by_role("button", name="Count the texts that close it").click()
    told = page.wait_for_selector(".s-hands[open] .s-says strong").inner_text()
    free, held = map(int, re.findall(r"(\d+) of 30", told))
    assert free >= 20 and held <= 3
    assert page.locator(".s-hands[open] tbody tr").count() == 3
    assert visit.violations() == []
    units.first.click()  # one is let go: the count was of all
    page.wait_for_function("!document.querySelector('.s-hands[open] .s-says strong')")
    assert units.first.get_attribute("aria-pressed") == "false" == all_of_them.get_attribute("aria-pressed")


def test_the_bars_of_the_next_word_move_with_the_hand(visit: Visit) -> None:
    page = opened(visit, "#tab=alignment&open=hands-piece")
    page.wait_for_selector(".s-bars .s-said")
    cells = page.locator("#s-panel-alignment .s-half >> nth=1 >> .s-grid-cells")
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    assert box
    x, y = box["x"] + 20, box["y"] + (box["height"] - 8) / page.evaluate("seqdemo.page.columns.B.trace.pieces.length") * 1.5
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 60)
    page.wait_for_selector(".s-bars i")  # where the untouched row puts it
    shown = page.locator(".s-bars .s-number").all_inner_texts()
    page.mouse.move(x, y - 130)
    page.wait_for_function(
        "shown => [...document.querySelectorAll('.s-bars .s-number')].some((node, i) => node.textContent !== shown[i])", arg=shown
    )
    page.mouse.up()
    visit.settle()
    page.wait_for_function("document.querySelectorAll('.s-row-hands [role=status]')[1].innerText.includes('at most')")


OPEN = {  # page -> view -> its hands
    "": {
        "tree": ("ways", "strips"),
        "alignment": ("piece",),
        "gates": ("gates", "units", "times"),
        "attention": ("dimmer",),
    },
    "caption": {"alignment": ("cell",)},
    "language-model": {"text": ("closing",)},
}
FETCHED = """[...document.querySelectorAll('.s-hands[open]')].filter((node) => node.getClientRects().length)
  .every((node) => node.children.length === 2 && node.lastElementChild.localName === 'div')"""


@pytest.mark.parametrize(("theme", "wide"), [("dark", 390), ("light", 1280)])
def test_axe_finds_nothing_in_open_hands(browser: Any, address: str, theme: str, wide: int) -> None:
    visit = Visit(browser, address, color_scheme=theme)
    visit.page.set_viewport_size({"width": wide, "height": 844})
    for path, views in OPEN.items():
        for view, hands in views.items():
            visit.page.goto("about:blank")
            page = visit.come(f"{path}#tab={view}&open={'.'.join(f'hands-{name}' for name in hands)}")
            visit.settle()
            page.wait_for_selector(".s-hands[open] > div")
            page.wait_for_function(FETCHED)
            assert page.locator(".s-hands[open]:visible").count() == len(hands)
            assert visit.violations() == [], view
            assert page.evaluate("document.documentElement.scrollWidth") <= wide
    page.click("#s-column-b .s-word >> nth=0")
    page.wait_for_selector(".s-popover button:focus")
    assert visit.violations() == [], "the menu of a word"
    visit.context.close()
