"""Beam search: three choosers that differ in what a finished hypothesis does to the beam.

All rank candidates by the sum of log probabilities, unless another function proposes them: `Siblings` and `Groups` make them
differ, `Perturbed` draws them. Finished hypotheses are compared by score. Greedy search is `Stay` with one slot.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.records import Scoring
from seqdemo.search.hypotheses import (
    Ahead,
    Candidates,
    Choice,
    Endings,
    Propose,
    Slots,
    best_first,
    empty_slots,
    first_of_each,
    fresh,
    keep_sentences,
    of_each,
    seat,
    turns,
    widened,
)
from seqdemo.search.rules import refuse_broken
from seqdemo.state import Logits, arrays, top

# Up to so many candidates it is quicker to rank each row and merge the rows. For more, `_all_at_once` ranks in single
# precision, so two candidates that this cannot tell apart may change places at the edge of the beam.
NARROW = 48


def candidates(logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates:
    """The `count` best continuations of each sentence. Of equals, the better slot comes first, then the lower token.

    A finished hypothesis has one continuation: itself, at its own total. If no token is allowed at all, the hypotheses are kept
    as they are, so that nothing is lost.
    """
    found = _best(logits, slots.total_BW, slots.ended_BW, count, ahead)
    stuck_B = found.total_BC[:, 0] == -math.inf
    if stuck_B.any():
        refuse_broken(logits)
        found = _best(logits, slots.total_BW, slots.ended_BW | stuck_B[:, None], count, ahead)
    return found


def _best(logits: Logits, total_BW: np.ndarray, ended_BW: np.ndarray, count: int, ahead: Ahead | None) -> Candidates:
    """Each row's best tokens, then the best of a sentence's rows together, by total. A row that ended offers `itself`. The
    log-sum-exp does not change the order within a row, so it is subtracted only from the tokens that remain."""
    if ahead is None and count > NARROW:
        return _all_at_once(logits, total_BW, ended_BW, count)
    value_KC, token_KC = arrays(top(logits.values_KV, count))
    total_K1 = logits.total_K1.numpy()
    if not ((value_KC[:, 0] < math.inf).all() and np.isfinite(total_K1).all()):  # NaN comes first
        refuse_broken(logits)
    logp_KC = value_KC - total_K1
    if ahead is not None:
        return _in_turns(logits, logp_KC, token_KC, total_BW, ended_BW, count, ahead)
    sentences, width = total_BW.shape
    carrying = bool(ended_BW.any())
    if width == 1 and not carrying:  # one row per sentence is in order already
        return Candidates(np.zeros_like(token_KC), token_KC, logp_KC, total_BW + logp_KC)
    if carrying:
        logp_KC = np.where(ended_BW.reshape(-1, 1), itself(logp_KC), logp_KC)
    total_BN = (total_BW.reshape(-1, 1) + logp_KC).reshape(sentences, -1)
    place_BC = best_first(total_BN)[:, :count]
    slot_BC = place_BC // logp_KC.shape[1]
    token_BC, logp_BC, total_BC = (of_each(part.reshape(total_BN.shape), place_BC) for part in (token_KC, logp_KC, total_BN))
    return Candidates(slot_BC, token_BC, logp_BC, total_BC, of_each(ended_BW, slot_BC) if carrying else None)


def itself(logp_KC: np.ndarray) -> np.ndarray:
    """The only candidate of a finished hypothesis: column 0 at log probability 0."""
    return np.where(np.arange(logp_KC.shape[1]) == 0, 0.0, -math.inf).astype(logp_KC.dtype)


def _all_at_once(logits: Logits, total_BW: np.ndarray, ended_BW: np.ndarray, count: int) -> Candidates:
    value_KV, columns = logits.values_KV, logits.values_KV.shape[1]
    value_BWV = value_KV.view(*total_BW.shape, columns)
    less_BW = logits.total_K1.numpy().reshape(total_BW.shape)
    carrying = bool(ended_BW.any())
    if carrying:
        own_BWV = torch.where(torch.arange(columns) == 0, logits.total_K1.view(*total_BW.shape, 1), -math.inf)
        value_BWV = torch.where(torch.from_numpy(ended_BW)[:, :, None], own_BWV, value_BWV)
    ranked_BWV = torch.from_numpy(total_BW - less_BW)[:, :, None].to(value_KV.dtype) + value_BWV
    ranked_BC, place_BC = arrays(top(ranked_BWV.flatten(1), count))
    if not (ranked_BC[:, 0] < math.inf).all():
        refuse_broken(logits)
    slot_BC, token_BC = place_BC // columns, place_BC % columns
    logp_BC = of_each(value_BWV.flatten(1).numpy(), place_BC) - of_each(less_BW, slot_BC)
    total_BC = of_each(total_BW, slot_BC) + logp_BC
    order_BC = best_first(total_BC)
    slot_BC, token_BC, logp_BC, total_BC = (of_each(part, order_BC) for part in (slot_BC, token_BC, logp_BC, total_BC))
    return Candidates(slot_BC, token_BC, logp_BC, total_BC, of_each(ended_BW, slot_BC) if carrying else None)


def _in_turns(
    logits: Logits,
    logp_KC: np.ndarray,
    token_KC: np.ndarray,
    total_BW: np.ndarray,
    ended_BW: np.ndarray,
    count: int,
    ahead: Ahead,
) -> Candidates:
    """The best candidate at each number of missing tokens, fewest first, then the second best at each, and so on, so that
    hypotheses at every number go on. Each row offers its best tokens and those that are required."""
    required_KA = ahead.pieces_A.expand(len(token_KC), -1)
    piece_KA, logp_KA = arrays((required_KA, logits.values_KV.gather(1, required_KA) - logits.total_K1))
    again_KA = (piece_KA[:, :, None] == token_KC[:, None]).any(2)
    token_KN = np.concatenate([token_KC, piece_KA], 1)
    logp_KN = np.concatenate([logp_KC, np.where(again_KA, -math.inf, logp_KA).astype(logp_KC.dtype)], 1)
    ended_K1 = ended_BW.reshape(-1, 1)
    logp_KN = np.where(ended_K1, itself(logp_KN), logp_KN)
    row_M = torch.arange(len(token_KN)).repeat_interleave(token_KN.shape[1])
    level_KN = ahead.missing(row_M, torch.from_numpy(token_KN.ravel())).numpy().reshape(token_KN.shape)
    total_BN = (total_BW.reshape(-1, 1) + logp_KN).reshape(len(total_BW), -1)
    level_BN = np.where(ended_K1, 0, level_KN).reshape(total_BN.shape)
    level_BN[total_BN == -math.inf] = 0
    place_BC = turns(total_BN, level_BN)[:, :count]
    slot_BC = place_BC // token_KN.shape[1]
    token_BC, logp_BC, total_BC = (of_each(part.reshape(total_BN.shape), place_BC) for part in (token_KN, logp_KN, total_BN))
    return Candidates(slot_BC, token_BC, logp_BC, total_BC, of_each(ended_BW, slot_BC), of_each(level_BN, place_BC))


class Stay:
    """A finished hypothesis keeps its place in the beam, its total frozen, and competes with the live ones by plain total.

    * Each step the `width` best of the live ones' continuations and the finished ones hold the beam; a finished one may
      be pushed out by live ones that are still more probable. Both are candidates: the tree shows a finished one where it
      ended, so a later step has fewer new nodes than candidates.
    * The search stops when the whole beam is finished, or at the length limit.
    * The result is the beam, ranked by score. At the limit unfinished hypotheses are cut: they are returned as unfinished and
      ranked by score, with the limit as their length. If the options force <eos> there, it is the only token allowed at the
      last step, at its own log probability.
    * If no token may follow any hypothesis of a sentence, they are cut there.
    * If words are required, hypotheses at every number of missing tokens share the beam (see `_in_turns`). The search then
      stops when those that miss nothing are finished and no other is more probable, so it may return fewer outputs.
    """

    def __init__(
        self, sentences: int, width: int, shown: int, scoring: Scoring, eos: int, propose: Propose = candidates, groups: int = 1
    ) -> None:
        self.width, self.within, self.shown, self.scoring, self.eos = width, width // groups, shown, scoring, eos
        self.propose, self.groups, self.group = propose, groups, shown // groups if groups > 1 else 0
        self.slots = empty_slots(sentences, groups)

    def choose(
        self, logits: Logits, step: int, last_B: np.ndarray, coverage_K: np.ndarray | None, ahead: Ahead | None = None
    ) -> Choice:
        found = self.propose(logits, self.slots, self.shown, ahead if self.width > 1 else None)
        column_BW = first_of_each(*found.total_BC.shape, self.width, self.groups)
        self.slots = seat(self.slots, found, column_BW, step, coverage_K, self.eos)
        live_BW = (self.slots.total_BW > -math.inf) & ~self.slots.ended_BW
        done_B = last_B | ~live_BW.any(1)
        if found.level_BC is not None and self.groups == 1:
            done_B = done_B | self._decided(live_BW, of_each(found.level_BC, column_BW))
        return Choice(found, column_BW, done_B)

    def _decided(self, live_BW: np.ndarray, level_BW: np.ndarray) -> np.ndarray:
        """Whether all hypotheses that miss nothing are finished, and none that misses something is more probable. If so, the
        latter are removed."""
        total_BW, ended_BW = self.slots.total_BW, self.slots.ended_BW
        worst_B = np.where(ended_BW, total_BW, math.inf).min(1)
        best_B = np.where(live_BW, total_BW, -math.inf).max(1)
        decided_B: np.ndarray = ended_BW.any(1) & ~(live_BW & (level_BW == 0)).any(1) & (best_B <= worst_B)
        self.slots = self.slots.without(decided_B[:, None] & live_BW)
        return decided_B

    def keep(self, kept_N: np.ndarray) -> None:
        self.slots = keep_sentences(self.slots, kept_N)

    def endings(self) -> Endings:
        slots = self.slots
        score_BW = self.scoring.score(slots.ranked_by_BW, slots.step_BW + 1, slots.coverage_BW)
        return Endings(score_BW, slots.step_BW, slots.column_BW)


class Free:
    """A finished hypothesis is banked and frees its place, so that `width` live ones always go on.

    * Each step looks at the 2 * `width` best continuations. Those that end and are among the first `width` are banked;
      the bank keeps the best by score, patience * `width` of them. The `width` best that do not end go on.
    * With a full bank the search stops, by `early`: `true` at once; `false` when the best live hypothesis, normalised at
      its present length, cannot beat the worst banked one; `never` when no live hypothesis can, at whatever length it may
      still end. Coverage, never above 0, is taken as 0 for a live one.
    * At the length limit the `width` best of the last step are banked as they are: unfinished ones come back marked as
      unfinished and compete by score, unless the options force <eos> there, at its own price. What comes back is the bank,
      ranked by score.
    * Where nothing may follow any live hypothesis of a sentence, the search stops; with an empty bank, they are cut there.
    """

    def __init__(
        self,
        limits_B: np.ndarray,
        options: SearchOptions,
        scoring: Scoring,
        eos: int,
        propose: Propose = candidates,
        groups: int = 1,
    ) -> None:
        self.width, self.within, self.early = options.beam, options.beam // groups, options.early
        self.limits_B, self.scoring, self.eos = limits_B, scoring, eos
        self.propose, self.groups, self.group = propose, groups, 2 * self.width // groups if groups > 1 else 0
        self.slots = empty_slots(len(limits_B), groups)
        nowhere_BN = np.zeros((len(limits_B), self.places(options)), np.int64)
        self.bank = Endings(np.full(nowhere_BN.shape, -math.inf), nowhere_BN, nowhere_BN)

    def places(self, options: SearchOptions) -> int:
        """How many outputs the bank holds (Kasai et al. 2024: patience * width)."""
        return max(1, math.ceil(options.patience * options.beam - 1e-9))

    def choose(
        self, logits: Logits, step: int, last_B: np.ndarray, coverage_K: np.ndarray | None, ahead: Ahead | None = None
    ) -> Choice:
        found = self.propose(logits, self.slots, 2 * self.width, ahead if self.width > 1 else None)
        first_BW = first_of_each(*found.total_BC.shape, self.width, self.groups)
        front = seat(self.slots, found, first_BW, step, coverage_K, self.eos)
        banked_BW = front.ended_BW | last_B[:, None]
        if banked_BW.any():
            self._put(front, banked_BW, step)
        column_BW = np.where(last_B[:, None], first_BW, self.going(found, first_BW))
        live = seat(self.slots, found, column_BW, step, coverage_K, self.eos)
        self.slots = live.without(live.ended_BW)
        return Choice(found, column_BW, last_B | self._settled(found, step + 1))

    def going(self, found: Candidates, first_BW: np.ndarray) -> np.ndarray:
        """The columns of the best candidates of every group that do not end."""
        ends_NC = (found.token_BC == self.eos).reshape(len(first_BW) * self.groups, -1)
        column_NW = ends_NC.argsort(axis=1, kind="stable")[:, : first_BW.shape[1] // self.groups]
        going_BW: np.ndarray = column_NW.reshape(len(first_BW), -1) + first_BW // ends_NC.shape[1] * ends_NC.shape[1]
        return going_BW

    def _put(self, front: Slots, banked_BW: np.ndarray, step: int) -> None:
        """Bank the marked hypotheses. Those of an earlier step, which no token may follow, are banked only if the bank is
        empty."""
        bank_empty_B = self.bank.score_BN[:, 0] == -math.inf
        banked_BW = banked_BW & ((front.step_BW == step) | bank_empty_B[:, None])
        scores_BW = self.scoring.score(front.ranked_by_BW, front.step_BW + 1, front.coverage_BW)
        offered = (np.where(banked_BW, scores_BW, -math.inf), front.step_BW, front.column_BW)
        both = [np.concatenate(parts, 1) for parts in zip(self.bank, offered)]
        place_BN = best_first(both[0])[:, : self.bank.score_BN.shape[1]]
        self.bank = Endings._make(of_each(part, place_BN) for part in both)

    def _settled(self, found: Candidates, written: int) -> np.ndarray:
        best_B = self.slots.ranked_by_BW.max(1)
        worst_B = self.bank.score_BN[:, -1]
        full_B: np.ndarray = worst_B > -math.inf
        if self.early == "false":
            full_B = full_B & (self.scoring.score(best_B, written) <= worst_B)
        elif self.early == "never":
            full_B = full_B & (self.scoring.reach(best_B, written, self.limits_B) <= worst_B)
        settled_B: np.ndarray = full_B | (best_B == -math.inf)
        return settled_B

    def keep(self, kept_N: np.ndarray) -> None:
        self.slots = keep_sentences(self.slots, kept_N)
        self.limits_B = self.limits_B[kept_N]
        self.bank = Endings._make(leaf[kept_N] for leaf in self.bank)

    def endings(self) -> Endings:
        return self.bank


class Leave(Free):
    """A finished hypothesis is banked, and its place stays empty until the next step, as in OpenNMT.

    * Each step the `width` best continuations hold the beam. Those that end are banked; the bank keeps the `nbest` best.
    * The search stops once the best candidate of a step has ended and the bank is full, or at the length limit.
    """

    def __init__(
        self, limits_B: np.ndarray, options: SearchOptions, scoring: Scoring, eos: int, propose: Propose = candidates
    ) -> None:
        super().__init__(limits_B, options, scoring, eos, propose)
        self.ended_B = np.zeros(len(limits_B), bool)  # whether the best candidate of some step has ended

    def places(self, options: SearchOptions) -> int:
        return options.nbest

    def going(self, found: Candidates, first_BW: np.ndarray) -> np.ndarray:
        return first_BW

    def _settled(self, found: Candidates, written: int) -> np.ndarray:
        self.ended_B = self.ended_B | (found.token_BC[:, 0] == self.eos)
        full_B = self.bank.score_BN[:, -1] > -math.inf
        settled_B: np.ndarray = self.ended_B & full_B | (self.slots.total_BW == -math.inf).all(1)
        return settled_B

    def keep(self, kept_N: np.ndarray) -> None:
        super().keep(kept_N)
        self.ended_B = self.ended_B[kept_N]


def ranked_otherwise(logits: Logits, changes: Logits, slots: Slots, count: int) -> Candidates:
    """The best candidates, ranked by `changes` added to the ranking value of their hypotheses. Their log probabilities are those
    of `logits`."""
    found = candidates(changes, slots._replace(total_BW=slots.ranked_by_BW), count)
    value_BN = logits.values_KV.numpy().reshape(len(found.slot_BC), -1)
    logp_BC = of_each(value_BN, found.slot_BC * logits.values_KV.shape[1] + found.token_BC)
    logp_BC = logp_BC - of_each(logits.total_K1.numpy().reshape(slots.total_BW.shape), found.slot_BC)
    logp_BC[found.total_BC == -math.inf] = -math.inf
    if found.carried_BC is not None:
        logp_BC[found.carried_BC & (found.total_BC > -math.inf)] = 0.0
    total_BC = of_each(slots.total_BW, found.slot_BC) + logp_BC
    return found._replace(logp_BC=logp_BC, total_BC=total_BC, rank_BC=found.total_BC)


class Siblings:
    """Diverse siblings (Li et al. 2016): the k-th best continuation of a hypothesis pays k * rate, from the second step on.
    What was paid stays paid, also in the score."""

    groups = 1

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates:
        values_KV = logits.values_KV
        if (slots.step_BW >= 0).any():
            value_KC, token_KC = top(values_KV, count)
            value_KC = value_KC - self.rate * torch.arange(1, value_KC.shape[1] + 1)
            values_KV = torch.full_like(values_KV, -math.inf).scatter(1, token_KC, value_KC)
        return ranked_otherwise(logits, Logits(values_KV, logits.total_K1), slots, count)


class Groups:
    """Diverse beam search (Vijayakumar et al. 2016): groups of the beam choose one after the other, and a token pays
    `strength` each time that it is among the best candidates of an earlier group at this step (as many as a group holds). What
    was paid stays paid, also in the score. The columns of a group stand together."""

    def __init__(self, groups: int, width: int, strength: float) -> None:
        self.groups, self.each, self.strength = groups, width // groups, strength

    def __call__(self, logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates:
        sentences, held = slots.total_BW.shape
        values_BGWV = logits.values_KV.reshape(sentences, self.groups, held // self.groups, -1)
        total_BGW1 = logits.total_K1.reshape(*values_BGWV.shape[:3], 1)
        said_BV = values_BGWV.new_zeros(sentences, values_BGWV.shape[3])
        parts = []
        for group in range(self.groups):
            own = slice(group * values_BGWV.shape[2], (group + 1) * values_BGWV.shape[2])
            values_BWV, total_K1 = values_BGWV[:, group], total_BGW1[:, group].reshape(-1, 1)
            charged_KV = (values_BWV - self.strength * said_BV[:, None]).flatten(0, 1)
            own_slots = Slots._make(None if leaf is None else leaf[:, own] for leaf in slots)
            own_logits = Logits(values_BWV.flatten(0, 1), total_K1)
            found = ranked_otherwise(own_logits, Logits(charged_KV, total_K1), own_slots, count // self.groups)
            best, says = (torch.from_numpy(part[:, : self.each]) for part in (found.token_BC, fresh(found)))
            said_BV.scatter_add_(1, best, says.to(said_BV.dtype))
            parts.append(widened(found._replace(slot_BC=found.slot_BC + own.start), count // self.groups, group))
        return Candidates(*(np.concatenate(leaves, 1) for leaves in zip(*parts)))


class Perturbed:
    """Stochastic beam search (Kool et al. 2019): the beam holds the outputs of highest perturbed log probability G, which are
    distinct samples without replacement. Of the root G ~ Gumbel(0); the children c of a hypothesis h, of log probability l_c,

        g_c ~ Gumbel(l_c),   Z = max_c g_c,   G_c = -log(exp(-G_h) - exp(-Z) + exp(-g_c)),

    where G_c is a Gumbel(l_c) under the condition that the largest of them is G_h. Where rules forbid tokens, the rest share what
    is left, as in sampling. Every sentence is drawn with the same random numbers.
    """

    groups = 1

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, logits: Logits, slots: Slots, count: int, ahead: Ahead | None = None) -> Candidates:
        sentences, width = slots.total_BW.shape
        total_K1, rank_K1 = (torch.from_numpy(part.reshape(-1, 1)) for part in (slots.total_BW, slots.ranked_by_BW))
        logp_KV = (logits.values_KV - logits.total_K1).double() + total_K1
        step = int(slots.step_BW.max()) + 1
        noise_WV = torch.from_numpy(np.random.default_rng((self.seed, step)).gumbel(size=(width, logp_KV.shape[1])))
        drawn_KV = logp_KV + noise_WV.repeat(sentences, 1)
        if slots.rank_BW is not None:
            drawn_KV = under_maximum(drawn_KV, rank_K1)
            drawn_KV = drawn_KV.masked_fill(logp_KV == -math.inf, -math.inf)
        more_KV = drawn_KV - rank_K1.clamp(min=torch.finfo(torch.float64).min)
        return ranked_otherwise(logits, Logits(more_KV, torch.zeros_like(more_KV[:, :1])), slots, count)


def under_maximum(drawn_KV: Tensor, largest_K1: Tensor) -> Tensor:
    """G = -log(exp(-largest) - exp(-Z) + exp(-g)), in the form that does not overflow (appendix B.3 of the paper)."""
    below_KV = drawn_KV - drawn_KV.amax(1, keepdim=True)  # g - Z
    v_KV = largest_K1 - drawn_KV + torch.log1p(-below_KV.exp())
    return largest_K1 - v_KV.clamp(min=0) - torch.log1p((-v_KV.abs()).exp())
