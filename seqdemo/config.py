"""ModelConfig and SearchOptions: frozen values, checked at the door, JSON both ways."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from seqdemo.errors import InputError, shown

PAD, BOS, EOS, UNK = 0, 1, 2, 3
LANGUAGE_NAMES = {
    "bn": "Bengali", "de": "German", "en": "English", "gu": "Gujarati", "hi": "Hindi", "kn": "Kannada", "ml": "Malayalam",
    "mr": "Marathi", "pa": "Punjabi", "sd": "Sindhi", "si": "Sinhala", "ta": "Tamil", "te": "Telugu", "ur": "Urdu",
}  # fmt: skip

_LSTM = ("input", "forget", "output", "candidate", "cell", "hidden")
_GRU = ("reset", "update", "candidate", "hidden")
CELL_GATES = {
    "elman": ("hidden",),
    "lstm": _LSTM,
    "lstm-b": _LSTM,
    "lstm-i": ("forget", "output", "candidate", "cell", "hidden"),
    "lstm-f": ("input", "output", "candidate", "cell", "hidden"),
    "lstm-o": ("input", "forget", "candidate", "cell", "hidden"),
    "gru": _GRU,
    "mut1": _GRU,
    "mut2": _GRU,
    "mut3": _GRU,
}
CELL_NAMES = tuple(CELL_GATES)
SCORE_NAMES = ("dot", "scaled-dot", "bilinear", "additive", "keys-queries")
DECODER_NAMES = ("context-once", "context-each", "attend-before", "attend-after")
ENCODER_NAMES = ("text", "image", "none")
CNN_NAMES = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
STRATEGIES = ("greedy", "beam", "sample", "exact")
LENGTH_NORMS = ("none", "power", "gnmt")
FINISHED_RULES = ("stay", "free")
EARLY_RULES = ("true", "false", "never")
LIMIT_RULES = ("cut", "force")

MAX_BEAM = 100
MAX_UNITS = 4096
MAX_VOCABULARY = 65_536
MAX_STEPS = 5_000


def from_json(kind: type, values: Any) -> Any:
    """Build the frozen dataclass `kind` from a JSON object; an unknown key is an error that lists the valid ones."""
    names = [field.name for field in fields(kind)]
    if not isinstance(values, dict):
        raise InputError(f"{kind.__name__} must be a JSON object, not {type(values).__name__}.")
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise InputError(f"{kind.__name__} has no {', '.join(map(shown, unknown[:5]))}; it knows {', '.join(names)}.")
    try:
        return kind(**values)
    except TypeError as error:
        raise InputError(f"{kind.__name__} is incomplete: {error}.") from None


def _one_of(label: str, value: Any, names: tuple[str, ...]) -> None:
    if value not in names:
        raise InputError(f"{label} {shown(value)} is not known; choose one of {', '.join(names)}.")


def _whole(label: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"{label} must be a whole number from {low:,} to {high:,}, not {shown(value)}.")


def _number(label: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InputError(f"{label} must be a number from {low:g} to {high:g}, not {shown(value)}.")


@dataclass(frozen=True)
class ModelConfig:
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
    cnn: str = ""

    def __post_init__(self) -> None:
        _one_of("Encoder", self.encoder, ENCODER_NAMES)
        _one_of("Decoder", self.decoder, DECODER_NAMES)
        _one_of("Score", self.score, SCORE_NAMES)
        _one_of("Cell", self.cell, CELL_NAMES)
        _whole("target_vocabulary", self.target_vocabulary, 4, MAX_VOCABULARY)
        _whole("source_vocabulary", self.source_vocabulary, 4 if self.encoder == "text" else 0, MAX_VOCABULARY)
        for name in ("embedding", "encoder_hidden", "decoder_hidden", "attention"):
            _whole(name, getattr(self, name), 1, MAX_UNITS)
        _whole("features", self.features, 0, MAX_UNITS)
        for name in ("encoder_layers", "decoder_layers"):
            _whole(name, getattr(self, name), 1, 3)
        for name in ("bidirectional", "context_to_readout", "share_embeddings", "tie_readout"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, not {shown(getattr(self, name))}.")
        _number("dropout", self.dropout, 0.0, 0.9)
        if self.encoder == "image":
            _one_of("CNN", self.cnn, CNN_NAMES)
        elif self.cnn:
            raise InputError(f"Only an image encoder has a CNN, not encoder {self.encoder!r}.")
        if self.share_embeddings and (self.encoder != "text" or self.source_vocabulary != self.target_vocabulary):
            raise InputError("Shared embeddings need a text encoder with one vocabulary for source and target.")
        if self.tie_readout and (self.features or self.readout_input) != self.embedding:
            raise InputError("A tied readout needs features (or, without them, the readout's input) of the embedding's size.")
        if self.has_attention and self.decoder == "attend-after" and not self.context_to_readout:
            raise InputError("With attend-after the context must reach the readout: nothing else would ever see it.")
        if self.encoder != "none" and self.has_attention and self.score == "dot" and self.memory_size != self.decoder_hidden:
            raise InputError(
                f"The dot score needs encoder states as wide as the decoder's: {self.memory_size} is not {self.decoder_hidden}."
            )

    @property
    def has_attention(self) -> bool:
        return self.encoder != "none" and self.decoder.startswith("attend")

    @property
    def memory_size(self) -> int:
        """Width of one encoder state as the decoder sees it."""
        return self.encoder_hidden * (2 if self.bidirectional and self.encoder == "text" else 1)

    @property
    def readout_input(self) -> int:
        """Width of [s; c] (or of s alone)."""
        context = self.memory_size if self.encoder != "none" and self.context_to_readout and self.decoder != "context-once" else 0
        return self.decoder_hidden + context

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class SearchOptions:
    """How to search. The words are those of the command line and of the pages."""

    strategy: str = "beam"
    beam: int = 5
    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0
    length_norm: str = "none"  # none | power: total / n^alpha | gnmt: total / ((5+n)/6)^alpha
    alpha: float = 1.0
    coverage: float = 0.0  # weight of sum_j log min(1, sum_t a_tj), added to a finished hypothesis's score
    min_length: int = 0  # tokens before <eos>
    max_length: int = 0  # tokens including <eos>; 0: the model's own limit
    at_limit: str = "cut"  # what becomes of the unfinished there: cut as they are | force: <eos> at its own price
    no_repeat: int = 0  # n: no n-gram of target tokens twice; 0: off
    finished: str = "stay"  # stay: holds its place in the beam | free: is banked and frees it
    early: str = "false"  # with finished = free, when to stop: true | false | never
    nbest: int = 5
    samples: int = 1  # with strategy = sample
    expansions: int = 20_000  # budget of exact search
    frontier: int = 200_000  # and of its open rows

    def __post_init__(self) -> None:
        _one_of("Strategy", self.strategy, STRATEGIES)
        _one_of("Length normalisation", self.length_norm, LENGTH_NORMS)
        _one_of("The rule for finished hypotheses", self.finished, FINISHED_RULES)
        _one_of("Early stopping", self.early, EARLY_RULES)
        _one_of("The rule at the length limit", self.at_limit, LIMIT_RULES)
        _whole("Beam size", self.beam, 1, MAX_BEAM)
        _number("Temperature", self.temperature, 0.01, 100.0)
        _whole("top-k", self.top_k, 0, MAX_VOCABULARY)
        _number("top-p", self.top_p, 0.001, 1.0)
        _whole("Seed", self.seed, 0, 2**31 - 1)
        _number("alpha", self.alpha, -5.0, 5.0)
        _number("Coverage", self.coverage, 0.0, 10.0)
        _whole("Minimum length", self.min_length, 0, MAX_STEPS)
        _whole("Maximum length", self.max_length, 0, MAX_STEPS)
        _whole("No repeated n-gram", self.no_repeat, 0, 20)
        _whole("n-best", self.nbest, 1, MAX_BEAM)
        _whole("Samples", self.samples, 1, 1_000)
        _whole("Expansions", self.expansions, 1, 10_000_000)
        _whole("Frontier", self.frontier, 1, 10_000_000)
        if self.max_length and self.min_length >= self.max_length:
            raise InputError(
                f"A minimum length of {self.min_length} leaves no room below the maximum length of {self.max_length}; lower one."
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
