"""Tokenizers: text <-> pieces. NFC on entry; pad, bos, eos, unk are 0..3 in all of them.

Subwords is sentencepiece, Characters a plain list, Words goes through `tokenizers`. Each saves itself as one file.
"""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from seqdemo.config import BOS, EOS, PAD, UNK
from seqdemo.errors import JOINERS, InputError

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
SPACE_MARK = "\N{LOWER ONE EIGHTH BLOCK}"
VIRAMA = 9  # the combining class of the signs that take a letter's vowel
UNKNOWN = "\N{WHITE QUESTION MARK ORNAMENT}"  # what an unknown piece looks like in a text

# How a person would write what Words cut apart: (what stands there, what to write), in this order.
JOINED = (
    (r" +([.,;:!?%)\]}]+)(?=\s|$)", r"\1"),
    (r"([(\[{$#]) +", r"\1"),
    (r"(?<=\w) ?(['’]) ?(?=(?:s|t|d|m|re|ve|ll)\b)", r"\1"),
    (r"(?<=\w) ([-/]) (?=\w)", r"\1"),
    (r"(?<=\d)([.,:]) (?=\d)", r"\1"),
    (r'(["“]) ([^"“”]*?) (["”])', r"\1\2\3"),
)


@dataclass(frozen=True)
class Pieces:
    """A text cut up: ids, what each looks like, and whether the model has ever seen it."""

    ids: tuple[int, ...]
    strings: tuple[str, ...]
    known: tuple[bool, ...]


def shown(char: str) -> bool:
    """Whether a character is printed: no control character, half of a surrogate pair or the like. The two joiners count as
    letters."""
    return not unicodedata.category(char).startswith("C") or char in JOINERS


def clean(text: str) -> str:
    """NFC, no control characters, runs of white space as one space, no joiners at the edge of a word that join nothing."""
    kept = "".join(" " if char.isspace() else char for char in text if char.isspace() or shown(char))
    words = map(without_idle_joiners, unicodedata.normalize("NFC", kept).split(" "))
    return " ".join(word for word in words if word)


def without_idle_joiners(word: str) -> str:
    """Remove joiners at both ends of a word. One after a final virama stays, because it changes how the letter is drawn."""
    word = word.lstrip(JOINERS)
    bare = word.rstrip(JOINERS)
    return word if bare and unicodedata.combining(bare[-1]) == VIRAMA else bare


def quoted(text: str) -> str:
    """A text in quotation marks, for a sentence: letters that run from right to left leave the order of what stands around them
    alone."""
    return f"“\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}”" if RIGHT_TO_LEFT.search(text) else f"“{text}”"


class Tokenizer:
    """The interface of all tokenizers."""

    kind = ""
    suffix = ""
    quoted = staticmethod(quoted)

    def __len__(self) -> int:
        raise NotImplementedError

    def clean(self, text: str) -> str:
        """The text as it stands before it is cut into pieces."""
        return clean(text)

    def encode(self, text: str) -> Pieces:
        raise NotImplementedError

    def piece(self, index: int) -> str:
        raise NotImplementedError

    def index(self, piece: str) -> int | None:
        """The number of a piece in this vocabulary; None where it has no such piece."""
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        raise NotImplementedError

    def spellings(self, word: str) -> tuple[tuple[int, ...], ...]:
        """The ways to write a word within a text: as it is, and with a small and a capital first letter, of known pieces only."""
        written = (word, word[:1].lower() + word[1:], word[:1].upper() + word[1:])
        cut = [self.encode(each) for each in dict.fromkeys(written)]
        return tuple(dict.fromkeys(pieces.ids for pieces in cut if pieces.ids and all(pieces.known)))

    def dump(self) -> bytes:
        raise NotImplementedError

    @classmethod
    def parse(cls, data: bytes) -> Tokenizer:
        raise NotImplementedError

    def save(self, folder: Path, stem: str) -> dict[str, str]:
        name = f"{stem}{self.suffix}"
        (folder / name).write_bytes(self.dump())
        return {"kind": self.kind, "file": name}


class Subwords(Tokenizer):
    """Byte-pair pieces by sentencepiece; a piece that begins a word starts with the space mark."""

    kind, suffix = "subwords", ".model"

    def __init__(self, model: bytes) -> None:
        self.model = model
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    @classmethod
    def train(cls, lines: Iterable[str], size: int) -> Subwords:
        out = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(clean(line) for line in lines),
                model_writer=out,
                vocab_size=size,
                model_type="bpe",
                character_coverage=0.9999,
                normalization_rule_name="identity",
                pad_id=PAD,
                bos_id=BOS,
                eos_id=EOS,
                unk_id=UNK,
                pad_piece="<pad>",
                bos_piece="<bos>",
                eos_piece="<eos>",
                unk_piece="<unk>",
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).rpartition("] ")[2] or "these texts do not fit that number"
            raise InputError(f"{size:,} subwords cannot be learnt from these texts: {reason}") from None
        return cls(out.getvalue())

    def __len__(self) -> int:
        return int(self.processor.get_piece_size())

    def encode(self, text: str) -> Pieces:
        text = clean(text)
        ids = tuple(self.processor.encode(text))
        strings = tuple(self.processor.encode(text, out_type=str)) if UNK in ids else tuple(map(self.piece, ids))
        return Pieces(ids, strings, tuple(index != UNK for index in ids))

    def piece(self, index: int) -> str:
        return str(self.processor.id_to_piece(index))

    def index(self, piece: str) -> int | None:
        index = int(self.processor.piece_to_id(piece))
        return index if self.piece(index) == piece else None

    def decode(self, ids: Iterable[int]) -> str:
        pieces = (UNKNOWN if index == UNK else self.piece(index) for index in ids if index not in (PAD, BOS, EOS))
        return "".join(pieces).replace(SPACE_MARK, " ").strip()

    def dump(self) -> bytes:
        return self.model

    @classmethod
    def parse(cls, data: bytes) -> Subwords:
        return cls(data)


class Characters(Tokenizer):
    """One piece a character. `tags` are pieces of their own, such as <hi>, that name a target language."""

    kind, suffix = "characters", ".json"

    def __init__(self, pieces: Iterable[str], keep_space: bool = False) -> None:
        self.pieces = list(pieces)
        self.keep_space = keep_space
        if tuple(self.pieces[:4]) != SPECIALS:
            raise InputError(f"A character list starts with {' '.join(SPECIALS)}.")
        if len(set(self.pieces)) != len(self.pieces):
            raise InputError("A character list names one piece twice.")
        self.ids = {piece: index for index, piece in enumerate(self.pieces)}

    @classmethod
    def train(cls, lines: Iterable[str], tags: Iterable[str] = (), least: int = 1, keep_space: bool = False) -> Characters:
        prepare = unicodedata.normalize if keep_space else lambda _, line: clean(line)
        counts = Counter(char for line in lines for char in prepare("NFC", line))
        chars = sorted(char for char, count in counts.items() if count >= least)
        return cls([*SPECIALS, *(f"<{tag}>" for tag in tags), *chars], keep_space)

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str, tag: str = "") -> Pieces:
        strings = (*((f"<{tag}>",) if tag else ()), *map(self.as_learnt, self.clean(text)))
        if tag and strings[0] not in self.ids:
            raise InputError(f"This model has no target language {tag!r}; it knows {', '.join(self.tags())}.")
        ids = tuple(self.ids.get(char, UNK) for char in strings)
        return Pieces(ids, strings, tuple(index != UNK for index in ids))

    def clean(self, text: str) -> str:
        return self.whole(text) if self.keep_space else clean(text)

    def as_learnt(self, char: str) -> str:
        """Replace capitals outside the vocabulary by their small letters, if those are in it. A text with spaces is left as it
        is."""
        small = char.lower()
        return small if char not in self.ids and small in self.ids and not self.keep_space else char

    def whole(self, text: str) -> str:
        """NFC with every space and line break, without control characters outside the vocabulary."""
        kept = (char for char in text.replace("\r\n", "\n") if char in self.ids or char.isspace() or shown(char))
        return unicodedata.normalize("NFC", "".join(kept))

    def tags(self) -> list[str]:
        return [piece[1:-1] for piece in self.pieces[4:] if len(piece) > 2 and piece.startswith("<")]

    def piece(self, index: int) -> str:
        return self.pieces[index]

    def index(self, piece: str) -> int | None:
        return self.ids.get(piece)

    def decode(self, ids: Iterable[int]) -> str:
        drawn = (UNKNOWN if index == UNK else self.pieces[index] for index in ids if index not in (PAD, BOS, EOS))
        return unicodedata.normalize("NFC", "".join(drawn))

    def dump(self) -> bytes:
        value = {"keep_space": self.keep_space, "pieces": self.pieces}
        return json.dumps(value, ensure_ascii=False, indent=0).encode()

    @classmethod
    def parse(cls, data: bytes) -> Characters:
        try:
            value = json.loads(data)
            pieces = value["pieces"]
            good = isinstance(pieces, list) and all(isinstance(piece, str) and piece for piece in pieces)
        except (ValueError, TypeError, KeyError):
            good = False
        if not good:
            raise InputError('A character file holds {"keep_space": ..., "pieces": [...]}.')
        return cls(pieces, bool(value.get("keep_space")))


class Words(Tokenizer):
    """Lower-cased words and punctuation marks, through `tokenizers`."""

    kind, suffix = "words", ".json"

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    @classmethod
    def train(cls, lines: Iterable[str], least: int = 1) -> Words:
        split = pre_tokenizers.Whitespace()
        counts = Counter(word for line in lines for word, _ in split.pre_tokenize_str(clean(line).lower()))
        words = sorted((word for word, count in counts.items() if count >= least), key=lambda word: (-counts[word], word))
        backend = Backend(models.WordLevel({word: index for index, word in enumerate([*SPECIALS, *words])}, "<unk>"))
        backend.pre_tokenizer = split
        return cls(backend)

    def __len__(self) -> int:
        return int(self.backend.get_vocab_size())

    def encode(self, text: str) -> Pieces:
        text = clean(text).lower()
        found = self.backend.encode(text)
        known = tuple(index != UNK for index in found.ids)
        return Pieces(tuple(found.ids), tuple(text[start:end] for start, end in found.offsets), known)

    def piece(self, index: int) -> str:
        return str(self.backend.id_to_token(index))

    def index(self, piece: str) -> int | None:
        found: int | None = self.backend.token_to_id(piece)
        return found

    def decode(self, ids: Iterable[int]) -> str:
        text = " ".join(UNKNOWN if index == UNK else self.piece(index) for index in ids if index not in (PAD, BOS, EOS))
        for pattern, written in JOINED:
            text = re.sub(pattern, written, text)
        return text

    def dump(self) -> bytes:
        return str(self.backend.to_str()).encode()

    @classmethod
    def parse(cls, data: bytes) -> Words:
        return cls(Backend.from_str(data.decode()))


TOKENIZERS: dict[str, type[Tokenizer]] = {kind.kind: kind for kind in (Subwords, Characters, Words)}


def load_tokenizer(folder: Path, spec: dict[str, Any]) -> Tokenizer:
    """The tokenizer `save` wrote; `spec` is what it returned."""
    kind = TOKENIZERS.get(str(spec.get("kind")))
    if kind is None:
        raise InputError(f"Tokenizer kind {spec.get('kind')!r} is not known; choose one of {', '.join(TOKENIZERS)}.")
    name = str(spec.get("file", ""))
    if not name or Path(name).name != name:
        raise InputError(f"A tokenizer file is a bare file name, not {name!r}.")
    return kind.parse((folder / name).read_bytes())


def longer_word(text: Tokenizer, target: Sequence[int], places: Sequence[int]) -> str:
    """The word of an output that the pieces at these places are only a part of; empty where they are a whole word, or where
    letters make no words."""
    if not places or isinstance(text, Words) or (isinstance(text, Characters) and not text.keep_space):
        return ""

    def goes_on(at: int) -> bool:
        """Whether the piece there and the one before it are of one word."""
        return 0 < at < len(target) and text.piece(target[at - 1])[-1:].isalnum() and text.piece(target[at])[:1].isalnum()

    first, end = places[0], places[-1] + 1
    while goes_on(first):
        first -= 1
    while goes_on(end):
        end += 1
    return "" if (first, end) == (places[0], places[-1] + 1) else text.decode(target[first:end]).strip()
