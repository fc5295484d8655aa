"""The folder format: save and load a checkpoint. No content of a folder is trusted.

folder.py       plain files of bounded size, hashes against the manifest; where the shipped folders lie
description.py  config.json, key by key
weights.py      model.safetensors: the header against the model, then the numbers
pieces.py       tokenizer files, a stranger's first in a child process
checkpoint.py   Checkpoint; save; load of a folder
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqdemo.checkpoints.folder import Damaged, shared_folder, shipped_folder, write_manifest
from seqdemo.lazy import on_demand
from seqdemo.moved import with_old_names

if TYPE_CHECKING:
    from seqdemo.checkpoints.checkpoint import Checkpoint, save

__all__ = ["Checkpoint", "Damaged", "save", "shared_folder", "shipped_folder", "write_manifest"]
_MOVED = ("HubError", "LanguageModel", "Seq2Seq", "load", "look", "names", "push", "stand_ins", "Published", "Offer", "Key")
__getattr__ = with_old_names(
    __name__,
    on_demand(__name__, dict.fromkeys(("Checkpoint", "save"), "seqdemo.checkpoints.checkpoint")),
    {
        **dict.fromkeys(_MOVED, "seqdemo.hub"),
        "ModelShelf": "seqdemo.hub:VisitorModels",
        "bundled_folder": "seqdemo.checkpoints:shipped_folder",
    },
)
