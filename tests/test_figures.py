"""Plotly figures say what the records say, draw hostile text as text, and stand alone without a network."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import unicodedata
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seqdemo import figures
from seqdemo.errors import InputError
from seqdemo.figures.labels import label, visible
from seqdemo.figures.lengths import length_points, wilson
from seqdemo.images import read_picture
from seqdemo.records import FINISHED, KEPT, PRUNED, SearchTree, Trace
from tests.page_scripts import evaluate, needs_node
from tests.shared import new_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SOURCE = ("▁das", "▁<b>Bild</b>", "▁das", "</script>", "\ud800", "ि", "مرحبا", "<eos>")
TARGET = ("▁the", "$x$ $y$", "▁the", "<img src=x onerror=alert(1)>", "&lt;", "<eos>")


def a_trace(attention: bool = True, units: int = 5) -> Trace:
    draw = np.random.default_rng(3)
    weights = draw.dirichlet(np.ones(len(SOURCE)), size=len(TARGET)).astype("float32")
    gates = {
        "encoder.0.forward.forget": draw.random((len(SOURCE), units)),
        "decoder.0.forget": draw.random((len(TARGET), units)),
        "decoder.0.input": draw.random((len(TARGET), units)),
        "decoder.0.cell": draw.normal(size=(len(TARGET), units)) * 3,
    }
    alternatives = tuple((piece, "▁a") for piece in TARGET)
    top = np.log(np.array([[0.5, 0.25]] * len(TARGET), dtype="float32"))
    ids = tuple(range(4, 4 + len(TARGET)))
    logps = np.log(np.linspace(0.2, 0.9, len(TARGET)))
    return Trace(
        SOURCE,
        TARGET,
        ids,
        logps,
        top.astype("int32"),
        top,
        alternatives,
        gates | ({"decoder.0.cross.0": weights} if attention else {}),
    )


def a_tree() -> SearchTree:
    """Two steps of beam 2: `a` and `b` kept, `c` missed by 0.5; then a's end, b's end, and two more of a that missed."""
    step = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    parent = np.array([-1, -1, -1, -1, 0, 1, 0, 0])
    token = np.array([4, 5, 6, 7, 2, 2, 5, 4])
    logp = np.array([-0.5, -1.0, -1.5, -3.0, -0.5, -0.25, -1.0, -2.0])
    total = np.array([-0.5, -1.0, -1.5, -3.0, -1.0, -1.25, -1.5, -2.5])
    rank = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    fate = np.array([KEPT, KEPT, PRUNED, PRUNED, FINISHED, FINISHED, PRUNED, PRUNED])
    missed = np.array([0, 0, 0.5, 2.0, 0, 0, 0.25, 1.25])
    return SearchTree(step, parent, token, logp, total, rank, fate, missed)


def a_wide_tree(beams: int = 100, steps: int = 60) -> SearchTree:
    """Every step keeps `beams` and prunes as many; all descend from the best of the step before."""
    width = 2 * beams
    step = np.repeat(np.arange(steps), width)
    parent = np.where(step == 0, -1, (step - 1) * width)
    rank = np.tile(np.arange(width), steps)
    fate = np.where(rank < beams, KEPT, PRUNED)
    total = -(step + 1.0) - rank / 10
    return SearchTree(step, parent, 4 + rank % 50, np.full(len(step), -1.0), total, rank, fate, np.maximum(0, rank - beams) / 10)


@given(st.text(alphabet=st.characters(), max_size=80))
def test_a_label_is_never_markup_a_formula_a_control_or_nothing(piece: str) -> None:
    drawn = label(piece)
    assert drawn
    assert not set(drawn) & set("<>$")
    drawn.encode("utf-8")
    strange = {"Cc", "Cs", "Zs", "Zl", "Zp"}
    assert not [char for char in drawn if unicodedata.category(char) in strange]


def test_labels_show_what_would_be_invisible() -> None:
    assert visible(" ") == "␣"
    assert visible("\n") == "⏎"
    assert visible("") == "∅"
    assert visible("\N{DEVANAGARI VOWEL SIGN I}") == "◌\N{DEVANAGARI VOWEL SIGN I}"
    assert visible("\u202eabc") == "[U+202E]abc"
    assert visible("क\u200dष") == "क\u200dष"


@needs_node
def test_plotly_and_the_drawings_show_every_sign_alike() -> None:
    signs = [chr(code) for code in (*range(1, 0x3100), *range(0xD7F0, 0xE010), *range(0xFE00, 0x10010)) if code != 32]
    shown = evaluate("codes.map((code) => visible(String.fromCodePoint(code)))", codes=[ord(sign) for sign in signs])
    carriers = ("\N{DOTTED CIRCLE}" if unicodedata.category(sign)[0] == "M" else "" for sign in signs)
    assert [visible(sign) for sign in signs] == [carrier + one for carrier, one in zip(carriers, shown)]


def test_a_label_never_ends_within_a_letter_and_its_signs() -> None:
    assert visible("a" + "\u0301" * 60) == "…"
    assert visible("क" * 30 + "\u094d\u200dष" + "a") == "क" * 29 + "…"


def numbers(packed: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["base64"]), packed["dtype"]).reshape(packed["shape"])


def drawn(drawing: Any, expression: str) -> Any:
    """What the script of the pages makes of a drawing's payload."""
    return evaluate(expression, payload=json.loads(json.dumps(drawing.payload)))


@needs_node
def test_alignment_holds_the_weights_and_keeps_repeated_pieces_apart() -> None:
    trace = a_trace()
    drawing = figures.alignment(trace)
    assert np.array_equal(numbers(drawing.payload["weights"]), trace.attention)
    grid = drawn(drawing, "alignmentGrid(payload)")
    assert (grid["scale"]["low"], grid["scale"]["high"]) == (0, 1)
    assert grid["rows"]["names"] == ["the", "‿$x$ $y$", "the", "‿<img src=x onerror=alert(1)>", "‿&lt;", "<eos>"]
    read = ["das", "<b>Bild</b>", "das", "‿</script>", "‿[U+D800]", "‿◌\N{DEVANAGARI VOWEL SIGN I}", "‿مرحبا", "<eos>"]
    assert grid["columns"]["names"] == read
    assert drawn(drawing, "alignmentGrid(payload).tell(0, 2)")[:2] == ["das → the", f"attention {trace.attention[0, 2]:.3f}"]


@needs_node
def test_a_photograph_has_numbered_states() -> None:
    trace = a_trace()
    captioned = Trace((), *[getattr(trace, name) for name in list(Trace.__dataclass_fields__)[1:]])
    assert drawn(figures.alignment(captioned), "alignmentGrid(payload).columns.names.at(-1)") == f"state {len(SOURCE)}"


@needs_node
def test_every_head_and_the_attention_of_either_side_to_itself_can_be_drawn() -> None:
    trace, rng = a_trace(), np.random.default_rng(0)
    steps, states = len(trace.target), len(SOURCE)
    shapes = {"decoder.0.cross": (steps, states), "encoder.0.self": (states, states), "decoder.0.self": (steps, steps)}
    seen = {f"{name}.{head}": rng.random(shape, dtype="float32") for name, shape in shapes.items() for head in range(2)}
    drawing = figures.alignment(dataclasses.replace(trace, seen=seen))
    of = "layer 1, head"
    told = ["mean", f"{of} 1", f"{of} 2", f"reading, {of} 1", f"reading, {of} 2", f"writing, {of} 1", f"writing, {of} 2"]
    assert [head["name"] for head in drawing.payload["heads"]] == told
    assert [(head.get("layer"), head.get("head")) for head in drawing.payload["heads"]][:4] == [
        (None, None),
        (0, 0),
        (0, 1),
        (None, None),
    ]
    names = [
        [len(drawn(drawing, f"alignmentGrid(payload, {head}).{axis}.names")) for axis in ("rows", "columns")]
        for head in (0, 3, 5)
    ]
    assert names == [[steps, states], [states, states], [steps, steps]]
    values = drawn(drawing, "Array.from(alignmentGrid(payload, 4).values)")
    assert values == pytest.approx(seen["encoder.0.self.1"].flatten().tolist())
    writing = drawn(drawing, "alignmentGrid(payload, 5)")
    written = writing["rows"]["names"]
    assert writing["columns"]["names"] == ["start", *written[:-1]]
    assert drawn(drawing, "alignmentGrid(payload, 5).tell(2, 0)")[0] == f"start → {written[2]}"
    assert writing["title"] == f"Alignment, writing, {of} 1"


@needs_node
def test_one_weight_set_by_hand_leaves_the_others_their_proportions() -> None:
    assert evaluate("renormalised([0.5, 0.3, 0.2], 0, 0.75)") == pytest.approx([0.75, 0.15, 0.1])
    assert evaluate("renormalised([1, 0, 0], 0, 0.4)") == pytest.approx([0.4, 0.3, 0.3])
    assert evaluate("renormalised([0.25, 0.75], 1, 7)") == pytest.approx([0, 1])
    assert evaluate("renormalised([1], 0, 0.2)") == [1]


def test_without_attention_the_refusal_says_what_to_do() -> None:
    with pytest.raises(InputError, match="no attention"):
        figures.alignment(a_trace(attention=False))


def test_grid_draws_every_trace_on_one_scale() -> None:
    figure = figures.alignment_grid({"A": a_trace(), "<i>B</i>": a_trace(), "C": a_trace(), "D": a_trace()})
    assert len(figure.data) == 4
    assert {heatmap.coloraxis for heatmap in figure.data} == {"coloraxis"}
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)
    assert [note.text for note in figure.layout.annotations] == ["A", "&lt;i&gt;B&lt;/i&gt;", "C", "D"]
    assert figure.layout.yaxis4.ticktext == tuple(map(label, TARGET))


GATE = "readGates(payload.gates).get('decoder.0').get(name)"


@needs_node
def test_gates_put_steps_down_and_units_across_in_their_order() -> None:
    trace = a_trace()
    payload = figures.gates(trace).payload
    for name in ("forget", "cell"):
        values = trace.gates[f"decoder.0.{name}"]
        order = evaluate(f"unitOrder({GATE}, 'variance')", payload=payload, name=name)
        assert np.all(np.diff(values.var(0)[order]) <= 0.01)
        grid = evaluate(f"gateGrid({GATE}, name, payload.target, {order})", payload=payload, name=name)
        shown = np.array(list(grid["values"].values())).reshape(values.shape)
        bound = 1.0 if name == "forget" else np.abs(values).max()
        assert np.allclose(shown, values, atol=bound / 250) and grid["order"] == order
        assert [grid["scale"]["low"], grid["scale"]["high"]] == pytest.approx([0, 1] if name == "forget" else [-bound, bound])


@needs_node
def test_a_gate_that_is_0_everywhere_has_a_scale() -> None:
    zero = {"decoder.0.cell": np.zeros((3, 4)), "decoder.0.forget": np.zeros((3, 4))}
    payload = figures.gates(dataclasses.replace(a_trace(), seen=zero)).payload
    for name in ("cell", "forget"):
        scale = evaluate(f"gateGrid({GATE}, name, ['a', 'b', 'c'], [0, 1, 2, 3]).scale", payload=payload, name=name)
        assert scale["low"] < scale["high"] or scale["low"] == 0 < scale["high"]


def test_gates_that_are_not_there_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"encoder\.0\.forward"):
        figures.gates(a_trace(), "decoder.9")
    with pytest.raises(InputError, match="variance"):
        figures.gates(a_trace(), by="beauty")
    with pytest.raises(InputError, match="no gates"):
        figures.gates(dataclasses.replace(a_trace(), seen={}))


def test_probabilities_are_those_of_the_trace_with_what_else_was_considered() -> None:
    trace = a_trace()
    drawing = figures.probabilities(trace)
    assert drawing.payload["logps"] == pytest.approx(trace.logps) and drawing.view["by"] == "probability"
    assert drawing.payload["top"][1] == [[TARGET[1], pytest.approx(np.log(0.5))], ["▁a", pytest.approx(np.log(0.25))]]


SHOWN = "const t = readTree(payload.tree), shown = visibleRows(t, payload.ends, {pruned: true, opened: new Set()});"


@needs_node
def test_tree_draws_each_candidate_once_and_the_best_output_straight_on_top() -> None:
    for tree, best in ((a_tree(), 4), (a_tree(), 5), (a_wide_tree(7, 9), 8 * 14 + 6)):
        drawing = figures.tree(tree, lambda token: f"<{token}>", best=best)
        lines = drawn(drawing, f"(() => {{ {SHOWN} return [...layoutTree(t, shown, payload.ends)]; }})()")
        place = dict(map(tuple, lines))
        assert set(place) == set(range(len(tree))) and len(lines) == len(tree)
        assert len({(tree.step[row], line) for row, line in lines}) == len(tree)
        assert {place[row] for row in tree.path(best)} == {0}
        assert all(tree.parent[row] < 0 or place[tree.parent[row]] <= place[row] for row in place)
        assert [drawn(drawing, "payload.ends[0]"), drawing.payload["ends"][0]] == [best, best]


@needs_node
def test_a_path_that_became_no_output_never_pushes_the_best_one_down() -> None:
    """A short prefix has a higher total than any long output; what was dropped early stands below all the same."""
    steps = 12
    step = np.repeat(np.arange(steps), 2)
    parent = np.where(step == 0, -1, (step - 1) * 2)
    total = np.where(np.arange(2 * steps) % 2 == 1, -(step + 1) * 1.0, -(step + 1) * 1.2)
    zeros = np.zeros(2 * steps)
    tree = SearchTree(
        step, parent, 4 + np.arange(2 * steps) % 2, zeros - 1, total, np.arange(2 * steps) % 2, zeros.astype(int), zeros
    )
    best = 2 * steps - 2
    lines = drawn(figures.tree(tree, str, best), f"(() => {{ {SHOWN} return [...layoutTree(t, shown, payload.ends)]; }})()")
    assert all((line == 0) == (row % 2 == 0) and line <= 1 for row, line in lines)


@needs_node
def test_a_wide_search_is_folded() -> None:
    tree = a_wide_tree()
    best = int(len(tree) - 200)
    rows = drawn(figures.tree(tree, str, best=best), f"(() => {{ {SHOWN} return [...shown]; }})()")
    assert set(tree.path(best)) <= set(rows) and len(rows) < 500 < len(tree)
    assert all(tree.parent[row] < 0 or tree.parent[row] in set(rows) for row in rows)


@needs_node
def test_the_steps_of_a_tree_move_together_before_the_last_is_cut() -> None:
    widths, gaps, least = [80] * 10, [30] * 10, [15] * 10
    assert evaluate("columnEdges(w, g, l, 2000)", w=widths, g=gaps, l=least)["left"] == [62 + 110 * step for step in range(10)]
    tight = evaluate("columnEdges(w, g, l, 1100)", w=widths, g=gaps, l=least)
    assert tight["width"] == pytest.approx(1100) and tight["left"][1] - tight["left"][0] > 80 + 15
    assert evaluate("columnEdges(w, g, l, 300)", w=widths, g=gaps, l=least)["width"] == pytest.approx(62 + 10 * 95)


def test_learning_curves_leave_gaps_out() -> None:
    rows = [{"step": 10, "loss": 3.0}, {"step": 20, "loss": 2.0, "bleu": 11.0}, {"step": 30, "bleu": 15.0}]
    figure = figures.learning(rows, "loss", "bleu")
    assert [(list(line.x), list(line.y)) for line in figure.data] == [([10, 20], [3.0, 2.0]), ([20, 30], [11.0, 15.0])]
    assert len({line.line.dash for line in figure.data}) == 2, "told apart without colour"


def bucket(low: int, high: int | None, score: float, inputs: int = 90) -> dict[str, object]:
    return {"unit": "words", "from": low, "to": high, "inputs": inputs, "bleu": score}


def some_metrics() -> dict[str, dict[str, object]]:
    def metrics(by_length: list[object], scores: dict[int, float]) -> dict[str, object]:
        by_beam = [{"size": size, "inputs": 99, "bleu": score, "chrf": 1.0} for size, score in scores.items()]
        errors = [{"beam": size, "search_errors": 50.0 / size, "tokens": 9.0} for size in scores]
        tests = {"tatoeba": {"by_beam": by_beam}, "multi30k": {"by_length": by_length, "by_beam": by_beam}}
        return {"task": "translate", "tests": tests, "search": {"beams": errors}}

    attended = metrics([bucket(1, 5, 50.0), bucket(6, 10, 45.0, 29), bucket(11, None, 44.0, 30)], {1: 38.0, 5: 40.0, 20: 39.5})
    return {"with": attended, "without": metrics([bucket(1, 5, 48.0), bucket(11, None, 20.0, 30)], {1: 30.0, 20: 31.0})}


def test_quality_by_length_leaves_out_what_few_inputs_say_and_gives_each_checkpoint_a_line() -> None:
    payload = figures.quality_by_length(some_metrics()).payload
    points = [
        (line["name"], [(point["at"], point["label"], point["value"], point["count"]) for point in line["points"]])
        for line in payload["lines"]
    ]
    assert points == [
        ("with", [(1, "1–5", 50.0, 90), (11, "11+", 44.0, 30)]),
        ("without", [(1, "1–5", 48.0, 90), (11, "11+", 20.0, 30)]),
    ]
    assert "multi30k" in payload["facts"]["title"] and payload["across"] == "input length in words"


def test_a_share_of_right_answers_has_wilson_s_interval() -> None:
    low, high = wilson(50.0, 100)
    assert (low, high) == (pytest.approx(40.38, abs=0.01), pytest.approx(59.62, abs=0.01))
    assert wilson(0.0, 30)[0] == pytest.approx(0) and wilson(100.0, 30)[1] == pytest.approx(100)
    row = {"from": 1, "to": 3, "inputs": 100, "top1": 50.0}
    assert length_points([row], "top1")[0]["low"] == low
    assert length_points([{**row, "inputs": 29}], "top1") == []


def test_quality_by_beam_size_is_that_of_the_test_set_asked_for() -> None:
    figure = figures.beam_quality(some_metrics(), "multi30k")
    assert figure.layout.xaxis.ticktext == ("1", "5", "20")
    assert [(list(line.x), list(line.y)) for line in figure.data] == [([1, 2, 3], [38.0, 40.0, 39.5]), ([1, 3], [30.0, 31.0])]
    assert figure.layout.yaxis.title.text == "BLEU"


def test_search_errors_are_per_cent_by_beam_size() -> None:
    figure = figures.search_errors(some_metrics())
    assert list(figure.data[0].y) == [50.0, 10.0, 2.5]


def test_metrics_that_were_never_measured_are_asked_for() -> None:
    with pytest.raises(InputError, match="Evaluate"):
        figures.quality_by_length({"none": {}})
    with pytest.raises(InputError, match="It has multi30k"):
        figures.quality_by_length(some_metrics(), "tatoeba")
    with pytest.raises(InputError, match="evaluate"):
        figures.search_errors({"none": {}})


def all_figures() -> dict[str, object]:
    trace = a_trace()
    return {
        "grid": figures.alignment_grid({"<u>one</u>": trace}),
        "learning": figures.learning([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}], "loss"),
        "quality by beam": figures.beam_quality(some_metrics()),
    }


@pytest.mark.parametrize("name", sorted(all_figures()))
def test_every_figure_is_transparent_without_a_template_and_json(name: str) -> None:
    written = all_figures()[name].to_json()
    assert "NaN" not in written and "Infinity" not in written
    figure = json.loads(written)
    layout = figure["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert layout["template"] == {} and layout["dragmode"] is False


def a_look() -> Trace:
    """Two words, each looking at one corner of a grid of 3 x 3."""
    weights = np.zeros((2, 9), dtype="float32")
    weights[0, 0] = weights[1, 8] = 1
    return dataclasses.replace(a_trace(), source=(), target=("a", "<b>dog</b>"), seen={"decoder.0.cross.0": weights})


def a_picture(colour: tuple[int, int, int] = (12, 12, 12)) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (90, 90), colour).save(stream, "PNG")
    return stream.getvalue()


def test_a_photograph_is_drawn_from_the_picture_of_a_run(tmp_path: Path) -> None:
    photograph = tmp_path / "photograph.png"
    photograph.write_bytes(a_picture((200, 30, 30)))
    picture = read_picture(photograph, 64)
    held = figures.photograph(a_look(), picture).payload["picture"]
    kind, _, data = held.partition(";base64,")
    assert kind == "data:image/jpeg"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == picture.shown.size
    for wrong in (None, "a.jpg"):
        with pytest.raises(InputError, match="run.prompt.picture, or the bytes"):
            figures.photograph(a_look(), wrong)


def all_drawings() -> dict[str, Any]:
    texts = {"title": "<u>title</u>", "checkpoint": "a model"}
    return {
        "letters": figures.text(a_trace(), given=2, **texts),
        "probabilities": figures.probabilities(a_trace(), **texts),
        "photograph": figures.photograph(a_look(), a_picture(), **texts),
        "alignment": figures.alignment(a_trace(), **texts),
        "gates": figures.gates(a_trace(), **texts),
        "tree": figures.tree(a_tree(), lambda token: TARGET[token % len(TARGET)], best=4, **texts),
    }


@pytest.mark.browser
@pytest.mark.parametrize("name", sorted(all_drawings()))
def test_a_drawing_stands_alone_asks_nobody_and_draws_text_as_text(tmp_path: Path, browser: Browser, name: str) -> None:
    all_drawings()[name].write_html(tmp_path / "drawing.html")
    page = new_page(browser)
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto((tmp_path / "drawing.html").as_uri())
    page.wait_for_selector(".s-drawing canvas, .s-drawing svg, .s-text span")
    with page.expect_download() as saved:
        page.get_by_role("button", name="as SVG").first.click()
    saved.value.save_as(tmp_path / "saved.svg")
    texts = [
        "".join(node.itertext()) for node in ElementTree.parse(tmp_path / "saved.svg").iter("{http://www.w3.org/2000/svg}text")
    ]
    assert texts[0].startswith("<u>title</u>") and "Model: \u2068a model\u2069" in texts
    with page.expect_download() as saved:
        page.get_by_role("button", name="as PNG").first.click()
    saved.value.save_as(tmp_path / "saved.png")
    root = ElementTree.parse(tmp_path / "saved.svg").getroot()
    assert Image.open(tmp_path / "saved.png").size == (2 * int(root.get("width", 0)), 2 * int(root.get("height", 0)))
    assert {address.split(":")[0] for address in asked} <= {"file", "data", "blob"} and not wrong
    page.close()


DRAWN = """() => {
  const numbers = (node, ...names) => names.map((name) => Number(node.getAttribute(name)));
  const edges = [...document.querySelectorAll('.s-tree-svg path')];
  return [...document.querySelectorAll('.s-node')].map((node, i) => ({
    row: Number(node.dataset.node), says: node.getAttribute('aria-label'),
    box: numbers(node.querySelector('rect'), 'x', 'y', 'width', 'height'),
    edge: edges[i].getAttribute('d').match(/[0-9.]+/g).map(Number), wide: Number(edges[i].getAttribute('stroke-width')),
  }));
}"""


@pytest.mark.browser
def test_a_tree_tells_each_fate_and_counts_what_is_folded_and_its_best_path_stands_out(tmp_path: Path, browser: Browser) -> None:
    tree = a_tree()
    figures.tree(tree, lambda token: TARGET[token % len(TARGET)], best=4).write_html(tmp_path / "drawing.html")
    page = browser.new_page()
    page.goto((tmp_path / "drawing.html").as_uri())
    page.wait_for_selector(".s-fold")
    assert page.locator(".s-fold text").all_text_contents() == ["+2"]
    assert page.locator(".s-fold title").all_text_contents() == ["2 more were considered here: click to show them"]
    before = page.evaluate(DRAWN)
    assert [node["row"] for node in before if "2 more were considered after it" in node["says"]] == [0]
    page.locator(".s-fold").click()
    page.wait_for_selector("[data-node='6']")
    page.check(".s-pruned")
    page.wait_for_selector("[data-node='2']")
    assert page.locator(".s-fold").count() == 0
    nodes = {node["row"]: node for node in page.evaluate(DRAWN)}
    fates = {
        fate: [row for row, node in nodes.items() if f", {fate}, " in node["says"]] for fate in ("kept", "pruned", "finished")
    }
    assert fates == {"kept": [0, 1], "pruned": [2, 3, 6, 7], "finished": [4, 5]}
    assert "pruned, missed by 0.500, rank 3 at step 1" in nodes[2]["says"]
    assert "finished, rank 1 at step 2" in nodes[4]["says"] and "sum so far −1.000" in nodes[4]["says"]
    check_edges(tree, nodes, best=[0, 4])
    page.close()


@pytest.mark.browser
def test_a_tree_of_draws_tells_what_was_not_drawn_and_calls_nothing_pruned(tmp_path: Path, browser: Browser) -> None:
    tree = dataclasses.replace(a_tree(), missed=np.zeros(8))
    figures.tree(tree, lambda token: TARGET[token % len(TARGET)], best=4).write_html(tmp_path / "drawing.html")
    page = browser.new_page()
    page.goto((tmp_path / "drawing.html").as_uri())
    page.get_by_label("show the 4 not drawn").check()
    page.wait_for_selector("[data-node='2']")
    says = {node["row"]: node["says"] for node in page.evaluate(DRAWN)}
    assert "not drawn, rank 3 at step 1" in says[2] and not any("pruned" in text for text in says.values())
    page.close()


def check_edges(tree: SearchTree, nodes: dict[int, dict[str, Any]], best: list[int]) -> None:
    """Each edge leads from the middle of its parent's right side to the middle of its node's left side."""
    for row, node in nodes.items():
        x, y, _, height = node["box"]
        assert node["edge"][-2:] == pytest.approx([x, y + height / 2])
        if tree.parent[row] >= 0:
            x, y, width, height = nodes[int(tree.parent[row])]["box"]
            assert node["edge"][:2] == pytest.approx([x + width, y + height / 2])
    others = [node["wide"] for row, node in nodes.items() if row not in best]
    assert min(nodes[row]["wide"] for row in best) > max(others)


@pytest.mark.browser
@pytest.mark.parametrize("colour", [(12, 12, 12), (128, 128, 128), (245, 245, 245)], ids=["dark", "grey", "light"])
def test_a_photograph_is_brighter_where_the_model_looked(tmp_path: Path, browser: Browser, colour: tuple[int, int, int]) -> None:
    figures.photograph(a_look(), a_picture(colour)).write_html(tmp_path / "drawing.html")
    page = new_page(browser)
    page.goto((tmp_path / "drawing.html").as_uri())
    look = "document.querySelector('.s-overlay').getContext('2d')"
    page.wait_for_function(f"{look}.getImageData(9, 9, 1, 1).data[3] === 255")
    corners = f"[[20, 20], [364, 364]].map(([x, y]) => {look}.getImageData(x, y, 1, 1).data[0])"
    first = page.evaluate(corners)
    page.locator(".s-overlay-word").nth(1).hover()
    second = page.evaluate(corners)
    assert first[0] - first[1] > 40 and second[1] - second[0] > 40
    page.close()


@pytest.mark.browser
def test_hard_attention_shows_one_cell_and_on_request_what_it_was_chosen_from(tmp_path: Path, browser: Browser) -> None:
    looked = a_look()
    undecided = np.zeros((2, 9), dtype="float32")
    undecided[:, 0] = undecided[:, 8] = 0.5
    hard = dataclasses.replace(looked, seen={**looked.seen, "decoder.0.distribution.0": undecided})
    figures.photograph(hard, a_picture()).write_html(tmp_path / "drawing.html")
    page = new_page(browser)
    page.goto((tmp_path / "drawing.html").as_uri())
    look = "document.querySelector('.s-overlay').getContext('2d')"
    page.wait_for_function(f"{look}.getImageData(9, 9, 1, 1).data[3] === 255")
    corners = f"[[20, 20], [364, 364]].map(([x, y]) => {look}.getImageData(x, y, 1, 1).data[0])"
    one = page.evaluate(corners)
    page.get_by_label("Show what the cell was chosen from").check()
    both = page.evaluate(corners)
    assert one[0] - one[1] > 40 and abs(both[0] - both[1]) < 5 and both[1] - one[1] > 40
    figures.photograph(looked, a_picture()).write_html(tmp_path / "soft.html")
    page.goto((tmp_path / "soft.html").as_uri())
    assert page.get_by_label("Show what the cell was chosen from").is_hidden()
    page.close()


@pytest.mark.browser
def test_several_drawings_stand_in_one_notebook_and_have_no_rights_there(tmp_path: Path, browser: Browser) -> None:
    frames = "".join(drawing._repr_html_() for drawing in [*all_drawings().values()] * 2)
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><script>secret = 1</script>{frames}", encoding="utf-8")
    page = new_page(browser)
    page.goto((tmp_path / "notebook.html").as_uri())
    inside = page.frames[1:]
    assert len(inside) == 2 * len(all_drawings())
    for frame in inside:
        frame.wait_for_selector(".s-drawing canvas, .s-drawing svg, .s-text span")
        assert frame.evaluate("(() => { try { return parent.secret } catch { return 'refused' } })()") == "refused"
    page.close()


@pytest.mark.browser
def test_a_page_of_figures_draws_text_as_text_and_asks_nobody(tmp_path: Path, browser: Browser) -> None:
    sections = [(name, f"The {name} of <b>this</b>.", figure) for name, figure in all_figures().items()]
    file = tmp_path / "report.html"
    file.write_text(figures.page("A <report>", sections), encoding="utf-8")
    page = new_page(browser)
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_function(f"document.querySelectorAll('.main-svg .plot, .main-svg .cartesianlayer').length >= {len(sections)}")
    assert page.locator("h1").inner_text() == "A <report>"
    for axis, pieces in (("x", SOURCE), ("y", TARGET)):
        count = f"document.querySelectorAll('#figure-0 .{axis}tick text').length"
        page.wait_for_function(f"{count} === {len(pieces)}")
    ticks = page.eval_on_selector_all("#figure-0 .xtick text", "nodes => nodes.map(node => node.textContent)")
    assert ticks == [visible(piece) for piece in SOURCE]
    rows = page.eval_on_selector_all("#figure-0 .ytick text", "nodes => nodes.map(node => node.textContent)")
    assert sorted(rows) == sorted(map(visible, TARGET))
    assert asked == [file.as_uri()] and not wrong
    page.close()
