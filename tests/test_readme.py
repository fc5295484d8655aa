"""The README is true: every command and snippet runs, every file it maps exists, every setting it lists is read."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub_server import Hub

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
INSIDE_VENV = Path(sys.prefix).resolve() == (ROOT / ".venv").resolve()

# Commands that set up, train, publish or serve, in the smallest form that still runs them.
QUICKLY = (
    "from pathlib import Path; from training.evaluate import Plan, evaluate; "
    "print(evaluate(Path('runs/reverse'), plan=Plan(beams=(1, 5), sample=50, exact=5))['tests'])"
)
SMALLEST = {
    "python -m training evaluate runs/reverse": f'python -m training evaluate --help && python -c "{QUICKLY}"',
    "python3 tools/start.py": "python3 tools/start.py --help" if INSIDE_VENV else "python app.py --help",
    "python3 tools/test.py": "python3 tools/test.py --install-only" if INSIDE_VENV else "python -m pytest --version",
    "pip install -r requirements.txt": "python -m pip install --quiet --dry-run -r requirements.txt",
}
SERVING = {"python app.py"}
APP = "http://127.0.0.1:7860"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("bash") for line in block.splitlines() if line.strip()]


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """`python`, `pip` and `seqdemo` are those of these tests; trained models go to a folder of their own."""
    programs = tmp_path_factory.mktemp("bin")
    for name in ("python", "python3"):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (programs / name).chmod(0o755)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


MODELS = {
    "translate": "translator-de-en",
    "transliterate": "transliterator-indic",
    "score": "translator-de-en",
    "complete": "lm-tolstoy",
}


def skip_without_its_model(text: str) -> None:
    """A clone may have no bundled checkpoints; what needs one is then left out, aloud."""
    used = {MODELS[name] for name in re.findall(r"-m seqdemo (\w+)", text) if "--checkpoint" not in text and "--help" not in text}
    used |= {MODELS[name] for name in re.findall(r'api_name="/(\w+)"', text)}
    used |= set(re.findall(r'load\("([\w-]+)"\)', text))
    absent = sorted(name for name in used if not (ROOT / "checkpoints" / name).is_dir())
    if absent:
        pytest.skip(f"needs {', '.join(absent)}, which is not in checkpoints/")


@pytest.fixture
def hub_address() -> Iterator[str]:
    """A Hub on this machine, so that nothing is published and no network needed."""
    hub = Hub()
    yield hub.url
    hub.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.readme
@pytest.mark.parametrize("command", [command for command in commands() if command not in SERVING])
def test_every_command_runs(command: str, surroundings: dict[str, str], runs: Path, request: pytest.FixtureRequest) -> None:
    skip_without_its_model(command)
    if " publish " in command:
        surroundings = {**surroundings, "HF_ENDPOINT": request.getfixturevalue("hub_address")}
    smallest = SMALLEST.get(command, command).replace("runs/", f"{runs}/")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", smallest], cwd=ROOT, env=surroundings, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{smallest}\n{done.stdout}\n{done.stderr}"
    assert (done.stdout + done.stderr).strip() or command in SMALLEST, "a command says something"


@pytest.fixture(scope="session")
def app_address(surroundings: dict[str, str]) -> Iterator[str]:
    """The app as the README starts it, on a port of its own."""
    (command,) = SERVING
    port = free_port()
    app = subprocess.Popen([*command.replace("python", sys.executable).split(), "--port", str(port)], cwd=ROOT, env=surroundings)
    first_answer(f"http://127.0.0.1:{port}/", app)
    yield f"http://127.0.0.1:{port}"
    app.send_signal(signal.SIGTERM)
    app.wait(20)


@pytest.mark.readme
def test_the_app_comes_up(app_address: str) -> None:
    assert set(commands()) >= SERVING
    assert b"<html" in urllib.request.urlopen(app_address, timeout=10).read()


def first_answer(address: str, app: subprocess.Popen[bytes], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and app.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"nothing answers at {address}")


@pytest.mark.readme
@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.strip().splitlines()[-1][:40])
def test_every_snippet_runs(code: str, surroundings: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> None:
    skip_without_its_model(code)
    if APP in code:
        code = code.replace(APP, request.getfixturevalue("app_address"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "a snippet shows something"


def test_the_library_fits_in_ten_lines() -> None:
    code = next(block for block in blocks("python") if "translator-de-en" in block)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_every_fence_is_run_or_plain_text() -> None:
    opened = re.findall(r"^```(\w*)\n(?:.*?\n)?```$", README, re.MULTILINE | re.DOTALL)
    assert set(opened) <= {"bash", "python", "text"}


def mapped() -> set[str]:
    """Paths of the file map: two spaces more than its parent make a child."""
    (block,) = (block for block in blocks("text") if block.startswith("app.py"))
    found, folder = set(), ""
    for line in block.splitlines():
        indent = len(line) - len(line.lstrip())
        name = line.split()[0]
        if indent == 0:
            folder = name if name.endswith("/") and "/" not in name[:-1] else ""
            found.add(name.rstrip("/"))
        elif indent == 2:
            found.add((folder + name).rstrip("/"))
    return found


def test_the_file_map_names_only_what_exists() -> None:
    assert not {path for path in mapped() - {"checkpoints"} if not (ROOT / path).exists()}


def test_the_file_map_names_every_module_and_every_folder() -> None:
    modules = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "seqdemo").iterdir() if path.suffix == ".py" or is_package(path)
    }
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    tops = {line.split("/")[0] for line in listed if "/" in line and not line.startswith(".")}
    assert modules <= mapped()
    assert tops <= mapped()


def is_package(path: Path) -> bool:
    return path.is_dir() and any(path.glob("*.py"))


def test_every_link_into_the_repository_leads_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert targets
    assert not [target for target in targets if not (ROOT / target).exists()]


def settings_read() -> set[str]:
    files = [ROOT / "app.py", *(file for name in ("seqdemo", "training", "tools") for file in (ROOT / name).rglob("*.py"))]
    return {name for file in files for name in re.findall(r"\bSEQDEMO_[A-Z_]+", file.read_text(encoding="utf-8"))}


def test_the_settings_table_is_complete() -> None:
    section = README.split("## Settings", 1)[1].split("\n## ", 1)[0]
    assert set(re.findall(r"`(SEQDEMO_[A-Z_]+)`", section)) == settings_read()


def test_the_front_matter_is_what_a_space_reads() -> None:
    head = README.split("---\n")[1]
    sdk = re.search(r'^sdk_version: "([\d.]+)"$', head, re.MULTILINE)
    assert sdk and re.search(r'^python_version: "3\.\d+"$', head, re.MULTILINE), "quoted: YAML reads 3.10 as 3.1"
    low, high = re.search(r"^gradio>=([\d.]+),<(\d+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE).groups()  # type: ignore[union-attr]
    version = tuple(map(int, sdk.group(1).split(".")))
    assert tuple(map(int, low.split("."))) <= version < (int(high),)
    about = re.search(r"^short_description: (.+)$", head, re.MULTILINE)
    assert about and len(about.group(1)) <= 60
    assert "\nsdk: gradio\n" in head and "\napp_file: app.py\n" in head and "\nlicense: apache-2.0\n" in head
