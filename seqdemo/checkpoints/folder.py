"""A checkpoint's folder, read without trusting it: plain files of bounded size, nothing outside, hashes as the manifest says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from seqdemo.errors import InputError, shown

FORMAT = 1
MANIFEST, CONFIG, WEIGHTS, METRICS, CARD = "manifest.json", "config.json", "model.safetensors", "metrics.json", "README.md"
MB = 1024 * 1024
MAX_TOTAL = 200 * MB
MAX_ENTRIES = 1_000
CEILINGS = {MANIFEST: MB // 4, CONFIG: MB // 4, METRICS: MB // 4, CARD: MB}  # parsed, a text of brackets grows thirtyfold
CEILINGS_BY_SUFFIX = {".safetensors": MAX_TOTAL, ".model": 16 * MB, ".json": 16 * MB}
BARE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Damaged(InputError):
    """A file is missing or is not the one the manifest names; a fresh copy may help."""


def bare_name(value: Any, where: str) -> str:
    """A file name that cannot lead anywhere else."""
    if not isinstance(value, str) or not BARE_NAME.fullmatch(value):
        raise InputError(f"{where} must be a bare file name (letters, digits, dots, dashes), not {shown(value)}.")
    return value


def ceiling(name: str) -> int:
    return CEILINGS.get(name) or CEILINGS_BY_SUFFIX.get(Path(name).suffix, MB)


def parse_json(data: bytes, name: str) -> Any:
    """Strict JSON: no key twice, no NaN, no endless nesting."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InputError(f"{name}: a key stands twice in one object.")
        return found

    def constant(word: str) -> float:
        raise InputError(f"{name}: {word} is not a JSON number.")

    try:
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=constant)
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
                raise InputError(f"{entry.name}: a link that leads in a circle.") from None
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
        """All bytes of a plain file of bounded size, opened so that nothing can make the reader wait."""
        if name not in self.paths:
            raise Damaged(f"{name} is missing.")
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(self.paths[name], flags), "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise InputError(f"{name}: not a plain file and not read.")
                if found.st_size > ceiling(name):
                    raise InputError(f"{name}: {found.st_size:,} bytes, more than the {ceiling(name):,} such a file may have.")
                return file.read(found.st_size)
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {error.strerror}.") from None

    def open_manifest(self) -> None:
        self.manifest = parse_manifest(self.read(MANIFEST))

    def checked(self, name: str) -> bytes:
        """The bytes of a file the manifest names, equal to what it says of them."""
        expected = self.manifest.get(name)
        if expected is None:
            raise InputError(f"{name} is not named in {MANIFEST}; save or publish the checkpoint again.")
        data = self.read(name)
        if len(data) != expected["size"]:
            raise Damaged(f"{name} has {len(data):,} bytes where {MANIFEST} says {expected['size']:,}: cut short or replaced.")
        if hashlib.sha256(data).hexdigest() != expected["sha256"]:
            raise Damaged(f"{name} differs from its sha256 in {MANIFEST}: damaged or changed.")
        return data


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


def check_format(value: Any, name: str) -> None:
    if not isinstance(value, dict):
        raise InputError(f"{name} must hold a JSON object.")
    if type(value.get("format")) is not int or value["format"] != FORMAT:
        raise InputError(
            f"{name}: format {shown(value.get('format'))} is not known here, only {FORMAT}; a newer seqdemo may read it."
        )


def manifest_of(files: dict[str, bytes]) -> bytes:
    """The manifest of these files, itself and hidden files left out."""
    names = sorted(name for name in files if name != MANIFEST)
    return pretty_json({"format": FORMAT, "files": {name: digest(files[name]) for name in names}})


def belongs(name: str) -> bool:
    """Whether it is a file of the kinds that a checkpoint consists of, not something that lies beside them."""
    return BARE_NAME.fullmatch(name) is not None and (name == CARD or Path(name).suffix in CEILINGS_BY_SUFFIX)


def write_manifest(folder: str | Path) -> Path:
    """Record the sha256 and size of a checkpoint's files; run it after an intended change of one."""
    opened = Folder(Path(folder))
    path = opened.path / MANIFEST
    replace_file(path, manifest_of({name: opened.read(name) for name in opened.paths if name != MANIFEST and belongs(name)}))
    return path


def replace_file(path: Path, data: bytes) -> None:
    """Write so that a reader sees the old bytes or the new ones, never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
