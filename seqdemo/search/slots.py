"""What every search that walks step by step is made of: the slots it holds, the candidates it looks at, the choice it makes.

B sentences, W slots a sentence (K = B * W rows of the model), C candidates a sentence. Slots and columns are numbered from 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Slots(NamedTuple):
    """The hypotheses a search holds. The last token of each stands in the record at (step, column)."""

    total_BW: Tensor  # float64; -inf: nobody sits there
    ended_BW: Tensor  # bool: it is finished, its total frozen
    step_BW: Tensor  # -1: nothing written yet
    column_BW: Tensor
    coverage_BW: Tensor  # coverage penalty when its last token was written


class Candidates(NamedTuple):
    """The continuations a step looks at, best first."""

    slot_BC: Tensor  # the hypothesis it continues
    token_BC: Tensor
    logp_BC: Tensor
    total_BC: Tensor  # float64; -inf: not a candidate
    carried_BC: Tensor | None = None  # True: no new token, but a finished hypothesis that holds its place


class Choice(NamedTuple):
    """What a rule makes of a step: the column that takes each slot of the next one, and which sentences are done."""

    candidates: Candidates
    column_BW: Tensor
    done_B: Tensor


class Endings(NamedTuple):
    """The hypotheses a search has to offer, N a sentence in any order; score -inf: none."""

    score_BN: Tensor
    step_BN: Tensor
    column_BN: Tensor


class Rule(Protocol):
    """A way to choose. `slots` always holds the hypotheses of the rows the model sees next."""

    slots: Slots
    within: int  # candidates that end are finished when they are among the first `within`; 0: when chosen
    group: int  # columns that belong together in the ranking; 0: all

    def choose(self, logp_KV: Tensor, step: int, last_B: Tensor, coverage_K: Tensor | None) -> Choice: ...

    def keep(self, sentences_B: Tensor) -> None: ...

    def endings(self) -> Endings: ...


def empty_slots(sentences: int, width: int) -> Slots:
    """`width` slots a sentence, each holding the empty hypothesis."""
    shape = (sentences, width)
    return Slots(
        torch.zeros(shape, dtype=torch.float64),
        torch.zeros(shape, dtype=torch.bool),
        torch.full(shape, -1),
        torch.zeros(shape, dtype=torch.long),
        torch.zeros(shape, dtype=torch.float64),
    )


def seat(slots: Slots, candidates: Candidates, column_BW: Tensor, step: int, coverage_K: Tensor | None, eos: int) -> Slots:
    """The slots after the candidates in these columns sat down; a carried one keeps what its slot held."""
    total_BW = candidates.total_BC.gather(1, column_BW)
    ended_BW = candidates.token_BC.gather(1, column_BW) == eos
    step_BW = torch.full_like(column_BW, step)
    sat_BW = column_BW
    from_BW = candidates.slot_BC.gather(1, column_BW)
    if coverage_K is None:
        coverage_BW = torch.zeros_like(total_BW)
    else:
        coverage_BW = coverage_K.view(len(column_BW), -1).gather(1, from_BW)
    if candidates.carried_BC is not None:
        carried_BW = candidates.carried_BC.gather(1, column_BW)
        ended_BW = ended_BW | carried_BW
        step_BW = torch.where(carried_BW, slots.step_BW.gather(1, from_BW), step_BW)
        sat_BW = torch.where(carried_BW, slots.column_BW.gather(1, from_BW), column_BW)
        coverage_BW = torch.where(carried_BW, slots.coverage_BW.gather(1, from_BW), coverage_BW)
    return Slots(total_BW, ended_BW & (total_BW > -math.inf), step_BW, sat_BW, coverage_BW)


def keep_sentences(slots: Slots, sentences_B: Tensor) -> Slots:
    return Slots(*(leaf.index_select(0, sentences_B) for leaf in slots))
