from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import Hypothesis, Scoring, SearchTree, from_json, to_json
from seqdemo.search import SearchResult, search, word_rules
from seqdemo.search.rules import NoRepeats, Now, Rules, rules_of
from seqdemo.state import MANY, Logits, top
from tests.search_tables import (
    BOS,
    CASES,
    EOS,
    PROCESSORS,
    Lookup,
    Tables,
    all_outputs,
    case_lookup,
    check_tree,
    lookup_step,
    penalty,
    repeats,
    total_of,
)

# How each family stops and what becomes of the unfinished at the limit; those of fairseq count the last <eos> apart.
FREE = {"hf_early_true": "true", "hf_early_false": "false", "hf_early_never": "never"}
FAIRSEQ = ("fairseq", "diverse_groups", "siblings")


def options_of(case: dict[str, Any]) -> tuple[SearchOptions, int]:
    """The search a case asks for, and its limit: where <eos> is forced, it comes after the last token that counts."""
    asked = case["search"]
    family, norm = asked["family"], asked.get("length_penalty", {"kind": "none"})
    options = SearchOptions(
        strategy={"greedy": "greedy", "sample_deterministic": "sample"}.get(family, "beam"),
        beam=asked["beam"],
        nbest=asked.get("n_best", 1),
        length_norm="power" if norm["kind"] == "len_pow" else "none",
        alpha=norm.get("alpha", 1.0),
        min_length=asked.get("min_len", 0),
        no_repeat=asked.get("no_repeat_ngram", 0),
        may_repeat=tuple(asked.get("ngram_exempt", ())),
        prefix=tuple(asked.get("target", ())),
        groups=asked.get("groups", 1),
        diversity=asked.get("strength", 0.0),
        siblings=asked.get("rate", 0.0),
        finished="leave" if family == "opennmt" else "free" if family in (*FREE, *FAIRSEQ) else "stay",
        early="true" if family in FAIRSEQ else FREE.get(family, "false"),
        at_limit="force" if family in FAIRSEQ else "cut",
        top_p=asked.get("top_p", 1.0),
    )
    return options, asked["max_len"] + (family in (*FAIRSEQ, "forced"))


def test_no_case_is_missing() -> None:
    families = {"stay", "greedy", "forced", "sample_deterministic", "opennmt", *FREE, *FAIRSEQ}
    assert len(CASES) == 45 and {case["search"]["family"] for case in CASES} == families


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_worked_examples(case: dict[str, Any]) -> None:
    lookup = case_lookup(case)
    options, limit = options_of(case)
    step, state = lookup_step(lookup)
    (found,) = search(step, state, 1, options, [limit], bos=case["bos_id"], eos=case["eos_id"])
    expected = case["expected"]
    assert [hypothesis.score for hypothesis in found.hypotheses] == pytest.approx([item["score"] for item in expected], rel=1e-6)
    if case["expect_mode"] == "nbest":
        assert [list(hypothesis.tokens) for hypothesis in found.hypotheses] == [item["tokens"] for item in expected]
        assert [hypothesis.total for hypothesis in found.hypotheses] == pytest.approx(
            [item["logprob"] for item in expected], rel=1e-6
        )
    check_tree(found.tree, case["eos_id"])
    for step, listed in enumerate(case.get("trace", ())):
        first = [node for node in found.tree if node.step == step and node.rank < options.beam]
        assert [node.total for node in first] == pytest.approx(listed["logprobs"], abs=1e-6)
        assert [node.token for node in first] == listed["ids"]


@pytest.mark.parametrize("case", [case for case in PROCESSORS if case["op"] == "no_repeat_ngram"], ids=str)
def test_repeated_ngrams_are_banned(case: dict[str, Any]) -> None:
    logp_KV = torch.zeros(len(case["context"]), case["vocab"])
    rules, rows_K = Rules([NoRepeats(case["n"])]), torch.zeros(len(logp_KV), dtype=torch.long)
    said = rules.start(case["context"])
    masked_KV = rules.apply(Logits.of(logp_KV), Now(0, rows_K, rows_K + 9, EOS), said).values_KV
    assert [row.isinf().nonzero().flatten().tolist() for row in masked_KV] == case["banned"]
    assert not logp_KV.isinf().any()  # the model's own answer is left as it was


# ---------------------------------------------------------------------------------------------- a beam written out in full

Slot = tuple[float, tuple[int, ...], bool]  # total, tokens, ended


def continuations(lookup: Lookup, slots: Sequence[Slot], options: SearchOptions, last: bool) -> list[Slot]:
    found = []
    for place, (total, tokens, ended) in enumerate(slots):
        if ended:
            found.append((-total, place, -1, (total, tokens, True)))
            continue
        for token, logp in enumerate(lookup((BOS, *tokens))):
            early = token == EOS and len(tokens) < options.min_length
            late = token != EOS and last and options.at_limit == "force"
            if logp > -math.inf and not early and not late and not repeats((*tokens, token), options.no_repeat):
                found.append((-total - logp, place, token, (total + logp, (*tokens, token), token == EOS)))
    return [slot for *_, slot in sorted(found)]


def score(slot: Slot, options: SearchOptions) -> float:
    return slot[0] / penalty(max(len(slot[1]), 1), options)


def best_of(slots: Sequence[Slot], count: int, options: SearchOptions) -> list[Slot]:
    return sorted(slots, key=lambda slot: -score(slot, options))[:count]


def beam_in_full(lookup: Lookup, options: SearchOptions, limit: int) -> list[tuple[int, ...]]:
    """All three rules, one hypothesis at a time."""
    slots: list[Slot] = [(0.0, (), False)]
    bank: list[Slot] = []
    best_ended = False
    for written in range(1, limit + 1):
        found = continuations(lookup, slots, options, written == limit)[: 2 * options.beam]
        if not found:
            break
        front = found[: options.beam]
        best_ended = best_ended or front[0][2]
        if options.finished == "stay":
            slots = front
            if all(ended for *_, ended in slots):
                break
            continue
        leaving = options.finished == "leave"
        places = options.nbest if leaving else max(1, math.ceil(options.patience * options.beam))
        slots = [slot for slot in (front if leaving else found) if not slot[2]][: options.beam]
        bank = best_of([*bank, *(slot for slot in front if slot[2] or written == limit)], places, options)
        full = len(bank) == places
        if not slots or (leaving and full and best_ended):
            break
        if not leaving and full and hopeless(slots[0][0], written, limit, score(bank[-1], options), options):
            break
    return [tokens for _, tokens, _ in best_of(bank or slots, options.nbest, options)]


def hopeless(best: float, written: int, limit: int, worst: float, options: SearchOptions) -> bool:
    lengths = {"true": [], "false": [written], "never": range(written, limit + 1)}[options.early]
    return all(best / penalty(length, options) <= worst for length in lengths)


beam_options = st.builds(
    SearchOptions,
    beam=st.integers(1, 6),
    nbest=st.integers(1, 6),
    length_norm=st.sampled_from(["none", "power", "gnmt"]),
    alpha=st.sampled_from([-1.0, 0.0, 0.6, 1.0, 2.0]),
    min_length=st.integers(0, 2),
    no_repeat=st.integers(0, 3),
    finished=st.sampled_from(["stay", "free", "leave"]),
    early=st.sampled_from(["true", "false", "never"]),
    patience=st.sampled_from([0.5, 1.0, 1.0, 2.0]),
    at_limit=st.sampled_from(["cut", "force"]),
)
tables = st.builds(
    Tables,
    seed=st.integers(0, 10_000),
    sentences=st.just(1),
    vocabulary=st.integers(4, 7),
    steps=st.integers(1, 4),
    banned=st.sampled_from([0.0, 0.5]),
    dead=st.sampled_from([0.0, 0.4]),
)


@settings(max_examples=600)
@given(tables, beam_options, st.integers(3, 9))
def test_beam_does_what_it_says(table: Tables, options: SearchOptions, limit: int) -> None:
    (found,) = search(table.step, table.start(), 1, options, [limit])
    assert [hypothesis.tokens for hypothesis in found.hypotheses] == beam_in_full(table.lookup(), options, limit)


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from(["stay", "free"]))
def test_equal_candidates_go_by_hypothesis_and_then_by_token(seed: int, beam: int, finished: str) -> None:
    """Log probabilities that are sums of powers of two, so that equal totals are equal to the last bit."""
    rows = -torch.randint(1, 4, (8, 8), generator=torch.Generator().manual_seed(seed)).double()
    options = SearchOptions(beam=beam, nbest=beam, finished=finished, early="never")
    step, state = lookup_step(lambda read: rows[read[-1]].tolist())
    (found,) = search(step, state, 1, options, [5])
    assert [hypothesis.tokens for hypothesis in found.hypotheses] == beam_in_full(
        lambda read: rows[read[-1]].tolist(), options, 5
    )


# ------------------------------------------------------------------------------------------------------------ properties


def check_found(found: SearchResult, options: SearchOptions, table: Tables, sentence: int = 0) -> None:
    check_tree(found.tree)
    scores = [hypothesis.score for hypothesis in found.hypotheses]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in found.hypotheses:
        check_hypothesis(hypothesis, found.tree, options, table, sentence)


def check_hypothesis(hypothesis: Hypothesis, tree: SearchTree, options: SearchOptions, table: Tables, sentence: int) -> None:
    tokens = hypothesis.tokens
    assert hypothesis.total == pytest.approx(total_of(table.lookup(sentence), tokens), abs=1e-5)
    assert hypothesis.total == pytest.approx(math.fsum(hypothesis.logps), abs=1e-9)
    covered = options.coverage * table.coverage(tokens, sentence) if options.coverage else 0.0
    assert hypothesis.score == pytest.approx(
        hypothesis.total / penalty(max(len(tokens), 1), options) + covered, rel=1e-5, abs=1e-5
    )
    assert hypothesis.finished == (tokens[-1:] == (EOS,))
    assert tree.tokens(hypothesis.node) == tokens
    if tokens:
        assert tree.total[hypothesis.node] == hypothesis.total
        assert tree[hypothesis.node].fate == ("finished" if hypothesis.finished else "kept")


@given(tables, beam_options)
def test_totals_and_scores_add_up(table: Tables, options: SearchOptions) -> None:
    options = dataclasses.replace(options, no_repeat=0, coverage=0.0)
    (found,) = search(table.step, table.start(), 1, options, [6])
    check_found(found, options, table)
    outputs = [hypothesis.tokens for hypothesis in found.hypotheses]
    bank = math.ceil(options.patience * options.beam)
    most = {"stay": options.beam, "free": bank, "leave": options.nbest}[options.finished]
    assert len(set(outputs)) == len(outputs) <= min(options.nbest, most)


@given(tables, st.integers(1, 6), st.sampled_from(["stay", "free"]))
def test_the_tree_holds_the_best_candidates_of_each_step(table: Tables, beam: int, finished: str) -> None:
    (found,) = search(table.step, table.start(), 1, SearchOptions(beam=beam, finished=finished, early="never"), [5])
    tree = found.tree
    for step in range(int(tree.step.max(initial=-1)) + 1):
        here = np.flatnonzero(tree.step == step)
        parents = np.flatnonzero((tree.step == step - 1) & (tree.fate == 0)) if step else np.array([-1])
        prefixes = [(tree.total[parent] if step else 0.0, (BOS, *tree.tokens(parent))) for parent in parents]
        totals = [total + logp for total, prefix in prefixes for logp in table.lookup()(prefix) if logp > -math.inf]
        totals.sort(reverse=True)
        assert list(tree.total[here]) == pytest.approx(totals[: len(here)], abs=1e-5)
        assert list(tree.rank[here]) == sorted(set(tree.rank[here].tolist()))
        taken = tree.fate[here] != 1
        assert (tree.fate[here] == 0).sum() <= beam >= (tree.fate[here] == 2).sum()
        assert taken.sum() <= (beam if finished == "stay" or step == 4 else 2 * beam)
        finished_before = int((tree.fate[tree.step < step] == 2).sum()) if finished == "stay" else 0
        assert min(2 * beam - finished_before, len(totals)) <= len(here) <= min(2 * beam, len(totals))


def test_wide_beams_rank_in_double_precision() -> None:
    """Ranked in single precision first, where totals near -5,000 that differ by 1e-5 are all alike."""
    row = torch.arange(30).double().mul(-1e-5)
    step, state = lookup_step(lambda read: ((row - 5000) if len(read) == 1 else row.flip(0)).tolist(), torch.float32)
    (found,) = search(step, state, 1, SearchOptions(beam=60), [2])
    for step_number in (0, 1):
        totals = found.tree.total[found.tree.step == step_number]
        assert list(totals) == sorted(totals, reverse=True)


def test_pruned_candidates_say_by_how_much_they_missed() -> None:
    logp = torch.tensor([0.05, 0.0, 0.1, 0.4, 0.25, 0.2]).log()
    step, state = lookup_step(lambda read: logp.tolist())
    (found,) = search(step, state, 1, SearchOptions(beam=2), [1])
    assert [(node.token, node.fate) for node in found.tree] == [(3, "kept"), (4, "kept"), (5, "pruned"), (2, "pruned")]
    missed = [0, 0, math.log(0.25 / 0.2), math.log(0.25 / 0.1)]
    assert list(found.tree.missed) == pytest.approx(missed, abs=1e-6)


@pytest.mark.parametrize(
    ("fourth", "last", "missed"),
    [(0.16, (3, 5), 0.2 / 0.16), (0.1, (4, EOS), 0.65 * 0.3 / (0.25 * 0.4))],
    ids=["one that goes on, by the last that does", "one that ends, by the last place where that counts"],
)
def test_where_ending_frees_a_place_there_are_two_bars(fourth: float, last: tuple[int, int], missed: float) -> None:
    rows = [{3: 0.65, 4: 0.25, 5: 0.1}, {EOS: 0.4, 3: 0.3, 4: 0.2, 5: fourth}]
    step, state = lookup_step(lambda read: [math.log(rows[len(read) > 1].get(token, 1e-9)) for token in range(6)])
    (found,) = search(step, state, 1, SearchOptions(beam=2, finished="free", early="never"), [3])
    second = [(found.tree.tokens(node.index), node.fate) for node in found.tree if node.step == 1]
    assert second == [((3, EOS), "finished"), ((3, 3), "kept"), ((3, 4), "kept"), (last, "pruned")]
    assert found.tree.missed[found.tree.step == 1][-1] == pytest.approx(math.log(missed), abs=1e-6)


@given(tables, st.integers(1, 6))
def test_greedy_is_a_beam_of_one(table: Tables, limit: int) -> None:
    (greedy,) = search(table.step, table.start(), 1, SearchOptions(strategy="greedy"), [limit])
    (beam,) = search(table.step, table.start(), 1, SearchOptions(beam=1), [limit])
    assert [dataclasses.replace(one, node=-1) for one in greedy.hypotheses] == [
        dataclasses.replace(one, node=-1) for one in beam.hypotheses
    ]
    lookup, tokens = table.lookup(), greedy.hypotheses[0].tokens
    assert all(token == int(np.argmax(lookup((BOS, *tokens[:place])))) for place, token in enumerate(tokens))


@pytest.mark.parametrize("seed", range(40))
def test_a_beam_that_never_prunes_finds_the_best(seed: int) -> None:
    vocabulary, limit = ((3, 4), (4, 3), (5, 2), (9, 2))[seed % 4]
    table = Tables(seed, 1, vocabulary, limit)
    options = SearchOptions(
        beam=vocabulary**limit,
        nbest=10,
        length_norm=("none", "power", "gnmt")[seed % 3],
        finished=("stay", "free")[seed % 2],
        early="never",
        at_limit=("cut", "force")[seed // 2 % 2],
    )
    (found,) = search(table.step, table.start(), 1, options, [limit])
    best = all_outputs(table.lookup(), vocabulary, limit, options)[:10]
    assert [hypothesis.tokens for hypothesis in found.hypotheses] == [tokens for *_, tokens in best]
    assert [hypothesis.score for hypothesis in found.hypotheses] == pytest.approx([score for score, *_ in best], abs=1e-5)


any_options = st.one_of(
    st.builds(dataclasses.replace, beam_options, coverage=st.sampled_from([0.0, 0.3])),
    st.builds(
        SearchOptions,
        strategy=st.sampled_from(["greedy", "sample", "exact"]),
        samples=st.integers(1, 12),
        temperature=st.sampled_from([0.5, 1.0, 2.0]),
        top_k=st.integers(0, 3),
        top_p=st.sampled_from([0.6, 1.0]),
        seed=st.integers(0, 5),
        nbest=st.integers(1, 3),
        coverage=st.sampled_from([0.0, 0.3]),
        at_limit=st.sampled_from(["cut", "force"]),
    ),
)


@given(st.integers(0, 10_000), any_options, st.lists(st.integers(3, 9), min_size=2, max_size=6))
def test_batch_mates_change_nothing(seed: int, options: SearchOptions, limits: list[int]) -> None:
    table = Tables(seed, len(limits), 6, 4, banned=0.3)
    together = search(table.step, table.start(), len(limits), options, limits)
    for sentence, limit in enumerate(limits):
        (alone,) = search(table.step, table.start([sentence]), 1, options, [limit])
        assert alone.hypotheses == together[sentence].hypotheses
        assert to_json(alone.tree) == to_json(together[sentence].tree)


@given(st.integers(0, 10_000), any_options)
def test_recording_changes_nothing_and_neither_does_asking_again(seed: int, options: SearchOptions) -> None:
    table = Tables(seed, 2, 6, 4, levels=2)
    recorded, again, bare = (
        search(table.step, table.start(), 2, options, [7, 5], record=record) for record in (True, True, False)
    )
    for one, two, three in zip(recorded, again, bare):
        assert one.hypotheses == two.hypotheses and to_json(one.tree) == to_json(two.tree)
        assert tuple(dataclasses.replace(hypothesis, node=-1) for hypothesis in one.hypotheses) == three.hypotheses
        assert not len(three.tree)


@given(st.integers(0, 10_000), any_options)
def test_coverage_counts_real_positions_only(seed: int, options: SearchOptions) -> None:
    """The second sentence has a padded position, whose attention must not enter."""
    table = Tables(seed, 2, 5, 3)
    options = dataclasses.replace(options, coverage=0.7, no_repeat=0)
    for sentence, found in enumerate(search(table.step, table.start(), 2, options, [5, 4])):
        check_found(found, options, table, sentence)


@given(st.integers(0, 10_000), st.one_of(any_options, st.builds(SearchOptions, beam=st.just(60))))
def test_logits_are_searched_as_their_log_probabilities_are(seed: int, options: SearchOptions) -> None:
    """In double precision, and shifted by amounts without rounding, so that both are the same to the last bit."""
    table = Tables(seed, 2, 6, 4, banned=0.2)
    table.logp, table.weights = table.logp.double().mul(2**20).round().div(2**20), table.weights.double()

    def as_logits(tokens_K: Tensor, state: Any) -> tuple[Logits, Any]:
        logp_KV, state = table.step(tokens_K, state)
        shift_K1 = (tokens_K[:, None] - 2).double() * 3
        return Logits(logp_KV + shift_K1, shift_K1), state

    plain, logits = (search(step, table.start(), 2, options, [7, 5]) for step in (table.step, as_logits))
    for one, other in zip(plain, logits):
        assert one.hypotheses == other.hypotheses
        assert to_json(one.tree) == to_json(other.tree)


def test_coverage_needs_attention() -> None:
    step, state = lookup_step(lambda read: [0.0] * 4)
    with pytest.raises(InputError, match="needs a model with attention"):
        search(step, state, 1, SearchOptions(coverage=0.1), [3])


norms = st.sampled_from(["none", "power", "gnmt"])


@given(norms, st.floats(-2, 2), st.floats(-50, 0), st.floats(-20, 0), st.floats(-3, 0), st.tuples(*[st.integers(1, 40)] * 3))
def test_nothing_below_a_prefix_outreaches_it(
    norm: str, alpha: float, total: float, rest: float, coverage: float, lengths: tuple[int, int, int]
) -> None:
    shortest, length, longest = sorted(lengths)
    scoring = Scoring(norm, alpha, 1.0)
    reach = scoring.reach(total, shortest, longest)
    assert scoring.score(total + rest, length, coverage) <= reach + 1e-9 * (1 + abs(reach))
    assert reach in (scoring.score(total, shortest), scoring.score(total, longest))
    in_arrays = scoring.reach(np.array([total]), shortest, np.array([longest]))
    assert in_arrays.item() == pytest.approx(reach)


def test_records_go_through_json() -> None:
    table = Tables(1, 1, 6, 4)
    (found,) = search(table.step, table.start(), 1, SearchOptions(), [5])
    assert all(from_json(to_json(hypothesis)) == hypothesis for hypothesis in found.hypotheses)
    assert to_json(from_json(to_json(found.tree))) == to_json(found.tree)


# ------------------------------------------------------------------------------------------------------------ rules and edges


def test_a_finished_hypothesis_can_be_pushed_out_where_it_stays_but_not_where_it_is_banked() -> None:
    """<eos> at once has 0.3; then two live hypotheses of 0.35 each push it out, and each comes to 0.175 in the end."""
    halves = {EOS: 0.5, 3: 0.25, 4: 0.25}
    rows = {(): {EOS: 0.3, 3: 0.7}, (3,): {4: 0.5, 5: 0.5}, (3, 4): halves, (3, 5): halves}
    step, state = lookup_step(lookup := lambda read: [math.log(rows.get(read[1:], {}).get(token, 1e-9)) for token in range(6)])
    (stay,) = search(step, state, 1, SearchOptions(beam=2, finished="stay"), [4])
    (free,) = search(step, state, 1, SearchOptions(beam=2, finished="free", early="never"), [4])
    assert [hypothesis.tokens for hypothesis in stay.hypotheses] == [(3, 4, EOS), (3, 5, EOS)]
    assert [hypothesis.tokens for hypothesis in free.hypotheses] == [(EOS,), (3, 4, EOS)]
    assert stay.hypotheses[0].total == pytest.approx(total_of(lookup, (3, 4, EOS))) == pytest.approx(math.log(0.175))


def search_name(options: SearchOptions) -> str:
    return "-".join(map(str, (options.strategy, options.finished, options.beam, options.groups, options.siblings)))


EVERY_SEARCH = [
    SearchOptions(strategy="greedy"),
    SearchOptions(),
    SearchOptions(finished="free"),
    SearchOptions(finished="leave"),
    SearchOptions(beam=60),
    SearchOptions(beam=4, groups=2),
    SearchOptions(siblings=0.1),
    SearchOptions(strategy="stochastic"),
    SearchOptions(strategy="sample", samples=5),
    SearchOptions(strategy="exact"),
]


@pytest.mark.parametrize("options", EVERY_SEARCH, ids=search_name)
def test_a_dead_end_gives_back_what_was_written(options: SearchOptions) -> None:
    """After two tokens nothing is possible."""
    step, state = lookup_step(
        lambda read: [-math.inf] * 3 + ([math.log(0.6), math.log(0.4)] if len(read) < 3 else [-math.inf] * 2)
    )
    (found,) = search(step, state, 1, options, [9])
    assert found.hypotheses and not any(hypothesis.finished for hypothesis in found.hypotheses)
    best = found.hypotheses[0]
    assert best.tokens == (3, 3) or options.strategy in ("sample", "stochastic")
    assert len(best.tokens) == 2 and found.tree.tokens(best.node) == best.tokens


@pytest.mark.parametrize("options", EVERY_SEARCH, ids=search_name)
def test_where_nothing_is_possible_the_output_is_empty_and_unfinished(options: SearchOptions) -> None:
    step, state = lookup_step(lambda read: [-math.inf] * 5)
    (found,) = search(step, state, 1, options, [3])
    assert found.hypotheses[0] == Hypothesis((), (), 0.0, 0.0, False)


@pytest.mark.parametrize("options", EVERY_SEARCH, ids=search_name)
@pytest.mark.parametrize("wrong", [math.nan, math.inf], ids=str)
@pytest.mark.parametrize("as_logits", [False, True], ids=["log-probabilities", "logits"])
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "bare"])
def test_scores_that_are_no_numbers_are_blamed_on_the_weights(
    options: SearchOptions, wrong: float, as_logits: bool, record: bool
) -> None:
    """One value at the second step, in a row that would not have been chosen."""
    step, state = lookup_step(lambda read: [-9.0, -8.0, -7.0, -0.7, wrong if len(read) == 2 else -0.8])

    def logits(tokens_K: Tensor, state: Any) -> tuple[Logits, Any]:
        values_KV, state = step(tokens_K, state)
        return Logits(values_KV, values_KV.logsumexp(1, keepdim=True)), state

    for rules in ([], word_rules(options, EOS, required=[[(3, 3)]]), rules_of(SearchOptions(repetition_penalty=1.1))):
        with pytest.raises(InputError, match="NaN or infinite, so its weights are broken"):
            search(logits if as_logits else step, state, 1, options, [5], rules=rules, record=record)


def test_cancelling_cuts_at_once() -> None:
    table = Tables(0, 3, 6, 2)
    asked = itertools.count(1)
    options = SearchOptions(finished="free", min_length=8)
    for found in search(table.step, table.start(), 3, options, [20] * 3, cancel=lambda: next(asked) >= 3):
        assert {len(hypothesis.tokens) for hypothesis in found.hypotheses} == {3}


def test_limits_are_checked() -> None:
    table = Tables(0, 2, 6, 2)
    with pytest.raises(InputError, match="1 limits for 2 sentences"):
        search(table.step, table.start(), 2, SearchOptions(), [3])
    with pytest.raises(InputError, match="minimum length of 4"):
        search(table.step, table.start(), 2, SearchOptions(min_length=4), [9, 4])
    with pytest.raises(InputError, match="at least 1"):
        search(table.step, table.start(), 2, SearchOptions(), [3, 0])
    assert search(table.step, table.start([]), 0, SearchOptions(), []) == []


def test_the_shorter_of_two_limits_holds() -> None:
    table = Tables(0, 1, 6, 2)
    (found,) = search(table.step, table.start(), 1, SearchOptions(max_length=3, min_length=2), [20])
    assert all(len(hypothesis.tokens) == 3 for hypothesis in found.hypotheses)


@pytest.mark.parametrize("distinct", [3, 40, 10**6], ids=["many-ties", "ties", "hardly-a-tie"])
@pytest.mark.parametrize("width", [64 * 60, 6_000, 6_007], ids=["blocks-of-64", "blocks-of-100", "no-blocks"])
def test_top_of_wide_rows_is_that_of_a_stable_sort(width: int, distinct: int) -> None:
    torch.manual_seed(0)
    scores_KV = torch.randint(0, distinct, (MANY // width + 1, width)).float()
    scores_KV[3] = -math.inf
    scores_KV[4, 7:] = -math.inf
    for count in (1, 4, 11):
        values, places = top(scores_KV, count)
        expected = scores_KV.sort(dim=1, descending=True, stable=True)
        real = values > -math.inf
        assert torch.equal(values, expected.values[:, :count])
        assert torch.equal(places[real], expected.indices[:, :count][real])


@given(
    st.lists(st.lists(st.sampled_from([-math.inf, 0.0, 1.0, 2.0, 3.0]), min_size=6, max_size=6), min_size=1, max_size=4),
    st.integers(1, 8),
)
def test_top_settles_ties_by_place(rows: list[list[float]], count: int) -> None:
    values, places = top(torch.tensor(rows), count)
    for row, best, where in zip(rows, values.tolist(), places.tolist()):
        expected = sorted(range(6), key=lambda place: (-row[place], place))[:count]
        assert best == [row[place] for place in expected]
        assert [place for place in where if row[place] > -math.inf] == [place for place in expected if row[place] > -math.inf]


def test_top_keeps_nan_first_among_ties() -> None:
    values, places = top(torch.tensor([[2.0, 1.0, 1.0, math.nan, 1.0]]), 3)
    assert math.isnan(values[0, 0]) and values[0, 1:].tolist() == [2.0, 1.0]
    assert places.tolist() == [[3, 0, 1]]
