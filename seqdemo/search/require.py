"""The rule that some words must stand somewhere in the output.

An automaton follows what each row has said. Its state is the longest suffix of the output that begins a spelling, and the set of
words that are complete. For every state the smallest number of tokens that completes all words is known, with regard to
overlapping words and forced positions. A token is impossible if it leaves too little room for that. So no search reaches a dead
end, and exact search proves the best of exactly those outputs that hold the words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from seqdemo.search.rules import Now, Rule, Texts
from seqdemo.state import Logits

NEVER = 10**6  # tokens: more than any output may have
Spelling = tuple[int, ...]
Words = Sequence[Sequence[Spelling]]
Place = tuple[Spelling, frozenset[int]]  # a state: the beginning of a spelling, and the complete words


class Required(Rule):
    """Each of `words` must stand somewhere in the output, in one of its spellings; until then the output may not end.

    `fixed` are the tokens that other rules force, by position; `barred` are tokens that they forbid at one position. `insist` is
    for searches that reserve no places for hypotheses that miss less: a spelling, once begun, is finished at once, and where the
    model would end, the likeliest token of a missing word is said instead.
    """

    def __init__(
        self,
        words: Words,
        eos: int,
        end: int = 0,
        fixed: Mapping[int, int] | None = None,
        barred: Sequence[tuple[int, int]] = (),
        insist: bool = False,
    ) -> None:
        """`end` is 1 if <eos> must be within the limit, else 0."""
        self.end, self.insist = end, insist
        self.pieces = tuple(sorted({piece for word in words for spelling in word for piece in spelling}))
        self.piece_A = torch.tensor(self.pieces)
        places, self.next_SA = automaton(words, self.pieces)
        self.open_S = torch.tensor([len(met) < len(words) for _, met in places])
        fixed = fixed or {}
        last = max([*fixed, *(position for position, _ in barred)], default=-1) + 1
        self.allowed_PA = allowed(self.pieces, fixed, barred, last)
        self.need_PS = needs(self.next_SA, self.open_S, self.allowed_PA, [p for p, token in fixed.items() if token == eos])

    def needed(self, position: int) -> int:
        """The smallest number of tokens of an output that begins at this position; NEVER if none can hold the words."""
        return int(self.need_PS[min(position, len(self.need_PS) - 1), 0]) + self.end

    def start(self, given: Texts) -> Tensor:
        return torch.zeros(len(given), dtype=torch.long)

    def after(self, state: Tensor, tokens_K: Tensor) -> Tensor:
        same_KA = tokens_K[:, None] == self.piece_A
        column_K = torch.where(same_KA.any(1), same_KA.int().argmax(1) + 1, 0)
        return self.next_SA[state, column_K]

    def missing(self, now: Now, state: Tensor) -> Tensor:
        return self.need_PS[self.row(now), state]

    def row(self, now: Now) -> Tensor:
        """Where the next token will stand, as a row of `need_PS`."""
        return (now.given_K + now.written).clamp(max=len(self.need_PS) - 1)

    def apply(self, logits: Logits, now: Now, state: Tensor) -> Logits:
        values_KV, open_K, missing_K = logits.values_KV, self.open_S[state], self.missing(now, state)
        at_K = self.row(now)
        then_K = (at_K + 1).clamp(max=len(self.need_PS) - 1)
        least_KA = self.need_PS[then_K[:, None], self.next_SA[state]].masked_fill(~self.allowed_PA[at_K], NEVER)
        fits_KA = (least_KA < now.room_K[:, None] - self.end) | ~open_K[:, None]
        if self.insist:
            nearer_KA = least_KA < missing_K[:, None]
            ends_K = values_KV[:, now.eos] >= values_KV.amax(1)
            offered_K = (nearer_KA[:, 1:] & (values_KV[:, self.piece_A] > -math.inf)).any(1)
            now_K = open_K & offered_K & (ends_K | (least_KA[:, 0] > missing_K))
            fits_KA &= nearer_KA | ~now_K[:, None]
        values_KV[open_K, now.eos] = -math.inf
        if not bool(fits_KA.all()):
            kept_KA = values_KV[:, self.piece_A].masked_fill(~fits_KA[:, 1:], -math.inf)
            values_KV[~fits_KA[:, 0]] = -math.inf
            values_KV[:, self.piece_A] = kept_KA
        return logits


def automaton(words: Words, pieces: Spelling) -> tuple[list[Place], Tensor]:
    """The states, the first of which is the start, and the next state after each piece; column 0 stands for any other token."""
    beginnings = {spelling[:length] for word in words for spelling in word for length in range(len(spelling))}

    def after(place: Place, token: int | None) -> Place:
        said, met = place
        if token is None:
            return (), met
        said = (*said, token)
        met = met | {number for number, word in enumerate(words) if any(said[-len(each) :] == each for each in word)}
        if len(met) == len(words):
            return (), met
        while said not in beginnings:
            said = said[1:]
        return said, met

    places: list[Place] = [((), frozenset())]
    number_of = {places[0]: 0}
    rows = []
    for place in places:  # grows meanwhile
        row = [after(place, token) for token in (None, *pieces)]
        for found in row:
            if found not in number_of:
                number_of[found] = len(places)
                places.append(found)
        rows.append([number_of[found] for found in row])
    return places, torch.tensor(rows)


def allowed(pieces: Spelling, fixed: Mapping[int, int], barred: Sequence[tuple[int, int]], last: int) -> Tensor:
    """Which columns of the automaton other rules allow at each position up to `last`, which stands for all later ones."""
    allowed_PA = torch.ones(last + 1, 1 + len(pieces), dtype=torch.bool)
    for position, token in fixed.items():
        allowed_PA[position] = torch.tensor([token not in pieces, *(piece == token for piece in pieces)])
    for position, token in barred:
        if token in pieces:
            allowed_PA[position, 1 + pieces.index(token)] = False
    return allowed_PA


def needs(next_SA: Tensor, open_S: Tensor, allowed_PA: Tensor, ends: Sequence[int]) -> Tensor:
    """need(p, s) = 0 where nothing is missing, else 1 + min over allowed tokens a of need(p + 1, next(s, a)); NEVER where the
    output is forced to end. After the last fixed position it is the same for all p: the limit of repeating the equation."""

    def before(need_S: Tensor, allowed_A: Tensor) -> Tensor:
        least_S = need_S[next_SA].masked_fill(~allowed_A, NEVER).amin(1)
        return torch.where(open_S, (1 + least_S).clamp(max=NEVER), 0)

    need_S = torch.where(open_S, NEVER, 0)
    while not torch.equal(need_S, nearer_S := before(need_S, allowed_PA[-1])):
        need_S = nearer_S
    rows = [need_S]
    for position in reversed(range(len(allowed_PA) - 1)):
        need_S = torch.where(open_S, NEVER, 0) if position in ends else before(need_S, allowed_PA[position])
        rows.append(need_S)
    return torch.stack(rows[::-1])
