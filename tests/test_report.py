from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tests.small_runs import TEXT, WORDS, text, words
from training.run import fit, report, watch
from training.run.display import Display, Meter, Panelled, clock, display_for
from training.run.fit import Run, Step
from training.tasks.task import Score


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(WORDS, words(), tmp_path)


def test_a_terminal_has_a_panel_with_all_that_a_person_watches(run: Run) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    display = Panelled(console)
    with display.shown(run):
        run.progress.step = 7
        display.judged(run, Score(41.5, 0.25, ("abc", "cba", "cb[b]a")))
        for _ in range(3):
            display.stepped(run, Step(1.25, 0.5, 3e-3, 100))
        console.print(display.panel(run, Step(1.25, 0.5, 3e-3, 100)))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for told in ("1 of 3", "1.250 nats/token", "tokens/s", "left", "0.50", "3.00e-03", "41.50", "abc", "cb[b]a", "cba"):
        assert told in shown


def test_the_last_evaluation_stays_in_the_panel(run: Run) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    display = Panelled(console)
    with display.shown(run):
        run.progress.step = run.steps
        display.stepped(run, Step(1.25, 0.5, 3e-3, 100))
        display.judged(run, Score(41.5, 0.25, ("abc", "cba", "cb[b]a")))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "41.50" in shown and "cb[b]a" in shown


def test_elsewhere_there_are_plain_lines(run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.run.display.LINE_SECONDS", 0.0)
    display = Display()
    with display.shown(run):
        run.progress.step = run.steps // 2
        display.stepped(run, Step(1.25, 0.5, 3e-3, 100))
        display.judged(run, Score(41.5, 0.25, ("ab\nc", "cba", "c")))
    lines = capsys.readouterr().out.splitlines()
    assert "parameters to learn from 300 examples" in lines[1]
    assert "(50%)" in lines[2] and "loss 1.250" in lines[2] and "norm 0.50" in lines[2] and "left" in lines[2]
    assert "dev exact 41.50" in lines[3] and "ab\N{RETURN SYMBOL}c" in lines[3]
    assert "\x1b" not in "".join(lines)
    assert type(display_for()) is Display


def test_speed_and_time_left_are_those_of_this_session(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("training.run.display.time.monotonic", lambda: now[0])
    run.progress.step, run.steps = 10, 30
    meter = Meter(run)
    for _ in range(5):
        now[0] += 2.0
        run.progress.step += 1
        meter.add(Step(1.0, 1.0, 1.0, 50))
    assert meter.speed == pytest.approx(25.0)
    assert meter.left == "0:30"
    assert (clock(59.6), clock(3_725)) == ("1:00", "1:02:05")


def test_the_same_examples_are_watched_every_time(run: Run) -> None:
    first, second = list(watch.alignments(run.task, run.judged)), list(watch.alignments(run.task, run.judged))
    assert first == second and len(first) == 3
    for line in first:
        weights = np.array(line["attention"])
        assert weights.shape == (len(line["target"]), len(line["source"]))
        assert weights.sum(1) == pytest.approx(1.0, abs=0.01)
        assert "".join(line["source"]) == line["example"]
        assert watch.trace_of(line).target == line["target"]


def test_what_has_no_attention_has_no_alignments(tmp_path: Path) -> None:
    plain = Run(replace(WORDS, model={**WORDS.model, "decoder": "context-once"}), words(), tmp_path / "plain")
    assert list(watch.alignments(plain.task, plain.judged)) == []
    writer = Run(TEXT, text(), tmp_path / "writer")
    assert list(watch.alignments(writer.task, writer.judged)) == []


def test_ages_are_few_evenly_spread_and_have_both_ends() -> None:
    lines = [{"step": step} for step in range(1, 22)]
    chosen = [line["step"] for line in report.ages(lines)]
    assert chosen == [1, 5, 9, 13, 17, 21]
    assert report.ages(lines[:4]) == lines[:4]


def test_examples_are_sorted_by_their_own_score_and_shown_as_text(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    source = run.task.dev[3].source
    outputs = ["<b>wrong</b>"] * len(run.task.dev)
    outputs[3] = source[::-1]
    monkeypatch.setattr("training.tasks.task.PairTask.outputs", lambda *_: outputs)
    fit.judge(run, Display())
    rows = report.scored(run, run.task)
    assert rows[-1] == ("100.0", source, source[::-1], source[::-1])
    assert {row[0] for row in rows[:-1]} == {"0.0"}
    shown = report.examples(run)
    assert "&lt;b&gt;wrong" in shown and "<b>" not in shown


def test_the_log_is_drawn_point_by_point(run: Run) -> None:
    lines = [
        {"step": 1, "epoch": 0, "loss": 3.0, "rate": 0.1, "norm": 2.0},
        {"step": 2, "epoch": 0, "loss": 2.0, "rate": 0.2, "norm": 1.0},
        {"step": 2, "epoch": 0, "metric": 10.0, "dev_loss": 2.5, "sample": "x"},
    ]
    drawn = {heading: [(tuple(t.x), tuple(t.y)) for t in figure.data] for heading, _, figure in report.curves(run, lines)}
    assert drawn["Loss"] == [((1, 2), (3.0, 2.0)), ((2,), (2.5,))]
    assert drawn["Dev exact"] == [((2,), (10.0,))]
    assert drawn["Learning rate"] == [((1, 2), (0.1, 0.2))]
    assert drawn["Gradient norm"] == [((1, 2), (2.0, 1.0))]
