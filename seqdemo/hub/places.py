"""Where to find the model of a name: in a folder here, or in a repository on the Hub.

revisions.json, written by publishing, lists the commits of an account that replace checkpoints which are missing here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from seqdemo.checkpoints.description import NAME
from seqdemo.checkpoints.folder import CONFIG, check_format, parse_json, pretty_json, replace_file, shipped_folder, shipped_names
from seqdemo.errors import InputError, shown
from seqdemo.hub import cache

PINS = Path(__file__).with_name("revisions.json")
NONE_HERE = "none: set SEQDEMO_CHECKPOINTS to the folder checkpoints of a clone, or say user/name for one on the Hub"
REPO = re.compile(r"(?!.*(\.\.|--))[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}")
REVISION = re.compile(r"(?!.*(\.\.|//|\.lock))[A-Za-z0-9_][A-Za-z0-9._/-]{0,99}")


class Place(NamedTuple):
    """A folder to read. Links may lead anywhere inside `home`; if `trusted`, its tokenizers are parsed in this process."""

    folder: Path
    home: Path | None = None
    name: str = ""
    revision: str = ""
    trusted: bool = False


@dataclass(frozen=True)
class Repository:
    """A repository on the Hub, and how it may be asked for."""

    id: str
    revision: str = "main"
    name: str = ""
    anonymous: bool = False
    refresh: bool = False

    @property
    def cache(self) -> Path:
        return cache.visitors_folder() if self.anonymous else cache.cache_folder()


def names() -> list[str]:
    """Every name that `load` accepts without an owner: the shipped ones, and those of the account SEQDEMO_HUB_OWNER."""
    return sorted({*shipped_names(), *pinned(hub_owner())})


def resolve(name: str | Path, revision: str | None, anonymous: bool = False, refresh: bool = False) -> Place | Repository:
    if not isinstance(name, (str, Path)):
        raise InputError(f"A checkpoint is a name, a folder or user/name, not {shown(name)}.")
    if isinstance(name, str) and "://" in name:
        raise InputError(f"A repository on the Hub is written user/name, without its address: {shown(name)}.")
    if isinstance(name, str) and name.count("/") > 1 and name[0] not in "./~" and not os.path.isdir(name):
        raise InputError(f"There is no folder {shown(name)}, and a repository on the Hub is written user/name.")
    if isinstance(name, Path) or name.startswith((".", "/", "~")) or name.count("/") > 1:
        refuse_revision(name, revision)
        try:
            return Place(Path(name).expanduser())
        except RuntimeError:
            raise InputError(f"There is no folder {shown(name)}: the home folder it begins with is not known.") from None
    if "/" in name:
        return Repository(*checked_id(name, revision), name, anonymous, refresh)
    if NAME.fullmatch(name) and (shipped_folder() / name / CONFIG).is_file():
        refuse_revision(name, revision)
        return Place(shipped_folder() / name, name=name, trusted=True)
    owner = hub_owner()
    if owner and NAME.fullmatch(name):
        return Repository(*checked_id(f"{owner}/seqdemo-{name}", revision or pinned(owner).get(name)), name, anonymous, refresh)
    raise InputError(
        f"There is no checkpoint {shown(name)}; there are {', '.join(names()) or NONE_HERE}. A folder is written ./folder."
    )


def refuse_revision(name: str | Path, revision: str | None) -> None:
    if revision:
        raise InputError(f"{name} is a folder here, which has one version; leave the revision out, or say user/name on the Hub.")


def checked_id(repo: str, revision: str | None) -> tuple[str, str]:
    """Check that these are a repository id and a revision, not a path or an address."""
    repo, revision = repo.strip(), (revision or "").strip() or "main"
    if not REPO.fullmatch(repo):
        raise InputError(f"A repository on the Hub is written user/name, not {repo[:100]!r}.")
    if not REVISION.fullmatch(revision):
        raise InputError(f"A revision is a commit, a branch or a tag, not {revision[:100]!r}.")
    return repo, revision


def hub_owner() -> str:
    return os.environ.get("SEQDEMO_HUB_OWNER", "").strip()


def pinned(owner: str) -> dict[str, str]:
    """name -> commit, for the account that published them; empty for any other."""
    if not owner or not PINS.exists():
        return {}
    value = parse_json(PINS.read_bytes(), PINS.name)
    check_format(value, PINS.name)
    revisions = value.get("revisions")
    if not isinstance(revisions, dict) or not all(map(cache.is_commit, revisions.values())):
        raise InputError(f"{PINS.name}: revisions must map names to commits of 40 hexadecimal digits; publish again.")
    return dict(revisions) if value.get("owner") == owner else {}


def pin(owner: str, name: str, commit: str) -> None:
    revisions = {**pinned(owner), name: commit}
    replace_file(PINS, pretty_json({"format": 1, "owner": owner, "revisions": dict(sorted(revisions.items()))}))
