"""Readers of the public files, each in the layouts in which it is published.

A reader takes a folder and a list of problems; a row it cannot use is appended to the problems as `file:line: reason`.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from seqdemo.errors import InputError
from training.data.records import clean

Problems = list[str]
Pair = tuple[str, str]

DAKSHINA_LANGUAGES = ("bn", "gu", "hi", "kn", "ml", "mr", "pa", "sd", "si", "ta", "te", "ur")
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
DAKSHINA_NAME = "dakshina_dataset_v1.0"
SPLITS = ("train", "dev", "test")


def lines(data: bytes, label: str, problems: Problems) -> Iterator[tuple[int, str]]:
    """Numbered lines of UTF-8 text; only LF and CR LF end a line."""
    rows = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if rows[-1] == b"":
        rows.pop()
    for number, row in enumerate(rows, 1):
        try:
            yield number, row.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            problems.append(f"{label}:{number}: not UTF-8")


def missing(what: str, folder: Path, *names: str) -> InputError:
    return InputError(f"{what} is not in {folder}: expected {' or '.join(names)}. Leave out --data to download it.")


def first_existing(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).exists()), None)


# ---------------------------------------------------------------------------------------------------------- translation


def multi30k(folder: Path, problems: Problems) -> dict[str, list[Pair]]:
    """German and English captions of each split: `train.de` and `train.en`, or `train.jsonl` with keys de and en."""
    stems = {"train": ("train",), "dev": ("val",), "test": ("test_2016_flickr", "test")}
    return {split: _multi30k_split(folder / "multi30k", stems[split], problems) for split in SPLITS}


def _multi30k_split(folder: Path, stems: tuple[str, ...], problems: Problems) -> list[Pair]:
    for stem in stems:
        german, english, both = (folder / f"{stem}.{end}" for end in ("de", "en", "jsonl"))
        if german.exists() and english.exists():
            return _parallel(german, english, problems)
        if both.exists():
            return _json_pairs(both, problems)
    raise missing("Multi30k", folder, f"{stems[0]}.de with {stems[0]}.en", f"{stems[-1]}.jsonl")


def _parallel(german: Path, english: Path, problems: Problems) -> list[Pair]:
    sides = [dict(lines(path.read_bytes(), path.name, problems)) for path in (german, english)]
    if max(sides[0], default=0) != max(sides[1], default=0):
        raise InputError(
            f"{german.name} and {english.name} have {max(sides[0], default=0):,} and {max(sides[1], default=0):,} lines: "
            "they must match line by line. Fetch both again."
        )
    pairs = []
    for number in sorted(sides[0].keys() & sides[1].keys()):
        pair = clean(sides[0][number]), clean(sides[1][number])
        if all(pair):
            pairs.append(pair)
        else:
            problems.append(f"{german.name}:{number}: an empty sentence")
    return pairs


def _json_pairs(path: Path, problems: Problems) -> list[Pair]:
    pairs = []
    for number, line in lines(path.read_bytes(), path.name, problems):
        try:
            row = json.loads(line)
            pair = clean(row["de"]), clean(row["en"])
        except (ValueError, TypeError, KeyError):
            problems.append(f"{path.name}:{number}: not a JSON object with texts de and en")
            continue
        if all(pair):
            pairs.append(pair)
        else:
            problems.append(f"{path.name}:{number}: an empty sentence")
    return pairs


def tatoeba(folder: Path, problems: Problems) -> list[Pair]:
    """(German, English) from `deu.txt`: English TAB German, and since 2019 TAB attribution."""
    folder = folder / "tatoeba"
    archive = first_existing(folder, "deu-eng.zip")
    plain = first_existing(folder, "deu.txt")
    if archive:
        data = read_zip(archive, lambda name: Path(name).name == "deu.txt", "deu.txt")
    elif plain:
        data = plain.read_bytes()
    else:
        raise missing("Tatoeba", folder, "deu-eng.zip", "deu.txt")
    pairs: dict[Pair, None] = {}
    for number, line in lines(data, "deu.txt", problems):
        columns = line.split("\t")
        if len(columns) not in (2, 3):
            problems.append(f"deu.txt:{number}: {len(columns)} columns instead of 2 or 3")
            continue
        pair = clean(columns[1]), clean(columns[0])
        if not all(pair):
            problems.append(f"deu.txt:{number}: an empty sentence")
        elif pair in pairs:
            problems.append(f"deu.txt:{number}: the same pair a second time")
        else:
            pairs[pair] = None
    return list(pairs)


def read_zip(archive: Path, wanted: Callable[[str], bool], what: str) -> bytes:
    """The bytes of the first member whose name is `wanted`; the archive's own checksum is verified by reading."""
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if wanted(name)]
            if not names:
                raise InputError(f"{archive} holds no {what}. Fetch it again.")
            return opened.read(names[0])
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise InputError(f"{archive} cannot be read ({error}). Fetch it again.") from None


# ------------------------------------------------------------------------------------------------------ transliteration


class Attested(NamedTuple):
    """One row of a Dakshina lexicon: a native word, one of its latin spellings, and how many people wrote it so."""

    native: str
    latin: str
    times: int


def dakshina(folder: Path, languages: tuple[str, ...], problems: Problems) -> dict[str, dict[str, list[Attested]]]:
    """language -> split -> rows, from the unpacked folder or the .tar, .tar.xz or .tar.gz as it stands."""
    wanted = {f"{code}.translit.sampled.{split}.tsv": (code, split) for code in languages for split in SPLITS}
    found: dict[str, bytes] = {}
    unpacked = first_existing(folder, DAKSHINA_NAME)
    archive = first_existing(folder, *(f"{DAKSHINA_NAME}.{end}" for end in ("tar.xz", "tar", "tar.gz", "tgz")))
    if unpacked:
        for name, (code, _) in wanted.items():
            path = unpacked / code / "lexicons" / name
            if path.exists():
                found[name] = path.read_bytes()
    elif archive:
        found = _members(archive, set(wanted))
    else:
        raise missing("Dakshina", folder, f"{DAKSHINA_NAME}.tar", f"{DAKSHINA_NAME}.tar.xz", f"{DAKSHINA_NAME}/")
    absent = sorted(set(wanted) - set(found))
    if absent:
        raise InputError(f"{unpacked or archive} has no {absent[0]}. Fetch it again.")
    lexicons: dict[str, dict[str, list[Attested]]] = {code: {} for code in languages}
    for name, (code, split) in wanted.items():
        lexicons[code][split] = _lexicon(found[name], name, problems)
    return lexicons


def _members(archive: Path, names: set[str]) -> dict[str, bytes]:
    found = {}
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                name = Path(member.name).name
                stream = opened.extractfile(member) if name in names and member.isfile() else None
                if stream:
                    found[name] = stream.read()
                if len(found) == len(names):
                    break
    except (tarfile.TarError, lzma.LZMAError, OSError, EOFError) as error:
        raise InputError(f"{archive} cannot be read ({error}). Fetch it again.") from None
    return found


def _lexicon(data: bytes, label: str, problems: Problems) -> list[Attested]:
    rows: dict[Pair, Attested] = {}
    for number, line in lines(data, label, problems):
        columns = [clean(column) for column in line.split("\t")]
        if len(columns) != 3 or not columns[2].isdecimal():
            problems.append(f"{label}:{number}: not native word, latin word, count")
        elif not columns[1].isascii() or columns[0].isascii() or not columns[1]:
            problems.append(f"{label}:{number}: the first word is not native or the second not latin")
        elif (columns[0], columns[1]) in rows:
            problems.append(f"{label}:{number}: the same pair a second time")
        else:
            rows[columns[0], columns[1]] = Attested(columns[0], columns[1], int(columns[2]))
    return list(rows.values())


def aksharantar(folder: Path, language: str, problems: Problems) -> list[Pair]:
    """(latin, native) of `train.csv` in `<iso3>.zip`; an empty list for a language that Aksharantar does not have."""
    code = AKSHARANTAR_CODES.get(language)
    if code is None:
        return []
    folder = folder / "aksharantar"
    archive = folder / f"{code}.zip"
    if not archive.exists():
        raise missing("Aksharantar", folder, archive.name)
    data = read_zip(archive, lambda name: name.endswith("train.csv"), "train.csv")
    text = "\n".join(line for _, line in lines(data, f"{code}.zip/train.csv", problems))
    pairs: dict[Pair, None] = {}
    for number, columns in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
        words = tuple(clean(column) for column in columns)
        if len(words) != 2 or not all(words) or not words[0].isascii() or words[1].isascii():
            problems.append(f"{code}.zip/train.csv:{number}: not latin word, native word")
        elif words in pairs:
            problems.append(f"{code}.zip/train.csv:{number}: the same pair a second time")
        else:
            pairs[words[0], words[1]] = None
    return list(pairs)


# ------------------------------------------------------------------------------------------------------------- captions


class Photograph(NamedTuple):
    path: Path
    captions: tuple[tuple[str, str], ...]  # (file:line, caption)


def flickr8k(folder: Path, problems: Problems) -> dict[str, list[Photograph]]:
    """`captions.tsv` (split, file, n, caption) beside folders train, dev and test."""
    folder = folder / "flickr8k"
    table = folder / "captions.tsv"
    if not table.exists():
        raise missing("Flickr8k", folder, "captions.tsv")
    captions: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for number, line in lines(table.read_bytes(), table.name, problems):
        columns = line.split("\t")
        if number == 1 and columns[:2] == ["split", "file"]:
            continue
        if len(columns) != 4 or columns[0] not in SPLITS or not clean(columns[3]):
            problems.append(f"{table.name}:{number}: not split, file, number, caption")
            continue
        captions.setdefault((columns[0], columns[1]), []).append((f"{table.name}:{number}", clean(columns[3])))
    photographs: dict[str, list[Photograph]] = {split: [] for split in SPLITS}
    for (split, name), texts in captions.items():
        path = folder / split / name
        if path.exists():
            photographs[split].append(Photograph(path, tuple(texts)))
        else:
            problems.append(f"{texts[0][0]}: the photograph {split}/{name} is missing")
    return photographs


# ----------------------------------------------------------------------------------------------------------- plain text

TEXTS = {"war-and-peace": "war_and_peace", "sqlite-c": "sqlite_c", "tiny-shakespeare": "tiny_shakespeare"}


def text(folder: Path, name: str) -> str:
    """A book or a program as one string with LF line ends, from .txt or .txt.xz."""
    path = first_existing(folder / "lm", *(f"{TEXTS[name]}.{end}" for end in ("txt.xz", "txt")))
    if path is None:
        raise missing(name, folder / "lm", f"{TEXTS[name]}.txt.xz", f"{TEXTS[name]}.txt")
    try:
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8").replace("\r\n", "\n")
    except (lzma.LZMAError, UnicodeDecodeError, EOFError) as error:
        raise InputError(f"{path} cannot be read ({error}). Fetch it again.") from None
