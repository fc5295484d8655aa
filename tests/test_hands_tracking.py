"""Units that follow a place in a text, held together; and how many texts still close it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from seqdemo import hub
from seqdemo.config import SearchOptions
from seqdemo.edits import ClampGate
from seqdemo.errors import InputError
from seqdemo.figures.places import labels_of
from seqdemo.hands import sample as samples
from seqdemo.hands.tracking import GIVEN, WRITTEN, aucs, closes, closing, followers
from seqdemo.playground import Run, run, trace
from seqdemo.prompts import prepare
from tests.small_hands import Models
from training.measure.metrics import auc
from training.publish import sample as drawing

SAMPLE = json.loads((Path(__file__).parents[1] / "checkpoints/sample.json").read_text("utf-8"))["texts"]
OPEN = '"the dog sings in the garden and the cat sleeps by the house of the man" said the man in the garden.'


def test_held_together_the_units_that_follow_a_quotation_keep_it_from_closing() -> None:
    """What the language model's page promises, with the shipped model."""
    checkpoint = hub.load("lm-tolstoy")
    found = followers(checkpoint)
    assert found.place == "quotation" and len(found.units) == len(found.outside) > 2
    assert all(abs(one.auc - 0.5) >= 0.45 for one in found.units)
    held = closing(checkpoint, run(checkpoint, 'He said, "', SearchOptions(strategy="greedy", max_length=4), found.outside))
    assert held.of == 30 and held.free >= 20 and held.held <= 3
    assert [text[:GIVEN] for text in held.free_texts] == [
        text[:GIVEN] for text in SAMPLE["complete:lm-tolstoy"]["passages"]["quotation"]
    ]


@pytest.mark.parametrize(("name", "place"), [("lm-tolstoy", "quotation"), ("lm-c", "comment")])
def test_recorded_passages_begin_where_a_place_opens_and_stay_in_it(name: str, place: str) -> None:
    texts = SAMPLE[f"complete:{name}"]["passages"][place]
    assert len(set(texts)) == drawing.PASSAGES
    for text in texts:
        assert labels_of(text)[place][1:GIVEN].all() and len(text) == drawing.PASSAGE
    together = np.concatenate([labels_of(text)[place] for text in texts])
    assert 0.1 < together.mean() < 0.95, "there is something outside to compare with"


def test_passages_are_drawn_from_where_a_quotation_opens() -> None:
    text = "\n\n".join(["He was silent.", *(f"{OPEN} {n}" for n in range(70)), '"Yes," he said.', "The end. " * 40])
    drawn = drawing.passages("lm-tolstoy", text)["quotation"]
    assert len(drawn) == drawing.PASSAGES and all(each.startswith('"the dog') for each in drawn)
    assert drawing.passages("lm-c", "int a; /* short */\n/* " + "x" * 300)["comment"] == ["/* " + "x" * (drawing.PASSAGE - 3)]


@pytest.mark.parametrize(
    ("place", "text", "is_closed"),
    [
        ("quotation", '"Not now," he said. "Later', True),
        ("quotation", '"Not now he said. "Later" she', False),  # it opens another one
        ("quotation", '"Not now he said.\n\n"Later," she', False),  # another paragraph
        ("quotation", '"Not now\nor ever!" he', True),
        ("quotation", '"Not now and so on', False),
        ("comment", "/* a * b / c */ int", True),
        ("comment", "/* a\nb int x; /* c */", False),
        ("comment", "/* a", False),
    ],
)
def test_what_closes_a_place(place: str, text: str, is_closed: bool) -> None:
    assert closes(place, text) is is_closed


def test_the_auc_is_that_of_the_measurements() -> None:
    values_NU, inside_N = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 3 == 0
    values_NU[:, 1] = values_NU[:, 1].round()  # many ties
    values_NU[:, 2] = 0.0
    assert aucs(values_NU, inside_N) == pytest.approx([auc(values_N, inside_N) for values_N in values_NU.T])
    assert aucs(values_NU, inside_N)[2] == 0.5
    one_XU, other_XU = values_NU[inside_N][:, None], values_NU[~inside_N][None]
    assert aucs(values_NU, inside_N) == pytest.approx(((one_XU > other_XU) + (one_XU == other_XU) / 2).mean((0, 1)))


@pytest.fixture
def recorded(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Models:
    """A sample for the small language model."""
    checkpoint = models.checkpoint("complete")
    known = {
        "title": "90 characters of the dev part of a book",
        "text": OPEN,
        "passages": {"quotation": [OPEN, OPEN[:80]], "comment": []},
    }
    (tmp_path / samples.FILE).write_text(json.dumps({"format": 1, "texts": {f"complete:{checkpoint.name}": known}}), "utf-8")
    monkeypatch.setattr("seqdemo.hands.tracking.shipped_folder", lambda: tmp_path)
    return models


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("tracking"))


def test_a_unit_s_auc_is_that_of_its_values_after_each_letter(recorded: Models) -> None:
    checkpoint = recorded.checkpoint("complete")
    found = followers(checkpoint)
    (best, *_) = found.units
    values, inside = [], []
    for passage in (OPEN, OPEN[:80]):
        tokens = prepare(checkpoint, passage).pieces.ids[5:]
        told = trace(checkpoint, prepare(checkpoint, passage[:5]), (*tokens, 5))  # one more, so that the last letter was read
        values.append(told.gates[f"decoder.{best.layer}.cell"][1:, best.unit])
        inside.append(labels_of(passage)["quotation"] > 0)
    values_N, inside_N = np.concatenate(values), np.concatenate(inside)
    assert best.auc == pytest.approx(auc(values_N, inside_N), abs=1e-6)
    assert found.outside[0] == ClampGate(
        "decoder", "cell", round(float(values_N[~inside_N].mean()), 3), best.layer, units=(best.unit,)
    )
    assert found.inside[0].value == pytest.approx(values_N[inside_N].mean(), abs=6e-4)
    assert found.sample == "2 passages of the dev part of a book"


def test_each_text_is_what_a_run_of_its_own_draws(recorded: Models) -> None:
    checkpoint, told = recorded.checkpoint("complete"), []
    clamp = followers(checkpoint).outside
    held = closing(checkpoint, untouched(recorded, clamp), progress=lambda done, of: told.append((done, of)))
    drawn = SearchOptions(strategy="sample", temperature=0.8, max_length=WRITTEN)
    for edits, texts in (((), held.free_texts), (clamp, held.held_texts)):
        alone = run(checkpoint, OPEN[:GIVEN], drawn, edits)
        assert texts[0] == OPEN[:GIVEN] + "".join(map(checkpoint.target_text.piece, alone.hypotheses[0].tokens))  # type: ignore[union-attr]
    assert told[-1] == (4, 4) and held.of == 2 and held.free == sum(closes("quotation", text) for text in held.free_texts)
    with pytest.raises(InputError, match="Stopped"):
        closing(checkpoint, untouched(recorded, clamp), cancel=lambda: True)


def untouched(models: Models, edits: tuple[ClampGate, ...] = ()) -> Run:
    return models.run("complete", edits)


def test_what_cannot_be_counted_has_its_sentence(recorded: Models) -> None:
    checkpoint = recorded.checkpoint("complete")
    with pytest.raises(InputError, match="Nothing is held at all steps"):
        closing(checkpoint, untouched(recorded))
    with pytest.raises(InputError, match=r"no recorded passages .* with a comment"):
        followers(checkpoint, "comment")
    with pytest.raises(InputError, match=r"no recorded passages"):
        followers(recorded.checkpoint("translate"))
