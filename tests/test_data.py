"""Splits that do not leak, the types, and the messages to people; real data only if a folder of them is named."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.errors import InputError
from tests.data_files import (
    BOOK,
    DEV,
    MULTI30K,
    NAME,
    TEST,
    TRAIN,
    Pairs,
    dakshina,
    multi30k,
    pairs_of,
    tatoeba,
    write,
)
from training.data import BUILDERS, Example, Split, describe, load, sources_of, splits, texts
from training.data.description import quantile
from training.data.public import CONTENTS, FINGERPRINTS, SOURCES, files_of
from training.data.records import clean, fingerprint

# -------------------------------------------------------------------------------------------------------------- splits


few_words = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.sampled_from("ABCDEFGHIJ")), max_size=14)


@given(few_words)
def test_components_are_those_of_a_search_through_the_graph(pairs: Pairs) -> None:
    def reached(start: tuple[str, str]) -> frozenset[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        queue = [start]
        while queue:
            found.add(pair := queue.pop())
            queue += [other for other in pairs if (other[0] == pair[0] or other[1] == pair[1]) and other not in found]
        return frozenset(found)

    components = splits.components(pairs)
    assert sorted(pair for component in components for pair in component) == sorted(pairs)
    assert {frozenset(component) for component in components} == {reached(pair) for pair in pairs}


many_words = st.lists(st.tuples(st.integers(0, 400).map("d{}".format), st.integers(0, 400).map("e{}".format)), max_size=300)


@given(many_words)
def test_no_sentence_of_a_component_split_stands_in_two_splits(pairs: Pairs) -> None:
    parts = splits.by_component(pairs)
    assert sorted(pair for part in parts.values() for pair in part) == sorted(pairs)
    for side in (0, 1):
        sides = [{pair[side] for pair in part} for part in parts.values()]
        assert sum(map(len, sides)) == len(set().union(*sides))


@given(many_words, many_words)
def test_train_without_held_out_sentences_keeps_everything_else(train: Pairs, held: Pairs) -> None:
    kept = splits.without(train, splits.grouped(held))
    sources, targets = {source for source, _ in held}, {target for _, target in held}
    assert not {source for source, _ in kept} & sources
    assert not {target for _, target in kept} & targets
    assert all(source in sources or target in targets for source, target in set(train) - set(kept))


def test_joined_sets_keep_each_others_held_out_sentences_out_of_train(tmp_path: Path) -> None:
    rows = {
        "train": [*MULTI30K["train"], (TEST, "new"), ("neu", "One")],
        "val": MULTI30K["val"],
        "test_2016_flickr": MULTI30K["test_2016_flickr"],
    }
    tatoeba(multi30k(tmp_path, "plain", rows), [f"One\t{TEST}", f"Two\t{DEV}", f"Three\t{TRAIN}", "A ball.\tein Ball"])
    dataset = load("multi30k+tatoeba", tmp_path)
    assert pairs_of(dataset.train.only("multi30k")) == MULTI30K["train"]
    assert pairs_of(dataset.train.only("tatoeba")) == [(TRAIN, "Three")]
    assert dataset.test.origins() == dataset.dev.origins() == ("multi30k", "tatoeba")
    assert pairs_of(dataset.test.only("tatoeba")) == [(TEST, "One")]
    assert [note.split(" pairs of ")[0] for note in dataset.notes if "left out" in note] == ["2", "1"]


@given(st.text(max_size=60))
def test_a_text_cut_by_position_loses_no_character(text: str) -> None:
    parts = splits.by_position(text)
    assert "".join(parts.values()) == text
    assert len(parts["train"]) == int(0.8 * len(text) + 1e-9)


# --------------------------------------------------------------------------------------------------------------- types


@given(st.lists(st.integers(), max_size=30), st.integers(0, 40), st.integers(0, 3))
def test_a_sample_is_the_same_each_time_and_keeps_the_order(numbers: list[int], size: int, seed: int) -> None:
    split = Split([Example(str(place), (str(number),)) for place, number in enumerate(numbers)])
    sample = split.sample(size, seed)
    places = [int(example.source) for example in sample]
    assert places == sorted(set(places)) and len(places) == min(size, len(numbers))
    assert sample == split.sample(size, seed)


def test_another_seed_gives_another_sample() -> None:
    split = Split([Example(str(number), ("x",)) for number in range(1000)])
    assert split.sample(50, 0) != split.sample(50, 1)


examples = st.lists(
    st.builds(
        Example,
        st.sampled_from("ab"),
        st.lists(st.sampled_from("cd"), min_size=1, max_size=2).map(tuple),
        st.sampled_from(["", "hi"]),
        st.sampled_from([None, Path("x.jpg")]),
        st.sampled_from(["", "t"]),
    ),
    max_size=3,
).map(Split)


@given(st.tuples(examples, examples, examples), st.tuples(examples, examples, examples))
def test_only_equal_splits_share_a_fingerprint(one: tuple[Split, ...], other: tuple[Split, ...]) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


def test_a_fingerprint_ignores_the_folder_of_a_photograph() -> None:
    here, there = (Split([Example("x", ("y",), "", Path(folder) / "x.jpg")]) for folder in ("a", "b"))
    assert fingerprint(here) == fingerprint(there)


@given(st.text(max_size=20))
def test_clean_text_is_composed_has_single_blanks_and_stays_clean(text: str) -> None:
    cleaned = clean(text)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert cleaned.split() == [piece for piece in cleaned.split(" ") if piece]
    assert not set(cleaned) & set("\t\n\r\x1f\u00a0\u2028")
    assert clean(cleaned) == cleaned


# ---------------------------------------------------------------------------------------------------- what people meet


def test_unknown_names_and_folders_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no data set 'multi31k'; choose one of multi30k, tatoeba"):
        load("multi31k", tmp_path)
    with pytest.raises(InputError, match="no data folder"):
        load("multi30k", tmp_path / "nowhere")


@pytest.mark.parametrize("name", [name for name in BUILDERS if name != "reverse"])
def test_an_empty_folder_is_explained(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"is not in .* expected .*Leave out --data to download it"):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tatoeba", "tatoeba/deu-eng.zip"),
        ("dakshina:hi", f"{NAME}.tar.xz"),
        ("dakshina:hi", f"{NAME}.tar"),
        ("war-and-peace", "lm/war_and_peace.txt.xz"),
        ("flickr8k", "flickr8k/Flickr8k_text.zip"),
        ("sqlite-c", f"lm/{texts.SQLITE}"),
    ],
)
@pytest.mark.parametrize("damage", [b"<html>Please sign in</html>", b""])
def test_damaged_archives_are_explained(tmp_path: Path, name: str, path: str, damage: bytes) -> None:
    write(tmp_path / path, damage)
    with pytest.raises(InputError, match=r"fetch it again|Fetch it again"):
        load(name, tmp_path)


def test_a_flipped_bit_in_a_zip_is_noticed(tmp_path: Path) -> None:
    path = tatoeba(tmp_path, [f"One\t{TEST}", f"Two\t{DEV}", f"Three\t{TRAIN}"]) / "tatoeba" / "deu-eng.zip"
    data = bytearray(path.read_bytes())
    data[data.index(b"Three")] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="CRC"):
        load("tatoeba", tmp_path)


def test_a_split_without_examples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing in dev and test"):
        load("tatoeba", tatoeba(tmp_path, [f"Three\t{TRAIN}"]))


def test_other_files_train_but_refuse_comparison(tmp_path: Path) -> None:
    dataset = load("multi30k", multi30k(tmp_path, "plain"))
    assert not dataset.verified
    assert dataset.fingerprint[:12] in dataset.refusal and "must not stand beside recorded ones" in dataset.refusal
    assert "multi30k is another edition than the recorded one" in dataset.notes


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]))
def test_length_quantiles_are_numpys(lengths: list[int], share: float) -> None:
    assert quantile(sorted(lengths), share) == np.quantile(lengths, share, method="inverted_cdf")


def test_a_description_has_counts_lengths_examples_problems_and_the_verdict(tmp_path: Path) -> None:
    rows = [f"One two\t{TEST}", f"Uno\t{TEST}", f"Two\t{DEV}", f"Three\t{TRAIN}", *(["bad"] * 30)]
    dataset = load("tatoeba", tatoeba(tmp_path, rows))
    text = describe(dataset)
    for line in (
        "  Tatoeba, as collected by manythings.org, https://tatoeba.org (licence: CC BY 2.0)",
        "test             1 examples, 2 references",
        f"test  {TEST} -> One two / Uno",
        "30 rows or photographs that are not as they should be:",
        "  and 10 more; --problems lists them all",
        f"fingerprint {dataset.fingerprint}",
        dataset.refusal,
    ):
        assert line in text.splitlines()


def test_descriptions_of_texts_and_languages(tmp_path: Path) -> None:
    write(tmp_path / "lm" / "tiny_shakespeare.txt", BOOK)
    assert f"train {int(len(BOOK) * 0.8):>12,} characters" in describe(load("tiny-shakespeare", tmp_path))
    assert "hi       train         3     dev         1    test         3" in describe(load("dakshina:hi", dakshina(tmp_path)))


def test_every_set_has_sources_files_and_a_recorded_fingerprint() -> None:
    assert set(FINGERPRINTS) == set(BUILDERS)
    assert len(set(FINGERPRINTS.values())) == len(FINGERPRINTS) - 1  # Sinhala has no pairs in Aksharantar
    for name in BUILDERS:
        assert bool(files_of(name)) == bool(sources_of(name)) == (name != "reverse")
    assert [file.path for file in files_of("dakshina+aksharantar:hi")] == [f"{NAME}.tar", "aksharantar/hin.zip"]
    assert len(files_of("dakshina+aksharantar:all")) == 12
    assert {key.partition(":")[0] for key in CONTENTS} == set(SOURCES)


REAL = os.environ.get("SEQDEMO_DATA", "")
SIZES: dict[str, tuple[int, int, int]] = {
    "multi30k": (28_998, 1_014, 1_000),
    "multi30k+tatoeba": (193_656, 2_592, 2_615),
    "dakshina:hi": (44_204, 4_321, 4_442),
    "dakshina+aksharantar:hi": (94_446, 4_321, 4_442),
    "flickr8k": (29_980, 1_000, 1_000),
    "war-and-peace": (1, 1, 1),
    "sqlite-c": (1, 1, 1),
    "tiny-shakespeare": (1, 1, 1),
}


real = pytest.mark.skipif(not REAL, reason="SEQDEMO_DATA names no folder with the public data")


@real
@pytest.mark.parametrize("name", SIZES)
def test_the_public_data_are_the_recorded_ones(name: str) -> None:
    dataset = load(name, Path(REAL))
    assert tuple(len(split) for split in dataset.splits().values()) == SIZES[name]
    assert dataset.verified, dataset.refusal


@real
@pytest.mark.parametrize("name", ["multi30k+tatoeba", "dakshina+aksharantar:hi"])
def test_the_public_data_do_not_leak(name: str) -> None:
    dataset = load(name, Path(REAL))
    sources, targets = splits.held([*dataset.dev, *dataset.test])
    assert not targets & {example.references[0] for example in dataset.train}
    if name == "multi30k+tatoeba":  # a latin spelling may stand for several words, a sentence may not
        assert not sources & {example.source for example in dataset.train}
