"""The five pages: one component each, and the events behind it."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gradio as gr
from gradio.components.plot import PlotData

from seqdemo.errors import InputError
from seqdemo.numerals import signed
from seqdemo.ui import assets
from seqdemo.ui.answers import Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.comparison import Comparison
from seqdemo.ui.component import packed_value, page_component
from seqdemo.ui.hands import Hands
from seqdemo.ui.stops import Stops

TASK_PAGES = (
    ("translate", "Translate", ""),
    ("transliterate", "Transliterate", "/transliterate"),
    ("caption", "Caption", "/caption"),
    ("complete", "Language model", "/language-model"),
)
# How many questions may wait at a time, each on one of Gradio's 40 threads; service.py decides which of them compute.
PAGE_QUEUE: dict[str, Any] = {"concurrency_id": "page", "concurrency_limit": 24}
SHORT = 12  # of one page, on threads of its own outside the queue
QUIET: dict[str, Any] = {"show_progress": "hidden", "trigger_mode": "multiple", "api_visibility": "private"}
TELL_EVERY = 0.25
STOPPED = {"error": "Stopped."}


def content(catalogue: Catalogue, task: str) -> dict[str, Any]:
    """The data in a page's document. What does not change between visits is a separate file, which browsers cache."""
    setup = catalogue.setup(task)
    thumbnails = {example["photo"]: example["thumbnail"] for example in setup["examples"] if "thumbnail" in example}
    examples = [{name: value for name, value in example.items() if name != "thumbnail"} for example in setup["examples"]]
    start = {"answer": catalogue.frozen_answer(task), "thumbnails": thumbnails}
    return {"setup": {**setup, "examples": examples}, "frozen": assets.keep_result(task, start)}


def task_page(answers: Answers, task: str) -> None:
    hands, stops = Hands(answers), Stops()

    def hand(message: object = None) -> dict[str, Any]:
        return hands.hand(message)

    page = page_component(content(answers.catalogue, task), f"page-{task}", [hand, short_door(answers), stop_door(stops)])

    def ask(event: gr.EventData) -> Iterator[dict[str, Any]]:
        message = question_of(event)
        seq = sequence_of(message)
        if not answers.takes_long(message):
            yield packed_value(answers.answer(message), seq)
            return
        with stops.of(message) as stopped:
            for told in in_background(lambda progress, cancel: answers.answer(message, progress, cancel), stopped=stopped):
                yield packed_value(told, seq)

    page.ask(ask, None, page, **PAGE_QUEUE, **QUIET)

    def probe(event: gr.EventData) -> Iterator[dict[str, Any]]:
        message = question_of(event)
        named = {"id": message.get("id")} if isinstance(message, dict) else {}
        with stops.of(message) as stopped:
            for told in in_background(lambda progress, cancel: hands.answer(message, progress, cancel), probe_sentence, stopped):
                yield packed_value({"probe": {**named, **told}})

    page.probe(probe, None, page, **PAGE_QUEUE, **QUIET)


def stop_door(stops: Stops) -> Callable[..., None]:
    """What a page calls to stop a long question."""

    def give_up(message: object = None) -> None:
        stops.stop(message)

    return give_up


def short_door(answers: Answers) -> Callable[..., Any]:
    """What a page calls with a question that needs no progress. It passes the queue by, which saves a third of the time."""
    places = ThreadPoolExecutor(SHORT)

    def answered(message: Any) -> dict[str, Any]:
        if answers.takes_long(message):
            return packed_value({"error": "An exact search takes long; ask for it through the queue."}, sequence_of(message))
        return packed_value(answers.answer(message), sequence_of(message))

    async def short(message: object = None) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(places, answered, message)

    return short


def models_page(answers: Answers) -> None:
    stops = Stops()
    page = page_component({"setup": models_content(answers.catalogue)}, "page-models", [stop_door(stops)])
    plot = gr.Plot(show_label=False, container=False, elem_id="models-plot")  # the page's script puts it into its place
    comparison = Comparison(answers.catalogue)

    def load(event: gr.EventData) -> Iterator[dict[str, Any]]:
        message = question_of(event)
        seq = sequence_of(message)
        with stops.of(message) as stopped:
            for told in in_background(
                lambda progress, cancel: answers.load(message, progress, cancel), download_sentence, stopped
            ):
                yield packed_value(told, seq)

    def compare(event: gr.EventData) -> PlotData | None:
        message = question_of(event)
        wanted = [message.get(name) for name in ("task", "test", "kind")] if isinstance(message, dict) else [None] * 3
        try:
            return PlotData(type="plotly", plot=json.dumps(comparison.figure(*wanted)))
        except InputError:
            return None  # the page offers only what there is

    page.compare(compare, None, plot, concurrency_limit=2, **QUIET)
    page.ask(load, None, page, concurrency_id="download", concurrency_limit=2, **QUIET)


OPEN_API = """
const open = () => {
  const own = document.querySelector("button.show-api");
  if (own) own.click();
  else setTimeout(open, 50);
};
open();
"""
PROGRAMS = """<main class="s-root s-programs"><h1>For programs</h1>
<p>The endpoints of this app, described by Gradio in a panel of its own. <a href="./">Back to the pages</a></p></main>"""


def programs_page() -> None:
    """Gradio lists the endpoints that were made on a page only there, behind a button of its footer, which this presses."""
    gr.HTML(PROGRAMS, js_on_load=OPEN_API)


def models_content(catalogue: Catalogue) -> dict[str, Any]:
    """Every model's card, with the addresses of its pictures."""
    setup = catalogue.models_setup()
    folders = {folder.name: folder for folder in catalogue.folders()}
    pictures = {
        name: {path.name: assets.keep_picture(path) for path in sorted(folders[name].glob("*.png"))}
        for name in catalogue.cards
        if name in folders
    }
    return {**setup, "checkpoints": [{**card, "pictures": pictures.get(card["name"], {})} for card in setup["checkpoints"]]}


def question_of(event: gr.EventData) -> Any:
    return event._data


def sequence_of(message: Any) -> int:
    """The number the page gave its question; the answer carries it back."""
    seq = message.get("seq") if isinstance(message, dict) else 0
    return seq if isinstance(seq, int) and not isinstance(seq, bool) and abs(seq) < 2**53 else 0


def in_background(work: Any, tell: Any = None, stopped: threading.Event | None = None) -> Iterator[dict[str, Any]]:
    """Progress while `work(progress, cancel)` runs on a thread, then its answer. Setting `stopped` or closing the iterator
    cancels it. What is stopped has an answer as well: Gradio tells a page of a question without one that its value is empty."""
    stopped = stopped or threading.Event()
    tell = tell or progress_sentence
    state: dict[str, Any] = {"told": tell()}

    def progress(*facts: Any) -> None:
        state["told"] = tell(*facts)

    def target() -> None:
        state["answer"] = work(progress, stopped.is_set)

    if stopped.is_set():
        yield STOPPED
        return
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    try:
        next_word = time.monotonic() + TELL_EVERY
        while thread.is_alive() and not stopped.is_set():
            thread.join(0.02)
            if time.monotonic() > next_word and thread.is_alive() and not stopped.is_set():
                next_word += TELL_EVERY
                yield {**state["told"], "at": time.monotonic()}
        yield STOPPED if stopped.is_set() else state["answer"]
    finally:
        stopped.set()
        thread.join(1.0)


def progress_sentence(*facts: Any) -> dict[str, Any]:
    """The progress of a search: how many wait before it; then the prefixes followed, the best score, and the bound on all
    scores."""
    if len(facts) == 1 and facts[0]:
        return {"progress": f"Waiting: {facts[0]} long {'search is' if facts[0] == 1 else 'searches are'} in front…"}
    if len(facts) < 3:
        return {"progress": "Searching…"}
    best = f"; best so far {signed(facts[1])}, nothing above {signed(facts[2])}" if math.isfinite(facts[1]) else ""
    return {"progress": f"Searching: {int(facts[0]):,} prefixes followed{best}…"}


def probe_sentence(*facts: Any) -> dict[str, Any]:
    """The progress of a question of hands: how many wait before it; then how much is done, of how much, and the results so
    far."""
    if len(facts) == 1 and facts[0]:
        return {"progress": f"Waiting: {facts[0]} long {'question is' if facts[0] == 1 else 'questions are'} in front…"}
    if len(facts) < 2 or not facts[1]:
        return {"progress": "Working…"}
    more = facts[2] if len(facts) > 2 else {}
    return {"progress": f"Working: {facts[0]:,} of {facts[1]:,}…", "share": min(1.0, facts[0] / facts[1]), **more}


def download_sentence(*facts: Any) -> dict[str, Any]:
    if len(facts) < 2 or not facts[1]:
        return {"progress": "Asking the Hub…"}
    done, total = facts[0], facts[1]
    return {"progress": f"{done / 2**20:.1f} of {total / 2**20:.1f} MB…", "share": min(1.0, done / total)}
