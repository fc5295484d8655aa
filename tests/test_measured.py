"""A process that is killed while it writes what it measured does not fail the run."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import coverage

from tests.measured import whole
from tests.shared import ROOT

RUN = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.measured", "--cov", "."]
KILLING = "from pathlib import Path\n\ndef test_kills():\n    Path('kept').rename('.coverage.kept')\n"


def damaged(folder: Path) -> Path:
    """Measurements that open, whose table of lines is spoiled."""
    data = coverage.CoverageData(str(folder / "kept"))
    data.add_lines({str(folder / f"{number}.py"): range(1, 3000) for number in range(60)})
    data.write()
    data.close(force=True)
    file = Path(data.data_filename())
    database = sqlite3.connect(file)
    ((page,),) = database.execute("select rootpage from sqlite_master where name = 'line_bits'")
    ((size,),) = database.execute("pragma page_size")
    database.close()
    assert whole(file)
    content = file.read_bytes()
    file.write_bytes(content[: (page - 1) * size] + b"\xff" * size + content[page * size :])
    return file


def test_damaged_measurements_are_left_out_and_the_rest_is_told(tmp_path: Path) -> None:
    file = damaged(tmp_path)
    assert not whole(file) and not whole(tmp_path / "nowhere")
    (tmp_path / "test_one.py").write_text(KILLING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    told = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    done = subprocess.run(RUN, cwd=tmp_path, env={**told, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0 and "100%" in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / ".coverage.kept").exists()
