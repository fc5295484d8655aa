"""Subword dropout: sentences are cut into pieces at random, in the same way in every process.

Byte-pair encoding starts with single characters and joins two neighbours if that makes a piece: in each step the pair whose
piece has the best score, the leftmost of equals. With dropout each merge is left out with probability p, and the two
neighbours then stay apart until one of them has grown (Provilkov et al. 2020, BPE-Dropout).

The merges of an epoch form one sequence, in the order in which they are tried. Random numbers are drawn only for the distances
between merges that are left out (they are geometric), so most words need no random number and are looked up. The pieces of a
word depend only on the word and on the merges that are left out, and are kept in a cache.

The pieces are those of `Subwords.train`: none crosses a space, so every word is cut on its own; none stands for a byte.
Characters without a piece are unknown; unknown neighbours become one piece.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from seqdemo.config import UNK
from seqdemo.text import SPACE_MARK, SPECIALS, Subwords, clean

WORD = re.compile(f"{SPACE_MARK}?[^{SPACE_MARK}]+|{SPACE_MARK}")
REMEMBERED = 1 << 16  # words with their left-out merges


class Cut(NamedTuple):
    ids: tuple[int, ...]
    tries: int  # the number of merges, including those left out


class Merges:
    """The merges of `text`, one after the other."""

    def __init__(self, text: Subwords) -> None:
        pieces = ((index, text.piece(index)) for index in range(len(SPECIALS), len(text)))
        self.ids = {piece: index for index, piece in pieces}
        self.scores = {piece: float(text.processor.get_score(index)) for piece, index in self.ids.items()}
        self.cut = lru_cache(REMEMBERED)(self.cut_anew)

    def cut_anew(self, word: str, left_out: tuple[int, ...] = ()) -> Cut:
        """The pieces of a word without the merges of these numbers, counted from 0."""
        symbols, starts, tries = list(word), list(range(len(word))), 0
        apart: set[tuple[int, int, int]] = set()
        while (at := self.best(symbols, starts, apart)) is not None:
            if tries in left_out:
                apart.add(place(symbols, starts, at))
            else:
                symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
                del starts[at + 1]
            tries += 1
        return Cut(self.numbers(symbols), tries)

    def best(self, symbols: list[str], starts: list[int], apart: set[tuple[int, int, int]]) -> int | None:
        """The place of the next merge."""
        found, highest = None, -np.inf
        for at in range(len(symbols) - 1):
            score = self.scores.get(symbols[at] + symbols[at + 1])
            if score is not None and score > highest and not (apart and place(symbols, starts, at) in apart):
                found, highest = at, score
        return found

    def numbers(self, symbols: list[str]) -> tuple[int, ...]:
        ids = [self.ids.get(symbol, UNK) for symbol in symbols]
        return tuple(index for index, before in zip(ids, [-1, *ids]) if not index == before == UNK)


def place(symbols: list[str], starts: list[int], at: int) -> tuple[int, int, int]:
    """What identifies two neighbours: where each begins and where the second ends."""
    return starts[at], starts[at + 1], starts[at + 1] + len(symbols[at + 1])


class Dropout:
    """The cuts of one epoch; `share` of all merges are left out."""

    def __init__(self, merges: Merges, share: float, rng: np.random.Generator) -> None:
        self.merges, self.share, self.rng = merges, share, rng
        self.until = self.distance()  # how many merges succeed before the next is left out

    def distance(self) -> int:
        return int(self.rng.geometric(self.share)) - 1

    def ids(self, text: str) -> np.ndarray:
        """The next sentence of the epoch."""
        marked = (SPACE_MARK + clean(text).replace(" ", SPACE_MARK)).rstrip(SPACE_MARK)
        return np.array([index for word in WORD.findall(marked) for index in self.word(word)], dtype=np.int32)

    def word(self, word: str) -> tuple[int, ...]:
        left_out: tuple[int, ...] = ()
        cut = self.merges.cut(word, left_out)
        while self.until < cut.tries:
            left_out = (*left_out, self.until)
            self.until += 1 + self.distance()
            cut = self.merges.cut(word, left_out)
        self.until -= cut.tries
        return cut.ids
