"""What every test shares: one thread, one seed, and Chromium where there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import pytest
import torch
from hypothesis import settings

from tools.environment import find_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

torch.set_num_threads(1)
settings.register_profile("seqdemo", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("seqdemo")


@pytest.fixture(autouse=True)
def _one_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, for tests marked `browser`."""
    from playwright.sync_api import sync_playwright

    path = find_browser()
    if path is None:
        pytest.skip("no Chromium here; python3 tools/test.py installs one where it may")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
