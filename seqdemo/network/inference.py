"""Networks for inference: the same equations over weights that are packed once and never change.

`for_inference` makes such a network. A module may add values derived from its parameters (`derived`).
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

import torch
from torch import Tensor, nn

from seqdemo.config import TOLERANCE
from seqdemo.errors import InputError
from seqdemo.network.packed import Packed, PackedLinear, WholeLSTM, pack, packable, refuse_precision

Self = TypeVar("Self", bound="WithInference")

FEWEST_OUTPUTS = 16  # below, a product is too small to gain
FIXED = "A network for inference stays as it was made"


class WithInference(nn.Module):
    """A network computes with its own parameters. `for_inference` makes another network, which is faster and never changes."""

    precision = ""  # of a network for inference
    bare_network: Any = None  # from which a network for inference was made; its parameters are a copy that nobody changes

    def for_inference(self: Self, precision: str = "float32") -> Self:
        """A network with a copy of these weights, packed for products on the processor. It does not follow later changes of
        this one, and can be neither trained nor given other weights: it refuses to set or delete any part or parameter, and its
        parameters are constants (see `Constant`)."""
        for name, parameter in self.named_parameters():
            if not bool(parameter.isfinite().all()):
                raise InputError(f"{name} holds NaN or infinite values: this network cannot compute.")
        with torch.inference_mode():
            made: Self = inferring(copy.deepcopy(self.bare_network or self).cpu(), precision)
        return made

    @property
    def precision_note(self) -> str:
        """A sentence on what its precision means; empty for float32."""
        if self.precision in ("", "float32"):
            return ""
        share = numbers_below_float32(self) / sum(parameter.numel() for parameter in self.parameters())
        if not share:
            return f"{self.precision} brings nothing here: no weight of this model is large enough to gain by it."
        return (
            f"{100 * share:.0f} % of the weights are in {self.precision}, the others in float32. Totals differ a little from "
            f"those in float32, and a replay's from its search's by up to {TOLERANCE[self.precision]} times 1 + the size of the "
            "total."
        )

    def bare(self: Self) -> Self:
        """A network of the same parameters, in float32, that can be trained and differentiated: itself, or a copy of what a
        network for inference was made from."""
        if not self.precision:
            return self
        with torch.inference_mode(False):
            return copy.deepcopy(self.bare_network)  # type: ignore[no-any-return]

    def train(self: Self, mode: bool = True) -> Self:
        return refuse_training(self, mode) if self.precision else super().train(mode)

    def _apply(self: Self, *args: Any, **kwargs: Any) -> Self:
        if self.precision:
            refuse_moving()
        return super()._apply(*args, **kwargs)  # type: ignore[no-any-return, no-untyped-call]

    def __setattr__(self, name: str, value: Any) -> None:
        if self.precision:
            refuse_setting(self, name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if self.precision:
            refuse_setting(self, name)
        super().__delattr__(name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.precision:
            return remade, (self.bare(), self.precision)
        return super().__reduce_ex__(protocol)


def refuse_training(module: Any, mode: bool = True) -> Any:
    if mode:
        raise InputError(f"{FIXED}; train the network it was made from, or the copy that .bare() gives.")
    return module


def refuse_moving(*_: Any, **__: Any) -> None:
    raise InputError(f"{FIXED}, on the processor and in its own precision; move the copy that .bare() gives instead.")


def refuse_setting(module: Any, name: str, value: Any = None) -> None:
    raise InputError(f"{FIXED}; get a changeable copy with .bare(), and change {name} there.")


class Fixed:
    """Makes a class of modules refuse changes, for the parts of a network for inference."""

    train, _apply, __setattr__, __delattr__ = refuse_training, refuse_moving, refuse_setting, refuse_setting


@cache
def fixed(kind: type[nn.Module]) -> type[nn.Module]:
    """The same class of modules, whose instances refuse changes."""
    return type(kind.__name__, (Fixed, PackedLinear if kind is nn.Linear else kind), {"__module__": kind.__module__})


class Constant(nn.Parameter):
    """A parameter of a network for inference. It refuses `data` and every method that writes in place; `detach()` and `numpy()`
    give copies of its numbers. It does not prevent what torch does below that: a write to a view of it (`parameter[0].zero_()`,
    in inference mode), to `out=parameter`, or to its storage, because a check would take time at every step. Search and replay
    then still agree."""

    @property
    def data(self) -> Any:
        refuse_writing()

    @data.setter
    def data(self, value: Any) -> None:
        refuse_writing()

    def detach(self) -> Tensor:
        return self.clone()

    def numpy(self, *, force: bool = False) -> Any:
        return self.clone().numpy()

    def __deepcopy__(self, memo: Any) -> Constant:
        return self


def refuse_writing(*_: Any, **__: Any) -> NoReturn:
    raise InputError(f"{FIXED}; read a parameter with detach(), or change it in the copy that .bare() gives.")


def writing_methods() -> Iterator[str]:
    """The names of a tensor's methods that write in place: mul_, __imul__, __setitem__ and so on."""
    names = set(dir(Tensor))
    yield "__setitem__"
    yield from (name for name in names if name.endswith("_") and not name.startswith("_"))
    yield from (name for name in names if name.startswith("__i") and f"__{name[3:]}" in names)


for method in writing_methods():
    setattr(Constant, method, refuse_writing)


def numbers_below_float32(network: nn.Module) -> int:
    """How many weights are stored in a lower precision."""
    packed = (value for module in network.modules() for value in vars(module).values() if isinstance(value, Packed))
    return sum(weight.outputs * weight.inputs for weight in packed if weight.precision != "float32")


def bytes_beside(network: nn.Module) -> int:
    """The bytes that a network for inference uses in memory beside its parameters."""
    beside = [
        value for module in network.modules() for name, value in vars(module).items() if name not in ("_parameters", "_buffers")
    ]
    beside += [value for values in beside if isinstance(values, dict) for value in values.values()]
    beside += [value for weight in beside if isinstance(weight, (Packed, WholeLSTM)) for value in vars(weight).values()]
    return sum(value.nbytes for value in beside if isinstance(value, Tensor))


def remade(network: WithInference, precision: str) -> WithInference:
    return network.for_inference(precision)


def refuse_weights(*_: Any) -> None:
    raise InputError(f"{FIXED}; load the weights into a bare network and make another with for_inference().")


def inferring(network: Any, precision: str = "float32") -> Any:
    """Turn a private copy of a network into a network for inference. Its parameters are finite and were made in inference
    mode."""
    refuse_precision(precision)
    fast = packed_copy(network.eval(), {}, precision)
    fast.__dict__.update(precision=precision, bare_network=network)
    return fast


def packed_copy(module: nn.Module, made: dict[int, Any], precision: str = "float32") -> Any:
    """The same code and parameters. Packed weights are attributes that hide the parameters of the same name; `derived` values
    are added beside them. A class with `packable = False` keeps its parameters; `least_precision` overrides the precision asked
    for."""
    if id(module) in made:
        return made[id(module)]
    precision = getattr(module, "least_precision", precision)
    fast = made[id(module)] = copy.copy(module)
    fast._modules = {name: child and packed_copy(child, made, precision) for name, child in module._modules.items()}
    fast._parameters = {name: value if value is None else constant(value, made) for name, value in module._parameters.items()}
    fast._buffers = dict(module._buffers)
    fast._load_state_dict_pre_hooks = OrderedDict()
    fast.register_load_state_dict_pre_hook(refuse_weights)
    fast.__dict__.update({name: child for name, child in fast._modules.items() if child is not None})
    fast.__dict__.update(packed_parameters(module, precision))
    fast.__dict__.update(cast(Any, module).derived() if hasattr(module, "derived") else {})
    if not isinstance(module, WithInference):
        fast.__class__ = fixed(cast(Any, type(module)))
    return fast


def constant(parameter: nn.Parameter, made: dict[int, Any]) -> Constant:
    """The same numbers, without gradients. A parameter that is used in two places stays one object."""
    if id(parameter) not in made:
        made[id(parameter)] = Constant(parameter.detach(), requires_grad=False)
    return made[id(parameter)]  # type: ignore[no-any-return]


def packed_parameters(module: nn.Module, precision: str) -> dict[str, Packed]:
    """The packed form of the parameters that this module multiplies by."""
    if not packable() or isinstance(module, nn.Embedding) or not getattr(module, "packable", True):
        return {}
    return {
        name: pack(value, name == "U", precision)
        for name, value in module._parameters.items()
        if value is not None and value.dim() == 2 and value.dtype == torch.float32 and min(value.shape) >= FEWEST_OUTPUTS
    }
