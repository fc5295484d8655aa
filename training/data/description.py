"""A readable description of a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from training.data.public import SOURCES, sources_of
from training.data.records import Dataset, Example, Split

QUANTILES = (("shortest", 0.0), ("25 %", 0.25), ("half", 0.5), ("75 %", 0.75), ("95 %", 0.95), ("99 %", 0.99), ("longest", 1.0))
SHOWN_PROBLEMS = 20
CAUTIONED_PROBLEMS = 3
SHOWN_EXAMPLES = 3
SHOWN_CHARACTERS = 80


def describe(dataset: Dataset) -> str:
    """Sources, counts, lengths, languages, examples, what was left out, and the fingerprint."""
    parts = (_sources, _counts, _lengths, _languages, _examples, _notes, _problems, _verdict)
    return "\n\n".join(text for part in parts if (text := "\n".join(part(dataset))))


def _sources(dataset: Dataset) -> Iterator[str]:
    yield dataset.name
    for name in sources_of(dataset.name):
        source = SOURCES[name]
        yield f"  {source.title}, {source.home} (licence: {source.licence})"


def _is_text(dataset: Dataset) -> bool:
    return len(dataset.train) == 1 and not dataset.train.examples[0].source


def _counts(dataset: Dataset) -> Iterator[str]:
    for label, split in dataset.splits().items():
        if _is_text(dataset):
            text = split.examples[0].references[0]
            yield f"{label:<6}{len(text):>12,} characters, {len(set(text))} different ones"
            continue
        references = sum(len(example.references) for example in split)
        origins = Counter(example.origin for example in split)
        apart = ", ".join(f"{name} {count:,}" for name, count in origins.items()) if len(origins) > 1 else ""
        yield f"{label:<6}{len(split):>12,} examples, {references:,} references{f' ({apart})' if apart else ''}"


def _lengths(dataset: Dataset) -> Iterator[str]:
    if _is_text(dataset):
        return
    words = any(" " in reference for example in dataset.dev for reference in example.references)
    yield f"{'lengths in ' + ('words' if words else 'characters'):<22}" + "".join(f"{name:>10}" for name, _ in QUANTILES)
    for label, split in dataset.splits().items():
        sides = {"references": [text for example in split for text in example.references]}
        if not dataset.train.examples[0].picture:
            sides = {"sources": [example.source for example in split], **sides}
        for side, texts in sides.items():
            lengths = sorted(len(text.split()) if words else len(text) for text in texts)
            yield f"{label + ' ' + side:<22}" + "".join(f"{quantile(lengths, q):>10}" for _, q in QUANTILES)


def quantile(ordered: list[int], share: float) -> int:
    """The smallest value that at least this share of the values does not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def _languages(dataset: Dataset) -> Iterator[str]:
    counts = {label: Counter(example.language for example in split) for label, split in dataset.splits().items()}
    for language in dataset.test.languages():
        if language:
            yield f"{language:<6}" + "".join(f"{label:>8}{count[language]:>10,}" for label, count in counts.items())


def _examples(dataset: Dataset) -> Iterator[str]:
    for label, split in dataset.splits().items():
        for example in _spread(split):
            sides = [example.source, " / ".join(example.references)]
            yield f"{label:<6}" + " -> ".join(_short(side) for side in sides if side)


def _spread(split: Split) -> Iterable[Example]:
    """A few examples, spread evenly over the split."""
    step = max(1, len(split) // SHOWN_EXAMPLES)
    return split.examples[step // 2 :: step][:SHOWN_EXAMPLES]


def _short(text: str) -> str:
    text = text.replace("\n", "⏎")
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def _notes(dataset: Dataset) -> Iterator[str]:
    yield from dataset.notes


def caution(dataset: Dataset, listing: str) -> str:
    """Warnings about the data: broken rows, which the command `listing` lists, and another edition; "" if there are none."""
    rows = _first(dataset, CAUTIONED_PROBLEMS, f"{listing} lists them all") if dataset.problems else ()
    return "\n".join([*rows, *([dataset.refusal] if dataset.refusal else [])])


def _first(dataset: Dataset, shown: int, more: str) -> Iterator[str]:
    yield f"{len(dataset.problems):,} rows or photographs that are not as they should be:"
    yield from (f"  {problem}" for problem in dataset.problems[:shown])
    if len(dataset.problems) > shown:
        yield f"  and {len(dataset.problems) - shown:,} more; {more}"


def _problems(dataset: Dataset) -> Iterator[str]:
    if dataset.problems:
        yield from _first(dataset, SHOWN_PROBLEMS, "--problems lists them all")


def _verdict(dataset: Dataset) -> Iterator[str]:
    yield f"fingerprint {dataset.fingerprint}"
    yield dataset.refusal or "These are the recorded splits: figures measured on them can be compared."
