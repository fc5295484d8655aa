"""The two doors for hands: what a page asks while something moves, and what takes longer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seqdemo import hub
from seqdemo.ui import launch
from seqdemo.ui.answers import Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.hands import Hands
from seqdemo.ui.service import MOST_PLACES, Service
from tests import tiny
from tests.shared import free_port
from tests.small_hands import INPUTS

TASKS = {"translate": "tiny-translator", "transliterate": "tiny-transliterator", "complete": "tiny-completer"}


@pytest.fixture(scope="module")
def hands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hands]:
    root = tmp_path_factory.mktemp("shipped")
    for task, name in TASKS.items():
        tiny.MAKERS[task](root / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQDEMO_CHECKPOINTS", str(root))
        assert set(hub.names()) == {path.name for path in root.iterdir()}
        yield Hands(Answers(Service(), Catalogue(root), Path(root) / "uploads"))


def message(hands: Hands, task: str, **more: Any) -> dict[str, Any]:
    name = hands.answers.catalogue.names(task)[0]
    column = {"checkpoint": name, "options": {"strategy": "greedy", "max_length": 10}, "edits": more.pop("edits", [])}
    language = {"language": "hi"} if task == "transliterate" else {}
    return {"task": task, "input": {"text": INPUTS[task]}, "column": column, "id": 7, **language, **more}


@pytest.mark.parametrize("task", TASKS)
def test_places_count_from_the_first_piece_after_what_was_given(hands: Hands, task: str) -> None:
    answer = hands.hand(message(hands, task, ask="next", position=1, top=3))
    assert (answer["id"], answer["ask"], answer["position"], len(answer["own"]["bars"])) == (7, "next", 1, 3)
    words = hands.hand(message(hands, task, ask="words", position=1))["words"]
    assert all(word["edit"]["position"] == 1 and word["edit"]["says"].startswith("writes") for word in words)
    best = words[0]["edit"] if words[0]["tokens"][0] != answer["said"]["token"] else words[1]["edit"]
    forced = hands.hand(message(hands, task, ask="next", position=1, edits=[best]))
    assert forced["said"]["token"] == best["tokens"][0], "what was offered can be forced there as it is"
    (badge,) = hands.hand(message(hands, task, ask="badge", edits=[best]))["badges"]
    assert badge["here"] >= 0 and badge["says"]
    json.dumps(forced, allow_nan=False)


def test_of_what_cannot_be_said_the_answer_tells_it(hands: Hands) -> None:
    answer = hands.hand(message(hands, "translate", ask="words", position=0, typed="Жю"))
    assert "no pieces for “Жю”" in answer["error"] and answer["unsayable"]
    assert "unsayable" not in hands.hand(message(hands, "translate", ask="words", position=10_000, typed="a"))


def test_a_path_of_the_tree_can_be_asked_about(hands: Hands) -> None:
    asked = message(hands, "translate", ask="next", position=0, of={"row": 0})
    assert hands.hand(asked)["said"]["token"] == hands.hand({**asked, "of": None})["said"]["token"]
    assert "select it again" in hands.hand({**asked, "of": {"row": 10_000}})["error"]


def test_a_word_that_must_be_said_comes_by_the_same_door(hands: Hands) -> None:
    answer = hands.hand(message(hands, "translate", ask="words", anywhere=True, typed="garden"))
    edit = answer["require"]["edit"]
    found = hands.answers.answer(
        {**message(hands, "translate"), "columns": {"B": message(hands, "translate", edits=[edit])["column"]}}
    )
    assert "garden" in found["columns"]["B"]["hypotheses"][0]["text"].lower()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"ask": "everything"}, "no question 'everything' here; ask one of next, bound, words, badge"),
        ({"ask": "next", "position": 500}, "A place is a whole number from 0 to"),
        ({"ask": "next", "position": 0, "rows": [[1.0]]}, "An attention row for this source has"),
        ({"ask": "next", "position": 0, "rows": [["x"]]}, "An attention row for this source has"),
        ({"ask": "next", "position": 0, "rows": "all"}, "Rows are at most"),
        ({"ask": "next", "position": 0, "top": 1_000}, "top must be a whole number"),
        ({"ask": "words", "position": 0, "typed": "Жю"}, "This model has no pieces for “Жю”"),
        ({"ask": "next", "position": 0, "column": None}, "A column must be a JSON object"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_asked_has_its_sentence(hands: Hands, more: dict[str, Any], says: str) -> None:
    assert says in hands.hand({**message(hands, "translate"), **more})["error"]
    assert "must be a JSON object" in hands.hand("x")["error"]


def test_a_search_that_takes_long_is_not_begun_at_the_short_door(hands: Hands) -> None:
    asked = message(hands, "translate", ask="next", position=0)
    asked["column"]["options"] = {"strategy": "exact", "expansions": 2_000}
    assert "ask again when it is done" in hands.hand(asked)["error"]
    assert "said" in hands.answer(asked, lambda *_: None, lambda: False)
    assert "said" in hands.hand(asked), "its run is remembered"


@pytest.mark.parametrize("task", TASKS)
def test_long_questions_tell_how_far_they_are_and_answer_in_the_words_of_the_page(hands: Hands, task: str) -> None:
    facts: list[tuple[Any, ...]] = []
    ranking = hands.answer(message(hands, task, ask="units", position=0), lambda *told: facts.append(told), lambda: False)
    assert ranking["position"] == 0 and ranking["units"][0]["change"] <= ranking["units"][-1]["change"] and ranking["seconds"] > 0
    assert facts[-1][0] == facts[-1][1]
    held = {**ranking["edit"], "units": [ranking["units"][0]["unit"]]}
    column = message(hands, task, edits=[held])
    answer = hands.answers.answer({**column, "columns": {"B": column["column"]}})["columns"]["B"]
    assert answer["spec"]["edits"][0]["units"] == held["units"] and answer["own_prices"][0]["kind"] == "state"
    gates = hands.answer(message(hands, task, ask="gates"), lambda *_: None, lambda: False)
    assert gates["presets"] and gates["gates"][0]["shut"]
    assert (
        "There is no recorded sample"
        in hands.answer(message(hands, task, ask="gates", over="sample"), print, lambda: False)["error"]
    )
    json.dumps([ranking, gates], allow_nan=False)


def test_a_long_question_can_be_stopped(hands: Hands) -> None:
    asked = message(hands, "translate", ask="units", position=0)
    assert hands.answer(asked, lambda *_: None, lambda: True)["error"].startswith("Stopped")


def test_a_strip_shows_its_frames_as_they_come(hands: Hands) -> None:
    facts: list[tuple[Any, ...]] = []
    asked = message(hands, "translate", ask="strip", along="dimmer", towards="last")
    strip = hands.answer(asked, lambda *told: facts.append(told), lambda: False)
    shown = [more["frames"] for _, _, more in (told for told in facts if len(told) == 3)]
    assert [len(frames) for frames in shown] == [1, 2, 3, 4, 5] and shown[-1][-1]["text"] == strip["frames"][-1]["text"]
    edit = strip["frames"][-1]["edits"][0]
    assert edit["kind"] == "AttentionBlend" and edit["says"] == "attention 100 % towards the last state"
    column = message(hands, "translate", edits=[edit])
    answer = hands.answers.answer({**column, "columns": {"B": column["column"]}})["columns"]["B"]
    assert answer["hypotheses"][0]["text"] == strip["frames"][-1]["text"]
    beams = hands.answer(message(hands, "translate", ask="strip", along="beam", wanted="The dog."), print, lambda: False)
    assert beams["pool"] and beams["wanted"]["logp"] < 0 and [frame["label"] for frame in beams["frames"]][-1] == "exact"
    assert "A strip goes along" in hands.answer(message(hands, "translate", ask="strip"), print, lambda: False)["error"]
    json.dumps([strip, beams], allow_nan=False)


@pytest.mark.parametrize("task", TASKS)
def test_what_would_make_it_say_a_word_can_be_applied_as_it_is_told(hands: Hands, task: str) -> None:
    bars = hands.hand(message(hands, task, ask="next", position=1))["own"]["bars"]
    said = hands.hand(message(hands, task, ask="next", position=1))["said"]["token"]
    other = next(bar for bar in bars if bar["token"] != said and bar["token"] > 3)
    facts: list[tuple[Any, ...]] = []
    asked = message(hands, task, ask="cheapest", position=1, pieces=[other["piece"]])
    answer = hands.answer(asked, lambda *told: facts.append(told), lambda: False)
    assert answer["position"] == 1 and answer["word"]["tokens"] == [other["token"]] and len(facts[-1][2]["ways"]) == 5
    for way in (way for way in answer["ways"] if way["found"]):
        column = message(hands, task, edits=way["edits"])
        b = hands.answers.answer({**column, "columns": {"B": column["column"]}})["columns"]["B"]
        assert b["hypotheses"][0]["text"] == way["text"]
        price = b["prices"][0] if len(way["edits"]) > 1 else b["own_prices"][0]
        assert price["change"] == pytest.approx(way["price"]["change"], abs=1e-9)
    assert "no pieces for “Жю”" in hands.answer({**asked, "pieces": None, "word": "Жю"}, print, lambda: False)["error"]
    assert "numbers of pieces" in hands.answer({**asked, "pieces": None, "tokens": []}, print, lambda: False)["error"]
    json.dumps(answer, allow_nan=False)


def test_units_that_follow_a_quotation_come_by_the_same_door(
    hands: Hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {
        "title": "9 characters of a book",
        "text": "",
        "passages": {"quotation": ['"the dog sings in the garden" said the man'] * 2},
    }
    told = {"format": 1, "texts": {f"complete:{TASKS['complete']}": known}}
    (tmp_path / "sample.json").write_text(json.dumps(told), "utf-8")
    monkeypatch.setattr("seqdemo.hands.tracking.shipped_folder", lambda: tmp_path)
    found = hands.answer(message(hands, "complete", ask="followers"), print, lambda: False)
    assert found["place"] == "quotation" and found["outside"][0]["says"].startswith("cell state")
    facts: list[tuple[Any, ...]] = []
    asked = message(hands, "complete", ask="closing", edits=found["outside"])
    count = hands.answer(asked, lambda *told: facts.append(told), lambda: False)
    assert count["of"] == 2 and 0 <= count["held"] <= 2 and facts[-1][:2] == (4, 4)
    assert "Nothing is held" in hands.answer(message(hands, "complete", ask="closing"), print, lambda: False)["error"]
    assert "with a comment" in hands.answer({**asked, "place": "comment"}, print, lambda: False)["error"]


@pytest.fixture(scope="module")
def client(hands: Hands) -> Iterator[Any]:
    from gradio_client import Client

    app = launch.build(hands.answers.service, catalogue=hands.answers.catalogue)
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True)
    yield Client(address, verbose=False)
    app.close()


def test_programs_ask_the_same_in_whole_texts(client: Any) -> None:
    text, given = INPUTS["complete"], len(INPUTS["complete"])
    options = {"strategy": "beam", "max_length": 8}
    asked: dict[str, Any] = {"text": text, "task": "complete", "options": options}
    told = client.predict(**asked, api_name="/next_word")
    assert told["position"] == given and told["own"]["bars"][0]["p"] > 0 and told["checkpoint"] == "tiny-completer"
    words = client.predict(**asked, typed="s", api_name="/words")["words"]
    assert all(word["edit"]["position"] == given and word["text"].startswith("s") for word in words)
    forced = client.predict(**asked, edits=[words[0]["edit"]], api_name="/next_word")
    assert forced["said"]["token"] == words[0]["tokens"][0]
    ranking = client.predict(**asked, position=given + 1, layer=1, steps=2, api_name="/rank_units")
    assert len(ranking["units"]) == 24 and ranking["edit"]["positions"] == [given, given + 1]
    assert client.predict(**asked, api_name="/gates")["presets"][0]["name"] == "forget everything"
    assert client.predict(**asked, along="precision", api_name="/sweep")["frames"][2]["label"] == "int8"
    ways = client.predict(**asked, position=given + 1, word="s", api_name="/cheapest")["ways"]
    assert ways[-1]["edits"][0]["position"] == given + 1
    with pytest.raises(Exception, match="no attention to edit"):
        client.predict(**asked, api_name="/row_bound")
    with pytest.raises(Exception, match="There is no option 'width'"):
        client.predict("Der hund.", options={"width": 5}, api_name="/gates")
    with pytest.raises(Exception, match=f"A place is a whole number from {given} to"):
        client.predict(**asked, position=0, api_name="/next_word")
    bound = client.predict("Der hund singt.", position=1, api_name="/row_bound")
    assert bound["least"] <= bound["own"] <= 1 and bound["says"]


def test_places_are_kept_with_their_run_and_leave_with_it(hands: Hands) -> None:
    service = hands.answers.service
    service.runs.clear()
    for _ in range(2):
        for position in range(3):
            hands.hand(message(hands, "complete", ask="next", position=position))
    (found,) = service.runs.values()
    kept = dict(found.places)
    assert len(kept) == 3 and hands.hand(message(hands, "complete", ask="next", position=0)) and dict(found.places) == kept
    for position in range(len(found.run.hypotheses[0].tokens)):
        hands.hand(message(hands, "complete", ask="next", position=position))
    assert len(found.places) <= MOST_PLACES
