"""A small sample of dev text for the pages: `draw` writes checkpoints/sample.json. It holds texts that may be passed on, with
their credits, and no figures; what gates and units do over it is computed from the weights at hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seqdemo.checkpoints.folder import pretty_json, replace_file
from seqdemo.config import LANGUAGE_NAMES
from seqdemo.hands.sample import FORMAT
from training import data as public_data
from training.data import SOURCES, credits
from training.data.records import Example
from training.data.transliteration import LANGUAGES
from training.measure.evaluate import sampled
from training.recipes import RECIPES

SENTENCES, WORDS, LETTERS = 60, 40, 2_000
MOST_LETTERS = 120  # of a sentence
PASSAGES, PASSAGE, OPEN = 30, 240, 60  # from where a place opens; their letters, of which the first so many keep it open
WRITERS = {  # a language model: the places that its passages begin in
    "lm-tolstoy": {"quotation": r'(?<=\n\n)"(?:(?!\n\n)[^"])*'},
    "lm-c": {"comment": r"/\*(?:[^*]|\*(?!/))*"},
}
Load = Callable[[str], list[Example]]


def draw(data: Path | None = None, out: Path | None = None) -> dict[str, Any]:
    """The sample of every task, from dev splits alone, the same each time; written to `out`."""

    def dev(name: str) -> list[Example]:
        return list(public_data.load(name, data).dev)

    texts: dict[str, Any] = {"translate": of_sentences(dev("tatoeba"))}
    words = dev("dakshina:all")
    for code in LANGUAGES:
        texts[f"transliterate:{code}"] = of_words(code, [word for word in words if word.language in ("", code)])
    for name in WRITERS:
        example = dev(RECIPES[name].data)[0]
        texts[f"complete:{name}"] = {**of_text(example), "passages": passages(name, example.references[0])}
    shown = ("tatoeba", "dakshina", *(RECIPES[name].data for name in WRITERS))
    found = {"format": FORMAT, "credits": credits(shown), "texts": texts}
    if out:
        replace_file(out, pretty_json(found))
    return found


def of_sentences(examples: list[Example]) -> dict[str, Any]:
    short = [example for example in examples if len(example.source) <= MOST_LETTERS]
    return {"title": f"{SENTENCES} sentences of Tatoeba's dev split, as people translated them", "pairs": pairs(short, SENTENCES)}


def of_words(code: str, examples: list[Example]) -> dict[str, Any]:
    title = f"{WORDS} words of Dakshina's dev split, {LANGUAGE_NAMES[code]}, as people spelled them"
    return {"title": title, "pairs": pairs(examples, WORDS)}


def of_text(example: Example) -> dict[str, Any]:
    """From the first whole paragraph in the second half of the dev text."""
    text, source = example.references[0], SOURCES[example.origin]
    start = text.index("\n\n", len(text) // 2) + 2
    return {"title": f"{LETTERS:,} characters of the dev part of {source.title}", "text": text[start : start + LETTERS]}


def passages(name: str, text: str) -> dict[str, list[str]]:
    """Passages that begin where a place opens and stay in it for a while, evenly spread over the text."""
    found = {}
    for place, pattern in WRITERS[name].items():
        starts = [match.start() for match in re.finditer(pattern, text) if len(match.group()) >= OPEN]
        found[place] = [text[start : start + PASSAGE] for start in starts[:: max(1, len(starts) // PASSAGES)][:PASSAGES]]
    return found


def pairs(examples: list[Example], count: int) -> list[list[str]]:
    return [[example.source, example.references[0]] for example in sampled(examples, count)]
