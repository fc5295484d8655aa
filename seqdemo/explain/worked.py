"""A cell's equations with real numbers: the value of every part of every equation, by the text of that part.

'sigmoid(W x + U h + b)' gives 'W x', 'U h', 'b', their sums and the whole, each a vector of one number per unit.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import cast

import torch
from torch import Tensor

from seqdemo.equations import Term
from seqdemo.network.cells import Cell
from seqdemo.state import Seen

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"sigmoid": torch.sigmoid, "tanh": torch.tanh}
OPERATORS: dict[type[ast.operator], Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def worked(cell: Cell, terms: tuple[Term, ...], sent_1G: Tensor, before: Mapping[str, Tensor], seen: Seen) -> dict[str, Seen]:
    """For each term by name, the parts of its equation (H). `sent_1G` is what the cell was sent (W x + b), `before` holds the
    state before by letter, `seen` the terms as the step used them, with clamps in force."""
    blocks = [term.name for term in terms if "W " in term.equation], [term.name for term in terms if "U " in term.equation]
    now = {term.symbol.replace("'", "_"): seen[term.name] for term in terms}
    found = {}
    for term in terms:
        own = Own(cell, sent_1G, {**before, **now}, *(names.index(term.name) if term.name in names else -1 for names in blocks))
        own.value(ast.parse(as_python(term.equation), mode="eval").body)
        found[term.name] = {part: value.expand(1, cell.hidden)[0] for part, value in own.parts.items()}
    return found


def as_python(equation: str) -> str:
    """W x as W @ x, c' as c_."""
    return re.sub(r"\b([WU]) (?=[\w(])", r"\1 @ ", equation.replace("'", "_"))


def as_written(node: ast.expr) -> str:
    return ast.unparse(node).replace(" @ ", " ").replace("_", "'")


class Own:
    """The value of every part of one term's equation. The term has a block of its own of W and b, and one of U (-1: none)."""

    def __init__(self, cell: Cell, sent_1G: Tensor, letters: Mapping[str, Tensor], block: int, past_block: int) -> None:
        self.cell, self.past_block = cell, past_block
        self.letters: dict[str, Tensor] = dict(letters)
        if isinstance(getattr(cell, "d", None), Tensor):
            self.letters["d"] = cast(Tensor, cell.d)
        if block >= 0:
            self.letters["b"] = cell.b.chunk(cell.blocks)[block]
            added = cell.project(sent_1G.new_zeros(1, cell.inputs))  # what `project` adds to W x
            self.letters["W @ x"] = (sent_1G - added).chunk(cell.blocks, 1)[block]
        self.parts: Seen = {}

    def value(self, node: ast.expr) -> Tensor:
        if isinstance(node, ast.Constant):
            return torch.tensor(float(node.value))  # type: ignore[arg-type]
        found = self.parts[as_written(node)] = self.computed(node)
        return found

    def computed(self, node: ast.expr) -> Tensor:
        text = ast.unparse(node)
        if text in self.letters:
            return self.letters[text]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return FUNCTIONS[node.func.id](self.value(node.args[0]))
        assert isinstance(node, ast.BinOp), f"{text} is no part of an equation"
        if isinstance(node.op, ast.MatMult):
            past: Tensor = self.value(node.right) @ self.cell.U
            return past.chunk(self.cell.past_blocks, 1)[self.past_block]
        computed: Tensor = OPERATORS[type(node.op)](self.value(node.left), self.value(node.right))
        return computed
