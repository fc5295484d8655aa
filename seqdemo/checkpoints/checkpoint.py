"""A checkpoint in a folder: save, and a strict load."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from seqdemo.checkpoints import folder as files
from seqdemo.checkpoints.description import ENCODER_OF_TASK, check_config, model_config, parse_config
from seqdemo.checkpoints.folder import (
    CARD,
    CONFIG,
    FORMAT,
    MANIFEST,
    METRICS,
    WEIGHTS,
    Damaged,
    Folder,
    no_manifest,
    shared_folder,
)
from seqdemo.checkpoints.pieces import check_fit, parse_tokenizer
from seqdemo.checkpoints.weights import compare, fill, format_of, own_tensors, parse_header, read_tensors, to_bytes
from seqdemo.errors import InputError, shown
from seqdemo.network.inference import bytes_beside, inferring
from seqdemo.network.model import LanguageModel, Network, Seq2Seq
from seqdemo.network.pretrained import WAYS
from seqdemo.network.single import Single
from seqdemo.network.transformer import Transformer
from seqdemo.text import Tokenizer

if hasattr(os, "register_at_fork"):  # a forked process has none of torch's threads and would wait for them forever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
CNN_PREFIX = "encoder.cnn."
ARCHITECTURES: dict[str, type[nn.Module]] = {
    "Seq2Seq": Seq2Seq,
    "LanguageModel": LanguageModel,
    "Transformer": Transformer,
    "Single": Single,
}


@dataclass(frozen=True)
class Checkpoint:
    """A model ready to use, with its tokenizers, figures and card."""

    name: str
    task: str  # translate | transliterate | caption | complete
    model: nn.Module
    source_text: Tokenizer | None
    target_text: Tokenizer | None
    config: dict[str, Any]
    metrics: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    revision: str = ""  # the commit on the Hub; empty for a local folder
    card: str = ""  # README.md as it is: show it as text, never as HTML
    languages: tuple[str, ...] = field(init=False)  # target languages that one can choose among

    def __post_init__(self) -> None:
        object.__setattr__(self, "languages", tuple(self.config.get("languages", ())))

    @property
    def precision(self) -> str:
        """The precision in which searches and replays compute."""
        return str(getattr(self.model, "precision", "")) or "float32"

    def in_precision(self, precision: str) -> Checkpoint:
        """The same checkpoint with another precision for searches and replays."""
        if precision == self.precision:
            return self
        return replace(self, model=cast(Any, self.model).for_inference(precision))

    @property
    def summary(self) -> str:
        """The first paragraph of the card, without its front matter; plain text."""
        text = re.sub(r"\A---\n.*?\n---\n", "", self.card, flags=re.DOTALL)
        paragraphs = (part.strip() for part in text.split("\n\n"))
        return next((part for part in paragraphs if part and not part.startswith(("#", "<", "!", "|", "```"))), "")[:600]

    @property
    def size(self) -> int:
        """Bytes that the weights take in memory, including their packed copies."""
        parameters = sum(tensor.numel() * tensor.element_size() for tensor in own_tensors(self.model).values())
        return parameters + bytes_beside(self.model)


@dataclass(frozen=True)
class Baggage:
    """What is saved with a network's weights: its config.json, files as they are (tokenizers, figures, card), and its
    tokenizers."""

    config: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    source_text: Tokenizer | None = None
    target_text: Tokenizer | None = None


def save(
    folder: str | Path,
    model: nn.Module,
    config: dict[str, Any],
    source_text: Tokenizer | None = None,
    target_text: Tokenizer | None = None,
    metrics: dict[str, Any] | None = None,
    card: str = "",
    shared: str | Path | None = None,
    precision: str = "float16",
) -> Path:
    """Write a checkpoint; `config` holds the name, the task and other known facts (languages, licence, limits...); the rest is
    filled in. The weights of a CNN go into the folder `shared`, or into `folder` itself. `precision` is that of the file:
    float16, or int8 for matrices. Every file is replaced atomically."""
    specs, extra = tokenizer_files(source_text, target_text)
    if metrics is not None:
        extra[METRICS] = files.pretty_json(metrics)
    if card:
        extra[CARD] = card.encode()
    return save_model(folder, model, Baggage({**config, "tokenizers": specs}, extra), shared, precision)


def save_model(
    folder: str | Path, model: nn.Module, baggage: Baggage, shared: str | Path | None = None, precision: str = "float16"
) -> Path:
    path = folder_for(folder)
    model = getattr(model, "bare_network", None) or model  # a network for inference is saved as what it was made from
    config = {"tokenizers": {}, **names_for(path, model), **baggage.config}
    config |= {"architecture": architecture_of(model), "model": model.config.to_json()}  # type: ignore[union-attr, operator]
    weights = own_tensors(model)
    if model.config.encoder == "image":  # type: ignore[union-attr]
        config["shared"] = {"cnn": save_cnn(path, model, Path(shared) if shared else None)}
        weights = {name: tensor for name, tensor in weights.items() if not name.startswith(CNN_PREFIX)}
    file = to_bytes(weights, WEIGHTS, precision)
    config["format"] = format_of(parse_header(file, WEIGHTS))
    check_config(config)
    written = {**baggage.files, WEIGHTS: file, CONFIG: files.pretty_json(config)}
    for name, data in written.items():
        files.replace_file(path / name, data)
    files.write_manifest(path)
    return path


def folder_for(name: str | Path) -> Path:
    """The folder of this name, made if it is not there."""
    if not isinstance(name, (str, Path)) or not str(name):
        raise InputError("Name the folder to save to.")
    path = Path(name)
    if path.exists() and not path.is_dir():
        raise InputError(f"{shown(str(name))} is a file; name a folder to save to.")
    path.mkdir(parents=True, exist_ok=True)
    return path


def save_pretrained(network: Network, folder: str | Path) -> Path:
    return save_model(folder, network, network.baggage or Baggage())


def names_for(path: Path, model: nn.Module) -> dict[str, str]:
    """The name and task of a bare model: the name of its folder, and the first task that its encoder allows."""
    name = re.sub("[^a-z0-9]+", "-", path.resolve().name.lower()).strip("-")[:64] or "model"
    task = next(task for task, encoder in ENCODER_OF_TASK.items() if encoder == model.config.encoder)  # type: ignore[union-attr]
    return {"name": name, "task": task}


def architecture_of(model: nn.Module) -> str:
    for name, kind in ARCHITECTURES.items():
        if isinstance(model, kind):
            return name
    raise InputError(f"A {type(model).__name__} cannot be saved; only {' and '.join(ARCHITECTURES)} can.")


def tokenizer_files(source: Tokenizer | None, target: Tokenizer | None) -> tuple[dict[str, dict[str, str]], dict[str, bytes]]:
    """Their entries in config.json, and their files: a single file if source and target are the same object."""
    stems = {"source": source, "target": target} if source is not target else {"pieces": target}
    named = {stem: (tokenizer, f"{stem}{tokenizer.suffix}") for stem, tokenizer in stems.items() if tokenizer is not None}
    specs = {stem: {"kind": tokenizer.kind, "file": file} for stem, (tokenizer, file) in named.items()}
    if "pieces" in specs:
        specs = {"source": specs["pieces"], "target": specs["pieces"]}
    return specs, {file: tokenizer.dump() for tokenizer, file in named.values()}


def save_cnn(path: Path, model: nn.Module, shared: Path | None) -> dict[str, str]:
    """Save the CNN's weights under its own name: in the shared folder, for all captioners with the same CNN, or in the
    checkpoint's folder if the shared one holds other weights of that name."""
    own = {name[len(CNN_PREFIX) :]: tensor for name, tensor in own_tensors(model).items() if name.startswith(CNN_PREFIX)}
    file = f"{model.config.cnn}.safetensors"  # type: ignore[union-attr]
    data = to_bytes(own, file)
    taken = shared is not None and (shared / file).exists() and (shared / file).read_bytes() != data
    place = path if shared is None or taken else shared
    place.mkdir(parents=True, exist_ok=True)
    files.replace_file(place / file, data)
    return {"file": file, "sha256": hashlib.sha256(data).hexdigest()}


DRAWS = ("normal_", "uniform_", "kaiming_uniform_", "kaiming_normal_")


class LeftBlank(TorchFunctionMode):
    """Skip random initialisation: on the meta device it has no effect, but costs a second of imports."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in DRAWS:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def blueprint(config: dict[str, Any], kind: type[nn.Module] | None = None) -> nn.Module:
    """The model of a config on the meta device, which has shapes but no memory; `kind` is a subclass to build instead."""
    with torch.device("meta"), LeftBlank():
        return (kind or ARCHITECTURES[config["architecture"]])(model_config(config))


def load_model(folder: Folder, config: dict[str, Any], kind: type[nn.Module] | None = None) -> nn.Module:
    """Compare the header with the blueprint first, then read the numbers."""
    model = blueprint(config, kind)
    expected = own_tensors(model)
    cnn = {name: tensor for name, tensor in expected.items() if name.startswith(CNN_PREFIX)}
    body = {name: tensor for name, tensor in expected.items() if name not in cnn}
    tensors = load_weights(folder.checked(WEIGHTS), body, WEIGHTS, config["format"])
    if cnn:
        file, data = config["shared"]["cnn"]["file"], read_cnn(folder, config["shared"]["cnn"])
        short = {name[len(CNN_PREFIX) :]: tensor for name, tensor in cnn.items()}
        tensors |= {CNN_PREFIX + name: tensor for name, tensor in load_weights(data, short, file).items()}
    fill(model, tensors)
    return model.eval()


def load_weights(data: bytes, expected: dict[str, torch.Tensor], file: str, most: int = FORMAT) -> dict[str, torch.Tensor]:
    """The weights of a file that needs at most this format."""
    stored = parse_header(data, file)
    if format_of(stored) > most:
        raise InputError(f"{file}: it has weights in int8, which format {most} of {CONFIG} does not know.")
    compare(stored, expected, file)
    return read_tensors(data, stored, file)


def read_cnn(folder: Folder, entry: dict[str, str]) -> bytes:
    """Read the CNN from the folder itself, or else from the folder that the shipped checkpoints share. Its sha256 must match."""
    name = entry["file"]
    place = folder if name in folder or not shared_folder().is_dir() else Folder(shared_folder())
    if name not in place:
        raise Damaged(f"{name}, the CNN that {CONFIG} names, is missing.")
    data = place.read(name)
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise Damaged(f"{name} differs from its sha256 in {CONFIG}: damaged or changed.")
    return data


def load_tokenizers(folder: Folder, config: dict[str, Any], trusted: bool) -> tuple[Tokenizer | None, Tokenizer]:
    specs = config["tokenizers"]
    if not specs:
        raise InputError(f"{CONFIG} names no tokenizers: this folder holds a bare model; read it with from_pretrained.")
    parsed: dict[str, Tokenizer] = {}
    for spec in specs.values():
        if spec["file"] not in parsed:
            parsed[spec["file"]] = parse_tokenizer(spec, folder.checked(spec["file"]), trusted)
    source = parsed[specs["source"]["file"]] if "source" in specs else None
    target = parsed[specs["target"]["file"]]
    check_fit(config, source, target)
    return source, target


def load_folder(
    path: Path, home: Path | None = None, name: str = "", revision: str = "", trusted: bool = False, precision: str = "float32"
) -> Checkpoint:
    """Load a checkpoint's folder, with its model for inference. An InputError names the file and the reason. `home`: where links
    may lead."""
    folder, config = open_folder(path, home)
    source, target = load_tokenizers(folder, config, trusted)
    with torch.inference_mode():  # whose tensors refuse changes in place
        network = load_model(folder, config)
        cast(Any, network).baggage = Baggage(config, carried(folder, config), source, target)
        model = inferring(network, precision)
    metrics = files.parse_json(folder.checked(METRICS), METRICS) if METRICS in folder else {}
    if not isinstance(metrics, dict):
        raise InputError(f"{METRICS} must hold a JSON object.")
    card = utf8(folder.read(CARD), CARD) if CARD in folder else ""
    return Checkpoint(name or config["name"], config["task"], model, source, target, config, metrics, folder.path, revision, card)


def utf8(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text in UTF-8 (byte {error.start:,}).") from None


def open_folder(path: Path, home: Path | None = None) -> tuple[Folder, dict[str, Any]]:
    if path.is_dir() and not os.path.lexists(path / MANIFEST):
        raise no_manifest(path)  # or else the first complaint would be about some file in it
    folder = Folder(path, home)
    folder.open_manifest()
    return folder, parse_config(folder.checked(CONFIG))


def carried(folder: Folder, config: dict[str, Any]) -> dict[str, bytes]:
    """The files that are saved again unchanged."""
    named = {spec["file"] for spec in config["tokenizers"].values()} | {name for name in (METRICS, CARD) if name in folder}
    return {name: folder.read(name) if name == CARD else folder.checked(name) for name in named}


def load_bare(path: Path, home: Path | None, kind: type[Network], trusted: bool) -> Network:
    """The trainable network alone, as `kind`, with its baggage."""
    folder, config = open_folder(path, home)
    if not issubclass(kind, ARCHITECTURES[config["architecture"]]):
        told = f"{config['name']} is a {config['architecture']}, not a {kind.__name__}"
        raise InputError(f"{told}; for its trainable network write load(...).model.bare() with load of seqdemo.")
    source, target = load_tokenizers(folder, config, trusted) if config["tokenizers"] else (None, None)
    network: Network = load_model(folder, config, kind)  # type: ignore[assignment]
    network.baggage = Baggage(config, carried(folder, config), source, target)
    return network


WAYS["save_pretrained"] = save_pretrained
