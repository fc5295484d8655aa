"""The one component every page is made of: a constant template, and scripts that build the page from data in a JSON string.

It is a plain gr.HTML rather than a subclass, because Gradio writes a stub file beside every subclass it meets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr
from gradio.context import Context

from seqdemo.ui import assets


def packed_value(content: dict[str, Any], seq: int = 0) -> dict[str, Any]:
    """ASCII JSON in a string: Gradio does not look into it, and every text survives."""
    return {"seq": seq, "body": json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))}


def queue_health() -> Callable[..., str]:
    """What a page asks when an answer is late: whether the app's queue is full ("full") or not ("here")."""
    app = Context.root_block

    def health(_: object = None) -> str:
        queue = app._queue if app else None
        return "full" if queue and queue.max_size is not None and len(queue) >= queue.max_size else "here"

    return health


def page_component(content: dict[str, Any], name: str, functions: Sequence[Callable[..., Any]] = ()) -> gr.HTML:
    """Events: `ask` (questions), on the Models page `compare`, and `probe` (questions of hands). `functions` are those that the
    page may call outside the queue, among them the one that stops a question."""
    return gr.HTML(
        value=packed_value(content),
        html_template='<div class="s-root"></div>',
        js_on_load=assets.ON_LOAD,
        server_functions=[assets.page_files, assets.later_file, queue_health(), *functions],
        apply_default_css=False,
        elem_id=name,
    )
