"""Configurations are checked at the door: what cannot be built or searched is refused with a sentence."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.config import (
    DECODER_NAMES,
    SCORE_NAMES,
    ModelConfig,
    SearchOptions,
    from_json,
    length_penalty,
)
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.network.attention import SCORES
from seqdemo.network.cells import CELLS
from seqdemo.network.coders import DECODERS


def test_the_names_are_those_of_the_parts() -> None:
    assert set(CELLS) == set(EQUATIONS) and tuple(SCORES) == SCORE_NAMES and tuple(DECODERS) == DECODER_NAMES


def model(**changes: Any) -> ModelConfig:
    return ModelConfig(**{"target_vocabulary": 100, "source_vocabulary": 100, **changes})


BAD_MODELS: list[tuple[dict[str, Any], str]] = [
    ({"cell": "lstmm"}, "Cell 'lstmm' is not known; choose one of elman, "),
    ({"decoder": "attend"}, "Decoder 'attend' is not known"),
    ({"score": None}, "Score None is not known"),
    ({"encoder": "audio"}, "choose one of text, image, none"),
    ({"target_vocabulary": 3}, "target_vocabulary must be a whole number from 4 to 65,536, not 3"),
    ({"source_vocabulary": 0}, "source_vocabulary must be a whole number from 4"),
    ({"embedding": 0}, "embedding must be a whole number from 1 to 4,096, not 0"),
    ({"encoder_hidden": 2.0}, "encoder_hidden must be a whole number"),
    ({"decoder_hidden": True}, "decoder_hidden must be a whole number"),
    ({"attention": -1}, "attention must be"),
    ({"features": 5000}, "features must be"),
    ({"encoder_layers": 4}, "encoder_layers must be a whole number from 1 to 3, not 4"),
    ({"decoder_layers": 0}, "decoder_layers must be"),
    ({"bidirectional": 1}, "bidirectional must be true or false, not 1"),
    ({"dropout": 0.95}, "dropout must be a number from 0 to 0.9"),
    ({"dropout": float("nan")}, "dropout must be a number"),
    ({"dropout": "0.1"}, "dropout must be a number"),
    ({"encoder": "image"}, "CNN '' is not known"),
    ({"cnn": "efficientnet-lite0"}, "Only an image encoder has a CNN"),
    ({"finer": True}, "Only an image encoder has a CNN"),
    ({"finer": 1}, "finer must be true or false"),
    ({"share_embeddings": True, "source_vocabulary": 99}, "one vocabulary for source and target"),
    ({"encoder": "none", "share_embeddings": True}, "Shared embeddings need a text encoder"),
    ({"tie_readout": True, "features": 200}, "A tied readout needs features"),
    ({"tie_readout": True, "features": 0}, "A tied readout needs features"),
    ({"score": "dot"}, "512 is not 400"),
    ({"decoder": "attend-after", "context_to_readout": False}, "the context must reach the readout"),
]


@pytest.mark.parametrize(("changes", "sentence"), BAD_MODELS, ids=[str(changes) for changes, _ in BAD_MODELS])
def test_a_model_that_cannot_be_is_refused_with_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        model(**changes)
    assert str(caught.value).endswith(".") or sentence == "512 is not 400"


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"strategy": "best"}, "Strategy 'best' is not known; choose one of greedy, beam, sample, exact"),
    ({"beam": 0}, "Beam size must be a whole number from 1 to 100, not 0"),
    ({"beam": 101}, "Beam size"),
    ({"temperature": 0}, "Temperature must be a number from 0.01 to 100"),
    ({"temperature": float("inf")}, "Temperature"),
    ({"top_p": 0.0}, "top-p"),
    ({"top_k": -1}, "top-k"),
    ({"seed": -1}, "Seed"),
    ({"alpha": 6}, "alpha"),
    ({"coverage": -0.1}, "Coverage"),
    ({"length_norm": "mean"}, "Length normalisation 'mean' is not known"),
    ({"finished": "go"}, "The rule for finished hypotheses"),
    ({"early": True}, "Early stopping True is not known"),
    ({"at_limit": "stop"}, "The rule at the length limit"),
    ({"no_repeat": 21}, r"no_repeat \(--no-repeat\) must be a whole number from 0 to 20, not 21"),
    ({"nbest": 0}, "n-best"),
    ({"samples": 0}, "Samples"),
    ({"expansions": 0}, "Expansions"),
    ({"frontier": 0}, "Frontier"),
    ({"min_length": 5, "max_length": 5}, "leaves no room below the maximum length of 5"),
]


@pytest.mark.parametrize(("changes", "sentence"), BAD_OPTIONS, ids=[str(changes) for changes, _ in BAD_OPTIONS])
def test_options_that_contradict_or_leave_their_range_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        SearchOptions(**changes)


configs = st.builds(
    ModelConfig,
    target_vocabulary=st.integers(4, 500),
    source_vocabulary=st.integers(4, 500),
    decoder=st.sampled_from(DECODER_NAMES),
    score=st.sampled_from([name for name in SCORE_NAMES if name != "dot"]),
    cell=st.sampled_from(list(EQUATIONS)),
    decoder_layers=st.integers(1, 3),
    bidirectional=st.booleans(),
    features=st.integers(0, 300),
    dropout=st.floats(0, 0.9),
)
options = st.builds(
    SearchOptions, beam=st.integers(1, 100), alpha=st.floats(0, 5), min_length=st.integers(0, 9), seed=st.integers(0, 2**31 - 1)
)


@given(configs, options)
def test_json_brings_back_the_same_value(config: ModelConfig, option: SearchOptions) -> None:
    assert from_json(ModelConfig, json.loads(json.dumps(config.to_json()))) == config
    assert from_json(SearchOptions, json.loads(json.dumps(option.to_json()))) == option


def test_json_that_does_not_fit_is_refused_with_what_would() -> None:
    with pytest.raises(InputError, match="ModelConfig has no 'cells', 'hidden'; it knows target_vocabulary, source_vocabulary"):
        from_json(ModelConfig, {"target_vocabulary": 9, "hidden": 3, "cells": 2})
    with pytest.raises(InputError, match="ModelConfig is incomplete: .*target_vocabulary"):
        from_json(ModelConfig, {})
    with pytest.raises(InputError, match="SearchOptions must be a JSON object, not list"):
        from_json(SearchOptions, [])
    with pytest.raises(InputError, match="embedding must be a whole number"):
        from_json(ModelConfig, {"target_vocabulary": 9, "source_vocabulary": 9, "embedding": [1]})
    for value in ([], {}, None, "lstm "):
        with pytest.raises(InputError, match="Cell .* is not known"):
            from_json(ModelConfig, {"target_vocabulary": 9, "source_vocabulary": 9, "cell": value})


def test_widths_follow_from_the_sizes() -> None:
    wide = model(encoder_hidden=30, decoder_hidden=50)
    assert (wide.memory_size, wide.readout_input, wide.has_attention) == (60, 110, True)
    assert model(encoder_hidden=30, bidirectional=False).memory_size == 30
    assert model(decoder="context-once", decoder_hidden=50).readout_input == 50
    assert not model(decoder="context-each").has_attention
    image = model(encoder="image", cnn="efficientnet-lite0", encoder_hidden=30, decoder_hidden=50)
    assert (image.memory_size, image.readout_input) == (30, 80)
    language = model(encoder="none", source_vocabulary=0, decoder_hidden=50)
    assert (language.readout_input, language.has_attention) == (50, False)


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        model().cell = "gru"  # type: ignore[misc]


@given(st.integers(1, 200), st.floats(-5, 5))
def test_length_penalties_are_their_formulas(length: int, alpha: float) -> None:
    assert length_penalty(float(length), "none", alpha) == 1
    assert length_penalty(float(length), "power", alpha) == float(length) ** alpha
    assert length_penalty(float(length), "gnmt", alpha) == ((5 + length) / 6) ** alpha


def test_numbers_of_numpy_are_numbers() -> None:
    options = SearchOptions(beam=np.int64(5), alpha=np.float32(0.5), nbest=np.uint8(3), min_length=np.array([2])[0])  # type: ignore[arg-type]
    assert options == SearchOptions(beam=5, alpha=0.5, nbest=3, min_length=2) and hash(options)
    assert all(type(value) in (bool, int, float, str, tuple) for value in vars(options).values())
    assert json.dumps(options.to_json()) == json.dumps(SearchOptions(beam=5, alpha=0.5, nbest=3, min_length=2).to_json())
    assert model(embedding=np.int32(64), bidirectional=np.bool_(False)) == model(embedding=64, bidirectional=False)
    for wrong in (np.float64(5.0), np.bool_(True), np.int64(101)):
        with pytest.raises(InputError, match="Beam size must be a whole number"):
            SearchOptions(beam=wrong)  # type: ignore[arg-type]
