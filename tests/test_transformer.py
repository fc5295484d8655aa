"""The Transformer: torch's own layers are its oracle, and its steps, its batches and its searches agree with each other."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from seqdemo import erase
from seqdemo import hub as models
from seqdemo.config import BOS, EOS, STRATEGIES, ModelConfig, SearchOptions
from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Force, Require
from seqdemo.errors import InputError
from seqdemo.explain.gradients import connectivity
from seqdemo.network.attention import WhatIf
from seqdemo.network.transformer import Heads, Transformer, positions
from seqdemo.playground import replay, run
from seqdemo.state import join, select
from tests.small_models import VOCABULARY, check_every_search, learnt, sentences, stir, targets

SHAPE = {"decoder": "transformer", "embedding": 16, "attention_heads": 4, "feed_forward": 24, "features": 0}


def small_transformer(**changes: Any) -> Transformer:
    sizes = {"target_vocabulary": VOCABULARY, "source_vocabulary": VOCABULARY, "encoder_layers": 2, "decoder_layers": 2}
    network = Transformer(ModelConfig(**{**sizes, **SHAPE, **changes})).eval()
    stir(network)
    return network


def read(network: Transformer, lengths: tuple[int, ...]) -> Any:
    source_BS = sentences(lengths)
    return network.read(source_BS, torch.arange(source_BS.shape[1]) < torch.tensor(lengths)[:, None])


def given_to(theirs: nn.MultiheadAttention, ours: Heads) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.out.state_dict())


@torch.no_grad()
def test_torch_s_own_layers_compute_the_same() -> None:
    network = small_transformer()
    lengths = (5, 3)
    source_BS, (read_BT, _) = sentences(lengths), targets((4, 6))
    mask_BS = torch.arange(5) < torch.tensor(lengths)[:, None]
    x_BSD = network.entered(network.embed_source(source_BS), torch.arange(5))
    for block in network.encoder:
        layer = nn.TransformerEncoderLayer(16, 4, 24, 0.0, batch_first=True, norm_first=True).eval()
        given_to(layer.self_attn, block.look)
        for mine, other in (("norm_look", "norm1"), ("norm_think", "norm2")):
            getattr(layer, other).load_state_dict(getattr(block, mine).state_dict())
        layer.linear1.load_state_dict(block.think.widen.state_dict())
        layer.linear2.load_state_dict(block.think.narrow.state_dict())
        layer.train()  # torch's fast path returns 0 at padding; without dropout this is the same computation
        x_BSD = layer(x_BSD, src_key_padding_mask=~mask_BS)
    states_BSD = network.norm_read(x_BSD)
    memory = network.read(source_BS, mask_BS)
    torch.testing.assert_close(memory.states_BSH[mask_BS], states_BSD[mask_BS])
    y_BTD = network.entered(network.embed_target(read_BT), torch.arange(read_BT.shape[1]))
    for block in network.decoder:
        layer = nn.TransformerDecoderLayer(16, 4, 24, 0.0, batch_first=True, norm_first=True).eval()
        given_to(layer.self_attn, block.look_back)
        given_to(layer.multihead_attn, block.look)
        for mine, other in (("norm_back", "norm1"), ("norm_look", "norm2"), ("norm_think", "norm3")):
            getattr(layer, other).load_state_dict(getattr(block, mine).state_dict())
        layer.linear1.load_state_dict(block.think.widen.state_dict())
        layer.linear2.load_state_dict(block.think.narrow.state_dict())
        causal = nn.Transformer.generate_square_subsequent_mask(read_BT.shape[1])
        y_BTD = layer(y_BTD, states_BSD, tgt_mask=causal, memory_key_padding_mask=~mask_BS)
    taught = network.teach(source_BS, mask_BS, read_BT)
    torch.testing.assert_close(taught.features_BTR, network.norm_written(y_BTD))


def test_positions_are_waves() -> None:
    table = positions(torch.arange(50), 8)
    assert table[0].tolist() == [0] * 4 + [1] * 4
    assert table[7, 1].item() == pytest.approx(math.sin(7 * 10_000 ** (-2 / 8)))
    assert (table @ table[10]).argmax() == 10


@torch.no_grad()
def test_teaching_all_at_once_is_taking_the_steps() -> None:
    network = small_transformer()
    lengths = (6, 2, 4)
    source_BS, (read_BT, _) = sentences(lengths), targets((5, 3, 4))
    mask_BS = torch.arange(6) < torch.tensor(lengths)[:, None]
    what_if = WhatIf((AttentionRow(2, (0.0, 1.0), layer=1, head=3), AttentionBlend(0.5, "uniform", (0, 3), layer=0)))
    for asked in (None, what_if):
        taught = network.teach(source_BS, mask_BS, read_BT, asked, keep=("self", "cross"))
        state = network.start(network.read(source_BS, mask_BS))
        for t, tokens_B in enumerate(read_BT.unbind(1)):
            done = network.step(tokens_B, state, asked)
            torch.testing.assert_close(done.features_KR, taught.features_BTR[:, t], atol=1e-5, rtol=1e-5)
            for layer, head in itertools.product(range(2), range(4)):
                torch.testing.assert_close(
                    done.seen[f"decoder.{layer}.cross"][:, head], taught.seen[f"decoder.{layer}.cross.{head}"][:, t]
                )
                own = taught.seen[f"decoder.{layer}.self.{head}"][:, t]
                torch.testing.assert_close(done.seen[f"decoder.{layer}.self"][:, head], own[:, : t + 1])
                assert not own[:, t + 1 :].any()
            state = done.state
        torch.testing.assert_close(state.blocks, taught.state.blocks, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(state.attended_KS, taught.state.attended_KS, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_padding_changes_nothing_and_rows_of_different_depth_go_together() -> None:
    network = small_transformer()
    source_BS = sentences((5, 3))
    mask_BS = torch.arange(5) < torch.tensor((5, 3))[:, None]
    together = network.start(network.read(source_BS, mask_BS))
    alone = network.start(network.read(source_BS[1:, :3], mask_BS[1:, :3]))
    for token in (BOS, 7, 9):
        both = network.step(torch.tensor([token, token]), together)
        one = network.step(torch.tensor([token]), alone)
        torch.testing.assert_close(both.features_KR[1:], one.features_KR)
        together, alone = both.state, one.state
    deep = select(together, torch.tensor([0]), torch.tensor([0]))
    fresh = network.start(select(together.memory, torch.tensor([]), torch.tensor([1])))
    mixed = join([deep, fresh])
    after = network.step(torch.tensor([11, BOS]), mixed)
    torch.testing.assert_close(after.features_KR[:1], network.step(torch.tensor([11]), deep).features_KR)
    torch.testing.assert_close(after.features_KR[1:], network.step(torch.tensor([BOS]), fresh).features_KR)


@torch.no_grad()
@pytest.mark.parametrize("fast", [False, True], ids=["bare", "for inference"])
def test_every_search_works_and_exact_search_finds_the_best(fast: bool) -> None:
    check_every_search(small_transformer(target_vocabulary=6, source_vocabulary=6), torch.tensor([[4, 5, 4], [5, 5, 4]]), fast)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer that has learnt to turn short strings round."""
    sizes = {"embedding": 32, "attention_heads": 2, "feed_forward": 48, "encoder_layers": 2, "decoder_layers": 2}
    shape, folder = {**SHAPE, **sizes}, tmp_path_factory.mktemp("learnt")
    return learnt(folder, Transformer, shape, lambda source_BS: source_BS.flip(1), steps=250, rate=0.003)


def test_it_learns_is_saved_and_is_looked_into(transformer: Path) -> None:
    checkpoint = models.load(transformer)
    assert isinstance(checkpoint.model, Transformer)
    done = run(checkpoint, "abdc", SearchOptions(beam=3))
    assert done.texts[0] == "cdba"
    trace = replay(checkpoint, done, done.hypotheses[0].tokens)
    assert trace.total == pytest.approx(done.hypotheses[0].total, abs=1e-4)
    rows = [trace.seen[f"decoder.1.cross.{head}"] for head in range(2)]
    assert trace.attention is not None and trace.attention == pytest.approx((rows[0] + rows[1]) / 2)
    assert trace.seen["encoder.0.self.1"].shape == (4, 4) and trace.seen["decoder.1.self.0"].shape == (5, 5)
    assert trace.gates == {}


def test_what_ifs_name_a_layer_and_a_head(transformer: Path) -> None:
    checkpoint = models.load(transformer)
    before = run(checkpoint, "abdc")
    row = AttentionRow(0, (1.0, 0.0, 0.0, 0.0), layer=1, head=1)
    after = run(checkpoint, "abdc", edits=(row,))
    seen = replay(checkpoint, after, after.hypotheses[0].tokens).seen
    assert seen["decoder.1.cross.1"][0].tolist() == [1, 0, 0, 0]
    assert seen["decoder.1.cross.0"][0].tolist() != [1, 0, 0, 0]
    assert run(checkpoint, "abdc", edits=(AttentionBlend(0.0),)).texts == before.texts
    with pytest.raises(InputError, match="head"):
        run(checkpoint, "abdc", edits=(AttentionRow(0, (1.0, 0.0, 0.0, 0.0), layer=1, head=2),))
    with pytest.raises(InputError, match="A Transformer has no cells, so there is no gate to hold"):
        run(checkpoint, "abdc", edits=(ClampGate("decoder", "forget", 0.0),))


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"attention_heads": 5}, "is not a multiple of 10"),
        ({"attention_heads": 0}, "attention_heads must be a whole number from 1"),
        ({"feed_forward": 0}, "feed_forward must be a whole number from 1"),
        ({"features": 8}, "set features to 0"),
        ({"encoder": "none"}, "A Transformer reads a text"),
        ({"decoder": "attend-after"}, "Heads and feed-forward layers are a Transformer's"),
        ({"encoder_layers": 13}, "encoder_layers must be a whole number from 1 to 12"),
    ],
)
def test_a_shape_that_does_not_fit_gets_a_sentence(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ModelConfig(**{"target_vocabulary": 9, "source_vocabulary": 9, **SHAPE, **wrong})  # type: ignore[arg-type]


ASKED = {
    "a minimum length": ({"min_length": 6}, ()),
    "no token twice": ({"no_repeat": 1}, ()),
    "a prefix": ({"prefix": (5, 4)}, ()),
    "a forced piece": ({}, (Force(1, (6,)),)),
    "a banned piece": ({}, (Ban(0, (6,)),)),
    "a required word": ({}, (Require((4, 4)),)),
    "a row of one head": ({}, (AttentionRow(1, (0.0, 0.0, 0.0, 1.0), layer=0, head=1),)),
    "a row of a whole layer": ({}, (AttentionRow(1, (0.5, 0.5, 0.0, 0.0), layer=1),)),
    "a blend of one head": ({}, (AttentionBlend(0.7, "uniform", layer=1, head=0),)),
}


def keeps(name: str, tokens: tuple[int, ...]) -> bool:
    """Whether an output keeps what was asked for under this name."""
    body = tokens[:-1] if tokens[-1] == EOS else tokens
    kept = {
        "a minimum length": len(body) >= 6,
        "no token twice": len(set(body)) == len(body),
        "a prefix": tokens[:2] == (5, 4),
        "a forced piece": tokens[1:2] == (6,),
        "a banned piece": tokens[:1] != (6,),
        "a required word": (4, 4) in itertools.pairwise(tokens),
    }
    return kept.get(name, True)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ASKED)
def test_every_search_keeps_every_rule_and_is_repeated_under_every_edit(transformer: Path, strategy: str, name: str) -> None:
    checkpoint, (rules, edits) = models.load(transformer), ASKED[name]
    done = run(checkpoint, "abdc", SearchOptions(strategy, beam=4, **rules), edits=edits)
    for hypothesis in done.hypotheses:
        assert keeps(name, hypothesis.tokens) or not hypothesis.finished
        trace = replay(checkpoint, done, hypothesis.tokens)
        assert trace.total == pytest.approx(hypothesis.total, abs=1e-4)
        for edit in edits:
            if isinstance(edit, AttentionRow):
                heads = range(2) if edit.head is None else [edit.head]
                for head in heads:
                    assert trace.seen[f"decoder.{edit.layer}.cross.{head}"][1] == pytest.approx(edit.weights)
    assert any(hypothesis.finished and keeps(name, hypothesis.tokens) for hypothesis in done.hypotheses)


def test_a_string_written_backwards_hangs_on_its_own_letters(transformer: Path) -> None:
    checkpoint = models.load(transformer)
    done = run(checkpoint, "abdc")
    assert done.texts[0] == "cdba"
    for how in ("mean", "mask"):
        assert erase(checkpoint, done, done.hypotheses[0].tokens, how=how).change[:4].argmax(1).tolist() == [3, 2, 1, 0]


@torch.no_grad()
def test_connectivity_is_the_slope_of_the_log_probability() -> None:
    network = small_transformer()
    source, target, small = (4, 6, 5), (7, 9, EOS), 1e-2
    source_1S, read_1T = torch.tensor([source]), torch.tensor([[BOS, *target[:2]]])

    def logp(position: int) -> float:
        taught = network.teach(source_1S, source_1S > 0, read_1T)
        return network.readout(taught.features_BTR[0, position]).log_softmax(0)[target[position]].item()

    for position, place, unit in ((0, 1, 3), (2, 0, 7), (2, 2, 0)):
        ends = []
        for step in (small, -2 * small):
            network.embed_source.weight[source[place], unit] += step
            ends.append(logp(position))
        network.embed_source.weight[source[place], unit] += small
        slope = connectivity(network, source, target, position)[place, unit]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * small), abs=1e-3, rel=1e-2) and slope != 0
