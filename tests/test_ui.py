"""The app without a browser: checks, payloads, answers, the catalogue, the endpoints."""

from __future__ import annotations

import base64
import json
import logging
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.config import SearchOptions
from seqdemo.edits import EDITS, AttentionBlend, AttentionRow, Ban, ClampGate, Force, edit_to_json
from seqdemo.errors import InputError
from seqdemo.figures.payloads import memory_only, packed, packed_bytes, trace_payload, tree_payload
from seqdemo.ui import assets, checks, fields, launch, pages
from seqdemo.ui.answers import FAULT, Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.component import packed_value
from seqdemo.ui.early import drawn_early
from tests import fixtures_records as toy
from tests.toy_app import ToyService, toy_app, write_cards

HOSTILE = ["${1+1}", "{{x}}", "<img src=x onerror=alert(1)>", "\x00", "\ud800", "\u202eabc", "e\u0301" * 50, "ก็็็็็็็็็็"]


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    write_cards(tmp_path)
    return Answers(ToyService(), Catalogue(tmp_path), tmp_path / "uploads")  # type: ignore[arg-type]


def question(text: str = "Das gefällt mir.", **spec: Any) -> dict[str, Any]:
    column = {"checkpoint": "translator-de-en", "options": fields.starting_options(), "edits": [], **spec}
    return {"seq": 3, "task": "translate", "input": {"text": text}, "columns": {"A": column}}


# ---------------------------------------------------------------------------------------------------------------- payloads


@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=40))
def test_bytes_hold_a_value_within_half_a_step(values: list[float]) -> None:
    array = np.array(values, dtype="float32")[None]
    held = packed_bytes(array)
    back = np.frombuffer(base64.b64decode(held["base64"]), "int8").reshape(held["shape"]) * held["scale"]
    assert np.abs(back - array).max() <= held["scale"] / 2 + 1e-6


def test_infinities_become_numbers_json_can_hold() -> None:
    held = packed(np.array([-np.inf, np.nan, 1.0]), "float32")
    assert np.isfinite(np.frombuffer(base64.b64decode(held["base64"]), "float32")).all()


def test_a_tree_travels_whole() -> None:
    tree, _ = toy.beam(toy.Toy.of("x"), SearchOptions(beam=4))
    payload = tree_payload(tree, toy.PIECES.__getitem__)
    for name in ("parent", "token", "fate", "total"):
        held = payload[name]
        values = np.frombuffer(base64.b64decode(held["base64"]), held["dtype"])
        assert np.allclose(values, getattr(tree, name))
    assert dict(payload["pieces"]) == {int(token): toy.PIECES[token] for token in np.unique(tree.token)}


def test_memory_is_the_cell_or_else_the_hidden_state() -> None:
    gates = {name: np.zeros((1, 1)) for name in ("decoder.0.cell", "decoder.0.hidden", "decoder.1.hidden", "decoder.1.update")}
    assert set(memory_only(gates)) == {"decoder.0.cell", "decoder.1.hidden"}


def test_gates_travel_only_when_asked_for() -> None:
    model = toy.Toy.of("x")
    _, found = toy.beam(model, SearchOptions())
    trace = toy.replay(model, ("x",), found[0].tokens)
    assert trace_payload(trace, found[0].tokens)["gates"] is None
    assert set(trace_payload(trace, found[0].tokens, "all")["gates"]) == set(trace.gates)
    assert all(name.endswith("cell") for name in trace_payload(trace, found[0].tokens, "memory")["gates"])


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_survives_the_way_to_the_page(text: str) -> None:
    value = packed_value({"text": text}, 1)
    assert value["body"].isascii()
    assert json.loads(value["body"]) == {"text": text}


# ------------------------------------------------------------------------------------------------------------------ checks


def test_text_is_bounded_and_cleaned() -> None:
    assert checks.text_of("a\x00b\ud800c") == "a\ufffdb\ufffdc"
    assert checks.text_of("e\u0301") == "é"
    with pytest.raises(InputError, match=r"100,000 characters.*up to 1,000"):
        checks.text_of("x" * 100_000)
    for wrong in (None, 3, ["a"], {"a": 1}):
        with pytest.raises(InputError):
            checks.text_of(wrong)


WRONG_NUMBERS = (float("nan"), float("inf"), -1, 10**12, "5", None, True, [5], {"a": 1})


@pytest.mark.parametrize("name", [field["name"] for field in fields.FIELDS if "min" in field])
@pytest.mark.parametrize("wrong", WRONG_NUMBERS, ids=str)
def test_no_option_takes_a_wrong_number(name: str, wrong: Any) -> None:
    strategy = next(field["for"] for field in fields.FIELDS if field["name"] == name)[0]
    with pytest.raises(InputError):
        checks.options_of(fields.starting_options(strategy=strategy, **{name: wrong}))


def test_a_leftover_of_another_strategy_changes_nothing() -> None:
    greedy = checks.options_of(fields.starting_options(strategy="greedy", temperature=float("nan"), beam="x", coverage=9))
    assert greedy == SearchOptions(strategy="greedy")


def test_every_option_of_the_library_has_a_control() -> None:
    assert set(vars(SearchOptions())) == {"strategy", *(field["name"] for field in fields.FIELDS)}


def test_the_controls_start_with_the_library_s_defaults() -> None:
    assert checks.options_of(fields.starting_options()) == SearchOptions()


EDIT_EXAMPLES = (
    Force(0, (4, 5)),
    Ban(2, (7,)),
    AttentionRow(1, (0.2, 0.8)),
    AttentionBlend(0.5, "last", (0, 1)),
    ClampGate("decoder", "forget", 0.0, 0, "forward", (1, 2), None),
    ClampGate("encoder", "input", "mean", 0, "backward"),
    ClampGate("decoder", "output", (0.1, 0.9)),
)


@pytest.mark.parametrize("edit", EDIT_EXAMPLES, ids=lambda edit: type(edit).__name__)
def test_every_edit_comes_back_from_json(edit: Any) -> None:
    assert checks.edit_of(json.loads(json.dumps(edit_to_json(edit)))) == edit


@pytest.mark.parametrize("kind", list(EDITS))
@pytest.mark.parametrize("wrong", [{}, {"position": -1}, {"position": 0, "tokens": []}, {"factor": 2}, {"weights": [math.nan]}])
def test_no_edit_takes_nonsense(kind: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        checks.edit_of({"kind": kind, **wrong})


def test_only_an_upload_in_the_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "photo.png").write_bytes(b"x")
    (tmp_path / "secret").write_text("s")
    (folder / "link").symlink_to(tmp_path / "secret")
    assert checks.upload_of(str(folder / "photo.png"), folder) == (folder / "photo.png").resolve()
    outside = ("/etc/passwd", str(folder / ".." / "secret"), str(folder / "link"), str(folder / "gone.png"), str(folder))
    for wrong in (*outside, "a\x00b", 5):
        with pytest.raises(InputError):
            checks.upload_of(wrong, folder)


# ----------------------------------------------------------------------------------------------------------------- answers


def test_an_answer_holds_what_was_asked(answers: Answers) -> None:
    told = answers.answer(question())
    column = told["columns"]["A"]
    assert column["spec"]["checkpoint"] == "translator-de-en"
    best = column["hypotheses"][0]
    assert best["total"] == pytest.approx(sum(best["logps"]))
    assert column["trace"]["tokens"] == best["tokens"]
    assert json.loads(packed_value(told)["body"])["columns"].keys() == {"A"}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_answered_as_text(answers: Answers, text: str) -> None:
    column = answers.answer(question(text))["columns"]["A"]
    assert "error" not in column
    json.dumps(column).encode("ascii")


def test_too_much_text_gets_a_sentence(answers: Answers) -> None:
    assert "100,000 characters" in answers.answer(question("x" * 100_000))["columns"]["A"]["error"]


@pytest.mark.parametrize(
    "message",
    [None, [], 7, "x", {}, {"task": "evil"}, {"task": "translate", "columns": []}, {"task": "translate", "columns": {"A": 3}}],
    ids=str,
)
def test_nonsense_is_answered_with_a_sentence(answers: Answers, message: Any) -> None:
    told = answers.answer(message)
    errors = [told.get("error", ""), *(column.get("error", "") for column in told.get("columns", {}).values())]
    assert any(errors) or told == {"columns": {}, "traces": {}}


def test_a_fault_is_logged_and_told_without_details(answers: Answers, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("secret path /home/x")

    answers.service.run = broken  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR):
        assert answers.answer(question())["columns"]["A"] == {"error": FAULT}
    assert "secret path" in caplog.text


def test_a_model_that_is_not_offered_is_refused(answers: Answers) -> None:
    for name in ("transliterator", "../translator-de-en", "user/model@" + "a" * 40, "user/model", 5):
        assert "is not loaded here" in answers.answer(question(checkpoint=name))["columns"]["A"]["error"]


def test_a_replay_follows_the_path_asked_for(answers: Answers) -> None:
    asked = question()
    tokens = answers.answer(asked)["columns"]["A"]["hypotheses"][-1]["tokens"]
    asked["replays"] = {"A": {**asked["columns"]["A"], "tokens": tokens}}
    asked["columns"] = {}
    told = answers.answer(asked)
    assert told["traces"]["A"]["asked"] == tokens and told["columns"] == {}


def test_words_forced_on_a_continuation_count_from_where_the_model_begins(answers: Answers) -> None:
    asked: list[Any] = []
    run = answers.service.run
    answers.service.run = lambda question, *more: asked.append(question) or run(question, *more)  # type: ignore
    force = edit_to_json(Force(1, (5,)))
    blend = edit_to_json(AttentionBlend(0.5))
    column = {"checkpoint": "letters-english", "options": fields.starting_options(), "edits": [force, blend]}
    answers.answer({"task": "complete", "input": {"text": "abcd"}, "columns": {"B": column}})
    assert asked[0].edits == (Force(5, (5,)), AttentionBlend(0.5))
    answers.answer(question(edits=[force]))
    assert asked[-1].edits == (Force(1, (5,)),)


@pytest.mark.parametrize("seq", [None, "5", True, 2**60, {"a": 1}])
def test_a_sequence_number_is_a_number(seq: Any) -> None:
    assert pages.sequence_of({"seq": seq}) == 0
    assert pages.sequence_of({"seq": 41}) == 41


def test_closing_the_stream_stops_the_work_within_a_second() -> None:
    started, stopped = threading.Event(), threading.Event()

    def work(progress: Any, cancel: Any) -> dict[str, Any]:
        for count in range(1000):
            started.set()
            progress(count, -3.0, -1.0)
            if cancel():
                stopped.set()
                return {}
            time.sleep(0.01)
        return {"answer": 1}

    stream = pages.in_background(work)
    told = next(stream)
    assert "prefixes followed" in told["progress"]
    before = time.monotonic()
    stream.close()  # type: ignore[attr-defined]
    assert stopped.is_set() and time.monotonic() - before < 1


def test_work_on_the_side_hands_its_answer_over() -> None:
    assert list(pages.in_background(lambda progress, cancel: {"answer": 1})) == [{"answer": 1}]


# --------------------------------------------------------------------------------------------------------------- the whole


def test_nothing_heavy_is_imported_before_a_question() -> None:
    heavy = ("torch", "sentencepiece", "plotly")
    code = f"import sys, seqdemo.ui.launch; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr[-500:]


def test_a_document_carries_sheet_and_scripts_and_nothing_else_is_touched(client: Any) -> None:
    import httpx

    root = client.src.rstrip("/")
    answer = httpx.get(root + "/caption")
    head, body = answer.text.split("</head>", 1)
    assert assets.head() in head and body.count("seqdemo.early()") == 1
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert httpx.get(root + "/config").json()["components"]
    for document in (b"<html></html>", b"", b"<gradio-app></gradio-app>"):
        assert drawn_early(document) == document


def test_a_busy_port_is_said_aloud(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        busy = holder.getsockname()[1]
        port = launch.free_port("127.0.0.1", busy)
    assert port > busy
    assert f"Port {busy} is busy; taking {port}." in capsys.readouterr().out


@pytest.fixture(scope="module")
def served_toy() -> ToyService:
    return ToyService()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, served_toy: ToyService) -> Iterator[Any]:
    from gradio_client import Client

    app, _ = toy_app(tmp_path_factory.mktemp("cards"), service=served_toy)
    _, address, _ = launch.launch(app, prevent_thread_lock=True, quiet=True)
    yield Client(address, verbose=False)
    app.close()


def test_programs_see_six_typed_endpoints(client: Any) -> None:
    listed = client.view_api(return_format="dict")["named_endpoints"]
    assert set(listed) == {"/translate", "/transliterate", "/caption", "/complete", "/score", "/trace"}
    names = [parameter["parameter_name"] for parameter in listed["/translate"]["parameters"]]
    assert names[0] == "text" and set(vars(SearchOptions())) <= set(names)
    assert listed["/translate"]["parameters"][0]["parameter_has_default"] is False


def test_an_endpoint_answers_as_the_page_does(client: Any, answers: Answers) -> None:
    told = client.predict("Das gefällt mir.", beam=3, api_name="/translate")
    options = fields.starting_options(beam=3)
    page = answers.answer(question(options=options))["columns"]["A"]
    assert told["hypotheses"] == page["hypotheses"]


def test_a_score_adds_up(client: Any) -> None:
    told = client.predict("Das gefällt mir.", "I like it", api_name="/score")
    assert told["pieces"] == ["▁I", "▁like", "▁it", "<eos>"]
    assert told["total"] == pytest.approx(sum(told["logps"]))


def test_a_trace_comes_back_as_the_library_s_record(client: Any) -> None:
    from seqdemo.records import Trace, from_json

    told = client.predict("Das gefällt mir.", strategy="greedy", api_name="/trace")
    told.pop("checkpoint")
    trace = from_json(told)
    assert isinstance(trace, Trace) and trace.attention is not None
    assert trace.attention.sum(1) == pytest.approx(np.ones(len(trace.tokens)), abs=1e-5)


def test_a_program_s_mistake_is_a_sentence(client: Any) -> None:
    with pytest.raises(Exception, match="Beam size must be a number from 1 to 100"):
        client.predict("Das", beam=1000, api_name="/translate")
    with pytest.raises(Exception, match="up to 1,000"):
        client.predict("x" * 5000, api_name="/translate")


def test_a_program_s_exact_search_tells_its_progress_and_stops(client: Any, served_toy: ToyService) -> None:
    served_toy.cancelled.clear()
    job = client.submit("Das gefällt mir.", strategy="exact", api_name="/translate")
    while not job.outputs():
        time.sleep(0.05)
    assert "prefixes followed" in job.outputs()[0]["progress"]
    assert job.cancel()
    assert served_toy.cancelled.wait(10)


def test_the_server_gives_no_file_and_no_monitor_away(client: Any) -> None:
    import httpx

    root = client.src.rstrip("/")
    files = [f"/gradio_api/file={path}" for path in ("/etc/passwd", Path(__file__).resolve())]
    for path in (*files, "/monitoring", "/gradio_api/monitoring"):
        assert httpx.get(root + path).status_code in (403, 404), path
    assert "access-control-allow-origin" not in httpx.get(root + "/config", headers={"origin": "https://evil.example"}).headers
