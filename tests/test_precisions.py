"""What lower precisions change: shares and times of a known case, and how they come into metrics.json and the card."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seqdemo.config import PRECISIONS
from seqdemo.errors import InputError
from seqdemo.network import packed
from tests.tiny import completer, translator
from training import __main__ as command_line
from training import data as public_data
from training.data.records import Dataset, Example, Split
from training.measure import evaluate, precisions
from training.publish import card

PLAN = evaluate.Plan(beams=(1,), sample=2, exact=1, expansions=20)


def test_shares_and_times_are_against_float32_of_the_same_round() -> None:
    taken = {"float32": [2.0, 4.0, 8.0], "bfloat16": [1.0, 3.0, 4.0], "int8": [3.0, 4.0, 8.0]}
    outputs = {"float32": ["a", "b", "c", "d"], "bfloat16": ["a", "b", "c", "e"], "int8": ["a", "b", "c", "d"]}

    def named(precision: str) -> Any:
        return SimpleNamespace(precision=precision, task="translate")

    def measure(one: Any) -> tuple[tuple[float, list[str]], float]:
        return (float(len(one.precision)), outputs[one.precision]), taken[one.precision].pop(0)

    found = precisions.compared({precision: named(precision) for precision in PRECISIONS}, measure)
    assert found["float32"] == {"figure": 7.0} and found["inputs"] == 4 and found["figure"] == "bleu"
    assert found["bfloat16"] == {"figure": 8.0, "differ": 25.0, "time": 0.5}
    assert found["int8"] == {"figure": 4.0, "differ": 0.0, "time": 1.0}
    assert precisions.sentences(found).splitlines()[1].split(maxsplit=1) == [
        "bfloat16",
        "bleu 8.000, 25.0 % of 4 outputs differ, 0.50 times the time of float32",
    ]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> None:
    split = Split([Example("Der Hund spielt.", ("The dog plays.",)), Example("Die Frau singt.", ("The woman sings.",))])
    loaded = Dataset("small", split, split, split, "0" * 64, True, ())
    monkeypatch.setattr(public_data, "load", lambda name, data=None: loaded)


def test_they_are_recorded_told_and_kept(tmp_path: Path, data: None, capsys: pytest.CaptureFixture[str]) -> None:
    folder = translator(tmp_path / "t")
    if not all(map(possible, PRECISIONS)):
        pytest.skip("this processor gains nothing by lower precisions")
    with pytest.raises(InputError, match="is not of these bytes"):
        precisions.precisions(folder, dataset="small", record=True)
    evaluate.evaluate(folder, dataset="small", plan=PLAN)
    assert command_line.main(["rounding", str(folder), "--dataset", "small", "--record"]) == 0
    assert "of 2 outputs differ" in capsys.readouterr().out
    found = json.loads((folder / "metrics.json").read_text())["precisions"]
    assert set(PRECISIONS) <= set(found) and found["inputs"] == 2
    told = card.render(folder)
    assert "In lower precision, on 2 inputs of dev:" in told
    assert f"| int8 | {found['int8']['figure']:.1f} | {found['int8']['differ']:.1f} % |" in told
    again = evaluate.evaluate(folder, dataset="small", plan=PLAN)
    assert again["precisions"] == found, "an evaluation of the same bytes keeps them"


def test_a_language_model_is_told_in_nats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(map(possible, PRECISIONS)):
        pytest.skip("this processor gains nothing by lower precisions")
    split = Split([Example("", ("the dog plays in the garden. " * 20,))])
    loaded = Dataset("small", split, split, split, "0" * 64, True, ())
    monkeypatch.setattr(public_data, "load", lambda name, data=None: loaded)
    found = precisions.precisions(completer(tmp_path / "c"), dataset="small")
    assert found["figure"] == "nats" and found["inputs"] == 0 and "differ" not in found["int8"]
    assert found["float32"]["figure"] == pytest.approx(found["int8"]["figure"], abs=0.05)


def possible(precision: str) -> bool:
    try:
        packed.refuse_precision(precision)
    except InputError:
        return False
    return True
