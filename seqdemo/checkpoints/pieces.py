"""Tokenizer files, read without trusting them.

They are parsed by C++ and Rust code. A stranger's file is therefore first parsed in a child process with limits on time and
memory; only if that succeeds is it parsed in this process.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from seqdemo.checkpoints.folder import parse_json
from seqdemo.child.limits import limit, limit_memory
from seqdemo.child.parent import REFUSED, Failure, Watch, run_child
from seqdemo.config import MAX_VOCABULARY
from seqdemo.errors import InputError, harmless
from seqdemo.text import SPECIALS, TOKENIZERS, Characters, Subwords, Tokenizer, Words

SECONDS = 20.0  # by the clock; endless work ends earlier, at the child's limit of processor time
MEMORY = 256 << 20  # a tokenizer of 65,536 pieces takes a tenth of it
CPU_SECONDS = 5
MAX_PIECE = 256
EXERCISE = (
    "a" * 3000,
    "The quick brown fox; it's 12:30.\n" * 60,
    "नमस्ते दुनिया " * 100,
    "\u0301" * 500,
    "".join(map(chr, range(32, 2000))),
)
_passed: set[str] = set()


def parse_tokenizer(spec: dict[str, str], data: bytes, trusted: bool) -> Tokenizer:
    key = hashlib.sha256(spec["kind"].encode() + data).hexdigest()
    if not trusted and key not in _passed:
        try_in_child(spec, data)
        _passed.add(key)
    return parse(spec, data)


def parse(spec: dict[str, str], data: bytes) -> Tokenizer:
    try:
        return TOKENIZERS[spec["kind"]].parse(data)
    except Exception as error:  # sentencepiece and tokenizers have no common class of errors
        raise InputError(f"{spec['file']} is not a {spec['kind']} tokenizer: {str(error)[:200]}") from None


def try_in_child(spec: dict[str, str], data: bytes) -> None:
    """Parse and use the file in a child process, where a crash or endless work does no harm."""
    file = spec["file"]
    try:
        run_child(f"{__name__}.take_apart", {"spec": spec, "data": data.hex()}, Watch(SECONDS))
    except Failure as failure:
        if failure.kind == REFUSED:
            raise InputError(failure.detail) from None
        raise InputError(f"{file}: reading this tokenizer fails, or takes too much memory or time; it is refused.") from None


def take_apart(request: dict[str, Any], say: object) -> None:
    """Parse a tokenizer file, in the child process."""
    limit_memory(MEMORY)
    limit(RLIMIT_CPU=CPU_SECONDS)
    examine(request["spec"], bytes.fromhex(request["data"]))


def examine(spec: dict[str, str], data: bytes) -> None:
    """Check the structure, run the parser, then encode and decode some texts."""
    STRUCTURE[spec["kind"]](spec["file"], data)
    tokenizer = parse(spec, data)
    if len(tokenizer) > MAX_VOCABULARY:  # checked here, before its pieces take memory in the parent process
        raise InputError(f"{spec['file']} has {len(tokenizer):,} pieces; at most {MAX_VOCABULARY:,} are allowed.")
    for index in range(len(tokenizer)):
        tokenizer.decode([index])
    for text in EXERCISE:
        tokenizer.decode(tokenizer.encode(text).ids)


def _characters(file: str, data: bytes) -> None:
    value = parse_json(data, file)
    if not isinstance(value, dict) or set(value) != {"keep_space", "pieces"} or not isinstance(value["pieces"], list):
        raise InputError(f"{file}: a character file has exactly keep_space and pieces.")


def _words(file: str, data: bytes) -> None:
    """Accept only what Words writes, a plain table, so that no pattern of a stranger is ever run."""
    value = parse_json(data, file)
    own = json.loads(words_template())
    if not isinstance(value, dict) or set(value) != set(own):
        raise InputError(f"{file}: not the keys of a words tokenizer.")
    differing = [key for key in own if key != "model" and value[key] != own[key]]
    if differing:
        raise InputError(f"{file}: {', '.join(differing)} must be as seqdemo writes them.")
    model = value["model"]
    if not isinstance(model, dict) or set(model) != {"type", "vocab", "unk_token"} or model["type"] != "WordLevel":
        raise InputError(f"{file}: the model must be a WordLevel table.")
    vocabulary = model["vocab"]
    if not isinstance(vocabulary, dict) or sorted(map(str, vocabulary.values())) != sorted(map(str, range(len(vocabulary)))):
        raise InputError(f"{file}: the words must be numbered from 0 without gaps or repeats.")
    if model["unk_token"] != "<unk>":
        raise InputError(f"{file}: the unknown word must be <unk>.")


def words_template() -> bytes:
    return Words.train([]).dump()


def _subwords(file: str, data: bytes) -> None:
    """Refuse a normalisation table: it could turn a short text into one of any length."""
    for number, value in protobuf(data, file):
        table = number in (3, 5) and isinstance(value, bytes) and any(key == 2 and text for key, text in protobuf(value, file))
        if table:
            raise InputError(f"{file}: a normalisation table is not allowed; train with the rule 'identity'.")


STRUCTURE = {"characters": _characters, "words": _words, "subwords": _subwords}


def protobuf(data: bytes, file: str) -> Iterator[tuple[int, bytes | int]]:
    """The field numbers and values at the top level of a message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at, file)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at, file)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at, file)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise InputError(f"{file}: not a sentencepiece model.")
        if at + length > len(data):
            raise InputError(f"{file}: cut short.")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int, file: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise InputError(f"{file}: cut short.")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise InputError(f"{file}: not a sentencepiece model.")


def check_fit(config: dict[str, Any], source: Tokenizer | None, target: Tokenizer) -> None:
    """Check the tokenizers against the embeddings, the special tokens and the languages."""
    sides = [(source, "source"), (target, "target")] if source is not target else [(target, "target")]
    for tokenizer, side in sides:
        if tokenizer is not None:
            _check_size(tokenizer, config["model"][f"{side}_vocabulary"], config["tokenizers"][side]["file"])
    if source is target and config["model"]["source_vocabulary"] != config["model"]["target_vocabulary"]:
        raise InputError("config.json: one tokenizer for source and target needs equal vocabularies.")
    tags = source.tags() if isinstance(source, Characters) else []
    lacking = [language for language in config.get("languages", ()) if language not in tags]
    if lacking:
        raise InputError(f"config.json: languages {', '.join(lacking[:10])} have no tag in the source tokenizer.")


def _check_size(tokenizer: Tokenizer, expected: int, file: str) -> None:
    if len(tokenizer) != expected:
        raise InputError(f"{file} has {len(tokenizer):,} pieces, but the embedding of config.json {expected:,}.")
    try:
        pieces = [tokenizer.piece(index) for index in range(len(tokenizer))]
    except UnicodeDecodeError:
        raise InputError(f"{file}: a piece is not text in UTF-8.") from None
    if tuple(pieces[:4]) != SPECIALS:
        raise InputError(f"{file}: pieces 0 to 3 must be {', '.join(SPECIALS)}, not {', '.join(pieces[:4])[:80]}.")
    if not all(pieces):
        raise InputError(f"{file}: a piece is empty.")
    odd = next((piece for piece in pieces if harmless(piece) != piece and not piece.isspace()), None)
    if odd is not None:
        raise InputError(f"{file}: the piece {odd[:40]!r} holds a control character, or half of a character.")
    if len(set(pieces)) != len(pieces):
        raise InputError(f"{file}: a piece stands twice.")
    if max(map(len, pieces)) > MAX_PIECE:
        raise InputError(f"{file}: a piece is longer than {MAX_PIECE} characters.")
    if isinstance(tokenizer, Subwords):
        inner = tokenizer.processor
        if (inner.pad_id(), inner.bos_id(), inner.eos_id(), inner.unk_id()) != (0, 1, 2, 3):
            raise InputError(f"{file}: its special tokens are missing or not numbered 0 to 3.")
