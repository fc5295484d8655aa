"""Latin spelling to native word: the lexicons of Dakshina, and Aksharantar's pairs as more of train."""

from __future__ import annotations

import hashlib
import heapq
import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from seqdemo.errors import InputError
from training.data import splits
from training.data.reading import SPLITS, Pair, Problems, bare, first_existing, lines, missing, readable, zip_member
from training.data.records import Example, Parts, clean, digest, valid

LANGUAGES = ("bn", "gu", "hi", "kn", "ml", "mr", "pa", "sd", "si", "ta", "te", "ur")
AKSHARANTAR_CODES = {
    "bn": "ben",
    "gu": "guj",
    "hi": "hin",
    "kn": "kan",
    "ml": "mal",
    "mr": "mar",
    "pa": "pan",
    "sd": "sid",
    "ta": "tam",
    "te": "tel",
    "ur": "urd",
}  # Sinhala is not in Aksharantar
DAKSHINA = "dakshina_dataset_v1.0"
AKSHARANTAR_PAIRS = 51_200  # a language; where there are more, those with the smallest sha256
Lexicons = dict[tuple[str, str], bytes]  # (language, split) -> the file


class Attested(NamedTuple):
    """One row of a lexicon: a native word, one of its latin spellings, and how many people wrote it so."""

    native: str
    latin: str
    times: int


def build(languages: tuple[str, ...], more: bool, folder: Path, problems: Problems) -> Parts:
    """Dakshina's own splits, and with `more` Aksharantar's pairs in train.

    Dev and test have each distinct spelling once; an output is right if it is any native word attested for it there.
    Train has no pair that stands in dev or test of any of the languages: scripts and words are shared between them.
    """
    parts = Parts()
    lexicons = dakshina(folder, languages)
    held: dict[str, list[Example]] = {}
    for language in languages:
        read = {split: _lexicon(lexicons, language, split, problems) for split in ("dev", "test")}
        dev, test = (
            splits.grouped(((row.latin, row.native) for row in read[split]), language, "dakshina") for split in ("dev", "test")
        )
        held[language] = dev + test
        parts.dev += dev
        parts.test += test
        parts.contents[f"dakshina:{language}"] = digest((r.native, r.latin, str(r.times)) for rows in read.values() for r in rows)
    pairs = {(example.source, word) for example in parts.held_out() for word in example.references}
    for language in languages:
        own = _own_words(lexicons, language, parts, pairs, problems)
        if more:
            _more_words(folder, language, own, parts, held[language], pairs, problems)
    return parts


def _own_words(lexicons: Lexicons, language: str, parts: Parts, held_pairs: set[Pair], problems: Problems) -> dict[Pair, None]:
    rows = _lexicon(lexicons, language, "train", problems)
    content = digest((row.native, row.latin, str(row.times)) for row in rows)
    parts.contents[f"dakshina:{language}"] = digest([(content, parts.contents[f"dakshina:{language}"])])
    own = {(row.latin, row.native): None for row in rows}
    kept = [pair for pair in own if pair not in held_pairs]
    parts.note(sum(row.times for row in rows), f"attestations of {len(rows):,} {language} train pairs; each pair stands once")
    parts.note(len(own) - len(kept), f"{language} pairs of Dakshina left out of train: another language's dev or test has them")
    parts.train += splits.each(kept, language, "dakshina")
    return own


def _more_words(
    folder: Path,
    language: str,
    own: dict[Pair, None],
    parts: Parts,
    held_out: list[Example],
    held_pairs: set[Pair],
    problems: Problems,
) -> None:
    """Aksharantar's pairs that are new, and whose spelling and word are in neither dev nor test of their language."""
    if language not in AKSHARANTAR_CODES:
        parts.notes.append(f"Aksharantar has no {language}")
        return
    pairs = aksharantar(folder / "aksharantar", language, parts.notes, problems)
    parts.contents[f"aksharantar:{language}"] = digest(pairs)
    clear = [pair for pair in splits.without(pairs, held_out) if pair not in held_pairs]
    new = [pair for pair in clear if pair not in own]
    parts.note(
        len(pairs) - len(clear), f"{language} pairs of Aksharantar left out of train: dev or test has the spelling or word"
    )
    parts.note(len(clear) - len(new), f"{language} pairs of Aksharantar are in Dakshina's train already")
    parts.train += splits.each(new, language, "aksharantar")


def dakshina(folder: Path, languages: tuple[str, ...]) -> Lexicons:
    """The lexicon files of the languages, from the unpacked folder or from the .tar, .tar.xz or .tar.gz as it stands."""
    wanted = {f"{code}.translit.sampled.{split}.tsv": (code, split) for code in languages for split in SPLITS}
    path = first_existing(folder, DAKSHINA, *(f"{DAKSHINA}.{end}" for end in ("tar.xz", "tar", "tar.gz", "tgz")))
    if path is None:
        raise missing("Dakshina", folder, f"{DAKSHINA}.tar", f"{DAKSHINA}.tar.xz", f"{DAKSHINA}/")
    with readable(path):
        found = dict(_unpacked(path, wanted) if path.is_dir() else _members(path, wanted))
    absent = [name for name, key in wanted.items() if key not in found]
    if absent:
        raise InputError(f"{path} has no {absent[0]}. Delete it and fetch it again.")
    return found


def _unpacked(folder: Path, wanted: dict[str, tuple[str, str]]) -> Iterator[tuple[tuple[str, str], bytes]]:
    for name, key in wanted.items():
        path = folder / key[0] / "lexicons" / name
        if path.exists():
            yield key, path.read_bytes()


def _members(archive: Path, wanted: dict[str, tuple[str, str]]) -> Iterator[tuple[tuple[str, str], bytes]]:
    left = set(wanted)
    with tarfile.open(archive) as members:
        for member in members:
            name = bare(member.name)
            stream = members.extractfile(member) if name in left and member.isfile() else None
            if stream:
                yield wanted[name], stream.read()
                left.discard(name)
            if not left:
                return


def _lexicon(lexicons: Lexicons, language: str, split: str, problems: Problems) -> list[Attested]:
    """The rows of one file: native word TAB latin word TAB count."""
    label = f"{language}.translit.sampled.{split}.tsv"
    rows: dict[Pair, Attested] = {}
    for number, line in lines(io.BytesIO(lexicons[language, split]), label, problems):
        columns = [clean(column) for column in line.split("\t")]
        if len(columns) != 3 or not columns[2].isdecimal():
            problems.append(f"{label}:{number}: not native word, latin word, count")
        elif not _word(columns[1], columns[0]):
            problems.append(f"{label}:{number}: the first word is not native or the second not latin")
        elif (columns[0], columns[1]) in rows:
            problems.append(f"{label}:{number}: the same pair a second time")
        else:
            rows[columns[0], columns[1]] = Attested(columns[0], columns[1], int(columns[2]))
    return list(rows.values())


def _word(latin: str, native: str) -> bool:
    return latin != "" and latin.isascii() and native != "" and not native.isascii()


def aksharantar(folder: Path, language: str, notes: list[str], problems: Problems) -> list[Pair]:
    """(latin, native) from `<iso3>.zip`: `*train.csv` with latin,native or `*train.json`, one object a line."""
    archive = folder / f"{AKSHARANTAR_CODES[language]}.zip"
    if not archive.exists():
        raise missing("Aksharantar", folder, archive.name)
    with zip_member(archive, lambda name: name.endswith(("train.csv", "train.json")), "train.csv or train.json") as stream:
        pairs = dict.fromkeys(_words(stream, f"{archive.name}:train", problems))
    if len(pairs) <= AKSHARANTAR_PAIRS:
        return list(pairs)
    notes.append(
        f"{AKSHARANTAR_PAIRS:,} of Aksharantar's {len(pairs):,} {language} pairs are used: those with the smallest sha256"
    )
    return heapq.nsmallest(AKSHARANTAR_PAIRS, pairs, key=lambda pair: hashlib.sha256("\t".join(pair).encode()).digest())


def _words(stream: BinaryIO, label: str, problems: Problems) -> Iterator[Pair]:
    for number, line in lines(stream, label, problems):
        latin, native = map(clean, _columns(line))
        if _word(latin, native):
            yield latin, native
        else:
            problems.append(f"{label}:{number}: not a latin word with its native word")


def _columns(line: str) -> Iterable[str]:
    if not line.startswith("{"):
        columns = line.split(",")
        return columns if len(columns) == 2 else ("", "")
    try:
        row = json.loads(line)
        return valid(row["english word"]), valid(row["native word"])
    except (ValueError, TypeError, KeyError):
        return "", ""
