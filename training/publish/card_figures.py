"""The figures of a model card: tables and sentences from metrics.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqdemo.checkpoints.folder import METRICS, WEIGHTS
from seqdemo.config import LANGUAGE_NAMES, PRECISIONS
from training.data.batches import PASSAGE
from training.measure import headlines
from training.measure.headlines import COLUMNS, MAIN
from training.recipes import RECIPES

Metrics = dict[str, Any]
Rows = Sequence[Sequence[str]]

MEASURED = (
    "`{command}` measures them from the bytes of this folder (`{weights}` has sha256 `{sha256}`...), on the {split} split of "
    "{data} (fingerprint `{fingerprint}`...), with torch {torch} and sacrebleu {sacrebleu}. All of them are in `{metrics}`."
)
SEARCH = (
    "Exact search on {inputs} inputs, with at most {expansions:,} expansions each and plain log probability, proved the best "
    "output of {proved}. The best output is empty for {empty_optimum:.1f} % and has {optimum_tokens:.1f} tokens on average. "
    "Search errors, that is, outputs less likely than another one that is known: {errors}."
)
DOGS = "Of {photographs} photographs whose five captions all have the word dog or dogs, {share:.1f} % get a caption that has it."
POINTING = (
    "Pointing game on {phrases} phrases with boxes, in dev photographs (`flickr8k/boxes_dev.json` of the folder that `--data` "
    "names; these boxes are not public, and without them the figures stay as they are): when the model reads a reference up "
    "to the phrase's last word, the centre of the heaviest cell of its map is in the phrase's box for **{word:.1f} %**. The "
    "caption's mean map: {mean_map:.1f} %. The middle of the picture, which needs no model: {centre:.1f} %."
)
LOOKING = (
    "Where it looks while it writes, on {words:,} plain words of dev ({rule}): the heaviest weight of a sign's row lies on a "
    "letter that spells the sign for **{here:.1f} %** of {signs:,} signs, on the position before for {before:.1f} %, on the "
    "one after for {after:.1f} % (where two letters spell a sign, a position may count twice).{apart}"
)
HALVES = (
    " Reading the word so far it predicts {whole:.1f} % of these signs; {forward:.1f} % if what it fetches lacks the half that "
    "was read from the left, {backward:.1f} % if it lacks the half that was read from the right."
)
SILVER = (
    "Where it looks while it writes, on {sentences:,} sentences of dev: alignment error **{here:.1f} %** (each word points to "
    "its heaviest source word; {links:,} {method}). With every word pointing one source word further back the error is "
    "{after:.1f} %, one further on {before:.1f} %."
)
NATS = "**{nats_per_character:.3f} nats per character** on the last 10 % of the text, {characters:,} characters."
HEADS = (
    " That is the mean of its {count} heads. By itself, head {head} of layer {layer}, counted from 0, aligns best: {share:.1f} %."
)
TIMING = (
    "Time of one core to decode with beam {beam}, on {inputs:,} inputs of dev, in turns with {beside}, which has {parameters:,} "
    "parameters (`python -m training timing` measures it):"
)
LEAST = 20  # inputs of a length, below which their figure says nothing
ALIKE, AS_OFTEN = "Their recipes are alike in everything but {}", ": the same examples as often, in batches of the same size"
EARLIER = " By earlier versions of these recipes, which may have differed in more: {}."
TRIED = "{name}: {about} From `python -m training fit {name}`; its weights, of sha256 `{weights}`..., are not in this folder."
HOW_OFTEN = {"data", "epochs", "tokens", "weigh", "patience"}  # fields of a recipe that decide what a model sees how often
UNITS = (
    "Units that know where they are, chosen on dev text and measured on test text. Both are read in passages of about "
    "{passage:,} characters, each from its beginning where a paragraph begins and nothing is open; layers count from 1, units "
    "from 0."
)
CIDER = "CIDEr is CIDEr-D times 100, as the COCO evaluation computes it."


def table(head: Sequence[str], rows: Rows) -> list[str]:
    """A table in Markdown; a bar inside a cell is escaped."""
    return [line(head), "|" + "---|" * len(head), *map(line, rows)]


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def number(value: float | None, unit: str = "", digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}{unit}"


def values(metrics: Metrics, row: dict[str, float]) -> list[str]:
    return [number(row.get(column.key), column.unit, column.digits) for column in COLUMNS[metrics["task"]]]


def figures(metrics: Metrics, kin: Sequence[Metrics] = ()) -> str:
    """`kin`: the figures of models that learnt the same in another way, to stand beside these."""
    if not metrics:
        return "## Figures\n\nNot measured yet."
    if metrics["task"] == "complete":
        parts = [measured(metrics), text(metrics), units(metrics), precisions(metrics)]
    else:
        compared = [related(metrics, kin), by_length(metrics, kin)]
        rest = [part(metrics) for part in (by_beam, search, looking, seen, said, precisions, timing)]
        parts = [measured(metrics), summary(metrics), beside(metrics), *compared, *rest]
    return "\n\n".join(["## Figures", *filter(None, parts)])


def measured(metrics: Metrics) -> str:
    data, versions = metrics["data"], metrics["versions"]
    written = MEASURED.format(
        command=metrics["command"],
        weights=WEIGHTS,
        sha256=metrics["files"][WEIGHTS][:16],
        split=metrics["split"],
        data=data["name"],
        fingerprint=data["fingerprint"][:16],
        torch=versions["torch"],
        sacrebleu=versions["sacrebleu"],
        metrics=METRICS,
    )
    return written if data["verified"] else f"{written}\n\n**{data['refusal']}**"


def summary(metrics: Metrics) -> str:
    searches = named_searches(metrics)
    rows = [
        [headlines.title(metrics, test), f"{found['inputs']:,}", name, *values(metrics, found[key])]
        for test, found in metrics["tests"].items()
        for key, name in searches.items()
    ]
    if "mean" in metrics:
        rows.append([f"mean of {len(metrics['tests'])} languages", "", searches["beam"], *values(metrics, metrics["mean"])])
    head = ["test set", "inputs", "search", *(column.name for column in COLUMNS[metrics["task"]])]
    return "\n".join([*table(head, rows), "", how(metrics)])


def named_searches(metrics: Metrics) -> dict[str, str]:
    return {"greedy": "greedy", "beam": headlines.search_name(metrics)}


def beside(metrics: Metrics) -> str:
    """Checkpoints that were tried on the same inputs and do not ship."""
    rows = [
        [other["name"], headlines.title(metrics, test), name, *values(metrics, found[key])]
        for other in metrics.get("beside", ())
        for test, found in other["tests"].items()
        for key, name in named_searches(metrics).items()
    ]
    if not rows:
        return ""
    abouts = " ".join(TRIED.format(**{**other, "weights": other["weights"][:16]}) for other in metrics["beside"])
    head = ["tried, not shipped", "test set", "search", *(column.name for column in COLUMNS[metrics["task"]])]
    return "\n".join([*table(head, rows), "", abouts])


def how(metrics: Metrics) -> str:
    """Signatures and rules."""
    tests = metrics["tests"]
    first = next(iter(tests.values()))
    if metrics["task"] == "translate":
        signatures = "; ".join(dict.fromkeys(f"`{found['bleu_signature']}`" for found in tests.values()))
        intervals = [f"{low:.1f} to {high:.1f}" for low, high in (found["bleu_interval"] for found in tests.values())]
        return f"BLEU {signatures}; chrF `{first['chrf_signature']}`. 95 % intervals of BLEU: {', '.join(intervals)}."
    if metrics["task"] == "caption":
        return f"{first['references']:,} references in all; {first['tokenisation']}. {CIDER}"
    return f"An output is {first['rule']}."


def related(metrics: Metrics, kin: Sequence[Metrics]) -> str:
    """The main figures of all that learnt the same, and in what else their recipes differ."""
    if not kin:
        return ""
    members = sorted([metrics, *kin], key=lambda one: str(one["name"]))
    head = [(one.test, one.column) for one in headlines.main(metrics)]
    rows = []
    for one in members:
        told = {(main.test, main.column): main.text for main in headlines.main(one)}
        named = [one["name"], f"{one['parameters']['trained']:,}", headlines.search_name(one)]
        rows.append([*named, *(told.get(place, "") for place in head)])
    recipes = [vars(RECIPES[one["name"]]) for one in members]
    apart = {name for recipe in recipes for name in recipe if recipe[name] != recipes[0][name]} - {"name", "about", "model"}
    titles = [f"{headlines.title(metrics, test)}, {column.name}" for test, column in head]
    lines = table(["learnt the same", "parameters", "search", *titles], rows)
    alike = ALIKE.format(" and ".join(["the model", *sorted(apart)])) + ("" if apart & HOW_OFTEN else AS_OFTEN)
    unknown = [one["name"] for one in members if not one.get("recipe_known")]
    return "\n".join([*lines, "", f"{alike}.{EARLIER.format(', '.join(unknown)) if unknown else ''}"])


def few(metrics: Metrics, table_name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of a table by test set; for many languages only those of Hindi."""
    found = {test: every[table_name] for test, every in metrics["tests"].items() if every.get(table_name)}
    return {"hi": found["hi"]} if len(found) > 3 and "hi" in found else found


def enough(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those lengths that enough inputs have."""
    return [row for row in rows if row["inputs"] >= LEAST]


def span(row: dict[str, Any]) -> str:
    return f"{row['from']}+" if row["to"] is None else f"{row['from']}-{row['to']}"


def by_length(metrics: Metrics, kin: Sequence[Metrics]) -> str:
    tests = few(metrics, "by_length")
    if not tests:
        return ""
    key, unit = MAIN[metrics["task"]][0], next(iter(tests.values()))[0]["unit"]
    edges = {
        row["from"]: span(row) for row in sorted((row for rows in tests.values() for row in rows), key=lambda row: row["from"])
    }

    def spread(label: str, cells: dict[int, str]) -> list[str]:
        return [label, *(cells.get(low, "") for low in edges)]

    lines = []
    for test, rows in tests.items():
        name = headlines.title(metrics, test)
        lines.append(spread(f"{name}: inputs", {row["from"]: f"{row['inputs']:,}" for row in rows}))
        for one in [metrics, *kin]:
            known = {row["from"]: number(row[key]) for row in enough(one["tests"].get(test, {}).get("by_length", ()))}
            lines.append(spread(name if one is metrics else f"{name}: {one['name']}", known))
    return "\n".join([f"{measure_name(metrics)} by length of the source, in {unit}:", "", *table(["", *edges.values()], lines)])


def by_beam(metrics: Metrics) -> str:
    """One row per test set; for many languages one row, their mean."""
    tests = {test: found["by_beam"] for test, found in metrics["tests"].items() if found.get("by_beam")}
    if not tests:
        return ""
    key, every = MAIN[metrics["task"]][0], list(tests.values())
    sizes = [str(row["size"]) for row in every[0]]
    rows = [
        [headlines.title(metrics, test), f"{found[0]['inputs']:,}", *(number(row[key]) for row in found)]
        for test, found in tests.items()
    ]
    if "mean" in metrics:
        means = [sum(row[key] for row in column) / len(column) for column in zip(*every)]
        rows = [[f"mean of {len(every)} languages", f"{sum(found[0]['inputs'] for found in every):,}", *map(number, means)]]
    return "\n".join([f"{measure_name(metrics)} by beam size:", "", *table(["", "inputs", *sizes], rows)])


def measure_name(metrics: Metrics) -> str:
    """The name of the main figure, with its unit."""
    unit = next(column.unit for column in COLUMNS[metrics["task"]] if column.key == MAIN[metrics["task"]][0])
    return f"{column_name(metrics)} (in{unit})" if unit else column_name(metrics)


def column_name(metrics: Metrics) -> str:
    name = next(column.name for column in COLUMNS[metrics["task"]] if column.key == MAIN[metrics["task"]][0])
    return name[:1].upper() + name[1:]


def search(metrics: Metrics) -> str:
    found = metrics["search"]
    errors = ", ".join(f"{row['search_errors']:.1f} % with beam {row['beam']}" for row in found["beams"])
    return SEARCH.format(**found, errors=errors)


def looking(metrics: Metrics) -> str:
    """Whether a model looks at what it writes; for many languages, in each of them."""
    if "looking" not in metrics:
        return ""
    found = metrics["looking"]
    before, here, after = found["error" if "error" in found else "right"].values()
    if "error" in found:
        return SILVER.format(**found, before=before, here=here, after=after) + best_head(found)
    apart = [f"{LANGUAGE_NAMES.get(code, code)} {one['right']['0']:.1f} %" for code, one in found["languages"].items()]
    told = f" By language: {', '.join(apart)}." if len(apart) > 1 else ""
    told += (HALVES.format(**found["predicted"]) if "predicted" in found else "") + best_head(found)
    return LOOKING.format(**found, before=before, here=here, after=after, apart=told)


def best_head(found: dict[str, Any]) -> str:
    """The head of a Transformer that aligns best."""
    if "best_head" not in found:
        return ""
    layer, head = found["best_head"].split(".")
    return HEADS.format(count=len(found["heads"]), layer=layer, head=head, share=found["heads"][found["best_head"]])


def seen(metrics: Metrics) -> str:
    """What a captioner says of dogs, and where its map points."""
    templates = {"dogs": DOGS, "pointing": POINTING}
    return "\n\n".join(template.format(**metrics[key]) for key, template in templates.items() if key in metrics)


def said(metrics: Metrics) -> str:
    rows = [[row["input"], row["greedy"], row["beam"], "yes" if row["said"] else "no"] for row in metrics.get("says", ())]
    if not rows:
        return ""
    head = ["input", "greedy", f"beam {metrics['options']['beam']}", "as hoped"]
    return "\n".join(["What everyone tries first:", "", *table(head, rows)])


def precisions(metrics: Metrics) -> str:
    """What weights in a lower precision change."""
    if "precisions" not in metrics:
        return ""
    found = metrics["precisions"]
    on = f"{found['inputs']:,} inputs" if found["inputs"] else "a part"
    rows = []
    for name in PRECISIONS:
        row = found[name]
        differ, taken = number(row.get("differ"), " %"), number(row.get("time"), "", 2)
        rows.append([name, f"{row['figure']:.3f}" if found["figure"] == "nats" else f"{row['figure']:.1f}", differ, taken])
    named = (f"{column.name}, %" if column.unit else column.name for column in COLUMNS[metrics["task"]])
    titles = dict(zip((column.key for column in COLUMNS[metrics["task"]]), named))
    head = ["weights in", titles.get(found["figure"], "nats per character"), "outputs that differ", "time, float32 = 1"]
    return "\n".join([f"In lower precision, on {on} of dev:", "", *table(head, rows)])


def timing(metrics: Metrics) -> str:
    """How long decoding takes, beside another model."""
    if "timing" not in metrics:
        return ""
    found, name = metrics["timing"], metrics["name"]
    rows = [
        [f"{one['size']}", number(one["ms"], "", 2), number(one["beside_ms"], "", 2), number(one["ratio"], "", 2)]
        for one in found["batches"]
    ]
    head = ["inputs together", f"{name}, ms an input", f"{found['beside']}, ms an input", "ratio"]
    return "\n".join([TIMING.format(**found), "", *table(head, rows)])


def text(metrics: Metrics) -> str:
    return NATS.format(**metrics["text"])


def units(metrics: Metrics) -> str:
    rows = [
        [
            name,
            str(row["layer"] + 1),
            str(row["unit"]),
            row["measure"].replace("auc", "AUC"),
            f"{row['dev']:.3f}",
            f"{row['test']:.3f}",
        ]
        for name, row in metrics["units"].items()
        if isinstance(row, dict)
    ]
    if not rows:
        return ""
    lines = table(["tracks", "layer", "unit", "measure", "dev", "test"], rows)
    return "\n".join([UNITS.format(passage=PASSAGE), "", *lines])
