"""Good checkpoints, and ways to spoil them."""

from __future__ import annotations

import io
import json
import os
import pickle
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as tensor_bytes

from seqdemo.checkpoints import save
from seqdemo.config import ModelConfig
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.text import SPECIALS, Characters, Subwords, Words

CONFIG, WEIGHTS, MANIFEST, PIECES = "config.json", "model.safetensors", "manifest.json", "pieces.json"
SIZES: dict[str, Any] = {"embedding": 6, "encoder_hidden": 5, "decoder_hidden": 7, "attention": 4, "features": 6}
CHARS = Characters([*SPECIALS, "<hi>", *"abcdefgh"])
Spoil = Callable[[Path], None]


class Case(NamedTuple):
    name: str
    spoil: Spoil
    says: str = ""  # a pattern in the refusal; empty: it must load
    signed: bool = True  # the manifest is written anew after the spoiling, so that it does not hide the fault
    base: str = "text"


def good(folder: Path, base: str) -> Path:
    torch.manual_seed(5)
    if base == "text":
        model = Seq2Seq(ModelConfig(target_vocabulary=len(CHARS), source_vocabulary=len(CHARS), **SIZES))
        return save(
            folder, model, {"name": "good", "task": "transliterate", "languages": ["hi"]}, CHARS, CHARS, {"top1": 0.5}, "# card"
        )
    if base == "caption":
        model = Seq2Seq(ModelConfig(target_vocabulary=len(CHARS), encoder="image", cnn="efficientnet-lite0", **SIZES))
        return save(folder, model, {"name": "good", "task": "caption"}, None, CHARS)
    lines = [f"one two three {number}" for number in range(30)]
    tokenizer = Words.train(lines) if base == "words" else Subwords.train(lines, 36)
    small = ModelConfig(target_vocabulary=len(tokenizer), encoder="none", embedding=4, decoder_hidden=5, features=0)
    return save(folder, LanguageModel(small), {"name": "good", "task": "complete"}, None, tokenizer)


class Payload:
    """A pickle that creates a file when it is opened."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


def mark_of(folder: Path) -> Path:
    return folder.parent / "payload-fired"


def evil_pickle(folder: Path) -> bytes:
    return pickle.dumps(Payload(mark_of(folder)))


def evil_torch_file(folder: Path) -> bytes:
    out = io.BytesIO()
    torch.save({"weight": torch.zeros(2), "x": Payload(mark_of(folder))}, out)
    return out.getvalue()


def put(name: str, data: bytes | str | Callable[[Path], bytes]) -> Spoil:
    def spoil(folder: Path) -> None:
        value = data(folder) if callable(data) else data
        (folder / name).write_bytes(value.encode() if isinstance(value, str) else value)

    return spoil


def drop(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def edit_json(name: str, change: Callable[[Any], Any]) -> Spoil:
    """`change` alters the value in place, or returns another."""

    def spoil(folder: Path) -> None:
        value = json.loads((folder / name).read_bytes())
        changed = change(value)
        (folder / name).write_text(json.dumps(value if changed is None else changed))

    return spoil


def config(**changes: Any) -> Spoil:
    return edit_json(CONFIG, lambda value: {key: item for key, item in {**value, **changes}.items() if item is not DROPPED})


DROPPED = object()


def model(**changes: Any) -> Spoil:
    return edit_json(CONFIG, lambda value: value["model"].update(changes))


def tensors(change: Callable[[dict[str, torch.Tensor]], Any], name: str = WEIGHTS) -> Spoil:
    def spoil(folder: Path) -> None:
        found = parse_tensors((folder / name).read_bytes())
        change(found)
        (folder / name).write_bytes(tensor_bytes({key: value.contiguous() for key, value in found.items()}))

    return spoil


def header(change: Callable[[dict[str, Any]], Any], name: str = WEIGHTS) -> Spoil:
    """Alter the table of tensors and leave the bytes behind it."""

    def spoil(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        table = json.loads(data[8 : 8 + length])
        changed = change(table)
        text = changed if isinstance(changed, bytes) else json.dumps(table if changed is None else changed).encode()
        (folder / name).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

    return spoil


def bias(**changes: Any) -> Spoil:
    return header(lambda table: table["readout.b"].update(changes))


def flip(name: str, at: int) -> Spoil:
    def spoil(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[at] ^= 1
        (folder / name).write_bytes(data)

    return spoil


def cut(name: str, keep: float) -> Spoil:
    return lambda folder: os.truncate(folder / name, int((folder / name).stat().st_size * keep))


def grow(name: str, size: int) -> Spoil:
    """Make the file larger by a hole, which takes no space on disk."""

    def spoil(folder: Path) -> None:
        (folder / name).touch()
        os.truncate(folder / name, size)

    return spoil


def link(name: str, to: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(to)

    return spoil


def fifo(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return spoil


def listening_socket(folder: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(folder)  # the name of a socket must be short
    with suppress(OSError), socket.socket(socket.AF_UNIX) as made:
        made.bind("door")
    os.fchdir(here)
    os.close(here)


def make_folder(name: str) -> Spoil:
    return lambda folder: (folder / name).mkdir()


def crowd(folder: Path) -> None:
    for number in range(1001):
        (folder / f"{number}.txt").touch()


def several(*spoils: Spoil) -> Spoil:
    def spoil(folder: Path) -> None:
        for each in spoils:
            each(folder)

    return spoil


def manifest(change: Callable[[Any], Any]) -> Spoil:
    return edit_json(MANIFEST, change)


def unsigned(name: str, spoil: Spoil, says: str, base: str = "text") -> Case:
    return Case(name, spoil, says, False, base)


def set_nan(value: float, dtype: torch.dtype = torch.float16) -> Callable[[dict[str, torch.Tensor]], None]:
    def change(found: dict[str, torch.Tensor]) -> None:
        found["decoder.mix.bias"] = found["decoder.mix.bias"].to(dtype).fill_(value)

    return change


def in_int8(name: str, scale: float | None = 0.01, rows: int = 0) -> Callable[[dict[str, torch.Tensor]], None]:
    """Change a tensor to int8, with scales for all its rows and `rows` more."""

    def change(found: dict[str, torch.Tensor]) -> None:
        found[name] = (found[name] * 100).to(torch.int8)
        if scale is not None:
            found[f"{name}.scale"] = torch.full((len(found[name]) + rows,), scale)

    return change


def recast(dtype: torch.dtype) -> Spoil:
    return tensors(lambda found: found.update({name: tensor.to(dtype) for name, tensor in found.items()}))


def pieces(change: Callable[[list[Any]], Any]) -> Spoil:
    return edit_json(PIECES, lambda value: change(value["pieces"]) and None)


def swap(found: list[Any]) -> None:
    found[0], found[2] = found[2], found[0]


def default_subwords(folder: Path) -> bytes:
    """Trained without our numbers for the special tokens: sentencepiece puts <unk>, <s>, </s> at 0 to 2."""
    import sentencepiece

    out = io.BytesIO()
    lines = iter([f"one two three {number}" for number in range(30)])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=out,
        vocab_size=36,
        model_type="bpe",
        normalization_rule_name="identity",
        minloglevel=2,
    )
    return out.getvalue()


def broken_piece(folder: Path) -> bytes:
    """The mark of a word's beginning, its second byte spoiled."""
    return (folder / "target.model").read_bytes().replace("▁".encode(), b"\xe2\x7f\x81", 1)


def with_table(folder: Path) -> bytes:
    """A normalizer_spec (field 3) that holds a precompiled_charsmap (field 2), appended: protobuf merges the two."""
    return (folder / "target.model").read_bytes() + b"\x1a\x06\x12\x04abcd"


def words(change: Callable[[dict[str, Any]], Any]) -> Spoil:
    return edit_json("target.json", lambda value: change(value) and None)
