"""The main figures of a checkpoint and the names of their test sets, from metrics.json alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from seqdemo.checkpoints.folder import METRICS
from seqdemo.config import LANGUAGE_NAMES

FORMAT = 1
TITLES = {"multi30k": "Multi30k", "tatoeba": "Tatoeba", "flickr8k": "Flickr8k"}
SPLITS = {("multi30k", "test"): "test_2016_flickr"}  # splits with a name of their own
PARTS = {"train": "first 80 %", "dev": "last but one 10 %", "test": "last 10 %"}  # of a text


def recorded(folder: Path) -> dict[str, Any]:
    """The content of a folder's metrics.json; empty if it is missing or cannot be read."""
    try:
        found = json.loads((folder / METRICS).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Column(NamedTuple):
    """A figure of a table: its key in metrics.json, its name, its name on the Hub, its unit, whether more is better."""

    key: str
    name: str
    hub: str
    unit: str = ""
    digits: int = 1


COLUMNS = {
    "translate": (
        Column("bleu", "BLEU", "bleu"),
        Column("chrf", "chrF", "chrf"),
        Column("exact", "equal to a reference", "exact_match", " %"),
    ),
    "transliterate": (
        Column("top1", "right", "accuracy", " %"),
        Column("top5", "right among five", "top_5_accuracy", " %"),
        Column("cer", "wrong characters", "cer", " %"),
    ),
    "caption": (*(Column(f"bleu{n}", f"BLEU-{n}", f"bleu{n}") for n in (1, 2, 3, 4)), Column("cider", "CIDEr", "cider")),
    "complete": (Column("nats_per_character", "nats per character", "nats_per_character", "", 3),),
}
MAIN = {"translate": ("bleu",), "transliterate": ("top1",), "caption": ("bleu4", "cider"), "complete": ("nats_per_character",)}


class Headline(NamedTuple):
    """One figure of one test set, with the plan's own search."""

    test: str
    column: Column
    value: float

    @property
    def text(self) -> str:
        return f"{self.value:.{self.column.digits}f}{self.column.unit}"


def title(metrics: dict[str, Any], test: str) -> str:
    """The name of a test set in words, with the split."""
    split = metrics["split"]
    if metrics["task"] == "transliterate" and test in LANGUAGE_NAMES:
        return f"Dakshina {LANGUAGE_NAMES[test]} {split}"
    if test in TITLES:
        return f"{TITLES[test]} {SPLITS.get((test, split), split)}"
    return test if split == "test" else f"{test} {split}"


def every(metrics: dict[str, Any]) -> list[Headline]:
    """All figures of all test sets."""
    columns = COLUMNS[metrics["task"]]
    if metrics["task"] == "complete":
        return [Headline(metrics["data"]["name"], column, metrics["text"][column.key]) for column in columns]
    rows = {test: figures["beam"] for test, figures in metrics["tests"].items()}
    if "mean" in metrics:
        rows = {"mean": metrics["mean"], **rows}
    return [Headline(test, column, row[column.key]) for test, row in rows.items() for column in columns if column.key in row]


def main(metrics: dict[str, Any]) -> list[Headline]:
    """The figures for a table of many checkpoints: for many languages only the mean and Hindi's."""
    chosen = [one for one in every(metrics) if one.column.key in MAIN[metrics["task"]]]
    if "mean" in metrics:
        chosen = [one for one in chosen if one.test in ("mean", "hi")]
    return chosen


def search_name(metrics: dict[str, Any]) -> str:
    """The search of the main figures."""
    options = metrics["options"]
    divisors = {"power": "n^{alpha:g}", "gnmt": "((5 + n) / 6)^{alpha:g}"}
    divisor = divisors[options["length_norm"]].format(alpha=options.get("alpha", 1.0)) if "length_norm" in options else ""
    return f"beam {options['beam']}" + (f", log p / {divisor}" if divisor else "")


def sentence(metrics: dict[str, Any]) -> str:
    """The main figures in one line."""
    if not metrics:
        return "not measured"
    parts = [f"{one.column.name} {one.text} ({place(metrics, one.test)})" for one in main(metrics)]
    parts += [search_name(metrics)] if "options" in metrics else []
    return ", ".join(parts) + ("" if metrics["data"]["verified"] else "; on other data than the recorded ones")


def place(metrics: dict[str, Any], test: str) -> str:
    if test == "mean":
        return f"mean of {len(metrics['tests'])} languages" + ("" if metrics["split"] == "test" else f", {metrics['split']}")
    if metrics["task"] == "complete":
        return f"{PARTS[metrics['split']]} of {test}"
    return title(metrics, test)
