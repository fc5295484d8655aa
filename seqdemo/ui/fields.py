"""The options of a search as controls: the command line's names, their limits, and a sentence each."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from seqdemo.config import MAX_BEAM, SearchOptions

STRATEGY_NAMES = (("greedy", "Greedy"), ("beam", "Beam"), ("sample", "Sampling"), ("exact", "Exact"))
ALL = ("greedy", "beam", "sample", "exact")
FINITE = ("beam", "exact")


def _number(
    name: str, label: str, help: str, low: float, high: float, strategies: tuple[str, ...], **more: Any
) -> dict[str, Any]:
    kind = "int" if isinstance(getattr(SearchOptions(), name), int) else "float"
    return {"name": name, "label": label, "help": help, "kind": kind, "min": low, "max": high, "for": strategies, **more}


def _choice(
    name: str, label: str, help: str, choices: tuple[tuple[str, str], ...], strategies: tuple[str, ...], **more: Any
) -> dict[str, Any]:
    return {"name": name, "label": label, "help": help, "kind": "choice", "choices": choices, "for": strategies, **more}


FIELDS: tuple[dict[str, Any], ...] = (
    _number("beam", "Beam size", "How many prefixes survive each step.", 1, MAX_BEAM, ("beam",), front=True),
    _number(
        "temperature",
        "Temperature",
        "Below 1 the draws keep to the likeliest tokens; above 1 they spread.",
        0.05,
        10,
        ("sample",),
        front=True,
    ),
    _number("top_k", "Top-k", "Draw only among the k likeliest tokens; 0 allows all.", 0, 1000, ("sample",)),
    _number("top_p", "Top-p", "Draw only among the likeliest tokens that together hold this share.", 0.001, 1, ("sample",)),
    _number("samples", "Draws", "How many outputs are drawn.", 1, 100, ("sample",)),
    _number("seed", "Seed", "The same seed gives the same draws.", 0, 2**31 - 1, ("sample",)),
    _choice(
        "length_norm",
        "Length normalisation",
        "What the log probability is divided by before outputs are ranked, so that long ones are not punished.",
        (("none", "off"), ("power", "n^α"), ("gnmt", "((5 + n) / 6)^α")),
        FINITE,
    ),
    _number(
        "alpha",
        "α of the length",
        "0 does nothing; 1 ranks by the mean per token.",
        0,
        5,
        FINITE,
        when=("length_norm", "*", "none"),
    ),
    _number("coverage", "Coverage", "Rewards outputs whose attention has covered the whole input.", 0, 10, ("beam",)),
    _choice(
        "finished",
        "A finished output",
        "Stays in the beam and holds its place, or is put aside and frees it.",
        (("stay", "keeps its place"), ("free", "frees its place")),
        ("beam",),
    ),
    _choice(
        "early",
        "When to stop",
        "When enough outputs are finished, when the best open one cannot win at its present length, or only when none can.",
        (("true", "when enough are finished"), ("false", "when the best open one cannot win"), ("never", "when none can win")),
        ("beam",),
        when=("finished", "free"),
    ),
    _number("min_length", "Minimum length", "No end before this many tokens.", 0, 200, ALL),
    _number("max_length", "Maximum length", "Tokens, the end included; 0 takes the model's own limit.", 0, 500, ALL),
    _choice(
        "at_limit",
        "At the limit",
        "What becomes of outputs that are not finished there: cut as they are, or ended with <eos> at its own price.",
        (("cut", "cut as they are"), ("force", "end with <eos>")),
        ("greedy", "beam", "sample"),
    ),
    _number("no_repeat", "No repeated n-gram", "No n tokens in a row twice; 0 allows all.", 0, 20, ("greedy", "beam", "sample")),
    _number("nbest", "Outputs shown", "How many outputs the search hands back.", 1, MAX_BEAM, FINITE),
    _number(
        "expansions", "Budget", "How many prefixes exact search may follow before it gives up its proof.", 1, 200_000, ("exact",)
    ),
    _number("frontier", "Open prefixes", "How many prefixes exact search may hold open.", 1, 400_000, ("exact",)),
)


def library_defaults() -> dict[str, Any]:
    return {field.name: field.default for field in fields(SearchOptions)}


def starting_options(**changes: Any) -> dict[str, Any]:
    """The defaults of every control, as the page holds them."""
    defaults = library_defaults()
    return {"strategy": defaults["strategy"], **{field["name"]: defaults[field["name"]] for field in FIELDS}, **changes}


def relevant(options: dict[str, Any]) -> dict[str, Any]:
    """Only what the chosen strategy reads, so that a leftover of another one changes nothing."""
    strategy = options.get("strategy", "beam")
    return {
        "strategy": strategy,
        **{f["name"]: options[f["name"]] for f in FIELDS if strategy in f["for"] and f["name"] in options},
    }
