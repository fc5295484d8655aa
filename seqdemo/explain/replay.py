"""Replay: one teacher-forced pass over given tokens that keeps everything a person may want to look at; and what edits cost.

A replay shares no code with the search, and so checks it: its log probabilities are those of the hypothesis.

A price is the log probability with an edit against without it, all others being in force on both sides. Rows, blends and
clamps are judged on the new output. Words (force, ban, require) change what is said, so the new output is judged against the
one that the search finds without the word, by the model under the edits inside it. Everything is scored in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqdemo.config import BOS, EOS, PAD, TOLERANCE, ModelConfig, plain, terms
from seqdemo.edits import Ban, ClampGate, Edit, Force, Require, check_edits, edit_to_json, is_word, whole
from seqdemo.errors import InputError
from seqdemo.findings import Badge
from seqdemo.network.attention import WhatIf, what_if_of
from seqdemo.network.model import NEVER_SAID, Network, log_probabilities, refuse_devices
from seqdemo.numerals import RAISED
from seqdemo.records import Price, Trace
from seqdemo.state import ATTENTION, Taught

Source = Sequence[int] | Tensor | None  # piece numbers, a picture (or its grid), or nothing for a language model
ALTERNATIVES = 10
WHOLE = {"transliterate": "word", "complete": "text"}  # what an output is called; elsewhere a sentence
SAME = math.log(1.05)  # outputs closer than this are called equally likely


def source_tensors(source: Source) -> tuple[Tensor, Tensor | None]:
    if isinstance(source, Tensor):
        return (source if source.dim() in (4, 3) and source.shape[0] == 1 else source[None]), None
    ids_1S = torch.tensor([list(source or ())], dtype=torch.long)
    return ids_1S, torch.ones_like(ids_1S, dtype=torch.bool)


def source_rows(source: Source, rows: int) -> tuple[Tensor, Tensor | None]:
    """The source in `rows` equal rows, and its mask."""
    source_1S, mask_1S = source_tensors(source)
    return source_1S.expand(rows, *source_1S.shape[1:]), None if mask_1S is None else mask_1S.expand(rows, -1)


def inputs_of(*outputs: Sequence[int]) -> Tensor:
    """What a decoder reads in order to say these outputs, one per row: <bos>, then all tokens but the last."""
    rows = [torch.tensor((BOS, *output[:-1]), dtype=torch.long) for output in outputs]
    return pad_sequence(rows, batch_first=True, padding_value=PAD)


def taught(
    network: Network, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = (), keep: Collection[str] = ()
) -> Taught:
    """One teacher-forced pass under the edits inside the network. Edits of words have no effect, because the tokens are
    given."""
    return network.teach(*source_tensors(source), inputs_of(target), what_if_of(edits), keep)


def scored(
    network: Network,
    source: Tensor | None,
    mask_BS: Tensor | None,
    outputs: Sequence[Sequence[int]],
    what_if: WhatIf | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each output of a batch: the log probability of each of its tokens, and that of the likeliest token in its place."""
    features_BTR = network.teach(source, mask_BS, inputs_of(*outputs), what_if).features_BTR
    for output, features_TR in zip(outputs, features_BTR):
        logp_TV = log_probabilities(network.readout(features_TR[: len(output)]))
        yield logp_TV.gather(1, torch.tensor(output)[:, None]).squeeze(1), logp_TV.amax(1)


def distributions(network: Network, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = ()) -> Tensor:
    """The log probability of every token at every step (T, V)."""
    return log_probabilities(network.readout(taught(network, source, target, edits).features_BTR[0]))


def shown(config: ModelConfig) -> tuple[str, ...]:
    """What a Trace keeps: the terms of cells, and attention."""
    return (*terms(config.cell), *ATTENTION)


def check_target(network: Network, target: Sequence[int]) -> None:
    vocabulary = network.config.target_vocabulary
    if not target or not all(whole(token, vocabulary) and token >= EOS for token in target):
        raise InputError(f"A replay needs at least one piece, each a number below {vocabulary} and neither <pad> nor <bos>.")


def check_source(network: Network, source: Source) -> None:
    vocabulary = network.config.source_vocabulary
    if network.config.encoder == "image":
        if not isinstance(source, Tensor):
            raise InputError("This model reads a picture, or the grid its CNN made of one.")
        check_picture(network, source)
    elif network.config.encoder == "text" and (
        isinstance(source, Tensor) or not source or not all(whole(token, vocabulary) and token != PAD for token in source)
    ):
        raise InputError(f"A source has at least one piece, each a number below {vocabulary} and none of them <pad>.")


def check_picture(network: Network, source: Tensor) -> None:
    cnn = cast(Any, network).encoder.cnn
    shapes = {(3, cnn.size, cnn.size), (cnn.grid**2, cnn.channels)}
    if tuple(source.shape) not in shapes | {(1, *shape) for shape in shapes}:
        raise InputError(f"A picture is 3 x {cnn.size} x {cnn.size}, its grid {cnn.grid**2} x {cnn.channels}; this is not.")


def positions_of(network: Network, source: Source) -> int:
    """How many states the encoder makes of this source."""
    if not isinstance(source, Tensor):
        return len(source or ())
    read = source_tensors(source)[0]
    return int(cast(Any, network).encoder.cnn.grid ** 2) if read.dim() == 4 else read.shape[1]


def check(network: Network, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = (), room: int = 0) -> None:
    """Check that the arguments of a replay fit the model. `room` is the length of the longest output that the edits may refer
    to."""
    refuse_devices(network)
    check_target(network, target)
    check_source(network, source)
    check_edits(edits, network.config, positions_of(network, source), max(room, len(target)))


def follow(
    network: Network, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = (), *names: Any, room: int = 0
) -> Trace:
    """Check the arguments and make the Trace; `names` are the last arguments of `trace_of`. If `target` is only the beginning of
    an output, the edits may refer to up to `room` pieces."""
    check(network, source, target, edits, room)
    return trace_of(network, source, target, edits, *names)


@torch.inference_mode()
def trace_of(
    network: Network,
    source: Source,
    target: Sequence[int],
    edits: tuple[Edit, ...] = (),
    source_pieces: Sequence[str] = (),
    piece: Callable[[int], str] = str,
) -> Trace:
    """The Trace of the tokens `target` (with <eos> where they end), under `edits`. The arguments have been checked. `piece` gives
    a token its name."""
    tokens: tuple[int, ...] = plain(tuple(target))
    found = taught(network, source, tokens, edits, shown(network.config))
    logp_TV = log_probabilities(network.readout(found.features_BTR[0]))
    logps_T = logp_TV.gather(1, torch.tensor(tokens, dtype=torch.long)[:, None]).squeeze(1)
    top = logp_TV.topk(min(ALTERNATIVES, logp_TV.shape[1] - len(NEVER_SAID)), 1)
    top_tokens = top.indices.numpy().astype(np.int32)
    return Trace(
        source=tuple(source_pieces),
        target=tuple(map(piece, tokens)),
        tokens=tokens,
        logps=logps_T.double().numpy(),
        top_tokens=top_tokens,
        top_logps=top.values.float().numpy(),
        top_pieces=tuple(tuple(map(piece, row)) for row in top_tokens.tolist()),
        seen={name: value[0].float().numpy() for name, value in found.seen.items()},
        edits=tuple(map(edit_to_json, edits)),
        precision=network.precision or "float32",
    )


def resolve(network: Network, source: Source, target: Sequence[int], edits: tuple[Edit, ...], room: int = 0) -> tuple[Edit, ...]:
    """The edits, with each clamp to 'mean' turned into numbers: every unit's mean over the replay of `target` without edits."""
    check(network, source, target, edits, room)
    return means_in(network, source, target, edits)


@torch.inference_mode()
def means_in(network: Network, source: Source, target: Sequence[int], edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """`resolve` without its checks."""
    if not any(isinstance(edit, ClampGate) and edit.value == "mean" for edit in edits):
        return edits
    seen = taught(network, source, target, keep=shown(network.config)).seen

    def mean(edit: ClampGate) -> tuple[float, ...]:
        return tuple(seen[clamped(edit)][0].mean(0).tolist())

    return tuple(
        replace(edit, value=mean(edit)) if isinstance(edit, ClampGate) and edit.value == "mean" else edit for edit in edits
    )


def clamped(edit: ClampGate) -> str:
    """The name in `Trace.seen` of the values that a clamp replaces."""
    direction = f".{edit.direction}" if edit.part == "encoder" else ""
    return f"{edit.part}.{edit.layer}{direction}.{edit.gate}"


Asked = tuple[tuple[int, ...], tuple[bool, ...]]  # an output, and which of the edits inside the network hold


class Judged:
    """The log probabilities of outputs under edits inside the network, all computed in one batch."""

    @torch.inference_mode()
    def __init__(self, network: Network, source: Source, edits: Sequence[Edit], asked: Sequence[Asked]) -> None:
        self.tolerance = TOLERANCE[network.precision or "float32"]
        self.rows = {one: row for row, one in enumerate(dict.fromkeys(asked))}
        outputs = [output for output, _ in self.rows]
        held_BN = torch.tensor([held for _, held in self.rows], dtype=torch.bool).view(len(outputs), len(edits))
        found = list(scored(network, *source_rows(source, len(outputs)), outputs, what_if_of(edits, held_BN)))
        self.logps = [said_T.double().numpy() for said_T, _ in found]
        self.gaps = [(best_T - said_T).tolist() for said_T, best_T in found]

    def price(self, kind: str, before: Asked, after: Asked, forced: Sequence[int] = (), edit: int = -1) -> Price:
        """`forced` are the positions for which the distance from the model's own best token is given."""
        old, new = (self.logps[self.rows[one]] for one in (before, after))
        gaps = tuple(self.gaps[self.rows[after]][position] for position in forced)
        total = float(new.sum())
        if unfelt(old, new, self.tolerance):
            return Price(kind, 0.0, total, total, gaps, edit)
        return Price(kind, total - float(old.sum()), float(old.sum()), total, gaps, edit)


def unfelt(old_T: np.ndarray, new_T: np.ndarray, tolerance: float) -> bool:
    """Whether the two differ by no more than rounding between rows of a batch."""
    return len(old_T) == len(new_T) and bool((np.abs(old_T - new_T) <= tolerance * (1 + np.abs(old_T))).all())


def forced_places(edits: Sequence[Edit]) -> list[int]:
    """The positions of all forced pieces."""
    return [edit.position + offset for edit in edits if isinstance(edit, Force) for offset in range(len(edit.tokens))]


def priced(
    network: Network,
    source: Source,
    edits: Sequence[Edit],
    new: tuple[int, ...],
    without_words: tuple[int, ...],
    without: Mapping[int, tuple[int, ...]],
) -> tuple[tuple[Price, ...], tuple[Price, ...]]:
    """The joint prices (of all words, and of all edits inside the network) and the price of each single edit. `new` is the run's
    output, `without_words` what the search finds without any word, `without[n]` what it finds without the n-th edit."""
    inside = [edit for edit in edits if not is_word(edit)]
    every, none = (True,) * len(inside), (False,) * len(inside)
    place = {n: sum(not is_word(edit) for edit in edits[:n]) for n in range(len(edits))}
    before: dict[int, Asked] = {
        n: (without[n], every) if is_word(edit) else (new, tuple(other != place[n] for other in range(len(inside))))
        for n, edit in enumerate(edits)
    }
    after, no_words, no_state = (new, every), (without_words, every), (new, none)
    judged = Judged(network, source, inside, [after, no_words, no_state, *before.values()])
    words = [edit for edit in edits if is_word(edit)]
    joint = [judged.price("tokens", no_words, after, forced_places(words))] if words else []
    joint += [judged.price("state", no_state, after)] if inside else []
    own = [
        judged.price("tokens" if is_word(edit) else "state", before[n], after, forced_places([edit]), n)
        for n, edit in enumerate(edits)
    ]
    return tuple(joint), tuple(own)


def worded_prices(
    edits: Sequence[Edit], own_prices: Sequence[Price], trace: Trace, given: int, greedy: float | None, task: str
) -> tuple[Badge | None, ...]:
    """What each word costs, in words; None for the edits inside the network. `trace` is the replay of the output, which begins
    after the `given` pieces; `greedy` is how much likelier it is than that of greedy search without any word. `task` names the
    kind of output."""
    gaps_T = (trace.top_logps[:, 0] - trace.logps).clip(0).tolist()
    noun = WHOLE.get(task, "sentence")
    return tuple(
        badge(edit, own.change, gaps_T, trace.tokens, given, greedy, noun) if is_word(edit) else None
        for edit, own in zip(edits, own_prices)
    )


def badge(
    edit: Edit, change: float, gaps_T: Sequence[float], target: Sequence[int], given: int, greedy: float | None, noun: str
) -> Badge:
    """What a word costs at its place and in the whole output. `change` is the log probability of the output minus that of the
    output without the word."""
    places = [place for place in places_of(edit, target, given) if place < len(gaps_T)]
    here = sum(gaps_T[place] for place in places) if places else None
    told = [] if here is None else [beside_best(here, isinstance(edit, Ban))]
    if greedy is not None:
        told.append(f"the whole {noun} {compared(greedy)} what greedy search writes")
    return Badge(here, change, greedy, "; ".join(told))


def beside_best(here: float, banned: bool) -> str:
    """What stands at the place of a word, or of a banned one, against the likeliest piece of all there."""
    beside = "the model's likeliest choice" if here < SAME else f"{ratio(here)} less likely than the model's likeliest choice"
    return f"what stands there instead is {beside}" if banned else f"{beside} at this place"


def places_of(edit: Edit, target: Sequence[int], given: int) -> list[int]:
    """The positions where an output follows the edit: the forced pieces, the first piece that differs from the banned ones, or
    the required word."""
    if isinstance(edit, Force):
        return list(range(edit.position, edit.position + len(edit.tokens)))
    if isinstance(edit, Ban):
        differs = [at for at, token in enumerate(edit.tokens, edit.position) if target[at : at + 1] != (token,)]
        return differs[:1]
    assert isinstance(edit, Require)
    for start in range(given, len(target)):
        for spelling in edit.spellings:
            if tuple(target[start : start + len(spelling)]) == spelling:
                return list(range(start, start + len(spelling)))
    return []


def ratio(nats: float) -> str:
    """e^nats as a person says it."""
    if abs(nats) >= math.log(9_999.5):
        return f"10{str(round(nats / math.log(10))).translate(RAISED)}×"
    times = math.exp(nats)
    return f"{times:.1f}×" if times < 9.95 else f"{times:,.0f}×"


def compared(nats: float) -> str:
    """The output against another: '1.2× likelier than'."""
    if abs(nats) < SAME:
        return "as likely as"
    return f"{ratio(abs(nats))} {'likelier' if nats > 0 else 'less likely'} than"
