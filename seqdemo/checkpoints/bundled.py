"""Where the shipped checkpoints lie: `checkpoints/` beside the package, or the folder SEQDEMO_CHECKPOINTS names."""

from __future__ import annotations

import os
from pathlib import Path

from seqdemo.checkpoints.folder import CONFIG


def bundled_folder() -> Path:
    named = os.environ.get("SEQDEMO_CHECKPOINTS", "")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "checkpoints"


def shared_folder() -> Path:
    return bundled_folder() / "shared"


def bundled_names() -> list[str]:
    root = bundled_folder()
    return sorted(path.name for path in root.iterdir() if (path / CONFIG).is_file()) if root.is_dir() else []
