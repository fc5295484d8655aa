"""Beam search: two rules for what a finished hypothesis does to the beam.

Both rank candidates by the plain sum of log probabilities; length penalty and coverage enter where finished hypotheses
are compared. Greedy search is `Stay` with one slot.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seqdemo.search.ranking import Scoring, top
from seqdemo.search.slots import Candidates, Choice, Endings, Slots, empty_slots, keep_sentences, seat

# Up to so many candidates it is quicker to rank each row first and merge; beyond, all rows at once, in single precision, so
# that two candidates whose totals differ by less than that resolves may change places at the very edge of the beam.
NARROW = 48


def candidates(logp_KV: Tensor, slots: Slots, count: int) -> Candidates:
    """The `count` best continuations of each sentence, ties to the better slot, then to the lower token.

    An ended hypothesis has one: itself, at its own total. Where nothing at all can follow (every token is banned), the
    hypotheses are carried on as they are, so that what was written is not lost.
    """
    found = _best(logp_KV, slots.total_BW, slots.ended_BW, count)
    stuck_B = found.total_BC[:, 0] == -math.inf
    if stuck_B.any():
        found = _best(logp_KV, slots.total_BW, slots.ended_BW | stuck_B[:, None], count)
    return found


def _best(logp_KV: Tensor, total_BW: Tensor, ended_BW: Tensor, count: int) -> Candidates:
    """Each row's best tokens, then the best of a sentence's rows together, by total. A row that ended offers column 0 at log
    probability 0: itself."""
    narrow = count <= NARROW
    logp_KC, token_KC = top(logp_KV, count) if narrow else (logp_KV, None)
    columns = logp_KC.shape[1]
    logp_BWC = logp_KC.unflatten(0, total_BW.shape)
    carrying = bool(ended_BW.any())
    if carrying:
        carry_C = torch.where(torch.arange(columns) == 0, 0.0, -math.inf).to(logp_KC.dtype)
        logp_BWC = torch.where(ended_BW[:, :, None], carry_C, logp_BWC)
    ranked_by_BW = total_BW if narrow else total_BW.to(logp_KC.dtype)
    place_BC = top((ranked_by_BW[:, :, None] + logp_BWC).flatten(1), count)[1]
    logp_BC = logp_BWC.flatten(1).gather(1, place_BC)
    slot_BC = place_BC.div(columns, rounding_mode="floor")
    token_BC = place_BC % columns if token_KC is None else token_KC.reshape(len(total_BW), -1).gather(1, place_BC)
    total_BC = total_BW.gather(1, slot_BC) + logp_BC
    if not narrow:
        total_BC, order_BC = total_BC.sort(dim=1, descending=True, stable=True)
        slot_BC, token_BC, logp_BC = (part.gather(1, order_BC) for part in (slot_BC, token_BC, logp_BC))
    return Candidates(slot_BC, token_BC, logp_BC, total_BC, ended_BW.gather(1, slot_BC) if carrying else None)


class Stay:
    """A finished hypothesis keeps its place in the beam, its total frozen, and competes with the live ones by plain total.

    * Each step the `width` best of the live ones' continuations and the finished ones hold the beam; a finished one may
      be pushed out by live ones that are still more probable. Both are candidates: the tree shows a finished one where it
      ended, so a later step has fewer new nodes than candidates.
    * The search stops when the whole beam is finished, or at the length limit.
    * What comes back is the beam, ranked by score. At the limit unfinished hypotheses are cut: they come back marked as
      unfinished and compete by score, their length being the limit. Where the options force <eos> there, nothing else may
      follow at the last step, at its own price.
    * Where nothing may follow any hypothesis of a sentence, they are cut there.
    """

    group = 0

    def __init__(self, sentences: int, width: int, shown: int, scoring: Scoring, eos: int) -> None:
        self.width, self.within, self.shown, self.scoring, self.eos = width, width, shown, scoring, eos
        self.slots = empty_slots(sentences, 1)

    def choose(self, logp_KV: Tensor, step: int, last_B: Tensor, coverage_K: Tensor | None) -> Choice:
        found = candidates(logp_KV, self.slots, self.shown)
        column_BW = torch.arange(min(self.width, found.total_BC.shape[1])).expand(len(found.total_BC), -1)
        self.slots = seat(self.slots, found, column_BW, step, coverage_K, self.eos)
        live_BW = (self.slots.total_BW > -math.inf) & ~self.slots.ended_BW
        return Choice(found, column_BW, last_B | ~live_BW.any(1))

    def keep(self, sentences_B: Tensor) -> None:
        self.slots = keep_sentences(self.slots, sentences_B)

    def endings(self) -> Endings:
        slots = self.slots
        return Endings(self.scoring.score(slots.total_BW, slots.step_BW + 1, slots.coverage_BW), slots.step_BW, slots.column_BW)


class Free:
    """A finished hypothesis is banked and frees its place, so that `width` live ones always go on.

    * Each step looks at the 2 * `width` best continuations. Those that end and are among the first `width` are banked;
      the bank keeps the `width` best by score. The `width` best that do not end go on.
    * With a full bank the search stops, by `early`: `true` at once; `false` when the best live hypothesis, normalised at
      its present length, cannot beat the worst banked one; `never` when no live hypothesis can, at whatever length it may
      still end. Coverage, never above 0, is taken as 0 for a live one.
    * At the length limit the `width` best of the last step are banked as they are: unfinished ones come back marked as
      unfinished and compete by score, unless the options force <eos> there, at its own price. What comes back is the bank,
      ranked by score.
    * Where nothing may follow any live hypothesis of a sentence, the search stops; with an empty bank, they are cut there.
    """

    group = 0

    def __init__(self, limits_B: Tensor, width: int, early: str, scoring: Scoring, eos: int) -> None:
        self.width, self.within, self.early, self.scoring, self.eos = width, width, early, scoring, eos
        self.limits_B = limits_B
        self.slots = empty_slots(len(limits_B), 1)
        nowhere_BN = torch.zeros((len(limits_B), width), dtype=torch.long)
        self.bank = Endings(torch.full(nowhere_BN.shape, -math.inf, dtype=torch.float64), nowhere_BN, nowhere_BN)

    def choose(self, logp_KV: Tensor, step: int, last_B: Tensor, coverage_K: Tensor | None) -> Choice:
        found = candidates(logp_KV, self.slots, 2 * self.width)
        first_BW = torch.arange(min(self.width, found.total_BC.shape[1])).expand(len(found.total_BC), -1)
        front = seat(self.slots, found, first_BW, step, coverage_K, self.eos)
        banked_BW = front.ended_BW | last_B[:, None]
        if banked_BW.any():
            self._put(front, banked_BW, step)
        going_BW = (found.token_BC == self.eos).sort(dim=1, stable=True).indices[:, : first_BW.shape[1]]
        column_BW = torch.where(last_B[:, None], first_BW, going_BW)
        live = seat(self.slots, found, column_BW, step, coverage_K, self.eos)
        self.slots = live._replace(
            total_BW=live.total_BW.masked_fill(live.ended_BW, -math.inf), ended_BW=torch.zeros_like(live.ended_BW)
        )
        return Choice(found, column_BW, last_B | self._settled(step + 1))

    def _put(self, front: Slots, banked_BW: Tensor, step: int) -> None:
        """Bank the marked ones; those of an earlier step, which nothing could follow, only if there is nothing better."""
        bank_empty_B = self.bank.score_BN[:, 0] == -math.inf
        banked_BW = banked_BW & ((front.step_BW == step) | bank_empty_B[:, None])
        scores_BW = self.scoring.score(front.total_BW, front.step_BW + 1, front.coverage_BW)
        score_BN = torch.cat([self.bank.score_BN, scores_BW.masked_fill(~banked_BW, -math.inf)], 1)
        score_BN, place_BN = top(score_BN, self.width)
        step_BN = torch.cat([self.bank.step_BN, front.step_BW], 1).gather(1, place_BN)
        column_BN = torch.cat([self.bank.column_BN, front.column_BW], 1).gather(1, place_BN)
        self.bank = Endings(score_BN, step_BN, column_BN)

    def _settled(self, written: int) -> Tensor:
        best_B = self.slots.total_BW.amax(1)
        worst_B = self.bank.score_BN[:, -1]
        full_B = worst_B > -math.inf
        if self.early == "false":
            full_B = full_B & (self.scoring.score(best_B, written) <= worst_B)
        elif self.early == "never":
            full_B = full_B & (self.scoring.reach(best_B, written, self.limits_B) <= worst_B)
        return full_B | (best_B == -math.inf)

    def keep(self, sentences_B: Tensor) -> None:
        self.slots = keep_sentences(self.slots, sentences_B)
        self.limits_B = self.limits_B[sentences_B]
        self.bank = Endings(*(leaf.index_select(0, sentences_B) for leaf in self.bank))

    def endings(self) -> Endings:
        return self.bank
