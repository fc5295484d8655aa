"""Scripts are ES modules; joined into one, they mean the same."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from seqdemo.figures.modules import LOOK, joined, joined_later, lean, modules, sheets, variables
from seqdemo.ui import assets
from tests.page_scripts import NODE, needs_node
from tests.shared import PATIENCE

TOP_NAME = re.compile(r"^(?:async function|function|class|const|let) ([A-Za-z_$][\w$]*)", re.MULTILINE)


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text)
    return folder


def test_a_module_stands_after_what_it_imports_and_only_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        entry='import { b } from "./b.js";\nimport { a } from "./a.js";\nexport const c = a + b;\n',
        b='import {\n  a,\n} from "./a.js";\nexport function b() {\n  return a;\n}\n',
        a="export const a = 1;\n",
    )
    assert [path.stem for path in modules(tmp_path / "entry.js")] == ["a", "b", "entry"]
    code = joined(tmp_path / "entry.js")
    assert "import" not in code and "export" not in code
    assert code.count("const a = 1;") == 1


def test_two_modules_may_import_each_other(tmp_path: Path) -> None:
    write(
        tmp_path,
        a='import { b } from "./b.js";\nexport const a = 1;\n',
        b='import { a } from "./a.js";\nexport const b = () => a;\n',
    )
    assert [path.stem for path in modules(tmp_path / "a.js")] == ["b", "a"]


def test_lean_code_keeps_its_lines_and_loses_its_comments() -> None:
    assert lean("/**\n * Adds.\n */\n  f(); // why\n\n// note\ng();") == "f(); // why\ng();"


def test_no_name_of_the_pages_stands_twice() -> None:
    names = Counter(TOP_NAME.findall(joined(assets.ENTRY, assets.LATER)))
    assert len(names) > 50 and not [name for name, count in names.items() if count > 1]


def test_nothing_of_the_module_syntax_is_left_over() -> None:
    for script in (assets.script(), assets.later().body.decode()):
        assert not re.findall(r"^(?:import|export)\b.*|import\(", script, re.MULTILINE)


def test_every_script_of_the_pages_is_reached_from_the_entry() -> None:
    folders = (assets.ENTRY.parent, LOOK.parent)
    assert set(modules(assets.ENTRY, assets.LATER)) >= {path for folder in folders for path in folder.glob("*.js")}


def test_data_come_into_the_script_and_sheets_stand_beside_their_modules(tmp_path: Path) -> None:
    write(
        tmp_path,
        entry='import DATA from "./d.json" with { type: "json" };\nimport { a } from "./a.js";\n',
        a="export const a = 1;\n",
    )
    (tmp_path / "d.json").write_text('{"x": [1, "</script>"]}')
    (tmp_path / "a.css").write_text(".a { color: red; }")
    assert 'const DATA = {"x":[1,"</script>"]};' in joined(tmp_path / "entry.js")
    assert sheets(tmp_path / "entry.js").endswith(".a { color: red; }")


def test_what_comes_later_takes_names_from_what_is_there(tmp_path: Path) -> None:
    write(
        tmp_path,
        entry='import { a, b } from "./a.js";\nexport const c = () => import("./late.js");\n',
        a="export const a = 1;\nexport const b = 2;\n",
        late='import { b } from "./a.js";\nimport { e } from "./own.js";\nexport const d = b + e;\n',
        own='import {\n  a,\n} from "./a.js";\nexport const e = a;\n',
    )
    code, names = joined_later(tmp_path / "late.js", tmp_path / "entry.js")
    assert names == ["a", "b"] and "const d" in code and "const e" in code and "const a" not in code
    assert "window.seqdemo.later()" in joined(tmp_path / "entry.js")


def test_both_themes_have_the_same_colours_and_say_their_scheme() -> None:
    look = json.loads(LOOK.read_text("utf-8"))
    assert set(look["light"]["colours"]) == set(look["dark"]["colours"])
    assert "body { color-scheme: light; --s-ground: #f5f6f8;" in variables() and "body.dark { color-scheme: dark;" in variables()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_more_the_further_from_the_panel_behind(theme: str) -> None:
    """In both themes a larger weight stands out more, and so does a value further from 0."""

    def light(colour: str) -> float:
        channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(colour: str) -> float:
        high, low = sorted((light(colour), light(look["colours"]["panel"])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    look = json.loads(LOOK.read_text("utf-8"))[theme]
    assert [contrast(colour) for colour in look["scales"]["weights"]] == sorted(map(contrast, look["scales"]["weights"]))
    left, right = look["scales"]["signed"][3::-1], look["scales"]["signed"][3:]
    for half in (left, right):
        assert [contrast(colour) for colour in half] == sorted(map(contrast, half)) and contrast(half[0]) == 1


@needs_node
def test_every_import_names_something_that_is_exported(tmp_path: Path) -> None:
    """Node links the real modules; joining alone would not notice a name that nobody exports."""
    code = f'import("{assets.ENTRY.as_uri()}").then(() => console.log("linked"));'
    done = subprocess.run([str(NODE), "--input-type=module", "-e", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.strip() == "linked", done.stderr


def test_code_behind_a_comment_on_its_line_is_kept() -> None:
    code = "// a\n/** one */\n/** two\n * lines\n */\n  /** @type {any} */ (window).page = 1; /* b */\nlet c = 2; // d"
    assert lean(code) == "/** @type {any} */ (window).page = 1; /* b */\nlet c = 2; // d"
