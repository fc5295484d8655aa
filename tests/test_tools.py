"""The set-up commands: what they install, from where, how often, and their messages when they fail."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import seqdemo
from tests.shared import PATIENCE
from tools import environment


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], str | None]]:
    """What pip was asked for, in a project of its own where pip always succeeds."""
    asked: list[tuple[tuple[str, ...], str | None]] = []

    def pip(*arguments: str, index: str | None = None) -> bool:
        asked.append((arguments, index))
        return True

    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_bytes((environment.ROOT / name).read_bytes())
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "FOLDER", tmp_path / ".venv")
    monkeypatch.setattr(environment, "make", lambda: None)
    monkeypatch.setattr(environment, "pip", pip)
    monkeypatch.setattr(environment, "has_nvidia_gpu", lambda: False)
    monkeypatch.setattr(environment, "answers", lambda address, seconds: False)
    return asked


def test_the_second_time_installs_nothing(calls: list[object]) -> None:
    environment.fill("app", "-r", "requirements.txt")
    assert calls == [(("-r", "requirements.txt"), None)]
    environment.fill("app", "-r", "requirements.txt")
    assert len(calls) == 1
    environment.fill("tests", "-e", ".[test]")
    assert len(calls) == 2


def test_pytorch_that_is_there_is_not_announced_again(calls: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    package = environment.FOLDER / "lib/python3.12/site-packages/torch/__init__.py"
    package.parent.mkdir(parents=True)
    package.touch()
    environment.fill("tests", "-e", ".[test]", size="The tools add 160 MB.")
    assert capsys.readouterr().err == "The tools add 160 MB.\n"


def test_an_environment_that_no_longer_works_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "FOLDER", tmp_path / ".venv")
    monkeypatch.setattr(environment, "PYTHON", tmp_path / ".venv/bin/python")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / ".venv/bin/python").chmod(0o755)
    environment.make()
    assert "Making a virtual environment" in capsys.readouterr().err
    assert subprocess.run([environment.PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0
    environment.make()
    assert not capsys.readouterr().err, "one that works stays"


def test_changed_requirements_are_installed(calls: list[object]) -> None:
    environment.fill("app", "-r", "requirements.txt")
    with (environment.ROOT / "requirements.txt").open("a") as file:
        file.write("another>=1\n")
    environment.fill("app", "-r", "requirements.txt")
    assert len(calls) == 2


def test_a_failed_installation_is_tried_again(calls: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    works = environment.pip
    monkeypatch.setattr(environment, "pip", lambda *arguments, index=None: False)
    with pytest.raises(SystemExit, match="could not install -r requirements.txt"):
        environment.fill("app", "-r", "requirements.txt")
    monkeypatch.setattr(environment, "pip", works)
    environment.fill("app", "-r", "requirements.txt")
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("platform", "gpu", "answering", "index", "said"),
    [
        ("linux", False, True, environment.CPU_INDEX, "without CUDA from PyTorch's own index. In all about 300 MB"),
        ("linux", False, False, None, "did not answer within 2 seconds: taking the ordinary package index. Up to 2.8 GB"),
        ("linux", True, True, None, "NVIDIA GPU is here: taking PyTorch with CUDA from the ordinary package index; about 2.8 GB"),
        ("darwin", False, True, None, "from the ordinary package index. In all about 300 MB"),
    ],
)
def test_which_torch_is_taken_is_said(
    calls: list[object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    platform: str,
    gpu: bool,
    answering: bool,
    index: str | None,
    said: str,
) -> None:
    monkeypatch.setattr(environment.sys, "platform", platform)
    monkeypatch.setattr(environment, "has_nvidia_gpu", lambda: gpu)
    monkeypatch.setattr(environment, "answers", lambda address, seconds: answering)
    environment.fill("app", "-r", "requirements.txt")
    torch_line = next(line for line in (environment.ROOT / "requirements.txt").read_text().split() if line.startswith("torch"))
    first = [((torch_line,), index)] if index else []
    assert calls == [*first, (("-r", "requirements.txt"), None)]
    assert said in capsys.readouterr().err


class Silent(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def test_an_index_that_answers_is_heard(server: str) -> None:
    assert environment.answers(server, PATIENCE)


def test_an_index_that_never_answers_costs_no_more_than_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        assert not environment.answers(f"http://127.0.0.1:{mute.getsockname()[1]}/", 0.3)  # or else this never ends


def test_a_closed_port_and_a_wrong_address_are_no_answer() -> None:
    with socket.socket() as held:  # nobody else can listen there either
        held.bind(("127.0.0.1", 0))
        assert not environment.answers(f"http://127.0.0.1:{held.getsockname()[1]}/", 1.0)
    assert not environment.answers("no address", 1.0)


def test_an_old_python_is_told_which_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.sys, "version_info", (3, 9, 18))
    with pytest.raises(SystemExit, match=r"needs Python 3\.10 or newer"):
        environment.check_python()


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'ensurepip is not available'\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(environment.sys, "executable", str(broken))
    monkeypatch.setattr(environment, "FOLDER", tmp_path / ".venv")
    monkeypatch.setattr(environment, "PYTHON", tmp_path / ".venv/bin/python")
    with pytest.raises(SystemExit, match=r"(?s)ensurepip is not available.*apt-get install python3-venv"):
        environment.make()


def test_without_any_browser_the_tests_still_run_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    monkeypatch.setattr(environment, "find_browser", lambda: None)
    monkeypatch.setattr(environment.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(environment.subprocess, "run", lambda command, **_: asked.append(command))
    environment.fill_browser()
    assert asked and asked[0][1:] == ["-m", "playwright", "install", "chromium"]
    assert "browser tests will be skipped" in capsys.readouterr().err


SHELL, WHOLE = "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"


@pytest.mark.parametrize(
    ("there", "installed"),
    [
        ([None, SHELL], ["chromium-headless-shell"]),
        ([None, None, WHOLE], ["chromium-headless-shell", "chromium"]),  # a system that has no such package
        ([WHOLE, SHELL], ["chromium-headless-shell"]),
        ([SHELL], []),
    ],
)
def test_root_on_debian_gets_a_headless_shell_from_apt_or_else_chromium_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, there: list[str | None], installed: list[str]
) -> None:
    asked: list[list[str]] = []
    found = list(there)
    monkeypatch.setattr(environment, "FOLDER", tmp_path)
    monkeypatch.delenv("SEQDEMO_BROWSER", raising=False)
    monkeypatch.setattr(environment, "find_browser", lambda: found.pop(0) if len(found) > 1 else found[0])
    monkeypatch.setattr(environment.os, "geteuid", lambda: 0)
    monkeypatch.setattr(environment.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(environment.subprocess, "run", lambda command, **_: asked.append(command))
    environment.fill_browser()
    assert [command[1] for command in asked] == ["update"] * bool(installed) + ["install"] * len(installed)
    assert [command[5] for command in asked[1:]] == installed
    environment.fill_browser()
    assert len(asked) == len(installed) + bool(installed)


def test_a_browser_that_is_named_or_that_no_package_can_replace_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.subprocess, "run", lambda command, **_: pytest.fail(f"{command} was run"))
    monkeypatch.setattr(environment, "is_filled", lambda what: False)
    monkeypatch.setattr(environment, "find_browser", lambda: WHOLE)
    monkeypatch.delenv("SEQDEMO_BROWSER", raising=False)
    monkeypatch.setattr(environment.os, "geteuid", lambda: 1000)
    environment.fill_browser()
    monkeypatch.setattr(environment.os, "geteuid", lambda: 0)
    monkeypatch.setenv("SEQDEMO_BROWSER", WHOLE)
    environment.fill_browser()


def test_the_wheel_holds_library_command_line_and_training_and_no_weights(tmp_path: Path, root: Path) -> None:
    project = tmp_path / "project"
    (project / "checkpoints").mkdir(parents=True)
    for name in ("seqdemo", "training", "tests", "tools"):
        shutil.copytree(root / name, project / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    (project / "checkpoints/model.safetensors").write_bytes(b"weights")
    for name in ("pyproject.toml", "requirements.txt", "README.md", "LICENSE"):
        shutil.copy(root / name, project)
    build = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(project)]
    done = subprocess.run([sys.executable, *build], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"seqdemo-{seqdemo.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = {name.split("/")[-1]: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    kinds = (".py", ".js", ".css", ".json", ".jpg", ".typed")
    shipped = {
        file.relative_to(root) for name in ("seqdemo", "training") for file in (root / name).rglob("*") if file.suffix in kinds
    }
    assert names == {file.as_posix() for file in shipped}
    assert "seqdemo = seqdemo.__main__:main" in about["entry_points.txt"]
    asked = re.findall(r"^Requires-Dist: ([^;\n]+)$", about["METADATA"], re.MULTILINE)
    assert len(asked) == len((root / "requirements.txt").read_text().split())
