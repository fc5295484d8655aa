"""A plugin of pytest: what processes measured of the coverage and could not write to its end is left out.

A test may kill a process while it writes. Coverage passes over a file that it cannot open, but one that opens and is damaged
further down would end the whole run.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest


def whole(file: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return database.execute("pragma integrity_check").fetchall() == [("ok",)]
    except sqlite3.Error:
        return False


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """After the last test and before pytest-cov puts all files together."""
    result = yield
    if not hasattr(session.config, "workerinput"):
        for file in session.config.rootpath.glob(".coverage.*"):
            if not whole(file):
                file.unlink(missing_ok=True)
    return result
