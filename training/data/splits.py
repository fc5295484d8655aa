"""Splits that do not leak: by connected component, by held-out sentence, by held-out word."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable

from training.data.reading import Pair
from training.data.records import Example


def components(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Group pairs so that two pairs which share a source or a target are in the same group (union-find)."""
    parent: dict[tuple[int, str], tuple[int, str]] = {}

    def root(node: tuple[int, str]) -> tuple[int, str]:
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = node = parent.setdefault(above, above)
        return node

    pairs = list(pairs)
    for source, target in pairs:
        parent[root((0, source))] = root((1, target))
    groups: dict[tuple[int, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(root((0, pair[0])), []).append(pair)
    return list(groups.values())


def bucket(component: list[Pair]) -> int:
    """sha256(the component's smallest source sentence, UTF-8) mod 100."""
    smallest = min(source for source, _ in component)
    return int(hashlib.sha256(smallest.encode("utf-8")).hexdigest(), 16) % 100


def by_component(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Bucket 0 is test, bucket 1 dev, the rest train; every split in the order of the file."""
    pairs = list(pairs)
    where: dict[str, str] = {}
    for component in components(pairs):
        split = {0: "test", 1: "dev"}.get(bucket(component), "train")
        where.update((source, split) for source, _ in component)
    parts: dict[str, list[Pair]] = {"train": [], "dev": [], "test": []}
    for pair in pairs:
        parts[where[pair[0]]].append(pair)
    return parts


def each(pairs: Iterable[Pair], language: str = "", origin: str = "") -> list[Example]:
    """One example a pair, for train."""
    return [Example(source, (target,), language, None, origin) for source, target in pairs]


def grouped(pairs: Iterable[Pair], language: str = "", origin: str = "") -> list[Example]:
    """Every distinct source once, with all its references in order, for dev and test."""
    references: dict[str, dict[str, None]] = {}
    for source, target in pairs:
        references.setdefault(source, {})[target] = None
    return [Example(source, tuple(targets), language, None, origin) for source, targets in references.items()]


def held(examples: Iterable[Example]) -> tuple[set[str], set[str]]:
    """The sources and the references of held-out examples."""
    examples = list(examples)
    return {example.source for example in examples}, {text for example in examples for text in example.references}


def without(pairs: list[Pair], held_out: Iterable[Example]) -> list[Pair]:
    """The pairs of which neither side occurs in a held-out example."""
    sources, targets = held(held_out)
    return [pair for pair in pairs if pair[0] not in sources and pair[1] not in targets]


def by_position(text: str) -> dict[str, str]:
    """The first 80 % of the characters, the next 10 %, the last 10 %."""
    first, second = len(text) * 8 // 10, len(text) * 9 // 10
    return {"train": text[:first], "dev": text[first:second], "test": text[second:]}


def invented(task: Callable[[str], str], sizes: dict[str, int], alphabet: str, longest: int, seed: int) -> dict[str, list[Pair]]:
    """Distinct random strings of 1 to `longest` letters with what `task` makes of them, in splits of the given sizes."""
    chance = random.Random(seed)
    words: dict[str, None] = {}
    while len(words) < sum(sizes.values()):
        words["".join(chance.choices(alphabet, k=chance.randint(1, longest)))] = None
    order = list(words)
    chance.shuffle(order)
    pairs = iter([(word, task(word)) for word in order])
    return {split: [next(pairs) for _ in range(size)] for split, size in sizes.items()}
