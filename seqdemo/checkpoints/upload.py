"""In the child: make a repository hold given files, in one commit or none, and see that it does.

Running it again is always safe: what is there already is not sent, and a commit whose reply was lost is recognised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.hf_api import ModelInfo, SpaceInfo

from seqdemo.checkpoints.client import Failure
from seqdemo.checkpoints.wire import TRIES, Deadline, attempt, classify, holds, use_careful_client, waited

CALL_SECONDS = 20.0
UNCERTAIN = ("server", "cut-short", "slow", "conflict", "refused", "no-connection", "unknown")
Note = Callable[[str], None]
Info = ModelInfo | SpaceInfo


class Local:
    """A file to send."""

    def __init__(self, path_in_repo: str, path: str) -> None:
        self.name, self.path, self.data = path_in_repo, path, Path(path).read_bytes()
        self.size = len(self.data)


class Target:
    """The repository as it is now."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.repo, self.kind = request["repo"], request["kind"]
        self.deadline = Deadline(request["deadline"])
        use_careful_client(CALL_SECONDS)
        self.api = HfApi()

    def check_account(self) -> None:
        account = attempt(lambda: self.api.whoami(), self.deadline)
        if account.get("auth", {}).get("accessToken", {}).get("role") == "read":
            raise Failure("read-only")

    def info(self) -> Info | None:
        """None where there is no such repository."""
        try:
            return attempt(
                lambda: self.api.repo_info(self.repo, repo_type=self.kind, files_metadata=True, timeout=CALL_SECONDS),  # type: ignore[return-value]
                self.deadline,
            )
        except Exception as error:
            if classify(error)[0] == "not-found":
                return None
            raise

    def create(self, private: bool) -> None:
        attempt(
            lambda: self.api.create_repo(
                self.repo,
                repo_type=self.kind,
                exist_ok=True,
                private=True if private else None,
                space_sdk="gradio" if self.kind == "space" else None,
            ),
            self.deadline,
        )


def changes(locals_: list[Local], info: Info | None, prune: list[str]) -> tuple[list[Local], list[str]]:
    """Files to send, and files there that `prune` (endings, or folders with /) says are ours and that are here no more."""
    remote = {file.rfilename: file for file in (info.siblings or () if info else ())}
    sent = [file for file in locals_ if file.name not in remote or not holds(remote[file.name], file.data)]
    kept = {file.name for file in locals_}
    stale = [name for name in remote if name not in kept and _ours(name, prune)]
    return sent, sorted(stale)


def _ours(name: str, prune: list[str]) -> bool:
    return any(name.startswith(rule) if rule.endswith("/") else "/" not in name and name.endswith(rule) for rule in prune)


def upload(request: dict[str, Any], note: Note) -> dict[str, Any]:
    """`files`: [path in the repository, local path]; with `dry_run` nothing is written anywhere."""
    locals_ = [Local(*pair) for pair in request["files"]]
    target = Target(request)
    if not request["dry_run"]:
        target.check_account()
    info = target.info()
    created = info is None
    if created and not request["dry_run"]:
        note(f"creating {target.repo}")
        target.create(request["private"])
        info = target.info()
    if info is not None and request["private"] and not info.private:
        raise Failure("public")

    def difference(now: Info | None) -> tuple[list[Local], list[str]]:
        return changes(locals_, now, request["prune"])

    sent, stale = difference(info)
    report = {
        "created": created,
        "sent": [file.name for file in sent],
        "removed": stale,
        "bytes": sum(file.size for file in sent),
        "revision": info.sha if info else "",
        "private": bool(info.private if info else request["private"]),
    }
    if info is not None and (sent or stale) and not request["dry_run"]:
        note(f"sending {len(sent)} files, {report['bytes']:,} bytes")
        commit(target, info, operations(sent, stale), request["message"], lambda now: difference(now) == ([], []))
        report["revision"] = verified(target, difference)
    if not request["dry_run"]:
        for variable in request["variables"].items():
            attempt(partial(target.api.add_space_variable, target.repo, *variable), target.deadline)
    return report


def operations(sent: list[Local], stale: list[str]) -> list[Any]:
    removals = [CommitOperationDelete(name, is_folder=False) for name in stale]
    return [*(CommitOperationAdd(file.name, file.path) for file in sent), *removals]


def commit(target: Target, info: Info, work: list[Any], message: str, is_there: Callable[[Info], bool]) -> None:
    """One commit on top of exactly the commit that was compared. When the answer does not say whether it was made, look."""
    for number in range(1, TRIES + 1):
        try:
            target.api.create_commit(target.repo, work, commit_message=message, repo_type=target.kind, parent_commit=info.sha)
            return
        except Exception as error:
            now = target.info() if classify(error)[0] in UNCERTAIN else None
            if now is not None and is_there(now):
                return
            if now is not None and now.sha != info.sha:
                raise Failure("conflict") from None
            if not waited(error, number, target.deadline):
                raise


def verified(target: Target, difference: Callable[[Info | None], tuple[list[Local], list[str]]]) -> str:
    """The commit that holds exactly what was sent."""
    now = target.info()
    if now is None:
        raise Failure("not-found")
    sent, stale = difference(now)
    if sent or stale:
        raise Failure("differs", ", ".join([file.name for file in sent] + stale)[:200])
    return str(now.sha)
