from __future__ import annotations

import collections
import dataclasses
import math
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from seqdemo.config import SearchOptions
from seqdemo.search import search
from seqdemo.search.sampling import distribution, draw
from tests.search_tables import BOS, EOS, PROCESSORS, Tables, check_tree, lookup_step, penalty, total_of

SAMPLE = SearchOptions(strategy="sample")


@pytest.mark.parametrize("case", [case for case in PROCESSORS if "kept" in case], ids=lambda case: case["op"])
def test_worked_examples_of_cutting_the_distribution(case: dict[str, Any]) -> None:
    if case["op"] != "top_k":
        asked = {"top_p": 1.0, case["op"]: case.get("p", case.get("mass"))}
        kept = distribution(torch.tensor(case["probs"]).log(), 1.0, 0, **asked)
    else:
        kept = distribution(torch.tensor(case["logits"]).float().log_softmax(1), 1.0, case["k"], 1.0)
    assert [sorted(row.nonzero().flatten().tolist()) for row in kept] == [sorted(tokens) for tokens in case["kept"]]
    assert kept.sum(1).tolist() == pytest.approx([1.0] * len(kept))


@given(st.lists(st.floats(-6, 6), min_size=3, max_size=8), st.floats(0.3, 3), st.integers(0, 8), st.floats(0.05, 1))
def test_what_is_drawn_from_is_the_formula(logits: list[float], temperature: float, top_k: int, top_p: float) -> None:
    logp = torch.tensor([logits], dtype=torch.float64).log_softmax(1)
    weights = sorted(((math.exp(value / temperature), -token) for token, value in enumerate(logp[0].tolist())), reverse=True)
    kept = weights[: top_k or len(weights)]
    mass, expected = 0.0, {}
    for weight, token in kept:
        if mass < top_p * sum(weight for weight, _ in kept) - 1e-6 or not expected:
            expected[-token] = weight
        mass += weight
    whole = sum(expected.values())
    drawn_from = distribution(logp, temperature, top_k, top_p)[0].tolist()
    assert drawn_from == pytest.approx([expected.get(token, 0.0) / whole for token in range(len(logits))], abs=1e-5)


@given(st.lists(st.floats(-6, 6), min_size=3, max_size=8), st.floats(0.05, 0.99), st.floats(0.0, 1.0))
def test_typical_tokens_and_those_not_far_below_the_best(logits: list[float], mass: float, share: float) -> None:
    """Of q over what min-p leaves: in the order of | -log q - entropy |, tokens are kept until their mass reaches the share."""
    logp = torch.tensor([logits], dtype=torch.float64).log_softmax(1)
    p = [math.exp(value) for value in logp[0].tolist()]
    left = {token: value for token, value in enumerate(p) if value >= share * max(p) * (1 - 1e-9)}
    q = {token: value / sum(left.values()) for token, value in left.items()}
    entropy = -sum(value * math.log(value) for value in q.values() if value)
    kept, reached = {}, 0.0
    for token in sorted(q, key=lambda token: (round(abs(-math.log(q[token]) - entropy), 9), token)):
        if reached >= mass - 1e-6:
            break
        kept[token] = q[token]
        reached += q[token]
    drawn_from = distribution(logp, 1.0, 0, 1.0, typical=mass, min_p=share)[0]
    ties = len({round(abs(-math.log(value) - entropy), 9) for value in q.values()}) < len(q)
    at_edge = any(abs(value - share * max(p)) < 1e-9 for value in p)
    assume((not ties and not at_edge) or len(set(logits)) == len(logits))
    assume(not ties)
    whole = sum(kept.values())
    assert drawn_from.tolist() == pytest.approx([kept.get(token, 0.0) / whole for token in range(len(logits))], abs=1e-5)


def test_a_number_falls_on_the_token_whose_share_it_lies_in() -> None:
    shares = torch.tensor([[0.0, 0.25, 0.0, 0.5, 0.25, 0.0]], dtype=torch.float64)
    numbers = [0.0, 0.2499, 0.25, 0.7499, 0.75, 1 - 1e-9]
    assert draw(shares.expand(6, -1).contiguous(), torch.tensor(numbers, dtype=torch.float64)).tolist() == [1, 1, 3, 3, 4, 4]


def test_frequencies_are_those_of_the_distribution() -> None:
    """1,000 first tokens at temperature 2 against p^(1/2) / Z, within four standard deviations."""
    table = Tables(2, 1, 6, 1)
    options = dataclasses.replace(SAMPLE, samples=1000, temperature=2.0, seed=5)
    (found,) = search(table.step, table.start(), 1, options, [1], record=False)
    counts = collections.Counter(hypothesis.tokens[0] for hypothesis in found.hypotheses)
    weights = [math.exp(logp / 2) for logp in table.lookup()((BOS,))]
    for token, weight in enumerate(weights):
        share = weight / sum(weights)
        assert abs(counts[token] - 1000 * share) < 4 * math.sqrt(1000 * share * (1 - share))


@given(st.integers(0, 1000), st.integers(1, 25), st.floats(0.5, 2), st.sampled_from(["none", "gnmt"]))
def test_recorded_log_probabilities_are_the_models_own(seed: int, samples: int, temperature: float, norm: str) -> None:
    table = Tables(seed, 1, 6, 3)
    options = dataclasses.replace(SAMPLE, samples=samples, temperature=temperature, top_k=4, seed=seed, length_norm=norm)
    (found,) = search(table.step, table.start(), 1, options, [6])
    check_tree(found.tree)
    assert len(found.hypotheses) == samples
    scores = [hypothesis.score for hypothesis in found.hypotheses]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in found.hypotheses:
        assert hypothesis.total == pytest.approx(total_of(table.lookup(), hypothesis.tokens), abs=1e-5)
        assert hypothesis.score == pytest.approx(hypothesis.total / penalty(len(hypothesis.tokens), options), abs=1e-5)
        assert found.tree.tokens(hypothesis.node) == hypothesis.tokens


def test_the_tree_shows_each_drawn_token_beside_the_most_probable_ones() -> None:
    table = Tables(4, 1, 30, 3)
    (found,) = search(table.step, table.start(), 1, dataclasses.replace(SAMPLE, samples=4, temperature=3.0), [5])
    for hypothesis in found.hypotheses:
        path = found.tree.path(hypothesis.node)
        for place, row in enumerate(path):
            logp = table.lookup()((BOS, *hypothesis.tokens[:place]))
            best = sorted(range(30), key=lambda token: -logp[token])[:10]
            assert found.tree[row].rank == (best.index(found.tree[row].token) if found.tree[row].token in best else 10)
    first = [node for node in found.tree if node.step == 0]
    drawn = [node for node in first if node.fate != "pruned"]
    assert len(drawn) == 4 and len(first) == 40 + sum(node.rank == 10 for node in drawn)


def test_the_seed_decides() -> None:
    table = Tables(6, 1, 8, 4)

    def outputs(**options: Any) -> list[tuple[int, ...]]:
        (found,) = search(table.step, table.start(), 1, dataclasses.replace(SAMPLE, **options), [8])
        return [hypothesis.tokens for hypothesis in found.hypotheses]

    assert outputs(seed=1, samples=5) == outputs(seed=1, samples=5) != outputs(seed=2, samples=5)
    few, many = (collections.Counter(outputs(seed=3, samples=samples)) for samples in (5, 20))
    assert few <= many  # more samples are further ones


def test_cold_sampling_is_greedy() -> None:
    table = Tables(8, 1, 8, 4)
    (cold,) = search(table.step, table.start(), 1, dataclasses.replace(SAMPLE, temperature=0.01, samples=3), [8])
    (greedy,) = search(table.step, table.start(), 1, SearchOptions(strategy="greedy"), [8])
    assert {hypothesis.tokens for hypothesis in cold.hypotheses} == {greedy.hypotheses[0].tokens}


def test_what_is_impossible_is_never_drawn() -> None:
    row = [-math.inf, -math.inf, math.log(0.5), -math.inf, math.log(0.5), -math.inf]
    step, state = lookup_step(lambda read: row)
    (found,) = search(step, state, 1, dataclasses.replace(SAMPLE, samples=200, min_length=2), [20])
    drawn = {token for hypothesis in found.hypotheses for token in hypothesis.tokens}
    assert drawn == {EOS, 4} and all(hypothesis.tokens[:2] == (4, 4) for hypothesis in found.hypotheses)
