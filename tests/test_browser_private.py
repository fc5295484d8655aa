"""What is typed stands in no address, in no log, and in no file that outlives the visit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.browser_visits import Visit
from tests.shared import PATIENCE, free_port

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[1]
SECRETS = ["Geheimniskraemer", "Wunschantwort", "Pustekuchen", "Nebenrechnung"]


def start(folder: Path, log: Path, port: int) -> subprocess.Popen[bytes]:
    """The toy app as a process of its own, all of whose folders lie in `folder`, and every word of which goes to `log`."""
    for name in ("home", "temp", "cards"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    places = {"HOME": folder / "home", "TMPDIR": folder / "temp", "GRADIO_TEMP_DIR": folder / "temp" / "gradio"}
    command = [sys.executable, "tests/toy_app.py", "--port", str(port), "--root", str(folder / "cards")]
    told = {**os.environ, **{name: str(place) for name, place in places.items()}}
    process = subprocess.Popen(command, cwd=ROOT, env=told, stdout=log.open("wb"), stderr=subprocess.STDOUT)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/config", timeout=PATIENCE).read()
            return process
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text())


def holding(secret: str, folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_nothing_that_is_typed_is_kept_anywhere(browser: Any, tmp_path: Path) -> None:
    folder, log, asked = tmp_path / "server", tmp_path / "server.log", []
    port = free_port()
    process = start(folder, log, port)
    try:
        visit = Visit(browser, f"http://127.0.0.1:{port}")
        visit.page.on("request", lambda request: asked.append(request.url))
        page = visit.come()
        page.fill("#s-input", f"{SECRETS[0]} Hund")
        page.fill("#s-wanted", SECRETS[1])  # a word that the model does not know: its error must not be logged either
        visit.settle()
        page.select_option("#s-column-b .s-strategy", "exact")
        page.wait_for_function("document.querySelector('.s-busy').innerText.includes('prefixes followed')")
        with page.expect_request("**/queue/join*"):  # the search begins anew, and so does its button
            page.fill("#s-input", f"{SECRETS[2]} Hund")
        page.wait_for_function("document.querySelector('.s-busy').innerText.includes('prefixes followed')")
        page.get_by_role("button", name="Stop").click()
        visit.settle()
        visit.come("language-model")
        page.fill("#s-input", f"{SECRETS[3]} xx")
        visit.settle()
        page.click("#s-tab-gates")
        visit.settle()
        visit.context.close()
    finally:
        process.terminate()
        process.wait(PATIENCE)
    assert len(asked) > 20 and log.stat().st_size
    for secret in SECRETS:
        assert [url for url in asked if secret in url.split("#")[0]] == []
        assert secret not in log.read_text("utf-8", "replace")
        assert holding(secret, folder) == []


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "kept").write_bytes(b"\x00 Pustekuchen")
    assert len(holding("Pustekuchen", tmp_path)) == 1
