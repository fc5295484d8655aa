"""Runs under edits: contradictions are refused, forced words are held and priced, and edits without effect change nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import BOS, EOS, SearchOptions
from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Edit, Force
from seqdemo.errors import InputError
from seqdemo.playground import Run, find, replay, run, trace
from seqdemo.prompts import Prompt, prepare
from seqdemo.text import Pieces
from tests import tiny

STRATEGIES = ("greedy", "beam", "sample", "exact")
INPUTS = {"translate": "Die frau und der mann laufen.", "transliterate": "namaste", "complete": "The dog "}
ENDED = "forced to end at position .*, before its minimum length"
LAST = "At the limit, position 3, the output must end"
Maker = Callable[[str], Checkpoint]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    folder = tmp_path_factory.mktemp("edited")
    return cache(lambda task: tiny.checkpoint(folder, task))


def searched(model: Maker, strategy: str, edits: Any, task: str = "translate", **more: Any) -> Run:
    options = SearchOptions(**{"strategy": strategy, "expansions": 3_000, "samples": 3, **more})
    return run(model(task), INPUTS[task], options, edits)


CONTRADICTIONS: list[tuple[dict[str, Any], tuple[Edit, ...], str]] = [
    ({"min_length": 5}, (Force(1, (EOS,)),), ENDED),
    ({"min_length": 5}, (Force(0, (EOS,)),), ENDED),
    ({"min_length": 2}, (Force(0, (5, EOS)),), ENDED),
    ({"no_repeat": 1}, (Force(0, (6, 6)),), "at position 1 repeats"),
    ({"no_repeat": 1}, (Force(0, (6,)), Force(4, (6,))), "at position 4 repeats"),
    ({"no_repeat": 2}, (Force(0, (6, 7)), Force(3, (6,)), Force(4, (7,))), "at position 3 repeats"),
    ({"max_length": 4, "at_limit": "force"}, (Force(3, (6,)),), LAST),
    ({"max_length": 4, "at_limit": "force"}, (Force(1, (5, 6, 7)),), LAST),
    ({"max_length": 4, "at_limit": "force"}, (Ban(3, (EOS,)),), LAST),
    ({"max_length": 4, "at_limit": "force"}, (Force(2, (6,)), Ban(2, (6, EOS))), LAST),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("options", "edits", "words"), CONTRADICTIONS, ids=lambda value: str(value)[:50])
def test_an_edit_against_an_option_is_told_so(
    model: Maker, strategy: str, options: dict[str, Any], edits: tuple[Edit, ...], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        searched(model, strategy, edits, **options)


AGREEING: list[tuple[dict[str, Any], tuple[Edit, ...]]] = [
    ({"min_length": 2}, (Force(2, (EOS,)),)),
    ({"no_repeat": 2}, (Force(0, (6, 6)),)),
    ({"no_repeat": 3}, (Force(0, (6, 7)), Force(2, (6, 7)))),
    ({"no_repeat": 2}, (Force(0, (6,)), Force(4, (6,)))),
    ({"max_length": 4, "at_limit": "force"}, (Force(2, (6,)),)),
    ({"max_length": 4, "at_limit": "force"}, (Force(3, (EOS,)),)),
    ({"max_length": 4}, (Force(3, (6,)),)),
    ({"max_length": 4}, (Ban(3, (EOS,)),)),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("options", "edits"), AGREEING, ids=lambda value: str(value)[:50])
def test_at_the_very_edge_of_an_option_an_edit_is_obeyed(
    model: Maker, strategy: str, options: dict[str, Any], edits: tuple[Edit, ...]
) -> None:
    found = searched(model, strategy, edits, **options)
    forced = [place for edit in edits if isinstance(edit, Force) for place in enumerate(edit.tokens, edit.position)]
    for hypothesis in found.hypotheses:
        assert all(hypothesis.tokens[position] == token for position, token in forced)
    (price,) = found.prices
    assert len(price.gaps) == len(forced) and all(gap >= 0 for gap in price.gaps)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_outputs_that_broke_off_before_what_was_forced_do_not_count(model: Maker, strategy: str) -> None:
    """The most probable first piece is forced in the second place too, and no piece may come twice."""
    first = searched(model, "greedy", ()).hypotheses[0].tokens[0]
    edits = (Force(1, (first,)),)
    if strategy == "greedy":
        with pytest.raises(InputError, match="No complete output is possible"):
            searched(model, strategy, edits, no_repeat=1)
        return
    found = searched(model, strategy, edits, no_repeat=1, samples=30)
    assert all(hypothesis.tokens[1] == first != hypothesis.tokens[0] for hypothesis in found.hypotheses)
    assert found.prices[0].gaps[0] >= 0


def test_positions_that_contradict_options_count_from_the_end_of_what_was_given(model: Maker) -> None:
    given, at_end = len(INPUTS["complete"]), {"max_length": 4, "at_limit": "force"}
    with pytest.raises(InputError, match=ENDED):
        searched(model, "beam", (Force(given + 1, (EOS,)),), "complete", min_length=2)
    assert searched(model, "beam", (Force(given + 2, (EOS,)),), "complete", min_length=2).texts
    with pytest.raises(InputError, match=f"position {given + 3}, the output must end"):
        searched(model, "beam", (Force(given + 3, (8,)),), "complete", **at_end)
    assert searched(model, "beam", (Force(given + 2, (8,)),), "complete", **at_end).texts


def test_a_search_that_was_stopped_before_it_reached_what_was_forced_has_no_price(model: Maker) -> None:
    steps = iter([False, True])
    with pytest.raises(InputError, match="No complete output is possible"):
        run(model("translate"), INPUTS["translate"], edits=(Force(4, (6,)),), cancel=lambda: next(steps, True))
    with pytest.raises(InputError, match="No complete output is possible"):
        searched(model, "exact", (Force(0, (6,)),), min_length=6, expansions=3)


def test_nothing_is_priced_against_an_output_that_was_not_completed(model: Maker) -> None:
    with pytest.raises(InputError, match="Without the edits this search finds no complete output"):
        searched(model, "exact", (Force(0, (5, 6, EOS)),), min_length=2, expansions=3)


NOTHING: tuple[Edit, ...] = (
    AttentionBlend(0.0, "last"),
    AttentionBlend(1.0, "nothing", ()),
    ClampGate("encoder", "forget", 0.0, units=()),
    ClampGate("encoder", "cell", 0.0, direction="backward", positions=()),
    ClampGate("encoder", "forget", "mean", units=()),
    ClampGate("decoder", "forget", 0.0, units=()),
    ClampGate("decoder", "forget", 0.0, positions=()),
)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_empty_edits_change_nothing_bit_for_bit(model: Maker, strategy: str) -> None:
    plain, under = (searched(model, strategy, edits) for edits in ((), NOTHING))
    assert plain.hypotheses == under.hypotheses
    assert [price.change for price in under.prices] == [0.0]
    tokens = plain.hypotheses[0].tokens
    one, other = (replay(model("translate"), found, tokens) for found in (plain, under))
    assert (one.logps == other.logps).all() and all((one.gates[name] == other.gates[name]).all() for name in one.gates)


def test_a_clamp_of_one_reading_leaves_the_other_as_it_is_bit_for_bit(model: Maker) -> None:
    clamp = ClampGate("encoder", "forget", 0.0)
    checkpoint: Any = model("translate")
    seen: list[torch.Tensor] = []

    def remembering(*given: Any) -> Any:
        seen.append(read(*given))
        return seen[-1]

    read = checkpoint.model.read
    vars(checkpoint.model)["read"] = remembering  # past the refusal to change a network for inference
    try:
        for edits in ((), (clamp,)):
            find(checkpoint, [prepare(checkpoint, INPUTS["translate"])], SearchOptions(strategy="greedy"), edits)
    finally:
        del vars(checkpoint.model)["read"]
    plain, held = (memory.states_BSH for memory in seen)  # type: ignore[attr-defined]
    half = plain.shape[2] // 2
    assert (plain[..., half:] == held[..., half:]).all() and not (plain[..., :half] == held[..., :half]).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("task", INPUTS)
def test_the_mean_is_that_of_the_untouched_greedy_output_in_search_and_replay_alike(
    model: Maker, task: str, strategy: str
) -> None:
    checkpoint, clamp = model(task), (ClampGate("decoder", tiny.GATE[task], "mean"),)
    found = searched(model, strategy, clamp, task)
    greedy = searched(model, "greedy", (), task)
    gates = replay(checkpoint, greedy, greedy.hypotheses[0].tokens).gates
    mean_H = gates[f"decoder.0.{tiny.GATE[task]}"].mean(0)
    tokens = found.hypotheses[0].tokens
    for one in (trace(checkpoint, found.prompt, tokens, clamp), replay(checkpoint, found, tokens)):
        assert np.allclose(one.gates[f"decoder.0.{tiny.GATE[task]}"], mean_H, atol=1e-6)
        own = one.logps[len(found.prompt.prefix) :]
        assert own.sum() == pytest.approx(found.hypotheses[0].total, abs=1e-4)
    assert found.prices[0].after == pytest.approx(trace(checkpoint, found.prompt, tokens, clamp).total, abs=1e-5)


UNFIT = [
    (AttentionRow(0, (1.0, 2.0)), "weights, one for each"),
    (AttentionBlend(3.0), "from 0 to 1"),
    (AttentionBlend(1.0, "last", (500,)), "Position 500 is outside this output"),
    (ClampGate("decoder", "reset", 0.0), "no 'reset' gate"),
    (ClampGate("decoder", "forget", "mean", layer=7), "1 layer"),
    (ClampGate("decoder", "forget", 0.0, units=(9_999,)), "whole numbers from 0 to 19"),
    (ClampGate("decoder", "forget", 0.0, positions=(500,)), "Position 500 is outside this output"),
    (ClampGate("encoder", "forget", 0.0, positions=(50,)), "Positions of this source"),
    (Force(500, (4,)), "Position 500 is outside this output"),
    ({"a": 1}, "each is one of Force, Ban"),
]


@pytest.mark.parametrize(("edit", "words"), UNFIT, ids=lambda value: str(value)[:40])
def test_every_door_refuses_what_does_not_fit(model: Maker, edit: Any, words: str) -> None:
    checkpoint = model("translate")
    prompt = prepare(checkpoint, INPUTS["translate"])
    for door in (
        lambda: run(checkpoint, prompt, edits=(edit,)),
        lambda: find(checkpoint, [prompt], SearchOptions(), (edit,)),
        lambda: trace(checkpoint, prompt, (4, EOS), (edit,)),
    ):
        with pytest.raises(InputError, match=words):
            door()


def test_a_replay_of_a_beginning_keeps_edits_of_what_would_follow(model: Maker) -> None:
    found = searched(model, "beam", (AttentionBlend(1.0, "last", (9,)), Force(4, (6,))))
    assert replay(model("translate"), found, found.hypotheses[0].tokens[:2]).tokens == found.hypotheses[0].tokens[:2]


@pytest.mark.parametrize("source", [(), (10_000,)], ids=str)
def test_a_prompt_that_is_no_source_is_told_so(model: Maker, source: tuple[int, ...]) -> None:
    prompt = Prompt(Pieces(source, ("?",) * len(source), (True,) * len(source)), source, 9)
    for door in (run, trace):
        with pytest.raises(InputError, match="A source has at least one piece"):
            door(model("translate"), prompt, *(((BOS,),) if door is trace else ()))
