"""The interface fits networks unlike the recurrent ones: a toy whose state grows with each token, with two layers of attention
of two heads each, is searched, replayed and edited like any other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seqdemo.config import BOS, EOS, ModelConfig, SearchOptions
from seqdemo.edits import AttentionBlend, AttentionRow, Edit, check_edits
from seqdemo.errors import InputError
from seqdemo.explain.erasure import erased
from seqdemo.explain.gradients import gradient_norms
from seqdemo.explain.replay import follow, priced
from seqdemo.explain.step import step_in_full
from seqdemo.network.attention import WhatIf, padding
from seqdemo.network.model import LanguageModel, Network, Seq2Seq
from seqdemo.search import search
from seqdemo.state import Memory, Seen, Step, Taught, grown, is_kept, join, select, stacked
from tests.small_models import small_config

VOCABULARY, WIDTH, HEADS, LAYERS = 12, 8, 2, 2
SOURCES = ((5, 9, 4, 11, 6), (7, 4), (8, 8, 10))
ATTENTION = [f"decoder.{layer}.{kind}.{head}" for layer in range(LAYERS) for kind in ("self", "cross") for head in range(HEADS)]


class ToyConfig(ModelConfig):
    @property
    def attention_layers(self) -> int:
        return LAYERS

    @property
    def heads(self) -> int:
        return HEADS


class ToyState(NamedTuple):
    position_K: Tensor
    memory: Memory
    read_KTE: Tensor  # everything read so far


class Toy(Network):
    """Each layer looks at all that was read, then at the source, and adds what it found: x = x + self + cross. A position says
    how far away a token is."""

    def __init__(self) -> None:
        super().__init__()
        self.config = ToyConfig(VOCABULARY, VOCABULARY)
        self.embed_source, self.embed_target = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(40, WIDTH)
        self.readout = nn.Linear(WIDTH, VOCABULARY)

    def read(self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None) -> Memory:
        assert source is not None and mask_BS is not None
        states_BSE = source if source.is_floating_point() else self.embed_source(source)
        return Memory(states_BSE, mask_BS, states_BSE.mean(1), (states_BSE, states_BSE), padding(mask_BS))

    def read_closely(
        self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None
    ) -> tuple[Memory, Seen]:
        return self.read(source, mask_BS), {}

    def start(self, memory: Memory | None = None, rows: int = 1) -> ToyState:
        assert memory
        rows = len(memory.mask_BS)
        return ToyState(torch.zeros(rows, dtype=torch.long), memory, torch.zeros(rows, 0, WIDTH))

    def step(self, tokens_K: Tensor, state: ToyState, what_if: WhatIf | None = None) -> Step:
        x_KE = self.embed_target(tokens_K) + self.places(state.position_K)
        read_KTE = grown(state.read_KTE, x_KE, state.position_K)
        there_KT = torch.arange(read_KTE.shape[1]) <= state.position_K[:, None]
        memory, told = state.memory, []
        for layer, keys_BSE in enumerate(memory.prepared):
            own_K1NT, own_K1NE = attended(x_KE[:, None], read_KTE, there_KT)
            weights_BKNS, c_BKNE = attended(x_KE.unflatten(0, (len(keys_BSE), -1)), keys_BSE, memory.mask_BS)
            if what_if:
                weights_BKNS = what_if.attention(layer, weights_BKNS, memory.mask_BS, state.position_K)
                c_BKNE = what_if.context(layer, mixed(weights_BKNS, keys_BSE), state.position_K)
            x_KE = torch.tanh(x_KE + own_K1NE[:, 0].flatten(1) + c_BKNE.flatten(0, 1).flatten(1))
            told.append((f"decoder.{layer}", {"self": own_K1NT[:, 0], "cross": weights_BKNS.flatten(0, 1)}))
        return Step(x_KE, ToyState(state.position_K + 1, memory, read_KTE), tuple(told))

    def follow(self, target_in_BT: Tensor, state: Any, what_if: WhatIf | None, keep: Collection[str]) -> Taught:
        features, steps = [], {name.rpartition(".")[0]: [] for name in ATTENTION}  # type: ignore[var-annotated]
        for tokens_B in target_in_BT.unbind(1):
            done = self.step(tokens_B, state, what_if)
            state = done.state
            features.append(done.features_KR)
            for name, values in steps.items():
                values.append(done.seen[name])
        kept = {name: stacked(values) for name, values in steps.items() if is_kept(name, keep)}
        return Taught(torch.stack(features, 1), state, kept)


def attended(query_BKE: Tensor, keys_BSE: Tensor, there_BS: Tensor) -> tuple[Tensor, Tensor]:
    """Each head sees its share of the width."""
    q_BKNA, k_BSNA = (x.unflatten(2, (HEADS, -1)) for x in (query_BKE, keys_BSE))
    scores_BKNS = torch.einsum("bkna,bsna->bkns", q_BKNA, k_BSNA).masked_fill(~there_BS[:, None, None], -torch.inf)
    weights_BKNS = scores_BKNS.softmax(3)
    return weights_BKNS, mixed(weights_BKNS, keys_BSE)


def mixed(weights_BKNS: Tensor, keys_BSE: Tensor) -> Tensor:
    return torch.einsum("bkns,bsna->bkna", weights_BKNS, keys_BSE.unflatten(2, (HEADS, -1)))


@pytest.fixture
def toy() -> Toy:
    torch.manual_seed(4)
    return Toy().eval()


def found(toy: Toy, sources: tuple[tuple[int, ...], ...], options: SearchOptions) -> list[tuple[tuple[int, ...], float]]:
    source_BS = nn.utils.rnn.pad_sequence([torch.tensor(source) for source in sources], batch_first=True)
    with torch.inference_mode():
        step, state = toy.stepper(toy.read(source_BS, source_BS > 0))
        results = search(step, state, len(sources), options, [7] * len(sources))
    return [(one.hypotheses[0].tokens, one.hypotheses[0].total) for one in results]


@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample", "exact"])
def test_a_growing_state_is_searched_and_replayed(toy: Toy, strategy: str) -> None:
    options = SearchOptions(strategy=strategy, nbest=1)
    for source, (tokens, total) in zip(SOURCES, found(toy, SOURCES, options)):
        assert found(toy, (source,), options)[0] == (tokens, pytest.approx(total, abs=1e-5))
        trace = follow(toy, source, tokens)
        assert trace.total == pytest.approx(total, abs=1e-5) and set(trace.seen) == set(ATTENTION)
        for name, rows in trace.seen.items():
            assert np.allclose(rows.sum(1), 1, atol=1e-6)
            assert rows.shape == (len(tokens), len(tokens) if "self" in name else len(source))
            assert "cross" in name or not np.triu(rows, 1).any()
        heads = [trace.seen[f"decoder.{LAYERS - 1}.cross.{head}"] for head in range(HEADS)]
        assert trace.attention is not None and np.allclose(trace.attention, np.mean(heads, 0)) and not trace.gates


def test_states_of_different_depth_go_on_as_each_would_alone(toy: Toy) -> None:
    source_BS = torch.tensor([SOURCES[0], SOURCES[0]])
    texts = ((BOS, 4, 5, 6), (BOS,))
    with torch.inference_mode():
        start = toy.start(toy.read(source_BS, source_BS > 0))
        states, wanted = [], []
        for row, text in enumerate(texts):
            state = select(start, torch.tensor([row]), torch.tensor([row]))
            for token in text:
                state = toy.step(torch.tensor([token]), state).state
            states.append(state)
            for token in (7, 8):
                done = toy.step(torch.tensor([token]), state)
                state = done.state
            wanted.append(done.features_KR)
        together = join(states)
        assert together.read_KTE.shape[:2] == (2, 4) and together.position_K.tolist() == [4, 1]
        for token in (7, 8):
            done = toy.step(torch.tensor([token, token]), together)
            together = done.state
    assert (done.features_KR - torch.cat(wanted)).abs().max() < 1e-6
    assert together.read_KTE.shape[1] == 6 and not together.read_KTE[1, 3:].any()


def test_an_edit_holds_for_the_layer_and_the_head_it_names(toy: Toy) -> None:
    target, row = (4, 5, 6, EOS), (0.0, 1.0, 0.0, 0.0, 0.0)
    plain = follow(toy, SOURCES[0], target).seen
    for layer in (None, 0, 1):
        for head in (None, 0, 1):
            for edit in (AttentionRow(1, row, layer, head), AttentionBlend(1.0, "last", (1,), layer, head)):
                seen = follow(toy, SOURCES[0], target, (edit,)).seen
                wanted = row if isinstance(edit, AttentionRow) else (0, 0, 0, 0, 1)
                for name in (name for name in ATTENTION if "cross" in name):
                    _, here, _, each = name.split(".")
                    meant = layer in (None, int(here)) and head in (None, int(each))
                    assert np.array_equal(seen[name][1], wanted) is meant
                    assert np.array_equal(seen[name][0], plain[name][0])


def test_blending_one_head_towards_nothing_takes_away_that_heads_context(toy: Toy) -> None:
    target = (4, 5, EOS)
    totals = {
        head: follow(toy, SOURCES[0], target, (AttentionBlend(1.0, "nothing", None, 0, head),)).total for head in (None, 0, 1)
    }
    assert len({round(total, 4) for total in [*totals.values(), follow(toy, SOURCES[0], target).total]}) == 4


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (AttentionRow(0, (1.0,) * 5, head=2), "no attention head 2: it has 2"),
        (AttentionRow(0, (1.0,) * 5, layer=-1), "no attention layer -1: it has 2"),
        (AttentionBlend(0.5, layer=2), "no attention layer 2"),
        (AttentionBlend(0.5, head=0.0), "no attention head 0.0"),  # type: ignore[arg-type]
        (AttentionBlend(0.5, head=True), "no attention head True"),
    ],
)
def test_a_layer_or_head_that_is_not_there_is_told_so(toy: Toy, edit: Edit, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_edits((edit,), toy.config, 5, 9)
    with pytest.raises(InputError, match="no attention head 1: it has 1, counted from 0"):
        check_edits((AttentionBlend(0.5, head=1),), small_config(), 5, 9)


def test_prices_erasure_and_a_step_in_full_need_no_more_than_the_protocol(toy: Toy) -> None:
    target, edits = (4, 5, EOS), (AttentionBlend(1.0, "last", head=1), AttentionRow(0, (0.0, 0.0, 1.0, 0.0, 0.0), layer=1))
    plain, edited = follow(toy, SOURCES[0], target), follow(toy, SOURCES[0], target, edits)
    (joint,), own = priced(toy, SOURCES[0], edits, target, target, {})
    assert joint.change == pytest.approx(edited.total - plain.total, abs=1e-5)
    assert [price.edit for price in own] == [0, 1]
    logps_T, change_TS = erased(toy, SOURCES[0], target)
    assert np.allclose(logps_T, plain.logps, atol=1e-5) and change_TS.shape == (3, 5)
    full = step_in_full(toy, SOURCES[0], target, 2)
    assert np.allclose(full.vectors["decoder.1.cross.0"], plain.seen["decoder.1.cross.0"][2], atol=1e-6) and not full.equations
    with pytest.raises(InputError, match="those of a recurrent network"):
        gradient_norms(toy, SOURCES[0])


@pytest.mark.parametrize(
    ("kind", "encoder", "words"), [(Seq2Seq, "none", "LanguageModel"), (LanguageModel, "text", "reads nothing")]
)
def test_a_network_that_cannot_be_is_refused(kind: type[nn.Module], encoder: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        kind(small_config(encoder=encoder))
