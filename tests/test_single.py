"""The single network: torch's own LSTM over the joined text is its oracle, and all that looks into a network works on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seqdemo import connectivity, erase, gradient_norms
from seqdemo import hub as models
from seqdemo.config import EOS, PAD, ModelConfig, SearchOptions
from seqdemo.edits import AttentionBlend, ClampGate
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.network.attention import WhatIf
from seqdemo.network.single import Single
from seqdemo.playground import replay, run
from seqdemo.search import search
from tests.small_models import VOCABULARY, check_every_search, learnt, sentences, stir, targets

SHAPE = {"decoder": "single", "bidirectional": False, "encoder_hidden": 20, "decoder_hidden": 20, "embedding": 12, "features": 8}
LENGTHS = (6, 2, 4)


def small_single(**changes: Any) -> Single:
    sizes = {"target_vocabulary": VOCABULARY, "source_vocabulary": VOCABULARY}
    network = Single(ModelConfig(**{**sizes, **SHAPE, **changes})).eval()
    stir(network)
    return network


@torch.no_grad()
def test_it_is_one_lstm_over_source_and_target() -> None:
    network = small_single(cell="lstm", encoder_layers=2, decoder_layers=2)
    oracle = nn.LSTM(12, 20, num_layers=2, batch_first=True)
    for layer, cell in enumerate(network.stack.cells):
        for name, value in (("weight_ih", cell.W), ("weight_hh", cell.U.t()), ("bias_ih", cell.b)):
            i, f, o, g = value.chunk(4)  # type: ignore[operator]
            getattr(oracle, f"{name}_l{layer}").copy_(torch.cat([i, f, g, o]))
        getattr(oracle, f"bias_hh_l{layer}").zero_()
    source_1S, (read_1T, _) = sentences((5,)), targets((4,))
    joined = torch.cat([network.embed_source(source_1S), network.embed_target(read_1T)], 1)
    hidden_1NH, _ = oracle(joined)
    wanted = torch.tanh(network.mix(hidden_1NH[:, 5:]))  # type: ignore[misc]
    torch.testing.assert_close(network.teach(source_1S, source_1S != PAD, read_1T).features_BTR, wanted)


@torch.no_grad()
@pytest.mark.parametrize("cell", EQUATIONS)
def test_teaching_is_taking_the_steps_and_padding_changes_nothing(cell: str) -> None:
    network = small_single(cell=cell, encoder_layers=2, decoder_layers=2)
    source_BS, (read_BT, _) = sentences(LENGTHS), targets((5, 3, 4))
    clamps = WhatIf((ClampGate("encoder", "hidden", 0.3, layer=1, positions=(1,)), ClampGate("decoder", "hidden", -0.2)))
    for asked in (None, clamps):
        taught = network.teach(source_BS, source_BS != PAD, read_BT, asked, keep=("hidden",))
        state = network.start(network.read(source_BS, source_BS != PAD, asked))
        for t, tokens_B in enumerate(read_BT.unbind(1)):
            done = network.step(tokens_B, state, asked)
            torch.testing.assert_close(done.features_KR, taught.features_BTR[:, t])
            torch.testing.assert_close(done.seen["decoder.1.hidden"], taught.seen["decoder.1.hidden"][:, t])
            state = done.state
        for row, length in enumerate(LENGTHS):
            source_1S = source_BS[row : row + 1, :length]
            alone = network.teach(source_1S, source_1S != PAD, read_BT[row : row + 1], asked, keep=("hidden",))
            torch.testing.assert_close(alone.features_BTR[0], taught.features_BTR[row])
            torch.testing.assert_close(
                alone.seen["encoder.0.forward.hidden"][0], taught.seen["encoder.0.forward.hidden"][row, :length]
            )
    assert taught.seen["encoder.1.forward.hidden"][:, 1].eq(0.3).all()


def test_what_it_reads_and_writes_trains_the_same_weights() -> None:
    network = small_single(encoder_layers=2, decoder_layers=2, dropout=0.2).train()
    source_BS, (read_BT, say_BT) = sentences(LENGTHS), targets((5, 3, 4))
    optimizer, losses = torch.optim.Adam(network.parameters(), lr=0.01), []
    for _ in range(6):
        logits_BTV = network(source_BS, source_BS != PAD, read_BT)
        loss = nn.functional.cross_entropy(logits_BTV.flatten(0, 1), say_BT.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        assert all(value.grad is not None for value in network.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@torch.no_grad()
@pytest.mark.parametrize("fast", [False, True], ids=["bare", "for inference"])
def test_every_search_works_and_exact_search_finds_the_best(fast: bool) -> None:
    check_every_search(small_single(target_vocabulary=6, source_vocabulary=6), torch.tensor([[4, 5, 4], [5, 5, PAD]]), fast)


@torch.no_grad()
def test_no_repeats_counts_only_what_it_wrote() -> None:
    network = small_single(target_vocabulary=6, source_vocabulary=6)
    network.readout.b[EOS] = -50.0
    network.readout.b[3] = -50.0
    source_1S = torch.tensor([[4, 5, 4, 5]])
    step, state = network.stepper(network.read(source_1S, source_1S != PAD))
    (found,) = search(step, state, 1, SearchOptions(strategy="greedy", no_repeat=1), [2])
    assert sorted(found.hypotheses[0].tokens) == [4, 5], "what was read may be written, each once"


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One GRU that has learnt to write a short string again."""
    sizes = {**SHAPE, "cell": "gru", "encoder_hidden": 64, "decoder_hidden": 64, "embedding": 16, "features": 0}
    return learnt(tmp_path_factory.mktemp("learnt"), Single, sizes, lambda source_BS: source_BS, steps=300, rate=0.005)


def test_it_learns_is_saved_and_is_looked_into(single: Path) -> None:
    checkpoint = models.load(single)
    assert isinstance(checkpoint.model, Single)
    done = run(checkpoint, "abd", SearchOptions(beam=3))
    assert done.texts[0] == "abd"
    trace = replay(checkpoint, done, done.hypotheses[0].tokens)
    assert trace.total == pytest.approx(done.hypotheses[0].total, abs=1e-4) and trace.attention is None
    assert trace.seen["encoder.0.forward.reset"].shape == (3, 64) and trace.seen["decoder.0.update"].shape == (4, 64)
    step = replay(checkpoint, done, done.hypotheses[0].tokens, step=1)
    parts = step.equations["decoder.0.update"]
    assert parts["sigmoid(W x + U h + b)"] == pytest.approx(trace.seen["decoder.0.update"][1], abs=1e-5)
    assert run(checkpoint, "abd", edits=(ClampGate("encoder", "hidden", 0.0),)).texts != done.texts


def test_what_an_output_hangs_on(single: Path) -> None:
    checkpoint = models.load(single)
    done = run(checkpoint, "abd")
    tokens = done.hypotheses[0].tokens
    slope_SE = connectivity(checkpoint, done, tokens, 0)
    assert slope_SE.shape == (3, 16) and np.abs(slope_SE).sum(1).argmax() == 0
    assert gradient_norms(checkpoint, done).shape == (3,) and gradient_norms(checkpoint, done)[-1] == pytest.approx(1)
    assert gradient_norms(checkpoint, done, tokens).shape == (4,)
    assert erase(checkpoint, done, tokens).change[0].argmax() == 0


def test_what_it_has_not_is_refused_with_a_sentence(single: Path) -> None:
    checkpoint = models.load(single)
    done = run(checkpoint, "abd")
    with pytest.raises(InputError, match="This model has no attention to edit"):
        run(checkpoint, "abd", edits=(AttentionBlend(1.0),))
    with pytest.raises(InputError, match="This model has no attention; use how='mean'"):
        erase(checkpoint, done, done.hypotheses[0].tokens, how="mask")
    with pytest.raises(InputError, match="does not read in the direction 'backward'"):
        gradient_norms(checkpoint, done, direction="backward")


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"bidirectional": True}, "set bidirectional to false"),
        ({"encoder_hidden": 24}, "encoder_hidden 24 is not 20"),
        ({"encoder_layers": 2}, "encoder_layers 2 is not 1"),
        ({"encoder": "none"}, "A single network reads a text"),
    ],
)
def test_a_shape_that_does_not_fit_gets_a_sentence(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ModelConfig(**{"target_vocabulary": 9, "source_vocabulary": 9, **SHAPE, **wrong})  # type: ignore[arg-type]
