"""Checks the pages' scripts: types (tsc), mistakes (eslint) and tests (node). Running the app needs none of this.

python3 tools/scripts.py [types] [lint] [test]      all three if none is named
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "node_modules"


def install() -> None:
    """The packages of package-lock.json in node_modules; again only after it changed."""
    wanted = hashlib.sha256((ROOT / "package-lock.json").read_bytes()).hexdigest()
    stamp = PACKAGES / ".seqdemo"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=ROOT).returncode:
        raise SystemExit("npm could not install the packages of package-lock.json; its message above says why.")
    stamp.write_text(wanted)


def passes(command: str) -> bool:
    return subprocess.run(["npm", "run", "--silent", command], cwd=ROOT).returncode == 0


CHECKS = ("types", "lint", "test")


def main(names: list[str]) -> int:
    if not (shutil.which("node") and shutil.which("npm")):
        raise SystemExit(
            "The pages' scripts were not checked: node 20 or newer with its npm is not here. Install it and run this again."
        )
    install()
    failed = [name for name in names or CHECKS if not passes(name)]
    print(f"The scripts fail: {', '.join(failed)}." if failed else "The scripts pass.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
