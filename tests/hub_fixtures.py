"""A loopback Hub, and a machine without any earlier contact with a Hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqdemo.hub.publication import staged
from tests.hub_expect import REPO
from tests.hub_server import Hub
from tests.spoiling import good

FOREIGN = ("HF_", "HUGGING", "SEQDEMO_", "XDG_CACHE")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """HF_ENDPOINT points here, the cache is fresh, nobody is logged in, no checkpoint is bundled."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name.lower() in PROXIES:
            monkeypatch.delenv(name)
    server = Hub()
    (tmp_path / "bundled").mkdir()
    variables = {
        "HF_ENDPOINT": server.url,
        "HF_HOME": str(tmp_path / "home"),
        "SEQDEMO_CHECKPOINTS": str(tmp_path / "bundled"),
        "SEQDEMO_HUB_DEADLINE": "150",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


@pytest.fixture
def impatient(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to the Hub are given up after a second."""
    for name in ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"):
        monkeypatch.setenv(name, "1")


@pytest.fixture(scope="session")
def good_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good(tmp_path_factory.mktemp("checkpoint") / "good", "text")


@pytest.fixture(scope="session")
def good_files(good_folder: Path) -> dict[str, bytes]:
    """What a repository with this checkpoint holds."""
    return staged(good_folder)


@pytest.fixture
def sha(hub: Hub, good_files: dict[str, bytes]) -> str:
    """The commit of a public repository with a good checkpoint."""
    return hub.add(REPO, good_files)
