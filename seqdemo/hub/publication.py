"""Publish a checkpoint's folder as one model repository."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqdemo.checkpoints.checkpoint import load_folder, load_model, open_folder, read_cnn, save_pretrained
from seqdemo.checkpoints.folder import CARD, MANIFEST, PICTURES, manifest_of
from seqdemo.child.parent import Watch
from seqdemo.errors import harmless
from seqdemo.hub.asking import ask_hub
from seqdemo.hub.faults import WHEN_PUBLISHING
from seqdemo.hub.places import checked_id
from seqdemo.network.model import Network

SECONDS = 900.0  # seconds, in all
SILENCE = 60.0  # seconds without an answer from the Hub
EVERY = 5.0  # seconds between two lines of progress
OURS = [".safetensors", ".model", ".json"]  # files that an earlier version of a checkpoint may have left at the root


@dataclass(frozen=True)
class Published:
    """What was done to a repository, or would be done without `dry_run`."""

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
        lines += [f"  - {harmless(name)}" for name in self.removed]
        return "\n".join([*lines, *([f"Now at {self.revision}."] if not self.dry_run else [])])


def staged(folder: str | Path, card: str = "") -> dict[str, bytes]:
    """The files of a checkpoint's repository: those of the manifest, the card (or `card` instead), a copy of the shared CNN, the
    pictures of the card, and a new manifest. A folder that cannot be loaded is not published."""
    opened, config = open_folder(Path(folder))
    if config["tokenizers"]:
        load_folder(opened.path)
    else:
        load_model(opened, config)
    names = [name for name in opened.manifest if name != CARD]
    staged = {name: opened.checked(name) for name in names}
    if CARD in opened or card:
        staged[CARD] = card.encode() if card else opened.read(CARD)
    staged |= {name: opened.read(name) for name in PICTURES if name in opened}
    if "shared" in config:
        staged[config["shared"]["cnn"]["file"]] = read_cnn(opened, config["shared"]["cnn"])
    return {**staged, MANIFEST: manifest_of({name: data for name, data in staged.items() if name not in PICTURES})}


def push(
    folder: str | Path,
    repo: str,
    private: bool = False,
    dry_run: bool = False,
    message: str = "",
    note: Callable[[str], None] | None = None,
    card: str = "",
    replace: bool = False,
) -> Published:
    """Make `repo` hold the checkpoint in one commit, or in none if it does already. A repository that holds something else is
    left alone, unless `replace`."""
    files = staged(folder, card)
    with tempfile.TemporaryDirectory() as place:
        pairs = []
        for name, data in files.items():
            (Path(place) / name).write_bytes(data)
            pairs.append((name, str(Path(place) / name)))
        return push_files(
            pairs,
            repo,
            "model",
            OURS,
            private,
            dry_run,
            message or f"Publish {Path(folder).resolve().name}",
            note,
            replace=replace,
        )


def push_to_hub(network: Network, repo: str, private: bool, dry_run: bool, message: str, replace: bool) -> Published:
    with tempfile.TemporaryDirectory() as folder:
        saved = save_pretrained(network, Path(folder) / repo.rpartition("/")[2])
        return push(saved, repo, private, dry_run, message, replace=replace)


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
    replace: bool = False,
) -> Published:
    """`files`: (path in the repository, local path); `prune`: endings of names, or folders with /, that are wholly ours;
    `variables`: public settings of a Space."""
    repo, _ = checked_id(repo, None)
    request: dict[str, Any] = {"files": files, "repo": repo, "kind": kind, "prune": prune, "private": private, "dry_run": dry_run}
    request |= {"message": message, "variables": variables or {}, "replace": replace}
    note = note or (lambda text: None)
    note(f"{repo}: this ends after {SECONDS / 60:g} minutes, or when the Hub has said nothing for {SILENCE:g} seconds")
    watch = Watch(SECONDS, progress=progress_lines(note), note=note, silence=SILENCE)
    try:
        done = ask_hub("upload.upload", request, watch, table=WHEN_PUBLISHING)
    except KeyboardInterrupt:
        note(WHEN_PUBLISHING["cancelled"].format(repo=repo))
        raise
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


def progress_lines(note: Callable[[str], None]) -> Callable[[int, int], None]:
    """A function that prints a line of progress every few seconds."""
    told = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            note(f"sent {done / 1e6:.1f} of {total / 1e6:.1f} MB")

    return progress
