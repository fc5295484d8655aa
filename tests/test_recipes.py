from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from seqdemo import __main__ as terminal
from seqdemo import hub as models
from seqdemo.checkpoints.description import NAME
from seqdemo.config import ModelConfig, SearchOptions
from seqdemo.errors import InputError
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.text import SPECIALS, Characters
from tests.benchmarks.calibration import REFERENCE, calibration
from tests.shared import Toy
from training import __main__ as command_line
from training import data as public_data
from training.publish.card import HUB_LICENCES
from training.recipes import FORMER_NAMES, RECIPES, Recipe
from training.run.build import model_of, read_recipe, recipe_from, write_recipe
from training.run.fit import Run
from training.run.overrides import changed, described, listed, written
from training.tasks.task import METRICS

LETTERS = Characters([*SPECIALS, *"abcdefghijklmnopqrstuvwxyz"])
ENCODERS = {"complete": "none", "caption": "image"}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_is_complete(recipe: Recipe) -> None:
    assert NAME.fullmatch(recipe.name) and RECIPES[recipe.name] is recipe
    assert 0 < recipe.minutes <= (240 if len(recipe.languages) == 12 else 120)
    assert recipe.data in public_data.BUILDERS
    assert recipe.metric in METRICS or recipe.task == "complete"
    assert recipe.licence in HUB_LICENCES or recipe.licence == "cc-by-nc-4.0"
    assert recipe.about.endswith(".")
    vocabulary = 0 if recipe.task in ENCODERS else 100
    config = ModelConfig(100, source_vocabulary=vocabulary, encoder=ENCODERS.get(recipe.task, "text"), **recipe.model)
    assert config.dropout == recipe.model.get("dropout", 0.0)


def test_a_plain_model_differs_from_its_twin_with_attention_in_little_but_that() -> None:
    pairs = [("translator-de-en", "translator-de-en-plain"), ("captioner", "captioner-plain")]
    for ours, plain in pairs:
        one, other = RECIPES[ours], RECIPES[plain]
        assert (one.data, one.tokens, one.seed) == (other.data, other.tokens, other.seed)
        assert one.model["decoder"].startswith("attend") and other.model["decoder"].startswith("context")


def test_models_of_one_lesson_are_of_one_size() -> None:
    def size(name: str, source: int, target: int) -> int:
        letters = [Characters([*SPECIALS, *map(chr, range(1000, 996 + count))]) for count in (source, target)]
        return sum(value.numel() for value in model_of(RECIPES[name], *letters).parameters())

    hindi = [size(name, 30, 71) for name in RECIPES if name.startswith("transliterator-hi-")]
    translators = [size(name, 6000, 6000) for name in ("translator-de-en", "translator-de-en-transformer")]
    assert len(hindi) == 8
    for sizes in (hindi, translators):
        assert all(abs(each / sizes[0] - 1) < 0.1 for each in sizes), sizes


def test_every_shipped_model_is_what_its_recipe_makes() -> None:
    shipped = models.names()
    assert shipped and set(shipped) <= set(RECIPES)
    for name in shipped:
        recipe, found = RECIPES[name], models.load(name)
        shape = ModelConfig(**found.config["model"])
        sizes = {"source_vocabulary": shape.source_vocabulary, "encoder": shape.encoder}
        made = ModelConfig(shape.target_vocabulary, **sizes, **recipe.model)
        assert shape == made, name
        assert (found.task, found.config["licence"]) == (recipe.task, recipe.licence)


@pytest.mark.parametrize("name", ["reverse", "lm-tolstoy"])
def test_recipe_and_seed_decide_the_model(name: str) -> None:
    first, second = (dict(model_of(RECIPES[name], LETTERS, LETTERS).named_parameters()) for _ in range(2))
    other = dict(model_of(changed(RECIPES[name], ["seed=2"]), LETTERS, LETTERS).named_parameters())
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not torch.equal(first["embed_target.weight"], other["embed_target.weight"])
    assert isinstance(model_of(RECIPES[name], LETTERS, LETTERS), LanguageModel if name == "lm-tolstoy" else Seq2Seq)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_comes_back_from_disk(recipe: Recipe, tmp_path: Path) -> None:
    write_recipe(tmp_path, recipe)
    assert read_recipe(tmp_path) == recipe


def test_a_recipe_of_another_version_is_told() -> None:
    with pytest.raises(InputError, match="has magic in its recipe"):
        recipe_from({"name": "x", "magic": 1})
    with pytest.raises(InputError, match="There is no run in"):
        read_recipe(Path("nowhere/state"))


def test_settings_change_the_recipe_or_its_model() -> None:
    recipe = changed(
        RECIPES["reverse"],
        ["rate=0.01", "epochs=2.5", "decoder_hidden=32", "cell=gru", "bf16=true", "dropout=0.5", "languages=a,b"],
    )
    assert (recipe.rate, recipe.epochs, recipe.bf16, recipe.languages) == (0.01, 2.5, True, ("a", "b"))
    assert (recipe.model["decoder_hidden"], recipe.model["cell"], recipe.model["dropout"]) == (32, "gru", 0.5)
    assert recipe.name == "reverse" and RECIPES["reverse"].rate != 0.01


@pytest.mark.parametrize(
    "setting", ["rate", "rate=", "rate=fast", "rate=-1", "rate=inf", "seed=1.5", "bf16=perhaps", "colour=1", "encoder=none"]
)
def test_a_setting_that_makes_no_sense_is_told(setting: str) -> None:
    with pytest.raises(InputError, match=r"(rate|seed|bf16) must be|--set takes name=value"):
        changed(RECIPES["reverse"], [setting])


@pytest.mark.parametrize(
    ("name", "setting", "told"),
    [
        ("reverse", "evaluations=0", "evaluations must be a whole number, at least 1, not 0."),
        ("reverse", "warmup=1", "warmup must be a number, at least 0 and below 1, not 1.0."),
        ("reverse", "warmup=100", "warmup must be a number, at least 0 and below 1, not 100.0."),
        ("reverse", "dev_size=0", "dev_size must be a whole number, at least 1, not 0."),
        ("reverse", "metric=foo", "metric must be bleu or exact or cider for the task transliterate, not 'foo'."),
        ("reverse", "metric=nats", "metric must be bleu or exact or cider for the task transliterate, not 'nats'."),
        ("lm-tolstoy", "metric=bleu", "metric must be nats for the task complete, not 'bleu'."),
        ("reverse", "tokenizer=foo", "tokenizer must be subwords or characters for the task transliterate, not 'foo'."),
        ("reverse", "tokenizer=subwords", "pieces must be at least 5 with tokenizer subwords, not 0."),
        ("captioner", "tokenizer=characters", "tokenizer must be words for the task caption, not 'characters'."),
        ("translator-de-en", "pieces=70000", "pieces must be a whole number, at least 0 and at most 65,536, not 70000."),
        ("reverse", "clip=0", "clip must be a number, above 0, not 0.0."),
        ("reverse", "average=2", "average must be a number, at least 0 and below 1, not 2.0."),
        ("reverse", "average=1", "average must be a number, at least 0 and below 1, not 1.0."),
        ("reverse", "label_smoothing=1", "label_smoothing must be a number, at least 0 and below 1, not 1.0."),
        ("reverse", "sampled=1.5", "sampled must be a number, at least 0 and at most 1, not 1.5."),
        ("reverse", "epochs=0", "epochs must be a number, above 0, not 0.0."),
        ("reverse", "epochs=-1", "epochs must be a number, above 0, not -1.0."),
        ("reverse", "tokens=0", "tokens must be a whole number, at least 1, not 0."),
        ("reverse", "rate=-1", "rate must be a number, above 0, not -1.0."),
        ("reverse", "seed=4000001", "seed must be a whole number, at least 0 and at most 4,000,000, not 4000001."),
        ("reverse", "patience=-1", "patience must be a whole number, at least 0, not -1."),
        ("lm-tolstoy", "streams=0", "streams must be a whole number, at least 1, not 0."),
        ("reverse", "dropout=1.5", "dropout must be a number from 0 to 0.9, not 1.5."),
        ("reverse", "decoder_hidden=0", "decoder_hidden must be a whole number from 1 to 4,096, not 0."),
        ("reverse", "cell=foo", "Cell 'foo' is not known"),
    ],
)
def test_a_value_out_of_range_is_told_before_anything_is_trained(name: str, setting: str, told: str) -> None:
    with pytest.raises(InputError) as refused:
        changed(RECIPES[name], [setting])
    assert str(refused.value).startswith(told)


def test_values_are_checked_where_a_recipe_is_made_and_together() -> None:
    for name in ("model", "weigh"):
        with pytest.raises(InputError, match=f"{name} must be names with values, not 5"):
            replace(RECIPES["translator-de-en"], **{name: 5})
    assert [written(value) for value in (12.0, 0.25, True, "cc-by-2.0")] == ["12", "0.25", "true", "cc-by-2.0"]
    with pytest.raises(InputError, match="weigh of tatoeba must be a whole number"):
        replace(RECIPES["translator-de-en"], weigh={"tatoeba": -1})
    with pytest.raises(InputError, match="task must be translate or"):
        replace(RECIPES["reverse"], task="fly")
    recipe = changed(RECIPES["reverse"], ["tokenizer=subwords", "pieces=40", "warmup=0", "patience=0"])
    assert (recipe.tokenizer, recipe.pieces, recipe.warmup, recipe.patience) == ("subwords", 40, 0, 0)


def test_recipes_are_listed_and_described() -> None:
    table = listed(RECIPES.values()).splitlines()
    assert len(table) == len(RECIPES) + 1
    assert all(line.startswith(name) for name, line in zip(RECIPES, table[1:]))
    told = described(RECIPES["translator-de-en"])
    assert re.search(r"label_smoothing +0.1", told) and re.search(r"  decoder +attend-after", told)


COMMANDS = (
    "fit",
    "data",
    "evaluate",
    "compare",
    "card",
    "table",
    "gallery",
    "publish",
    "export",
    "recipes",
    "looking",
    "rounding",
    "timing",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command_line.main([command, "--help"])
    assert left.value.code == 0
    assert f"  python -m training {command}" in capsys.readouterr().out


def test_help_says_how_a_run_of_many_processes_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["fit", "--help"])
    assert "torchrun's own exit code" in capsys.readouterr().out


def test_all_commands_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["--help"])
    told = capsys.readouterr().out
    assert all(re.search(rf"^    {command} ", told, re.M) for command in COMMANDS)


def test_data_know_the_former_names_of_recipes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(FORMER_NAMES, "backwards", "reverse")
    assert command_line.main(["data", "backwards"]) == 0
    assert public_data.load("reverse").fingerprint in capsys.readouterr().out


def test_the_command_line_shows_recipes_and_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["recipes"]) == 0
    assert "reverse" in capsys.readouterr().out
    assert command_line.main(["data", "reverse"]) == 0
    assert public_data.load("reverse").fingerprint in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fit", "revers"], "There is no recipe 'revers'; choose one of reverse"),
        (["fit", "reverse", "--set", "rate=x"], "rate must be a number"),
        (["fit", "reverse", "--device", "toaster"], "There is no device 'toaster' here"),
        (["fit", "reverse", "--save-steps", "0"], "--save-steps must be 1 or more, not 0."),
        (["fit", "reverse", "--save-seconds", "nan"], "--save-seconds must be above 0, not nan."),
        (["fit", "reverse", "--threads", "-1"], "--threads must be 1 or more, not -1."),
        (["export", "nowhere"], "There is no run in nowhere"),
        (["data", "nothing"], "There is no data set 'nothing'"),
        (["card", "nowhere"], "nowhere/config.json: No such file or directory."),
        (["card", "README.md"], "README.md/config.json: Not a directory."),
        (["evaluate", "tests"], "tests is not a checkpoint: manifest.json is missing."),
        (["fit", "reverse", "--set", "source_language=xx yy"], "source_language must be a language code such as de"),
    ],
)
def test_mistakes_get_a_sentence(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(arguments) == 2  # as argparse, and as the command line of seqdemo
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name, code", [("sacrebleu.metrics", 1), ("training.nothing", None), ("seqdemo", None)])
def test_a_package_that_is_not_installed_gets_a_sentence(
    name: str, code: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not one of our own modules: that would be an error in the code."""

    def missing(*_: object) -> int:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(command_line, "run_recipes", missing)
    monkeypatch.setattr(terminal, "work", missing)
    for main, line, says in (
        (command_line.main, ["recipes"], "pip install -e"),
        (terminal.main, [], "source .venv/bin/activate"),
    ):
        if code is None:
            with pytest.raises(ModuleNotFoundError):
                main(line)
        else:
            assert main(line) == code
            told = capsys.readouterr().err
            assert f"{name} is not installed for this Python; " in told and says in told


def test_the_toy_is_learnt_within_a_minute_of_one_core(toy: Toy, tmp_path: Path) -> None:
    """In a process of its own, as a person does it. The clock is the processor's, so that a busy machine does not count; a slower
    one has longer."""
    assert toy.status == 0, toy.said
    assert toy.seconds < 60 * max(1.0, calibration() / REFERENCE)
    folder = shutil.copytree(toy.folder, tmp_path / "run")
    run = Run(RECIPES["reverse"], public_data.load("reverse"), folder)
    assert right(folder, run) >= 99.0


def right(folder: Path, run: Run) -> float:
    """Per cent of the test strings, of up to ten letters, that the checkpoint reverses."""
    test = public_data.load("reverse").test.examples
    model = models.load(folder).model
    texts = run.task.outputs(model, test, SearchOptions(strategy="greedy", nbest=1))
    return 100 * sum(text in example.references for text, example in zip(texts, test)) / len(test)
