"""What an output depends on, under the edits of its run: gradients, gradients through time, and erasure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqdemo.checkpoints import Checkpoint
from seqdemo.explain import gradients
from seqdemo.explain.erasure import erased
from seqdemo.network.model import Network
from seqdemo.playground import Run, checkpoint_of, network_of, said
from seqdemo.prompts import tokenizer
from seqdemo.records import Erasure


def connectivity(checkpoint: Checkpoint | Network, run: Run, tokens: Sequence[int], position: int) -> np.ndarray:
    """How the log probability of the piece at `position` changes with each embedding read (source position x embedding),
    under the run's edits. It is computed with the float32 weights, whatever precision the run was searched in."""
    network, target = said(checkpoint_of(checkpoint), run.prompt, tokens)
    return gradients.connectivity(network, run.prompt.source, target, position, run.edits)


def gradient_norms(
    checkpoint: Checkpoint | Network, run: Run, tokens: Sequence[int] = (), direction: str = "forward", layer: int = 0
) -> np.ndarray:
    """How far a small change of each state moves the last one, under the run's edits. The states are those of an encoder's
    layer; with `tokens`, of the decoder that says them; for a language model, of a layer while it reads the text and
    `tokens`. They are computed with the float32 weights, whatever precision the run was searched in."""
    network, source = network_of(checkpoint_of(checkpoint)), run.prompt.source
    if source is None:
        return gradients.gradient_norms(network, run.prompt.prefix + tuple(tokens), direction, layer, edits=run.edits)
    return gradients.gradient_norms(network, source, direction, layer, tuple(tokens), run.edits)


def erase(checkpoint: Checkpoint | Network, run: Run, tokens: Sequence[int], how: str = "mean") -> Erasure:
    """How much the probability of each piece drops when one source position is removed, under the run's edits. `how`: 'mean'
    replaces it by the mean embedding, 'mask' hides it from attention."""
    checkpoint = checkpoint_of(checkpoint)
    network, target = said(checkpoint, run.prompt, tokens)
    piece = tokenizer(checkpoint.target_text).piece
    logps_T, change_TS = erased(network, run.prompt.source, target, run.edits, how)
    return Erasure(run.prompt.pieces.strings, tuple(map(piece, target)), target, how, logps_T, change_TS)
