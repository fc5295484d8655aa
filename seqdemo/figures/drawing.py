"""A drawing of the pages outside of them: in a notebook, or as a file. The same script draws it, from the same payload."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from seqdemo.figures.modules import LOOK, joined, lean, sheets

SCRIPTS = LOOK.parent
# Nothing is fetched, and the payload can neither load nor run anything.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
START = """
const given = JSON.parse(document.getElementById("given").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => document.body.classList.toggle("dark", dark.matches);
dark.addEventListener("change", theme);
theme();
window.seqdemoDrawings[KIND](document.querySelector("main"), given[0], given[1]);
"""


@dataclass(frozen=True)
class Drawing:
    """The drawing that the module `kind` makes of `payload`, as `view` says. A notebook shows it; `write_html` saves it."""

    kind: str
    payload: dict[str, Any]
    view: dict[str, Any] = field(default_factory=dict)
    height: int = 480  # pixels in a notebook

    def document(self) -> str:
        """One HTML document that needs no other file and no network."""
        script, sheet = files_of(self.kind)
        script = script.replace("</script", "<\\/script") + START.replace("KIND", json.dumps(self.kind))
        title = html.escape(str(self.payload.get("facts", {}).get("title", "seqdemo")))
        return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{title}</title><style>{sheet}</style></head>
<body class="s-alone"><main class="s-drawing"></main>
<script type="application/json" id="given">{safe_json([self.payload, self.view])}</script>
<script>{script}</script>
</body></html>
"""

    def write_html(self, path: str | Path) -> None:
        Path(path).write_text(self.document(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """The drawing in a sandboxed frame, separated from the notebook around it."""
        style = f"width:100%;height:{self.height}px;border:0;resize:vertical;overflow:auto"
        inner = html.escape(self.document(), quote=True)
        return f'<iframe sandbox="allow-scripts allow-downloads" style="{style}" srcdoc="{inner}"></iframe>'


def safe_json(value: Any) -> str:
    """JSON that can stand in a script element: no tag can begin in it."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def mounting(kind: str) -> str:
    """The name of the function that puts a drawing of this kind into an element."""
    return f"mount{kind.capitalize()}"


@cache
def files_of(kind: str) -> tuple[str, str]:
    """Script and sheet of one kind of drawing. The script leaves its function in `window.seqdemoDrawings`, by the kind."""
    module = SCRIPTS / f"{kind}.js"
    leave = f"(window.seqdemoDrawings = window.seqdemoDrawings || {{}})[{json.dumps(kind)}] = {mounting(kind)};"
    return "(() => {\n'use strict';\n" + lean(joined(module)) + leave + "\n})();", lean(sheets(module))
