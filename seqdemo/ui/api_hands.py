"""Endpoints for hands on the model: the next word under any row, which unit matters, film strips and more, as JSON."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from seqdemo.errors import InputError
from seqdemo.ui.answers import Cancel, Progress, name_of, object_of
from seqdemo.ui.api import (
    CHECKPOINT,
    EDITS,
    PRECISION,
    TASK,
    TEXT,
    TO,
    Endpoints,
    Parameter,
    add,
    option_parameters,
    told_precision,
)
from seqdemo.ui.fields import TASKS
from seqdemo.ui.hands import FIRST, Hands
from seqdemo.ui.pages import probe_sentence

SEARCH = Parameter(
    "options",
    dict,
    {},
    'Options of the search by name, as /translate has them: {"strategy": "beam", "beam": 5}; greedy if empty.',
)
INPUT = (
    Parameter("text", str, "", "The input; of a language model the beginning of the text."),
    TASK,
    TEXT["caption"]._replace(default={}),
    TO,
    CHECKPOINT,
    SEARCH,
    EDITS,
    PRECISION,
)
PLACE = Parameter(
    "position",
    int,
    FIRST,
    "A piece of the best output, counted from 0 (of a language model, from the beginning of the whole text); -1: the first that"
    " was written.",
)
LAYER = Parameter("layer", int, -1, "Of which layer; -1: of all.")
HEAD = Parameter("head", int, -1, "Of which head; -1: of all.")
WHERE = Parameter("place", str, "", "quotation or comment; empty: the one that was recorded for this model.")
OVER = Parameter("over", str, "input", "Over the input at hand (input), or over a recorded sample of dev text (sample).")


class Hand(NamedTuple):
    """One endpoint: what it asks, what for, by which parameters, and what comes back."""

    ask: str
    purpose: str
    parameters: tuple[Parameter, ...]
    returns: str


HANDS = {
    "next_word": Hand(
        "next",
        "Tell the likeliest next words at a place, as things are and under any rows of attention.",
        (
            PLACE,
            Parameter("rows", list, [], "Rows of attention, each a list of one weight a source position; made to sum to 1."),
            LAYER,
            HEAD,
            Parameter("top", int, 8, "How many words for each row, up to 50."),
        ),
        "said: the piece that stands there; own and rows: for each its weights, p of that piece, and bars, the likeliest pieces.",
    ),
    "row_bound": Hand(
        "bound",
        "Measure how far a word's probability moves when all attention lies on one source position, for each in turn.",
        (PLACE, LAYER, HEAD),
        "own, each, least, most, moves: probabilities; says_else: where another piece becomes the likeliest; says: a sentence.",
    ),
    "words": Hand(
        "words",
        "Tell the words that a typed beginning may become at a place, likeliest first, as edits; or a word that must be said.",
        (
            PLACE,
            Parameter("typed", str, "", "The beginning of the word."),
            Parameter("most", int, 8, "How many words, up to 50."),
            Parameter("anywhere", bool, False, "Return instead the edit that requires this word anywhere in the output."),
        ),
        "words: each with its text, pieces, p, and edits that force (edit) or ban it; or require.",
    ),
    "rank_units": Hand(
        "units",
        "Rank the units of a layer by what holding each at its mean does to the log probability of a word.",
        (
            PLACE,
            Parameter("length", int, 1, "How many pieces the word has."),
            Parameter("part", str, "decoder", "decoder or encoder."),
            Parameter("direction", str, "forward", "Of an encoder: forward or backward."),
            Parameter("layer", int, 0, "The layer, counted from 0."),
            Parameter("what", str, "", "cell or hidden; empty takes the cell, where there is one."),
            OVER,
            Parameter("steps", int, 0, "Hold the units during the last so many steps only; 0: during all."),
        ),
        "units: all, the most needed first, with change (nats); groups: the first few together beside random groups of as many.",
    ),
    "sweep": Hand(
        "strip",
        "Decode at one setting after another: along the dimmer of attention, the sizes of a beam, or the precisions.",
        (
            Parameter("along", str, "beam", "dimmer, beam or precision."),
            Parameter("towards", str, "uniform", "What the dimmer blends attention with: uniform, last or nothing."),
            Parameter("wanted", str, "", "The answer that beams are held against; may be left out."),
        ),
        "frames, each an output with its setting and how it differs; of beams the pool of all outputs, to be ranked anew; says.",
    ),
    "cheapest": Hand(
        "cheapest",
        "Look for what would make it say a word at a place: a ban, an earlier edit, a bent row, a few held units.",
        (PLACE, Parameter("word", str, "", "The word that is wanted.")),
        "ways: for each what was found, its edits, size, price and cost, or how near it came; cheapest: which of them.",
    ),
    "gates": Hand(
        "gates",
        "Tell when each gate closes and opens, and classic questions as clamps.",
        (OVER,),
        "gates: for each the mean by piece, and the pieces at which it is most shut and most open; presets: clamps by name.",
    ),
    "followers": Hand(
        "followers",
        "Find the units of a language model that follow a place such as a quotation, over recorded passages of dev text.",
        (WHERE,),
        "units: each with its layer and AUC; outside and inside: edits that hold them together as they are there.",
    ),
    "closing": Hand(
        "closing",
        "Count how many texts that begin inside a quotation or a comment close it, as the model is and with what edits hold.",
        (WHERE,),
        "of: how many texts; free and held: how many of them close it; free_texts and held_texts.",
    ),
}


def answered(
    endpoints: Endpoints, hands: Hands, hand: Hand, given: dict[str, Any], progress: Progress, cancel: Cancel
) -> dict[str, Any]:
    task, options = name_of(given["task"], list(TASKS), "The task"), object_of(given["options"], "The options")
    unknown = sorted(set(options) - {each.name for each in option_parameters()})
    if unknown:
        raise InputError(f"There is no option {unknown[0]!r}; /translate names those that there are.")
    question = endpoints.question(task, {**given, **options})
    asked = {each.name: given[each.name] for each in hand.parameters}
    nothing = {"layer": -1, "head": -1, "steps": 0}
    message = {name: value for name, value in asked.items() if value != nothing.get(name, ...)}
    found = hands.program(question, message, hand.ask, progress, cancel)
    return {"checkpoint": question.checkpoint, **found, **told_precision(question)}


def add_hands(hands: Hands) -> None:
    """Call inside the app's Blocks."""
    endpoints = Endpoints(hands.answers)
    for name, hand in HANDS.items():
        work = partial(answered, endpoints, hands, hand)
        add(name, hand.purpose, [*INPUT, *hand.parameters], hand.returns, work, probe_sentence)
