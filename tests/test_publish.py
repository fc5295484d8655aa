"""Publishing, judged with the real client against a loopback Hub: one commit or none, whatever happens on the way."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from huggingface_hub import RepoCard

from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.checkpoints.folder import MANIFEST
from seqdemo.errors import InputError
from seqdemo.hub import cache, places, publication, upload
from seqdemo.hub.publication import staged
from tests import hub_faults as faults
from tests.hub_expect import NOWHERE, REPO, refused
from tests.hub_server import Hub
from tests.shared import PATIENCE
from tests.spoiling import good
from training.publish import card
from training.publish import push as command
from training.publish.push import publish, publish_all, publish_space, space_files, space_readme

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]


@pytest.fixture(autouse=True)
def _logged_in(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    monkeypatch.setattr(places, "PINS", tmp_path / "revisions.json")


def arrived(hub: Hub, files: Files, repo: str = REPO) -> bool:
    return {name: data for name, data in hub.files(repo).items() if name != ".gitattributes"} == files


# ------------------------------------------------------------------------------------------------- what should happen


def test_a_checkpoint_is_published_once_and_comes_back(hub: Hub, good_folder: Path, good_files: Files) -> None:
    first = publish(good_folder, REPO)
    assert first.created and first.changed and not first.private and set(first.sent) == set(good_files)
    assert arrived(hub, good_files) and hub.commits(REPO) == ["Publish good"]
    again = publish(good_folder, REPO)
    assert not again.changed and again.revision == first.revision and "already holds this" in str(again)
    assert hub.commits(REPO) == ["Publish good"]
    assert models.load(REPO).revision == first.revision


def test_only_what_changed_is_sent_and_what_is_gone_is_removed(hub: Hub, good_folder: Path, good_files: Files) -> None:
    former = good_files["config.json"].replace(b'"hi"', b'"ta"')
    hub.add(REPO, {**good_files, "old.model": b"x", "notes.md": b"mine", "config.json": former, "figures/loss.json": b"{}"})
    done = publish(good_folder, REPO)
    assert (done.sent, done.removed, done.created) == (("config.json",), ("old.model",), False)
    assert hub.files(REPO)["notes.md"] == b"mine" and "figures/loss.json" in hub.files(REPO)
    assert hub.count("PUT", "/lfs/") == 0


def test_a_dry_run_writes_nothing(hub: Hub, good_folder: Path, good_files: Files) -> None:
    planned = publish(good_folder, REPO, dry_run=True)
    assert planned.created and set(planned.sent) == set(good_files) and "would send" in str(planned)
    assert not hub.repos and {request.method for request in hub.log} == {"GET"}
    hub.add(REPO, good_files)
    assert not publish(good_folder, REPO, dry_run=True).changed


def test_the_shared_cnn_is_copied_in_and_a_card_is_made_where_there_is_none(hub: Hub, tmp_path: Path) -> None:
    folder = good(checkpoints.shipped_folder() / "captioner", "caption")
    cnn = "efficientnet-lite0.safetensors"
    checkpoints.shared_folder().mkdir()
    shutil.move(folder / cnn, checkpoints.shared_folder() / cnn)
    checkpoints.write_manifest(folder)
    assert cnn not in json.loads((folder / MANIFEST).read_bytes())["files"]
    done = publish(folder, "owner/captioner")
    assert {cnn, "README.md"} <= set(done.sent)
    card = hub.files("owner/captioner")["README.md"]
    assert card.startswith(b"---\n") and b'load("owner/captioner")' in card and b"somebody" not in card
    shutil.rmtree(checkpoints.shipped_folder())
    assert models.load("owner/captioner").card


def test_private_is_private_and_a_public_repository_is_not_used_for_it(hub: Hub, good_folder: Path, good_files: Files) -> None:
    assert publish(good_folder, REPO, private=True).private
    assert hub.repos[f"models/{REPO}"].private
    assert publish(good_folder, REPO).private
    hub.add("owner/open", {"README.md": b"x"})
    with refused("public", "owner/open exists and is public"):
        publish(good_folder, "owner/open", private=True)
    assert hub.commits("owner/open") == []


def test_all_are_published_and_pinned_and_stand_in(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        shutil.copytree(good_folder, checkpoints.shipped_folder() / name)
    assert all(each.created and each.dry_run for each in publish_all("owner", dry_run=True))
    assert not hub.repos and not places.PINS.exists()
    done = publish_all("owner")
    assert [each.repo for each in done] == ["owner/seqdemo-one", "owner/seqdemo-two"]
    before = places.PINS.read_bytes()
    assert not any(each.changed for each in publish_all("owner")) and places.PINS.read_bytes() == before
    shutil.rmtree(checkpoints.shipped_folder())
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "owner")
    assert models.names() == ["one", "two"]
    assert models.load("two").revision == done[1].revision


def test_a_model_pushes_itself(hub: Hub, good_folder: Path, good_files: Files) -> None:
    done = models.Seq2Seq.from_pretrained(good_folder).push_to_hub(REPO)
    assert done.created and arrived(hub, good_files)


@pytest.fixture
def app(tmp_path: Path, good_folder: Path) -> Path:
    root = tmp_path / "app"
    for name, text in {
        "README.md": "---\ntitle: x\nsdk: gradio\napp_file: app.py\n---\n",
        "app.py": "pass",
        "requirements.txt": "gradio",
        "seqdemo/__init__.py": "",
        "seqdemo/__pycache__/x.pyc": "x",
        "seqdemo/ui/page.js": "x",
        "checkpoints/gallery.json": "[]",
        "checkpoints/shared/cnn.safetensors": "x",
        ".env": "HF_TOKEN=hf_owner",
        "seqdemo/.hidden": "x",
        "tests/test_x.py": "x",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copytree(good_folder, root / "checkpoints" / "small")
    (root / "seqdemo" / "link.py").symlink_to(root / ".env")
    return root


def test_the_app_is_published_as_a_space(hub: Hub, app: Path) -> None:
    done = publish_space("owner/app", root=app)
    files = hub.files("owner/app", "space")
    assert done.created and hub.commits("owner/app", "space") == ["Publish the app"]
    assert {"app.py", "seqdemo/ui/page.js", "checkpoints/small/model.safetensors", "checkpoints/gallery.json"} <= set(files)
    assert not [name for name in files if "hidden" in name or "pyc" in name or "test" in name or "env" in name or "link" in name]
    assert not publish_space("owner/app", root=app).changed
    (app / "seqdemo/ui/page.js").rename(app / "seqdemo/ui/pages.js")
    assert publish_space("owner/app", root=app).removed == ("seqdemo/ui/page.js",)


def test_a_space_without_checkpoints_names_the_account_that_stands_in(hub: Hub, app: Path) -> None:
    publish_space("owner/app", root=app, owner="owner")
    files = hub.files("owner/app", "space")
    assert hub.variables == {"owner/app": {"SEQDEMO_HUB_OWNER": "owner"}}
    assert not [name for name in files if name.endswith(".safetensors")] and "checkpoints/gallery.json" in files


def test_an_account_that_cannot_be_is_told_before_anything_is_sent(hub: Hub, app: Path) -> None:
    with pytest.raises(InputError, match="written user/name"):
        publish_space("owner/app", root=app, owner="../x")
    assert not hub.log


def test_a_space_says_where_its_models_data_and_picture_are(hub: Hub, app: Path, root: Path) -> None:
    shutil.copy(root / "README.md", app / "README.md")
    shutil.copytree(app / "checkpoints" / "small", checkpoints.shipped_folder() / "small")
    publish_space("owner/app", root=app, owner="owner")
    data = RepoCard(hub.files("owner/app", "space")["README.md"].decode()).data.to_dict()
    assert data["models"] == ["owner/seqdemo-small"] and "ai4bharat/Aksharantar" in data["datasets"]
    assert data["thumbnail"] == "https://huggingface.co/spaces/owner/app/resolve/main/.docs/playground.png"
    places.pin("owner", "one", "a" * 40)
    assert "models:\n  - owner/seqdemo-one\n---" in space_readme("---\nx: 1\n---\n# a", "owner/app", "")
    assert "models" not in space_readme("---\nx: 1\n---\n# a", "other/app", "")


def test_the_pictures_of_a_card_are_published_and_not_downloaded(hub: Hub, good_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(good_folder, tmp_path / "drawn")
    (folder / "alignment.png").write_bytes(b"PNG")
    assert "alignment.png" in publish(folder, REPO).sent
    models.load(REPO)
    assert not list(cache.cache_folder().rglob("*.png"))


def test_a_space_needs_its_front_matter(hub: Hub, app: Path) -> None:
    (app / "README.md").write_text("# seqdemo\n\nsdk: gradio\n")
    with pytest.raises(InputError, match="front matter that has the line 'sdk: gradio'"):
        publish_space("owner/app", root=app)
    assert not hub.log


def test_the_project_itself_can_be_a_space(root: Path) -> None:
    names = {str(path.relative_to(root)) for path in space_files(root)}
    assert {"app.py", "README.md", "requirements.txt", "seqdemo/child/process.py"} <= names
    assert {name for name in names if name.startswith((".", "tests", "training"))} == {
        ".docs/playground.png",
        ".docs/playground.gif",
    }


@pytest.mark.parametrize("line", [[], ["x"], ["--all"], ["space"], ["--all", "--owner", "a", "--repo", "b/c"]])
def test_an_incomplete_command_says_how_it_is_written(line: list[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    with pytest.raises(InputError, match="^Write: publish"):
        command.run(parser.parse_args(["publish", *line]))


@pytest.mark.parametrize(
    "line, says",
    [
        (["x", "--repo", "b/c", "--owner", "b"], "--owner goes with --all or space"),
        (["space", "--repo", "b/c", "--space", "b/d"], "--space is for the cards of models"),
        (["x", "--repo", "b/c", "--space", "d"], "written user/name, not 'd'"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(hub: Hub, line: list[str], says: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    with pytest.raises(InputError, match=says):
        command.run(parser.parse_args(["publish", *line]), lambda text: None)
    assert not hub.log


def test_the_cards_of_all_link_to_the_space_that_is_named(hub: Hub, good_folder: Path) -> None:
    folder = shutil.copytree(good_folder, checkpoints.shipped_folder() / "good")
    (folder / "README.md").write_text(card.render(folder))
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    line = ["publish", "--all", "--owner", "owner", "--space", "owner/My_app.2"]
    assert command.run(parser.parse_args(line), lambda text: None) == 0
    sent = hub.files("owner/seqdemo-good")["README.md"].decode()
    assert "(https://owner-my-app-2.hf.space/models#load=owner/seqdemo-good)" in sent
    assert "(https://huggingface.co/spaces/owner/My_app.2)" in sent and "127.0.0.1" not in sent


def test_a_card_is_made_without_figures_that_no_evaluation_wrote(hub: Hub, good_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(good_folder, tmp_path / "bare")
    (folder / "README.md").unlink()
    checkpoints.write_manifest(folder)
    publish(folder, REPO)
    assert "Not measured yet." in hub.files(REPO)["README.md"].decode()


def test_the_command_says_what_it_does(hub: Hub, good_folder: Path) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    said: list[str] = []
    assert command.run(parser.parse_args(["publish", str(good_folder), "--repo", REPO]), said.append) == 0
    assert f"creating {REPO}" in said and f"{REPO}: sent 6 files" in said[-1] and "Now at " in said[-1]


# -------------------------------------------------------------------------------------------- a repository of something else

OTHERS: list[tuple[Files, str]] = [
    ({"pytorch_model.bin": b"x", "config.json": b"{}"}, r"config.json, pytorch_model.bin"),
    ({f"{letter}.json": b"{}" for letter in "abcde"}, r"a.json, b.json, c.json and 2 more files"),
    ({"manifest.json": b"{}", "config.json": b'{"name": "another"}', "x.model": b"x"}, "the model 'another'"),
    ({"manifest.json": b"{}", "config.json": b"\x1b{"}, "the model None"),
]


@pytest.mark.parametrize("files, says", OTHERS, ids=[says for _, says in OTHERS])
def test_what_else_a_repository_holds_is_not_replaced_unasked(
    hub: Hub, good_folder: Path, good_files: Files, monkeypatch: pytest.MonkeyPatch, files: Files, says: str
) -> None:
    hub.add(REPO, files)
    with refused("something-else", rf"owner/small holds something else \({says}\), so nothing was sent; .* --replace"):
        publish(good_folder, REPO)
    with pytest.raises(models.HubError, match="something else"):
        models.Seq2Seq.from_pretrained(good_folder).push_to_hub(REPO, dry_run=True)
    assert hub.commits(REPO) == []
    publish(good_folder, REPO, replace=True)
    assert hub.commits(REPO) == ["Publish good"] and good_files.items() <= hub.files(REPO).items()


@pytest.mark.parametrize("said", ["y", "", None])
def test_who_sits_at_a_terminal_is_asked(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch, said: str | None) -> None:
    hub.add(REPO, {"pytorch_model.bin": b"x"})
    monkeypatch.setattr(sys.stdin, "isatty", lambda: said is not None, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: said)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    line = parser.parse_args(["publish", str(good_folder), "--repo", REPO])
    if said:
        assert command.run(line, lambda text: None) == 0
    else:
        with pytest.raises(models.HubError, match="something else"):
            command.run(line, lambda text: None)
    assert hub.commits(REPO) == (["Publish good"] if said else [])


def test_a_yes_is_for_one_repository(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        shutil.copytree(good_folder, checkpoints.shipped_folder() / name)
        hub.add(f"owner/seqdemo-{name}", {"pytorch_model.bin": b"x"})
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    said = iter(["y", "n"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    with pytest.raises(models.HubError, match="owner/seqdemo-two holds something else"):
        command.run(parser.parse_args(["publish", "--all", "--owner", "owner"]), lambda text: None)
    assert (hub.commits("owner/seqdemo-one"), hub.commits("owner/seqdemo-two")) == (["Publish one"], [])


def test_the_end_of_input_is_a_no(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(prompt: str) -> str:
        raise EOFError

    hub.add(REPO, {"pytorch_model.bin": b"x"})
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", end)
    with pytest.raises(models.HubError, match="holds something else"):
        command.agreed(lambda replace: publish(good_folder, REPO, replace=replace), False)
    assert hub.commits(REPO) == []


def test_a_space_that_is_another_app_is_not_replaced_unasked(hub: Hub, app: Path) -> None:
    hub.add("owner/app", {"app.py": b"print()", "model.json": b"{}"}, "space")
    with refused("something-else", r"owner/app holds something else \(app.py, model.json\)"):
        publish_space("owner/app", root=app)
    publish_space("owner/app", root=app, replace=True)
    assert not publish_space("owner/app", root=app).changed


def test_a_repository_that_was_only_just_made_on_the_hub_s_pages_is_filled(hub: Hub, good_folder: Path) -> None:
    hub.add(REPO, {"README.md": b"---\nlicense: mit\n---"})
    assert publish(good_folder, REPO).changed


# ---------------------------------------------------------------------------------------------------------- what is said


def test_who_stops_it_is_told_to_look_first(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(publication, "ask_hub", stop)
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        publish(good_folder, REPO, note=said.append)
    assert said[-1] == f"Stopped; look at {REPO} before you publish again."


def test_the_steps_and_the_end_of_patience_are_told(hub: Hub, good_folder: Path) -> None:
    said: list[str] = []
    publish(good_folder, REPO, note=said.append)
    assert said[0] == f"{REPO}: this ends after 15 minutes, or when the Hub has said nothing for 60 seconds"
    assert said[1:4] == ["asking the Hub whose token this is", f"looking at {REPO}", f"creating {REPO}"]
    assert said[4].startswith("sending 6 files, ") and said[5] == "checking that everything has arrived"


def test_how_much_was_sent_is_told_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not how much was read for its hash; and again while it is sent once more, since silence means that the Hub is gone."""
    told: list[list[int]] = []
    monkeypatch.setattr(upload, "EVERY", -1.0)
    file = upload.Local("a.model", __file__)
    (addition,) = upload.operations([file], [], lambda progress: told.append(progress))
    assert told == []
    for times in (1, 2):  # the second time it is read again from the start, as after a fault
        with addition.as_file() as counted:
            while counted.read(1000):
                pass
        assert told == sorted(told) and told[-1] == [file.size, file.size] and len(told) >= times * file.size // 1000
    lines: list[str] = []
    monkeypatch.setattr(publication, "EVERY", -1.0)
    publication.progress_lines(lines.append)(1_500_000, 9_000_000)
    assert lines == ["sent 1.5 of 9.0 MB"]


@pytest.mark.parametrize(
    "method, path", [("GET", "/api/whoami-v2"), ("GET", "/api/models"), ("POST", "/commit/"), ("PUT", "/lfs/")]
)
def test_a_hub_that_falls_silent_is_left(
    hub: Hub, good_folder: Path, good_files: Files, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    monkeypatch.setattr(publication, "SILENCE", 4.0)
    hub.add(REPO, {})
    hub.fault(method, path, faults.deaf)
    with refused("silent", "has said nothing for 4 seconds, so publishing was given up"):
        publish(good_folder, REPO)
    assert hub.commits(REPO) == []


def test_names_in_a_repository_are_not_obeyed_by_a_terminal(hub: Hub, good_folder: Path, good_files: Files) -> None:
    hub.add(REPO, {**good_files, "\x1b[2J.json": b"x"})
    done = publish(good_folder, REPO)
    assert done.removed == ("\x1b[2J.json",) and "\x1b" not in str(done)


def test_offline_publishing_speaks_of_publishing(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refused("offline-mode", "Offline mode is on .*, so nothing can be published; switch it off"):
        publish(good_folder, REPO)


# --------------------------------------------------------------------------------------------------- what is not sent


def test_what_would_not_load_is_not_published(hub: Hub, good_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(good_folder, folder)
    os.truncate(folder / "model.safetensors", 100)
    with pytest.raises(InputError, match="cut short or replaced"):
        publish(folder, REPO)
    assert not hub.log


def test_files_that_the_manifest_does_not_name_stay_here(hub: Hub, good_folder: Path, good_files: Files, tmp_path: Path) -> None:
    shutil.copytree(good_folder, tmp_path / "good")
    (tmp_path / "good" / "notes.txt").write_text("private")
    (tmp_path / "good" / ".env").write_text("private")
    publish(tmp_path / "good", REPO)
    assert arrived(hub, good_files)


@pytest.mark.parametrize("repo", ["small", "a/b/c", "../x", "owner/..", "http://x/y"])
def test_a_repository_is_named_in_full(hub: Hub, good_folder: Path, repo: str) -> None:
    with pytest.raises(InputError, match="written user/name"):
        publish(good_folder, repo)
    assert not hub.log


# ------------------------------------------------------------------------------------------------------------ accounts


def test_without_an_account(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    with refused("no-token", "run `hf auth login`"):
        publish(good_folder, REPO)


@pytest.mark.parametrize(
    "token, repo, kind, says",
    [
        ("hf_old", REPO, "revoked", "does not accept the token"),
        ("hf_reader", REPO, "read-only", "may only read"),
        ("hf_other", REPO, "forbidden", "may not write to owner/small"),
    ],
)
def test_an_account_that_may_not(
    hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch, token: str, repo: str, kind: str, says: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with refused(kind, says):
        publish(good_folder, repo)
    assert not hub.repos


def test_a_space_that_wants_a_paid_plan(hub: Hub, app: Path) -> None:
    hub.fault("POST", "/api/repos/create", faults.status(402, message="Gradio Spaces need PRO"))
    with refused("payment", "The Hub wants a paid plan for this .*Gradio Spaces need PRO"):
        publish_space("owner/app", root=app)


# -------------------------------------------------------------------------------------------------- faults on the way

PASSING = [
    ("POST", "/api/repos/create", faults.status(503)),
    ("POST", "/api/repos/create", faults.lost),
    ("POST", "preupload", faults.status(429, Retry_After="1")),
    ("POST", "objects/batch", faults.status(503)),
    ("PUT", "/lfs/", faults.status(500)),
    ("POST", "/commit/", faults.status(500)),
    ("POST", "/commit/", faults.status(429, Retry_After="1")),
    ("GET", "/api/models", faults.reset),
]


@pytest.mark.parametrize("method, path, fault", PASSING, ids=[f"{path} {number}" for number, (_, path, _) in enumerate(PASSING)])
def test_a_fault_that_passes_is_outlived(
    hub: Hub, good_folder: Path, good_files: Files, method: str, path: str, fault: faults.Fault
) -> None:
    hub.fault(method, path, fault, times=1)
    publish(good_folder, REPO)
    assert arrived(hub, good_files) and hub.commits(REPO) == ["Publish good"]


STAYING = [
    ("PUT", "/lfs/", faults.status(403, message="Request has expired"), "expired-link", "has expired; check this"),
    ("POST", "/lfs/verify", faults.status(422, message="not what was announced"), "rejected", "not what was announced"),
    ("POST", "/commit/", faults.status(500), "server", "a fault of its own"),
    ("POST", "/api/validate-yaml", faults.status(400, message="bad card"), "rejected", "rejects the request"),
]


ODD: list[tuple[str, str, object]] = [
    ("GET", "whoami", []),
    ("POST", "repos/create", {}),
    ("POST", "preupload", {"files": [{"path": "x"}]}),
    ("POST", "objects/batch", None),
    ("POST", "validate-yaml", 3),
]


@pytest.mark.parametrize("method, path", [("POST", "objects/batch"), ("PUT", "/lfs/"), ("POST", "/lfs/verify")])
def test_an_answer_that_never_ends_is_not_read_to_the_end(hub: Hub, good_folder: Path, method: str, path: str) -> None:
    hub.fault(method, path, faults.endless)
    with refused("hostile", r"is unsafe and was not used \(an answer of more than 8 MB\)"):
        publish(good_folder, REPO)
    assert hub.commits(REPO) == []


def test_a_small_file_that_never_ends_does_not_fill_the_disk(hub: Hub, good_folder: Path) -> None:
    hub.add(REPO, {"manifest.json": b"{}", "config.json": b'{"name": "another"}'})
    hub.fault("GET", "resolve/.*config.json", faults.endless)
    with refused("too-big", "A file of owner/small is larger than was announced, and was not kept"):
        publish(good_folder, REPO)
    assert hub.commits(REPO) == []


def test_the_process_that_publishes_has_a_bound_on_its_memory(hub: Hub, good_folder: Path) -> None:
    bounds: list[int] = []

    def look(answer: Callable[[], faults.Reply]) -> faults.Reply:
        children = " ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
        bounds.extend(resource.prlimit(int(child), resource.RLIMIT_AS)[0] for child in children.split())
        return answer()

    hub.fault("GET", "whoami", look)
    publish(good_folder, REPO)
    assert any(upload.MEMORY < bound < 4 * upload.MEMORY for bound in bounds), bounds


@pytest.mark.parametrize("method, path, value", ODD, ids=[path for _, path, _ in ODD])
def test_an_answer_of_another_form_is_told_as_one(hub: Hub, good_folder: Path, method: str, path: str, value: object) -> None:
    hub.fault(method, path, lambda answer: faults.js(value))
    with refused("garbled", "arrives unreadable"):
        publish(good_folder, REPO)


@pytest.mark.parametrize("by", [faults.portal, faults.endless], ids=["portal", "endless"])
def test_a_commit_whose_answer_was_replaced_is_recognised(hub: Hub, good_folder: Path, by: faults.Fault) -> None:
    def replaced(answer: object) -> faults.Reply:
        answer()  # type: ignore[operator]
        return by(answer)  # type: ignore[arg-type]

    hub.fault("POST", "/commit/", replaced)
    assert publish(good_folder, REPO).changed and hub.commits(REPO) == ["Publish good"]


def test_a_new_repository_that_the_hub_does_not_show(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At first, which is waited for; or at all, which is not taken for done."""
    hub.fault("GET", "/api/models", faults.status(404, "RepoNotFound"), times=2)
    assert publish(good_folder, REPO).changed and hub.commits(REPO) == ["Publish good"]
    hub.repos.clear()
    hub.fault("GET", "/api/models", faults.status(404, "RepoNotFound"))
    with refused("unseen", "The Hub does not show owner/small yet, .* run this again"):
        publish(good_folder, REPO)


def test_no_room_on_the_hub(hub: Hub, good_folder: Path) -> None:
    says = "Private repository storage limit reached, please upgrade your plan"
    hub.fault("POST", "/commit/", faults.status(403, message=says))
    with refused("full", rf"The Hub has no more room for owner/small \(403, {says}\); remove something there"):
        publish(good_folder, REPO)


def test_a_long_pause_is_told_and_not_taken_for_silence(hub: Hub, good_folder: Path) -> None:
    hub.fault("POST", "/commit/", faults.status(429, Retry_After="120"))
    with refused("rate-limited", "wants a pause of 2 minutes"):
        publish(good_folder, REPO)
    assert hub.commits(REPO) == []


def test_a_repository_that_was_renamed_is_published_to(hub: Hub, good_folder: Path, good_files: Files) -> None:
    hub.add("owner/present", {})
    hub.renamed[REPO] = "owner/present"
    assert publish(good_folder, REPO).changed
    assert arrived(hub, good_files, "owner/present") and hub.commits("owner/present") == ["Publish good"]


@pytest.mark.parametrize("method, path, fault, kind, says", STAYING, ids=[path for _, path, _, _, _ in STAYING])
def test_a_fault_that_stays_is_told_and_no_commit_is_made(
    hub: Hub, good_folder: Path, good_files: Files, method: str, path: str, fault: faults.Fault, kind: str, says: str
) -> None:
    hub.fault(method, path, fault)
    with refused(kind, says):
        publish(good_folder, REPO)
    assert hub.commits(REPO) == []
    hub.faults.clear()
    publish(good_folder, REPO)
    assert arrived(hub, good_files) and len(hub.commits(REPO)) == 1


def test_a_commit_whose_answer_was_lost_is_recognised(hub: Hub, good_folder: Path, good_files: Files) -> None:
    hub.fault("POST", "/commit/", faults.lost)
    done = publish(good_folder, REPO)
    assert done.changed and done.revision == hub.repos[f"models/{REPO}"].commits[-1][0]
    assert hub.commits(REPO) == ["Publish good"] and arrived(hub, good_files)


def test_bytes_that_change_on_the_way_are_seen(hub: Hub, good_folder: Path) -> None:
    def spoiled(answer: object) -> faults.Reply:
        reply = answer()  # type: ignore[operator]
        files = hub.files(REPO)
        files["config.json"] = files["config.json"].replace(b"good", b"evil")
        return reply  # type: ignore[no-any-return]

    hub.fault("POST", "/commit/", spoiled)
    with refused("differs", r"does not hold what was sent \(config.json\)"):
        publish(good_folder, REPO)


def test_two_publishers_at_once(hub: Hub, good_folder: Path, good_files: Files, tmp_path: Path) -> None:
    """The second one is told so and has written nothing. If both bring the same files, both succeed."""
    other = tmp_path / "other"
    shutil.copytree(good_folder, other)
    (other / "README.md").write_text("# theirs")
    hub.add(REPO, {})

    def while_we_upload(files: Files) -> faults.Fault:
        def fault(answer: object) -> faults.Reply:
            hub.repos[f"models/{REPO}"].commit(files, "theirs")
            return answer()  # type: ignore[no-any-return, operator]

        return fault

    hub.fault("POST", "preupload", while_we_upload(staged(other)), times=1)
    with refused("conflict", "Someone else changed owner/small at the same moment; nothing of yours was written"):
        publish(good_folder, REPO)
    assert hub.commits(REPO) == ["theirs"]
    hub.fault("POST", "preupload", while_we_upload(good_files), times=1)
    publish(good_folder, REPO)
    assert hub.commits(REPO) == ["theirs", "theirs"]


def test_two_real_publishers_of_one_checkpoint(hub: Hub, good_folder: Path, good_files: Files) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: publish(good_folder, REPO), range(2)))
    assert arrived(hub, good_files) and len(hub.commits(REPO)) == 1
    assert len({each.revision for each in done}) == 1


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_publisher_that_is_ended_in_the_middle_is_run_again(
    hub: Hub, good_folder: Path, good_files: Files, end: signal.Signals
) -> None:
    hub.fault("PUT", "/lfs/", faults.hang(PATIENCE), times=1)
    code = f"from seqdemo.hub import push; push({str(good_folder)!r}, {REPO!r})"
    publisher = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while not hub.count("PUT", "/lfs/") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert hub.count("PUT", "/lfs/"), publisher.poll()
    publisher.send_signal(end)
    assert publisher.wait(PATIENCE) != 0
    time.sleep(0.3)
    assert hub.commits(REPO) == []
    publish(good_folder, REPO)
    assert arrived(hub, good_files) and len(hub.commits(REPO)) == 1


def test_a_hub_that_is_away(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with refused("refused", "refuses the connection"):
        publish(good_folder, REPO)


def test_a_black_hole(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "SECONDS", 2.0)
    hub.fault("POST", "/api/repos/create", faults.hang(PATIENCE))
    with refused("deadline", "owner/small was not published within 2 seconds"):
        publish(good_folder, REPO)
