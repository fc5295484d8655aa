"""A recorded sample of dev text, and what a network computes over it.

`sample.json` lies beside the shipped checkpoints; `python -m training sample` draws it. It holds texts only. Figures are
computed from the current weights, so that nothing goes out of date and any model of the task can be asked. A captioner's
sample are the example photographs, because those of its data set may not be passed on, with the captions that it writes itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from seqdemo.checkpoints import Checkpoint
from seqdemo.checkpoints.folder import shipped_folder
from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.explain.replay import inputs_of, shown
from seqdemo.hands.place import Cancel, Progress, stop_if
from seqdemo.playground import network_of, scorable, searched, sources_of
from seqdemo.prompts import Prompt, prepare, tokenizer
from seqdemo.records import is_attention

FILE, FORMAT = "sample.json", 1
PHOTOGRAPHS = Path(__file__).resolve().parents[1] / "ui/photos"
BATCH = 16
READ_FIRST = "<bos>"


class Sample(NamedTuple):
    """Inputs with their outputs; the title says what they are."""

    title: str
    pairs: tuple[tuple[Prompt, tuple[int, ...]], ...]


class Followed(NamedTuple):
    """What one part of a network computed over a sample: the piece read at each step, and the terms by path (N, units)."""

    pieces: tuple[str, ...]
    terms: dict[str, np.ndarray]


@lru_cache(maxsize=4)
def recorded(path: Path) -> dict[str, Any]:
    """The content of the file by the key of a task; empty without the file."""
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found["texts"] if found.get("format") == FORMAT else {}


def key_of(checkpoint: Checkpoint, language: str = "") -> str:
    """The key of this checkpoint's sample in the file."""
    if checkpoint.task == "complete":
        return f"complete:{checkpoint.name}"
    return f"transliterate:{language}" if checkpoint.task == "transliterate" else checkpoint.task


def sample_for(checkpoint: Checkpoint, language: str = "") -> Sample:
    """The sample of this checkpoint's task, in its language. If there is none, an InputError says so."""
    if checkpoint.task == "caption":
        return of_photographs(checkpoint)
    known = recorded(shipped_folder() / FILE).get(key_of(checkpoint, language))
    if known is None:
        raise InputError(f"There is no recorded sample of dev text for {checkpoint.name}; ask over the input at hand instead.")
    if checkpoint.task == "complete":
        return Sample(known["title"], (scorable(checkpoint, "", known["text"]),))
    pairs = tuple(scorable(checkpoint, source, target, language) for source, target in known["pairs"])
    return Sample(known["title"], pairs)


def of_photographs(checkpoint: Checkpoint) -> Sample:
    """The example photographs, with the captions that greedy search writes for them."""
    prompts = [prepare(checkpoint, path) for path in sorted(PHOTOGRAPHS.glob("*.jpg"))]
    found = searched(checkpoint, prompts, SearchOptions(strategy="greedy"))
    title = f"the {len(prompts)} example photographs, with the captions that this model writes for them"
    return Sample(title, tuple((prompt, one.hypotheses[0].tokens) for prompt, one in zip(prompts, found)))


@torch.inference_mode()
def follow(
    checkpoint: Checkpoint, sample: Sample, progress: Progress | None = None, cancel: Cancel | None = None
) -> dict[str, Followed]:
    """Replay the whole sample: what the decoder and each direction of the encoder computed, without padding."""
    found: dict[str, list[Followed]] = {}
    done = 0
    for batch in batches(sample):
        stop_if(cancel)
        for part, followed in of_batch(checkpoint, batch):
            found.setdefault(part, []).append(followed)
        done += len(batch)
        if progress:
            progress(done, len(sample.pairs))
    return {part: together(each) for part, each in found.items()}


def batches(sample: Sample) -> Iterator[Sequence[tuple[Prompt, tuple[int, ...]]]]:
    in_order = sorted(sample.pairs, key=lambda pair: len(pair[1]))
    for start in range(0, len(in_order), BATCH):
        yield in_order[start : start + BATCH]


def of_batch(checkpoint: Checkpoint, batch: Sequence[tuple[Prompt, tuple[int, ...]]]) -> Iterator[tuple[str, Followed]]:
    network, piece = network_of(checkpoint), tokenizer(checkpoint.target_text).piece
    prompts, outputs = zip(*batch)
    seen = network.teach(*sources_of(prompts), inputs_of(*outputs), keep=shown(network.config)).seen
    for part in ("encoder", "decoder"):
        if part == "decoder":
            rows = [(READ_FIRST, *map(piece, tokens[:-1])) for tokens in outputs]
        else:
            rows = [prompt.pieces.strings for prompt in prompts]
        terms = {
            name: np.concatenate([value_TH[: len(row)] for value_TH, row in zip(values.float().numpy(), rows)])
            for name, values in seen.items()
            if name.startswith(part) and not is_attention(name)
        }
        if terms:
            yield part, Followed(tuple(piece for row in rows for piece in row), terms)


def together(parts: Sequence[Followed]) -> Followed:
    terms = {name: np.concatenate([part.terms[name] for part in parts]) for name in parts[0].terms}
    return Followed(tuple(piece for part in parts for piece in part.pieces), terms)
