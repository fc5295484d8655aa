"""ES modules joined into one script, and their sheets into one sheet: a page loads two files, and nobody needs a build step.

A module imports names by `import { name } from "./file.js";` and exports by writing `export` before a declaration. All modules
share one scope once they are joined, so every top-level name occurs once in the whole project; a test says when one does not.
What a page fetches only when a person asks for it is a module behind `import("./file.js")`, with all that it alone imports.
Data come by `import NAME from "./file.json" with { type: "json" };`. The sheet of `grid.js` is `grid.css` beside it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
NAMES = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
LATER = re.compile(r'import\("\.[^"]+"\)')
DATA = re.compile(r'^import (\w+) from "(\.[^"]+\.json)" with \{ type: "json" \};\n', re.MULTILINE)
COMMENT = re.compile(r"//|\*/|\* |/\*(?!.*\*/\s*\S)")  # a line that holds nothing else; code may follow `/** @type ... */`
LOOK = Path(__file__).parent / "js" / "look.json"
EXPORT = re.compile(r"^export (?=(?:async function|function|class|const|let) )", re.MULTILINE)


def modules(*entries: Path) -> list[Path]:
    """The entries and all they import, each after what it imports, in the order in which a browser evaluates them."""
    found: dict[Path, None] = {}
    opened: set[Path] = set()

    def visit(path: Path) -> None:
        if path in opened:
            return
        opened.add(path)
        for address in IMPORT.findall(path.read_text("utf-8")):
            visit((path.parent / address).resolve())
        found[path] = None

    for entry in entries:
        visit(entry.resolve())
    return list(found)


def joined(*entries: Path) -> str:
    """The code of all modules in one scope, without imports and exports."""
    return "\n".join(map(_code, modules(*entries)))


def joined_later(later: Path, entry: Path) -> tuple[str, list[str]]:
    """The code of what `later` needs beside the modules of `entry`, and the names that it takes from those."""
    there = set(modules(entry))
    own = [path for path in modules(later) if path not in there]
    taken = {
        name.strip()
        for path in own
        for names, address in NAMES.findall(path.read_text("utf-8"))
        for name in names.split(",")
        if (path.parent / address).resolve() in there and name.strip()
    }
    return "\n".join(map(_code, own)), sorted(taken)


def _code(path: Path) -> str:
    def data(found: re.Match[str]) -> str:
        value = json.loads((path.parent / found[2]).read_text("utf-8"))
        return f"const {found[1]} = {json.dumps(value, separators=(',', ':'))};\n"

    code = LATER.sub("window.seqdemo.later()", path.read_text("utf-8"))
    return EXPORT.sub("", IMPORT.sub("", DATA.sub(data, code)))


def sheets(*entries: Path) -> str:
    """The colours of the look, then the sheets of all modules that have one."""
    beside = (path.with_suffix(".css") for path in modules(*entries))
    return "\n".join([variables(), *(sheet.read_text("utf-8") for sheet in beside if sheet.exists())])


def variables() -> str:
    """Every colour of look.json as --s-name, for the light theme and the dark one."""
    rules = []
    for theme, selector in (("light", "body"), ("dark", "body.dark")):
        colours = json.loads(LOOK.read_text("utf-8"))[theme]["colours"]
        named = " ".join(f"--s-{name}: {colour};" for name, colour in colours.items())
        rules.append(f"{selector} {{ color-scheme: {theme}; {named} }}")
    return "\n".join(rules)


def lean(code: str) -> str:
    """Without indentation, blank lines and whole-line comments: a third less to send. (No string here spans lines.)"""
    kept = (line.strip() for line in code.splitlines())
    return "\n".join(line for line in kept if line and not COMMENT.match(line))
