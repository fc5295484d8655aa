"""Put checkpoints, and the app itself, on the Hub. Everything here may be run again: what is there already is not sent."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from seqdemo.checkpoints import Published, bundled_folder, push
from seqdemo.checkpoints.bundled import bundled_names
from seqdemo.checkpoints.folder import CARD
from seqdemo.checkpoints.pins import pin
from seqdemo.checkpoints.publication import push_files
from seqdemo.checkpoints.store import open_folder
from seqdemo.errors import InputError
from training import card

ROOT = Path(__file__).resolve().parent.parent
SPACE_FILES = ("README.md", "app.py", "requirements.txt", "packages.txt", "LICENSE")
SPACE_FOLDERS = ("seqdemo", "checkpoints")
NEVER = ("__pycache__", ".pyc", ".part", ".pyi")
MB = 1024 * 1024
Note = Callable[[str], None]


def publish(folder: str | Path, repo: str, private: bool = False, dry_run: bool = False, note: Note | None = None) -> Published:
    """One checkpoint as one model repository, with its card, which says how to load it from there; a folder without a card gets
    the one its figures give."""
    opened, _ = open_folder(Path(folder))
    written = opened.read(CARD).decode("utf-8", "replace") if CARD in opened else card.render(opened.path)
    return push(folder, repo, private, dry_run, note=note, card=card.published_as(written, repo))


def publish_all(owner: str, private: bool = False, dry_run: bool = False, note: Note | None = None) -> list[Published]:
    """Every shipped checkpoint as owner/seqdemo-<name>; the commits are pinned, so that the account can stand in for them."""
    names = bundled_names()
    if not names:
        raise InputError(f"There are no checkpoints in {bundled_folder()}.")
    done = []
    for name in names:
        done.append(publish(bundled_folder() / name, f"{owner}/seqdemo-{name}", private, dry_run, note))
        if not dry_run:
            pin(owner, name, done[-1].revision)
    return done


def publish_space(
    repo: str, private: bool = False, dry_run: bool = False, owner: str = "", root: Path = ROOT, note: Note | None = None
) -> Published:
    """The app as a Space. With `owner` the checkpoints stay out, and that account's repositories stand in for them."""
    files = space_files(root, checkpoints=not owner)
    pairs = [(str(path.relative_to(root).as_posix()), str(path)) for path in files]
    variables = {"SEQDEMO_HUB_OWNER": owner} if owner else {}
    prune = [f"{folder}/" for folder in SPACE_FOLDERS]
    return push_files(pairs, repo, "space", prune, private, dry_run, "Publish the app", note, variables)


def space_files(root: Path, checkpoints: bool = True) -> list[Path]:
    """What the Space needs and nothing else: no hidden file, no link, nothing that tools left behind."""
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
  python -m training publish --all --owner you
  python -m training publish space --repo you/seqdemo

Log in first with `hf auth login`, or set HF_TOKEN. Look with --dry-run before you send. A command that broke off is run
again: what has arrived is not sent twice, and a commit whose answer was lost is recognised."""


def add_arguments(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command `publish`; `run(args)` does it."""
    parser = commands.add_parser(
        "publish",
        help="put checkpoints or the app on the Hub",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="?", default="", help="a checkpoint's folder, or the word space")
    parser.add_argument("--repo", default="", help="the repository, user/name; it is made where it does not exist")
    parser.add_argument("--all", action="store_true", help="every shipped checkpoint, as OWNER/seqdemo-<name>")
    parser.add_argument("--owner", default="", help="the account: with --all to publish to, with space to take models from")
    parser.add_argument("--private", action="store_true", help="a new repository is private; an existing public one is refused")
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent, and send nothing")
    return parser


def run(args: argparse.Namespace, note: Note = print) -> int:
    for published in chosen(args, note):
        note(str(published))
    return 0


def chosen(args: argparse.Namespace, note: Note) -> list[Published]:
    if args.all:
        if not args.owner or args.what or args.repo:
            raise InputError("Write: publish --all --owner NAME")
        return publish_all(args.owner, args.private, args.dry_run, note)
    if not args.what or not args.repo:
        raise InputError("Write: publish FOLDER --repo user/name, publish space --repo user/name, or publish --all --owner NAME")
    if args.what == "space":
        return [publish_space(args.repo, args.private, args.dry_run, args.owner, note=note)]
    return [publish(args.what, args.repo, args.private, args.dry_run, note)]
