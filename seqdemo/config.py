"""ModelConfig and SearchOptions: frozen values, checked when they are made, JSON both ways."""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError, shown
from seqdemo.moved import warn

PAD, BOS, EOS, UNK = 0, 1, 2, 3
LANGUAGE_NAMES = {
    "bn": "Bengali", "de": "German", "en": "English", "gu": "Gujarati", "hi": "Hindi", "kn": "Kannada", "ml": "Malayalam",
    "mr": "Marathi", "pa": "Punjabi", "sd": "Sindhi", "si": "Sinhala", "ta": "Tamil", "te": "Telugu", "ur": "Urdu",
}  # fmt: skip

SCORE_NAMES = ("dot", "scaled-dot", "bilinear", "additive", "keys-queries")
TRANSFORMER = "transformer"
SINGLE = "single"  # one recurrent network that reads the source and writes
DECODER_NAMES = ("context-once", "context-each", "attend-before", "attend-after")  # those of a recurrent encoder
ENCODER_NAMES = ("text", "image", "none")
CNN_NAMES = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
STRATEGIES = ("greedy", "beam", "sample", "exact", "stochastic")
LENGTH_NORMS = ("none", "power", "gnmt")
FINISHED_RULES = ("stay", "free", "leave")
EARLY_RULES = ("true", "false", "never")
LIMIT_RULES = ("cut", "force")
TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "int8": 1e-2}  # a search and its replay may differ by this times 1 + |total|
PRECISIONS = tuple(TOLERANCE)

MAX_BEAM = 100
MAX_UNITS = 4096
MAX_BLOCKS = 12  # of a Transformer's encoder, and of its decoder
MAX_VOCABULARY = 65_536
MAX_STEPS = 5_000


def terms(cell: str) -> tuple[str, ...]:
    """The names of a cell's terms, in the order in which it computes them."""
    return tuple(term.name for term in EQUATIONS[cell])


def switches() -> frozenset[str]:
    """The names of all gates that open and shut, in whatever cell: sigmoids, between 0 and 1."""
    return frozenset(term.name for cell in EQUATIONS.values() for term in cell if term.equation.startswith("sigmoid("))


def from_json(kind: type, values: Any) -> Any:
    """The frozen dataclass `kind` from a JSON object."""
    return kind(**fields_of(kind, values))


def fields_of(kind: type, values: Any) -> dict[str, Any]:
    """The values of a JSON object, after a check that none of the fields of `kind` is missing and that there are no others."""
    names = [field.name for field in fields(kind)]
    if not isinstance(values, dict):
        raise InputError(f"{kind.__name__} must be a JSON object, not {type(values).__name__}.")
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise InputError(f"{kind.__name__} has no {', '.join(map(shown, unknown[:5]))}; it knows {', '.join(names)}.")
    required = [field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING]
    missing = [name for name in required if name not in values]
    if missing:
        raise InputError(f"{kind.__name__} is incomplete: it needs {', '.join(missing)}.")
    return values


def __getattr__(name: str) -> Any:
    """Names that moved to `seqdemo.equations`."""
    moved = {"CELL_NAMES": tuple(EQUATIONS), "CELL_GATES": {cell: terms(cell) for cell in EQUATIONS}}
    if name not in moved:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn(f"seqdemo.config.{name}", "seqdemo.equations.EQUATIONS", 3)
    return moved[name]


def plain(value: Any) -> Any:
    """Numbers of NumPy, such as those of a Trace, as Python's own; arrays and lists as tuples."""
    if hasattr(value, "tolist"):  # NumPy is not imported, because help and usage errors must appear without it
        value = value.tolist()
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


class Plain:
    """A frozen record whose fields hold Python's own numbers and tuples, even if it was made from NumPy's or from lists."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, plain(value))


def _one_of(label: str, value: Any, names: tuple[str, ...]) -> None:
    if value not in names:
        raise InputError(f"{label} {shown(value)} is not known; choose one of {', '.join(names)}.")


def _whole(label: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"{label} must be a whole number from {low:,} to {high:,}, not {shown(value)}.")


def _number(label: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InputError(f"{label} must be a number from {low:g} to {high:g}, not {shown(value)}.")


def _tokens(label: str, value: Any) -> None:
    if not isinstance(value, tuple) or len(value) > MAX_STEPS:
        raise InputError(f"{label} must be a list of token numbers, not {shown(value)}.")
    for token in value:
        _whole(f"{label}: each token", token, 0, MAX_VOCABULARY - 1)


@dataclass(frozen=True)
class ModelConfig(Plain):
    """The shape of a model. Sizes are units; `features` 0 means the readout sees [s; c] itself."""

    target_vocabulary: int
    source_vocabulary: int = 0
    encoder: str = "text"  # text | image | none (a language model)
    decoder: str = "attend-after"
    score: str = "additive"
    cell: str = "lstm-b"
    embedding: int = 256
    encoder_hidden: int = 256
    encoder_layers: int = 1
    bidirectional: bool = True
    decoder_hidden: int = 400
    decoder_layers: int = 1
    attention: int = 256  # size of keys and queries
    features: int = 256  # size of the vector tanh(W [s; c]) the readout sees
    context_to_readout: bool = True
    share_embeddings: bool = False  # one table for source and target
    tie_readout: bool = False  # the readout is the target table again (features == embedding)
    dropout: float = 0.0
    hard: bool = False  # attention looks at one position, the likeliest; while it is trained, at drawn ones
    cnn: str = ""
    finer: bool = False  # cells of a picture also hold features of an earlier, finer stage of the CNN
    attention_heads: int = 0  # of a Transformer, which is as wide as its embedding
    feed_forward: int = 0  # of a Transformer: the width inside its feed-forward layers

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("Encoder", self.encoder, ENCODER_NAMES)
        _one_of("Decoder", self.decoder, (*DECODER_NAMES, TRANSFORMER, SINGLE))
        _one_of("Score", self.score, SCORE_NAMES)
        _one_of("Cell", self.cell, tuple(EQUATIONS))
        _whole("target_vocabulary", self.target_vocabulary, 4, MAX_VOCABULARY)
        _whole("source_vocabulary", self.source_vocabulary, 4 if self.encoder == "text" else 0, MAX_VOCABULARY)
        for name in ("embedding", "encoder_hidden", "decoder_hidden", "attention"):
            _whole(name, getattr(self, name), 1, MAX_UNITS)
        _whole("features", self.features, 0, MAX_UNITS)
        for name in ("encoder_layers", "decoder_layers"):
            _whole(name, getattr(self, name), 1, MAX_BLOCKS if self.is_transformer else 3)
        for name in ("bidirectional", "context_to_readout", "share_embeddings", "tie_readout", "hard", "finer"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, not {shown(getattr(self, name))}.")
        _number("dropout", self.dropout, 0.0, 0.9)
        self._check_transformer()
        self._check_single()
        if self.encoder == "image":
            _one_of("CNN", self.cnn, CNN_NAMES)
        elif self.cnn or self.finer:
            raise InputError(f"Only an image encoder has a CNN, not encoder {self.encoder!r}.")
        if self.hard and (self.is_transformer or not self.has_attention):
            raise InputError("Hard attention is that of a recurrent decoder that attends; set hard to false.")
        if self.share_embeddings and (self.encoder != "text" or self.source_vocabulary != self.target_vocabulary):
            raise InputError("Shared embeddings need a text encoder with one vocabulary for source and target.")
        if self.tie_readout and (self.features or self.readout_input) != self.embedding:
            raise InputError("A tied readout needs features (or, without them, the readout's input) of the embedding's size.")
        if self.has_attention and self.decoder == "attend-after" and not self.context_to_readout:
            raise InputError("With attend-after the context must reach the readout, because nothing else uses it.")
        if (
            self.decoder.startswith("attend")
            and self.encoder != "none"
            and self.score == "dot"
            and self.memory_size != self.decoder_hidden
        ):
            raise InputError(
                f"The dot score needs encoder states as wide as the decoder's: {self.memory_size} is not {self.decoder_hidden}."
            )

    def _check_transformer(self) -> None:
        if not self.is_transformer:
            if self.attention_heads or self.feed_forward:
                raise InputError(f"Heads and feed-forward layers are a Transformer's; decoder {self.decoder!r} has none.")
            return
        _whole("attention_heads", self.attention_heads, 1, 64)
        _whole("feed_forward", self.feed_forward, 1, MAX_UNITS)
        if self.encoder != "text":
            raise InputError(f"A Transformer reads a text, not encoder {self.encoder!r}.")
        if self.embedding % (2 * self.attention_heads):
            raise InputError(
                f"The embedding of a Transformer is cut into {self.attention_heads} heads and filled with pairs of waves: "
                f"{self.embedding} is not a multiple of {2 * self.attention_heads}."
            )
        if self.features:
            raise InputError("A Transformer's readout sees its last layer: set features to 0.")

    def _check_single(self) -> None:
        if not self.is_single:
            return
        if self.encoder != "text":
            raise InputError(f"A single network reads a text, not encoder {self.encoder!r}.")
        if self.bidirectional:
            raise InputError("A single network reads from the left only: set bidirectional to false.")
        for size in ("hidden", "layers"):
            read, written = (getattr(self, f"{part}_{size}") for part in ("encoder", "decoder"))
            if read != written:
                raise InputError(
                    f"A single network reads and writes with the same cells: encoder_{size} {read} is not {written}."
                )

    @property
    def is_transformer(self) -> bool:
        return self.decoder == TRANSFORMER

    @property
    def is_single(self) -> bool:
        return self.decoder == SINGLE

    @property
    def has_attention(self) -> bool:
        return self.encoder != "none" and (self.is_transformer or self.decoder.startswith("attend"))

    @property
    def attention_layers(self) -> int:
        """How many layers look at the source."""
        return self.decoder_layers if self.is_transformer else int(self.has_attention)

    @property
    def heads(self) -> int:
        """How many heads such a layer has."""
        return self.attention_heads if self.is_transformer else int(self.has_attention)

    @property
    def memory_size(self) -> int:
        """Width of one encoder state as the decoder sees it."""
        if self.is_transformer:
            return self.embedding
        return self.encoder_hidden * (2 if self.bidirectional and self.encoder == "text" else 1)

    @property
    def readout_input(self) -> int:
        """Width of [s; c] (or of s alone); of a Transformer that of its last layer."""
        if self.is_transformer:
            return self.embedding
        sees_context = self.encoder != "none" and self.context_to_readout and self.decoder not in ("context-once", SINGLE)
        return self.decoder_hidden + (self.memory_size if sees_context else 0)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class SearchOptions(Plain):
    """How to search. The words are those of the command line and of the pages."""

    strategy: str = "beam"
    beam: int = 5
    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    typical: float = 1.0  # draw among the tokens whose surprisal is nearest to the entropy, of this mass; 1: all
    min_p: float = 0.0  # draw among the tokens of at least this share of the most probable one's probability; 0: all
    seed: int = 0
    length_norm: str = "none"  # none | power: total / n^alpha | gnmt: total / ((5+n)/6)^alpha
    alpha: float = 1.0
    coverage: float = 0.0  # weight of sum_j log min(1, sum_t a_tj), added to a finished hypothesis's score
    min_length: int = 0  # tokens before <eos>
    max_length: int = 0  # tokens including <eos>; 0: the model's own limit
    at_limit: str = "cut"  # unfinished outputs there: cut as they are | force: <eos> at its own price
    no_repeat: int = 0  # n: no n-gram of target tokens twice; 0: off
    may_repeat: tuple[int, ...] = ()  # n-grams that hold one of these tokens may come again
    repetition_penalty: float = 1.0  # what the value of a token that was said before is divided by; 1: off
    prefix: tuple[int, ...] = ()  # the tokens that the output must begin with
    finished: str = "stay"  # stay: holds its place in the beam | free: is banked and frees it | leave: leaves it empty for a step
    early: str = "false"  # with finished = free, when to stop: true | false | never
    patience: float = 1.0  # with finished = free: it stops when this many beams full of finished outputs are banked
    groups: int = 1  # of the beam, which choose one after the other
    diversity: float = 0.5  # what a token costs a group for each time that an earlier one chose it at this step
    siblings: float = 0.0  # the k-th best continuation of a hypothesis pays k times this
    nbest: int = 5
    samples: int = 1  # with strategy = sample
    expansions: int = 20_000  # budget of exact search
    frontier: int = 200_000  # budget of its open prefixes

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("Strategy", self.strategy, STRATEGIES)
        _one_of("Length normalisation", self.length_norm, LENGTH_NORMS)
        _one_of("The rule for finished hypotheses", self.finished, FINISHED_RULES)
        _one_of("Early stopping", self.early, EARLY_RULES)
        _one_of("The rule at the length limit", self.at_limit, LIMIT_RULES)
        _whole("Beam size", self.beam, 1, MAX_BEAM)
        _number("Temperature", self.temperature, 0.01, 100.0)
        _whole("top-k", self.top_k, 0, MAX_VOCABULARY)
        _number("top-p", self.top_p, 0.001, 1.0)
        _number("typical", self.typical, 0.001, 1.0)
        _number("min-p", self.min_p, 0.0, 1.0)
        _whole("Seed", self.seed, 0, 2**31 - 1)
        _number("alpha", self.alpha, -5.0, 5.0)
        _number("Coverage", self.coverage, 0.0, 10.0)
        _whole("Minimum length", self.min_length, 0, MAX_STEPS)
        _whole("Maximum length", self.max_length, 0, MAX_STEPS)
        _whole("no_repeat (--no-repeat)", self.no_repeat, 0, 20)
        _tokens("The tokens that may repeat", self.may_repeat)
        _tokens("The forced beginning", self.prefix)
        _number("Repetition penalty", self.repetition_penalty, 0.1, 10.0)
        _number("Patience", self.patience, 0.01, 10.0)
        _whole("Groups", self.groups, 1, MAX_BEAM)
        _number("Diversity", self.diversity, 0.0, 100.0)
        _number("Siblings", self.siblings, 0.0, 100.0)
        self._check_diversity()
        _whole("n-best", self.nbest, 1, MAX_BEAM)
        _whole("Samples", self.samples, 1, 1_000)
        _whole("Expansions", self.expansions, 1, 10_000_000)
        _whole("Frontier", self.frontier, 1, 10_000_000)
        self._check_prefix()
        if self.max_length and self.min_length >= self.max_length:
            raise InputError(
                f"A minimum length of {self.min_length} leaves no room below the maximum length of {self.max_length}; lower one."
            )

    def _check_diversity(self) -> None:
        if self.beam % self.groups:
            raise InputError(f"A beam of {self.beam} cannot be cut into {self.groups} equal groups; choose a multiple.")
        if self.groups > 1 and self.siblings:
            raise InputError("A beam pays for equal groups or for siblings, not for both; set groups to 1 or siblings to 0.")
        if self.groups > 1 and self.finished == "leave":
            raise InputError("With groups of a beam, finished hypotheses stay or free their place; choose finished stay or free.")
        if self.strategy == "stochastic" and (self.length_norm != "none" or self.coverage):
            raise InputError("Stochastic beam search ranks by perturbed log probability; take normalisation and coverage off.")

    def _check_prefix(self) -> None:
        if EOS in self.prefix[:-1]:
            raise InputError("The forced beginning has tokens after <eos>; leave them out.")
        if self.prefix[-1:] == (EOS,) and len(self.prefix) <= self.min_length:
            raise InputError(f"The forced beginning ends before the minimum length of {self.min_length}; lower that.")
        if self.max_length and len(self.prefix) > self.max_length:
            raise InputError(
                f"The forced beginning has {len(self.prefix)} tokens, more than the maximum length of {self.max_length}."
            )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def length_penalty(length: Any, norm: str, alpha: float) -> Any:
    """What a total is divided by; `length` counts <eos> when present and never <bos>."""
    if norm == "power":
        return length**alpha
    if norm == "gnmt":
        return ((5.0 + length) / 6.0) ** alpha
    return length * 0.0 + 1.0
