from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from seqdemo import hub as models
from seqdemo.checkpoints.description import check_config
from seqdemo.errors import InputError
from tests.small_runs import WORDS, train, words
from training import __main__ as command_line
from training import data as public_data
from training.data.public import FINGERPRINTS
from training.measure import compare, evaluate
from training.publish import card
from training.recipes import RECIPES, Recipe
from training.run import export, origin
from training.run.overrides import changed
from training.run.resume import Start

SHORT = replace(WORDS, epochs=0.3, evaluations=1)
PLAN = evaluate.Plan(beams=(1,), sample=5, exact=1, expansions=20)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs") / "short"
    assert train(SHORT, folder) == 0
    return folder


def test_a_run_writes_what_it_was_trained_on(run: Path) -> None:
    config = models.load(run).config
    trained_on = config["trained_on"]
    known = {"data": "words", "fingerprint": words().fingerprint, "verified": False, "changes": []}
    assert {key: trained_on[key] for key in known} == known
    assert trained_on["recipe"] == export.values(SHORT) and trained_on["recipe"]["rate"] == SHORT.rate
    assert trained_on["commits"] == origin.commits_of(run / "state") == list(filter(None, [origin.commit()]))


def test_every_commit_that_worked_at_a_run_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert origin.commits_of(tmp_path) == []
    for now in ("a", "a", "", "b", "a"):
        monkeypatch.setattr(origin, "commit", lambda now=now: now)
        origin.note_commit(tmp_path)
    assert origin.commits_of(tmp_path) == ["a", "b"]


def test_a_commit_is_told_with_whether_files_differ_from_it(tmp_path: Path) -> None:
    assert origin.commit(tmp_path) == "", "no repository"
    file = tmp_path / "file"
    file.write_text("1")
    for command in (["init"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-m", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True, capture_output=True)
    head = origin.git(tmp_path, "rev-parse", "HEAD")
    assert len(head) == 40 and origin.commit(tmp_path) == head
    (tmp_path / "another").write_text("not of the repository")
    assert origin.commit(tmp_path) == head
    file.write_text("2")
    assert origin.commit(tmp_path) == f"{head} with changes"


@pytest.mark.parametrize("name", models.names())
def test_a_shipped_model_has_its_recipes_values_and_data(name: str) -> None:
    trained_on, values = models.load(name).config["trained_on"], export.values(RECIPES[name])
    assert (trained_on["changes"], trained_on["fingerprint"]) == ([], FINGERPRINTS[RECIPES[name].data])
    since = {field.name: field.default for field in fields(Recipe) if field.name in values}  # fields that are newer than it
    assert {**since, **trained_on["recipe"]} == values


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
    assert models.load(folder).card == "" and "Not measured yet" in card.render(folder)


def test_a_model_of_other_data_is_not_compared(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_data, "load", lambda name, data=None: replace(words(), verified=True))
    with pytest.raises(InputError, match="was trained on other splits of words"):
        compare.compare(run, run, split="dev")


def test_a_run_is_exported_in_int8_and_its_card_says_so(run: Path, tmp_path: Path) -> None:
    found = {}
    for precision in ("float16", "int8"):
        out = tmp_path / precision
        assert command_line.main(["export", str(run), "--out", str(out), "--precision", precision]) == 0
        found[precision] = (out / "model.safetensors").stat().st_size, models.load(out).config["format"], card.render(out)
    assert found["int8"][0] < found["float16"][0] and (found["float16"][1], found["int8"][1]) == (1, 2)
    assert "in half precision" in found["float16"][2] and "in int8, with a scale for each row" in found["int8"][2]


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
    checkpoint = models.load(run)
    checkpoint.config["trained_on"]["verified"] = True
    assert evaluate.refusal_of(checkpoint) == ""
    del checkpoint.config["trained_on"]
    assert evaluate.refusal_of(checkpoint) == ""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("words", "must have data, fingerprint, verified and changes"),
        ({"data": "words"}, "must have data, fingerprint, verified and changes"),
        ({"data": "w", "fingerprint": "0", "verified": True, "changes": [], "colour": 1}, "may have recipe and commits"),
        ({"data": "w", "fingerprint": "0", "verified": True, "changes": [], "recipe": 1}, "recipe must be an object"),
        ({"data": "w", "fingerprint": "0", "verified": True, "changes": [], "commits": "a"}, "commits must be a list"),
        ({"data": "w", "fingerprint": "0", "verified": True, "changes": [], "commits": [1]}, "must be a text"),
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
    assert "Its recipe" not in written
    more = {"recipe": {"epochs": 3, "spread": 0.0, "weigh": {}}, "commits": ["a" * 40 + " with changes", "b" * 40]}
    told = card.licences({**config, "trained_on": {**trained_on, **more}}, {})
    assert f"Its recipe has epochs 3; its data have the fingerprint `0`...; the code was that of commit `{'a' * 12}` with" in told
    assert f"and `{'b' * 12}`." in told
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(run.parent))
    assert 'load("words")' in card.render(run)
