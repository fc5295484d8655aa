"""What would make it say a word at a place: the cheapest of a ban, an edit at an earlier place, a bent row, a few held units.

Candidates are searched with, without prices. Every reported way is an ordinary run with its edits that says the word there. If no
way works, the highest probability that the word reached is reported.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from seqdemo.checkpoints import Checkpoint
from seqdemo.edits import MOST_EDITS, Ban, Edit, Force, is_word
from seqdemo.errors import InputError, shown
from seqdemo.findings import Asked, Way, Ways
from seqdemo.hands.bending import BentRow, HeldUnits, bent_row, held_units
from seqdemo.hands.place import Cancel, Place, stop_if
from seqdemo.hands.words import candidates_at, unspellable
from seqdemo.network.model import Network
from seqdemo.numerals import small
from seqdemo.playground import Run, checkpoint_of, edited, obedient, run, searched, trace
from seqdemo.text import quoted

STRATEGIES = ("greedy", "beam")
MOST_BANS = 5  # at the place itself, one after the other
EARLIER, ALTERNATIVES = 12, 3  # places before it that are tried, and other pieces at each
SLACK = 2  # pieces by which an edit at an earlier place may move the word
TRIED = 3  # candidates whose own run is looked at

Shown = Callable[[Sequence[Way], int], None]  # the ways found so far, and how many there will be


@dataclass(frozen=True)
class Wish:
    """A word wanted at a place of a run's best output."""

    checkpoint: Checkpoint
    found: Run
    place: Place
    word: Asked
    refused: list[str] = field(default_factory=list)  # why some edits could not be tried

    @property
    def position(self) -> int:
        return self.place.position

    def stands_in(self, target: Sequence[int], slack: int = 0) -> bool:
        """Whether an output, with what was given, says the word there, or up to `slack` pieces away."""
        tokens, given = self.word.tokens, len(self.found.prompt.prefix)
        starts = range(max(given, self.position - slack), self.position + slack + 1)
        return any(tuple(target[start : start + len(tokens)]) == tokens for start in starts)

    def said_under(self, edits: tuple[Edit, ...], cancel: Cancel | None) -> tuple[int, ...] | None:
        """The whole output, given text included, under these edits and those in force; None if there is none."""
        stop_if(cancel)
        prompt, options = self.found.prompt, self.found.options
        try:
            edits = edited(self.checkpoint, prompt, (*self.found.edits, *edits), options)
        except InputError as reason:
            self.refused.append(str(reason))
            return None
        (result,) = searched(self.checkpoint, [prompt], options, edits, cancel=cancel)
        outputs = obedient(result, prompt, edits)
        if not outputs:
            self.refused.append("no output is possible under all of them.")
            return None
        return (*prompt.prefix, *outputs[0].tokens)

    def failed(self, name: str, best: float, end: str = "") -> Way:
        """A way that did not reach the word, and how near it came; with the reason if it came to an end or if edits could not be
        tried."""
        reason = f"; not all could be tried: {self.refused[-1]}" if self.refused else f"; {end}." if end else "."
        return Way(name, False, best, f"its probability there reached {small(best)}{reason}")

    def p_after(self, target: Sequence[int]) -> float:
        """The probability of the word after the beginning of another output, without the edits that are tried."""
        said = (*target[len(self.found.prompt.prefix) : self.position], *self.word.tokens)
        told = trace(self.checkpoint, self.found.prompt, said, self.found.edits, self.found.options)
        return math.exp(told.logps[self.position :].sum())

    def way(
        self, name: str, edits: tuple[Edit, ...], best: float, says: str, size: str, amount: float, slack: int = 0
    ) -> Way | None:
        """The ordinary run with these edits, with its price; None if it does not say the word."""
        try:
            made = run(self.checkpoint, self.found.prompt, self.found.options, (*self.found.edits, *edits))
        except InputError as reason:
            self.refused.append(str(reason))
            return None
        if not self.stands_in((*made.prompt.prefix, *made.hypotheses[0].tokens), slack):
            return None
        words = len(edits) > 1 and all(map(is_word, edits))
        price = made.prices[0] if words else made.own_prices[-1]
        tokens = made.hypotheses[0].tokens
        told = trace(self.checkpoint, self.found.prompt, tokens, self.found.edits, self.found.options)
        cost = told.total - self.own_total
        return Way(name, True, best, says, edits, made.texts[0], tokens, size, amount, price, cost)

    @cached_property
    def own_p(self) -> float:
        """The probability of the word without any change."""
        return self.p_after(self.place.target)

    @cached_property
    def own_total(self) -> float:
        """The log probability of the output as it is."""
        tokens = self.found.hypotheses[0].tokens
        return trace(self.checkpoint, self.found.prompt, tokens, self.found.edits, self.found.options).total

    def quoted(self, tokens: Sequence[int]) -> str:
        return quoted(self.place.text.decode(tokens) or self.place.text.piece(tokens[0]))


def cheapest(
    checkpoint: Checkpoint | Network,
    found: Run,
    position: int,
    word: str | Sequence[int],
    *,
    shown: Shown | None = None,
    cancel: Cancel | None = None,
) -> Ways:
    """What would make a run's best output say `word` (a text, or its pieces' numbers) at `position`. `shown(ways, of)` hears of
    each way as it is there."""
    begun, checkpoint = time.perf_counter(), checkpoint_of(checkpoint)
    if found.options.strategy not in STRATEGIES:
        raise InputError(
            f"What would make it say a word can be asked only with {' or '.join(STRATEGIES)} search; choose one of them."
        )
    if len(found.edits) >= MOST_EDITS:
        raise InputError(f"There are {MOST_EDITS} edits already, and no more can be added; take some of them back.")
    place = Place(checkpoint, found, found.hypotheses[0].tokens, position)
    wish = Wish(checkpoint, found, place, asked_word(place, word))
    if wish.stands_in(place.target):
        raise InputError(f"It says “{wish.word.text}” there already.")
    ways: list[Way] = []
    makers = (ban, earlier, row, units, force)
    for make in makers:
        wish.refused.clear()
        ways.append(make(wish, cancel))
        if shown:
            shown(ways, len(makers))
    reached = [n for n, way in enumerate(ways) if way.found and way.way != "force"]
    best = max(reached, key=lambda n: ways[n].cost or 0.0, default=None)
    says = f"Cheapest: {ways[best].says}" if best is not None else nothing_found(ways[:-1])
    return Ways(position, wish.word, wish.own_p, tuple(ways), best, says, time.perf_counter() - begun)


def asked_word(place: Place, word: str | Sequence[int]) -> Asked:
    """The word in the tokenizer's pieces for this place."""
    if isinstance(word, str):
        tokens = next((one.tokens for one in candidates_at(place, word).words if one.exact), ())
        if not tokens:
            raise unspellable(word)
    elif isinstance(word, (tuple, list)):
        tokens = tuple(word)
        trace(place.checkpoint, place.run.prompt, tokens)  # refuses numbers outside the vocabulary
    else:
        raise InputError(f"A word is a text, or the numbers of its pieces, not {shown(word)}.")
    if place.position + len(tokens) > len(place.run.prompt.prefix) + place.run.limit:
        raise InputError("This word does not fit there: the output has no room for it. Ask for an earlier place.")
    text = place.text.decode(tokens) or place.text.piece(tokens[0])
    return Asked(text, tuple(map(place.text.piece, tokens)), tokens)


def nothing_found(ways: Sequence[Way]) -> str:
    return f"Nothing that was tried makes it say that; best found: {small(max(way.best for way in ways))}."


def force(wish: Wish, cancel: Cancel | None) -> Way:
    """Force the word, for comparison."""
    edits = (Force(wish.position, wish.word.tokens),)
    says = f"force {wish.quoted(wish.word.tokens)} itself."
    return wish.way("force", edits, wish.own_p, says, "1 edit", 1) or wish.failed("force", wish.own_p)


def ban(wish: Wish, cancel: Cancel | None) -> Way:
    """Ban the piece in the word's place, and each piece that replaces it, until the word appears."""
    bans: list[Ban] = []
    target, best = wish.place.target, wish.own_p
    for _ in range(min(MOST_BANS, MOST_EDITS - len(wish.found.edits))):
        if not (there := departure(target, wish)):
            return wish.failed("ban", best, "the output then ends before this place")
        bans.append(Ban(wish.position, there))
        said = wish.said_under(tuple(bans), cancel)
        if said is None:
            break
        target = said
        best = max(best, wish.p_after(target))
        if wish.stands_in(target):
            says = f"ban {', '.join(wish.quoted(edit.tokens) for edit in bans)} there."
            size = f"{len(bans)} ban{'s' * (len(bans) > 1)}"
            return wish.way("ban", tuple(bans), best, says, size, len(bans)) or wish.failed("ban", best)
    return wish.failed("ban", best)


def departure(target: Sequence[int], wish: Wish) -> tuple[int, ...]:
    """The pieces in the word's place, up to the first that differs from the word."""
    said = target[wish.position : wish.position + len(wish.word.tokens)]
    same = next((n for n, (a, b) in enumerate(zip(said, wish.word.tokens)) if a != b), len(said))
    return tuple(said[: same + 1])


def earlier(wish: Wish, cancel: Cancel | None) -> Way:
    """One edit at an earlier place: what stands there banned, or another piece forced; all of them in one batch of searches."""
    words = tuple(edit for edit in wish.found.edits if is_word(edit))
    tries = [edit for edit in edits_before(wish) if fits(edit, words)]
    if not tries:
        return Way("earlier", False, 0.0, "nothing earlier stands there to change.")
    stop_if(cancel)
    inside, given = tuple(edit for edit in wish.found.edits if not is_word(edit)), wish.found.prompt.prefix
    prompts, own = [wish.found.prompt] * len(tries), [(*words, edit) for edit in tries]
    found = searched(wish.checkpoint, prompts, wish.found.options, inside, cancel=cancel, words=own)
    outputs = [(*given, *one.hypotheses[0].tokens) if one.hypotheses else () for one in found]
    slack = 0 if wish.stands_in(wish.place.target, SLACK) else SLACK
    hits = [
        (one.hypotheses[0].total, edit, output)
        for edit, one, output in zip(tries, found, outputs)
        if output and one.complete(one.hypotheses[0]) and wish.stands_in(output, slack)
    ]
    for _, edit, output in sorted(hits, key=lambda hit: -hit[0])[:TRIED]:
        stop_if(cancel)
        best = wish.p_after(output) if wish.stands_in(output) else wish.own_p
        away = wish.position - edit.position
        if way := wish.way("earlier", (edit,), best, earlier_sentence(wish, edit), "1 edit", away, slack):
            return way
    near = {output[: wish.position] for output in outputs if len(output) >= wish.position}
    return wish.failed("earlier", max(map(wish.p_after, near), default=0.0))


def edits_before(wish: Wish) -> Iterator[Ban | Force]:
    given = len(wish.found.prompt.prefix)
    first = max(given, wish.position - EARLIER)
    told = trace(wish.checkpoint, wish.found.prompt, wish.found.hypotheses[0].tokens, wish.found.edits, wish.found.options)
    for position in range(first, wish.position):
        token = wish.place.target[position]
        yield Ban(position, (token,))
        others = [other for other in told.top_tokens[position].tolist() if other != token]
        yield from (Force(position, (other,)) for other in others[:ALTERNATIVES])


def fits(edit: Ban | Force, words: Sequence[Edit]) -> bool:
    """Whether its place is free: no word is forced or banned there."""
    places = {other.position + n for other in words if isinstance(other, (Force, Ban)) for n in range(len(other.tokens))}
    return edit.position not in places


def earlier_sentence(wish: Wish, edit: Ban | Force) -> str:
    place = edit.position - len(wish.found.prompt.prefix) + 1
    old = wish.quoted((wish.place.target[edit.position],))
    if isinstance(edit, Ban):
        return f"ban {old} at piece {place}."
    return f"write {wish.quoted(edit.tokens)} instead of {old} at piece {place}."


def row(wish: Wish, cancel: Cancel | None) -> Way:
    """The smallest change of one attention row that was found."""
    if not wish.place.network.config.has_attention:
        return replace(wish.failed("row", wish.own_p), says="this model has no attention to bend.")
    return first_that_works("row", wish, bent_row(wish.place, wish.word.tokens, cancel), cancel)


def units(wish: Wish, cancel: Cancel | None) -> Way:
    """A few units of the decoder's last layer held at their mean, found greedily."""
    if wish.place.network.config.is_transformer:
        return replace(wish.failed("units", wish.own_p), says="a Transformer has no units to hold.")
    return first_that_works("units", wish, held_units(wish.place, wish.word.tokens, cancel), cancel)


def first_that_works(name: str, wish: Wish, proposals: Iterable[BentRow | HeldUnits], cancel: Cancel | None) -> Way:
    """The first proposal whose own run says the word."""
    best = wish.own_p
    for proposal in proposals:
        best = max(best, proposal.p)
        target = wish.said_under((proposal.trial,), cancel) if proposal.trial else None
        if proposal.edit and target and wish.stands_in(target):
            says = proposal.says(wish.found.source.strings)
            if way := wish.way(name, (proposal.edit,), proposal.p, says, proposal.size, proposal.amount):
                return way
    return wish.failed(name, best)
