"""The commit whose code trains: noted in the run's folder at every start and recorded in the checkpoint, for information
only."""

from __future__ import annotations

import subprocess
from pathlib import Path

COMMITS = "commits"
CODE = Path(__file__).resolve().parents[2]
CHANGED = " with changes"


def commit(folder: Path = CODE) -> str:
    """The commit that is checked out in `folder`, and whether files differ from it; "" outside a repository."""
    head = git(folder, "rev-parse", "HEAD")
    return head + (CHANGED if head and git(folder, "status", "--porcelain", "--untracked-files=no") else "")


def git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def note_commit(state: Path) -> None:
    """Add a line for each commit whose code has trained this run."""
    now, before = commit(), commits_of(state)
    if now and now not in before:
        (state / COMMITS).write_text("\n".join([*before, now]) + "\n", "utf-8")


def commits_of(state: Path) -> list[str]:
    path = state / COMMITS
    return path.read_text("utf-8").splitlines() if path.is_file() else []
