"""Texts for language models, one long string a split, and the invented strings of the toy."""

from __future__ import annotations

import unicodedata
import zipfile
from pathlib import Path

from seqdemo.errors import InputError
from training.data import splits
from training.data.reading import SPLITS, Problems, bare, first_existing, missing, opened, readable
from training.data.records import Example, Parts, digest

STEMS = {"war-and-peace": "war_and_peace", "sqlite-c": "sqlite_c", "tiny-shakespeare": "tiny_shakespeare"}
SQLITE = "sqlite-src-3400100.zip"
REVERSE = {"train": 20_000, "dev": 500, "test": 1_000}


def build(name: str, folder: Path, problems: Problems) -> Parts:
    """The first 80 % of the characters are train, the next 10 % dev, the last 10 % test."""
    whole = tidy(_read(name, folder / "lm"))
    texts = splits.by_position(whole)
    train, dev, test = ([Example("", (texts[split],), "", None, name)] for split in SPLITS)
    return Parts(train, dev, test, contents={name: digest([(whole,)])})


def _read(name: str, folder: Path) -> bytes:
    path = first_existing(folder, f"{STEMS[name]}.txt.xz", f"{STEMS[name]}.txt")
    if path is None and name == "sqlite-c" and (folder / SQLITE).exists():
        return sqlite(folder / SQLITE)
    if path is None:
        other = [SQLITE] if name == "sqlite-c" else []
        raise missing(name, folder, f"{STEMS[name]}.txt.xz", f"{STEMS[name]}.txt", *other)
    with opened(path) as stream:
        return stream.read()


def sqlite(archive: Path) -> bytes:
    """SQLite's C sources, then its full-text search: src/*.c without the tests, ext/fts5/*.c, by name, a blank line between."""
    with readable(archive), zipfile.ZipFile(archive) as members:
        names = [name for name in sorted(members.namelist()) if name.endswith(".c")]
        source = [name for name in names if "/src/" in name and not bare(name).startswith("test")]
        search = [name for name in names if "/ext/fts5/" in name and name.count("/") == 3]
        if not source or not search:
            raise InputError(f"{archive} does not hold src/*.c and ext/fts5/*.c. Delete it and fetch it again.")
        return b"".join(members.read(name) + b"\n" for name in source + search)


def tidy(data: bytes) -> str:
    """NFC with LF line ends, one at the end; without the frame that Project Gutenberg puts round a book."""
    try:
        text = unicodedata.normalize("NFC", data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"The text is not UTF-8 ({error}). Fetch it again.") from None
    if "*** START OF TH" in text:
        text = text.split("*** START OF TH", 1)[1].split("\n", 1)[-1].split("*** END OF TH", 1)[0].lstrip()
    return text.rstrip() + "\n"


def reverse(folder: Path, problems: Problems) -> Parts:
    """The toy: random strings of 1 to 10 letters, and the same backwards."""
    made = splits.invented(lambda word: word[::-1], REVERSE, "abcdefghijklmnopqrstuvwxyz", longest=10, seed=1)
    return Parts(splits.each(made["train"]), splits.grouped(made["dev"]), splits.grouped(made["test"]))
