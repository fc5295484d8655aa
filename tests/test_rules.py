"""Every search under every rule, compared with an enumeration of all outputs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from seqdemo.config import SearchOptions
from seqdemo.records import to_json
from seqdemo.search import Required, Rule, SearchResult, search, word_rules
from seqdemo.search.rules import RULES, Now, RepetitionPenalty, Rules, automaton, rules_of
from seqdemo.state import Logits, logp_of
from tests.search_tables import BOS, EOS, PROCESSORS, Lookup, Tables, check_tree, lookup_step, penalty, total_of

Tokens = tuple[int, ...]


class Asked(NamedTuple):
    """What is asked of an output beside the options of the search."""

    given: Tokens = ()
    forced: tuple[tuple[int, Tokens], ...] = ()
    banned: tuple[tuple[int, Tokens], ...] = ()
    required: tuple[tuple[Tokens, ...], ...] = ()

    def rules(self, options: SearchOptions) -> list[Rule]:
        return word_rules(options, EOS, self.forced, self.banned, self.required)

    def allows(self, tokens: Tokens) -> bool:
        whole = self.given + tokens
        held = all(whole[place : place + len(each)] == each for place, each in self.forced)
        broken = any(whole[place : place + len(each)] == each for place, each in self.banned)
        return held and not broken and all(any(stands(each, tokens) for each in word) for word in self.required)


def stands(word: Tokens, tokens: Tokens) -> bool:
    return any(tokens[place : place + len(word)] == word for place in range(len(tokens)))


def repeats_but(tokens: Tokens, n: int, exempt: Tokens) -> bool:
    """Whether an n-gram without any of the exempt tokens comes twice."""
    grams = [tokens[place : place + n] for place in range(len(tokens) - n + 1)] if n else []
    counted = [gram for gram in grams if not set(gram) & set(exempt)]
    return len(set(counted)) < len(counted)


def penalised(lookup: Lookup, factor: float, given: Tokens = ()) -> Lookup:
    """p_i = exp(x_i / (factor if i was said else 1)) / Z, where x_i is below 0 by multiplying."""

    def rescaled(read: Tokens) -> list[float]:
        said = {*given, *read[1:]}
        values = [value * factor if token in said else value for token, value in enumerate(lookup(read))]
        whole = math.log(math.fsum(math.exp(value) for value in values))
        return [value - whole for value in values]

    return lookup if factor == 1 else rescaled


def outputs(lookup: Lookup, vocabulary: int, limit: int, options: SearchOptions, asked: Asked) -> list[tuple[float, Tokens]]:
    """All outputs that the options and the words allow, best first."""
    lookup = penalised(lookup, options.repetition_penalty, asked.given)
    inner = [token for token in range(vocabulary) if token != EOS]
    found = []
    for length in range(1, limit + 1):
        ends = range(vocabulary) if length == limit and options.at_limit == "cut" else (EOS,)
        for tokens in ((*rest, end) for rest in itertools.product(inner, repeat=length - 1) for end in ends):
            if tokens[-1] == EOS and length <= options.min_length:
                continue
            if repeats_but(asked.given + tokens, options.no_repeat, options.may_repeat):
                continue
            if tokens[: len(options.prefix)] != options.prefix[: len(tokens)] or len(tokens) < len(options.prefix):
                continue
            if asked.allows(tokens) and (total := total_of(lookup, tokens)) > -math.inf:
                found.append((total / penalty(length, options), tokens))
    return sorted(found, key=lambda output: (-output[0], output[1]))


def find(lookup: Lookup, limit: int, options: SearchOptions, asked: Asked) -> SearchResult:
    """`lookup` knows nothing of what was given."""
    step, state = lookup_step(lookup)
    (found,) = search(
        lambda tokens_K, state: step(torch.where(torch.tensor(not state.shape[1]), BOS, tokens_K), state),
        state,
        1,
        options,
        [limit],
        given=[asked.given],
        rules=asked.rules(options),
    )
    return found


words = st.lists(st.sampled_from([0, 1, 3]), min_size=1, max_size=2).map(tuple)
spellings = st.lists(words, min_size=1, max_size=2).map(tuple)


@st.composite
def asks(draw: Any) -> Asked:
    given = draw(st.sampled_from([(), (3,), (0, 3)]))
    place = st.integers(len(given), len(given) + 3)
    return Asked(
        given,
        tuple(draw(st.lists(st.tuples(place, words), max_size=1))),
        tuple(draw(st.lists(st.tuples(place, words), max_size=2))),
        tuple(draw(st.lists(spellings, max_size=2))),
    )


any_rules = st.builds(
    SearchOptions,
    min_length=st.sampled_from([0, 0, 1]),
    no_repeat=st.sampled_from([0, 0, 1, 2]),
    may_repeat=st.sampled_from([(), (3,)]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 1.5, 0.5]),
    prefix=st.sampled_from([(), (), (1,), (3, 0), (0, EOS)]),
    at_limit=st.sampled_from(["cut", "force"]),
    length_norm=st.sampled_from(["none", "power"]),
)


def fits(asked: Asked, limit: int) -> bool:
    """What is forced beyond the limit is refused before a search begins."""
    return all(place + len(tokens) <= len(asked.given) + limit for place, tokens in asked.forced)


@settings(max_examples=150)
@given(st.integers(0, 10_000), any_rules, asks(), st.integers(3, 4), st.integers(1, 3))
def test_exact_search_proves_the_best_of_what_the_rules_allow(
    seed: int, options: SearchOptions, asked: Asked, limit: int, nbest: int
) -> None:
    assume(fits(asked, limit))
    options = SearchOptions(**{**options.to_json(), "strategy": "exact", "nbest": nbest})
    lookup = Tables(seed, 1, 4, 4).lookup()
    best = outputs(lookup, 4, limit, options, asked)[:nbest]
    found = find(lookup, limit, options, asked)
    assert found.certificate is not None
    if not best:
        assert "dead end" in found.certificate.sentence and not found.certificate.proved
        return
    assert found.certificate.proved
    assert [hypothesis.tokens for hypothesis in found.hypotheses] == [tokens for _, tokens in best]
    assert [hypothesis.score for hypothesis in found.hypotheses] == pytest.approx([score for score, _ in best], abs=1e-9)
    check_tree(found.tree)


@settings(max_examples=100)
@given(st.integers(0, 10_000), any_rules, asks(), st.sampled_from(["stay", "free"]))
def test_a_beam_that_never_prunes_finds_the_best_of_what_the_rules_allow(
    seed: int, options: SearchOptions, asked: Asked, finished: str
) -> None:
    """Where words are required, the beam that stays stops as soon as nothing is more probable than what it has finished."""
    assume(fits(asked, 3))
    norm = "none" if asked.required and finished == "stay" else options.length_norm
    changes = {"beam": 100, "nbest": 1, "finished": finished, "early": "never", "length_norm": norm}
    options = SearchOptions(**{**options.to_json(), **changes})
    lookup = Tables(seed, 1, 4, 4).lookup()
    best = outputs(lookup, 4, 3, options, asked)
    found = find(lookup, 3, options, asked)
    check_tree(found.tree)
    if best:
        assert found.hypotheses[0].tokens == best[0][1]
    else:
        assert not any(found.complete(hypothesis) and asked.allows(hypothesis.tokens) for hypothesis in found.hypotheses)


positions = st.integers(0, 3)
fixed_asks = st.builds(
    Asked,
    given=st.just(()),
    forced=st.lists(st.tuples(positions, words), max_size=1).map(tuple),
    banned=st.lists(st.tuples(positions, st.sampled_from([(0,), (1,), (3,)])), max_size=2).map(tuple),
    required=st.lists(spellings, min_size=1, max_size=2).map(tuple),
)
every_search = st.one_of(
    st.builds(SearchOptions, strategy=st.sampled_from(["greedy", "exact"])),
    st.builds(SearchOptions, strategy=st.just("sample"), samples=st.integers(1, 8)),
    st.builds(SearchOptions, beam=st.integers(1, 6), finished=st.sampled_from(["stay", "free"])),
)


@settings(max_examples=200)
@given(st.integers(0, 10_000), every_search, fixed_asks, st.integers(2, 5), st.sampled_from(["cut", "force"]), st.integers(0, 1))
def test_every_search_says_what_is_required_wherever_that_is_possible(
    seed: int, options: SearchOptions, asked: Asked, limit: int, at_limit: str, min_length: int
) -> None:
    assume(fits(asked, limit))
    options = SearchOptions(**{**options.to_json(), "at_limit": at_limit, "min_length": min_length})
    lookup = Tables(seed, 1, 4, 4).lookup()
    possible = outputs(lookup, 4, limit, SearchOptions(at_limit=at_limit, min_length=min_length), asked)
    found = find(lookup, limit, options, asked)
    check_tree(found.tree)
    whole = [hypothesis for hypothesis in found.hypotheses if found.complete(hypothesis)]
    if not possible:
        assert not [hypothesis for hypothesis in whole if asked.allows(hypothesis.tokens)]
        return
    assert whole == list(found.hypotheses) and whole
    for hypothesis in whole:
        assert asked.allows(hypothesis.tokens)
        assert hypothesis.total == pytest.approx(total_of(lookup, hypothesis.tokens), abs=1e-6)


@settings(max_examples=60)
@given(st.integers(0, 10_000), every_search, st.lists(st.tuples(st.integers(3, 6), asks()), min_size=2, max_size=4))
def test_batch_mates_change_nothing_under_rules(seed: int, options: SearchOptions, sentences: list[tuple[int, Asked]]) -> None:
    """Sentences of different limits and different given texts, under the words asked of the first."""
    asked = sentences[0][1]
    limits, texts = zip(*((limit, other.given) for limit, other in sentences))
    options = dataclasses.replace(options, no_repeat=2, repetition_penalty=1.3, min_length=1, at_limit="force")
    table = Tables(seed, len(sentences), 6, 4)
    rules = asked.rules(options)
    together = search(table.step, table.start(), len(limits), options, limits, given=texts, rules=rules)
    for sentence, (limit, text) in enumerate(zip(limits, texts)):
        alone = search(table.step, table.start([sentence]), 1, options, [limit], given=[text], rules=rules)[0]
        assert alone.hypotheses == together[sentence].hypotheses
        assert to_json(alone.tree) == to_json(together[sentence].tree)


# -------------------------------------------------------------------------------------------------------------- rule by rule


def applied(rules: list[Rule], values: list[float], said: Tokens, limit: int = 9, given: Tokens = ()) -> Logits:
    """The scores of the token after `said`."""
    listed = Rules(rules)
    states = listed.start([given])
    for token in said:
        states = listed.after(states, torch.tensor([token]))
    now = Now(len(said), torch.tensor([len(given)]), torch.tensor([limit - len(said)]), EOS)
    return listed.apply(Logits.of(torch.tensor([values], dtype=torch.float64)), now, states)


def test_the_repetition_penalty_is_that_of_keskar() -> None:
    """p_i = exp(x_i / (penalty if i was said)) / Z; values below 0 are multiplied, so that the penalty always lowers them."""
    values, penalty_ = [2.0, 1.0, -1.0, -2.0, 0.5], 1.5
    logits = applied([RepetitionPenalty(penalty_)], values, (0, 3), given=(4,))
    wanted = [2.0 / 1.5, 1.0, -1.0, -3.0, 0.5 / 1.5]
    assert logits.values_KV[0].tolist() == pytest.approx(wanted)
    assert logp_of(logits).exp().sum().item() == pytest.approx(1)
    assert logits.total_K1.item() == pytest.approx(math.log(sum(map(math.exp, wanted))))


@pytest.mark.parametrize("case", [case for case in PROCESSORS if case["op"] == "repetition_penalty"], ids=lambda case: case["op"])
def test_the_worked_example_of_the_penalty(case: dict[str, Any]) -> None:
    for said, given_scores, wanted in zip(case["context"], case["scores_in"], case["scores_out"]):
        values = [given_scores.get(str(token), 0.25) for token in range(6)]
        found = applied([RepetitionPenalty(case["penalty"])], values, tuple(said)).values_KV[0].tolist()
        expected = {**{str(token): value for token, value in enumerate(values) if token not in said}, **wanted}
        assert {token: found[int(token)] for token in expected} == pytest.approx(expected)


@pytest.mark.parametrize("name", RULES)
def test_every_option_of_the_table_has_its_rule_in_force_only_when_it_is_asked_for(name: str) -> None:
    asked = {"min_length": 1, "no_repeat": 2, "prefix": (3,), "repetition_penalty": 2.0, "at_limit": "force"}
    assert not rules_of(SearchOptions())
    (rule,) = rules_of(SearchOptions(**{name: asked.get(name, True)}))
    found = [applied([rule], [-1.0] * 5, said, limit=len(said) + 1).values_KV[0].tolist() for said in ((), (3,), (3, 3))]
    assert any(values != [-1.0] * 5 for values in found)


def test_nothing_is_renormalised_but_by_the_penalty() -> None:
    values = torch.randn(5, dtype=torch.float64).log_softmax(0).tolist()
    rules = [
        *rules_of(SearchOptions(min_length=3, no_repeat=1)),
        *word_rules(SearchOptions(), EOS, [(4, (1,))], [(1, (4,))], [((0,),)]),
    ]
    logits = applied(rules, values, (3,))
    assert logits.total_K1.item() == 0
    kept = {token: value for token, value in enumerate(logits.values_KV[0].tolist()) if value > -math.inf}
    assert set(kept) == {0, 1} and all(value == values[token] for token, value in kept.items())


def test_a_rule_writes_on_a_copy() -> None:
    values_KV = torch.zeros(1, 5)
    rules = Rules(rules_of(SearchOptions(min_length=1)))
    rules.apply(Logits.of(values_KV), Now(0, torch.tensor([0]), torch.tensor([3]), EOS), rules.start([()]))
    assert values_KV.tolist() == [[0.0] * 5]


@given(st.lists(spellings, min_size=1, max_size=3), st.lists(st.sampled_from([0, 1, 3, 4]), max_size=7).map(tuple))
def test_the_automaton_knows_which_words_stand_and_how_many_tokens_are_missing(word_list: list[Any], said: Tokens) -> None:
    """Missing is the length of the shortest continuation after which all words stand, found by trying all of them."""
    rule = Required(word_list, EOS)
    state = rule.start([()])
    for token in said:
        state = rule.after(state, torch.tensor([token]))

    def whole(tokens: Tokens) -> bool:
        return all(any(stands(each, tokens) for each in word) for word in word_list)

    rest = next(n for n in itertools.count() if any(whole(said + more) for more in itertools.product((0, 1, 3), repeat=n)))
    now = Now(len(said), torch.tensor([0]), torch.tensor([99]), EOS)
    assert rule.missing(now, state).item() == rest
    assert bool(rule.open_S[state]) == (rest > 0)


def test_the_states_of_the_automaton_are_few() -> None:
    five = [[tuple(range(10 * word, 10 * word + 8))] for word in range(1, 6)]
    places, next_SA = automaton(five, tuple(sorted({piece for word in five for piece in word[0]})))
    assert len(places) <= 2**5 * (5 * 7 + 1) and next_SA.shape == (len(places), 41)


def path_of(found: SearchResult) -> Tokens:
    return found.hypotheses[0].tokens


def test_a_single_path_finishes_what_it_began_and_begins_where_it_would_end() -> None:
    """The model says 3 and then ends; 4 is improbable everywhere, 5 even more so after anything but 4."""
    rows = {BOS: {3: 0.9, 4: 0.1}, 3: {EOS: 0.9, 3: 0.06, 4: 0.03, 5: 0.01}, 4: {EOS: 0.5, 3: 0.4, 5: 0.1}, 5: {EOS: 0.8, 3: 0.2}}
    lookup = lambda read: [math.log(rows.get(read[-1], {}).get(token, 1e-9)) for token in range(6)]  # noqa: E731
    for options in (SearchOptions(strategy="greedy"), SearchOptions(beam=1), SearchOptions(strategy="sample", temperature=0.01)):
        assert path_of(find(lookup, 9, options, Asked())) == (3, EOS)
        assert path_of(find(lookup, 9, options, Asked(required=(((4, 5),),)))) == (3, 4, 5, EOS)
        assert path_of(find(lookup, 3, options, Asked(required=(((4, 5),),)))) == (3, 4, 5)
        assert path_of(find(lookup, 2, options, Asked(required=(((4, 5),),)))) == (4, 5)


def test_a_beam_keeps_hypotheses_that_miss_fewer_words_though_they_are_less_probable() -> None:
    """Without places for them, 4 (one in a hundred thousand) and 5 would be pruned at each step until the limit forced them."""
    rows = {token: {3: 0.5, EOS: 0.4999, 4: 1e-5} for token in (BOS, 3)} | {4: {5: 1e-5, 3: 0.9}, 5: {EOS: 0.9, 3: 0.1}}
    lookup = lambda read: [math.log(rows.get(read[-1], {}).get(token, 1e-9)) for token in range(6)]  # noqa: E731
    asked = Asked(required=(((4, 5),),))
    (best, *_) = outputs(lookup, 6, 4, SearchOptions(), asked)
    for finished in ("stay", "free"):
        found = find(lookup, 30, SearchOptions(beam=4, finished=finished), asked)
        assert found.hypotheses[0].tokens == best[1] == (4, 5, EOS)
        assert {"kept", "pruned", "finished"} == {node.fate for node in found.tree}


def test_exact_search_has_a_good_output_with_the_words_from_its_first_descent_on() -> None:
    """Where the words are improbable everywhere and the limit is far, a descent along the most probable prefixes would hold
    them only at the limit."""
    torch.manual_seed(3)
    rows = (torch.randn(12, 12) * 2).log_softmax(1).double()
    rows[:, 4] -= 6
    rows[:, 5] -= 3
    lookup = lambda read: rows[read[-1]].tolist()  # noqa: E731
    asked = Asked(required=(((4, 5),),))
    beam = find(lookup, 60, SearchOptions(beam=5, nbest=1), asked).hypotheses[0]
    exact = find(lookup, 60, SearchOptions(strategy="exact", nbest=1, expansions=320), asked)
    assert exact.certificate is not None and not exact.certificate.proved
    assert exact.hypotheses[0].score >= beam.score - 1e-9 and exact.certificate.bound >= exact.hypotheses[0].score
    check_tree(exact.tree)


def test_a_beam_that_has_finished_the_best_stops_before_the_limit() -> None:
    calls = itertools.count()

    def lookup(read: Tokens) -> list[float]:
        next(calls)
        return [math.log(p) for p in (1e-9, 1e-9, 0.5, 0.3, 0.2)]

    found = find(lookup, 200, SearchOptions(beam=4), Asked(required=(((4,),),)))
    assert found.hypotheses[0].tokens == (4, EOS) and next(calls) < 60
