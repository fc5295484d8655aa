"""`select` and `join`: the only code that walks a recurrent state.

A state is any nest of NamedTuples, tuples, dicts and tensors. The first axis of every tensor is the beam row (K), except
inside a `Memory`, which holds one row a sentence (B): K = B * beams, sentence-major, so the encoder output is never tiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Memory(NamedTuple):
    """What any encoder hands over, one row a sentence."""

    states_BSH: Tensor
    mask_BS: Tensor  # bool, True at real positions
    summary_BH: Tensor
    keys_BSA: Tensor | None = None  # the decoder's projection of states, made once by Decoder.prepare
    context_BSG: Tensor | None = None  # states already multiplied by the cell's context weights, likewise
    padding_B1S: Tensor | None = None  # bool, True at padding; None where there is none, or before Decoder.prepare


def select(state: Any, rows_K: Tensor, sentences_B: Tensor | None = None) -> Any:
    """The state of the given beam rows; with `sentences_B`, a Memory keeps only those sentences."""
    if isinstance(state, Memory):
        if sentences_B is None:
            return state
        return Memory._make(None if leaf is None else leaf.index_select(0, sentences_B) for leaf in state)
    if isinstance(state, Tensor):
        return state.index_select(0, rows_K)
    if isinstance(state, tuple):
        leaves = [select(leaf, rows_K, sentences_B) for leaf in state]
        return type(state)(*leaves) if hasattr(state, "_fields") else tuple(leaves)
    if isinstance(state, dict):
        return {name: select(leaf, rows_K, sentences_B) for name, leaf in state.items()}
    return state


def join(states: Sequence[Any]) -> Any:
    """One state of all their rows and sentences, in order; the states must be alike but for these."""
    first = states[0]
    if isinstance(first, Tensor):
        return torch.cat(list(states))
    if isinstance(first, tuple):
        leaves = [join(leaf) for leaf in zip(*states)]
        return type(first)(*leaves) if hasattr(first, "_fields") else tuple(leaves)
    if isinstance(first, dict):
        return {name: join([state[name] for state in states]) for name in first}
    return first
