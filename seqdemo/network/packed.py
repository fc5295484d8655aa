"""Weights packed for products on a processor, in float32, bfloat16 or int8, and what else it can do faster than torch: tanh,
and LSTMs over whole sequences.

The library that torch uses for float32 products leaves half of many CPUs' arithmetic units idle. oneDNN uses them, if the weight
is stored in its own layout. A `Packed` weight takes the place of the parameter in the same equations: F.linear(x, W, b),
torch.addmm(z, h, U) and h @ U.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.config import PRECISIONS
from seqdemo.errors import InputError, shown

FEW_NUMBERS = 4096  # below, starting an operation costs more than its arithmetic
FEW_PRODUCTS = 2**18  # up to so many multiplications torch starts sooner than oneDNN; smaller weights stay in float32
MINUS_ONE = torch.tensor(-1.0)
LEVELS = torch.tensor(127.0)  # of int8, up and down
MIDDLE = 128  # the uint8 that stands for 0
HALF_UP = torch.tensor(MIDDLE + 0.5)  # adding a half and cutting off the fraction rounds
NEEDED = {  # one of these instructions, as torch.cpu.get_capabilities() names them
    "float32": (),
    "bfloat16": ("avx512_bf16", "amx_bf16"),
    "int8": ("avx512_vnni", "avx_vnni", "amx_int8"),
}


def refuse_precision(precision: str) -> None:
    """Refuse a precision that is unknown or brings no gain on this processor."""
    if precision not in PRECISIONS:
        raise InputError(f"A precision is one of {', '.join(PRECISIONS)}, not {shown(precision)}.")
    if precision != "float32" and not (packable() and any(map(processor().get, NEEDED[precision]))):
        raise InputError(
            f"{precision} brings nothing on this processor: it has none of the instructions {', '.join(NEEDED[precision])} that "
            "multiply faster in it. Leave the precision at float32."
        )


def processor() -> Mapping[str, Any]:
    """The processor's instruction sets by name; empty if this torch does not tell them."""
    return torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}


def tanh(z: Tensor) -> Tensor:
    """tanh z = 2 sigmoid(2 z) - 1, to 2e-7; torch's own takes five times as long."""
    if torch.is_grad_enabled() or z.dtype != torch.float32 or z.numel() < FEW_NUMBERS:
        return torch.tanh(z)
    half = torch.sigmoid_(z + z)  # a sum of tensors starts sooner than a product with a number
    return torch.add(MINUS_ONE, half, alpha=2, out=half)


def packable() -> bool:
    """Whether this torch has oneDNN and the (private) operators that take a packed weight."""
    names = ("_reorder_linear_weight", "_linear_pointwise", "_reorder_mkldnn_rnn_layer_weight")
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)


class Packed:
    """A constant weight, packed: W in x W' (outputs x inputs), or with `past` U in h U (inputs x outputs).

    It takes the place of a tensor. The products of the equations use the packed weight; every other torch function gets the
    weight as an ordinary tensor, `dense()`, so that each call gives what it gives for a tensor.
    """

    precision = "float32"

    def __init__(self, weight: Tensor, past: bool) -> None:
        self.shape, self.past = weight.shape, past
        rows_OI = (weight.t() if past else weight).detach().contiguous()
        self.outputs, self.inputs = rows_OI.shape
        self.plain: Tensor | None = None
        self.pack(rows_OI)

    def pack(self, rows_OI: Tensor) -> None:
        self.packed = torch.ops.mkldnn._reorder_linear_weight(rows_OI)
        if rows_OI.numel() <= FEW_PRODUCTS:  # a larger one is never multiplied plainly
            self.plain = (rows_OI.t() if self.past else rows_OI).clone(memory_format=torch.contiguous_format)

    def rows(self) -> Tensor:
        """The weight as the products use it, outputs x inputs, in float32."""
        rows_OI: Tensor = self.packed.to_dense()
        return rows_OI

    def times(self, x: Tensor, b: Tensor | None = None) -> Tensor:
        """x W' + b, or h U + b; b is one row or has as many as x."""
        if self.plain is not None and x.numel() * self.outputs <= FEW_PRODUCTS:
            return torch.addmm(b, x, self.plain) if self.past and b is not None else self.plainly(x, b)
        if b is None or b.dim() == 1:
            return torch.ops.mkldnn._linear_pointwise.default(x, self.packed, b, "none", [], "")  # type: ignore[no-any-return]
        product: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, self.packed, None, "none", [], "")
        return product.add_(b)  # at many rows oneDNN's own fused addition takes longer

    def plainly(self, x: Tensor, b: Tensor | None) -> Tensor:
        assert self.plain is not None
        return x @ self.plain if self.past else F.linear(x, self.plain, b)

    def dense(self) -> Tensor:
        """A copy of the weight as a tensor."""
        return self.rows().t().contiguous() if self.past else self.rows()

    def takes(self, x: Tensor) -> bool:
        """Whether the packed weight can multiply these rows."""
        fits = x.dim() > 1 and x.size(-1) == self.inputs and x.dtype is torch.float32 and x.is_cpu
        return fits and not (x.requires_grad and torch.is_grad_enabled())

    @classmethod
    def __torch_function__(cls, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        product = PRODUCTS.get(function)
        found = product(*args, **(kwargs or {})) if product else None
        return function(*dense(args), **dense(kwargs or {})) if found is None else found

    def __deepcopy__(self, memo: object) -> Packed:
        return self


class BFloat16(Packed):
    """Weight, activations and products in bfloat16, sums in float32; the bias is added in float32."""

    precision = "bfloat16"

    def pack(self, rows_OI: Tensor) -> None:
        self.packed = torch.ops.mkldnn._reorder_linear_weight(rows_OI.bfloat16())

    def rows(self) -> Tensor:
        return super().rows().float()

    def times(self, x: Tensor, b: Tensor | None = None) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise.default(x.bfloat16(), self.packed, None, "none", [], "")
        y: Tensor = product.float()
        return y if b is None else y.add_(b)


def in_levels(rows_OI: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix rounded to int8, w_oi = s_o q_oi: the whole numbers q from -127 to 127, and a scale s for each row."""
    scale_O = rows_OI.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / LEVELS
    return (rows_OI / scale_O[:, None]).round().to(torch.int8), scale_O


class Int8(Packed):
    """w_oi = s_o q_oi,  x_i = m / 127 q_i,  q whole numbers from -127 to 127:  y_o = m / 127 s_o sum_i q_oi q_i + b_o

    The scale s_o belongs to a row of the weight, m = max_i |x_i| to a row of the activations, so that the other rows of a batch
    change nothing. The sums are exact. oneDNN takes the activations as numbers from 1 to 255.
    """

    precision = "int8"

    def pack(self, rows_OI: Tensor) -> None:
        codes_OI, self.scale_O = in_levels(rows_OI)
        self.packed = torch.ops.onednn.qlinear_prepack(codes_OI, None)
        self.product_scale_O, self.no_shift_O = self.scale_O / LEVELS, torch.zeros(self.outputs, dtype=torch.int32)

    def rows(self) -> Tensor:
        return self.packed.to_dense().t() * self.scale_O[:, None]  # type: ignore[no-any-return]

    def times(self, x: Tensor, b: Tensor | None = None) -> Tensor:
        x_KI = x.flatten(0, -2)
        largest_K1 = x_KI.abs().amax(1, keepdim=True)  # a row of zeros becomes any number times 0
        codes_KI = torch.mul(x_KI, LEVELS).div_(largest_K1).add_(HALF_UP).byte()  # torch.addcdiv takes up to five times as long
        weight = (self.packed, self.product_scale_O, self.no_shift_O)
        sums_KO = torch.ops.onednn.qlinear_pointwise.default(
            codes_KI, 1.0, MIDDLE, *weight, None, 1.0, 0, torch.float32, "none", [], ""
        )
        y_KO: Tensor = sums_KO.mul_(largest_K1) if b is None else torch.addcmul(b, sums_KO, largest_K1)
        return y_KO.view(*x.shape[:-1], self.outputs)


KINDS: dict[str, type[Packed]] = {kind.precision: kind for kind in (Packed, BFloat16, Int8)}


def pack(weight: Tensor, past: bool, precision: str = "float32") -> Packed:
    """In the given precision if the weight is large enough to gain by it, otherwise in float32."""
    return KINDS[precision if weight.numel() > FEW_PRODUCTS else "float32"](weight, past)


def dense(value: Any) -> Any:
    """The same arguments, with tensors in place of packed weights."""
    if isinstance(value, Packed):
        return value.dense()
    if type(value) in (tuple, list):
        return type(value)(map(dense, value))
    return {name: dense(item) for name, item in value.items()} if type(value) is dict else value


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor | None:
    """F.linear with a packed weight; None for any other call."""
    if not isinstance(weight, Packed) or weight.past or not isinstance(input, Tensor) or not weight.takes(input):
        return None
    if not (bias is None or (isinstance(bias, Tensor) and bias.shape == (weight.outputs,) and bias.dtype is torch.float32)):
        return None
    return weight.times(input, bias)


def linear_map(x: Tensor, W: Any, b: Tensor | None = None) -> Tensor:
    """F.linear. A packed weight is called directly, because torch's dispatch to it takes longer."""
    found = linear(x, W, b)
    return F.linear(x, W, b) if found is None else found


class PackedLinear(nn.Linear):
    """A linear map whose weight may be packed."""

    def forward(self, input: Tensor) -> Tensor:
        return linear_map(input, self.weight, self.bias)


def matmul(*args: Any, **kwargs: Any) -> Tensor | None:
    """h @ U with a packed U; None for any other call."""
    if kwargs or not isinstance(args[0], Tensor) or not args[1].past or not args[1].takes(args[0]):
        return None
    return args[1].times(args[0])  # type: ignore[no-any-return]


def addmm(*args: Any, **kwargs: Any) -> Tensor | None:
    """z + h U with a packed U; None for any other call."""
    if kwargs or len(args) != 3 or not isinstance(args[2], Packed) or not args[2].past:
        return None
    z, h, U = args
    if not U.takes(h) or h.dim() != 2 or z.shape != (len(h), U.outputs) or z.dtype != torch.float32:
        return None
    product: Tensor = U.times(h, z)
    return product


def plus_product(z: Tensor, h: Tensor, U: Any) -> Tensor:
    """torch.addmm: z + h U. A packed weight is called directly, as in `linear_map`."""
    found = addmm(z, h, U)
    return torch.addmm(z, h, U) if found is None else found


PRODUCTS: dict[Any, Callable[..., Tensor | None]] = {
    F.linear: linear,
    torch.addmm: addmm,
    torch.matmul: matmul,
    Tensor.matmul: matmul,
    Tensor.__matmul__: matmul,
}


class WholeLSTM:
    """An LSTM over a whole sequence as one oneDNN operation, two to four times as fast as its steps. It does not return gates.
    W, U and b are those of a cell, with its order of blocks: i, f, o, g. `sent_b` is a copy of b in this order."""

    KIND = 2  # of torch's recurrent operations: an LSTM

    def __init__(self, W: Tensor, U: Tensor, b: Tensor) -> None:
        self.sent_b = b.detach().clone()
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
