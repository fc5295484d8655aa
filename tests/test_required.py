"""Required words on whole models: every search says them, they have a price, and impossible ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import seqdemo
from seqdemo.checkpoints import Checkpoint
from seqdemo.config import EOS, SearchOptions
from seqdemo.edits import AttentionBlend, Ban, Force, Require, edit_from_json, edit_to_json
from seqdemo.errors import InputError
from seqdemo.playground import Run, find, replay, run
from seqdemo.prompts import prepare
from seqdemo.text import SPECIALS, Characters
from seqdemo.ui.answers import edits_of
from tests import tiny

SEARCHES: tuple[dict[str, Any], ...] = (
    {"strategy": "greedy"},
    {"strategy": "beam", "beam": 1},
    {"strategy": "beam"},
    {"strategy": "beam", "finished": "free"},
    {"strategy": "sample", "samples": 3},
    {"strategy": "exact", "nbest": 1, "expansions": 3_000},
)
INPUTS = {"translate": "Die frau und der mann laufen.", "transliterate": "namaste", "complete": "The dog "}
Maker = Callable[[str], Checkpoint]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    folder = tmp_path_factory.mktemp("required")
    return cache(lambda task: tiny.checkpoint(folder, task))


def searched(model: Maker, edits: Any, task: str = "translate", **options: Any) -> Run:
    return run(model(task), INPUTS[task], SearchOptions(**{"max_length": 14, **options}), edits)


def absent(model: Maker, task: str) -> tuple[int, ...]:
    """Two pieces that the model does not say by itself."""
    said = {token for options in SEARCHES[:3] for one in searched(model, (), task, **options).hypotheses for token in one.tokens}
    vocabulary = len(model(task).target_text)  # type: ignore[arg-type]
    return tuple(token for token in range(4, vocabulary) if token not in said)[:2]


@pytest.mark.parametrize("options", SEARCHES, ids=str)
@pytest.mark.parametrize("task", INPUTS)
def test_every_search_says_the_word_and_its_price_is_what_the_model_loses(
    model: Maker, task: str, options: dict[str, Any]
) -> None:
    word = absent(model, task)
    edit = Require((word, (word[1], word[0])))
    free, found = searched(model, (), task, **options), searched(model, (edit,), task, **options)
    for hypothesis in found.hypotheses:
        assert edit.stands_in(hypothesis.tokens)
        given = len(found.prompt.prefix)
        assert replay(model(task), found, hypothesis.tokens).logps[given:].sum() == pytest.approx(hypothesis.total, abs=1e-4)
    (price,) = found.prices
    changed = found.hypotheses[0].total - free.hypotheses[0].total
    assert price.kind == "tokens" and price.change == pytest.approx(changed, abs=1e-4) and price.gaps == ()


def test_a_word_that_stands_already_costs_nothing(model: Maker) -> None:
    free = searched(model, ())
    found = searched(model, (Require(free.hypotheses[0].tokens[:2]),))
    assert found.hypotheses[0].tokens == free.hypotheses[0].tokens and found.prices[0].change == 0


def test_what_was_given_is_not_part_of_the_output(model: Maker) -> None:
    given = prepare(model("complete"), INPUTS["complete"]).prefix
    edit = Require(given[:3])
    found = searched(model, (edit,), "complete", max_length=9)
    assert all(edit.stands_in(hypothesis.tokens) for hypothesis in found.hypotheses)


def test_required_forced_and_banned_words_agree(model: Maker) -> None:
    edits = (Force(1, (5, 6)), Require(((6, 7), (8, 9))), Ban(3, (7,)), AttentionBlend(0.5, "uniform"))
    for options in SEARCHES:
        for hypothesis in searched(model, edits, **options).hypotheses:
            assert hypothesis.tokens[1:3] == (5, 6) and hypothesis.tokens[3] != 7
            assert edits[1].stands_in(hypothesis.tokens)  # type: ignore[union-attr]


UNFIT: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    (
        (Require((5, 6, 7)),),
        {"max_length": 2},
        "do not fit: with what is forced they need 3 pieces, and this output has room for 2",
    ),
    ((Require((5, 6)),), {"max_length": 2, "at_limit": "force"}, "they need 3 pieces"),
    ((Require((5, 6)), Require((7, 8))), {"max_length": 3}, "they need 4 pieces"),
    ((Require((5, 6)), Force(0, (7, 8))), {"max_length": 3}, "they need 4 pieces"),
    ((Require((5, 6)),), {"max_length": 3, "prefix": (7, 8)}, "they need 4 pieces"),
    ((Require((5, 6)), Force(1, (EOS,))), {}, "leaves no place for a required word"),
    ((Require((5,)), Ban(0, (5,)), Force(1, (EOS,))), {}, "leaves no place for a required word"),
    ((Require(()),), {}, "has from 1 to 20 spellings"),
    ((Require(((),)),), {}, "from 1 to 50 piece numbers"),
    ((Require((5, EOS)),), {}, "none of them <pad>, <bos> or <eos>"),
    ((Require((99_999,)),), {}, "piece numbers below"),
    ((Require("word"),), {}, "has from 1 to 20 spellings"),  # type: ignore[arg-type]
    (tuple(Require((piece,)) for piece in range(4, 10)), {}, "At most 5 words"),
    ((), {"prefix": (99_999 % 65_536,)}, "forced or banned word is one or more piece numbers below"),
    ((Force(0, (6,)),), {"prefix": (5,)}, "Two different pieces are forced at position 0"),
]


@pytest.mark.parametrize(("edits", "options", "sentence"), UNFIT, ids=lambda value: str(value)[:60])
def test_what_cannot_be_said_is_refused(model: Maker, edits: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        searched(model, edits, **options)


@pytest.mark.parametrize("edits", [(Require((5, 6)),), (Require((5, 6)), Require((6, 7)))], ids=str)
def test_words_that_just_fit_are_said(model: Maker, edits: tuple[Require, ...]) -> None:
    """Two words that overlap need three places."""
    for options in SEARCHES:
        found = searched(model, edits, **{**options, "max_length": 1 + len(edits)})
        assert found.hypotheses[0].tokens == (5, 6, 7)[: 1 + len(edits)]


def test_one_spelling_needs_no_tuple_around_it_and_json_brings_back_the_same(model: Maker) -> None:
    one, several = Require((5, 6)), Require(((5, 6), (7,)))
    assert one == Require(((5, 6),)) and seqdemo.Require is Require
    for edit in (one, several):
        sent = json.loads(json.dumps(edit_to_json(edit)))
        assert edit_from_json(sent) == edit and edits_of([sent]) == (edit,)


def test_a_batch_says_the_word_in_every_sentence(model: Maker) -> None:
    checkpoint, edit = model("complete"), Require((5, 6))
    prompts = [prepare(checkpoint, text) for text in ("The ", "A dog sings in the garden", "On")]
    for options in SEARCHES[:5]:
        for found in find(checkpoint, prompts, SearchOptions(**options, max_length=12), (edit,)):
            assert all(edit.stands_in(hypothesis.tokens) for hypothesis in found.hypotheses)


def test_a_forced_beginning_is_said_by_every_search(model: Maker) -> None:
    for options in SEARCHES:
        for hypothesis in searched(model, (), prefix=(5, 6, 7), **options).hypotheses:
            assert hypothesis.tokens[:3] == (5, 6, 7)
    ended = searched(model, (), prefix=(5, EOS)).hypotheses
    assert [hypothesis.tokens for hypothesis in ended] == [(5, EOS)]


def test_a_page_tells_a_required_word_as_a_person_writes_it() -> None:
    text = Characters([*SPECIALS, "a", "b", "A"])
    (edit,) = edits_of([{"kind": "Require", "word": " ab "}], lambda: text)
    assert edit == Require(((4, 5), (6, 5)))
    with pytest.raises(InputError, match="no pieces for “ax”"):
        edits_of([{"kind": "Require", "word": "ax"}], lambda: text)
