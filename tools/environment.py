"""The project's own virtual environment: made, filled and checked. Uses nothing but Python itself, from 3.7 on."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv"
PYTHON = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
# A headless shell first: it needs less than half of the processor time, since it draws no window of its own.
SHELLS = ("chromium-headless-shell", "chrome-headless-shell")
BROWSERS = (*SHELLS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def give_up(text: str) -> NoReturn:
    raise SystemExit(text)


def check_python() -> None:
    if sys.version_info < (3, 10):  # noqa: UP036 (an older Python reads this file too)
        give_up(f"seqdemo needs Python 3.10 or newer; this is {platform.python_version()}. Try python3.12 {' '.join(sys.argv)}")


def make() -> None:
    """A virtual environment in .venv, unless one that works is there."""
    works = "import pip, sys; sys.exit(sys.version_info < (3, 10))"
    if PYTHON.exists() and subprocess.run([str(PYTHON), "-c", works], capture_output=True).returncode == 0:
        return
    say(f"Making a virtual environment in {FOLDER}.")
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], capture_output=True, text=True)
    if done.returncode:
        give_up(
            f"{(done.stdout + done.stderr).strip()}\n\nPython could not make a virtual environment. On Debian and Ubuntu its "
            "parts are packages of their own: sudo apt-get install python3-venv python3-pip. Then run this command again."
        )


def stamp(what: str) -> Path:
    return FOLDER / f".seqdemo-{what}"


def fingerprint() -> str:
    """A hash that changes whenever something else would be installed."""
    files = [ROOT / "requirements.txt", ROOT / "pyproject.toml"]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files) + str(ROOT).encode()).hexdigest()


def is_filled(what: str) -> bool:
    return stamp(what).exists() and stamp(what).read_text() == fingerprint()


def has_nvidia_gpu() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def answers(address: str, seconds: float) -> bool:
    """Whether `address` can be read within `seconds`, including the look-up of its name."""
    heard = threading.Event()

    def ask() -> None:
        try:
            with urllib.request.urlopen(address, timeout=seconds):
                heard.set()
        except (OSError, ValueError):
            pass

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return heard.is_set()


def pip(*arguments: str, index: str | None = None) -> bool:
    surroundings = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", **({"PIP_INDEX_URL": index} if index else {}))
    command = [str(PYTHON), "-m", "pip", "install", "--progress-bar", "on" if sys.stderr.isatty() else "off", *arguments]
    return subprocess.run(command, cwd=ROOT, env=surroundings).returncode == 0


def torch_requirement() -> str:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith("torch"))


def fill_torch() -> None:
    """Install PyTorch for this machine, with a message: on Linux the ordinary build holds 2.5 GB of CUDA, useless without a
    GPU."""
    rest = "In all about 300 MB are downloaded (PyTorch 190 MB of them), less what pip has in its cache."
    if sys.platform != "linux":
        say(f"Taking PyTorch from the ordinary package index. {rest}")
    elif has_nvidia_gpu():
        say("An NVIDIA GPU is here: taking PyTorch with CUDA from the ordinary package index; about 2.8 GB are downloaded.")
    elif answers(f"{CPU_INDEX}/torch/", 2.0):
        say(f"No NVIDIA GPU here: taking PyTorch without CUDA from PyTorch's own index. {rest}")
        if not pip(torch_requirement(), index=CPU_INDEX):
            say("PyTorch's own index failed; going on with the ordinary one (up to 2.8 GB, since its Linux build carries CUDA).")
    else:
        say(
            "No NVIDIA GPU here, but PyTorch's own index of smaller builds did not answer within 2 seconds: taking the ordinary "
            "package index. Up to 2.8 GB are downloaded, since its Linux build carries CUDA (300 MB where it offers one without)."
        )


def has_torch() -> bool:
    return any(FOLDER.glob("[Ll]ib*/**/site-packages/torch/__init__.py"))


def fill(what: str, *requirements: str, size: str = "") -> None:
    """Installs `requirements` into .venv, once; again only after requirements.txt or pyproject.toml changed."""
    check_python()
    make()
    if is_filled(what):
        return
    if not has_torch():
        fill_torch()
    if size:
        say(size)
    if not pip(*requirements):
        give_up(
            f"pip could not install {' '.join(requirements)}; its message above says which package and why. "
            "Without a network connection the first set-up is not possible; later starts need none."
        )
    stamp(what).write_text(fingerprint())


def become(*arguments: str) -> int:
    """Runs .venv's Python at the project's root in place of this process (on Windows, as its child)."""
    os.chdir(ROOT)
    command = [str(PYTHON), *arguments]
    if os.name == "posix":
        sys.stderr.flush()
        os.execv(command[0], command)
    return subprocess.call(command)


def find_browser() -> str | None:
    """A Chromium for the browser tests: $SEQDEMO_BROWSER, the system's, or the one Playwright downloaded."""
    named = os.environ.get("SEQDEMO_BROWSER")
    if named:
        return named
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or playwrights_browser()


def apt_get(command: str, *arguments: str) -> None:
    surroundings = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    how = ("-qq", "-y", "--no-install-recommends") if command == "install" else ()
    subprocess.run(["apt-get", command, *how, *arguments], env=surroundings, stdout=subprocess.DEVNULL)


def playwrights_browser() -> str | None:
    ask = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    python = str(PYTHON) if PYTHON.exists() else sys.executable
    path = subprocess.run([python, "-c", ask], capture_output=True, text=True).stdout.strip()
    return path if path and Path(path).exists() else None


def fill_browser() -> None:
    """Install a browser for the tests: for root on Debian and Ubuntu by apt-get, otherwise Playwright's own. If neither works,
    say so. apt-get is asked for the headless shell first; where another Chromium is already installed, it is asked only once."""
    may_install = hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None
    found = find_browser()
    if found and (Path(found).name in SHELLS or "SEQDEMO_BROWSER" in os.environ or is_filled("browser") or not may_install):
        return
    if may_install:
        say("Installing Chromium's headless shell with apt-get (up to 150 MB are downloaded): it is twice as fast.")
        apt_get("update", "-q")
        apt_get("install", SHELLS[0], "fonts-noto-core")
        if not find_browser():
            apt_get("install", "chromium", "fonts-noto-core")
        stamp("browser").write_text(fingerprint())
    else:
        say("No Chromium here: asking Playwright for its own (about 180 MB are downloaded).")
        subprocess.run([str(PYTHON), "-m", "playwright", "install", "chromium"])
    if not find_browser():
        say(
            "No Chromium could be installed: the browser tests will be skipped. Install Chromium or Chrome with your system's "
            "package manager, or name one in SEQDEMO_BROWSER, and run this command again."
        )
