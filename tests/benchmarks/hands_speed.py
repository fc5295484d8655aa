"""What a hand on the model costs the server: an edit decoded, bars under the hand, a ranking of units, what would make it say X.

CPU time of one thread, median of 7, of translator-de-en with beam 5 on sentences of its gallery. To reach on the reference
machine: an edit within 150 ms, bars within 50 ms (round trip included, so far below), 400 units within 1.5 s, what would make it
say another word within 3 s.

    python -m tests.benchmarks.hands_speed
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from seqdemo.checkpoints.folder import shipped_folder
from seqdemo.ui.answers import Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.hands import Hands
from seqdemo.ui.service import Service
from tests.benchmarks.calibration import REFERENCE, calibration, print_calibration

REPEATS = 7
MODEL = "translator-de-en"
EDITS: dict[str, Callable[[int], dict[str, Any]]] = {
    "force": lambda _: {"kind": "Force", "position": 0, "pieces": ["▁The"]},
    "ban": lambda _: {"kind": "Ban", "position": 1, "pieces": ["▁man"]},
    "must be said": lambda _: {"kind": "Require", "word": "red"},
    "attention row": lambda size: {"kind": "AttentionRow", "position": 1, "weights": [1.0] * size},
    "dimmer": lambda _: {"kind": "AttentionBlend", "factor": 0.5},
    "clamp": lambda _: {"kind": "ClampGate", "part": "decoder", "gate": "forget", "value": 0.0},
    "clamp, encoder": lambda _: {"kind": "ClampGate", "part": "encoder", "gate": "input", "value": 1.0},
}


def seconds(ask: Callable[[int], Any]) -> float:
    """Of the processor; the first time is not counted."""
    taken = []
    for turn in range(REPEATS + 1):
        begun = time.process_time()
        answer = ask(turn)
        taken.append(time.process_time() - begun)
        assert "error" not in answer, answer
    return statistics.median(taken[1:])


def told(name: str, taken: float, target: float, factor: float) -> None:
    verdict = "reached" if taken / factor <= target else "MISSED"
    there = f"{1000 * taken / factor:8.1f} ms on the reference machine"
    print(f"  {name:<28} {1000 * taken:8.1f} ms here, {there}   {verdict} ({1000 * target:.0f})")


def main() -> None:
    print_calibration()
    factor = calibration() / REFERENCE
    root = shipped_folder()
    rows = json.loads((root / "gallery.json").read_text("utf-8"))["examples"]["translate"]
    texts = [row["text"] for row in rows if row["checkpoint"] == MODEL and 6 <= len(row["text"].split()) <= 12]
    service = Service()
    answers = Answers(service, Catalogue(root), Path())
    hands, text = Hands(answers), service.checkpoint(MODEL).source_text

    def message(turn: int, edits: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        column = {"checkpoint": MODEL, "options": {"strategy": "beam", "beam": 5}, "edits": edits}
        return {"task": "translate", "input": {"text": texts[turn % len(texts)]}, "column": column, **more}

    def fresh(question: dict[str, Any]) -> dict[str, Any]:
        service.runs.clear()  # a result that is remembered would cost nothing
        return dict(answers.answer({**question, "columns": {"B": question["column"]}})["columns"]["B"])

    def edited(edit: Callable[[int], dict[str, Any]], turn: int) -> dict[str, Any]:
        return fresh(message(turn, [edit(sizes[turn % len(texts)])]))

    def bars(turn: int) -> dict[str, Any]:
        return hands.hand(message(0, [], ask="next", position=1, rows=[[float(n + 1) for n in range(sizes[0])]]))

    print(f"{MODEL}, beam 5, {len(texts)} sentences")
    sizes = [len(text.encode(each).ids) for each in texts]
    asked: dict[str, tuple[float, Callable[[int], Any]]] = {
        **{name: (0.15, partial(edited, edit)) for name, edit in EDITS.items()},
        "bars under the hand": (0.05, bars),
        "400 units ranked": (1.5, lambda turn: long(hands, message(turn, [], ask="units", position=2))),
        "what would make it say it": (3.0, lambda turn: long(hands, wanted(hands, message(turn, [], position=2)))),
    }
    for name, (target, ask) in asked.items():
        told(name, seconds(ask), target, factor)


def long(hands: Hands, question: dict[str, Any]) -> dict[str, Any]:
    return hands.answer(question, lambda *_: None, lambda: False)


def wanted(hands: Hands, question: dict[str, Any]) -> dict[str, Any]:
    """For a piece that is not said there: the fourth likeliest other one."""
    told = hands.hand({**question, "ask": "next"})
    others = [bar["token"] for bar in told["own"]["bars"] if bar["token"] not in (2, told["said"]["token"])]
    return {**question, "ask": "cheapest", "tokens": [others[3]]}


if __name__ == "__main__":
    main()
