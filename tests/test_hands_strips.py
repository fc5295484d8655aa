"""Film strips: every frame is an ordinary run, priced as such, and the pool can be ranked anew by length and coverage."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from seqdemo.config import PRECISIONS, length_penalty
from seqdemo.edits import AttentionBlend
from seqdemo.errors import InputError
from seqdemo.findings import Frame, Wanted
from seqdemo.hands.strips import BEAMS, EXACT, SHARES, fault, first_difference, likeness, sweep
from seqdemo.playground import run, scorable, score, trace
from tests.small_hands import ATTENDING, TASKS, Models, clamp


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("strips"))


@pytest.mark.parametrize("towards", ["uniform", "nothing"])
@pytest.mark.parametrize("task", ATTENDING)
def test_a_dimmer_s_frames_are_runs_under_its_blend(models: Models, task: str, towards: str) -> None:
    checkpoint, found = models.checkpoint(task), models.run(task, clamp(task), min_length=3)
    strip = sweep(checkpoint, found, "dimmer", towards=towards)
    assert [frame.value for frame in strip.frames] == list(SHARES) and strip.frames[0].label == "100 %"
    assert strip.frames[0].tokens == found.hypotheses[0].tokens and strip.frames[0].price is None
    for frame in strip.frames[1:]:
        assert frame.edits == (AttentionBlend(1 - float(frame.value), towards),)
        again = run(checkpoint, found.prompt, found.options, (*found.edits, *frame.edits))
        assert (again.hypotheses[0].tokens, again.texts[0]) == (frame.tokens, frame.text) and frame.price == again.own_prices[-1]
        after, before = (trace(checkpoint, found.prompt, frame.tokens, edits).total for edits in (again.edits, found.edits))
        assert frame.price.change == pytest.approx(after - before, abs=1e-5 * (1 + abs(before)))
    compared(strip.frames, strip.flips)


def compared(frames: tuple[Frame, ...], flips: int | None) -> None:
    differ = [first_difference(frames[0].tokens, frame.tokens) for frame in frames]
    assert [frame.differs_at for frame in frames] == differ
    assert flips == next((n for n, at in enumerate(differ) if at is not None), None)
    assert [frame.changed for frame in frames] == [False, *(a.tokens != b.tokens for a, b in pairwise(frames))]


@pytest.mark.parametrize("task", TASKS)
def test_a_beam_s_frames_are_searches_of_that_size(models: Models, task: str) -> None:
    checkpoint = models.checkpoint(task)
    found = models.run(task, clamp(task), length_norm="power", alpha=0.6, max_length=6)
    strip = sweep(checkpoint, found, "beam")
    assert [frame.value for frame in strip.frames] == [*BEAMS, EXACT]
    for frame in strip.frames:
        again = run(checkpoint, found.prompt, replace(found.options, **(frame.options or {})), found.edits)
        assert again.hypotheses[0].tokens == frame.tokens or frame.note
        assert frame.score == pytest.approx(again.hypotheses[0].score, abs=1e-4)
        replayed = trace(checkpoint, found.prompt, frame.tokens, found.edits, found.options)
        given = len(found.prompt.prefix)
        assert np.allclose(replayed.logps[given:], frame.logps, atol=1e-4) and frame.length == len(frame.tokens)
    whole = [frame for frame in strip.frames if not frame.note]
    best = np.maximum.accumulate([frame.score for frame in whole])
    assert [frame.worse for frame in whole[1:]] == [b.score < a - 1e-5 * (1 + abs(a)) for a, b in zip(best, whole[1:])]
    if whole[-1].value == EXACT and whole[-1].proved:
        assert whole[-1].score >= best[-1] - 1e-4
    compared(tuple(whole), next((n for n, frame in enumerate(whole) if frame.differs_at is not None), None))


@pytest.mark.parametrize("task", ["translate", "caption", "transformer"])
def test_the_pool_ranks_as_the_search_would(models: Models, task: str) -> None:
    checkpoint, found = models.checkpoint(task), models.run(task, clamp(task), max_length=6)
    pool = sweep(checkpoint, found, "beam").pool
    assert len({one.tokens for one in pool}) == len(pool) > 50 and [one.logp for one in pool] == sorted(
        (one.logp for one in pool), reverse=True
    )
    for norm, alpha, weight in (("power", 0.8, 0.3), ("gnmt", 1.0, 0.0), ("none", 1.0, 1.0)):
        options = replace(found.options, beam=20, nbest=20, length_norm=norm, alpha=alpha, coverage=weight)
        by_tokens = {one.tokens: one for one in pool}
        same = [one for one in run(checkpoint, found.prompt, options, found.edits).hypotheses if one.tokens in by_tokens]
        assert len(same) > 5
        for one in same:
            kept = by_tokens[one.tokens]
            ranked = kept.logp / length_penalty(kept.length, norm, alpha) + weight * (kept.coverage or 0.0)
            assert ranked == pytest.approx(one.score, abs=1e-4)
    first = next(one for one in pool if one.k == 1)
    assert 0 in first.frames and all(BEAMS[min(one.frames)] == one.k for one in pool if one.k)


def test_the_wanted_answer_tells_search_errors_from_those_of_the_model(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate", max_length=8)
    best = sweep(checkpoint, found, "beam").frames[-1]
    strip = sweep(checkpoint, found, "beam", wanted=best.text)
    assert strip.wanted is not None and strip.wanted.logp == pytest.approx(
        score(checkpoint, found.prompt, best.text).total, abs=1e-5
    )
    assert [frame.likeness for frame in strip.frames] == [likeness(frame.text, best.text) for frame in strip.frames]
    assert strip.frames[-1].likeness == 1
    frame = strip.frames[0]
    assert "the search missed it" in fault(Wanted("other", frame.logp + 1), frame)
    assert "the model is at fault" in fault(Wanted("other", frame.logp - 1), frame)
    assert "is the wanted answer" in fault(Wanted(frame.text, 0.0), frame)
    writer, text = models.checkpoint("complete"), models.run("complete")
    texts = sweep(writer, text, "beam", wanted="sings.")
    wanted = texts.wanted
    assert wanted is not None and not any("wanted answer likelier" in said or "at fault" in said for said in texts.says)
    assert wanted.logp == pytest.approx(score(writer, "The dog ", "sings.").logps[8:].sum(), abs=1e-5)


def test_the_wanted_answer_is_scored_under_the_edits_in_force(models: Models) -> None:
    checkpoint, free = models.checkpoint("translate"), models.run("translate", max_length=8)
    uniform = (AttentionBlend(1.0, "uniform"),)
    found = models.run("translate", uniform, max_length=8)
    wanted = sweep(checkpoint, found, "beam", wanted=free.texts[0]).wanted
    assert wanted is not None
    prompt, tokens = scorable(checkpoint, found.prompt, free.texts[0])
    assert wanted.logp == pytest.approx(trace(checkpoint, prompt, tokens, uniform, found.options).total, abs=1e-5)


def test_a_setting_without_an_output_is_left_out_and_named(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")

    def in_precision(precision: str) -> Any:
        if precision == "bfloat16":
            raise InputError("not here.")
        return checkpoint

    strip = sweep(checkpoint, found, "precision", models=in_precision)
    assert [frame.label for frame in strip.frames] == ["float32", "int8"]
    assert strip.says[-1] == "bfloat16 is left out: not here."


def test_work_stopped_within_a_frame_leaves_those_before_it(models: Models) -> None:
    checkpoint, found, asked = models.checkpoint("translate"), models.run("translate"), list[str]()

    def in_precision(precision: str) -> Any:
        asked.append(precision)
        if len(asked) > 1:
            raise InputError("Stopped.")
        return checkpoint

    strip = sweep(checkpoint, found, "precision", models=in_precision, cancel=lambda: len(asked) > 1)
    assert [frame.label for frame in strip.frames] == ["float32"] and not any("left out" in said for said in strip.says)


@pytest.mark.parametrize(
    ("one", "other", "like"), [("dog", "dog", 1), ("dog", "dig", 2 / 3), ("", "abc", 0), ("abcd", "bcde", 0.5)]
)
def test_likeness_is_one_less_the_share_of_edits(one: str, other: str, like: float) -> None:
    assert likeness(one, other) == pytest.approx(like) == pytest.approx(likeness(other, one))


@pytest.mark.parametrize("task", TASKS)
def test_precisions_stand_side_by_side(models: Models, task: str) -> None:
    checkpoint, found = models.checkpoint(task), models.run(task, clamp(task))
    strip = sweep(checkpoint, found, "precision")
    assert [frame.value for frame in strip.frames] == list(PRECISIONS) and len(strip.says) == len(PRECISIONS) - 1
    for frame in strip.frames:
        again = run(checkpoint.in_precision(str(frame.value)), found.prompt, found.options, found.edits)
        assert again.hypotheses[0].tokens == frame.tokens
    compared(strip.frames, strip.flips)


def test_frames_are_shown_as_they_come_and_the_strip_can_be_stopped(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")
    heard: list[tuple[int, int]] = []

    def shown(frames: Any, of: int) -> None:
        heard.append((len(frames), of))

    strip = sweep(checkpoint, found, "dimmer", shown=shown, cancel=lambda: len(heard) == 3)
    assert heard == [(1, 5), (2, 5), (3, 5)] and len(strip.frames) == 3


def test_what_cannot_be_swept_has_its_sentence(models: Models) -> None:
    writer, text = models.checkpoint("complete"), models.run("complete")
    with pytest.raises(InputError, match="no attention to edit"):
        sweep(writer, text, "dimmer")
    with pytest.raises(InputError, match="A strip goes along dimmer, beam, precision, not 'time'"):
        sweep(writer, text, "time")
    with pytest.raises(InputError, match="towards uniform, last, nothing"):
        sweep(models.checkpoint("translate"), models.run("translate"), "dimmer", towards="up")
