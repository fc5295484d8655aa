"""The child process: it takes a stranger's tokenizer apart, downloads and uploads, where a crash, endless work or a hanging
connection can be ended from outside. Run by path. Standard input: one line of JSON, then open until the parent is gone.
Standard output: lines of JSON, the last one {"result": ...} or {"error": [kind, detail]}."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import types
from pathlib import Path
from typing import Any

MEMORY = 256 << 20  # a tokenizer of 65,536 pieces takes a tenth of it
CPU_SECONDS = 5


def bare_packages(package: Path) -> None:
    """seqdemo without its __init__ files: torch stays out, which saves seconds and makes limits on memory count."""
    sys.path[0] = str(package.parent)
    for name, path in (("seqdemo", package), ("seqdemo.checkpoints", package / "checkpoints")):
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module


def limit(**values: int) -> None:
    """Limits by their names in `resource`; where a system has no such limits the parent's time limit remains."""
    with contextlib.suppress(ImportError):
        import resource

        for name, value in values.items():
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, name), (value, value))


def memory_in_use() -> int:
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[0]) * 4096 if pages.exists() else 0


def say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def die_with_the_parent() -> None:
    def watch() -> None:
        while os.read(0, 4096):  # not sys.stdin, whose lock would trouble the end of this process
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def take_apart(request: dict[str, Any]) -> None:
    from seqdemo.checkpoints.pieces import take_apart as work

    limit(RLIMIT_AS=memory_in_use() + MEMORY, RLIMIT_CPU=CPU_SECONDS, RLIMIT_CORE=0)
    work(request["spec"], bytes.fromhex(request["data"]))


def download(request: dict[str, Any]) -> Any:
    from seqdemo.checkpoints.download import download as work

    limit(RLIMIT_FSIZE=request["ceiling"], RLIMIT_CORE=0)
    return work(request, lambda done, total: say(progress=[done, total]))


def look(request: dict[str, Any]) -> Any:
    from seqdemo.checkpoints.download import look as work

    return work(request)


def upload(request: dict[str, Any]) -> Any:
    from seqdemo.checkpoints.upload import upload as work

    return work(request, lambda text: say(note=text))


TASKS = {"take_apart": take_apart, "download": download, "look": look, "upload": upload}


def main() -> None:
    bare_packages(Path(__file__).resolve().parents[1])
    request = json.loads(sys.stdin.readline())
    die_with_the_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, so that partial files are removed
    from seqdemo.errors import InputError

    try:
        say(result=TASKS[request["task"]](request))
    except InputError as error:
        say(error=["refused-file", str(error)])
    except Exception as error:
        if request["task"] == "take_apart":
            raise
        from seqdemo.checkpoints.wire import classify

        say(error=list(classify(error)))


if __name__ == "__main__":
    main()
