"""The recorded sample: drawn from dev alone, the same each time, and one the shipped models can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seqdemo import hub
from seqdemo.hands import sample as samples
from training import data as public_data
from training.__main__ import main
from training.data.records import Dataset, Example, Split
from training.data.transliteration import LANGUAGES
from training.publish import sample as drawing

BOOK = "A paragraph of the book.\n\n" * 400


def dataset(name: str, data: Any = None) -> Dataset:
    if name == "tatoeba":
        dev = [Example(f"Satz {n}.", (f"Sentence {n}.", "Another."), "", None, name) for n in range(500)]
        dev.append(Example("lang " * 60, ("long",), "", None, name))
    elif name == "dakshina:all":
        dev = [Example(f"{code}{n}", (f"{n}",), code, None, "dakshina") for code in LANGUAGES for n in range(90)]
    else:
        dev = [Example("", (BOOK,), "", None, name)]
    secret = Split([Example("secret", ("secret",))])
    return Dataset(name, secret, Split(dev), secret, "0" * 64, True, ())


def test_a_sample_is_drawn_from_dev_alone_and_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(public_data, "load", dataset)
    assert main(["sample", "--out", str(tmp_path / "sample.json")]) == 0
    told = json.loads((tmp_path / "sample.json").read_text("utf-8"))
    assert told == drawing.draw() and "secret" not in json.dumps(told) and "transliterate:hi" in capsys.readouterr().out
    texts = told["texts"]
    assert len(texts["translate"]["pairs"]) == drawing.SENTENCES and ["Satz 0.", "Sentence 0."] in texts["translate"]["pairs"]
    for code in LANGUAGES:
        assert all(source.startswith(code) for source, _ in texts[f"transliterate:{code}"]["pairs"])
    assert texts["complete:lm-c"]["text"].startswith("A paragraph") and len(texts["complete:lm-c"]["text"]) == drawing.LETTERS
    assert set(told["credits"]) == {"tatoeba", "dakshina", "war-and-peace", "sqlite-c"}


def test_the_shipped_sample_is_in_what_the_shipped_models_can_read() -> None:
    for name in hub.names():
        checkpoint = hub.load(name)
        if checkpoint.task == "caption":
            continue
        for language in checkpoint.languages or (str(checkpoint.config.get("target_language", "")),):
            found = samples.sample_for(checkpoint, language)
            assert len(found.pairs) == {"complete": 1, "translate": 60}.get(checkpoint.task, 40) and found.title
            if checkpoint.task == "complete":
                assert len(found.pairs[0][1]) > 1_900 and 3 not in found.pairs[0][1], "every letter is known"
