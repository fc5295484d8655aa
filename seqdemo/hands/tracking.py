"""The units of a language model that follow a place in the text, such as a quotation, held together; and whether it still closes.

Both are computed from the current weights over recorded passages of dev text (`python -m training sample`), each of which begins
where the place opens. A unit follows the place if its value tells inside from outside: AUC, the share of pairs (a letter inside,
a letter outside) that the value puts in the right order. Where several units carry the same fact, holding one of them may
change little: the others go on telling it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from seqdemo.checkpoints import Checkpoint
from seqdemo.checkpoints.folder import shipped_folder
from seqdemo.config import BOS, SearchOptions, terms
from seqdemo.edits import ClampGate, Edit
from seqdemo.errors import InputError
from seqdemo.figures.places import labels_of
from seqdemo.findings import Closing, Follower, Followers
from seqdemo.hands.place import Cancel, Progress, stop_if
from seqdemo.hands.sample import FILE, key_of, recorded
from seqdemo.network.model import Network
from seqdemo.playground import Run, checkpoint_of, find, network_of
from seqdemo.prompts import prepare, tokenizer

GIVEN, WRITTEN = 40, 300  # letters of a passage that the model reads, and that it writes at most
TOGETHER = 10  # texts that are continued at once; between two batches the work can be stopped
SURE, MOST = 0.95, 6  # the least AUC of a unit that is held, and how many are held at most
DRAWN = SearchOptions(strategy="sample", temperature=0.8, max_length=WRITTEN)
CLOSED = {  # a place: what ends it, in all that was read and written
    "quotation": r'"(?:(?!\n\n)[^"])*(?<!\s)"',  # a mark after a blank would open another one
    "comment": r"/\*(?:(?!/\*).)*?\*/",  # another beginning proves that it was forgotten
}


class Passages(NamedTuple):
    place: str
    title: str
    texts: tuple[str, ...]


def passages_for(checkpoint: Checkpoint, place: str = "") -> Passages:
    """The recorded passages that begin inside a place; without a name, inside the first one that was recorded."""
    known = recorded(shipped_folder() / FILE).get(key_of(checkpoint), {}) if checkpoint.task == "complete" else {}
    texts = {name: each for name, each in known.get("passages", {}).items() if each}
    place = place or next(iter(texts), "quotation")
    if place not in texts:
        among = f"; there are some for {', '.join(texts)}" if texts else ""
        raise InputError(f"There are no recorded passages of dev text with a {place} for {checkpoint.name}{among}.")
    return Passages(place, known["title"].partition(" characters of ")[2], tuple(texts[place]))


@torch.inference_mode()
def followers(checkpoint: Checkpoint | Network, place: str = "") -> Followers:
    """The units whose value tells best whether a letter stands inside the place, and the clamps that hold them together as they
    are on the average outside it, or inside it."""
    checkpoint = checkpoint_of(checkpoint)
    place, title, texts = passages_for(checkpoint, place)
    network, text = network_of(checkpoint), tokenizer(checkpoint.target_text)
    ids = [text.encode(passage).ids for passage in texts]
    read_BT = pad_sequence([torch.tensor((BOS, *each)) for each in ids], batch_first=True)
    what = "cell" if "cell" in terms(network.config.cell) else "hidden"
    names = [f"decoder.{layer}.{what}" for layer in range(network.config.decoder_layers)]
    seen = network.teach(None, None, read_BT, keep=names).seen
    values_NU = np.concatenate(
        [torch.cat([seen[name][row, 1 : len(each) + 1] for name in names], 1) for row, each in enumerate(ids)]
    )
    inside_N = np.concatenate([labels_of(passage)[place] > 0 for passage in texts])
    auc_U = aucs(values_NU.astype(np.float64), inside_N)
    apart_U = np.abs(auc_U - 0.5)
    best = [int(unit) for unit in (-apart_U).argsort(kind="stable")[:MOST]]
    chosen = [best[0], *(unit for unit in best[1:] if apart_U[unit] >= SURE - 0.5)]
    size, outside_U, within_U = network.config.decoder_hidden, values_NU[~inside_N].mean(0), values_NU[inside_N].mean(0)

    def held(values_U: np.ndarray) -> tuple[ClampGate, ...]:
        places = (divmod(unit, size) for unit in chosen)
        return tuple(
            ClampGate("decoder", what, round(float(values_U[layer * size + unit]), 3), layer, units=(unit,))
            for layer, unit in places
        )

    units = tuple(Follower(unit // size, unit % size, float(auc_U[unit])) for unit in chosen)
    return Followers(place, title_of(texts, title), what, units, held(outside_U), held(within_U))


def aucs(values_NU: np.ndarray, inside_N: np.ndarray) -> np.ndarray:
    """P(the value inside > the value outside) of each unit, by the ranks of the values; ties count half."""
    inside, outside = int(inside_N.sum()), int((~inside_N).sum())
    sums_U = np.array([midranks(values_N)[inside_N].sum() for values_N in values_NU.T])
    return np.asarray((sums_U - inside * (inside + 1) / 2) / (inside * outside))


def midranks(values_N: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, group_N, sizes = np.unique(values_N, return_inverse=True, return_counts=True)
    return np.asarray((sizes.cumsum() - (sizes - 1) / 2.0)[group_N])


def closing(
    checkpoint: Checkpoint | Network,
    run: Run,
    place: str = "",
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Closing:
    """Of texts that begin inside the place, how many close it: as the model is, and under those edits of the run that hold gates
    or units at all steps. Both draw with the same random numbers."""
    checkpoint = checkpoint_of(checkpoint)
    place, title, texts = passages_for(checkpoint, place)
    clamps = tuple(edit for edit in run.edits if isinstance(edit, ClampGate) and edit.positions is None)
    if not clamps:
        raise InputError("Nothing is held at all steps: hold a unit or a gate first, then count.")
    written: dict[bool, list[str]] = {False: [], True: []}
    for start in range(0, len(texts), TOGETHER):
        for held, said in written.items():
            stop_if(cancel)
            said += continued(checkpoint, texts[start : start + TOGETHER], clamps if held else ())
            if progress:
                progress(sum(map(len, written.values())), 2 * len(texts))
    free, under = (sum(closes(place, text) for text in said) for said in written.values())
    return Closing(place, title_of(texts, title), GIVEN, len(texts), free, under, tuple(written[False]), tuple(written[True]))


def continued(checkpoint: Checkpoint, texts: Sequence[str], edits: tuple[Edit, ...]) -> list[str]:
    """The beginning of each text, as the model goes on with it."""
    begun = [text[:GIVEN] for text in texts]
    found = find(checkpoint, [prepare(checkpoint, text) for text in begun], DRAWN, edits, record=False)
    piece = tokenizer(checkpoint.target_text).piece
    return [text + "".join(map(piece, each.hypotheses[0].tokens)) for text, each in zip(begun, found)]


def title_of(texts: Sequence[str], title: str) -> str:
    return f"{len(texts)} passages of {title}"


def closes(place: str, text: str) -> bool:
    """Whether the place with which the text begins is closed: a quotation by a mark directly after a word or a stop, before any
    other mark and in the same paragraph; a comment by its end, before another begins."""
    return re.match(CLOSED[place], text, re.DOTALL) is not None
