"""What an earlier version wrote goes on working: checkpoints answer as they did, traces and edits load, runs are resumed.

The folders tests/data/old-* and what that version answered, old-answers.json, were made with commit 9fe5499.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from seqdemo import records
from seqdemo.checkpoints import Checkpoint, shared_folder
from seqdemo.config import SearchOptions
from seqdemo.edits import edit_from_json, edit_to_json
from seqdemo.hub import load
from seqdemo.playground import Run, replay, run
from seqdemo.prompts import Prompt, prepare
from seqdemo.text import Pieces
from tests import small_runs
from training.run.resume import Start

DATA = Path(__file__).parent / "data"
ANSWERS: dict[str, Any] = json.loads((DATA / "old-answers.json").read_text(encoding="utf-8"))
SEARCHES = [(kind, name) for kind, answer in ANSWERS.items() for name in answer["runs"]]


def checkpoint_of(kind: str) -> Checkpoint:
    if kind == "caption" and not (shared_folder() / "efficientnet-lite2.safetensors").exists():
        pytest.skip("needs the CNN of the bundled captioners, which is not in checkpoints/")
    return load(DATA / f"old-{kind}")


def prompt_of(checkpoint: Checkpoint, given: str | None) -> Prompt:
    if given is not None:
        return prepare(checkpoint, given)
    grid_1SC = torch.sin(torch.arange(81 * 352, dtype=torch.float32)).view(1, 81, 352)
    return Prompt(Pieces((), (), ()), grid_1SC, 40)


def run_again(kind: str, name: str) -> tuple[Checkpoint, Run, dict[str, Any]]:
    checkpoint, answer = checkpoint_of(kind), ANSWERS[kind]
    asked = answer["runs"][name]
    edits = tuple(map(edit_from_json, answer["edits"])) if name == "edited" else ()
    return checkpoint, run(checkpoint, prompt_of(checkpoint, answer["given"]), SearchOptions(**asked["options"]), edits), asked


@pytest.mark.parametrize(("kind", "name"), SEARCHES)
def test_an_earlier_checkpoint_says_what_it_said(kind: str, name: str) -> None:
    _, found, asked = run_again(kind, name)
    assert [list(one.tokens) for one in found.hypotheses] == [one["tokens"] for one in asked["hypotheses"]]
    assert list(found.texts) == asked["texts"] and len(found.tree) == asked["nodes"]
    for one, before in zip(found.hypotheses, asked["hypotheses"]):
        assert one.total == pytest.approx(before["total"], abs=1e-5) and one.score == pytest.approx(before["score"], abs=1e-5)
    for price, before in zip(found.prices, map(records.from_json, asked["prices"]), strict=True):
        assert price.kind == before.kind and price.change == pytest.approx(before.change, abs=1e-5)


@pytest.mark.parametrize("name", ["beam", "edited"])
@pytest.mark.parametrize("kind", ANSWERS)
def test_an_earlier_trace_loads_and_is_that_of_today(kind: str, name: str) -> None:
    checkpoint, found, asked = run_again(kind, name)
    before, now = records.from_json(asked["trace"]), replay(checkpoint, found, found.hypotheses[0].tokens)
    assert before.tokens == now.tokens and before.target == now.target and before.edits == plain_edits(before, now)
    assert set(before.gates) == set(now.gates) and set(before.seen) == set(now.seen)
    assert np.allclose(before.logps, now.logps, atol=1e-5)
    assert (before.attention is None) == (now.attention is None)
    assert all(np.allclose(values, now.seen[name], atol=1e-5) for name, values in before.seen.items())


def plain_edits(before: records.Trace, now: records.Trace) -> tuple[dict[str, Any], ...]:
    """Those of today, of what an earlier edit could say: it named neither layer nor head of attention."""
    assert [edit_to_json(edit_from_json(edit)) for edit in before.edits] == list(now.edits)
    return tuple({name: edit[name] for name in old} for old, edit in zip(before.edits, now.edits))


@pytest.mark.parametrize("recipe", [small_runs.WORDS, small_runs.TEXT], ids=lambda recipe: recipe.name)
def test_a_run_begun_earlier_goes_on_and_ends_where_it_would_have(tmp_path: Path, recipe: Any) -> None:
    folder = tmp_path / "run"
    shutil.copytree(DATA / f"old-run-{recipe.name}", folder)
    assert small_runs.train(recipe, folder, Start(resume=True)) == 0
    ended, wanted = load_file(folder / "state" / "best.safetensors"), load_file(folder / "finished.safetensors")
    assert ended.keys() == wanted.keys()
    assert all(np.allclose(ended[name], wanted[name], atol=1e-3) for name in wanted)
