"""Records -> compact JSON for the page's own components: text, numbers and packed arrays."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from seqdemo.records import Hypothesis, SearchTree, Trace

TREE_COLUMNS = {
    "step": "int16",
    "parent": "int32",
    "token": "int32",
    "logp": "float32",
    "total": "float32",
    "rank": "int16",
    "fate": "uint8",
    "missed": "float32",
}
UNIT_GATES = ("input", "forget", "output", "update", "reset")


def packed(array: np.ndarray, dtype: str) -> dict[str, Any]:
    """An array as base64 of little-endian `dtype`; infinities become the largest finite numbers."""
    if dtype.startswith("float"):
        limit = float(np.finfo(dtype).max)
        array = np.nan_to_num(np.asarray(array, dtype="float64"), nan=0.0, posinf=limit, neginf=-limit)
        array = np.clip(array, -limit, limit)
    values = np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "shape": list(values.shape), "base64": base64.b64encode(values.tobytes()).decode("ascii")}


def packed_bytes(array: np.ndarray, largest: float | None = None) -> dict[str, Any]:
    """A signed array in one byte a number: value = byte * scale. The error is at most scale / 2."""
    largest = float(np.abs(array).max()) if largest is None and array.size else (largest or 0.0)
    scale = (largest or 1.0) / 127.0
    rounded = np.clip(np.rint(np.asarray(array, dtype="float64") / scale), -127, 127)
    return {**packed(rounded, "int8"), "scale": scale}


def finite(value: float) -> float | None:
    """A number JSON can hold; None stands for an infinity."""
    return float(value) if math.isfinite(value) else None


def plain(record: Any) -> Any:
    """A small frozen record (a certificate, a price) as JSON."""
    if is_dataclass(record) and not isinstance(record, type):
        return plain(asdict(record))
    if isinstance(record, dict):
        return {str(name): plain(value) for name, value in record.items()}
    if isinstance(record, (tuple, list)):
        return [plain(value) for value in record]
    if isinstance(record, np.ndarray):
        return plain(record.tolist())
    if isinstance(record, (float, np.floating)):
        return finite(float(record))
    return record.item() if isinstance(record, np.generic) else record


def source_payload(pieces: Sequence[str], known: Sequence[bool]) -> dict[str, Any]:
    return {"pieces": list(pieces), "known": [int(flag) for flag in known]}


def hypothesis_payload(hypothesis: Hypothesis, text: str, piece: Callable[[int], str]) -> dict[str, Any]:
    return {
        "tokens": [int(token) for token in hypothesis.tokens],
        "pieces": [piece(int(token)) for token in hypothesis.tokens],
        "logps": [finite(logp) for logp in hypothesis.logps],
        "total": finite(hypothesis.total),
        "score": finite(hypothesis.score),
        "finished": bool(hypothesis.finished),
        "node": int(hypothesis.node),
        "text": text,
    }


def tree_payload(tree: SearchTree, piece: Callable[[int], str]) -> dict[str, Any]:
    """The tree column by column, and one name a distinct token."""
    names = {int(token): piece(int(token)) for token in np.unique(tree.token)}
    columns = {name: packed(getattr(tree, name), dtype) for name, dtype in TREE_COLUMNS.items()}
    return {"size": len(tree), "pieces": [[token, name] for token, name in names.items()], **columns}


def memory_only(gates: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of each part its cell, or, where the cell of the network has none, its hidden state."""
    chosen = {name for name in gates if name.endswith(".cell")}
    hidden = {name for name in gates if name.endswith(".hidden") and name.replace(".hidden", ".cell") not in chosen}
    return {name: gates[name] for name in gates if name in chosen | hidden}


def gates_payload(gates: dict[str, np.ndarray]) -> dict[str, Any]:
    """Every gate in one byte a number: sigmoid gates on a scale of 1, cells and hidden states on their own largest."""
    return {name: packed_bytes(values, 1.0 if name.rsplit(".", 1)[-1] in UNIT_GATES else None) for name, values in gates.items()}


def trace_payload(trace: Trace, asked: Sequence[int], gates: str = "") -> dict[str, Any]:
    """`asked`: the tokens replayed (of a language model, without the person's own text). `gates`: all, memory or none."""
    wanted = {"all": trace.gates, "memory": memory_only(trace.gates)}.get(gates)
    tops = [
        [[piece, finite(float(logp))] for piece, logp in zip(pieces, logps)]
        for pieces, logps in zip(trace.top_pieces, trace.top_logps)
    ]
    return {
        "source": list(trace.source),
        "pieces": list(trace.target),
        "tokens": [int(token) for token in trace.tokens],
        "asked": [int(token) for token in asked],
        "logps": [finite(float(logp)) for logp in trace.logps],
        "top": tops,
        "attention": None if trace.attention is None else packed(trace.attention, "float32"),
        "gates": None if wanted is None else gates_payload(wanted),
        "gates_kind": gates,
    }


def column_payload(
    source: dict[str, Any],
    hypotheses: Iterable[tuple[Hypothesis, str]],
    tree: SearchTree,
    trace: Trace,
    piece: Callable[[int], str],
    gates: str = "",
    **facts: Any,
) -> dict[str, Any]:
    """All that a column of the page draws. `facts` are small records: far, certificate, price, took."""
    found = [hypothesis_payload(hypothesis, text, piece) for hypothesis, text in hypotheses]
    return {
        "source": source,
        "hypotheses": found,
        "tree": tree_payload(tree, piece),
        "trace": trace_payload(trace, found[0]["tokens"], gates),
        **{name: plain(value) for name, value in facts.items()},
    }
