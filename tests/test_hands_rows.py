"""The next word under attention rows: each is what a replay under that row says, and the bound is that of all one-hot rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqdemo.edits import AttentionRow
from seqdemo.errors import InputError
from seqdemo.findings import told
from seqdemo.hands.place import Place
from seqdemo.hands.rows import FELT, bound_sentence, next_word, row_bound, under_rows
from seqdemo.network.attention import as_row
from seqdemo.playground import replay, trace
from tests.small_hands import ATTENDING, TASKS, Models, clamp


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("rows"))


@pytest.mark.parametrize("which", [(None, None), (1, None), (0, 1)], ids=str)
@pytest.mark.parametrize("task", ATTENDING)
def test_the_next_word_under_a_row_is_what_a_replay_under_that_row_says(
    models: Models, task: str, which: tuple[int | None, int | None]
) -> None:
    if task != "transformer" and which != (None, None):
        which = (0, 0)
    checkpoint, found = models.checkpoint(task), models.run(task, clamp(task))
    tokens, positions = found.hypotheses[0].tokens, replay(checkpoint, found, found.hypotheses[0].tokens).attention.shape[1]  # type: ignore[union-attr]
    rows = [[1.0] * positions, [float(j + 1) for j in range(positions)], [1.0] + [0.0] * (positions - 1)]
    for position in (0, len(tokens) - 1):
        got = next_word(checkpoint, found, tokens, position, rows, *which)
        plain = replay(checkpoint, found, tokens)
        assert got.own.p == pytest.approx(np.exp(plain.logps[position]), abs=1e-6)
        assert got.said.token == tokens[position] and got.said.piece == plain.target[position]
        for row, under in zip(rows, got.rows):
            edits = (*found.edits, AttentionRow(position, tuple(row), *which))
            wanted = trace(checkpoint, found.prompt, tokens, edits, found.options)
            assert under.p == pytest.approx(np.exp(wanted.logps[position]), abs=1e-5)
            assert [bar.piece for bar in under.bars[:3]] == list(wanted.top_pieces[position][:3])
            assert sum(under.weights or ()) == pytest.approx(1, abs=1e-6)
    assert max(abs(under.p - got.own.p) for under in got.rows) > 1e-4, "rows do something"


def test_no_row_leaves_what_the_replay_has_to_the_bit(models: Models) -> None:
    for task in TASKS:
        checkpoint, found = models.checkpoint(task), models.run(task)
        tokens, given = found.hypotheses[0].tokens, len(found.prompt.prefix)
        place = Place(checkpoint, found, tokens, given + 1)
        own = replay(checkpoint, found, tokens)
        row = place.own.seen.get("decoder.0.cross")
        assert task == "complete" or row is not None
        assert np.allclose(float(place.logp_V[place.token]), own.logps[given + 1], atol=1e-6)
        if row is not None and task != "transformer":
            assert np.allclose(row[0, 0].numpy(), own.attention[1], atol=1e-6)  # type: ignore[index]


@pytest.mark.parametrize("task", ATTENDING)
def test_the_bound_is_the_largest_move_over_all_one_hot_rows(models: Models, task: str) -> None:
    checkpoint, found = models.checkpoint(task), models.run(task)
    tokens = found.hypotheses[0].tokens
    bound = row_bound(checkpoint, found, tokens, 1)
    one_hot = torch.eye(len(bound.each)).tolist()
    singly = [next_word(checkpoint, found, tokens, 1, [row]) for row in one_hot]
    assert np.allclose(bound.each, [each.rows[0].p for each in singly], atol=1e-5)
    assert bound.moves == pytest.approx(max(abs(p - bound.own) for p in bound.each), abs=1e-6)
    assert (bound.least, bound.most) == (min(bound.each), max(bound.each))
    elsewhere = [at for at, each in enumerate(singly) if each.rows[0].bars[0].token != each.own.bars[0].token]
    assert [one.at for one in bound.says_else] == elsewhere
    assert bound.depends == (bound.moves >= FELT or bool(elsewhere)) and bound.says == bound_sentence(bound.moves, bound.depends)


def test_the_sentence_of_a_bound_says_what_was_measured() -> None:
    still = "What this step writes stays with all attention on any one source position: its probability moves by at most 0.003."
    assert bound_sentence(0.003, False) == still
    assert bound_sentence(0.0001, False).endswith("its probability moves by less than 0.001.")
    assert "0.649" in bound_sentence(0.6486, True)


def test_a_row_sums_to_one_as_exactly_as_float32_can() -> None:
    torch.manual_seed(5)
    for size in (1, 2, 7, 81, 120):
        for row in (torch.rand(size), torch.rand(size) ** 8 + 1e-12, torch.ones(size)):
            made = as_row(row.tolist())
            assert made.dtype == torch.float32 and bool((made >= 0).all())
            assert abs(float(made.double().sum()) - 1) <= 2**-25
    assert as_row([0.0, 3.0, 0.0]).tolist() == [0, 1, 0]


def test_what_cannot_be_asked_has_its_sentence(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")
    tokens, place = found.hypotheses[0].tokens, Place(models.checkpoint("translate"), found, found.hypotheses[0].tokens, 0)
    for rows, words in (
        ([[1.0]], "An attention row for this source has"),
        ([[-1.0] * len(found.source.ids)], "numbers from 0 up"),
        ([[0.0] * len(found.source.ids)], "at least one above 0"),
    ):
        with pytest.raises(InputError, match=words):
            under_rows(place, rows)
    with pytest.raises(InputError, match="This model has no attention layer 3"):
        row_bound(checkpoint, found, tokens, 0, layer=3)
    for asked, words in (
        ({"layer": 7}, "no attention layer 7"),
        ({"head": 9}, "no attention head 9"),
        ({"head": -1}, "no attention head -1"),
        ({"layer": True}, "no attention layer True"),
        ({"top": -1}, "top must be a whole number, 1 or more, not -1"),
        ({"rows": [5]}, "An attention row for this source has"),
    ):
        with pytest.raises(InputError, match=words):
            next_word(checkpoint, found, tokens, 0, **asked)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Position 99 is outside this output"):
        next_word(checkpoint, found, tokens, 99)
    writer, text = models.checkpoint("complete"), models.run("complete")
    with pytest.raises(InputError, match="no attention to edit"):
        row_bound(writer, text, text.hypotheses[0].tokens, len(text.prompt.prefix))
    with pytest.raises(InputError, match="the text that was given"):
        next_word(writer, text, text.hypotheses[0].tokens, 0)
    assert next_word(writer, text, text.hypotheses[0].tokens, len(text.prompt.prefix)).own.weights is None


def test_findings_are_json(models: Models) -> None:
    checkpoint, found = models.checkpoint("caption"), models.run("caption")
    value = told(next_word(checkpoint, found, found.hypotheses[0].tokens, 0))
    assert value["said"].keys() == {"token", "piece", "p"} and value["own"]["bars"][0]["p"] <= 1


def test_rows_may_be_an_array_of_numpy(models: Models) -> None:
    checkpoint, found = models.checkpoint(ATTENDING[0]), models.run(ATTENDING[0])
    tokens = found.hypotheses[0].tokens
    even = np.ones((1, len(row_bound(checkpoint, found, tokens, 0).each)))
    assert next_word(checkpoint, found, tokens, 0, even) == next_word(checkpoint, found, tokens, 0, even.tolist())
    assert next_word(checkpoint, found, tokens, 0, even[:0]).rows == ()
