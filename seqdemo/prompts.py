"""An input ready for a model: a text checked and cut up, or a picture seen by the CNN."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from seqdemo.checkpoints import Checkpoint
from seqdemo.errors import InputError
from seqdemo.explain.replay import Source
from seqdemo.images import Picture, read_picture
from seqdemo.text import SPACE_MARK, Characters, Pieces, Tokenizer

MOST_PIECES = 120
MOST_CHARACTERS = 1_000
MOST_TEXT = 5_000  # characters, for a language model
CAPTION_LIMIT = 40
COMPLETION_LIMIT = 120
USUAL_PIECES = 40  # few training sentences are longer
SENTENCE_END = re.compile(r"[^\W\d_]{3,}[.!?…]+[\"'»“”)]*\s+[\"'«„“(]*[A-ZÄÖÜ]")
# Frequent words of each language that do not exist in the other.
ENGLISH = {
    "a", "about", "and", "are", "at", "be", "because", "been", "but", "by", "can", "could", "did", "do", "does", "for", "from",
    "go", "going", "had", "has", "have", "he", "him", "how", "i", "if", "is", "it", "its", "like", "me", "my", "no", "of", "on",
    "or", "our", "out", "she", "should", "some", "that", "the", "their", "them", "there", "they", "this", "to", "up", "very",
    "we", "were", "what", "when", "where", "who", "why", "with", "would", "you", "your",
}  # fmt: skip
GERMAN = {
    "aber", "als", "auch", "auf", "aus", "bei", "das", "dass", "dein", "dem", "den", "der", "des", "dich", "dir", "du", "ein",
    "eine", "einem", "einen", "einer", "er", "es", "für", "habe", "haben", "hier", "ich", "ihn", "ihr", "im", "ist", "kann",
    "kein", "keine", "mein", "mich", "mir", "mit", "nach", "nicht", "noch", "nur", "oder", "sehr", "sein", "sich", "sie", "sind",
    "über", "um", "und", "uns", "unter", "von", "vor", "wenn", "wie", "wir", "wird", "zu", "zum", "zur",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Prompt:
    """An input, ready for a model: what it is cut into, what the model reads, and how far it lies from training data."""

    pieces: Pieces
    source: Source  # for a language model None: its prompt is the beginning of the output
    limit: int  # the longest output
    far: str = ""
    picture: Picture | None = None
    language: str = ""

    @property
    def prefix(self) -> tuple[int, ...]:
        return self.pieces.ids if self.source is None else ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prompt):
            return NotImplemented
        facts = [(one.pieces, one.limit, one.far, one.language) for one in (self, other)]
        return facts[0] == facts[1] and self.reads_as(other)

    def reads_as(self, other: Prompt) -> bool:
        """Whether a model reads the same in both."""
        if isinstance(self.source, Tensor) and isinstance(other.source, Tensor):
            return torch.equal(self.source, other.source)
        return self.pieces == other.pieces


def usable_text(which: Tokenizer, text: Any, most: int) -> str:
    """The text, checked: a string that has at most `most` characters as the tokenizer `which` reads it."""
    if not isinstance(text, str):
        raise InputError("The input must be text.")
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise InputError("This text holds half of a character (a lone surrogate); paste it again from its source.")
    length = len(which.clean(text))
    if length > most:
        raise InputError(f"This text has {length:,} characters; the limit is {most:,}. Shorten it.")
    return text


def cut_up(which: Tokenizer, text: Any, most: int, tag: str = "") -> Pieces:
    """Cut a text into pieces. If some are unknown, at least one known piece must hold a letter or digit: otherwise the model
    would read only blanks."""
    text = usable_text(which, text, most)
    pieces = which.encode(text, tag) if isinstance(which, Characters) else which.encode(text)
    read = list(zip(pieces.strings, pieces.known))[bool(tag) :]
    if not all(pieces.known) and not any(known and any(map(str.isalnum, string)) for string, known in read):
        raise InputError("The model knows none of these letters; type a text in the language and script it was trained on.")
    return pieces


def tokenizer(which: Tokenizer | None) -> Tokenizer:
    if which is None:
        raise InputError("This checkpoint has no tokenizer for that side.")
    return which


def prepare(checkpoint: Checkpoint, given: Any, language: str = "") -> Prompt:
    """Text, or for a captioner a picture (bytes, a path, or one opened by Pillow), as a Prompt."""
    if checkpoint.task == "caption":
        return prepare_picture(checkpoint, given)
    if checkpoint.task == "complete":
        pieces = cut_up(tokenizer(checkpoint.target_text), given, MOST_TEXT)
        return Prompt(pieces, None, COMPLETION_LIMIT, far_from_training(pieces))
    source_text = tokenizer(checkpoint.source_text)
    language = target_language(checkpoint, language)
    tagged = isinstance(source_text, Characters) and len(checkpoint.languages) > 1
    pieces = cut_up(source_text, given, MOST_CHARACTERS, language if tagged else "")
    if len(pieces.ids) <= tagged:
        raise InputError("There is no text to read: type at least one letter.")
    if len(pieces.ids) > MOST_PIECES:
        raise InputError(f"This text is {len(pieces.ids)} pieces long; the limit is {MOST_PIECES}. Shorten it.")
    far = " ".join(filter(None, (far_from_training(pieces), unlike_training(checkpoint, given))))
    return Prompt(pieces, pieces.ids, 2 * len(pieces.ids) + 10, far, language=language)


def unlike_training(checkpoint: Checkpoint, text: str) -> str:
    """A warning when a translator is given another language or several sentences at once; empty otherwise."""
    if checkpoint.task != "translate":
        return ""
    told = []
    words = re.findall(r"[^\W\d_]+", text.lower())
    english, german = (sum(word in common for word in words) for common in (ENGLISH, GERMAN))
    if checkpoint.config.get("source_language") == "de" and english > german and 10 * english >= len(words):
        told.append("This looks like English, and the model reads German.")
    if SENTENCE_END.search(text.strip()):
        told.append("These are several sentences, and the model was trained on one at a time; give it one.")
    return " ".join(told)


def target_language(checkpoint: Checkpoint, asked: str) -> str:
    """The language asked for, or the checkpoint's first; '' if it names none."""
    only = str(checkpoint.config.get("target_language", ""))
    languages = checkpoint.languages or ((only,) if only else ())
    if asked and asked not in languages:
        known = f"it knows {', '.join(languages)}" if languages else "leave the language out"
        raise InputError(f"{checkpoint.name} has no target language {asked!r}; {known}.")
    return asked or (languages[0] if languages else "")


def prepare_picture(checkpoint: Checkpoint, given: Any) -> Prompt:
    if given is None:
        raise InputError("There is no picture: drop one, paste one, or choose an example.")
    encoder: Any = checkpoint.model.encoder
    picture = read_picture(given, encoder.cnn.size)
    with torch.inference_mode():
        grid_1SC = encoder.grid(picture.pixels[None])
    return Prompt(Pieces((), (), ()), grid_1SC, CAPTION_LIMIT, picture=picture)


def unseen(pieces: Pieces, what: str = "this") -> str:
    unknown = sum(not known for known in pieces.known)
    number = "1 piece" if unknown == 1 else f"{unknown} pieces"
    return f"The model has never seen {number} of {what}"


def far_from_training(pieces: Pieces) -> str:
    """A warning when this input is unlike the training data of the models here; empty otherwise."""
    words = max(1, sum(piece.startswith(SPACE_MARK) for piece in pieces.strings))
    if not all(pieces.known):
        return f"{unseen(pieces)}; it reads a blank there."
    if any(piece.startswith(SPACE_MARK) for piece in pieces.strings) and len(pieces.ids) > 3.5 * words + 3:
        return "These words fall into unusually small pieces: the model hardly saw any like them in training."
    if len(pieces.ids) > USUAL_PIECES and SPACE_MARK in "".join(pieces.strings):
        return "This is longer than nearly everything the model was trained on."
    return ""
