"""Hands on the model from a terminal: one line of text or one object for each line given, whatever the model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from seqdemo.__main__ import HANDS, main
from seqdemo.findings import AtToken, Follower, Followers
from seqdemo.hands import lines
from tests import tiny
from tests.small_hands import INPUTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lines")
    for task in INPUTS:
        tiny.MAKERS[task](root / task)
    return root


class Said:
    """What a command prints for one line."""

    def __init__(self, folder: Path, place: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.folder, self.place, self.patch, self.captured = folder, place, patch, captured

    def __call__(self, task: str, *asked: str) -> tuple[int, str, str]:
        file = self.place / "given.txt"
        file.write_text(f"{INPUTS[task]}\n", encoding="utf-8")
        with file.open() as opened:
            self.patch.setattr(sys, "stdin", opened)
            code = main([*asked, "--checkpoint", str(self.folder / task), "--max-length", "8", "--min-length", "3"])
        printed = self.captured.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def said(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(folder, tmp_path, monkeypatch, capsys)


def test_the_two_tables_name_the_same() -> None:
    assert list(HANDS) == list(lines.HANDS) and set(lines.PLACED) < set(HANDS)


@pytest.mark.parametrize("task", INPUTS)
@pytest.mark.parametrize("hand", HANDS)
def test_every_hand_answers_every_model_or_says_why_not(said: Said, hand: str, task: str) -> None:
    asked = [hand, *(["--word", "s"] if hand == "cheapest" else []), *(["--along", "precision"] if hand == "sweep" else [])]
    code, out, err = said(task, *asked)
    refused = {("bound", "complete"): "no attention", ("cheapest", "transliterate"): "no pieces for"}
    for name in INPUTS:  # the small models have no recorded passages
        refused |= {("followers", name): "no recorded passages", ("closing", name): "no recorded passages"}
    if (hand, task) in refused:
        assert code == 1 and refused[hand, task] in err
        return
    assert code == 0 and out.count("\n") == 1 and out.strip()
    code, out, _ = said(task, *asked, "--json")
    told = json.loads(out)
    assert code == 0 and told["input"] == INPUTS[task].strip("\n") and "outputs" not in told
    assert hand not in lines.PLACED or told["position"] == (len(INPUTS[task]) if task == "complete" else 0)


def test_settings_reach_the_hand(said: Said) -> None:
    told = json.loads(said("translate", "units", "--position", "1", "--part", "encoder", "--direction", "backward", "--json")[1])
    assert (told["part"], told["direction"], told["position"], len(told["units"])) == ("encoder", "backward", 1, 12)
    told = json.loads(said("complete", "units", "--layer", "1", "--steps", "2", "--what", "hidden", "--json")[1])
    assert (told["layer"], told["what"], len(told["edit"]["positions"])) == (1, "hidden", 2)
    code, _, err = said("translate", "next", "--row", "1", "2")
    assert code == 1 and "An attention row for this source has" in err
    assert len(json.loads(said("translate", "words", "--typed", "s", "--most", "2", "--json")[1])["words"]) <= 2


def test_an_edit_is_decoded_under_and_priced(said: Said) -> None:
    plain = json.loads(said("translate", "translate", "--json")[1])["outputs"][0]
    ban = json.dumps({"kind": "Ban", "position": 0, "tokens": plain["tokens"][:1]})
    clamp = json.dumps({"kind": "ClampGate", "part": "decoder", "gate": "forget", "value": 0.9})
    code, out, _ = said("translate", "translate", "--edit", ban, "--edit", clamp, "--json")
    told = json.loads(out)
    assert code == 0 and told["outputs"][0]["tokens"][0] != plain["tokens"][0]
    assert [price["kind"] for price in told["own_prices"]] == ["tokens", "state"] and len(told["prices"]) == 2
    under = json.loads(said("translate", "next", "--edit", ban, "--json")[1])
    assert under["said"]["token"] != plain["tokens"][0]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ('{"kind": "AttentionBlend", "factor": 1.0}', "This model has no attention to edit"),
        ('{"kind": "ClampGate", "part": "decoder", "gate": "update", "value": 0}', "no 'update' gate; it has input, forget"),
        ('{"kind": "Require", "word": "Жю"}', "no pieces for “Жю”"),
        ('{"kind": "Wish"}', "An edit is a JSON object whose kind is one of"),
    ],
)
def test_an_edit_that_does_not_fit_has_its_sentence(said: Said, edit: str, words: str) -> None:
    code, _, err = said("complete", "complete", "--edit", edit)
    assert code in (1, 2) and words in err


def test_more_than_twenty_edits_are_too_many(said: Said) -> None:
    edit = '{"kind": "ClampGate", "part": "decoder", "gate": "forget", "value": 0.9}'
    code, _, err = said("translate", "translate", *["--edit", edit] * 21)
    assert code == 1 and "At most 20 edits at once, not 21" in err


def test_what_is_no_json_is_wrong_usage(said: Said, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        said("translate", "translate", "--edit", "{")
    assert "'{' is not JSON" in capsys.readouterr().err


def test_small_probabilities_and_gates_are_told_as_a_person_writes_them() -> None:
    assert [lines.chance(p) for p in (1.0, 0.8123, 0.00213, 9.5e-6)] == ["1.0000", "0.8123", "0.0021", "9.5·10⁻⁶"]
    assert [lines.quoted(AtToken(piece, 0.5)) for piece in ("▁mir", "s", "▁")] == ["“mir”", "“s”", "“▁”"]
    followed = Followers("quotation", "texts", "cell", (Follower(1, 309, 0.00004),), (), ())
    assert lines.layers(followed) == ["layer 1, unit 309: AUC 0.0000"]
