"""What may be said next, as a list of rules. Every search applies the same list at every step, in its order.

A rule marks tokens impossible: their value becomes -inf, and all others keep their own log probability, because the
log-sum-exp has been taken before. Only the repetition penalty rescales, and takes the log-sum-exp again.

A new rule is a class with `apply`, and an entry in `RULES` if an option of `SearchOptions` switches it on. Its state is what it
must remember of each row: `start` makes it, `after` updates it with each token, and it moves with the rows of the search (rows
first, see `seqdemo.state`). A rule that requires something returns from `missing` how many tokens are still needed, and forbids
the end while that is above 0. A beam then keeps hypotheses at every number of missing tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.state import Logits, select

NO_TOKEN = -1
NEVER = 10**6  # tokens: more than any output may have
Texts = Sequence[Sequence[int]]
Spelling = tuple[int, ...]
Words = Sequence[Sequence[Spelling]]
Place = tuple[Spelling, frozenset[int]]  # a state of the automaton: the beginning of a spelling, and the complete words


class Now(NamedTuple):
    """The positions of the K rows of a step."""

    written: int  # tokens said so far
    given_K: Tensor  # tokens that stood before these; positions count from the first of them
    room_K: Tensor  # tokens that may still be said, the next one included
    eos: int

    def of(self, rows_N: Tensor) -> Now:
        return self._replace(given_K=self.given_K[rows_N], room_K=self.room_K[rows_N])

    @property
    def position_K(self) -> Tensor:
        """The position of the next token."""
        return self.given_K + self.written


class Rule:
    """The base of all rules, without a state and without requirements."""

    pieces: tuple[int, ...] = ()  # the tokens that can lower what is missing

    def start(self, given: Texts) -> Any:
        """The state before anything is said, one row for each of the given texts."""
        return None

    def after(self, state: Any, tokens_K: Tensor) -> Any:
        """The state after each row said its token."""
        return state

    def apply(self, logits: Logits, now: Now, state: Any) -> Logits:
        """The scores under this rule. `logits.values_KV` is a copy, which the rule may write on."""
        raise NotImplementedError

    def missing(self, now: Now, state: Any) -> Tensor | None:
        """How many tokens each row must still say, at least, before it may end; None for a rule that requires nothing."""
        return None


class Remembers(Rule):
    """A rule that needs all tokens so far, including the given ones."""

    def start(self, given: Texts) -> Tensor:
        return side_by_side(given)

    def after(self, state: Tensor, tokens_K: Tensor) -> Tensor:
        return torch.cat([state, tokens_K[:, None]], 1)


class RepetitionPenalty(Remembers):
    """The value of every token that was said before is divided by the penalty (multiplied, where it is below 0):
    p = softmax(values / penalty at said tokens), after Keskar et al. (2019)."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def apply(self, logits: Logits, now: Now, state: Tensor) -> Logits:
        values_KV = logits.values_KV
        none_KV = torch.zeros(len(values_KV), 1 + values_KV.shape[1], dtype=torch.bool)
        said_KV = none_KV.scatter(1, state - NO_TOKEN, True)[:, 1:]
        scaled_KV = torch.where(values_KV > 0, values_KV / self.penalty, values_KV * self.penalty)
        values_KV = torch.where(said_KV, scaled_KV, values_KV)
        return Logits(values_KV, values_KV.logsumexp(1, keepdim=True))


class MinimumLength(Rule):
    """No <eos> before `length` tokens."""

    def __init__(self, length: int) -> None:
        self.length = length

    def apply(self, logits: Logits, now: Now, state: None) -> Logits:
        if now.written < self.length:
            logits.values_KV[:, now.eos] = -math.inf
        return logits


class NoRepeats(Remembers):
    """No n-gram stands twice, unless it holds one of the `exempt` tokens."""

    def __init__(self, n: int, exempt: tuple[int, ...] = ()) -> None:
        self.n, self.exempt = n, exempt

    def apply(self, logits: Logits, now: Now, state: Tensor) -> Logits:
        if state.shape[1] >= self.n:
            grams_KGn = state.unfold(1, self.n, 1)
            tail_Kn = state[:, state.shape[1] - self.n + 1 :]
            repeats_KG = (grams_KGn[:, :, :-1] == tail_Kn[:, None]).all(2) & (grams_KGn[:, :, 0] != NO_TOKEN)
            if self.exempt:
                repeats_KG &= ~torch.isin(grams_KGn, torch.tensor(self.exempt)).any(2)
            row_N, gram_N = repeats_KG.nonzero(as_tuple=True)
            logits.values_KV[row_N, grams_KGn[row_N, gram_N, -1]] = -math.inf
        return logits


class Forced(Rule):
    """These tokens stand from `position` on (None: directly after what was given). The output may not end before."""

    def __init__(self, tokens: Sequence[int], position: int | None = None) -> None:
        self.tokens, self.position = torch.tensor(tokens), position

    def apply(self, logits: Logits, now: Now, state: None) -> Logits:
        first_K = now.given_K if self.position is None else self.position
        place_K = now.position_K - first_K
        logits.values_KV[place_K < 0, now.eos] = -math.inf
        (here_N,) = ((place_K >= 0) & (place_K < len(self.tokens))).nonzero(as_tuple=True)
        token_N = self.tokens[place_K[here_N]]
        value_N = logits.values_KV[here_N, token_N]
        logits.values_KV[here_N] = -math.inf
        logits.values_KV[here_N, token_N] = value_N
        return logits


class Banned(Rule):
    """Exactly these tokens may not stand from `position` on."""

    def __init__(self, tokens: Sequence[int], position: int) -> None:
        self.tokens, self.position = tuple(tokens), position

    def start(self, given: Texts) -> tuple[Tensor, Tensor]:
        """The position of each row's next token, and whether its tokens at the banned places so far are the banned ones."""
        return torch.tensor([len(text) for text in given]), torch.ones(len(given), dtype=torch.bool)

    def after(self, state: tuple[Tensor, Tensor], tokens_K: Tensor) -> tuple[Tensor, Tensor]:
        position_K, begun_K = state
        for position, token in enumerate(self.tokens[:-1], self.position):
            begun_K = begun_K & ((position_K != position) | (tokens_K == token))
        return position_K + 1, begun_K

    def apply(self, logits: Logits, now: Now, state: tuple[Tensor, Tensor]) -> Logits:
        position_K, begun_K = state
        logits.values_KV[begun_K & (position_K == self.position + len(self.tokens) - 1), self.tokens[-1]] = -math.inf
        return logits


class EndAtLimit(Rule):
    """The last token that there is room for is <eos>, at its own log probability."""

    def apply(self, logits: Logits, now: Now, state: None) -> Logits:
        others_V = torch.arange(logits.values_KV.shape[1]) != now.eos
        return logits._replace(values_KV=logits.values_KV.masked_fill((now.room_K <= 1)[:, None] & others_V, -math.inf))


class Required(Rule):
    """Each of `words` must stand somewhere in the output, in one of its spellings; until then the output may not end.

    An automaton follows what each row has said. Its state is the longest suffix of the output that begins a spelling, and the set
    of words that are complete. For every state the smallest number of tokens that completes all words is known, with regard to
    overlapping words and forced positions. A token is impossible if it leaves too little room for that. So no search reaches a
    dead end, and exact search proves the best of exactly those outputs that hold the words.

    `fixed` are the tokens that other rules force, by position; `barred` are tokens that they forbid at one position. `insist` is
    for searches that reserve no places for hypotheses that miss less: a spelling, once begun, is finished at once, and where the
    model would end, the likeliest token of a missing word is said instead.
    """

    def __init__(
        self,
        words: Words,
        eos: int,
        end: int = 0,
        fixed: Mapping[int, int] | None = None,
        barred: Sequence[tuple[int, int]] = (),
        insist: bool = False,
    ) -> None:
        """`end` is 1 if <eos> must be within the limit, else 0."""
        self.end, self.insist = end, insist
        self.pieces = tuple(sorted({piece for word in words for spelling in word for piece in spelling}))
        self.piece_A = torch.tensor(self.pieces)
        places, self.next_SA = automaton(words, self.pieces)
        self.open_S = torch.tensor([len(met) < len(words) for _, met in places])
        fixed = fixed or {}
        last = max([*fixed, *(position for position, _ in barred)], default=-1) + 1
        self.allowed_PA = allowed(self.pieces, fixed, barred, last)
        self.need_PS = needs(self.next_SA, self.open_S, self.allowed_PA, [p for p, token in fixed.items() if token == eos])

    def needed(self, position: int) -> int:
        """The smallest number of tokens of an output that begins at this position; NEVER if none can hold the words."""
        return int(self.need_PS[min(position, len(self.need_PS) - 1), 0]) + self.end

    def start(self, given: Texts) -> Tensor:
        return torch.zeros(len(given), dtype=torch.long)

    def after(self, state: Tensor, tokens_K: Tensor) -> Tensor:
        same_KA = tokens_K[:, None] == self.piece_A
        column_K = torch.where(same_KA.any(1), same_KA.int().argmax(1) + 1, 0)
        return self.next_SA[state, column_K]

    def missing(self, now: Now, state: Tensor) -> Tensor:
        return self.need_PS[self.row(now), state]

    def row(self, now: Now) -> Tensor:
        """Where the next token will stand, as a row of `need_PS`."""
        return (now.given_K + now.written).clamp(max=len(self.need_PS) - 1)

    def apply(self, logits: Logits, now: Now, state: Tensor) -> Logits:
        values_KV, open_K, missing_K = logits.values_KV, self.open_S[state], self.missing(now, state)
        at_K = self.row(now)
        then_K = (at_K + 1).clamp(max=len(self.need_PS) - 1)
        least_KA = self.need_PS[then_K[:, None], self.next_SA[state]].masked_fill(~self.allowed_PA[at_K], NEVER)
        fits_KA = (least_KA < now.room_K[:, None] - self.end) | ~open_K[:, None]
        if self.insist:
            nearer_KA = least_KA < missing_K[:, None]
            ends_K = values_KV[:, now.eos] >= values_KV.amax(1)
            offered_K = (nearer_KA[:, 1:] & (values_KV[:, self.piece_A] > -math.inf)).any(1)
            now_K = open_K & offered_K & (ends_K | (least_KA[:, 0] > missing_K))
            fits_KA &= nearer_KA | ~now_K[:, None]
        values_KV[open_K, now.eos] = -math.inf
        if not bool(fits_KA.all()):
            kept_KA = values_KV[:, self.piece_A].masked_fill(~fits_KA[:, 1:], -math.inf)
            values_KV[~fits_KA[:, 0]] = -math.inf
            values_KV[:, self.piece_A] = kept_KA
        return logits


class Only(Rule):
    """A rule that holds for one sentence of a batch."""

    def __init__(self, rule: Rule, sentence: int) -> None:
        self.rule, self.sentence, self.pieces = rule, sentence, rule.pieces

    def start(self, given: Texts) -> tuple[Tensor, Any]:
        return torch.arange(len(given)) == self.sentence, self.rule.start(given)

    def after(self, state: tuple[Tensor, Any], tokens_K: Tensor) -> tuple[Tensor, Any]:
        return state[0], self.rule.after(state[1], tokens_K)

    def apply(self, logits: Logits, now: Now, state: tuple[Tensor, Any]) -> Logits:
        (own_N,) = state[0].nonzero(as_tuple=True)
        part = Logits(logits.values_KV[own_N], logits.total_K1[own_N])
        part = self.rule.apply(part, now.of(own_N), select(state[1], own_N))
        return Logits(logits.values_KV.index_copy(0, own_N, part.values_KV), logits.total_K1.index_copy(0, own_N, part.total_K1))

    def missing(self, now: Now, state: tuple[Tensor, Any]) -> Tensor | None:
        missing_K = self.rule.missing(now, state[1])
        return None if missing_K is None else missing_K * state[0]


# The rule of each option, in the order in which they apply. A rule is in force if its option is not at its default.
RULES: dict[str, Callable[[SearchOptions], Rule]] = {
    "repetition_penalty": lambda options: RepetitionPenalty(options.repetition_penalty),
    "min_length": lambda options: MinimumLength(options.min_length),
    "no_repeat": lambda options: NoRepeats(options.no_repeat, options.may_repeat),
    "prefix": lambda options: Forced(options.prefix),
    "at_limit": lambda options: EndAtLimit(),
}


def rules_of(options: SearchOptions) -> list[Rule]:
    """The rules in force. A rule whose option these options lack is off."""
    default = type(options)
    return [make(options) for name, make in RULES.items() if getattr(options, name, None) != getattr(default, name, None)]


class Rules:
    """The list of rules of one search; their states are a tuple, one for each."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.pieces = torch.tensor(sorted({piece for rule in rules for piece in rule.pieces}))

    def __bool__(self) -> bool:
        return bool(self.rules)

    def start(self, given: Texts) -> tuple[Any, ...]:
        return tuple(rule.start(given) for rule in self.rules)

    def after(self, states: tuple[Any, ...], tokens_K: Tensor) -> tuple[Any, ...]:
        return tuple(rule.after(state, tokens_K) for rule, state in zip(self.rules, states))

    def apply(self, logits: Logits, now: Now, states: tuple[Any, ...]) -> Logits:
        if not bool(logits.values_KV.amax() < math.inf):
            refuse_broken(logits)  # before a rule can hide it
        logits = logits._replace(values_KV=logits.values_KV.clone())
        for rule, state in zip(self.rules, states):
            logits = rule.apply(logits, now, state)
        return logits

    def missing(self, now: Now, states: tuple[Any, ...]) -> Tensor | None:
        wanted = [rule.missing(now, state) for rule, state in zip(self.rules, states)]
        told = [missing_K for missing_K in wanted if missing_K is not None]
        return torch.stack(told).sum(0) if told else None


def side_by_side(given: Texts) -> Tensor:
    """Texts as rows, with places that hold no token before the shorter ones."""
    longest = max(map(len, given))
    return torch.tensor([[NO_TOKEN] * (longest - len(text)) + list(text) for text in given], dtype=torch.long)


def refuse_broken(logits: Logits) -> None:
    """Stop the search if the scores are NaN or infinite. It is called only when a best candidate is not finite."""
    values_KV, total_K1 = logits
    if bool(values_KV.isnan().any()) or bool(values_KV.isposinf().any()) or not bool(total_K1.isfinite().all()):
        raise InputError(
            "The model's scores are NaN or infinite, so its weights are broken; load them again or train the model again."
        )


def automaton(words: Words, pieces: Spelling) -> tuple[list[Place], Tensor]:
    """The states, the first of which is the start, and the next state after each piece; column 0 stands for any other token."""
    beginnings = {spelling[:length] for word in words for spelling in word for length in range(len(spelling))}

    def after(place: Place, token: int | None) -> Place:
        said, met = place
        if token is None:
            return (), met
        said = (*said, token)
        met = met | {number for number, word in enumerate(words) if any(said[-len(each) :] == each for each in word)}
        if len(met) == len(words):
            return (), met
        while said not in beginnings:
            said = said[1:]
        return said, met

    places: list[Place] = [((), frozenset())]
    number_of = {places[0]: 0}
    rows = []
    for place in places:  # grows meanwhile
        row = [after(place, token) for token in (None, *pieces)]
        for found in row:
            if found not in number_of:
                number_of[found] = len(places)
                places.append(found)
        rows.append([number_of[found] for found in row])
    return places, torch.tensor(rows)


def allowed(pieces: Spelling, fixed: Mapping[int, int], barred: Sequence[tuple[int, int]], last: int) -> Tensor:
    """Which columns of the automaton other rules allow at each position up to `last`, which stands for all later ones."""
    allowed_PA = torch.ones(last + 1, 1 + len(pieces), dtype=torch.bool)
    for position, token in fixed.items():
        allowed_PA[position] = torch.tensor([token not in pieces, *(piece == token for piece in pieces)])
    for position, token in barred:
        if token in pieces:
            allowed_PA[position, 1 + pieces.index(token)] = False
    return allowed_PA


def needs(next_SA: Tensor, open_S: Tensor, allowed_PA: Tensor, ends: Sequence[int]) -> Tensor:
    """need(p, s) = 0 where nothing is missing, else 1 + min over allowed tokens a of need(p + 1, next(s, a)); NEVER where the
    output is forced to end. After the last fixed position it is the same for all p: the limit of repeating the equation."""

    def before(need_S: Tensor, allowed_A: Tensor) -> Tensor:
        least_S = need_S[next_SA].masked_fill(~allowed_A, NEVER).amin(1)
        return torch.where(open_S, (1 + least_S).clamp(max=NEVER), 0)

    need_S = torch.where(open_S, NEVER, 0)
    while not torch.equal(need_S, nearer_S := before(need_S, allowed_PA[-1])):
        need_S = nearer_S
    rows = [need_S]
    for position in reversed(range(len(allowed_PA) - 1)):
        need_S = torch.where(open_S, NEVER, 0) if position in ends else before(need_S, allowed_PA[position])
        rows.append(need_S)
    return torch.stack(rows[::-1])
