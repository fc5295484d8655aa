"""Put checkpoints, and the app itself, on the Hub. Everything can be run again: files that are already there are not sent."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from seqdemo.checkpoints import shipped_folder
from seqdemo.checkpoints.checkpoint import open_folder
from seqdemo.checkpoints.folder import CARD, shipped_names
from seqdemo.errors import InputError
from seqdemo.hub import HubError, Published, push
from seqdemo.hub.places import checked_id, pin, pinned
from seqdemo.hub.publication import push_files
from training.publish import card

ROOT = Path(__file__).resolve().parents[2]
THUMBNAIL = ".docs/playground.png"
SPACE_FILES = ("README.md", "app.py", "requirements.txt", "packages.txt", "LICENSE", THUMBNAIL, ".docs/playground.gif")
SPACE_FOLDERS = ("seqdemo", "checkpoints")
NEVER = ("__pycache__", ".pyc", ".part", ".pyi")
MB = 1024 * 1024
Note = Callable[[str], None]
Send = Callable[[bool], Published]


def publish(
    folder: str | Path,
    repo: str,
    private: bool = False,
    dry_run: bool = False,
    space: str = "",
    note: Note | None = None,
    replace: bool = False,
) -> Published:
    """Publish a checkpoint as a model repository. Its card says how to load it from there, and links to the Space if one is
    named; a folder without a card gets one made from its figures."""
    if space:
        checked_id(space, None)
    opened, _ = open_folder(Path(folder))
    written = opened.read(CARD).decode("utf-8", "replace") if CARD in opened else card.render(opened.path)
    return push(folder, repo, private, dry_run, note=note, card=card.published_as(written, repo, space), replace=replace)


def publish_all(
    owner: str, private: bool = False, dry_run: bool = False, space: str = "", note: Note | None = None, replace: bool = False
) -> list[Published]:
    """Publish every shipped checkpoint."""
    return [publish_shipped(owner, name, private, dry_run, space, note, replace) for name in names_to_publish()]


def names_to_publish() -> list[str]:
    names = shipped_names()
    if not names:
        raise InputError(f"There are no checkpoints in {shipped_folder()}.")
    return names


def publish_shipped(
    owner: str, name: str, private: bool, dry_run: bool, space: str, note: Note | None, replace: bool
) -> Published:
    """Publish a shipped checkpoint as owner/seqdemo-<name>, and record its commit, so that clones without checkpoints can load
    it."""
    done = publish(shipped_folder() / name, f"{owner}/seqdemo-{name}", private, dry_run, space, note, replace)
    if not dry_run:
        pin(owner, name, done.revision)
    return done


def publish_space(
    repo: str,
    private: bool = False,
    dry_run: bool = False,
    owner: str = "",
    root: Path = ROOT,
    note: Note | None = None,
    replace: bool = False,
) -> Published:
    """Publish the app as a Space. With `owner`, the Space holds no checkpoints and loads them from that account."""
    if owner:
        checked_id(f"{owner}/seqdemo", None)
    pairs = {path.relative_to(root).as_posix(): str(path) for path in space_files(root, checkpoints=not owner)}
    variables = {"SEQDEMO_HUB_OWNER": owner} if owner else {}
    prune = [f"{folder}/" for folder in SPACE_FOLDERS]
    with tempfile.TemporaryDirectory() as folder:
        pairs["README.md"] = str(Path(folder) / "README.md")
        Path(pairs["README.md"]).write_text(space_readme((root / "README.md").read_text("utf-8"), repo, owner), "utf-8")
        return push_files([*pairs.items()], repo, "space", prune, private, dry_run, "Publish the app", note, variables, replace)


def space_readme(text: str, repo: str, owner: str) -> str:
    """The README of the Space, with the address of its picture and the account of its models."""
    published = shipped_names() if owner else sorted(pinned(repo.partition("/")[0]))
    models = [f"  - {owner or repo.partition('/')[0]}/seqdemo-{name}" for name in published]
    lines = [
        f"thumbnail: https://huggingface.co/spaces/{repo}/resolve/main/{THUMBNAIL}",
        *(["models:", *models] if models else []),
    ]
    first, rest = text[: len("---\n")], text[len("---\n") :]
    front, _, body = rest.partition("\n---")
    return "\n".join([f"{first}{front}", *lines]) + f"\n---{body}"


def space_files(root: Path, checkpoints: bool = True) -> list[Path]:
    """The files that the Space needs, without hidden files, links and leftovers of tools."""
    check_front_matter(root)
    inside = [path for folder in SPACE_FOLDERS for path in sorted((root / folder).rglob("*"))]
    found = [root / name for name in SPACE_FILES if (root / name).is_file()] + [path for path in inside if belongs(path, root)]
    models = {path.parent for path in found if path.name == "model.safetensors"} | {root / "checkpoints" / "shared"}
    return [path for path in found if checkpoints or path.parent not in models]


def belongs(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    left_behind = any(part in NEVER or part.startswith(".") for part in parts) or path.suffix in NEVER
    return path.is_file() and not path.is_symlink() and not left_behind


def check_front_matter(root: Path) -> None:
    """A Space without these lines does not start."""
    readme = root / "README.md"
    lines = readme.read_text(encoding="utf-8").splitlines() if readme.is_file() else []
    for needed in ("sdk: gradio", "app_file: app.py"):
        if lines[:1] != ["---"] or needed not in lines[: lines.index("---", 1) if "---" in lines[1:] else 0]:
            raise InputError(f"{readme} does not begin with front matter that has the line {needed!r}; a Space needs it.")
    if not (root / "app.py").is_file():
        raise InputError(f"There is no app.py in {root}; publish the Space from a clone of the project.")


DESCRIPTION = """\
Put a checkpoint on the Hub, all shipped ones, or the app itself:

  python -m training publish checkpoints/translator-de-en --repo you/seqdemo-translator-de-en
  python -m training publish --all --owner you --space you/seqdemo
  python -m training publish space --repo you/seqdemo

Log in first with `hf auth login`, or set HF_TOKEN. --dry-run shows what would be sent. If a command broke off, run it again:
what has arrived is not sent twice, and a commit whose answer was lost is recognised."""


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command `publish`; `run(args)` does it."""
    parser = commands.add_parser(
        "publish",
        help="put checkpoints or the app on the Hub",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="?", default="", help="a checkpoint's folder, or the word space")
    parser.add_argument("--repo", default="", help="the repository, user/name; it is created if it does not exist")
    parser.add_argument("--all", action="store_true", help="every shipped checkpoint, as OWNER/seqdemo-<name>")
    parser.add_argument("--owner", default="", help="the account: with --all to publish to, with space to take models from")
    parser.add_argument("--space", default="", metavar="USER/NAME", help="the Space that the link on a model's card opens")
    parser.add_argument("--private", action="store_true", help="a new repository is private; an existing public one is refused")
    parser.add_argument(
        "--replace", action="store_true", help="replace what the repository holds without asking, even if it is something else"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent, and send nothing")
    return parser


def run(args: argparse.Namespace, note: Note = print) -> int:
    for send in chosen(args, note):
        note(str(agreed(send, args.replace)))
    return 0


def agreed(send: Send, replace: bool) -> Published:
    """Publish. If the repository holds something else, ask first; a yes counts for this repository only."""
    try:
        return send(replace)
    except HubError as error:
        if error.kind != "something-else" or not confirmed(str(error)):
            raise
        return send(True)


def confirmed(told: str) -> bool:
    """Whether the user at the terminal agrees; without a terminal there is no question."""
    try:
        return sys.stdin.isatty() and input(f"{told}\nReplace it now? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        return False


def chosen(args: argparse.Namespace, note: Note) -> list[Send]:
    """What to publish, each as a function of whether to replace."""
    if args.all:
        if not args.owner or args.what or args.repo:
            raise InputError("Write: publish --all --owner NAME")
        options = args.private, args.dry_run, args.space, note
        return [partial(publish_shipped, args.owner, name, *options) for name in names_to_publish()]
    if not args.what or not args.repo:
        raise InputError("Write: publish FOLDER --repo user/name, publish space --repo user/name, or publish --all --owner NAME")
    if args.what == "space":
        if args.space:
            raise InputError("--space is for the cards of models; the app itself goes to the Space that --repo names.")
        return [partial(publish_space, args.repo, args.private, args.dry_run, args.owner, ROOT, note)]
    if args.owner:
        raise InputError("--owner goes with --all or space; a folder is published to the repository that --repo names.")
    return [partial(publish, args.what, args.repo, args.private, args.dry_run, args.space, note)]
