"""Training against what the machine can do at best: target tokens per core-second of the translator's recipe, one thread.

A batch is 3,500 target tokens in sentences of 12, sources as long; a step is loss, backward, clipping, AdamW and the running
average. The floor is three times the operations of the forward products (once forward, twice back) over the rate of a large
bfloat16 product, measured in the same run, in between.

    python -m tests.benchmarks.training_speed
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from seqdemo.config import BOS, EOS, ModelConfig
from seqdemo.network.model import Seq2Seq
from tests.benchmarks.calibration import print_calibration
from training.data.batches import Batch
from training.recipes import RECIPES, Recipe
from training.run.fit import optimizer_for
from training.run.machine import bf16_pays, product_precision, set_up_memory
from training.tasks.loss import token_loss

LENGTH, STEPS, ROUNDS = 12, 2, 5


def batch_of(config: ModelConfig, tokens: int) -> Batch:
    rows = tokens // LENGTH
    source_BS = torch.randint(4, config.source_vocabulary, (rows, LENGTH))
    said_BT = torch.randint(4, config.target_vocabulary, (rows, LENGTH - 1))
    edge_B1 = torch.ones(rows, 1, dtype=torch.long)
    return Batch(
        source_BS,
        torch.ones_like(source_BS, dtype=torch.bool),
        torch.cat([BOS * edge_B1, said_BT], 1),
        torch.cat([said_BT, EOS * edge_B1], 1),
    )


def operations(config: ModelConfig) -> int:
    """Of all products, forward and back, for one target token and one source token."""
    gates_in, gates_out, states = 4 * config.encoder_hidden, 4 * config.decoder_hidden, config.memory_size
    encoder = 2 * gates_in * (config.embedding + config.encoder_hidden) + states * config.attention
    decoder = gates_out * (config.embedding + config.features + config.decoder_hidden)
    look = config.decoder_hidden * config.attention + LENGTH * (config.attention + states)
    readout = config.readout_input * config.features + config.features * config.target_vocabulary
    return 3 * 2 * (encoder + decoder + look + readout)


class Training:
    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.config = ModelConfig(target_vocabulary=recipe.pieces, source_vocabulary=recipe.pieces, **recipe.model)
        self.model = Seq2Seq(self.config).train()
        self.optimizer = optimizer_for(self.model, recipe)
        self.average = [value.detach().clone() for value in self.model.parameters()]
        self.bf16 = recipe.bf16 and bf16_pays(torch.device("cpu"))

    def step(self, batch: Batch) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            logits_BTV = self.model(batch.source, batch.mask_BS, batch.target_in_BT)
            loss = token_loss(logits_BTV, batch.target_out_BT, self.recipe.label_smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        (loss / batch.tokens).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.average, [value.detach() for value in self.model.parameters()], 0.001)


def seconds(call: Callable[[], object], calls: int) -> float:
    began = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - began) / calls


def product_rate(bf16: bool) -> float:
    kind = torch.bfloat16 if bf16 else torch.float32
    x, W = torch.randn(3500, 1024, dtype=kind), torch.randn(1024, 1024, dtype=kind)
    return 2 * 3500 * 1024 * 1024 / seconds(lambda: x @ W, 3)


def main() -> None:
    print_calibration()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision(product_precision(torch.device("cpu")))
    set_up_memory()
    training = Training(RECIPES["translator-de-en"])
    batch = batch_of(training.config, training.recipe.tokens)
    training.step(batch)
    rates, speeds = [], []
    for _ in range(ROUNDS):
        rates.append(product_rate(training.bf16))
        speeds.append(batch.tokens / seconds(lambda: training.step(batch), STEPS))
    speed, rate = statistics.median(speeds), statistics.median(rates)
    floor = rate / operations(training.config)
    print(f"product rate {rate / 1e9:.0f} GFLOP/s in {'bfloat16' if training.bf16 else 'float32'}")
    print(f"{speed:,.0f} target tokens a core-second; the floor allows {floor:,.0f}; ratio {floor / speed:.2f}")


if __name__ == "__main__":
    main()
