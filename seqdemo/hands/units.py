"""Which unit matters for a word: every unit of a layer held at its mean, one per row of a batch, ranked by the change of the
word's log probability; beside it the first few together, and random groups of as many, so that chance is visible."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import terms
from seqdemo.edits import ClampGate, Edit, whole
from seqdemo.errors import InputError
from seqdemo.explain.replay import clamped, inputs_of, source_rows
from seqdemo.explain.step import before
from seqdemo.findings import UnitChange, UnitGroup, UnitRanking
from seqdemo.hands.place import Cancel, Progress, check_count, check_place, stop_if
from seqdemo.hands.sample import follow, sample_for
from seqdemo.network.attention import WhatIf, at, what_if_of
from seqdemo.network.cells import Ask
from seqdemo.network.model import Network, log_probabilities
from seqdemo.playground import Run, checkpoint_of, edited, said
from seqdemo.prompts import tokenizer
from seqdemo.state import select

ROWS = 64  # rows of a batch; between two batches progress is reported and the work can be stopped
SIZES, GROUPS = (1, 2, 5, 10, 20), 10  # random groups of each size


class UnitsHeld(WhatIf):
    """The edits of a run; besides, each row of the batch holds its own set of units of one layer at their values."""

    def __init__(self, edits: Sequence[Edit], like: ClampGate, values_H: Tensor, held_KH: Tensor) -> None:
        super().__init__(edits)
        self.like, self.values_H, self.held_KH = like, values_H, held_KH

    def __bool__(self) -> bool:
        return True

    def cell(self, part: str, layer: int, direction: str = "forward") -> Callable[[Tensor], Ask] | None:
        others, like = super().cell(part, layer, direction), self.like
        if (part, layer, direction) != (like.part, like.layer, like.direction):
            return others

        def ask_at(position_K: Tensor) -> Ask:
            asked = others(position_K) if others else None
            held_KH = self.held_KH & at(position_K, like.positions)[:, None]

            def held(name: str, value_KH: Tensor) -> Tensor:
                value_KH = asked(name, value_KH) if asked else value_KH
                return torch.where(held_KH, self.values_H.to(value_KH.dtype), value_KH) if name == like.gate else value_KH

            return held

        return ask_at


class WordUnderUnits:
    """The log probability of a word of an output while units of one layer are held, many sets of them in a batch."""

    @torch.inference_mode()
    def __init__(self, network: Network, run: Run, target: Sequence[int], places: range, like: ClampGate) -> None:
        self.network, self.edits, self.like, self.places, self.target = network, run.edits, like, places, target
        assert isinstance(like.value, tuple)
        self.values_H = torch.tensor(like.value)
        self.units = len(like.value)
        self.source = run.prompt.source
        self.first = min((*(like.positions or (0,)), places[0])) if like.part == "decoder" else 0
        self.read_1T = inputs_of(target[: places[-1] + 1])
        if like.part == "decoder":
            self.state = before(network, run.prompt.source, target, self.first, what_if_of(run.edits))

    @torch.inference_mode()
    def distributions(self, held_KH: Tensor) -> Tensor:
        """The distribution at every place of the word (K, places, V)."""
        what_if, rows = UnitsHeld(self.edits, self.like, self.values_H, held_KH), len(held_KH)
        read_KT = self.read_1T[:, self.first :].expand(rows, -1)
        if self.like.part == "decoder":
            state = select(self.state, torch.zeros(rows, dtype=torch.long))
            features_KTR = self.network.teach(None, None, read_KT, what_if, state=state).features_BTR
        else:
            features_KTR = self.network.teach(*source_rows(self.source, rows), read_KT, what_if).features_BTR
        features_KNR = features_KTR[:, self.places[0] - self.first :]
        logp_XV = log_probabilities(self.network.readout(features_KNR.flatten(0, 1)))
        return logp_XV.view(rows, len(self.places), -1)

    def logp(self, held_KH: Tensor) -> Tensor:
        """The log probability of the word for each row of sets (K)."""
        said_N1 = torch.tensor([self.target[place] for place in self.places])[:, None]
        logp_KNV = self.distributions(held_KH)
        return logp_KNV.gather(2, said_N1.expand(len(held_KH), -1, 1)).squeeze(2).double().sum(1)

    def sets(self, groups: Sequence[Sequence[int]]) -> Tensor:
        held_KH = torch.zeros(len(groups), self.units, dtype=torch.bool)
        for row_H, group in zip(held_KH, groups):
            row_H[list(group)] = True
        return held_KH

    def of(self, groups: Sequence[Sequence[int]], told: Callable[[int], None], cancel: Cancel | None) -> list[float]:
        """`logp` of each group of units, batch by batch."""
        found: list[float] = []
        for batch in batches(groups):
            stop_if(cancel)
            found += self.logp(self.sets(batch)).tolist()
            told(len(batch))
        return found


def batches(groups: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
    for start in range(0, len(groups), ROWS):
        yield groups[start : start + ROWS]


def held_layer(
    checkpoint: Checkpoint, run: Run, part: str, direction: str, layer: int, what: str, positions: tuple[int, ...] | None
) -> ClampGate:
    """The clamp of all units of a layer to their means over the untouched greedy output, as numbers."""
    config = checkpoint.model.config
    if config.is_transformer:  # type: ignore[union-attr]
        raise InputError("A Transformer has no cells, so it has no units to hold.")
    what = what or ("cell" if "cell" in terms(config.cell) else "hidden")  # type: ignore[union-attr, arg-type]
    like = ClampGate(part, what, "mean", layer, direction, None, positions)
    (numbers,) = edited(checkpoint, run.prompt, (like,), run.options)
    assert isinstance(numbers, ClampGate)
    return numbers


def rank_units(
    checkpoint: Checkpoint | Network,
    run: Run,
    tokens: Sequence[int],
    position: int,
    length: int = 1,
    *,
    part: str = "decoder",
    direction: str = "forward",
    layer: int = 0,
    what: str = "",
    over: str = "input",
    steps: int | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> UnitRanking:
    """Every unit of a layer's `what` (cell or hidden state; the cell, where there is one) is held at its mean, under the run's
    edits, and the units are ranked by what that does to the word of `length` pieces at `position`: the most needed first.

    `over`: the means are those over this input with its untouched greedy output ('input'), or over a recorded sample of dev
    text ('sample'). `steps`: of a decoder, units are held during the last so many steps up to the word's end; None: all.
    """
    begun, checkpoint = time.perf_counter(), checkpoint_of(checkpoint)
    network, target = said(checkpoint, run.prompt, tokens)
    places = word_at(run, target, position, length)
    if steps is not None:
        check_count("steps", steps)
    positions = None if steps is None or part == "encoder" else tuple(range(max(0, places.stop - steps), places.stop))
    like, means = means_over(checkpoint, run, held_layer(checkpoint, run, part, direction, layer, what, positions), over)
    word = WordUnderUnits(network, run, target, places, like)
    given = like if over == "sample" else replace(like, value="mean")
    logp, ranked, groups = ranked_beside_chance(word, given, progress, cancel)
    return UnitRanking(
        position=position,
        length=length,
        word=tokenizer(checkpoint.target_text).decode(target[place] for place in places),
        part=part,
        direction=direction,
        layer=layer,
        what=like.gate,
        over=over,
        means=means,
        logp=logp,
        units=ranked,
        groups=groups,
        edit=held(given, ()),
        seconds=time.perf_counter() - begun,
    )


def ranked_beside_chance(
    word: WordUnderUnits, given: ClampGate, progress: Progress | None, cancel: Cancel | None
) -> tuple[float, tuple[UnitChange, ...], tuple[UnitGroup, ...]]:
    """The log probability with nothing held, the ranked units, and the first of them together beside random groups."""
    (logp,) = word.logp(word.sets([()])).tolist()
    sizes = [size for size in SIZES[1:] if size <= word.units // 2]
    total, done = word.units + len(sizes) * (1 + GROUPS), 0

    def told(more: int) -> None:
        nonlocal done
        done += more
        if progress:
            progress(done, total)

    def changes(sets: Sequence[Sequence[int]]) -> list[float]:
        return [each - logp for each in word.of(sets, told, cancel)]

    singly = changes([(unit,) for unit in range(word.units)])
    ranked = sorted(range(word.units), key=lambda unit: singly[unit])
    drawn = random_groups(word.units, [1, *sizes])
    together = changes([*(ranked[:size] for size in sizes), *(group for groups in drawn[1:] for group in groups)])
    best = [singly[ranked[0]], *together[: len(sizes)]]
    chance = [*(singly[unit] for (unit,) in drawn[0]), *together[len(sizes) :]]
    groups = (
        UnitGroup(size, best[n], tuple(chance[n * GROUPS :][:GROUPS]), held(given, ranked[:size]))
        for n, size in enumerate([1, *sizes])
    )
    return logp, tuple(UnitChange(unit, singly[unit]) for unit in ranked), tuple(groups)


def held(like: ClampGate, units: Sequence[int]) -> ClampGate:
    return replace(like, units=tuple(units))


def word_at(run: Run, target: Sequence[int], position: int, length: int) -> range:
    check_place(position, len(run.prompt.prefix), len(target))
    if not whole(length, len(target) - position + 1) or not length:
        raise InputError(f"length must be from 1 to {len(target) - position} at position {position}.")
    return range(position, position + length)


def means_over(checkpoint: Checkpoint, run: Run, like: ClampGate, over: str) -> tuple[ClampGate, str]:
    """The clamp with the requested means, and a description of these."""
    if over == "input":
        return like, "each unit's mean over this input and what greedy search writes without edits"
    if over != "sample":
        raise InputError(f"Means are taken over 'input' or 'sample', not {over!r}.")
    sample = sample_for(checkpoint, run.prompt.language)
    values_NH = follow(checkpoint, sample)[like.part].terms[clamped(like)]
    return replace(like, value=tuple(values_NH.mean(0).tolist())), f"each unit's mean over {sample.title}"


def random_groups(units: int, sizes: Sequence[int]) -> list[list[list[int]]]:
    """GROUPS random groups of each size, the same in every call."""
    chance = torch.Generator().manual_seed(0)
    return [[torch.randperm(units, generator=chance)[:size].tolist() for _ in range(GROUPS)] for size in sizes]
