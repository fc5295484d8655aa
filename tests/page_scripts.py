"""Runs the pages' own scripts under node: pure functions are called with JSON and answer with JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from seqdemo.figures.modules import joined
from seqdemo.ui import assets
from tests.shared import PATIENCE

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def evaluate(expression: str, **values: Any) -> Any:
    """The JSON value of a JavaScript expression that sees all page functions, and `values` by name."""
    given = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
    code = joined(assets.ENTRY) + f"\n{given}process.stdout.write(JSON.stringify({expression}) ?? 'null');"
    done = subprocess.run([str(NODE), "-"], input=code, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
