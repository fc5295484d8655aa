"""Find examples that each show something: `mine` writes checkpoints/gallery.json.

Inputs come from dev data that may be passed on (Tatoeba, Dakshina, War and Peace, each with its credit) and from the example
photographs. For every kind the file says how many inputs were searched and how many show it; the best few are kept, each
with the two settings to compare and a caption computed from its numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seqdemo.checkpoints import Checkpoint
from seqdemo.checkpoints.folder import WEIGHTS, pretty_json, replace_file
from seqdemo.config import SearchOptions
from seqdemo.edits import Edit, edit_to_json
from seqdemo.errors import InputError
from seqdemo.hub import load
from seqdemo.playground import Run, find, run
from seqdemo.prompts import prepare
from seqdemo.search import SearchResult
from training.data import credits
from training.data.records import Example
from training.measure.decoding import Progress, batch_size, batches, quiet
from training.measure.evaluate import load_data, rounded, sampled
from training.publish import gallery_kinds as kinds
from training.publish import gallery_openings as openings
from training.publish.gallery_kinds import Case, Column, Find, Hit, Kind
from training.publish.photographs import Photo, read_photographs

FORMAT = 1
PER_KIND = 3
INPUTS = 1_200
PASSAGES = 150  # beginnings for a language model, and as many quotations
REFERENCES = 3  # of an example, at most
GOES_ON = 80  # characters of how a text goes on
FREE = ("tatoeba", "dakshina", "war-and-peace")


SEQUENCES = ("translate", "transliterate", "caption")
EVERYONE = (*SEQUENCES, "complete")
# A page opens with the first example of its task, so the openings stand first.
KINDS: dict[str, Kind] = {
    "written": Kind(
        "Beam search writes what a person wrote, greedy search does not",
        "Of at most 30 characters; the output of beam 5 is one of the references, that of greedy search is none.",
        SEQUENCES[:1], 1_200, openings.written_by_beam, openings.say_written,
    ),
    "spelling": Kind(
        "A spelling one can follow",
        "Every sign is right; the heaviest letters of the alignment go forwards from the first to the last, each with at least"
        " half of its row; a model of the same kind without attention gets the word wrong.",
        SEQUENCES[1:2], 1_200, openings.spelled, openings.say_spelled, attention=True,
    ),
    "named": Kind(
        "The right thing, named and looked at",
        "The caption names the main thing of the photograph, and the heaviest cell of that word's map lies in its box.",
        SEQUENCES[2:], 1_200, openings.named_and_attended, openings.say_named, attention=True,
    ),
    "quotation": Kind(
        "A unit that knows it is inside a quotation",
        "Inside this quotation, all values of the unit that metrics.json names for quotations lie on one side of those after it.",
        EVERYONE[3:], 1_200, openings.quotations, openings.say_quotation,
    ),
    "greedy-beam": Kind(
        "Greedy search differs from beam search",
        "Beam 5 finds a likelier output; first those that are also better against the references.",
        EVERYONE, 1_200, kinds.greedy_loses, kinds.say_greedy,
    ),
    "beam-optimum": Kind(
        "Beam search differs from the proved optimum",
        "Exact search proves that another output is likelier than that of beam 5.",
        SEQUENCES, 400, kinds.beam_loses, kinds.say_optimum,
    ),
    "larger-beam": Kind(
        "A larger beam is worse",
        "Beam 50 finds a likelier output than beam 5, and it scores lower against the references by at least 10 points.",
        SEQUENCES[:2], 600, kinds.larger_is_worse, kinds.say_larger,
    ),
    "attention-off": Kind(
        "Attention off breaks it",
        "With attention spread evenly the output loses at least 30 points against the references.",
        SEQUENCES, 600, kinds.attention_matters, kinds.say_off, attention=True,
    ),
    "attention-row": Kind(
        "Another row of attention flips a word",
        "All attention on one place of the source changes one word of greedy search's output, and no other.",
        SEQUENCES, 60, kinds.row_flips, kinds.say_row, attention=True,
    ),
    "scene": Kind(
        "The right scene, the wrong thing",
        "The caption has a word for the scene of the photograph and none for its main thing.",
        SEQUENCES[2:], 1_200, openings.scene_only, openings.say_scene,
    ),
    "repetition": Kind(
        "Repetition loops",
        "Greedy search says the same words (a transliterator: the same letters) at least three times in a row.",
        EVERYONE, 1_200, kinds.repeats, kinds.say_loop,
    ),
    "hard-soft": Kind(
        "Hard and soft attention differ",
        "With beam 5 a captioner that looks at one cell for each word writes another caption than one that looks at all of them;"
        " first those of which one alone names the main thing.",
        SEQUENCES[2:], 1_200, openings.hard_and_soft, openings.say_hard, attention=True,
    ),
}  # fmt: skip


class Budget(NamedTuple):
    """How many inputs are searched for each checkpoint; some kinds use fewer."""

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
    keep: bool = False,
) -> dict[str, Any]:
    """The gallery of these checkpoints, written to `out`; a task's page opens with the first example of its first checkpoint.
    `photographs` is the folder of the example photographs. With `keep`, what `out` holds of other checkpoints stays."""
    checkpoints = [load(Path(folder)) for folder in folders]
    found = kept(out, checkpoints) if keep and out else {"checkpoints": {}, "kinds": {}, "examples": {}}
    for checkpoint in checkpoints:
        seen = read_photographs(photographs) if checkpoint.task == "caption" else {}
        cases = cases_of(checkpoint, inputs_of(checkpoint, data, seen), budget.inputs, seen)
        rows = examples_of(checkpoint, cases, budget, found["kinds"], progress)
        found["checkpoints"].update(weights_shown(checkpoint, rows))
        found["examples"][checkpoint.task] = replaced(found["examples"].get(checkpoint.task, []), checkpoint.name, rows)
    counted = {name: found["kinds"][name] for name in KINDS if name in found["kinds"]}
    whole = {"format": FORMAT, "checkpoints": found["checkpoints"], "credits": credits(FREE), "kinds": counted}
    found = dict(rounded({**whole, "examples": found["examples"]}))
    if out and not any(found["examples"].values()):
        raise InputError(f"No example was found to show, so {out} is left as it was. Name checkpoints with more dev inputs.")
    if out:
        replace_file(Path(out), pretty_json(found))
    return found


def kept(out: Path, checkpoints: Sequence[Checkpoint]) -> dict[str, Any]:
    """What the file holds, without its counts for these checkpoints. Their old examples keep the places of the new ones."""
    found: dict[str, Any] = json.loads(Path(out).read_text("utf-8"))
    mined = {checkpoint.name for checkpoint in checkpoints}
    rows = [row for rows in found["examples"].values() for row in rows if row["checkpoint"] not in mined]
    stay = {name for row in rows for name in shown_in(row)}
    changed = {name for name in stay if found["checkpoints"].get(name) != weights_digest(Path(out).parent / name)}
    if changed:
        again = sorted({row["checkpoint"] for row in rows if changed & shown_in(row)})
        raise InputError(f"{', '.join(sorted(changed))}: other weights than those in {out}. Name {', '.join(again)} too.")
    found["checkpoints"] = {name: found["checkpoints"][name] for name in sorted(stay)}
    for count in found["kinds"].values():
        for part in ("searched", "found"):
            count[part] = {name: value for name, value in count[part].items() if name not in mined}
    found["kinds"] = {name: count for name, count in found["kinds"].items() if count["searched"]}
    return found


def replaced(rows: list[dict[str, Any]], name: str, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new examples of a checkpoint stand where its old ones stood, or at the end."""
    place = next((place for place, row in enumerate(rows) if row["checkpoint"] == name), len(rows))
    others = [row for row in rows if row["checkpoint"] != name]
    return others[:place] + new + others[place:]


def shown_in(row: dict[str, Any]) -> set[str]:
    """The checkpoints that an example shows."""
    return {row["checkpoint"], *(column["checkpoint"] for column in row["columns"].values() if "checkpoint" in column)}


def weights_shown(checkpoint: Checkpoint, rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    assert checkpoint.folder is not None
    others = {name for row in rows for name in shown_in(row)} - {checkpoint.name}
    found = {name: weights_digest(checkpoint.folder.parent / name) for name in sorted(others)}
    return {checkpoint.name: weights_digest(checkpoint.folder), **found}


def weights_digest(folder: Path) -> str:
    return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()


# ----------------------------------------------------------------------------------------------------------------- inputs


def inputs_of(checkpoint: Checkpoint, data: Path | None, photographs: dict[Path, Photo]) -> list[Example]:
    if checkpoint.task == "caption":
        return [Example(path.name, (), "", path, "photographs") for path in photographs]
    dev = load_data(checkpoint, folder=data).dev
    free = [example for example in dev if example.origin in FREE]
    return [passage for example in free for passage in passages(example)] if checkpoint.task == "complete" else free


def passages(example: Example) -> list[Example]:
    """Beginnings of paragraphs, up to a blank near the fortieth character, and whole quotations with a few words after them. The
    reference is the continuation in the book."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in example.references[0].split("\n\n")]
    long = [paragraph for paragraph in paragraphs if len(paragraph) > 120]
    begun = [(paragraph, paragraph[: paragraph.index(" ", 40) + 1]) for paragraph in sampled(long, PASSAGES)]
    quoted = [(paragraph, text) for paragraph in long for text in openings.quoted_passages(paragraph)]
    both = {text: paragraph for paragraph, text in begun + sampled(quoted, PASSAGES)}
    return [Example(text, (paragraph[len(text) :][:GOES_ON],), "", None, example.origin) for text, paragraph in both.items()]


def cases_of(checkpoint: Checkpoint, examples: Sequence[Example], size: int, photographs: dict[Path, Photo]) -> list[Case]:
    return [
        Case(
            example,
            prepare(checkpoint, example.picture or example.source, example.language),
            photographs[example.picture] if example.picture else None,
        )
        for example in sampled(examples, size)
    ]


# ----------------------------------------------------------------------------------------------------------------- search


def finder(checkpoint: Checkpoint) -> Find:
    """A search in batches of similar length that remembers its answers."""
    known: dict[tuple[int, SearchOptions, tuple[Edit, ...]], SearchResult] = {}

    def search(cases: Sequence[Case], options: SearchOptions, edits: tuple[Edit, ...] = ()) -> list[SearchResult]:
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
    """The best few of every kind. If there are many inputs, each is used for one kind only."""
    search, used, rows = finder(checkpoint), set[int](), list[dict[str, Any]]()
    fitting = {name: kind for name, kind in KINDS.items() if kind.suits(checkpoint)}
    plenty = len(cases) >= len(fitting) * budget.per_kind
    for name, kind in fitting.items():
        looked = sampled(cases, kind.most)
        hits = kind.search(checkpoint, looked, search)
        progress(f"{checkpoint.name}: {kind.title}", len(hits), len(looked))
        count = counts.setdefault(name, {"title": kind.title, "criterion": kind.criterion, "searched": {}, "found": {}})
        count["searched"][checkpoint.name], count["found"][checkpoint.name] = len(looked), len(hits)
        for hit in best_few([hit for hit in hits if id(hit.case) not in used], budget.per_kind):
            used |= {id(hit.case)} if plenty else set()
            rows.append(row_of(checkpoint, name, kind, hit))
    return rows


def best_few(hits: Sequence[Hit], count: int) -> list[Hit]:
    """The most telling hits, taken in turn from each group so that they differ; ties are broken by a hash."""
    groups: dict[str, list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.weight, hashlib.sha256(hit.case.example.source.encode()).digest())):
        groups.setdefault(hit.group, []).append(hit)
    turns = [hit for turn in range(count) for group in groups.values() for hit in group[turn : turn + 1]]
    return turns[:count]


def row_of(checkpoint: Checkpoint, name: str, kind: Kind, hit: Hit) -> dict[str, Any]:
    """An example for the pages: an input, two columns, and a sentence about them."""
    columns, example = (hit.first, hit.second), hit.case.example
    runs = [run_of(checkpoint, hit.case, column) for column in columns]
    given = {"photo": example.source} if example.picture else {"text": example.source}
    if example.language and len(checkpoint.languages) > 1:
        given["language"] = example.language
    return {
        **given,
        "kind": name,
        "checkpoint": checkpoint.name,
        "source": example.origin,
        "shows": kind.caption(checkpoint, hit, runs[0], runs[1]),
        "references": [hit.case.photo.title] if hit.case.photo else list(example.references[:REFERENCES]),
        "columns": {side: column_of(column) for side, column in zip("AB", columns)},
        "outputs": {side: done.texts[0] for side, done in zip("AB", runs)},
        "logps": {side: done.hypotheses[0].total for side, done in zip("AB", runs)},
    }


def run_of(checkpoint: Checkpoint, case: Case, column: Column) -> Run:
    if not column.checkpoint:
        return run(checkpoint, case.prompt, column.options, column.edits)
    assert checkpoint.folder is not None
    other = load(checkpoint.folder.parent / column.checkpoint)
    return run(other, case.example.picture or case.example.source, column.options, column.edits, case.example.language)


def column_of(column: Column) -> dict[str, Any]:
    """Only the settings that differ from the library's defaults, and the model if it is another one."""
    usual = SearchOptions().to_json()
    changed = {key: value for key, value in column.options.to_json().items() if value != usual[key]}
    other = {"checkpoint": column.checkpoint} if column.checkpoint else {}
    edits = [edit_to_json(edit) for edit in column.edits]
    return {**other, "options": {"strategy": column.options.strategy, **changed}, "edits": edits}
