"""What-ifs as values. An edit names a change to one decoding; an empty tuple of edits changes nothing, bit for bit.

Positions count target tokens from 0 (the first token after <bos>); source positions count encoder states from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from types import UnionType
from typing import Any, Protocol, TypeGuard, get_args, get_origin, get_type_hints

from seqdemo.config import EOS, MAX_STEPS, ModelConfig, Plain, SearchOptions, fields_of, terms
from seqdemo.errors import InputError, shown

BLENDS = ("uniform", "last", "nothing")
PARTS = ("encoder", "decoder")
DIRECTIONS = ("forward", "backward")
MOST_EDITS = 20
MOST_REQUIRED = 5  # words; each doubles the states to follow
MOST_SPELLINGS = 20
MOST_PIECES = 50  # of one spelling
MOST_LETTERS = 100  # of a piece or word in JSON
AS_TOLD = ("pieces", "word", "says")  # keys that a page may send beside the fields


@dataclass(frozen=True)
class Force(Plain):
    """The target tokens from `position` on must be `tokens` (a word of several pieces is one edit)."""

    position: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Ban(Plain):
    """The target tokens from `position` on must not be exactly `tokens`."""

    position: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Require(Plain):
    """A word must stand somewhere in the output, after what was given: its pieces, one after the other.

    `spellings` are the ways to write it, of which one is enough; a single spelling may be given without a tuple around it.
    """

    spellings: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.spellings, tuple) and self.spellings and all(isinstance(piece, int) for piece in self.spellings):
            object.__setattr__(self, "spellings", (self.spellings,))

    def stands_in(self, tokens: tuple[int, ...]) -> bool:
        return any(
            tokens[start : start + len(each)] == each for each in self.spellings for start in range(len(tokens) - len(each) + 1)
        )


@dataclass(frozen=True)
class AttentionRow(Plain):
    """At target `position` attention is this row, over the source; it is normalised to sum to 1.

    `layer` and `head` name one of each; None means all.
    """

    position: int
    weights: tuple[float, ...]
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class AttentionBlend(Plain):
    """At every step (or only at `positions`) attention moves by `factor` towards 'uniform', 'last' or 'nothing'.

    'nothing' leaves the row and scales the context vector by 1 - factor. Layer and head as in `AttentionRow`.
    """

    factor: float
    towards: str = "uniform"
    positions: tuple[int, ...] | None = None
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class AttentionDraw(Plain):
    """Hard attention looks at positions drawn from its distribution instead of the likeliest; the same seed draws the same."""

    seed: int = 0


@dataclass(frozen=True)
class ClampGate(Plain):
    """Gate `gate` of layer `layer` is held at `value` for the given units and steps (None: all of them).

    `value` is a number, 'mean' (each unit's mean over the untouched greedy output), or one number for each unit of the layer.
    """

    part: str  # encoder | decoder
    gate: str
    value: float | str | tuple[float, ...]
    layer: int = 0
    direction: str = "forward"  # encoder only
    units: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None


Edit = Force | Ban | Require | AttentionRow | AttentionBlend | AttentionDraw | ClampGate
KINDS = (Force, Ban, Require, AttentionRow, AttentionBlend, AttentionDraw, ClampGate)
EDITS: dict[str, type[Any]] = {kind.__name__: kind for kind in KINDS}


def is_word(edit: Edit) -> bool:
    """Whether the edit is about words and so acts on the search; the others act inside the network."""
    return isinstance(edit, (Force, Ban, Require))


def edit_to_json(edit: Edit) -> dict[str, Any]:
    return {"kind": type(edit).__name__, **asdict(edit)}


class Vocabulary(Protocol):
    """The part of a tokenizer that edits need."""

    def index(self, piece: str) -> int | None: ...

    def spellings(self, word: str) -> tuple[tuple[int, ...], ...]: ...


def edit_from_json(value: Any, text: Vocabulary | None = None) -> Edit:
    """The inverse of `edit_to_json`, for JSON from anybody. With `text`, the tokenizer of the model, a forced or banned word may
    be given by its `pieces`, and a required one as a `word`."""
    kind = EDITS.get(str(value.get("kind"))) if isinstance(value, dict) else None
    if kind is None:
        raise InputError(f"An edit is a JSON object whose kind is one of {', '.join(EDITS)}.")
    given = {name: without_lists(item) for name, item in value.items() if name not in ("kind", *AS_TOLD)}
    if text is not None and kind in (Force, Ban) and value.get("pieces") is not None:
        given["tokens"] = tokens_of_pieces(value["pieces"], text)
    if text is not None and kind is Require and value.get("word") is not None:
        given["spellings"] = spellings_of(value["word"], text)
    for name, wanted in get_type_hints(kind).items():
        if name in given and not fits(given[name], wanted):
            raise InputError(f"The {name} of a {kind.__name__} cannot be {shown(given[name])}.")
    edit: Edit = kind(**fields_of(kind, given))
    return edit


def fits(value: Any, kind: Any) -> bool:
    """Whether the value has this type, one of those that fields of edits have."""
    if isinstance(kind, UnionType):
        return any(fits(value, each) for each in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and len(value) <= MAX_STEPS and all(fits(item, get_args(kind)[0]) for item in value)
    return isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)


def tokens_of_pieces(pieces: Any, text: Vocabulary) -> tuple[int, ...]:
    if not isinstance(pieces, list) or len(pieces) > MAX_STEPS:
        raise InputError("Pieces are a list of texts.")
    tokens = [text.index(piece) if isinstance(piece, str) and len(piece) <= MOST_LETTERS else None for piece in pieces]
    for piece, token in zip(pieces, tokens):
        if token is None:
            raise InputError(
                f"This model has no piece “{str(piece)[:MOST_LETTERS]}”, so that piece can be neither forced nor forbidden. "
                "Remove the edit, or choose another model."
            )
    return tuple(token for token in tokens if token is not None)


def spellings_of(word: Any, text: Vocabulary) -> tuple[tuple[int, ...], ...]:
    if not isinstance(word, str) or len(word) > MOST_LETTERS:
        raise InputError(f"A required word is a text of at most {MOST_LETTERS} characters.")
    spellings = text.spellings(word.strip())
    if not spellings:
        raise InputError(
            f"This model has no pieces for “{word}”, so it cannot say it. Take the edit back, or ask for another word."
        )
    return spellings


def without_lists(value: Any) -> Any:
    return tuple(map(without_lists, value)) if isinstance(value, list) else value


def check_edits(
    edits: tuple[Edit, ...], config: ModelConfig, source_length: int, limit: int, prefix: Force | None = None
) -> None:
    """Check that every edit fits the model, the source (in encoder states), the longest output and the prefix that the options
    force."""
    if not isinstance(edits, (tuple, list)) or not all(isinstance(edit, tuple(EDITS.values())) for edit in edits):
        raise InputError(f"Edits are a tuple, and each is one of {', '.join(EDITS)}.")
    if len(edits) > MOST_EDITS:
        raise InputError(f"At most {MOST_EDITS} edits at once, not {len(edits)}; take some of them back.")
    for edit in edits:
        if isinstance(edit, (Force, Ban)):
            check_tokens(edit, config, limit)
        elif isinstance(edit, Require):
            check_required(edit, config)
        elif isinstance(edit, ClampGate):
            check_clamp(edit, config, source_length, limit)
        elif isinstance(edit, AttentionRow):
            check_row(edit, config, source_length, limit)
        elif isinstance(edit, AttentionDraw):
            check_draw(edit, config)
        else:
            check_blend(edit, config, limit)
    if prefix:
        check_tokens(prefix, config, limit)
    check_agreement([edit for edit in (prefix, *edits) if isinstance(edit, (Force, Ban))])
    if sum(isinstance(edit, AttentionDraw) for edit in edits) > 1:
        raise InputError("Attention is drawn by one seed; remove the other edits of this kind.")
    if sum(isinstance(edit, Require) for edit in edits) > MOST_REQUIRED:
        raise InputError(f"At most {MOST_REQUIRED} words can be required at once.")


def whole(value: Any, below: int) -> TypeGuard[int]:
    """Whether the value is a whole number from 0 up to below `below`, of Python or NumPy."""
    return not isinstance(value, bool) and isinstance(value, Integral) and 0 <= int(value) < below


def number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e6


def check_tokens(edit: Force | Ban, config: ModelConfig, limit: int) -> None:
    tokens = edit.tokens
    if not isinstance(tokens, tuple) or not tokens or not all(whole(token, config.target_vocabulary) for token in tokens):
        raise InputError(f"A forced or banned word is one or more piece numbers below {config.target_vocabulary}.")
    check_place(edit.position, limit)
    check_place(edit.position + len(tokens) - 1, limit)


def check_required(edit: Require, config: ModelConfig) -> None:
    spellings = edit.spellings
    if not isinstance(spellings, tuple) or not 1 <= len(spellings) <= MOST_SPELLINGS:
        raise InputError(f"A required word has from 1 to {MOST_SPELLINGS} spellings.")
    for tokens in spellings:
        whole_word = isinstance(tokens, tuple) and all(whole(token, config.target_vocabulary) for token in tokens)
        if not whole_word or not 1 <= len(tokens) <= MOST_PIECES or min(tokens) <= EOS:
            raise InputError(
                f"A required word is from 1 to {MOST_PIECES} piece numbers below {config.target_vocabulary}, "
                "none of them <pad>, <bos> or <eos>."
            )


def check_place(position: Any, limit: int) -> None:
    if not whole(position, limit):
        raise InputError(f"Position {position} is outside this output, which has room for {limit} pieces, counted from 0.")


def forced_pieces(edits: Iterable[Edit]) -> list[tuple[int, int]]:
    """The position and the number of every forced piece."""
    return [place for edit in edits if isinstance(edit, Force) for place in enumerate(edit.tokens, edit.position)]


def holds(tokens: Sequence[int], edits: Sequence[Edit], given: int = 0) -> bool:
    """Whether an output has every forced piece in its place and, after the `given` pieces, every required word."""
    forced = all(position < len(tokens) and tokens[position] == token for position, token in forced_pieces(edits))
    return forced and all(edit.stands_in(tuple(tokens[given:])) for edit in edits if isinstance(edit, Require))


def check_agreement(edits: list[Force | Ban]) -> None:
    forced: dict[int, int] = {}
    for position, token in forced_pieces(edits):
        if forced.setdefault(position, token) != token:
            raise InputError(f"Two different pieces are forced at position {position}; take one of the edits back.")
    if EOS in forced.values() and max(forced) > min(position for position, token in forced.items() if token == EOS):
        raise InputError("An edit forces the output to end before the place of another; take one of them back.")
    for edit in edits:
        if isinstance(edit, Ban) and all(forced.get(edit.position + k) == token for k, token in enumerate(edit.tokens)):
            raise InputError(f"The pieces at position {edit.position} are both forced and banned; take one of the edits back.")


def check_attention(edit: AttentionRow | AttentionBlend, config: ModelConfig) -> None:
    if not config.has_attention:
        raise InputError("This model has no attention to edit; choose a checkpoint with attention.")
    for what, value, count in (("layer", edit.layer, config.attention_layers), ("head", edit.head, config.heads)):
        if value is not None and not whole(value, count):
            raise InputError(f"This model has no attention {what} {value!r}: it has {count}, counted from 0.")


def check_row(edit: AttentionRow, config: ModelConfig, source_length: int, limit: int) -> None:
    check_attention(edit, config)
    check_place(edit.position, limit)
    row = edit.weights
    if not isinstance(row, tuple) or len(row) != source_length:
        raise InputError(f"An attention row for this source has {source_length} weights, one for each of its positions.")
    if not all(number(weight) and weight >= 0 for weight in row) or sum(row) <= 0:
        raise InputError("The weights of an attention row are numbers from 0 up, and at least one is above 0.")


def check_draw(edit: AttentionDraw, config: ModelConfig) -> None:
    if not config.hard:
        raise InputError("Only hard attention draws the position that it looks at; this model's attention, if any, is soft.")
    if not whole(edit.seed, 2**31):
        raise InputError(f"A seed is a whole number from 0 to {2**31 - 1:,}, not {edit.seed!r}.")


def check_positions(positions: tuple[int, ...] | None, limit: int) -> None:
    if positions is None:
        return
    if not isinstance(positions, tuple):
        raise InputError("Positions are a tuple of whole numbers, counted from 0.")
    for position in positions:
        check_place(position, limit)


def check_source_positions(positions: tuple[int, ...] | None, length: int) -> None:
    if positions is not None and not (isinstance(positions, tuple) and all(whole(position, length) for position in positions)):
        raise InputError(f"Positions of this source are whole numbers from 0 to {length - 1}.")


def check_blend(edit: AttentionBlend, config: ModelConfig, limit: int) -> None:
    check_attention(edit, config)
    check_positions(edit.positions, limit)
    if edit.towards not in BLENDS:
        raise InputError(f"Attention can be blended towards {', '.join(BLENDS)}, not {edit.towards!r}.")
    if not number(edit.factor) or not 0 <= edit.factor <= 1:
        raise InputError(f"The blend factor is a number from 0 to 1, not {edit.factor!r}.")


def check_clamp(edit: ClampGate, config: ModelConfig, source_length: int, limit: int) -> None:
    if config.is_transformer:
        raise InputError("A Transformer has no cells, so there is no gate to hold.")
    gates = terms(config.cell)
    if edit.gate not in gates:
        raise InputError(f"The {config.cell} cell has no {edit.gate!r} gate; it has {', '.join(gates)}.")
    if edit.part not in PARTS or (edit.part == "encoder" and config.encoder != "text"):
        raise InputError(f"This model has no recurrent part {edit.part!r}.")
    layers, units = (
        (config.encoder_layers, config.encoder_hidden)
        if edit.part == "encoder"
        else (config.decoder_layers, config.decoder_hidden)
    )
    if not whole(edit.layer, layers):
        raise InputError(f"The {edit.part} has {layers} layer{'s' * (layers > 1)}, counted from 0.")
    if edit.direction not in DIRECTIONS[: 1 + (edit.part == "encoder" and config.bidirectional)]:
        raise InputError(f"This {edit.part} does not read in the direction {edit.direction!r}.")
    if edit.units is not None and not (isinstance(edit.units, tuple) and all(whole(unit, units) for unit in edit.units)):
        raise InputError(f"Units of this layer are whole numbers from 0 to {units - 1}.")
    if edit.part == "encoder":
        check_source_positions(edit.positions, source_length)
    else:
        check_positions(edit.positions, limit)
    check_value(edit.value, units)


def check_value(value: Any, units: int) -> None:
    if isinstance(value, tuple):
        if len(value) != units or not all(map(number, value)):
            raise InputError(f"A list of values holds one number for each of the layer's {units} units.")
    elif value != "mean" and not number(value):
        raise InputError(f"A gate is held at a number or at 'mean', not {value!r}.")


def check_options(edits: tuple[Edit, ...], options: SearchOptions, given: int, limit: int) -> None:
    """Check that no edit contradicts an option of the search, for an output of at most `limit` pieces after the `given` ones."""
    forced = dict(forced_pieces(edits))
    for position, token in forced.items():
        if token == EOS and position - given < options.min_length:
            raise InputError(
                f"The output is forced to end at position {position}, before its minimum length of {options.min_length}; "
                "lower that, or take the edit back."
            )
    if options.at_limit == "force":
        check_last_place([edit for edit in edits if isinstance(edit, Ban)], forced, given + limit - 1)
    if options.no_repeat:
        check_repeats(forced, options.no_repeat, set(options.may_repeat))


def check_last_place(bans: list[Ban], forced: dict[int, int], last: int) -> None:
    """Check that edits allow the end at the last position, where the options force it."""
    for ban in bans:
        said = all(forced.get(position) == token for position, token in enumerate(ban.tokens[:-1], ban.position))
        if ban.tokens[-1] == EOS and ban.position + len(ban.tokens) - 1 == last and said:
            raise InputError(f"At the limit, position {last}, the output must end, and an edit bans that; take one of them back.")
    if forced.get(last, EOS) != EOS:
        raise InputError(f"At the limit, position {last}, the output must end; force another piece earlier, or raise the limit.")


def check_repeats(forced: dict[int, int], n: int, exempt: set[int]) -> None:
    seen = set()
    for first in forced:
        gram = tuple(forced.get(position) for position in range(first, first + n))
        if gram in seen and None not in gram and exempt.isdisjoint(gram):
            raise InputError(
                f"What is forced at position {first} repeats, but repeated {n}-grams are not allowed; change one of the two."
            )
        seen.add(gram)
