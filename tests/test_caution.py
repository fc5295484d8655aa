from __future__ import annotations

import json
from pathlib import Path

import pytest

from training import __main__ as command_line
from training import data as public_data
from training.data.records import Dataset, Example, Split
from training.measure import evaluate
from training.run import fit

SPLIT = Split([Example("ab", ("ba",))])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Multi30k with five unusable rows."""
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for name, word in (("train", "eins"), ("val", "zwei"), ("test", "drei")):
        rows = [json.dumps({"de": f"Satz {word}.", "en": f"Sentence {name}."}), *(["broken"] * 5 if name == "train" else [])]
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.parametrize("command", ["fit", "evaluate", "compare"])
def test_broken_rows_and_another_edition_are_said_at_the_start(
    command: str, broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Left(Exception):
        pass

    def load_only(*_: object, **__: object) -> None:
        public_data.load("multi30k", broken)
        raise Left

    monkeypatch.setattr(fit, "fit", load_only)
    monkeypatch.setattr(evaluate, "evaluate", load_only)
    monkeypatch.setattr("training.measure.compare.compare", load_only)
    names = {"fit": ["reverse"], "evaluate": ["here"], "compare": ["here", "there"]}
    with pytest.raises(Left):
        command_line.main([command, *names[command], "--data", str(broken)])
    told = capsys.readouterr()
    assert told.out == "" and told.err.splitlines()[0] == "5 rows or photographs that are not as they should be:"
    assert "train.jsonl:2: not a JSON object" in told.err and told.err.count("train.jsonl") == 3
    assert f"and 2 more; python -m training data multi30k --data {broken} --problems lists them all" in told.err
    assert "The splits of multi30k here are not the recorded ones" in told.err
    assert public_data.load("multi30k", broken).problems and capsys.readouterr().err == "", "no more once the command is over"


def test_only_the_first_process_says_it(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    with command_line.cautioned(broken):
        public_data.load("multi30k", broken)
    assert capsys.readouterr().err == ""


def test_whole_recorded_data_need_no_word() -> None:
    assert public_data.caution(Dataset("small", SPLIT, SPLIT, SPLIT, "0" * 64, True, ()), "list") == ""
    one = Dataset("small", SPLIT, SPLIT, SPLIT, "0" * 64, True, (), ("a:1: empty",))
    assert public_data.caution(one, "list").splitlines()[1:] == ["  a:1: empty"]


def test_all_broken_rows_can_be_listed(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["data", "multi30k", "--data", str(broken), "--problems"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all("train.jsonl:" in line for line in lines)
    assert command_line.main(["data", "reverse", "--problems"]) == 0
    assert capsys.readouterr().out == "Every row of reverse is as it should be.\n"
