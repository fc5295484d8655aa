"""What the pages show of a checkpoint, read from its JSON: its title, its measured figures, the units that track something."""

from __future__ import annotations

import json
import re
from typing import Any

from seqdemo.config import LANGUAGE_NAMES, ModelConfig, from_json
from seqdemo.figures.lengths import length_points
from seqdemo.figures.metrics import SCORE_OF_TASK, interval_of
from seqdemo.figures.payloads import head_name
from seqdemo.findings import told
from seqdemo.presets import presets
from seqdemo.ui.sizes import sizes

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
SCRIPTS = {
    "bn": "Bengali", "gu": "Gujarati", "hi": "Devanagari", "kn": "Kannada", "ml": "Malayalam", "mr": "Devanagari",
    "pa": "Gurmukhi", "sd": "Arabic", "si": "Sinhala", "ta": "Tamil", "te": "Telugu", "ur": "Arabic",
}  # fmt: skip
CELL_TITLES = {"lstm": "LSTM", "lstm-b": "LSTM", "gru": "GRU", "elman": "Elman", "mut1": "MUT1", "mut2": "MUT2", "mut3": "MUT3"}
ORDERS = {"context-once": "context once", "context-each": "context each step", "single": "one network"}
READ = {"lm-tolstoy": "War and Peace", "lm-c": "C code (SQLite)"}  # what a language model has read
SCORES = {"bleu": "BLEU", "top1": "words right, %", "bleu4": "BLEU-4"}
TESTS = {"multi30k": "Multi30k", "tatoeba": "Tatoeba", "flickr8k": "Flickr8k"}
MANY_TESTS = 3


def card_of(config: dict[str, Any], metrics: dict[str, Any], card: str) -> dict[str, Any]:
    model = from_json(ModelConfig, config["model"])
    kinds = {side: spec["kind"] for side, spec in config.get("tokenizers", {}).items()}
    tags = config.get("languages", [])
    only = config.get("target_language", "")
    return {
        "name": config["name"],
        "title": title_of(config, model),
        "read": READ.get(config["name"], config["name"]) if model.encoder == "none" else "",
        "task": config["task"],
        "about": config.get("about", ""),
        "attention": model.has_attention,
        "hard": model.hard,
        "kinds": {"source": kinds.get("source", "characters"), "target": kinds.get("target", "characters")},
        "languages": tags if len(tags) > 1 else [],
        "targets": tags or ([only] if only else []),
        "pair": [config.get("source_language", ""), only],
        "revision": "",
        "without": "",
        "with": "",
        "curves": curves_of(metrics),
        "units": units_of(metrics),
        "nats": metrics.get("text", {}).get("nats_per_character"),
        "pointing": metrics.get("pointing"),
        "looking": looking_of(metrics),
        "headline": headline_of(metrics),
        "scores": scores_of(metrics),
        "compared": compared_of(metrics, config["task"]),
        "sizes": sizes(model),
        "presets": [told(preset) for preset in presets(model, 0)],
        "card": FRONT_MATTER.sub("", card, count=1)[:20_000],
    }


def title_of(config: dict[str, Any], model: ModelConfig) -> str:
    cell = "Transformer" if model.is_transformer else CELL_TITLES.get(model.cell, model.cell.upper())
    if model.encoder == "none":
        return f"{READ.get(config['name'], config['name'])}, {cell}"
    hard, before = "hard " * model.hard, " before each step" * (model.decoder == "attend-before")
    where = (
        f"{model.heads} heads"
        if model.is_transformer
        else f"{hard}attention{before}"
        if model.has_attention
        else f"no attention, {ORDERS[model.decoder]}"
    )
    tags = config.get("languages", [])
    many = f", {len(tags)} languages" if len(tags) > 1 else f", {LANGUAGE_NAMES.get(tags[0], tags[0])}" if tags else ""
    return f"{cell}, {where}{many}"


def language_title(tag: str) -> str:
    name = LANGUAGE_NAMES.get(tag, tag)
    return f"{name} ({SCRIPTS[tag]})" if SCRIPTS.get(tag, name) != name else name


def test_title(test: str) -> str:
    return TESTS.get(test) or LANGUAGE_NAMES.get(test) or test


def curves_of(metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """Quality by source length on every test set that has it."""
    found = []
    for test, tables in metrics.get("tests", {}).items():
        rows = tables.get("by_length") if isinstance(tables, dict) else None
        column = next((name for name in SCORES if rows and name in rows[0]), None)
        if rows and column:
            points = length_points(rows, column)
            facts = {"metric": SCORES[column], "test": test, "title": test_title(test), "unit": rows[0].get("unit", "tokens")}
            found.append({**facts, "points": points})
    return found


def scores_of(metrics: dict[str, Any]) -> list[dict[str, Any]]:
    """The main figure of every test set with its 95 % interval, where one was measured."""
    found = []
    for test, tables in metrics.get("tests", {}).items():
        table = (tables.get("beam") or tables.get("greedy") or {}) if isinstance(tables, dict) else {}
        for column, name in SCORES.items():
            if column in table:
                facts = {"test": test, "title": test_title(test), "metric": name, "inputs": tables.get("inputs", 0)}
                found.append({**facts, "value": table[column], "interval": interval_of(tables, column, table[column])})
    return found


def compared_of(metrics: dict[str, Any], task: str) -> dict[str, list[str]]:
    """Which figures of the Models page can draw this model: the kind of figure -> the test sets."""
    tests = {test: tables for test, tables in metrics.get("tests", {}).items() if isinstance(tables, dict)}
    column = SCORE_OF_TASK.get(task, ("",))[0]

    def measured(table: str) -> list[str]:
        return [test for test, tables in tests.items() if any(column in row for row in tables.get(table, ()))]

    return {
        "length": measured("by_length"),
        "scores": [row["test"] for row in scores_of(metrics)],
        "beams": measured("by_beam"),
        "errors": list(tests) if metrics.get("search", {}).get("beams") else [],
    }


def headline_of(metrics: dict[str, Any]) -> list[list[str]]:
    """The main figure on each test set; for many test sets the mean, the best and the worst."""
    nats = metrics.get("text", {}).get("nats_per_character")
    if nats is not None:
        return [["nats a character, text kept out of training", f"{nats:.3f}"]]
    found = [
        row for test, tables in metrics.get("tests", {}).items() if isinstance(tables, dict) for row in _scores(test, tables)
    ]
    if len(found) > MANY_TESTS:
        low, high = (choose(found, key=lambda row: row[2]) for choose in (min, max))
        mean = sum(value for _, _, value in found) / len(found)
        ends = [(name, f"{word}: {test}", value) for word, (name, test, value) in (("best", high), ("worst", low))]
        found = [(found[0][0], f"mean of {len(found)} test sets", mean), *ends]
    return [[f"{name.removesuffix(', %')}, {test}", f"{value:.1f}" + " %" * name.endswith("%")] for name, test, value in found]


def _scores(test: str, tables: dict[str, Any]) -> list[tuple[str, str, float]]:
    table = tables.get("beam") or tables.get("greedy") or {}
    return [(name, test_title(test), table[column]) for column, name in SCORES.items() if column in table]


def looking_of(metrics: dict[str, Any]) -> dict[str, Any] | None:
    """How often a map points at what is written, for every language (training/measure/looking)."""
    found = metrics.get("looking")
    if not isinstance(found, dict):
        return None
    kept = {name: found[name] for name in ("words", "sentences", "links", "right", "error") if name in found}
    languages = {tag: {"words": one["words"], "right": one["right"]} for tag, one in found.get("languages", {}).items()}
    return {**kept, **best_head(found), "languages": languages}


def best_head(found: dict[str, Any]) -> dict[str, Any]:
    """Of a Transformer: the head that aligns best by itself, as the alignment's menu names it."""
    if "best_head" not in found:
        return {}
    layer, head = found["best_head"].split(".")
    share = found["heads"][found["best_head"]]
    return {"best": {"name": head_name(layer, head), "share": share, "of": len(found["heads"])}}


def units_of(metrics: dict[str, Any]) -> dict[str, Any]:
    """The units that track something, as measured on text kept out of training."""
    return {name: row for name, row in metrics.get("units", {}).items() if isinstance(row, dict) and "unit" in row}


def visitor_card(checkpoint: Any, name: str) -> dict[str, Any]:
    """The card of a model from the Hub; without its figures if they have an unknown form."""
    try:
        card = card_of(checkpoint.config, checkpoint.metrics, checkpoint.card)
        json.dumps(card, allow_nan=False)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):
        card = card_of(checkpoint.config, {}, checkpoint.card)
    return {**card, "summary": checkpoint.summary, "name": name, "revision": checkpoint.revision}
