"""Beams that are not ranked by log probability alone: groups and siblings written out in full, samples against their theory."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import from_json, to_json
from seqdemo.search import error_between, search
from seqdemo.search.beam import under_maximum
from tests.search_tables import BOS, EOS, Lookup, Tables, all_outputs, lookup_step, penalty, total_of

Tokens = tuple[int, ...]
Slot = tuple[float, Tokens, bool]  # what ranks it, tokens, ended


def score(slot: Slot, options: SearchOptions) -> float:
    return slot[0] / penalty(max(len(slot[1]), 1), options)


def continued(lookup: Lookup, slots: list[Slot], options: SearchOptions, last: bool, said: dict[int, int]) -> list[Slot]:
    """Every continuation of a group's hypotheses, best first."""
    found = []
    for place, (rank, tokens, ended) in enumerate(slots):
        if ended:
            found.append((-rank, place, -1, (rank, tokens, True)))
            continue
        row = {token: logp for token, logp in enumerate(lookup((BOS, *tokens))) if logp > -math.inf}
        if last and options.at_limit == "force":
            row = {token: logp for token, logp in row.items() if token == EOS}
        order = sorted(row, key=lambda token: (-row[token], token))
        for k, token in enumerate(order, 1):
            paid = options.diversity * said.get(token, 0) if options.groups > 1 else options.siblings * k * bool(tokens)
            value = rank + row[token] - paid
            found.append((-value, place, token, (value, (*tokens, token), token == EOS)))
    return [slot for *_, slot in sorted(found)]


def diverse_in_full(lookup: Lookup, options: SearchOptions, limit: int) -> list[Tokens]:
    each = options.beam // options.groups
    groups: list[list[Slot]] = [[(0.0, (), False)] for _ in range(options.groups)]
    bank: list[Slot] = []
    for written in range(1, limit + 1):
        said: dict[int, int] = collections.Counter()
        fronts, following = [], []
        for slots in groups:
            found = continued(lookup, slots, options, written == limit, said)[: 2 * each]
            said.update(slot[1][-1] for slot in found[:each] if len(slot[1]) == written)
            fronts.append(found[:each])
            following.append([slot for slot in found if not slot[2]][:each])
        if options.finished == "stay":
            groups = fronts
            if all(ended for slots in groups for *_, ended in slots):
                break
            continue
        groups = following
        banked = [slot for front in fronts for slot in front if slot[2] or written == limit]
        bank = sorted([*bank, *banked], key=lambda slot: -score(slot, options))[: options.beam]
        live = [slot[0] for slots in groups for slot in slots]
        if not live or (len(bank) == options.beam and hopeless(max(live), written, limit, score(bank[-1], options), options)):
            break
    listed = bank or [slot for slots in groups for slot in slots]
    return [tokens for _, tokens, _ in sorted(listed, key=lambda slot: -score(slot, options))[: options.nbest]]


def hopeless(best: float, written: int, limit: int, worst: float, options: SearchOptions) -> bool:
    lengths = {"true": [], "false": [written], "never": range(written, limit + 1)}[options.early]
    return all(best / penalty(length, options) <= worst for length in lengths)


@st.composite
def diverse_options(draw: Any) -> SearchOptions:
    groups, each = draw(st.sampled_from([1, 2, 3])), draw(st.integers(1, 3))
    return SearchOptions(
        beam=groups * each,
        groups=groups,
        diversity=draw(st.sampled_from([0.0, 0.37, 1.21])),
        siblings=draw(st.sampled_from([0.29, 1.03])) if groups == 1 else 0.0,
        nbest=9,
        length_norm=draw(st.sampled_from(["none", "power"])),
        finished=draw(st.sampled_from(["stay", "free"])),
        early=draw(st.sampled_from(["true", "false", "never"])),
        at_limit=draw(st.sampled_from(["cut", "force"])),
    )


@settings(max_examples=200)
@given(st.integers(0, 10_000), diverse_options(), st.integers(3, 7), st.integers(3, 7))
def test_groups_and_siblings_do_what_they_say(seed: int, options: SearchOptions, limit: int, vocabulary: int) -> None:
    table = Tables(seed, 1, vocabulary, 4)
    table.logp = table.logp.double()
    (found,) = search(*lookup_step(table.lookup()), 1, options, [limit])
    assert [hypothesis.tokens for hypothesis in found.hypotheses] == diverse_in_full(table.lookup(), options, limit)
    tree, lookup = found.tree, table.lookup()
    assert tree.ranked_by is not None and from_json(to_json(tree)) == tree
    for hypothesis in found.hypotheses:
        assert hypothesis.total == pytest.approx(total_of(lookup, hypothesis.tokens), abs=1e-9)
        assert hypothesis.score <= hypothesis.total / penalty(len(hypothesis.tokens), options) + 1e-9
        ranked = tree.ranked_by[hypothesis.node] / penalty(len(hypothesis.tokens), options)
        assert hypothesis.score == pytest.approx(ranked, abs=1e-9)
    for node in tree:
        parent = tree[node.parent] if node.parent >= 0 else None
        assert node.total == pytest.approx((parent.total if parent else 0.0) + node.logp, abs=1e-5)
        assert node.missed >= 0 and (parent is None or parent.fate == "kept")


def test_groups_that_pay_find_other_outputs() -> None:
    table = Tables(3, 1, 12, 4)
    alike, apart = (
        search(table.step, table.start(), 1, SearchOptions(beam=6, groups=3, diversity=strength, nbest=6), [6])[0]
        for strength in (0.0, 3.0)
    )
    beginnings = [{hypothesis.tokens[0] for hypothesis in found.hypotheses} for found in (alike, apart)]
    assert len(beginnings[0]) < len(beginnings[1])
    narrow = search(table.step, table.start(), 1, SearchOptions(beam=2, nbest=2), [6])[0]
    outputs = collections.Counter(hypothesis.tokens for hypothesis in alike.hypotheses)
    assert outputs == {hypothesis.tokens: 3 for hypothesis in narrow.hypotheses}


UNFIT = [
    ({"beam": 5, "groups": 2}, "A beam of 5 cannot be cut into 2 equal groups"),
    ({"beam": 4, "groups": 2, "siblings": 0.5}, "not for both"),
    ({"beam": 4, "groups": 2, "finished": "leave"}, "choose finished stay or free"),
    ({"strategy": "stochastic", "length_norm": "power"}, "take normalisation and coverage off"),
    ({"patience": 0}, "Patience must be"),
    ({"typical": 0}, "typical must be"),
    ({"min_p": 1.5}, "min-p must be"),
    ({"diversity": -1}, "Diversity must be"),
    ({"siblings": -1}, "Siblings must be"),
]


@pytest.mark.parametrize(("options", "sentence"), UNFIT, ids=str)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        SearchOptions(**options)


# ---------------------------------------------------------------------------------------------- samples without replacement


def drawn(table: Tables, beam: int, seed: int, limit: int) -> list[Tokens]:
    options = SearchOptions(strategy="stochastic", beam=beam, nbest=beam, seed=seed)
    (found,) = search(table.step, table.start(), 1, options, [limit], record=False)
    return [hypothesis.tokens for hypothesis in found.hypotheses]


DRAWS = 1_500


def test_stochastic_beams_draw_without_replacement_from_the_model() -> None:
    """The first output is drawn from p, the second from what p leaves: P(a, b) = p(a) p(b) / (1 - p(a)); chi-square over all
    ordered pairs. One degree of freedom fewer than outputs; up to 4 standard deviations are accepted."""
    table, limit = Tables(2, 1, 4, 2), 2
    p = {tokens: math.exp(total) for _, total, tokens in all_outputs(table.lookup(), 4, limit, SearchOptions())}
    assert sum(p.values()) == pytest.approx(1, abs=1e-5)
    pairs = collections.Counter(tuple(drawn(table, 2, seed, limit)) for seed in range(DRAWS))
    expected = {(a, b): p[a] * p[b] / (1 - p[a]) for a, b in itertools.permutations(p, 2)}
    assert set(pairs) <= set(expected)
    common = {pair: share for pair, share in expected.items() if DRAWS * share >= 5}
    rest = DRAWS - sum(pairs[pair] for pair in common), 1 - sum(common.values())
    cells = [(pairs[pair], share) for pair, share in common.items()] + [rest]
    chi_square = sum((count - DRAWS * share) ** 2 / (DRAWS * share) for count, share in cells)
    freedom = len(cells) - 1
    assert abs(chi_square - freedom) < 4 * math.sqrt(2 * freedom)


def test_each_output_is_among_them_as_often_as_theory_says() -> None:
    """Inclusion probabilities of 3 draws without replacement, by enumerating all orders; 4 standard deviations."""
    table, limit = Tables(6, 1, 4, 2), 2
    p = {tokens: math.exp(total) for _, total, tokens in all_outputs(table.lookup(), 4, limit, SearchOptions())}
    inclusion: dict[Tokens, float] = collections.Counter()
    for a, b, c in itertools.permutations(p, 3):
        share = p[a] * p[b] / (1 - p[a]) * p[c] / (1 - p[a] - p[b])
        for tokens in (a, b, c):
            inclusion[tokens] += share
    seen: dict[Tokens, int] = collections.Counter()
    for seed in range(DRAWS):
        outputs = drawn(table, 3, seed, limit)
        assert len(set(outputs)) == len(outputs) == 3
        seen.update(outputs)
    for tokens, share in inclusion.items():
        assert abs(seen[tokens] - DRAWS * share) < 4 * math.sqrt(DRAWS * share * (1 - share)) + 1


def test_perturbed_scores_are_gumbels_and_stand_in_the_tree() -> None:
    """The largest of all is Gumbel(0): mean 0.5772, variance pi^2 / 6. The best child of a hypothesis has its parent's score."""
    table, largest = Tables(4, 1, 6, 3), []
    for seed in range(400):
        options = SearchOptions(strategy="stochastic", beam=4, nbest=4, seed=seed)
        (found,) = search(table.step, table.start(), 1, options, [5])
        tree, scores = found.tree, [hypothesis.score for hypothesis in found.hypotheses]
        assert tree.ranked_by is not None and scores == sorted(scores, reverse=True)
        largest.append(scores[0])
        if seed > 20:
            continue
        for hypothesis in found.hypotheses:
            assert tree.ranked_by[hypothesis.node] == hypothesis.score
            assert hypothesis.total == pytest.approx(total_of(table.lookup(), hypothesis.tokens), abs=1e-5)
        for index in range(len(tree)):
            children = [tree.ranked_by[row] for row in range(len(tree)) if tree.parent[row] == index]
            assert all(child <= tree.ranked_by[index] + 1e-9 for child in children)
        kept = [row for row in range(len(tree)) if tree.fate[row] == 0 and tree.step[row] == 0]
        assert max(tree.ranked_by[tree.step == 1]) == pytest.approx(max(tree.ranked_by[kept]), abs=1e-9) or not kept
    mean, deviation = sum(largest) / len(largest), math.pi / math.sqrt(6 * len(largest))
    assert abs(mean - 0.5772) < 4 * deviation


@given(st.lists(st.floats(-9, 3), min_size=2, max_size=6, unique=True), st.floats(-9, 3))
def test_the_stable_form_is_the_formula(drawn_scores: list[float], largest: float) -> None:
    """-log(exp(-G_h) - exp(-Z) + exp(-g)), which is G_h for the largest."""
    found = under_maximum(torch.tensor([drawn_scores], dtype=torch.float64), torch.tensor([[largest]], dtype=torch.float64))[0]
    z = max(drawn_scores)
    wanted = [-math.log(math.exp(-largest) - math.exp(-z) + math.exp(-g)) for g in drawn_scores]
    assert found.tolist() == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_batch_mates_and_recording_change_no_sample() -> None:
    table, options = Tables(8, 4, 6, 3), SearchOptions(strategy="stochastic", beam=3, seed=5, min_length=1, no_repeat=2)
    together = search(table.step, table.start(), 4, options, [4, 6, 5, 6])
    for sentence, limit in enumerate([4, 6, 5, 6]):
        (alone,) = search(table.step, table.start([sentence]), 1, options, [limit])
        assert alone.hypotheses == together[sentence].hypotheses and alone.tree == together[sentence].tree
    bare = search(table.step, table.start(), 4, options, [4, 6, 5, 6], record=False)
    for one, other in zip(bare, together):
        assert one.hypotheses == tuple(dataclasses.replace(hypothesis, node=-1) for hypothesis in other.hypotheses)


def test_scores_that_were_paid_for_are_not_compared_with_exact_ones() -> None:
    table = Tables(1, 1, 6, 3)
    (exact,) = search(table.step, table.start(), 1, SearchOptions(strategy="exact"), [4])
    for options in (SearchOptions(siblings=0.5), SearchOptions(beam=4, groups=2), SearchOptions(strategy="stochastic")):
        (found,) = search(table.step, table.start(), 1, options, [4])
        with pytest.raises(InputError, match="differ in more than the strategy"):
            error_between(exact, found)
