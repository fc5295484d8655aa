"""What only larger models and batches set in motion: packed products, a top-k by blocks, several threads of torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from seqdemo import state as states
from seqdemo.config import BOS, EOS, ModelConfig, SearchOptions
from seqdemo.explain.replay import follow
from seqdemo.network.model import Seq2Seq
from seqdemo.network.packed import FEW_PRODUCTS, Packed, packable
from seqdemo.search import SearchResult, search

VOCABULARY, SENTENCES, LIMIT = 4_096, 64, 8
STRATEGIES = {"greedy": SearchOptions(strategy="greedy"), "beam": SearchOptions(beam=5, nbest=5)}


@pytest.fixture(scope="module")
def model() -> Seq2Seq:
    """Random weights, of which the readout's are large enough to decide something."""
    torch.manual_seed(3)
    sizes = {"embedding": 48, "encoder_hidden": 64, "decoder_hidden": 96, "attention": 48, "features": 64}
    made = Seq2Seq(ModelConfig(VOCABULARY, 50, **sizes)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        made.readout.weight.mul_(8)
        made.readout.b[EOS] += 4
    return made.for_inference()


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def sources() -> list[tuple[int, ...]]:
    lengths = torch.randint(2, 9, (SENTENCES,)).tolist()
    return [tuple(torch.randint(4, 50, (length,)).tolist()) for length in lengths]


def found(model: Seq2Seq, texts: list[tuple[int, ...]], options: SearchOptions) -> list[SearchResult]:
    source_BS = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, texts)), batch_first=True)
    with torch.inference_mode():
        step, state = model.stepper(model.read(source_BS, source_BS > 0))
        return search(step, state, len(texts), options, [LIMIT] * len(texts))


def forced(model: Seq2Seq, source: tuple[int, ...], tokens: tuple[int, ...]) -> float:
    """By the bare network."""
    source_1S: Tensor = torch.tensor([source])
    logits_1TV = model.bare()(source_1S, source_1S > 0, torch.tensor([[BOS, *tokens[:-1]]]))
    return float(logits_1TV[0].double().log_softmax(1).gather(1, torch.tensor(tokens)[:, None]).sum().detach())


def margin(one: SearchResult) -> float:
    missed = one.tree.missed[one.tree.fate == 1]
    return float(missed.min(initial=1.0, where=missed > 0))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fast_searches_agree_with_replay_and_plain_products_alone_together_and_on_two_threads(
    model: Seq2Seq, strategy: str, monkeypatch: pytest.MonkeyPatch, threads: None
) -> None:
    blocks: list[int] = []
    packed: list[bool] = []
    block_of, times = states.block_of, Packed.times

    def multiplied(weight: Packed, x: Tensor, b: Tensor | None = None) -> Tensor:
        packed.append(x.numel() * weight.outputs > FEW_PRODUCTS)
        return times(weight, x, b)

    monkeypatch.setattr(states, "block_of", lambda width: blocks.append(width) or block_of(width))
    monkeypatch.setattr(Packed, "times", multiplied)
    texts, compared = sources(), 0
    together = found(model, texts, STRATEGIES[strategy])
    assert blocks and (any(packed) or not packable()), "the sizes are too small to set anything fast in motion"
    torch.set_num_threads(2)
    threaded = found(model, texts, STRATEGIES[strategy])
    torch.set_num_threads(1)
    for source, one, other in zip(texts, together, threaded):
        (alone,) = found(model, [source], STRATEGIES[strategy])
        for hypothesis in one.hypotheses[:2]:
            assert follow(model, source, hypothesis.tokens).total == pytest.approx(hypothesis.total, rel=1e-5, abs=1e-5)
            assert forced(model, source, hypothesis.tokens) == pytest.approx(hypothesis.total, rel=1e-5, abs=1e-5)
        if margin(alone) > 1e-4:
            compared += 1
            assert one.hypotheses[0].tokens == alone.hypotheses[0].tokens == other.hypotheses[0].tokens
    assert compared > SENTENCES / 2


@pytest.mark.parametrize(("beam", "most"), [(1, 115), (5, 140)])
def test_a_step_of_a_search_takes_few_operations_of_torch(beam: int, most: int) -> None:
    """So many fit into a step at batch 1: starting them takes longer than what they compute."""
    made = Seq2Seq(ModelConfig(VOCABULARY, 50, score="bilinear")).eval()
    with torch.no_grad():
        made.readout.b[EOS] = -50
    constant, text = made.for_inference(), [tuple(range(4, 12))]
    options = SearchOptions(beam=beam) if beam > 1 else SearchOptions(strategy="greedy")

    def operations(steps: int) -> int:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            found(constant, text, replace(options, max_length=steps))
        return sum(event.name.startswith(("aten::", "mkldnn::")) for event in profile.events() or ())

    few, many = operations(2), operations(LIMIT)
    assert (many - few) / (LIMIT - 2) <= most
