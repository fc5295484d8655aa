"""One search from its options to its results: the chooser of each strategy, and the loop that greedy, beam and sampling share:
step, apply the rules, choose, move the state, until all are done.

A new search needs a chooser, or another function that proposes candidates, and an entry in `CHOOSERS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from seqdemo.config import BOS, EOS, SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import Scoring, SearchResult
from seqdemo.search.beam import Free, Groups, Leave, Perturbed, Siblings, Stay, candidates
from seqdemo.search.exact import Cancel, Progress, search_exactly
from seqdemo.search.hypotheses import Ahead, Chooser, Propose, Turn, Walked, assemble, of_each
from seqdemo.search.rules import Banned, Forced, Now, Only, Required, Rule, Rules, Spelling, Words, rules_of
from seqdemo.search.sampling import Sample
from seqdemo.state import Logits, StepFunction, select

DROP_AT = 0.25  # sentences leave the batch when this share of it is done
BESIDE = 10  # candidates recorded per step by greedy search and beside each sample
MANY_SAMPLES, BESIDE_MANY = 10, 2  # with more samples than this, so many beside each


@torch.inference_mode()
def search(
    step: StepFunction,
    state: Any,
    sentences: int,
    options: SearchOptions,
    limits: Sequence[int],
    *,
    bos: int = BOS,
    eos: int = EOS,
    given: Sequence[Sequence[int]] = (),
    rules: Sequence[Rule] = (),
    own: Sequence[Sequence[Rule]] = (),
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    record: bool = True,
) -> list[SearchResult]:
    """Search each sentence of a batch, with the same results as one by one.

    `step(tokens_K, state) -> (scores, state)`: the scores are `Logits`, or a plain tensor of log probabilities. `state` has one
    row per sentence; `limits` are the most tokens each output may have, <eos> included. `given` are the tokens before each
    output; where there are any, the state must have read <bos> and all of them but the last. The rules count them as said.
    `rules` apply after those of the options (see `rules_of` and `word_rules`), then `own[b]` to sentence b alone. `cancel()` is
    called at every step; when it returns True, the search ends as at the limit. Exact search calls `progress(expansions, best,
    bound)` after each step of any sentence, with the best score so far and an upper bound on what is still open. Without `record`
    the trees are empty. `Stay`, `Free`, `Leave`, `Sample` and `ExactSearch` say what each search does with finished hypotheses,
    when it stops and what it returns.
    """
    limits = usable_limits(sentences, options, limits)
    scoring = Scoring.of(options, state)
    if not sentences:
        return []
    texts = [tuple(text) for text in given] or [()] * sentences
    rules = [*rules_of(options), *rules]
    if options.strategy == "exact":
        all_rules = [Rules([*rules, *extra]) for extra in own or [()] * sentences]
        told: dict[str, Any] = {"bos": bos, "eos": eos, "progress": progress, "cancel": cancel, "record": record}
        found = search_exactly(step, state, options, all_rules, scoring, limits, texts, **told)
    else:
        in_force = Rules([*rules, *(Only(rule, sentence) for sentence, extra in enumerate(own) for rule in extra)])
        chooser = CHOOSERS[options.strategy](Wanted(options, limits, scoring, eos, record))
        walked = Walk(step, state, chooser, in_force, scoring, limits, bos=bos, eos=eos, given=texts, cancel=cancel).run()
        found = assemble(walked, chooser, eos, options.samples if options.strategy == "sample" else options.nbest, record)
    return [replace(one, options=options, limit=limit) for one, limit in zip(found, limits)]


def usable_limits(sentences: int, options: SearchOptions, limits: Sequence[int]) -> list[int]:
    if len(limits) != sentences:
        raise InputError(f"Give one length limit per sentence: {len(limits)} limits for {sentences} sentences.")
    least = options.min_length + 1
    usable = [min(limit, options.max_length or limit) for limit in limits]
    if usable and min(usable) < least:
        raise InputError(
            f"A minimum length of {options.min_length} leaves no room for the end: this output has at most {min(usable)} pieces, "
            f"its end included. Lower the minimum length, or, if a maximum length is set, allow at least {least}."
        )
    return usable


def word_rules(
    options: SearchOptions,
    eos: int,
    forced: Sequence[tuple[int, Spelling]] = (),
    banned: Sequence[tuple[int, Spelling]] = (),
    required: Words = (),
) -> list[Rule]:
    """The rules of words that must stand, or must not stand, at a position, and of words that must stand anywhere."""
    rules: list[Rule] = [Forced(tokens, position) for position, tokens in forced]
    rules += [Banned(tokens, position) for position, tokens in banned]
    if required:
        fixed = {place: token for position, tokens in forced for place, token in enumerate(tokens, position)}
        barred = [(position, tokens[0]) for position, tokens in banned if len(tokens) == 1]
        levels = options.strategy == "beam" and options.beam > 1 and options.groups == 1 and not options.siblings
        rules.append(
            Required(
                required, eos, int(options.at_limit == "force"), fixed, barred, insist=not levels and options.strategy != "exact"
            )
        )
    return rules


class Wanted(NamedTuple):
    """What a chooser is made from."""

    options: SearchOptions
    limits: Sequence[int]  # the most tokens of each sentence
    scoring: Scoring
    eos: int
    record: bool

    def stay(self, propose: Propose = candidates, groups: int = 1) -> Stay:
        width = self.options.beam
        return Stay(len(self.limits), width, 2 * width, self.scoring, self.eos, propose, groups)


def greedy(wanted: Wanted) -> Chooser:
    return Stay(len(wanted.limits), 1, BESIDE, wanted.scoring, wanted.eos)


def beam(wanted: Wanted) -> Chooser:
    options, groups = wanted.options, wanted.options.groups
    propose: Propose = candidates
    if groups > 1:
        propose = Groups(groups, options.beam, options.diversity)
    elif options.siblings:
        propose = Siblings(options.siblings)
    if options.finished == "stay":
        return wanted.stay(propose, groups)
    limits_B = np.array(wanted.limits)
    if options.finished == "leave":
        return Leave(limits_B, options, wanted.scoring, wanted.eos, propose)
    return Free(limits_B, options, wanted.scoring, wanted.eos, propose, groups)


def stochastic(wanted: Wanted) -> Chooser:
    return wanted.stay(Perturbed(wanted.options.seed))


def sample(wanted: Wanted) -> Chooser:
    shown = (BESIDE if wanted.options.samples <= MANY_SAMPLES else BESIDE_MANY) if wanted.record else 0
    return Sample(len(wanted.limits), wanted.options, max(wanted.limits), shown, wanted.scoring, wanted.eos)


CHOOSERS: dict[str, Callable[[Wanted], Chooser]] = {"greedy": greedy, "beam": beam, "sample": sample, "stochastic": stochastic}


class Walk:
    """One search of many sentences with one chooser. Finished sentences stay in the batch until there are enough of them to make
    it smaller."""

    def __init__(
        self,
        step: StepFunction,
        state: Any,
        chooser: Chooser,
        rules: Rules,
        scoring: Scoring,
        limits: Sequence[int],
        *,
        bos: int,
        eos: int,
        given: Sequence[Sequence[int]],
        cancel: Cancel | None = None,
    ) -> None:
        self.step, self.chooser, self.rules, self.scoring = step, chooser, rules, scoring
        self.eos, self.cancel = eos, cancel
        self.limits_B = np.array(limits)
        self.sentences = np.arange(len(limits))
        self.open_B = np.ones(len(limits), bool)
        self.going = len(limits)  # how many are open
        slots = chooser.slots.total_BW.shape[1]
        row_K = torch.arange(len(limits)).repeat_interleave(slots)
        self.state = select(state, row_K) if slots > 1 else state
        self.tokens_K = torch.tensor([text[-1] if text else bos for text in given]).repeat_interleave(slots)
        self.given_B = torch.tensor([len(text) for text in given])
        self.said = select(rules.start(given), row_K)  # what the rules remember
        self.turns: list[Turn] = []
        self.lengths = np.zeros(len(limits), dtype=np.int64)
        self.endings: list[tuple[np.ndarray, tuple[np.ndarray, ...]]] = []

    def run(self) -> Walked:
        while True:
            self.advance()
            if not self.going:
                return self.walked()
            self.move()

    def advance(self) -> None:
        written = len(self.turns)
        last_B = self.limits_B <= written + 1
        if self.cancel is not None and self.cancel():
            last_B = np.ones_like(last_B)
        scores, self.state = self.step(self.tokens_K, self.state)
        logits, ahead = Logits.of(scores), None
        if self.rules:
            now = self.now(written, last_B)
            logits = self.rules.apply(logits, now, self.said)
            ahead = Ahead(self.rules, now, self.said) if len(self.rules.pieces) else None
        choice = self.chooser.choose(logits, written, last_B, self.scoring.coverage(self.state), ahead)
        self.turns.append(Turn(self.sentences, choice.candidates, choice.column_BW))
        finishing_B = choice.done_B & self.open_B
        if finishing_B.any():
            self.finish(finishing_B)

    def now(self, written: int, last_B: np.ndarray) -> Now:
        slots = len(self.tokens_K) // len(last_B)
        room_B = torch.from_numpy(np.where(last_B, 1, self.limits_B - written))
        return Now(written, self.given_B.repeat_interleave(slots), room_B.repeat_interleave(slots), self.eos)

    def finish(self, finishing_B: np.ndarray) -> None:
        """Record the hypotheses of these sentences. Later steps of their rows are ignored."""
        self.open_B = self.open_B & ~finishing_B
        self.going -= int(finishing_B.sum())
        self.lengths[self.sentences[finishing_B]] = len(self.turns)
        self.endings.append((self.sentences[finishing_B], tuple(leaf[finishing_B] for leaf in self.chooser.endings())))

    def move(self) -> None:
        """Give each slot the state of the row it continues. If enough sentences are done, keep only the others."""
        _, found, column_BW = self.turns[-1]
        kept_N = None
        if self.going <= (1 - DROP_AT) * len(column_BW):
            kept_N = np.flatnonzero(self.open_B)
            self.drop(kept_N)
        token_BW = of_each(found.token_BC, column_BW)
        rows_K = continued(found.slot_BC, column_BW, len(self.tokens_K) // len(column_BW), kept_N)
        self.tokens_K = torch.from_numpy((token_BW if kept_N is None else token_BW[kept_N]).ravel())
        if rows_K is not None:
            kept = None if kept_N is None else torch.from_numpy(kept_N)
            self.state, self.said = select((self.state, self.said), torch.from_numpy(rows_K), kept)
        self.said = self.rules.after(self.said, self.tokens_K)

    def drop(self, kept_N: np.ndarray) -> None:
        self.chooser.keep(kept_N)
        self.sentences = self.sentences[kept_N]
        self.limits_B, self.given_B = self.limits_B[kept_N], self.given_B[kept_N]
        self.open_B = self.open_B[kept_N]

    def walked(self) -> Walked:
        shape = (len(self.lengths), max(leaves[0].shape[1] for _, leaves in self.endings))
        scores, steps, columns = np.full(shape, -math.inf), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for sentences, leaves in self.endings:
            for whole, part in zip((scores, steps, columns), leaves):
                whole[sentences, : part.shape[1]] = part
        return Walked(self.turns, self.lengths, scores, steps, columns)


def continued(slot_BC: np.ndarray, column_BW: np.ndarray, before: int, kept_N: np.ndarray | None) -> np.ndarray | None:
    """The row of the step before that each slot continues, of the sentences kept; None where each continues its own."""
    row_BW = of_each(slot_BC, column_BW) + np.arange(0, len(column_BW) * before, before)[:, None]
    row_K: np.ndarray = (row_BW if kept_N is None else row_BW[kept_N]).ravel()
    unmoved = kept_N is None and column_BW.shape[1] == before and (row_K == np.arange(len(row_K))).all()
    return None if unmoved else row_K
