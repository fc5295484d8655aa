"""The single network, the historical form: one stack of cells reads `source <bos> target` as one text.

    s_j = RNN(s_{j-1}, e(x_j))           s_0 = 0, while it reads
    s_t = RNN(s_{t-1}, e(y_{t-1}))       while it writes, from <bos> on, with the same weights
    p(y_t | y_<t, x) = softmax(E r_t + b),  r_t = s_t or tanh(W s_t)

<bos> separates the two, where others use <sep>. In traces and edits, its reading is the part 'encoder' and its writing the
part 'decoder'.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from seqdemo.network.attention import WhatIf
from seqdemo.network.cells import Ask, keep
from seqdemo.network.coders import DecoderState
from seqdemo.network.model import OneStack, embedding
from seqdemo.state import Memory, Seen


class Single(OneStack):
    def __init__(self, config: ModelConfig) -> None:
        if not config.is_single:
            raise InputError(f"A single network has decoder 'single', not {config.decoder!r}.")
        super().__init__(config)
        self.embed_source = self.embed_target
        if not config.share_embeddings:
            self.embed_source = embedding(config.source_vocabulary, config.embedding)

    def read(self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None) -> Memory:
        return self.passed(source, mask_BS, what_if)[0]

    def read_closely(
        self, source: Tensor | None, mask_BS: Tensor | None = None, what_if: WhatIf | None = None
    ) -> tuple[Memory, Seen]:
        memory, steps = self.passed(source, mask_BS, what_if)
        seen = {
            f"encoder.{layer}.forward.{name}": torch.stack([step[layer][name] for step in steps], 1)
            for layer, named in enumerate(steps[0])
            for name in named
        }
        return memory, seen

    def passed(self, source: Tensor | None, mask_BS: Tensor | None, what_if: WhatIf | None) -> tuple[Memory, list[list[Seen]]]:
        """The Memory, which is the state after the last word, and what each step saw, by layer and name."""
        assert source is not None and mask_BS is not None
        x_BSE = source if source.is_floating_point() else self.embed_source(source)
        zx_BSG = self.stack.first.project(self.drop(x_BSE))
        layers, states, steps = self.blank(len(x_BSE)), [], []
        for j, (zx_BG, real_B) in enumerate(zip(zx_BSG.unbind(1), mask_BS.unbind(1))):
            after, seen = self.stack.step(
                zx_BG, layers, asks_at(what_if, len(layers), torch.full_like(real_B, j, dtype=torch.long))
            )
            layers = after if bool(real_B.all()) else unless_padding(after, layers, real_B)
            states.append(layers[-1].h)
            steps.append(seen)
        return Memory(torch.stack(states, 1), mask_BS, layers[-1].h, layers), steps

    def start(self, memory: Memory | None = None, rows: int = 1) -> DecoderState:
        """Continue from the state in which the reading ended."""
        assert memory is not None
        position_K = torch.zeros(len(memory.mask_BS), dtype=torch.long, device=memory.mask_BS.device)
        return DecoderState(memory.prepared, position_K)


def asks_at(what_if: WhatIf | None, layers: int, position_B: Tensor) -> list[Ask]:
    """The what-ifs of the terms of each layer at this source position; none without edits."""
    asked = [what_if.cell("encoder", layer) for layer in range(layers)] if what_if else []
    return [ask_at(position_B) if ask_at else keep for ask_at in asked]


def unless_padding(after: tuple[Any, ...], before: tuple[Any, ...], real_B: Tensor) -> tuple[Any, ...]:
    """The states after a step. Rows that read padding keep their old state."""
    return tuple(
        type(new)(*(torch.where(real_B[:, None], now, then) for now, then in zip(new, old))) for new, old in zip(after, before)
    )
