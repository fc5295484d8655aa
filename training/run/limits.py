"""The allowed values of a recipe's fields, checked before anything is read or trained."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any, NamedTuple

from seqdemo.checkpoints.description import LANGUAGE
from seqdemo.config import MAX_VOCABULARY, ModelConfig, from_json
from seqdemo.errors import InputError, shown

ENCODERS = {"translate": "text", "transliterate": "text", "caption": "image", "complete": "none"}
PAIR_METRICS = ("bleu", "exact", "cider")
METRICS = {"translate": PAIR_METRICS, "transliterate": PAIR_METRICS, "caption": PAIR_METRICS, "complete": ("nats",)}
TOKENIZERS = {
    "translate": ("subwords", "characters"),
    "transliterate": ("subwords", "characters"),
    "caption": ("words",),
    "complete": ("characters",),
}
LEAST_PIECES = 5  # four special tokens and one more


class Range(NamedTuple):
    """Numbers from `low` to `high`; with `above` or `below`, that end is excluded."""

    low: float = 0
    high: float = inf
    above: bool = False
    below: bool = False

    def holds(self, value: float) -> bool:
        low = value > self.low if self.above else value >= self.low
        return low and isfinite(value) and (value < self.high if self.below else value <= self.high)

    def __str__(self) -> str:
        low = f"above {self.low:,}" if self.above else f"at least {self.low:,}"
        if self.high == inf:
            return low
        return f"{low} and {f'below {self.high:,}' if self.below else f'at most {self.high:,}'}"


COUNT, SHARE, PART = Range(1), Range(0, 1), Range(0, 1, below=True)
POSITIVE = Range(0, above=True)
WHOLE = {
    "pieces": Range(0, MAX_VOCABULARY),
    "least": COUNT,
    "tokens": COUNT,
    "evaluations": COUNT,
    "patience": Range(0),
    "dev_size": COUNT,
    "seed": Range(0, 4_000_000),
    "window": COUNT,
    "streams": COUNT,
}
NUMBERS = {
    "epochs": POSITIVE,
    "rate": POSITIVE,
    "warmup": PART,
    "weight_decay": Range(0),
    "clip": POSITIVE,
    "label_smoothing": PART,
    "average": PART,
    "sampled": SHARE,
    "rewarded": PART,
    "spread": Range(0),
    "reinforce": Range(0),
    "entropy": Range(0),
    "subword_dropout": PART,
    "summary_dropout": SHARE,
    "stop_dropout": SHARE,
}


def check(values: Mapping[str, Any]) -> None:
    """Check the fields of a recipe. An InputError names a wrong one and its allowed values."""
    task = values["task"]
    one_of("task", task, tuple(ENCODERS))
    for name in ("model", "weigh"):
        if not isinstance(values[name], Mapping):
            raise InputError(f"{name} must be names with values, not {shown(values[name])}.")
    for name, allowed in {**WHOLE, **NUMBERS}.items():
        check_number(name, values[name], allowed)
    one_of("metric", values["metric"], METRICS[task], task)
    one_of("tokenizer", values["tokenizer"], TOKENIZERS[task], task)
    if values["tokenizer"] == "subwords" and values["pieces"] < LEAST_PIECES:
        raise InputError(f"pieces must be at least {LEAST_PIECES} with tokenizer subwords, not {values['pieces']}.")
    for name in ("source_language", "target_language"):
        if values[name] and not LANGUAGE.fullmatch(str(values[name])):
            raise InputError(f"{name} must be a language code such as de or pt-BR, not {shown(values[name])}.")
    for origin, times in values["weigh"].items():
        check_number(f"weigh of {origin}", times, Range(0))
    if values["rewarded"] and task != "caption":
        raise InputError(f"rewarded must be 0 for the task {task}: the reward is the CIDEr of captions.")
    check_model(task, values["model"])


def check_number(name: str, value: Any, allowed: Range) -> None:
    whole = name not in NUMBERS
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not allowed.holds(value):
        raise InputError(f"{name} must be a {'whole number' if whole else 'number'}, {allowed}, not {shown(value)}.")


def one_of(name: str, value: Any, known: tuple[str, ...], task: str = "") -> None:
    if value not in known:
        where = f" for the task {task}" if task else ""
        raise InputError(f"{name} must be {' or '.join(known)}{where}, not {shown(value)}.")


def check_model(task: str, model: Mapping[str, Any]) -> None:
    """Check the model's shape. Its vocabularies have arbitrary sizes here, because theirs come from the data."""
    vocabularies = {"target_vocabulary": MAX_VOCABULARY, "source_vocabulary": MAX_VOCABULARY if ENCODERS[task] == "text" else 0}
    from_json(ModelConfig, {**vocabularies, "encoder": ENCODERS[task], **model})
