"""The README's table of models, generated from the checkpoints' config.json and metrics.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqdemo.checkpoints.folder import WEIGHTS, replace_file
from seqdemo.errors import InputError
from training.measure import headlines
from training.publish.card import read
from training.publish.card_figures import table

BEGIN, END = "<!-- models:", "<!-- models: end -->"


def models_table(folders: Sequence[Path]) -> str:
    """One row per checkpoint: name, what it is, size, its main figures, the licence of its weights."""
    if not folders:
        return ""
    rows = []
    for folder in folders:
        config, metrics = read(Path(folder))
        link = f"[{config['name']}](checkpoints/{folder.name}/README.md)"
        size = f"{(folder / WEIGHTS).stat().st_size / 1e6:.1f} MB"
        licence = config.get("licence", "")
        rows.append([link, config.get("about", ""), size, headlines.sentence(metrics), licence])
    return "\n".join(table(["checkpoint", "what", "size", "test figures", "weights"], rows)) + "\n"


def with_table(readme: str, folders: Sequence[Path]) -> str:
    """The README with a fresh table between its two markers."""
    start = readme.find(BEGIN)
    end = readme.find(END)
    if start < 0 or end <= start:
        raise InputError(f"The README has no place for the table of models: a line that begins with {BEGIN} and a line {END}.")
    first = readme.index("\n", start) + 1
    return readme[:first] + models_table(folders) + readme[end:]


def checkpoints_in(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.glob("*/config.json"))


def write_table(readme: Path, checkpoints: Path) -> None:
    """Put the table of the checkpoints in a folder into the README."""
    replace_file(readme, with_table(readme.read_text("utf-8"), checkpoints_in(checkpoints)).encode())


def is_current(readme: Path, checkpoints: Path) -> bool:
    """Whether the README's table is what the metrics give."""
    text = readme.read_text("utf-8")
    return with_table(text, checkpoints_in(checkpoints)) == text
