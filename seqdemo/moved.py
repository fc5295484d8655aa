"""Old names go on working for one release, with a warning that tells the new name:

from seqdemo.cells import LSTM      DeprecationWarning: seqdemo.cells is now seqdemo.network.cells.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {
    **{f"seqdemo.{name}": f"seqdemo.network.{name}" for name in ("attention", "cells", "cnn", "model")},
    **{f"seqdemo.{name}": "seqdemo.network.coders" for name in ("decoders", "encoders", "network.decoders", "network.encoders")},
    "seqdemo.network.protocol": "seqdemo.network.model",
    **dict.fromkeys(("seqdemo.whatif", "seqdemo.network.whatif"), "seqdemo.network.attention"),
    "seqdemo.gradients": "seqdemo.explain.gradients",
    "seqdemo.trace": "seqdemo.explain.replay",
    **dict.fromkeys(("seqdemo.search.recording", "seqdemo.search.slots"), "seqdemo.search.hypotheses"),
    "seqdemo.products": "seqdemo.network.packed",
    "seqdemo.search.choosers": "seqdemo.search.walk",
    "seqdemo.search.lockstep": "seqdemo.search.exact",
    "seqdemo.search.ranking": "seqdemo.search.beam",
}


def warn(old: str, new: str, level: int) -> None:
    warnings.warn(f"{old} is now {new}; the old name goes with the next release.", DeprecationWarning, level)


class Moved(MetaPathFinder, Loader):
    """Finds the modules listed in MODULES by their old names."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MODULES else None

    def exec_module(self, module: ModuleType) -> None:
        new = MODULES[module.__name__]
        warn(module.__name__, new, 4)
        module.__dict__.update({name: value for name, value in vars(import_module(new)).items() if not name.startswith("__")})


def keep_old_modules() -> None:
    if not any(isinstance(finder, Moved) for finder in sys.meta_path):
        sys.meta_path.append(Moved())


def with_old_names(package: str, get: Callable[[str], Any], homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__` that also finds moved names. `homes` says where each is now: a package, or "package:new
    name"."""

    def found(name: str) -> Any:
        if name not in homes:
            return get(name)
        home, _, other = homes[name].partition(":")
        warn(f"{package}.{name}", f"{home}.{other or name}", 3)
        return getattr(import_module(home), other or name)

    return found
