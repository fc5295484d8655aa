"""What only larger models and batches set in motion: packed products, a top-k by blocks, several threads of torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from seqdemo.config import BOS, EOS, ModelConfig, SearchOptions
from seqdemo.model import Seq2Seq
from seqdemo.products import Packed, packable
from seqdemo.search import Found, ranking, search
from seqdemo.trace import follow

VOCABULARY, SENTENCES, LIMIT = 4_096, 40, 8
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
    return made


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def sources() -> list[tuple[int, ...]]:
    lengths = torch.randint(2, 9, (SENTENCES,)).tolist()
    return [tuple(torch.randint(4, 50, (length,)).tolist()) for length in lengths]


def found(model: Seq2Seq, texts: list[tuple[int, ...]], options: SearchOptions) -> list[Found]:
    source_BS = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, texts)), batch_first=True)
    with torch.inference_mode():
        step, state = model.stepper(model.encode(source_BS, source_BS > 0))
        return search(step, state, len(texts), options, [LIMIT] * len(texts))


def forced(model: Seq2Seq, source: tuple[int, ...], tokens: tuple[int, ...]) -> float:
    """With gradients, so that nothing is packed."""
    source_1S: Tensor = torch.tensor([source])
    logits_1TV = model(source_1S, source_1S > 0, torch.tensor([[BOS, *tokens[:-1]]]))
    return float(logits_1TV[0].double().log_softmax(1).gather(1, torch.tensor(tokens)[:, None]).sum().detach())


def margin(one: Found) -> float:
    missed = one.tree.missed[one.tree.fate == 1]
    return float(missed.min(initial=1.0, where=missed > 0))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fast_searches_agree_with_replay_and_plain_products_alone_together_and_on_two_threads(
    model: Seq2Seq, strategy: str, monkeypatch: pytest.MonkeyPatch, threads: None
) -> None:
    blocks: list[int] = []
    packed: list[bool] = []
    block_of, sooner_plain = ranking.block_of, Packed.starts_sooner_plain

    def asked(weight: Packed, x: Tensor) -> bool:
        packed.append(not sooner_plain(weight, x))
        return not packed[-1]

    monkeypatch.setattr(ranking, "block_of", lambda width: blocks.append(width) or block_of(width))
    monkeypatch.setattr(Packed, "starts_sooner_plain", asked)
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
