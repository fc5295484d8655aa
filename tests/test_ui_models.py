"""What the pages offer: models and their sizes, examples, frozen results, models that visitors load."""

from __future__ import annotations

import gzip
import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seqdemo.config import CNN_NAMES, DECODER_NAMES, SCORE_NAMES, ModelConfig
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.network.cnn import EfficientNetLite
from seqdemo.ui import assets, pages
from seqdemo.ui.answers import Answers, visitor_models
from seqdemo.ui.cards import headline_of, language_title, looking_of
from seqdemo.ui.catalogue import Catalogue, opening, photographs
from seqdemo.ui.fields import TASKS
from seqdemo.ui.freeze import freeze
from seqdemo.ui.sizes import GRIDS, sizes
from tests.toy_app import ToyService, toy_app, write_cards


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    write_cards(tmp_path)
    return Answers(ToyService(), Catalogue(tmp_path), tmp_path / "uploads")  # type: ignore[arg-type]


def test_broken_and_absent_checkpoints_are_left_out(tmp_path: Path) -> None:
    write_cards(tmp_path)
    for name, text in {"a": "{", "b": "[]", "c": '{"name": "c"}', "d": '{"name": 3, "model": {"cell": "x"}}'}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    assert Catalogue(tmp_path).names("translate") == ["translator-de-en", "translator-de-en-plain"]
    assert Catalogue(tmp_path / "nowhere").cards == {}


def test_each_model_with_attention_knows_its_twin_without(tmp_path: Path) -> None:
    write_cards(tmp_path)
    cards = Catalogue(tmp_path).cards
    assert cards["translator-de-en"]["without"] == "translator-de-en-plain"
    assert cards["translator-de-en-plain"]["without"] == ""
    points = cards["translator-de-en"]["curves"][0]["points"]
    assert points[0]["label"] == "1–5" and points[0]["value"] == 30.0


def lesson(root: Path, name: str, metrics: dict[str, Any] | None = None, **model: Any) -> None:
    config = {
        "name": name,
        "task": "caption",
        "model": ModelConfig(9, encoder="image", cnn="efficientnet-lite0", **model).to_json(),
    }
    (root / name).mkdir(parents=True)
    (root / name / "config.json").write_text(json.dumps(config))
    (root / name / "metrics.json").write_text(json.dumps(metrics or {}))


def test_twins_are_told_apart_and_the_nearest_comes_first(tmp_path: Path) -> None:
    shapes = {"soft": {}, "hard": {"hard": True}, "before": {"decoder": "attend-before"}}
    shapes |= {"a-once": {"decoder": "context-once"}, "b-each": {"decoder": "context-each"}}
    for name, shape in shapes.items():
        lesson(tmp_path, name, **shape)  # type: ignore[arg-type]
    cards = Catalogue(tmp_path).cards
    assert {name: card["title"] for name, card in cards.items()} == {
        "soft": "LSTM, attention",
        "hard": "LSTM, hard attention",
        "before": "LSTM, attention before each step",
        "a-once": "LSTM, no attention, context once",
        "b-each": "LSTM, no attention, context each step",
    }
    assert {name for name, card in cards.items() if card["hard"]} == {"hard"}
    assert {cards[name]["without"] for name in ("soft", "hard", "before")} == {"b-each"}
    assert [cards[name]["with"] for name in ("a-once", "b-each", "soft")] == ["before", "before", ""]
    assert {card["name"] for card in Catalogue(tmp_path).setup("caption")["checkpoints"]} == set(shapes)


def test_models_that_ship_are_told_apart_by_their_titles(root: Path) -> None:
    cards = Catalogue(root / "checkpoints").cards.values()
    assert cards and len({(card["task"], card["title"]) for card in cards}) == len(cards)


def test_the_head_that_aligns_best_is_told_beside_the_map() -> None:
    heads = {"0.0": 30.0, "1.0": 99.25, "1.1": 50.0}
    assert looking_of({"looking": {"right": {"0": 91.0}, "words": 9, "heads": heads, "best_head": "1.0"}}) == {
        "words": 9,
        "right": {"0": 91.0},
        "best": {"name": "layer 2, head 1", "share": 99.25, "of": 3},
        "languages": {},
    }
    assert "best" not in (looking_of({"looking": {"right": {"0": 91.0}, "words": 9}}) or {})


def test_measured_units_stand_where_the_evaluation_writes_them(tmp_path: Path) -> None:
    write_cards(tmp_path)
    cards = Catalogue(tmp_path).cards
    assert set(cards["letters-english"]["units"]) == {"quotation"} and cards["letters-english"]["nats"] == 1.25
    assert cards["letters-english"]["headline"] == [["nats a character, text kept out of training", "1.250"]]
    assert cards["captioner"]["pointing"]["centre"] == 56.25


def test_of_many_test_sets_the_mean_the_best_and_the_worst_are_told() -> None:
    tests = {tag: {"beam": {"top1": value}} for tag, value in {"hi": 40.0, "ur": 20.0, "ta": 30.0, "bn": 50.0}.items()}
    assert headline_of({"tests": tests}) == [
        ["words right, mean of 4 test sets", "35.0 %"],
        ["words right, best: Bengali", "50.0 %"],
        ["words right, worst: Urdu", "20.0 %"],
    ]
    assert headline_of({"tests": {"hi": tests["hi"]}}) == [["words right, Hindi", "40.0 %"]]
    assert headline_of({"tests": {"multi30k": {"greedy": {"bleu": 30.0}}}}) == [["BLEU, Multi30k", "30.0"]]


def test_languages_are_named_in_words(tmp_path: Path) -> None:
    write_cards(tmp_path)
    setup = Catalogue(tmp_path).setup("transliterate")
    assert setup["languages"] == [["hi", "Hindi (Devanagari)"], ["ur", "Urdu (Arabic)"]]
    assert setup["start"]["language"] == "hi"
    assert language_title("bn") == "Bengali" and language_title("xx") == "xx"
    assert Catalogue(tmp_path).setup("translate")["languages"] == []


def test_a_frozen_result_of_another_model_or_question_is_not_shown(answers: Answers, tmp_path: Path) -> None:
    freeze(tmp_path, answers.service)
    for name, shown in (("README.md", True), ("metrics.json", True), ("model.safetensors", False)):
        manifest = {"files": {name: {"sha256": "0" * 64, "size": 1}}}
        (tmp_path / "letters-english" / "manifest.json").write_text(json.dumps(manifest))
        assert (Catalogue(tmp_path).frozen_answer("complete") is not None) == shown
        assert Catalogue(tmp_path).frozen_answer("translate") is not None


@pytest.mark.parametrize("task", TASKS)
def test_every_page_opens_with_a_worked_result_of_the_models_that_ship(root: Path, task: str) -> None:
    assert Catalogue(root / "checkpoints").frozen_answer(task) is not None, "run python -m seqdemo.ui.freeze"


def test_an_example_opens_with_the_model_it_was_mined_with(tmp_path: Path) -> None:
    write_cards(tmp_path)
    row = gallery_row("x", checkpoint="letters-of-code")
    (tmp_path / "gallery.json").write_text(json.dumps({"format": 1, "kinds": {}, "examples": {"complete": [row]}}))
    start = Catalogue(tmp_path).setup("complete")["start"]
    assert {column["checkpoint"] for column in start["columns"].values()} == {"letters-of-code"}


def test_example_photographs_name_their_authors() -> None:
    listed = photographs()
    assert len(listed) >= 6
    assert all("Photograph:" in row["credit"] and row["thumbnail"].startswith("data:image/webp") for row in listed)


def test_no_example_photograph_leads_out_of_its_folder(answers: Answers) -> None:
    for name in ("../service.py", "/etc/passwd", None, 3):
        with pytest.raises(InputError):
            answers.catalogue.example_photo(name)


COMBINATIONS = [
    *({"cell": cell, "decoder": decoder} for cell, decoder in product(EQUATIONS, DECODER_NAMES)),
    *({"score": score, "decoder": "attend-after", "decoder_hidden": 12} for score in SCORE_NAMES),
    {"decoder_layers": 2, "encoder_layers": 2, "bidirectional": False, "score": "additive"},
    {"features": 0, "share_embeddings": True},
    {"tie_readout": True, "features": 6},
    {"encoder": "image", "cnn": "efficientnet-lite0"},
    {"encoder": "image", "cnn": "efficientnet-lite2", "decoder": "context-each"},
    {"encoder": "image", "cnn": "efficientnet-lite2", "finer": True},
    {"encoder": "none"},
    {"encoder": "none", "features": 0, "decoder_layers": 3, "cell": "gru"},
    {"decoder": "transformer", "embedding": 8, "attention_heads": 2, "feed_forward": 12, "features": 0, "encoder_layers": 2},
    {
        "decoder": "transformer", "embedding": 8, "attention_heads": 2, "feed_forward": 12, "features": 0, "decoder_layers": 4,
        "share_embeddings": True, "tie_readout": True,
    },
    {"decoder": "single", "bidirectional": False, "encoder_hidden": 10},
    {"decoder": "single", "bidirectional": False, "encoder_hidden": 10, "cell": "gru", "encoder_layers": 2, "decoder_layers": 2},
]  # fmt: skip


@pytest.mark.parametrize("changes", COMBINATIONS, ids=lambda changes: "-".join(map(str, changes.values())))
def test_the_formulas_count_every_parameter(changes: dict[str, Any]) -> None:
    from seqdemo.network.model import LanguageModel, Seq2Seq
    from seqdemo.network.single import Single
    from seqdemo.network.transformer import Transformer

    small = {"target_vocabulary": 11, "source_vocabulary": 11, "embedding": 6, "encoder_hidden": 6, "decoder_hidden": 10}
    config = ModelConfig(**{**small, "attention": 7, "features": 8, **changes})  # type: ignore[arg-type]
    writer = LanguageModel if config.encoder == "none" else Seq2Seq
    model = (Transformer if config.is_transformer else Single if config.is_single else writer)(config)
    held = sum(parameter.numel() for name, parameter in model.named_parameters() if not name.startswith("encoder.cnn."))
    found = sizes(config)
    assert found["parameters"] == held
    for part in found["parts"]:
        if part["parameters"]:
            total = eval(part["filled"].replace(",", "").replace("·", "*"))
            assert total == part["parameters"], part


def test_grids_are_those_of_the_networks() -> None:
    for name, (side, channels, more) in GRIDS.items():
        plain, finer = EfficientNetLite(name), EfficientNetLite(name, finer=True)
        assert (plain.grid, plain.channels) == (side, channels) and (finer.grid, finer.channels) == (side, channels + more)
    assert set(GRIDS) == set(CNN_NAMES)


class Shelf:
    """Loads one model and reports progress; it has no other."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def visit(self, repo: str, revision: str | None, progress: Any, cancelled: Any) -> Any:
        if repo != "user/model":
            raise InputError("There is no repository of that name.")
        progress(5, 10)
        return SimpleNamespace(
            config=self.config, metrics={}, card="---\nx: 1\n---\n# Card <b>", summary="What it is.", revision="a" * 40
        )


def test_a_visitor_s_model_is_named_by_its_commit(answers: Answers, tmp_path: Path) -> None:
    config = json.loads((tmp_path / "translator-de-en" / "config.json").read_text())
    answers.service.visitors = lambda: Shelf(config)  # type: ignore[method-assign]
    told = list(pages.in_background(lambda progress, cancel: answers.load({"load": {"repo": " user/model "}}, progress, cancel)))
    loaded = told[-1]["loaded"]
    assert loaded["name"] == "user/model@" + "a" * 40 and loaded["task"] == "translate"
    assert loaded["card"] == "# Card <b>"
    assert visitor_models([loaded["name"], "user/model", "../x@" + "a" * 40, 5]) == [loaded["name"]]
    wrong = answers.load({"load": {"repo": "user/none"}}, lambda *_: None, lambda: False)
    assert wrong == {"error": "There is no repository of that name."}
    assert "error" in answers.load(None, lambda *_: None, lambda: False)


def test_a_download_tells_its_share() -> None:
    assert pages.download_sentence(2**20, 4 * 2**20) == {"progress": "1.0 of 4.0 MB…", "share": 0.25}
    assert "share" not in pages.download_sentence(5, 0)


def test_uploads_are_gone_within_the_hour(tmp_path: Path) -> None:
    app, _ = toy_app(tmp_path)
    every, age = app.delete_cache
    app.close()
    assert every + age < 3600


def test_what_a_page_opens_with_is_what_it_would_ask_for(answers: Answers, tmp_path: Path) -> None:
    freeze(tmp_path, answers.service)
    frozen = answers.catalogue.frozen_answer("translate")
    setup = answers.catalogue.setup("translate")
    told = answers.answer({"task": "translate", "input": {"text": setup["start"]["text"]}, "columns": setup["start"]["columns"]})
    for side, column in told["columns"].items():
        column.pop("took")
        assert json.loads(json.dumps(column)) == frozen["columns"][side]  # type: ignore[index]


def column(**options: Any) -> dict[str, Any]:
    return {"options": options, "edits": []}


def gallery_row(text: str, **more: Any) -> dict[str, Any]:
    columns = {"A": column(strategy="greedy"), "B": column(strategy="beam")}
    facts = {"kind": "k", "checkpoint": "translator-de-en", "shows": f"Shows {text}.", "outputs": {"A": "a", "B": "b"}}
    return {"text": text, "columns": columns, **facts, **more}


def test_mined_examples_bring_their_columns(tmp_path: Path) -> None:
    write_cards(tmp_path)
    wide = {"A": column(strategy="beam"), "B": column(strategy="beam", beam=50)}
    rows = [gallery_row("x" * 90), gallery_row("wide", columns=wide), gallery_row("short"), gallery_row("gone", checkpoint="no")]
    told = {"format": 1, "kinds": {"k": {"title": "Greedy loses"}}, "examples": {"translate": rows}}
    (tmp_path / "gallery.json").write_text(json.dumps(told))
    catalogue = Catalogue(tmp_path)
    examples = catalogue.examples("translate")
    assert [row["text"] for row in examples] == ["x" * 90, "wide", "short"] and examples[0]["title"] == "Greedy loses"
    start = catalogue.setup("translate")["start"]
    assert start["text"] == "x" * 90 and start["columns"]["A"]["options"]["strategy"] == "greedy"
    assert opening([gallery_row("wide", columns=wide)])["text"] == "wide" and opening([]) == {}


@pytest.mark.parametrize("task", ["translate", "transliterate", "caption", "complete"])
def test_a_first_visit_takes_160_kilobytes_and_a_second_20(task: str) -> None:
    """Of the project's own: scripts, sheet, worked result with its photograph, and what the page's document holds of ours."""
    catalogue = Catalogue(Path(__file__).parents[1] / "checkpoints")
    if not catalogue.names(task):
        pytest.skip("no model for this page is bundled")
    content = pages.content(catalogue, task)
    in_document = len(gzip.compress(json.dumps(content).encode(), 5))
    kept = [*assets.pages().values(), assets.served(content["frozen"])]
    assert all(kept), "a page opens with a worked result"
    assert in_document <= 20_000
    assert in_document + sum(len(assets.packed(asset, "br")) for asset in kept if asset) <= 160_000
