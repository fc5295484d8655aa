"""The tests of the pages' scripts under node's own test runner; skipped, and said so, where there is no node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.page_scripts import NODE, needs_node
from tests.shared import PATIENCE
from tools import scripts

FILES = sorted((scripts.ROOT / "tests/scripts").glob("*.test.js"))


@needs_node
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_tests_of_a_script_pass_under_node(file: Path) -> None:
    done = subprocess.run([str(NODE), "--test", str(file)], cwd=scripts.ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "# tests 0" not in done.stdout, done.stdout + done.stderr


def test_without_node_the_checks_of_scripts_fail_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match=r"node 20 or newer .* is not here"):
        scripts.main([])


def test_no_script_is_left_out_of_the_check_of_types() -> None:
    told = json.loads((scripts.ROOT / "jsconfig.json").read_text("utf-8"))
    assert told["compilerOptions"]["checkJs"] and "seqdemo/**/*.js" in told["include"] and "exclude" not in told
    skipping = [path for path in scripts.ROOT.glob("seqdemo/**/*.js") if "@ts-nocheck" in path.read_text("utf-8")]
    assert skipping == []


def test_the_lock_file_names_no_host() -> None:
    assert '"resolved"' not in (scripts.ROOT / "package-lock.json").read_text("utf-8")
