"""What a page starts with: the checkpoints on offer, examples that each show something, and a frozen worked result. No torch."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterable
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from seqdemo.checkpoints.folder import CONFIG, MANIFEST, METRICS, parse_json
from seqdemo.config import TOLERANCE
from seqdemo.errors import InputError
from seqdemo.ui.cards import ORDERS, card_of, language_title
from seqdemo.ui.fields import CONTROLS, LONGEST_TEXT, MOST_PHOTO_BYTES, STRATEGY_NAMES, library_defaults, starting_options

EXAMPLE_FIELDS = ("text", "photo", "language", "kind", "shows", "references", "columns", "outputs", "checkpoint")
EACH_STEP = ORDERS["context-each"]
TELLING = ("README.md", "metrics.json")
ON_MODELS_PAGE = ("sizes", "card", "headline", "scores", "compared", "pictures")
WORDS = {
    "translate": {
        "title": "What does a translator consider before it answers?",
        "lead": "One German sentence and two searches through a small network: A and B write English, "
        "and below stands every path they considered.",
        "input": "German",
    },
    "transliterate": {
        "title": "One word, spelled in another script, letter by letter",
        "lead": "One word and two searches through a small network: A and B spell it, "
        "and you see which letters each of them leaned on.",
        "input": "In Latin letters",
    },
    "complete": {
        "title": "One letter at a time: what does the network remember?",
        "lead": "The beginning of a text and two searches that go on from it; "
        "below, single units of the network show what they keep in mind.",
        "input": "A text to continue",
    },
    "models": {
        "title": "The models",
        "lead": "How well they do, how large they are, what a step costs, and where they fail.",
    },
    "caption": {
        "title": "What does the network see while it writes?",
        "lead": "One photograph and two searches through a small network: A and B describe it, "
        "and the picture shows where each word looked.",
        "input": "Photograph",
    },
}
OPENING = {"complete": {"strategy": "sample", "temperature": 0.8}}  # a beam repeats itself there; the rest opens with beam 5
PAGES = {"translate": "", "transliterate": "transliterate", "caption": "caption", "complete": "language-model"}


class Catalogue:
    """Reads the JSON of the checkpoint folders. Broken and missing checkpoints are left out."""

    def __init__(self, root: Path, elsewhere: Iterable[Path] = ()) -> None:
        """`elsewhere`: folders of single checkpoints that replace missing ones."""
        self.root, self.elsewhere = root, list(elsewhere)
        self.cards = {card["name"]: card for card in map(_card, self.folders()) if card}
        _pair_twins(self.cards)

    def folders(self) -> list[Path]:
        shipped = sorted(path.parent for path in self.root.glob("*/config.json")) if self.root.is_dir() else []
        return shipped + self.elsewhere

    def names(self, task: str) -> list[str]:
        return [name for name, card in self.cards.items() if card["task"] == task]

    def languages(self, name: str) -> list[str]:
        return list(self.cards.get(name, {}).get("languages", []))

    def of_task(self, task: str) -> list[dict[str, Any]]:
        """The checkpoints of a task: those with attention, with many languages, of human language first."""
        cards = [card for card in self.cards.values() if card["task"] == task]

        def place(card: dict[str, Any]) -> tuple[Any, ...]:
            return not card["attention"], not card["languages"], card["pair"][1] == "c", card["name"]

        return sorted(cards, key=place)

    @cached_property
    def gallery(self) -> dict[str, Any]:
        """The mined examples (`python -m training gallery`); empty without the file."""
        path = self.root / "gallery.json"
        return json.loads(path.read_text("utf-8")) if path.is_file() else {}

    def examples(self, task: str) -> list[dict[str, Any]]:
        """Mined examples with the title of their kind, each with the two columns that show it; otherwise a few by hand."""
        kinds = self.gallery.get("kinds", {})
        mined = [
            {**{name: row[name] for name in EXAMPLE_FIELDS if name in row}, "title": kinds.get(row["kind"], {}).get("title", "")}
            for row in self.gallery.get("examples", {}).get(task, [])
            if row["checkpoint"] in self.cards
        ]
        if task == "caption":
            pictures = {row["photo"]: row for row in photographs()}
            return [{**pictures[row["photo"]], **row} for row in mined if row["photo"] in pictures] or list(pictures.values())
        return mined + self.by_hand(task, {row["checkpoint"] for row in mined})

    def by_hand(self, task: str, mined: set[str]) -> list[dict[str, Any]]:
        """Examples for the models without mined ones; if there are none, examples for any model."""
        rows = EXAMPLES.get(task, [])
        known = [row for row in rows if row.get("checkpoint", "") in {"", *self.cards}]
        if known or mined:
            return [row for row in known if not mined or row.get("checkpoint", "") not in {"", *mined}]
        return [{name: value for name, value in row.items() if name != "checkpoint"} for row in rows]

    def languages_of(self, task: str) -> list[list[str]]:
        """Tag and title of every target language that models of the task offer; empty if there is no choice."""
        cards = self.of_task(task)
        tags = dict.fromkeys(tag for card in cards if card["languages"] for tag in card["languages"])
        return sorted(([tag, language_title(tag)] for tag in tags), key=lambda row: row[1])

    def frozen_answer(self, task: str) -> dict[str, Any] | None:
        """The worked result that a page opens with (made by `python -m seqdemo.ui.freeze`); None if a model or the question has
        changed since."""
        path = self.root / "frozen" / f"{task}.json"
        if not path.is_file() or not self.names(task):
            return None
        kept = json.loads(path.read_text("utf-8"))
        return kept if kept.pop("asked", self.asked_first(task)) == self.asked_first(task) else None

    def asked_first(self, task: str) -> str:
        """A hash of the question that a page opens with and of the models that answer it."""
        start = self.setup(task)["start"]
        models = {column["checkpoint"]: self.cards[column["checkpoint"]]["revision"] for column in start["columns"].values()}
        return hashlib.sha256(json.dumps([start, models], sort_keys=True).encode()).hexdigest()[:16]

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
        examples = self.examples(task)
        first = opening(examples)
        model = first.get("checkpoint") or (cards[0]["name"] if cards else "")
        languages = self.languages_of(task)
        targets = self.cards.get(model, {}).get("targets", []) if languages else []
        columns = {"A": {"strategy": "greedy"}, "B": OPENING.get(task, {"strategy": "beam", "beam": 5})}
        shown = first.get("columns") or {side: {"options": options, "edits": []} for side, options in columns.items()}
        return {
            "kind": "workbench",
            "page": PAGES[task],
            "task": task,
            "words": WORDS[task],
            "checkpoints": [{name: value for name, value in card.items() if name not in ON_MODELS_PAGE} for card in cards],
            "strategies": STRATEGY_NAMES,
            "options": CONTROLS,
            "defaults": starting_options(),
            "library": library_defaults(),
            "languages": languages,
            "examples": examples,
            "tab": {"complete": "text", "caption": "alignment"}.get(task, "tree"),
            "limits": {"characters": LONGEST_TEXT[task], "bytes": MOST_PHOTO_BYTES},
            "precision": {"name": "float32", "tolerance": TOLERANCE["float32"]},
            "start": {
                "text": first.get("text", ""),
                "language": first.get("language") or next(iter(targets), None),
                "example": first.get("photo"),
                "columns": {
                    side: {
                        "checkpoint": column.get("checkpoint") or model,
                        "options": starting_options(**column["options"]),
                        "edits": column["edits"],
                    }
                    for side, column in shown.items()
                },
            },
        }


def _card(folder: Path) -> dict[str, Any] | None:
    def read(name: str) -> str:
        return (folder / name).read_text("utf-8") if (folder / name).is_file() else ""

    try:
        config, metrics, manifest = (parse_json((read(name) or "{}").encode(), name) for name in (CONFIG, METRICS, MANIFEST))
        card = {**card_of(config, metrics, read("README.md")), "revision": _mark(manifest)}
        json.dumps(card, allow_nan=False)  # a card that is no JSON would break the page for all models
        return card
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _mark(manifest: dict[str, Any]) -> str:
    """A hash of the files that decide a checkpoint's answers, without its card and its figures."""
    deciding = {name: part for name, part in manifest.get("files", {}).items() if name not in TELLING}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:12]


def _pair_twins(cards: dict[str, dict[str, Any]]) -> None:
    """Write into each card the name of its twin: for a model with attention, one without it, and the reverse."""
    attending = [card for card in cards.values() if card["attention"]]
    others = [card for card in cards.values() if not card["attention"]]
    for card in attending:
        card["without"] = _likest(card, others)
    for card in others:
        card["with"] = _likest(card, [other for other in attending if other["without"] == card["name"]] or attending)


def _likest(card: dict[str, Any], among: list[dict[str, Any]]) -> str:
    """The name of the checkpoint in `among` that is most similar to this one and does the same task in the same languages, or ''.
    A model that sees the context at each step is preferred to one that sees it once."""
    alike = [other for other in among if all(other[key] == card[key] for key in ("task", "pair", "languages"))]
    alike.sort(key=lambda other: (_cell(other) != _cell(card), EACH_STEP not in other["title"], other["name"]))
    return alike[0]["name"] if alike else ""


def _cell(card: dict[str, Any]) -> str:
    return str(card["title"].split(",")[0])


def opening(examples: list[dict[str, Any]]) -> dict[str, Any]:
    """The example a page opens with: the first, which the gallery has chosen for it."""
    return examples[0] if examples else {}


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
            "shows": f"{row['title']}.",
            "credit": f"Photograph: {row['author']}, {row['licence']}.",
            "thumbnail": thumbnail((folder / row["file"]).read_bytes()),
        }
        for row in credits
    ]


def thumbnail(data: bytes) -> str:
    with Image.open(io.BytesIO(data)) as picture:
        picture.draft("RGB", (112, 112))
        small = ImageOps.fit(picture.convert("RGB"), (72, 72))
    stream = io.BytesIO()
    small.save(stream, "WEBP", quality=50, method=6)  # half of what a JPEG takes
    return "data:image/webp;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "translate": [
        {"text": "Das gefällt mir.", "shows": "A classic example: one early word decides the rest."},
        {"text": "Ich gehe nach Hause.", "shows": "Word order moves: look at the alignment of “home”."},
        {
            "text": "Zwei Männer in blauen Hemden spielen Gitarre auf der Straße.",
            "shows": "A long sentence: attention walks along it.",
        },
        {"text": "Ein Hund läuft über die Wiese.", "shows": "Nearly one word for one: a clean diagonal."},
    ],
    "complete": [
        {
            "text": 'The prince looked at her and said, "',
            "shows": "An open quotation: find the unit that knows it.",
            "checkpoint": "lm-tolstoy",
        },
        {
            "text": "It was a winter's evening, and ",
            "shows": "Greedy soon repeats itself; sampling does not.",
            "checkpoint": "lm-tolstoy",
        },
        {
            "text": '"I don\'t know," said Prince Andrew (he had not listened). ',
            "shows": "A quotation that is closed, and parentheses: one unit follows each of them.",
            "checkpoint": "lm-tolstoy",
        },
        {
            "text": "/*\n** Return the number of pages ",
            "shows": "An open comment: the model must remember to close it.",
            "checkpoint": "lm-c",
        },
        {
            "text": "  if( pPage->nFree>0 ){\n    for(i=0; i<",
            "shows": "Two open parentheses and four blanks: indentation and parentheses have units of their own.",
            "checkpoint": "lm-c",
        },
    ],
    "transliterate": [
        {"text": "namaste", "language": "hi", "shows": "Several letters make one sound: watch the steps."},
        {"text": "dilli", "language": "hi", "shows": "A doubled letter becomes one sign."},
    ],
}


def upload_of(value: Any, folder: Path) -> Path:
    """The path of an upload, after a check that it exists inside the upload folder and is not too large."""
    if not isinstance(value, str) or "\x00" in value or len(value) > 1_000:
        raise InputError("The photograph cannot be found; choose it again.")
    path = Path(value).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise InputError("The photograph is no longer on the server: uploads are deleted within the hour. Choose it again.")
    if path.stat().st_size > MOST_PHOTO_BYTES:
        raise InputError("This file is larger than 5 MB. Save it smaller and try again.")
    return path
