"""A sentence's walk from question to answer, measured: how many files a reader has to open, and that each is either above or
below another."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import seqdemo
from seqdemo.config import STRATEGIES
from seqdemo.ui.answers import Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.service import Service

FOLDER = Path(seqdemo.__file__).parent
MOST = 20
# Exact search calls what the page hands down to it: how far it is, and whether it shall stop.
HANDED_DOWN = {"step", "_nobody_stops"}
EDITS: dict[str, tuple[dict[str, Any], ...]] = {
    "no edit": (),
    "Force": ({"kind": "Force", "position": 0, "pieces": ["▁That"]},),
    "Ban": ({"kind": "Ban", "position": 0, "tokens": [10]},),
    "Require": ({"kind": "Require", "word": "like"},),
    "AttentionRow": ({"kind": "AttentionRow", "position": 1, "weights": [1, 0, 0, 0]},),
    "AttentionBlend": ({"kind": "AttentionBlend", "factor": 0.5, "towards": "uniform"},),
    "ClampGate": (
        {"kind": "ClampGate", "part": "encoder", "gate": "forget", "value": 1, "direction": "backward"},
        {"kind": "ClampGate", "part": "decoder", "gate": "forget", "value": "mean", "units": [0, 1]},
    ),
}


class Walk(NamedTuple):
    files: set[str]
    calls: dict[str, dict[str, set[str]]]  # caller's file -> callee's file -> functions


def walk(call: Callable[[], Any]) -> Walk:
    """The files of seqdemo/ whose functions the call enters, and which call which others, also by way of torch."""
    files: set[str] = set()
    calls: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def name(frame: FrameType | None) -> str:
        path = Path(frame.f_code.co_filename) if frame else Path()
        return str(path.relative_to(FOLDER)) if path.is_relative_to(FOLDER) else ""

    def entered(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not (callee := name(frame)):
            return
        files.add(callee)
        caller = frame.f_back
        while caller and not name(caller):
            caller = caller.f_back
        if caller and name(caller) != callee:
            calls[name(caller)][callee].add(frame.f_code.co_name)

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(files, calls)


def both_above_and_below(calls: dict[str, dict[str, set[str]]]) -> list[str]:
    """The calls between files of which each reaches the other."""

    def below(file: str) -> set[str]:
        reached: set[str] = set()
        open_files = {file}
        while open_files:
            open_files = {callee for each in open_files for callee in calls.get(each, ())} - reached
            reached |= open_files
        return reached

    pairs = ((caller, callee, names) for caller, callees in calls.items() for callee, names in callees.items())
    return [f"{caller} -> {callee}: {', '.join(sorted(names))}" for caller, callee, names in pairs if caller in below(callee)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return Answers(Service(), Catalogue(FOLDER.parent / "checkpoints"), tmp_path_factory.mktemp("uploads"))


def ask(answers: Answers, text: str, strategy: str, edits: tuple[dict[str, Any], ...]) -> None:
    column = {"checkpoint": "translator-de-en", "options": {"strategy": strategy, "beam": 5}, "edits": list(edits)}
    answer = answers.answer({"task": "translate", "input": {"text": text}, "columns": {"B": column}})["columns"]["B"]
    assert "error" not in answer, answer


@pytest.mark.parametrize("edit", EDITS)
def test_a_sentence_is_followed_through_few_files_and_never_back_up(answers: Answers, edit: str) -> None:
    check_walk(answers, "beam", edit, MOST)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_so_it_is_in_every_search(answers: Answers, strategy: str) -> None:
    check_walk(answers, strategy, "no edit", MOST)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_badge_of_a_word_adds_the_files_of_greedy_search(answers: Answers, strategy: str) -> None:
    """It compares the output with that of greedy search."""
    check_walk(answers, strategy, "Require", MOST + {"exact": 2, "sample": 1}.get(strategy, 0))


def check_walk(answers: Answers, strategy: str, edit: str, most: int) -> None:
    ask(answers, "Das gefällt ihr.", strategy, EDITS[edit])  # modules are imported and the model is loaded
    files, calls = walk(lambda: ask(answers, "Das gefällt mir.", strategy, EDITS[edit]))
    assert len(files) <= most, sorted(files)
    for callees in calls.values():
        if callees.get("ui/service.py", set()) <= HANDED_DOWN:
            callees.pop("ui/service.py", None)
    assert both_above_and_below(calls) == []


def test_files_that_call_each_other_are_found_out() -> None:
    calls = {"a": {"b": {"f"}}, "b": {"c": {"g"}}, "c": {"a": {"h"}, "d": {"k"}}}
    assert both_above_and_below(calls) == ["a -> b: f", "b -> c: g", "c -> a: h"]  # type: ignore[arg-type]
