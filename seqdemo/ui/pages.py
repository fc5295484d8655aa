"""The five pages: one component each, and the events behind it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import gradio as gr

from seqdemo.ui.answers import Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.component import packed_value, page_component

TASK_PAGES = (
    ("translate", "Translate", ""),
    ("transliterate", "Transliterate", "/transliterate"),
    ("caption", "Caption", "/caption"),
    ("complete", "Language model", "/language-model"),
)
MODEL_QUEUE: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 2}
QUIET: dict[str, Any] = {"show_progress": "hidden", "trigger_mode": "multiple", "api_visibility": "private"}
TELL_EVERY = 0.25


def content(catalogue: Catalogue, task: str) -> dict[str, Any]:
    return {"setup": catalogue.setup(task), "answer": catalogue.frozen_answer(task)}


def task_page(answers: Answers, task: str) -> None:
    page = page_component(content(answers.catalogue, task), f"page-{task}")

    def ask(event: gr.EventData) -> dict[str, Any]:
        message = question_of(event)
        return packed_value(answers.answer(message), sequence_of(message))

    def search(event: gr.EventData) -> Iterator[dict[str, Any]]:
        message = question_of(event)
        seq = sequence_of(message)
        for told in in_background(lambda progress, cancel: answers.answer(message, progress, cancel)):
            yield packed_value(told, seq)

    page.ask(ask, None, page, **MODEL_QUEUE, **QUIET)
    long = page.search(search, None, page, **MODEL_QUEUE, **QUIET)
    page.stop(None, None, None, cancels=[long], api_visibility="private")


def models_page(answers: Answers) -> None:
    page = page_component({"setup": answers.catalogue.models_setup()}, "page-models")

    def load(event: gr.EventData) -> Iterator[dict[str, Any]]:
        message = question_of(event)
        seq = sequence_of(message)
        for told in in_background(lambda progress, cancel: answers.load(message, progress, cancel), download_sentence):
            yield packed_value(told, seq)

    long = page.search(load, None, page, concurrency_id="download", concurrency_limit=2, **QUIET)
    page.stop(None, None, None, cancels=[long], api_visibility="private")


def question_of(event: gr.EventData) -> Any:
    return event._data


def sequence_of(message: Any) -> int:
    """The number the page gave its question; the answer carries it back."""
    seq = message.get("seq") if isinstance(message, dict) else 0
    return seq if isinstance(seq, int) and not isinstance(seq, bool) and abs(seq) < 2**53 else 0


def in_background(work: Any, tell: Any = None) -> Iterator[dict[str, Any]]:
    """Progress while `work(progress, cancel)` runs on a thread, then its answer. Closing the iterator cancels it."""
    stopped = threading.Event()
    tell = tell or progress_sentence
    state: dict[str, Any] = {"told": tell()}

    def progress(*facts: Any) -> None:
        state["told"] = tell(*facts)

    def target() -> None:
        state["answer"] = work(progress, stopped.is_set)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        next_word = time.monotonic() + TELL_EVERY
        while thread.is_alive():
            thread.join(0.02)
            if time.monotonic() > next_word and thread.is_alive():
                next_word += TELL_EVERY
                yield {**state["told"], "at": time.monotonic()}
        yield state["answer"]
    finally:
        stopped.set()
        thread.join(1.0)


def progress_sentence(*facts: Any) -> dict[str, Any]:
    """Of a search: prefixes followed so far, the best score found, and the bound nothing can exceed."""
    if len(facts) < 3:
        return {"progress": "Searching…"}
    best = f"; best so far {facts[1]:.3f}, nothing above {facts[2]:.3f}" if math.isfinite(facts[1]) else ""
    return {"progress": f"Searching: {int(facts[0]):,} prefixes followed{best}…"}


def download_sentence(*facts: Any) -> dict[str, Any]:
    if len(facts) < 2 or not facts[1]:
        return {"progress": "Asking the Hub…"}
    done, total = facts[0], facts[1]
    return {"progress": f"{done / 2**20:.1f} of {total / 2**20:.1f} MB…", "share": min(1.0, done / total)}
