"""The pointing game: when a captioner says a phrase, does its map point into the phrase's box?

Teacher-forced on a reference that contains the phrase, at the phrase's last word; the map is right if the centre of its heaviest
cell lies in the box. For comparison: the caption's mean map, and the picture's centre, which needs no model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from torch import Tensor

from seqdemo.checkpoints import Checkpoint
from seqdemo.explain.replay import trace_of
from seqdemo.images import WHOLE, Box, cell_box, read_picture
from seqdemo.network.coders import ImageEncoder
from seqdemo.network.model import Network
from seqdemo.text import Tokenizer
from training.data.records import Example
from training.measure.decoding import shared
from training.measure.metrics import inside

CENTRE = (0.5, 0.5)
SMALL_WORDS = 2  # the most words that may stand between two words of a phrase


class Phrase(NamedTuple):
    file: str
    words: str
    box: Box


class Spoken(NamedTuple):
    """A phrase in a reference: the reference's pieces, and which of them is the phrase's last."""

    ids: tuple[int, ...]
    last: int


class Hits(NamedTuple):
    """Whether the word's map, the mean map and the picture's centre point into a phrase's box."""

    word: bool
    mean_map: bool
    centre: bool


def read_phrases(path: Path) -> list[Phrase]:
    return [Phrase(row["file"], row["phrase"], tuple(row["box"])) for row in json.loads(path.read_bytes())]


def spoken(text: Tokenizer, phrase: str, references: Sequence[str]) -> Spoken | None:
    """The first reference that says the phrase word for word, or else with small words between that the phrase leaves out:
    "pile leaves" is said by "a pile of leaves"."""
    wanted = text.encode(phrase).strings
    for gap in (0, SMALL_WORDS):
        for reference in references:
            pieces = text.encode(reference)
            for start in range(len(pieces.strings)):
                last = end_of(wanted, pieces.strings, start, gap)
                if last is not None:
                    return Spoken(pieces.ids, last)
    return None


def end_of(wanted: Sequence[str], said: Sequence[str], start: int, gap: int) -> int | None:
    """Where the last of the wanted words stands, if they follow one another from `start` with at most `gap` words between."""
    at = start - 1
    for number, word in enumerate(wanted):
        reach = said[at + 1 : at + 2 + (gap if number else 0)]
        if word not in reach:
            return None
        at += 1 + list(reach).index(word)
    return at


def maps(model: Network, grid_SC: Tensor, ids: Sequence[int]) -> np.ndarray:
    """Attention rows (T, S): row t is the map with which the model comes to say ids[t]."""
    attention = trace_of(model, grid_SC, ids).attention
    assert attention is not None
    return attention


def points(weights_S: np.ndarray, box: Box, seen: Box = WHOLE) -> bool:
    """Whether the centre of the heaviest cell lies in the box; `seen` is the part of the picture the grid covers."""
    side = round(len(weights_S) ** 0.5)
    row, column = divmod(int(np.argmax(weights_S)), side)
    left, top, right, bottom = cell_box(row, column, side, seen)
    return inside(((left + right) / 2, (top + bottom) / 2), box)


def play(checkpoint: Checkpoint, phrases: Sequence[Phrase], examples: Sequence[Example]) -> dict[str, Any]:
    """Shares of phrases, in per cent, at which the word's map, the mean map and the centre lie in the box."""
    by_file = {example.source: example for example in examples}
    files = [file for file in dict.fromkeys(phrase.file for phrase in phrases) if file in by_file]

    def work(mine: list[int]) -> list[list[Hits]]:
        about = {file: [phrase for phrase in phrases if phrase.file == file] for file in (files[index] for index in mine)}
        return [pointed(checkpoint, by_file[file], said) for file, said in about.items()]

    hits = [hit for found in shared(work, range(len(files))) for hit in found]
    word, mean, centre = (100.0 * sum(column) / len(hits) for column in zip(*hits))
    return {"phrases": len(hits), "without_reference": len(phrases) - len(hits), "word": word, "mean_map": mean, "centre": centre}


def pointed(checkpoint: Checkpoint, example: Example, phrases: Sequence[Phrase]) -> list[Hits]:
    """The hits of one photograph, for those of its phrases that one of its references contains."""
    model, text = checkpoint.model, checkpoint.target_text
    assert isinstance(model, Network) and isinstance(model.encoder, ImageEncoder) and text is not None and example.picture
    picture = read_picture(example.picture, cast(Any, model.encoder.cnn).size)
    grid_SC = model.encoder.grid(picture.pixels[None])[0]
    hits = []
    for phrase in phrases:
        if said := spoken(text, phrase.words, example.references):
            rows_TS = maps(model, grid_SC, said.ids)
            word, mean = (points(row_S, phrase.box, picture.box) for row_S in (rows_TS[said.last], rows_TS.mean(0)))
            hits.append(Hits(word, mean, inside(CENTRE, phrase.box)))
    return hits
