"""The child process: one piece of work, where a crash, endless work or a hanging connection can be ended from outside.

Run by path. Standard input: one line of JSON that names a function and holds its request, then open until the parent is gone.
Standard output: lines of JSON, of which the last is {"result": ...} or {"error": [kind, detail]}. The function is called with
the request and with `say`, which sends a line to the parent: say(progress=[done, total]) or say(note="...").
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any


def say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def die_with_the_parent() -> None:
    def watch() -> None:
        while os.read(0, 4096):  # not sys.stdin, whose lock would trouble the end of this process
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    request = json.loads(sys.stdin.readline())
    die_with_the_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # raises, so that partial files are removed
    from seqdemo.child.parent import REFUSED, Failure
    from seqdemo.errors import InputError

    module, _, name = request["work"].rpartition(".")
    try:
        say(result=getattr(import_module(module), name)(request, say))
    except InputError as error:
        say(error=[REFUSED, str(error)])
    except Failure as failure:
        say(error=[failure.kind, failure.detail])


if __name__ == "__main__":
    main()
