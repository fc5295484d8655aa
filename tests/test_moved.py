"""Names of the previous release still work, with a warning that tells the new name."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import pytest

from seqdemo import checkpoints, figures, hub, moved, search


@pytest.mark.parametrize("old", sorted(moved.MODULES))
def test_a_module_is_found_by_its_old_name(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {moved.MODULES[old]}; the old name goes with the next release"):
        module = importlib.import_module(old)
    real = importlib.import_module(moved.MODULES[old])
    assert {name: value for name, value in vars(module).items() if not name.startswith("__")} == {
        name: value for name, value in vars(real).items() if not name.startswith("__")
    }
    assert real.__name__ == moved.MODULES[old] and real.__spec__.name == moved.MODULES[old]  # type: ignore[union-attr]


def test_what_left_a_package_is_found_there_with_a_warning() -> None:
    for name in ("load", "push", "HubError", "names"):
        with pytest.warns(DeprecationWarning, match=f"seqdemo.checkpoints.{name} is now seqdemo.hub.{name}"):
            assert getattr(checkpoints, name) is getattr(hub, name)
    with pytest.warns(DeprecationWarning, match=r"seqdemo\.figures\.saturation is now seqdemo\.figures\.gates"):
        assert figures.saturation is figures.gates
    for old, new in (("Found", "SearchResult"), ("search_error", "error_between")):
        with pytest.warns(DeprecationWarning, match=rf"seqdemo\.search\.{old} is now seqdemo\.search\.{new}"):
            assert getattr(search, old) is getattr(search, new)
    for package in (checkpoints, figures, search):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            package.nothing  # noqa: B018


def test_nothing_of_the_project_uses_an_old_name() -> None:
    code = "import seqdemo.playground, seqdemo.commandline, seqdemo.hub, seqdemo.explain.gradients, seqdemo.ui.launch"
    done = subprocess.run([sys.executable, "-W", "error::DeprecationWarning:seqdemo", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_never_was_is_still_missing() -> None:
    with warnings.catch_warnings(), pytest.raises(ModuleNotFoundError):
        warnings.simplefilter("error")
        importlib.import_module("seqdemo.nothing")
