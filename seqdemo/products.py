"""What torch computes slower than a CPU can, done faster where no gradient is asked for: products with weights, tanh, and
LSTMs over whole sequences.

torch hands a float32 product to a library that leaves half of many CPUs' arithmetic unused; oneDNN does not, once the weight
lies in memory as it likes it best. A `Packed` weight stands where the parameter stood, in the same equations:
F.linear(x, W, b), torch.addmm(z, h, U) and h @ U. `twin` is a model whose weights are packed; a module may bring along more
that is derived from them (`for_inference`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Module = TypeVar("Module", bound=nn.Module)

FEWEST_OUTPUTS = 16  # below, a product is too small to gain
FEW_NUMBERS = 2048  # below, starting an operation costs more than its arithmetic
FEW_PRODUCTS = 2**18  # up to so many multiplications torch starts sooner than oneDNN


def tanh(z: Tensor) -> Tensor:
    """tanh z = 2 sigmoid(2 z) - 1, to 2e-7; torch's own takes five times as long."""
    if torch.is_grad_enabled() or z.dtype != torch.float32 or z.numel() < FEW_NUMBERS:
        return torch.tanh(z)
    half = torch.sigmoid(z + z)  # sums of tensors start sooner than products with numbers
    return half.add_(half).sub_(1)


def packable() -> bool:
    """Whether this torch has oneDNN and the (private) operators that take a packed weight."""
    names = ("_reorder_linear_weight", "_linear_pointwise", "_reorder_mkldnn_rnn_layer_weight")
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)


class Packed:
    """A constant float32 weight: W in x W' (outputs x inputs), or with `past` U in h U (inputs x outputs)."""

    def __init__(self, weight: Tensor, past: bool) -> None:
        self.plain, self.past = weight.detach(), past
        rows_OI = self.plain.t().contiguous() if past else self.plain.contiguous()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(rows_OI)
        self.outputs = rows_OI.shape[0]

    def starts_sooner_plain(self, x: Tensor) -> bool:
        return x.numel() * self.outputs <= FEW_PRODUCTS

    def linear(self, x: Tensor, b: Tensor | None = None) -> Tensor:
        if self.starts_sooner_plain(x):
            return F.linear(x, self.plain, b)
        return torch.ops.mkldnn._linear_pointwise.default(x, self.packed, b, "none", [], "")  # type: ignore[no-any-return]

    def matmul(self, h: Tensor) -> Tensor:
        if self.starts_sooner_plain(h):
            return h @ self.plain
        return torch.ops.mkldnn._linear_pointwise.default(h, self.packed, None, "none", [], "")  # type: ignore[no-any-return]

    def addmm(self, z: Tensor, h: Tensor) -> Tensor:
        if self.starts_sooner_plain(h):
            return torch.addmm(z, h, self.plain)
        return self.matmul(h).add_(z)  # at many rows oneDNN's own fused addition takes longer

    @classmethod
    def __torch_function__(cls, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if function is F.linear:
            return args[1].linear(args[0], *args[2:])
        if function is torch.addmm:
            return args[2].addmm(args[0], args[1])
        if function in (Tensor.matmul, Tensor.__matmul__):
            return args[1].matmul(args[0])
        return NotImplemented


class WholeLSTM:
    """An LSTM that reads a sequence from its beginning as one operation of oneDNN's, in a half to a quarter of the time that
    its steps take. It tells no gates. W, U and b are a cell's, their blocks in its order: i, f, o, g."""

    KIND = 2  # of torch's recurrent operations: an LSTM

    def __init__(self, W: Tensor, U: Tensor, b: Tensor) -> None:
        W, U, b = (torch.cat([i, f, g, o]) for i, f, o, g in (rows.detach().chunk(4) for rows in (W, U.t(), b)))
        self.hidden, self.b, self.no_second_b = len(b) // 4, b, torch.zeros_like(b)
        self.W, self.U = torch.ops.mkldnn._reorder_mkldnn_rnn_layer_weight(W, U, self.hidden, False, True, False)

    def __call__(self, x_BSI: Tensor) -> Tensor:
        """The hidden vector after each step."""
        nothing_BH = x_BSI.new_zeros(len(x_BSI), self.hidden)
        weights = (self.W, self.U, self.b, self.no_second_b)
        shape: tuple[Any, ...] = (False, [], self.KIND, self.hidden, 1, True, False, False, False)
        h_SBH: Tensor
        h_SBH, *_ = torch.ops.aten.mkldnn_rnn_layer(x_BSI.transpose(0, 1).contiguous(), *weights, nothing_BH, nothing_BH, *shape)
        return h_SBH.transpose(0, 1)


def twin(module: Module) -> Module:
    """The module for inference: the same code and the same parameters, its float32 weights packed (but for a class that says
    `packable = False`). What is packed does not follow the parameters when they change."""
    if not packable() or isinstance(module, nn.Embedding) or not getattr(module, "packable", True):
        return module
    children = {name: twin(child) for name, child in module._modules.items() if child is not None}
    weights = {name: Packed(weight, past=name == "U") for name, weight in packed_parameters(module)}
    if not weights and all(child is module._modules[name] for name, child in children.items()):
        return module
    other = copy.copy(module)
    other._modules = {**module._modules, **children}
    other._parameters = {name: value for name, value in module._parameters.items() if name not in weights}
    other.__dict__.update(children | weights)  # found sooner there than as a module's
    more = getattr(module, "for_inference", None)
    other.__dict__.update(more() if more else {})
    return other


def packed_parameters(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Those a cell, a linear map or a readout multiplies by."""
    return [
        (name, value)
        for name, value in module._parameters.items()
        if value is not None and value.dim() == 2 and value.dtype == torch.float32 and min(value.shape) >= FEWEST_OUTPUTS
    ]
