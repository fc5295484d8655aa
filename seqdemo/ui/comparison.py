"""The comparison on the Models page: test figures with intervals for its table, and Plotly figures on demand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seqdemo.checkpoints.folder import METRICS, parse_json
from seqdemo.errors import InputError
from seqdemo.figures.metrics import SCORE_OF_TASK
from seqdemo.ui.cards import test_title
from seqdemo.ui.catalogue import Catalogue


class Comparison:
    """Reads the metrics of the models on offer on demand."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def metrics(self, task: str) -> dict[str, dict[str, Any]]:
        """Checkpoint name -> its metrics.json, where it has one."""
        folders = {folder.name: folder for folder in self.catalogue.folders()}
        names = [card["name"] for card in self.catalogue.of_task(task)]
        return {name: found for name in names if name in folders and (found := _metrics(folders[name]))}

    def figure(self, task: Any, test: Any, kind: Any) -> dict[str, Any]:
        """A figure as gr.Plot shows it, without buttons of its own."""
        from seqdemo.figures.comparisons import KINDS

        if task not in SCORE_OF_TASK or kind not in KINDS or not isinstance(test, str):
            raise InputError("There is no such comparison.")
        metrics = {name: {**every, "task": task} for name, every in self.metrics(task).items()}
        if not metrics:
            raise InputError("No figures were measured for these models.")
        drawn = json.loads(KINDS[kind][1](metrics, test, test_title(test)).to_json())
        return {**drawn, "config": {"displayModeBar": False, "responsive": True}}


def _metrics(folder: Path) -> dict[str, Any]:
    path = folder / METRICS
    return dict(parse_json(path.read_bytes(), METRICS)) if path.is_file() else {}
