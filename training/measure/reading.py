"""A language model reads a long text in parts, many side by side: stretches of one length, each after a run-up that is read but
not counted, or passages that begin at given places.

R rows (parts), L characters counted in each, U units kept of the A of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from seqdemo.config import BOS, ModelConfig, terms
from seqdemo.network.model import Network

ROWS = 64
RUN_UP = 500
WINDOW = 100  # characters that are read at once


class Reading(NamedTuple):
    logps_RL: np.ndarray  # float64, log p of each character given all before it in its stretch
    states_RLU: np.ndarray | None  # float32, after reading characters: cells, or hidden vectors of a cell without


def stretches(first: int, end: int, rows: int = ROWS) -> tuple[np.ndarray, int]:
    """The beginnings of up to `rows` stretches of one length that cover first..end; the last may overlap the one before."""
    length = -(-(end - first) // rows)
    starts_R = np.arange(first, end, length)
    starts_R[-1] = end - length
    return starts_R, length


def passages(begins_P: np.ndarray, end: int, about: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of parts that cover a text from the first allowed place on. Each begins at an allowed place; its length
    is near `about`."""
    near_P = np.searchsorted(begins_P, np.arange(begins_P[0], begins_P[-1] + 1, about))
    starts_R = np.unique(begins_P[near_P])
    return starts_R, np.diff(starts_R, append=end)


@torch.inference_mode()
def read(
    model: Network,
    ids_N: np.ndarray,
    starts_R: np.ndarray,
    length: int,
    run_up: int,
    keep: Sequence[int] = (),
    every: int = 1,
) -> Reading:
    """Each part is ids[start : start + length], after <bos> and the `run_up` characters before it. The states of the units in
    `keep` (numbered through all layers) are kept after every `every`-th character."""
    width = run_up + length
    target_RT = torch.from_numpy(np.stack([ids_N[start - run_up : start + length] for start in starts_R]))
    given_RT = torch.cat([torch.full((len(target_RT), 1), BOS), target_RT], 1)
    held = memory_terms(model.config)
    state, logps, states = None, [], []
    for first in range(0, width + bool(keep), WINDOW):
        read_RW = given_RT[:, first : min(first + WINDOW, width + bool(keep))]
        taught = model.teach(None, None, read_RW, keep=held if keep else (), state=state)
        state = taught.state
        counted = slice(max(0, run_up - first), max(0, width - first))
        said_RW1 = target_RT[:, first : first + WINDOW][:, counted, None]
        if said_RW1.shape[1]:
            logp_RWV = model.readout(taught.features_BTR[:, counted]).log_softmax(2)
            logps.append(logp_RWV.gather(2, said_RW1).squeeze(2))
        if keep:
            wanted_W = torch.arange(first, first + read_RW.shape[1]) - run_up - 1
            states_RWA = torch.cat([taught.seen[name] for name in held], 2)
            states.append(states_RWA[:, (wanted_W >= 0) & (wanted_W % every == 0)][:, :, list(keep)])
    kept = torch.cat(states, 1).numpy() if keep else None
    return Reading(torch.cat(logps, 1).double().numpy(), kept)


def memory_terms(config: ModelConfig) -> list[str]:
    """The memory of the cells of all layers: the cell state, or the hidden vector if there is none."""
    term = "cell" if "cell" in terms(config.cell) else "hidden"
    return [f"decoder.{layer}.{term}" for layer in range(config.decoder_layers)]
