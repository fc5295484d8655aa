"""The named sets: which sources they join, what is held out, what is left out of train."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from seqdemo.errors import InputError
from training.data import sources, splits
from training.data.records import Example, clean
from training.data.sources import SPLITS, Pair, Photograph, Problems

MIN_CAPTION_WORDS = 3
REVERSE = {"train": 20_000, "dev": 500, "test": 1_000}


@dataclass
class Parts:
    """A set while it is put together."""

    train: list[Example] = field(default_factory=list)
    dev: list[Example] = field(default_factory=list)
    test: list[Example] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def held_out(self) -> list[Example]:
        return self.dev + self.test

    def note(self, count: int, what: str) -> None:
        if count:
            self.notes.append(f"{count:,} {what}")


def _tatoeba(folder: Path, problems: Problems) -> dict[str, list[Pair]]:
    return splits.by_component(sources.tatoeba(folder, problems))


TRANSLATIONS = {"multi30k": sources.multi30k, "tatoeba": _tatoeba}


def translation(names: tuple[str, ...]) -> Callable[[Path, Problems], Parts]:
    """German to English: Multi30k's own splits, Tatoeba's by component; no held-out sentence on either side of train."""

    def build(folder: Path, problems: Problems) -> Parts:
        read = {name: TRANSLATIONS[name](folder, problems) for name in names}
        parts = Parts()
        for name, pairs in read.items():
            parts.dev += splits.grouped(pairs["dev"], origin=name)
            parts.test += splits.grouped(pairs["test"], origin=name)
        for name, pairs in read.items():
            kept = splits.without(pairs["train"], parts.held_out())
            parts.note(len(pairs["train"]) - len(kept), f"pairs of {name} left out of train: a side stands in dev or test")
            parts.train += splits.each(kept, origin=name)
        return parts

    return build


def transliteration(languages: tuple[str, ...], more: bool) -> Callable[[Path, Problems], Parts]:
    """Latin spelling to native word: Dakshina's own splits, and with `more` Aksharantar's pairs in train.

    Dev and test have each distinct spelling once; an output is right if it is any native word attested for it there.
    """

    def build(folder: Path, problems: Problems) -> Parts:
        parts = Parts()
        lexicons = sources.dakshina(folder, languages, problems)
        for language, lexicon in lexicons.items():
            for split, into in (("dev", parts.dev), ("test", parts.test)):
                into += splits.grouped(((row.latin, row.native) for row in lexicon[split]), language, "dakshina")
        held_pairs = {(example.source, word) for example in parts.held_out() for word in example.references}
        for language, lexicon in lexicons.items():
            rows = lexicon["train"]
            parts.note(
                sum(row.times for row in rows), f"attestations of {len(rows):,} {language} train pairs; each pair stands once"
            )
            own = {(row.latin, row.native): None for row in rows}
            kept = [pair for pair in own if pair not in held_pairs]
            parts.note(
                len(own) - len(kept), f"{language} pairs of Dakshina left out of train: a language's dev or test has the pair"
            )
            parts.train += splits.each(kept, language, "dakshina")
            if more:
                parts.train += _more_words(folder, language, own, parts, held_pairs, problems)
        return parts

    return build


def _more_words(
    folder: Path, language: str, own: dict[Pair, None], parts: Parts, held_pairs: set[Pair], problems: Problems
) -> list[Example]:
    """Aksharantar's pairs that are new, and whose spelling and word are in neither dev nor test."""
    pairs = sources.aksharantar(folder, language, problems)
    if not pairs:
        parts.notes.append(f"Aksharantar has no {language}")
    clear = splits.without(pairs, (example for example in parts.held_out() if example.language == language))
    clear = [pair for pair in clear if pair not in held_pairs]
    new = [pair for pair in clear if pair not in own]
    parts.note(
        len(pairs) - len(clear), f"{language} pairs of Aksharantar left out of train: dev or test has the spelling or word"
    )
    parts.note(len(clear) - len(new), f"{language} pairs of Aksharantar are in Dakshina's train already")
    return splits.each(new, language, "aksharantar")


def captions(folder: Path, problems: Problems) -> Parts:
    """Flickr8k: one example a caption in train, one a photograph with its captions in dev and test."""
    photographs = sources.flickr8k(folder, problems)
    repeated = _repeated(photographs["train"], held=photographs["dev"] + photographs["test"])
    parts = Parts()
    for photograph in photographs["train"]:
        if photograph.path in repeated:
            problems.append(f"{photograph.path.name}: the same bytes as {repeated[photograph.path].name}; left out of train")
            continue
        for place, caption in photograph.captions:
            if too_short(caption):
                problems.append(f"{place}: fewer than {MIN_CAPTION_WORDS} words, left out of train: {caption!r}")
            else:
                parts.train.append(Example(photograph.path.name, (caption,), "", photograph.path, "flickr8k"))
    for split, into in (("dev", parts.dev), ("test", parts.test)):
        for photograph in photographs[split]:
            for place, caption in photograph.captions:
                if too_short(caption):
                    problems.append(f"{place}: fewer than {MIN_CAPTION_WORDS} words, kept as a reference: {caption!r}")
            texts = tuple(caption for _, caption in photograph.captions)
            into.append(Example(photograph.path.name, texts, "", photograph.path, "flickr8k"))
    return parts


def too_short(caption: str) -> bool:
    return len(re.findall(r"\w+", caption)) < MIN_CAPTION_WORDS


def _repeated(train: list[Photograph], held: list[Photograph]) -> dict[Path, Path]:
    """Photographs of train whose bytes are those of a held-out photograph or of an earlier one of train."""
    sizes: dict[int, list[Path]] = {}
    for photograph in held + train:
        sizes.setdefault(photograph.path.stat().st_size, []).append(photograph.path)
    first: dict[str, Path] = {}
    repeated = {}
    for paths in sizes.values():
        for path in paths if len(paths) > 1 else ():
            original = first.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path)
            if original != path:
                repeated[path] = original
    return {path: repeated[path] for path in (photograph.path for photograph in train) if path in repeated}


def plain_text(name: str) -> Callable[[Path, Problems], Parts]:
    """One long text a split: the first 80 % of the characters, the next 10 %, the last 10 %."""

    def build(folder: Path, problems: Problems) -> Parts:
        texts = splits.by_position(sources.text(folder, name))
        train, dev, test = ([Example("", (texts[split],), "", None, name)] for split in SPLITS)
        return Parts(train, dev, test)

    return build


def reverse(folder: Path, problems: Problems) -> Parts:
    """The toy: random strings of 1 to 10 letters, and the same backwards."""
    made = splits.invented(lambda word: word[::-1], REVERSE, "abcdefghijklmnopqrstuvwxyz", longest=10, seed=1)
    return Parts(splits.each(made["train"]), splits.grouped(made["dev"]), splits.grouped(made["test"]))


Builder = Callable[[Path, Problems], Parts]


def _builders() -> dict[str, Builder]:
    table: dict[str, Builder] = {
        "multi30k": translation(("multi30k",)),
        "tatoeba": translation(("tatoeba",)),
        "multi30k+tatoeba": translation(("multi30k", "tatoeba")),
        "flickr8k": captions,
        "reverse": reverse,
    }
    table.update((name, plain_text(name)) for name in sources.TEXTS)
    for more, prefix in ((False, "dakshina"), (True, "dakshina+aksharantar")):
        table.update((f"{prefix}:{code}", transliteration((code,), more)) for code in sources.DAKSHINA_LANGUAGES)
        table[f"{prefix}:all"] = transliteration(sources.DAKSHINA_LANGUAGES, more)
    return table


BUILDERS = _builders()


def builder(name: str) -> Builder:
    if name not in BUILDERS:
        raise InputError(f"There is no data set {clean(name)!r}; choose one of {', '.join(BUILDERS)}.")
    return BUILDERS[name]
