"""The switches of the Hub's client that seqdemo needs, in one place, each with its reason."""

from __future__ import annotations

import os

SWITCHES = {
    # Files here are 20 MB at most. Xet's transfers know neither these time-outs nor our size cap, and keep their own cache.
    "HF_HUB_DISABLE_XET": "1",
    # The first look at a file and the wait between two chunks; the client's own 10 s each add up to minutes.
    "HF_HUB_ETAG_TIMEOUT": "5",
    "HF_HUB_DOWNLOAD_TIMEOUT": "10",
    # The child reports its own progress and talks JSON.
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
}
KEPT_FROM_THE_USER = ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")
SECRET = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")


def switched(environment: dict[str, str]) -> dict[str, str]:
    """The environment with the switches set; time-outs that the user chose stay."""
    chosen = {name: environment[name] for name in KEPT_FROM_THE_USER if name in environment}
    return {**environment, **SWITCHES, **chosen}


def without_secrets() -> dict[str, str]:
    """The environment for a child that needs no account."""
    return {name: value for name, value in os.environ.items() if not any(word in name.upper() for word in SECRET)}
