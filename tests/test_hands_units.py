"""A ranking of units is one batch of what each clamp would do alone; random groups stand beside it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqdemo.config import terms
from seqdemo.edits import ClampGate
from seqdemo.errors import InputError
from seqdemo.hands import sample as samples
from seqdemo.hands.units import GROUPS, rank_units
from seqdemo.playground import run, scorable, trace
from tests.small_hands import Models, clamp

WHERE = [
    ("translate", "decoder", "forward", 0, ""),
    ("translate", "decoder", "forward", 0, "hidden"),
    ("translate", "encoder", "forward", 0, ""),
    ("translate", "encoder", "backward", 0, "cell"),
    ("transliterate", "decoder", "forward", 0, ""),
    ("transliterate", "encoder", "backward", 0, ""),
    ("caption", "decoder", "forward", 0, ""),
    ("complete", "decoder", "forward", 1, ""),
    ("complete", "decoder", "forward", 0, "hidden"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("units"))


@pytest.mark.parametrize(("task", "part", "direction", "layer", "what"), WHERE)
def test_each_change_is_what_that_clamp_does_alone(
    models: Models, task: str, part: str, direction: str, layer: int, what: str
) -> None:
    checkpoint, found = models.checkpoint(task), models.run(task, clamp(task), min_length=4)
    tokens, position = found.hypotheses[0].tokens, len(found.prompt.prefix) + 1
    named: dict[str, Any] = {"part": part, "direction": direction, "layer": layer, "what": what}
    ranking = rank_units(checkpoint, found, tokens, position, 2, **named)
    cell = checkpoint.model.config.cell  # type: ignore[union-attr]
    assert ranking.what == (what or ("cell" if "cell" in terms(cell) else "hidden"))  # type: ignore[arg-type]
    plain = trace(checkpoint, found.prompt, tokens, found.edits, found.options)
    assert ranking.logp == pytest.approx(plain.logps[position : position + 2].sum(), abs=1e-5)
    changes = {one.unit: one.change for one in ranking.units}
    assert sorted(changes) == list(range(20 if task != "complete" else 24) if part == "decoder" else range(12))
    assert list(changes.values()) == sorted(changes.values())
    for edit in (replace(ranking.edit, units=(ranking.units[0].unit,)), replace(ranking.edit, units=(ranking.units[-1].unit,))):
        assert edit.value == "mean"
        alone = trace(checkpoint, found.prompt, tokens, (*found.edits, edit), found.options)
        wanted = (alone.logps - plain.logps)[position : position + 2].sum()
        assert changes[edit.units[0]] == pytest.approx(wanted, abs=2e-5)  # type: ignore[index]
    for group in ranking.groups:
        assert len(group.random) == GROUPS and len(group.edit.units or ()) == group.size
        together = trace(checkpoint, found.prompt, tokens, (*found.edits, group.edit), found.options)
        assert group.best == pytest.approx((together.logps - plain.logps)[position : position + 2].sum(), abs=2e-5)
    assert max(abs(change) for change in changes.values()) > 1e-3


def test_only_the_last_steps_can_be_held(models: Models) -> None:
    checkpoint, found = models.checkpoint("complete"), models.run("complete")
    tokens, position = found.hypotheses[0].tokens, len(found.prompt.prefix) + 2
    ranking = rank_units(checkpoint, found, tokens, position, steps=3)
    assert ranking.edit.positions == (position - 2, position - 1, position)
    first = replace(ranking.edit, units=(ranking.units[0].unit,))
    plain, alone = (trace(checkpoint, found.prompt, tokens, edits, found.options) for edits in ((), (first,)))
    assert ranking.units[0].change == pytest.approx((alone.logps - plain.logps)[position], abs=2e-5)
    assert np.allclose(alone.logps[: position - 2], plain.logps[: position - 2], atol=1e-6)


def test_progress_is_told_and_a_person_can_stop(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")
    told: list[tuple[int, int]] = []
    rank_units(checkpoint, found, found.hypotheses[0].tokens, 0, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (20 + 3 * (1 + GROUPS),) * 2 and len(told) == 2
    with pytest.raises(InputError, match=r"Stopped\."):
        rank_units(checkpoint, found, found.hypotheses[0].tokens, 0, cancel=lambda: len(told) > 1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"layer": 5}, "The decoder has 1 layer"),
        ({"part": "middle"}, "no recurrent part 'middle'"),
        ({"what": "reset"}, "no 'reset' gate; it has input, forget, output, candidate, cell, hidden"),
        ({"direction": "backward"}, "does not read in the direction"),
        ({"over": "everything"}, "Means are taken over 'input' or 'sample'"),
        ({"position": 99}, "Position 99 is outside this output"),
        ({"length": 50}, "length must be from 1 to"),
        ({"steps": 0}, "steps must be a whole number, 1 or more, not 0"),
    ],
    ids=str,
)
def test_what_cannot_be_ranked_has_its_sentence(models: Models, more: dict[str, Any], words: str) -> None:
    found = models.run("translate")
    with pytest.raises(InputError, match=words):
        rank_units(models.checkpoint("translate"), found, found.hypotheses[0].tokens, **{"position": 0, **more})


def test_a_transformer_has_no_units(models: Models) -> None:
    found = models.run("transformer")
    with pytest.raises(InputError, match="no cells, so it has no units to hold"):
        rank_units(models.checkpoint("transformer"), found, found.hypotheses[0].tokens, 0)


def test_means_over_a_sample_are_those_of_its_replays(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, pairs = models.checkpoint("translate"), [["Der hund singt.", "The dog sings."], ["Ball.", "Ball."]]
    told = {"format": samples.FORMAT, "texts": {"translate": {"title": "two sentences", "pairs": pairs}}}
    (tmp_path / samples.FILE).write_text(json.dumps(told))
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    found = run(checkpoint, "Die frau.")
    ranking = rank_units(checkpoint, found, found.hypotheses[0].tokens, 0, over="sample")
    traces = [trace(checkpoint, *scorable(checkpoint, source, target)) for source, target in pairs]
    means = np.concatenate([each.seen["decoder.0.cell"] for each in traces]).mean(0)
    assert ranking.edit == ClampGate("decoder", "cell", ranking.edit.value, units=()) and "two sentences" in ranking.means
    assert np.allclose(ranking.edit.value, means, atol=1e-5)
    shutil.rmtree(tmp_path)
    samples.recorded.cache_clear()
    with pytest.raises(InputError, match="no recorded sample of dev text"):
        rank_units(checkpoint, found, found.hypotheses[0].tokens, 0, over="sample")
