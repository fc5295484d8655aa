"""Short questions never wait for long ones, long ones report their place in the queue, and all waits end."""

from __future__ import annotations

import threading
import time

import pytest

from seqdemo.errors import InputError
from seqdemo.ui import service
from seqdemo.ui.service import CORES, MOST_WAITING, Lanes
from tests.shared import PATIENCE


def never() -> bool:
    return False


class LongWork(threading.Thread):
    """Steps of a millisecond until it is told to end."""

    def __init__(self, room: Lanes) -> None:
        super().__init__(daemon=True)
        self.room, self.steps, self.places, self.ended = room, 0, [], threading.Event()
        self.start()

    def run(self) -> None:
        with self.room.long(self.places.append, never):
            while not self.ended.is_set():
                time.sleep(0.001)
                self.steps += 1
                self.room.make_way()

    def end(self) -> None:
        self.ended.set()
        self.join(PATIENCE)


def wait_until(holds) -> None:  # type: ignore[no-untyped-def]
    until = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < until:
        time.sleep(0.002)
    assert holds()


def test_a_short_question_has_a_place_however_many_long_ones_run() -> None:
    room = Lanes()
    works = [LongWork(room) for _ in range(CORES + 2)]
    wait_until(lambda: sum(work.steps > 0 for work in works) == CORES)
    entered = threading.Event()

    def ask() -> None:
        with room.short():
            entered.set()

    threading.Thread(target=ask, daemon=True).start()
    assert entered.wait(PATIENCE)  # the long ones end only now
    for work in works:
        work.end()


def test_long_work_pauses_while_a_short_question_is_answered_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PATIENCE", 0.1)
    room = Lanes()
    work = LongWork(room)
    wait_until(lambda: work.steps > 5)
    begun = time.monotonic()
    with room.short():
        before = work.steps
        wait_until(lambda: work.steps >= before + 4)
        assert time.monotonic() - begun > 0.3  # one step, then a pause of a tenth of a second
    after = work.steps
    wait_until(lambda: work.steps > after + 20)
    work.end()


def test_those_who_wait_hear_their_place_and_come_in_order() -> None:
    room = Lanes()
    running = [LongWork(room) for _ in range(CORES)]
    wait_until(lambda: all(work.steps for work in running))
    waiting = []
    for _ in range(2):
        waiting.append(LongWork(room))
        wait_until(lambda: waiting[-1].places != [])
    assert [work.places for work in waiting] == [[0], [1]]
    running[0].end()
    wait_until(lambda: waiting[0].steps > 0 and waiting[1].places == [1, 0])
    assert waiting[1].steps == 0
    for work in (*running, *waiting):
        work.end()


def test_one_too_many_gets_a_sentence_and_one_who_leaves_gives_up_the_place() -> None:
    room = Lanes()
    running = [LongWork(room) for _ in range(CORES)]
    wait_until(lambda: all(work.steps for work in running))
    waiting = [LongWork(room) for _ in range(MOST_WAITING)]
    wait_until(lambda: len(room.long_waiting) == MOST_WAITING)
    with pytest.raises(InputError, match=f"{MOST_WAITING} long searches are waiting already"), room.long(print, never):
        pass
    for work in (*running, *waiting):
        work.end()
    running = [LongWork(room) for _ in range(CORES)]
    wait_until(lambda: all(work.steps for work in running))
    with pytest.raises(InputError, match="Stopped"), room.long(lambda place: None, lambda: True):
        pass
    assert not room.long_waiting
    for work in running:
        work.end()
    assert (room.long_running, room.short_running) == (0, 0)
