from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from seqdemo import checkpoints
from seqdemo.checkpoints.description import check_config
from seqdemo.errors import InputError
from tests.small_runs import WORDS, train, words
from training import card, compare, evaluate, export
from training import data as public_data
from training.data.public import FINGERPRINTS
from training.overrides import changed
from training.recipes import RECIPES
from training.resume import Start

SHORT = replace(WORDS, epochs=0.3, evaluations=1)
PLAN = evaluate.Plan(beams=(1,), sample=5, exact=1, expansions=20)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs") / "short"
    assert train(SHORT, folder) == 0
    return folder


def test_a_run_writes_what_it_was_trained_on(run: Path) -> None:
    config = checkpoints.load(run).config
    assert config["trained_on"] == {"data": "words", "fingerprint": words().fingerprint, "verified": False, "changes": []}


def test_recorded_data_are_known_by_their_fingerprint(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FINGERPRINTS, "words", words().fingerprint)
    assert export.trained_on(SHORT, run / "state")["trained_on"]["verified"] is True


def test_figures_do_not_outlive_the_weights_they_were_measured_of(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "short"
    shutil.copytree(run, folder)
    monkeypatch.setattr(public_data, "load", lambda name, data=None: words())
    evaluate.evaluate(folder, plan=PLAN)
    card.write(folder)
    export.export(folder)
    assert (folder / "metrics.json").is_file() and (folder / "README.md").is_file()
    (folder / "metrics.json").write_text("{")
    export.export(folder)
    assert not (folder / "metrics.json").exists(), "what cannot be read tells nothing of these bytes"
    evaluate.evaluate(folder, plan=PLAN)
    card.write(folder)
    train(replace(SHORT, seed=2), folder, Start(fresh=True))
    assert not (folder / "metrics.json").exists() and not (folder / "README.md").exists()
    assert checkpoints.load(folder).card == "" and "Not measured yet" in card.render(folder)


def test_a_model_of_other_data_is_not_compared(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_data, "load", lambda name, data=None: replace(words(), verified=True))
    with pytest.raises(InputError, match="was trained on other splits of words"):
        compare.compare(run, run, split="dev")


def test_without_a_saved_state_nothing_is_claimed(tmp_path: Path) -> None:
    assert export.trained_on(SHORT, tmp_path) == {}


def test_the_changes_make_the_recipe_again() -> None:
    settings = ["epochs=0.25", "rate=0.001", "bf16=true", "languages=hi,ta", "decoder_hidden=32", "cell=gru", "dropout=0.5"]
    recipe = changed(RECIPES["reverse"], settings)
    assert sorted(export.changes(recipe)) == sorted(settings)
    assert changed(RECIPES["reverse"], export.changes(recipe)).model.items() == recipe.model.items()
    assert export.changes(RECIPES["reverse"]) == []
    assert export.changes(replace(RECIPES["reverse"], about="Another.", minutes=2)) == []


def test_a_model_of_other_data_is_not_verified_on_the_recorded_ones(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_data, "load", lambda name, data=None: replace(words(), verified=True))
    found = evaluate.evaluate(run, split="dev", plan=PLAN)
    assert found["data"]["verified"] is False
    assert found["data"]["refusal"].startswith("words was trained on other splits of words than the recorded ones")
    checkpoint = checkpoints.load(run)
    checkpoint.config["trained_on"]["verified"] = True
    assert evaluate.refusal_of(checkpoint) == ""
    del checkpoint.config["trained_on"]
    assert evaluate.refusal_of(checkpoint) == ""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("words", "exactly data, fingerprint, verified and changes"),
        ({"data": "words"}, "exactly data, fingerprint, verified and changes"),
        ({"data": "words", "fingerprint": "0", "verified": 1, "changes": []}, "verified must be true or false"),
        ({"data": "words", "fingerprint": "0", "verified": True, "changes": "rate=1"}, "changes must be a list"),
        ({"data": "words", "fingerprint": "0", "verified": True, "changes": [1]}, "must be a text"),
        ({"data": 1, "fingerprint": "0", "verified": True, "changes": []}, "must be a text"),
    ],
)
def test_what_a_config_says_of_it_is_checked(run: Path, value: object, told: str) -> None:
    config = json.loads((run / "config.json").read_text())
    check_config(config)
    with pytest.raises(InputError, match=told):
        check_config({**config, "trained_on": value})


def test_the_card_of_a_run_says_how_to_load_it_and_how_it_was_trained(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 'load("./short")' in card.render(run) and "Trained by" not in card.render(run)
    trained_on = {"data": "dakshina:hi", "fingerprint": "0", "verified": True, "changes": ["rate=0.001", "languages=hi, ta"]}
    config = {**json.loads((run / "config.json").read_text()), "name": "reverse", "trained_on": trained_on}
    written = card.licences(config, {})
    assert "`python -m training fit reverse --set rate=0.001 --set 'languages=hi, ta'`" in written and "Dakshina" in written
    assert "`python -m training fit reverse`" in card.licences({**config, "trained_on": {**trained_on, "changes": []}}, {})
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(run.parent))
    assert 'load("words")' in card.render(run)
