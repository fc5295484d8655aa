"""Measure a checkpoint from the bytes in its folder, and write the figures beside them as metrics.json."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import seqdemo
from seqdemo.checkpoints import Checkpoint, write_manifest
from seqdemo.checkpoints.description import model_config
from seqdemo.checkpoints.folder import CONFIG, METRICS, WEIGHTS, pretty_json, replace_file
from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.hub import load
from seqdemo.network.model import Network
from seqdemo.prompts import Prompt
from training import data as public_data
from training.data.records import Dataset, Example, Split
from training.measure import long_texts
from training.measure.decoding import Progress, decode, prompts, quiet, ranks
from training.measure.headlines import FORMAT, recorded
from training.measure.looking import looking
from training.measure.metrics import caption_words
from training.measure.optimum import shortfalls
from training.measure.pointing import play, read_phrases
from training.measure.scores import SCORING, Output, by_length, signatures
from training.measure.silver import alignment
from training.recipes import RECIPES

DIGITS = 4
LIBRARIES = ("torch", "numpy", "sacrebleu", "sentencepiece", "tokenizers", "safetensors")
DOGS = {"dog", "dogs"}
WORK = {"translate": "translation", "transliterate": "transliteration", "caption": "captions", "complete": "language models"}
SAYS: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    ("translate", "de"): {
        "Das gefällt mir.": ("I like it.", "I like that."),
        "Das gefällt mir": ("I like it", "I like that", "I like it.", "I like that."),
        "Ich gehe nach Hause.": ("I am going home.", "I'm going home."),
        "Ich gehe nach Hause": ("I am going home", "I'm going home", "I am going home.", "I'm going home."),
    },
    ("transliterate", "hi"): {"ghar": ("घर",), "namaste": ("नमस्ते",)},
}


class Plan(NamedTuple):
    """How much is measured. A checkpoint's main figure is the one with `options`; that of greedy search is always beside it."""

    options: SearchOptions = SearchOptions(beam=5)
    beams: tuple[int, ...] = (1, 2, 5, 10, 20)
    sample: int = 2_000  # inputs for quality by beam size, divided among the test sets
    exact: int = 200  # inputs for exact search, divided in the same way
    expansions: int = 20_000  # its budget


STANDARD = Plan()


def evaluate(
    folder: Path,
    data: Path | None = None,
    split: str = "test",
    dataset: str = "",
    plan: Plan = STANDARD,
    progress: Progress = quiet,
    beside: Sequence[Path] = (),
) -> dict[str, Any]:
    """Measure the checkpoint in `folder` on a split; figures on the test split of its own data are written to its metrics.json.

    `beside` are checkpoints that do not ship; their main figures are recorded for comparison. `dataset` names the data if they
    are unknown, or others to measure on. Under torchrun the inputs are divided among the ranks; every rank returns the
    whole result and the first one writes it.
    """
    checkpoint = load(Path(folder))
    others = [load(Path(other)) for other in beside]
    loaded = load_data(checkpoint, dataset, data)
    found = {
        **provenance(checkpoint, loaded, split, plan, command(Path(folder), split, dataset, plan.options, beside)),
        **MEASURES[checkpoint.task](checkpoint, loaded, split, plan, progress),
    }
    if where := where_it_looks(checkpoint, loaded):
        found["looking"] = where
    if has_map(checkpoint):
        boxes = boxes_of(data)
        pointing = play(checkpoint, read_phrases(boxes), loaded.dev.examples) if boxes else still_true(folder, "pointing", found)
        found |= {"pointing": pointing} if pointing else {}
    for part in ("precisions", "timing"):
        if kept := still_true(folder, part, found):
            found[part] = kept
    if beside:
        found["beside"] = [alternative(other, loaded, split, plan, progress) for other in others]
    found = dict(rounded(found))
    if split == "test" and is_own(dataset, checkpoint) and ranks()[0] == 0:
        replace_file(Path(folder) / METRICS, pretty_json(found))
        write_manifest(Path(folder))
    return found


def load_data(checkpoint: Checkpoint, dataset: str = "", folder: Path | None = None) -> Dataset:
    """The data set of this name, or else the checkpoint's own."""
    name = dataset or own_data(checkpoint)
    if not name:
        raise InputError(f"The data of {checkpoint.config['name']} are not known; name them with --dataset.")
    if public_data.TASKS.get(name, checkpoint.task) != checkpoint.task:
        told = f"{name} is for {WORK[public_data.TASKS[name]]}, but {checkpoint.config['name']} {checkpoint.task}s"
        raise InputError(f"{told}; name other data with --dataset.")
    return public_data.load(name, folder)


def own_data(checkpoint: Checkpoint) -> str:
    """The name of the data that it was trained on: recorded, or its recipe's; empty if neither is known."""
    if "trained_on" in checkpoint.config:
        return str(checkpoint.config["trained_on"]["data"])
    name = checkpoint.config["name"]
    return RECIPES[name].data if name in RECIPES else ""


def is_own(dataset: str, checkpoint: Checkpoint) -> bool:
    """Whether figures on this data set are the checkpoint's own figures: those on other data are told and not recorded."""
    return not own_data(checkpoint) or dataset in ("", own_data(checkpoint))


def chosen(dataset: Dataset, split: str) -> Split:
    if split not in dataset.splits():
        raise InputError(f"There is no split {split!r}; choose one of {', '.join(dataset.splits())}.")
    return dataset.splits()[split]


# ------------------------------------------------------------------------------------------------------------- provenance


def provenance(checkpoint: Checkpoint, dataset: Dataset, split: str, plan: Plan, command: str) -> dict[str, Any]:
    """What was measured, on what, with what."""
    refusal = dataset.refusal or refusal_of(checkpoint)
    found: dict[str, Any] = {
        "format": FORMAT,
        "name": checkpoint.config["name"],
        "task": checkpoint.task,
        "command": command,
        "split": split,
        "files": digests(checkpoint),
        "data": {"name": dataset.name, "fingerprint": dataset.fingerprint, "verified": not refusal},
        "versions": {"python": platform.python_version(), "seqdemo": seqdemo.__version__, **{n: version(n) for n in LIBRARIES}},
        "parameters": parameters(checkpoint),
    }
    if checkpoint.task != "complete":
        found["options"] = {key: value for key, value in plan.options.to_json().items() if value != getattr(SearchOptions(), key)}
        found["options"]["beam"] = plan.options.beam
    if refusal:
        found["data"]["refusal"] = refusal
    return found


def refusal_of(checkpoint: Checkpoint) -> str:
    """Why a model's figures cannot be compared with recorded ones, on any data; "" if they can."""
    trained_on = checkpoint.config.get("trained_on", {"verified": True})
    if trained_on["verified"]:
        return ""
    return (
        f"{checkpoint.config['name']} was trained on other splits of {trained_on['data']} than the recorded ones (fingerprint "
        f"{trained_on['fingerprint'][:12]}); its figures must not stand beside recorded ones."
    )


def command(folder: Path, split: str, dataset: str, options: SearchOptions, beside: Sequence[Path]) -> str:
    """The command, with paths that also make sense on other machines."""
    others = [f"--beside {place(Path(other))}" for other in beside]
    return " ".join(["python -m training evaluate", place(folder), *arguments(split, options, dataset), *others])


def place(folder: Path) -> str:
    """A folder relative to the project: checkpoints/<name>, or the path below the working directory, or only its name."""
    path, here = Path(os.path.abspath(folder)), Path.cwd()
    if path.parent.name == "checkpoints":
        return f"checkpoints/{path.name}"
    return path.relative_to(here).as_posix() if here in path.parents else path.name


def arguments(split: str, options: SearchOptions, dataset: str = "") -> list[str]:
    """The command's arguments that differ from the defaults."""
    usual, named = STANDARD.options.to_json(), options.to_json()
    changed = {"split": split} if split != "test" else {}
    changed |= {"dataset": dataset} if dataset else {}
    changed |= {key.replace("_", "-"): value for key, value in named.items() if value != usual[key]}
    return [f"--{key} {value}" for key, value in changed.items()]


def digests(checkpoint: Checkpoint) -> dict[str, str]:
    """The sha256 of every file that affects the model's answers."""
    assert checkpoint.folder is not None
    names = {WEIGHTS, CONFIG, *(spec["file"] for spec in checkpoint.config["tokenizers"].values())}
    found = {name: hashlib.sha256((checkpoint.folder / name).read_bytes()).hexdigest() for name in sorted(names)}
    shared = checkpoint.config.get("shared", {})
    return {**found, **{part["file"]: part["sha256"] for part in shared.values()}}


def parameters(checkpoint: Checkpoint) -> dict[str, int]:
    """The number of trained parameters, and of those of a CNN that is not trained."""
    counts = {"trained": 0, "frozen": 0}
    for name, parameter in checkpoint.model.named_parameters():
        counts["frozen" if name.startswith("encoder.cnn.") else "trained"] += parameter.numel()
    return counts


def rounded(value: Any) -> Any:
    """Figures rounded to DIGITS places, so that files are readable and machines agree; NaN becomes null."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return round(float(value), DIGITS) if isfinite(value) else None
    return value


# -------------------------------------------------------------------------------------------- translation and its siblings


class TestSet(NamedTuple):
    """The inputs of one origin or one language."""

    name: str
    examples: list[Example]
    inputs: list[Prompt]


def test_sets(checkpoint: Checkpoint, split: Split, progress: Progress) -> list[TestSet]:
    """One per language for a transliterator, one per origin for the others."""
    languages = checkpoint.task == "transliterate" and split.languages() != ("",)
    names = split.languages() if languages else split.origins()
    parts = [(name, split.only(language=name) if languages else split.only(origin=name)) for name in names]
    return [
        TestSet(name or checkpoint.config["name"], part.examples, prompts(checkpoint, part.examples, progress))
        for name, part in parts
    ]


def sequences(checkpoint: Checkpoint, dataset: Dataset, split: str, plan: Plan, progress: Progress) -> dict[str, Any]:
    sets = test_sets(checkpoint, chosen(dataset, split), progress)
    found: dict[str, Any] = {"tests": {}}
    every: list[tuple[list[Output], list[Example]]] = []
    for test in sets:
        figures, outputs = whole(checkpoint, test, plan, progress)
        figures["by_beam"] = by_beam(checkpoint, test, plan, plan.sample // len(sets), progress)
        found["tests"][test.name] = figures
        every.append((outputs, test.examples))
    if len(sets) > 1 and checkpoint.task == "transliterate":
        found["mean"] = mean_of([found["tests"][test.name]["beam"] for test in sets])
    sample = [one for test in sets for one in sampled(test.inputs, max(1, plan.exact // len(sets)))]
    found["search"] = shortfalls(checkpoint, sample, plan.beams, plan.expansions, progress)
    if checkpoint.task == "caption":
        found["dogs"] = dogs(*every[0])
    if said := says(checkpoint, plan):
        found["says"] = said
    return found


def alternative(checkpoint: Checkpoint, dataset: Dataset, split: str, plan: Plan, progress: Progress) -> dict[str, Any]:
    """The figures of another checkpoint on the same inputs."""
    found = {}
    for test in test_sets(checkpoint, chosen(dataset, split), progress):
        figures, _ = whole(checkpoint, test, plan, progress)
        found[test.name] = {search: figures[search] for search in ("greedy", "beam")}
    about = checkpoint.config.get("about", "")
    return {"name": checkpoint.config["name"], "about": about, "weights": digests(checkpoint)[WEIGHTS], "tests": found}


def whole(checkpoint: Checkpoint, test: TestSet, plan: Plan, progress: Progress) -> tuple[dict[str, Any], list[Output]]:
    """Greedy and the plan's own search on every input, the latter also by source length."""
    scoring, task = SCORING[checkpoint.task], checkpoint.task
    greedy = decode(checkpoint, test.inputs, replace(plan.options, strategy="greedy", nbest=1), f"{test.name}, greedy", progress)
    outputs = decode(checkpoint, test.inputs, plan.options, f"{test.name}, beam {plan.options.beam}", progress)
    counted = sum(len(example.references) for example in test.examples)
    figures: dict[str, Any] = {"inputs": len(test.examples), "references": counted, **signatures(task, outputs, test.examples)}
    figures["greedy"] = scoring.figures(greedy, test.examples)
    figures["beam"] = scoring.figures(outputs, test.examples)
    if scoring.edges:
        figures["by_length"] = by_length(task, outputs, test.examples)
    return figures, outputs


def by_beam(checkpoint: Checkpoint, test: TestSet, plan: Plan, size: int, progress: Progress) -> list[dict[str, Any]]:
    """Figures of the same inputs with every beam size."""
    examples, inputs = sampled(test.examples, size), sampled(test.inputs, size)
    rows = []
    for beam in plan.beams:
        options = replace(plan.options, beam=beam, nbest=min(plan.options.nbest, beam))
        outputs = decode(checkpoint, inputs, options, f"{test.name}, beam {beam}", progress)
        rows.append({"size": beam, "inputs": len(inputs), **SCORING[checkpoint.task].figures(outputs, examples)})
    return rows


def sampled(items: Sequence[Any], size: int) -> list[Any]:
    """At most `size` of them, evenly spread, the same ones each time."""
    return [items[index * len(items) // size] for index in range(size)] if size < len(items) else list(items)


def mean_of(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean over languages, with equal weights."""
    return {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}


def dogs(outputs: Sequence[Output], examples: Sequence[Example]) -> dict[str, Any]:
    """Of the photographs whose captions all have the word dog or dogs, how many get a caption that has it."""
    about = [i for i, e in enumerate(examples) if all(DOGS & set(caption_words(reference)) for reference in e.references)]
    said = sum(bool(DOGS & set(caption_words(outputs[i].texts[0]))) for i in about)
    return {"photographs": len(about), "said": said, "share": 100 * said / max(1, len(about))}


def says(checkpoint: Checkpoint, plan: Plan) -> list[dict[str, Any]]:
    """A few sentences everyone tries first, with what comes out."""
    rows = []
    for (task, language), wanted in SAYS.items():
        side = "source_language" if task == "translate" else "target_language"
        known = checkpoint.languages or (checkpoint.config.get(side, ""),)
        if task != checkpoint.task or language not in known:
            continue
        inputs = prompts(checkpoint, [Example(text, (), language if task == "transliterate" else "") for text in wanted])
        greedy = decode(checkpoint, inputs, replace(plan.options, strategy="greedy", nbest=1))
        beam = decode(checkpoint, inputs, plan.options)
        for (text, accepted), first, second in zip(wanted.items(), greedy, beam):
            outputs = {"greedy": first.texts[0], "beam": second.texts[0]}
            rows.append(
                {"input": text, "language": language, **outputs, "accepted": accepted, "said": second.texts[0] in accepted}
            )
    return rows


def boxes_of(data: Path | None) -> Path | None:
    """The boxes of phrases, if they lie beside the photographs; they are not part of the public data."""
    path = (data or Path()) / "flickr8k" / "boxes_dev.json"
    return path if data and path.exists() else None


def still_true(folder: Path, part: str, found: dict[str, Any]) -> Any:
    """Recorded figures of these very weights that cannot be measured again, because their data are missing here."""
    before = recorded(Path(folder))
    return before.get(part) if before.get("files") == found["files"] else None


def has_map(checkpoint: Checkpoint) -> bool:
    return checkpoint.task == "caption" and model_config(checkpoint.config).has_attention


def where_it_looks(checkpoint: Checkpoint, dataset: Dataset) -> dict[str, Any]:
    """How often attention rests on the letter or word being written, on dev; empty if the right place is unknown."""
    if not attends_to_text(checkpoint):
        return {}
    return alignment(checkpoint, dataset) if checkpoint.task == "translate" else looking(checkpoint, dataset.dev.examples)


def attends_to_text(checkpoint: Checkpoint) -> bool:
    return checkpoint.task in ("translate", "transliterate") and model_config(checkpoint.config).has_attention


# -------------------------------------------------------------------------------------------------------- language models


def text(checkpoint: Checkpoint, dataset: Dataset, split: str, plan: Plan, progress: Progress) -> dict[str, Any]:
    """Nats per character of the whole split, read after the end of the text before it, and the units that track a place in the
    text."""
    model = checkpoint.model
    assert isinstance(model, Network)
    texts = {name: part.examples[0].references[0] for name, part in dataset.splits().items()}
    before = {"test": texts["dev"], "dev": texts["train"], "train": ""}[split]
    progress("reading", 0, 1)
    return {
        "text": long_texts.nats(checkpoint, before, texts[split]),
        "units": long_texts.tracking_units(checkpoint, texts["dev"], texts["test"]),
    }


Measure = Callable[[Checkpoint, Dataset, str, Plan, Progress], dict[str, Any]]
MEASURES: dict[str, Measure] = {"translate": sequences, "transliterate": sequences, "caption": sequences, "complete": text}
