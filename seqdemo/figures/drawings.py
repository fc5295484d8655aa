"""Records -> the drawings of the pages, for notebooks and files."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from seqdemo.errors import InputError
from seqdemo.figures.drawing import Drawing
from seqdemo.figures.lengths import length_points
from seqdemo.figures.metrics import score_of, tables_of
from seqdemo.figures.payloads import (
    alignment_payload,
    distribution_payload,
    facts_of,
    finite,
    gates_payload,
    kind_of,
    memory_only,
    text_of,
    tops_payload,
    tree_payload,
)
from seqdemo.records import FINISHED, SearchTree, Trace


def alignment(trace: Trace, title: str = "Alignment", checkpoint: str = "") -> Drawing:
    """Attention weights a_tj: one row per target piece t, one column per source state j; each row sums to 1."""
    return Drawing("alignment", alignment_payload(trace, title, checkpoint), height=150 + 30 * len(trace.target))


def tree(
    tree: SearchTree, piece: Callable[[int], str], best: int = -1, title: str = "Search tree", checkpoint: str = ""
) -> Drawing:
    """The search from left to right, one column per step. The path to row `best` (or else to the likeliest output) is
    emphasised."""
    ends = sorted(np.flatnonzero(tree.fate == FINISHED).tolist(), key=lambda row: -tree.total[row])
    ends = [best, *(row for row in ends if row != best)] if best >= 0 else ends
    output = [piece(token) for token in tree.tokens(ends[0])] if ends else []
    payload = {
        "tree": tree_payload(tree, piece),
        "kind": kind_of([piece(int(token)) for token in np.unique(tree.token)]),
        "ends": ends[:8],
        "facts": {"title": title, "output": text_of(output), "checkpoint": checkpoint},
    }
    return Drawing("tree", payload, height=420)


ORDERS = ("unit", "variance", "saturation", "token")


def gates(trace: Trace, part: str = "", by: str = "unit", title: str = "Gates", checkpoint: str = "") -> Drawing:
    """The gates of each part of the network (decoder.0 first, or `part`): one row per step, one column per unit. Below, which
    units act as switches. `by`: units as they stand (unit), by variance, by saturation, or by reaction to the first token."""
    parts = list(dict.fromkeys(name.rsplit(".", 1)[0] for name in trace.gates))
    if not parts:
        raise InputError("This trace holds no gates to draw.")
    if part and part not in parts:
        raise InputError(f"This trace has no part {part!r}; it has {', '.join(parts)}.")
    if by not in ORDERS:
        raise InputError(f"Units are sorted by {', '.join(ORDERS[:-1])} or {ORDERS[-1]}, not by {by!r}.")
    payload = {
        "gates": gates_payload(trace.gates),
        "source": list(trace.source),
        "target": list(trace.target),
        "kinds": {"source": kind_of(trace.source), "target": kind_of(trace.target)},
        "facts": facts_of(trace, title, checkpoint),
    }
    return Drawing("gates", payload, {**({"part": part} if part else {}), "order": by}, height=900)


def text(trace: Trace, unit: int = 0, layer: int = 0, given: int = 0, title: str = "Text", checkpoint: str = "") -> Drawing:
    """What a language model read and wrote, coloured by one unit's memory or by how likely each letter was. The first `given`
    pieces were not written by the model."""
    payload = {
        "pieces": list(trace.target),
        "logps": [finite(float(logp)) for logp in trace.logps],
        "top": tops_payload(trace),
        "kind": kind_of(trace.target),
        "given": given,
        "gates": gates_payload(memory_only(trace.gates)) if trace.gates else None,
        "facts": facts_of(trace, title, checkpoint),
    }
    return Drawing("letters", payload, {"unit": unit, "layer": layer, "by": "unit" if trace.gates else "probability"}, height=420)


def probabilities(trace: Trace, title: str = "Probabilities", checkpoint: str = "") -> Drawing:
    """The pieces coloured by how likely each was given those before it; pointing at one shows what else the model considered."""
    drawing = text(trace, title=title, checkpoint=checkpoint)
    return Drawing(drawing.kind, drawing.payload, {**drawing.view, "by": "probability"}, drawing.height)


def photograph(trace: Trace, picture: Any, title: str = "Attention over the photograph", checkpoint: str = "") -> Drawing:
    """Where the model looked in a photograph for every word; with hard attention one cell, and on request the distribution it
    came from. `picture`: the part it saw, as `run.prompt.picture` holds it, or the bytes of a JPEG, PNG or WebP."""
    picture = _bytes_of_picture(picture)
    payload = {
        "picture": f"data:{_kind_of_picture(picture)};base64,{base64.b64encode(picture).decode('ascii')}",
        "pieces": list(trace.target),
        "kind": kind_of(trace.target),
        "weights": alignment_payload(trace, title)["weights"],
        **distribution_payload(trace),
        "facts": {"title": title, "output": text_of(trace.target), "checkpoint": checkpoint},
    }
    return Drawing("photograph", payload, height=760)


def _bytes_of_picture(picture: Any) -> bytes:
    """Bytes as they are; what a Picture shows, as JPEG."""
    if isinstance(picture, bytes):
        return picture
    if not hasattr(picture, "shown"):
        raise InputError("Give the picture of a captioner's run, run.prompt.picture, or the bytes of a JPEG, PNG or WebP.")
    stream = io.BytesIO()
    picture.shown.save(stream, "JPEG", quality=80)
    return stream.getvalue()


def _kind_of_picture(picture: bytes) -> str:
    for start, kind in ((b"\xff\xd8", "image/jpeg"), (b"\x89PNG", "image/png"), (b"RIFF", "image/webp")):
        if picture.startswith(start):
            return kind
    raise InputError("The picture is neither JPEG nor PNG nor WebP.")


def quality_by_length(metrics: Mapping[str, Mapping[str, Any]], test: str = "") -> Drawing:
    """Checkpoint name -> its metrics.json: the score of each length that 30 inputs or more have, with its 95 % interval."""
    tables, test = tables_of(metrics, test, "by_length")
    column, name = score_of(metrics)
    lines = [{"name": key, "points": length_points(rows, column)} for key, rows in tables.items()]
    unit = next(iter(tables.values()))[0]["unit"]
    payload = {
        "across": f"input length in {unit}",
        "up": name,
        "lines": lines,
        "facts": {"title": f"{name} by input length, {test}", "checkpoint": ", ".join(tables)},
    }
    return Drawing("curves", payload, height=420)
