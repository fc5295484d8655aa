"""Exact searches that share the model's steps: each finds what it finds alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.network.coders import DECODERS
from seqdemo.records import to_json
from seqdemo.search import UNDER_WAY, SearchResult, search
from seqdemo.search.exact import TOGETHER
from seqdemo.state import grown
from tests.search_tables import Tables
from tests.small_models import sentences, small

EXACT = SearchOptions(strategy="exact", nbest=1)
options = st.builds(
    SearchOptions,
    strategy=st.just("exact"),
    nbest=st.integers(1, 4),
    length_norm=st.sampled_from(["none", "power", "gnmt"]),
    alpha=st.sampled_from([-0.5, 0.6, 1.0]),
    coverage=st.sampled_from([0.0, 0.3]),
    no_repeat=st.sampled_from([0, 1, 2]),
    min_length=st.integers(0, 2),
    max_length=st.sampled_from([0, 4]),
    at_limit=st.sampled_from(["cut", "force"]),
    expansions=st.sampled_from([1, 7, 30, 300]),
    frontier=st.sampled_from([15, 100_000]),
)


def told(found: SearchResult) -> list[Any]:
    """All there is to it but for the time it took."""
    assert found.certificate is not None
    return [found.hypotheses, replace(found.certificate, seconds=0.0), to_json(found.tree)]


class Watched:
    """A table's step, which notes of every call how many rows and how many sentences it has."""

    def __init__(self, table: Tables) -> None:
        self.table, self.calls = table, list[tuple[int, int]]()

    def __call__(self, tokens_K: Tensor, state: Any) -> tuple[Tensor, Any]:
        self.calls.append((len(tokens_K), len(state.memory.mask_BS)))
        return self.table.step(tokens_K, state)


def alone(table: Tables, options: SearchOptions, limits: Sequence[int]) -> list[SearchResult]:
    return [search(table.step, table.start([place]), 1, options, [limit])[0] for place, limit in enumerate(limits)]


@settings(max_examples=30)
@given(st.integers(0, 10_000), options, st.lists(st.integers(3, 6), min_size=2, max_size=6), st.sampled_from([0.0, 0.3]))
def test_a_batch_finds_what_its_sentences_find_alone(seed: int, options: SearchOptions, limits: list[int], banned: float) -> None:
    table = Tables(seed, len(limits), 6, 4, banned=banned, dead=banned / 10)
    together = search(table.step, table.start(), len(limits), options, limits)
    assert [told(found) for found in together] == [told(found) for found in alone(table, options, limits)]


def test_where_a_budget_runs_out_the_others_go_on() -> None:
    table = Tables(3, 12, 12, 5)
    limits = list(range(3, 15))
    wide = replace(EXACT, min_length=2)
    needed = sorted(found.certificate.expansions for found in alone(table, wide, limits) if found.certificate)
    tight = replace(wide, expansions=needed[6] - 1)
    together = search(table.step, table.start(), 12, tight, limits)
    assert {found.certificate.proved for found in together if found.certificate} == {True, False}
    assert [told(found) for found in together] == [told(found) for found in alone(table, tight, limits)]
    assert all(found.certificate.expansions <= tight.expansions for found in together if found.certificate)


def test_more_sentences_than_are_searched_at_a_time_come_back_in_order() -> None:
    count = 2 * UNDER_WAY + 3
    table = Tables(5, count, 8, 4)
    limits = [3 + place % 4 for place in range(count)]
    watched = Watched(table)
    together = search(watched, table.start(), count, EXACT, limits)
    one_by_one = alone(table, EXACT, limits)
    assert [told(found) for found in together] == [told(found) for found in one_by_one]
    assert all(rows % members == 0 and members <= UNDER_WAY for rows, members in watched.calls)
    assert all(rows <= TOGETHER or members == 1 for rows, members in watched.calls)
    expanded = sum(found.certificate.expansions for found in one_by_one if found.certificate)
    assert expanded <= sum(rows for rows, _ in watched.calls) <= 2 * expanded
    assert len(watched.calls) < count, "fewer steps than sentences"


def test_one_sentence_takes_no_row_more_than_it_expands() -> None:
    table = Tables(5, 1, 30, 6)
    watched = Watched(table)
    (found,) = search(watched, table.start(), 1, replace(EXACT, min_length=3), [6])
    assert found.certificate is not None and sum(rows for rows, _ in watched.calls) == found.certificate.expansions


class Deep(NamedTuple):
    """A state that grows along its second axis, as keys and values of a Transformer do."""

    read_KT: Tensor
    keys_KTV: Tensor
    position_K: Tensor


class Growing:
    """log p = log softmax(mean over all t of M[y_t, t] + B_sentence): every token that was read counts, at its own place."""

    def __init__(self, seed: int, sentences: int, vocabulary: int = 6, longest: int = 9) -> None:
        torch.manual_seed(seed)
        self.keys_VTV = torch.randn(vocabulary, longest, vocabulary) * 3
        self.bias_BV = torch.randn(sentences, vocabulary)
        self.depths = set[int]()

    def step(self, tokens_K: Tensor, state: tuple[Deep, Tensor]) -> tuple[Tensor, tuple[Deep, Tensor]]:
        deep, bias_KV = state
        self.depths.add(len(deep.position_K.unique()))
        new_KV = self.keys_VTV[tokens_K, deep.position_K]
        keys_KTV = grown(deep.keys_KTV, new_KV, deep.position_K)
        read_KT = grown(deep.read_KT, tokens_K + 1, deep.position_K)
        real_KT = torch.arange(keys_KTV.shape[1]) <= deep.position_K[:, None]
        assert torch.equal(real_KT, read_KT > 0), "what was read stands at its own places, and nothing else anywhere"
        mean_KV = (keys_KTV * real_KT[..., None]).sum(1) / (1 + deep.position_K[:, None])
        return (mean_KV + bias_KV).log_softmax(1), (Deep(read_KT, keys_KTV, deep.position_K + 1), bias_KV)

    def start(self, sentences: Sequence[int]) -> tuple[Deep, Tensor]:
        rows, vocabulary = len(sentences), self.bias_BV.shape[1]
        empty = Deep(
            torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows, 0, vocabulary), torch.zeros(rows, dtype=torch.long)
        )
        return empty, self.bias_BV[list(sentences)]


@settings(max_examples=30)
@given(st.integers(0, 10_000), options, st.lists(st.integers(3, 7), min_size=2, max_size=6))
def test_states_that_grow_are_searched_together_as_alone(seed: int, options: SearchOptions, limits: list[int]) -> None:
    model, wanted = Growing(seed, len(limits)), replace(options, coverage=0.0)
    together = search(model.step, model.start(range(len(limits))), len(limits), wanted, limits)
    for sentence, (limit, found) in enumerate(zip(limits, together)):
        (one,) = search(model.step, model.start([sentence]), 1, wanted, [limit])
        assert [best.tokens for best in one.hypotheses] == [best.tokens for best in found.hypotheses]
        assert [best.score for best in one.hypotheses] == pytest.approx([best.score for best in found.hypotheses], abs=1e-5)
        assert one.certificate is not None and found.certificate is not None
        assert one.certificate.expansions == found.certificate.expansions
        assert one.certificate.sentence == found.certificate.sentence
        assert one.tree.token.tolist() == found.tree.token.tolist()


def test_searches_at_different_depths_share_a_call() -> None:
    model = Growing(1, 12)
    search(model.step, model.start(range(12)), 12, replace(EXACT, min_length=2), [7] * 12)
    assert max(model.depths) > 1


def test_a_search_that_is_stopped_ends_in_every_sentence() -> None:
    table = Tables(7, 40, 30, 6)
    wanted = replace(EXACT, min_length=4)
    at_once = search(table.step, table.start(), 40, wanted, [6] * 40, cancel=lambda: True)
    assert all(found.certificate is not None and found.certificate.expansions == 1 for found in at_once)
    asked = itertools.count(1)
    later = search(table.step, table.start(), 40, wanted, [6] * 40, cancel=lambda: next(asked) > 130)
    proved = [found.certificate.proved for found in later if found.certificate]
    whole = search(table.step, table.start(), 40, wanted, [6] * 40)
    assert not all(proved) and len(proved) == 40
    for stopped, through in zip(later, whole):
        assert stopped.certificate is not None and through.certificate is not None
        assert stopped.certificate.proved or stopped.certificate.sentence.startswith("The search was stopped after")
        assert stopped.certificate.bound >= through.hypotheses[0].score - 1e-9
        assert stopped.certificate.expansions <= through.certificate.expansions


def test_progress_is_told_of_every_sentence() -> None:
    table, seen = Tables(7, 3, 20, 5), list[tuple[int, float, float]]()
    found = search(table.step, table.start(), 3, EXACT, [5, 6, 7], progress=lambda *values: seen.append(values))
    last = [(one.certificate.expansions, one.hypotheses[0].score) for one in found if one.certificate]
    assert set(last) <= {(expansions, best) for expansions, best, _ in seen}
    assert all(bound >= best for _, best, bound in seen)


@pytest.mark.parametrize("norm", ["none", "gnmt"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_with_every_decoder_sentences_of_any_length_find_the_same(decoder: str, norm: str) -> None:
    """Padding and row counts differ, so totals agree within rounding."""
    model = small(decoder=decoder).eval()
    with torch.no_grad():
        model.readout.weight.mul_(6)
    lengths = (7, 1, 4, 2, 7, 3)
    wanted = replace(EXACT, nbest=3, length_norm=norm, expansions=400, coverage=0.2 * decoder.startswith("attend"))

    def found_in(source_BS: Tensor) -> list[SearchResult]:
        with torch.inference_mode():
            step, state = model.stepper(model.read(source_BS, source_BS != 0))
            return search(step, state, len(source_BS), wanted, [6] * len(source_BS))

    source_BS = sentences(lengths)
    for row_S, length, together in zip(source_BS, lengths, found_in(source_BS)):
        (one,) = found_in(row_S[None, :length])
        assert one.certificate is not None and together.certificate is not None
        assert [best.tokens for best in one.hypotheses] == [best.tokens for best in together.hypotheses]
        assert [best.score for best in one.hypotheses] == pytest.approx([best.score for best in together.hypotheses], abs=1e-4)
        assert one.certificate.expansions == together.certificate.expansions
        assert one.certificate.bound == pytest.approx(together.certificate.bound, abs=1e-4)
        assert one.tree.token.tolist() == together.tree.token.tolist()
