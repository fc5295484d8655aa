from __future__ import annotations

import hashlib
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, ModelConfig, SearchOptions, from_json
from seqdemo.edits import AttentionRow, edit_from_json
from seqdemo.errors import InputError
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.playground import run
from seqdemo.records import Certificate, Hypothesis, Trace
from seqdemo.search import SearchResult
from seqdemo.text import Characters, Words
from tests.small_models import LETTERS, learn
from training import data as public_data
from training.data import credits
from training.data.records import Dataset, Example, Split
from training.publish import gallery, gallery_kinds, gallery_openings
from training.publish.photographs import read_photographs

WORDS = Words.train(["a dog runs on the grass and barks"])
SMALL = {"embedding": 6, "encoder_hidden": 5, "decoder_hidden": 7, "attention": 4, "features": 6}
PHOTOGRAPHS = Path(__file__).resolve().parents[1] / "seqdemo" / "ui" / "photos"
BUDGET = gallery.Budget(inputs=16, per_kind=2)


def eager(model: torch.nn.Module) -> torch.nn.Module:
    """An untrained model that has opinions, and ends soon."""
    with torch.no_grad():
        model.readout.weight.mul_(6)  # type: ignore[union-attr, operator]
        model.readout.b[EOS] = 2.0  # type: ignore[union-attr, index]
    return model.eval()


@pytest.fixture(scope="module")
def speller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has half learnt to turn strings of two to four letters round: every kind of failure is near."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = {"embedding": 12, "encoder_hidden": 16, "decoder_hidden": 24, "attention": 16, "features": 16}
    model = Seq2Seq(ModelConfig(len(LETTERS), source_vocabulary=len(LETTERS), **sizes))  # type: ignore[arg-type]
    learn(model, lambda source_BS: source_BS.flip(1), steps=90, rate=0.01, rows=32)
    config = {"name": "transliterator-hi-attention", "task": "transliterate"}
    folder = tmp_path_factory.mktemp("alone") / "speller"  # mining looks for its neighbours
    return checkpoints.save(folder, model, config, LETTERS, LETTERS)


def spelled(count: int = 16) -> list[Example]:
    chance = random.Random(9)
    words = dict.fromkeys("".join(chance.choices("abcd", k=chance.randint(3, 6))) for _ in range(2 * count))
    return [Example(word, (word[::-1],), "", None, "dakshina") for word in list(words)[:count]]


def serve(monkeypatch: pytest.MonkeyPatch, examples: list[Example], test: list[Example] | None = None) -> None:
    dataset = Dataset("small", Split([]), Split(examples), Split(test or []), "0" * 64, True, ())
    monkeypatch.setattr(public_data, "load", lambda name, data=None: dataset)


@pytest.fixture(scope="module")
def mined(speller: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        serve(patch, spelled())
        return gallery.mine([speller], out=speller.parent / "gallery.json", budget=BUDGET)


def test_the_file_holds_what_is_returned_and_mining_twice_gives_the_same(
    speller: Path, mined: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads((speller.parent / "gallery.json").read_text()) == mined
    serve(monkeypatch, spelled())
    assert gallery.mine([speller], budget=BUDGET) == mined


def test_every_kind_says_how_many_inputs_were_searched_and_how_many_show_it(mined: dict[str, Any]) -> None:
    assert set(mined["kinds"]) == {name for name, kind in gallery.KINDS.items() if "transliterate" in kind.tasks}
    name = "transliterator-hi-attention"
    kept = {kind: [row for row in mined["examples"]["transliterate"] if row["kind"] == kind] for kind in mined["kinds"]}
    for kind, count in mined["kinds"].items():
        assert count["searched"][name] == 16 and count["found"][name] <= 16
        assert len(kept[kind]) <= min(2, count["found"][name])
    assert kept["greedy-beam"] and kept["attention-off"] and kept["attention-row"], "this toy shows at least these"
    texts = [row["text"] for rows in kept.values() for row in rows]
    assert len(texts) == len(set(texts)), "one input shows one thing"


def test_a_neighbour_that_is_no_whole_checkpoint_is_passed_over(speller: Path) -> None:
    begun = speller.parent / "begun"
    begun.mkdir()
    (begun / "config.json").write_text("{}")
    assert gallery_openings.twin_of(models.load(speller)) is None


def test_an_example_decodes_again_to_the_outputs_it_names(speller: Path, mined: dict[str, Any]) -> None:
    checkpoint = models.load(speller)
    for row in mined["examples"]["transliterate"]:
        for side, column in row["columns"].items():
            edits = tuple(edit_from_json(edit) for edit in column["edits"])
            again = run(checkpoint, row["text"], from_json(SearchOptions, column["options"]), edits)
            assert again.texts[0] == row["outputs"][side]
            assert again.hypotheses[0].total == pytest.approx(row["logps"][side], abs=1e-3)


def test_captions_are_made_of_the_numbers_of_the_two_runs(mined: dict[str, Any]) -> None:
    rows = {row["kind"]: row for row in mined["examples"]["transliterate"]}
    greedy, flip, off = rows["greedy-beam"], rows["attention-row"], rows["attention-off"]
    assert gallery_kinds.times(greedy["logps"]["B"] - greedy["logps"]["A"]) in greedy["shows"]
    assert f"“{flip['outputs']['A']}” becomes “{flip['outputs']['B']}”" in flip["shows"]
    assert sum(a != b for a, b in zip(flip["outputs"]["A"], flip["outputs"]["B"])) == 1
    assert off["outputs"]["A"] == off["text"][::-1] != off["outputs"]["B"]


@pytest.mark.parametrize(
    "nats, words", [(0.0, "1.00 times"), (0.5, "1.65 times"), (1.1, "3.0 times"), (5.0, "148 times"), (23.03, "10¹⁰ times")]
)
def test_ratios_are_said_in_as_many_digits_as_they_deserve(nats: float, words: str) -> None:
    assert gallery_kinds.times(nats) == words
    if "¹" not in words:
        assert float(words.split()[0].replace(",", "")) == pytest.approx(math.exp(nats), rel=0.02)


def test_only_dev_data_that_may_be_passed_on_is_searched(speller: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = models.load(speller)
    free = spelled(6)
    closed = [Example(word, ("a",), "", None, origin) for word, origin in (("aaaa", "multi30k"), ("bbbb", "aksharantar"))]
    serve(monkeypatch, [*free, *closed], test=[Example("cccc", ("c",), "", None, "dakshina")])
    assert gallery.inputs_of(checkpoint, None, {}) == free
    assert set(credits(gallery.FREE)) == {"tatoeba", "dakshina", "war-and-peace"}


def test_the_best_few_are_taken_in_turn_from_each_group() -> None:
    def hit(weight: float, group: str) -> gallery_kinds.Hit:
        case = gallery_kinds.Case(Example(f"{weight}", ()), None)  # type: ignore[arg-type]
        return gallery_kinds.Hit(
            case, weight, group, gallery_kinds.Column(SearchOptions()), gallery_kinds.Column(SearchOptions())
        )

    hits = [hit(9, "empty"), hit(8, "empty"), hit(7, "empty"), hit(3, "short"), hit(1, "long")]
    assert [h.weight for h in gallery.best_few(hits, 4)] == [9, 3, 1, 8]
    assert [h.weight for h in gallery.best_few(hits, 9)] == [9, 3, 1, 8, 7]


def said(text: Characters | Words, words: str, task: str) -> tuple[Checkpoint, Hypothesis]:
    ids = (*text.encode(words).ids, EOS)
    logps = tuple(-0.1 * (len(ids) - i) for i in range(len(ids)))
    return Checkpoint("toy", task, torch.nn.Identity(), None, text, {}), Hypothesis(ids, logps, sum(logps), sum(logps), True)


def told(**outputs: tuple[str, float, bool]) -> tuple[Checkpoint, list[gallery_kinds.Case], gallery_kinds.Find]:
    """A search that answers as it is told: for greedy, beam, large, exact and off a text, its total and whether it is proved."""
    asked = {
        gallery_kinds.GREEDY: "greedy",
        gallery_kinds.BEAM: "beam",
        gallery_kinds.LARGE: "large",
        gallery_kinds.EXACT: "exact",
    }

    def find(cases: Any, options: SearchOptions, edits: Any = ()) -> list[SearchResult]:
        text, total, proved = outputs["off" if edits else asked[options]]
        ids = (*LETTERS.encode(text).ids, EOS)
        certificate = Certificate(proved, 1, total, -9.0, "", 0.0) if options is gallery_kinds.EXACT else None
        return [SearchResult(None, (Hypothesis(ids, (total,), total, total, True),), certificate)]  # type: ignore[arg-type]

    model = Seq2Seq(ModelConfig(len(LETTERS), source_vocabulary=len(LETTERS), **SMALL)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        model.readout.weight.zero_()  # to the untouched model every piece is as likely as any: an eighth
    checkpoint = Checkpoint("toy", "transliterate", model, LETTERS, LETTERS, {})
    return checkpoint, [gallery_kinds.Case(Example("abc", ("abc", "abd")), run_prompt("abc"))], find


@pytest.mark.parametrize(
    "kind, first, second, hit",
    [
        ("greedy-beam", {"greedy": ("abd", -3.0, False)}, {"beam": ("abc", -2.0, False)}, True),
        ("greedy-beam", {"greedy": ("abd", -2.0, False)}, {"beam": ("abd", -2.0, False)}, False),
        ("beam-optimum", {"beam": ("abc", -3.0, False)}, {"exact": ("", -2.0, True)}, True),
        ("beam-optimum", {"beam": ("abc", -3.0, False)}, {"exact": ("", -2.0, False)}, False),
        ("beam-optimum", {"beam": ("abc", -2.0, False)}, {"exact": ("abc", -2.0, True)}, False),
        ("larger-beam", {"beam": ("abc", -3.0, False)}, {"large": ("aab", -2.0, False)}, True),
        ("larger-beam", {"beam": ("abc", -3.0, False)}, {"large": ("abd", -2.0, False)}, False),
        ("larger-beam", {"beam": ("aab", -3.0, False)}, {"large": ("abc", -2.0, False)}, False),
        ("attention-off", {"beam": ("abc", -2.0, False)}, {"off": ("c", -4.0, False)}, True),
        ("attention-off", {"beam": ("ab", -2.0, False)}, {"off": ("c", -4.0, False)}, False),
        ("attention-off", {"beam": ("abc", -5.0, False)}, {"off": ("c", -9.0, False)}, False),
        ("repetition", {"greedy": ("dcbcbcb", -2.0, False)}, {}, True),
        ("repetition", {"greedy": ("dcbcb", -2.0, False)}, {}, False),
    ],
)
def test_a_kind_is_found_where_it_is_and_nowhere_else(kind: str, first: dict, second: dict, hit: bool) -> None:
    hits = gallery.KINDS[kind].search(*told(**first, **second))
    assert bool(hits) == hit


def test_a_loop_is_a_phrase_three_times_in_a_row_with_its_first_and_last_probability() -> None:
    checkpoint, found = said(WORDS, "a dog runs a dog runs a dog runs on", "caption")
    loop = gallery_kinds.loop_in(checkpoint, found)
    assert loop is not None and (loop.phrase, loop.turns) == ("a dog runs", 3)
    assert loop.first == pytest.approx(math.exp(-(1.1 + 1.0 + 0.9) / 3)), "the mean over its pieces, of 11 with the end"
    assert loop.last == pytest.approx(math.exp(-(0.5 + 0.4 + 0.3) / 3))
    assert gallery_kinds.loop_in(*said(WORDS, "a dog runs a dog runs on", "caption")) is None
    assert gallery_kinds.loop_in(*said(WORDS, "a dog barks and a dog runs and a dog", "caption")) is None


def test_letters_loop_in_a_transliteration() -> None:
    loop = gallery_kinds.loop_in(*said(LETTERS, "dababab", "transliterate"))
    assert loop is not None and (loop.phrase, loop.turns) == ("ab", 3)


@pytest.mark.parametrize(
    "old, new, pair",
    [
        ("a dog runs", "a cat runs", ("dog", "cat")),
        ("a dog runs", "a dog runs", None),
        ("a dog runs", "the cat runs", None),
        ("a dog runs", "a dog", None),
    ],
)
def test_a_flip_changes_one_word_and_nothing_else(old: str, new: str, pair: tuple[str, str] | None) -> None:
    assert gallery_kinds.flipped(Checkpoint("toy", "translate", torch.nn.Identity(), None, WORDS, {}), old, new) == pair


def test_rows_are_tried_once_for_every_word_and_state() -> None:
    checkpoint, found = said(LETTERS, "abc", "transliterate")
    case = gallery_kinds.Case(Example("ab", ()), run_prompt("ab"))
    rows = list(gallery_kinds.rows_tried(checkpoint, case, found))
    assert [(row.position, row.weights.index(1.0)) for row in rows] == [(t, j) for t in range(3) for j in range(2)]
    assert all(isinstance(row, AttentionRow) and sum(row.weights) == 1 for row in rows)


def run_prompt(text: str) -> Any:
    from seqdemo.prompts import Prompt

    pieces = LETTERS.encode(text)
    return Prompt(pieces, pieces.ids, 10)


def test_photographs_and_passages_are_searched_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    sizes = {**SMALL, "encoder": "image", "cnn": "efficientnet-lite0", "decoder": "attend-after"}
    model = eager(Seq2Seq(ModelConfig(len(WORDS), **sizes)))  # type: ignore[arg-type]
    monkeypatch.setattr(gallery_kinds, "MOST_CELLS", 4)
    captioner = checkpoints.save(tmp_path / "captioner", model, {"name": "captioner", "task": "caption"}, None, WORDS)
    for colour in ("red", "green"):
        Image.new("RGB", (60, 40), colour).save(tmp_path / f"{colour}.jpg")
    facts = {"title": "A dog on grass", "names": ["dog"], "box": [0, 0, 1, 1], "scene": ["grass"]}
    (tmp_path / "credits.json").write_text(json.dumps([{"file": f"{colour}.jpg", **facts} for colour in ("red", "green")]))
    book = "When Prince Andrew came into the room he saw that nobody there was likely to speak first, and so he did.\n\n" * 4
    text = Characters.train([book], keep_space=True)
    model = eager(LanguageModel(ModelConfig(len(text), encoder="none", embedding=6, decoder_hidden=12, features=0)))  # type: ignore[assignment]
    writer = checkpoints.save(tmp_path / "lm", model, {"name": "lm-tolstoy", "task": "complete"}, None, text)
    serve(monkeypatch, [Example("", (book * 2 + "Too short.\n\n",), "", None, "war-and-peace")])
    found = gallery.mine([captioner, writer], None, tmp_path, budget=BUDGET)
    assert {row["photo"] for row in found["examples"]["caption"]} <= {"red.jpg", "green.jpg"}
    assert "larger-beam" not in {row["kind"] for row in found["examples"]["caption"]}, "nothing says which caption is worse"
    for row in found["examples"]["complete"]:
        assert book.startswith(row["text"].rstrip()) and 40 <= len(row["text"]) < 60 and row["text"].endswith(" ")
        assert row["outputs"]["A"].startswith(row["text"])
        assert book.startswith(row["text"] + row["references"][0])
    assert all(row["references"] == ["A dog on grass"] for row in found["examples"]["caption"])


def test_photographs_are_named_with_their_facts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="^There is no credits.json in .* Name the folder of photographs with --photographs"):
        read_photographs(tmp_path)
    with pytest.raises(InputError, match="^Name the folder of photographs with --photographs; it must hold credits.json"):
        read_photographs(None)
    for name, photo in read_photographs(PHOTOGRAPHS).items():
        left, top, right, bottom = photo.box
        assert name.is_file() and photo.title and photo.names and 0 <= left < right <= 1 and 0 <= top < bottom <= 1


def shown(rows: list[list[float]]) -> Trace:
    tokens = (*range(4, 4 + len(rows) - 1), EOS)
    none = np.zeros(len(rows))
    return Trace((), (), tokens, none, none, none, (), {"decoder.0.cross.0": np.array(rows)})


FORWARDS = [[0.8, 0.1, 0.1, 0.0], [0.2, 0.6, 0.1, 0.1], [0.0, 0.1, 0.9, 0.0], [0.0, 0.0, 0.1, 0.9], [0.4, 0.3, 0.2, 0.1]]


@pytest.mark.parametrize(
    "changed, followed",
    [
        ({}, True),
        ({0: [0.1, 0.8, 0.1, 0.0]}, False),  # does not begin at the first letter
        ({2: [0.9, 0.1, 0.0, 0.0]}, False),  # goes back
        ({1: [0.4, 0.45, 0.15, 0.0]}, False),  # is in doubt
        ({3: [0.0, 0.9, 0.1, 0.0], 2: [0.0, 0.9, 0.1, 0.0]}, False),  # never comes to the end
    ],
)
def test_a_spelling_can_be_followed_when_it_goes_forwards_in_no_doubt(changed: dict[int, list[float]], followed: bool) -> None:
    rows = [changed.get(place, row) for place, row in enumerate(FORWARDS)]
    assert gallery_openings.followed(shown(rows)) is followed


def test_a_quotation_goes_on_for_three_words() -> None:
    said = '"Well, Prince, so Genoa is now a family estate," said Anna Pavlovna to him in French.'
    assert list(gallery_openings.quoted_passages(said)) == [
        '"Well, Prince, so Genoa is now a family estate," said Anna Pavlovna '
    ]
    assert not list(gallery_openings.quoted_passages(said[1:])) and not list(
        gallery_openings.quoted_passages('"Well," said he to me.')
    )


def test_beam_writes_what_a_person_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, cases, find = told(greedy=("abd", -3.0, False), beam=("abc", -2.0, False))
    wanted = [case._replace(example=case.example._replace(source="abcd", references=("abc",))) for case in cases]
    (hit,) = gallery_openings.written_by_beam(checkpoint, wanted, find)
    assert hit.weight == pytest.approx(1.0)
    both = [case._replace(example=case.example._replace(source="abcd", references=("abc", "abd"))) for case in cases]
    assert gallery_openings.written_by_beam(checkpoint, both, find) == []


def test_every_kind_states_its_rule() -> None:
    assert all(len(kind.criterion) > 40 and kind.criterion.endswith(".") for kind in gallery.KINDS.values())


def test_the_shipped_gallery_is_of_the_shipped_weights_and_tells_its_numbers(root: Path) -> None:
    told = json.loads((root / "checkpoints/gallery.json").read_text("utf-8"))
    for name, digest in told["checkpoints"].items():
        weights = (root / "checkpoints" / name / "model.safetensors").read_bytes()
        assert hashlib.sha256(weights).hexdigest() == digest, "mine it again: python -m training gallery --help"
    rows = [row for rows in told["examples"].values() for row in rows]
    compared = [row for row in rows if row["kind"] in ("greedy-beam", "beam-optimum", "larger-beam")]
    assert len(compared) >= 15
    for row in compared:
        gaps = (row["logps"]["B"] - row["logps"]["A"] + rounding for rounding in (0, 1e-4, -1e-4))
        assert any(gallery_kinds.times(gap) in row["shows"] for gap in gaps), row["shows"]


def test_a_gallery_without_examples_replaces_none(speller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, [])
    out = tmp_path / "gallery.json"
    out.write_text("examples")
    with pytest.raises(InputError, match="No example was found to show, so .*gallery.json is left as it was"):
        gallery.mine([speller], out=out, budget=BUDGET)
    assert out.read_text() == "examples"
