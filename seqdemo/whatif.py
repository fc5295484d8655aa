"""How a run consults its edits: about gates and attention inside a step, about tokens around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqdemo.cells import Ask, keep
from seqdemo.config import EOS
from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Edit, Force
from seqdemo.encoders import AskAt
from seqdemo.errors import InputError
from seqdemo.state import Memory

StepFunction = Callable[[Tensor, Any], tuple[Tensor, Any]]


def at(position_K: Tensor, positions: tuple[int, ...] | None) -> Tensor:
    """Which rows stand at one of the positions (None: all)."""
    if positions is None:
        return torch.ones_like(position_K, dtype=torch.bool)
    return torch.isin(position_K, torch.tensor(positions, dtype=torch.long))


def clamped(value_KH: Tensor, edit: ClampGate, rows_K: Tensor) -> Tensor:
    assert not isinstance(edit.value, str)
    chosen_H = torch.ones(value_KH.shape[1], dtype=torch.bool)
    if edit.units is not None:
        chosen_H.zero_()[list(edit.units)] = True
    held = torch.tensor(edit.value, dtype=value_KH.dtype)
    return torch.where(rows_K[:, None] & chosen_H, held, value_KH)


class WhatIf:
    """The edits of one run that act inside a step; those that hold at no position, for no unit or by no amount are none.
    Values 'mean' must have become numbers before (see `resolved`)."""

    def __init__(self, edits: tuple[Edit, ...]) -> None:
        self.rows = [edit for edit in edits if isinstance(edit, AttentionRow)]
        self.blends = [edit for edit in edits if isinstance(edit, AttentionBlend) and edit.factor and edit.positions != ()]
        self.clamps = [edit for edit in edits if isinstance(edit, ClampGate) and () not in (edit.units, edit.positions)]
        if any(clamp.value == "mean" for clamp in self.clamps):
            raise InputError(
                "A gate held at its mean needs to know of which output: `resolve` the edits over one, or give numbers."
            )

    def __bool__(self) -> bool:
        return bool(self.rows or self.blends or self.clamps)

    def gates(self, layer: int, position_K: Tensor) -> Ask:
        return self.ask([clamp for clamp in self.clamps if clamp.part == "decoder" and clamp.layer == layer], position_K)

    def encoder(self) -> AskAt | None:
        clamps = [clamp for clamp in self.clamps if clamp.part == "encoder"]

        def ask(layer: int, direction: str) -> Callable[[Tensor], Ask] | None:
            meant = [clamp for clamp in clamps if clamp.layer == layer and clamp.direction == direction]
            return (lambda position_B: self.ask(meant, position_B)) if meant else None

        return ask if clamps else None

    def ask(self, clamps: list[ClampGate], position_K: Tensor) -> Ask:
        if not clamps:
            return keep

        def held(name: str, value_KH: Tensor) -> Tensor:
            for clamp in clamps:
                if clamp.gate == name:
                    value_KH = clamped(value_KH, clamp, at(position_K, clamp.positions))
            return value_KH

        return held

    def weights(self, weights_BKS: Tensor, mask_BS: Tensor, position_K: Tensor) -> Tensor:
        """Blends first, then rows that replace the outcome."""
        position_BK1 = position_K.view(*weights_BKS.shape[:2], 1)
        for blend in self.blends:
            if blend.towards != "nothing":
                goal_B1S = goal(blend.towards, mask_BS).to(weights_BKS.dtype)[:, None]
                moved = torch.lerp(weights_BKS, goal_B1S.expand_as(weights_BKS), float(blend.factor))
                weights_BKS = torch.where(at(position_BK1, blend.positions), moved, weights_BKS)
        for row in self.rows:
            given_S = weights_BKS.new_zeros(weights_BKS.shape[2])
            given_S[: len(row.weights)] = torch.tensor(row.weights, dtype=torch.float64).div(sum(row.weights)).to(given_S)
            weights_BKS = torch.where(position_BK1 == row.position, given_S, weights_BKS)
        return weights_BKS

    def context(self, context_BKH: Tensor, position_K: Tensor) -> Tensor:
        position_BK1 = position_K.view(*context_BKH.shape[:2], 1)
        for blend in self.blends:
            if blend.towards == "nothing":
                dimmed = context_BKH * (1 - blend.factor)
                context_BKH = torch.where(at(position_BK1, blend.positions), dimmed, context_BKH)
        return context_BKH


def goal(towards: str, mask_BS: Tensor) -> Tensor:
    """The row a blend moves to: the same for all real positions, or all on the last."""
    if towards == "uniform":
        return mask_BS / mask_BS.sum(1, keepdim=True)
    return torch.nn.functional.one_hot(mask_BS.sum(1) - 1, mask_BS.shape[1])


class Constrained(NamedTuple):
    """The state of a step function under forced and banned tokens: `begun_KN` says of each ban whether its pieces so far
    have all been said."""

    inner: Any
    position_K: Tensor
    begun_KN: Tensor

    @property
    def attended_KS(self) -> Tensor | None:
        return getattr(self.inner, "attended_KS", None)

    @property
    def memory(self) -> Memory:
        memory: Memory = self.inner.memory
        return memory


def constrain(step: StepFunction, state: Any, edits: tuple[Edit, ...], positions: Sequence[int]) -> tuple[StepFunction, Any]:
    """`step` under the forced and banned tokens of `edits`. Nothing is renormalised: a token keeps its own log probability,
    the others of its place become impossible. `positions` are those of each row's next token."""
    forces = [edit for edit in edits if isinstance(edit, Force)]
    bans = [edit for edit in edits if isinstance(edit, Ban)]
    if not forces and not bans:
        return step, state

    def constrained(tokens_K: Tensor, state: Constrained) -> tuple[Tensor, Constrained]:
        begun_KN = followed(bans, tokens_K, state)
        logp_KV, inner = step(tokens_K, state.inner)
        logp_KV = logp_KV.clone()
        for edit in forces:
            force_rows(logp_KV, edit, state.position_K)
        for column, ban in enumerate(bans):
            rows_K = (state.position_K == ban.position + len(ban.tokens) - 1) & begun_KN[:, column]
            logp_KV[rows_K, ban.tokens[-1]] = -torch.inf
        return logp_KV, Constrained(inner, state.position_K + 1, begun_KN)

    begun_KN = torch.ones(len(positions), len(bans), dtype=torch.bool)
    return constrained, Constrained(state, torch.tensor(positions), begun_KN)


def followed(bans: list[Ban], tokens_K: Tensor, state: Constrained) -> Tensor:
    """`begun_KN` after the token just said, which stands at the position before the row's own."""
    begun_KN = state.begun_KN.clone()
    for column, ban in enumerate(bans):
        for offset, token in enumerate(ban.tokens[:-1]):
            begun_KN[:, column] &= (state.position_K - 1 != ban.position + offset) | (tokens_K == token)
    return begun_KN


def force_rows(logp_KV: Tensor, edit: Force, position_K: Tensor) -> None:
    """Only the forced token, at its position; before it, the output may not end."""
    logp_KV[position_K < edit.position, EOS] = -torch.inf
    for position, token in enumerate(edit.tokens, edit.position):
        rows_K = position_K == position
        forced_K = logp_KV[rows_K, token]
        logp_KV[rows_K] = -torch.inf
        logp_KV[rows_K, token] = forced_K


def resolved(edits: tuple[Edit, ...], mean: Callable[[ClampGate], tuple[float, ...]]) -> tuple[Edit, ...]:
    """The same edits with every value 'mean' turned into each unit's mean."""
    return tuple(
        replace(edit, value=mean(edit)) if isinstance(edit, ClampGate) and edit.value == "mean" else edit for edit in edits
    )
