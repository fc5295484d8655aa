"""Brings up the app: makes .venv, installs requirements.txt into it, launches app.py. The second time it just launches.

python3 tools/start.py [--host 0.0.0.0] [--port 7870] ...      (what follows is handed to app.py)
"""

import sys

import environment

if __name__ == "__main__":
    environment.fill("app", "-r", "requirements.txt")
    sys.exit(environment.become("app.py", *sys.argv[1:]))
