"""The model card: README.md of a checkpoint's folder, rendered from its config.json and metrics.json."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from seqdemo.checkpoints import bundled_folder, write_manifest
from seqdemo.checkpoints.folder import CARD, CONFIG, METRICS, WEIGHTS, replace_file
from seqdemo.config import LANGUAGE_NAMES
from training import headlines
from training.card_figures import Metrics, column_name, enough, figures, span, table
from training.data import SOURCES, sources_of
from training.headlines import MAIN
from training.recipes import RECIPES

PIPELINES = {
    "translate": "translation",
    "transliterate": "text2text-generation",
    "caption": "image-to-text",
    "complete": "text-generation",
}
HUB_LICENCES = {"apache-2.0", "mit", "cc-by-2.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-sa-4.0", "cc0-1.0", "unlicense"}
HUB_LANGUAGES = {"c": "code"}  # where the Hub has a name of its own
CELLS = {"lstm": "LSTM", "lstm-b": "LSTM (forget bias 1 at the start)", "gru": "GRU", "elman": "Elman"}
ORDERS = {
    "context-once": "sees the source once, as its first state",
    "context-each": "sees the source as one vector, at each step",
    "attend-before": "attends to the source before each step ({score} score)",
    "attend-after": "attends to the source after each step ({score} score), and feeds the result to the next",
}
USES = {
    "translate": ("translator", "load, run", 'run({}, "Das gefällt mir.").texts[0]'),
    "transliterate": ("speller", "load, run", 'run({}, "namaste"{}).texts[0]'),
    "caption": ("captioner", "load, run", 'run({}, "photograph.jpg").texts[0]'),
    "complete": ("writer", "SearchOptions, load, run", 'run({}, "{}", SearchOptions("sample", temperature=0.7)).texts[0]'),
}
OPENINGS = {"c": "static int "}  # of what a language model is to go on with
WARNING = (
    "It is one of the small recurrent models of seqdemo, made to be looked into while they decode. "
    "Do not rely on anything it says."
)
TRAINED = "Trained by `python -m training fit {}`."
TRAINED_BEFORE = "Trained by an earlier version of the recipe behind `python -m training fit {}`, which makes its like."
LIMITS = {
    "translate": "One sentence at a time, of up to 120 pieces. Its German is that of captions and of everyday sentences; "
    "elsewhere it invents. A quarter of Tatoeba's English sentences name Tom.",
    "transliterate": "One word at a time. A Latin spelling often stands for several words, of which it gives the likeliest.",
    "caption": "It knows what Flickr8k shows: people and dogs, outdoors. It guesses genders and places, and counts badly.",
    "complete": "It writes in the manner of its one source and knows nothing else.",
}
POINTS = "The map over a photograph shows where the model looked, which is often not where the thing is."
LONG = "{name} falls from {best:.1f} at {at} {unit} to {last:.1f} at {longest} ({test}){why}."
ONE_VECTOR = ": one vector has to hold the whole source"
EMPTY = "For {:.1f} % of the sampled inputs the output it finds likeliest of all is the empty one."
SOMEBODY = "somebody/seqdemo-"  # whoever publishes it puts their own name here

Config = dict[str, Any]


def write(folder: Path) -> Path:
    """Render the card of a checkpoint's folder into it."""
    path = Path(folder) / CARD
    replace_file(path, render(Path(folder)).encode())
    write_manifest(Path(folder))
    return path


def is_current(folder: Path) -> bool:
    """Whether the card in the folder is what its config and metrics give."""
    path = Path(folder) / CARD
    return path.is_file() and path.read_text("utf-8") == render(Path(folder))


def read(folder: Path) -> tuple[Config, Metrics]:
    config = json.loads((folder / CONFIG).read_bytes())
    path = folder / METRICS
    return config, json.loads(path.read_bytes()) if path.is_file() else {}


def render(folder: Path) -> str:
    config, metrics = read(folder)
    size = (folder / WEIGHTS).stat().st_size
    parts = [
        f"---\n{front_matter(config, metrics).to_yaml()}\n---",
        f"# {config['name']}",
        about(config, metrics, size),
        loading(config, name_to_load(folder, config)),
        figures(metrics, kin(folder, config)),
        licences(config, metrics),
        limits(config, metrics),
    ]
    return "\n\n".join(parts) + "\n"


def front_matter(config: Config, metrics: Metrics) -> ModelCardData:
    """What the Hub reads. A licence it has no name for is "other", with a name of its own."""
    licence = config.get("licence", "")
    known = licence in HUB_LICENCES
    return ModelCardData(
        language=languages(config) or None,
        license=(licence if known else "other") if licence else None,
        license_name="-".join(licence.lower().split()) if licence and not known else None,
        library_name="seqdemo",
        pipeline_tag=PIPELINES[config["task"]],
        tags=["seqdemo", "recurrent", config["model"]["cell"], "beam-search", "interpretability"],
        model_name=config["name"],
        eval_results=results(metrics) or None,
    )


def languages(config: Config) -> list[str]:
    """ISO codes of what goes in and what comes out. Words in another script, such as en-Latn, are those of the other side."""
    codes = [config.get("source_language", ""), *config.get("languages", ()), config.get("target_language", "")]
    return list(dict.fromkeys(HUB_LANGUAGES.get(code, code) for code in codes if code and "-" not in code))


def results(metrics: Metrics) -> list[EvalResult]:
    """The model-index; figures on other data than the recorded ones do not belong there."""
    if not metrics or not metrics["data"]["verified"] or metrics["split"] != "test":
        return []
    searched = f", {headlines.search_name(metrics)}" if "options" in metrics else ""
    return [
        EvalResult(
            task_type=PIPELINES[metrics["task"]],
            dataset_type=dataset_type(metrics, one.test),
            dataset_name=headlines.place(metrics, one.test),
            dataset_config=one.test if one.test in LANGUAGE_NAMES else None,
            dataset_split="test",
            metric_type=one.column.hub,
            metric_name=one.column.name + searched,
            metric_value=one.value,
        )
        for one in headlines.every(metrics)
        if one.test != "mean"
    ]


def dataset_type(metrics: Metrics, test: str) -> str:
    """The Hub's name of a test set, or failing that our own."""
    source = test if test in SOURCES else next(iter(sources_of(metrics["data"]["name"])), test)
    files = SOURCES[source].files if source in SOURCES else ()
    return next((file.repo for file in files if file.repo), source)


def kin(folder: Path, config: Config) -> list[Metrics]:
    """The figures of the shipped models beside it that learnt the same task from the same data in another way."""

    def lesson(name: str) -> tuple[str, str] | None:
        return (RECIPES[name].task, RECIPES[name].data) if name in RECIPES else None

    mine, others = lesson(config["name"]), sorted(folder.resolve().parent.glob(f"*/{METRICS}"))
    alike = [path for path in others if path.parent.name != config["name"] and lesson(path.parent.name) == mine]
    return [json.loads(path.read_bytes()) for path in alike] if mine else []


def about(config: Config, metrics: Metrics, size: int) -> str:
    description = config.get("about") or f"A model for the task {config['task']}."
    points = [*(f"* {part}" for part in shape(config["model"])), f"* {pieces(config)}", f"* {weight(config, metrics, size)}"]
    return "\n".join([description, "", WARNING, "", *points])


def shape(model: dict[str, Any]) -> list[str]:
    """The layers, in the order in which an input passes them."""
    cell = CELLS.get(model["cell"], model["cell"].upper())
    seen = "each cell" if model["decoder"].startswith("attend") else "the mean"
    ways = "both directions" if model["bidirectional"] else "one direction"
    encoders = {
        "text": f"Encoder: {cell}, {model['encoder_layers']} x {model['encoder_hidden']} units, {ways}.",
        "image": f"Encoder: {model['cnn']}, frozen; {seen} of its grid as {model['encoder_hidden']} features.",
    }
    layers = f"{cell}, {model['decoder_layers']} x {model['decoder_hidden']} units"
    if model["encoder"] == "none":
        return [f"{layers}, one character after another."]
    return [encoders[model["encoder"]], f"Decoder: {layers}; it {ORDERS[model['decoder']].format(score=model['score'])}."]


def pieces(config: Config) -> str:
    kinds = " and ".join(sorted({spec["kind"] for spec in config["tokenizers"].values()}))
    sizes = {side: config["model"][f"{side}_vocabulary"] for side in ("source", "target")}
    return f"Pieces: {kinds}; {', '.join(f'{count:,} {side}' for side, count in sizes.items() if count)}."


def weight(config: Config, metrics: Metrics, size: int) -> str:
    counted = f"{metrics['parameters']['trained']:,} trained parameters, " if metrics else ""
    cnn = config.get("shared", {}).get("cnn")
    frozen = f" of {metrics['parameters']['frozen']:,} numbers" if metrics else ""
    beside = f"; beside them the CNN{frozen} (`{cnn['file']}`), which all captioners share" if cnn else ""
    return f"{counted}{size / 1e6:.1f} MB in half precision{beside}; loaded as single precision."


def name_to_load(folder: Path, config: Config) -> str:
    """Its name, where it lies among the shipped ones; otherwise its folder, as seen from the one it lies in."""
    path = folder.resolve()
    return config["name"] if path.parent == bundled_folder().resolve() else f"./{path.name}"


def loading(config: Config, name: str) -> str:
    variable, names, call = USES[config["task"]]
    language = f', language="{config["languages"][0]}"' if len(config.get("languages", ())) > 1 else ""
    more = OPENINGS.get(config.get("target_language", ""), "The ") if config["task"] == "complete" else language
    code = [
        f"from seqdemo import {names}",
        "",
        f'{variable} = load("{name}")',
        f"print({call.format(variable, more)})",
    ]
    hub = f'From the Hub: `load("{SOMEBODY}{config["name"]}")`.'
    return "\n".join(["## Load it", "", "```python", *code, "```", "", hub])


def published_as(written: str, repo: str) -> str:
    """The card as it stands in a repository."""
    return re.sub(rf'load\("{SOMEBODY}[\w.-]+"\)', lambda _: f'load("{repo}")', written)


def licences(config: Config, metrics: Metrics) -> str:
    name = data_of(config, metrics)
    rows = [[f"[{SOURCES[key].title}]({SOURCES[key].home})", SOURCES[key].licence] for key in sources_of(name)]
    if config["model"]["encoder"] == "image":
        rows.append([f"ImageNet, through the published weights of {config['model']['cnn']}", "Apache-2.0 (those weights)"])
    lines = ["## Data and licences", ""]
    if rows:
        lines += [*table(["data", "licence"], rows), ""]
    settings = "".join(f" --set {shlex.quote(change)}" for change in config.get("trained_on", {}).get("changes", ()))
    made = TRAINED if "trained_on" in config else TRAINED_BEFORE
    trained = made.format(config["name"] + settings) + " " if config["name"] in RECIPES else ""
    licence = config.get("licence") or "not stated"
    return "\n".join([*lines, f"{trained}Licence of these weights: **{licence}**. The code of seqdemo is under Apache-2.0."])


def data_of(config: Config, metrics: Metrics) -> str:
    """The set it was trained on; where that was not recorded, the one it was measured on or its recipe's."""
    if "trained_on" in config:
        return str(config["trained_on"]["data"])
    if metrics:
        return str(metrics["data"]["name"])
    return RECIPES[config["name"]].data if config["name"] in RECIPES else ""


def limits(config: Config, metrics: Metrics) -> str:
    lines = ["## Limits", "", LIMITS[config["task"]], *by_length_limit(config, metrics)]
    if "pointing" in metrics:
        lines.append(POINTS)
    if empty := metrics.get("search", {}).get("empty_optimum"):
        lines.append(EMPTY.format(empty))
    return "\n".join(lines)


def by_length_limit(config: Config, metrics: Metrics) -> list[str]:
    """How far quality falls from the length that suits it best to the longest, on the first test set."""
    tests: dict[str, dict[str, Any]] = metrics.get("tests", {"": {}})
    test, found = next(iter(tests.items()))
    rows, key = enough(found.get("by_length", ())), MAIN[config["task"]][0]
    best = max(rows, key=lambda row: row[key], default=None)
    if config["task"] != "translate" or best is None or best is rows[-1]:
        return []
    why = "" if config["model"]["decoder"].startswith("attend") else ONE_VECTOR
    ends = {"best": best[key], "at": span(best), "last": rows[-1][key], "longest": span(rows[-1])}
    return [LONG.format(name=column_name(metrics), unit=best["unit"], test=headlines.title(metrics, test), why=why, **ends)]
