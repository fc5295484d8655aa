"""Figures from outputs and references: pure functions without models, files or data sets.

BLEU, chrF and caption BLEU come from sacrebleu, with their signatures; CIDEr, the character error rate, the area under
the curve and the rest are a few lines each, and the tests compare them with reference libraries.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from seqdemo.hands.tracking import aucs

CAPTION_TOKENS = re.compile(r"\w+(?:['’-]\w+)*")
CAPTION_TOKENISATION = "lower-cased; words are runs of letters and digits, joined by ' or -; other signs are dropped"
CIDER_SIGMA = 6.0
LONGEST_NGRAM = 4

Box = Sequence[float]
Ngram = tuple[str, ...]


def streams(references: Sequence[Sequence[str]]) -> Any:
    """References by sentence, turned into sacrebleu's streams: stream j holds every sentence's j-th reference, or None."""
    width = max((len(of_one) for of_one in references), default=0)
    return [[of_one[j] if j < len(of_one) else None for of_one in references] for j in range(width)]


def bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], bootstrap: int = 0) -> dict[str, Any]:
    """Cased BLEU (13a) against every reference; with `bootstrap` resamples also the bounds of its 95 % interval."""
    metric = BLEU()
    score: Any = metric.corpus_score(list(outputs), streams(references), n_bootstrap=max(1, bootstrap))
    found = {"bleu": float(score.score), "signature": str(metric.get_signature())}
    if bootstrap > 1:
        found["interval"] = [float(score._mean - score._ci), float(score._mean + score._ci)]
    return found


def chrf(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Any]:
    """chrF2 against every reference."""
    metric = CHRF()
    score = metric.corpus_score(list(outputs), streams(references))
    return {"chrf": float(score.score), "signature": str(metric.get_signature())}


def exact_match(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Share of outputs, in per cent, that equal one of their references."""
    return _percent([output in set(accepted) for output, accepted in zip(outputs, references)])


def top_n(ranked: Sequence[Sequence[str]], references: Sequence[Sequence[str]], n: int = 5) -> float:
    """Share of inputs, in per cent, with one of their references among the first n outputs."""
    return _percent([not set(accepted).isdisjoint(outputs[:n]) for outputs, accepted in zip(ranked, references)])


def _percent(hits: Sequence[bool]) -> float:
    return 100.0 * sum(hits) / len(hits) if len(hits) else math.nan


def edit_distance(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Fewest insertions, deletions and substitutions that turn a into b (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def character_errors(output: str, references: Sequence[str]) -> tuple[int, int]:
    """(edits, length) against the closest reference: fewest edits, then the longest. Characters are NFC code points."""
    mine = unicodedata.normalize("NFC", output)
    words = [unicodedata.normalize("NFC", reference) for reference in references]
    edits, minus_length = min((edit_distance(mine, word), -len(word)) for word in words)
    return edits, -minus_length


def character_error_rate(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Edits over reference characters, summed over the corpus, in per cent."""
    counts = [character_errors(output, accepted) for output, accepted in zip(outputs, references)]
    return 100.0 * sum(edits for edits, _ in counts) / max(1, sum(length for _, length in counts))


def caption_words(text: str) -> list[str]:
    """The tokens a caption is scored on; see CAPTION_TOKENISATION."""
    return CAPTION_TOKENS.findall(text.lower())


def caption_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """Corpus BLEU-1 to BLEU-4 as the COCO evaluation has them: no smoothing, the closest reference's length."""
    tokenised = [" ".join(caption_words(output)) for output in outputs]
    against = streams([[" ".join(caption_words(reference)) for reference in accepted] for accepted in references])
    options: dict[str, Any] = {"tokenize": "none", "force": True, "smooth_method": "none", "effective_order": False}
    return [float(BLEU(max_ngram_order=n, **options).corpus_score(tokenised, against).score) for n in (1, 2, 3, 4)]


def cider(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Mean of `cider_each`, times 100, as papers print it."""
    return 100.0 * float(np.mean(cider_each(outputs, references)))


def cider_each(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """The CIDEr-D value of each caption."""
    judge = Cider([[caption_words(reference) for reference in accepted] for accepted in references])
    return [judge.value(caption_words(output), row) for row, output in enumerate(outputs)]


class Weighed(NamedTuple):
    """The n-grams of a caption with their weights g, the sum of g^2 for each n, and the number of bigrams."""

    weights: dict[Ngram, float]
    squares: list[float]
    bigrams: int


class Cider:
    """CIDEr-D of words against the references of one of N inputs.

    g(w) = count(w) * (log N - log max(1, df(w))), df over the N inputs' reference sets;
    CIDEr_n(c, r) = exp(-(l_c - l_r)^2 / 2 sigma^2) * sum_w min(g_c(w), g_r(w)) g_r(w) / (|g_c| |g_r|);
    the value is 10 times the mean over n = 1..4 and over references; l counts bigrams, as the COCO code does.
    """

    def __init__(self, references: Sequence[Sequence[Sequence[str]]]) -> None:
        found = [[ngrams(reference) for reference in accepted] for accepted in references]
        frequency: Counter[Ngram] = Counter()
        for accepted in found:
            frequency.update(set().union(*accepted))
        self.unseen = math.log(max(1, len(references)))
        self.inverse = {gram: math.log(len(references)) - math.log(count) for gram, count in frequency.items()}
        self.references = [[self.weighed(grams) for grams in accepted] for accepted in found]

    def weighed(self, grams: Counter[Ngram]) -> Weighed:
        weights = {gram: count * self.inverse.get(gram, self.unseen) for gram, count in grams.items()}
        squares = [0.0] * LONGEST_NGRAM
        for gram, weight in weights.items():
            squares[len(gram) - 1] += weight**2
        return Weighed(weights, squares, sum(count for gram, count in grams.items() if len(gram) == 2))

    def value(self, words: Sequence[str], row: int) -> float:
        """The value of these words as a caption of the input in this row."""
        candidate = self.weighed(ngrams(words))
        return 10.0 * float(np.mean([_alike(candidate, reference) for reference in self.references[row]]))


def ngrams(words: Sequence[str]) -> Counter[Ngram]:
    return Counter(tuple(words[i : i + n]) for n in range(1, LONGEST_NGRAM + 1) for i in range(len(words) - n + 1))


def _alike(candidate: Weighed, reference: Weighed) -> float:
    products = [0.0] * LONGEST_NGRAM
    for gram, weight in candidate.weights.items():
        if gram in reference.weights:
            products[len(gram) - 1] += min(weight, reference.weights[gram]) * reference.weights[gram]
    squares = zip(products, candidate.squares, reference.squares)
    cosines = [product / math.sqrt(c * r) if c and r else product for product, c, r in squares]
    gap = candidate.bigrams - reference.bigrams
    return sum(cosines) / LONGEST_NGRAM * math.exp(-(gap**2) / (2 * CIDER_SIGMA**2))


def nats_per_character(logps: Sequence[float], characters: int) -> float:
    """Minus the total log probability over the number of characters."""
    return -math.fsum(logps) / characters


def auc(values_N: np.ndarray, labels_N: np.ndarray) -> float:
    """Area under the ROC curve: how often a positive is above a negative, ties counting half. NaN without both kinds."""
    labels_N = np.asarray(labels_N, dtype=bool)
    positives, negatives = int(labels_N.sum()), int((~labels_N).sum())
    if not positives or not negatives:
        return math.nan
    return float(aucs(np.asarray(values_N)[:, None], labels_N)[0])


def correlation(values_N: np.ndarray, targets_N: np.ndarray) -> float:
    """Pearson's correlation; 0 if one of the two is constant."""
    x = np.asarray(values_N, dtype=np.float64) - np.mean(values_N, dtype=np.float64)
    y = np.asarray(targets_N, dtype=np.float64) - np.mean(targets_N, dtype=np.float64)
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / scale if scale > 0 else 0.0


def inside(point: tuple[float, float], box: Box) -> bool:
    """Whether a point lies in a box (left, top, right, bottom), all fractions of the picture."""
    return bool(box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3])
