"""Example, Split and Dataset, which every loader returns, and their fingerprint."""

from __future__ import annotations

import hashlib
import random
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
    """In train each example has one reference; dev and test have every distinct source once, with all its references."""

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
        return Split([e for e in self.examples if origin in ("", e.origin) and language in ("", e.language)])

    def origins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(example.origin for example in self.examples))

    def languages(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(example.language for example in self.examples))


@dataclass(frozen=True)
class Dataset:
    """Three splits, and whether they are those of the recorded figures."""

    name: str
    train: Split
    dev: Split
    test: Split
    fingerprint: str
    verified: bool
    notes: tuple[str, ...]  # what was counted or left out, one sentence each
    problems: tuple[str, ...] = ()  # rows that could not be used: file:line: reason

    def splits(self) -> dict[str, Split]:
        return {"train": self.train, "dev": self.dev, "test": self.test}

    @property
    def refusal(self) -> str:
        """Why figures on these splits cannot be compared with recorded ones; "" if they can."""
        if self.verified:
            return ""
        return (
            f"The splits of {self.name} here are not the recorded ones (fingerprint {self.fingerprint[:12]}): the public files "
            "have changed, or these are others. Training works; figures measured on them must not stand beside recorded ones."
        )


@dataclass
class Parts:
    """A data set under construction."""

    train: list[Example] = field(default_factory=list)
    dev: list[Example] = field(default_factory=list)
    test: list[Example] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)  # source -> sha256 of what was read from it

    def held_out(self) -> list[Example]:
        return self.dev + self.test

    def note(self, count: int, what: str) -> None:
        if count:
            self.notes.append(f"{count:,} {what}")


def clean(text: str) -> str:
    """NFC, with every run of white space as one blank and none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def valid(text: str) -> str:
    """A cleaned text from JSON, in which half a surrogate pair may stand: that raises UnicodeEncodeError, a ValueError."""
    text = clean(text)
    text.encode("utf-8")
    return text


def digest(rows: Iterable[Sequence[str]]) -> str:
    """sha256 over rows of cleaned fields: one line a row, a tab between fields, whatever layout they were read from."""
    return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def canonical(examples: Iterable[Example]) -> Iterator[tuple[str, ...]]:
    """The fields of an example for the fingerprint. A photograph counts by its name (its bytes are in the contents)."""
    for source, references, language, picture, origin in examples:
        yield origin, language, picture.name if picture else "", source, *references


def fingerprint(*splits: Split) -> str:
    """sha256 over the sizes and the digests of train, dev and test, in this order."""
    return digest([(str(len(split)), digest(canonical(split))) for split in splits])
