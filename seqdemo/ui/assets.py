"""Scripts and styles of the pages, joined in a fixed order into one script and one sheet."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

SCRIPTS = (
    "core",
    "text",
    "colour",
    "painter",
    "glossary",
    "tree",
    "finding",
    "alignment",
    "gates",
    "options",
    "share",
    "asker",
    "examples",
    "bench",
    "compare",
    "overlay",
    "curves",
    "panels",
    "workbench",
    "language",
    "models",
    "shell",
)
SHEETS = ("base", "workbench", "figures")

ON_LOAD = """
const send = { short: (m) => trigger("ask", m), long: (m) => trigger("search", m), stop: () => trigger("stop", {}) };
const begin = () => window.seqdemo
  ? window.seqdemo.mount(element, props, (kind, message) => send[kind](message), watch, upload)
  : setTimeout(begin, 10);
begin();
"""


@cache
def script() -> str:
    """All page scripts inside one function; only `window.seqdemo` leaves it."""
    folder = files("seqdemo.ui.js")
    parts = [lean((folder / f"{name}.js").read_text("utf-8")) for name in SCRIPTS]
    return "(() => {\n'use strict';\n" + "\n".join(parts) + "\nwindow.seqdemo = { early, mount };\n})();"


def lean(code: str) -> str:
    """Without indentation, blank lines and whole-line comments: a third less to send. (No string here spans lines.)"""
    lines = (line.strip() for line in code.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


@cache
def sheet() -> str:
    folder = files("seqdemo.ui.css")
    return "\n".join(lean((folder / f"{name}.css").read_text("utf-8")) for name in SHEETS)


def head() -> str:
    """For the page's head: sheet and script, which must not be able to close their own elements."""
    code = script().replace("</script", "<\\/script")
    return f"<style>{sheet()}</style><script>{code}</script>"
