"""The pages while the server is gone, comes back, or takes no further question."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser_visits import Visit
from tests.shared import PATIENCE, free_port

pytest_plugins = ["tests.browser_visits"]
pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[1]


class Server:
    """The toy app as a process of its own, which can be killed."""

    def __init__(self, root: Path, port: int) -> None:
        self.root, self.port = root, port
        self.start()

    def start(self) -> None:
        command = [sys.executable, "tests/toy_app.py", "--port", str(self.port), "--root", str(self.root)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/config", timeout=PATIENCE).read()
                return
            except OSError:
                assert self.process.poll() is None
                time.sleep(0.1)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, free_port())
    yield server
    server.kill()


def test_a_server_that_is_gone_is_named_and_the_page_recovers_by_itself(browser: Any, server: Server) -> None:
    visit = Visit(browser, f"http://127.0.0.1:{server.port}")
    page = visit.come()
    server.kill()
    page.fill("#s-input", "Zwei Hunde rennen")
    page.wait_for_function("document.querySelector('.s-busy').innerText.includes('does not answer')")
    server.start()
    page.wait_for_function("document.querySelector('.s-reads').innerText.includes('Hunde') && seqdemo.page.asker.idle()")
    assert page.input_value("#s-input") == "Zwei Hunde rennen" and all(visit.outputs())
    assert not page.is_visible(".s-busy")
    visit.context.close()
