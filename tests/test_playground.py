"""Text in, search, texts and prices out: every task and strategy over tiny checkpoints, and every input that cannot be used."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import BOS, EOS, PAD, SearchOptions
from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Edit, Force
from seqdemo.errors import InputError
from seqdemo.playground import Run, find, replay, run, scorable, score, scores, search_error, trace
from seqdemo.prompts import prepare, unlike_training
from seqdemo.records import Hypothesis
from seqdemo.search import error_between
from tests import tiny

STRATEGIES = ("greedy", "beam", "sample", "exact")
ATTENDING = ("translate", "transliterate", "caption")
Maker = Callable[[str], Checkpoint]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    folder = tmp_path_factory.mktemp("tiny")
    return cache(lambda task: tiny.checkpoint(folder, task))


def picture(seed: int = 0) -> bytes:
    pixels, out = np.random.default_rng(seed).random((60, 80, 3)) ** (seed + 1) * 255, io.BytesIO()
    Image.fromarray(pixels.astype("uint8")).save(out, "png")
    return out.getvalue()


INPUTS: dict[str, list[Any]] = {
    "translate": ["Der hund singt im garten.", "Ein kind.", "Die frau und der mann laufen auf gras.", "Das haus."],
    "transliterate": ["namaste", "dilli", "a", "kitab"],
    "caption": [picture(0), picture(1), picture(2)],
    "complete": ["The dog ", "", "Big red ", "The woman plays in the"],
}
CASES = [(task, strategy) for task in tiny.TASKS for strategy in STRATEGIES]


def options(strategy: str, **more: Any) -> SearchOptions:
    return SearchOptions(strategy=strategy, samples=3 if strategy == "sample" else 1, expansions=3_000, **more)


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-5 * (1 + abs(b))


def own_part(found: Run, tokens: tuple[int, ...], checkpoint: Checkpoint) -> np.ndarray:
    """The log probabilities of a replay that belong to what was searched, not to a language model's given beginning."""
    return replay(checkpoint, found, tokens).logps[len(found.prompt.prefix) :]


def logps_by_forward(checkpoint: Checkpoint, found: Run, tokens: tuple[int, ...]) -> float:
    """By teacher forcing of the whole model at once, as in training."""
    network: Any = checkpoint.model
    whole = (*found.prompt.prefix, *tokens)
    inputs_1T = torch.tensor([[BOS, *whole[:-1]]])
    with torch.inference_mode():
        if checkpoint.task == "complete":
            logits_1TV, _ = network(inputs_1T)
        elif checkpoint.task == "caption":
            logits_1TV = network(found.prompt.source, None, inputs_1T)
        else:
            source_1S = torch.tensor([found.source.ids])
            logits_1TV = network(source_1S, source_1S > 0, inputs_1T)
    logp_TV = logits_1TV[0].double().log_softmax(1)
    return float(logp_TV.gather(1, torch.tensor(whole)[:, None])[len(found.prompt.prefix) :].sum())


@pytest.mark.parametrize(("task", "strategy"), CASES)
def test_a_run_is_text_and_tree_and_every_total_is_that_of_replay_and_of_teacher_forcing(
    model: Maker, task: str, strategy: str
) -> None:
    checkpoint = model(task)
    for source in INPUTS[task][:3]:
        found = run(checkpoint, source, options(strategy, nbest=3))
        assert len(found.texts) == len(found.hypotheses) >= 1 and (found.certificate is not None) == (strategy == "exact")
        scores = [hypothesis.score for hypothesis in found.hypotheses]
        assert scores == sorted(scores, reverse=True)
        for text, hypothesis in zip(found.texts, found.hypotheses):
            assert found.tree.tokens(hypothesis.node) == hypothesis.tokens
            assert close(own_part(found, hypothesis.tokens, checkpoint).sum(), hypothesis.total)
            assert close(logps_by_forward(checkpoint, found, hypothesis.tokens), hypothesis.total)
            assert checkpoint.target_text is not None
            assert text == checkpoint.target_text.decode((*found.prompt.prefix, *hypothesis.tokens))


@pytest.mark.parametrize("task", tiny.TASKS)
def test_any_node_of_the_tree_can_be_replayed(model: Maker, task: str) -> None:
    checkpoint = model(task)
    found = run(checkpoint, INPUTS[task][0])
    for node in range(0, len(found.tree), 1 + len(found.tree) // 25):
        assert close(own_part(found, found.tree.tokens(node), checkpoint).sum(), found.tree[node].total)


@pytest.mark.parametrize("task", tiny.TASKS)
def test_exact_search_is_never_worse_than_beam_and_reports_the_empty_output(model: Maker, task: str) -> None:
    checkpoint, gains = model(task), []
    for source in INPUTS[task]:
        beam, exact = (run(checkpoint, source, options(strategy, nbest=1)) for strategy in ("beam", "exact"))
        best, other = exact.hypotheses[0], beam.hypotheses[0]
        gains.append(best.total - other.total)
        assert exact.certificate is not None
        assert gains[-1] >= -1e-5 * (1 + abs(other.total)) or not exact.certificate.proved
        assert close(exact.certificate.empty_logp, own_part(exact, (EOS,), checkpoint)[0])
        assert exact.certificate.bound >= best.score
        assert close(exact.certificate.bound, best.score) or not exact.certificate.proved
    assert max(gains) > 0.01, "these inputs show no search error, so this test shows nothing"


@pytest.mark.parametrize("task", tiny.TASKS)
def test_exact_search_reports_the_empty_output_also_where_it_may_not_be_said(model: Maker, task: str) -> None:
    checkpoint, given = model(task), INPUTS[task][0]
    free = run(checkpoint, given, options("exact", nbest=1))
    first = len(free.prompt.prefix)
    kept = (
        run(checkpoint, given, options("exact", nbest=1, min_length=2)),
        run(checkpoint, given, options("exact", nbest=1), edits=(Ban(first, (EOS,)),)),
        run(checkpoint, given, options("exact", nbest=1), edits=(Force(first + 1, free.hypotheses[0].tokens[:1]),)),
    )
    for one in (free, *kept):
        assert one.certificate is not None and close(one.certificate.empty_logp, own_part(free, (EOS,), checkpoint)[0])


def test_a_search_error_is_named(model: Maker) -> None:
    checkpoint = model("translate")
    prompts = [prepare(checkpoint, given) for given in INPUTS["translate"]]
    beams = find(checkpoint, prompts, SearchOptions(strategy="greedy"))
    exacts = find(checkpoint, prompts, options("exact", nbest=1))
    errors = [error_between(exact, beam) for exact, beam in zip(exacts, beams)]
    for exact, beam, error in zip(exacts, beams, errors):
        assert error.missed == (exact.hypotheses[0].tokens != beam.hypotheses[0].tokens)
    assert any(error.missed for error in errors)
    for prompt, error in zip(prompts, errors):
        exact, greedy = (run(checkpoint, prompt, options(strategy, nbest=1)) for strategy in ("exact", "greedy"))
        assert search_error(exact, greedy).missed == error.missed
    other = run(checkpoint, INPUTS["translate"][0], edits=(Ban(0, (7,)),))
    for one in (greedy, other):
        with pytest.raises(InputError, match="Compare searches of the same input"):
            search_error(run(checkpoint, INPUTS["translate"][0], options("exact", nbest=1)), one)
    with pytest.raises(InputError, match="in one precision: these are in float32 and int8"):
        search_error(exact, replace(greedy, precision="int8"))


def test_pictures_are_compared_by_what_is_read(model: Maker) -> None:
    one, same, other = (prepare(model("caption"), picture(seed)) for seed in (0, 0, 1))
    assert one.reads_as(same) and not one.reads_as(other) and not one.reads_as(prepare(model("translate"), "Ein kind."))


def test_a_grid_of_another_shape_is_told_so(model: Maker) -> None:
    checkpoint = model("caption")
    prompt = prepare(checkpoint, picture(0))
    assert isinstance(prompt.source, torch.Tensor)
    for wrong in (prompt.source[:, :, :-1], prompt.source[:, :-1], prompt.source[0, 0]):
        with pytest.raises(InputError, match="A picture is 3 x"):
            trace(checkpoint, replace(prompt, source=wrong), (4, EOS))


@pytest.mark.parametrize(("task", "strategy"), CASES)
def test_padding_and_the_beginning_are_never_said_and_nothing_is_made_up_for_them(
    tmp_path: Path, task: str, strategy: str
) -> None:
    checkpoint = tiny.checkpoint(tmp_path, task)
    network: Any = checkpoint.model.bare()
    with torch.no_grad():
        network.readout.b[[PAD, BOS]] += 6.0
    checkpoint = replace(checkpoint, model=network.for_inference())
    nbest = 1 if strategy in ("greedy", "exact") else 5
    found = run(checkpoint, INPUTS[task][0], options(strategy, nbest=nbest))
    assert not {PAD, BOS} & set(found.tree.token.tolist()) and np.isfinite(found.tree.total).all()
    best = found.hypotheses[0]
    assert close(own_part(found, best.tokens, checkpoint).sum(), best.total)
    assert close(logps_by_forward(checkpoint, found, best.tokens), best.total)
    assert not {PAD, BOS} & set(replay(checkpoint, found, best.tokens).top_tokens.flatten().tolist())
    if found.certificate and found.certificate.proved:
        beam = run(checkpoint, INPUTS[task][0], options("beam")).hypotheses[0]
        assert beam.total <= best.total + 1e-5 * (1 + abs(best.total))


def margin(found: Any) -> float:
    """By how much the closest pruned candidate missed; nothing is pruned by a draw, or by exact search."""
    missed = found.tree.missed[found.tree.fate == 1]
    return float(missed.min(initial=1.0, where=missed > 0))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("task", tiny.TASKS)
def test_a_batch_gives_what_its_inputs_give_alone(model: Maker, task: str, strategy: str) -> None:
    checkpoint = model(task)
    prompts = [prepare(checkpoint, given) for given in INPUTS[task]]
    compared = 0
    for prompt, together in zip(prompts, find(checkpoint, prompts, options(strategy))):
        (alone,) = find(checkpoint, [prompt], options(strategy))
        if margin(alone) > 1e-4:
            compared += 1
            assert [one.tokens for one in alone.hypotheses] == [one.tokens for one in together.hypotheses]
            assert all(close(a.total, b.total) for a, b in zip(alone.hypotheses, together.hypotheses))
    assert compared >= 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_completions_of_a_batch_repeat_nothing_and_heed_edits_as_each_does_alone(model: Maker, strategy: str) -> None:
    checkpoint = model("complete")
    prompts = [prepare(checkpoint, given) for given in INPUTS["complete"]]
    asked, edits = options(strategy, no_repeat=2, min_length=24, max_length=30), (Ban(23, (7,)), Force(24, (6, 8)))
    for prompt, together in zip(prompts, find(checkpoint, prompts, asked, edits)):
        (alone,) = find(checkpoint, [prompt], asked, edits)
        assert [one.tokens for one in alone.hypotheses] == [one.tokens for one in together.hypotheses]
        assert all((prompt.prefix + one.tokens)[24:26] == (6, 8) for one in together.hypotheses)


@pytest.mark.parametrize("task", tiny.TASKS)
def test_outputs_scored_together_have_the_log_probabilities_of_their_replays(model: Maker, task: str) -> None:
    checkpoint = model(task)
    texts = ["", "The dog sings.", "A cat", "The woman plays in the garden. The man runs."]
    if task == "transliterate":
        texts = ["", "नमस्ते", "दिल्ली", "क"]
    asked = [scorable(checkpoint, given, text) for given, text in zip(INPUTS[task], texts) if given or text]
    for (prompt, tokens), logps in zip(asked, scores(checkpoint, asked)):
        expected = trace(checkpoint, prompt, tokens).logps
        assert len(logps) == len(expected) and np.allclose(logps, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("task", ATTENDING)
def test_exact_searches_of_a_batch_heed_the_edits_as_each_does_alone(model: Maker, task: str) -> None:
    checkpoint = model(task)
    prompts = [prepare(checkpoint, given) for given in INPUTS[task]]
    edits = (Ban(0, (7,)), Force(1, (6,)), AttentionBlend(0.5), ClampGate("decoder", tiny.GATE[task], 0.5))
    for prompt, together in zip(prompts, find(checkpoint, prompts, options("exact", nbest=1), edits)):
        (alone,) = find(checkpoint, [prompt], options("exact", nbest=1), edits)
        assert alone.hypotheses[0].tokens == together.hypotheses[0].tokens and together.hypotheses[0].tokens[1] == 6
        assert close(alone.hypotheses[0].total, together.hypotheses[0].total)
        assert alone.certificate is not None and together.certificate is not None
        assert alone.certificate.expansions == together.certificate.expansions


@pytest.mark.parametrize("task", tiny.TASKS)
def test_two_threads_on_one_model_get_what_they_get_alone(model: Maker, task: str) -> None:
    checkpoint = model(task)
    edits = (ClampGate("decoder", tiny.GATE[task], 0.5), *((AttentionBlend(0.5),) if task in ATTENDING else ()))
    asked = [(INPUTS[task][0], options("beam"), ()), (INPUTS[task][1], options("sample"), edits)]
    alone = [run(checkpoint, *question).hypotheses for question in asked]
    results: list[list[tuple[Hypothesis, ...]]] = [[], []]
    barrier = threading.Barrier(2)

    def work(place: int) -> None:
        barrier.wait()
        for _ in range(5):
            results[place].append(run(checkpoint, *asked[place]).hypotheses)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[alone[0]] * 5, [alone[1]] * 5]


@pytest.mark.parametrize(("task", "strategy"), CASES)
def test_words_forced_or_banned_hold_and_cost_what_the_untouched_model_says(model: Maker, task: str, strategy: str) -> None:
    checkpoint, given = model(task), INPUTS[task][0]
    plain = run(checkpoint, given, options(strategy))
    first = len(plain.prompt.prefix)
    old = plain.hypotheses[0].tokens
    other = next(token for token in range(4, 12) if token != old[0])
    forced = run(checkpoint, given, options(strategy), (Force(first, (other, other)),))
    new = forced.hypotheses[0].tokens
    assert new[:2] == (other, other)
    (price,) = forced.prices
    assert close(price.change, logps_by_forward(checkpoint, forced, new) - logps_by_forward(checkpoint, plain, old))
    assert close(price.after - price.before, price.change) and price.kind == "tokens"
    assert len(price.gaps) == 2 and min(price.gaps) >= 0
    banned = run(checkpoint, given, options(strategy), (Ban(first, old[:1]),)).hypotheses
    assert all(hypothesis.tokens[0] != old[0] for hypothesis in banned)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("task", ATTENDING)
def test_a_row_and_a_gate_are_priced_on_the_same_tokens(model: Maker, task: str, strategy: str) -> None:
    checkpoint, given = model(task), INPUTS[task][0]
    prompt = prepare(checkpoint, given)
    positions = prompt.source.shape[1] if isinstance(prompt.source, torch.Tensor) else len(prompt.pieces.ids)
    row = tuple(float(position == 1) for position in range(positions))
    edits: tuple[Edit, ...] = (AttentionRow(0, row), ClampGate("decoder", tiny.GATE[task], "mean"))
    found = run(checkpoint, given, options(strategy), edits)
    tokens = found.hypotheses[0].tokens
    edited, plain = replay(checkpoint, found, tokens), trace(checkpoint, found.prompt, tokens)
    assert close(edited.total, found.hypotheses[0].total)
    assert edited.attention is not None and np.allclose(edited.attention[0], row)
    (price,) = found.prices
    assert price.kind == "state" and close(price.change, edited.total - plain.total)


def test_words_and_states_have_two_prices_that_are_never_mixed(model: Maker) -> None:
    checkpoint = model("translate")
    edits = (Force(0, (9,)), AttentionBlend(1.0, "last"))
    found = run(checkpoint, INPUTS["translate"][0], edits=edits)
    assert [price.kind for price in found.prices] == ["tokens", "state"]
    tokens = found.hypotheses[0].tokens
    without = run(checkpoint, INPUTS["translate"][0], edits=edits[1:])
    old = trace(checkpoint, found.prompt, without.hypotheses[0].tokens, edits[1:])
    new = trace(checkpoint, found.prompt, tokens, edits[1:])
    assert close(found.prices[0].before, old.total) and close(found.prices[0].after, new.total)
    assert close(found.prices[1].before, logps_by_forward(checkpoint, found, tokens)) and close(found.prices[1].after, new.total)


def test_a_completion_is_the_language_models_own(model: Maker) -> None:
    """Greedy: at each place the most probable character after everything so far, computed by reading it all anew."""
    checkpoint = model("complete")
    network: Any = checkpoint.model
    for beginning in INPUTS["complete"]:
        found = run(checkpoint, beginning, SearchOptions(strategy="greedy", max_length=30))
        text = [BOS, *found.prompt.prefix]
        with torch.inference_mode():
            for token in found.hypotheses[0].tokens:
                logits_1TV, _ = network(torch.tensor([text]))
                assert int(logits_1TV[0, -1].argmax()) == token
                text.append(token)
        assert found.texts[0].startswith(beginning)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_was_given_is_not_repeated_either(model: Maker, strategy: str) -> None:
    checkpoint, given = model("complete"), "The dog sings. The woman runs in the garden. The d"
    found = run(checkpoint, given, options(strategy, min_length=4, max_length=6, no_repeat=2))
    for hypothesis in found.hypotheses:
        text = found.prompt.prefix + hypothesis.tokens
        pairs = list(pairwise(text))
        assert not any(pair in pairs[:place] for place, pair in enumerate(pairs) if place >= len(given) - 1)


def test_positions_of_a_completion_count_from_the_beginning_of_the_text(model: Maker) -> None:
    checkpoint = model("complete")
    found = run(checkpoint, "The dog ", edits=(Force(9, (8, 9)),))
    assert found.hypotheses[0].tokens[1:3] == (8, 9)
    with pytest.raises(InputError, match="first 8 pieces are the text that was given; force or ban from position 8"):
        run(checkpoint, "The dog ", edits=(Ban(7, (8,)),))


def test_the_probability_of_a_given_output_is_that_of_its_search(model: Maker) -> None:
    checkpoint = model("transliterate")
    best = run(checkpoint, "namaste").hypotheses[0]
    assert checkpoint.target_text is not None
    assert close(score(checkpoint, "namaste", checkpoint.target_text.decode(best.tokens)).total, best.total)
    assert score(checkpoint, "namaste", "").tokens == (EOS,)


def test_the_probability_of_a_text_is_the_language_models_own(model: Maker) -> None:
    checkpoint = model("complete")
    network: Any = checkpoint.model
    trace = score(checkpoint, "The ", "dog\nsings")
    ids = torch.tensor([[BOS, *trace.tokens]])
    with torch.inference_mode():
        logits_1TV, _ = network(ids[:, :-1])
    assert close(trace.total, float(logits_1TV[0].double().log_softmax(1).gather(1, ids[0, 1:, None]).sum()))
    assert "".join(trace.target) == "The dog\nsings"


def test_the_target_language_is_read_as_the_first_piece(model: Maker) -> None:
    checkpoint = model("transliterate")
    hindi, urdu = (run(checkpoint, "namaste", language=language) for language in ("hi", "ur"))
    assert hindi.source.strings[0] == "<hi>" and urdu.source.strings[0] == "<ur>"
    assert hindi.source.ids[1:] == urdu.source.ids[1:] and hindi.hypotheses != urdu.hypotheses
    assert run(checkpoint, "namaste").hypotheses == hindi.hypotheses


@pytest.mark.parametrize(
    ("task", "given", "words"),
    [
        ("translate", "Der hund singt.", ""),
        ("translate", "Der 犬 singt 猫.", "never seen 2 pieces"),
        ("translate", "Gnudnuh ezthak fraghel snibalo.", "unusually small pieces"),
        ("translate", " ".join(["der hund"] * 21), "longer than"),
        ("translate", "Der hund singt. Der hund singt.", "several sentences"),
        ("translate", "Der hund singt z. B. Lieder.", ""),
        ("transliterate", "namaste", ""),
        ("transliterate", "namसte", "never seen 1 piece of"),
        ("transliterate", "NAMASTE", ""),
        ("complete", "Tähe", "never seen 1 piece of"),
    ],
)
def test_inputs_far_from_training_are_told_so(model: Maker, task: str, given: str, words: str) -> None:
    far = prepare(model(task), given).far
    assert words in far and bool(words) == bool(far)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The dog runs across the meadow.", True),
        ("I love you", True),
        ("I am going home because I am tired.", True),
        ("A young man is carrying something in a large bag.", True),
        ("Ich liebe dich.", False),
        ("Was war das?", False),
        ("Die Band Them war in der Stadt.", False),
        ("Er trägt ein T-Shirt mit der Aufschrift The Who.", False),
        ("Guten Morgen", False),
    ],
)
def test_english_typed_where_german_is_read_gets_a_warning(model: Maker, text: str, told: bool) -> None:
    checkpoint = SimpleNamespace(task="translate", config={"source_language": "de"})
    assert bool(unlike_training(checkpoint, text)) == told  # type: ignore[arg-type]
    assert not unlike_training(SimpleNamespace(task="translate", config={"source_language": "en"}), text)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["नमस्ते", "नमस्ते.", "🐕\ufe0f\u200d🐈", "Ａ"], ids=ascii)
@pytest.mark.parametrize("task", ["translate", "transliterate", "complete"])
def test_a_text_of_which_the_model_knows_no_letter_is_refused(model: Maker, task: str, given: str) -> None:
    with pytest.raises(InputError, match="knows none of these letters; type a text in the language and script"):
        run(model(task), given)


def test_an_output_of_which_the_model_knows_no_letter_has_no_price(model: Maker) -> None:
    with pytest.raises(InputError, match="knows none of these letters"):
        score(model("translate"), "Ein hund", "नमस्ते")
    with pytest.raises(InputError, match="knows none of these letters"):
        score(model("complete"), "", "नमस्ते")


TOO_LONG = [
    ("translate", "a" * 1_001, "1,001 characters; the limit is 1,000"),
    ("translate", "a" * 100_000, "100,000 characters"),
    ("translate", "hund " * 121, "the limit is 120"),
    ("transliterate", "a" * 121, "the limit is 120"),
    ("complete", "a" * 5_001, "5,001 characters; the limit is 5,000"),
]


@pytest.mark.parametrize(("task", "given", "words"), TOO_LONG, ids=lambda value: str(value)[:20])
def test_what_is_too_long_is_told_so(model: Maker, task: str, given: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(model(task), given)
    with pytest.raises(InputError, match=words):
        score(model(task), given, "")


@pytest.mark.parametrize(("task", "most"), [("translate", 1_000), ("transliterate", 119), ("complete", 5_000)])
def test_the_longest_allowed_is_decoded(model: Maker, task: str, most: int) -> None:
    given = "a" * most if task != "translate" else "hund " * 20 + " " * (most - 100)
    assert run(model(task), given, SearchOptions(strategy="greedy", max_length=3)).texts


def test_characters_are_counted_as_they_are_read(model: Maker) -> None:
    greedy = SearchOptions(strategy="greedy", max_length=2)
    assert run(model("complete"), "The " + "e\u0301" * 2_600, greedy).texts
    assert run(model("translate"), "hund" + "e\u0301" * 100 + " " * 1_000, greedy).texts
    with pytest.raises(InputError, match="10,000 characters; the limit is 5,000"):
        score(model("complete"), "a" * 5_000, "b" * 5_000)


def test_a_language_model_goes_on_for_as_long_as_it_is_asked_to(model: Maker) -> None:
    found = run(model("complete"), "The ", SearchOptions(strategy="greedy", min_length=299, max_length=300))
    assert len(found.hypotheses[0].tokens) == 300
    assert len(run(model("complete"), "The ", SearchOptions(strategy="greedy", min_length=119)).hypotheses[0].tokens) == 120


def test_an_edit_far_into_a_long_continuation_is_searched_priced_and_replayed(model: Maker) -> None:
    options = SearchOptions(strategy="greedy", min_length=199, max_length=200)
    plain = run(model("complete"), "The ", options)
    said = plain.prompt.prefix + plain.hypotheses[0].tokens
    found = run(model("complete"), "The ", options, (Ban(180, said[180:181]),))
    traced = replay(model("complete"), found, found.hypotheses[0].tokens)
    assert traced.tokens[:180] == said[:180] and traced.tokens[180] != said[180]
    assert found.prices[0].after == pytest.approx(float(traced.logps.sum()), abs=1e-3)


NOTHING = ["", " ", "\n\t ", "\u200d", "\0", "\u200b\u2067", "\u00ad"]


@pytest.mark.parametrize("given", NOTHING, ids=ascii)
@pytest.mark.parametrize("task", ["translate", "transliterate"])
def test_nothing_to_read_is_told_so(model: Maker, task: str, given: str) -> None:
    with pytest.raises(InputError, match="type at least one letter"):
        run(model(task), given)


def test_a_language_model_starts_from_nothing_but_cannot_score_it(model: Maker) -> None:
    assert run(model("complete"), "").texts
    with pytest.raises(InputError, match="type at least one character"):
        score(model("complete"), "", "")


ODD = [
    "hund\0katze",
    "\u202ehund\u202c katze",
    "h\u0300\u0301\u0302\u0303\u0315u" + "\u0489" * 50,
    "hund 🐕\ufe0f\u200d🐈",
    "\ufeffhund",
    "hＡ\u0130",
]


@pytest.mark.parametrize("given", ODD, ids=ascii)
@pytest.mark.parametrize("task", ["translate", "transliterate", "complete"])
def test_odd_text_is_decoded_like_any_other(model: Maker, task: str, given: str) -> None:
    found = run(model(task), given, SearchOptions(beam=2, max_length=20))
    assert found.texts and close(own_part(found, found.hypotheses[0].tokens, model(task)).sum(), found.hypotheses[0].total)


@settings(max_examples=40)
@given(given=st.text(max_size=60) | st.text(st.characters(categories=("Cc", "Cf", "Cs", "Mn", "Zs", "Co")), max_size=10))
def test_any_text_is_decoded_or_refused_with_a_sentence(model: Maker, given: str) -> None:
    for task in ("translate", "transliterate", "complete"):
        try:
            assert len(run(model(task), given, SearchOptions(strategy="greedy", max_length=3)).texts) == 1
        except InputError as error:
            assert str(error).endswith(".")


@pytest.mark.parametrize("given", ["a\ud800", "\udfff"], ids=ascii)
def test_half_a_character_is_refused(model: Maker, given: str) -> None:
    for task in ("translate", "complete"):
        with pytest.raises(InputError, match="lone surrogate"):
            run(model(task), given)
        with pytest.raises(InputError, match="lone surrogate"):
            score(model(task), "a", given)


@pytest.mark.parametrize(
    ("task", "given", "words"),
    [
        ("translate", None, "must be text"),
        ("translate", b"hund", "must be text"),
        ("complete", 7, "must be text"),
        ("caption", None, "no picture"),
        ("caption", b"not a picture", "not a picture"),
        ("caption", "there is no such file.jpg", "no file"),
    ],
)
def test_what_is_no_input_is_told_so(model: Maker, task: str, given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(model(task), given)


@pytest.mark.parametrize("task", ["translate", "transliterate"])
def test_a_language_the_model_does_not_know_is_told_so(model: Maker, task: str) -> None:
    with pytest.raises(InputError, match="no target language 'xx'"):
        run(model(task), "hund", language="xx")


@pytest.mark.parametrize(
    "wrong",
    [
        {"strategy": "best"},
        {"beam": 0},
        {"beam": 101},
        {"beam": 2.5},
        {"top_p": 0.0},
        {"temperature": float("nan")},
        {"min_length": 5, "max_length": 5},
        {"length_norm": "mean"},
        {"nbest": True},
    ],
    ids=str,
)
def test_options_out_of_range_or_against_each_other_are_told_so(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        SearchOptions(**wrong)


def test_options_that_do_not_fit_this_input_are_told_so(model: Maker) -> None:
    with pytest.raises(InputError, match="leaves no room"):
        run(model("transliterate"), "a", SearchOptions(min_length=50))
    with pytest.raises(InputError, match="needs a model with attention"):
        run(model("complete"), "The", SearchOptions(coverage=0.2))


def test_edits_may_be_made_from_lists(model: Maker) -> None:
    lists = (Force(0, [5]), AttentionRow(1, [1.0, 2.0]), ClampGate("decoder", "forget", 0.0, units=[1, 2]))  # type: ignore[arg-type]
    tuples = (Force(0, (5,)), AttentionRow(1, (1.0, 2.0)), ClampGate("decoder", "forget", 0.0, units=(1, 2)))
    assert lists == tuples and hash(lists) == hash(tuples)


def test_what_may_repeat_may_be_forced_twice(model: Maker) -> None:
    edits = (Force(0, (5,)), Force(2, (5,)))
    found = run(model("transliterate"), "ab", SearchOptions(no_repeat=1, may_repeat=(5,), max_length=6), edits)
    assert found.hypotheses[0].tokens[0] == found.hypotheses[0].tokens[2] == 5
    with pytest.raises(InputError, match="repeated 1-grams are not allowed"):
        run(model("transliterate"), "ab", SearchOptions(no_repeat=1, may_repeat=(6,), max_length=6), edits)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Force(24, (5,)), "outside this output"),
        (Ban(-1, (5,)), "outside this output"),
        (Force(0, (10_000,)), "piece numbers"),
        (AttentionRow(0, (1.0,)), "has 7 weights"),
        (AttentionRow(30, (1.0,) * 7), "outside this output"),
        (ClampGate("decoder", "update", 0.0, units=(99,)), "whole numbers from 0 to 19"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_edit_that_does_not_fit_this_input_is_told_so(model: Maker, edit: Edit, words: str) -> None:
    """<hi> and six letters: seven positions, room for 24 pieces."""
    with pytest.raises(InputError, match=words):
        run(model("transliterate"), "namast", edits=(edit,))


def test_a_position_beyond_the_maximum_length_is_told_so(model: Maker) -> None:
    with pytest.raises(InputError, match="room for 4 pieces"):
        run(model("transliterate"), "namaste", SearchOptions(max_length=4), (Force(4, (5,)),))


def test_a_cancelled_search_gives_what_it_has(model: Maker) -> None:
    steps = iter([False, False, True])
    found = run(model("translate"), INPUTS["translate"][2], cancel=lambda: next(steps, True))
    assert max(len(hypothesis.tokens) for hypothesis in found.hypotheses) <= 3


def test_exact_search_says_how_far_it_is(model: Maker) -> None:
    seen: list[tuple[int, float, float]] = []
    found = run(model("translate"), INPUTS["translate"][0], options("exact", nbest=1), progress=lambda *now: seen.append(now))
    assert found.certificate is not None and seen[-1][0] == found.certificate.expansions
    assert all(best <= bound + 1e-9 for _, best, bound in seen)


@pytest.mark.parametrize("task", tiny.TASKS)
def test_runs_are_equal_when_all_in_them_is(model: Maker, task: str) -> None:
    one, other, short = (
        run(model(task), prepare(model(task), INPUTS[task][0]), options("beam", max_length=length)) for length in (8, 8, 7)
    )
    assert one == other and one is not other and one != short and one.prompt == other.prompt
    assert one.prompt != prepare(model(task), INPUTS[task][1]) and one.prompt != "text"
    tokens = one.hypotheses[0].tokens
    assert replay(model(task), one, np.array(tokens)) == replay(model(task), other, tokens)  # type: ignore[arg-type]


def test_what_is_no_checkpoint_or_no_options_has_its_sentence(model: Maker) -> None:
    with pytest.raises(InputError, match=r"Give a checkpoint, as load\(...\) returns it, not 'translator-de-en'"):
        run("translator-de-en", "Rot.")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"Options are SearchOptions, such as SearchOptions\(beam=3\), not \{'beam': 3\}"):
        run(model("translate"), "Rot.", {"beam": 3})  # type: ignore[arg-type]
