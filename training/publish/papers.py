"""The papers behind a model, with their arXiv numbers, by which the Hub links a model to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from training.data import SOURCES

PAPERS = {
    "1308.0850": "Graves 2013, *Generating Sequences With Recurrent Neural Networks*",
    "1409.3215": "Sutskever et al. 2014, *Sequence to Sequence Learning with Neural Networks*",
    "1406.1078": "Cho et al. 2014, *Learning Phrase Representations using RNN Encoder-Decoder*",
    "1409.0473": "Bahdanau et al. 2015, *Neural Machine Translation by Jointly Learning to Align and Translate*",
    "1508.04025": "Luong et al. 2015, *Effective Approaches to Attention-based Neural Machine Translation*",
    "1411.4555": "Vinyals et al. 2015, *Show and Tell: A Neural Image Caption Generator*",
    "1502.03044": "Xu et al. 2015, *Show, Attend and Tell: Neural Image Caption Generation with Visual Attention*",
    "1612.00563": "Rennie et al. 2017, *Self-critical Sequence Training for Image Captioning*",
    "1506.02078": "Karpathy et al. 2015, *Visualizing and Understanding Recurrent Networks*",
    "1908.10090": "Stahlberg and Byrne 2019, *On NMT Search Errors and Model Errors: Cat Got Your Tongue?*",
    "1706.03762": "Vaswani et al. 2017, *Attention Is All You Need*",
    "1905.11946": "Tan and Le 2019, *EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks*",
    "1605.00459": "Elliott et al. 2016, *Multi30K: Multilingual English-German Image Descriptions*",
    "2007.01176": "Roark et al. 2020, *Processing South Asian Languages Written in the Latin Script: the Dakshina Dataset*",
    "2205.03018": "Madhani et al. 2023, *Aksharantar: Open Indic-language Transliteration datasets and models*",
}
OF_DECODERS = {
    "context-once": ("1409.3215",),
    "context-each": ("1406.1078",),
    "attend-before": ("1409.0473",),
    "attend-after": ("1508.04025",),
    "transformer": ("1706.03762",),
    "single": ("1308.0850",),
}


def papers_of(config: dict[str, Any], sources: Sequence[str]) -> list[str]:
    """Numbers at arXiv: of the decoder, the score, the cell, the encoder, the exact search, the training, and the data."""
    model, found = config["model"], []
    if model["encoder"] == "none":
        found.append("1506.02078")
    elif model["encoder"] == "image":
        found += ["1502.03044" if model["decoder"].startswith("attend") else "1411.4555", "1905.11946"]
    if model["encoder"] != "none":
        found += OF_DECODERS.get(model["decoder"], ())
        found += ["1409.0473"] if model["decoder"].startswith("attend") and model["score"] == "additive" else []
        found.append("1908.10090")
    found += ["1406.1078"] if model["cell"] == "gru" and model["decoder"] != "transformer" else []
    found += ["1612.00563"] if config.get("trained_on", {}).get("recipe", {}).get("rewarded") else []
    found += [SOURCES[key].paper for key in sources if SOURCES[key].paper]
    return list(dict.fromkeys(found))


def links(numbers: Sequence[str]) -> list[str]:
    return [f"* {PAPERS[number]}, [arXiv:{number}](https://arxiv.org/abs/{number})" for number in numbers]
