"""The set-up of every test: one thread, one seed, and Chromium if it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import pytest
import torch
from hypothesis import HealthCheck, settings

from tools.environment import find_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest_plugins = ["tests.shared", "tests.measured"]

# The longest files first, so that no worker is left with one of them at the end.
LONGEST = ("test_browser", "test_readme", "test_fit", "test_distributed", "test_browser_looks", "test_hub_app", "test_evaluate")

torch.set_num_threads(1)
settings.register_profile(
    "seqdemo", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("seqdemo")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


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

    from tests.shared import PATIENCE

    path = find_browser()
    if path is None:
        pytest.skip("no Chromium here; python3 tools/test.py installs one where it may")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=1000 * PATIENCE)
        yield chromium
        chromium.close()
