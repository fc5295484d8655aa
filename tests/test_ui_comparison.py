"""What the Models page compares: intervals, lengths with enough inputs, colours, and figures that the server makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqdemo.errors import InputError
from seqdemo.figures import comparisons
from seqdemo.figures.lengths import length_points, wilson
from seqdemo.figures.look import COLOURS, LOOK
from seqdemo.ui import assets, pages
from seqdemo.ui.cards import compared_of, scores_of
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.comparison import Comparison
from seqdemo.ui.fields import TASKS
from tests.toy_app import write_cards

ROWS = [
    {"unit": "words", "from": 1, "to": 5, "inputs": 29, "bleu": 50.0},
    {"unit": "words", "from": 6, "to": 10, "inputs": 30, "bleu": 40.0, "interval": [35.0, 46.0]},
    {"unit": "words", "from": 11, "to": None, "inputs": 400, "bleu": 30.0},
]
TESTS = {"multi30k": {"inputs": 1000, "bleu_interval": [29.0, 32.0], "beam": {"bleu": 30.5}, "by_length": ROWS}}
METRICS: dict[str, Any] = {
    "one": {"task": "translate", "tests": TESTS, "search": {"beams": [{"beam": 1, "search_errors": 40.0}]}},
    "two": {"task": "translate", "tests": {"multi30k": {"beam": {"bleu": 20.0}, "by_beam": [{"size": 5, "bleu": 20.0}]}}},
}


def test_intervals_are_the_measured_ones_and_those_of_shares_follow_from_their_counts() -> None:
    assert scores_of(METRICS["one"])[0]["interval"] == (29.0, 32.0)
    assert scores_of(METRICS["two"])[0]["interval"] is None
    spelled = {"tests": {"hi": {"inputs": 400, "beam": {"top1": 50.0}}}}
    assert scores_of(spelled)[0]["interval"] == wilson(50.0, 400)
    compared = compared_of(METRICS["one"], "translate")
    assert compared == {
        "length": ["multi30k"],
        "scores": ["multi30k"],
        "beams": [],
        "errors": ["multi30k"],
    }


def test_lengths_with_fewer_than_30_inputs_are_hidden_and_an_interval_is_drawn_where_it_was_measured() -> None:
    points = length_points(ROWS, "bleu")
    assert [(point["label"], point["count"]) for point in points] == [("6–10", 30), ("11+", 400)]
    assert (points[0]["low"], points[0]["high"]) == (35.0, 46.0) and "low" not in points[1]
    (line,) = comparisons.by_length(METRICS).data
    assert list(line.error_y.array) == [6.0, 0.0] and list(line.error_y.arrayminus) == [5.0, 0.0]
    assert "30 inputs" in line.text[0] and "35.0 to 46.0" in line.text[0] and "no interval was measured" in line.text[1]


def test_each_length_has_one_place_also_for_a_model_that_lacks_one() -> None:
    three = [{"unit": "words", "from": low, "to": to, "inputs": 30, "bleu": 40.0} for low, to in ((1, 5), (6, 10), (11, None))]
    rows = {"one": three, "two": [three[0], three[2]]}
    figure = comparisons.by_length(
        {name: {"task": "translate", "tests": {"t": {"by_length": each}}} for name, each in rows.items()}
    )
    assert figure.layout.xaxis.ticktext == ("1–5", "6–10", "11+")
    assert [(line.name, list(line.x)) for line in figure.data] == [("one", [1, 2, 3]), ("two", [1, 3])]


def test_a_model_has_one_colour_in_every_figure_and_never_that_of_a_column() -> None:
    assert {LOOK["colours"]["a"], LOOK["colours"]["b"]}.isdisjoint(COLOURS) and len(set(COLOURS)) == 8
    (beam,) = comparisons.beam_quality(METRICS).data
    second = comparisons.scores(METRICS, "multi30k").data[1]
    assert beam.name == "two" and beam.line.color == COLOURS[1] == second.marker.color


def test_a_line_over_a_part_of_the_test_set_says_so_and_has_the_wider_interval() -> None:
    def of(counted: int, right: float) -> dict[str, Any]:
        tables = {"inputs": 4442, "by_beam": [{"size": size, "inputs": counted, "top1": right} for size in (1, 5)]}
        search = {"inputs": 200, "beams": [{"beam": 1, "search_errors": 5.0}]}
        return {"task": "transliterate", "tests": {"hi": tables}, "search": search}

    metrics = {"whole": of(4442, 48.0), "part": of(166, 54.0)}
    whole, part = comparisons.beam_quality(metrics, "hi").data
    assert (whole.name, part.name) == ("whole<br>all 4,442 inputs", "part<br>only 166 of 4,442 inputs")
    assert all("only 166 of 4,442 inputs" in told for told in part.text)
    low, high = wilson(54.0, 166)
    assert part.error_y.array[1] == pytest.approx(high - 54) and part.error_y.arrayminus[1] == pytest.approx(54 - low)
    errors = comparisons.search_errors(metrics).data[0]
    assert errors.name == "whole<br>200 inputs" and errors.error_y.array[0] == pytest.approx(wilson(5.0, 200)[1] - 5)


def test_names_of_models_are_text_in_a_figure() -> None:
    named = {"<b>$x$</b>": METRICS["one"]}
    (line,) = comparisons.by_length(named).data
    assert "<b>$x" not in line.name and "&lt;b&gt;" in line.name


@pytest.mark.parametrize("task", ["translate", "transliterate", "caption"])
def test_every_figure_on_offer_of_the_shipped_models_is_drawn(root: Path, task: str) -> None:
    catalogue = Catalogue(root / "checkpoints")
    comparison, drawn = Comparison(catalogue), 0
    for card in catalogue.of_task(task):
        for kind, tests in card["compared"].items():
            for test in tests[:2]:
                figure = comparison.figure(task, test, kind)
                assert figure["data"] and figure["config"] == {"displayModeBar": False, "responsive": True}
                assert card["name"] in json.dumps(figure)
                drawn += 1
    assert drawn >= 4


@pytest.mark.parametrize(
    "wanted", [("", "", ""), ("translate", "toy", "no"), ("translate", 3, "length"), ("translate", "x", "length")]
)
def test_what_was_not_measured_is_refused_with_a_sentence(tmp_path: Path, wanted: tuple[Any, ...]) -> None:
    write_cards(tmp_path)
    with pytest.raises(InputError) as refused:
        Comparison(Catalogue(tmp_path)).figure(*wanted)
    assert str(refused.value).endswith(".")


def test_the_pages_of_tasks_do_not_carry_what_only_the_models_page_shows(tmp_path: Path) -> None:
    write_cards(tmp_path)
    catalogue = Catalogue(tmp_path)
    for task in TASKS:
        assert {"scores", "compared", "card"}.isdisjoint(catalogue.setup(task)["checkpoints"][0])


def test_the_pictures_of_a_card_are_served(tmp_path: Path, root: Path) -> None:
    write_cards(tmp_path)
    picture = (root / "checkpoints" / "translator-de-en" / "alignment.png").read_bytes()
    (tmp_path / "captioner" / "map.png").write_bytes(picture)
    cards = {card["name"]: card for card in pages.models_content(Catalogue(tmp_path))["checkpoints"]}
    address = cards["captioner"]["pictures"]["map.png"]
    kept = assets.served(address.rpartition("/")[2])
    assert kept and kept.body == picture and kept.kind == "image/png" and cards["letters-english"]["pictures"] == {}
