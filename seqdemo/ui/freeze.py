"""`python -m seqdemo.ui.freeze`: decodes what each page opens with and writes it beside the models, so that a page shows a
worked result before any model is loaded. Run it again whenever a checkpoint or the first example of a page changes."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from seqdemo.errors import InputError
from seqdemo.figures.payloads import few_units
from seqdemo.ui.answers import Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.fields import TASKS
from seqdemo.ui.launch import checkpoints_folder
from seqdemo.ui.service import Service


def opening_question(setup: dict[str, Any]) -> dict[str, Any]:
    """The question that the page itself asks first."""
    start = setup["start"]
    given = {"example": start["example"]} if setup["task"] == "caption" else {"text": start["text"]}
    gates = "memory" if setup["tab"] == "text" else ""
    return {"task": setup["task"], "input": given, "language": start["language"], "columns": start["columns"], "gates": gates}


def frozen(answers: Answers, task: str) -> dict[str, Any]:
    answer = answers.answer(opening_question(answers.catalogue.setup(task)))
    answer["asked"] = answers.catalogue.asked_first(task)
    for column in answer["columns"].values():
        if "error" in column:
            raise InputError(f"{task}: {column['error']}")
        column.pop("took", None)
    return slim(answer, answers.catalogue.cards)


def slim(answer: dict[str, Any], cards: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Only what the first drawing needs: a photograph once, and of the memory only units that were measured to track
    something."""
    for number, column in enumerate(answer["columns"].values()):
        if number:
            column["picture"] = None
        trace = column["trace"]
        if trace["gates_kind"] == "memory":
            measured = cards[column["spec"]["checkpoint"]].get("units", {}).values()
            chosen = {(row["layer"], row["unit"]) for row in measured} or {(0, 0)}
            trace["gates"] = few_units(trace["gates"], chosen)
            trace["gates_kind"] = "few"
    return answer


def freeze(root: Path, service: Any = None) -> list[Path]:
    """Writes frozen/<task>.json for every task that has a model."""
    with tempfile.TemporaryDirectory() as uploads:
        answers = Answers(service or Service(), Catalogue(root), Path(uploads))
        written = []
        for task in TASKS:
            if not answers.catalogue.names(task):
                continue
            path = root / "frozen" / f"{task}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(frozen(answers, task), ensure_ascii=True, separators=(",", ":")), "utf-8")
            written.append(path)
    return written


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m seqdemo.ui.freeze", description=__doc__).parse_args()
    for path in freeze(checkpoints_folder()):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
