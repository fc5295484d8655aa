"""A price isolates one cause: the cost of an edit with all others in force on both sides."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from seqdemo import edits as edits_module
from seqdemo import playground
from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, SearchOptions
from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Edit, Force, Require, is_word
from seqdemo.errors import InputError
from seqdemo.playground import Run, replay, run, trace
from tests import tiny

GIVEN = "Die frau und der mann laufen."
STRATEGIES = ("greedy", "beam", "sample", "exact")
Maker = Callable[[str], Checkpoint]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    folder = tmp_path_factory.mktemp("priced")
    return cache(lambda task: tiny.checkpoint(folder, task))


def options(strategy: str = "beam", **more: Any) -> SearchOptions:
    return SearchOptions(**{"strategy": strategy, "expansions": 3_000, "min_length": 3, "max_length": 9, "nbest": 1, **more})


def searched(model: Maker, edits: tuple[Edit, ...], strategy: str = "beam", **more: Any) -> Run:
    return run(model("translate"), GIVEN, options(strategy, **more), edits)


def total(checkpoint: Checkpoint, found: Run, tokens: tuple[int, ...], edits: tuple[Edit, ...]) -> float:
    return trace(checkpoint, found.prompt, tokens, edits, found.options).total


def test_a_ban_that_nobody_feels_costs_nothing_beside_a_clamp_that_changes_everything(model: Maker) -> None:
    """The search that a word is compared with runs under the clamp too."""
    clamp = ClampGate("decoder", "forget", 0.0)
    plain, clamped = searched(model, ()), searched(model, (clamp,))
    unsaid = next(token for token in range(4, 30) if token not in clamped.hypotheses[0].tokens)
    both = searched(model, (Ban(0, (unsaid,)), clamp))
    assert plain.hypotheses[0].tokens != clamped.hypotheses[0].tokens == both.hypotheses[0].tokens
    words, state = both.prices
    assert words.change == 0.0 and state.change == both.own_prices[1].change != 0.0
    assert [price.change for price in clamped.own_prices] == [price.change for price in clamped.prices]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_price_is_all_edits_against_all_but_one(model: Maker, strategy: str) -> None:
    checkpoint = model("translate")
    first = searched(model, (), strategy).hypotheses[0].tokens[0]
    other = next(token for token in range(4, 12) if token != first)
    edits: tuple[Edit, ...] = (
        Force(0, (other,)),
        AttentionBlend(1.0, "last"),
        Ban(1, (other,)),
        ClampGate("decoder", "output", 0.4),
        Require((((other + 1),),)),
    )
    found = searched(model, edits, strategy)
    tokens, inside = found.hypotheses[0].tokens, tuple(edit for edit in edits if not is_word(edit))
    assert [price.edit for price in found.own_prices] == [0, 1, 2, 3, 4] and [price.edit for price in found.prices] == [-1, -1]
    new = total(checkpoint, found, tokens, inside)
    for n, price in enumerate(found.own_prices):
        left = edits[:n] + edits[n + 1 :]
        if is_word(edits[n]):
            old = total(checkpoint, found, searched(model, left, strategy).hypotheses[0].tokens, inside)
        else:
            old = total(checkpoint, found, tokens, tuple(edit for edit in left if not is_word(edit)))
        assert price.after == pytest.approx(new, abs=1e-4) and price.before == pytest.approx(old, abs=1e-4)
        assert price.change == price.after - price.before
    words, state = found.prices
    old = total(checkpoint, found, searched(model, inside, strategy).hypotheses[0].tokens, inside)
    assert words.before == pytest.approx(old, abs=1e-4) and words.after == pytest.approx(new, abs=1e-4)
    assert state.before == pytest.approx(total(checkpoint, found, tokens, ()), abs=1e-4)
    assert found.own_prices[0].gaps == words.gaps[:1] and len(words.gaps) == 1 and not found.own_prices[2].gaps


FELT: list[Edit] = [
    Force(1, (9,)),
    Ban(0, (7,)),
    Require(((11,),)),
    AttentionBlend(0.7, "uniform"),
    AttentionBlend(0.5, "nothing", (1, 2)),
    AttentionRow(2, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
    ClampGate("decoder", "forget", 0.3),
    ClampGate("encoder", "input", 0.9, direction="backward", units=(1, 2)),
]


def unfelt(found: Run) -> list[Edit]:
    """Edits of every kind that change nothing in this run, or at least not its best output's tokens."""
    tokens = found.hypotheses[0].tokens
    unsaid = next(token for token in range(4, 50) if token not in found.tree.token)
    return [
        Force(0, tokens[:1]),
        Force(len(tokens) - 1, tokens[-1:]),
        Ban(2, (unsaid,)),
        Ban(0, (unsaid, tokens[0])),
        Require((tokens[:1], (unsaid,))),
        AttentionBlend(0.0, "uniform"),
        AttentionBlend(1.0, "last", ()),
        ClampGate("decoder", "forget", 0.0, units=()),
        ClampGate("decoder", "forget", 0.7, positions=(0,), units=()),
    ]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(FELT), unique=True, max_size=4), st.data())
def test_an_edit_that_nobody_feels_costs_exactly_nothing_beside_any_others(
    model: Maker, felt: list[Edit], data: st.DataObject
) -> None:
    row = next((edit for edit in felt if isinstance(edit, AttentionRow)), None)
    positions = len(searched(model, (), "greedy").source.ids)
    if row is not None:
        felt = [AttentionRow(2, tuple(float(j == 1) for j in range(positions))) if edit is row else edit for edit in felt]
    strategy = data.draw(st.sampled_from(("greedy", "beam", "sample")))
    try:
        without = searched(model, tuple(felt), strategy)
    except InputError:
        return  # greedy search may lead nowhere
    added = data.draw(st.sampled_from(unfelt(without)))
    place = data.draw(st.integers(0, len(felt)))
    found = searched(model, (*felt[:place], added, *felt[place:]), strategy)
    if is_word(added):
        assume(found.hypotheses[0].tokens == without.hypotheses[0].tokens)  # or a sample was drawn from less
    assert found.hypotheses[0].tokens == without.hypotheses[0].tokens
    assert found.own_prices[place].change == 0.0 and found.own_prices[place].before == found.own_prices[place].after


def test_edits_are_checked_once_a_run_and_not_again_for_its_replay(model: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[tuple[Edit, ...]] = []
    check = edits_module.check_edits
    monkeypatch.setattr(playground, "check_edits", lambda edits, *rest: (checked.append(edits), check(edits, *rest)))
    found = searched(model, (Force(0, (9,)), ClampGate("decoder", "forget", "mean"), AttentionBlend(0.5)))
    replay(model("translate"), found, found.hypotheses[0].tokens)
    assert len(checked) == 1


def test_all_searches_and_all_replays_of_the_prices_go_in_one_batch_each(model: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    batches: list[int] = []
    checkpoint: Any = model("translate")
    search, teach = playground.search, type(checkpoint.model).teach

    def counted(step: Any, state: Any, sentences: int, *rest: Any, **told: Any) -> Any:
        searches.append(sentences)
        return search(step, state, sentences, *rest, **told)

    def taught(network: Any, *given: Any, **told: Any) -> Any:
        batches.append(len(given[2]))
        return teach(network, *given, **told)

    monkeypatch.setattr(playground, "search", counted)
    monkeypatch.setattr(type(checkpoint.model), "teach", taught)
    searched(model, (Force(0, (9,)), Ban(1, (8,)), AttentionBlend(0.5), ClampGate("decoder", "forget", 0.5)))
    assert searches == [1, 3] and len(batches) == 1


def test_more_than_twenty_edits_are_refused(model: Maker) -> None:
    bans = tuple(Ban(0, (token,)) for token in range(4, 25))
    assert len(searched(model, bans[:20]).own_prices) == 20
    with pytest.raises(InputError, match="At most 20 edits at once, not 21"):
        searched(model, bans)


def test_words_of_a_completion_are_priced_too(model: Maker) -> None:
    checkpoint = model("complete")
    found = run(checkpoint, "The dog ", options(), (Force(8, (9,)), ClampGate("decoder", "input", 0.5), Ban(9, (EOS,))))
    assert [price.edit for price in found.own_prices] == [0, 1, 2] and found.own_prices[0].gaps == found.prices[0].gaps
