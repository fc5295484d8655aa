"""The README is true: every command and snippet runs, every file it maps exists, every setting it lists is read."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqdemo import __main__ as seqdemo_main
from seqdemo.__main__ import HANDS
from seqdemo.ui.api_hands import HANDS as API_HANDS
from tests.hub_server import Hub
from tests.shared import PATIENCE, TOY, Toy, free_port
from training import __main__ as training_main

ROOT = Path(__file__).resolve().parent.parent
README, CONTRIBUTING = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
INSIDE_VENV = Path(sys.prefix).resolve() == (ROOT / ".venv").resolve()

# Commands that set up, train, publish or serve, in the smallest form that still runs them.
QUICKLY = (
    "from pathlib import Path; from training.measure.evaluate import Plan, evaluate; "
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
def runs(tmp_path_factory: pytest.TempPathFactory, toy: Toy) -> Path:
    """Trained models go to a folder of their own, where the toy already is."""
    runs = tmp_path_factory.mktemp("runs")
    shutil.copytree(toy.folder, runs / toy.folder.name)
    return runs


MODELS = {
    "translate": "translator-de-en",
    "transliterate": "transliterator-indic",
    "score": "translator-de-en",
    "complete": "lm-tolstoy",
    "caption": "captioner",
    **dict.fromkeys((*HANDS, *API_HANDS), "translator-de-en"),
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


@pytest.mark.readme
@pytest.mark.parametrize("command", [command for command in commands() if command not in SERVING])
def test_every_command_runs(command: str, surroundings: dict[str, str], request: pytest.FixtureRequest) -> None:
    if command == TOY:
        toy = request.getfixturevalue("toy")
        assert toy.status == 0 and toy.said.strip(), toy.said
        return
    skip_without_its_model(command)
    if " publish " in command:
        surroundings = {**surroundings, "HF_ENDPOINT": request.getfixturevalue("hub_address")}
    smallest = SMALLEST.get(command, command)
    if "runs/" in smallest:
        smallest = smallest.replace("runs/", f"{request.getfixturevalue('runs')}/")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", smallest], cwd=ROOT, env=surroundings, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{smallest}\n{done.stdout}\n{done.stderr}"
    assert (done.stdout + done.stderr).strip() or command in SMALLEST, "a command says something"


PARSERS = {"-m seqdemo": seqdemo_main.parser(), "-m training": training_main.parser()}
SCRIPTS = ("app.py", "tools/test.py")  # whose options are read from their text


def subcommands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def code_spans(text: str) -> list[str]:
    """The code inside the sentences of a document, each on one line."""
    sentences = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", sentences)]


def named_commands() -> list[str]:
    """Every command that a document or the help of training shows."""
    helps = "\n".join(parser.description or "" for parser in subcommands(PARSERS["-m training"]))
    helps = re.sub(r"\\\n +", "", helps)
    examples = [re.split(r"   +#? ?", line.strip())[0] for line in helps.splitlines() if line.startswith("  ")]
    shown = [*commands(), *code_spans(README), *code_spans(CONTRIBUTING), *examples]
    return sorted({line for line in shown if re.search(r"-m (seqdemo|training) ", line) and "..." not in line})


@pytest.mark.parametrize("command", named_commands())
def test_the_program_takes_every_command_that_is_shown(command: str) -> None:
    ((which, arguments),) = re.findall(r"(-m seqdemo|-m training) (.*)", command)
    try:
        PARSERS[which].parse_args(shlex.split(arguments))
    except SystemExit as left:
        assert not left.code, command


def test_every_option_that_is_named_exists() -> None:
    parsers = [*PARSERS.values(), *(command for parser in PARSERS.values() for command in subcommands(parser))]
    known = {option for parser in parsers for option in parser._option_string_actions}
    known |= {option for name in SCRIPTS for option in re.findall(r'"(--[a-z-]+)"', (ROOT / name).read_text())}
    named = {span.split()[0] for text in (README, CONTRIBUTING) for span in code_spans(text) if span.startswith("--")}
    assert len(named) > 5 and named <= known


@pytest.fixture(scope="session")
def app_address(surroundings: dict[str, str]) -> Iterator[str]:
    """The app as the README starts it, on a port of its own."""
    (command,) = SERVING
    port = free_port()
    app = subprocess.Popen([*command.replace("python", sys.executable).split(), "--port", str(port)], cwd=ROOT, env=surroundings)
    first_answer(f"http://127.0.0.1:{port}/", app)
    yield f"http://127.0.0.1:{port}"
    app.send_signal(signal.SIGTERM)
    app.wait(PATIENCE)


def test_the_toy_that_all_tests_share_is_trained_as_the_readme_says() -> None:
    assert TOY in commands()


@pytest.mark.readme
def test_the_app_comes_up(app_address: str) -> None:
    assert set(commands()) >= SERVING
    assert b"<html" in urllib.request.urlopen(app_address, timeout=PATIENCE).read()


def first_answer(address: str, app: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and app.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=PATIENCE).close()
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
