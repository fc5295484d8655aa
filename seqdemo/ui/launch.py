"""Builds the app and starts it: local, offline, nothing recorded."""

from __future__ import annotations

import errno
import importlib
import os
import socket
import threading
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr
from gradio.utils import get_upload_folder

from seqdemo.errors import InputError
from seqdemo.hub import cache
from seqdemo.ui import pages
from seqdemo.ui.answers import Answers
from seqdemo.ui.api import add_endpoints
from seqdemo.ui.api_hands import add_hands
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.early import EarlyPage
from seqdemo.ui.fields import TASKS
from seqdemo.ui.hands import Hands
from seqdemo.ui.service import Service
from seqdemo.ui.theme import theme

QUEUE = 128  # 50 visitors with two questions each, and room for programs
CLEAN_EVERY, KEEP_UPLOADS = 600, 2400  # seconds; uploads are deleted within the hour
WARM_AFTER = 1.0  # seconds: the first visitor's page comes before the models
PORTS = range(7860, 7960)
LAST_PORT = 65_535


def build(service: Any = None, root: Path | None = None, catalogue: Catalogue | None = None) -> gr.Blocks:
    """The whole app; `service` and `root` are replaced in the tests."""
    catalogue = catalogue or Catalogue(root or checkpoints_folder())
    answers = Answers(service or Service(), catalogue, Path(get_upload_folder()))
    with gr.Blocks(title="seqdemo", analytics_enabled=False, fill_width=True, delete_cache=(CLEAN_EVERY, KEEP_UPLOADS)) as app:
        gr.Navbar(visible=False)  # type: ignore[attr-defined]
        pages.task_page(answers, "translate")
    for task, name, path in pages.TASK_PAGES[1:]:
        with app.route(name, path):
            pages.task_page(answers, task)
    with app.route("Models", "/models"):
        pages.models_page(answers)
    with app.route("Programs", "/programs", show_in_navbar=False):
        pages.programs_page()
        add_endpoints(answers)
        add_hands(Hands(answers))
    app.queue(max_size=QUEUE)
    return app  # type: ignore[no-any-return]


def checkpoints_folder() -> Path:
    """The folder of the shipped checkpoints (as in seqdemo.checkpoints, but without importing torch)."""
    named = os.environ.get("SEQDEMO_CHECKPOINTS", "")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "checkpoints"


def free_port(host: str, wanted: int | None) -> int:
    """The wanted port; if it is busy, the next free one, and a line that says so."""
    first = wanted or PORTS.start
    if not 0 < first <= LAST_PORT:
        raise InputError(f"A port is a number from 1 to {LAST_PORT:,}, not {first}.")
    for port in range(first, min(first + len(PORTS), LAST_PORT + 1)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
                    raise InputError(
                        f"{host} is not an address of this machine; leave --host out, or give one that is."
                    ) from error
                continue
        if port != first:
            print(f"Port {first} is busy; taking {port}.", flush=True)
        return port
    raise InputError(f"No port is free from {first} to {port}; choose another with --port.")


def launch(app: gr.Blocks, host: str = "127.0.0.1", port: int | None = None, **more: Any) -> Any:
    return app.launch(
        server_name=host,
        server_port=free_port(host, port),
        share=False,
        _frontend=False,  # or else a server that is too busy to answer Gradio's own look within three seconds is given up
        run_history=False,
        enable_monitoring=False,
        max_file_size="5mb",
        strict_cors=True,
        footer_links=["api"],  # opens the page of the endpoints; the pages have a footer of their own
        theme=theme(),
        app_kwargs={"middleware": [(EarlyPage, (), {})]},
        **{"ssr_mode": False, **more},
    )


def serve(host: str, port: int | None) -> None:
    """Start the server, then work in the background on what the first visitor need not wait for."""
    announce_to_zero_gpu()
    service = Service()
    catalogue = Catalogue(checkpoints_folder(), stand_ins())
    app = build(service, catalogue=catalogue)
    launch(app, host, port, prevent_thread_lock=True)
    first = threading.Timer(WARM_AFTER, after_start, (service, opening_models(catalogue)))
    first.daemon = True
    first.start()
    app.block_thread()


def after_start(service: Any, names: list[str]) -> None:
    """Load the models of the pages' first results, and remove what killed downloads left behind."""
    service.warm(names)
    cache.sweep(cache.visitors_folder())


def announce_to_zero_gpu() -> None:
    """A Space on ZeroGPU counts as started only if some function asks for a GPU, although this app needs none."""
    if os.environ.get("SPACES_ZERO_GPU"):
        importlib.import_module("spaces").GPU(lambda: None)  # the package is only there on such a Space


def stand_ins() -> list[Path]:
    """Checkpoints from an account on the Hub, for a Space or a clone without them. They are downloaded before the pages are
    built."""
    if not os.environ.get("SEQDEMO_HUB_OWNER"):
        return []
    from seqdemo.hub import stand_ins

    return stand_ins()


def opening_models(catalogue: Catalogue) -> list[str]:
    return [cards[0]["name"] for task in TASKS if (cards := catalogue.of_task(task))]


def default_host() -> str:
    """All addresses on a Space, this machine alone elsewhere."""
    return "0.0.0.0" if os.environ.get("SPACE_ID") else os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1")
