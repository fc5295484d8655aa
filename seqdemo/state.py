"""The values that networks exchange with their users: the state (only `select` and `join` go through its parts), the result of a
step, and its scores.

What a state may be:

* any nest of NamedTuples, tuples, dicts and tensors; anything else (None, a name) is the same for all rows and stays.
* The first axis of every tensor is the beam row (K), except inside a `Memory`, which holds one row per sentence (B):
  K = B * beams, sentence-major, so the encoder output is never tiled.
* A tensor may grow by one along its second axis at each step, as the keys of all that was read do. Where states of different
  depth are joined, the shorter ones are padded with 0 at the end. So the state of such a network must also hold how many tokens
  each row has read; the network writes new entries at that place (`grown`) and reads no further.
* A step returns a new state and does not change the old one, because others may continue from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

ATTENTION = ("cross", "self", "distribution")  # hard attention: cross is the one position, chosen from the distribution
BLOCKS = range(64, 129)  # sizes of a block
MANY = 2**18  # for at least so many numbers, a top-k by blocks is faster, although it takes more operations
Seen = dict[str, Tensor]  # by name
Told = tuple[tuple[str, Seen], ...]


class Logits(NamedTuple):
    """Scores of the next token: log p = values - total, where total = log sum exp(values) is taken once."""

    values_KV: Tensor
    total_K1: Tensor

    @staticmethod
    def of(scores: Logits | Tensor) -> Logits:
        """Scores as Logits; a plain tensor holds log probabilities already."""
        return scores if isinstance(scores, Logits) else Logits(scores, scores.new_zeros(len(scores), 1))


Scores = Logits | Tensor
StepFunction = Callable[[Tensor, Any], tuple[Scores, Any]]  # the last tokens and the state -> scores of the next, the state


def logp_of(scores: Scores) -> Tensor:
    """Log probabilities of all tokens."""
    return scores.values_KV - scores.total_K1 if isinstance(scores, Logits) else scores


def arrays(tensors: tuple[Tensor, ...]) -> Iterator[np.ndarray]:
    return (tensor.numpy() for tensor in tensors)


def top(scores_KV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row, largest first, equal ones by lower index (`torch.topk` leaves their order open).

    One more than `count` is computed. Only in rows where it equals the last one taken is the choice ambiguous, and only there
    are all equals looked up.
    """
    width = scores_KV.shape[1]
    count = min(count, width)
    values_KC, places_KC = largest(scores_KV, min(count + 1, width))
    value_KC, place_KC = values_KC.numpy(), places_KC.numpy()  # NumPy compares so few numbers sooner than torch
    if (value_KC[:, 1:] == value_KC[:, :-1]).any():
        places_KC = torch.from_numpy(_settle_ties(scores_KV.numpy(), value_KC, place_KC, count))
    return values_KC[:, :count], places_KC[:, :count]


def largest(scores_KV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`torch.topk`; over many rows of many numbers in two thirds of its time, by looking only into the `count` blocks of
    each row with the largest maxima: the others hold none that these do not match."""
    rows, width = scores_KV.shape
    block = block_of(width) if scores_KV.numel() >= MANY and scores_KV.is_contiguous() else 0
    blocks = width // block if block else 0
    if blocks < 4 * count:
        return scores_KV.topk(count, dim=1)
    blocks_NM = scores_KV.view(-1, block)
    block_KC = blocks_NM.amax(1).view(rows, blocks).topk(count, dim=1, sorted=False).indices
    first_K1 = torch.arange(rows)[:, None] * blocks
    values_KC, at_KC = blocks_NM.index_select(0, (block_KC + first_K1).flatten()).view(rows, -1).topk(count, dim=1)
    return values_KC, block_KC.gather(1, at_KC.div(block, rounding_mode="floor")) * block + at_KC % block


@cache
def block_of(width: int) -> int:
    """The size of the blocks of a row: it divides the row, and is close to a multiple of 32, because 32 numbers are compared at
    once."""
    return min((size for size in BLOCKS if width % size == 0), key=lambda size: size % 32, default=0)


def _settle_ties(scores_KV: np.ndarray, value_KC: np.ndarray, place_KC: np.ndarray, count: int) -> np.ndarray:
    """The same places, with equal values ordered by place. If a row holds the smallest of these values more than once, the first
    places that hold it are taken."""
    run_KC = np.zeros_like(place_KC)
    (value_KC[:, 1:] != value_KC[:, :-1]).cumsum(1, out=run_KC[:, 1:])
    place_KC = np.take_along_axis(place_KC, (run_KC * scores_KV.shape[1] + place_KC).argsort(1), 1)
    if value_KC.shape[1] > count:
        last_K = value_KC[:, count - 1]
        for row in np.flatnonzero((last_K == value_KC[:, count]) & np.isfinite(last_K)):
            first = int((value_KC[row] == last_K[row]).argmax())
            place_KC[row, first:count] = np.flatnonzero(scores_KV[row] == last_K[row])[: count - first]
    return place_KC


class Memory(NamedTuple):
    """The result of an encoder, one row per sentence."""

    states_BSH: Tensor
    mask_BS: Tensor  # bool, True at real positions
    summary_BH: Tensor
    prepared: Any = None  # what the decoder computes once per sentence (keys, products with its weights), any nest
    padding_B1S: Tensor | None = None  # bool, True at padding; None where there is none, or before Decoder.prepare


def select(state: Any, rows_K: Tensor, sentences_B: Tensor | None = None) -> Any:
    """The state of the given beam rows; with `sentences_B`, a Memory keeps only those sentences."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows_K)
    if isinstance(state, Memory):
        return state if sentences_B is None else Memory._make(select(leaf, sentences_B) for leaf in state)
    if isinstance(state, tuple):
        leaves = [select(leaf, rows_K, sentences_B) for leaf in state]
        return type(state)(*leaves) if hasattr(state, "_fields") else tuple(leaves)
    if isinstance(state, dict):
        return {name: select(leaf, rows_K, sentences_B) for name, leaf in state.items()}
    return state


def join(states: Sequence[Any]) -> Any:
    """One state with all rows and sentences, in order. The states may differ in these and in their depth, in nothing else."""
    first = states[0]
    if isinstance(first, Tensor):
        return torch.cat(equally_deep(states))
    if isinstance(first, tuple):
        leaves = [join(leaf) for leaf in zip(*states)]
        return type(first)(*leaves) if hasattr(first, "_fields") else tuple(leaves)
    if isinstance(first, dict):
        return {name: join([state[name] for state in states]) for name in first}
    return first


def equally_deep(leaves: Sequence[Tensor]) -> list[Tensor]:
    """The same tensors, padded with 0 to equal length along the second axis."""
    if leaves[0].dim() < 2 or len({leaf.shape[1] for leaf in leaves}) == 1:
        return list(leaves)
    deepest = max(leaf.shape[1] for leaf in leaves)
    return [torch.cat([leaf, leaf.new_zeros(len(leaf), deepest - leaf.shape[1], *leaf.shape[2:])], 1) for leaf in leaves]


def grown(leaf_KT: Tensor, new_K: Tensor, position_K: Tensor) -> Tensor:
    """A leaf with one more entry per row, at the row's own place: the number of tokens it has read (K, T + 1, ...)."""
    after_KT = torch.cat([leaf_KT, new_K[:, None]], 1)
    behind_K = position_K != leaf_KT.shape[1]
    if behind_K.any():
        after_KT[behind_K, -1] = 0
        after_KT[torch.arange(len(new_K)), position_K] = new_K
    return after_KT


class Step(NamedTuple):
    """The result of one step. `told` holds everything of interest that it computed, by part and name: ('decoder.0', {'forget':
    (K, units), 'context': ...}). Attention, 'cross' or 'self', has an axis for its heads (K, heads, positions)."""

    features_KR: Tensor
    state: Any
    told: Told

    @property
    def seen(self) -> Seen:
        """The same by path: 'decoder.0.forget'. A search never asks for it."""
        return {f"{part}.{name}": value for part, named in self.told for name, value in named.items()}


class Taught(NamedTuple):
    """The result of a teacher-forced pass: the input of the readout at every step (with dropout in training), the state after
    the last token, and the values asked for, B x T x ... of the decoder and B x S x ... of the encoder."""

    features_BTR: Tensor
    state: Any
    seen: Seen


def is_kept(name: str, keep: Collection[str]) -> bool:
    """Whether `keep` names this value, by its whole path or by the last part of it."""
    return name in keep or name.rpartition(".")[2] in keep


def by_head(seen: Seen) -> Seen:
    """Attention by its heads: 'decoder.0.cross' (..., heads, positions) becomes 'decoder.0.cross.0' and so on."""
    found: Seen = {}
    for name, value in seen.items():
        if name.rpartition(".")[2] in ATTENTION:
            found.update((f"{name}.{head}", row) for head, row in enumerate(value.unbind(-2)))
        else:
            found[name] = value
    return found


def stacked(steps: list[Tensor]) -> Tensor:
    """One value of every step, B x T x ... If its last axis grows from step to step, missing entries are 0."""
    longest = steps[-1].shape[-1]
    if steps[0].shape[-1] != longest:
        steps = [nn.functional.pad(step, (0, longest - step.shape[-1])) for step in steps]
    return torch.stack(steps, 1)
