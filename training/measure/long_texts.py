"""Measurements of a language model: nats per character, and the units that track a place in the text. Both read the whole text.
The work is shared among ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import terms
from seqdemo.figures.places import Labels, labels_of
from seqdemo.network.model import Network
from training.data.batches import PASSAGE, openings
from training.measure import units
from training.measure.decoding import batches, shared
from training.measure.metrics import nats_per_character
from training.measure.reading import RUN_UP, passages, read, stretches

ROWS = 16  # passages of similar length, read side by side
DEV_CHARACTERS = 80_000  # evenly spread over the dev text, whose states are kept of all units


def ids_of(checkpoint: Checkpoint, text: str) -> tuple[np.ndarray, int]:
    """The ids of a text, and how many of its characters are unknown to the model."""
    assert checkpoint.target_text is not None
    pieces = checkpoint.target_text.encode(text)
    return np.array(pieces.ids), len(pieces.known) - sum(pieces.known)


def nats(checkpoint: Checkpoint, before: str, text: str) -> dict[str, Any]:
    """Nats per character of a text that follows `before`. Each stretch of it is read after the RUN_UP characters before it, or
    as many as there are."""
    (context_N, _), (text_N, unknown) = ids_of(checkpoint, before[-RUN_UP:]), ids_of(checkpoint, text)
    ids_N, begin = np.concatenate([context_N, text_N]).astype(np.int64), len(context_N)
    starts_R, length = stretches(begin, len(ids_N))
    run_up_R = np.minimum(starts_R, RUN_UP)

    def work(mine: list[int]) -> list[np.ndarray]:
        assert isinstance(checkpoint.model, Network)
        logps: dict[int, np.ndarray] = {}
        for run_up in np.unique(run_up_R[mine]).tolist():
            rows = [row for row in mine if run_up_R[row] == run_up]
            logps.update(zip(rows, read(checkpoint.model, ids_N, starts_R[rows], length, run_up).logps_RL))
        return [logps[row] for row in mine]

    logps_N = np.empty(len(text_N))
    for start, logps_L in zip(starts_R, shared(work, range(len(starts_R)))):
        logps_N[start - begin : start - begin + length] = logps_L
    return {
        "nats_per_character": nats_per_character(logps_N.tolist(), len(logps_N)),
        "characters": len(logps_N),
        "unknown_characters": unknown,
        "run_up": begin,
        "stretches": len(starts_R),
    }


def tracking_units(checkpoint: Checkpoint, dev: str, test: str) -> dict[str, Any]:
    """Chosen on the dev text, measured on the test text; `layer` and `unit` count from 0."""
    model = checkpoint.model
    assert isinstance(model, Network)
    hidden = model.config.decoder_hidden
    every = -(-len(dev) // DEV_CHARACTERS)
    dev_NU, dev_labels = states_and_labels(checkpoint, dev, range(hidden * model.config.decoder_layers), every)
    chosen = units.choose(dev_NU, dev_labels)
    test_NU, test_labels = states_and_labels(checkpoint, test, [choice.unit for choice in chosen.values()])
    found = {}
    for (name, choice), values_N in zip(chosen.items(), test_NU.T):
        layer, unit = divmod(choice.unit, hidden)
        found[name] = {**units.judge(name, choice, values_N, test_labels[name]), "layer": layer, "unit": unit}
    state = "cell" if "cell" in terms(model.config.cell) else "hidden"
    return {"characters": len(dev_NU), "test_characters": len(test_NU), "state": state, **found}


def states_and_labels(checkpoint: Checkpoint, text: str, kept: Sequence[int], every: int = 1) -> tuple[np.ndarray, Labels]:
    """States and labels after every `every`-th character. The text is read in passages like those of training: of the same
    length, from the beginning of a paragraph where no quotation or bracket is open."""
    ids_N, _ = ids_of(checkpoint, text)
    labels = labels_of(text)
    begins_P = [place for place in openings(ids_N, ids_of(checkpoint, "\n")[0][0]) if units.nothing_open(labels, place)]
    starts_R, lengths_R = passages(np.array(begins_P), len(ids_N), PASSAGE)
    padded_N = np.pad(ids_N, (0, lengths_R.max()))

    def work(mine: list[int]) -> list[np.ndarray]:
        assert isinstance(checkpoint.model, Network)
        states: list[np.ndarray] = []
        for rows in batches(mine, ROWS):
            states_RLU = read(checkpoint.model, padded_N, starts_R[rows], lengths_R[rows].max(), 0, kept, every).states_RLU
            assert states_RLU is not None
            states += [states_LU[: -(-length // every)] for states_LU, length in zip(states_RLU, lengths_R[rows])]
        return states

    states_NU = np.concatenate(shared(work, lengths_R.argsort(kind="stable").tolist()))
    places_N = np.concatenate([np.arange(start, start + length, every) for start, length in zip(starts_R, lengths_R)])
    return states_NU, {name: labels_N[places_N] for name, labels_N in labels.items()}
