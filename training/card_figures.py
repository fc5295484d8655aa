"""The figures of a model card: tables and sentences from metrics.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqdemo.checkpoints.folder import METRICS, WEIGHTS
from training import headlines
from training.headlines import COLUMNS, MAIN

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
    "Pointing game on {phrases} phrases with boxes, in dev photographs: when the model reads a reference up to the phrase's "
    "last word, the centre of the heaviest cell of its map is in the phrase's box for **{word:.1f} %**. The caption's mean map: "
    "{mean_map:.1f} %. The middle of the picture, which needs no model: {centre:.1f} %."
)
NATS = "**{nats_per_character:.3f} nats per character** on the last 10 % of the text, {characters:,} characters."
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


def figures(metrics: Metrics) -> str:
    if not metrics:
        return "## Figures\n\nNot measured yet."
    parts = (
        (measured, text, units)
        if metrics["task"] == "complete"
        else (measured, summary, beside, by_length, by_beam, search, seen, said)
    )
    return "\n\n".join(["## Figures", *(written for part in parts if (written := part(metrics)))])


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
    abouts = " ".join(f"{other['name']}: {other['about']}" for other in metrics["beside"])
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


def few(metrics: Metrics, table_name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of a table by test set; of many languages only Hindi's."""
    found = {test: every[table_name] for test, every in metrics["tests"].items() if every.get(table_name)}
    return {"hi": found["hi"]} if len(found) > 3 and "hi" in found else found


def by_length(metrics: Metrics) -> str:
    tests = few(metrics, "by_length")
    if not tests:
        return ""
    key, unit = MAIN[metrics["task"]][0], next(iter(tests.values()))[0]["unit"]
    edges = dict(sorted({row["from"]: row["to"] for rows in tests.values() for row in rows}.items()))
    head = [f"{low}+" if high is None else f"{low}-{high}" for low, high in edges.items()]
    lines = []
    for test, rows in tests.items():
        known = {row["from"]: row[key] for row in rows}
        lines.append([headlines.title(metrics, test), *(number(known.get(low)) for low in edges)])
    return "\n".join([f"{column_name(metrics)} by length of the source, in {unit}:", "", *table(["", *head], lines)])


def by_beam(metrics: Metrics) -> str:
    tests = few(metrics, "by_beam")
    if not tests:
        return ""
    key = MAIN[metrics["task"]][0]
    sizes = [str(row["size"]) for row in next(iter(tests.values()))]
    rows = [
        [headlines.title(metrics, test), f"{found[0]['inputs']:,}", *(number(row[key]) for row in found)]
        for test, found in tests.items()
    ]
    return "\n".join([f"{column_name(metrics)} by beam size:", "", *table(["", "inputs", *sizes], rows)])


def column_name(metrics: Metrics) -> str:
    return next(column.name for column in COLUMNS[metrics["task"]] if column.key == MAIN[metrics["task"]][0]).capitalize()


def search(metrics: Metrics) -> str:
    found = metrics["search"]
    errors = ", ".join(f"{row['search_errors']:.1f} % with beam {row['beam']}" for row in found["beams"])
    return SEARCH.format(**found, errors=errors)


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


def text(metrics: Metrics) -> str:
    return NATS.format(**metrics["text"])


def units(metrics: Metrics) -> str:
    rows = [
        [
            name,
            str(row["layer"]),
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
    return "\n".join(["Units that know where they are, chosen on dev text and measured on test text:", "", *lines])
