"""How signs of South Asia's scripts are spelt in Latin letters, read from their names in Unicode.

Each sign is spelt without regard to its neighbours: BENGALI LETTER KHA is "kh", TELUGU VOWEL SIGN II is "i", "ee" or "ii".
A sign with no entry (a virama, a nukta, a vowel that nobody writes) has no spelling. No spelling is longer than two letters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

VOWELS = {
    "A": "a", "AA": "a aa", "I": "i", "II": "i ee ii", "U": "u", "UU": "u oo uu", "E": "e", "EE": "e ee", "AI": "ai",
    "O": "o", "OO": "o oo", "AU": "au ou", "VOCALIC R": "ri ru", "AE": "e ae", "AEE": "e ae",
}  # fmt: skip
CONSONANTS = {
    "K": "k c", "KH": "kh", "G": "g", "GH": "gh", "NG": "n ng", "C": "c ch", "CH": "ch", "J": "j", "JH": "jh", "NY": "n ny",
    "TT": "t", "TTH": "th", "DD": "d", "DDH": "dh", "NN": "n", "T": "t th", "TH": "th", "D": "d dh", "DH": "dh", "N": "n",
    "NNN": "n", "P": "p", "PH": "ph f", "B": "b", "BH": "bh", "M": "m", "Y": "y", "R": "r", "RR": "r", "L": "l", "LL": "l",
    "LLL": "l zh", "V": "v w", "SH": "sh", "SS": "sh s", "S": "s", "H": "h", "F": "f",
}  # fmt: skip
MARKS = {"ANUSVARA": "n m", "ANUSVARAYA": "n m", "CANDRABINDU": "n", "BINDI": "n", "TIPPI": "n m"}
ARABIC = {
    "ALEF": "a", "ALEF WITH MADDA ABOVE": "a aa", "BEH": "b", "PEH": "p", "TEH": "t", "TTEH": "t", "THEH": "s", "JEEM": "j",
    "TCHEH": "ch", "HAH": "h", "KHAH": "kh", "DAL": "d", "DDAL": "d", "THAL": "z", "REH": "r", "RREH": "r", "ZAIN": "z",
    "SEEN": "s", "SHEEN": "sh", "SAD": "s", "DAD": "z", "TAH": "t", "ZAH": "z", "GHAIN": "gh", "FEH": "f", "QAF": "q k",
    "KAF": "k", "KEHEH": "k", "GAF": "g", "LAM": "l", "MEEM": "m", "NOON": "n", "NOON GHUNNA": "n", "WAW": "v w o u oo",
    "HEH": "h", "HEH GOAL": "h", "FARSI YEH": "y i e ee", "YEH": "y i e ee", "YEH BARREE": "e",
}  # fmt: skip
SINDHI = {
    **ARABIC, "KEHEH": "kh", "SWASH KAF": "k", "BEEH": "b", "BEHEH": "bh", "TTEHEH": "th", "TEHEH": "th", "DYEH": "j",
    "TCHEHEH": "ch", "DAL WITH DOT BELOW": "d", "DAHAL": "dh", "DDAHAL": "dh", "PEHEH": "ph", "GUEH": "g", "RNOON": "n",
    "TEH WITH THREE DOTS ABOVE DOWNWARDS": "t", "REH WITH FOUR DOTS ABOVE": "r", "HEH DOACHASHMEE": "h",
}  # fmt: skip
SINHALA_VOWELS = {
    "AELA-PILLA": "AA", "KETTI AEDA-PILLA": "AE", "DIGA AEDA-PILLA": "AEE", "KETTI IS-PILLA": "I", "DIGA IS-PILLA": "II",
    "KETTI PAA-PILLA": "U", "DIGA PAA-PILLA": "UU", "KOMBUVA": "E", "DIGA KOMBUVA": "EE", "KOMBU DEKA": "AI",
    "KOMBUVA HAA AELA-PILLA": "O", "KOMBUVA HAA DIGA AELA-PILLA": "OO", "KOMBUVA HAA GAYANUKITTA": "AU",
}  # fmt: skip


class Span(NamedTuple):
    """The Latin letters from `start` up to `end`."""

    start: int
    end: int


@cache
def spellings(sign: str, language: str = "") -> tuple[str, ...]:
    """The ways to spell one sign; none where its name is not in the tables."""
    script, _, name = unicodedata.name(sign, "").partition(" ")
    kind = next((start for start in ("VOWEL SIGN", "LETTER", "SIGN") if name.startswith(f"{start} ")), "")
    sound = name[len(kind) :].strip()
    if script == "ARABIC":
        return tuple((SINDHI if language == "sd" else ARABIC).get(sound, "").split()) if kind == "LETTER" else ()
    if script == "SINHALA":
        sound = SINHALA_VOWELS.get(sound, sinhala(sound))
    if kind in ("LETTER", "VOWEL SIGN") and sound in VOWELS:
        return tuple(VOWELS[sound].split())
    if kind == "LETTER":
        return tuple(CONSONANTS.get(sound[:-1], "").split()) if sound.endswith("A") else ()
    return tuple(MARKS.get(sound, "").split())


def sinhala(name: str) -> str:
    """MAHAAPRAANA KAYANNA -> KHA: the names that other scripts of India give to the same sounds."""
    *manner, sound = name.split() or [""]
    sound = sound.removesuffix("YANNA")
    if "MAHAAPRAANA" in manner or (sound == "SA" and "DANTAJA" not in manner):
        sound = f"{sound[:-1]}HA"
    return "" if "SANYAKA" in manner or "AMBA" in manner else sound


def cuts(signs: str, latin: str, language: str = "", start: int = 0) -> Iterator[tuple[Span, ...]]:
    """Every way to cut `latin` from `start` on into one spelling of each sign, in order, with nothing left over."""
    if not signs:
        if start == len(latin):
            yield ()
        return
    for spelling in spellings(signs[0], language):
        if latin.startswith(spelling, start):
            end = start + len(spelling)
            yield from ((Span(start, end), *rest) for rest in cuts(signs[1:], latin, language, end))


def plain(signs: str, latin: str, language: str = "") -> tuple[Span, ...] | None:
    """Where each sign is spelt, if the word is plain: each sign by one or two letters, in order, in one way only."""
    found = list(cuts(signs, latin, language))
    return found[0] if len(found) == 1 else None
