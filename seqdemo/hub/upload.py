"""In the child process: make a repository hold given files, in one commit or none, and verify it. Running it again is always
safe: files that are there are not sent again, and a commit whose reply was lost is recognised.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, hf_hub_download

from seqdemo.checkpoints.folder import CARD, CONFIG, MANIFEST, ceiling, parse_json
from seqdemo.child.limits import limit, limit_memory
from seqdemo.child.parent import Failure
from seqdemo.errors import InputError, shown
from seqdemo.hub.wire import (
    TRIES,
    Deadline,
    Listing,
    attempt,
    by_kind,
    classify,
    listing,
    use_careful_client,
    waited,
    well_formed,
)

CALL_SECONDS = 10.0
COMMIT_SECONDS = 20.0
PATIENCE = 30.0  # seconds for one request, over all tries
UNCERTAIN = ("server", "cut-short", "slow", "conflict", "refused", "no-connection", "garbled", "not-a-hub", "hostile", "unknown")
ALWAYS_THERE = {".gitattributes", CARD}  # what a new repository of the Hub contains
MEMORY = 1 << 30  # beyond what the imports and the files to send use
EVERY = 0.5  # seconds between two messages of progress
Say = Callable[..., None]


class Local:
    """A file to send."""

    def __init__(self, path_in_repo: str, path: str) -> None:
        self.name, self.data = path_in_repo, Path(path).read_bytes()
        self.size = len(self.data)


class Sending:
    """Counts the bytes of all files that have been read for sending, and reports them from time to time. It counts once `begun`
    is set: before that the library reads the files for their hashes."""

    def __init__(self, files: list[Local], say: Say) -> None:
        self.read = dict.fromkeys((file.name for file in files), 0)
        self.total, self.say, self.told = sum(file.size for file in files), say, time.monotonic()
        self.begun = False

    def count(self, name: str, position: int) -> None:
        if self.begun:
            self.read[name] = max(position, self.read[name])
            if time.monotonic() - self.told > EVERY:
                self.told = time.monotonic()
                self.say(progress=[sum(self.read.values()), self.total])


class Counted(io.BytesIO):
    def __init__(self, file: Local, sending: Sending) -> None:
        super().__init__(file.data)
        self.name, self.sending = file.name, sending

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.sending.count(self.name, self.tell())
        return data


class Target:
    """The repository as it is now."""

    def __init__(self, request: dict[str, Any], say: Say) -> None:
        self.request, self.say, self.repo, self.kind = request, say, request["repo"], request["kind"]
        self.deadline = Deadline(request["deadline"])
        self.api = HfApi()
        use_careful_client(CALL_SECONDS)

    def patience(self) -> Deadline:
        return Deadline(min(PATIENCE, self.deadline.remaining()))

    def ask(self, question: Callable[[], Any]) -> Any:
        return attempt(well_formed(question), self.patience())

    def check_account(self) -> None:
        self.say(note="asking the Hub whose token this is")
        if self.ask(lambda: self.api.whoami().get("auth", {}).get("accessToken", {}).get("role")) == "read":
            raise Failure("read-only")

    def info(self) -> Listing | None:
        """What the Hub says about the repository; None if it does not exist."""
        try:
            return listing(self.api, self.request, self.patience(), CALL_SECONDS)
        except Exception as error:
            if classify(error)[0] == "not-found":
                return None
            raise

    def once_shown(self) -> Listing:
        """The same of a repository that must exist; the Hub may need a moment to show a new one."""
        for number in range(1, TRIES + 1):
            if (found := self.info()) is not None:
                return found
            time.sleep(number)
        raise Failure("unseen")

    def create(self, private: bool) -> None:
        self.ask(
            lambda: self.api.create_repo(
                self.repo,
                repo_type=self.kind,
                exist_ok=True,
                private=True if private else None,
                space_sdk="gradio" if self.kind == "space" else None,
            )
        )

    def read(self, name: str, found: Listing) -> bytes:
        """A small file of the repository."""
        if (found.files[name].size or 0) > ceiling(name):
            return b""
        with tempfile.TemporaryDirectory() as folder:
            path = self.ask(
                lambda: hf_hub_download(
                    self.repo, name, repo_type=self.kind, revision=found.commit, cache_dir=folder, etag_timeout=CALL_SECONDS
                )
            )
            return Path(path).read_bytes()


def changes(locals_: list[Local], found: Listing | None, prune: list[str]) -> tuple[list[Local], list[str]]:
    """The files to send, and the files to delete: those that match `prune` (endings, or folders with /) and no longer exist
    here."""
    remote = found.files if found else {}
    sent = [file for file in locals_ if file.name not in remote or not remote[file.name].holds(file.data)]
    kept = {file.name for file in locals_}
    stale = [name for name in remote if name not in kept and _ours(name, prune)]
    return sent, sorted(stale)


def _ours(name: str, prune: list[str]) -> bool:
    return any(name.startswith(rule) if rule.endswith("/") else "/" not in name and name.endswith(rule) for rule in prune)


def something_else(target: Target, found: Listing, locals_: list[Local]) -> str:
    """What the repository holds, if it is neither empty nor an earlier version of what is to be sent."""
    others = sorted(set(found.files) - ALWAYS_THERE)
    if not others:
        return ""
    marks = {MANIFEST, CONFIG} if target.kind == "model" else {"app.py", "seqdemo/__init__.py"}
    if not marks <= set(others):
        return ", ".join(others[:3]) + (f" and {len(others) - 3} more files" if len(others) > 3 else "")
    ours = next((file for file in locals_ if file.name == CONFIG), None)
    if ours is None or found.files[CONFIG].holds(ours.data):
        return ""
    there, here = (_model_name(data) for data in (target.read(CONFIG, found), ours.data))
    return "" if there == here else f"the model {shown(there)}"


def _model_name(config: bytes) -> Any:
    try:
        value = parse_json(config, CONFIG)
    except InputError:
        return None
    return value.get("name") if isinstance(value, dict) else None


@by_kind
def upload(request: dict[str, Any], say: Say) -> dict[str, Any]:
    """`files`: [path in the repository, local path]; with `dry_run` nothing is written anywhere."""
    locals_ = [Local(*pair) for pair in request["files"]]
    limit_memory(MEMORY)
    limit(RLIMIT_FSIZE=ceiling(CONFIG))  # the only file that is downloaded
    target = Target(request, say)
    if not request["dry_run"]:
        target.check_account()
    say(note=f"looking at {target.repo}")
    found = target.info()
    created = found is None
    if created and not request["dry_run"]:
        say(note=f"creating {target.repo}")
        target.create(request["private"])
        found = target.once_shown()
    if found is not None and request["private"] and not found.private:
        raise Failure("public")
    if found is not None and not request["replace"] and (other := something_else(target, found, locals_)):
        raise Failure("something-else", other)

    def difference(now: Listing | None) -> tuple[list[Local], list[str]]:
        return changes(locals_, now, request["prune"])

    sent, stale = difference(found)
    report = {
        "created": created,
        "sent": [file.name for file in sent],
        "removed": stale,
        "bytes": sum(file.size for file in sent),
        "revision": found.commit if found else "",
        "private": bool(found.private if found else request["private"]),
    }
    if found is not None and (sent or stale) and not request["dry_run"]:
        say(note=f"sending {len(sent)} files, {report['bytes']:,} bytes")
        commit(target, found, partial(operations, sent, stale, say), lambda now: difference(now) == ([], []))
        say(note="checking that everything has arrived")
        report["revision"] = verified(target, difference)
    if not request["dry_run"]:
        for variable in request["variables"].items():
            target.ask(partial(target.api.add_space_variable, target.repo, *variable))
    return report


def operations(sent: list[Local], stale: list[str], say: Say) -> list[Any]:
    """The operations of the commit, made anew for every try, because the library continues reading where the last try ended."""
    sending = Sending(sent, say)
    removals = [CommitOperationDelete(name, is_folder=False) for name in stale]
    additions = [CommitOperationAdd(file.name, Counted(file, sending)) for file in sent]
    sending.begun = True
    return [*additions, *removals]


def commit(target: Target, found: Listing, work: Callable[[], list[Any]], is_there: Callable[[Listing], bool]) -> None:
    """Make one commit on top of the commit that was compared. If the answer leaves open whether it was made, look at the
    repository."""
    use_careful_client(COMMIT_SECONDS)
    message = target.request["message"]
    for number in range(1, TRIES + 1):
        try:
            well_formed(target.api.create_commit)(
                target.repo, work(), commit_message=message, repo_type=target.kind, parent_commit=found.commit
            )
            return
        except Exception as error:
            now = target.info() if classify(error)[0] in UNCERTAIN else None
            if now is not None and is_there(now):
                return
            if now is not None and now.commit != found.commit:
                raise Failure("conflict") from None
            if not waited(error, number, target.patience()):
                raise


def verified(target: Target, difference: Callable[[Listing | None], tuple[list[Local], list[str]]]) -> str:
    """The commit, after a check that it holds exactly what was sent."""
    now = target.once_shown()
    sent, stale = difference(now)
    if sent or stale:
        raise Failure("differs", ", ".join([file.name for file in sent] + stale)[:200])
    return now.commit
