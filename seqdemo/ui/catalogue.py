"""What a page starts with: the checkpoints on offer, examples that each show something, and a frozen worked result. No torch."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from seqdemo.config import ModelConfig, from_json
from seqdemo.errors import InputError
from seqdemo.ui import checks
from seqdemo.ui.fields import FIELDS, STRATEGY_NAMES, library_defaults, starting_options
from seqdemo.ui.sizes import sizes

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
EXAMPLE_FIELDS = ("text", "photo", "language", "kind", "shows", "columns", "outputs")
LONGEST_OPENING = 60  # characters
ON_MODELS_PAGE = ("sizes", "card", "headline")
LANGUAGE_NAMES = {
    "bn": "Bengali", "de": "German", "en": "English", "gu": "Gujarati", "hi": "Hindi", "kn": "Kannada", "ml": "Malayalam",
    "mr": "Marathi", "pa": "Punjabi", "sd": "Sindhi", "si": "Sinhala", "ta": "Tamil", "te": "Telugu", "ur": "Urdu",
}  # fmt: skip
CELL_TITLES = {"lstm": "LSTM", "lstm-b": "LSTM", "gru": "GRU", "elman": "Elman", "mut1": "MUT1", "mut2": "MUT2", "mut3": "MUT3"}
SCORES = {"bleu": "BLEU", "top1": "right, %", "bleu4": "BLEU-4"}
WORDS = {
    "translate": {
        "title": "What does a translator consider before it answers?",
        "lead": "Type German. Two searches through one small network write English, and every road they looked at lies open.",
        "input": "German",
    },
    "transliterate": {
        "title": "One word, spelled in another script, letter by letter",
        "lead": "Type a word in Latin letters. Two searches spell it, and you see which letters each of them leaned on.",
        "input": "In Latin letters",
    },
    "complete": {
        "title": "One letter at a time: what does the network remember?",
        "lead": "Type the beginning of a text. Two searches go on from it, and single units show what they keep in mind.",
        "input": "A text to continue",
    },
    "models": {
        "title": "The models",
        "lead": "What is loaded, how large it is, what a step of it costs, and where it fails.",
    },
    "caption": {
        "title": "What does the network see while it writes?",
        "lead": "Choose a photograph. Two searches describe it, and the picture shows where each word looked.",
        "input": "Photograph",
    },
}
OPENING = {"complete": {"strategy": "sample", "temperature": 0.8}}  # a beam repeats itself there; the rest opens with beam 5
PAGES = {"translate": "", "transliterate": "transliterate", "caption": "caption", "complete": "language-model"}


class Catalogue:
    """Reads the checkpoint folders' JSON; what is broken is left out, what is absent is simply not offered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cards = {card["name"]: card for card in map(_card, self.folders()) if card}
        _pair_twins(self.cards)

    def folders(self) -> list[Path]:
        return sorted(path.parent for path in self.root.glob("*/config.json")) if self.root.is_dir() else []

    def names(self, task: str) -> list[str]:
        return [name for name, card in self.cards.items() if card["task"] == task]

    def languages(self, name: str) -> list[str]:
        return list(self.cards.get(name, {}).get("languages", []))

    def of_task(self, task: str) -> list[dict[str, Any]]:
        """The checkpoints of a task, those with attention and with the task's own name first."""
        cards = [card for card in self.cards.values() if card["task"] == task]
        return sorted(cards, key=lambda card: (not card["attention"], len(card["languages"]) == 0, card["name"]))

    @cached_property
    def gallery(self) -> dict[str, Any]:
        """The mined examples (`python -m training gallery`), where they are."""
        path = self.root / "gallery.json"
        return json.loads(path.read_text("utf-8")) if path.is_file() else {}

    def examples(self, task: str) -> list[dict[str, Any]]:
        """Mined examples under their kind, each with the two columns that show it; else a few by hand."""
        kinds = self.gallery.get("kinds", {})
        mined = [
            {**{name: row[name] for name in EXAMPLE_FIELDS if name in row}, "title": kinds.get(row["kind"], {}).get("title", "")}
            for row in self.gallery.get("examples", {}).get(task, [])
            if row["checkpoint"] in self.cards
        ]
        if task == "caption":
            pictures = {row["photo"]: row for row in photographs()}
            return [{**pictures[row["photo"]], **row} for row in mined if row["photo"] in pictures] or list(pictures.values())
        return mined or EXAMPLES.get(task, [])

    def frozen_answer(self, task: str) -> dict[str, Any] | None:
        """The worked result a page opens with; made by `python -m seqdemo.ui.freeze`."""
        path = self.root / "frozen" / f"{task}.json"
        return json.loads(path.read_text("utf-8")) if path.is_file() else None

    def example_photo(self, name: Any) -> bytes:
        known = {example["photo"] for example in photographs()}
        if not isinstance(name, str) or name not in known:
            raise InputError("Choose one of the example photographs, or your own.")
        return (files("seqdemo.ui") / "photos" / name).read_bytes()

    def models_setup(self) -> dict[str, Any]:
        return {"kind": "models", "page": "models", "words": WORDS["models"], "checkpoints": list(self.cards.values())}

    def setup(self, task: str) -> dict[str, Any]:
        """Everything a task page's scripts need before any question."""
        cards = self.of_task(task)
        model = cards[0]["name"] if cards else ""
        examples = self.examples(task)
        first = opening(examples)
        columns = {"A": {"strategy": "greedy"}, "B": OPENING.get(task, {"strategy": "beam", "beam": 5})}
        shown = first.get("columns") or {side: {"options": options, "edits": []} for side, options in columns.items()}
        return {
            "kind": "workbench",
            "page": PAGES[task],
            "task": task,
            "words": WORDS[task],
            "checkpoints": [{name: value for name, value in card.items() if name not in ON_MODELS_PAGE} for card in cards],
            "strategies": STRATEGY_NAMES,
            "options": FIELDS,
            "defaults": starting_options(),
            "library": library_defaults(),
            "languages": [[tag, LANGUAGE_NAMES.get(tag, tag)] for card in cards[:1] for tag in card["languages"]],
            "examples": examples,
            "tab": {"complete": "text", "caption": "alignment"}.get(task, "tree"),
            "limits": {"characters": checks.MOST_CHARACTERS, "bytes": checks.MOST_PHOTO_BYTES},
            "start": {
                "text": first.get("text", ""),
                "language": first.get("language"),
                "example": first.get("photo"),
                "columns": {
                    side: {"checkpoint": model, "options": starting_options(**column["options"]), "edits": column["edits"]}
                    for side, column in shown.items()
                },
            },
        }


def _card(folder: Path) -> dict[str, Any] | None:
    def read(name: str) -> str:
        return (folder / name).read_text("utf-8") if (folder / name).is_file() else ""

    try:
        card = card_of(json.loads(read("config.json")), json.loads(read("metrics.json") or "{}"), read("README.md"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {**card, "revision": hashlib.sha256(read("manifest.json").encode()).hexdigest()[:12]}


def card_of(config: dict[str, Any], metrics: dict[str, Any], card: str) -> dict[str, Any]:
    """What the pages know of a checkpoint."""
    model = from_json(ModelConfig, config["model"])
    kinds = {side: spec["kind"] for side, spec in config.get("tokenizers", {}).items()}
    return {
        "name": config["name"],
        "title": title_of(config, model),
        "task": config["task"],
        "about": config.get("about", ""),
        "attention": model.has_attention,
        "kinds": {"source": kinds.get("source", "characters"), "target": kinds.get("target", "characters")},
        "languages": config.get("languages", []) if len(config.get("languages", [])) > 1 else [],
        "pair": [config.get("source_language", ""), config.get("target_language", "")],
        "revision": "",
        "without": "",
        "curve": curve_of(metrics),
        "units": units_of(metrics),
        "headline": headline_of(metrics),
        "sizes": sizes(model),
        "card": FRONT_MATTER.sub("", card, count=1)[:20_000],
    }


def title_of(config: dict[str, Any], model: ModelConfig) -> str:
    cell = CELL_TITLES.get(model.cell, model.cell.upper())
    if model.encoder == "none":
        return f"{cell} ({config['name']})"
    order = {
        "context-once": "context once",
        "context-each": "context each step",
        "attend-before": "attention",
        "attend-after": "attention",
    }
    where = order[model.decoder] if model.has_attention else f"no attention, {order[model.decoder]}"
    tags = config.get("languages", [])
    many = f", {len(tags)} languages" if len(tags) > 1 else f", {LANGUAGE_NAMES.get(tags[0], tags[0])}" if tags else ""
    return f"{cell}, {where}{many}"


def _pair_twins(cards: dict[str, dict[str, Any]]) -> None:
    """To each checkpoint with attention, one of the same task, languages and cell without."""
    for card in cards.values():
        if not card["attention"]:
            continue
        alike = [
            c
            for c in cards.values()
            if not c["attention"] and (c["task"], c["pair"], c["languages"]) == (card["task"], card["pair"], card["languages"])
        ]
        alike.sort(key=lambda c: (c["title"].split(",")[0] != card["title"].split(",")[0], c["name"]))
        card["without"] = alike[0]["name"] if alike else ""


def curve_of(metrics: dict[str, Any]) -> dict[str, Any] | None:
    """Quality by source length of the first test set that has it."""
    for test, tables in metrics.get("tests", {}).items():
        rows = tables.get("by_length") if isinstance(tables, dict) else None
        column = next((name for name in SCORES if rows and name in rows[0]), None)
        if rows and column:
            points = [
                {"length": row["from"], "label": _bucket(row), "value": row[column], "count": row.get("inputs", 0)}
                for row in rows
            ]
            return {"metric": SCORES[column], "test": test, "unit": rows[0].get("unit", "tokens"), "points": points}
    return None


def opening(examples: list[dict[str, Any]]) -> dict[str, Any]:
    """The example a page opens with: short, greedy against beam 5, and told apart by them; else the first."""

    def suits(example: dict[str, Any]) -> bool:
        columns = example.get("columns", {})
        plain = not any(column["edits"] for column in columns.values())
        strategies = [column["options"]["strategy"] for column in columns.values()]
        apart = len(set(example.get("outputs", {}).values())) == 2
        return plain and apart and strategies == ["greedy", "beam"] and len(example.get("text", "")) <= LONGEST_OPENING

    return next(filter(suits, examples), examples[0] if examples else {})


def headline_of(metrics: dict[str, Any]) -> list[list[str]]:
    """The main figure on each test set, as measured."""
    found = []
    for test, tables in metrics.get("tests", {}).items():
        for column, name in {**SCORES, "nats_per_character": "nats a character"}.items():
            every = [tables.get("beam"), tables.get("text"), tables.get("greedy"), tables] if isinstance(tables, dict) else []
            value = next((table[column] for table in every if table and isinstance(table.get(column), (int, float))), None)
            if value is not None:
                found.append([f"{name}, {test}", f"{value:.3g}"])
    return found[:4]


def units_of(metrics: dict[str, Any]) -> dict[str, Any]:
    """The units that track something, as measured on text kept out of training."""
    for tables in metrics.get("tests", {}).values():
        found = tables.get("units") if isinstance(tables, dict) else None
        if found:
            return {name: row for name, row in found.items() if isinstance(row, dict) and "unit" in row}
    return {}


def _bucket(row: dict[str, Any]) -> str:
    return f"{row['from']}+" if row["to"] is None else f"{row['from']}–{row['to']}"


@cache
def photographs() -> list[dict[str, Any]]:
    """The example photographs with their authors, each with a thumbnail that needs no request."""
    folder = files("seqdemo.ui") / "photos"
    listed = folder / "credits.json"
    credits = json.loads(listed.read_text("utf-8")) if listed.is_file() else []
    return [
        {
            "photo": row["file"],
            "label": row["title"],
            "shows": f"{row['title']}. Photograph: {row['author']}, {row['licence']}.",
            "thumbnail": thumbnail((folder / row["file"]).read_bytes()),
        }
        for row in credits
    ]


def thumbnail(data: bytes) -> str:
    with Image.open(io.BytesIO(data)) as picture:
        picture.draft("RGB", (136, 136))
        small = ImageOps.fit(picture.convert("RGB"), (112, 112))
    stream = io.BytesIO()
    small.save(stream, "JPEG", quality=70)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "translate": [
        {"text": "Das gefällt mir.", "shows": "The lectures' example: one early word decides the rest."},
        {"text": "Ich gehe nach Hause.", "shows": "Word order moves: look at the alignment of “home”."},
        {
            "text": "Zwei Männer in blauen Hemden spielen Gitarre auf der Straße.",
            "shows": "A long sentence: attention walks along it.",
        },
        {"text": "Ein Hund läuft über die Wiese.", "shows": "Nearly one word for one: a clean diagonal."},
    ],
    "complete": [
        {"text": 'The prince looked at her and said, "', "shows": "An open quotation: find the unit that knows it."},
        {"text": "It was a winter's evening, and ", "shows": "Greedy soon repeats itself; sampling does not."},
        {"text": "/* Return the number of pages ", "shows": "An open comment of C."},
    ],
    "transliterate": [
        {"text": "namaste", "language": "hi", "shows": "Several letters make one sound: watch the steps."},
        {"text": "dilli", "language": "hi", "shows": "A doubled letter becomes one sign."},
    ],
}
