"""Runs all the tests: makes .venv, installs what they need (a browser too, where it may), runs pytest.

python3 tools/test.py [-k search] [tests/test_cells.py] ...    (what follows is handed to pytest)
python3 tools/test.py --install-only
"""

import os
import sys

import environment

if __name__ == "__main__":
    tools = "The tools of the tests and of training add about 280 MB of downloads."
    environment.fill("tests", "--editable", ".[training,test]", size=tools)
    environment.fill_browser()
    if sys.argv[1:] == ["--install-only"]:
        sys.exit()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(environment.become("-m", "pytest", *sys.argv[1:]))
