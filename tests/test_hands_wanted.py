"""What would make it say a word: every way that is told brings it about in an ordinary run, at the run's own price."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from seqdemo.edits import AttentionRow, Ban, ClampGate, Force
from seqdemo.errors import InputError
from seqdemo.findings import Ways
from seqdemo.hands.bending import WordUnderRows, margins, onto_simplex
from seqdemo.hands.place import Place
from seqdemo.hands.wanted import SLACK, Wish, asked_word, ban, cheapest
from seqdemo.numerals import small
from seqdemo.playground import Run, replay, run, trace
from tests.small_hands import TASKS, Models, clamp

KINDS = {"ban": Ban, "earlier": (Ban, Force), "row": AttentionRow, "units": ClampGate, "force": Force}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("wanted"))


def asked(models: Models, task: str, rank: int, offset: int = 2, **options: Any) -> tuple[Any, Run, int, int, Ways]:
    """The piece of this rank at a place, wanted there."""
    checkpoint, found = models.checkpoint(task), models.run(task, clamp(task), min_length=4, **options)
    position = len(found.prompt.prefix) + offset
    tokens = found.hypotheses[0].tokens
    top = replay(checkpoint, found, tokens).top_tokens[position]
    wanted = [token for token in top.tolist() if token != (*found.prompt.prefix, *tokens)[position] and token > 3][rank]
    return checkpoint, found, position, wanted, cheapest(checkpoint, found, position, (wanted,))


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("strategy", ["greedy", "beam"])
@pytest.mark.parametrize("task", [*TASKS, "hard"])
def test_every_way_that_is_told_brings_the_word_about_at_its_price(models: Models, task: str, strategy: str, rank: int) -> None:
    checkpoint, found, position, wanted, ways = asked(models, task, rank, strategy=strategy)
    said = (*found.prompt.prefix, *found.hypotheses[0].tokens)
    before = (*said[len(found.prompt.prefix) : position], wanted)
    plain = trace(checkpoint, found.prompt, before, found.edits, found.options)
    assert ways.p == pytest.approx(math.exp(plain.logps[position]), rel=1e-4)
    assert [way.way for way in ways.ways] == ["ban", "earlier", "row", "units", "force"]
    old = trace(checkpoint, found.prompt, found.hypotheses[0].tokens, found.edits, found.options).total
    for way in ways.ways:
        if not way.found:
            assert way.edits == () and 0 <= way.best <= 1 and way.price is None and way.says
            continue
        assert all(isinstance(edit, KINDS[way.way]) for edit in way.edits)  # type: ignore[arg-type]
        again = run(checkpoint, found.prompt, found.options, (*found.edits, *way.edits))
        assert (again.hypotheses[0].tokens, again.texts[0]) == (way.tokens, way.text)
        slack = SLACK if way.way == "earlier" else 0
        whole = (*found.prompt.prefix, *way.tokens)
        assert wanted in whole[position - slack : position + slack + 1]
        assert (
            way.price is not None and way.price.change == (again.prices[0] if len(way.edits) > 1 else again.own_prices[-1]).change
        )
        new = trace(checkpoint, found.prompt, way.tokens, found.edits, found.options).total
        assert way.cost == pytest.approx(new - old, abs=1e-5 * (1 + abs(old)))
    reached = [way for way in ways.ways if way.found and way.way != "force"]
    assert (ways.cheapest is None) == (not reached)
    if reached:
        assert ways.ways[ways.cheapest or 0].cost == max(way.cost for way in reached)  # type: ignore[type-var]
        assert ways.says.startswith("Cheapest: ")
    else:
        best = small(max(way.best for way in ways.ways[:-1]))
        assert ways.says == f"Nothing that was tried makes it say that; best found: {best}."


def test_at_the_first_place_there_is_no_earlier_word(models: Models) -> None:
    way = next(way for way in asked(models, "translate", 0, offset=0)[-1].ways if way.way == "earlier")
    assert (way.found, way.best, way.says) == (False, 0.0, "nothing earlier stands there to change.")


def test_each_kind_of_way_is_found_somewhere(models: Models) -> None:
    """So the test above has seen an example of each."""
    found = {
        way.way
        for task in ("translate", "caption", "complete")
        for rank in (0, 1)
        for way in asked(models, task, rank)[4].ways
        if way.found
    }
    assert found >= {"ban", "row", "units", "force"}


def test_a_row_that_brings_it_about_moves_no_more_than_it_needs(models: Models) -> None:
    for task in ("caption", "translate", "transliterate"):
        checkpoint, found, position, wanted, ways = asked(models, task, 0, strategy="greedy")
        way = ways.ways[2]
        if not way.found or way.edits[0].position != position:  # type: ignore[union-attr]
            continue
        (edit,) = way.edits
        assert isinstance(edit, AttentionRow)
        own = replay(checkpoint, found, found.hypotheses[0].tokens).attention[position - len(found.prompt.prefix)]  # type: ignore[index]
        assert way.amount == pytest.approx(np.abs(np.array(edit.weights) - own).sum() / 2, abs=1e-4)
        less = own + 0.5 * (np.array(edit.weights) - own)
        half = run(checkpoint, found.prompt, found.options, (*found.edits, AttentionRow(position, tuple(less.clip(0).tolist()))))
        assert (*found.prompt.prefix, *half.hypotheses[0].tokens)[position] != wanted, "half of the way is too little"
        return
    pytest.fail("no row was found to look at")


def test_a_margin_climbs_along_its_gradient(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate", min_length=3)
    place = Place(checkpoint, found, found.hypotheses[0].tokens, 1)
    judge = WordUnderRows(place, (10, 11), 1, bare=True)
    row = torch.full((len(found.source.ids),), 1 / len(found.source.ids), requires_grad=True)
    (slope,) = torch.autograd.grad(judge.margins(row[None])[0].sum(), [row])
    step = slope - slope.mean()
    with torch.no_grad():
        margin, p = judge.margins(torch.stack([row, row + 1e-3 * step / step.abs().sum()]))
    assert margin[1] > margin[0] and 0 < p[0] < 1
    told = trace(checkpoint, found.prompt, (found.hypotheses[0].tokens[0], 10, 11), (AttentionRow(1, tuple(row.tolist())),))
    assert float(p[0]) == pytest.approx(math.exp(told.logps[1:].sum()), rel=1e-3)


def test_a_row_is_put_onto_the_simplex_at_its_nearest_point() -> None:
    torch.manual_seed(2)
    for _ in range(20):
        row = torch.randn(6)
        near = onto_simplex(row)
        assert float(near.sum()) == pytest.approx(1, abs=1e-6) and bool((near >= 0).all())
        others = torch.distributions.Dirichlet(torch.ones(6)).sample((200,))
        assert (near - row).norm() <= (others - row).norm(dim=1).min() + 1e-6
    inside = torch.tensor([0.2, 0.3, 0.5])
    assert torch.allclose(onto_simplex(inside), inside)


def test_a_margin_is_that_of_the_least_certain_piece() -> None:
    logp = torch.log(torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]]))
    margin, p = margins(logp, torch.tensor([0, 1]))
    assert float(margin) == pytest.approx(math.log(0.2 / 0.7)) and float(p) == pytest.approx(0.1)


def test_a_word_of_several_pieces_can_be_asked_for(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate", min_length=4)
    ways = cheapest(checkpoint, found, 1, "garden")
    assert ways.word.text == "garden" and len(ways.word.tokens) >= 1
    assert ways.ways[-1].found and "garden" in ways.ways[-1].text


def test_the_ways_are_shown_as_they_come_and_a_person_can_stop(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate", min_length=4)
    heard: list[int] = []
    cheapest(checkpoint, found, 1, "garden", shown=lambda ways, of: heard.append(len(ways)))
    assert heard == [1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="Stopped"):
        cheapest(checkpoint, found, 1, "garden", cancel=lambda: True)


def test_what_cannot_be_looked_for_has_its_sentence(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate", min_length=4)
    for more, words in (
        ({"word": "Жю"}, "no pieces for “Жю”"),
        ({"word": found.hypotheses[0].tokens[:1], "position": 0}, "there already"),
        ({"word": (10_000,)}, "each a number below"),
        ({"word": 5}, "A word is a text, or the numbers of its pieces, not 5"),
        ({"word": (10, 11), "position": 99}, "Position 99 is outside this output"),
    ):
        with pytest.raises(InputError, match=words):
            cheapest(checkpoint, found, **{"position": 1, **more})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="with greedy or beam search"):
        cheapest(checkpoint, models.run("translate", strategy="sample"), 0, "garden")
    full = models.run("translate", tuple(ClampGate("decoder", "forget", 1.0, units=(n,)) for n in range(20)), min_length=2)
    with pytest.raises(InputError, match="20 edits already"):
        cheapest(checkpoint, full, 0, "garden")


def test_of_several_heads_one_is_bent(models: Models) -> None:
    """The two heads of the two layers are bent one at a time, and an ordinary run under that row says the word."""
    for rank in range(4):
        checkpoint, found, _, wanted, ways = asked(models, "transformer", rank)
        way = ways.ways[2]
        if not way.found:
            continue
        (edit,) = way.edits
        assert isinstance(edit, AttentionRow) and edit.layer in (0, 1) and edit.head in (0, 1)
        assert f"of head {(edit.head or 0) + 1} in layer {(edit.layer or 0) + 1}" in way.says
        own = replay(checkpoint, found, found.hypotheses[0].tokens).seen[f"decoder.{edit.layer}.cross.{edit.head}"][edit.position]
        assert way.amount == pytest.approx(np.abs(np.array(edit.weights) - own).sum() / 2, abs=1e-4)
        assert wanted in run(checkpoint, found.prompt, found.options, (*found.edits, edit)).hypotheses[0].tokens
        return
    pytest.fail("no row was found to look at")


def test_edits_that_cannot_be_tried_are_told_apart_from_those_that_fail(models: Models) -> None:
    checkpoint, plain = models.checkpoint("translate"), models.run("translate", min_length=4)
    second = replay(checkpoint, plain, plain.hypotheses[0].tokens).top_tokens[1, 1].item()
    held = models.run("translate", (Force(1, (second,)),), min_length=4)
    ways = {way.way: way for way in cheapest(checkpoint, held, 1, "garden").ways}
    assert not ways["force"].found and "not all could be tried: Two different pieces are forced" in ways["force"].says
    assert not ways["row"].found and "could be tried" not in ways["row"].says


def test_bans_end_where_the_output_ends_before_the_place(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate", min_length=4)
    tokens = found.hypotheses[0].tokens
    place = Place(checkpoint, found, tokens, 2)
    monkeypatch.setattr(Wish, "said_under", lambda self, edits, cancel: tokens[:2])
    way = ban(Wish(checkpoint, found, place, asked_word(place, "garden")), None)
    assert not way.found and way.says.endswith("; the output then ends before this place.")
