"""A language model reads a long text in parts, many side by side: stretches of one length, each after a run-up that is read
but not counted, or passages that begin where one may.

R rows (parts), L characters counted in each, U units kept of the A of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from seqdemo.config import BOS
from seqdemo.model import LanguageModel

ROWS = 64
RUN_UP = 500


class Reading(NamedTuple):
    logps_RL: np.ndarray  # float64, log p of each character given all before it in its stretch
    states_RLU: np.ndarray | None  # float32, after reading characters: cells, or hidden vectors of a cell without


def stretches(first: int, end: int, rows: int = ROWS) -> tuple[np.ndarray, int]:
    """Where up to `rows` stretches of one length begin so that they cover first..end; the last may overlap the one before."""
    length = -(-(end - first) // rows)
    starts_R = np.arange(first, end, length)
    starts_R[-1] = end - length
    return starts_R, length


def passages(begins_P: np.ndarray, end: int, about: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of parts that cover a text from the first of the places where one may begin, each beginning at such a
    place and `about` so long."""
    near_P = np.searchsorted(begins_P, np.arange(begins_P[0], begins_P[-1] + 1, about))
    starts_R = np.unique(begins_P[near_P])
    return starts_R, np.diff(starts_R, append=end)


@torch.inference_mode()
def read(
    model: LanguageModel,
    ids_N: np.ndarray,
    starts_R: np.ndarray,
    length: int,
    run_up: int,
    keep: Sequence[int] = (),
    every: int = 1,
) -> Reading:
    """Each part is ids[start : start + length], after <bos> and the `run_up` characters before it; the states kept are those
    of the units named, counted through all layers, after the first of `every` so many characters."""
    width = run_up + length
    target_RT = torch.from_numpy(np.stack([ids_N[start - run_up : start + length] for start in starts_R]))
    given_RT = torch.cat([torch.full((len(target_RT), 1), BOS), target_RT], 1)
    state = model.start(len(target_RT))
    logps, states = [], []
    for t in range(width + bool(keep)):
        zx_RG = model.stack.first.project(model.embed_target(given_RT[:, t]))
        r_RR, state, _ = model.read(zx_RG, state)
        if run_up <= t < width:
            logps_RV = torch.log_softmax(model.readout(r_RR), 1)
            logps.append(logps_RV.gather(1, target_RT[:, t : t + 1]))
        if keep and t > run_up and (t - run_up - 1) % every == 0:
            states_RA = torch.cat([layer.c if hasattr(layer, "c") else layer.h for layer in state.layers], 1)
            states.append(states_RA[:, keep])
    kept = torch.stack(states, 1).numpy() if keep else None
    return Reading(torch.cat(logps, 1).double().numpy(), kept)
