"""An output up to one of its places, from where one step gives the next word under many attention rows, in a batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from seqdemo.checkpoints import Checkpoint
from seqdemo.edits import Edit, whole
from seqdemo.errors import InputError, shown
from seqdemo.explain.replay import inputs_of
from seqdemo.explain.step import before
from seqdemo.findings import Bar
from seqdemo.network.attention import WhatIf, as_row, what_if_of
from seqdemo.network.model import NEVER_SAID, log_probabilities
from seqdemo.playground import Run, said
from seqdemo.prompts import tokenizer
from seqdemo.state import Step, select


class RowsGiven(WhatIf):
    """The edits of a run; then, at one position, each row of the batch gets its own row of attention."""

    def __init__(
        self, edits: Sequence[Edit], position: int, rows_KS: Tensor, layer: int | None = None, head: int | None = None
    ) -> None:
        super().__init__(edits)
        self.position, self.rows_KS, self.layer, self.head = position, rows_KS, layer, head

    def __bool__(self) -> bool:
        return True

    def attention(self, layer: int, weights_BKNS: Tensor, mask_BS: Tensor, position_K: Tensor) -> Tensor:
        weights_BKNS = super().attention(layer, weights_BKNS, mask_BS, position_K)
        if self.layer not in (None, layer):
            return weights_BKNS
        head_N = torch.arange(weights_BKNS.shape[2])
        meant_KN = (position_K == self.position)[:, None] & (head_N == (head_N if self.head is None else self.head))
        return torch.where(meant_KN[None, :, :, None], self.rows_KS[None, :, None].to(weights_BKNS.dtype), weights_BKNS)


class Place:
    """`position` counts from the beginning of the whole text, as edits do; `tokens` are those of a hypothesis, without the
    beginning that a language model was given."""

    @torch.inference_mode()
    def __init__(self, checkpoint: Checkpoint, run: Run, tokens: Sequence[int], position: int) -> None:
        self.checkpoint, self.run, self.text = checkpoint, run, tokenizer(checkpoint.target_text)
        self.network, self.target = said(checkpoint, run.prompt, tokens)
        check_place(position, len(run.prompt.prefix), len(self.target))
        self.position, self.edits = position, run.edits
        self.what_if = what_if_of(run.edits)
        self.state = before(self.network, run.prompt.source, self.target, position, self.what_if)
        self.token_1 = inputs_of(self.target)[:, position]
        self.own = self.step(self.what_if, 1)
        self.logp_V = self.logps(self.own)[0]

    def step(self, what_if: WhatIf | None, rows: int) -> Step:
        """The step that says the token at this place, in `rows` equal rows."""
        none_K = torch.zeros(rows, dtype=torch.long)
        return self.network.step(self.token_1.expand(rows), select(self.state, none_K), what_if)

    def logps(self, step: Step) -> Tensor:
        return log_probabilities(self.network.readout(step.features_KR))

    @torch.inference_mode()
    def under(self, rows_KS: Tensor, layer: int | None = None, head: int | None = None) -> Tensor:
        """Log probabilities of the next word under each of these rows (K, V)."""
        return self.logps(self.step(RowsGiven(self.edits, self.position, rows_KS, layer, head), len(rows_KS)))

    @property
    def token(self) -> int:
        """The token at this place."""
        return self.target[self.position]

    def bar(self, token: int, logp_V: Tensor | None = None) -> Bar:
        logp_V = self.logp_V if logp_V is None else logp_V
        return Bar(token, self.text.piece(token), float(logp_V[token].exp()))

    def bars(self, logp_V: Tensor, top: int) -> tuple[Bar, ...]:
        return tuple(self.bar(token, logp_V) for token in logp_V.topk(min(top, len(logp_V) - len(NEVER_SAID))).indices.tolist())


def check_place(position: object, given: int, length: int) -> None:
    if not whole(position, length):
        raise InputError(f"Position {position!r} is outside this output of {length} pieces, counted from 0.")
    if position < given:
        raise InputError(f"The first {given} pieces are the text that was given; ask from position {given} on.")


def check_count(name: str, value: object) -> None:
    if not whole(value, sys.maxsize) or not value:
        raise InputError(f"{name} must be a whole number, 1 or more, not {shown(value)}.")


def rows_of(values: Sequence[Sequence[float]], positions: int) -> Tensor:
    """Attention rows from a user, checked, each normalised to sum to 1."""
    for row in values:
        good = isinstance(row, (Sequence, np.ndarray)) and len(row) == positions
        good = good and all(isinstance(weight, (int, float, np.floating)) and 0 <= weight <= 1e6 for weight in row)
        if not good or sum(row) <= 0:
            raise InputError(
                f"An attention row for this source has {positions} weights, numbers from 0 up, and at least one above 0."
            )
    return torch.stack([as_row(row) for row in values]) if len(values) else torch.zeros(0, positions)


Progress = Callable[[int, int], None]  # how much is done, of how much
Cancel = Callable[[], bool]


def stop_if(cancel: Cancel | None) -> None:
    if cancel and cancel():
        raise InputError("Stopped.")
