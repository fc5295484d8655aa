"""What figures read from metrics.json: the tables of a test set for several checkpoints, and the main score of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seqdemo.errors import InputError
from seqdemo.figures.lengths import wilson

SCORE_OF_TASK = {"translate": ("bleu", "BLEU"), "transliterate": ("top1", "words right, %"), "caption": ("bleu4", "BLEU-4")}

SHARES = ("top", "search_errors")  # beginnings of the columns that count inputs, in per cent

Metrics = Mapping[str, Any]
Table = Sequence[Mapping[str, Any]]


def tables_of(metrics: Mapping[str, Mapping[str, Any]], test: str, table: str) -> tuple[dict[str, Table], str]:
    """Checkpoint name -> its rows for the test set (by default the first that one of them has), and the name of that set."""
    tests = [name for every in metrics.values() for name, rows in every.get("tests", {}).items() if rows.get(table)]
    test = test or next(iter(tests), "")
    found = {
        name: every["tests"][test][table] for name, every in metrics.items() if every.get("tests", {}).get(test, {}).get(table)
    }
    if not found:
        known = f" It has {', '.join(dict.fromkeys(tests))}." if tests else " Evaluate these checkpoints to have it measured."
        raise InputError(f"No metrics.json here has {table.replace('_', ' ')} for the test set {test!r}.{known}")
    return found, test


def score_of(metrics: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """The column and the name of the task's main score."""
    task = next(iter(metrics.values())).get("task", "")
    return SCORE_OF_TASK.get(task, SCORE_OF_TASK["translate"])


def interval_of(tables: Metrics, column: str, value: float) -> tuple[float, float] | None:
    """The 95 % interval of a test set's score: of BLEU as the evaluation drew it (bootstrap), of a share of right answers by
    Wilson's formula; None where nobody measured one."""
    if column == "bleu" and tables.get("bleu_interval"):
        low, high = tables["bleu_interval"]
        return float(low), float(high)
    inputs = int(tables.get("inputs", 0))
    return wilson(value, inputs) if column.startswith(SHARES) and inputs else None
