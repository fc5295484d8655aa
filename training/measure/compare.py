"""Two checkpoints on the same inputs: what one gets right and the other wrong, and the reverse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.hub import load
from training.measure.decoding import Progress, decode, prompts, quiet
from training.measure.evaluate import chosen, load_data, refusal_of, rounded
from training.measure.scores import SCORING, Output

SHOWN = 20
BEAM = SearchOptions(beam=5)


def compare(
    first: Path,
    second: Path,
    data: Path | None = None,
    split: str = "test",
    dataset: str = "",
    options: SearchOptions = BEAM,
    shown: int = SHOWN,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Counts of inputs that both, one or neither get right, and those where their outputs differ most in quality.

    Right means equal to a reference. `gains` lists the inputs where that checkpoint's output scores higher by the largest
    margin, by the task's score of a single output (chrF for sentences and captions; right or wrong for words).
    """
    pair = [load(Path(folder)) for folder in (first, second)]
    check_pair(pair)
    names = told_apart(pair)
    loaded = load_data(pair[0], dataset, data)
    for refusal in (loaded.refusal, *map(refusal_of, pair)):
        if refusal:
            raise InputError(refusal)
    languages = common(pair)
    examples = [example for example in chosen(loaded, split) if not example.language or example.language in languages]
    outputs = [decode(one, prompts(one, examples), options, name, progress) for one, name in zip(pair, names)]
    found: dict[str, Any] = rounded({"checkpoints": names, "split": split, **tally(pair[0].task, outputs, examples, shown)})
    return found


def spoken(checkpoint: Checkpoint) -> set[str]:
    return set(checkpoint.languages or [checkpoint.config.get("target_language", "")])


def common(pair: list[Checkpoint]) -> set[str]:
    return spoken(pair[0]) & spoken(pair[1])


def languages_of(checkpoint: Checkpoint) -> str:
    """The languages of a checkpoint, in words."""
    source, targets = checkpoint.config.get("source_language", ""), ", ".join(sorted(spoken(checkpoint)))
    return f"{source or 'no language named'} to {targets or 'no language named'}"


def check_pair(pair: list[Checkpoint]) -> None:
    if pair[0].task != pair[1].task or pair[0].task == "complete":
        raise InputError(
            f"{pair[0].name} ({pair[0].task}) and {pair[1].name} ({pair[1].task}) do not answer the same inputs; "
            "compare two translators, two transliterators or two captioners."
        )
    sources = {one.config.get("source_language", "") for one in pair} - {""}
    if len(sources) > 1 or not common(pair):
        told = " and ".join(f"{one.name} ({languages_of(one)})" for one in pair)
        raise InputError(f"{told} do not answer the same inputs; compare two that have a language in common on both sides.")


def told_apart(pair: list[Checkpoint]) -> list[str]:
    names = [one.name for one in pair]
    return names if names[0] != names[1] else [f"{name} ({place})" for name, place in zip(names, ("first", "second"))]


def tally(task: str, outputs: list[list[Output]], examples: list[Any], shown: int) -> dict[str, Any]:
    single = SCORING[task].single
    counts = {"both": 0, "first": 0, "second": 0, "neither": 0}
    rows = []
    for a, b, example in zip(*outputs, examples):
        right = a.texts[0] in example.references, b.texts[0] in example.references
        counts[{(True, True): "both", (True, False): "first", (False, True): "second", (False, False): "neither"}[right]] += 1
        scores = single(a, example), single(b, example)
        if scores[0] != scores[1]:
            texts = {"outputs": [a.texts[0], b.texts[0]], "references": list(example.references)}
            rows.append({"input": example.source, "language": example.language, **texts, "scores": list(scores)})
    rows.sort(key=lambda row: row["scores"][1] - row["scores"][0])
    return {
        "inputs": len(examples),
        "right": counts,
        "better": [
            sum(row["scores"][0] > row["scores"][1] for row in rows),
            sum(row["scores"][0] < row["scores"][1] for row in rows),
        ],
        "gains": [
            [row for row in rows[:shown] if row["scores"][0] > row["scores"][1]],
            [row for row in rows[::-1][:shown] if row["scores"][0] < row["scores"][1]],
        ],
    }


def sentences(found: dict[str, Any]) -> str:
    """The result of `compare` in sentences."""
    first, second = found["checkpoints"]
    right, better = found["right"], found["better"]
    lines = [
        f"{found['inputs']:,} inputs: both are right on {right['both']:,}, only {first} on {right['first']:,}, "
        f"only {second} on {right['second']:,}, neither on {right['neither']:,}.",
        f"The output of {first} scores higher on {better[0]:,}, that of {second} on {better[1]:,}.",
    ]
    for name, rows in zip((first, second), found["gains"]):
        lines += ["", f"Where {name} gains most:"]
        lines += [f"  {row['input']}  ->  {row['outputs'][0]}  |  {row['outputs'][1]}" for row in rows[:10]]
    return "\n".join(lines)
