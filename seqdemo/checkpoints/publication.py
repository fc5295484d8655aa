"""Publish a checkpoint's folder as one model repository."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqdemo.checkpoints.client import Failure, Watch, run_child
from seqdemo.checkpoints.folder import CARD, MANIFEST, manifest_of
from seqdemo.checkpoints.library import repository
from seqdemo.checkpoints.sentences import hub_error
from seqdemo.checkpoints.store import load_folder, load_model, open_folder, read_cnn

SECONDS = 900.0
OURS = [".safetensors", ".model", ".json"]  # what a former version of a checkpoint may have left at the root


@dataclass(frozen=True)
class Published:
    """What was done, or with a dry run would be done, to a repository."""

    repo: str
    kind: str  # model | space
    revision: str  # the commit that holds the files; empty where a dry run found no repository
    created: bool
    private: bool
    sent: tuple[str, ...]
    removed: tuple[str, ...]
    bytes: int
    dry_run: bool

    @property
    def changed(self) -> bool:
        return bool(self.sent or self.removed)

    def __str__(self) -> str:
        if not self.changed:
            return f"{self.repo} already holds this, at {self.revision}; nothing {'would be' if self.dry_run else 'was'} sent."
        verb = "would send" if self.dry_run else "sent"
        new = " to a new" + (" private" if self.private else "") + " repository" if self.created else ""
        lines = [
            f"{self.repo}: {verb} {len(self.sent)} files, {self.bytes:,} bytes{new}.",
            *(f"  + {name}" for name in self.sent),
        ]
        lines += [f"  - {name}" for name in self.removed]
        return "\n".join([*lines, *([f"Now at {self.revision}."] if not self.dry_run else [])])


def staged(folder: str | Path, card: str = "") -> dict[str, bytes]:
    """The files of a checkpoint as its repository holds them: those the manifest names, the card (`card` in its place), the
    shared CNN copied in, and a manifest of it all. A folder that would not load is not published."""
    opened, config = open_folder(Path(folder))
    if config["tokenizers"]:
        load_folder(opened.path)
    else:
        load_model(opened, config)
    names = [name for name in opened.manifest if name != CARD]
    staged = {name: opened.checked(name) for name in names}
    if CARD in opened or card:
        staged[CARD] = card.encode() if card else opened.read(CARD)
    if "shared" in config:
        staged[config["shared"]["cnn"]["file"]] = read_cnn(opened, config["shared"]["cnn"])
    return {**staged, MANIFEST: manifest_of(staged)}


def push(
    folder: str | Path,
    repo: str,
    private: bool = False,
    dry_run: bool = False,
    message: str = "",
    note: Callable[[str], None] | None = None,
    card: str = "",
) -> Published:
    """One commit that makes `repo` hold the checkpoint, or none where it does already."""
    files = staged(folder, card)
    with tempfile.TemporaryDirectory() as place:
        pairs = []
        for name, data in files.items():
            (Path(place) / name).write_bytes(data)
            pairs.append((name, str(Path(place) / name)))
        return push_files(pairs, repo, "model", OURS, private, dry_run, message or f"Publish {Path(folder).resolve().name}", note)


def push_files(
    files: list[tuple[str, str]],
    repo: str,
    kind: str,
    prune: list[str],
    private: bool,
    dry_run: bool,
    message: str,
    note: Callable[[str], None] | None = None,
    variables: dict[str, str] | None = None,
) -> Published:
    """`files`: (path in the repository, local path); `prune`: endings of names, or folders with /, that are wholly ours;
    `variables`: public settings of a Space."""
    repo, _ = repository(repo, None)
    request: dict[str, Any] = {"files": files, "repo": repo, "kind": kind, "prune": prune, "private": private, "dry_run": dry_run}
    try:
        request |= {"message": message, "variables": variables or {}}
        done = run_child("upload", request, Watch(SECONDS, note=note), anonymous=False)
    except Failure as failure:
        raise hub_error(failure, repo) from None
    return Published(
        repo,
        kind,
        done["revision"] or "",
        done["created"],
        done["private"],
        tuple(done["sent"]),
        tuple(done["removed"]),
        done["bytes"],
        dry_run,
    )
