"""Replays equal the search, edits do what they say and cost what they say."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqdemo import records
from seqdemo.config import BOS, EOS, ModelConfig, SearchOptions, terms
from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Force, check_edits, edit_from_json, edit_to_json, holds
from seqdemo.equations import EQUATIONS
from seqdemo.errors import InputError
from seqdemo.explain.replay import distributions, follow, priced, resolve
from seqdemo.network.attention import WhatIf
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.playground import rules_of_words
from seqdemo.search import SearchResult, search

VOCABULARY, SOURCE = 17, (5, 9, 4, 11, 6)
LIMIT = 9
ATTENDING = ("attend-before", "attend-after")


def tiny(cell: str = "lstm-b", decoder: str = "attend-after", seed: int = 0, **more: object) -> Seq2Seq:
    torch.manual_seed(seed)
    sizes: dict[str, object] = {
        "embedding": 12,
        "encoder_hidden": 8,
        "decoder_hidden": 16,
        "attention": 10,
        "features": 12,
        **more,
    }
    model = Seq2Seq(ModelConfig(VOCABULARY, VOCABULARY, decoder=decoder, cell=cell, **sizes))  # type: ignore[arg-type]
    for value in model.parameters():
        torch.nn.init.normal_(value, std=0.6)
    return model.eval()


def find(model: Seq2Seq, edits: tuple = (), source: tuple[int, ...] = SOURCE, **options: object) -> SearchResult:
    ids, what_if = torch.tensor([source]), WhatIf(edits)
    with torch.inference_mode():
        memory = model.read(ids, torch.ones_like(ids, dtype=torch.bool), what_if)
        step, state = model.stepper(memory, what_if if what_if else None)
        asked = SearchOptions(**options)  # type: ignore[arg-type]
        return search(step, state, 1, asked, [LIMIT], rules=rules_of_words(edits, asked))[0]


def total(model: Seq2Seq, target: tuple[int, ...], edits: tuple = (), room: int = 0) -> float:
    return follow(model, SOURCE, target, edits, room=room).total


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-5 * (1 + abs(b))


@pytest.mark.parametrize("decoder", ["context-once", "context-each", *ATTENDING])
@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample", "exact"])
def test_a_replay_costs_what_the_search_said(decoder: str, strategy: str) -> None:
    model = tiny(decoder=decoder)
    found = find(model, strategy=strategy, expansions=5000)
    for hypothesis in found.hypotheses:
        trace = follow(model, SOURCE, hypothesis.tokens)
        assert close(trace.total, hypothesis.total)
        assert np.allclose(trace.logps, hypothesis.logps, atol=1e-5)


@pytest.mark.parametrize("cell", EQUATIONS)
def test_a_trace_names_every_gate_of_every_layer_and_direction(cell: str) -> None:
    model = tiny(cell, encoder_layers=2, decoder_layers=2)
    trace = follow(model, SOURCE, (4, 5, EOS))
    parts = {f"encoder.{layer}.{way}": len(SOURCE) for layer in (0, 1) for way in ("forward", "backward")}
    parts |= {f"decoder.{layer}": 3 for layer in (0, 1)}
    assert set(trace.gates) == {f"{part}.{gate}" for part in parts for gate in terms(cell)}
    for part, steps in parts.items():
        for gate in terms(cell):
            values = trace.gates[f"{part}.{gate}"]
            assert len(values) == steps
            low = 0 if gate in ("input", "forget", "output", "reset", "update") else -1
            assert gate == "cell" or (values.min() >= low and values.max() <= 1)


@pytest.mark.parametrize("decoder", ATTENDING)
def test_attention_moves_with_its_hypothesis(decoder: str) -> None:
    """What a row of the beam carries along as summed attention is the column sum of replaying that row's own tokens."""
    model, ids, seen = tiny(decoder=decoder), torch.tensor([SOURCE]), {}
    step, start = model.stepper(model.read(ids, ids > 0))

    def remembering(tokens_K: torch.Tensor, state: tuple) -> tuple:
        history_KT = torch.cat([state[1], tokens_K[:, None]], 1)
        logp_KV, after = step(tokens_K, state[0])
        seen.update({tuple(row[1:]): sums.numpy().copy() for row, sums in zip(history_KT.tolist(), after.attended_KS)})
        return logp_KV, (after, history_KT)

    with torch.inference_mode():
        start_state = (start, torch.zeros(1, 0, dtype=torch.long))
        found = search(remembering, start_state, 1, SearchOptions(beam=4, nbest=4), [LIMIT])[0]
    for hypothesis in found.hypotheses:
        attention = follow(model, SOURCE, hypothesis.tokens).attention
        assert attention is not None and np.allclose(attention.sum(1), 1, atol=1e-6)
        assert np.allclose(attention.sum(0), seen[hypothesis.tokens[:-1]], atol=1e-5)


@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample", "exact"])
def test_empty_edits_change_nothing_bit_for_bit(strategy: str) -> None:
    model = tiny()
    nothing = (AttentionBlend(0.0, "uniform"), AttentionBlend(0.0, "nothing"), ClampGate("decoder", "forget", 0.0, units=()))
    assert not WhatIf(nothing) and WhatIf((ClampGate("decoder", "forget", 0.0, units=(0,)),))
    plain, edited = find(model, strategy=strategy, expansions=2000), find(model, nothing, strategy=strategy, expansions=2000)
    assert plain.hypotheses == edited.hypotheses
    assert (distributions(model, SOURCE, (4, 5, EOS)) == distributions(model, SOURCE, (4, 5, EOS), nothing)).all()


@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample", "exact"])
def test_force_and_ban_hold_in_every_search_and_renormalise_nothing(strategy: str) -> None:
    model = tiny()
    free = find(model, strategy="greedy").hypotheses[0].tokens
    other = next(token for token in range(4, VOCABULARY) if token != free[1])
    forced = find(model, (Force(1, (other, other)),), strategy=strategy, expansions=5000).hypotheses[0]
    assert forced.tokens[1:3] == (other, other)
    assert close(forced.total, total(model, forced.tokens))
    banned = find(model, (Ban(0, free[:2]),), strategy=strategy, expansions=5000).hypotheses[0]
    assert banned.tokens[:2] != free[:2]
    assert close(banned.total, total(model, banned.tokens))


def test_a_ban_of_two_pieces_leaves_each_of_them_alone() -> None:
    model = tiny()
    free = find(model, strategy="greedy").hypotheses[0].tokens
    first_kept = find(model, (Ban(0, free[:2]), Force(0, free[:1])), strategy="greedy").hypotheses[0].tokens
    assert first_kept[0] == free[0] and first_kept[1] != free[1]


def test_the_price_of_words_is_the_untouched_models_view() -> None:
    model = tiny()
    old = find(model).hypotheses[0].tokens
    other = next(token for token in range(4, VOCABULARY) if token != old[0])
    edits = (Force(0, (other,)),)
    new = find(model, edits).hypotheses[0].tokens
    (price,), own = priced(model, SOURCE, edits, new, old, {0: old})
    assert close(price.change, total(model, new) - total(model, old))
    first_V = distributions(model, SOURCE, new)[0].detach()
    assert price.gaps == (pytest.approx(float(first_V.max() - first_V[other])),)
    assert own == (replace(price, edit=0),)
    assert price.gaps[0] > 0


def test_each_forced_piece_lies_behind_the_best_of_its_own_step() -> None:
    model = tiny()
    edits = (Force(0, (7, 4)), Force(3, (9,)))
    new = find(model, edits).hypotheses[0].tokens
    with torch.inference_mode():
        ids = torch.tensor([SOURCE])
        logp_TV = model(ids, ids > 0, torch.tensor([[BOS, *new[:-1]]]))[0].log_softmax(1)
    wanted = [float(logp_TV[step].max() - logp_TV[step, token]) for step, token in ((0, 7), (1, 4), (3, 9))]
    (joint,), own = priced(model, SOURCE, edits, new, (EOS,), {0: (EOS,), 1: (EOS,)})
    assert joint.gaps == pytest.approx(wanted, abs=1e-5) == own[0].gaps + own[1].gaps


@pytest.mark.parametrize("new", [(7,), (7, 4), (7, 4, 5), (7, 4, EOS)])
def test_an_output_without_what_was_forced_does_not_hold_it(new: tuple[int, ...]) -> None:
    assert not holds(new, (Force(1, (4, 9)),)) and holds((7, 4, 9), (Force(1, (4, 9)),))


@pytest.mark.parametrize("decoder", ATTENDING)
def test_edited_attention_is_what_was_asked_and_sums_to_one(decoder: str) -> None:
    model, target = tiny(decoder=decoder), (4, 5, 6, EOS)
    rows = (
        AttentionRow(1, (0, 3, 0, 1, 0)),
        AttentionBlend(1.0, "last", positions=(2,)),
        AttentionBlend(0.25, "uniform", positions=(0,)),
    )
    plain, trace = follow(model, SOURCE, target), follow(model, SOURCE, target, rows)
    assert np.allclose(trace.attention.sum(1), 1, atol=1e-6)
    assert np.allclose(trace.attention[1], [0, 0.75, 0, 0.25, 0])
    assert np.allclose(trace.attention[2], [0, 0, 0, 0, 1])
    assert np.allclose(trace.attention[0], 0.75 * plain.attention[0] + 0.25 / len(SOURCE), atol=1e-6)
    (price,), own = priced(model, SOURCE, rows, target, target, {})
    assert close(price.change, trace.total - plain.total)
    for left_out, one in enumerate(own):
        others = rows[:left_out] + rows[left_out + 1 :]
        assert one.edit == left_out and close(one.change, trace.total - total(model, target, others))


def test_blending_towards_nothing_keeps_the_row_and_takes_the_context_away() -> None:
    model, target = tiny(), (4, EOS)
    gone = follow(model, SOURCE, target, (AttentionBlend(1.0, "nothing"),))
    other = follow(model, SOURCE, target, (AttentionBlend(1.0, "nothing"), AttentionRow(0, (1, 0, 0, 0, 0))))
    assert np.allclose(gone.attention[0].sum(), 1)
    assert np.allclose(gone.logps, other.logps, atol=1e-6)  # where it looks no longer matters
    assert not np.allclose(gone.logps, follow(model, SOURCE, target).logps, atol=1e-3)


def test_clamps_hold_units_steps_layers_and_directions() -> None:
    model, target = tiny(encoder_layers=2), (4, 5, EOS)
    clamp = ClampGate("decoder", "forget", 0.0, units=(2, 3), positions=(1,))
    plain, trace = follow(model, SOURCE, target), follow(model, SOURCE, target, (clamp,))
    forget = trace.gates["decoder.0.forget"]
    assert (forget[1, 2:4] == 0).all() and (forget[0] == plain.gates["decoder.0.forget"][0]).all() and (forget[1, 4:] > 0).all()
    back = ClampGate("encoder", "input", 1.0, layer=1, direction="backward", positions=(3,))
    held = follow(model, SOURCE, target, (back,)).gates
    assert (held["encoder.1.backward.input"][3] == 1).all() and (held["encoder.1.backward.input"][2] < 1).all()
    assert (held["encoder.1.forward.input"] == plain.gates["encoder.1.forward.input"]).all()


def test_a_clamp_holds_its_own_layer_of_a_decoder_of_two() -> None:
    model, target = tiny(decoder_layers=2), (4, 5, EOS)
    plain, trace = (follow(model, SOURCE, target, edits).gates for edits in ((), (ClampGate("decoder", "forget", 0.5, 1),)))
    assert (trace["decoder.1.forget"] == 0.5).all() and (plain["decoder.1.forget"] != 0.5).all()
    assert (trace["decoder.0.forget"][0] == plain["decoder.0.forget"][0]).all()  # later it hears of the clamp by its input
    assert not (trace["decoder.0.forget"] == 0.5).any()


@pytest.mark.parametrize("towards", ["last", "uniform", "nothing"])
@pytest.mark.parametrize("decoder", ATTENDING)
def test_blended_attention_of_a_padded_batch_is_that_of_its_sentences_alone(decoder: str, towards: str) -> None:
    model, sources = tiny(decoder=decoder), (SOURCE, SOURCE[:2], SOURCE[1:4])
    source_BS = torch.nn.utils.rnn.pad_sequence([torch.tensor(source) for source in sources], batch_first=True)
    what_if, options = WhatIf((AttentionBlend(0.7, towards),)), SearchOptions(beam=3)
    with torch.inference_mode():
        step, state = model.stepper(model.read(source_BS, source_BS > 0), what_if)
        together = search(step, state, len(sources), options, [LIMIT] * len(sources))
    for source, found in zip(sources, together):
        for hypothesis in found.hypotheses:
            alone = follow(model, source, hypothesis.tokens, (AttentionBlend(0.7, towards),))
            assert np.allclose(alone.logps, hypothesis.logps, atol=1e-5)


def test_a_clamp_to_the_mean_is_each_units_mean_over_the_untouched_run() -> None:
    model, target = tiny(), (4, 5, 6, EOS)
    clamp = (ClampGate("decoder", "output", "mean"),)
    numbers = resolve(model, SOURCE, target, clamp)
    trace = follow(model, SOURCE, (4, 5), numbers)
    mean_H = follow(model, SOURCE, target).gates["decoder.0.output"].mean(0)
    assert np.allclose(trace.gates["decoder.0.output"], mean_H, atol=1e-6)
    assert find(model, numbers).hypotheses


def test_the_mean_is_never_guessed_from_the_tokens_of_a_replay() -> None:
    model, clamp = tiny(), (ClampGate("decoder", "output", "mean"),)
    for door in (follow, distributions):
        with pytest.raises(InputError, match="call `resolve` on the edits"):
            door(model, SOURCE, (4, EOS), clamp)


def test_records_come_back_from_json_unchanged() -> None:
    model = tiny()
    found = find(model)
    for record in (found.tree, found.hypotheses[0], follow(model, SOURCE, found.hypotheses[0].tokens, (Force(0, (4,)),))):
        assert records.from_json(json.loads(json.dumps(records.to_json(record)))) == record


@pytest.mark.parametrize(
    "record",
    [
        records.Certificate(False, 7, -math.inf, -math.inf, "Nothing.", 0.1),
        records.Certificate(True, 7, -2.5, -math.inf, "Proved.", 0.1),
        records.Hypothesis((4, EOS), (-1.0, -math.inf), -math.inf, -math.inf, True),
        records.SearchError(None, None, "Not known."),
        records.SearchError(True, 0.5, "Search error."),
    ],
    ids=str,
)
def test_records_of_what_is_impossible_are_json_for_any_reader(record: object) -> None:
    written = json.dumps(records.to_json(record), allow_nan=False)
    assert records.from_json(json.loads(written)) == record


@pytest.mark.parametrize("target", [(), (0, EOS), (4, 1), (VOCABULARY,)], ids=str)
def test_what_no_model_says_is_not_replayed(target: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=f"a number below {VOCABULARY} and neither <pad> nor <bos>"):
        follow(tiny(), SOURCE, target)


@pytest.mark.parametrize("source", [(5, 0, 7), (), (5, VOCABULARY)], ids=str)
def test_what_no_encoder_reads_is_not_replayed(source: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=f"each a number below {VOCABULARY} and none of them <pad>"):
        follow(tiny(), source, (4, EOS))


def test_numbers_of_a_trace_go_into_edits_as_they_are() -> None:
    trace = follow(tiny(), SOURCE, (4, 5, EOS))
    assert trace.attention is not None
    runner_up, row = trace.top_tokens[0, 1], trace.attention[1]
    edits = (
        Force(0, (runner_up,)),
        AttentionRow(np.int64(1), row),
        ClampGate("decoder", "forget", np.float32(0.5), units=row.argsort()[:2]),
    )
    check_edits(edits, tiny().config, len(SOURCE), LIMIT)
    assert edits[0] == Force(0, (int(runner_up),)) and edits[1].weights == tuple(row.tolist())
    assert [edit_from_json(json.loads(json.dumps(edit_to_json(edit)))) for edit in edits] == list(edits)


@given(st.sampled_from([Force(0, (4, 5)), Ban(3, (7,)), AttentionRow(1, (0.5, 0.5)), AttentionBlend(0.5, "last", (1, 2))]))
def test_edits_come_back_from_json(edit: object) -> None:
    assert edit_from_json(edit_to_json(edit)) == edit  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ((Force(LIMIT, (4,)),), "outside this output"),
        ((Force(0, (VOCABULARY,)),), "piece numbers"),
        ((Force(0, ()),), "piece numbers"),
        ((Force(0, (4,)), Force(0, (5,))), "Two different"),
        ((Force(0, (4, 5)), Ban(1, (5,))), "both forced and banned"),
        ((Force(1, (EOS,)), Force(2, (5,))), "before the place"),
        ((AttentionRow(0, (1.0, 0.0)),), "5 weights"),
        ((AttentionRow(0, (0.0,) * 5),), "above 0"),
        ((AttentionRow(0, (float("nan"),) * 5),), "above 0"),
        ((AttentionBlend(2.0),), "from 0 to 1"),
        ((AttentionBlend(-0.5),), "from 0 to 1"),
        ((AttentionBlend(0.5, "sideways"),), "sideways"),
        ((AttentionRow(0, (2.0, -1.0, 0.0, 0.0, 0.0)),), "from 0 up"),
        ((AttentionRow(0, (1.0,) * 7),), "5 weights"),
        ((AttentionRow(LIMIT, (1.0,) * 5),), "Position 9 is outside this output"),
        ((AttentionBlend(1.0, "last", (LIMIT,)),), "Position 9 is outside this output"),
        ((AttentionBlend(1.0, "last", (-1,)),), "Position -1 is outside this output"),
        ((ClampGate("decoder", "forget", 0.0, positions=(0, LIMIT)),), "Position 9 is outside this output"),
        ((ClampGate("encoder", "forget", 0.0, positions=(5,)),), "this source are whole numbers from 0 to 4"),
        ((ClampGate("encoder", "forget", 0.0, positions=(-1,)),), "this source are whole numbers from 0 to 4"),
        ((ClampGate("decoder", "forget", 0.0, positions=1),), "a tuple of whole numbers"),
        ((ClampGate("decoder", "forget", 0.0, units=(-1,)),), "0 to 15"),
        (({"a": 1},), "each is one of Force, Ban"),
        ((None,), "each is one of Force, Ban"),
        (Force(0, (4,)), "Edits are a tuple"),
        ((ClampGate("decoder", "reset", 0.0),), "no 'reset' gate"),
        ((ClampGate("decoder", "forget", 0.0, layer=1),), "1 layer"),
        ((ClampGate("decoder", "forget", 0.0, units=(16,)),), "0 to 15"),
        ((ClampGate("decoder", "forget", (0.0,)),), "16 units"),
        ((ClampGate("decoder", "forget", "often"),), "often"),
        ((ClampGate("decoder", "forget", 0.0, direction="backward"),), "direction"),
    ],
)
def test_edits_that_do_not_fit_are_told_so(edits: tuple, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_edits(edits, tiny().config, len(SOURCE), LIMIT)
    for door in (follow, resolve):
        with pytest.raises(InputError, match=words):
            door(tiny(), SOURCE, (4,) * LIMIT, edits)


def test_positions_up_to_the_end_of_source_and_output_are_taken() -> None:
    edits = (
        AttentionBlend(0.5, "last", (LIMIT - 1,)),
        ClampGate("encoder", "forget", 0.0, positions=(len(SOURCE) - 1,)),
        ClampGate("decoder", "forget", 0.0, positions=(LIMIT - 1,)),
        Force(LIMIT - 1, (4,)),
    )
    check_edits(edits, tiny().config, len(SOURCE), LIMIT)
    assert follow(tiny(), SOURCE, (4, 5), edits, room=LIMIT).tokens == (4, 5)


@pytest.mark.parametrize("source", [(), None, (VOCABULARY,), (999_999,), (-1,), (4.0,), torch.zeros(1, 4, 6)], ids=str)
def test_what_is_no_source_is_told_so(source: object) -> None:
    with pytest.raises(InputError, match=f"each a number below {VOCABULARY}"):
        follow(tiny(), source, (4, EOS))  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.floats(), lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=6
    )
)
def test_anything_posted_as_an_edit_is_an_edit_or_a_sentence(value: object) -> None:
    posted = {"kind": "ClampGate", "part": value, "gate": value, "value": value}
    with suppress(InputError):
        check_edits((edit_from_json(posted),), tiny().config, 5, LIMIT)
    with pytest.raises(InputError):
        edit_from_json(value)


def test_a_language_model_is_replayed_clamped_and_forced() -> None:
    torch.manual_seed(0)
    model = LanguageModel(ModelConfig(VOCABULARY, encoder="none", embedding=8, decoder_hidden=12, features=0)).eval()
    trace = follow(model, None, (4, 5, 6))
    with torch.inference_mode():
        logits_BTV, _ = model(torch.tensor([[1, 4, 5]]))
    assert trace.total == pytest.approx(
        float(logits_BTV[0].log_softmax(1).gather(1, torch.tensor([[4], [5], [6]])).sum()), abs=1e-5
    )
    assert trace.attention is None and trace.gates["decoder.0.cell"].shape == (3, 12)
    held = follow(model, None, (4, 5, 6), (ClampGate("decoder", "forget", 0.0, positions=(1,)),))
    assert held.logps[0] == trace.logps[0] and held.logps[1] != trace.logps[1]


def test_records_are_equal_when_their_numbers_are() -> None:
    model = tiny()
    one, other = find(model), find(model)
    trace, again = (follow(model, SOURCE, found.hypotheses[0].tokens) for found in (one, other))
    assert one.tree == other.tree and trace == again and trace is not again
    assert trace != follow(model, SOURCE, (4, EOS)) and trace != one.tree and one.tree != find(model, beam=2).tree
    for name in ("logps", "top_tokens"):
        moved = getattr(trace, name).copy()
        moved[0] += 1
        assert replace(trace, **{name: moved}) != trace
    seen = dict(trace.seen)
    seen["decoder.0.cell"] = seen["decoder.0.cell"].astype(np.float64)
    assert replace(trace, seen=seen) != trace, "of another kind"
    assert replace(trace, logps=trace.logps * np.nan) == replace(trace, logps=trace.logps * np.nan)
    with pytest.raises(TypeError, match="unhashable"):
        hash(trace)


def test_tokens_of_numpy_are_tokens() -> None:
    trace = follow(tiny(), SOURCE, (4, 5, EOS))
    again = follow(tiny(), tuple(np.array(SOURCE)), tuple(np.array(trace.tokens)))
    assert again == trace and json.dumps(records.to_json(again)) == json.dumps(records.to_json(trace))
