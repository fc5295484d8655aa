from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import ModelCard
from PIL import Image

from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.checkpoints import write_manifest
from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.network.transformer import Transformer
from seqdemo.text import SPECIALS, Characters, Words
from training import data as public_data
from training.data.records import Dataset, Example, Split
from training.measure import evaluate, headlines
from training.publish import card, card_figures, table

ROOT = Path(__file__).resolve().parent.parent
LETTERS = Characters([*SPECIALS, *"abcdefghijklmnopqrstuvwxyz ."])
TAGGED = Characters([*SPECIALS, "<hi>", "<ta>", *"abcdefghijklmnopqrstuvwxyz ."])
SMALL = {"embedding": 6, "encoder_hidden": 5, "decoder_hidden": 7, "attention": 4, "features": 6}
PLAN = evaluate.Plan(beams=(1, 5), sample=10, exact=2, expansions=50)


def text_model(letters: Characters = LETTERS) -> Seq2Seq:
    return Seq2Seq(ModelConfig(len(letters), source_vocabulary=len(letters), **SMALL)).eval()  # type: ignore[arg-type]


def translator(folder: Path, data: Path) -> Dataset:
    checkpoints.save(folder, text_model(), {**NAMED["translate"], "task": "translate"}, LETTERS, LETTERS)
    return small([Example("das ist ja gut", ("this is good", "it is"), "", None, origin) for origin in ("multi30k", "tatoeba")])


def speller(folder: Path, data: Path) -> Dataset:
    checkpoints.save(folder, text_model(TAGGED), {**NAMED["transliterate"], "task": "transliterate"}, TAGGED, TAGGED)
    return small([Example("ghar", ("ghaar", "ghar"), language, None, "dakshina") for language in ("hi", "ta")])


def captioner(folder: Path, data: Path) -> Dataset:
    words = Words.train(["a dog runs", "two men"])
    model = Seq2Seq(ModelConfig(len(words), encoder="image", cnn="efficientnet-lite0", **SMALL)).eval()  # type: ignore[arg-type]
    checkpoints.save(folder, model, {**NAMED["caption"], "task": "caption"}, None, words)
    (data / "flickr8k").mkdir(parents=True)
    Image.new("RGB", (40, 30), "red").save(data / "flickr8k" / "1.jpg")
    rows = [{"file": "1.jpg", "phrase": "dog", "box": [0, 0, 1, 1]}]
    (data / "flickr8k" / "boxes_dev.json").write_text(json.dumps(rows))
    return small([Example("1.jpg", ("a dog runs", "the dog ."), "", data / "flickr8k" / "1.jpg", "flickr8k")] * 2)


def writer(folder: Path, data: Path) -> Dataset:
    text = 'I said "no (no)" and left.\n\n' * 60
    letters = Characters.train([text], keep_space=True)
    model = LanguageModel(ModelConfig(len(letters), encoder="none", embedding=4, decoder_hidden=5, features=0)).eval()
    checkpoints.save(folder, model, {**NAMED["complete"], "task": "complete"}, None, letters)
    return small([Example("", (text,), "", None, "war-and-peace")], "war-and-peace")


NAMED = {
    "translate": {
        "name": "t",
        "source_language": "de",
        "target_language": "en",
        "licence": "cc-by-2.0",
        "about": "One | two.",
    },
    "transliterate": {"name": "s", "languages": ["hi", "ta"], "licence": "cc-by-sa-4.0"},
    "caption": {"name": "c", "licence": "Research use only", "target_language": "en"},
    "complete": {"name": "w", "licence": "cc0-1.0"},
}
MAKERS = {"translate": translator, "transliterate": speller, "caption": captioner, "complete": writer}
DATA = {"translate": "multi30k+tatoeba", "transliterate": "dakshina:all", "caption": "flickr8k", "complete": "war-and-peace"}


def small(examples: list[Example], name: str = "") -> Dataset:
    split = Split(examples)
    return Dataset(name, split, split, split, "0" * 64, True, ())


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny measured checkpoint for every task."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    root = tmp_path_factory.mktemp("all")
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        for task, make in MAKERS.items():
            folder, data = root / "checkpoints" / NAMED[task]["name"], root / f"{task}-data"
            data.mkdir()
            loaded = make(folder, data)
            named = Dataset(DATA[task], loaded.train, loaded.dev, loaded.test, loaded.fingerprint, True, ())
            patch.setattr(public_data, "load", lambda name, folder=None, named=named: named)
            evaluate.evaluate(folder, data, dataset=DATA[task], plan=PLAN)
            made[task] = folder
    return made


def front(folder: Path) -> ModelCard:
    return ModelCard(card.render(folder))


@pytest.mark.parametrize("task", MAKERS)
def test_the_hub_reads_the_front_matter_and_finds_the_measured_figures(folders: dict[str, Path], task: str) -> None:
    metrics = json.loads((folders[task] / "metrics.json").read_text())
    results = front(folders[task]).data.eval_results
    assert results
    known = {
        (headlines.place(metrics, one.test), one.column.hub): one.value for one in headlines.every(metrics) if one.test != "mean"
    }
    assert {(result.dataset_name, result.metric_type): result.metric_value for result in results} == known
    assert len(results) == len(known) and {result.dataset_split for result in results} == {"test"}


def test_licences_and_languages_are_those_the_hub_knows(folders: dict[str, Path]) -> None:
    data = {task: front(folder).data for task, folder in folders.items()}
    assert (data["translate"].language, data["translate"].license) == (["de", "en"], "cc-by-2.0")
    assert data["transliterate"].language == ["hi", "ta"]
    assert (data["caption"].license, data["caption"].license_name) == ("other", "research-use-only")
    assert data["complete"].pipeline_tag == "text-generation"
    assert card.languages({"source_language": "en-Latn", "languages": ["hi"], "target_language": "hi"}) == ["hi"]
    assert card.languages({"source_language": "c", "target_language": "c"}) == ["code"]


@pytest.mark.parametrize("task", MAKERS)
def test_a_card_has_its_sections_and_every_table_is_rectangular(folders: dict[str, Path], task: str) -> None:
    written = card.render(folders[task])
    assert re.findall(r"^## (.*)$", written, re.MULTILINE) == ["Load it", "Figures", "Data and licences", "Limits", "Papers"]
    for block in re.findall(r"(?:^\|.*\n)+", written, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}
        assert len(widths) == 1, block


def test_the_figures_in_the_text_are_those_of_the_file(folders: dict[str, Path]) -> None:
    metrics = {task: json.loads((folder / "metrics.json").read_text()) for task, folder in folders.items()}
    assert f"| {metrics['translate']['tests']['tatoeba']['beam']['chrf']:.1f} |" in card.render(folders["translate"])
    assert "mean of 2 languages" in card.render(folders["transliterate"])
    assert f"**{metrics['caption']['pointing']['word']:.1f} %**" in card.render(folders["caption"])
    assert f"{metrics['complete']['text']['nats_per_character']:.3f} nats" in card.render(folders["complete"])
    unit = metrics["complete"]["units"]["quotation"]
    assert f"| quotation | {unit['layer'] + 1} | {unit['unit']} | AUC | {unit['dev']:.3f} |" in card.render(folders["complete"])
    assert "python -m training evaluate checkpoints/t" in card.render(folders["translate"])


@pytest.mark.parametrize("task", ["translate", "transliterate", "complete"])
def test_the_lines_that_load_it_run(
    folders: dict[str, Path], task: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(folders[task].parent))
    (code,) = re.findall(r"```python\n(.*?)```", card.render(folders[task]), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 4
    code = code.replace("namaste", "abc").replace("Das gefällt mir", "das").replace('"The "', '"I "')
    exec(compile(code, "card", "exec"), {})
    assert capsys.readouterr().out


def test_what_was_tried_and_does_not_ship_has_its_rows(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "c"
    shutil.copytree(folders["caption"], folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    tried = {test: {search: found[search] for search in ("greedy", "beam")} for test, found in metrics["tests"].items()}
    metrics["beside"] = [{"name": "c-once", "about": "Another way.", "weights": "0" * 64, "tests": tried}]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    write_manifest(folder)
    written = card.render(folder)
    assert (
        written.count("| c-once |") == 2 and "c-once: Another way. From `python -m training fit c-once`; its weights" in written
    )


def lesson(folders: dict[str, Path], root: Path, name: str, bleu: float) -> Path:
    """A translator's folder by the name of a shipped one, with enough inputs of three lengths."""
    folder = root / name
    shutil.copytree(folders["translate"], folder)
    for file in ("config.json", "metrics.json"):
        content = {**json.loads((folder / file).read_text()), "name": name}
        if file == "config.json":
            content["model"]["decoder"] = "context-each" if name.endswith("plain") else "attend-after"
        else:
            content["tests"] = {"multi30k": content["tests"]["multi30k"]}
            lengths = [(1, 5, 30, bleu), (6, 10, 1_200, bleu + 2), (11, 15, 19, 1.0), (16, None, 20, bleu - 9)]
            content["tests"]["multi30k"]["by_length"] = [
                {"unit": "words", "from": low, "to": high, "inputs": inputs, "bleu": value}
                for low, high, inputs, value in lengths
            ]
        (folder / file).write_text(json.dumps(content))
    write_manifest(folder)
    return folder


def test_models_of_one_lesson_stand_beside_each_other(folders: dict[str, Path], tmp_path: Path) -> None:
    plain, attending = (lesson(folders, tmp_path, f"translator-de-en{end}", bleu) for end, bleu in (("-plain", 20.0), ("", 30.0)))
    written = card.render(plain)
    assert "| translator-de-en | " in written and "| translator-de-en-plain | " in written
    assert "alike in everything but the model:" in written
    assert (
        "By earlier versions of these recipes, which may have differed in more: translator-de-en, translator-de-en-plain."
        in written
    )
    assert "| Multi30k test_2016_flickr: inputs | 30 | 1,200 | 19 | 20 |" in written
    assert "| Multi30k test_2016_flickr | 20.0 | 22.0 |  | 11.0 |" in written
    assert "| Multi30k test_2016_flickr: translator-de-en | 30.0 | 32.0 |  | 21.0 |" in written
    fall = "BLEU falls from {} at 6-10 words to {} at 16+ (Multi30k test_2016_flickr)"
    assert f"{fall.format('22.0', '11.0')}: one vector has to hold the whole source." in written
    assert f"{fall.format('32.0', '21.0')}.\n" in card.render(attending)
    assert "learnt the same" not in card.render(folders["translate"])


def test_a_transformer_attends_too(folders: dict[str, Path], tmp_path: Path) -> None:
    """Its picture is of the mean of its heads, and no one vector is to blame for what it loses with length."""
    shape = {"decoder": "transformer", "features": 0, "embedding": 8, "attention_heads": 2, "feed_forward": 8}
    config = ModelConfig(len(TAGGED), source_vocabulary=len(TAGGED), **shape)  # type: ignore[arg-type]
    name = {**NAMED["transliterate"], "task": "transliterate"}
    folder = checkpoints.save(tmp_path / "s", Transformer(config).eval(), name, TAGGED, TAGGED)
    assert [path.name for path in card.draw_pictures(folder)] == ["alignment.png"]
    beside, metrics = card.read(lesson(folders, tmp_path, "translator-de-en", 30.0))
    (told,) = card.by_length_limit({**beside, "model": card.read(folder)[0]["model"]}, metrics)
    assert told.endswith("(Multi30k test_2016_flickr).")


def test_a_card_tells_what_a_decoder_looks_at() -> None:
    shape: dict[str, Any] = {"target_vocabulary": 9, "source_vocabulary": 9, "score": "additive"}
    soft, hard = (card.shape(ModelConfig(**shape, hard=hard).to_json())[1] for hard in (False, True))
    assert "attends to the source after each step (additive score)" in soft and soft.removesuffix(".") in hard
    assert "one position for each piece, the likeliest" in hard and "one position" not in soft


def test_a_card_tells_whether_its_recipe_is_the_present_one(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = lesson(folders, tmp_path, "translator-de-en", 30.0)
    assert "Trained by an earlier version of the recipe behind `python -m training fit translator-de-en`" in card.render(folder)
    config = json.loads((folder / "config.json").read_text())
    config["trained_on"] = {"data": "multi30k+tatoeba", "changes": ["epochs=2"], "fingerprint": "0" * 64, "verified": True}
    (folder / "config.json").write_text(json.dumps(config))
    assert "Trained by `python -m training fit translator-de-en --set epochs=2`." in card.render(folder)
    lesson(folders, tmp_path, "translator-de-en-plain", 20.0)
    assert "which may have differed in more: translator-de-en-plain." in card.render(folder)


def test_quality_by_beam_of_many_languages_is_their_mean() -> None:
    rows = {"hi": [(1, 40.0), (5, 50.0)], "ta": [(1, 60.0), (5, 61.0)]}
    tests = {
        name: {"by_beam": [{"size": size, "inputs": 600, "top1": value} for size, value in found]} for name, found in rows.items()
    }
    written = card_figures.by_beam({"task": "transliterate", "split": "test", "tests": tests, "mean": {}})
    assert written.splitlines()[-1] == "| mean of 2 languages | 1,200 | 50.0 | 55.5 |"


def test_where_the_boxes_are_not_at_hand_the_pointing_figures_of_the_same_bytes_stay(folders: dict[str, Path]) -> None:
    files = json.loads((folders["caption"] / "metrics.json").read_text())["files"]
    kept = evaluate.still_true(folders["caption"], "pointing", {"files": files})
    assert kept and kept["phrases"] == 1
    assert evaluate.still_true(folders["caption"], "pointing", {"files": {**files, "config.json": "0"}}) is None
    assert evaluate.still_true(folders["caption"].parent, "pointing", {"files": files}) is None


def test_a_published_card_says_how_to_load_it_from_there(folders: dict[str, Path]) -> None:
    written = card.render(folders["translate"])
    assert 'From the Hub: `load("somebody/seqdemo-t")`.' in written
    published = card.published_as(written, "me/mine")
    assert 'From the Hub: `load("me/mine")`.' in published and 'translator = load("me/mine")\n' in published
    assert set(re.findall(r'load\("([^"]*)"\)', published)) == {"me/mine"}
    assert card.published_as('# mine\n\nload("other")', "me/mine") == '# mine\n\nload("other")'


@pytest.mark.parametrize("folder", table.checkpoints_in(ROOT / "checkpoints"), ids=lambda folder: folder.name)
def test_a_shipped_card_has_no_inner_names(folder: Path) -> None:
    """Neither of cells nor of figures; a data set has one name, the Hub's where there is one."""
    text = (folder / "README.md").read_text("utf-8")
    assert not re.search(r"^- lstm-b$|\| (top1|bleu4?|nats) \|", text, re.MULTILINE)
    data = ModelCard(text).data
    named = {result.dataset_type for result in data.eval_results}
    assert not {name.rpartition("/")[2] for name in data.datasets or ()} & {name for name in named if "/" not in name}


def test_the_search_is_named_with_what_it_divides_by() -> None:
    options = {"beam": 5, "length_norm": "power", "alpha": 0.4}
    assert headlines.search_name({"options": options}) == "beam 5, log p / n^0.4"
    assert headlines.search_name({"options": {"beam": 5, "length_norm": "gnmt"}}) == "beam 5, log p / ((5 + n) / 6)^1"
    assert headlines.search_name({"options": {"beam": 10}}) == "beam 10"


@pytest.mark.parametrize(
    ("task", "test", "on_test", "on_dev"),
    [
        ("translate", "multi30k", "Multi30k test_2016_flickr", "Multi30k dev"),
        ("translate", "tatoeba", "Tatoeba test", "Tatoeba dev"),
        ("caption", "flickr8k", "Flickr8k test", "Flickr8k dev"),
        ("transliterate", "hi", "Dakshina Hindi test", "Dakshina Hindi dev"),
        ("transliterate", "reverse", "reverse", "reverse dev"),
        ("transliterate", "mean", "mean of 2 languages", "mean of 2 languages, dev"),
        ("complete", "war-and-peace", "last 10 % of war-and-peace", "last but one 10 % of war-and-peace"),
    ],
)
def test_a_figure_names_the_split_it_was_measured_on(task: str, test: str, on_test: str, on_dev: str) -> None:
    for split, named in (("test", on_test), ("dev", on_dev)):
        assert headlines.place({"task": task, "split": split, "tests": {"hi": {}, "ta": {}}}, test) == named


def test_figures_on_other_data_are_said_to_be_so_and_not_indexed(folders: dict[str, Path], tmp_path: Path) -> None:
    for name in ("config.json", "metrics.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folders["translate"] / name).read_bytes())
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    metrics["data"] |= {"verified": False, "refusal": "These are other data."}
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    assert "**These are other data.**" in card.render(tmp_path)
    assert not front(tmp_path).data.eval_results
    assert "other data" in table.models_table([tmp_path])


@pytest.mark.parametrize("task", MAKERS)
def test_a_card_says_what_the_hub_asks_for(folders: dict[str, Path], task: str) -> None:
    """A pipeline that there is, data sets, papers, what it is not for, and a link into the playground."""
    data, text = front(folders[task]).data, card.render(folders[task])
    assert data.pipeline_tag in ("translation", "image-to-text", "text-generation")
    assert ("text2text-generation" in data.tags) == (task == "transliterate")
    named = {"translate": ["bentrevett/multi30k"], "transliterate": None, "caption": ["intro/flickr8k"], "complete": None}
    assert data.datasets == named[task]
    numbers = re.findall(r"\[arXiv:(\d+\.\d+)\]\(https://arxiv.org/abs/(\d+\.\d+)\)", text)
    assert numbers and all(shown == linked for shown, linked in numbers)
    assert "\nNot for " in text
    published = card.published_as(text.replace("./", ""), "you/yours")
    assert "somebody" not in published


def test_a_link_opens_the_playground_on_the_model(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folders["transliterate"]
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(folder.parent))
    text = card.render(folder)
    assert "(http://127.0.0.1:7860/transliterate#a.checkpoint=s&b.checkpoint=s)" in text
    assert "(http://127.0.0.1:7860/models#load=you/yours)" in card.published_as(text, "you/yours")
    monkeypatch.undo()
    beside = card.render(folder)
    assert "127.0.0.1" not in beside, "no page of the app can show a model of any folder"
    assert "(http://127.0.0.1:7860/models#load=you/yours)" in card.published_as(beside, "you/yours")


@pytest.mark.parametrize("task", MAKERS)
def test_pictures_are_drawn_and_shown_while_they_are_of_these_weights_and_figures(
    folders: dict[str, Path], tmp_path: Path, task: str
) -> None:
    folder = shutil.copytree(folders[task], tmp_path / folders[task].name)
    if task != "complete":
        metrics = json.loads((folder / "metrics.json").read_text())
        for found in metrics["tests"].values():
            key = headlines.MAIN[task][0]
            found["by_length"] = [{"unit": "words", "from": n, "to": n, "inputs": 99, key: 10.0 * n} for n in (1, 2, 3)]
        (folder / "metrics.json").write_text(json.dumps(metrics))
        write_manifest(folder)
    drawn = {path.name for path in card.draw_pictures(folder)}
    assert drawn == (set() if task == "complete" else {"alignment.png", "by_length.png"})
    for name in drawn:
        with Image.open(folder / name) as picture:
            assert picture.format == "PNG" and min(picture.size) > 100 and len(picture.getcolors() or []) > 3
        assert (folder / name).stat().st_size < 100_000 and f"]({name})" in card.render(folder)
    if drawn:
        (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes() + b"x")
        next(iter(metrics["tests"].values()))["by_length"][0][key] = 70.0
        (folder / "metrics.json").write_text(json.dumps(metrics))
        assert ".png" not in card.render(folder)


def test_a_card_is_current_until_the_figures_change(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "t"
    translator(folder, tmp_path)
    assert not card.is_current(folder) and "Not measured yet" in card.render(folder)
    card.write(folder)
    assert card.is_current(folder) and models.load(folder).card == card.render(folder)
    (folder / "metrics.json").write_bytes((folders["translate"] / "metrics.json").read_bytes())
    assert not card.is_current(folder)


def test_the_table_has_a_row_a_checkpoint_and_replaces_only_what_stands_between_its_marks(folders: dict[str, Path]) -> None:
    readme = "# a\n\n<!-- models: generated -->\nold\n<!-- models: end -->\n\nrest\n"
    written = table.with_table(readme, list(folders.values()))
    assert written.startswith("# a\n\n<!-- models: generated -->\n|") and written.endswith("\n<!-- models: end -->\n\nrest\n")
    assert "old" not in written and table.with_table(written, list(folders.values())) == written
    rows = [row for row in written.splitlines() if row.startswith("| [")]
    assert [re.match(r"\| \[(\w)\]\(checkpoints/\1/README.md\)", row) is not None for row in rows] == [True] * 4
    assert table.with_table(written, []) == "# a\n\n<!-- models: generated -->\n<!-- models: end -->\n\nrest\n"


@pytest.mark.parametrize("readme", ["", "<!-- models: begin -->\n", "<!-- models: end -->\n<!-- models: begin -->\n"])
def test_a_readme_without_the_marks_is_refused(readme: str) -> None:
    with pytest.raises(InputError, match="no place for the table"):
        table.with_table(readme, [])


def test_the_table_of_a_folder_of_checkpoints_is_written_and_checked(folders: dict[str, Path], tmp_path: Path) -> None:
    root = folders["translate"].parent
    readme = tmp_path / "README.md"
    readme.write_text("<!-- models: generated -->\n<!-- models: end -->\n")
    assert not table.is_current(readme, root)
    table.write_table(readme, root)
    assert table.is_current(readme, root)


def test_the_shipped_figures_are_of_the_shipped_bytes() -> None:
    for folder in table.checkpoints_in(ROOT / "checkpoints"):
        files = json.loads((folder / "metrics.json").read_text())["files"]
        assert files == evaluate.digests(models.load(folder)), f"python -m training evaluate checkpoints/{folder.name}"


def test_the_shipped_cards_and_the_readme_say_what_the_shipped_figures_say() -> None:
    shipped = table.checkpoints_in(ROOT / "checkpoints")
    assert [folder.name for folder in shipped if not card.is_current(folder)] == []
    assert table.is_current(ROOT / "README.md", ROOT / "checkpoints"), "run python -m training card"


@pytest.mark.parametrize("folder", table.checkpoints_in(ROOT / "checkpoints"), ids=lambda folder: folder.name)
def test_the_example_of_a_shipped_card_runs_in_a_clone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its pictures are those of the weights and figures beside it."""
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text("utf-8"), re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.strip()
    config, _ = card.read(folder)
    attends = config["model"]["decoder"].startswith(("attend", "transformer")) and config["task"] != "complete"
    shown = {name for name in ("alignment.png", "by_length.png") if f"]({name})" in (folder / "README.md").read_text("utf-8")}
    assert ("alignment.png" in shown) == attends, "run python -m training card"
    assert ("by_length.png" in shown) == (config["task"] in ("translate", "transliterate")), "run python -m training card"
    assert sum((folder / name).stat().st_size for name in shown) < 150_000
