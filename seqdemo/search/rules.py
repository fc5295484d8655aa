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
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seqdemo.config import SearchOptions
from seqdemo.errors import InputError
from seqdemo.state import Logits, select

NO_TOKEN = -1
Texts = Sequence[Sequence[int]]


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
    """No <eos> before so many tokens."""

    def __init__(self, length: int) -> None:
        self.length = length

    def apply(self, logits: Logits, now: Now, state: None) -> Logits:
        if now.written < self.length:
            logits.values_KV[:, now.eos] = -math.inf
        return logits


class NoRepeats(Remembers):
    """No n tokens in a row twice, unless one of the `exempt` is among them."""

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
    """These tokens, from `position` on (None: directly after what was given). The output may not end before."""

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
    """Not exactly these tokens from `position` on."""

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
    """Only <eos> as the last token there is room for, at its own price."""

    def apply(self, logits: Logits, now: Now, state: None) -> Logits:
        others_V = torch.arange(logits.values_KV.shape[1]) != now.eos
        return logits._replace(values_KV=logits.values_KV.masked_fill((now.room_K <= 1)[:, None] & others_V, -math.inf))


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


class Ahead(NamedTuple):
    """What each candidate of a step would miss of what the rules require."""

    rules: Rules
    now: Now
    states: tuple[Any, ...]

    @property
    def pieces_A(self) -> Tensor:
        """The tokens that can lower it."""
        return self.rules.pieces

    def missing(self, rows_N: Tensor, tokens_N: Tensor) -> Tensor:
        """How many tokens each of these rows misses after it said its token."""
        then = Now(self.now.written + 1, self.now.given_K[rows_N], self.now.room_K[rows_N] - 1, self.now.eos)
        missing_N = self.rules.missing(then, self.rules.after(select(self.states, rows_N), tokens_N))
        assert missing_N is not None
        return missing_N


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
