"""Records -> compact JSON for the page's own components: text, numbers and packed arrays."""

from __future__ import annotations

import base64
import math
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from seqdemo.config import switches
from seqdemo.errors import InputError
from seqdemo.figures.places import labels_of
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


def kind_of(pieces: Sequence[str]) -> str:
    """Whether these pieces are subwords (with their mark for a space), characters or words."""
    if any(piece.startswith("\u2581") for piece in pieces):
        return "subwords"
    letters = (unicodedata.normalize("NFC", piece) for piece in pieces if not (piece.startswith("<") and piece.endswith(">")))
    return "characters" if all(len(piece) <= 1 for piece in letters) else "words"


def facts_of(trace: Trace, title: str, checkpoint: str = "") -> dict[str, str]:
    """The texts printed in a saved picture."""
    texts = {"input": trace.source, "output": trace.target}
    return {"title": title, "checkpoint": checkpoint, **{name: text_of(pieces) for name, pieces in texts.items()}}


def text_of(pieces: Sequence[str]) -> str:
    """Pieces as the text they spell, approximately, for a caption."""
    shown = [piece for piece in pieces if not (piece.startswith("<") and piece.endswith(">"))]
    joined = (" " if kind_of(shown) == "words" else "").join(shown)
    return joined.replace("\u2581", " ").strip()


def alignment_payload(trace: Trace, title: str, checkpoint: str = "") -> dict[str, Any]:
    """Attention weights a_tj: rows t are target pieces, columns j source states, numbered where they have no pieces."""
    if trace.attention is None:
        raise InputError("This model has no attention, so there is no alignment to draw; choose a checkpoint with attention.")
    return {
        "source": list(trace.source),
        "target": list(trace.target),
        "kinds": {"source": kind_of(trace.source), "target": kind_of(trace.target)},
        "weights": packed(trace.attention, "float32"),
        **heads_payload(trace),
        "facts": facts_of(trace, title, checkpoint),
    }


def heads_payload(trace: Trace) -> dict[str, Any]:
    """Several heads: their mean, then each head by layer and number. Heads of self-attention follow; `own` names the side, source
    or target, that they look at. The others have the `layer` and `head` by which an edit names them."""
    crossing = [name for name in trace.seen if ".cross." in name]
    if len(crossing) < 2 or trace.attention is None:
        return {}
    heads: list[dict[str, Any]] = [{"name": "mean", "weights": packed(trace.attention, "float32")}]
    for told, own, names in (
        ("", "", crossing),
        ("reading, ", "source", own_heads(trace, "encoder")),
        ("writing, ", "target", own_heads(trace, "decoder")),
    ):
        for name in names:
            _, layer, _, head = name.split(".")
            weights = packed(trace.seen[name], "float32")
            named = {"own": own} if own else {"layer": int(layer), "head": int(head)}
            heads.append({"name": told + head_name(layer, head), "weights": weights, **named})
    return {"heads": heads}


def head_name(layer: str, head: str) -> str:
    """The name of an attention head for people, who count from 1; its path counts from 0."""
    return f"layer {int(layer) + 1}, head {int(head) + 1}"


def own_heads(trace: Trace, part: str) -> list[str]:
    return [name for name in trace.seen if name.startswith(part) and ".self." in name]


def distribution_payload(trace: Trace) -> dict[str, Any]:
    """Of hard attention: what each row's one position was chosen from."""
    return {} if trace.distribution is None else {"distribution": packed(trace.distribution, "float32")}


def tops_payload(trace: Trace) -> list[list[list[Any]]]:
    """At each step the likeliest pieces with their log probabilities, in as many digits as a float32 holds."""
    return [
        [[piece, finite(round(float(logp), 6))] for piece, logp in zip(pieces, logps)]
        for pieces, logps in zip(trace.top_pieces, trace.top_logps)
    ]


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
    """The cell state of each part, or its hidden state if it has none."""
    chosen = {name for name in gates if name.endswith(".cell")}
    hidden = {name for name in gates if name.endswith(".hidden") and name.replace(".hidden", ".cell") not in chosen}
    return {name: gates[name] for name in gates if name in chosen | hidden}


def gates_payload(gates: dict[str, np.ndarray]) -> dict[str, Any]:
    """Every gate in one byte a number. Gates from 0 to 1 are marked as `open` and have scale 1; others are scaled by their
    largest value."""

    def gate(name: str, values: np.ndarray) -> dict[str, Any]:
        return {**packed_bytes(values, 1.0), "open": True} if name.rsplit(".", 1)[-1] in switches() else packed_bytes(values)

    return {name: gate(name, values) for name, values in gates.items()}


def few_units(gates: dict[str, Any], chosen: Collection[tuple[int, int]]) -> dict[str, Any]:
    """Only the given units of the decoder, by layer and number. `which` lists the units of the columns."""
    found = {}
    for name, gate in gates.items():
        units = sorted(unit for layer, unit in chosen if name.startswith(f"decoder.{layer}."))
        if units:
            values = np.frombuffer(base64.b64decode(gate["base64"]), gate["dtype"]).reshape(gate["shape"])
            found[name] = {**gate, **packed(values[:, units], gate["dtype"]), "which": units, "units": gate["shape"][1]}
    return found


def labels_payload(pieces: Sequence[str]) -> dict[str, Any]:
    """Labels after each letter of a text, as whole numbers; -1 if unknown."""
    text = "".join(piece if len(piece) == 1 else "\0" for piece in pieces)
    return {name: packed(np.nan_to_num(values, nan=-1.0).clip(-1, 127), "int8") for name, values in labels_of(text).items()}


def trace_payload(trace: Trace, asked: Sequence[int], gates: str = "") -> dict[str, Any]:
    """`asked`: the tokens replayed (of a language model, without the person's own text). `gates`: all, memory or none."""
    wanted = {"all": trace.gates, "memory": memory_only(trace.gates)}.get(gates)
    return {
        "source": list(trace.source),
        "pieces": list(trace.target),
        "tokens": [int(token) for token in trace.tokens],
        "asked": [int(token) for token in asked],
        "logps": [finite(float(logp)) for logp in trace.logps],
        "top": tops_payload(trace),
        "attention": None if trace.attention is None else packed(trace.attention, "float32"),
        **distribution_payload(trace),
        **heads_payload(trace),
        "gates": None if wanted is None else gates_payload(wanted),
        "gates_kind": gates,
        **(
            {}
            if wanted is None or trace.source or kind_of(trace.target) != "characters"
            else {"labels": labels_payload(trace.target)}
        ),
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
