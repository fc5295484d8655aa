"""Candidates for a typed beginning carry the probability a replay gives them; badges say what the prices say."""

from __future__ import annotations

import math

import pytest

from seqdemo.config import EOS
from seqdemo.edits import Ban, ClampGate, Force, Require
from seqdemo.errors import InputError
from seqdemo.explain.replay import badge, compared, places_of, ratio
from seqdemo.hands.place import Place
from seqdemo.hands.words import MOST_TYPED, Beginning, Completion, candidates, must_be_said, vocabulary
from seqdemo.playground import badges, replay, trace
from seqdemo.text import longer_word
from tests.small_hands import TASKS, Models, clamp

TYPED = {"translate": "s", "transliterate": "", "caption": "g", "complete": "th", "transformer": "d"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("words"))


@pytest.mark.parametrize("typed", [None, ""], ids=["typed", "nothing"])
@pytest.mark.parametrize("task", TASKS)
def test_a_candidate_has_the_probability_that_a_replay_gives_its_pieces(models: Models, task: str, typed: str | None) -> None:
    checkpoint, found = models.checkpoint(task), models.run(task, clamp(task))
    typed, given, tokens = TYPED[task] if typed is None else typed, len(found.prompt.prefix), found.hypotheses[0].tokens
    position = given + 1
    words = candidates(checkpoint, found, tokens, position, typed)
    assert words.words and len({word.text for word in words.words}) >= len(words.words) - 1
    for word in words.words:
        said = (*tokens[:1], *word.tokens)
        replayed = trace(checkpoint, found.prompt, said, found.edits, found.options)
        assert word.p == pytest.approx(math.exp(replayed.logps[position : position + len(word.tokens)].sum()), rel=1e-3)
        assert word.text.lower().startswith(typed.lower())
        assert word.edit == Force(position, word.tokens) and word.ban == Ban(position, word.tokens)
        assert word.exact == bool(typed and word.text == typed)
    assert words.best == pytest.approx(math.exp(replay(checkpoint, found, tokens).top_logps[position, 0]), abs=1e-6)


def test_of_whole_words_the_candidates_are_the_likeliest_that_begin_as_typed(models: Models) -> None:
    checkpoint, found = models.checkpoint("caption"), models.run("caption")
    tokens = found.hypotheses[0].tokens
    place, spelled = Place(checkpoint, found, tokens, 1), vocabulary(checkpoint.target_text).spelled  # type: ignore[arg-type]
    fit = [n for n, piece in enumerate(spelled) if piece.startswith("g")]
    wanted = sorted(fit, key=lambda token: -float(place.logp_V[token]))[:8]
    assert [word.tokens for word in candidates(checkpoint, found, tokens, 1, "g").words] == [(token,) for token in wanted]


@pytest.mark.parametrize("typed", ["xqz", "a garden", "hund", "dogs"])
def test_what_was_typed_is_offered_however_unlikely(models: Models, typed: str) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")
    text, tokens = checkpoint.target_text, found.hypotheses[0].tokens
    spelled = text.encode(typed)  # type: ignore[union-attr]
    if not all(spelled.known):
        with pytest.raises(InputError, match=f"no pieces for “{typed}”"):
            candidates(checkpoint, found, tokens, 0, typed)
        return
    words = candidates(checkpoint, found, tokens, 0, typed).words
    assert [word.text for word in words if word.exact] == [typed]


def test_a_word_the_vocabulary_cannot_spell_has_its_sentence(models: Models) -> None:
    for task in TASKS:
        found = models.run(task)
        with pytest.raises(InputError, match="This model has no pieces for “Жю”, so it cannot say that here"):
            candidates(models.checkpoint(task), found, found.hypotheses[0].tokens, len(found.prompt.prefix), "Жю")
        with pytest.raises(InputError, match="This model has no pieces for “Жю”, so it cannot say it"):
            must_be_said(models.checkpoint(task), "Жю")
        with pytest.raises(InputError, match=f"at most {MOST_TYPED} characters"):
            must_be_said(models.checkpoint(task), "x" * 100)
    found = models.run("translate")
    for most in (0, -1):
        with pytest.raises(InputError, match=f"most must be a whole number, 1 or more, not {most}"):
            candidates(models.checkpoint("translate"), found, found.hypotheses[0].tokens, 0, "g", most)
    with pytest.raises(InputError, match="no word that must be said"):
        must_be_said(models.checkpoint("translate"), "  ")


@pytest.mark.parametrize(("task", "word"), [("translate", "garden"), ("complete", "cat"), ("transliterate", "न")])
def test_a_word_that_must_be_said_is_said(models: Models, task: str, word: str) -> None:
    checkpoint = models.checkpoint(task)
    must = must_be_said(checkpoint, word)
    assert must.text == word and len(must.spellings) == len(must.edit.spellings) <= 3
    found = models.run(task, (must.edit,), max_length=12)
    assert word.lower() in found.texts[0].lower()


def test_a_badge_says_what_price_and_replay_say(models: Models) -> None:
    checkpoint, plain = models.checkpoint("translate"), models.run("translate", strategy="greedy")
    first, second = replay(checkpoint, plain, plain.hypotheses[0].tokens).top_tokens[1, :2].tolist()
    assert first == plain.hypotheses[0].tokens[1]
    inside = ClampGate("decoder", "forget", 0.9)
    for word, place in ((Force(1, (second,)), 1), (Ban(1, (first,)), 1)):
        found = models.run("translate", (inside, word), strategy="beam")
        none, badge = badges(checkpoint, found)
        new = replay(checkpoint, found, found.hypotheses[0].tokens)
        assert none is None and badge is not None and badge.whole == found.own_prices[1].change
        assert badge.here == pytest.approx(new.top_logps[place, 0] - new.logps[place], abs=1e-5)
        greedy = models.run("translate", (inside,), strategy="greedy")
        old = trace(checkpoint, found.prompt, greedy.hypotheses[0].tokens, (inside,))
        assert badge.greedy == pytest.approx(new.total - old.total, abs=1e-4)
        assert badge.says.endswith(f"; the whole sentence {compared(badge.greedy or 0)} what greedy search writes")
        assert f"{ratio(badge.here)} less likely than the model's likeliest choice" in badge.says or badge.here < math.log(1.05)
    assert badges(checkpoint, models.run("translate", (inside,))) == (None,)


def test_a_badge_names_what_it_compares_with() -> None:
    for edit, place in ((Force(0, (5,)), "at this place"), (Ban(0, (4,)), "what stands there instead is")):
        few, none = (badge(edit, -1, [gap], (5,), 0, None, "word").says for gap in (math.log(3), 0.0))
        assert "3.0× less likely than the model's likeliest choice" in few and place in few
        assert "less likely" not in none and "the model's likeliest choice" in none and place in none


def test_a_required_word_is_judged_where_it_stands(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate", (Require(((10,),)),))
    (badge,) = badges(checkpoint, found)
    new = replay(checkpoint, found, found.hypotheses[0].tokens)
    at = new.tokens.index(10)
    assert badge is not None and badge.here == pytest.approx(new.top_logps[at, 0] - new.logps[at], abs=1e-5)


def test_a_word_that_only_lengthens_a_far_likelier_one_is_left_out(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")
    search = Completion(Place(checkpoint, found, found.hypotheses[0].tokens, 0), "cat")
    scores = {(5,): -1.0, (8,): -9.0}
    for tokens, score, idle in (((5, 6), -5.0, True), ((5, 6), -3.0, False), ((8, 6), -5.0, False), ((7, 6), -9.0, False)):
        assert search.idle(Beginning(tokens, "", 0.0), score, scores) == idle
    assert not search.idle(Beginning(search.exact, "", 0.0), -9.0, {search.exact[:1]: -1.0})  # what was typed stays


def test_a_required_word_that_became_part_of_a_longer_one_is_told(models: Models) -> None:
    checkpoint = models.checkpoint("complete")
    text = checkpoint.target_text
    assert text
    target = text.encode("The dogs sing.").ids
    assert longer_word(text, target, range(4, 7)) == "dogs" and longer_word(text, target, range(4, 8)) == ""
    assert longer_word(text, target, range(5, 6)) == "dogs" and longer_word(text, target, range(13, 14)) == ""
    assert longer_word(text, target, ()) == ""
    letters = models.checkpoint("transliterate").target_text
    assert letters and longer_word(letters, letters.encode("नमस").ids, (1,)) == ""
    found = models.run("complete", (Require(text.encode("og").ids),), max_length=20)
    (badge,) = badges(checkpoint, found)
    said = replay(checkpoint, found, found.hypotheses[0].tokens).tokens
    longer = longer_word(text, said, places_of(found.edits[0], said, len(found.prompt.prefix)))
    assert (
        badge is not None
        and "og" in longer
        and "; the whole text " in badge.says
        and badge.says.endswith(f"; as part of “{longer}”")
    )


def test_ratios_in_words() -> None:
    assert [ratio(math.log(x)) for x in (1.2, 8.66, 15, 1234, 1e6)] == ["1.2×", "8.7×", "15×", "1,234×", "10⁶×"]
    assert compared(math.log(1.2)) == "1.2× likelier than" and compared(-1e-3) == "as likely as"
    assert compared(-math.log(2)) == "2.0× less likely than"


def test_the_end_is_no_word(models: Models) -> None:
    checkpoint, found = models.checkpoint("translate"), models.run("translate")
    words = candidates(checkpoint, found, found.hypotheses[0].tokens, len(found.hypotheses[0].tokens) - 1)
    assert words.words and all(EOS not in word.tokens for word in words.words)


def test_words_are_ordered_by_their_pieces_and_their_end_and_what_was_typed_may_come_last(models: Models) -> None:
    checkpoint, found = models.checkpoint("complete"), models.run("complete")
    tokens, at = found.hypotheses[0].tokens, len(found.prompt.prefix)
    search = Completion(Place(checkpoint, found, tokens, at), "")
    listed = candidates(checkpoint, found, tokens, at).words
    ranks = []
    for word in listed:
        place = Place(checkpoint, found, (*word.tokens, EOS), at + len(word.tokens))
        (end,) = search.ends([Beginning(word.tokens, word.text, 0.0)], place.logp_V[None])
        ranks.append(math.log(word.p) + end)
    assert len(ranks) > 1 and ranks == sorted(ranks, reverse=True)
    *others, last = candidates(checkpoint, found, tokens, at, "dg", most=3).words
    assert last.exact and not any(word.exact for word in others)
