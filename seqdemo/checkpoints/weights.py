"""model.safetensors, read without trusting it: the header is compared with the model the config describes before anything
is allocated. On disk half precision or, of matrices, int8 with a scale for each row (format 2); in memory float32. Tied weights
are stored once, under the first of their names."""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save as safetensors_bytes
from torch import Tensor, nn

from seqdemo.checkpoints.folder import ON_DISK, parse_json
from seqdemo.errors import InputError, shown
from seqdemo.network.packed import LEVELS, in_levels

DTYPES = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "I8": torch.int8}
EXPONENT = {torch.float16: ("<u2", 0x7C00), torch.bfloat16: ("<u2", 0x7F80), torch.float32: ("<u4", 0x7F800000)}
AT_ONCE = 1 << 18  # numbers looked at together
MAX_HEADER = 1024 * 1024
SCALE = ".scale"  # after the name of a matrix in int8: its scales
LEAST_COLUMNS = 16  # of a matrix in int8: with fewer a scale for each row is not worth its bytes
MOST_SCALE = 65504.0 / float(LEVELS)  # no weight is larger than half precision allows


class Stored(NamedTuple):
    """One tensor of the file; `start` counts from the file's first byte."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    end: int


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter and buffer once, under its first name."""
    found: dict[int, str] = {}
    state = model.state_dict(keep_vars=True)
    return {name: tensor for name, tensor in state.items() if found.setdefault(id(tensor), name) == name}


def to_bytes(tensors: dict[str, Tensor], file: str, precision: str = "float16") -> bytes:
    """The file in half precision; with precision "int8" the matrices are rounded to whole multiples of their rows' scales."""
    if precision not in ON_DISK:
        raise InputError(f"The precision of {file} is one of {', '.join(ON_DISK)}, not {shown(precision)}.")
    kept: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        half = tensor.detach().to("cpu", torch.float16).contiguous()
        if not bool(torch.isfinite(half).all()):
            raise InputError(f"{file}: {name} has values that half precision cannot hold (NaN, infinite, or beyond 65504).")
        if precision == "int8" and half.dim() == 2 and half.shape[1] >= LEAST_COLUMNS:
            kept[name], kept[name + SCALE] = in_levels(tensor.detach().to("cpu", torch.float32))
        else:
            kept[name] = half
    return safetensors_bytes(kept, {"format": "pt"})


def format_of(stored: dict[str, Stored]) -> int:
    """The number of the folder format that this file needs."""
    return 1 + any(entry.dtype == torch.int8 for entry in stored.values())


def parse_header(data: bytes, file: str) -> dict[str, Stored]:
    """The table of tensors, which must describe the rest of the file exactly, without gaps or overlaps."""
    if len(data) < 8:
        raise InputError(f"{file}: too short for a safetensors file.")
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(MAX_HEADER, len(data) - 8):
        raise InputError(
            f"{file}: its header claims {length:,} bytes; the file has {len(data):,} and {MAX_HEADER:,} are allowed."
        )
    header = parse_json(data[8 : 8 + length], f"{file} header")
    if not isinstance(header, dict):
        raise InputError(f"{file}: the header must be a JSON object.")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise InputError(f"{file}: the header's __metadata__ must map names to texts.")
    stored = {name: _stored(entry, 8 + length, f"{file}: {name[:100]}") for name, entry in header.items()}
    at = 8 + length
    for name, entry in sorted(stored.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != at:
            raise InputError(f"{file}: {name[:100]} leaves a gap or overlaps another tensor.")
        at = entry.end
    if at != len(data):
        raise InputError(f"{file}: the tensors end at byte {at:,} and the file at {len(data):,}.")
    return stored


def _stored(entry: Any, base: int, where: str) -> Stored:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise InputError(f"{where}: must have exactly dtype, shape and data_offsets.")
    dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise InputError(f"{where}: dtype {shown(entry['dtype'])} is not one of {', '.join(DTYPES)}.")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _whole_numbers(shape) or len(shape) > 8:
        raise InputError(f"{where}: shape {str(shape)[:80]} must be a short list of whole numbers.")
    if not _whole_numbers(offsets) or len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise InputError(f"{where}: data_offsets {str(offsets)[:80]} do not fit shape {str(shape)[:80]} in {entry['dtype']}.")
    return Stored(dtype, tuple(shape), base + offsets[0], base + offsets[1])


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def compare(stored: dict[str, Stored], expected: dict[str, Tensor], file: str) -> None:
    """Check that names and shapes are exactly those of the config's model; matrices in int8 have their scales beside them."""
    shapes = {name: tuple(tensor.shape) for name, tensor in expected.items()}
    small = [name for name, entry in stored.items() if entry.dtype == torch.int8]
    for name in small:
        if len(shapes.get(name, ())) != 2:
            raise InputError(f"{file}: {name[:100]} is in int8, which only a matrix of the model may be.")
    shapes |= {name + SCALE: shapes[name][:1] for name in small}
    missing, extra = sorted(set(shapes) - set(stored)), sorted(set(stored) - set(shapes))
    if missing:
        raise InputError(f"{file}: {_some(missing)} missing, which the model of config.json has.")
    if extra:
        raise InputError(f"{file}: {_some(extra)} not part of the model of config.json.")
    for name, entry in stored.items():
        if entry.shape != shapes[name]:
            raise InputError(f"{file}: {name} has shape {list(entry.shape)}, but config.json says {list(shapes[name])}.")


def _some(names: list[str]) -> str:
    shown = ", ".join(name[:100] for name in names[:3])
    return f"{shown} and {len(names) - 3} more are" if len(names) > 3 else f"{shown} {'are' if len(names) > 1 else 'is'}"


def read_tensors(data: bytes, stored: dict[str, Stored], file: str) -> dict[str, Tensor]:
    """Read all tensors as float32. Every number is checked before memory is allocated for any."""
    view = memoryview(data)
    for name, entry in stored.items():
        if entry.dtype != torch.int8 and not all_finite(view[entry.start : entry.end], entry.dtype):
            raise InputError(f"{file}: {name} holds NaN or infinite values.")

    def numbers(name: str) -> Tensor:
        entry = stored[name]
        raw = torch.frombuffer(bytearray(view[entry.start : entry.end]), dtype=entry.dtype)
        return raw.to(torch.float32).reshape(entry.shape)

    scales = {name: numbers(name + SCALE) for name, entry in stored.items() if entry.dtype == torch.int8}
    for name, scale_O in scales.items():
        if bool((scale_O.abs() > MOST_SCALE).any()):
            raise InputError(f"{file}: a scale of {name} is larger than {MOST_SCALE:.1f}.")
    body = (name for name in stored if name.removesuffix(SCALE) not in scales or name in scales)
    return {name: numbers(name) * scales[name][:, None] if name in scales else numbers(name) for name in body}


def all_finite(view: memoryview, dtype: torch.dtype) -> bool:
    """Whether no number is NaN or infinite, which means that no exponent consists of ones only."""
    kind, ones = EXPONENT[dtype]
    bits = np.frombuffer(view, kind)
    pieces = (bits[at : at + AT_ONCE] & ones for at in range(0, len(bits), AT_ONCE))
    return not any(bool((piece == ones).any()) for piece in pieces)


def fill(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Replace the model's meta tensors by real ones. A tensor with two names stays one tensor."""
    made: dict[int, nn.Parameter] = {}
    own = own_tensors(model)
    for name, tensor in tensors.items():
        made[id(own[name])] = nn.Parameter(tensor, requires_grad=own[name].requires_grad)
    for module in model.modules():
        for name, slot in list(module._parameters.items()):
            if slot is not None:
                setattr(module, name, made[id(slot)])
