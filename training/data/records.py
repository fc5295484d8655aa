"""Example, Split, Dataset: what every loader hands over, and the fingerprint that names it."""

from __future__ import annotations

import hashlib
import random
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Example(NamedTuple):
    """One source with its references; a language model's source is "" and its one reference the whole text."""

    source: str
    references: tuple[str, ...]
    language: str = ""
    picture: Path | None = None
    origin: str = ""


@dataclass(frozen=True)
class Split:
    """Train has one reference an example; dev and test have every distinct source once with all its references."""

    examples: list[Example]

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def sample(self, size: int, seed: int = 0) -> Split:
        """At most `size` examples in their old order, the same ones for the same seed."""
        if size >= len(self.examples):
            return self
        chosen = random.Random(seed).sample(range(len(self.examples)), size)
        return Split([self.examples[index] for index in sorted(chosen)])

    def only(self, origin: str = "", language: str = "") -> Split:
        """The examples of one origin and one language; "" means any."""
        kept = [e for e in self.examples if origin in ("", e.origin) and language in ("", e.language)]
        return Split(kept)

    def origins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(example.origin for example in self.examples))

    def languages(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(example.language for example in self.examples))


@dataclass(frozen=True)
class Dataset:
    """Three splits, and whether they are the very ones that published figures were measured on."""

    name: str
    train: Split
    dev: Split
    test: Split
    fingerprint: str
    verified: bool
    notes: tuple[str, ...]  # what was counted, merged or left out, one sentence each
    problems: tuple[str, ...] = ()  # corrupt rows: file:line: reason

    def splits(self) -> dict[str, Split]:
        return {"train": self.train, "dev": self.dev, "test": self.test}


def clean(text: str) -> str:
    """NFC, with every run of white space as one blank and none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def canonical(examples: Iterable[Example]) -> Iterator[str]:
    """One line an example; `clean` leaves no tab inside a field, so lines are unambiguous."""
    for source, references, language, picture, origin in examples:
        yield "\t".join((origin, language, picture.name if picture else "", source, *references))


def fingerprint(train: Split, dev: Split, test: Split) -> str:
    """sha256 over the canonical lines of the three splits, in order."""
    digest = hashlib.sha256()
    for name, split in (("train", train), ("dev", dev), ("test", test)):
        digest.update(f"{name}\t{len(split)}\n".encode())
        digest.update("\n".join(canonical(split)).encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()
