"""Inside the network: the smallest change of one attention row, or the fewest held units, that makes the model say a word.

The word and the pieces before it are given. A candidate's margin is the smallest distance of any of the word's pieces from the
best other piece. These are only proposals; the caller decodes with them.

    row    a <- P(a + step * d margin / d a),  P: onto the simplex (weights of at least 0 that sum to 1), a: from the model's own
    units  the unit that raises the margin most is held, then the one that raises it most beside it, and so on
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from seqdemo.edits import AttentionRow, ClampGate
from seqdemo.explain.replay import inputs_of
from seqdemo.explain.step import before
from seqdemo.hands.place import Cancel, Place, RowsGiven, stop_if
from seqdemo.hands.units import WordUnderUnits, batches, held_layer
from seqdemo.network.attention import as_row
from seqdemo.network.model import log_probabilities
from seqdemo.state import Seen, select
from seqdemo.text import SPACE_MARK, quoted

STEPS, REACH = 30, 0.08  # steps of gradient ascent; how much attention each may move
ENOUGH = 0.02  # nats; a row with this margin is far enough
SHARES = 40  # points that are tried between the model's own row and one that is far enough
ONE_HOT = 4  # rows with all attention on one position that are tried as well
ROWS_BEFORE = 2  # rows that are tried: the word's own, and the one before
HEADS = 2  # heads that are tried: those that can make the word likeliest
MOST_UNITS, CLOSE = 12, 32  # units held at most; units that are tried again after the first round
LAST_STEPS = 8  # units of a language model are held during so many steps before the word


Head = tuple[int | None, int | None]  # layer, head; None: the only one


@dataclass(frozen=True)
class BentRow:
    """A row under which the word is the likeliest, and the share of attention that it moves. Without `edit` none was found."""

    p: float  # of the word under it
    amount: float = 0.0
    edit: AttentionRow | None = None
    own: tuple[float, ...] = ()

    @property
    def trial(self) -> AttentionRow | None:
        return self.edit

    @property
    def size(self) -> str:
        return f"{100 * self.amount:.0f} % of the attention moved"

    def says(self, source: Sequence[str]) -> str:
        """Where most of the attention moves from, and to."""
        assert self.edit
        change = [new - old for new, old in zip(self.edit.weights, self.own)]
        start, end = change.index(min(change)), change.index(max(change))
        old, new = (quoted(source[at].lstrip(SPACE_MARK)) if source else f"cell {at + 1}" for at in (start, end))
        head = "" if self.edit.head is None else f" of head {self.edit.head + 1} in layer {(self.edit.layer or 0) + 1}"
        share, piece = f"{100 * self.amount:.0f} %", self.edit.position + 1
        return f"move {share} of the attention{head} at piece {piece}, mostly from {old} to {new}."


class WordUnderRows:
    """The word at a place after what stands before it, under rows of one head in the step at `position` (at or before that
    place)."""

    def __init__(self, place: Place, word: Sequence[int], position: int, head: Head = (None, None), bare: bool = False) -> None:
        self.head = head
        self.network = place.network.bare() if bare else place.network
        self.edits, self.position, self.word = place.edits, position, torch.tensor(word)
        target = (*place.target[: place.position], *word)
        source = place.run.prompt.source
        with torch.no_grad():
            read = source.clone() if isinstance(source, Tensor) else source  # of a picture, to differentiate
            self.state = before(self.network, read, target, position, place.what_if)
        self.read_1T = inputs_of(target)[:, position:]

    def margins(self, rows_KS: Tensor) -> tuple[Tensor, Tensor]:
        """For each row the margin, and the probability of the word."""
        rows, pieces = len(rows_KS), len(self.word)
        what_if = RowsGiven(self.edits, self.position, rows_KS, *self.head)
        state = select(self.state, torch.zeros(rows, dtype=torch.long))
        features = []
        for token_1 in self.read_1T.unbind(1):
            done = self.network.step(token_1.expand(rows), state, what_if)
            state = done.state
            features.append(done.features_KR)
        r_KNR = torch.stack(features[-pieces:], 1)
        logp_KNV = log_probabilities(self.network.readout(r_KNR.flatten(0, 1))).view(rows, pieces, -1)
        return margins(logp_KNV, self.word)


def margins(logp_KNV: Tensor, word_N: Tensor) -> tuple[Tensor, Tensor]:
    """min over the pieces of log p(piece) - log p(best other), and p(word)."""
    index_KN1 = word_N[None, :, None].expand(len(logp_KNV), -1, 1)
    own_KN = logp_KNV.gather(2, index_KN1).squeeze(2)
    other_KN = logp_KNV.scatter(2, index_KN1, -math.inf).amax(2)
    return (own_KN - other_KN).amin(1), own_KN.sum(1).exp()


def bent_row(place: Place, word: Sequence[int], cancel: Cancel | None) -> Iterator[BentRow]:
    """Proposals, first for the row of the place itself. Each moves a little more attention than the one before."""
    given = len(place.run.prompt.prefix)
    for position in range(place.position, max(given, place.position - ROWS_BEFORE + 1) - 1, -1):
        stop_if(cancel)
        with torch.inference_mode():
            seen = seen_at(place, position)
            for head in heads_to_bend(place, word, position, seen):
                judge, own_S = WordUnderRows(place, word, position, head), own_row(seen, head)
                goals = towards_one(judge, own_S)
                if not place.network.config.hard:  # hard attention has no gradient to climb along
                    goals += climbed(place, word, position, head, own_S, cancel)
                yield from proposals(judge, own_S, goals, position)


def heads_to_bend(place: Place, word: Sequence[int], position: int, seen: Seen) -> list[Head]:
    """The only head; or those whose attention to one source position can give the word the largest margins."""
    config = place.network.config
    if config.attention_layers * config.heads == 1:
        return [(None, None)]
    heads: list[Head] = [(layer, head) for layer in range(config.attention_layers) for head in range(config.heads)]

    def reach(head: Head) -> float:
        return float(single_positions(WordUnderRows(place, word, position, head), own_row(seen, head)).max())

    return sorted(heads, key=reach, reverse=True)[:HEADS]


def seen_at(place: Place, position: int) -> Seen:
    """What the model does at a step, under the edits in force."""
    if position == place.position:
        return place.own.seen
    return Place(place.checkpoint, place.run, place.run.hypotheses[0].tokens, position).own.seen


def own_row(seen: Seen, head: Head) -> Tensor:
    """The model's own attention of a head."""
    return seen[f"decoder.{head[0] or 0}.cross"][0, head[1] or 0]


def single_positions(judge: WordUnderRows, own_S: Tensor) -> Tensor:
    """The margin of the word with all attention on one source position, for each of them."""
    return judge.margins(torch.eye(len(own_S)))[0]


def towards_one(judge: WordUnderRows, own_S: Tensor) -> list[Tensor]:
    """The single source positions under which the word has the largest margin."""
    eye_SS, margin_S = torch.eye(len(own_S)), single_positions(judge, own_S)
    return [eye_SS[at] for at in margin_S.argsort(descending=True)[:ONE_HOT].tolist()]


def climbed(place: Place, word: Sequence[int], position: int, head: Head, own_S: Tensor, cancel: Cancel | None) -> list[Tensor]:
    """Projected gradient ascent from the model's own row, until the margin is large enough."""
    with torch.inference_mode(False), torch.enable_grad():
        judge = WordUnderRows(place, word, position, head, bare=True)
        row_S = own_S.clone()
        for _ in range(STEPS):
            stop_if(cancel)
            leaf_S = row_S.clone().requires_grad_()
            margin_1, _ = judge.margins(leaf_S[None])
            if float(margin_1.detach()) > ENOUGH:
                break
            (slope_S,) = torch.autograd.grad(margin_1.sum(), [leaf_S])
            slope_S = slope_S - slope_S.mean()
            size = float(slope_S.abs().sum()) / 2
            if not size > 0:
                break
            row_S = onto_simplex(row_S + REACH * slope_S / size)
        return [row_S.detach()]


def onto_simplex(row_S: Tensor) -> Tensor:
    """The nearest row of non-negative weights that sum to 1 (Held et al., 1974): max(row - t, 0), where t makes the sum 1."""
    ranked_S = row_S.double().sort(descending=True).values
    over_S = (ranked_S.cumsum(0) - 1) / torch.arange(1, len(row_S) + 1)
    t = over_S[(ranked_S > over_S).nonzero().max()]
    return (row_S.double() - t).clamp(min=0).to(row_S.dtype)


def proposals(judge: WordUnderRows, own_S: Tensor, goals: Sequence[Tensor], position: int) -> Iterator[BentRow]:
    """Points between the model's own row and each of these: where the word first becomes the likeliest, and some beyond."""
    share_N1 = torch.linspace(0, 1, SHARES + 1)[1:, None]
    rows_XS = torch.cat([own_S + share_N1 * (goal_S - own_S) for goal_S in goals])
    margin_X, p_X = judge.margins(rows_XS)
    moved_X = (rows_XS - own_S).abs().sum(1) / 2
    enough = [x for x in range(len(rows_XS)) if margin_X[x] > 0]
    yield BentRow(float(p_X.max()))
    for x in sorted(enough, key=lambda x: float(moved_X[x]))[:: max(1, len(enough) // 4)][:4]:
        weights = tuple(as_row(rows_XS[x].clamp(min=0).tolist()).tolist())
        yield BentRow(float(p_X[x]), float(moved_X[x]), AttentionRow(position, weights, *judge.head), tuple(own_S.tolist()))


@dataclass(frozen=True)
class HeldUnits:
    """Units that make the word the likeliest if they are held at their means. Without `edit` none were found."""

    p: float
    of: int
    trial: ClampGate | None = None  # the edit, with the means as numbers that need no further search

    @property
    def edit(self) -> ClampGate | None:
        return replace(self.trial, value="mean") if self.trial else None

    @property
    def units(self) -> tuple[int, ...]:
        return (self.trial.units if self.trial else None) or ()

    @property
    def size(self) -> str:
        return f"{len(self.units)} of {self.of} units"

    @property
    def amount(self) -> float:
        return len(self.units)

    def says(self, source: Sequence[str]) -> str:
        """Which units are held."""
        assert self.edit
        several = len(self.units) > 1
        named = f"{'units' if several else 'unit'} {', '.join(map(str, self.units))}"
        return f"hold {named} of the decoder's {self.edit.gate} at {'their' if several else 'its'} mean."


def held_units(place: Place, word: Sequence[int], cancel: Cancel | None) -> Iterator[HeldUnits]:
    """Proposals with more and more units, from the first that should suffice."""
    config, end = place.network.config, place.position + len(word)
    steps = tuple(range(max(0, end - LAST_STEPS), end)) if place.run.task == "complete" else None
    like = held_layer(place.checkpoint, place.run, "decoder", "forward", config.decoder_layers - 1, "", steps)
    target = (*place.target[: place.position], *word)
    judge, word_N = WordUnderUnits(place.network, place.run, target, range(place.position, end), like), torch.tensor(word)

    def judged(groups: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        found = []
        for batch in batches(groups):
            stop_if(cancel)
            found.append(margins(judge.distributions(judge.sets(batch)), word_N))
        return torch.cat([margin_K for margin_K, _ in found]), torch.cat([p_K for _, p_K in found])

    margin_H, p_H = judged([(unit,) for unit in range(judge.units)])
    close = margin_H.argsort(descending=True)[:CLOSE].tolist()
    chosen, best, p = [close[0]], float(margin_H[close[0]]), float(p_H.max())
    while True:
        yield HeldUnits(p, judge.units, replace(like, units=tuple(sorted(chosen))) if best > 0 else None)
        others = [unit for unit in close if unit not in chosen]
        if len(chosen) == MOST_UNITS or not others:
            return
        margin_K, p_K = judged([(*chosen, unit) for unit in others])
        chosen.append(others[int(margin_K.argmax())])
        best, p = float(margin_K.max()), max(p, float(p_K.max()))
