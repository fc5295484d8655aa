"""The README's ways to add a part, exactly as printed, each taken to its end: trained a step, saved, loaded, decoded, clamped,
drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seqdemo
from seqdemo import config, figures
from seqdemo.checkpoints import save
from seqdemo.config import PAD, STRATEGIES, SearchOptions, terms
from seqdemo.edits import Ban, ClampGate, Force, Require
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.hub import load
from seqdemo.network.attention import SCORES
from seqdemo.network.cells import CELLS
from seqdemo.network.coders import DECODERS
from seqdemo.playground import replay, run
from seqdemo.search.rules import RULES
from seqdemo.search.walk import CHOOSERS
from seqdemo.text import Characters
from seqdemo.ui.catalogue import Catalogue
from tests import tiny
from tests.small_models import sentences, targets
from tests.test_equations import written
from training import __main__ as training
from training.measure.evaluate import Plan, evaluate
from training.publish import card
from training.recipes import RECIPES
from training.tasks.loss import token_loss

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
LETTERS = Characters.train(["abcdefghijklmnopqrstuvwxyz"])  # with the special pieces, 30


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove again what a recipe adds to the tables."""
    before = [(table, dict(table)) for table in (CELLS, EQUATIONS, SCORES, DECODERS, RULES, CHOOSERS, RECIPES)]
    for name in ("SCORE_NAMES", "DECODER_NAMES", "STRATEGIES"):
        monkeypatch.setattr(config, name, getattr(config, name))
    yield
    for table, entries in before:
        table.clear()
        table.update(entries)  # type: ignore[arg-type]


def made(heading: str) -> dict[str, Any]:
    """What the code under this heading defines."""
    code = re.search(rf"^\*\*{heading}\.\*\*.*?^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert code
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code.group(1), "README.md", "exec", dont_inherit=True), names)
    return names


@pytest.mark.parametrize("heading", ["A cell", "An attention score", "A decoder"])
def test_what_a_recipe_adds_is_trained_saved_decoded_clamped_and_drawn(heading: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = made(heading)["network"]
    before, after = trained_a_little(network)
    assert after < before
    network.eval()
    about = {"name": "added", "task": "transliterate", "target_language": "en"}
    checkpoint = load(save(tmp_path / "added", network, about, LETTERS, LETTERS))
    for strategy in ("greedy", "beam", "sample", "exact"):
        assert run(checkpoint, "abc", SearchOptions(strategy=strategy, max_length=6, nbest=1, expansions=200)).texts
    free = run(checkpoint, "abc", SearchOptions(max_length=6))
    tokens = free.hypotheses[0].tokens
    trace, full = replay(checkpoint, free, tokens), replay(checkpoint, free, tokens, step=0)
    for term in terms(network.config.cell):
        for part in ("encoder", "decoder"):
            path = f"{part}.0.{'forward.' if part == 'encoder' else ''}{term}"
            held = run(checkpoint, "abc", SearchOptions(max_length=6), (ClampGate(part, term, 0.25),))
            assert held.own_prices[0].change != 0
            clamped = replay(checkpoint, held, held.hypotheses[0].tokens)
            assert (clamped.seen[path] == 0.25).all() and not (trace.seen[path] == 0.25).all()
            drawing = figures.gates(clamped, path.rpartition(".")[0])
            assert path in drawing.payload["gates"] and drawing.write_html(tmp_path / "gates.html") is None
        assert np.allclose(list(full.equations[f"decoder.0.{term}"].values())[-1], trace.seen[f"decoder.0.{term}"][0], atol=1e-5)
    figures.alignment(trace).write_html(tmp_path / "alignment.html")
    assert all((tmp_path / name).stat().st_size > 1_000 for name in ("gates.html", "alignment.html"))
    assert trace.attention is not None and np.allclose(trace.attention.sum(1), 1, atol=1e-5)


def tiny_instead(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Any:
    """Replace the shipped model that the recipes load by a tiny one."""
    checkpoint = tiny.checkpoint(folder, "translate")
    monkeypatch.setattr(seqdemo, "load", lambda name: checkpoint, raising=False)
    return checkpoint


def test_the_rule_of_the_readme_holds_in_every_search(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkpoint = tiny_instead(monkeypatch, tmp_path)
    options = made("A rule of what may be said next")["Options"]
    text, doubled = "Die frau und der mann laufen.", Force(1, (7,))
    for strategy in STRATEGIES:
        asked = {"strategy": strategy, "max_length": 9, "expansions": 3_000, "samples": 4}
        for edits in ((), (doubled,), (Require((9, 7)),)):
            for hypothesis in run(checkpoint, text, options(no_doubles=True, **asked), edits).hypotheses:
                assert all(one != other for one, other in pairwise(hypothesis.tokens))
        off, plain = run(checkpoint, text, options(**asked)), run(checkpoint, text, SearchOptions(**asked))
        assert off.hypotheses == plain.hypotheses
    doubling = run(checkpoint, text, SearchOptions(strategy="exact", prefix=(7, 7), nbest=1, max_length=9)).hypotheses[0].tokens
    assert doubling[:2] == (7, 7), "what the rule forbids can be said without it"
    with pytest.raises(InputError, match="No complete output is possible"):
        run(checkpoint, text, options(no_doubles=True, max_length=9), (Force(0, (7, 7)),))


def test_the_search_of_the_readme_decodes_obeys_and_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkpoint = tiny_instead(monkeypatch, tmp_path)
    made("A search")
    options = SearchOptions(strategy="near", max_length=12, no_repeat=2)
    found = run(checkpoint, "Die frau und der mann laufen.", options, (Ban(0, (5,)), Force(2, (6,))))
    tree = found.tree
    for step in range(int(tree.step.max()) + 1):
        totals = tree.total[tree.step == step]
        assert totals.min() >= totals.max() - 3 - 1e-9
    assert all(hypothesis.tokens[2] == 6 for hypothesis in found.hypotheses)
    replayed = replay(checkpoint, found, found.hypotheses[0].tokens)
    assert replayed.total == pytest.approx(found.hypotheses[0].total, abs=1e-4)
    figures.tree(tree, str, best=found.hypotheses[0].node).write_html(tmp_path / "tree.html")
    assert (tmp_path / "tree.html").stat().st_size > 1_000


def trained_a_little(network: Any) -> tuple[float, float]:
    """The loss before and after three steps; every parameter plays its part."""
    source_BS, (read_BT, say_BT) = sentences((6, 2, 4), 30), targets((5, 3, 4), 30)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    losses = []
    for _ in range(4):
        taught = network.teach(source_BS, source_BS != PAD, read_BT)
        loss = token_loss(network.readout(taught.features_BTR), say_BT)
        optimizer.zero_grad()
        loss.backward()
        assert all(value.grad is not None for value in network.parameters())
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses[0], losses[-1]


def test_the_cell_of_the_readme_lists_the_terms_of_its_docstring() -> None:
    names = made("A cell")
    assert written(names["Leaky"].__doc__) == {term.symbol: term.equation for term in EQUATIONS["leaky"]}


def test_the_figure_of_the_readme_shows_any_trace_and_is_kept_in_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tiny_instead(monkeypatch, tmp_path)
    names = made("A figure")
    trace = names["trace"]
    assert "Sharpness" in names["page"] and "<b>" not in str(
        names["sharpness"](replace(trace, target=("<b>",) * len(trace.target)))
    )
    one = replace(trace, seen={"decoder.0.cross.0": np.eye(len(trace.target), 7, dtype=np.float32)})
    even = replace(trace, seen={"decoder.0.cross.0": np.full((len(trace.target), 7), 1 / 7, np.float32)})
    for looked, height in ((one, 1), (even, 0)):
        drawn = names["sharpness"](looked)
        assert np.allclose(drawn.data[0].y, height, atol=1e-5)
        assert list(drawn.layout.xaxis.ticktext) == list(map(figures.labels.label, trace.target))


def test_the_checkpoint_of_the_readme_is_trained_measured_offered_and_decodes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made("A checkpoint")
    folder = tmp_path / "checkpoints" / "reverse-once"
    assert training.main(["fit", "reverse-once", "--out", str(folder), "--epochs", "0.1"]) == 0
    assert evaluate(folder, plan=Plan(beams=(1,), sample=10, exact=2))["tests"]
    assert "whole string passes through one vector" in card.write(folder).read_text()
    catalogue = Catalogue(folder.parent)
    assert catalogue.names("transliterate") == ["reverse-once"] and catalogue.frozen_answer("transliterate") is None
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(folder.parent))
    for name in ("reverse-once", str(folder)):
        checkpoint = load(name)
        decoded = run(checkpoint, "abcdef", SearchOptions(strategy="beam", beam=3, nbest=2))
        trace = replay(checkpoint, decoded, decoded.hypotheses[0].tokens)
        assert trace.total == pytest.approx(decoded.hypotheses[0].total, abs=1e-4) and trace.attention is None
        assert figures.gates(trace).payload["gates"]
