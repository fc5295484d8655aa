"""Erasure: how the output's probability changes when one source position is removed, all positions in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqdemo.config import EOS
from seqdemo.edits import Edit
from seqdemo.errors import InputError
from seqdemo.explain.replay import Source, inputs_of, source_tensors
from seqdemo.network.attention import WhatIf, what_if_of
from seqdemo.network.model import Network, log_probabilities
from seqdemo.state import select

WAYS = ("mean", "mask")


@torch.inference_mode()
def erased(
    network: Network, source: Source, target: Sequence[int], edits: tuple[Edit, ...] = (), how: str = "mean"
) -> tuple[np.ndarray, np.ndarray]:
    """The log probability of each piece (T,), and how much higher it is with each source position than without it (T, S)."""
    if how not in WAYS:
        raise InputError(f"A source position is erased by {' or '.join(WAYS)}, not {how!r}.")
    if network.config.encoder == "none":
        raise InputError("Erasure takes away source positions; this model reads no source.")
    what_if = what_if_of(edits)
    x_1SE, mask_1S, mean_E = inputs_and_mean(network, source)
    read_BT = inputs_of(target).expand(x_1SE.shape[1] + 1, -1)
    if how == "mean":
        x_BSE = x_1SE.repeat(len(read_BT), 1, 1)
        x_BSE[:-1].diagonal(dim1=0, dim2=1).copy_(mean_E[:, None])
        mask_BS = None if mask_1S is None else mask_1S.expand(len(read_BT), -1)
        features_BTR = network.teach(x_BSE, mask_BS, read_BT, what_if).features_BTR
    else:
        state = network.start(hidden_by_turns(network, x_1SE, mask_1S, what_if))
        features_BTR = network.teach(None, None, read_BT, what_if, state=state).features_BTR
    said_T1 = torch.tensor(target)[:, None]
    rows = [log_probabilities(network.readout(features_TR)).gather(1, said_T1).squeeze(1) for features_TR in features_BTR]
    logp_BT = torch.stack(rows).double()
    return logp_BT[-1].numpy(), (logp_BT[-1] - logp_BT[:-1]).t().numpy()


def inputs_and_mean(network: Any, source: Source) -> tuple[Tensor, Tensor | None, Tensor]:
    """Embeddings (or cells of a picture's grid), their mask, and their mean: over all pieces of the vocabulary, or over all
    cells of this picture."""
    given, mask_1S = source_tensors(source)
    if network.config.encoder == "image":
        grid_1SC = network.encoder.grid(given) if given.dim() == 4 else given
        return grid_1SC, None, grid_1SC[0].mean(0)
    return network.embed_source(given), mask_1S, network.embed_source.weight[EOS + 1 :].mean(0)


def hidden_by_turns(network: Network, x_1SE: Tensor, mask_1S: Tensor | None, what_if: WhatIf | None) -> Any:
    """The memory of the source in S + 1 rows. In row j attention cannot look at position j; the last row is unchanged."""
    positions = x_1SE.shape[1]
    if not network.config.has_attention:
        raise InputError("This model has no attention; use how='mean'.")
    if positions < 2:
        raise InputError("Masking the only source position leaves nothing to attend to; use how='mean'.")
    memory = select(network.read(x_1SE, mask_1S, what_if), torch.tensor([]), torch.zeros(positions + 1, dtype=torch.long))
    mask_BS = torch.cat([~torch.eye(positions, dtype=torch.bool), torch.ones(1, positions, dtype=torch.bool)])
    return memory._replace(mask_BS=mask_BS, padding_B1S=~mask_BS[:, None])
