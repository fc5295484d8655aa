"""The app and a loopback Hub: a visitor's model is offered before it is downloaded, used in a column, and seen by nobody else."""

from __future__ import annotations

import gc
import json
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import torch

from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.checkpoints.folder import Folder
from seqdemo.config import ModelConfig
from seqdemo.hub import places
from seqdemo.hub.publication import staged
from seqdemo.network.inference import bytes_beside
from seqdemo.network.model import Seq2Seq
from seqdemo.text import SPECIALS, Characters
from seqdemo.ui import fields, launch
from seqdemo.ui.answers import Answers
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.component import packed_value
from seqdemo.ui.service import Service
from tests import hub_faults as faults
from tests import tiny
from tests.hub_server import Hub
from tests.shared import free_port, new_page

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]
THEIRS = "visitor/spelling"
NOBODY = (lambda *_: None, lambda: False)


@pytest.fixture(scope="module")
def speller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.transliterator(tmp_path_factory.mktemp("speller") / "tiny")


@pytest.fixture
def commit(hub: Hub, speller: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A public repository with a model of the same kind as the bundled one; this machine has a token that nobody may use."""
    shutil.copytree(speller, checkpoints.shipped_folder() / "tiny-transliterator")
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    card = b"---\nlicense: mit\n---\n# Title\n\nSpells <b>words</b>.\n\nMore."
    return hub.add(THEIRS, {**staged(speller), "README.md": card})


@pytest.fixture
def answers(hub: Hub, commit: str, tmp_path: Path) -> Answers:
    return Answers(Service(), Catalogue(checkpoints.shipped_folder()), tmp_path / "uploads")


def word(name: str, mine: list[str]) -> dict[str, Any]:
    column = {"checkpoint": name, "options": fields.starting_options(), "edits": []}
    return {"task": "transliterate", "input": {"text": "abc"}, "language": "hi", "columns": {"A": column}, "mine": mine}


def downloads(hub: Hub) -> int:
    return hub.count("GET", "resolve|/lfs/")


def unsigned(hub: Hub) -> bool:
    return all("authorization" not in request.headers for request in hub.log)


# ---------------------------------------------------------------------------------------------------------- without a browser


def test_a_model_is_offered_then_fetched_at_the_commit_that_was_offered(
    hub: Hub, commit: str, answers: Answers, speller: Path
) -> None:
    offer = answers.load({"look": {"repo": f" {THEIRS} ", "revision": ""}}, *NOBODY)["offer"]
    assert (offer["repo"], offer["revision"], offer["cached"]) == (THEIRS, commit, False)
    assert offer["bytes"] == sum(len(data) for name, data in hub.files(THEIRS).items() if name != ".gitattributes")
    assert downloads(hub) == 0
    hub.add(THEIRS, {**staged(speller), "README.md": b"# another by now"})
    told: list[tuple[int, int]] = []
    message = {"load": {"repo": offer["repo"], "revision": offer["revision"]}}
    loaded = answers.load(message, lambda *facts: told.append(facts), lambda: False)["loaded"]
    assert (loaded["name"], loaded["summary"]) == (f"{THEIRS}@{commit}", "Spells <b>words</b>.")
    assert told[-1][0] == told[-1][1] and told == sorted(told)
    assert {request.origin for request in hub.log} == {"hub", "cdn"} and unsigned(hub)
    assert answers.load({"look": {"repo": THEIRS, "revision": commit}}, *NOBODY)["offer"]["cached"]


@pytest.mark.parametrize("tests", [[], {"a": {"by_length": [1]}}, {"a": {"beam": {"bleu": 10**18}}}, {"a": {"units": [7]}}, 3])
def test_figures_of_any_form_do_not_bar_a_model(hub: Hub, answers: Answers, speller: Path, tmp_path: Path, tests: Any) -> None:
    folder = shutil.copytree(speller, tmp_path / "odd")
    (folder / "metrics.json").write_text(json.dumps({"tests": tests}))
    checkpoints.write_manifest(folder)
    hub.add("visitor/odd", staged(folder))
    assert answers.load({"load": {"repo": "visitor/odd"}}, *NOBODY)["loaded"]["sizes"]


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("metrics.json", None, b'{"tests": {"a": {"beam": {"bleu": 1e999}}}}'),
        ("metrics.json", None, b'{"tests": {"a": {"beam": {"bleu": 1%s}}}}' % (b"0" * 400)),
        ("metrics.json", None, b'{"tests": {"\\ud800": 1}}'),
        ("README.md", None, b"# \xff"),
        ("source.json", b'"k"', b'"\\udfff"'),
        ("source.json", b'"k"', b'"\\u001b"'),
        ("source.json", b'"k"', b'""'),
        ("config.json", b'"hi"', b'"\\ud800"'),
    ],
)
def test_what_no_page_can_be_sent_is_refused_and_nobody_else_notices(
    hub: Hub, answers: Answers, speller: Path, tmp_path: Path, name: str, old: bytes | None, new: bytes
) -> None:
    """Numbers beyond all bounds, halves of characters, control characters, bytes that are no text."""
    folder = shutil.copytree(speller, tmp_path / "evil")
    data = (folder / name).read_bytes() if old else b""
    assert old is None or old in data
    (folder / name).write_bytes(data.replace(old, new, 1) if old else new)
    checkpoints.write_manifest(folder)
    opened = Folder(folder)
    opened.open_manifest()
    files = {each: opened.read(each) for each in opened.paths}
    commit = hub.add("visitor/evil", files)
    found = answers.load({"load": {"repo": "visitor/evil", "revision": commit}}, *NOBODY)
    assert name in found["error"] and "fault is ours" not in found["error"]
    json.dumps(found, ensure_ascii=False).encode()
    assert answers.answer(word("tiny-transliterator", []))["columns"]["A"]["hypotheses"]


def test_figures_that_add_up_to_infinity_do_not_keep_the_pages_from_being_built(
    hub: Hub, speller: Path, tmp_path: Path, answers: Answers
) -> None:
    """Of a visitor's model, and of a folder among the shipped ones."""
    folder = shutil.copytree(speller, checkpoints.shipped_folder() / "large")
    rows = [{"from": 1, "to": 2, "inputs": 30, "accuracy": 1.7e308}]
    tests = {name: {"beam": {"accuracy": 1.7e308}, "by_length": rows} for name in "abcdef"}
    (folder / "metrics.json").write_text(json.dumps({"task": "transliterate", "tests": tests}))
    checkpoints.write_manifest(folder)
    hub.add("visitor/large", staged(folder))
    packed_value(answers.load({"load": {"repo": "visitor/large"}}, *NOBODY))
    packed_value(Catalogue(checkpoints.shipped_folder()).models_setup())
    (folder / "metrics.json").write_text('{"tests": {"a": {"beam": {"accuracy": 1e999}}}}')
    assert Catalogue(checkpoints.shipped_folder()).names("transliterate") == ["tiny-transliterator"]


def test_only_who_loaded_it_has_it(hub: Hub, commit: str, answers: Answers) -> None:
    name = answers.load({"load": {"repo": THEIRS, "revision": commit}}, *NOBODY)["loaded"]["name"]
    mine, bundled = (answers.answer(word(which, [name]))["columns"]["A"] for which in (name, "tiny-transliterator"))
    assert mine["spec"]["checkpoint"] == name
    assert [row["total"] for row in mine["hypotheses"]] == [row["total"] for row in bundled["hypotheses"]]
    before = len(hub.log)
    assert "is not loaded here" in answers.answer(word(name, []))["columns"]["A"]["error"]
    assert name not in json.dumps(answers.catalogue.setup("transliterate")) + json.dumps(answers.catalogue.models_setup())
    assert len(hub.log) == before


REFUSED = [
    ("visitor/none", "", "There is no repository visitor/none"),
    ("owner/private", "", "or it is private"),
    (THEIRS, "v9", "has no revision v9"),
    ("visitor/large", "", "model.safetensors has 314,572,800 bytes, more than"),
    ("visitor/other", "", "is not a seqdemo checkpoint: it has no manifest.json"),
    ("visitor/gated", "", "is gated"),
    ("../../etc/passwd", "", "written user/name"),
    ("https://x/y", "", "written user/name"),
    ("user/na me", "", "written user/name"),
    (THEIRS, "../../x", "A revision is a commit"),
    ("x" * 300, "", "up to 200"),
]


@pytest.mark.parametrize("repo, revision, says", REFUSED, ids=[f"{repo[:20]} {revision}" for repo, revision, _ in REFUSED])
def test_what_cannot_be_had_is_a_sentence_and_the_app_goes_on(
    hub: Hub, answers: Answers, speller: Path, repo: str, revision: str, says: str
) -> None:
    files = staged(speller)
    hub.add("owner/private", files, private=True)
    hub.add("visitor/gated", files, gated=True)
    hub.add("visitor/other", {"config.json": b"{}", "pytorch_model.bin": b"x"})
    hub.add("visitor/large", files)
    hub.repos["models/visitor/large"].extra.append({"rfilename": "model.safetensors", "size": 300 << 20})
    found = answers.load({"look": {"repo": repo, "revision": revision}}, *NOBODY)
    if "offer" in found:
        found = answers.load({"load": {"repo": repo, "revision": found["offer"]["revision"]}}, *NOBODY)
    assert says in found["error"]
    assert hub.count("GET", "safetensors|/lfs/") == 0 and unsigned(hub)
    if says.startswith(("written", "A revision", "up to")):
        assert not hub.log
    assert answers.answer(word("tiny-transliterator", []))["columns"]["A"]["hypotheses"]


@pytest.mark.parametrize("what", ["weights", "hostile"])
def test_what_is_offered_and_hostile_is_refused_after_the_download(hub: Hub, answers: Answers, speller: Path, what: str) -> None:
    hub.add("visitor/evil", {**staged(speller), "model.safetensors": b"\x80\x04 a pickle"})
    if what == "hostile":
        hub.fault("HEAD", "visitor/evil", faults.headers(ETag='"../../../../evil"'))
    offer = answers.load({"look": {"repo": "visitor/evil"}}, *NOBODY)["offer"]
    found = answers.load({"load": {"repo": "visitor/evil", "revision": offer["revision"]}}, *NOBODY)
    assert {"weights": "model.safetensors has 11 bytes where", "hostile": "is unsafe and was not used"}[what] in found["error"]
    assert answers.answer(word("tiny-transliterator", []))["columns"]["A"]["hypotheses"]


@pytest.mark.parametrize("message", [None, {}, {"look": None}, {"look": {"repo": 3}}, {"load": []}, {"look": {"repo": {}}}])
def test_a_message_of_another_form_is_answered_with_a_sentence(hub: Hub, answers: Answers, message: Any) -> None:
    found = answers.load(message, *NOBODY)
    assert found["error"].endswith(".") and "fault is ours" not in found["error"] and not hub.log


def test_a_program_names_a_model_by_its_commit(hub: Hub, commit: str, answers: Answers) -> None:
    from gradio_client import Client

    app = launch.build(answers.service, checkpoints.shipped_folder())
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True)
    try:
        client = Client(address, verbose=False)
        told = client.predict("abc", to="hi", checkpoint=f"{THEIRS}@{commit}", api_name="/transliterate")
        assert told["text"] == client.predict("abc", to="hi", api_name="/transliterate")["text"]
        with pytest.raises(Exception, match="There is no repository visitor/none"):
            client.predict("abc", to="hi", checkpoint=f"visitor/none@{'a' * 40}", api_name="/transliterate")
        with pytest.raises(Exception, match="is not loaded here"):
            client.predict("abc", to="hi", checkpoint=THEIRS, api_name="/transliterate")
        assert client.predict("abc", to="hi", api_name="/transliterate")["text"] and unsigned(hub)
    finally:
        app.close()


def test_an_account_stands_in_for_the_checkpoints_of_the_pages(
    hub: Hub, speller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Space or clone without the folder offers what the account holds; one that does not arrive is reported and left out."""
    monkeypatch.setattr(places, "PINS", tmp_path / "revisions.json")
    assert launch.stand_ins() == []
    files = staged(speller)
    places.pin("owner", "tiny-transliterator", hub.add("owner/seqdemo-tiny-transliterator", files))
    places.pin("owner", "gone", "a" * 40)
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "owner")
    catalogue = Catalogue(checkpoints.shipped_folder(), launch.stand_ins())
    assert "gone is not offered: There is no repository owner/seqdemo-gone" in capsys.readouterr().out
    assert catalogue.names("transliterate") == ["tiny-transliterator"] == launch.opening_models(catalogue)
    answers = Answers(Service(), catalogue, tmp_path / "uploads")
    before = downloads(hub)
    assert answers.answer(word("tiny-transliterator", []))["columns"]["A"]["hypotheses"]
    assert downloads(hub) == before > 0
    shutil.copytree(speller, checkpoints.shipped_folder() / "tiny-transliterator")
    assert launch.stand_ins() == []
    assert models.stand_ins(lambda text: None, seconds=0) == []


# ----------------------------------------------------------------------------------------------------------- what memory holds


def wide_model(folder: Path) -> Files:
    """A checkpoint whose weights take some megabytes of memory."""
    letters = Characters([*SPECIALS, *"abcdefgh"])
    sizes: dict[str, Any] = {"embedding": 9, "encoder_hidden": 4, "decoder_hidden": 900, "attention": 4, "features": 4}
    config = ModelConfig(len(letters), len(letters), cell="elman", decoder="context-once", **sizes)
    return staged(checkpoints.save(folder, Seq2Seq(config), {"name": "wide", "task": "transliterate"}, letters, letters))


def held_bytes(model: torch.nn.Module) -> int:
    own = {tensor.data_ptr(): tensor.untyped_storage().nbytes() for tensor in model.state_dict().values()}
    return sum(own.values()) + bytes_beside(model)


def test_real_models_leave_memory_when_others_come(hub: Hub, commit: str, answers: Answers, tmp_path: Path) -> None:
    """Runs that remember them are dropped too. A model that is used again is loaded from the disk."""
    files = wide_model(tmp_path / "wide")
    names = [f"visitor/wide-{number}" for number in range(3)]
    for number, name in enumerate(names):
        hub.add(name, {**files, "README.md": b"# %d" % number})
    shelf: Any = answers.service.visitors()
    size = shelf.visit(names[0]).size
    assert size == held_bytes(shelf.visit(names[0]).model) > 3_000_000
    shelf.ceiling = size * 2 + 100
    seen, keys = [], []
    for name in names:
        keys.append(answers.load({"load": {"repo": name}}, *NOBODY)["loaded"]["name"])
        assert answers.answer(word(keys[-1], keys))["columns"]["A"]["hypotheses"]
        seen.append(weakref.ref(shelf.visit(name).model))
    gc.collect()
    assert [reference() is None for reference in seen] == [True, False, False]
    assert sum(each.size for each in shelf.held.values()) <= shelf.ceiling
    before = len(hub.log)
    assert answers.answer(word(keys[0], keys))["columns"]["A"]["hypotheses"]
    gc.collect()
    assert [reference() is None for reference in seen] == [True, True, False]
    assert len(hub.log) == before


# --------------------------------------------------------------------------------------------------------------- in Chromium


@pytest.fixture
def address(hub: Hub, answers: Answers) -> Iterator[str]:
    app = launch.build(answers.service, checkpoints.shipped_folder())
    _, address, _ = launch.launch(app, port=free_port(), prevent_thread_lock=True, quiet=True)
    yield address.rstrip("/")
    app.close()


def status(page: Any, says: str) -> None:
    page.wait_for_function("says => document.querySelector('.s-hub [role=status]')?.innerText.includes(says)", arg=says)


@pytest.mark.browser
def test_a_visitor_loads_a_model_and_shares_it(browser: Any, address: str, hub: Hub, commit: str) -> None:
    page, other = new_page(browser), new_page(browser)
    page.goto(f"{address}/models")
    page.wait_for_selector(".s-cards article")
    page.fill("#s-repo", THEIRS)
    page.get_by_role("button", name="Load").click()
    status(page, f"{THEIRS} at commit {commit[:12]}: up to 0.0 MB. Nothing has been downloaded yet.")
    page.get_by_role("button", name="Not now").click()
    status(page, "Nothing was downloaded.")
    assert downloads(hub) == 0 and page.get_by_role("button", name="Download").count() == 0
    page.get_by_role("button", name="Load").click()
    page.get_by_role("button", name="Download").click()
    status(page, f"{THEIRS}@{commit} is loaded.")
    card = page.locator(f"article[aria-label='{THEIRS}@{commit}']")
    assert "Spells <b>words</b>." in card.inner_text()
    for repo, says in (("visitor/none", "There is no repository visitor/none"), ("../x", "written user/name")):
        page.fill("#s-repo", repo)
        page.get_by_role("button", name="Load").click()
        status(page, says)
    card.get_by_role("link", name="Use it in column B").click()
    page.wait_for_selector("#s-column-b .s-output")
    page.wait_for_function("() => document.querySelector('#s-column-b .s-output').innerText.length > 0")
    assert "/transliterate#" in page.url and THEIRS in unquote(page.url)
    follow_the_link(other, page.url, hub, commit)
    page.close()
    other.close()


def follow_the_link(page: Any, link: str, hub: Hub, commit: str) -> None:
    """Another visitor: nothing is asked of the Hub until that person says so."""
    before = len(hub.log)
    page.goto(link)
    page.get_by_role("link", name=f"Look at {THEIRS}@{commit}").click()
    status(page, "Nothing has been fetched")
    assert (page.input_value("#s-repo"), page.input_value("#s-revision")) == (THEIRS, commit)
    assert page.locator(".s-cards article").count() == 1 and len(hub.log) == before
    page.get_by_role("button", name="Load").click()
    status(page, "is loaded.")
    page.get_by_role("link", name="Open the shared link").click()
    page.wait_for_function("() => document.querySelector('#s-column-b .s-output')?.innerText.length > 0")
    assert page.locator(".s-message[role=alert]:visible").count() == 0 and THEIRS in unquote(page.url)
