"""Photographs with five captions each: Flickr8k."""

from __future__ import annotations

import csv
import hashlib
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from training.data.download import alone, cache_folder
from training.data.reading import SPLITS, Problems, bare, first_existing, lines, missing, opened, readable, zip_member
from training.data.records import Example, Parts, clean, digest

MIN_WORDS = 3
TOKENS = "Flickr8k.token.txt"
PHOTOGRAPHS = "flickr8k:photographs"
LISTS = {split: f"Flickr_8k.{split}Images.txt" for split in SPLITS}
PICTURES = ("Flicker8k_Dataset", "Flickr8k_Dataset", "Images", "images")
FULL_SIZE = "the photographs have their full size; recorded figures were measured on copies whose short side is 256 pixels"


class Caption(NamedTuple):
    split: str
    file: str
    number: int
    text: str
    place: str  # file:line


class Photograph(NamedTuple):
    path: Path
    captions: list[Caption]


def build(folder: Path, problems: Problems) -> Parts:
    """Train has one example for each caption; dev and test have one for each photograph, with all its captions. They are sorted
    by file name."""
    folder = folder / "flickr8k"
    parts = Parts()
    if not (folder / "captions.tsv").exists():
        parts.notes.append(FULL_SIZE)
    photographs = _photographs(sorted(_captions(folder, problems)), folder, problems)
    repeated = _repeated(photographs)
    for photograph in photographs["train"]:
        name = photograph.path.name
        if name in repeated:
            problems.append(f"{name}: the same photograph as {repeated[name]}; left out of train")
        else:
            parts.train += [_example(photograph.path, [caption]) for caption in _long_enough(photograph, problems)]
    for split, into in (("dev", parts.dev), ("test", parts.test)):
        for photograph in photographs[split]:
            problems += [f"{c.place}: {_short(c)}, kept as a reference" for c in photograph.captions if too_short(c.text)]
            into.append(_example(photograph.path, photograph.captions))
    every = (caption for split in SPLITS for photograph in photographs[split] for caption in photograph.captions)
    parts.contents["flickr8k"] = digest((c.split, c.file, str(c.number), c.text) for c in every)
    paths = [photograph.path for split in SPLITS for photograph in photographs[split]]
    parts.contents[PHOTOGRAPHS] = digest((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths)
    return parts


def _example(path: Path, captions: list[Caption]) -> Example:
    return Example(path.name, tuple(caption.text for caption in captions), "", path, "flickr8k")


def too_short(caption: str) -> bool:
    return len(re.findall(r"\w+", caption)) < MIN_WORDS


def _short(caption: Caption) -> str:
    return f"fewer than {MIN_WORDS} words ({caption.text})"


def _long_enough(photograph: Photograph, problems: Problems) -> Iterator[Caption]:
    for caption in photograph.captions:
        if too_short(caption.text):
            problems.append(f"{caption.place}: {_short(caption)}, left out of train")
        else:
            yield caption


def _photographs(captions: list[Caption], folder: Path, problems: Problems) -> dict[str, list[Photograph]]:
    places = _pictures(folder)
    by_file: dict[tuple[str, str], list[Caption]] = {}
    for caption in captions:
        by_file.setdefault((caption.split, caption.file), []).append(caption)
    photographs: dict[str, list[Photograph]] = {split: [] for split in SPLITS}
    for (split, name), texts in by_file.items():
        path = next((place / name for place in (folder / split, *places) if (place / name).exists()), None)
        if path:
            photographs[split].append(Photograph(path, texts))
        else:
            problems.append(f"{texts[0].place}: there is no photograph {name}")
    return photographs


def _repeated(photographs: dict[str, list[Photograph]]) -> dict[str, str]:
    """Photographs of train whose bytes equal those of a held-out photograph or of an earlier one of train."""
    sizes: dict[int, list[Path]] = {}
    for split in ("dev", "test", "train"):
        for photograph in photographs[split]:
            sizes.setdefault(photograph.path.stat().st_size, []).append(photograph.path)
    first: dict[str, str] = {}
    repeated = {}
    for paths in sizes.values():
        for path in paths if len(paths) > 1 else ():
            original = first.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path.name)
            if original != path.name:
                repeated[path.name] = original
    held = {photograph.path.name for split in ("dev", "test") for photograph in photographs[split]}
    return {name: original for name, original in repeated.items() if name not in held}


# ---------------------------------------------------------------------------------------------------- the three layouts


def _captions(folder: Path, problems: Problems) -> Iterator[Caption]:
    """`captions.tsv`; or `<split>/metadata.csv` as on the Hub; or the original lists, unpacked or in Flickr8k_text.zip."""
    if (folder / "captions.tsv").exists():
        return _from_table(folder / "captions.tsv", problems)
    if (folder / "train" / "metadata.csv").exists():
        return _from_metadata(folder, problems)
    if _original(folder):
        return _from_lists(folder, problems)
    raise missing("Flickr8k", folder, "captions.tsv", "train/metadata.csv", "Flickr8k_text.zip", TOKENS)


def _from_table(table: Path, problems: Problems) -> Iterator[Caption]:
    """A header, then split TAB file TAB number TAB caption."""
    with opened(table) as stream:
        for number, line in lines(stream, table.name, problems):
            columns = line.split("\t")
            if number > 1 or columns[:2] != ["split", "file"]:
                yield from _checked(columns, f"{table.name}:{number}", problems)


def _from_metadata(folder: Path, problems: Problems) -> Iterator[Caption]:
    """One row per photograph: file_name, split, caption_0 to caption_4."""
    for split in SPLITS:
        label = f"{split}/metadata.csv"
        with opened(folder / split / "metadata.csv") as stream:
            rows = csv.DictReader(line for _, line in lines(stream, label, problems))
            for row in rows:
                captions = [(key.removeprefix("caption_"), row[key] or "") for key in row if key.startswith("caption_")]
                for n, text in captions:
                    yield from _checked([split, row.get("file_name") or "", n, text], f"{label}:{rows.line_num}", problems)


def _original(folder: Path) -> Path | None:
    return first_existing(folder, "Flickr8k_text.zip", f"Flickr8k_text/{TOKENS}", TOKENS)


def _from_lists(folder: Path, problems: Problems) -> Iterator[Caption]:
    """`Flickr8k.token.txt` (file#number TAB caption) and one list of file names a split; the rest is in no split."""
    split_of: dict[str, str] = {}
    for split, name in LISTS.items():
        split_of.update((line.strip(), split) for _, line in _original_lines(folder, name, problems) if line.strip())
    for number, line in _original_lines(folder, TOKENS, problems):
        key, _, text = line.partition("\t")
        file, _, n = key.partition("#")
        if file in split_of:
            yield from _checked([split_of[file], file, n, text], f"{TOKENS}:{number}", problems)


def _original_lines(folder: Path, name: str, problems: Problems) -> Iterator[tuple[int, str]]:
    path = _original(folder)
    assert path is not None
    member = zip_member(path, name.__eq__, name) if path.suffix == ".zip" else opened(path.with_name(name))
    with member as stream:
        yield from lines(stream, name, problems)


def _checked(columns: list[str], place: str, problems: Problems) -> Iterator[Caption]:
    usable = len(columns) == 4 and columns[0] in SPLITS and columns[2].isdecimal() and clean(columns[3])
    if usable and columns[1] == bare(columns[1]) != "":
        yield Caption(columns[0], columns[1], int(columns[2]), clean(columns[3]), place)
    else:
        problems.append(f"{place}: not split, file, number, caption")


def _pictures(folder: Path) -> list[Path]:
    """The folder of full-size photographs, if there is one; a zip is unpacked into the cache, once."""
    unpacked = first_existing(folder, *PICTURES)
    archive = first_existing(folder, "Flickr8k_Dataset.zip", "Flicker8k_Dataset.zip")
    if unpacked is None and archive is not None:
        facts = f"{archive.resolve()} {archive.stat().st_size} {archive.stat().st_mtime_ns}"
        unpacked = _unpack(archive, cache_folder() / "flickr8k" / f"unpacked-{hashlib.sha256(facts.encode()).hexdigest()[:12]}")
    return [unpacked] if unpacked else []


def _unpack(archive: Path, target: Path) -> Path:
    with alone(target):
        if target.exists():
            return target
        half = target.with_name(target.name + ".part")
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir()
        with readable(archive), zipfile.ZipFile(archive) as members:
            for member in members.infolist():
                if member.filename.endswith(".jpg") and not member.filename.startswith("__MACOSX"):
                    (half / bare(member.filename)).write_bytes(members.read(member))
        half.rename(target)
    return target
