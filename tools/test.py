"""Runs all the tests: makes .venv, installs what they need (a browser too, where it may), runs pytest with a worker a core.

python3 tools/test.py [-k search] [tests/test_cells.py] ...    (what follows is handed to pytest; -n 0: all in one process)
python3 tools/test.py --install-only
"""

import os
import shutil
import sys

import environment
import pace

if __name__ == "__main__":
    tools = "The tools of the tests and of training add about 280 MB of downloads."
    environment.fill("tests", "--editable", ".[training,test]", size=tools)
    environment.fill_browser()
    arguments = sys.argv[1:]
    if arguments == ["--install-only"]:
        sys.exit()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if shutil.which("node") is None:
        environment.say("There is no node here: the tests of the pages' scripts are skipped.")
    environment.say(pace.forecast(arguments, str(environment.PYTHON)))
    sys.exit(environment.become("-m", "pytest", *pace.spread(arguments), *arguments))
