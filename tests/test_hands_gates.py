"""Classic questions as clamps for every cell; clamps in words; when a gate closes, over a text and over a sample."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from seqdemo.config import ModelConfig, SearchOptions, terms
from seqdemo.edits import ClampGate, check_edits
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.explain.replay import follow
from seqdemo.hands import sample as samples
from seqdemo.hands.gates import FEWEST, gate_report
from seqdemo.playground import replay, run, scorable, trace
from seqdemo.presets import CUT, QUESTIONS, presets
from seqdemo.ui.answers import clamp_sentence
from tests.small_hands import TASKS, Models, given
from tests.test_single import small_single
from tests.tiny import SIZES


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("gates"))


@pytest.mark.parametrize("cell", sorted(EQUATIONS))
def test_every_cell_has_the_questions_its_gates_allow(cell: str) -> None:
    config = ModelConfig(30, 30, cell=cell, encoder_layers=2, decoder_layers=2, **SIZES)
    asked = presets(config, 5)
    names = [one.name for one in asked if one.part == "decoder"]
    assert names and len(names) == len(set(names))
    assert names == [name for name, _, held in QUESTIONS[cell] if held.keys() <= set(terms(cell))]
    for one in asked:
        check_edits(one.edits, config, 5, 9)
        assert one.name == CUT or len(one.edits) in (2, 4, 8), "every layer, and of the encoder every direction"
    assert asked[-1].name == CUT and [(edit.layer, edit.positions) for edit in asked[-1].edits] == [(1, (4,)), (1, (0,))]


def test_the_classic_questions_of_an_lstm_by_name() -> None:
    asked = {
        one.name: {edit.gate: edit.value for edit in one.edits}
        for one in presets(ModelConfig(30, 30), 5)
        if one.part == "decoder"
    }
    assert asked == {
        "forget everything": {"forget": 0},
        "never forget": {"forget": 1},
        "write nothing": {"input": 0},
        "reset": {"forget": 0, "input": 0},
        "remember and write everything": {"forget": 1, "input": 1},
        "hide the cell": {"output": 0},
    }
    for cell, gone in (("lstm-f", "forget"), ("lstm-i", "input"), ("lstm-o", "output")):
        config = ModelConfig(30, 30, cell=cell)
        assert not [edit for one in presets(config, 5) for edit in one.edits if edit.gate == gone]


@pytest.mark.parametrize(
    ("cell", "kept"), [("lstm", "cell"), ("lstm-o", "cell"), ("gru", "hidden"), ("mut1", "hidden"), ("mut3", "hidden")]
)
def test_a_cell_that_writes_nothing_stays_as_it_began(models: Models, cell: str, kept: str) -> None:
    """With 'write nothing' and 'never forget' together, where both exist, the state never moves."""
    import torch

    from seqdemo.explain.replay import follow
    from tests.small_models import small

    model = small(cell=cell)
    asked = {one.name: one.edits for one in presets(model.config, 3) if one.part == "decoder"}
    edits = (*asked["write nothing"], *asked.get("never forget", ()))
    with torch.no_grad():
        states = follow(model, (5, 6, 7), (8, 9, 10, 2), edits).seen[f"decoder.0.{kept}"]
    assert np.allclose(states, states[0], atol=1e-6)
    gone = follow(model, (5, 6, 7), (8, 9, 10, 2), asked["forget everything"]).seen
    assert not np.allclose(gone[f"decoder.0.{kept}"][0], gone[f"decoder.0.{kept}"][1])


def test_cutting_the_last_state_starts_the_decoder_from_nothing(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")
    cut = next(one for one in presets(checkpoint.model.config, len(found.source.ids)) if one.name == CUT)  # type: ignore[union-attr, arg-type]
    seen = replay(checkpoint, run(checkpoint, found.prompt, edits=cut.edits), found.hypotheses[0].tokens).seen
    assert not seen["encoder.0.forward.hidden"][-1].any() and not seen["encoder.0.backward.hidden"][0].any()
    assert seen["encoder.0.forward.hidden"][0].any()


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (ClampGate("decoder", "forget", 0.0), "forget gate held at 0, all 400 units"),
        (ClampGate("decoder", "forget", 1.0, units=(3,)), "forget gate held at 1, unit 3 of 400"),
        (
            ClampGate("decoder", "cell", "mean", units=(3, 5, 9), positions=(2,)),
            "cell state held at its mean, 3 of 400 units, at step 3",
        ),
        (
            ClampGate("encoder", "input", 0.5, 0, "backward", None, (1, 2, 3)),
            "input gate (encoder, backward) held at 0.5, all 256 units, at steps 2 to 4",
        ),
        (
            ClampGate("decoder", "candidate", (0.5,) * 400, positions=(1, 5)),
            "candidate held at given values, all 400 units, at 2 steps",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_clamp_in_words(edit: ClampGate, says: str) -> None:
    assert clamp_sentence(edit, ModelConfig(30, 30)) == says


@pytest.mark.parametrize("task", TASKS)
def test_a_gate_of_this_input_is_told_by_the_piece_each_step_reads(models: Models, task: str) -> None:
    checkpoint, found = models.checkpoint(task), models.run(task)
    report, told = gate_report(checkpoint, found), replay(checkpoint, found, found.hypotheses[0].tokens)
    if task == "transformer":
        assert report.gates == () and report.presets == ()
        return
    wanted = [name for name in told.gates if name.rpartition(".")[2] in ("input", "forget", "output", "reset", "update")]
    assert [gate.name for gate in report.gates] == wanted
    for gate in report.gates:
        values = told.gates[gate.name].mean(1)
        assert np.allclose(gate.means, values, atol=1e-6) and gate.counts is None
        assert gate.tokens == (told.source if gate.part == "encoder" else ("<bos>", *told.target[:-1]))
        assert gate.shut[0].at == int(values.argmin()) and gate.open[0].at == int(values.argmax())
        assert gate.mean == pytest.approx(values.mean(), abs=1e-6)


def test_over_a_sample_a_gate_is_told_by_piece(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, text = models.checkpoint("complete"), "The dog and the cat. The dog sings. " * 3
    told = {"format": samples.FORMAT, "texts": {f"complete:{checkpoint.name}": {"title": "a text", "text": text}}}
    (tmp_path / samples.FILE).write_text(json.dumps(told))
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    report = gate_report(checkpoint, run(checkpoint, given(checkpoint)), over="sample")
    whole = trace(checkpoint, *scorable(checkpoint, "", text))
    read = ("<bos>", *whole.target[:-1])
    (gate,) = [one for one in report.gates if one.name == "decoder.1.forget"]
    means = whole.gates["decoder.1.forget"].mean(1)
    for piece, mean, count in zip(gate.tokens, gate.means, gate.counts or ()):
        here = [m for m, own in zip(means, read) if own == piece]
        assert count == len(here) >= FEWEST and mean == pytest.approx(np.mean(here), abs=1e-5)
    assert "<bos>" not in gate.tokens and report.sample == "a text"
    assert gate.shut[0].mean == min(gate.means) and gate.open[0].mean == max(gate.means)
    with pytest.raises(InputError, match="over 'input' or 'sample'"):
        gate_report(checkpoint, run(checkpoint, given(checkpoint)), over="x")


def test_the_sample_s_rows_are_real_steps_alone(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, pairs = models.checkpoint("transliterate"), [["namaste", "नमत"], ["na", "न"], ["katha", "कथ"]]
    told = {"format": samples.FORMAT, "texts": {"transliterate:hi": {"title": "three words", "pairs": pairs}}}
    (tmp_path / samples.FILE).write_text(json.dumps(told))
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    followed = samples.follow(checkpoint, samples.sample_for(checkpoint, "hi"))
    alone = [
        trace(checkpoint, *scorable(checkpoint, *pair, language="hi")) for pair in sorted(pairs, key=lambda pair: len(pair[1]))
    ]
    for name in ("decoder.0.update", "encoder.0.backward.hidden"):
        wanted = np.concatenate([each.seen[name] for each in alone])
        assert np.allclose(followed[name.split(".")[0]].terms[name], wanted, atol=1e-5)
    assert followed["encoder"].pieces == tuple(piece for each in alone for piece in each.source)
    told_pieces = tuple(piece for each in alone for piece in ("<bos>", *each.target[:-1]))
    assert followed["decoder"].pieces == told_pieces


def test_a_captioner_is_sampled_over_photographs_with_its_own_captions(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, photographs = models.checkpoint("caption"), sorted(samples.PHOTOGRAPHS.glob("*.jpg"))[:2]
    for path in photographs:
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(samples, "PHOTOGRAPHS", tmp_path)
    report = gate_report(checkpoint, run(checkpoint, given(checkpoint)), over="sample")
    assert report.sample == "the 2 example photographs, with the captions that this model writes for them"
    alone = [run(checkpoint, path, SearchOptions(strategy="greedy")) for path in photographs]
    means = np.concatenate([replay(checkpoint, each, each.hypotheses[0].tokens).gates["decoder.0.forget"] for each in alone])
    (gate,) = [one for one in report.gates if one.name == "decoder.0.forget"]
    assert gate.mean == pytest.approx(means.mean(), abs=1e-5)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_cutting_the_last_state_of_a_single_network_empties_its_whole_state(cell: str) -> None:
    network = small_single(cell=cell, encoder_layers=2, decoder_layers=2)
    cut = next(one for one in presets(network.config, 4) if one.name == CUT)
    check_edits(cut.edits, network.config, 4, 9)
    seen = follow(network, (5, 6, 7, 8), (8, 9, 10, 2), cut.edits).seen
    kept = [name for name in ("hidden", "cell") if f"encoder.0.forward.{name}" in seen]
    assert kept == (["hidden", "cell"] if cell == "lstm" else ["hidden"])
    assert all(not seen[f"encoder.{layer}.forward.{name}"][-1].any() for layer in (0, 1) for name in kept)
