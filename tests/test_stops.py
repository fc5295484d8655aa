"""A stop ends the question of its name and no other, whichever of the two comes first."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from seqdemo.ui import pages
from seqdemo.ui.stops import MOST_EARLY, Stops
from tests.shared import PATIENCE


def test_a_stop_ends_the_question_of_its_name_alone() -> None:
    stops = Stops()
    with stops.of({"ticket": "one"}) as one, stops.of({"ticket": "two"}) as two, stops.of({}) as nameless:
        stops.stop({"ticket": "one"})
        assert [one.is_set(), two.is_set(), nameless.is_set()] == [True, False, False]
    assert not stops.running


def test_a_stop_may_come_before_its_question() -> None:
    stops = Stops()
    stops.stop({"ticket": "one"})
    with stops.of({"ticket": "one"}) as one, stops.of({"ticket": "two"}) as two:
        assert one.is_set() and not two.is_set()


@pytest.mark.parametrize("message", [None, 7, [], {}, {"ticket": 7}, {"ticket": ""}, {"ticket": "x" * 81}])
def test_what_is_no_name_stops_nothing_and_is_not_kept(message: Any) -> None:
    stops = Stops()
    with stops.of(message) as nameless, stops.of({"ticket": "one"}) as one:
        stops.stop(message)
        assert not nameless.is_set() and not one.is_set() and list(stops.running) == ["one"]
    assert not stops.early


def test_early_stops_are_bounded_and_end_no_question_that_runs() -> None:
    stops = Stops()
    with stops.of({"ticket": "one"}) as one:
        for number in range(MOST_EARLY + 5):
            stops.stop({"ticket": str(number)})
        assert len(stops.early) == MOST_EARLY and not one.is_set()
        stops.stop({"ticket": "one"})
        assert one.is_set()


def test_what_is_stopped_says_so_at_once_and_what_was_stopped_before_is_not_begun() -> None:
    stopped, ended, begun = threading.Event(), threading.Event(), []

    def work(progress: Any, cancel: Any) -> dict[str, Any]:
        begun.append(True)
        assert stopped.wait(PATIENCE) and cancel()
        assert ended.wait(PATIENCE)
        return {"answer": 1}

    told = pages.in_background(work, stopped=stopped)
    assert "progress" in next(told)
    stopped.set()
    assert next(told) == {"error": "Stopped."}  # although the work has not noticed yet
    ended.set()
    assert list(told) == []
    assert list(pages.in_background(work, stopped=stopped)) == [{"error": "Stopped."}] and len(begun) == 1
