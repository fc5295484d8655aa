"""The model card: README.md of a checkpoint's folder, rendered from its config.json and metrics.json."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from seqdemo.checkpoints import shipped_folder, write_manifest
from seqdemo.checkpoints.description import model_config
from seqdemo.checkpoints.folder import CARD, CONFIG, METRICS, WEIGHTS, replace_file
from seqdemo.config import LANGUAGE_NAMES, SINGLE, TRANSFORMER
from training.data import SOURCES, sources_of
from training.measure import headlines
from training.measure.headlines import MAIN
from training.publish import papers
from training.publish.card_figures import Metrics, column_name, enough, figures, span, table
from training.publish.card_pictures import ALIGNMENT, BY_LENGTH, PHOTOGRAPH, draw
from training.publish.card_pictures import is_current as is_picture_current
from training.recipes import RECIPES
from training.run.overrides import written

PIPELINES = {
    "translate": "translation",
    "transliterate": "translation",
    "caption": "image-to-text",
    "complete": "text-generation",
}
FORMER = {"transliterate": "text2text-generation"}  # a pipeline until 2025; people still look for the word
HUB_LICENCES = {"apache-2.0", "mit", "cc-by-2.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-sa-4.0", "cc0-1.0", "unlicense"}
HUB_LANGUAGES = {"c": "code"}  # languages for which the Hub has other names
CELLS = {"lstm": "LSTM", "lstm-b": "LSTM (forget bias 1 at the start)", "gru": "GRU", "elman": "Elman"}
ORDERS = {
    "context-once": "sees the source once, as its first state",
    "context-each": "sees the source as one vector, at each step",
    "attend-before": "attends to the source before each step ({score} score)",
    "attend-after": "attends to the source after each step ({score} score), and feeds the result to the next",
}
HARD = "; of the source it takes one position for each piece, the likeliest"
USES = {
    "translate": ("translator", "load, run", 'run({}, "Das gefällt mir.").texts[0]'),
    "transliterate": ("speller", "load, run", 'run({}, "namaste"{}).texts[0]'),
    "caption": ("captioner", "load, run", f'run({{}}, "{PHOTOGRAPH}").texts[0]'),
    "complete": ("writer", "SearchOptions, load, run", 'run({}, "{}", SearchOptions("sample", temperature=0.7)).texts[0]'),
}
OPENINGS = {"c": "static int "}  # of what a language model is to go on with
WARNING = (
    "It is one of the small {kind} models of seqdemo, made to be looked into while they decode. Do not rely on anything it says."
)
TRAINED = "Trained by `python -m training fit {}`."
RECIPE = "Its recipe has {values}; its data have the fingerprint `{fingerprint}`...{code}."
TRAINED_BEFORE = "Trained by an earlier version of the recipe behind `python -m training fit {}`; today's makes a similar model."
LIMITS = {
    "translate": "One sentence at a time, of up to 120 pieces. Its German is that of captions and of everyday sentences; "
    "elsewhere it invents. A quarter of Tatoeba's English sentences name Tom.",
    "transliterate": "One word at a time. A Latin spelling often stands for several words, of which it gives the likeliest.",
    "caption": "It knows what Flickr8k shows: people and dogs, outdoors. It guesses genders and places, and counts badly.",
    "complete": "It writes in the manner of its one source and knows nothing else.",
}
NOT_FOR = {
    "translate": "Not for texts that matter, whole documents, other languages, or names and numbers, which it changes.",
    "transliterate": "Not for sentences, for English words, for names on documents, or for any spelling that must be right.",
    "caption": "Not for telling a blind person what is there, for moderation, for judging people, or for drawings.",
    "complete": "Not for answering questions, for facts, or for text or code that anybody is to use.",
}
PAGES = {"translate": "", "transliterate": "transliterate", "caption": "caption", "complete": "language-model"}
APP = "http://127.0.0.1:7860/"
OPEN = "In a clone, `python3 tools/start.py` brings up the playground; [there this model decodes before your eyes]({link})."
OPEN_HERE = (
    "Once the playground runs on your machine (`python3 tools/start.py` in a clone), [this link opens the model in it]({link})."
)
OPEN_IN_SPACE = (
    "[Open it in the playground]({link}) and watch it decode. The code is [there](https://huggingface.co/spaces/{space}) too."
)
MATRIX = (
    "What the model looked at: a row for each piece of an output, a column for each piece of the source. The darker a cell, the "
    "more it looked there while it wrote that piece."
)
LOOKS = "What the model looked at: the photograph once for each word. The lighter a place, the more it looked there."
CURVES = "Quality by length of the source, beside the models that learnt the same."
POINTS = "The map over a photograph shows where the model looked, which is often not where the thing is."
LONG = "{name} falls from {best:.1f} at {at} {unit} to {last:.1f} at {longest} ({test}){why}."
ONE_VECTOR = ": one vector has to hold the whole source"
EMPTY = "For {:.1f} % of the sampled inputs the output it finds likeliest of all is the empty one."
SOMEBODY = "somebody/seqdemo-"  # replaced by the publisher's name
FROM_HUB = 'From the Hub: `load("{}")`.'
LOCAL = re.compile(re.escape(FROM_HUB).replace(r"\{\}", r'[^"]*') + rf"(\n{re.escape(OPEN)})?".replace(r"\{link\}", r"[^)\s]*"))
EXAMPLE = re.compile(r'(## Load it\n\n```python\n(?:(?!```).)*?)load\("[^"]*"\)', re.DOTALL)

Config = dict[str, Any]


def write(folder: Path) -> Path:
    """Render the card of a checkpoint's folder into it."""
    path = Path(folder) / CARD
    replace_file(path, render(Path(folder)).encode())
    write_manifest(Path(folder))
    return path


def draw_pictures(folder: Path) -> list[Path]:
    """Draw the pictures of the card in a checkpoint's folder."""
    config, metrics = read(Path(folder))
    return draw(Path(folder), kin(Path(folder), config), metrics)


def is_current(folder: Path) -> bool:
    """Whether the card in the folder is up to date with its config and metrics."""
    path = Path(folder) / CARD
    return path.is_file() and path.read_text("utf-8") == render(Path(folder))


def read(folder: Path) -> tuple[Config, Metrics]:
    """Its config.json, and its metrics.json if `evaluate` wrote it."""
    metrics = headlines.recorded(folder)
    return json.loads((folder / CONFIG).read_bytes()), metrics if metrics.get("format") == headlines.FORMAT else {}


def render(folder: Path) -> str:
    config, metrics = read(folder)
    size = (folder / WEIGHTS).stat().st_size
    parts = [
        f"---\n{front_matter(config, metrics).to_yaml()}\n---",
        f"# {config['name']}",
        about(config, metrics, size),
        loading(config, name_to_load(folder, config)),
        pictures(folder, config, metrics),
        figures(metrics and {**metrics, **recipe_known(folder)}, kin(folder, config)),
        licences(config, metrics),
        limits(config, metrics),
        "\n".join(["## Papers", "", *papers.links(papers.papers_of(config, sources_of(data_of(config, metrics))))]),
    ]
    parts = [part for part in parts if part]
    return "\n\n".join(parts) + "\n"


def front_matter(config: Config, metrics: Metrics) -> ModelCardData:
    """The front matter for the Hub. A licence unknown to the Hub is "other", with a name."""
    licence = config.get("licence", "")
    known = licence in HUB_LICENCES
    return ModelCardData(
        language=languages(config) or None,
        license=(licence if known else "other") if licence else None,
        license_name="-".join(licence.lower().split()) if licence and not known else None,
        library_name="seqdemo",
        pipeline_tag=PIPELINES[config["task"]],
        datasets=[SOURCES[key].hub for key in sources_of(data_of(config, metrics)) if SOURCES[key].hub] or None,
        tags=[
            "seqdemo",
            *filter(None, [FORMER.get(config["task"])]),
            *map(str.lower, kinds(config["model"])),
            "beam-search",
            "interpretability",
        ],
        model_name=config["name"],
        eval_results=results(metrics) or None,
    )


def kinds(model: dict[str, Any]) -> list[str]:
    return ["Transformer"] if model["decoder"] == TRANSFORMER else ["recurrent", model["cell"].removesuffix("-b")]


def languages(config: Config) -> list[str]:
    """ISO codes of the input's and the output's language. Text in another script, such as en-Latn, counts as the language of the
    other side."""
    codes = [config.get("source_language", ""), *config.get("languages", ()), config.get("target_language", "")]
    return list(dict.fromkeys(HUB_LANGUAGES.get(code, code) for code in codes if code and "-" not in code))


def results(metrics: Metrics) -> list[EvalResult]:
    """The model-index, without figures on data other than the recorded ones."""
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
    return (SOURCES[source].hub if source in SOURCES else "") or source


def kin(folder: Path, config: Config) -> list[Metrics]:
    """The figures of the shipped models beside it that learnt the same task from the same data by another recipe."""

    def lesson(name: str) -> tuple[str, str] | None:
        return (RECIPES[name].task, RECIPES[name].data) if name in RECIPES else None

    mine, others = lesson(config["name"]), sorted(folder.resolve().parent.glob(f"*/{METRICS}"))
    alike = [path for path in others if path.parent.name != config["name"] and lesson(path.parent.name) == mine]
    return [{**found, **recipe_known(path.parent)} for path in alike if mine and (found := read(path.parent)[1])]


def recipe_known(folder: Path) -> dict[str, bool]:
    """Whether the checkpoint records its recipe."""
    return {"recipe_known": "trained_on" in json.loads((folder / CONFIG).read_bytes())}


def about(config: Config, metrics: Metrics, size: int) -> str:
    description = config.get("about") or f"A model for the task {config['task']}."
    points = [*(f"* {part}" for part in shape(config["model"])), f"* {pieces(config)}", f"* {weight(config, metrics, size)}"]
    return "\n".join([description, "", WARNING.format(kind=kinds(config["model"])[0]), "", *points])


def shape(model: dict[str, Any]) -> list[str]:
    """The layers, in the order in which an input passes them."""
    cell = CELLS.get(model["cell"], model["cell"].upper())
    seen = "each cell" if model["decoder"].startswith("attend") else "the mean"
    grid = "last grid, and of one twice as fine before it," if model.get("finer") else "grid"
    ways = "both directions" if model["bidirectional"] else "one direction"
    encoders = {
        "text": f"Encoder: {cell}, {model['encoder_layers']} x {model['encoder_hidden']} units, {ways}.",
        "image": f"Encoder: {model['cnn']}, frozen; {seen} of its {grid} as {model['encoder_hidden']} features.",
    }
    layers = f"{cell}, {model['decoder_layers']} x {model['decoder_hidden']} units"
    if model["encoder"] == "none":
        return [f"{layers}, one character after another."]
    if model["decoder"] == SINGLE:
        return [f"One network: {layers}, from left to right; it reads the source, and with the same weights it writes."]
    if model["decoder"] == TRANSFORMER:
        return [blocks("encoder", model), blocks("decoder", model)]
    order = ORDERS[model["decoder"]].format(score=model["score"]) + HARD * model.get("hard", False)
    return [encoders[model["encoder"]], f"Decoder: {layers}; it {order}."]


def blocks(part: str, model: dict[str, Any]) -> str:
    """One half of a Transformer."""
    return (
        f"{part.capitalize()}: Transformer, {model[f'{part}_layers']} blocks of {model['embedding']} units with "
        f"{model['attention_heads']} heads and {model['feed_forward']} units within their feed-forward layers."
    )


def pieces(config: Config) -> str:
    kinds = " and ".join(sorted({spec["kind"] for spec in config["tokenizers"].values()}))
    sizes = {side: config["model"][f"{side}_vocabulary"] for side in ("source", "target")}
    return f"Pieces: {kinds}; {', '.join(f'{count:,} {side}' for side, count in sizes.items() if count)}."


def weight(config: Config, metrics: Metrics, size: int) -> str:
    counted = f"{metrics['parameters']['trained']:,} trained parameters, " if metrics else ""
    cnn = config.get("shared", {}).get("cnn")
    frozen = f" of {metrics['parameters']['frozen']:,} numbers" if metrics else ""
    beside = f"; beside them the CNN{frozen} (`{cnn['file']}`), which all captioners share" if cnn else ""
    held = "in half precision" if config["format"] == 1 else "in int8, with a scale for each row of a matrix"
    return f"{counted}{size / 1e6:.1f} MB {held}{beside}; loaded as single precision."


def name_to_load(folder: Path, config: Config) -> str:
    """Its name if it is a shipped model; otherwise its folder, relative to the parent folder."""
    path = folder.resolve()
    return config["name"] if path.parent == shipped_folder().resolve() else f"./{path.name}"


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
    hub = FROM_HUB.format(f"{SOMEBODY}{config['name']}")
    page, asked = PAGES[config["task"]], f"a.checkpoint={name}&b.checkpoint={name}"
    opened = OPEN.format(link=f"{APP}{page}#{asked}") if not name.startswith("./") else ""
    return "\n".join(["## Load it", "", "```python", *code, "```", "", hub, *([opened] if opened else [])])


def pictures(folder: Path, config: Config, metrics: Metrics) -> str:
    """The pictures in the folder that were drawn from its weights and figures."""
    alike = kin(folder, config)
    told = {
        ALIGNMENT: ("An alignment", LOOKS if config["task"] == "caption" else MATRIX),
        BY_LENGTH: ("Quality by length", CURVES),
    }
    shown = {name: words for name, words in told.items() if is_picture_current(name, folder, metrics, alike)}
    return "\n\n".join(f"{words}\n\n![{title}]({name})" for name, (title, words) in shown.items())


def published_as(written: str, repo: str, space: str = "") -> str:
    """The card for a repository: its example loads this repository, and its link opens it in the playground of the Space, or
    without one in a playground on the reader's own machine."""
    written = EXAMPLE.sub(lambda found: f'{found[1]}load("{repo}")', written, count=1)
    link = f"{address(space) if space else APP}models#load={repo}"
    opened = OPEN_IN_SPACE.format(link=link, space=space) if space else OPEN_HERE.format(link=link)
    return LOCAL.sub(lambda _: f"{FROM_HUB.format(repo)}\n{opened}", written)


def address(space: str) -> str:
    """Where the Hub serves the app of a Space."""
    return f"https://{re.sub('[^a-z0-9]', '-', space.lower())}.hf.space/"


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
    trained += recipe_told(config.get("trained_on", {}))
    licence = config.get("licence") or "not stated"
    return "\n".join([*lines, f"{trained}Licence of these weights: **{licence}**. The code of seqdemo is under Apache-2.0."])


def recipe_told(trained_on: dict[str, Any]) -> str:
    """The values of the recipe that are not 0, the fingerprint of its splits, and the code that trained it."""
    if "recipe" not in trained_on:
        return ""
    values = ", ".join(f"{name} {written(value)}" for name, value in trained_on["recipe"].items() if value not in (0, {}))
    commits = " and ".join(f"`{commit[:12]}`{commit[40:]}" for commit in trained_on.get("commits", ()))
    code = f"; the code was that of commit {commits}" if commits else ""
    return RECIPE.format(values=values, fingerprint=trained_on["fingerprint"][:16], code=code) + " "


def data_of(config: Config, metrics: Metrics) -> str:
    """The data set of its training; if that was not recorded, the one of its figures or of its recipe."""
    if "trained_on" in config:
        return str(config["trained_on"]["data"])
    if metrics:
        return str(metrics["data"]["name"])
    return RECIPES[config["name"]].data if config["name"] in RECIPES else ""


def limits(config: Config, metrics: Metrics) -> str:
    lines = ["## Limits", "", LIMITS[config["task"]], NOT_FOR[config["task"]], *by_length_limit(config, metrics)]
    if "pointing" in metrics:
        lines.append(POINTS)
    if empty := metrics.get("search", {}).get("empty_optimum"):
        lines.append(EMPTY.format(empty))
    return "\n".join(lines)


def by_length_limit(config: Config, metrics: Metrics) -> list[str]:
    """How far quality falls from the best length to the longest, on the first test set."""
    tests: dict[str, dict[str, Any]] = metrics.get("tests", {"": {}})
    test, found = next(iter(tests.items()))
    rows, key = enough(found.get("by_length", ())), MAIN[config["task"]][0]
    best = max(rows, key=lambda row: row[key], default=None)
    if config["task"] != "translate" or best is None or best is rows[-1]:
        return []
    why = "" if model_config(config).has_attention else ONE_VECTOR
    ends = {"best": best[key], "at": span(best), "last": rows[-1][key], "longest": span(rows[-1])}
    return [LONG.format(name=column_name(metrics), unit=best["unit"], test=headlines.title(metrics, test), why=why, **ends)]
