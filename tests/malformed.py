"""Checkpoints with one fault each, made from a good one. `CASES` says for each what the refusal must speak of, or that it is to
be accepted all the same. Some carry a pickle that creates a marker file when it is opened."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from seqdemo.checkpoints import write_manifest
from seqdemo.text import SPECIALS
from tests.spoiling import (
    CONFIG,
    DROPPED,
    MANIFEST,
    PIECES,
    WEIGHTS,
    Case,
    bias,
    broken_piece,
    config,
    crowd,
    cut,
    default_subwords,
    drop,
    edit_json,
    evil_pickle,
    evil_torch_file,
    fifo,
    flip,
    grow,
    header,
    in_int8,
    link,
    listening_socket,
    make_folder,
    manifest,
    model,
    pieces,
    put,
    recast,
    set_nan,
    several,
    swap,
    tensors,
    unsigned,
    with_table,
    words,
)

ENDLESS = {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}
CATASTROPHE = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
DEEP = "[" * 100_000 + "]" * 100_000
MANY = json.dumps({"keep_space": False, "pieces": [*SPECIALS, "<hi>", *map(chr, range(0x20000, 0x20000 + 70_000))]})
BOMB = '{"keep_space": false, "pieces": [' + "[]," * 5_000_000 + "[]]}"


def folders() -> Iterator[Case]:
    for name in (CONFIG, WEIGHTS, MANIFEST, PIECES):
        yield unsigned(f"{name} missing", drop(name), f"{name} is missing")
        yield unsigned(f"{name} cut short", cut(name, 0.6), f"{name} (has|is not JSON)")
        yield unsigned(f"{name} a pipe", fifo(name), f"{name}: not a plain file")
        yield unsigned(f"{name} a folder", several(drop(name), make_folder(name)), f"{name} is missing")
        yield unsigned(f"{name} a link out", link(name, "/etc/hostname"), f"{name}: a link that leaves")
    for name, at in ((CONFIG, 20), (WEIGHTS, 3), (WEIGHTS, -3), (PIECES, 40), ("metrics.json", 5)):
        yield unsigned(f"{name} with a bit flipped at {at}", flip(name, at), f"{name} differs from its sha256")
    yield unsigned("a pipe nobody asked for", fifo("notes.txt"), "notes.txt: not a plain file")
    yield unsigned("a socket", listening_socket, "door: not a plain file")
    yield unsigned("a link to a device", link("zero", "/dev/zero"), "zero: a link that leaves")
    yield unsigned("a link to itself", link("loop", "loop"), "loop: a link")
    yield unsigned("a link to nothing", link("gone", "nothing"), "gone: a link to a file that is gone")
    yield unsigned("a link upwards", link(WEIGHTS, "../elsewhere"), f"{WEIGHTS}: a link that leaves")
    yield unsigned("a giant of 300 MB", grow("data.bin", 300 << 20), "exceed 200 MB")
    yield unsigned("weights of 1 TB", grow(WEIGHTS, 1 << 40), "exceed 200 MB")
    yield unsigned("three files of 90 MB", several(*(grow(f"{n}.bin", 90 << 20) for n in range(3))), "exceed 200 MB")
    yield unsigned("a config of 5 MB", grow(CONFIG, 5 << 20), f"{CONFIG}: 5,242,880 bytes, more than")
    yield unsigned("a thousand files", crowd, "more than 1,000 files")
    yield unsigned("a link inside", several(lambda f: os.rename(f / PIECES, f / "real.json"), link(PIECES, "real.json")), "")
    yield unsigned("a folder of its own inside", lambda folder: (folder / ".git").mkdir(), "")
    yield unsigned("an edited card", put("README.md", "# better"), "")
    yield Case("no figures", drop("metrics.json"))
    yield Case("figures that are a list", put("metrics.json", "[1]"), "metrics.json must hold a JSON object")
    yield unsigned(
        "figures without end", put("metrics.json", '{"a": [' + "[]," * 100_000 + "[]]}"), "metrics.json: .* bytes, more than"
    )
    yield Case("figures that are no JSON", put("metrics.json", "{'a': 1}"), "metrics.json is not JSON")


def manifests() -> Iterator[Case]:
    wrong: list[tuple[str, Callable[[Any], Any], str]] = [
        ("a list", lambda value: [], "must hold a JSON object"),
        ("of format 2", lambda value: value.update(format=2), "format 2 is not known"),
        ("of format true", lambda value: value.update(format=True), "format True is not known"),
        ("without files", lambda value: value.pop("files") and None, '"files" must be an object'),
        ("with a path", lambda value: value["files"].update({"../up": value["files"][CONFIG]}), "must be a bare file name"),
        ("with a short sum", lambda value: value["files"][CONFIG].update(sha256="ab"), "64 hexadecimal digits"),
        ("with a size below 0", lambda value: value["files"][CONFIG].update(size=-1), "must be a whole number"),
        ("with a size of true", lambda value: value["files"][CONFIG].update(size=True), "must be a whole number"),
        ("with more in an entry", lambda value: value["files"][CONFIG].update(url="http://x"), "exactly"),
        ("without the weights", lambda value: value["files"].pop(WEIGHTS) and None, f"{WEIGHTS} is not named"),
        ("with another size", lambda value: value["files"][WEIGHTS].update(size=7), f"{WEIGHTS} has .* bytes where"),
    ]
    yield from (unsigned(f"a manifest {name}", manifest(change), says) for name, change, says in wrong)
    yield unsigned("a manifest in UTF-16", put(MANIFEST, '{"format": 1}'.encode("utf-16")), "not JSON")
    yield unsigned("a manifest nested deeply", put(MANIFEST, DEEP), "nested too deeply")
    yield unsigned("a manifest with a key twice", put(MANIFEST, '{"format": 1, "format": 1}'), "a key stands twice")


def configs() -> Iterator[Case]:
    raw = [("not JSON", "{format: 1}"), ("empty", ""), ("a pickle", evil_pickle)]
    yield from (Case(f"a config {name}", put(CONFIG, text), "config.json is not JSON") for name, text in raw)
    yield Case("a config that is a list", put(CONFIG, "[]"), "must hold a JSON object")
    yield Case("a config nested deeply", put(CONFIG, DEEP), "nested too deeply")
    yield Case("a config with NaN", put(CONFIG, '{"format": NaN}'), "NaN is not a JSON number")
    yield Case("a number of 9,000 digits", put(CONFIG, '{"format": ' + "9" * 9000 + "}"), "config.json")
    for version in (0, 3, 99, "1", None, True):
        yield Case(f"format {version!r}", config(format=version), "format .* is not known")
    for key in ("name", "task", "architecture", "model", "tokenizers"):
        yield Case(f"a config without {key}", config(**{key: DROPPED}), f"lacks {key}")
    yield Case("code to run", config(auto_map={"AutoModel": "modeling.Model"}), "auto_map.*not known")
    yield Case("another task", config(task="paint"), "task 'paint' is not known")
    yield Case("a task that is a list", config(task=["translate"]), "task .* is not known")
    yield Case("another architecture", config(architecture="os.system"), "architecture 'os.system' is not known")
    yield Case("architecture and task apart", config(architecture="LanguageModel"), "does not go with")
    yield Case("task and encoder apart", config(task="caption"), "needs encoder image")
    yield Case("a name that is a path", config(name="../../x"), "name must be lower-case")
    yield Case("languages without tags", config(languages=["hi", "ta"]), "languages ta have no tag")
    yield Case("languages twice", config(languages=["hi", "hi"]), "different language codes")
    yield Case("languages of markup", config(languages=["<b>"]), "must be a language code")
    yield Case("a limit in words", config(limits={"length": "long"}), "must be a whole number")
    yield Case("a limit without end", config(limits={"length": 10**9}), "must be a whole number")
    yield Case(
        "a CNN for text", config(shared={"cnn": {"file": "x.safetensors", "sha256": "0" * 64}}), "names shared.cnn, and no other"
    )
    sizes: list[tuple[str, Any]] = [
        ("embedding", 10**9),
        ("decoder_hidden", 0),
        ("decoder_layers", 99),
        ("target_vocabulary", 2**40),
    ]
    sizes += [("embedding", 6.0), ("embedding", True), ("embedding", "6"), ("encoder_hidden", -5), ("attention", None)]
    yield from (Case(f"{key} of {value!r}", model(**{key: value}), f"{key} must be a whole number") for key, value in sizes)
    yield Case("a dropout beyond all numbers", model(dropout=10**400), "config.json: the number .* is too large")
    for key, value in {"cell": "x" * 9000, "embedding": [0] * 9000, "y" * 9000: 1}.items():
        yield Case(f"a model with {key[:9]} of great length", model(**{key: value}), "…")
    yield Case("a format of great length", config(format="x" * 9000), "…")
    yield Case("a cell of its own", model(cell="__class__"), "Cell '__class__' is not known")
    yield Case("a model key more", model(pretrained="http://x"), "no 'pretrained'")
    yield Case("a model that is a list", config(model=[1]), "must be a JSON object")
    yield Case("a far larger model", model(decoder_hidden=4096, encoder_hidden=4096), "config.json says")
    yield Case("another cell", model(cell="elman"), "config.json says")
    yield Case("a tied readout that is stored", model(tie_readout=True), "readout.weight is not part")
    for file in ("../../../etc/passwd", "/etc/passwd", ".hidden", "", "a/b.json", "a\\b.json", "x" * 200, None):
        spec = {"kind": "characters", "file": file}
        yield Case(
            f"a tokenizer at {str(file)[:20]!r}", config(tokenizers={"source": spec, "target": spec}), "must be a bare file name"
        )
    spec = {"kind": "pickle", "file": PIECES}
    yield Case("a tokenizer that is a pickle", config(tokenizers={"source": spec, "target": spec}), "kind 'pickle' is not known")
    spec = {"kind": "characters", "file": CONFIG}
    yield Case("the config as tokenizer", config(tokenizers={"source": spec, "target": spec}), "exactly keep_space and pieces")
    yield Case(
        "one tokenizer for two sides", edit_json(CONFIG, lambda value: value["tokenizers"].pop("source") and None), "do not fit"
    )
    yield Case("no tokenizers", config(tokenizers={}), "names no tokenizers")


def weights() -> Iterator[Case]:
    yield Case("weights that are a pickle", put(WEIGHTS, evil_pickle), WEIGHTS)
    yield Case("weights that are torch's own file", put(WEIGHTS, evil_torch_file), f"{WEIGHTS}: its header claims")
    yield Case("empty weights", put(WEIGHTS, b""), "too short")
    yield Case("weights of 7 bytes", put(WEIGHTS, b"\0" * 7), "too short")
    for length in (1, 10**5, 2**31, 2**63, 2**64 - 1):
        yield Case(f"a header of {length} bytes", put(WEIGHTS, struct.pack("<Q", length) + b"{" * 100), f"{WEIGHTS}")
    texts = [
        ("no JSON", b"{x}"),
        ("nested deeply", DEEP.encode()),
        ("a list", b"[]"),
        ("a key twice", b'{"a": 1, "a": 1}'),
        ("empty", b""),
    ]
    yield from (Case(f"a header with {name}", header(lambda _, text=text: text), f"{WEIGHTS}") for name, text in texts)
    yield Case("metadata of numbers", header(lambda table: table.update(__metadata__={"a": 1})), "must map names to texts")
    for dtype in ("I64", "F64", "U8", "F8_E4M3", "object", None, ["F16"]):
        yield Case(f"dtype {dtype!r}", bias(dtype=dtype), "readout.b: dtype .* is not one of")
    for shape in ([-13], [13.0], [True], "13", [[13]], [2**62, 4], [12], [1] * 9, None):
        yield Case(f"shape {shape!r}", bias(shape=shape), "readout.b: (shape|data_offsets)")
    for offsets in ([0], [26, 0], [0, 10**12], [-26, 0], ["0", "26"], [0.0, 26.0], None):
        yield Case(f"offsets {offsets!r}", bias(data_offsets=offsets), "readout.b|gap or overlaps|end at byte")
    yield Case("two tensors in one place", header(lambda table: table.update(again=dict(table["readout.b"]))), "gap or overlaps")
    yield Case("bytes after the end", lambda folder: put(WEIGHTS, (folder / WEIGHTS).read_bytes() + b"x")(folder), "end at byte")
    yield Case("a tensor missing", tensors(lambda found: found.pop("readout.b")), "readout.b is missing")
    yield Case("a tensor more", tensors(lambda found: found.update(more=torch.zeros(2))), "more is not part")
    yield Case("a tensor turned", tensors(lambda found: found.update({"readout.weight": found["readout.weight"].T})), "has shape")
    yield Case("an empty tensor", tensors(lambda found: found.update({"readout.b": torch.zeros(0)})), "has shape")
    for value in (float("nan"), float("inf"), float("-inf")):
        yield Case(f"{value} among the numbers", tensors(set_nan(value)), "decoder.mix.bias holds NaN or infinite")
    yield Case("NaN in bfloat16", tensors(set_nan(float("nan"), torch.bfloat16)), "holds NaN or infinite")
    yield Case("weights in float32", recast(torch.float32))
    yield Case("weights in bfloat16", recast(torch.bfloat16))
    yield Case("int8 in a folder of format 1", tensors(in_int8("readout.weight")), "int8, which format 1 of config.json")
    second = config(format=2)
    for what, change, says in (
        ("a matrix in int8", in_int8("readout.weight"), ""),
        ("int8 without scales", in_int8("readout.weight", scale=None), "readout.weight.scale is missing"),
        ("a scale too few", in_int8("readout.weight", rows=-1), "readout.weight.scale has shape"),
        ("a scale of NaN", in_int8("readout.weight", scale=float("nan")), "readout.weight.scale holds NaN"),
        ("a giant scale", in_int8("readout.weight", scale=1e30), "a scale of readout.weight is larger than 515.8"),
        ("a vector in int8", in_int8("readout.b"), "readout.b is in int8, which only a matrix"),
        ("scales of nothing", lambda found: found.update({"readout.weight.scale": torch.ones(3)}), "is not part of"),
    ):
        yield Case(f"format 2: {what}", several(tensors(change), second), says)
    yield Case("a header padded with spaces", header(lambda table: json.dumps(table).encode() + b" " * 37))
    for name in ("pytorch_model.bin", "training_args.bin", "optimizer.pt", "tokenizer.pkl"):
        yield Case(f"{name} beside good weights", put(name, evil_torch_file if name.startswith("p") else evil_pickle))
    yield Case(
        "only a pickle", several(put("pytorch_model.bin", evil_torch_file), drop(WEIGHTS)), f"{WEIGHTS} is (missing|not named)"
    )
    yield Case("code beside good weights", put("modeling.py", "raise SystemExit"))


def tokenizers() -> Iterator[Case]:
    changes: list[tuple[str, Callable[[list[Any]], Any], str]] = [
        ("a piece too few", lambda found: found.pop() and None, "has 12 pieces"),
        ("a piece too many", lambda found: found.append("z"), "has 14 pieces"),
        ("no specials", lambda found: found.__delitem__(slice(0, 4)), "starts with"),
        ("specials in another order", swap, "starts with"),
        ("a piece twice", lambda found: found.__setitem__(5, "b"), "one piece twice"),
        ("a special twice", lambda found: found.__setitem__(5, "<eos>"), "one piece twice"),
        ("a piece that is a number", lambda found: found.__setitem__(5, 7), "character file holds"),
        ("an empty piece", lambda found: found.__setitem__(5, ""), "character file holds"),
        ("a piece of 300 characters", lambda found: found.__setitem__(5, "x" * 300), "longer than 256"),
    ]
    yield from (Case(f"characters with {name}", pieces(change), says) for name, change, says in changes)
    yield Case("characters that are a pickle", put(PIECES, evil_pickle), "not JSON")
    yield Case("characters nested deeply", put(PIECES, DEEP), "nested too deeply")
    yield Case("characters without number", put(PIECES, MANY), "has 70,005 pieces; at most 65,536")
    yield Case("characters that fill the memory", put(PIECES, BOMB), "too much memory")
    garbage = [
        ("garbage", b"\xff" * 500),
        ("a pickle", evil_pickle),
        ("empty", b""),
        ("a length without end", b"\x0a" + b"\xff" * 9 + b"\x01"),
    ]
    yield from (Case(f"subwords: {name}", put("target.model", data), "target.model", base="subwords") for name, data in garbage)
    yield Case("subwords cut short", cut("target.model", 0.5), "target.model", base="subwords")
    yield Case("subwords numbered otherwise", put("target.model", default_subwords), "pieces 0 to 3 must be", base="subwords")
    yield Case("subwords with a piece that is no text", put("target.model", broken_piece), "target.model", base="subwords")
    yield Case("subwords with a table", put("target.model", with_table), "normalisation table", base="subwords")
    rust: list[tuple[str, Callable[[dict[str, Any]], Any], str]] = [
        ("a pattern without end", lambda value: value.update(pre_tokenizer=CATASTROPHE), "pre_tokenizer must be"),
        (
            "a normalizer",
            lambda value: value.update(normalizer={"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}),
            "normalizer",
        ),
        ("added tokens", lambda value: value.update(added_tokens=[{"id": 4, "content": "x"}]), "added_tokens must be"),
        ("a template", lambda value: value.update(post_processor={"type": "TemplateProcessing"}), "post_processor must be"),
        ("padding", lambda value: value.update(padding={"strategy": {"Fixed": 10**9}}), "padding must be"),
        ("another model", lambda value: value["model"].update(type="BPE"), "must be a WordLevel table"),
        ("two words of one number", lambda value: value["model"]["vocab"].update(one=5, two=5), "numbered from 0"),
        ("a number left out", lambda value: value["model"]["vocab"].update(one=10**9), "numbered from 0"),
        ("no unknown word", lambda value: value["model"].update(unk_token="one"), "must be <unk>"),
        ("specials elsewhere", lambda value: value["model"]["vocab"].update({"<pad>": 2, "<eos>": 0}), "pieces 0 to 3"),
        ("a key more", lambda value: value.update(dropout=0.5), "not the keys"),
    ]
    yield from (Case(f"words with {name}", words(change), says, base="words") for name, change, says in rust)
    cnn = "efficientnet-lite0.safetensors"
    yield Case("a captioner without its CNN", drop(cnn), f"{cnn}, the CNN .* is missing", base="caption")
    yield Case("a captioner with another CNN", cut(cnn, 0.9), f"{cnn} differs from its sha256", base="caption")
    entry = {"file": "../cnn.safetensors", "sha256": "0" * 64}
    yield Case("a CNN elsewhere", config(shared={"cnn": entry}), "must be a bare file name", base="caption")
    yield Case(
        "a CNN that is a pickle", config(shared={"cnn": {**entry, "file": "cnn.bin"}}), "must be a .safetensors", base="caption"
    )
    yield Case("a captioner that names no CNN", config(shared=DROPPED), "names shared.cnn", base="caption")


CASES = [*folders(), *manifests(), *configs(), *weights(), *tokenizers()]


def make(case: Case, folder: Path) -> Path:
    """The spoiled checkpoint; `folder` holds a good one."""
    case.spoil(folder)
    if case.signed:
        write_manifest(folder)
    return folder
