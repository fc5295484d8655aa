from __future__ import annotations

import itertools
import json
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.config import PAD
from seqdemo.errors import InputError
from seqdemo.network.model import Seq2Seq, Taught
from seqdemo.network.transformer import Transformer
from seqdemo.text import SPACE_MARK, Subwords
from tests.tiny import completer, sentences, translator, transliterator
from training import __main__ as command_line
from training import data as public_data
from training.data.records import Dataset, Example, Split
from training.data.transliteration import LANGUAGES
from training.measure import evaluate, looking, looks, silver
from training.measure.spellings import Span, plain, spellings
from training.publish import card

SCRIPTS = {
    "bn": "BENGALI", "gu": "GUJARATI", "hi": "DEVANAGARI", "kn": "KANNADA", "ml": "MALAYALAM", "mr": "DEVANAGARI",
    "pa": "GURMUKHI", "sd": "ARABIC", "si": "SINHALA", "ta": "TAMIL", "te": "TELUGU", "ur": "ARABIC",
}  # fmt: skip
WORDS = [Example("mila", ("मिला",), "hi"), Example("pani", ("पनी", "पानी"), "hi"), Example("para", ("پارا",), "ur")]


@pytest.mark.parametrize(
    ("sign", "language", "wanted"),
    [
        ("क", "hi", ("k", "c")),
        ("ঘ", "bn", ("gh",)),
        ("ੀ", "pa", ("i", "ee", "ii")),
        ("அ", "ta", ("a",)),
        ("ං", "si", ("n", "m")),
        ("ඛ", "si", ("kh",)),
        ("ශ", "si", ("sh",)),
        ("ස", "si", ("s",)),
        ("ෙ", "si", ("e",)),
        ("پ", "ur", ("p",)),
        ("ک", "ur", ("k",)),
        ("ک", "sd", ("kh",)),
        ("ڪ", "sd", ("k",)),
        ("्", "hi", ()),
        ("़", "hi", ()),
        ("ർ", "ml", ()),
        ("ع", "ur", ()),
        ("ඟ", "si", ()),
        ("x", "hi", ()),
        ("\n", "hi", ()),
    ],
)
def test_a_sign_is_spelt_as_its_name_says(sign: str, language: str, wanted: tuple[str, ...]) -> None:
    assert spellings(sign, language) == wanted


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_signs_of_one_or_two_letters(language: str) -> None:
    script = map(chr, range(0x600, 0xE00))
    found = [spellings(sign, language) for sign in script if unicodedata.name(sign, "").startswith(SCRIPTS[language])]
    assert sum(map(bool, found)) > 25
    assert {len(spelling) for spelling in itertools.chain(*found)} == {1, 2}


@pytest.mark.parametrize(
    ("native", "latin", "wanted"),
    [
        ("मिला", "mila", (Span(0, 1), Span(1, 2), Span(2, 3), Span(3, 4))),
        ("खीरा", "kheeraa", (Span(0, 2), Span(2, 4), Span(4, 5), Span(5, 7))),
        ("घर", "ghar", None),  # the vowel inside has no sign
        ("मिला", "mil", None),  # nothing spells the last sign
        ("मिला", "milan", None),  # the last letter spells nothing
        ("आआ", "aaa", None),  # a-aa or aa-a
        ("क्या", "kya", None),  # the virama has no spelling
    ],
)
def test_a_plain_word_is_cut_in_one_way(native: str, latin: str, wanted: tuple[Span, ...] | None) -> None:
    assert plain(native, latin) == wanted


def test_the_plain_words_are_pairs_of_three_signs_or_more() -> None:
    found = looking.plain_words([*WORDS, Example("ma", ("मा",), "hi"), Example("ghar", ("घर",), "hi")])
    assert [(word.latin, word.native) for word in found] == [("mila", "मिला"), ("pani", "पानी"), ("para", "پارا")]


class Steady(Seq2Seq):
    """Looks, at step t, at the piece t + ahead of the source."""

    ahead = 0

    def teach(self, source: Any, mask_BS: Any, target_in_BT: Tensor, *rest: Any, **others: Any) -> Taught:
        at = (torch.arange(target_in_BT.shape[1]) + self.ahead).clamp(0, source.shape[1] - 1)
        rows_TS = torch.nn.functional.one_hot(at, source.shape[1]).float()
        taught = super().teach(source, mask_BS, target_in_BT, *rest, **others)
        return taught._replace(seen={"decoder.0.cross.0": rows_TS.expand(len(source), -1, -1)})


def dataset() -> Dataset:
    split = Split(WORDS)
    return Dataset("small", split, split, split, "0" * 64, True, ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return transliterator(tmp_path / "tiny")


@pytest.mark.parametrize(
    ("ahead", "wanted"),
    [
        (0, {"-1": 100, "0": 0, "+1": 0}),
        (1, {"-1": 0, "0": 100, "+1": 0}),
        (2, {"-1": 0, "0": 25, "+1": 75}),  # beyond the last letter of four there is nothing to look at
    ],
)
def test_shares_tell_by_how_much_a_model_looks_aside(folder: Path, ahead: int, wanted: dict[str, float]) -> None:
    """Its sources begin with a tag, so that looking at the piece of the same number is looking one letter before."""
    checkpoint = models.load(folder)
    object.__setattr__(checkpoint.model, "__class__", Steady)
    vars(checkpoint.model)["ahead"] = ahead
    found = looking.looking(checkpoint, WORDS[:2])
    assert looking.heaviest(checkpoint, looking.plain_words(WORDS[:2]))[0][:2] == [ahead - 1, ahead]
    assert (found["words"], found["signs"], list(found["languages"])) == (2, 8, ["hi"])
    assert found["right"] == wanted


def test_what_a_model_predicts_without_one_half_of_the_states(folder: Path) -> None:
    """By steps: the halves of one sentence at a time, the mean taken over all real positions."""
    checkpoint, words = models.load(folder), looking.plain_words(WORDS)
    model, made = looking.network(checkpoint), looking.batch_of(checkpoint, words)
    real_BS, right = made.source_BS != PAD, dict.fromkeys(("whole", "forward", "backward"), 0)
    with torch.inference_mode():
        memory = model.read(made.source_BS, real_BS)
        assert memory is not None
        size = memory.states_BSH.shape[2] // 2
        mean_H = memory.states_BSH[real_BS].mean(0)
        for half, part in (("whole", slice(0)), ("forward", slice(size)), ("backward", slice(size, None))):
            poor_BSH = memory.states_BSH.clone()
            poor_BSH[..., part] = mean_H[part]
            state = model.start(memory._replace(states_BSH=poor_BSH), len(words))
            for t in range(made.target_in_BT.shape[1]):
                done = model.step(made.target_in_BT[:, t], state)
                state, said_B = done.state, model.readout(done.features_KR).argmax(1)
                right[half] += sum(int(a == b) for a, b in zip(said_B, made.target_out_BT[:, t]) if b != PAD)
    assert looking.without_halves(checkpoint, words) == {half: 100 * count / 12 for half, count in right.items()}


def test_of_several_heads_and_layers_the_mean_counts(folder: Path) -> None:
    recurrent = models.load(folder)
    shape = {
        "decoder": "transformer",
        "features": 0,
        "embedding": 16,
        "attention_heads": 2,
        "decoder_layers": 2,
        "feed_forward": 12,
    }
    checkpoint = replace(recurrent, model=Transformer(replace(recurrent.model.config, **shape)).eval())  # type: ignore[arg-type]
    found = looking.looking(checkpoint, WORDS)
    assert "predicted" not in found, "its states have no halves of two directions"
    made = looking.batch_of(checkpoint, looking.plain_words(WORDS))
    model = looking.network(checkpoint)
    with torch.inference_mode():
        taught = model.teach(made.source_BS, made.source_BS != PAD, made.target_in_BT, keep=("self", "cross"))
        names = [name for name in taught.seen if ".cross." in name]
        mean_BTS = sum(taught.seen[name] for name in names) / len(names)
        assert len(names) == 4 and [f"decoder.{name.replace('.', '.cross.')}" for name in found["heads"]] == names
        for name, share in found["heads"].items():
            rows_BTS = taught.seen[f"decoder.{name.replace('.', '.cross.')}"]
            pairs = [
                (int(at), span)
                for row, word in zip(rows_BTS.argmax(2), looking.plain_words(WORDS))
                for at, span in zip(row, word.spans)
            ]
            ahead = int(len(checkpoint.languages) > 1)
            assert share == 100 * looking.right([(at - ahead, span) for at, span in pairs], 0) / len(pairs)
        assert found["heads"][found["best_head"]] == max(found["heads"].values())
        assert f"head {found['best_head']} by itself" in looks.sentences(found)
        assert torch.allclose(looking.rows(model, made.source_BS, made.target_in_BT), mean_BTS, atol=1e-6)


def test_all_together_and_each_language_are_counted(folder: Path) -> None:
    found = looking.looking(models.load(folder), WORDS)
    apart = found["languages"]
    assert {code: one["words"] for code, one in apart.items()} == {"hi": 2, "ur": 1}
    for shift, share in found["right"].items():
        assert share * found["signs"] == pytest.approx(sum(one["right"][shift] * one["signs"] for one in apart.values()))
    table = looks.sentences(found).splitlines()
    assert [line.split()[0] for line in table[1:]] == ["all", "hi", "ur"]


def put(folder: Path, metrics: dict[str, Any]) -> None:
    (folder / "metrics.json").write_text(json.dumps(metrics))
    checkpoints.write_manifest(folder)


def test_evaluation_records_it_and_the_card_tells_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_data, "load", lambda name, data=None: dataset())
    found = evaluate.evaluate(folder, dataset="small", plan=evaluate.Plan(beams=(1,), sample=2, exact=1, expansions=20))
    wanted: dict[str, Any] = evaluate.rounded(looking.looking(models.load(folder), WORDS))
    assert found["looking"] == wanted
    written = card.render(folder)
    assert f"**{wanted['right']['0']:.1f} %** of {wanted['signs']} signs" in written
    assert f"Hindi {wanted['languages']['hi']['right']['0']:.1f} %, Urdu" in written
    others = {key: value for key, value in found.items() if key != "looking"}
    put(folder, others)
    looks.looks(folder, dataset="small", record=True)
    assert json.loads((folder / "metrics.json").read_text()) == found and models.load(folder).metrics == found
    put(folder, {**others, "files": {}})
    with pytest.raises(InputError, match="is not of these bytes"):
        looks.looks(folder, dataset="small", record=True)


def test_the_command_prints_a_table_or_says_what_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(public_data, "load", lambda name, data=None: dataset())
    assert command_line.main(["looking", str(folder), "--dataset", "small"]) == 0
    assert capsys.readouterr().out.split()[:5] == ["words", "signs", "-1", "0", "+1"]
    bare = Split([Example("ghar", ("घर",), "hi")])
    monkeypatch.setattr(public_data, "load", lambda name, data=None: replace(dataset(), dev=bare))
    assert command_line.main(["looking", str(folder), "--dataset", "small"]) == 2
    told = "The data set small does not tell where tiny-transliterator should look, so nothing can be measured.\n"
    assert capsys.readouterr().err == told


def test_a_model_without_attention_over_text_is_told_before_any_data_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_data, "load", lambda name, data=None: pytest.fail("fetched"))
    with pytest.raises(InputError, match="has no attention over letters or words, so nothing can be measured"):
        looks.looks(completer(tmp_path / "c"), dataset="war-and-peace")


def test_shares_on_other_data_are_not_recorded_beside_the_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_data, "load", lambda name, data=None: replace(dataset(), name=name))
    evaluate.evaluate(folder, dataset="small", plan=evaluate.Plan(beams=(1,), sample=2, exact=1, expansions=20))
    before = (folder / "metrics.json").read_bytes()
    with pytest.raises(InputError, match="is of small, not of large; leave out --record"):
        looks.looks(folder, dataset="large", record=True)
    assert (folder / "metrics.json").read_bytes() == before


# ------------------------------------------------------------------------------------------------------------ silver links


def pairs(*rows: str) -> list[Example]:
    return [Example(source.strip(), (target.strip(),)) for source, target in (row.split("|") for row in rows)]


HOUSES = pairs("das Haus | the house", "das Buch | the book", "ein Buch | a book", "ein Haus!  | a house!", "das da | the")


def test_ibm_1_finds_what_belongs_together() -> None:
    """The textbook's example: das Haus, das Buch, ein Buch."""
    made = silver.Silver(HOUSES)
    assert made.links(["das", "buch"], ["the", "book"]) == {(0, 0), (1, 1)}
    assert made.links(["haus", "das"], ["the", "house"]) == {(0, 1), (1, 0)}
    assert made.links(["ein", "baum"], ["a", "tree"]) == {(0, 0)}, "words it never saw have no links"
    assert made.links(["buch"], ["house"]) == set(), "nor have those that never stood together"


def test_the_probabilities_are_those_of_em_written_with_loops() -> None:
    examples = [(silver.words_of(one.source), silver.words_of(one.references[0])) for one in HOUSES]
    p = {(e, f): 1.0 for given, made in examples for e in ("", *given) for f in made}
    for _ in range(3):
        count = dict.fromkeys(p, 0.0)
        for given, made in examples:
            for f in made:
                whole = sum(p[e, f] for e in ("", *given))
                for e in ("", *given):
                    count[e, f] += p[e, f] / whole
        p = {(e, f): value / sum(count[key] for key in count if key[0] == e) for (e, f), value in count.items()}
    found = silver.Lexicon(examples, rounds=3).p(["das", "haus"], ["the", "house", "tree"])
    wanted = [[p.get((e, f), 0.0) for e in ("", "das", "haus")] for f in ("the", "house", "tree")]
    assert found == pytest.approx(np.array(wanted))


def test_pieces_are_joined_to_words() -> None:
    text = Subwords.train(sentences("de"), 40)
    longer = "\u0130\u0130 Hund"  # its small letters are two characters each
    last, strings = silver.parts(text, longer)[1][-1], text.encode(longer).strings
    assert last.word == "hund" in "".join(strings[piece] for piece in last.pieces).lower()
    ids, found = silver.parts(text, "Der Hund, im Garten.")
    strings = text.encode("Der Hund, im Garten.").strings
    assert [part.word for part in found] == ["der", "hund", ",", "im", "garten", "."]
    for part in found:
        assert part.word in "".join(strings[piece] for piece in part.pieces).replace(SPACE_MARK, "").lower()
    used = {piece for part in found for piece in part.pieces}
    assert used == {index for index in range(len(ids)) if strings[index] != SPACE_MARK}


def test_the_error_counts_links_that_are_pointed_at() -> None:
    made = [([0, 1, 2], {(0, 0), (1, 1)}), ([1], {(0, 0)})]
    assert silver.error(made, 0) == pytest.approx(100 * (1 - 2 * 2 / (4 + 3)))
    assert silver.error(made, 1) == pytest.approx(100 * (1 - 2 * 1 / (4 + 3))), "only the last word points one too far"
    assert silver.error(made, -1) == 100


def test_a_translator_is_measured_by_its_heaviest_words(tmp_path: Path) -> None:
    checkpoint = models.load(translator(tmp_path / "t"))
    object.__setattr__(checkpoint.model, "__class__", Steady)
    example = Example("Der Hund spielt.", ("The dog plays.",))
    pieces = [checkpoint.source_text.encode(example.source), checkpoint.target_text.encode(example.references[0])]  # type: ignore[union-attr]
    source, target, points = silver.pointed(checkpoint, example)
    for part, at in zip(target, points):
        seen = [min(piece, len(pieces[0].ids) - 1) for piece in part.pieces]  # piece t looks at piece t
        weights = [sum(piece in word.pieces for piece in seen) for word in source]
        assert at == int(np.argmax(weights))


def test_a_translators_figures_and_card_tell_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = translator(tmp_path / "t")
    split = Split([Example("Der Hund spielt.", ("The dog plays.",)), Example("Die Frau singt.", ("The woman sings.",))])
    loaded = Dataset("small", split, split, split, "0" * 64, True, ())
    monkeypatch.setattr(public_data, "load", lambda name, data=None: loaded)
    found = evaluate.evaluate(folder, dataset="small", plan=evaluate.Plan(beams=(1,), sample=2, exact=1, expansions=20))
    assert found["looking"] == evaluate.rounded(silver.alignment(models.load(folder), loaded))
    assert found["looking"]["sentences"] == 2 and set(found["looking"]["error"]) == {"-1", "0", "+1"}
    assert f"alignment error **{found['looking']['error']['0']:.1f} %**" in card.render(folder)
    assert looks.sentences(found["looking"]).startswith("alignment error ")
