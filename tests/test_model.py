"""Whole models: every combination of parts trains and decodes, and teacher forcing and stepping are one model."""

from __future__ import annotations

import copy
import itertools
import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from seqdemo.config import BOS, DECODER_NAMES, EOS, PAD, SCORE_NAMES, SearchOptions
from seqdemo.equations import EQUATIONS
from seqdemo.network.model import Seq2Seq, log_probabilities
from seqdemo.search import search
from seqdemo.state import select
from tests.small_models import VOCABULARY, sentences, small, small_config, small_language, targets

SOURCE, TARGET = (6, 2, 4), (5, 3, 4)
COMBINATIONS = [
    (cell, decoder, score)
    for cell, decoder, score in itertools.product(EQUATIONS, DECODER_NAMES, SCORE_NAMES)
    if decoder.startswith("attend") or score == "additive"  # the other two have no score
]


def buildable(decoder: str, shape: dict[str, object]) -> dict[str, object]:
    """The shape, bent to what this decoder allows."""
    if decoder == "attend-after":
        shape = {**shape, "context_to_readout": True}
    bare = not shape.get("features", 16) and shape.get("tie_readout")
    context = decoder != "context-once" and shape.get("context_to_readout", True)
    return {**shape, "embedding": 64 if context else 32} if bare else shape


def train_a_little(model: Seq2Seq, steps: int = 4) -> tuple[float, float]:
    """Loss on one batch before and after."""
    source_BS, (read_BT, say_BT) = sentences(SOURCE), targets(TARGET)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        logits_BTV = model(source_BS, source_BS != PAD, read_BT)
        loss = F.cross_entropy(logits_BTV.flatten(0, 1), say_BT.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        assert all(value.grad is not None for value in model.parameters()), "a weight plays no part"
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses[0], losses[-1]


def decode(model: Seq2Seq, source_BS: Tensor, options: SearchOptions, limit: int = 6) -> list[tuple[int, ...]]:
    with torch.inference_mode():
        step, state = model.stepper(model.read(source_BS, source_BS != PAD))
        found = search(step, state, len(source_BS), options, [limit] * len(source_BS))
    return [one.hypotheses[0].tokens for one in found]


@pytest.mark.parametrize(("cell", "decoder", "score"), COMBINATIONS)
def test_every_combination_trains_and_decodes(cell: str, decoder: str, score: str) -> None:
    model = Seq2Seq(small_config(cell=cell, decoder=decoder, score=score))
    before, after = train_a_little(model)
    assert after < before
    for options in (SearchOptions(strategy="greedy"), SearchOptions(beam=3)):
        for tokens in decode(model.eval(), sentences(SOURCE), options):
            assert 1 <= len(tokens) <= 6 and all(0 <= token < VOCABULARY for token in tokens)


@pytest.mark.parametrize("decoder", DECODER_NAMES)
@pytest.mark.parametrize("cell", EQUATIONS)
def test_every_cell_and_decoder_trains_in_mixed_precision(cell: str, decoder: str) -> None:
    model = Seq2Seq(small_config(cell=cell, decoder=decoder, encoder_layers=2, decoder_layers=2))
    with torch.autocast("cpu", torch.bfloat16):
        before, after = train_a_little(model)
    assert after < before
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all() and weight.isfinite().all(), name


@pytest.mark.parametrize("cell", EQUATIONS)
def test_every_language_model_trains_in_mixed_precision(cell: str) -> None:
    model, (read_BT, say_BT) = small_language(cell=cell, decoder_layers=2).train(), targets((5, 5))
    with torch.autocast("cpu", torch.bfloat16):
        _, state = model(read_BT)
        logits_BTV, _ = model(read_BT, state)
        loss = F.cross_entropy(logits_BTV.flatten(0, 1), say_BT.flatten())
    loss.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


SHAPES = [
    {"tie_readout": True},
    {"tie_readout": True, "share_embeddings": True},
    {"features": 0},
    {"features": 0, "context_to_readout": False},
    {"features": 0, "context_to_readout": False, "tie_readout": True},
    {"context_to_readout": False},
    {"bidirectional": False, "encoder_hidden": 32},
    {"encoder_layers": 2, "decoder_layers": 3, "dropout": 0.2},
    {"encoder_layers": 3, "decoder_layers": 2, "bidirectional": False, "encoder_hidden": 32},
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: ",".join(f"{name}={value}" for name, value in shape.items()))
@pytest.mark.parametrize("decoder", DECODER_NAMES)
def test_every_shape_trains_and_decodes(decoder: str, shape: dict[str, object]) -> None:
    model = Seq2Seq(small_config(decoder=decoder, **buildable(decoder, shape)))
    before, after = train_a_little(model, steps=6)
    assert after < before
    assert all(decode(model.eval(), sentences(SOURCE), SearchOptions(beam=2)))


def furthest(said: Tensor, forced: Tensor) -> Tensor:
    """By how much the two differ at most, but for <pad> and <bos>, which a step never says."""
    assert (said[..., : BOS + 1] == -torch.inf).all() and (said[..., EOS:] > -torch.inf).all()
    return (said - forced)[..., EOS:].abs().max()


def stepped(model: Seq2Seq, source_BS: Tensor, read_BT: Tensor) -> Tensor:
    step, state = model.stepper(model.read(source_BS, source_BS != PAD))
    logps = []
    for tokens_K in read_BT.unbind(1):
        logp_KV, state = step(tokens_K, state)
        logps.append(logp_KV)
    return torch.stack(logps, 1)


@settings(max_examples=40)
@given(
    st.sampled_from(list(EQUATIONS)),
    st.sampled_from(DECODER_NAMES),
    st.sampled_from(SCORE_NAMES),
    st.sampled_from(SHAPES),
    st.integers(0, 2**16),
)
def test_teacher_forcing_gives_the_log_probabilities_of_stepping(
    cell: str, decoder: str, score: str, shape: dict[str, object], seed: int
) -> None:
    torch.manual_seed(seed)
    model = small(cell=cell, decoder=decoder, score=score, **buildable(decoder, shape))
    source_BS, (read_BT, _) = sentences(SOURCE), targets(TARGET)
    forced = model(source_BS, source_BS != PAD, read_BT).log_softmax(2)
    assert furthest(stepped(model, source_BS, read_BT), forced) < 2e-5
    with torch.no_grad():
        assert furthest(stepped(model, source_BS, read_BT), forced) < 2e-5


@pytest.mark.parametrize("decoder", DECODER_NAMES)
def test_padding_and_batch_mates_change_nothing(decoder: str) -> None:
    model = small(decoder=decoder, score="bilinear").double()
    source_BS, (read_BT, _) = sentences(SOURCE), targets(TARGET)
    with torch.no_grad():
        together = model(source_BS, source_BS != PAD, read_BT)
        for row, (length, said) in enumerate(zip(SOURCE, TARGET)):
            source_1S = source_BS[row : row + 1, :length]
            alone = model(source_1S, source_1S != PAD, read_BT[row : row + 1, : said + 1])
            assert (together[row, : said + 1] - alone[0]).abs().max() < 1e-12


@pytest.mark.parametrize("decoder", DECODER_NAMES)
def test_a_batch_decodes_as_its_sentences_do(decoder: str) -> None:
    model = small(decoder=decoder)
    source_BS = sentences((7, 1, 3, 7, 5))
    for options in (SearchOptions(strategy="greedy"), SearchOptions(beam=4), SearchOptions(beam=3, finished="free")):
        alone = [decode(model, row[row != PAD][None], options)[0] for row in source_BS]
        assert decode(model, source_BS, options) == alone


def test_beams_move_with_their_rows() -> None:
    model = small()
    source_BS, tokens_K = sentences(SOURCE), torch.tensor([4, 5, 6, 7, 8, 9])
    with torch.no_grad():
        step, start = model.stepper(model.read(source_BS, source_BS != PAD))
        _, state = step(tokens_K, select(start, torch.tensor([0, 0, 1, 1, 2, 2])))
        logp_KV, _ = step(tokens_K, state)
        moved, _ = step(tokens_K[[5, 4, 0, 1]], select(state, torch.tensor([5, 4, 0, 1]), torch.tensor([2, 0])))
    assert furthest(moved, logp_KV[[5, 4, 0, 1]]) < 1e-5


def test_a_grid_of_an_image_is_a_source_like_any_other() -> None:
    config = small_config(encoder="image", source_vocabulary=0, cnn="efficientnet-lite0", encoder_hidden=32)
    model = Seq2Seq(config).eval()
    channels = model.encoder.states.in_features
    grid_BSC = torch.randn(2, 9, channels)
    forced = model(grid_BSC, None, torch.tensor([[BOS, 5], [BOS, 6]])).log_softmax(2)
    with torch.no_grad():
        step, state = model.stepper(model.read(grid_BSC))
        first, state = step(torch.tensor([BOS, BOS]), state)
        second, _ = step(torch.tensor([5, 6]), state)
    assert furthest(torch.stack([first, second], 1), forced) < 2e-5
    forced.sum().backward()
    trained = {name for name, value in model.named_parameters() if value.grad is not None}
    assert trained and not any("cnn" in name for name in trained)


# The language model


@pytest.mark.parametrize("shape", [{}, {"features": 16, "tie_readout": True}, {"decoder_layers": 3, "dropout": 0.3}])
@pytest.mark.parametrize("cell", EQUATIONS)
def test_a_language_model_trains_and_its_stepper_is_its_teacher_forcing(cell: str, shape: dict[str, object]) -> None:
    model = small_language(cell=cell, **shape)
    read_BT, say_BT = targets((6, 6))
    logits, _ = model(read_BT)
    loss = F.cross_entropy(logits.flatten(0, 1), say_BT.flatten())
    loss.backward()
    assert all(value.grad is not None for value in model.parameters())
    with torch.no_grad():
        step, state = model.stepper(rows=2)
        for t, tokens_K in enumerate(read_BT.unbind(1)):
            logp_KV, state = step(tokens_K, state)
            assert furthest(logp_KV, logits[:, t].log_softmax(1)) < 2e-5
        for value in model.parameters():
            assert value.grad is not None
            value -= 0.05 * value.grad
        again, _ = model(read_BT)
    assert F.cross_entropy(again.flatten(0, 1), say_BT.flatten()) < loss


def test_a_text_read_in_two_parts_is_the_text_read_at_once() -> None:
    model = small_language(decoder_layers=2).double()
    read_BT, _ = targets((8, 8))
    whole, _ = model(read_BT)
    first, state = model(read_BT[:, :3])
    second, end = model(read_BT[:, 3:], state)
    assert (torch.cat([first, second], 1) - whole).abs().max() < 1e-12
    assert end.position_K.tolist() == [9, 9]


def test_a_language_model_generates_and_completes() -> None:
    model = small_language()
    with torch.inference_mode():
        step, state = model.stepper()
        free = search(step, state, 1, SearchOptions(strategy="greedy"), [8])[0].hypotheses[0]
        _, state = step(torch.tensor([BOS]), state)
        rest = search(step, state, 1, SearchOptions(strategy="greedy"), [7], bos=free.tokens[0])[0].hypotheses[0]
    assert free.tokens[1:] == rest.tokens
    assert free.total == pytest.approx(free.logps[0] + rest.total, abs=1e-5)


def test_dropout_is_off_in_decoding_and_on_while_training() -> None:
    model = small(dropout=0.5)
    source_BS = sentences(SOURCE)
    with torch.no_grad():
        calm = model.read(source_BS, source_BS != PAD).states_BSH
        assert torch.equal(calm, model.read(source_BS, source_BS != PAD).states_BSH)
        assert not torch.allclose(calm, model.train().read(source_BS, source_BS != PAD).states_BSH, atol=1e-3)


def test_gradients_reach_the_source_through_the_stepper() -> None:
    model = small()
    source_BS = sentences((4,))
    step, state = model.stepper(model.read(source_BS, source_BS != PAD))
    logp_KV, _ = step(torch.tensor([BOS]), state)
    logp_KV[0, EOS].backward()
    assert model.embed_source.weight.grad is not None and model.embed_source.weight.grad[source_BS[0]].abs().min() > 0


def test_threads_that_share_a_model_get_what_they_get_alone() -> None:
    model = small(decoder_layers=2)
    torch.manual_seed(3)
    work = [(sentences((5, 3, 6)), SearchOptions(beam=beam)) for beam in (1, 2, 3, 5) for _ in range(3)]
    copied = copy.deepcopy(model)
    alone = [decode(copied, *one) for one in work]
    found: dict[int, list[tuple[int, ...]]] = {}
    started = threading.Barrier(4)

    def serve(first: int) -> None:
        started.wait()
        for index in range(first, len(work), 4):
            found[index] = decode(model, *work[index])

    threads = [threading.Thread(target=serve, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[index] for index in range(len(work))] == alone


def test_a_models_weights_are_named_as_ever() -> None:
    """Checkpoints are found by these names."""
    named = {name: tuple(value.shape) for name, value in small(share_embeddings=True, tie_readout=True).named_parameters()}
    assert named == {
        "embed_target.weight": (VOCABULARY, 16),
        "encoder.layers.0.0.W": (64, 16),
        "encoder.layers.0.0.U": (16, 64),
        "encoder.layers.0.0.b": (64,),
        "encoder.layers.0.1.W": (64, 16),
        "encoder.layers.0.1.U": (16, 64),
        "encoder.layers.0.1.b": (64,),
        "decoder.stack.cells.0.W": (128, 16),
        "decoder.stack.cells.0.U": (32, 128),
        "decoder.stack.cells.0.b": (128,),
        "decoder.bridge.weight": (32, 32),
        "decoder.bridge.bias": (32,),
        "decoder.enter.weight": (128, 16),
        "decoder.mix.weight": (16, 64),
        "decoder.mix.bias": (16,),
        "decoder.score.W.weight": (16, 32),
        "decoder.score.U.weight": (16, 32),
        "decoder.score.U.bias": (16,),
        "decoder.score.v.weight": (1, 16),
        "readout.b": (VOCABULARY,),
    }


@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_log_probabilities_leave_the_logits_as_they_are(rows: int, dtype: torch.dtype) -> None:
    logits = torch.randn(rows, 900).to(dtype)
    before = logits.clone()
    logps = log_probabilities(logits)
    assert torch.equal(logits, before) and logps.dtype in (torch.float32, torch.float64)
    assert (logps[:, [PAD, BOS]] == -torch.inf).all()
    torch.testing.assert_close(logps[:, 2:], logits.to(logps.dtype).log_softmax(1)[:, 2:])
    with_gradient = before.float().requires_grad_()
    log_probabilities(with_gradient)[:, 2:].sum().backward()
    assert with_gradient.grad is not None
