"""Hard attention: it is soft attention whose row is held at one position, and REINFORCE is the gradient of an expectation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from seqdemo import checkpoints, connectivity, erase
from seqdemo import hub as models
from seqdemo.config import EOS, PAD, ModelConfig, SearchOptions
from seqdemo.edits import AttentionBlend, AttentionDraw, AttentionRow, edit_from_json, edit_to_json
from seqdemo.errors import InputError
from seqdemo.network.attention import WhatIf, drawn, half_drawn
from seqdemo.network.model import Seq2Seq
from seqdemo.playground import replay, run
from tests.small_models import LETTERS, sentences, small, targets
from training.data.batches import Batch
from training.tasks.loss import entropy, guessing, returns
from training.tasks.task import PairTask

LENGTHS = (6, 2, 4)
AFTER_AND_BEFORE = pytest.mark.parametrize("decoder", ["attend-after", "attend-before"])


def batch_of() -> Batch:
    torch.manual_seed(1)
    source_BS, (read_BT, say_BT) = sentences(LENGTHS), targets((5, 3, 4))
    return Batch(source_BS, source_BS != PAD, read_BT, say_BT)


@AFTER_AND_BEFORE
@torch.no_grad()
def test_it_is_soft_attention_held_at_one_position(decoder: str) -> None:
    hard, soft, batch = small(decoder=decoder, hard=True), small(decoder=decoder), batch_of()
    soft.load_state_dict(hard.state_dict())
    for what_if in (None, WhatIf((AttentionDraw(3),))):
        found = hard.teach(batch.source, batch.mask_BS, batch.target_in_BT, what_if, keep=("cross", "distribution"))
        cross_BTS, from_BTS = found.seen["decoder.0.cross.0"], found.seen["decoder.0.distribution.0"]
        assert cross_BTS.sum(2).eq(1).all() and cross_BTS.amax(2).eq(1).all()
        assert from_BTS.sum(2).sub(1).abs().max() < 1e-5
        assert what_if or torch.equal(cross_BTS.argmax(2), from_BTS.argmax(2))
        for row, length in enumerate(LENGTHS):
            assert not cross_BTS[row, :, length:].any()
            held = WhatIf([AttentionRow(t, tuple(one)) for t, one in enumerate(cross_BTS[row, :, :length].tolist())])
            source_1S = batch.source[row : row + 1, :length]
            alone = soft.teach(source_1S, source_1S != PAD, batch.target_in_BT[row : row + 1], held)
            torch.testing.assert_close(alone.features_BTR[0], found.features_BTR[row])


@AFTER_AND_BEFORE
@torch.no_grad()
def test_teaching_is_taking_the_steps(decoder: str) -> None:
    network, batch = small(decoder=decoder, hard=True), batch_of()
    for what_if in (None, WhatIf((AttentionDraw(3), AttentionBlend(0.5, "uniform", (0, 2))))):
        taught = network.teach(batch.source, batch.mask_BS, batch.target_in_BT, what_if)
        state = network.start(network.read(batch.source, batch.mask_BS))
        for t, tokens_B in enumerate(batch.target_in_BT.unbind(1)):
            done = network.step(tokens_B, state, what_if)
            torch.testing.assert_close(done.features_KR, taught.features_BTR[:, t])
            state = done.state


def test_positions_are_drawn_as_often_as_the_weights_say() -> None:
    torch.manual_seed(0)
    weights_KS = torch.tensor([[0.1, 0.6, 0.0, 0.3]]).expand(4000, 4)
    number_K = torch.from_numpy(np.random.default_rng(0).random(4000))
    assert drawn(weights_KS, number_K).mean(0).tolist() == pytest.approx([0.1, 0.6, 0.0, 0.3], abs=0.03)
    cross_KS, drawn_K = half_drawn(weights_KS)
    assert drawn_K.float().mean() == pytest.approx(0.5, abs=0.03)
    assert torch.equal(cross_KS[~drawn_K], weights_KS[~drawn_K])
    assert cross_KS[drawn_K].mean(0).tolist() == pytest.approx([0.1, 0.6, 0.0, 0.3], abs=0.04)


def test_reinforce_is_the_gradient_of_what_is_expected() -> None:
    """Over all positions, each as often as its weight says, it sums to the slope of - sum_j a_j R_j."""
    scores_S, return_S = torch.randn(5, requires_grad=True), torch.randn(5)
    wanted = torch.autograd.grad(-(scores_S.softmax(0) * return_S).sum(), scores_S)[0]
    found = torch.zeros(5)
    for position, weight in enumerate(scores_S.softmax(0).tolist()):
        one_11S = torch.nn.functional.one_hot(torch.tensor([[position]]), 5).float()
        loss = guessing(scores_S.softmax(0)[None, None], one_11S, torch.tensor([[True]]), return_S[position].view(1, 1))
        found += weight * torch.autograd.grad(loss, scores_S)[0]
    torch.testing.assert_close(found, wanted)
    even_11S = scores_S.softmax(0)[None, None]
    still = guessing(even_11S, even_11S, torch.tensor([[False]]), torch.ones(1, 1))
    assert not torch.autograd.grad(still, scores_S)[0].any(), "a row that took the expectation drew nothing"


def test_returns_count_the_words_from_a_draw_on() -> None:
    logp_BT, said_BT = torch.tensor([[-1.0, -3.0, -2.0], [-4.0, -9.0, -9.0]]), torch.tensor([[True] * 3, [True, False, False]])
    assert returns(logp_BT, -2.0, said_BT).tolist() == [[0.0, -1.0, 0.0], [-2.0, 0.0, 0.0]]
    even_BTS = torch.full((1, 2, 4), 0.25)
    assert entropy(even_BTS, torch.tensor([[True, False]])).item() == pytest.approx(np.log(4))


def task_for(recipe: Any) -> PairTask:
    task = PairTask.__new__(PairTask)
    task.recipe, task.baseline = recipe, None
    return task


@AFTER_AND_BEFORE
def test_it_is_trained_and_its_baseline_is_carried(decoder: str) -> None:
    torch.manual_seed(0)
    task = task_for(SimpleNamespace(spread=0.5, reinforce=0.5, entropy=0.01, sampled=0.0, rewarded=0.0, summary_dropout=0.0))
    model, batch, losses = small(decoder=decoder, hard=True), batch_of(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(12):
        found = task.loss(model.train(), batch, 0.0)
        optimizer.zero_grad()
        found.total.backward()
        assert all(value.grad is not None and value.grad.isfinite().all() for value in model.parameters())
        optimizer.step()
        before = task.baseline
        losses.append(float(task.loss(model.eval(), batch, 0.0).total.detach()))
        assert task.baseline == before, "measuring moves nothing"
    assert losses[-1] < losses[0]
    other = task_for(task.recipe)
    other.carry_on(model, task.carried())
    assert task.baseline is not None and other.baseline == task.baseline


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network with hard attention, of random weights that end soon, saved."""
    torch.manual_seed(3)
    sizes = {"embedding": 16, "encoder_hidden": 12, "decoder_hidden": 20, "attention": 12, "features": 16}
    network = Seq2Seq(ModelConfig(len(LETTERS), source_vocabulary=len(LETTERS), hard=True, **sizes))  # type: ignore[arg-type]
    with torch.no_grad():
        for value in network.parameters():
            value.mul_(3)
        network.readout.b[EOS] += 0.5
    config = {"name": "toy-hard", "task": "transliterate"}
    return checkpoints.save(tmp_path_factory.mktemp("learnt"), network.eval(), config, LETTERS, LETTERS)


SEARCHES = [
    SearchOptions(strategy="greedy"),
    SearchOptions(beam=4, coverage=0.3),
    SearchOptions(strategy="sample"),
    SearchOptions(strategy="exact"),
    SearchOptions(strategy="stochastic", beam=3),
]


@pytest.mark.parametrize("options", SEARCHES, ids=lambda options: options.strategy)
@pytest.mark.parametrize("edits", [(), (AttentionDraw(5),)], ids=["likeliest", "drawn"])
def test_every_search_finds_what_its_replay_repeats(learnt: Path, options: SearchOptions, edits: tuple[Any, ...]) -> None:
    checkpoint = models.load(learnt)
    done = run(checkpoint, "abdc", options, edits=edits)
    for hypothesis in done.hypotheses:
        trace = replay(checkpoint, done, hypothesis.tokens)
        assert trace.total == pytest.approx(hypothesis.total, abs=1e-4)
        assert trace.attention is not None and trace.distribution is not None
        assert (trace.attention.max(1) == 1).all() and (trace.attention.sum(1) == 1).all()
        assert trace.distribution.sum(1) == pytest.approx(1, abs=1e-5)
        assert (trace.attention * trace.distribution).sum(1).min() > 0
        assert not any("distribution" in name for name in trace.gates)
    if edits:
        (price,) = done.own_prices
        assert price.kind == "state" and price.after == pytest.approx(done.hypotheses[0].total, abs=1e-3)


def test_seeds_draw_differently_and_edits_change_what_is_chosen_from(learnt: Path) -> None:
    checkpoint, greedy = models.load(learnt), SearchOptions(strategy="greedy")
    tokens = run(checkpoint, "abdc", greedy).hypotheses[0].tokens

    def looked(*edits: Any) -> list[int]:
        trace = replay(checkpoint, run(checkpoint, "abdc", greedy, edits=edits), tokens)
        assert trace.attention is not None
        return list(trace.attention.argmax(1))

    even = AttentionBlend(1.0)
    by_seed = {seed: looked(even, AttentionDraw(seed)) for seed in range(6)}
    assert len(set(map(tuple, by_seed.values()))) > 1 and by_seed[2] == looked(even, AttentionDraw(2))
    assert looked(AttentionRow(0, (0.0, 0.2, 0.5, 0.3)))[0] == 2
    assert edit_from_json(edit_to_json(AttentionDraw(7))) == AttentionDraw(7)


def test_gradients_and_erasure_work(learnt: Path) -> None:
    checkpoint = models.load(learnt)
    done = run(checkpoint, "abdc")
    tokens = done.hypotheses[0].tokens
    assert np.isfinite(connectivity(checkpoint, done, tokens, 0)).all()
    assert erase(checkpoint, done, tokens, how="mask").change.shape == (len(tokens), 4)


WRONG = [
    ((AttentionDraw(-1),), "A seed is a whole number from 0"),
    ((AttentionDraw(1), AttentionDraw(2)), "drawn by one seed"),
]


@pytest.mark.parametrize(("edits", "says"), WRONG)
def test_seeds_that_do_not_fit_get_a_sentence(learnt: Path, edits: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        run(models.load(learnt), "abdc", edits=edits)


def test_soft_attention_draws_nothing(tmp_path: Path) -> None:
    network = Seq2Seq(ModelConfig(len(LETTERS), source_vocabulary=len(LETTERS), embedding=8, encoder_hidden=8, decoder_hidden=8))
    soft = models.load(checkpoints.save(tmp_path, network, {"name": "soft", "task": "transliterate"}, LETTERS, LETTERS))
    with pytest.raises(InputError, match="Only hard attention draws the position"):
        run(soft, "ab", edits=(AttentionDraw(1),))
    with pytest.raises(InputError, match="Hard attention is that of a recurrent decoder that attends"):
        ModelConfig(9, source_vocabulary=9, decoder="context-each", hard=True)
