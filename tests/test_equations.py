"""The list of terms, the docstrings and the steps say the same; equations work out to what the step computed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import Tensor

from seqdemo.config import EOS, switches, terms
from seqdemo.equations import EQUATIONS, blocks
from seqdemo.errors import InputError
from seqdemo.explain.replay import follow
from seqdemo.explain.step import step_in_full
from seqdemo.explain.worked import worked
from seqdemo.network.cells import CELLS, Cell, State
from seqdemo.records import from_json, to_json
from tests.small_models import stir
from tests.test_gradients import writer
from tests.test_trace import SOURCE, tiny

SIZE, INPUT = 7, 5


def written(docstring: str) -> dict[str, str]:
    """Symbol -> equation, of 'i, f = sigmoid(W x + b);  g = ...', the first paragraph of a docstring."""
    equations = (each.split(" = ") for each in docstring.split("\n\n")[0].split(";"))
    return {symbol.strip(): right.strip() for left, right in equations for symbol in left.split(",")}


@pytest.mark.parametrize("name", CELLS)
def test_a_docstring_lists_the_terms_with_their_equations(name: str) -> None:
    assert written(CELLS[name].__doc__ or "") == {term.symbol: term.equation for term in EQUATIONS[name]}


@pytest.mark.parametrize("name", CELLS)
def test_a_step_names_the_terms_in_their_order(name: str) -> None:
    _, seen, *_ = stepped(name, INPUT)
    assert tuple(seen) == terms(name)
    assert (CELLS[name].blocks, CELLS[name].past_blocks) == blocks(name)


def stepped(name: str, inputs: int) -> tuple[Cell, dict[str, Tensor], Tensor, State, State]:
    """A cell in the middle of a sequence: what the step shows, what it was sent, the state before and after."""
    torch.manual_seed(0)
    cell = CELLS[name](inputs, SIZE).double()
    stir(cell)
    with torch.no_grad():
        sent = cell.project(torch.randn(2, 1, inputs, dtype=torch.float64))
        before, _ = cell.step(sent[0], cell.initial(torch.randn(1, SIZE, dtype=torch.float64)))
        after, seen = cell.step(sent[1], before)
    return cell, seen, sent[1], before, after


@pytest.mark.parametrize("inputs", [INPUT, SIZE], ids=["other-size", "same-size"])
@pytest.mark.parametrize("name", CELLS)
def test_equations_work_out_to_what_the_step_computed(name: str, inputs: int) -> None:
    cell, seen, sent, before, after = stepped(name, inputs)
    with torch.no_grad():
        found = worked(cell, EQUATIONS[name], sent, before._asdict(), seen)
    for term in EQUATIONS[name]:
        parts = found[term.name]
        assert torch.allclose(parts[term.equation], seen[term.name][0], atol=1e-12)
        assert all(value.shape == (SIZE,) for value in parts.values())
        letters = set(re.findall(r"\b[a-z](?!\w)'?", term.equation))
        assert letters - {"x"} <= set(parts) | {"h"} and (" h" not in f" {term.equation}" or "h" in parts)
    if hasattr(after, "c"):
        assert torch.equal(seen["cell"], after.c) and torch.equal(found["cell"].get("c", before.c[0]), before.c[0])
    assert torch.equal(seen["hidden"], after.h)


@pytest.mark.parametrize("name", CELLS)
def test_switches_stay_between_0_and_1(name: str) -> None:
    _, seen, *_ = stepped(name, INPUT)
    assert all(float(seen[term].min()) >= 0 and float(seen[term].max()) <= 1 for term in terms(name) if term in switches())


@pytest.mark.parametrize("step", [0, 2])
@pytest.mark.parametrize("decoder", ["context-once", "context-each", "attend-before", "attend-after"])
def test_one_step_in_full_is_that_of_the_replay(decoder: str, step: int) -> None:
    model, target = tiny(decoder=decoder, decoder_layers=2), (4, 5, 6, EOS)
    trace, full = follow(model, SOURCE, target), step_in_full(model, SOURCE, target, step)
    assert full.said == str(target[step]) and full.read == str((1, *target)[step])
    for name, rows in trace.seen.items():
        if name.startswith("decoder"):
            assert np.allclose(full.vectors[name], rows[step], atol=1e-6)
    assert full.vectors["logps"][target[step]] == pytest.approx(trace.logps[step], abs=1e-5)
    assert full.vectors["logits"].shape == full.vectors["logps"].shape == (model.config.target_vocabulary,)
    named = {"decoder.embedding", "decoder.1.sent", "features"}
    named |= {"decoder.0.context"} if decoder != "context-once" else set()
    named |= {"decoder.0.query", "decoder.0.scores", "decoder.0.cross.0"} if decoder.startswith("attend") else set()
    assert named <= set(full.vectors)
    assert set(full.equations) == {f"decoder.{layer}.{term}" for layer in (0, 1) for term in terms("lstm-b")}
    for name, parts in full.equations.items():
        assert np.allclose(list(parts.values())[-1], trace.seen[name][step], atol=1e-6)
    assert from_json(to_json(full)) == full


def test_a_clamped_term_is_worked_out_and_then_held() -> None:
    from seqdemo.edits import ClampGate

    full = step_in_full(tiny(), SOURCE, (4, 5, EOS), 1, (ClampGate("decoder", "forget", 0.0),))
    parts = full.equations["decoder.0.cell"]
    assert (full.vectors["decoder.0.forget"] == 0).all() and (
        full.equations["decoder.0.forget"]["sigmoid(W x + U h + b)"] > 0
    ).all()
    assert (parts["f * c"] == 0).all() and np.allclose(parts["f * c + i * g"], parts["i * g"])


def test_a_language_models_step_is_told_in_full() -> None:
    model = writer(layers=2)
    trace, full = follow(model, None, (4, 5, 6)), step_in_full(model, None, (4, 5, 6), 2)
    assert np.allclose(full.vectors["decoder.1.cell"], trace.seen["decoder.1.cell"][2], atol=1e-6)
    assert full.vectors["logps"][6] == pytest.approx(trace.logps[2], abs=1e-5)


@pytest.mark.parametrize("step", [-1, 3, 1.0, True, None])
def test_a_step_that_is_not_there_is_told_so(step: object) -> None:
    with pytest.raises(InputError, match="outside this output of 3 pieces"):
        step_in_full(tiny(), SOURCE, (4, 5, EOS), step)  # type: ignore[arg-type]
