"""How long two models take in turns: medians and ratios of a known case, and how they come into metrics.json and the card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqdemo import load
from seqdemo.errors import InputError
from tests.tiny import completer, translator
from training import __main__ as command_line
from training import data as public_data
from training.data.records import Dataset, Example, Split
from training.measure import evaluate, timing
from training.publish import card

PLAN = evaluate.Plan(beams=(1,), sample=2, exact=1, expansions=20)
SENTENCES = [Example("Der Hund spielt.", ("The dog plays.",)), Example("Die Frau singt.", ("The woman sings.",))]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> None:
    split = Split(SENTENCES)
    loaded = Dataset("small", split, split, split, "0" * 64, True, ())
    monkeypatch.setattr(public_data, "load", lambda name, data=None: loaded)


def test_medians_are_an_input_s_and_ratios_are_of_the_same_round(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"one": [2.0, 9.0, 4.0, 6.0, 8.0], "other": [1.0, 3.0, 4.0, 2.0, 2.0]}
    turns: list[str] = []

    def seconds(checkpoint: Any, inputs: Any, size: int) -> float:
        turns.append(checkpoint)
        return taken[checkpoint].pop(0)

    monkeypatch.setattr(timing, "processor_seconds", seconds)
    found = timing.compared(["one", "other"], [["a", "b"], ["a", "b"]], 64, lambda *told: None)  # type: ignore[list-item]
    assert found == {"size": 64, "ms": 3000.0, "beside_ms": 1000.0, "ratio": 3.0}
    assert turns == ["one", "other"] * 5


def test_inputs_of_similar_length_are_decoded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, groups = load(translator(tmp_path / "t")), []
    inputs = timing.prompts(checkpoint, [*SENTENCES, Example("Der Hund spielt im Garten.", ()), Example("Der Hund.", ())])
    monkeypatch.setattr(timing, "find", lambda checkpoint, group, options, record: groups.append((len(group), options.beam)))
    assert timing.processor_seconds(checkpoint, inputs, 3) >= 0 and groups == [(3, 5), (1, 5)]


def test_times_are_recorded_told_and_kept(tmp_path: Path, data: None, capsys: pytest.CaptureFixture[str]) -> None:
    folder, other = (translator(tmp_path / name) for name in ("t", "u"))
    evaluate.evaluate(folder, dataset="small", plan=PLAN)
    assert command_line.main(["timing", str(folder), str(other), "--dataset", "small", "--record"]) == 0
    assert "beam 5, 2 inputs of dev" in capsys.readouterr().out
    found = json.loads((folder / "metrics.json").read_text())["timing"]
    assert [row["size"] for row in found["batches"]] == [1, 64] and found["parameters"] == timing.parameters(load(other))
    told = card.render(folder)
    assert "Time of one core to decode with beam 5, on 2 inputs of dev, in turns with tiny-translator" in told
    for row in found["batches"]:
        assert f"| {row['size']} | {row['ms']:.2f} | {row['beside_ms']:.2f} | {row['ratio']:.2f} |" in told
    assert evaluate.evaluate(folder, dataset="small", plan=PLAN)["timing"] == found, "an evaluation of the same bytes keeps them"


def test_models_of_other_tasks_are_not_timed_together(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not read the same inputs"):
        timing.timing(translator(tmp_path / "t"), completer(tmp_path / "c"))
