"""Builds the app and launches it. `python app.py --host 0.0.0.0 --port 7860`"""

import argparse

from seqdemo.errors import InputError
from seqdemo.ui import launch

parser = argparse.ArgumentParser(description="The decoding playground.")
parser.add_argument("--host", default=launch.default_host(), help="address to listen on; 0.0.0.0 for all")
parser.add_argument("--port", type=int, default=None, help="port; if it is busy, the next free one is taken")

if __name__ == "__main__":
    given = parser.parse_args()
    try:
        launch.serve(given.host, given.port)
    except InputError as mistake:
        parser.error(str(mistake))
