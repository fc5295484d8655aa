from __future__ import annotations

import functools
import math
import random

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu as CocoBleu
from pycocoevalcap.cider.cider import Cider as CocoCider

from training.measure import metrics

WORDS = ["a", "the", "dog", "man", "ball", "runs", "sits", "red", "snow", "in", "on", "two"]
short_text = st.text(alphabet="abcd", max_size=7)


def captions(seed: int, count: int = 60) -> tuple[list[str], list[list[str]]]:
    """Random captions of very different lengths with two to five references, some shared between pictures."""
    chance = random.Random(seed)

    def sentence() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 14)))

    references = [[sentence() for _ in range(chance.randint(2, 5))] for _ in range(count)]
    outputs = [chance.choice(accepted) if chance.random() < 0.3 else sentence() for accepted in references]
    return outputs, references


def as_coco(outputs: list[str], references: list[list[str]]) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    return dict(enumerate(references)), {i: [output] for i, output in enumerate(outputs)}


@pytest.mark.parametrize("seed", range(5))
def test_caption_bleu_equals_the_coco_evaluation(seed: int) -> None:
    outputs, references = captions(seed)
    expected, _ = CocoBleu(4).compute_score(*as_coco(outputs, references), verbose=0)
    assert metrics.caption_bleu(outputs, references) == pytest.approx([100 * value for value in expected], abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_cider_equals_the_coco_evaluation_for_the_corpus_and_each_caption(seed: int) -> None:
    outputs, references = captions(seed)
    expected, each = CocoCider().compute_score(*as_coco(outputs, references))
    assert metrics.cider(outputs, references) == pytest.approx(100 * expected, abs=1e-6)
    assert metrics.cider_each(outputs, references) == pytest.approx(list(each), abs=1e-6)


def test_captions_are_scored_without_case_and_punctuation() -> None:
    assert metrics.caption_words("A Dog's ball , on T-shirt .") == ["a", "dog's", "ball", "on", "t-shirt"]
    outputs, references = captions(7)
    dressed = [output.capitalize() + " ." for output in outputs]
    assert metrics.caption_bleu(dressed, references) == metrics.caption_bleu(outputs, references)
    assert metrics.cider(dressed, references) == metrics.cider(outputs, references)


def test_bleu_and_chrf_of_uneven_references_equal_sacrebleu_with_the_missing_ones_repeated() -> None:
    """A repeated reference changes nothing in BLEU or chrF, so padding by repetition is an oracle for padding by nothing."""
    outputs, references = captions(3)
    width = max(map(len, references))
    repeated = [[accepted[min(j, len(accepted) - 1)] for accepted in references] for j in range(width)]
    assert metrics.bleu(outputs, references)["bleu"] == pytest.approx(sacrebleu.corpus_bleu(outputs, repeated).score, abs=1e-9)
    assert metrics.chrf(outputs, references)["chrf"] == pytest.approx(sacrebleu.corpus_chrf(outputs, repeated).score, abs=1e-9)


def test_signatures_name_the_tokeniser_and_the_number_of_references() -> None:
    outputs, references = ["a dog"], [["a dog", "the dog"]]
    assert "tok:13a" in metrics.bleu(outputs, references)["signature"]
    assert "case:mixed" in metrics.bleu(outputs, references)["signature"]
    assert "nrefs:2" in metrics.chrf(outputs, references)["signature"]


def test_the_bootstrap_interval_holds_the_score_and_narrows_with_more_text() -> None:
    outputs, references = captions(1, 400)
    few = metrics.bleu(outputs[:40], references[:40], bootstrap=200)
    many = metrics.bleu(outputs, references, bootstrap=200)
    for found in (few, many):
        assert found["interval"][0] < found["bleu"] < found["interval"][1]
    assert np.ptp(many["interval"]) < np.ptp(few["interval"])


def test_a_perfect_output_scores_full_marks() -> None:
    sentences = ["the red dog runs in the snow", "two men sit on a ball"]
    references = [[sentence, "something else entirely"] for sentence in sentences]
    assert metrics.bleu(sentences, references)["bleu"] == pytest.approx(100)
    assert metrics.chrf(sentences, references)["chrf"] == pytest.approx(100)
    assert metrics.caption_bleu(sentences, references) == pytest.approx([100] * 4)
    assert metrics.exact_match(sentences, references) == 100
    assert metrics.character_error_rate(sentences, references) == 0


def test_exact_match_and_top_n_accept_any_attested_word() -> None:
    attested = [["घर", "घर्"], ["नमस्ते"], ["दिल"]]
    assert metrics.exact_match(["घर्", "नमस्ते", "दील"], attested) == pytest.approx(200 / 3)
    ranked = [["गर", "घर"], ["नमस्ते"], ["a", "b", "c", "d", "e", "दिल"]]
    assert metrics.top_n(ranked, attested, 5) == pytest.approx(200 / 3)
    assert metrics.top_n(ranked, attested, 6) == 100
    assert metrics.top_n(ranked, attested, 1) == pytest.approx(100 / 3)


def test_character_errors_are_counted_against_the_closest_attested_word() -> None:
    assert metrics.character_errors("abcd", ["wxyz", "abce"]) == (1, 4)
    assert metrics.character_errors("abc", ["ab", "abcd"]) == (1, 4), "of two as close, the longer"
    assert metrics.character_errors("", ["abc"]) == (3, 3)
    assert metrics.character_error_rate(["abcd", "xy"], [["abce"], ["xyz", "q"]]) == pytest.approx(100 * 2 / 7)


def test_composed_and_decomposed_letters_are_the_same_character() -> None:
    assert metrics.character_errors("e\u0301", ["\u00e9"]) == (0, 1)


@given(short_text, short_text)
def test_edit_distance_equals_its_recursive_definition(a: str, b: str) -> None:
    @functools.cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    assert metrics.edit_distance(a, b) == distance(len(a), len(b))


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40))
def test_auc_counts_pairs_with_ties_as_half(rows: list[tuple[int, bool]]) -> None:
    values, labels = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    pairs = [(p > n) + 0.5 * (p == n) for p in values[labels] for n in values[~labels]]
    found = metrics.auc(values, labels)
    assert math.isnan(found) if not pairs else found == pytest.approx(np.mean(pairs), abs=1e-12)


def test_correlation_equals_numpys_and_is_zero_for_a_constant() -> None:
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=300), chance.normal(size=300)
    assert metrics.correlation(x, 0.3 * x + y) == pytest.approx(np.corrcoef(x, 0.3 * x + y)[0, 1], abs=1e-12)
    assert metrics.correlation(np.ones(5), np.arange(5)) == 0.0


def test_a_uniform_model_costs_the_log_of_its_alphabet() -> None:
    assert metrics.nats_per_character([-math.log(50)] * 7, 7) == pytest.approx(math.log(50))
