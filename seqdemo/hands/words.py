"""Words that begin as typed, at a place of an output; and words that must be said.

Candidates are looked for best first: a prefix of pieces that still fits what was typed is followed by every piece that fits,
and goes on until a word is whole.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import UNK
from seqdemo.edits import Ban, Force, Require, spellings_of
from seqdemo.errors import InputError
from seqdemo.findings import MustBeSaid, Word, Words
from seqdemo.hands.place import Place, check_count
from seqdemo.network.model import Network, log_probabilities
from seqdemo.playground import Run, checkpoint_of
from seqdemo.prompts import tokenizer
from seqdemo.state import select
from seqdemo.text import SPACE_MARK, SPECIALS, Characters, Subwords, Tokenizer, clean
from seqdemo.text import Words as WholeWords

MOST_TYPED = 60  # characters
OPEN, DEEPEST = 16, 24  # beginnings followed at a time, and for how many pieces
LEAST = math.log(1e-6)  # a less likely word is not offered
LONGER = math.log(20)  # a word that only adds to another one, and is so much less likely, is not offered either


class Beginning(NamedTuple):
    """Pieces that may become a word: how they are spelled, and how likely they are."""

    tokens: tuple[int, ...]
    spelled: str
    logp: float


class Vocabulary:
    """How every piece is spelled ('' for those that spell nothing), and which pieces fit a text."""

    def __init__(self, text: Tokenizer) -> None:
        self.spelled = [piece if (piece := text.piece(n)) not in SPECIALS else "" for n in range(len(text))]
        self.numbers = {piece: n for n, piece in enumerate(self.spelled) if piece}
        self.in_order = sorted(self.numbers)
        self.all = np.array([n for piece, n in self.numbers.items() if piece != SPACE_MARK])
        self.lengthening = np.array([n for piece, n in self.numbers.items() if piece[0].isalnum()], dtype=np.int64)

    def fitting(self, rest: str) -> list[int]:
        """The pieces with which `rest` begins, or which begin with it."""
        short = [rest[:size] for size in range(1, len(rest)) if rest[:size] in self.numbers]
        long = self.in_order[bisect_left(self.in_order, rest) : bisect_left(self.in_order, rest + chr(0x10FFFF))]
        return [self.numbers[piece] for piece in (*short, *long)]


vocabulary = lru_cache(maxsize=32)(Vocabulary)


def candidates(
    checkpoint: Checkpoint | Network, run: Run, tokens: Sequence[int], position: int, typed: str = "", most: int = 8
) -> Words:
    """The best words at `position` of an output that begin as typed, each of as many pieces as it needs, ordered by the
    probability of the pieces times that of the word's end after them. The typed text itself is among them if the vocabulary
    can spell it, at the end if it is less likely than the others."""
    return candidates_at(Place(checkpoint_of(checkpoint), run, tokens, position), typed, most)


def candidates_at(place: Place, typed: str, most: int = 8) -> Words:
    typed = checked(typed, place.text)
    check_count("most", most)
    search = Completion(place, typed)
    found = [search.word(one) for one in search.run(most)]
    if not found:
        raise unspellable(typed)
    best = float(place.logp_V.max().exp())
    return Words(place.position, typed, place.bar(place.token), best, tuple(found))


def unspellable(typed: str) -> InputError:
    return InputError(f"This model has no pieces for “{typed.strip()}”, so it cannot say that here; type another word.")


def checked(typed: str, text: Tokenizer) -> str:
    """The typed text, checked to be a text of reasonable length."""
    if not isinstance(typed, str) or len(typed) > MOST_TYPED:
        raise InputError(f"A word is a text of at most {MOST_TYPED} characters.")
    if isinstance(text, Characters) and text.keep_space:
        return text.clean(typed)
    return clean(typed)


class Completion:
    """The search for words at one place."""

    def __init__(self, place: Place, typed: str) -> None:
        self.place, self.typed, self.vocabulary = place, typed, vocabulary(place.text)
        self.limit = place.run.prompt.limit + len(place.run.prompt.prefix) - place.position
        subwords, here = isinstance(place.text, Subwords), self.vocabulary.spelled[place.token]
        self.single = isinstance(place.text, Characters) and place.run.task != "complete"  # letters that make no words
        begins = not place.position or here.startswith(SPACE_MARK) or not here[:1].isalnum()
        as_typed = typed.lower() if isinstance(place.text, WholeWords) else typed
        marked = as_typed.replace(" ", SPACE_MARK) if subwords else as_typed
        self.wanted = [SPACE_MARK + marked] if subwords else [marked]
        if subwords and not (begins and marked[:1].isalnum()):  # a mark of punctuation, or the rest of a word
            self.wanted.append(marked)
        self.exact = self.spelled_exactly() if typed else ()

    def spelled_exactly(self) -> tuple[int, ...]:
        """The typed text in the tokenizer's own pieces; () if it cannot be spelled."""
        ids = self.place.text.encode(self.typed).ids
        return () if UNK in ids or len(ids) > self.limit else ids

    def run(self, most: int) -> list[Beginning]:
        """Complete words, ordered by the probability of the pieces and of the word's end after them, and the typed text."""
        whole: dict[str, tuple[float, Beginning]] = {}
        open_now = [Beginning((), "", 0.0)]
        logp_NV, state = self.place.logp_V[None], self.place.own.state
        for _ in range(min(DEEPEST, self.limit)):
            row_M, grown = self.grown(open_now, logp_NV)
            if not grown:
                break
            logp_NV, state = self.read(state, row_M, [one.tokens[-1] for one in grown])
            ends_M = self.ends(grown, logp_NV)
            for one, end in zip(grown, ends_M):
                rank = one.logp + end
                is_whole = self.covered(one.spelled) and (end > math.log(0.5) or one.tokens == self.exact)
                if is_whole and rank > whole.get(one.spelled, (-math.inf,))[0]:
                    whole[one.spelled] = rank, one
            bar = sorted((rank for rank, _ in whole.values()), reverse=True)[most - 1 : most]
            keep = [m for m, one in enumerate(grown) if self.leads_on(one, ends_M[m], bar[0] if bar else LEAST)]
            rows_N = torch.tensor(keep, dtype=torch.long)
            open_now, logp_NV, state = [grown[m] for m in keep], logp_NV[rows_N], select(state, rows_N)
        scores = {one.tokens: score for score, one in whole.values()}
        ranked = [one for score, one in sorted(whole.values(), key=lambda pair: -pair[0]) if not self.idle(one, score, scores)]
        exact = [one for one in ranked[most:] if one.spelled in self.wanted]
        return ranked[: most - len(exact)] + exact

    def idle(self, one: Beginning, score: float, scores: Mapping[tuple[int, ...], float]) -> bool:
        """Whether it only adds pieces to a far likelier word, as “tireded” does to “tired”, and is not what was typed."""
        shorter = (scores[one.tokens[:end]] for end in range(1, len(one.tokens)) if one.tokens[:end] in scores)
        return one.tokens != self.exact and any(score < other - LONGER for other in shorter)

    def grown(self, open_now: list[Beginning], logp_NV: Tensor) -> tuple[Tensor, list[Beginning]]:
        """The likeliest fitting beginnings with one more piece, and the row of each."""
        found: list[tuple[int, Beginning]] = []
        for row, one in enumerate(open_now):
            logps_V, depth = logp_NV[row].numpy(), len(one.tokens)
            fits = self.following(one.spelled)
            chosen = fits[np.argsort(-logps_V[fits], kind="stable")[:OPEN]].tolist()
            if self.begins_exact(one) and depth < len(self.exact) and self.exact[depth] not in chosen:
                chosen.append(self.exact[depth])
            for token in chosen:
                longer = one.spelled + self.vocabulary.spelled[token]
                found.append((row, Beginning((*one.tokens, token), longer, one.logp + float(logps_V[token]))))
        found = [item for item in found if item[1].logp > LEAST or self.begins_exact(item[1])]
        found.sort(key=lambda item: -item[1].logp)
        kept = found[:OPEN] + [item for item in found[OPEN:] if self.begins_exact(item[1])]
        return torch.tensor([row for row, _ in kept], dtype=torch.long), [one for _, one in kept]

    def following(self, spelled: str) -> np.ndarray:
        """The pieces that continue what was typed; once that is complete, those that continue the word or begin one."""
        rests = [wanted[len(spelled) :] for wanted in self.wanted if wanted.startswith(spelled)]
        fits = {token for rest in rests if rest for token in self.vocabulary.fitting(rest)}
        if not self.covered(spelled) and (not spelled or "" not in rests) and "" not in self.wanted:
            return np.array(sorted(fits), dtype=np.int64)
        free = self.vocabulary.all if self.single or not spelled else self.vocabulary.lengthening
        return np.union1d(free, np.array(sorted(fits), dtype=np.int64))

    def ends(self, grown: list[Beginning], logp_MV: Tensor) -> list[float]:
        """log p(the word is complete after these pieces). It is 0 for scripts without words and for whole-word pieces."""
        if self.single or isinstance(self.place.text, WholeWords):
            return [0.0] * len(grown)
        p_M = 1 - logp_MV.double().exp()[:, torch.from_numpy(self.vocabulary.lengthening)].sum(1)
        return [math.log(max(p, 1e-30)) if one.spelled[-1:].isalnum() else 0.0 for one, p in zip(grown, p_M.tolist())]

    def covered(self, spelled: str) -> bool:
        return bool(spelled) and any(spelled.startswith(wanted) for wanted in self.wanted)

    def begins_exact(self, one: Beginning) -> bool:
        return bool(self.exact) and self.exact[: len(one.tokens)] == one.tokens

    def leads_on(self, one: Beginning, end: float, bar: float) -> bool:
        """Whether it may still become one of the best words; `bar` is the lowest score among these."""
        if self.begins_exact(one) and len(one.tokens) < len(self.exact):
            return True
        if isinstance(self.place.text, WholeWords) or one.logp <= bar:
            return False
        if not self.covered(one.spelled):
            return True
        if self.single:
            return bool(self.typed) and len(one.spelled) <= len(self.typed)
        return one.spelled[-1:].isalnum() and end < math.log(0.95)

    def read(self, state: object, row_M: Tensor, tokens: list[int]) -> tuple[Tensor, object]:
        with torch.inference_mode():
            done = self.place.network.step(torch.tensor(tokens), select(state, row_M), self.place.what_if)
            return log_probabilities(self.place.network.readout(done.features_KR)), done.state

    def word(self, one: Beginning) -> Word:
        text, position = self.place.text, self.place.position
        exact = bool(self.typed) and one.spelled in self.wanted
        pieces = tuple(map(text.piece, one.tokens))
        force, ban = Force(position, one.tokens), Ban(position, one.tokens)
        return Word(text.decode(one.tokens), pieces, one.tokens, math.exp(one.logp), exact, force, ban)


def must_be_said(checkpoint: Checkpoint | Network, typed: str) -> MustBeSaid:
    """The edit that requires a word somewhere in the output, in small letters or with a capital."""
    text = tokenizer(checkpoint_of(checkpoint).target_text)
    typed = checked(typed, text).strip()
    if not typed:
        raise InputError("There is no word that must be said: type one.")
    spellings = spellings_of(typed, text)
    told = tuple(tuple(map(text.piece, ids)) for ids in spellings)
    return MustBeSaid(Require(spellings), text.decode(spellings[0]), told)
