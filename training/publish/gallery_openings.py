"""Kinds of examples that a page can open with: they show the model at its best, or its most telling mistake, to somebody who has
never seen it. Each has a rule that can be checked for any weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, ModelConfig, SearchOptions
from seqdemo.hub import load
from seqdemo.playground import Run, find, trace
from seqdemo.prompts import prepare
from seqdemo.records import Hypothesis, Trace
from seqdemo.search.compare import lower_first
from training.measure.pointing import points
from training.publish.gallery_kinds import BEAM, GREEDY, Case, Column, Find, Hit, best, parting, place, text_of, times
from training.publish.photographs import Photo

SHORTEST, LONGEST = 4, 30  # characters of an input to open with
SURE = 0.5  # of a row's attention on one letter
FEWEST_SIGNS = 4
MOST_CHARACTERS = 140  # of a passage with a quotation
DRAWN = SearchOptions(strategy="sample", temperature=0.8)


# ------------------------------------------------------------------------------------------------------------ translation


def written_by_beam(checkpoint: Checkpoint, cases: Sequence[Case], search: Find) -> list[Hit]:
    """Beam 5 writes exactly what a person wrote; greedy search does not."""
    hits = []
    for case, a, b in zip(cases, best(search(cases, GREEDY)), best(search(cases, BEAM))):
        short = SHORTEST <= len(case.example.source) <= LONGEST
        mine, other = (text_of(checkpoint, one.tokens) for one in (a, b))
        if short and other in case.example.references and mine not in case.example.references:
            hits.append(Hit(case, b.total - a.total, "", Column(GREEDY), Column(BEAM)))
    return hits


def say_written(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    mine, other = a.hypotheses[0], b.hypotheses[0]
    at = parting(mine.tokens, other.tokens)
    return (
        f"Beam 5 writes “{b.texts[0]}”, as a person did; the model finds that {times(other.total - mine.total)} as likely as "
        f"what greedy search wrote, which lost it at {place(checkpoint, mine.tokens, at)}."
    )


# -------------------------------------------------------------------------------------------------------- transliteration


def neighbour(checkpoint: Checkpoint, fits: Callable[[ModelConfig], bool]) -> Checkpoint | None:
    """The first checkpoint beside this one that has the same task and languages, and whose model fits."""
    if checkpoint.folder is None:
        return None
    for manifest in sorted(checkpoint.folder.parent.glob("*/manifest.json")):
        if manifest.parent == checkpoint.folder:
            continue
        other = load(Path(manifest.parent))
        alike = (other.task, other.languages, other.config.get("target_language"))
        same = alike == (checkpoint.task, checkpoint.languages, checkpoint.config.get("target_language"))
        if same and fits(other.model.config):  # type: ignore[arg-type]
            return other
    return None


def twin_of(checkpoint: Checkpoint) -> Checkpoint | None:
    return neighbour(checkpoint, lambda config: not config.has_attention)


def spelled(checkpoint: Checkpoint, cases: Sequence[Case], search: Find) -> list[Hit]:
    """Every sign is right and attends to its own letters, in order; the twin without attention gets the word wrong."""
    twin = twin_of(checkpoint)
    if twin is None:
        return []
    hits = []
    for case, found in zip(cases, best(search(cases, BEAM))):
        if not SHORTEST <= len(case.example.source) <= LONGEST or not right(checkpoint, case, found):
            continue
        shown = trace(checkpoint, case.prompt, found.tokens)
        if followed(shown) and not twin_right(twin, case):
            hits.append(Hit(case, float(shown.attention.max(1).mean()), "", Column(BEAM), Column(BEAM, (), twin.name)))  # type: ignore[union-attr]
    return hits


def right(checkpoint: Checkpoint, case: Case, found: Hypothesis) -> bool:
    return text_of(checkpoint, found.tokens) in case.example.references


def twin_right(twin: Checkpoint, case: Case) -> bool:
    (found,) = find(twin, [prepare(twin, case.example.source, case.example.language)], BEAM, record=False)
    return right(twin, case, found.hypotheses[0])


def followed(shown: Trace) -> bool:
    """Whether the alignment shows the spelling: it goes forwards from the first letter to the last, with high weights."""
    assert shown.attention is not None
    rows_TS = shown.attention[: len(shown.tokens) - (shown.tokens[-1] == EOS)]
    heaviest_T = rows_TS.argmax(1)
    whole = len(rows_TS) >= FEWEST_SIGNS and heaviest_T[0] == 0 and heaviest_T[-1] >= rows_TS.shape[1] - 2
    return bool(whole and (np.diff(heaviest_T) >= 0).all() and rows_TS.max(1).min() >= SURE)


def say_spelled(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    at = parting(a.hypotheses[0].tokens, b.hypotheses[0].tokens)
    return (
        f"With attention the word is spelt as people spell it, and each sign looks at its own letters. The model without "
        f"attention writes “{b.texts[0]}”: it goes wrong at {place(checkpoint, b.hypotheses[0].tokens, at)}."
    )


# --------------------------------------------------------------------------------------------------------------- captions


def words_of(checkpoint: Checkpoint, tokens: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Each piece's place and its word, in small letters and without its punctuation."""
    assert checkpoint.target_text is not None
    for position, token in enumerate(tokens):
        yield position, checkpoint.target_text.piece(token).strip("▁.,").lower()


def named_and_attended(checkpoint: Checkpoint, cases: Sequence[Case], search: Find) -> list[Hit]:
    """The caption of beam 5 names the main thing, and the map of that word points at it."""
    hits = []
    for case, found in zip(cases, best(search(cases, BEAM))):
        if case.photo and place_of_name(checkpoint, case, found) is not None:
            hits.append(Hit(case, found.total / len(found.tokens), "", Column(GREEDY), Column(BEAM)))
    return hits


def place_of_name(checkpoint: Checkpoint, case: Case, found: Hypothesis) -> int | None:
    """Where the caption names the main thing while it looks at it."""
    assert case.photo and case.prompt.picture
    maps = trace(checkpoint, case.prompt, found.tokens).attention
    assert maps is not None
    for position, word in words_of(checkpoint, found.tokens):
        if word in case.photo.names and points(maps[position], case.photo.box, case.prompt.picture.box):
            return position
    return None


def say_named(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    position = place_of_name(checkpoint, hit.case, b.hypotheses[0])
    assert position is not None and checkpoint.target_text is not None
    word = checkpoint.target_text.piece(b.hypotheses[0].tokens[position]).strip("▁")
    return f"Named and looked at: at “{word}” the heaviest cell of the map lies on it."


def scene_only(checkpoint: Checkpoint, cases: Sequence[Case], search: Find) -> list[Hit]:
    """The caption of beam 5 names the scene, and something that is not there."""
    hits = []
    for case, found in zip(cases, best(search(cases, BEAM))):
        said = {word for _, word in words_of(checkpoint, found.tokens)}
        if case.photo and said & set(case.photo.scene) and not said & set(case.photo.names):
            hits.append(Hit(case, found.total / len(found.tokens), "", Column(GREEDY), Column(BEAM)))
    return hits


def say_scene(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    assert hit.case.photo
    said = {word for _, word in words_of(checkpoint, b.hypotheses[0].tokens)}
    scene = next(word for word in hit.case.photo.scene if word in said)
    return f"The scene is right (“{scene}”), what stands in it is not: the photograph shows {lower_first(hit.case.photo.title)}."


def hard_and_soft(checkpoint: Checkpoint, cases: Sequence[Case], search: Find) -> list[Hit]:
    """The twin with hard attention writes another caption. It tells most if only one of the two names the main thing."""
    twin = neighbour(checkpoint, lambda config: config.hard)
    if twin is None or checkpoint.model.config.hard:  # type: ignore[union-attr]
        return []
    hits = []
    for case, soft in zip(cases, best(search(cases, BEAM))):
        (hard,) = best(find(twin, [prepare(twin, case.example.picture)], BEAM, record=False))
        if case.photo and text_of(checkpoint, soft.tokens) != text_of(twin, hard.tokens):
            told = {names_it(case.photo, text_of(*one)) for one in ((checkpoint, soft.tokens), (twin, hard.tokens))}
            weight = len(told) + soft.total / len(soft.tokens) / 100  # among equally telling ones, the likeliest first
            hits.append(Hit(case, weight, "", Column(BEAM), Column(BEAM, (), twin.name)))
    return hits


def names_it(photo: Photo, text: str) -> bool:
    return any(word in photo.names for word in re.findall(r"\w+", text.lower()))


def say_hard(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    assert hit.case.photo
    soft, hard = (names_it(hit.case.photo, one.texts[0]) for one in (a, b))
    both, one = ("both name" if soft else "neither names"), f"only the {'first' if soft else 'second'} names"
    title = lower_first(hit.case.photo.title)
    return (
        f"Soft attention spreads over all cells: “{a.texts[0]}”. Hard attention takes one cell for each word: “{b.texts[0]}”. "
        f"Of the two captions, {both if soft == hard else one} the main thing: the photograph shows {title}."
    )


# -------------------------------------------------------------------------------------------------------- language models


def quotations(checkpoint: Checkpoint, cases: Sequence[Case], search: Find) -> list[Hit]:
    """The unit that follows quotations (metrics.json names it) is higher everywhere inside this one than anywhere after it."""
    unit = checkpoint.metrics.get("units", {}).get("quotation")
    if not unit:
        return []
    state = checkpoint.metrics["units"].get("state", "hidden")
    hits = []
    for case in cases:
        text = case.example.source
        quoted = re.search(r'"[^"]*"', text)
        if not quoted or not text.startswith('"') or quoted.end() + 2 > len(text):
            continue
        shown = trace(checkpoint, prepare(checkpoint, text[0]), prepare(checkpoint, text).pieces.ids[1:])
        values_T = unit["sign"] * shown.gates[f"decoder.{unit['layer']}.{state}"][:, unit["unit"]]
        end = quoted.end()  # row t is the state before letter t; a letter may pass until the unit follows
        gap = float(values_T[2:end].min() - values_T[end + 1 :].max())
        if gap > 0:
            hits.append(Hit(case, gap, "", Column(GREEDY), Column(DRAWN)))
    return hits


def say_quotation(checkpoint: Checkpoint, hit: Hit, a: Run, b: Run) -> str:
    unit = checkpoint.metrics["units"]["quotation"]
    moves = "rises" if unit["sign"] < 0 else "falls"
    return f"Unit {unit['unit']} knows that it is inside a quotation: it {moves} where the quotation ends."


def quoted_passages(paragraph: str) -> Iterator[str]:
    """A paragraph from its opening quotation mark to a few words after the closing one."""
    found = re.match(r'"(?:(?!\.\.)[^"-]){20,90}"(?: [^" ]+){3} ', paragraph)
    if found and len(found.group(0)) <= MOST_CHARACTERS:
        yield found.group(0)
