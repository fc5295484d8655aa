"""The shipped weights that were made before recipes were recorded: the beginning of the sha256 of each model.safetensors.

New weights are in neither set, so a model that is trained again needs no change here; a test wants its recipe."""

from __future__ import annotations

import hashlib

from seqdemo.checkpoints import Checkpoint
from seqdemo.checkpoints.folder import WEIGHTS

ANOTHER_SHAPE = {"51ff440350fae817"}  # of transliterator-indic, whose recipe has another score now

EARLIER = {
    "b7de29342f9e0c03",  # captioner
    "2c566b307426708e",  # captioner-plain
    "6664ee6256ef3e6f",  # lm-c
    *ANOTHER_SHAPE,
}


def of_weights(checkpoint: Checkpoint) -> str:
    """What the sets hold of a checkpoint."""
    assert checkpoint.folder is not None
    return hashlib.sha256((checkpoint.folder / WEIGHTS).read_bytes()).hexdigest()[:16]
