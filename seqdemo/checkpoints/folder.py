"""A checkpoint's folder, read without trusting it: only plain files of bounded size inside the folder, with the hashes of the
manifest. And the place of the shipped checkpoints."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

from seqdemo.errors import InputError, shown

FORMAT = 1
FORMATS = (FORMAT, 2)  # of a config; 2: matrices may be in int8
ON_DISK = ("float16", "int8")  # precisions of the file of weights
MANIFEST, CONFIG, WEIGHTS, METRICS, CARD = "manifest.json", "config.json", "model.safetensors", "metrics.json", "README.md"
PICTURES = ("alignment.png", "by_length.png")  # of the card; nothing that loads reads them
MB = 1024 * 1024
MAX_TOTAL = 200 * MB
MAX_ENTRIES = 1_000
MOST_WHOLE = 2**63  # as large as the page's JSON and every other reader can take
CEILINGS = {MANIFEST: MB // 4, CONFIG: MB // 4, METRICS: MB // 4, CARD: MB}  # parsed, a text of brackets grows thirtyfold
CEILINGS_BY_SUFFIX = {".safetensors": MAX_TOTAL, ".model": 16 * MB, ".json": 16 * MB}
BARE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def shipped_folder() -> Path:
    """The folder of the checkpoints that come with the app: beside the package, or the one that SEQDEMO_CHECKPOINTS names."""
    named = os.environ.get("SEQDEMO_CHECKPOINTS", "")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "checkpoints"


def shared_folder() -> Path:
    """The folder of files that several of them share: the CNN of the captioners."""
    return shipped_folder() / "shared"


def shipped_names() -> list[str]:
    root = shipped_folder()
    return sorted(path.name for path in root.iterdir() if (path / CONFIG).is_file()) if root.is_dir() else []


class Damaged(InputError):
    """A file is missing or differs from the manifest; a fresh copy may help."""


def bare_name(value: Any, where: str) -> str:
    """A file name that cannot lead anywhere else."""
    if not isinstance(value, str) or not BARE_NAME.fullmatch(value):
        raise InputError(f"{where} must be a bare file name (letters, digits, dots, dashes), not {shown(value)}.")
    return value


def ceiling(name: str) -> int:
    return CEILINGS.get(name) or CEILINGS_BY_SUFFIX.get(Path(name).suffix, MB)


def parse_json(data: bytes, name: str) -> Any:
    """Strict JSON: UTF-8, no lone surrogates, no repeated keys, finite numbers, bounded nesting."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InputError(f"{name}: a key stands twice in one object.")
        return found

    def constant(word: str) -> float:
        raise InputError(f"{name}: {word} is not a JSON number.")

    def too_large(word: str) -> float:
        raise InputError(f"{name}: the number {shown(word, 40)} is too large.")

    def fraction(word: str) -> float:
        return number if math.isfinite(number := float(word)) else too_large(word)

    def whole(word: str) -> float:
        return number if len(word) < 20 and abs(number := int(word)) < MOST_WHOLE else too_large(word)

    hooks: dict[str, Any] = {"parse_constant": constant, "parse_float": fraction, "parse_int": whole}
    try:
        value = json.loads(data.decode(), object_pairs_hook=unique, **hooks)
        if b"\\u" in data:  # only this escape can bring half of a character into a text
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise InputError(f"{name}: a text in it holds half of a character (a lone surrogate).") from None
    except RecursionError:
        raise InputError(f"{name}: nested too deeply.") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{name} is not JSON text: {error}.") from None


def pretty_json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def digest(data: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def no_manifest(path: Path) -> Damaged:
    return Damaged(f"{path.resolve().name or path} is not a checkpoint: {MANIFEST} is missing.")


class Folder:
    """The plain files at the top of a folder. Links may lead to files within `home` (by default the folder itself; the Hub's
    cache links to the blobs beside its snapshots). Folders inside are never entered."""

    def __init__(self, path: Path, home: Path | None = None) -> None:
        if not path.is_dir():
            raise InputError(f"There is no folder {str(path)!r}.")
        self.path = path.resolve()
        self.home = (home or path).resolve()
        self.paths: dict[str, Path] = {}
        self.sizes: dict[str, int] = {}
        with os.scandir(self.path) as entries:
            for number, entry in enumerate(entries):
                if number >= MAX_ENTRIES:
                    raise InputError(f"{self.path.name}: more than {MAX_ENTRIES:,} files; that is not a checkpoint.")
                self._enter(entry)
        if sum(self.sizes.values()) > MAX_TOTAL:
            raise InputError(f"{self.path.name}: its files exceed {MAX_TOTAL // MB} MB together; it is not read.")
        self.manifest: dict[str, Any] = {}

    def _enter(self, entry: os.DirEntry[str]) -> None:
        path = Path(entry.path)
        if entry.is_symlink():
            try:
                path = path.resolve()
            except (RuntimeError, OSError):
                raise InputError(f"{entry.name}: a link that leads back to itself.") from None
            if self.home not in path.parents:
                raise InputError(f"{entry.name}: a link that leaves the folder is not followed.")
            if not path.exists():
                raise Damaged(f"{entry.name}: a link to a file that is gone.")
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode):
            return
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{entry.name}: not a plain file (a pipe, socket or device) and not read.")
        self.paths[entry.name], self.sizes[entry.name] = path, found.st_size

    def __contains__(self, name: str) -> bool:
        return name in self.paths

    def read(self, name: str) -> bytes:
        """All bytes of a plain file in the folder, if it is not too large."""
        if name not in self.paths:
            raise Damaged(f"{name} is missing.")
        try:
            return read_plain(self.paths[name], ceiling(name), name)
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {error.strerror}.") from None

    def open_manifest(self) -> None:
        if MANIFEST not in self:
            raise no_manifest(self.path)
        self.manifest = parse_manifest(self.read(MANIFEST))

    def checked(self, name: str) -> bytes:
        """The bytes of a file, after a check against the size and hash in the manifest."""
        expected = self.manifest.get(name)
        if expected is None:
            raise InputError(f"{name} is not named in {MANIFEST}; save or publish the checkpoint again.")
        data = self.read(name)
        if len(data) != expected["size"]:
            raise Damaged(f"{name} has {len(data):,} bytes where {MANIFEST} says {expected['size']:,}: cut short or replaced.")
        if hashlib.sha256(data).hexdigest() != expected["sha256"]:
            raise Damaged(f"{name} differs from its sha256 in {MANIFEST}: damaged or changed.")
        return data


def read_plain(path: Path, most: int, name: str = "") -> bytes:
    """All bytes of a plain file of bounded size, opened so that nothing can make the reader wait."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        found, name = os.fstat(file.fileno()), name or path.name
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{name}: not a plain file and not read.")
        if found.st_size > most:
            raise InputError(f"{name}: {found.st_size:,} bytes, more than the {most:,} such a file may have.")
        return file.read(found.st_size)


def parse_manifest(data: bytes) -> dict[str, Any]:
    try:
        value = parse_json(data, MANIFEST)
    except InputError as error:
        raise Damaged(str(error)) from None
    check_format(value, MANIFEST)
    files = value.get("files")
    if not isinstance(files, dict):
        raise InputError(f'{MANIFEST}: "files" must be an object.')
    for name, entry in files.items():
        bare_name(name, f"{MANIFEST}: a file's name")
        if not isinstance(entry, dict) or set(entry) != {"sha256", "size"}:
            raise InputError(f'{MANIFEST}: {name} must have exactly "sha256" and "size".')
        if not isinstance(entry["sha256"], str) or not re.fullmatch("[0-9a-f]{64}", entry["sha256"]):
            raise InputError(f"{MANIFEST}: the sha256 of {name} must be 64 hexadecimal digits.")
        if type(entry["size"]) is not int or entry["size"] < 0:
            raise InputError(f"{MANIFEST}: the size of {name} must be a whole number.")
    return files


def check_format(value: Any, name: str, known: tuple[int, ...] = (FORMAT,)) -> None:
    if not isinstance(value, dict):
        raise InputError(f"{name} must hold a JSON object.")
    if type(value.get("format")) is not int or value["format"] not in known:
        raise InputError(
            f"{name}: format {shown(value.get('format'))} is not known here, only {' and '.join(map(str, known))}; a newer "
            "seqdemo may read it."
        )


def manifest_of(files: dict[str, bytes]) -> bytes:
    """The manifest of these files, without itself and hidden files."""
    names = sorted(name for name in files if name != MANIFEST)
    return pretty_json({"format": FORMAT, "files": {name: digest(files[name]) for name in names}})


def belongs(name: str) -> bool:
    """Whether a file belongs to a checkpoint, judged by its name."""
    return BARE_NAME.fullmatch(name) is not None and (name == CARD or Path(name).suffix in CEILINGS_BY_SUFFIX)


def write_manifest(folder: str | Path) -> Path:
    """Record the sha256 and size of a checkpoint's files. Run it after an intended change."""
    opened = Folder(Path(folder))
    path = opened.path / MANIFEST
    replace_file(path, manifest_of({name: opened.read(name) for name in opened.paths if name != MANIFEST and belongs(name)}))
    return path


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: a reader sees the old bytes or the new ones, never a mixture."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
