"""The next word under any attention row, and how far its probability moves with all attention on one source position."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from seqdemo.checkpoints import Checkpoint
from seqdemo.edits import AttentionRow, check_attention
from seqdemo.explain.replay import positions_of
from seqdemo.findings import Elsewhere, NextWord, RowBound, UnderRow
from seqdemo.hands.place import Place, check_count, rows_of
from seqdemo.network.model import Network
from seqdemo.playground import Run, checkpoint_of

FELT = 0.005  # a probability that moves by less counts as unmoved


def next_word(
    checkpoint: Checkpoint | Network,
    run: Run,
    tokens: Sequence[int],
    position: int,
    rows: Sequence[Sequence[float]] = (),
    layer: int | None = None,
    head: int | None = None,
    top: int = 8,
) -> NextWord:
    """The likeliest next words at `position` of an output, under the run's edits and, where given, under each attention row."""
    return under_rows(Place(checkpoint_of(checkpoint), run, tokens, position), rows, layer, head, top)


def under_rows(
    place: Place, rows: Sequence[Sequence[float]], layer: int | None = None, head: int | None = None, top: int = 8
) -> NextWord:
    """`next_word` at a prepared place."""
    if len(rows) or (layer, head) != (None, None):
        check_attention(AttentionRow(place.position, (), layer, head), place.network.config)
    check_count("top", top)
    own = UnderRow(own_row(place, layer, head), place.bar(place.token).p, place.bars(place.logp_V, top))
    if not len(rows):
        return NextWord(place.position, place.bar(place.token), own)
    given_KS = rows_of(rows, positions_of(place.network, place.run.prompt.source))
    found = [
        UnderRow(tuple(row_S.tolist()), place.bar(place.token, logp_V).p, place.bars(logp_V, top))
        for row_S, logp_V in zip(given_KS, place.under(given_KS, layer, head))
    ]
    return NextWord(place.position, place.bar(place.token), own, tuple(found))


def own_row(place: Place, layer: int | None, head: int | None) -> tuple[float, ...] | None:
    """The model's own attention there, under the edits: of that head, or else the mean over the heads of that layer or of the
    last one."""
    if not place.network.config.has_attention:
        return None
    last = place.network.config.attention_layers - 1 if layer is None else layer
    heads_NS = place.own.seen[f"decoder.{last}.cross"][0]
    return tuple((heads_NS.mean(0) if head is None else heads_NS[head]).tolist())


def row_bound(
    checkpoint: Checkpoint | Network,
    run: Run,
    tokens: Sequence[int],
    position: int,
    layer: int | None = None,
    head: int | None = None,
) -> RowBound:
    """How far the probability of the word at `position` moves when all attention lies on one source position, measured over
    all of them in one batch."""
    return bound_at(Place(checkpoint_of(checkpoint), run, tokens, position), layer, head)


def bound_at(place: Place, layer: int | None = None, head: int | None = None) -> RowBound:
    check_attention(AttentionRow(place.position, (), layer, head), place.network.config)
    positions = positions_of(place.network, place.run.prompt.source)
    logp_SV = place.under(torch.eye(positions), layer, head)
    each_S, own = logp_SV[:, place.token].exp(), place.bar(place.token).p
    moves, best = float((each_S - own).abs().max()), int(place.logp_V.argmax())
    else_S = logp_SV.argmax(1).tolist()
    says_else = tuple(Elsewhere(at, place.bar(token, logp_SV[at])) for at, token in enumerate(else_S) if token != best)
    depends = moves >= FELT or bool(says_else)
    return RowBound(
        place.position,
        place.bar(place.token),
        own,
        tuple(each_S.tolist()),
        int(each_S.argmin()),
        int(each_S.argmax()),
        moves,
        says_else,
        depends,
        bound_sentence(moves, depends),
    )


def bound_sentence(moves: float, depends: bool) -> str:
    share = f"at most {moves:.3f}" if moves >= 0.0005 else "less than 0.001"
    if depends:
        return f"With all attention on any one source position, the probability of what this step writes moves by {share}."
    return f"What this step writes stays with all attention on any one source position: its probability moves by {share}."
