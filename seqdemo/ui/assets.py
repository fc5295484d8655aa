"""Scripts and styles of the pages: modules joined into one script, sheets into one sheet. Both are served compressed, under
names with a hash of their content, so that browsers can cache them forever."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import brotli  # comes with Gradio

from seqdemo.figures.modules import joined, joined_later, lean, sheets

HERE = Path(__file__).parent
ENTRY = HERE / "js" / "shell.js"
LATER = HERE / "js" / "hands.js"  # scripts that a page loads on demand
SHEETS = ("base", "workbench", "figures")
FOLDER = "seqdemo-assets"

# Where the document comes through this server alone, it loads the scripts by their tags (early.py). Mounted in another app,
# embedded in another page or rendered by Gradio's front server it has no tags: the component then fetches script and sheet.
ON_LOAD = """
const send = {
  ask: (m) => trigger("ask", m),
  compare: (m) => trigger("compare", m),
  probe: (m) => trigger("probe", m),
};
const begin = () => window.seqdemo.mount(element, props, (kind, message) => send[kind](message), watch, upload, server);
const add = (tag, text) => {
  const node = document.createElement(tag);
  node.textContent = text;
  document.head.append(node);
};
const fetched = async () => {
  const { script, sheet, result } = await server.page_files(JSON.parse(props.value.body).frozen || "");
  if (window.seqdemo) return;
  add("style", sheet);
  if (result) add("script", result);
  add("script", script);
};
const coming = () => document.querySelector("script[src*='seqdemo-assets/']") && document.readyState === "loading";
const load = async () => {
  while (!window.seqdemo && coming()) await new Promise((done) => setTimeout(done, 10));
  if (!window.seqdemo) await fetched();
  begin();
};
if (window.seqdemo) begin();
else load();
"""


def page_files(result: object = "") -> dict[str, str]:
    """What Gradio lets the component call: script, sheet, and what the page starts with under the name `result`."""
    kept = RESULTS.get(result) if isinstance(result, str) else None
    return {"script": script(), "sheet": sheet(), "result": kept.body.decode() if kept else ""}


class Asset(NamedTuple):
    """A file whose content never changes."""

    name: str
    kind: str
    body: bytes


def asset(stem: str, suffix: str, kind: str, text: str) -> Asset:
    body = text.encode()
    return Asset(f"{stem}-{hashlib.sha256(body).hexdigest()[:16]}.{suffix}", kind, body)


@cache
def packed(asset: Asset, coding: str) -> bytes:
    """As it is sent: `br` to browsers that take Brotli, as all do over https and from this machine; else `gzip`."""
    return brotli.compress(asset.body, quality=10) if coding == "br" else gzip.compress(asset.body, 9, mtime=0)


@cache
def script() -> str:
    """All page scripts inside one function; only `window.seqdemo` leaves it, with what the later script takes from them."""
    shared = ", ".join(joined_later(LATER, ENTRY)[1])
    left = f"{{ early, mount, later, laterName: {json.dumps(later().name)}, shared: {{ {shared} }} }}"
    return "(() => {\n'use strict';\n" + lean(joined(ENTRY)) + f"\nwindow.seqdemo = {left};\n}})();"


@cache
def later() -> Asset:
    """The script of what a person may ask for, with names of the first one."""
    code, shared = joined_later(LATER, ENTRY)
    start = f"(() => {{\n'use strict';\nconst {{ {', '.join(shared)} }} = window.seqdemo.shared;\n"
    whole = start + lean(code) + "\nwindow.seqdemo.laterModule = { handsOf };\n})();"
    return asset("later", "js", "text/javascript; charset=utf-8", whole)


def later_file(_: object = None) -> str:
    """What Gradio lets the component call where the document has no scripts of its own."""
    return later().body.decode()


@cache
def sheet() -> str:
    own = ((HERE / "css" / f"{name}.css").read_text("utf-8") for name in SHEETS)
    return lean("\n".join([sheets(ENTRY, LATER), *own]))


@cache
def pages() -> dict[str, Asset]:
    """The files that every page loads, by name."""
    files = (
        asset("pages", "js", "text/javascript; charset=utf-8", script()),
        asset("pages", "css", "text/css; charset=utf-8", sheet()),
    )
    return {file.name: file for file in files}


RESULTS: dict[
    str, Asset
] = {}  # what the pages start with, and the cards' pictures; a name says what is in it, so none is ever replaced
RESULT = re.compile(r"result-[a-z]+-[0-9a-f]{16}[.]js")


def keep_result(task: str, start: dict[str, Any]) -> str:
    """Keep a page's initial data (its worked result and the thumbnails of its examples) and return the name under which they are
    served."""
    text = json.dumps(start, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    name = asset(f"result-{task}", "js", "", text).name
    code = f"(window.seqdemoFrozen = window.seqdemoFrozen || {{}})[{json.dumps(name)}] = {text};"
    RESULTS[name] = asset("", "js", "text/javascript; charset=utf-8", code)._replace(name=name)
    return name


def keep_picture(path: Path) -> str:
    """The address under which a picture is served."""
    body = path.read_bytes()
    name = f"picture-{hashlib.sha256(body).hexdigest()[:16]}{path.suffix}"
    RESULTS[name] = Asset(name, f"image/{path.suffix[1:].replace('jpg', 'jpeg')}", body)
    return f"{FOLDER}/{name}"


@cache
def preview_picture() -> str:
    """What a link to a page shows where it is shared (made by tools/picture.py)."""
    return keep_picture(HERE / "preview.jpg")


def served(name: str) -> Asset | None:
    return later() if name == later().name else pages().get(name) or RESULTS.get(name)


def result_tag(document: str) -> str:
    """The tag that loads the worked result of a document."""
    named = RESULT.search(document)
    return f'<script src="{FOLDER}/{named[0]}"></script>' if named and named[0] in RESULTS else ""


def tags(suffix: str) -> str:
    """The tags that load the scripts (js) or the sheets (css). Addresses are relative, so the app works behind any prefix."""
    tag = {"js": '<script src="{0}/{1}"></script>', "css": '<link rel="stylesheet" href="{0}/{1}">'}[suffix]
    return "".join(tag.format(FOLDER, name) for name in pages() if name.endswith(f".{suffix}"))
