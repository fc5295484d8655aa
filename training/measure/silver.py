"""Where a translator looks, against links that IBM model 1 makes: silver, because no person drew them.

Links. p(f | e) = expected count of f with e over that of e with any word, from PAIRS pairs of train, ROUNDS rounds of EM in
each direction, with an empty word on the given side. Two words of a sentence pair are linked if each is the other's likeliest
partner. Words are runs of letters and digits, and single other signs, in lower case.

The model. It reads the first reference as in training. The row of a word is the mean of its pieces' rows, the weight of a
source word the sum over its pieces; the word points to the heaviest.

alignment error = 1 - 2 |A and S| / (|A| + |S|),  A: what the words point to, S: the links. At shift k every word points k
source words further back than it does, so that a model that looks one word early is best at -1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import BOS
from seqdemo.text import SPACE_MARK, Tokenizer
from training.data.records import Dataset, Example
from training.measure.looking import heads_of, network, rows

PAIRS, SENTENCES, ROUNDS = 60_000, 500, 5
SHIFTS = (-1, 0, 1)
WORD = re.compile(r"\w+|[^\w\s]")
EMPTY = ""  # the word that stands for none
METHOD = "silver links by IBM model 1: two words are linked if each is the other's likeliest partner"

Links = set[tuple[int, int]]  # (source word, target word)


class Part(NamedTuple):
    """A word of a text, and the pieces that have letters of it."""

    word: str
    pieces: tuple[int, ...]


def words_of(text: str) -> list[str]:
    return WORD.findall(text.lower())


class Lexicon:
    """p(f | e) for every two words that stood in one pair; `given` words are e."""

    def __init__(self, pairs: Sequence[tuple[list[str], list[str]]], rounds: int = ROUNDS) -> None:
        self.e_ids = numbered(word for given, _ in pairs for word in given)
        self.f_ids = numbered(word for _, made in pairs for word in made)
        cells = [self.cells(given, made) for given, made in pairs]
        every_C = np.concatenate(cells)
        slots_C = np.repeat(
            np.arange(sum(len(made) for _, made in pairs)), [len(given) + 1 for given, made in pairs for _ in made]
        )
        self.keys_N, where_C = np.unique(every_C, return_inverse=True)
        e_N = self.keys_N // len(self.f_ids)
        self.p_N = np.ones(len(self.keys_N))
        for _ in range(rounds):
            share_C = self.p_N[where_C]
            share_C /= np.bincount(slots_C, share_C)[slots_C]
            count_N = np.bincount(where_C, share_C)
            self.p_N = count_N / np.bincount(e_N, count_N)[e_N]

    def cells(self, given: Sequence[str], made: Sequence[str]) -> np.ndarray:
        """The number of (e, f) for each f and each e, the empty word first."""
        e = np.array([self.e_ids[word] for word in (EMPTY, *given)])
        f = np.array([self.f_ids[word] for word in made], dtype=np.int64)
        return (e[None, :] * len(self.f_ids) + f[:, None]).ravel()

    def p(self, given: Sequence[str], made: Sequence[str]) -> np.ndarray:
        """p(f | e), one row for each f, one column for the empty word and each e; 0 for what never stood together."""
        table = np.zeros((len(made), len(given) + 1))
        for row, f in enumerate(made):
            for column, e in enumerate((EMPTY, *given)):
                if e in self.e_ids and f in self.f_ids:
                    key = self.e_ids[e] * len(self.f_ids) + self.f_ids[f]
                    at = int(np.searchsorted(self.keys_N, key))
                    table[row, column] = self.p_N[at] if at < len(self.keys_N) and self.keys_N[at] == key else 0.0
        return table


def numbered(words: Iterable[str]) -> dict[str, int]:
    return {word: index for index, word in enumerate(dict.fromkeys((EMPTY, *words)))}


class Silver:
    """Both directions."""

    def __init__(self, examples: Sequence[Example]) -> None:
        pairs = [(words_of(one.source), words_of(one.references[0])) for one in examples]
        pairs = [(source, target) for source, target in pairs if source and target]
        self.to_target = Lexicon(pairs)
        self.to_source = Lexicon([(target, source) for source, target in pairs])

    def links(self, source: Sequence[str], target: Sequence[str]) -> Links:
        """Where each is the other's likeliest partner, and likelier than the empty word."""
        forward = likeliest(self.to_target.p(source, target))
        backward = likeliest(self.to_source.p(target, source))
        return {(j, i) for i, j in forward.items() if backward.get(j) == i}


def likeliest(p_FE: np.ndarray) -> dict[int, int]:
    """Row -> its best column, where that is not the empty word's."""
    return {row: int(best) - 1 for row, best in enumerate(p_FE.argmax(1)) if best > 0 and p_FE[row, best] > 0}


def parts(text: Tokenizer, sentence: str) -> tuple[tuple[int, ...], list[Part]]:
    """The ids of a sentence's pieces, and its words with the pieces that have letters of them."""
    pieces = text.encode(sentence)
    spelled = [piece.replace(SPACE_MARK, " ").lower() for piece in pieces.strings]  # may become longer, as that of İ does
    piece_of = [index for index, piece in enumerate(spelled) for _ in piece]
    found = [Part(m.group(), tuple(dict.fromkeys(piece_of[m.start() : m.end()]))) for m in WORD.finditer("".join(spelled))]
    return pieces.ids, found


@torch.inference_mode()
def pointed(checkpoint: Checkpoint, example: Example, head: str = "") -> tuple[list[Part], list[Part], list[int]]:
    """The words of source and target, and to which source word each target word points."""
    model, source_text, target_text = network(checkpoint), checkpoint.source_text, checkpoint.target_text
    assert source_text is not None and target_text is not None
    source_ids, source = parts(source_text, example.source)
    target_ids, target = parts(target_text, example.references[0])
    source_1S = torch.tensor([source_ids])
    rows_TS = rows(model, source_1S, torch.tensor([[BOS, *target_ids]]), head)[0].numpy()
    return source, target, [heaviest(rows_TS[list(word.pieces)].mean(0), source) for word in target]


def heaviest(row_S: np.ndarray, source: Sequence[Part]) -> int:
    return int(np.argmax([row_S[list(word.pieces)].sum() for word in source]))


def error(made: Sequence[tuple[list[int], Links]], shift: int) -> float:
    """The alignment error of all sentences together, in per cent."""
    right = sum((at - shift, i) in links for points, links in made for i, at in enumerate(points))
    return 100 * (1 - 2 * right / sum(len(points) + len(links) for points, links in made))


def alignment(checkpoint: Checkpoint, dataset: Dataset) -> dict[str, Any]:
    """Sentences, links and alignment error by shift, on dev."""
    silver, examples = Silver(dataset.train.sample(PAIRS).examples), dataset.dev.sample(SENTENCES).examples
    made = against(silver, checkpoint, examples)
    errors = {f"{shift:+d}" if shift else "0": error(made, shift) for shift in SHIFTS}
    error_of = {head: error(against(silver, checkpoint, examples, head), 0) for head in heads_of(checkpoint)}
    heads: dict[str, Any] = {"heads": error_of, "best_head": min(error_of, key=lambda head: error_of[head])} if error_of else {}
    links = sum(len(links) for _, links in made)
    return {"method": METHOD, "sentences": len(made), "links": links, "error": errors, **heads}


def against(silver: Silver, checkpoint: Checkpoint, examples: Sequence[Example], head: str = "") -> list[tuple[list[int], Links]]:
    """For each sentence the attention of its words, and its links."""
    made = []
    for example in examples:
        source, target, points = pointed(checkpoint, example, head)
        made.append((points, silver.links([part.word for part in source], [part.word for part in target])))
    return made
