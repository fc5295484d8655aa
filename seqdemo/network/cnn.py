"""EfficientNet-Lite 0, 1 and 2 with batch norm folded into the convolutions: a picture becomes a grid of feature vectors.

Layers are convolutions with a bias and relu6; the classifier is left out. Padding is "same" as TensorFlow has it: the output
has ceil(n / stride) cells, and an odd padding puts its larger half at the right and the bottom.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.errors import InputError

STEM, HEAD = 32, 1280  # channels of the first and the last convolution, the same in every network
FINER = 5  # after so many stages the grid is last twice as fine as the output


class Stage(NamedTuple):
    """Blocks of one kind; only the first has the stride."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


class Scale(NamedTuple):
    """How the networks of the family differ; `size` is the side of the picture in pixels."""

    size: int
    width: float
    depth: float


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
SCALES = {
    "efficientnet-lite0": Scale(224, 1.0, 1.0),
    "efficientnet-lite1": Scale(240, 1.0, 1.1),
    "efficientnet-lite2": Scale(260, 1.1, 1.2),
}


def scaled_channels(channels: int, width: float) -> int:
    """channels x width, rounded to a multiple of 8 that is at most a tenth smaller."""
    scaled = channels * width
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * scaled else rounded + 8


def scaled_stages(scale: Scale) -> list[Stage]:
    """The stages of one network; the first and the last keep one block at every depth."""
    first, *middle, last = [stage._replace(channels=scaled_channels(stage.channels, scale.width)) for stage in STAGES]
    return [first, *(stage._replace(repeats=math.ceil(stage.repeats * scale.depth)) for stage in middle), last]


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, so that ceil(size / stride) windows fit."""
    total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class SameConv(nn.Conv2d):
    """A square convolution with a bias and "same" padding; groups = channels makes it depthwise."""

    def forward(self, x_BCHW: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        top, bottom = same_padding(x_BCHW.shape[2], kernel, stride)
        left, right = same_padding(x_BCHW.shape[3], kernel, stride)
        padding = (top, left)
        if padding != (bottom, right):
            x_BCHW, padding = F.pad(x_BCHW, (left, right, top, bottom)), (0, 0)
        return F.conv2d(x_BCHW, self.weight, self.bias, self.stride, padding, 1, self.groups)


class Block(nn.Module):
    """Widen (1x1), look around (depthwise), narrow (1x1, linear); the input is added where the shapes allow."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = channels_in * expansion
        self.expand = SameConv(channels_in, wide, 1) if expansion > 1 else None
        self.depthwise = SameConv(wide, wide, kernel, stride, groups=wide)
        self.project = SameConv(wide, channels_out, 1)
        self.adds = stride == 1 and channels_in == channels_out

    def forward(self, x_BCHW: Tensor) -> Tensor:
        y_BCHW = x_BCHW if self.expand is None else F.relu6(self.expand(x_BCHW))
        y_BCHW = self.project.forward(F.relu6(self.depthwise(y_BCHW)))
        return x_BCHW + y_BCHW if self.adds else y_BCHW


def blocks_of(scale: Scale) -> Iterator[Block]:
    channels = STEM
    for stage in scaled_stages(scale):
        for repeat in range(stage.repeats):
            yield Block(channels, stage.channels, stage.kernel, stage.stride if repeat == 0 else 1, stage.expansion)
            channels = stage.channels


class EfficientNetLite(nn.Module):
    """`size` is the side of the pictures in pixels, `grid` the side of the output in cells, `channels` a cell's features.

    A feature of the last stage sees most of the picture. With `finer`, a cell also holds the features of an earlier stage in
    its own part of the picture: the mean and the maximum of its four cells there.
    """

    def __init__(self, name: str, finer: bool = False) -> None:
        super().__init__()
        if name not in SCALES:
            raise InputError(f"CNN {name!r} is not known; choose one of {', '.join(SCALES)}.")
        scale = SCALES[name]
        stages = scaled_stages(scale)
        self.name, self.finer = name, finer
        self.size = scale.size
        self.grid = math.ceil(scale.size / 32)
        self.channels = stages[-1].channels + 2 * stages[FINER - 1].channels * finer
        self.stem = SameConv(3, STEM, 3, 2)
        self.blocks = nn.ModuleList(blocks_of(scale))
        self.head = SameConv(stages[-1].channels, HEAD, 1)
        self.finer_blocks = sum(stage.repeats for stage in stages[:FINER])

    def forward(self, pictures_B3HW: Tensor) -> Tensor:
        """The grid of features, before the head; pixels are (value - 127) / 128."""
        x_BCHW = F.relu6(self.stem(pictures_B3HW.contiguous(memory_format=torch.channels_last)))
        for block in self.blocks[: self.finer_blocks]:
            x_BCHW = block(x_BCHW)
        finer_BCHW = x_BCHW
        for block in self.blocks[self.finer_blocks :]:
            x_BCHW = block(x_BCHW)
        return torch.cat([x_BCHW, *by_four(finer_BCHW)], 1) if self.finer else x_BCHW

    def summary(self, grid_BCHW: Tensor) -> Tensor:
        """One vector for the whole picture: the mean over cells of relu6(W x + b)."""
        return F.relu6(self.head(grid_BCHW[:, : self.head.in_channels])).mean((2, 3))


def by_four(x_BCHW: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the maximum of every 2 x 2 cells; at an odd edge, of those that are there."""
    return F.avg_pool2d(x_BCHW, 2, ceil_mode=True, count_include_pad=False), F.max_pool2d(x_BCHW, 2, ceil_mode=True)
