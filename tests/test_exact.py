from __future__ import annotations

import dataclasses
import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import from_json, to_json
from seqdemo.search import SearchResult, error_between, search
from tests.search_tables import BOS, CASES, EOS, Tables, all_outputs, case_lookup, check_tree, lookup_step, penalty

EXACT = SearchOptions(strategy="exact", nbest=1)


def exact_of(table: Tables, limit: int, options: SearchOptions, **arguments: Any) -> SearchResult:
    return search(table.step, table.start(), 1, options, [limit], **arguments)[0]


@pytest.mark.parametrize("case", [case for case in CASES if "exact_topn" in case], ids=lambda case: case["id"])
def test_worked_examples(case: dict[str, Any]) -> None:
    """Scores that are no log probabilities are shifted below 0 by 1 a token and back: there all outputs have one length."""
    asked, expected, lookup = case["search"], case["exact_topn"], case_lookup(case)
    norm = asked.get("length_penalty", {"kind": "none"})
    shift = 1.0 if case["model"]["scale"] == "score" else 0.0
    options = SearchOptions(
        strategy="exact",
        nbest=len(expected),
        length_norm="power" if norm["kind"] == "len_pow" else "none",
        alpha=norm.get("alpha", 1.0),
        min_length=asked.get("min_len", 0),
        no_repeat=asked.get("no_repeat_ngram", 0),
    )
    step, state = lookup_step(lambda read: [logp - shift for logp in lookup(read)])
    (found,) = search(step, state, 1, options, [asked["max_len"]], bos=case["bos_id"], eos=case["eos_id"])
    scores = [hypothesis.score + shift * len(hypothesis.tokens) for hypothesis in found.hypotheses]
    assert scores == pytest.approx([item["score"] for item in expected], rel=1e-6, abs=1e-9)
    if len({round(item["score"], 9) for item in expected}) == len(expected):
        assert [list(hypothesis.tokens) for hypothesis in found.hypotheses] == [item["tokens"] for item in expected]
    assert found.certificate is not None and found.certificate.proved
    check_tree(found.tree, case["eos_id"])


def random_options(number: int) -> SearchOptions:
    """Every combination in turn."""
    choices = itertools.product(("none", "power", "gnmt"), (1, 3), (0, 2), (0, 2), ("cut", "force"), (0.0, 0.5))
    norm, nbest, min_length, no_repeat, at_limit, coverage = list(choices)[number % 96]
    return SearchOptions(
        strategy="exact",
        nbest=nbest,
        length_norm=norm,
        alpha=(0.6, 1.0, -0.5)[number % 3],
        min_length=min_length,
        no_repeat=no_repeat,
        at_limit=at_limit,
        coverage=coverage,
    )


@pytest.mark.parametrize("block", range(10))
def test_exact_search_equals_enumeration(block: int) -> None:
    """50 random tables a block."""
    for number in range(50 * block, 50 * block + 50):
        vocabulary, limit = ((4, 5), (5, 4), (6, 3), (4, 3))[number // 96 % 4]
        table, options = Tables(number, 1, vocabulary, limit, banned=0.2 * (number % 2)), random_options(number)
        found = exact_of(table, limit, options)
        best = all_outputs(table.lookup(), vocabulary, limit, options, table.coverage)[: options.nbest]
        assert [hypothesis.tokens for hypothesis in found.hypotheses if hypothesis.tokens] == [tokens for *_, tokens in best]
        if not best:
            assert found.certificate is not None and "dead end" in found.certificate.sentence
            continue
        assert [hypothesis.score for hypothesis in found.hypotheses] == pytest.approx([score for score, *_ in best], abs=1e-5)
        assert [hypothesis.total for hypothesis in found.hypotheses] == pytest.approx([total for _, total, _ in best], abs=1e-5)
        assert found.certificate is not None and found.certificate.proved
        assert found.certificate.bound == found.hypotheses[0].score
        check_tree(found.tree)


tables = st.builds(
    Tables, seed=st.integers(0, 10_000), sentences=st.just(1), vocabulary=st.integers(4, 8), steps=st.integers(1, 4)
)


@given(tables, st.integers(1, 8), st.integers(1, 6), st.sampled_from(["stay", "free"]), st.sampled_from(["none", "gnmt"]))
def test_no_beam_finds_better(table: Tables, limit: int, beam: int, finished: str, norm: str) -> None:
    options = SearchOptions(beam=beam, finished=finished, length_norm=norm, nbest=1)
    exact = exact_of(table, limit, dataclasses.replace(options, strategy="exact"))
    (walked,) = search(table.step, table.start(), 1, options, [limit])
    error = error_between(exact, walked)
    assert exact.hypotheses[0].score >= walked.hypotheses[0].score - 1e-5
    assert error.missed == (exact.hypotheses[0].tokens != walked.hypotheses[0].tokens)
    assert error.gap == pytest.approx(exact.hypotheses[0].score - walked.hypotheses[0].score)


@given(tables, st.integers(1, 40), st.sampled_from(["none", "power", "gnmt"]), st.sampled_from([-1.0, 1.0]), st.integers(1, 3))
def test_a_spent_budget_leaves_a_bound_that_holds(table: Tables, expansions: int, norm: str, alpha: float, nbest: int) -> None:
    options = SearchOptions(strategy="exact", nbest=nbest, length_norm=norm, alpha=alpha, expansions=expansions)
    found = exact_of(table, 5, options)
    best = all_outputs(table.lookup(), table.vocabulary, 5, options)
    certificate = found.certificate
    assert certificate is not None and certificate.expansions <= expansions
    assert certificate.bound >= best[0][0] - 1e-5
    if certificate.proved:
        assert found.hypotheses[0].tokens == best[0][2]
        assert "roved" in certificate.sentence
    else:
        assert certificate.sentence.startswith(f"The budget ended after {certificate.expansions} expansion")
        assert f"{certificate.bound:.4f}".replace("-", "−") in certificate.sentence
    check_tree(found.tree)


@given(tables, st.integers(3, 7), st.integers(1, 3))
def test_the_tree_of_a_proof_shows_what_the_best_missed_continuation_of_each_prefix_was(
    table: Tables, limit: int, nbest: int
) -> None:
    found = exact_of(table, limit, dataclasses.replace(EXACT, nbest=nbest))
    tree, least, lookup = found.tree, found.hypotheses[-1].total, table.lookup()
    for prefix in (-1, *(node.index for node in tree if node.fate == "kept")):
        tokens = tree.tokens(prefix)
        children = [tree[row] for row in range(len(tree)) if tree.parent[row] == prefix]
        if len(tokens) >= limit - 1:
            assert "pruned" not in {child.fate for child in children}, "outputs are cut here: each is complete"
            continue
        followed = {child.token for child in children if child.fate == "kept"} | {EOS}
        others = [logp for token, logp in enumerate(lookup((BOS, *tokens))) if token not in followed]
        pruned = [child for child in children if child.fate == "pruned"]
        assert [child.logp for child in pruned] == pytest.approx(sorted(others, reverse=True)[:1], abs=1e-6)
        assert all(child.total + child.missed <= least + 1e-5 for child in pruned)
    for step in range(limit):
        ranked = sorted((node for node in tree if node.step == step), key=lambda node: node.rank)
        assert [node.rank for node in ranked] == list(range(len(ranked)))
        assert [node.total for node in ranked] == sorted((node.total for node in ranked), reverse=True)


@pytest.mark.parametrize("min_length", [0, 2])
def test_the_empty_output_is_always_priced(min_length: int) -> None:
    """Its price is the model's own log probability, even if the options forbid it."""
    table = Tables(3, 1, 6, 3)
    found = exact_of(table, 5, dataclasses.replace(EXACT, min_length=min_length))
    assert found.certificate is not None
    assert found.certificate.empty_logp == pytest.approx(table.lookup()((BOS,))[EOS])


def test_open_prefixes_have_a_budget() -> None:
    table = Tables(5, 1, 40, 6)
    found = exact_of(table, 6, dataclasses.replace(EXACT, frontier=20, min_length=4))
    assert found.certificate is not None and not found.certificate.proved
    assert found.certificate.sentence.startswith("The budget of open prefixes ended")
    whole = exact_of(table, 6, dataclasses.replace(EXACT, min_length=4))
    assert found.hypotheses[0].score <= whole.hypotheses[0].score <= found.certificate.bound


def test_it_can_be_watched_and_stopped() -> None:
    table = Tables(7, 1, 30, 6)
    options = dataclasses.replace(EXACT, min_length=4)
    seen: list[tuple[int, float, float]] = []
    whole = exact_of(table, 6, options, progress=lambda *values: seen.append(values))
    assert whole.certificate is not None and whole.certificate.proved
    expansions, bests, bounds = zip(*seen)
    assert list(expansions) == sorted(expansions) and expansions[-1] == whole.certificate.expansions
    assert list(bests) == sorted(bests) and list(bounds) == sorted(bounds, reverse=True)
    assert all(bound >= whole.hypotheses[0].score >= best for best, bound in zip(bests, bounds))
    asked = itertools.count(1)
    stopped = exact_of(table, 6, options, cancel=lambda: next(asked) >= 8)
    assert stopped.certificate is not None and not stopped.certificate.proved
    assert stopped.certificate.expansions == expansions[7] and stopped.certificate.bound == pytest.approx(bounds[7])
    assert stopped.certificate.sentence.startswith("The search was stopped after")


def test_before_anything_is_complete_the_best_prefix_comes_back_unfinished() -> None:
    table = Tables(9, 1, 8, 4)
    found = exact_of(table, 9, dataclasses.replace(EXACT, min_length=6, expansions=7))
    (only,) = found.hypotheses
    assert not only.finished and 0 < len(only.tokens) < 6 and found.tree.tokens(only.node) == only.tokens
    assert found.certificate is not None and not found.certificate.proved
    assert "no complete output was found" in found.certificate.sentence


def test_normalised_scores_say_why_they_are_unproved() -> None:
    table = Tables(11, 1, 30, 8)
    found = exact_of(table, 30, dataclasses.replace(EXACT, length_norm="power", expansions=300))
    assert found.certificate is not None and not found.certificate.proved
    assert "With length normalisation a longer output may always catch up" in found.certificate.sentence
    assert found.hypotheses[0].score == pytest.approx(
        found.hypotheses[0].total / penalty(len(found.hypotheses[0].tokens), dataclasses.replace(EXACT, length_norm="power"))
    )


def test_a_search_error_is_told_from_none_and_from_not_knowing() -> None:
    """A beam of one takes the better first token, which leads nowhere good."""
    rows = {(): {3: 0.6, 4: 0.4}, (3,): {EOS: 0.1, 3: 0.45, 4: 0.45}, (4,): {EOS: 1.0}}
    step, state = lookup_step(lambda read: [math.log(rows.get(read[1:], {EOS: 1.0}).get(token, 1e-9)) for token in range(5)])
    narrow, wide = (search(step, state, 1, SearchOptions(beam=beam), [4])[0] for beam in (1, 2))
    (exact,) = search(step, state, 1, EXACT, [4])
    (unsure,) = search(step, state, 1, dataclasses.replace(EXACT, expansions=1), [4])
    assert error_between(exact, narrow).missed is True
    assert error_between(exact, narrow).gap == pytest.approx(math.log(0.4 / 0.27), abs=1e-6)
    assert error_between(exact, wide).missed is False
    assert error_between(unsure, wide).missed is None
    assert (
        "nothing better was found, but the budget ended after 1 expansion: nothing better than"
        in error_between(unsure, wide).sentence
    )
    with pytest.raises(InputError, match="Only exact search"):
        error_between(wide, narrow)
    ends_at_once = lookup_step(lambda read: [math.log(1.0 if token == EOS else 1e-9) for token in range(5)])
    (elsewhere,) = search(*ends_at_once, 1, SearchOptions(beam=2), [4])
    with pytest.raises(InputError, match="differ in their input or their edits"):
        error_between(exact, elsewhere)


def test_no_search_error_is_claimed_of_an_output_that_broke_off() -> None:
    table = Tables(9, 1, 8, 4)
    (unfinished,) = search(table.step, table.start(), 1, dataclasses.replace(EXACT, min_length=6, expansions=7), [9])
    (beam,) = search(table.step, table.start(), 1, SearchOptions(min_length=6), [9])
    assert unfinished.hypotheses[0].score > beam.hypotheses[0].score and not unfinished.complete(unfinished.hypotheses[0])
    error = error_between(unfinished, beam)
    assert error.missed is None and error.gap is None
    assert error.sentence == "Not known: the budget ended after 7 expansions: no complete output was found."


def test_a_beam_that_broke_off_did_not_find_the_best_output() -> None:
    """3 is the better beginning, and nothing may follow it."""
    rows = {(): {3: 0.9, 4: 0.1}, (3,): {}}
    step, state = lookup_step(
        lambda read: [math.log(p) if (p := rows.get(read[1:], {EOS: 1.0}).get(token, 0.0)) else -math.inf for token in range(5)]
    )
    (narrow,) = search(step, state, 1, SearchOptions(beam=1), [4])
    (exact,) = search(step, state, 1, EXACT, [4])
    assert narrow.hypotheses[0].tokens == (3,) and exact.hypotheses[0].tokens == (4, EOS)
    error = error_between(exact, narrow)
    assert error.missed is None and "the beam broke off before an output was complete" in error.sentence


def test_outputs_cut_at_the_limit_are_whole_ones() -> None:
    table, options = Tables(9, 1, 8, 4), SearchOptions(min_length=2, beam=8)
    (exact,), (beam,) = (
        search(table.step, table.start(), 1, dataclasses.replace(options, strategy=name), [3]) for name in ("exact", "beam")
    )
    assert not exact.hypotheses[0].finished and error_between(exact, beam).missed is False


@pytest.mark.parametrize(
    "other",
    [{"length_norm": "power"}, {"min_length": 1}, {"at_limit": "force"}, {"no_repeat": 2}, {"max_length": 3}, {"coverage": 0.5}],
    ids=str,
)
def test_searches_of_different_scores_or_outputs_are_not_compared(other: dict[str, Any]) -> None:
    table = Tables(9, 1, 8, 4)
    (exact,), (beam,), (same,) = (
        search(table.step, table.start(), 1, options, [5])
        for options in (EXACT, SearchOptions(**other), SearchOptions(alpha=0.3, nbest=1))
    )
    with pytest.raises(InputError, match="differ in more than the strategy"):
        error_between(exact, beam)
    assert error_between(exact, same).sentence


def test_certificates_go_through_json() -> None:
    found = exact_of(Tables(1, 1, 6, 3), 4, EXACT)
    assert found.certificate is not None
    assert from_json(json.loads(json.dumps(to_json(found.certificate)))) == found.certificate


def test_scores_above_zero_are_refused() -> None:
    step, state = lookup_step(lambda read: [0.5] * 4)
    with pytest.raises(InputError, match="never above 0"):
        search(step, state, 1, EXACT, [3])


def test_each_sentence_of_a_batch_is_proved_by_itself() -> None:
    table = Tables(13, 3, 6, 4)
    limits = [5, 3, 6]
    for sentence, found in enumerate(search(table.step, table.start(), 3, EXACT, limits)):
        best = all_outputs(table.lookup(sentence), 6, limits[sentence], EXACT)[0]
        assert found.hypotheses[0].tokens == best[2] and found.certificate is not None and found.certificate.proved
