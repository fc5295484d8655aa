"""Tokenizers: round trips, unknown pieces, tags, ordinary texts and strange ones."""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.config import BOS, EOS, PAD, UNK
from seqdemo.errors import InputError
from seqdemo.text import (
    SPACE_MARK,
    SPECIALS,
    TOKENIZERS,
    UNKNOWN,
    Characters,
    Subwords,
    Tokenizer,
    Words,
    clean,
    load_tokenizer,
)

LINES = [
    "Das gefällt mir sehr gut.",
    "Ein Hund läuft über die Wiese.",
    "A dog runs across the meadow, and a man's hat falls down!",
    "Two women (in red) don't look at the black-and-white t-shirt.",
    'I like it: the sign says "stop" at 12:30, for $5.',
]
ALPHABET = sorted(set("".join(LINES)))
HOSTILE = ["", " ", "\x00", "a\x00b", "\ud800", "x\udfffy", "\ufeff", "\u202eabc", "e\x00\u0301", "\U0010ffff", "▁▁", "<eos>"]


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "subwords":
        return Subwords.train(LINES * 5, 100)
    return Characters.train(LINES) if kind == "characters" else Words.train(LINES)


every_kind = pytest.mark.parametrize("kind", TOKENIZERS)


@every_kind
def test_specials_are_0_to_3(kind: str) -> None:
    assert tuple(tokenizer(kind).piece(index) for index in range(4)) == SPECIALS == ("<pad>", "<bos>", "<eos>", "<unk>")
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)


@every_kind
def test_training_texts_come_back_from_known_pieces(kind: str) -> None:
    for line in LINES:
        pieces = tokenizer(kind).encode(line)
        assert all(pieces.known) and min(pieces.ids) > UNK
        assert tokenizer(kind).decode([BOS, *pieces.ids, EOS, PAD]) == (line.lower() if kind == "words" else line)


def as_read(kind: str, text: str) -> str:
    """The text with capitals that were never learnt as the small letters that were."""
    which = tokenizer(kind)
    return "".join(map(which.as_learnt, text)) if isinstance(which, Characters) else text


@given(st.text(ALPHABET, max_size=60))
def test_any_text_of_known_characters_comes_back(text: str) -> None:
    for kind in ("subwords", "characters"):
        assert tokenizer(kind).decode(tokenizer(kind).encode(text).ids) == clean(text)


@every_kind
@given(st.text(max_size=40))
def test_ids_strings_and_marks_belong_together(kind: str, text: str) -> None:
    pieces = tokenizer(kind).encode(text)
    assert len(pieces.ids) == len(pieces.strings) == len(pieces.known)
    for index, string, known in zip(*pieces.__dict__.values()):
        assert 0 <= index < len(tokenizer(kind)) and index not in (PAD, BOS, EOS)
        assert known is (index != UNK)
        assert not known or string == tokenizer(kind).piece(index)
    whole = "".join(pieces.strings).replace(SPACE_MARK, " ").strip()
    cleaned = clean(text).replace(SPACE_MARK, " ")
    if kind == "words":
        assert whole.replace(" ", "") == "".join(cleaned.lower().split())
    else:
        assert whole == as_read(kind, cleaned).strip()


@given(st.text(max_size=60))
def test_clean_text_is_composed_has_single_blanks_and_stays_clean(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned == cleaned.strip()
    assert unicodedata.is_normalized("NFC", cleaned) and "  " not in cleaned
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in cleaned)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("\u200dnamaste", "namaste"),
        ("a \u200c\u200d b\u200d", "a b"),
        ("\u200d", ""),
        ("می\u200cروم", "می\u200cروم"),
        ("क्\u200d ന്\u200d", "क्\u200d ന്\u200d"),
    ],
    ids=ascii,
)
def test_joiners_stay_where_they_join(text: str, wanted: str) -> None:
    assert clean(text) == wanted


@every_kind
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_texts_neither_crash_nor_leave_anything_unprintable(kind: str, text: str) -> None:
    pieces = tokenizer(kind).encode(text)
    "".join(pieces.strings).encode()
    tokenizer(kind).decode(pieces.ids).encode()


def test_nothing_is_typed_that_would_be_taken_for_a_special() -> None:
    for kind in TOKENIZERS:
        for special in SPECIALS:
            assert not set(tokenizer(kind).encode(special).ids) & {PAD, BOS, EOS}


@every_kind
def test_composed_and_decomposed_letters_are_the_same_text(kind: str) -> None:
    composed = "gefällt über"
    assert tokenizer(kind).encode(unicodedata.normalize("NFD", composed)) == tokenizer(kind).encode(composed)
    assert clean("e\x00\u0301") == "é"


def test_a_text_model_reads_composed_and_decomposed_letters_alike() -> None:
    characters = Characters.train(["gefällt\n über"], keep_space=True)
    decomposed = characters.encode(unicodedata.normalize("NFD", "gefällt\n über"))
    assert decomposed.strings == tuple("gefällt\n über") and all(decomposed.known)


@every_kind
def test_what_was_never_seen_is_unknown_and_keeps_its_own_look(kind: str) -> None:
    pieces = tokenizer(kind).encode("A дом runs")
    unknown = [string for string, known in zip(pieces.strings, pieces.known) if not known]
    assert "".join(unknown).replace(SPACE_MARK, "") == "дом"
    assert UNKNOWN in tokenizer(kind).decode(pieces.ids) and "<unk>" not in tokenizer(kind).decode(pieces.ids)


def test_an_unknown_letter_inside_a_word_stays_inside_it() -> None:
    subwords = tokenizer("subwords")
    assert subwords.decode(subwords.encode("a Huжd runs").ids) == f"a Hu{UNKNOWN}d runs"


def test_subword_pieces_that_begin_a_word_carry_the_space_mark() -> None:
    pieces = tokenizer("subwords").encode("Das gefällt mir")
    assert pieces.strings[0].startswith(SPACE_MARK)
    words = "".join(pieces.strings).split(SPACE_MARK)
    assert words == ["", "Das", "gefällt", "mir"]


@pytest.mark.parametrize(
    "written",
    [
        "a dog runs.",
        "a man's hat falls down!",
        "two women (in red) don't look.",
        "a black-and-white t-shirt, a black/white one.",
        'the sign says "stop" at 12:30, for $5.',
        "they're off; we've 1,000 balls: isn't it?",
        "the dog’s ball",
        "what a day...",
        "dogs - cats - and a bird?!",
    ],
)
def test_captions_come_back_as_a_person_would_write_them(written: str) -> None:
    words = Words.train([written])
    wanted = "dogs-cats-and a bird?!" if written.startswith("dogs - ") else written
    assert words.decode(words.encode(written).ids) == wanted


def test_rare_words_are_left_out_and_the_frequent_come_first() -> None:
    words = Words.train(["a a a dog", "a dog", "A cat"], least=2)
    assert [words.piece(index) for index in range(4, len(words))] == ["a", "dog"]
    assert words.encode("a Cat").known == (True, False)


# Characters


def test_tags_name_a_target_language_and_are_one_piece() -> None:
    characters = Characters.train(["namaste"], tags=["hi", "ta"])
    pieces = characters.encode("man", "ta")
    assert pieces.strings == ("<ta>", "m", "a", "n") and pieces.known == (True,) * 4
    assert characters.tags() == ["hi", "ta"]
    assert not any(characters.encode("<ta>").known[:1]), "typed letters are never a tag"
    with pytest.raises(InputError, match="no target language 'de'; it knows hi, ta"):
        characters.encode("man", "de")


def test_capitals_that_were_never_learnt_are_read_as_small_letters() -> None:
    pieces = Characters.train(["namaste N"]).encode("NAMASTÉ")
    assert pieces.strings == tuple("NamastÉ") and pieces.known == (True,) * 6 + (False,)
    assert Characters.train(["ab\n"], keep_space=True).encode("aB").known == (True, False)


def test_a_text_model_keeps_spaces_and_line_breaks() -> None:
    text = "if (a) {\n\treturn  b;\n}\n"
    characters = Characters.train([text], keep_space=True)
    assert characters.decode(characters.encode(text.replace("\n", "\r\n")).ids) == text
    assert characters.encode("a\x00\ud800b").strings == ("a", "b")
    assert Characters.train(["a\x0cb\x01"], keep_space=True).encode("\x0c\x01").known == (True, True)


@given(st.text([*ALPHABET, "\n", "\t"], max_size=60))
def test_every_character_of_a_text_model_comes_back(text: str) -> None:
    characters = Characters.train([*LINES, "\n\t"], keep_space=True)
    assert characters.decode(characters.encode(text).ids) == unicodedata.normalize("NFC", text)


def test_rare_characters_are_left_out() -> None:
    assert len(Characters.train(["aab"], least=2)) == 5


@pytest.mark.parametrize("pieces", [["a", "b"], ["<pad>", "<bos>", "<eos>"], [*SPECIALS, "a", "a"]])
def test_a_list_without_its_specials_or_with_a_piece_twice_is_refused(pieces: list[str]) -> None:
    with pytest.raises(InputError, match=r"starts with <pad>|one piece twice"):
        Characters(pieces)


# Files


@every_kind
def test_a_saved_tokenizer_is_the_same_one(kind: str, tmp_path: Path) -> None:
    spec = tokenizer(kind).save(tmp_path, "source")
    assert spec["kind"] == kind and (tmp_path / spec["file"]).stat().st_size > 100
    again = load_tokenizer(tmp_path, spec)
    assert type(again) is type(tokenizer(kind)) and len(again) == len(tokenizer(kind))
    for line in [*LINES, "жук\u0000", "  two  blanks "]:
        assert again.encode(line) == tokenizer(kind).encode(line)
    assert again.dump() == tokenizer(kind).dump()


def test_keep_space_travels_with_the_file(tmp_path: Path) -> None:
    characters = Characters.train(["a b\n"], keep_space=True)
    again = load_tokenizer(tmp_path, characters.save(tmp_path, "text"))
    assert again.encode(" a\n").strings == (" ", "a", "\n")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"kind": "morse", "file": "x"}, "'morse' is not known; choose one of subwords, characters, words"),
        ({}, "None is not known"),
        ({"kind": "words", "file": "../words.json"}, "bare file name"),
        ({"kind": "words", "file": ""}, "bare file name"),
        ({"kind": "words"}, "bare file name"),
    ],
)
def test_a_description_that_leads_nowhere_is_refused(spec: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        load_tokenizer(tmp_path, spec)


def test_a_character_file_of_another_shape_is_refused() -> None:
    for data in (b"[]", b"{}", b'{"pieces": 5}', b'{"pieces": [1]}', b'{"pieces": [""]}', b"not json", b"\xff"):
        with pytest.raises(InputError, match="character file"):
            Characters.parse(data)
