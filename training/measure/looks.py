"""The command `looking`: where the attention of a checkpoint rests, as a table, and among its figures if asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqdemo.checkpoints import Checkpoint, write_manifest
from seqdemo.checkpoints.folder import METRICS, pretty_json, replace_file
from seqdemo.errors import InputError
from seqdemo.hub import load
from training.measure.evaluate import attends_to_text, digests, load_data, rounded, where_it_looks
from training.measure.headlines import recorded


def looks(folder: Path, data: Path | None = None, dataset: str = "", record: bool = False) -> dict[str, Any]:
    """Where the checkpoint in `folder` looks, on dev; `record` also writes it into metrics.json."""
    checkpoint = load(Path(folder))
    if not attends_to_text(checkpoint):
        raise InputError(f"{checkpoint.name} has no attention over letters or words, so nothing can be measured.")
    loaded = load_data(checkpoint, dataset, data)
    before = figures(checkpoint, loaded.name) if record else {}
    found = where_it_looks(checkpoint, loaded)
    if not found:
        raise InputError(
            f"The data set {loaded.name} does not tell where {checkpoint.name} should look, so nothing can be measured."
        )
    if record:
        add(before, Path(folder), "looking", found)
    return found


def figures(checkpoint: Checkpoint, data: str) -> dict[str, Any]:
    """The figures in metrics.json, to which others may be added: those of these bytes on this data set."""
    assert checkpoint.folder is not None
    found = recorded(checkpoint.folder)
    if found.get("files") != digests(checkpoint):
        raise InputError(
            f"{METRICS} in {checkpoint.folder} is not of these bytes: python -m training evaluate {checkpoint.folder} writes it "
            "anew."
        )
    if found["data"]["name"] != data:
        raise InputError(f"{METRICS} in {checkpoint.folder} is of {found['data']['name']}, not of {data}; leave out --record.")
    return found


def add(figures: dict[str, Any], folder: Path, part: str, found: dict[str, Any]) -> None:
    """Write the figures in metrics.json with this part."""
    replace_file(folder / METRICS, pretty_json({**figures, part: rounded(found)}))
    write_manifest(folder)


def sentences(found: dict[str, Any]) -> str:
    """One line per language; for a translator, one line in all."""
    if "error" in found:
        told = ", ".join(f"{value:.1f} % at {shift}" for shift, value in found["error"].items())
        counted = f"on {found['sentences']:,} sentences with {found['links']:,} links"
        return f"alignment error {told}, {counted}{best(found)}\n{found['method']}"
    lines = [f"{'':<5}{'words':>7}{'signs':>8}" + "".join(f"{shift:>8}" for shift in found["right"])]
    for name, one in [("all", found), *found["languages"].items()]:
        cells = "".join(f"{share:>6.1f} %" for share in one["right"].values())
        lines.append(f"{name:<5}{one['words']:>7,}{one['signs']:>8,}{cells}")
    return "\n".join(lines) + best(found)


def best(found: dict[str, Any]) -> str:
    """The head of a Transformer that looks best."""
    return f"\nhead {found['best_head']} by itself: {found['heads'][found['best_head']]:.1f} %" if "best_head" in found else ""
