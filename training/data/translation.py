"""German to English: Multi30k and Tatoeba, alone or joined."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from seqdemo.errors import InputError
from training.data import splits
from training.data.reading import SPLITS, Pair, Problems, first_existing, lines, missing, opened, zip_member
from training.data.records import Parts, clean, digest, valid

STEMS = {"train": ("train",), "dev": ("val",), "test": ("test_2016_flickr", "test")}


def build(names: tuple[str, ...], folder: Path, problems: Problems) -> Parts:
    """Multi30k has its own splits, Tatoeba gets them by component; no held-out sentence stands on either side of train."""
    parts = Parts()
    read: dict[str, dict[str, list[Pair]]] = {}
    for name in names:
        if name == "multi30k":
            read[name] = multi30k(folder / name, problems)
            parts.contents[name] = digest(pair for split in SPLITS for pair in read[name][split])
        else:
            pairs = tatoeba(folder / name, problems)
            read[name] = splits.by_component(pairs)
            parts.contents[name] = digest(pairs)
        parts.dev += splits.grouped(read[name]["dev"], origin=name)
        parts.test += splits.grouped(read[name]["test"], origin=name)
    held_out = parts.held_out()
    for name in names:
        kept = splits.without(read[name]["train"], held_out)
        parts.note(
            len(read[name]["train"]) - len(kept), f"pairs of {name} left out of train: one of their sides is in dev or test"
        )
        parts.train += splits.each(kept, origin=name)
    return parts


def multi30k(folder: Path, problems: Problems) -> dict[str, list[Pair]]:
    """(German, English) of each split: `train.de` with `train.en` (or .gz), or `train.jsonl` with keys de and en."""
    return {split: _multi30k_split(folder, STEMS[split], problems) for split in SPLITS}


def _multi30k_split(folder: Path, stems: tuple[str, ...], problems: Problems) -> list[Pair]:
    for stem in stems:
        german = first_existing(folder, f"{stem}.de", f"{stem}.de.gz")
        english = first_existing(folder, f"{stem}.en", f"{stem}.en.gz")
        if german and english:
            return _checked(_parallel(german, english, problems), german.name, problems)
        if (folder / f"{stem}.jsonl").exists():
            return _checked(_objects(folder / f"{stem}.jsonl", problems), f"{stem}.jsonl", problems)
    raise missing("Multi30k", folder, f"{stems[0]}.de with {stems[0]}.en", f"{stems[-1]}.jsonl")


def _parallel(german: Path, english: Path, problems: Problems) -> list[tuple[int, Pair]]:
    sides, lengths = [], []
    for path in (german, english):
        with opened(path) as stream:
            rows = stream.readlines()
        lengths.append(len(rows))
        sides.append(dict(lines(rows, path.name, problems)))
    if lengths[0] != lengths[1]:
        raise InputError(
            f"{german} has {lengths[0]:,} lines, {english.name} {lengths[1]:,}: they must match line by line. Fetch both again."
        )
    numbers = sorted(sides[0].keys() & sides[1].keys())
    return [(number, (clean(sides[0][number]), clean(sides[1][number]))) for number in numbers]


def _objects(path: Path, problems: Problems) -> list[tuple[int, Pair]]:
    rows = []
    with opened(path) as stream:
        for number, line in lines(stream, path.name, problems):
            try:
                row = json.loads(line)
                rows.append((number, (valid(row["de"]), valid(row["en"]))))
            except (ValueError, TypeError, KeyError):
                problems.append(f"{path.name}:{number}: not a JSON object with texts de and en")
    return rows


def _checked(rows: Iterable[tuple[int, Pair]], label: str, problems: Problems) -> list[Pair]:
    pairs = []
    for number, pair in rows:
        if all(pair):
            pairs.append(pair)
        else:
            problems.append(f"{label}:{number}: an empty sentence")
    return pairs


def tatoeba(folder: Path, problems: Problems) -> list[Pair]:
    """(German, English) from `deu.txt`: English TAB German, in most editions TAB attribution; every pair once."""
    path = first_existing(folder, "deu-eng.zip", "deu.txt")
    if path is None:
        raise missing("Tatoeba", folder, "deu-eng.zip", "deu.txt")
    member = zip_member(path, lambda name: name == "deu.txt", "deu.txt") if path.suffix == ".zip" else opened(path)
    pairs: dict[Pair, None] = {}
    with member as stream:
        for number, line in lines(stream, "deu.txt", problems):
            columns = line.split("\t")
            pair = (clean(columns[1]), clean(columns[0])) if len(columns) in (2, 3) else ("", "")
            if len(columns) not in (2, 3):
                problems.append(f"deu.txt:{number}: {len(columns)} columns instead of 2 or 3")
            elif not all(pair):
                problems.append(f"deu.txt:{number}: an empty sentence")
            elif pair in pairs:
                problems.append(f"deu.txt:{number}: the same pair a second time")
            else:
                pairs[pair] = None
    return list(pairs)
