"""The command `looking`: where the attention of a checkpoint rests, as a table, and among its figures if asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seqdemo.checkpoints import Checkpoint, write_manifest
from seqdemo.checkpoints.folder import METRICS, pretty_json, replace_file
from seqdemo.errors import InputError
from seqdemo.hub import load
from training import data as public_data
from training.measure.evaluate import data_name, digests, rounded, where_it_looks
from training.measure.headlines import recorded


def looks(folder: Path, data: Path | None = None, dataset: str = "", record: bool = False) -> dict[str, Any]:
    """Where the checkpoint in `folder` looks, on dev; with `record` it stands in its metrics.json too."""
    checkpoint = load(Path(folder))
    loaded = public_data.load(dataset or data_name(checkpoint), data)
    found = where_it_looks(checkpoint, loaded)
    if not found:
        raise InputError(f"{checkpoint.name} has no attention over words of which {loaded.name} tells where it should look.")
    if record:
        add(checkpoint, Path(folder), "looking", found)
    return found


def add(checkpoint: Checkpoint, folder: Path, part: str, found: dict[str, Any]) -> None:
    """Put it among the figures in metrics.json, if those are of these bytes."""
    before = recorded(folder)
    if before.get("files") != digests(checkpoint):
        raise InputError(f"{METRICS} in {folder} is not of these bytes: python -m training evaluate {folder} writes it anew.")
    replace_file(folder / METRICS, pretty_json({**before, part: rounded(found)}))
    write_manifest(folder)


def sentences(found: dict[str, Any]) -> str:
    """A line a language; of a translator, one line."""
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
    """Of a Transformer's heads."""
    return f"\nhead {found['best_head']} by itself: {found['heads'][found['best_head']]:.1f} %" if "best_head" in found else ""
