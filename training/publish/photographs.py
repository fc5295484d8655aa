"""The example photographs: what each shows, and where. Written down by people in credits.json beside the pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from seqdemo.errors import InputError
from seqdemo.images import Box

CREDITS = "credits.json"


class Photo(NamedTuple):
    """`names`: words for the main thing; `box`: where it is, in fractions of width and height; `scene`: words for the rest."""

    title: str
    names: tuple[str, ...]
    box: Box
    scene: tuple[str, ...]


def read_photographs(folder: Path | None) -> dict[Path, Photo]:
    if folder is None or not (folder / CREDITS).is_file():
        found = f"There is no {CREDITS} in {folder}. " if folder else ""
        raise InputError(f"{found}Name the folder of photographs with --photographs; it must hold {CREDITS}.")
    rows = json.loads((folder / CREDITS).read_text("utf-8"))
    return {
        folder / row["file"]: Photo(row["title"], tuple(row["names"]), tuple(row["box"]), tuple(row["scene"])) for row in rows
    }
