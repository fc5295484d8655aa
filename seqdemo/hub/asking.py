"""Requests to the Hub, made by a child process with a deadline; and the settings of the Hub's client, each with its reason."""

from __future__ import annotations

import os
import re
from typing import Any

from seqdemo.child.parent import Failure, Watch, run_child, without_secrets
from seqdemo.errors import InputError, shown
from seqdemo.hub.faults import check_endpoint, endpoint, hub_error

SWITCHES = {
    # Files here are 20 MB at most. Xet's transfers ignore these time-outs and our size limit, and keep a cache of their own.
    "HF_HUB_DISABLE_XET": "1",
    # Time-outs for the first request of a file and between two chunks; the client's defaults of 10 s add up to minutes.
    "HF_HUB_ETAG_TIMEOUT": "5",
    "HF_HUB_DOWNLOAD_TIMEOUT": "8",
    # The child writes JSON to its output and reports progress itself.
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
}
THE_USERS_OWN = ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")


def environment(anonymous: bool) -> dict[str, str]:
    """The child's environment. Time-outs that the user chose are kept. An anonymous child gets no secrets and looks for none."""
    own = {name: seconds for name in THE_USERS_OWN if (seconds := chosen_seconds(name))}
    variables = {**os.environ, **SWITCHES, **own, "HF_ENDPOINT": endpoint()}
    return {**without_secrets(variables), "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"} if anonymous else variables


def chosen_seconds(name: str) -> str:
    """A time-out that the user set, which the library can only read as a whole number; empty if there is none."""
    value = os.environ.get(name, "").strip()
    if value and not re.fullmatch("[0-9]{1,5}", value):
        raise InputError(f"{name} must be a whole number of seconds, not {shown(value)}; correct it or unset it.")
    return value


def check_certificates() -> None:
    file = os.environ.get("SSL_CERT_FILE", "")
    if file and not os.path.isfile(file):
        raise InputError(f"SSL_CERT_FILE names {shown(file)}, which is no file; correct it or unset it.")


def ask_hub(
    work: str, request: dict[str, Any], watch: Watch, anonymous: bool = False, table: dict[str, str] | None = None
) -> Any:
    """The result of a function of this package ("download.look") that talks to the Hub, or an error with a sentence, taken from
    `table` first."""
    check_endpoint()
    check_certificates()
    try:
        return run_child(f"seqdemo.hub.{work}", request, watch, environment(anonymous))
    except Failure as failure:
        known = {key: request[key] for key in ("repo", "revision", "cache") if key in request}
        raise hub_error(failure, **known, table=table) from None
