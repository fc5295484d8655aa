"""What a page asks for: its tasks, the limits of what is sent, and the options of a search as controls: the command line's
names, their limits, and a sentence each."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from seqdemo.config import MAX_BEAM, SearchOptions

TASKS = ("translate", "transliterate", "caption", "complete")
LONGEST_TEXT = {**dict.fromkeys(TASKS, 1_000), "complete": 3_000}  # characters: what two columns read within a second or so
MOST_PHOTO_BYTES = 5 * 1024 * 1024
STRATEGY_NAMES = (
    ("greedy", "Greedy"),
    ("beam", "Beam"),
    ("sample", "Sampling"),
    ("exact", "Exact"),
    ("stochastic", "Stochastic beam"),
)
ALL = ("greedy", "beam", "sample", "exact", "stochastic")
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
    _number("beam", "Beam size", "How many prefixes survive each step.", 1, MAX_BEAM, ("beam", "stochastic"), front=True),
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
    _number(
        "typical",
        "Typical",
        "Draw only among the tokens whose surprise is nearest to the expected one, of this share; 1 allows all.",
        0.001,
        1,
        ("sample",),
        rare=True,
    ),
    _number(
        "min_p", "Min-p", "Draw only among tokens of at least this share of the likeliest one's.", 0, 1, ("sample",), rare=True
    ),
    _number("samples", "Draws", "How many outputs are drawn.", 1, 100, ("sample",)),
    _number("seed", "Seed", "The same seed gives the same draws.", 0, 2**31 - 1, ("sample", "stochastic")),
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
    _number("coverage", "Coverage", "Rewards outputs whose attention has covered the whole input.", 0, 10, ("beam",), rare=True),
    _choice(
        "finished",
        "A finished output",
        "Stays in the beam and holds its place, or is put aside and frees it, at once or for the next step.",
        (("stay", "keeps its place"), ("free", "frees its place"), ("leave", "leaves an empty place")),
        ("beam",),
        rare=True,
    ),
    _choice(
        "early",
        "When to stop",
        "When enough outputs are finished, when the best open one cannot win at its present length, or only when none can.",
        (("true", "when enough are finished"), ("false", "when the best open one cannot win"), ("never", "when none can win")),
        ("beam",),
        when=("finished", "free"),
        rare=True,
    ),
    _number(
        "patience",
        "Patience",
        "Stop after so many beams full of finished outputs.",
        0.01,
        10,
        ("beam",),
        when=("finished", "free"),
        rare=True,
    ),
    _number(
        "groups",
        "Groups (diverse beam)",
        "Cuts the beam into so many equal groups, which choose one after the other and avoid each other's tokens.",
        1,
        MAX_BEAM,
        ("beam",),
        rare=True,
    ),
    _number(
        "diversity",
        "Diversity",
        "What a token costs a group for each time that an earlier group chose it at this step.",
        0,
        100,
        ("beam",),
        when=("groups", "*", 1),
        rare=True,
    ),
    _number(
        "siblings",
        "Siblings",
        "The k-th best continuation of a hypothesis pays k times this; 0 nothing.",
        0,
        100,
        ("beam",),
        rare=True,
    ),
    _number("min_length", "Minimum length", "No end before this many tokens.", 0, 200, ALL, rare=True),
    _number(
        "max_length",
        "Maximum length",
        "Tokens, the end included; 0 takes the model's own limit.",
        0,
        500,
        ALL,
        zero="the model's own",
    ),
    _choice(
        "at_limit",
        "At the limit",
        "What happens to outputs that are unfinished there: cut as they are, or ended with <eos> at its own price.",
        (("cut", "cut as they are"), ("force", "end with <eos>")),
        ("greedy", "beam", "sample", "stochastic"),
        rare=True,
    ),
    _number(
        "no_repeat",
        "No repeated n-gram",
        "No n tokens in a row twice; 0 allows all.",
        0,
        20,
        ("greedy", "beam", "sample", "stochastic"),
        zero="off",
    ),
    _number(
        "repetition_penalty",
        "Repetition penalty",
        "The score of a token that was said before is divided by this; 1 does nothing.",
        0.1,
        10,
        ALL,
        rare=True,
    ),
    _number("nbest", "Outputs shown", "How many outputs the search hands back.", 1, MAX_BEAM, (*FINITE, "stochastic")),
    _number(
        "expansions",
        "Budget in expansions",
        "An expansion follows one prefix: the model tells what may come next. After so many, exact search gives up its proof.",
        1,
        200_000,
        ("exact",),
    ),
    _number("frontier", "Open prefixes", "How many prefixes exact search may hold open.", 1, 400_000, ("exact",), rare=True),
)


# On the pages one choice represents a list of piece numbers, so that users see no numbers.
EXCEPTIONS = _choice(
    "may_repeat",
    "May repeat",
    "Which n-grams may come again although no n-gram may be repeated.",
    (("none", "nothing"), ("signs", "n-grams with a punctuation mark")),
    ("greedy", "beam", "sample", "stochastic"),
    when=("no_repeat", "*", 0),
    rare=True,
)
CONTROLS = (*FIELDS, EXCEPTIONS)

LISTS = {  # options that are lists of piece numbers, as programs give them
    "may_repeat": "Numbers of pieces; n-grams that hold one of them may come again.",
    "prefix": "Numbers of the pieces that the output must begin with.",
}


def library_defaults() -> dict[str, Any]:
    return {field.name: field.default for field in fields(SearchOptions)}


def starting_options(**changes: Any) -> dict[str, Any]:
    """The defaults of every control, as the page holds them."""
    defaults = library_defaults()
    controls = {field["name"]: defaults[field["name"]] for field in FIELDS}
    return {"strategy": defaults["strategy"], **controls, EXCEPTIONS["name"]: "none", **changes}
