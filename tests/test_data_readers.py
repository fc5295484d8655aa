"""Every source in every layout in which it is published: the same rows, the bad ones named."""

from __future__ import annotations

import json
import lzma
import unicodedata
from pathlib import Path

import pytest

from seqdemo.errors import InputError
from tests.data_files import (
    BOOK,
    CAPTIONS,
    DEV,
    LEXICONS,
    MULTI30K,
    PIXELS,
    TEST,
    TRAIN,
    aksharantar,
    dakshina,
    flickr8k,
    multi30k,
    packed,
    pairs_of,
    tatoeba,
    write,
)
from training.data import BUILDERS, Example, captions, load, texts, transliteration
from training.data.public import CONTENTS, FINGERPRINTS

# --------------------------------------------------------------------------------------------------------- translation


@pytest.mark.parametrize("layout", ["plain", "gz", "jsonl"])
def test_multi30k_is_the_same_in_every_layout(tmp_path: Path, layout: str) -> None:
    dataset = load("multi30k", multi30k(tmp_path, layout))
    assert pairs_of(dataset.train) == MULTI30K["train"]
    assert pairs_of(dataset.dev) == MULTI30K["val"]
    assert pairs_of(dataset.test) == MULTI30K["test_2016_flickr"]
    assert dataset.problems == ()


def test_sides_of_different_length_are_refused(tmp_path: Path) -> None:
    multi30k(tmp_path, "plain")
    write(tmp_path / "multi30k" / "train.en", "A dog.\n")
    with pytest.raises(InputError, match="2 lines, train.en 1"):
        load("multi30k", tmp_path)


def test_rows_that_cannot_be_used_are_named_and_leave_their_neighbours_alone(tmp_path: Path) -> None:
    multi30k(tmp_path, "plain")
    write(tmp_path / "multi30k" / "train.de", b"Ein Hund.\n\xff\n \nDrei.\n")
    write(tmp_path / "multi30k" / "train.en", "A dog.\nTwo men.\nNothing.\nThree.\n")
    dataset = load("multi30k", tmp_path)
    assert pairs_of(dataset.train) == [("Ein Hund.", "A dog."), ("Drei.", "Three.")]
    assert dataset.problems == ("train.de:2: not UTF-8", "train.de:3: an empty sentence")


@pytest.mark.parametrize("line", ["[1]", '{"de": "Eins"}', '{"de": 1, "en": "One"}', '{"de": "\\ud800", "en": "half"}', "{", ""])
def test_bad_json_lines_are_named(tmp_path: Path, line: str) -> None:
    path = multi30k(tmp_path, "jsonl") / "multi30k" / "train.jsonl"
    path.write_text(line + "\n" + path.read_text())
    dataset = load("multi30k", tmp_path)
    assert pairs_of(dataset.train) == MULTI30K["train"]
    assert dataset.problems == ("train.jsonl:1: not a JSON object with texts de and en",)


@pytest.mark.parametrize("layout", ["zip", "plain"])
@pytest.mark.parametrize("end", ["", "\tCC-BY 2.0 (France) Attribution: tatoeba.org #1 (A) & #2 (B)", "\r"])
def test_tatoeba_has_english_first_and_maybe_an_attribution(tmp_path: Path, layout: str, end: str) -> None:
    rows = [f"One\t{TEST}", f"Two\t{DEV}", f"Three\t{TRAIN}", f"Drei\t{TRAIN}"]
    dataset = load("tatoeba", tatoeba(tmp_path, [row + end for row in rows], layout))
    assert pairs_of(dataset.test) == [(TEST, "One")]
    assert pairs_of(dataset.dev) == [(DEV, "Two")]
    assert pairs_of(dataset.train) == [(TRAIN, "Three"), (TRAIN, "Drei")]


def test_tatoeba_groups_every_reference_of_a_held_out_source(tmp_path: Path) -> None:
    dataset = load("tatoeba", tatoeba(tmp_path, [f"One\t{TEST}", f"x\t{DEV}", f"y\t{TRAIN}", f"Uno\t{TEST}", f"One\t{TEST}"]))
    assert dataset.test.examples == [Example(TEST, ("One", "Uno"), "", None, "tatoeba")]
    assert dataset.problems == ("deu.txt:5: the same pair a second time",)


def test_bad_tatoeba_rows_are_named(tmp_path: Path) -> None:
    rows = ["alone", "", f"x\t{TRAIN}", "a\tb\tc\td", "\tleer", f"y\t{DEV}", f"z\t{TEST}"]
    assert load("tatoeba", tatoeba(tmp_path, rows)).problems == (
        "deu.txt:1: 1 columns instead of 2 or 3",
        "deu.txt:2: 1 columns instead of 2 or 3",
        "deu.txt:4: 4 columns instead of 2 or 3",
        "deu.txt:5: an empty sentence",
    )


# ----------------------------------------------------------------------------------------------------- transliteration


@pytest.mark.parametrize("layout", ["folder", "tar", "tar.xz", "tar.gz"])
def test_dakshina_is_the_same_in_every_layout(tmp_path: Path, layout: str) -> None:
    dataset = load("dakshina:hi", dakshina(tmp_path, layout))
    assert pairs_of(dataset.train) == [("ghar", "घर"), ("ghr", "घर"), ("namaste", "नमस्ते")]
    assert dataset.dev.examples == [Example("pani", ("पानी", "पाणि"), "hi", None, "dakshina")]
    assert [(e.source, e.references) for e in dataset.test] == [
        ("kitab", ("किताब",)),
        ("kitaab", ("किताब",)),
        ("ghar", ("घरा",)),
    ]
    assert dataset.notes[0] == "8 attestations of 3 hi train pairs; each pair stands once"


def two_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILDERS, "both", lambda folder, problems: transliteration.build(("hi", "mr"), True, folder, problems))


def test_a_pair_held_out_in_one_language_is_in_no_languages_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_languages(monkeypatch)
    dakshina(tmp_path)
    aksharantar(tmp_path, "hin", "train.csv", "namaste,नमस्ते\nnaya,नया\n")
    aksharantar(tmp_path, "mar", "train.csv", "kitab,किताब\nnava,नवा\n")
    dataset = load("both", tmp_path)
    held = set(pairs_of(dataset.dev)) | set(pairs_of(dataset.test))
    assert not held & set(pairs_of(dataset.train))
    assert pairs_of(dataset.train.only(language="hi")) == [("ghar", "घर"), ("ghr", "घर"), ("naya", "नया")]
    assert pairs_of(dataset.train.only(language="mr")) == [("majha", "माझा"), ("nava", "नवा")]
    assert dataset.test.languages() == ("hi", "mr")


HINDI = [
    ("ghr", "घर"),  # in Dakshina's train already
    ("pani", "पानि"),  # the spelling is in dev
    ("kitap", "किताब"),  # the word is in test
    ("dil", "दिल"),
    ("raat", "रात"),
    ("din", "दिन"),
]


@pytest.mark.parametrize("layout", ["csv", "json"])
def test_aksharantar_adds_what_is_new_and_held_out_nowhere(tmp_path: Path, layout: str) -> None:
    objects = "".join(json.dumps({"unique_identifier": "h1", "native word": n, "english word": w}) + "\n" for w, n in HINDI)
    rows = objects if layout == "json" else "".join(f"{latin},{native}\n" for latin, native in HINDI)
    aksharantar(dakshina(tmp_path), "hin", f"hin_train.{layout}", rows)
    dataset = load("dakshina+aksharantar:hi", tmp_path)
    assert pairs_of(dataset.train.only("aksharantar")) == HINDI[3:]
    assert "2 hi pairs of Aksharantar left out of train: dev or test has the spelling or word" in dataset.notes
    assert "1 hi pairs of Aksharantar are in Dakshina's train already" in dataset.notes


def test_a_large_aksharantar_is_cut_to_the_same_pairs_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transliteration, "AKSHARANTAR_PAIRS", 4)
    cuts = []
    for name, order in (("a", HINDI), ("b", HINDI[::-1])):
        (tmp_path / name).mkdir()
        aksharantar(tmp_path / name, "hin", "train.csv", "".join(f"{latin},{native}\n" for latin, native in order))
        cuts.append(transliteration.aksharantar(tmp_path / name / "aksharantar", "hi", [], []))
    assert cuts[0] == cuts[1]
    assert len(set(cuts[0]) & set(HINDI)) == 4


def test_bad_lexicon_rows_are_named(tmp_path: Path) -> None:
    bad = "ghar\tघर\t3\nघर\tghar\nघर\tghar\tmany\nघर\tghar\t1\nघर\tghar\t2\n\tx\t1\n"
    dataset = load("dakshina:hi", dakshina(tmp_path, files={**LEXICONS, ("hi", "train"): bad}))
    assert pairs_of(dataset.train) == [("ghar", "घर")]
    label = "hi.translit.sampled.train.tsv"
    assert dataset.problems == (
        f"{label}:1: the first word is not native or the second not latin",
        f"{label}:2: not native word, latin word, count",
        f"{label}:3: not native word, latin word, count",
        f"{label}:5: the same pair a second time",
        f"{label}:6: the first word is not native or the second not latin",
    )


def test_a_language_that_aksharantar_lacks_says_so(tmp_path: Path) -> None:
    files = {("si", split): text for (code, split), text in LEXICONS.items() if code == "hi"}
    dataset = load("dakshina+aksharantar:si", dakshina(tmp_path, files=files))
    assert "Aksharantar has no si" in dataset.notes
    assert dataset.train.origins() == ("dakshina",)


# ------------------------------------------------------------------------------------------------------------ captions


@pytest.mark.parametrize("layout", ["table", "hub", "lists", "zips"])
def test_flickr8k_is_the_same_in_every_layout(tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQDEMO_CACHE", str(tmp_path / "cache"))
    dataset = load("flickr8k", flickr8k(tmp_path, layout))
    assert pairs_of(dataset.train) == [
        *(("a.jpg", text) for text in CAPTIONS["a.jpg"] if text != "Dogs ."),
        *(("b.jpg", text) for text in CAPTIONS["b.jpg"]),
    ]
    assert [example.references for example in dataset.dev] == [tuple(CAPTIONS["d.jpg"])]
    assert [example.references for example in dataset.test] == [tuple(CAPTIONS["e.jpg"])]
    for split in dataset.splits().values():
        assert all(example.picture and example.picture.read_bytes() == PIXELS[example.source] for example in split)
    reasons = sorted(problem.split(": ", 1)[1] for problem in dataset.problems)
    assert reasons == [
        "fewer than 3 words (A dog ,), kept as a reference",
        "fewer than 3 words (Dogs .), left out of train",
        "the same photograph as b.jpg; left out of train",
    ]
    assert (layout == "table") != any("256 pixels" in note for note in dataset.notes)


def test_layouts_of_flickr8k_have_one_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQDEMO_CACHE", str(tmp_path / "cache"))
    marks = {load("flickr8k", flickr8k(tmp_path / layout, layout)).fingerprint for layout in ("table", "hub", "lists", "zips")}
    assert len(marks) == 1


def test_other_photographs_of_the_same_names_are_not_the_recorded_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = flickr8k(tmp_path, "table")
    first = load("flickr8k", home)
    monkeypatch.setitem(FINGERPRINTS, "flickr8k", first.fingerprint)
    monkeypatch.setitem(CONTENTS, captions.PHOTOGRAPHS, captions.build(home, []).contents[captions.PHOTOGRAPHS])
    assert load("flickr8k", home).verified
    photograph = first.test.examples[0].picture
    assert photograph is not None
    photograph.write_bytes(photograph.read_bytes() + b" ")
    other = load("flickr8k", home)
    assert other.fingerprint == first.fingerprint and not other.verified
    assert "flickr8k:photographs is another edition than the recorded one" in other.notes


def test_captions_without_a_photograph_and_crooked_rows_are_named(tmp_path: Path) -> None:
    home = flickr8k(tmp_path, "table") / "flickr8k"
    (home / "train" / "a.jpg").unlink()
    with (home / "captions.tsv").open("a") as table:
        table.write("train\t../b.jpg\t0\tA name that leaves the folder .\nvalid\tb.jpg\t0\tNo such split .\n")
    dataset = load("flickr8k", tmp_path)
    assert "captions.tsv:7: there is no photograph a.jpg" in dataset.problems
    assert "captions.tsv:27: not split, file, number, caption" in dataset.problems
    assert "captions.tsv:28: not split, file, number, caption" in dataset.problems
    assert {example.source for example in dataset.train} == {"b.jpg"}


# --------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("war_and_peace.txt", BOOK.encode()),
        ("war_and_peace.txt.xz", lzma.compress(BOOK.encode())),
        ("war_and_peace.txt", b"\xef\xbb\xbf" + BOOK.replace("\n", "\r\n").encode() + b"\r\n\r\n"),
        (
            "war_and_peace.txt",
            f"*** START OF THE PROJECT X ***\n\n{BOOK}\n*** END OF THE PROJECT X ***\nSmall print".encode(),
        ),
        ("war_and_peace.txt", unicodedata.normalize("NFD", BOOK).encode()),
    ],
)
def test_a_book_is_the_same_in_every_layout(tmp_path: Path, name: str, data: bytes) -> None:
    write(tmp_path / "lm" / name, data)
    dataset = load("war-and-peace", tmp_path)
    sides = [split.examples[0].references[0] for split in dataset.splits().values()]
    assert "".join(sides) == BOOK
    assert [round(len(side) / len(BOOK), 2) for side in sides] == [0.8, 0.1, 0.1]
    assert dataset.train.examples[0].source == ""


def test_sqlites_sources_are_joined_without_tests_and_tools(tmp_path: Path) -> None:
    root = "sqlite-src-3400100"
    names = [
        "src/where.c",
        "src/alter.c",
        "src/test1.c",
        "src/sqlite.h",
        "tool/lemon.c",
        "ext/fts5/fts5_aux.c",
        "ext/fts5/tool/x.c",
    ]
    archive = packed(tmp_path / "lm" / texts.SQLITE, {f"{root}/{name}": f"/* {name} */\n".encode() * 9 for name in names})
    joined = "\n".join(f"/* {name} */\n" * 9 for name in ("src/alter.c", "src/where.c", "ext/fts5/fts5_aux.c")) + "\n"
    assert texts.sqlite(archive) == joined.encode()
    dataset = load("sqlite-c", tmp_path)
    assert "".join(split.examples[0].references[0] for split in dataset.splits().values()) == joined.rstrip() + "\n"


def test_the_toy_reverses_and_repeats_no_string() -> None:
    dataset = load("reverse", Path())
    every = [example for split in dataset.splits().values() for example in split]
    assert all(example.references == (example.source[::-1],) for example in every)
    assert len({example.source for example in every}) == len(every)
    assert {len(example.source) for example in dataset.train} == set(range(1, 11))
    assert dataset.verified and dataset.refusal == ""
