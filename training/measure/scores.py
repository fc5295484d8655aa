"""The figures of a set of outputs, task by task: of the whole set, by source length, and of single sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from training.data.records import Example
from training.measure import metrics

BOOTSTRAP = 1_000


class Output(NamedTuple):
    """The outputs for one input: texts, best first, with their raw log probabilities and lengths in tokens with <eos>."""

    texts: tuple[str, ...]
    totals: tuple[float, ...]
    lengths: tuple[int, ...]


class Edges(NamedTuple):
    """Buckets of source length: each number begins a bucket."""

    unit: str
    starts: tuple[int, ...]


class Scoring(NamedTuple):
    """How a task is scored: all its figures, the one that stands for them, one for a single sentence, its buckets."""

    figures: Callable[[Sequence[Output], Sequence[Example]], dict[str, Any]]
    main: str
    single: Callable[[Output, Example], float]
    edges: Edges | None


def best(outputs: Sequence[Output]) -> list[str]:
    return [output.texts[0] if output.texts else "" for output in outputs]


def references(examples: Sequence[Example]) -> list[tuple[str, ...]]:
    return [example.references for example in examples]


def translation(outputs: Sequence[Output], examples: Sequence[Example]) -> dict[str, Any]:
    texts, accepted = best(outputs), references(examples)
    return {
        "bleu": metrics.bleu(texts, accepted)["bleu"],
        "chrf": metrics.chrf(texts, accepted)["chrf"],
        "exact": metrics.exact_match(texts, accepted),
        "tokens": sum(output.lengths[0] for output in outputs) / len(outputs),
    }


def transliteration(outputs: Sequence[Output], examples: Sequence[Example]) -> dict[str, Any]:
    """top1, top5: how often a word attested for the input is the first output, or one of the first five."""
    accepted = references(examples)
    found = {
        "top1": metrics.exact_match(best(outputs), accepted),
        "cer": metrics.character_error_rate(best(outputs), accepted),
    }
    if max(len(output.texts) for output in outputs) >= 5:
        found["top5"] = metrics.top_n([output.texts for output in outputs], accepted, 5)
    return found


def captions(outputs: Sequence[Output], examples: Sequence[Example]) -> dict[str, Any]:
    texts, accepted = best(outputs), references(examples)
    figures: dict[str, Any] = {f"bleu{n}": value for n, value in enumerate(metrics.caption_bleu(texts, accepted), 1)}
    words = sum(len(metrics.caption_words(text)) for text in texts)
    return {**figures, "cider": metrics.cider(texts, accepted), "words": words / len(texts)}


def _sentence_chrf(output: Output, example: Example) -> float:
    return float(metrics.chrf(best([output]), [example.references])["chrf"])


SCORING: dict[str, Scoring] = {
    "translate": Scoring(
        translation,
        "bleu",
        _sentence_chrf,
        Edges("words", (1, 6, 11, 16, 21)),
    ),
    "transliterate": Scoring(
        transliteration,
        "top1",
        lambda output, example: metrics.exact_match(best([output]), [example.references]),
        Edges("characters", (1, 4, 6, 8, 10, 12, 14)),
    ),
    "caption": Scoring(
        captions,
        "bleu4",
        _sentence_chrf,
        None,
    ),
}


def length(example: Example, unit: str) -> int:
    return len(example.source.split()) if unit == "words" else len(example.source)


def by_length(task: str, outputs: Sequence[Output], examples: Sequence[Example]) -> list[dict[str, Any]]:
    """The task's main figure in each bucket of source length that has inputs; the last bucket has no upper end."""
    scoring = SCORING[task]
    if scoring.edges is None:
        return []
    unit, starts = scoring.edges
    rows = []
    for start, after in zip(starts, (*starts[1:], None)):
        inside = [i for i, e in enumerate(examples) if start <= length(e, unit) and (after is None or length(e, unit) < after)]
        if inside:
            figures = scoring.figures([outputs[i] for i in inside], [examples[i] for i in inside])
            bucket = {"unit": unit, "from": start, "to": after - 1 if after else None, "inputs": len(inside)}
            rows.append({**bucket, scoring.main: figures[scoring.main], **_interval(task, inside, outputs, examples)})
    return rows


def _interval(task: str, inside: Sequence[int], outputs: Sequence[Output], examples: Sequence[Example]) -> dict[str, Any]:
    """BLEU's 95 % interval in a bucket, by resampling its inputs; those of shares follow from their counts."""
    if task != "translate":
        return {}
    texts, accepted = best([outputs[i] for i in inside]), references([examples[i] for i in inside])
    return {"interval": metrics.bleu(texts, accepted, bootstrap=BOOTSTRAP)["interval"]}


def signatures(task: str, outputs: Sequence[Output], examples: Sequence[Example]) -> dict[str, Any]:
    """How the figures were computed, and BLEU's 95 % interval."""
    texts, accepted = best(outputs), references(examples)
    if task == "translate":
        bleu = metrics.bleu(texts, accepted, bootstrap=BOOTSTRAP)
        chrf = metrics.chrf(texts, accepted)
        return {"bleu_signature": bleu["signature"], "chrf_signature": chrf["signature"], "bleu_interval": bleu["interval"]}
    if task == "caption":
        return {"tokenisation": metrics.CAPTION_TOKENISATION, "case": "lower"}
    return {"rule": "right if the output is any word attested for the input; errors against the closest of them; NFC"}
