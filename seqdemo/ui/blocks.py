"""The drawings as components for anybody's Blocks: `blocks.drawing(figures.tree(...))`. Their events tell what the user did.

They are plain gr.HTML rather than a subclass, because Gradio writes a stub file beside every subclass it meets.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from seqdemo.errors import InputError
from seqdemo.figures.drawing import Drawing, files_of
from seqdemo.ui.component import packed_value

# What a person can do with each kind of drawing. An event's data stand in its `detail`.
EVENTS = {
    "alignment": ("row", "pull", "brush", "pick", "head"),
    "bars": (),
    "curves": (),
    "gates": ("brush", "part", "order", "step"),
    "letters": ("by", "unit", "layer"),
    "photograph": ("word", "veil", "paint", "painting"),
    "tree": ("select", "pruned", "until", "opened"),
    "wordmenu": ("take", "never", "must", "other", "type"),
}
# The template is constant and the data are JSON in a string: nothing in a text can become markup or a template of its own.
ON_LOAD = """
const names = [NAMES];
const holder = element.querySelector(".s-drawing");
let drawing = null;
const draw = () => {
  if (!props.value || !props.value.body) return;
  const { payload, view } = JSON.parse(props.value.body);
  const tell = (name, detail) => names.includes(name) && trigger(name, { detail });
  if (drawing) drawing.update(payload, view);
  else drawing = window.seqdemoDrawings["KIND"](holder, payload, view, tell);
};
const add = (tag, id, text) => {
  if (document.getElementById(id)) return;
  const node = document.createElement(tag);
  node.id = id;
  node.textContent = text;
  document.head.append(node);
};
const load = async () => {
  if (!window.seqdemoDrawings || !window.seqdemoDrawings["KIND"]) {
    const { script, sheet } = await server.drawing_files("KIND");
    add("style", "seqdemo-KIND-sheet", sheet);
    add("script", "seqdemo-KIND-script", script);
  }
  watch("value", draw);
  draw();
};
load();
"""


def drawing_files(kind: str) -> dict[str, str]:
    """What Gradio lets the component call: script and sheet of a kind of drawing."""
    if kind not in EVENTS:
        raise InputError(f"There is no drawing of the kind {kind!r}.")
    script, sheet = files_of(kind)
    return {"script": script, "sheet": sheet}


def value_of(drawing: Drawing, **view: Any) -> dict[str, Any]:
    """The value to return from an event's function to show another drawing of the same kind. `view` overrides its view."""
    return packed_value({"payload": drawing.payload, "view": {**drawing.view, **view}})


def drawing(drawing: Drawing, view: dict[str, Any] | None = None, **more: Any) -> gr.HTML:
    """A drawing in a Blocks. It has an event for everything in EVENTS[drawing.kind], such as `.select(...)` of a tree."""
    quoted = ", ".join(f'"{name}"' for name in EVENTS[drawing.kind])
    return gr.HTML(
        value=value_of(drawing, **(view or {})),
        html_template='<div class="s-drawing"></div>',
        js_on_load=ON_LOAD.replace("NAMES", quoted).replace("KIND", drawing.kind),
        server_functions=[drawing_files],
        apply_default_css=False,
        **more,
    )
