"""Connectivity, gradients through time and erasure, asked for with a checkpoint and a run as a replay is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import seqdemo
from seqdemo import connectivity, erase, gradient_norms, replay, run
from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, SearchOptions
from seqdemo.edits import AttentionBlend, ClampGate
from seqdemo.errors import InputError
from seqdemo.explain import gradients
from seqdemo.explain.erasure import erased
from seqdemo.explain.replay import follow
from seqdemo.network.attention import padding
from seqdemo.prompts import Prompt
from seqdemo.records import Erasure, from_json, to_json
from seqdemo.text import Pieces
from tests import tiny
from tests.test_trace import SOURCE
from tests.test_trace import tiny as tiny_model

SHORT = SearchOptions(max_length=8)
INPUTS: dict[str, Any] = {"translate": "Der hund singt.", "transliterate": "namaste", "complete": "The dog "}
Maker = Callable[[str], Checkpoint]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    folder = tmp_path_factory.mktemp("influence")
    return cache(lambda task: tiny.checkpoint(folder, task))


def given(checkpoint: Checkpoint) -> Any:
    if checkpoint.task != "caption":
        return INPUTS[checkpoint.task]
    cnn: Any = checkpoint.model.encoder.cnn
    torch.manual_seed(1)
    return Prompt(Pieces((), (), ()), torch.rand(1, cnn.grid**2, cnn.channels), 12)


@pytest.mark.parametrize("how", ["mean", "mask"])
@pytest.mark.parametrize("task", ["translate", "transliterate", "caption"])
def test_erasing_each_position_is_one_batch_of_what_each_would_be_alone(model: Maker, task: str, how: str) -> None:
    checkpoint = model(task)
    found = run(checkpoint, given(checkpoint), SHORT, (ClampGate("decoder", tiny.GATE[task], 0.6),))
    tokens = found.hypotheses[0].tokens
    erasure, trace = erase(checkpoint, found, tokens, how), replay(checkpoint, found, tokens)
    positions = trace.attention.shape[1]  # type: ignore[union-attr]
    assert erasure.how == how and erasure.tokens == tokens and erasure.source == found.source.strings
    assert np.allclose(erasure.logps, trace.logps, atol=1e-5) and erasure.change.shape == (len(tokens), positions)
    for position in (0, positions - 1):
        wanted = trace.logps - alone(checkpoint.model, found, tokens, position, how)
        assert np.allclose(erasure.change[:, position], wanted, atol=2e-5)
    assert np.abs(erasure.change).max() > 0.01
    assert from_json(to_json(erasure)) == erasure and isinstance(erasure, Erasure)


def alone(network: Any, found: Any, tokens: tuple[int, ...], position: int, how: str) -> np.ndarray:
    """One position erased by hand, one sentence in the batch."""
    from seqdemo.explain.replay import inputs_of, source_tensors
    from seqdemo.network.attention import WhatIf

    source, mask = source_tensors(found.prompt.source)
    what_if = WhatIf(found.edits)
    with torch.inference_mode():
        x = source.clone() if source.is_floating_point() else network.embed_source(source)
        if how == "mean":
            table = x[0] if source.is_floating_point() else network.embed_source.weight[EOS + 1 :]
            x[0, position] = table.mean(0)
        memory = network.read(x, mask, what_if)
        if how == "mask":
            hidden = memory.mask_BS.clone()
            hidden[0, position] = False
            memory = memory._replace(mask_BS=hidden, padding_B1S=padding(hidden))
        taught = network.teach(None, None, inputs_of(tokens), what_if, state=network.start(memory))
        logp_TV = network.readout(taught.features_BTR[0]).double().log_softmax(1)
    return np.asarray(logp_TV.gather(1, torch.tensor(tokens)[:, None])[:, 0])


def test_what_cannot_be_erased_is_told_so(model: Maker) -> None:
    checkpoint = model("translate")
    found = run(checkpoint, INPUTS["translate"], SHORT)
    with pytest.raises(InputError, match="erased by mean or mask, not 'drop'"):
        erase(checkpoint, found, found.hypotheses[0].tokens, "drop")
    text = run(model("complete"), "The ", SHORT)
    with pytest.raises(InputError, match="this model reads no source"):
        erase(model("complete"), text, text.hypotheses[0].tokens)
    with pytest.raises(InputError, match="This model has no attention; use how='mean'"):
        erased(tiny_model(decoder="context-each"), SOURCE, (4, EOS), how="mask")
    with pytest.raises(InputError, match="leaves nothing to attend to"):
        erased(tiny_model(), SOURCE[:1], (4, EOS), how="mask")
    with pytest.raises(InputError, match="at least one piece"):
        erase(checkpoint, found, ())


def test_connectivity_of_a_run_is_that_of_its_network_under_its_edits(model: Maker) -> None:
    checkpoint = model("translate")
    edits = (AttentionBlend(0.5, "last"), ClampGate("encoder", "forget", 0.2))
    found = run(checkpoint, INPUTS["translate"], SHORT, edits)
    tokens = found.hypotheses[0].tokens
    network, source = checkpoint.model.bare().double(), found.prompt.source
    slope_SE = gradients.connectivity(network, source, tokens, 1, edits)
    assert np.allclose(connectivity(checkpoint, found, tokens, 1), slope_SE, atol=1e-4)
    assert not np.allclose(slope_SE, gradients.connectivity(network, source, tokens, 1), atol=1e-3)
    before, moved = network.embed_source.weight.detach().clone(), found.source.ids[2]
    step = torch.zeros_like(before)
    step[moved, 3] = 1e-5
    totals = []
    for sign in (1, -1):
        network.embed_source.weight.data.copy_(before + sign * step)
        totals.append(follow(network, source, tokens, edits).logps[1])
    here = [place for place, token in enumerate(found.source.ids) if token == moved]
    assert slope_SE[here, 3].sum() == pytest.approx((totals[0] - totals[1]) / 2e-5, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("task", INPUTS)
def test_gradient_norms_follow_the_edits_of_the_run(model: Maker, task: str) -> None:
    """A cell whose memory is held at one value has forgotten its past."""
    checkpoint = model(task)
    gate = {"translate": "cell", "transliterate": "hidden", "complete": "cell"}[task]
    part = "decoder" if task == "complete" else "encoder"
    free, held = (run(checkpoint, INPUTS[task], SHORT, edits) for edits in ((), (ClampGate(part, gate, 0.0, layer=0),)))
    plain, edited = (gradient_norms(checkpoint, found) for found in (free, held))
    assert len(plain) == len(edited) and not np.allclose(plain, edited)
    tokens = free.hypotheses[0].tokens
    assert len(gradient_norms(checkpoint, free, tokens)) == len(tokens) + (len(free.prompt.prefix) if task == "complete" else 0)
    assert (edited[:-1] == 0).all() and edited[-1] == 1 and (plain > 0).all()


def test_gradient_norms_say_what_they_need(model: Maker) -> None:
    captioner, translator, writer = (model(task) for task in ("caption", "translate", "complete"))
    seen = run(captioner, given(captioner), SHORT)
    with pytest.raises(InputError, match="This model reads a picture, .*; give the tokens of an output"):
        gradient_norms(captioner, seen)
    assert len(gradient_norms(captioner, seen, seen.hypotheses[0].tokens)) == len(seen.hypotheses[0].tokens)
    read = run(translator, INPUTS["translate"], SHORT)
    for wrong in ({"layer": 5}, {"direction": "nonsense"}):
        with pytest.raises(InputError, match="leave direction and layer out"):
            gradient_norms(translator, read, read.hypotheses[0].tokens, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Gradients through time need at least one piece: give a text"):
        gradient_norms(writer, run(writer, "", SHORT))


def test_the_old_name_of_gradient_norms_goes_on_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="through_time is now seqdemo.gradient_norms"):
        old = gradients.through_time(tiny_model(), SOURCE)
    assert (old == gradients.gradient_norms(tiny_model(), SOURCE)).all()
    with pytest.warns(DeprecationWarning, match=r"CELL_GATES is now seqdemo.equations"):
        assert seqdemo.config.CELL_GATES["elman"] == ("hidden",)
    source = torch.tensor([SOURCE])
    with pytest.warns(DeprecationWarning, match=r"encode is now Seq2Seq.read"):
        tiny_model().encode(source, source > 0)
