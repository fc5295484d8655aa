"""The app without a browser: checks, payloads, answers, the catalogue, the endpoints."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import gradio as gr
import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqdemo.config import TOLERANCE, ModelConfig, SearchOptions
from seqdemo.edits import EDITS, AttentionBlend, AttentionRow, Ban, ClampGate, Force, check_edits, edit_from_json, edit_to_json
from seqdemo.errors import InputError
from seqdemo.figures.payloads import memory_only, packed, packed_bytes, trace_payload, tree_payload
from seqdemo.ui import api, assets, fields, launch, pages
from seqdemo.ui.answers import FAULT, Answers, options_of, text_of, upload_of
from seqdemo.ui.api_hands import HANDS
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.component import packed_value, queue_health
from seqdemo.ui.early import drawn_early
from seqdemo.ui.service import Question, Service
from tests import fixtures_records as toy
from tests.shared import PATIENCE, free_port
from tests.toy_app import ToyService, toy_app, write_cards

HOSTILE = ["${1+1}", "{{x}}", "<img src=x onerror=alert(1)>", "\x00", "\ud800", "\u202eabc", "e\u0301" * 50, "ก็็็็็็็็็็"]


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    write_cards(tmp_path)
    return Answers(ToyService(), Catalogue(tmp_path), tmp_path / "uploads")  # type: ignore[arg-type]


def get(address: str, **more: Any) -> httpx.Response:
    return httpx.get(address, timeout=PATIENCE, **more)


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


def test_a_short_question_is_answered_past_the_queue_and_a_long_one_is_not_begun_there(answers: Answers) -> None:
    door = pages.short_door(answers)

    def short(asked: Any) -> dict[str, Any]:  # in a thread of its own: a browser of other tests may have a loop in this one
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, door(asked)).result()

    told = short({**question(), "seq": 7})
    assert told["seq"] == 7 and json.loads(told["body"])["columns"]["A"]["hypotheses"]
    long = {**question(), "columns": {"A": {"checkpoint": "translator-de-en", "options": {"strategy": "exact"}}}, "seq": 8}
    refused = short(long)
    assert refused["seq"] == 8 and "through the queue" in json.loads(refused["body"])["error"]
    for nonsense in (None, 7, [], {"columns": 3}):
        assert json.loads(short(nonsense)["body"])["error"]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_survives_the_way_to_the_page(text: str) -> None:
    value = packed_value({"text": text}, 1)
    assert value["body"].isascii()
    assert json.loads(value["body"]) == {"text": text}


# ------------------------------------------------------------------------------------------------------------------ checks


def test_text_is_bounded_and_cleaned() -> None:
    assert text_of("a\x00b\ud800c") == "a\ufffdb\ufffdc"
    assert text_of("e\u0301") == "é"
    with pytest.raises(InputError, match=r"100,000 characters.*up to 1,000"):
        text_of("x" * 100_000)
    for wrong in (None, 3, ["a"], {"a": 1}):
        with pytest.raises(InputError):
            text_of(wrong)


WRONG_NUMBERS = (float("nan"), float("inf"), -1, 10**12, "5", None, True, [5], {"a": 1})


@pytest.mark.parametrize("name", [field["name"] for field in fields.FIELDS if "min" in field])
@pytest.mark.parametrize("wrong", WRONG_NUMBERS, ids=str)
def test_no_option_takes_a_wrong_number(name: str, wrong: Any) -> None:
    strategy = next(field["for"] for field in fields.FIELDS if field["name"] == name)[0]
    with pytest.raises(InputError):
        options_of(fields.starting_options(strategy=strategy, **{name: wrong}))


def test_a_leftover_of_another_strategy_changes_nothing() -> None:
    greedy = options_of(fields.starting_options(strategy="greedy", temperature=float("nan"), beam="x", coverage=9))
    assert greedy == SearchOptions(strategy="greedy")


def test_every_option_of_the_library_has_a_control() -> None:
    assert set(vars(SearchOptions())) == {"strategy", *fields.LISTS, *(field["name"] for field in fields.FIELDS)}


def test_the_controls_start_with_the_library_s_defaults() -> None:
    assert options_of(fields.starting_options()) == SearchOptions()


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
    assert edit_from_json(json.loads(json.dumps(edit_to_json(edit)))) == edit


@pytest.mark.parametrize("kind", list(EDITS))
@pytest.mark.parametrize("wrong", [{}, {"position": -1}, {"position": 0, "tokens": []}, {"factor": 2}, {"weights": [math.nan]}])
def test_no_edit_takes_nonsense(kind: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        check_edits((edit_from_json({"kind": kind, **wrong}),), ModelConfig(30, 30), 5, 9)


def test_only_an_upload_in_the_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "photo.png").write_bytes(b"x")
    (tmp_path / "secret").write_text("s")
    (folder / "link").symlink_to(tmp_path / "secret")
    assert upload_of(str(folder / "photo.png"), folder) == (folder / "photo.png").resolve()
    outside = ("/etc/passwd", str(folder / ".." / "secret"), str(folder / "link"), str(folder / "gone.png"), str(folder))
    for wrong in (*outside, "a\x00b", 5):
        with pytest.raises(InputError):
            upload_of(wrong, folder)


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


@pytest.mark.parametrize("by", ["row", "output"])
def test_a_replay_follows_the_path_asked_for(answers: Answers, by: str) -> None:
    asked = question()
    outputs = answers.answer(asked)["columns"]["A"]["hypotheses"]
    selection = {"row": outputs[-1]["node"]} if by == "row" else {"output": len(outputs) - 1}
    replays = {"A": {**asked["columns"]["A"], **selection}}
    told = answers.answer({**asked, "columns": {}, "replays": replays})
    assert told["traces"]["A"]["asked"] == outputs[-1]["tokens"] and told["columns"] == {}


@pytest.mark.parametrize("selection", [{}, {"row": -1}, {"row": 10**6}, {"row": "1"}, {"row": True}, {"output": 99}])
def test_a_selection_that_the_search_does_not_hold_gets_a_sentence(answers: Answers, selection: dict[str, Any]) -> None:
    asked = question()
    told = answers.answer({**asked, "columns": {}, "replays": {"A": {**asked["columns"]["A"], **selection}}})
    assert told["traces"]["A"]["error"].startswith("What was selected is not in this search")


def test_edits_travel_as_pieces_and_come_back_with_their_sentence(answers: Answers) -> None:
    """Two vocabularies number the same letter differently; the letter stays the same."""
    force = {"kind": "Force", "position": 0, "pieces": ["▁like", "▁it"]}
    ban = {"kind": "Ban", "position": 2, "pieces": ["<eos>"]}
    blend = {"kind": "AttentionBlend", "factor": 0.5, "towards": "last"}
    column = answers.answer(question(edits=[force, ban, blend]))["columns"]["A"]
    told = column["spec"]["edits"]
    assert [edit.get("pieces") for edit in told] == [["▁like", "▁it"], ["<eos>"], None]
    assert [edit["says"] for edit in told] == [
        "starts with “like it”",
        "never writes the end from piece 3 on",
        "attention 50 % towards the last state",
    ]
    assert column["hypotheses"][0]["pieces"][:2] == ["▁like", "▁it"]


def test_a_piece_that_the_other_model_does_not_have_is_named(answers: Answers) -> None:
    told = answers.answer(question(edits=[{"kind": "Force", "position": 0, "pieces": ["न"]}]))
    assert "no piece “न”" in told["columns"]["A"]["error"] and "choose another model" in told["columns"]["A"]["error"]


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
    assert [one.edits for one in asked if one.edits][-1] == (Force(1, (5,)),)


def test_an_edited_column_tells_what_it_writes_without_its_edits(answers: Answers) -> None:
    force = {"kind": "Force", "position": 0, "pieces": ["▁like", "▁it"]}
    plain, edited = (answers.answer(question(edits=edits))["columns"]["A"] for edits in ([], [force]))
    assert edited["own"] == plain["hypotheses"][0] != edited["hypotheses"][0]
    assert "own" not in plain


@pytest.mark.parametrize("seq", [None, "5", True, 2**60, {"a": 1}])
def test_a_sequence_number_is_a_number(seq: Any) -> None:
    assert pages.sequence_of({"seq": seq}) == 0
    assert pages.sequence_of({"seq": 41}) == 41


def test_closing_the_stream_stops_the_work() -> None:
    stopped = threading.Event()

    def work(progress: Any, cancel: Any) -> dict[str, Any]:
        for count in range(100_000):
            progress(count, -3.0, -1.0)
            if cancel():
                stopped.set()
                return {}
            time.sleep(0.01)
        return {"answer": 1}

    stream = pages.in_background(work)
    assert any("prefixes followed" in told.get("progress", "") for told in stream)
    stream.close()  # type: ignore[attr-defined]
    assert stopped.wait(PATIENCE)  # of the quarter of an hour that the work would take


def test_work_on_the_side_hands_its_answer_over() -> None:
    assert list(pages.in_background(lambda progress, cancel: {"answer": 1})) == [{"answer": 1}]


# --------------------------------------------------------------------------------------------------------------- the whole


def test_nothing_heavy_is_imported_before_a_question() -> None:
    heavy = ("torch", "sentencepiece", "plotly")
    code = f"import sys, seqdemo.ui.launch; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.strip() == "[]", done.stderr[-500:]


def test_a_document_asks_for_sheet_and_scripts_and_nothing_else_is_touched(client: Any) -> None:
    root = client.src.rstrip("/")
    answer = get(root + "/caption")
    head, body = answer.text.split("</head>", 1)
    assert assets.tags("js") in head and assets.tags("css") in head and body.count("seqdemo.early()") == 1
    assert "assets/index-" in body.split("seqdemo.early()")[1], "Gradio's own script is asked for after the first drawing"
    assert 'type="module"' not in answer.text
    assert answer.headers["content-encoding"] == "gzip" and int(answer.headers["content-length"]) == answer.num_bytes_downloaded
    assert answer.content == get(root + "/caption", headers={"accept-encoding": "identity"}).content
    assert get(root + "/config").json()["components"]
    for document in (b"<html></html>", b"", b"<gradio-app></gradio-app>"):
        assert drawn_early(document) == document


def test_scripts_and_sheets_are_small_compressed_and_kept_for_ever(client: Any) -> None:
    root = client.src.rstrip("/")
    for name, asset in assets.pages().items():
        address = f"{root}/{assets.FOLDER}/{name}"
        for codings, sent in (("gzip, deflate, br, zstd", "br"), ("gzip, deflate", "gzip"), ("identity", None)):
            answer = get(address, headers={"accept-encoding": codings})
            assert answer.headers.get("content-encoding") == sent and answer.content == asset.body
            assert "immutable" in answer.headers["cache-control"]
        assert len(assets.packed(asset, "br")) < 80_000
        assert assets.asset("pages", name.rsplit(".")[-1], asset.kind, asset.body.decode()).name == name
        assert assets.asset("pages", name.rsplit(".")[-1], asset.kind, asset.body.decode() + " ").name != name
    assert "immutable" not in get(f"{root}/{assets.FOLDER}/pages-0.js").headers.get("cache-control", "")


def test_a_busy_port_is_said_aloud(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        busy = holder.getsockname()[1]
        port = launch.free_port("127.0.0.1", busy)
    assert port > busy
    assert f"Port {busy} is busy; taking {port}." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("127.0.0.1", 99_999, "A port is a number from 1 to 65,535, not 99999"),
        ("127.0.0.1", -5, "not -5"),
        ("192.0.2.1", 7999, "192.0.2.1 is not an address of this machine"),
    ],
)
def test_an_address_that_cannot_be_listened_on_has_its_sentence(host: str, port: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        launch.free_port(host, port)


@pytest.fixture(scope="module")
def served_toy() -> ToyService:
    return ToyService()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, served_toy: ToyService) -> Iterator[Any]:
    from gradio_client import Client

    app, _ = toy_app(tmp_path_factory.mktemp("cards"), service=served_toy)
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True)
    yield Client(address, verbose=False)
    app.close()


def test_programs_see_typed_endpoints(client: Any) -> None:
    listed = client.view_api(return_format="dict")["named_endpoints"]
    decoding = {"/translate", "/transliterate", "/caption", "/complete", "/score", "/trace"}
    assert set(listed) == decoding | {f"/{name}" for name in HANDS}
    names = [parameter["parameter_name"] for parameter in listed["/translate"]["parameters"]]
    assert names[0] == "text" and set(vars(SearchOptions())) <= set(names)
    assert listed["/translate"]["parameters"][0]["parameter_has_default"] is False


def test_every_parameter_is_described_with_its_values_and_default() -> None:
    parameters = [api.TEXT["translate"], api.CHECKPOINT, api.TO, *api.option_parameters()]
    about = api.typed("translate", "Do it.", parameters, "What came of it.", lambda *_: {}).__doc__ or ""
    assert about.startswith("Do it.\n\nArgs:\n") and about.endswith("Returns:\n    What came of it.")
    assert all(f"    {each.name}: {each.about}" in about and len(each.about) >= 16 for each in parameters)
    beam = next(each for each in parameters if each.name == "beam")
    assert "From 1 to 100." in beam.about and beam.default == SearchOptions().beam


def test_an_agent_sees_what_each_parameter_means(client: Any) -> None:
    listed = get(client.src.rstrip("/") + "/gradio_api/info").json()["named_endpoints"]
    assert listed["/translate"]["description"].startswith("Translate a sentence.")
    beam = next(each for each in listed["/translate"]["parameters"] if each["parameter_name"] == "beam")
    assert beam["label"] == "beam" and "From 1 to 100." in beam["type"]["description"]
    for endpoint in listed.values():
        assert all(each["type"]["description"] for each in endpoint["parameters"])


def test_the_page_of_the_endpoints_opens_from_every_page(client: Any) -> None:
    config = get(client.src.rstrip("/") + "/config").json()
    assert "api" in config["footer_links"]


@pytest.mark.parametrize(
    "path, title", [("/", "What does a translator"), ("/caption", "What does the network see"), ("/x/models", "The models")]
)
def test_a_shared_link_shows_the_project_s_own_words(path: str, title: str) -> None:
    document = (
        b'<head><meta property="og:title" content="Gradio" /><meta\n name="twitter:image" content="x" /></head><gradio-app>'
    )
    shown = drawn_early(document, path, "https://example.org/x").decode()
    assert 'content="Gradio"' not in shown and "twitter:image" not in shown
    picture = re.search(
        r'property="og:image" content="https://example.org/x/(seqdemo-assets/(picture-[0-9a-f]{16}[.]jpg))"', shown
    )
    assert picture and assets.served(picture[2])
    assert shown.count("og:title") == 2 and f'content="seqdemo: {title}' in shown


def test_a_page_brings_its_own_icon() -> None:
    shown = drawn_early(b"<head></head><gradio-app>").decode()
    (icon,) = re.findall('<link rel="icon" [^>]*href="data:image/svg[+]xml,([^"]+)"', shown)
    assert len(ElementTree.fromstring(unquote(icon))) == 9


def test_a_program_must_say_which_language_it_wants(client: Any) -> None:
    with pytest.raises(Exception, match="transliterator writes several languages; say which in `to`: one of hi, ur"):
        client.predict("dilli", api_name="/transliterate")
    assert client.predict("dilli", to="hi", api_name="/transliterate")["text"]


def test_an_endpoint_answers_as_the_page_does(client: Any, answers: Answers) -> None:
    told = client.predict("Das gefällt mir.", beam=3, api_name="/translate")
    options = fields.starting_options(beam=3)
    page = answers.answer(question(options=options))["columns"]["A"]
    assert told["hypotheses"] == page["hypotheses"]  # the names of earlier versions
    for output, shown in zip(told["outputs"], page["hypotheses"]):
        assert output["logp"] == shown["total"] == pytest.approx(sum(output["logps"]))
        assert all(output[name] == shown[name] for name in ("text", "tokens", "pieces", "logps", "score", "finished"))


def test_a_program_may_ask_in_another_precision(client: Any) -> None:
    told = client.predict("Das gefällt mir.", precision="int8", api_name="/translate")
    assert (told["precision"], told["tolerance"]) == ("int8", TOLERANCE["int8"])
    usual = client.predict("Das gefällt mir.", api_name="/translate")
    assert (usual["precision"], usual["tolerance"]) == ("float32", TOLERANCE["float32"])
    with pytest.raises(Exception, match="float8"):
        client.predict("Das gefällt mir.", precision="float8", api_name="/translate")


def test_a_model_is_made_once_in_a_precision_and_a_visitors_model_not_at_all() -> None:
    class Made:
        def in_precision(self, precision: str) -> tuple[str, object]:
            return precision, object()

    service = Service()
    service.loaded["a"] = made = Made()
    asked = Question("a", "", "text", SearchOptions())
    low = replace(asked, precision="int8")
    assert service.asked_of(asked) is made
    assert service.asked_of(low)[0] == "int8" and service.asked_of(low) is service.asked_of(low)
    service.checkpoint = lambda *_: made  # type: ignore[method-assign]
    with pytest.raises(InputError, match="float32 here"):
        service.asked_of(replace(low, checkpoint="user/name"))


def test_a_score_adds_up(client: Any) -> None:
    told = client.predict("Das gefällt mir.", "I like it", api_name="/score")
    assert told["pieces"] == ["▁I", "▁like", "▁it", "<eos>"]
    assert told["total"] == told["logp"] == told["outputs"][0]["logp"] == pytest.approx(sum(told["logps"]))


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
    while not any("prefixes followed" in told.get("progress", "") for told in job.outputs()):
        assert not job.done()
        time.sleep(0.05)
    assert job.cancel()
    assert served_toy.cancelled.wait(PATIENCE)


def test_the_server_gives_no_file_and_no_monitor_away(client: Any) -> None:
    root = client.src.rstrip("/")
    files = [f"/gradio_api/file={path}" for path in ("/etc/passwd", Path(__file__).resolve())]
    for path in (*files, "/monitoring", "/gradio_api/monitoring"):
        assert get(root + path).status_code in (403, 404), path
    assert "access-control-allow-origin" not in get(root + "/config", headers={"origin": "https://evil.example"}).headers


def test_a_full_queue_is_told_apart_from_a_server_that_is_there() -> None:
    with gr.Blocks() as app:
        health = queue_health()
    app.queue(max_size=2)
    assert health() == "here"
    app._queue.event_queue_per_concurrency_id["model"] = SimpleNamespace(queue=[object(), object()])  # type: ignore[assignment]
    assert health() == "full"


def test_one_choice_stands_for_the_numbers_of_all_punctuation_marks() -> None:
    pieces = ["<pad>", "<unk>", "</s>", "\u2581.", ",", "\u2581a", "!?", "\u2581", "\u20ac"]

    class Text:
        def __len__(self) -> int:
            return len(pieces)

        def piece(self, token: int) -> str:
            return pieces[token]

    chosen = fields.starting_options(no_repeat=2, may_repeat="signs")
    assert options_of(chosen, Text).may_repeat == (3, 4, 6, 8)
    assert options_of({**chosen, "may_repeat": "none"}, Text).may_repeat == ()
    with pytest.raises(InputError, match="May repeat"):
        options_of({**chosen, "may_repeat": "all"}, Text)
