"""Every price over the whole gallery is what an independent replay says, for every kind of what-if; no what-if, no change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from seqdemo import hub
from seqdemo.checkpoints import Checkpoint
from seqdemo.config import BOS, EOS, TOLERANCE, SearchOptions, switches, terms
from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Edit, Force, Require, is_word
from seqdemo.explain.replay import positions_of, source_tensors
from seqdemo.network.attention import WhatIf
from seqdemo.network.model import log_probabilities
from seqdemo.playground import Run, edited, find, replay, run
from seqdemo.prompts import Prompt, prepare

ROOT = Path(__file__).resolve().parent.parent
GALLERY = json.loads((ROOT / "checkpoints/gallery.json").read_text("utf-8"))["examples"]
EXAMPLES = [(task, place) for task, rows in GALLERY.items() for place in range(len(rows))]
GREEDY = {"complete": SearchOptions(strategy="greedy", max_length=8)}
LETTERS = 24  # of a beginning, so that this does not take long
PHOTOGRAPHS = ROOT / "seqdemo/ui/photos"


@cache
def model(name: str) -> Checkpoint:
    return hub.load(name)


@cache
def untouched(task: str, place: int) -> tuple[Checkpoint, Prompt, Run]:
    row = GALLERY[task][place]
    checkpoint = model(row["checkpoint"])
    given = PHOTOGRAPHS / row["photo"] if task == "caption" else row["text"]
    prompt = prepare(checkpoint, given[-LETTERS:] if task == "complete" else given, row.get("language", ""))
    return checkpoint, prompt, run(checkpoint, prompt, options_of(task))


def options_of(task: str) -> SearchOptions:
    return GREEDY.get(task, SearchOptions(strategy="greedy"))


def every_kind(checkpoint: Checkpoint, prompt: Prompt, found: Run) -> tuple[Edit, ...]:
    """One what-if of each kind, and of attention and gates some, that do not contradict one another."""
    config: Any = checkpoint.model.config
    tokens, given = found.hypotheses[0].tokens, len(prompt.prefix)
    told = replay(checkpoint, found, tokens)
    second = next(token for token in told.top_tokens[given].tolist() if token not in (tokens[0], EOS))
    edits: list[Edit] = [Force(given, (second,)), Require(((second,),))]
    if len(tokens) > 3:
        edits.append(Ban(given + 2, tokens[2:3]))
    if config.has_attention:
        sources = positions_of(checkpoint.model, prompt.source)  # type: ignore[arg-type]
        edits += [AttentionRow(1, tuple(1.0 + at for at in range(sources))), AttentionBlend(0.2), AttentionBlend(0.1, "nothing")]
    gate = next(name for name in terms(config.cell) if name in switches())
    edits += [ClampGate("decoder", gate, 0.7, units=(0, 5, 9)), ClampGate("decoder", "hidden", "mean", units=(3,))]
    if config.encoder == "text":
        edits.append(ClampGate("encoder", gate, 0.6, direction="backward", positions=(0,)))
    return tuple(edits)


@torch.inference_mode()
def total_of(checkpoint: Checkpoint, prompt: Prompt, target: tuple[int, ...], edits: tuple[Edit, ...]) -> float:
    """Step by step, one sentence alone, in double precision where numbers are added."""
    network: Any = checkpoint.model
    asked = WhatIf(edits)
    what_if = asked if asked else None
    state = network.start(None if prompt.source is None else network.read(*source_tensors(prompt.source), what_if))
    total = 0.0
    for read, said in zip((BOS, *target), target):
        done = network.step(torch.tensor([read]), state, what_if)
        state = done.state
        total += float(log_probabilities(network.readout(done.features_KR))[0, said])
    return total


def judged(checkpoint: Checkpoint, prompt: Prompt, found: Run) -> Iterator[tuple[Any, float, float]]:
    """Every price of a run, with the totals before and after that replays give."""
    new, options = prompt.prefix + found.hypotheses[0].tokens, found.options
    inside = tuple(edit for edit in found.edits if not is_word(edit))

    @cache
    def total(target: tuple[int, ...], edits: tuple[Edit, ...]) -> float:
        return total_of(checkpoint, prompt, target, edits)

    def found_under(edits: tuple[Edit, ...]) -> tuple[int, ...]:
        return find(checkpoint, [prompt], options, edits)[0].hypotheses[0].tokens

    after = total(new, inside)
    for price, edit in zip(found.own_prices, found.edits):
        others = tuple(other for other in found.edits if other is not edit)
        if is_word(edit):
            old = prompt.prefix + found_under(others)
            yield price, total(old, inside), after
        else:
            yield price, total(new, tuple(other for other in others if not is_word(other))), after
    words, state = found.prices
    old = prompt.prefix + found_under(inside)
    yield words, total(old, inside), after
    yield state, total(new, ()), after


@pytest.mark.parametrize(("task", "place"), EXAMPLES, ids=str)
def test_every_price_is_that_of_an_independent_replay(task: str, place: int) -> None:
    checkpoint, prompt, plain = untouched(task, place)
    edits = edited(checkpoint, prompt, every_kind(checkpoint, prompt, plain), plain.options)
    found = run(checkpoint, prompt, plain.options, edits)
    tolerance = TOLERANCE[checkpoint.precision]
    kinds = set()
    for price, before, after in judged(checkpoint, prompt, found):
        allowed = tolerance * (1 + abs(after) + abs(before))
        assert price.after == pytest.approx(after, abs=allowed)
        assert price.change == pytest.approx(after - before, abs=2 * allowed)
        kinds.add(type(found.edits[price.edit]).__name__)
    assert kinds >= {"Force", "Require", "ClampGate"} and (task == "complete" or "AttentionRow" in kinds)


@pytest.mark.parametrize(("task", "place"), EXAMPLES, ids=str)
def test_an_empty_edit_changes_nothing_to_the_bit(task: str, place: int) -> None:
    checkpoint, prompt, plain = untouched(task, place)
    gate = next(name for name in terms(checkpoint.model.config.cell) if name in switches())  # type: ignore[union-attr, arg-type]
    nothing: list[Edit] = [ClampGate("decoder", gate, 0.0, units=()), ClampGate("decoder", gate, 0.0, positions=())]
    if checkpoint.model.config.has_attention:  # type: ignore[union-attr]
        nothing += [AttentionBlend(0.0), AttentionBlend(1.0, "last", ())]
    same = run(checkpoint, prompt, plain.options, tuple(nothing))
    assert same.hypotheses == plain.hypotheses and same.tree == plain.tree and same.texts == plain.texts
    assert all(price.change == 0 for price in same.own_prices)
    traces = [replay(checkpoint, each, plain.hypotheses[0].tokens) for each in (same, plain)]
    assert traces[0].seen.keys() == traces[1].seen.keys() and (traces[0].logps == traces[1].logps).all()
