"""The one component every page is made of: a constant template, and scripts that build the page from data in a JSON string.

It is a plain gr.HTML rather than a subclass, because Gradio writes a stub file beside every subclass it meets.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from seqdemo.ui import assets


def packed_value(content: dict[str, Any], seq: int = 0) -> dict[str, Any]:
    """ASCII JSON in a string: nothing on the way walks into it, and any text survives it."""
    return {"seq": seq, "body": json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))}


def page_component(content: dict[str, Any], name: str) -> gr.HTML:
    """Events: `ask` (answered within a moment), `search` (long, can be stopped), `stop`."""
    return gr.HTML(
        value=packed_value(content),
        html_template='<div class="s-root"></div>',
        js_on_load=assets.ON_LOAD,
        apply_default_css=False,
        elem_id=name,
    )
