"""The pages' scripts, as far as they can be tested without a browser."""

from __future__ import annotations

import math
import re
import subprocess
import warnings
from typing import Any

import numpy as np
import pytest

from seqdemo.config import SearchOptions, length_penalty
from seqdemo.figures.payloads import packed_bytes, tree_payload
from seqdemo.ui import assets
from tests import fixtures_records as toy
from tests.page_scripts import NODE, evaluate, needs_node

pytestmark = needs_node


def column(options: SearchOptions, text: str = "Das gefällt mir.", **more: Any) -> dict[str, Any]:
    model = toy.Toy.of(text)
    tree, found = toy.beam(model, options)
    best = found[0]
    hypothesis = {
        "tokens": best.tokens,
        "pieces": [toy.PIECES[token] for token in best.tokens],
        "logps": best.logps,
        "total": best.total,
        "score": best.score,
    }
    payload = tree_payload(tree, toy.PIECES.__getitem__)
    return {
        "hypothesis": hypothesis,
        "options": options.to_json(),
        "checkpoint": "m",
        "kind": "subwords",
        "payload": payload,
        **more,
    }


def sentence(a: dict[str, Any], b: dict[str, Any], task: str = "translate") -> str:
    parts = evaluate("finding({...a, tree: readTree(a.payload)}, {...b, tree: readTree(b.payload)}, task)", a=a, b=b, task=task)
    return "".join(part if isinstance(part, str) else part["text"] for part in parts)


def test_scripts_parse() -> None:
    done = subprocess.run(
        [str(NODE), "--check", "-"], input=assets.script() + assets.later().body.decode(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_no_script_turns_text_into_markup() -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    assert not re.search(sinks, assets.script() + assets.later().body.decode())


def test_no_script_names_another_host() -> None:
    addresses = set(
        re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", assets.script() + assets.later().body.decode() + assets.sheet())
    )
    assert addresses <= {"http://www.w3.org"}


def test_the_finding_says_where_greedy_lost_and_by_how_much() -> None:
    texts = (f"sentence {number}" for number in range(50))
    pairs = ((column(SearchOptions(strategy="greedy"), text), column(SearchOptions(beam=5), text)) for text in texts)
    a, b = next((a, b) for a, b in pairs if a["hypothesis"]["tokens"][:2] != b["hypothesis"]["tokens"][:2])
    left, right = a["hypothesis"], b["hypothesis"]
    at = next(i for i, (x, y) in enumerate(zip(left["tokens"], right["tokens"])) if x != y)
    said = sentence(a, b)
    ratio = math.exp(right["total"] - left["total"])
    assert right["total"] > left["total"]
    assert f"{ratio:.0f}×" in said or f"{ratio:.1f}×" in said
    assert f"{math.exp(left['logps'][at] - right['logps'][at]):.2f}× as likely as" in said


def test_the_lectures_example() -> None:
    """ "it" has 0.121 and "I" 0.119; greedy takes "it" and loses."""
    words = {"it": 4, "I": 5, "feels": 6, "like": 7}

    def made(tokens: list[str], logps: list[float], strategy: str) -> dict[str, Any]:
        base = column(SearchOptions(strategy=strategy))
        pieces = [*("▁" + word for word in tokens), "<eos>"]
        numbers = {"logps": logps, "total": sum(logps), "score": sum(logps)}
        base["hypothesis"] = {"tokens": [*(words[word] for word in tokens), 2], "pieces": pieces, **numbers}
        return base

    a = made(["it", "feels"], [math.log(0.121), -2.0, -1.0], "greedy")
    b = made(["I", "like", "it"], [math.log(0.119), -0.3, -0.2, -0.1], "beam")
    assert sentence(a, b) == (
        "Beam 5 found a translation the model finds 10.8× likelier; "
        "greedy lost it at word 1: there it took “it” (0.121), 1.02× as likely as “I” (0.119)."
    )


def test_the_beginning_of_an_output_is_not_compared_with_a_whole_one() -> None:
    a, b = column(SearchOptions(strategy="greedy")), column(SearchOptions(beam=5))
    tree, (best, *_) = toy.beam(toy.Toy.of("Das gefällt mir."), SearchOptions(beam=5))
    pruned = next(node for node in tree if node.fate == "pruned" and node.step == 1)
    for node, ending in ((pruned, f" it missed by {pruned.missed:.2f}."), (tree[tree.path(best.node)[1]], "is not compared.")):
        rows = tree.path(node.index)
        numbers = {"tokens": tree.tokens(node.index), "logps": tree.logp[rows].tolist(), "total": node.total}
        pieces = [toy.PIECES[token] for token in tree.tokens(node.index)]
        said = sentence(a, {**b, "hypothesis": {**numbers, "pieces": pieces, "prefix": True}})
        assert "likel" not in said and "NaN" not in said and said.endswith(ending)
    whole = column(SearchOptions(beam=5))["hypothesis"]
    start = {**whole, "tokens": whole["tokens"][:2], "pieces": whole["pieces"][:2], "logps": whole["logps"][:2], "prefix": True}
    assert sentence(column(SearchOptions(beam=5)), {**b, "hypothesis": start}).startswith("The translation in A goes on from")


def test_equal_outputs_agree_and_edits_are_named() -> None:
    a, b = column(SearchOptions(strategy="greedy")), column(SearchOptions(beam=1))
    assert "agree" in sentence(a, b)
    assert "changes nothing" in sentence(a, {**b, "edited": True})


def test_two_models_are_not_compared_by_probability() -> None:
    a, b = column(SearchOptions(strategy="greedy")), column(SearchOptions(beam=5), "other", checkpoint="n")
    assert "cannot be compared" in sentence(a, b)


@pytest.mark.parametrize("norm", ["none", "power", "gnmt"])
def test_the_page_divides_by_the_library_s_length_penalty(norm: str) -> None:
    options = {"length_norm": norm, "alpha": 0.7}
    ours = [float(length_penalty(float(n), norm, 0.7)) for n in range(1, 30)]
    theirs = evaluate("Array.from({length: 29}, (_, i) => penalty(i + 1, options))", options=options)
    assert theirs == pytest.approx(ours)


def test_differing_words() -> None:
    left, right = ["the", "man", "is", "in", "the", "red", "boat"], ["a", "man", "in", "the", "boat", "sits"]
    a, b = evaluate("differing(left, right).map((set) => [...set])", left=left, right=right)
    assert [left[i] for i in a] == ["the", "is", "red"]
    assert [right[i] for i in b] == ["a", "sits"]


def test_a_full_stop_is_compared_by_itself() -> None:
    pieces = ["▁I", "▁like", "▁it", ".", "<eos>"]
    assert evaluate("units(pieces, 'subwords').map((unit) => unit.text)", pieces=pieces) == ["I", "like", "it", "."]
    assert evaluate("plainText(pieces, 'subwords')", pieces=pieces) == "I like it."


def test_devanagari_is_never_torn_apart() -> None:
    pieces = [*"नमस्ते", "<eos>"]
    atoms = evaluate("atoms(pieces, 'characters')", pieces=pieces)
    assert "".join(atom["text"] for atom in atoms) == "नमस्ते"
    assert sorted(index for atom in atoms for index in atom["pieces"]) == list(range(6))
    assert len(atoms) < 6
    assert evaluate("pieceName(piece, 'characters')", piece="\u093e") == "◌\u093e"


def test_hidden_characters_are_shown() -> None:
    shown = evaluate("visible(text)", text="a\u202eb\x00c\u200bd")
    assert shown == "a[U+202E]b␀c[U+200B]d"


def test_right_to_left_is_told_from_the_first_strong_letter() -> None:
    assert evaluate("['123 سلام', 'abc سلام', 'नमस्ते', ''].map(isRightToLeft)") == [True, False, False, False]


def test_boxes_of_a_tree_never_overlap_and_hold_every_shown_row() -> None:
    tree, found = toy.beam(toy.Toy.of("x"), SearchOptions(beam=12))
    places = evaluate(
        """(() => { const t = readTree(payload);
        const shown = visibleRows(t, ends, {pruned: true, opened: new Set()});
        return [...layoutTree(t, shown, ends)].map(([row, y]) => [row, t.step[row], y, t.parent[row]]); })()""",
        payload=tree_payload(tree, toy.PIECES.__getitem__),
        ends=[hypothesis.node for hypothesis in found],
    )
    assert len({(step, y) for _, step, y, _ in places}) == len(places)
    rows = {row: y for row, _, y, _ in places}
    assert all(parent < 0 or (parent in rows and y >= rows[parent]) for _, _, y, parent in places)
    best = [rows[row] for row in tree.path(found[0].node)]
    assert best == [0] * len(best)


def test_a_tree_of_a_hundred_beams_is_folded() -> None:
    tree, found = toy.beam(toy.Toy.of("x"), SearchOptions(beam=100))
    assert len(tree) > 1_000
    count = evaluate(
        "visibleRows(readTree(payload), ends, {pruned: true, opened: new Set()}).size",
        payload=tree_payload(tree, toy.PIECES.__getitem__),
        ends=[hypothesis.node for hypothesis in found[:8]],
    )
    assert count < 500


def test_units_are_ordered_by_variance_saturation_and_reaction() -> None:
    values = np.array([[0.5, 0.0, 0.99, 0.5], [0.5, 1.0, 0.98, 0.5], [0.5, 0.5, 0.97, 0.9]])
    gate = packed_bytes(values, 1.0)
    orders = evaluate(
        """['unit', 'variance', 'saturation', 'token'].map((order) => unitOrder(
        {values: unpack(gate), steps: 3, units: 4, scale: gate.scale}, order, 2))""",
        gate=gate,
    )
    assert orders[0] == [0, 1, 2, 3]
    assert orders[1][0] == 1
    assert orders[2][0] == 2
    assert orders[3][0] == 3


def test_the_share_of_time_open_and_shut() -> None:
    gate = packed_bytes(np.array([[0.02, 0.95], [0.5, 0.99], [0.05, 0.5], [0.95, 1.0]]), 1.0)
    found = evaluate(
        "(({shut, open}) => [[...shut], [...open]])(saturation({values: unpack(g), steps: 4, units: 2, scale: g.scale}))", g=gate
    )
    assert found == [[0.5, 0.0], [0.25, 0.75]]


SETUP: dict[str, Any] = {
    "task": "translate", "tab": "tree", "limits": {"characters": 1000}, "languages": [], "examples": [],
    "strategies": [["greedy", ""], ["beam", ""]], "checkpoints": [{"name": "m", "revision": "r1"}, {"name": "n"}],
    "options": [{"name": "beam", "kind": "int", "min": 1, "max": 100, "for": ["beam"]}], "library": {"beam": 5},
    "start": {"text": "a", "columns": {
        "A": {"checkpoint": "m", "edits": [], "options": {"strategy": "greedy", "beam": 5}},
        "B": {"checkpoint": "m", "edits": [], "options": {"strategy": "beam", "beam": 5}}}},
}  # fmt: skip


def test_letters_are_counted_as_the_steps_of_the_tree() -> None:
    assert evaluate("unitNumber(pieces, 3, 'characters')", pieces=[*"प्रिएस्ट"]) == 4
    assert evaluate("unitNumber(pieces, 2, 'subwords')", pieces=["▁My", "▁back", "s", "▁hurts"]) == 2


def snippet(edits: list[dict[str, Any]], text: str = "a", before: int = 0) -> str:
    asked = {**SETUP["start"]["columns"]["B"], "edits": edits}
    code = evaluate("pythonSnippet(input, asked, setup, before)", input={"text": text}, asked=asked, setup=SETUP, before=before)
    assert isinstance(code, str)
    return code


def test_the_python_snippet_of_a_language_model_counts_from_the_beginning_of_the_text() -> None:
    told = {"kind": "Force", "position": 2, "tokens": [7], "pieces": ["a"], "says": "writes “a” from piece 3 on"}
    assert "Force(position=12, tokens=(7,))" in snippet([told], before=10)


def test_spreadsheet_formulas_in_outputs_stay_text() -> None:
    assert evaluate("csvLine(['=1+1', 'a,b', 'c\"d', -1.5])") == '"=1+1","a,b","c""d","-1.5"'


def test_the_python_snippet_runs_as_python() -> None:
    code = snippet([{"kind": "Ban", "position": 0, "tokens": [7]}], 'say "hi" \\ \u202e\u00e9')
    compiled = compile(code, "snippet", "exec")
    assert 'say "hi" \\ \u202e\u00e9' in compiled.co_consts
    assert "Ban(position=0, tokens=(7,))" in code and code.startswith("from seqdemo import Ban, SearchOptions, load, run\n")


def test_the_python_snippet_takes_public_names_only() -> None:
    """Which give no warning that they will go."""
    (line,) = (line for line in snippet([]).splitlines() if "seqdemo" in line)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(line, {})
