"""Which commits of which account stand in for checkpoints that are not bundled: revisions.json, written by publishing."""

from __future__ import annotations

import os
from pathlib import Path

from seqdemo.checkpoints.cache import COMMIT
from seqdemo.checkpoints.folder import check_format, parse_json, pretty_json, replace_file
from seqdemo.errors import InputError

PINS = Path(__file__).with_name("revisions.json")


def hub_owner() -> str:
    return os.environ.get("SEQDEMO_HUB_OWNER", "").strip()


def pinned(owner: str) -> dict[str, str]:
    """name -> commit, for the account that published them; empty for any other."""
    if not owner or not PINS.exists():
        return {}
    value = parse_json(PINS.read_bytes(), PINS.name)
    check_format(value, PINS.name)
    revisions = value.get("revisions")
    if not isinstance(revisions, dict) or not all(isinstance(pin, str) and COMMIT.fullmatch(pin) for pin in revisions.values()):
        raise InputError(f"{PINS.name}: revisions must map names to commits of 40 hexadecimal digits; publish again.")
    return dict(revisions) if value.get("owner") == owner else {}


def pin(owner: str, name: str, commit: str) -> None:
    revisions = {**pinned(owner), name: commit}
    replace_file(PINS, pretty_json({"format": 1, "owner": owner, "revisions": dict(sorted(revisions.items()))}))
