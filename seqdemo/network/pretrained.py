"""The three methods that users of the Hub expect of a network: from_pretrained, save_pretrained, push_to_hub.

The packages `checkpoints` and `hub`, which import this one, put the functions that do the work into WAYS. They are loaded with
the public names of `seqdemo` (load, Seq2Seq, LanguageModel).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from seqdemo.errors import InputError

Self = TypeVar("Self", bound="Pretrained")
WAYS: dict[str, Callable[..., Any]] = {}


def way(name: str) -> Callable[..., Any]:
    if name not in WAYS:
        raise InputError(f"{name} comes with the public classes; write: from seqdemo import LanguageModel, Seq2Seq.")
    return WAYS[name]


class Pretrained(nn.Module):
    """A network that keeps what was loaded with it (tokenizers, card, figures), so that saving it again loses nothing."""

    baggage: Any = None

    @classmethod
    def from_pretrained(cls: type[Self], name: str | Path, revision: str | None = None, deadline: float | None = None) -> Self:
        """The network of a shipped checkpoint, a repository or a folder, ready to be trained or inspected. All names and shapes
        must match; no parameter is ever left at random values."""
        return way("from_pretrained")(cls, name, revision, deadline)  # type: ignore[no-any-return]

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write config.json, model.safetensors, whatever else was loaded with the network, and a manifest."""
        return way("save_pretrained")(self, folder)  # type: ignore[no-any-return]

    def push_to_hub(
        self, repo: str, private: bool = False, dry_run: bool = False, message: str = "", replace: bool = False
    ) -> Any:
        """Upload the same files as a repository, in one commit, and tell what was done. A repository that holds something else
        is refused, unless `replace`."""
        return way("push_to_hub")(self, repo, private, dry_run, message, replace)
