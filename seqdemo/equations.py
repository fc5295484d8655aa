"""The cells as data: each one's named terms, and how they combine. Whoever names, clamps or draws a gate reads this list.

In an equation x is the input, h and c the state before, h' and c' the state after, and any other letter a term above it.
`W x` and `U h` stand for the term's own block of W and of U: W's blocks belong to the terms that name W, in this order, and
likewise U's. b is the term's own block of the bias. `*` multiplies unit by unit.
"""

from __future__ import annotations

from typing import NamedTuple


class Term(NamedTuple):
    name: str  # as traces and clamps call it
    symbol: str  # as equations call it
    equation: str


SUM = "W x + U h + b"
INPUT, FORGET, OUTPUT = (Term(name, name[0], f"sigmoid({SUM})") for name in ("input", "forget", "output"))
NEW = Term("candidate", "g", f"tanh({SUM})")
SHOWN = Term("hidden", "h'", "o * tanh(c')")
LSTM = (INPUT, FORGET, OUTPUT, NEW, Term("cell", "c'", "f * c + i * g"), SHOWN)
RESET, UPDATE = (Term(name, symbol, f"sigmoid({SUM})") for name, symbol in (("reset", "r"), ("update", "z")))
MIXED = Term("hidden", "h'", "z * n + (1 - z) * h")

EQUATIONS: dict[str, tuple[Term, ...]] = {
    "elman": (Term("hidden", "h'", f"tanh({SUM})"),),
    "lstm": LSTM,
    "lstm-b": LSTM,
    "lstm-i": (FORGET, OUTPUT, NEW, Term("cell", "c'", "f * c + g"), SHOWN),
    "lstm-f": (INPUT, OUTPUT, NEW, Term("cell", "c'", "c + i * g"), SHOWN),
    "lstm-o": (INPUT, FORGET, NEW, Term("cell", "c'", "f * c + i * g"), Term("hidden", "h'", "tanh(c')")),
    "gru": (
        RESET,
        UPDATE,
        Term("candidate", "n", "tanh(W x + b + r * (U h + d))"),
        Term("hidden", "h'", "(1 - z) * n + z * h"),
    ),
    "mut1": (
        Term("update", "z", "sigmoid(W x + b)"),
        RESET,
        Term("candidate", "n", "tanh(U (r * h) + tanh(W x) + b)"),
        MIXED,
    ),
    "mut2": (UPDATE, RESET, Term("candidate", "n", "tanh(U (r * h) + W x + b)"), MIXED),
    "mut3": (
        Term("update", "z", "sigmoid(W x + U tanh(h) + b)"),
        RESET,
        Term("candidate", "n", "tanh(U (r * h) + W x + b)"),
        MIXED,
    ),
}


def blocks(cell: str) -> tuple[int, int]:
    """How many vectors of hidden size the input feeds (W's blocks), and how many the past feeds (U's)."""
    return sum("W " in term.equation for term in EQUATIONS[cell]), sum("U " in term.equation for term in EQUATIONS[cell])
