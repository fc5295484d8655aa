"""Plotly figures say what the records say, draw hostile text as text, and stand alone without a network."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo import figures
from seqdemo.errors import InputError
from seqdemo.figures.labels import label, visible
from seqdemo.figures.plots import unit_order
from seqdemo.figures.trees import heights, shown_rows
from seqdemo.records import FINISHED, KEPT, PRUNED, SearchTree, Trace

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
    return Trace(SOURCE, TARGET, ids, logps, top.astype("int32"), top, alternatives, weights if attention else None, gates)


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
    assert visible("\n") == "␊"
    assert visible("") == "∅"
    assert visible("\N{DEVANAGARI VOWEL SIGN I}") == "◌\N{DEVANAGARI VOWEL SIGN I}"
    assert visible("\u202eabc") == "U+202Eabc"
    assert visible("क\u200dष") == "क\u200dष"


def test_alignment_holds_the_weights_and_keeps_repeated_pieces_apart() -> None:
    trace = a_trace()
    figure = figures.alignment(trace)
    heatmap = figure.data[0]
    assert np.allclose(heatmap.z, trace.attention, atol=1e-5)
    assert (heatmap.zmin, heatmap.zmax) == (0, 1)
    assert figure.layout.xaxis.tickvals == tuple(range(1, len(SOURCE) + 1))
    assert figure.layout.xaxis.ticktext == tuple(map(label, SOURCE))
    assert figure.layout.yaxis.ticktext == tuple(map(label, TARGET))
    top, bottom = figure.layout.yaxis.range[::-1]
    assert top < 1 < len(TARGET) < bottom, "the first target piece stands on top"
    assert "▁das" in heatmap.text[0][2] and "▁the" in heatmap.text[0][2]


def test_a_photograph_has_numbered_states() -> None:
    trace = a_trace()
    captioned = Trace((), *[getattr(trace, name) for name in list(Trace.__dataclass_fields__)[1:]])
    assert figures.alignment(captioned).layout.xaxis.ticktext[-1] == f"state {len(SOURCE)}"


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


def test_gates_put_units_down_and_steps_across() -> None:
    trace = a_trace()
    figure = figures.gates(trace, "decoder.0.forget")
    assert np.allclose(np.array(figure.data[0].z), trace.gates["decoder.0.forget"].T, atol=1e-5)
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 1)
    assert figure.layout.xaxis.ticktext == tuple(map(label, TARGET))
    assert figures.gates(trace, "encoder.0.forward.forget").layout.xaxis.ticktext == tuple(map(label, SOURCE))


def test_a_cell_state_is_drawn_about_zero() -> None:
    trace = a_trace()
    heatmap = figures.gates(trace, "decoder.0.cell").data[0]
    assert heatmap.zmin == -heatmap.zmax == -np.abs(trace.gates["decoder.0.cell"]).max()


def test_sorted_units_keep_their_own_numbers() -> None:
    trace = a_trace()
    values = trace.gates["decoder.0.forget"]
    heatmap = figures.gates(trace, "decoder.0.forget", by="variance").data[0]
    order = [row[0] for row in heatmap.customdata]
    assert np.all(np.diff(values.var(0)[order]) <= 0)
    assert np.allclose(np.array(heatmap.z), values[:, order].T, atol=1e-5)


def test_units_sort_by_the_share_of_time_they_are_saturated() -> None:
    values = np.array([[0.5, 0.01, 0.95], [0.5, 0.02, 0.5]])
    assert unit_order(values, "saturation").tolist() == [1, 2, 0]
    with pytest.raises(InputError, match="variance"):
        unit_order(values, "beauty")


def test_saturation_counts_open_and_shut_steps() -> None:
    trace = a_trace()
    figure = figures.saturation(trace)
    assert [dots.name for dots in figure.data] == ["forget", "input"]
    values = trace.gates["decoder.0.input"]
    for unit in range(values.shape[1]):
        assert figure.data[1].x[unit] == pytest.approx(sum(v > 0.9 for v in values[:, unit]) / len(values), abs=1e-5)
        assert figure.data[1].y[unit] == pytest.approx(sum(v < 0.1 for v in values[:, unit]) / len(values), abs=1e-5)


@pytest.mark.parametrize("name", ["decoder.1", "decoder.0.cell"])
def test_a_part_without_gates_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match=r"encoder\.0\.forward"):
        figures.saturation(a_trace(), name)


def test_an_unknown_gate_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"decoder\.0\.forget"):
        figures.gates(a_trace(), "decoder.9.forget")


def test_probabilities_are_those_of_the_trace() -> None:
    trace = a_trace()
    figure = figures.probabilities(trace)
    assert np.allclose(figure.data[0].y, np.exp(trace.logps), atol=1e-5)
    assert f"{trace.total:.3f}" in figure.layout.title.text
    assert "50.0%" in figure.data[0].hovertext[0] and "25.0%" in figure.data[0].hovertext[0]


def test_tree_draws_each_candidate_once_where_its_step_is() -> None:
    tree = a_tree()
    figure = figures.tree(tree, lambda token: f"<{token}>", best=4)
    dots = {trace.name: trace for trace in figure.data if trace.name}
    assert {name: sorted(trace.customdata) for name, trace in dots.items()} == {
        "kept": [0, 1],
        "pruned": [2, 3, 6, 7],
        "finished": [4, 5],
    }
    for trace in dots.values():
        assert [x - 1 for x in trace.x] == [tree.step[row] for row in trace.customdata]
        assert list(trace.text) == [f"&lt;{tree.token[row]}&gt;" for row in trace.customdata]
    assert "missed by 0.500" in dots["pruned"].hovertext[0]
    assert "total -1.000" in dots["finished"].hovertext[0]


def test_tree_edges_join_parents_and_the_best_path_stands_out() -> None:
    tree = a_tree()
    figure = figures.tree(tree, str, best=4)
    others, best = figure.data[0], figure.data[1]
    assert best.line.width > others.line.width
    assert [x for x in best.x if x is not None] == [0, 1, 1, 2]
    where = {(trace.x[i], trace.y[i]) for trace in figure.data[2:] for i in range(len(trace.x))}
    for edges in (others, best):
        ends = [(x, y) for x, y in zip(edges.x, edges.y) if x is not None]
        assert set(ends) <= where
    assert len(others.x) + len(best.x) == 3 * len(tree)


def test_no_two_candidates_of_a_step_stand_in_one_place() -> None:
    for tree in (a_tree(), a_wide_tree(7, 9)):
        place = heights(tree, range(len(tree)))
        assert len({(tree.step[row], place[row]) for row in range(len(tree))}) == len(tree)
        for row in range(len(tree)):
            children = [place[child] for child in range(len(tree)) if tree.parent[child] == row]
            assert not children or min(children) <= place[row] <= max(children)


def test_a_wide_search_is_folded_to_the_paths_that_reached_its_end() -> None:
    tree = a_wide_tree()
    best = int(len(tree) - 200)
    rows = set(shown_rows(tree, best).tolist())
    last = tree.step.max()
    assert rows == {row for row in range(len(tree)) if tree.fate[row] == KEPT and (tree.step[row] == last or tree.rank[row] == 0)}
    figure = figures.tree(tree, str, best=best)
    assert f"{len(tree) - len(rows):,} candidates folded" in figure.layout.title.text
    assert len(figure.to_json()) < 100_000


def test_learning_curves_leave_gaps_out() -> None:
    rows = [{"step": 10, "loss": 3.0}, {"step": 20, "loss": 2.0, "bleu": 11.0}, {"step": 30, "bleu": 15.0}]
    figure = figures.learning(rows, "loss", "bleu")
    assert [(list(line.x), list(line.y)) for line in figure.data] == [([10, 20], [3.0, 2.0]), ([20, 30], [11.0, 15.0])]
    assert len({line.line.dash for line in figure.data}) == 2, "told apart without colour"


def bucket(low: int, high: int | None, score: float) -> dict[str, object]:
    return {"unit": "words", "from": low, "to": high, "inputs": 9, "bleu": score}


def some_metrics() -> dict[str, dict[str, object]]:
    def metrics(by_length: list[object], scores: dict[int, float]) -> dict[str, object]:
        by_beam = [{"size": size, "inputs": 99, "bleu": score, "chrf": 1.0} for size, score in scores.items()]
        errors = [{"beam": size, "search_errors": 50.0 / size, "tokens": 9.0} for size in scores]
        tests = {"tatoeba": {"by_beam": by_beam}, "multi30k": {"by_length": by_length, "by_beam": by_beam}}
        return {"task": "translate", "tests": tests, "search": {"beams": errors}}

    attended = metrics([bucket(1, 5, 50.0), bucket(6, 10, 45.0), bucket(11, None, 44.0)], {1: 38.0, 5: 40.0, 20: 39.5})
    return {"with": attended, "without": metrics([bucket(1, 5, 48.0), bucket(11, None, 20.0)], {1: 30.0, 20: 31.0})}


def test_quality_by_length_lines_up_buckets_of_several_checkpoints() -> None:
    figure = figures.quality_by_length(some_metrics())
    assert figure.layout.xaxis.ticktext == ("1–5", "6–10", "11+")
    assert [(line.name, list(line.x), list(line.y)) for line in figure.data] == [
        ("with", [1, 2, 3], [50.0, 45.0, 44.0]),
        ("without", [1, 3], [48.0, 20.0]),
    ]
    assert "multi30k" in figure.layout.title.text


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
    trace, tree = a_trace(), a_tree()
    return {
        "alignment": figures.alignment(trace, title="<u>title</u>"),
        "grid": figures.alignment_grid({"one": trace, "two": trace}),
        "gates": figures.gates(trace, "decoder.0.cell"),
        "saturation": figures.saturation(trace),
        "probabilities": figures.probabilities(trace),
        "tree": figures.tree(tree, lambda token: TARGET[token % len(TARGET)], best=4),
        "learning": figures.learning([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}], "loss"),
        "quality by length": figures.quality_by_length(some_metrics()),
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


@pytest.mark.browser
def test_a_page_of_figures_draws_text_as_text_and_asks_nobody(tmp_path: Path, browser: Browser) -> None:
    sections = [(name, f"The {name} of <b>this</b>.", figure) for name, figure in all_figures().items()]
    file = tmp_path / "report.html"
    file.write_text(figures.page("A <report>", sections), encoding="utf-8")
    page = browser.new_page()
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.set_default_timeout(120_000)  # Plotly is five megabytes, and machines are sometimes busy
    page.goto(file.as_uri())
    page.wait_for_function(f"document.querySelectorAll('.main-svg .plot, .main-svg .cartesianlayer').length >= {len(sections)}")
    assert page.locator("h1").inner_text() == "A <report>"
    ticks = page.eval_on_selector_all("#figure-0 .xtick text", "nodes => nodes.map(node => node.textContent)")
    assert ticks == [visible(piece) for piece in SOURCE]
    rows = page.eval_on_selector_all("#figure-0 .ytick text", "nodes => nodes.map(node => node.textContent)")
    assert sorted(rows) == sorted(map(visible, TARGET))
    assert asked == [file.as_uri()] and not wrong
    page.close()
