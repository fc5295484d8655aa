"""The child process that takes a stranger's tokenizer file apart. Run by path: JSON on standard input, a verdict (a sentence,
or an empty text) as the last line of standard output."""

from __future__ import annotations

import base64
import contextlib
import json
import sys
import types
from pathlib import Path

MEMORY = 1 << 30
SECONDS = 8


def bare_packages(package: Path) -> None:
    """seqdemo without its __init__ files: torch stays out, and the limits count only what the file itself takes."""
    sys.path[0] = str(package.parent)
    for name, path in (("seqdemo", package), ("seqdemo.checkpoints", package / "checkpoints")):
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module


def limit_this_process() -> None:
    try:
        import resource
    except ImportError:  # not on Windows; the parent's time limit remains
        return
    used = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if Path("/proc/self/statm").exists() else 0
    )
    for kind, value in ((resource.RLIMIT_AS, used + MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, value))


def main() -> None:
    bare_packages(Path(__file__).resolve().parents[1])
    from seqdemo.checkpoints.pieces import take_apart
    from seqdemo.errors import InputError

    request = json.load(sys.stdin)
    limit_this_process()
    try:
        take_apart(request["spec"], base64.b64decode(request["data"]))
    except InputError as error:
        print(json.dumps(str(error)))
    else:
        print(json.dumps(""))


if __name__ == "__main__":
    main()
