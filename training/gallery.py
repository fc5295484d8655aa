"""Examples that each show something, found by search: `mine` writes checkpoints/gallery.json.

Inputs come from dev data that may be passed on (Tatoeba, Dakshina, War and Peace, each with its credit) and from the example
photographs. For every kind the file says how many inputs were searched and how many show it; the best few are kept, each
with the two settings to compare and a caption computed from its numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seqdemo.checkpoints import Checkpoint, load
from seqdemo.checkpoints.folder import WEIGHTS, pretty_json, replace_file
from seqdemo.config import SearchOptions
from seqdemo.edits import Edit, edit_to_json
from seqdemo.errors import InputError
from seqdemo.playground import find, run
from seqdemo.prompts import prepare
from seqdemo.search import Found
from training import data as public_data
from training.data import SOURCES
from training.data.records import Example
from training.decoding import Progress, batch_size, batches, quiet
from training.evaluate import data_name, rounded, sampled
from training.gallery_kinds import KINDS, Case, Column, Find, Hit, Kind

FORMAT = 1
PER_KIND = 5
INPUTS = 1_200
PASSAGES = 150  # beginnings for a language model
FREE = ("tatoeba", "dakshina", "war-and-peace")


class Budget(NamedTuple):
    """How many inputs each checkpoint is searched on; a kind may look at fewer."""

    inputs: int = INPUTS
    per_kind: int = PER_KIND


STANDARD = Budget()


def mine(
    folders: Sequence[Path],
    data: Path | None = None,
    photographs: Path | None = None,
    out: Path | None = None,
    budget: Budget = STANDARD,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """The gallery of these checkpoints (one a task; `photographs` is the folder of the example photographs), written to `out`."""
    checkpoints = [load(Path(folder)) for folder in folders]
    found: dict[str, Any] = {"format": FORMAT, "checkpoints": {}, "credits": credits(), "kinds": {}, "examples": {}}
    for checkpoint in checkpoints:
        cases = cases_of(checkpoint, inputs_of(checkpoint, data, photographs), budget.inputs)
        found["checkpoints"][checkpoint.name] = weights_digest(checkpoint)
        found["examples"][checkpoint.task] = examples_of(checkpoint, cases, budget, found["kinds"], progress)
    found = dict(rounded(found))
    if out:
        replace_file(Path(out), pretty_json(found))
    return found


def credits() -> dict[str, dict[str, str]]:
    return {name: {"title": SOURCES[name].title, "home": SOURCES[name].home, "licence": SOURCES[name].licence} for name in FREE}


def weights_digest(checkpoint: Checkpoint) -> str:
    assert checkpoint.folder is not None
    return hashlib.sha256((checkpoint.folder / WEIGHTS).read_bytes()).hexdigest()


# ----------------------------------------------------------------------------------------------------------------- inputs


def inputs_of(checkpoint: Checkpoint, data: Path | None, photographs: Path | None) -> list[Example]:
    if checkpoint.task == "caption":
        return photographs_in(photographs)
    dev = public_data.load(data_name(checkpoint), data).dev
    free = [example for example in dev if example.origin in FREE]
    return [passage for example in free for passage in passages(example)] if checkpoint.task == "complete" else free


def photographs_in(folder: Path | None) -> list[Example]:
    paths = sorted(folder.glob("*.jpg")) if folder else []
    if not paths:
        raise InputError(f"There are no photographs in {folder or 'no folder'}: name a folder of .jpg files with --photographs.")
    return [Example(path.name, (), "", path, "photographs") for path in paths]


def passages(example: Example) -> list[Example]:
    """The first words of paragraphs, up to a blank near the fortieth character; what follows is the reference."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in example.references[0].split("\n\n")]
    long = [paragraph for paragraph in paragraphs if len(paragraph) > 120]
    begun = [paragraph[: paragraph.index(" ", 40) + 1] for paragraph in sampled(long, PASSAGES)]
    return [Example(text, (), "", None, example.origin) for text in begun]


def cases_of(checkpoint: Checkpoint, examples: Sequence[Example], size: int) -> list[Case]:
    chosen = sampled(examples, size)
    return [Case(example, prepare(checkpoint, example.picture or example.source, example.language)) for example in chosen]


# ----------------------------------------------------------------------------------------------------------------- search


def finder(checkpoint: Checkpoint) -> Find:
    """Searches in batches of like length, and never twice for the same question."""
    known: dict[tuple[int, SearchOptions, tuple[Edit, ...]], Found] = {}

    def search(cases: Sequence[Case], options: SearchOptions, edits: tuple[Edit, ...] = ()) -> list[Found]:
        missing = [case for case in cases if (id(case), options, edits) not in known]
        missing.sort(key=lambda case: len(case.prompt.pieces.ids))
        for group in batches(range(len(missing)), batch_size(options)):
            part = [missing[index] for index in group]
            results = find(checkpoint, [case.prompt for case in part], options, edits, record=False)
            known.update(((id(case), options, edits), found) for case, found in zip(part, results))
        return [known[id(case), options, edits] for case in cases]

    return search


def examples_of(
    checkpoint: Checkpoint, cases: list[Case], budget: Budget, counts: dict[str, Any], progress: Progress
) -> list[dict[str, Any]]:
    """The best few of every kind; where there are many inputs, each shows one thing only."""
    search, used, rows = finder(checkpoint), set[int](), list[dict[str, Any]]()
    plenty = len(cases) >= len(KINDS) * budget.per_kind
    for name, kind in KINDS.items():
        if not kind.suits(checkpoint):
            continue
        looked = sampled(cases, kind.most)
        hits = kind.search(checkpoint, looked, search)
        progress(f"{checkpoint.name}: {kind.title}", len(hits), len(looked))
        count = counts.setdefault(name, {"title": kind.title, "searched": {}, "found": {}})
        count["searched"][checkpoint.name], count["found"][checkpoint.name] = len(looked), len(hits)
        for hit in best_few([hit for hit in hits if id(hit.case) not in used], budget.per_kind):
            used |= {id(hit.case)} if plenty else set()
            rows.append(row_of(checkpoint, name, kind, hit))
    return rows


def best_few(hits: Sequence[Hit], count: int) -> list[Hit]:
    """The most telling, taken in turn from each group, so that five do not all show the same; a hash settles ties."""
    groups: dict[str, list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.weight, hashlib.sha256(hit.case.example.source.encode()).digest())):
        groups.setdefault(hit.group, []).append(hit)
    turns = [hit for turn in range(count) for group in groups.values() for hit in group[turn : turn + 1]]
    return turns[:count]


def row_of(checkpoint: Checkpoint, name: str, kind: Kind, hit: Hit) -> dict[str, Any]:
    """An example as the pages take it: an input, two columns, and a sentence about them."""
    columns = (hit.first, hit.second)
    runs = [run(checkpoint, hit.case.prompt, column.options, column.edits) for column in columns]
    example = hit.case.example
    given = {"photo": example.source} if example.picture else {"text": example.source}
    if example.language and len(checkpoint.languages) > 1:
        given["language"] = example.language
    return {
        **given,
        "kind": name,
        "checkpoint": checkpoint.name,
        "source": example.origin,
        "shows": kind.caption(checkpoint, hit, runs[0], runs[1]),
        "columns": {side: column_of(column) for side, column in zip("AB", columns)},
        "outputs": {side: done.texts[0] for side, done in zip("AB", runs)},
        "logps": {side: done.hypotheses[0].total for side, done in zip("AB", runs)},
    }


def column_of(column: Column) -> dict[str, Any]:
    """Only what differs from the library's own settings."""
    usual = SearchOptions().to_json()
    changed = {key: value for key, value in column.options.to_json().items() if value != usual[key]}
    return {"options": {"strategy": column.options.strategy, **changed}, "edits": [edit_to_json(edit) for edit in column.edits]}
