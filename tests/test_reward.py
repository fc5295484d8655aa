"""Training on CIDEr: rewards, advantages, drawn captions, and what a model learns from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from seqdemo.config import BOS, EOS, PAD
from seqdemo.errors import InputError
from seqdemo.network.model import Network, log_probabilities
from seqdemo.text import Words
from tests.small_models import sentences, small, targets
from tests.small_runs import PHOTOGRAPHS, train
from tests.test_transformer import small_transformer
from training.data.batches import Batch
from training.data.records import Example
from training.recipes import RECIPES
from training.run import fit
from training.run.overrides import changed
from training.tasks.reward import DRAWS, SHARPNESS, Rewards, advantages, drawn, reward_loss

REFERENCES = ("a red dog runs on the grass", "a dog runs over a green lawn")
EXAMPLES = [
    Example("dog.jpg", REFERENCES[:1]),
    Example("cat.jpg", ("a white cat sleeps on a sofa",)),
    Example("dog.jpg", REFERENCES[1:]),
    Example("car.jpg", ("two cars stand in the street",)),
]
TEXT = Words.train([reference for example in EXAMPLES for reference in example.references], 1)
LENGTHS = (6, 2, 4)


def tokens(caption: str) -> tuple[int, ...]:
    return (*TEXT.encode(caption).ids, EOS)


def batch_of() -> Batch:
    torch.manual_seed(1)
    source_BS, (read_BT, say_BT) = sentences(LENGTHS), targets((5, 3, 4))
    return Batch(source_BS, source_BS != PAD, read_BT, say_BT, torch.arange(3))


def test_a_caption_is_judged_by_all_references_of_its_photograph() -> None:
    rewards = Rewards(EXAMPLES, TEXT)
    assert rewards.of(tokens(REFERENCES[1]), 0) == rewards.of(tokens(REFERENCES[1]), 2) > 5.0
    assert rewards.of(tokens(REFERENCES[0]), 1) < 0.5 < rewards.of(tokens("a dog runs"), 0) < 5.0
    assert rewards.of((*tokens(REFERENCES[0]), PAD, PAD), 0) == rewards.of(tokens(REFERENCES[0]), 0)


def test_a_caption_that_breaks_off_gets_less() -> None:
    rewards, whole = Rewards(EXAMPLES, TEXT), tokens(REFERENCES[0])
    assert rewards.of(whole, 0) > rewards.of(whole[:-1], 0) > rewards.of(whole[:-3], 0)
    assert rewards.of(tokens("a dog runs on the"), 0) < rewards.of(tokens("a dog runs on the grass"), 0)


def test_an_advantage_is_over_the_other_draws_of_the_source() -> None:
    found = advantages(torch.tensor([1.0, 2.0, 3.0, 4.0, 10.0, 7.0, 7.0, 7.0, 7.0, 7.0]))
    assert found.tolist() == pytest.approx([1.0 - 19 / 4, 2.0 - 18 / 4, 3.0 - 17 / 4, 4.0 - 16 / 4, 10.0 - 10 / 4, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("make", [small, small_transformer])
def test_what_is_drawn_has_the_probability_that_is_told(make: Callable[[], Network]) -> None:
    network, batch = make(), batch_of()
    found = drawn(network, batch)
    assert len(found.tokens_KT) == 3 * DRAWS
    for row, said_T in enumerate(found.tokens_KT):
        length = int((said_T != PAD).sum())
        assert not (said_T[:length] == PAD).any() and not (said_T[: length - 1] == EOS).any()
        sentence = row // DRAWS
        source_1S = batch.source[sentence : sentence + 1, : LENGTHS[sentence]]
        read_1T = torch.cat([torch.tensor([BOS]), said_T[: length - 1]])[None]
        features_TR = network.teach(source_1S, source_1S != PAD, read_1T).features_BTR[0]
        logp_TV = log_probabilities(SHARPNESS * network.readout(features_TR))
        expected_T = logp_TV.gather(1, said_T[:length, None]).squeeze(1)
        torch.testing.assert_close(found.logp_KT[row, :length], expected_T, atol=1e-5, rtol=1e-5)
        assert not found.logp_KT[row, length:].any()


class Likes:
    """The reward of an output is the share of one token in it."""

    def of(self, said: list[int], example: int) -> float:
        return said.count(7) / len(said)


@pytest.mark.parametrize("hard", [False, True])
def test_what_is_rewarded_is_said_more_often(hard: bool) -> None:
    network, batch = small(hard=hard).train(), batch_of()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)

    def share() -> float:
        said_KT: Tensor = torch.cat([drawn(network, batch).tokens_KT.flatten() for _ in range(10)])
        return float((said_KT == 7).sum() / (said_KT != PAD).sum())

    before = share()
    for _ in range(30):
        total, count = reward_loss(network, batch, Likes())  # type: ignore[arg-type]
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()
    assert share() > before + 0.2


def test_with_hard_attention_the_places_are_drawn_too(monkeypatch: pytest.MonkeyPatch) -> None:
    network, batch = small(hard=True).train(), batch_of()
    torch.manual_seed(2)
    both = drawn(network, batch)
    monkeypatch.setattr("training.tasks.reward.looked_logp", lambda weights_BTS, chosen_BTS, drawn_BT: torch.zeros(len(drawn_BT)))
    torch.manual_seed(2)
    words = drawn(network, batch)
    assert torch.equal(both.tokens_KT, words.tokens_KT)
    assert (both.logp_KT <= words.logp_KT).all()
    share = (both.logp_KT < words.logp_KT)[both.tokens_KT != PAD].float().mean()
    assert 0.2 < share < 0.8, "half the steps take the expectation"


def test_the_last_steps_learn_from_the_reward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewarded: list[bool] = []
    steps = fit.Run.step

    def watched(run: fit.Run, batch: Batch) -> fit.Step:
        done = steps(run, batch)
        rewarded.append("rewards" in vars(run.task))
        return done

    monkeypatch.setattr(fit.Run, "step", watched)
    assert train(replace(PHOTOGRAPHS, rewarded=0.25), tmp_path / "run") == 0
    assert sum(rewarded) == pytest.approx(0.25 * len(rewarded), abs=1) and rewarded == sorted(rewarded)


def test_only_captions_have_a_reward() -> None:
    with pytest.raises(InputError, match="rewarded must be 0 for the task transliterate: the reward is the CIDEr of captions."):
        changed(RECIPES["reverse"], ["rewarded=0.5"])
