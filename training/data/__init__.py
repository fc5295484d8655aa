"""Data by name: `load("multi30k+tatoeba", folder)`, with splits that do not leak and a fingerprint of the splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from seqdemo.errors import InputError
from training.data import captions, texts, translation, transliteration
from training.data.description import caution, describe
from training.data.download import cache_folder, fetch_all
from training.data.public import CONTENTS, FINGERPRINTS, SOURCES, credits, files_of, sources_of
from training.data.records import Dataset, Example, Parts, Split, fingerprint

__all__ = [
    "BUILDERS",
    "SOURCES",
    "TASKS",
    "Dataset",
    "Example",
    "Split",
    "caution",
    "credits",
    "describe",
    "heard",
    "load",
    "sources_of",
]

Listener = Callable[[Dataset], None]
Builder = Callable[[Path, list[str]], Parts]

OF_TASKS: dict[str, dict[str, Builder]] = {
    "translate": {
        "multi30k": partial(translation.build, ("multi30k",)),
        "tatoeba": partial(translation.build, ("tatoeba",)),
        "multi30k+tatoeba": partial(translation.build, ("multi30k", "tatoeba")),
    },
    "caption": {"flickr8k": captions.build},
    "complete": {name: partial(texts.build, name) for name in texts.STEMS},
    "transliterate": {
        "reverse": texts.reverse,
        **{f"dakshina:{code}": partial(transliteration.build, (code,), False) for code in transliteration.LANGUAGES},
        **{f"dakshina+aksharantar:{code}": partial(transliteration.build, (code,), True) for code in transliteration.LANGUAGES},
        "dakshina:all": partial(transliteration.build, transliteration.LANGUAGES, False),
        "dakshina+aksharantar:all": partial(transliteration.build, transliteration.LANGUAGES, True),
    },
}
BUILDERS = {name: build for builders in OF_TASKS.values() for name, build in builders.items()}
TASKS = {name: task for task, builders in OF_TASKS.items() for name in builders}  # data set -> what can be learnt from it


listeners: list[Listener] = []


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Inside this context, `listener` is called with every data set that is loaded."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


def load(name: str, folder: Path | None = None) -> Dataset:
    """The data set `name` from the local `folder`; without one, from the public files, downloaded into the cache."""
    if name not in BUILDERS:
        raise InputError(f"There is no data set {name!r}; choose one of {', '.join(BUILDERS)}.")
    if folder is None:
        folder = cache_folder()
        fetch_all(files_of(name), folder)
    elif not folder.is_dir():
        raise InputError(f"There is no data folder {folder}. Give another with --data, or leave it out to download.")
    problems: list[str] = []
    parts = BUILDERS[name](folder, problems)
    splits = Split(parts.train), Split(parts.dev), Split(parts.test)
    empty = [label for label, split in zip(("train", "dev", "test"), splits) if not split.examples]
    if empty:
        raise InputError(f"{name} from {folder} has nothing in {' and '.join(empty)}. Check the files there.")
    mark = fingerprint(*splits)
    others = [source for source in parts.contents if other(source, parts)]
    verified = mark == FINGERPRINTS.get(name) and captions.PHOTOGRAPHS not in others
    notes = (*parts.notes, *(f"{source} is another edition than the recorded one" for source in others))
    loaded = Dataset(name, *splits, mark, verified, notes, tuple(problems))
    for listener in listeners:
        listener(loaded)
    return loaded


def other(source: str, parts: Parts) -> bool:
    return parts.contents[source] != CONTENTS.get(source)
