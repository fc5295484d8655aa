"""Publishing, judged with the real client against a loopback Hub: one commit or none, whatever happens on the way."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seqdemo import checkpoints
from seqdemo.checkpoints import pins, publication
from seqdemo.checkpoints.folder import MANIFEST
from seqdemo.checkpoints.publication import staged
from seqdemo.errors import InputError
from tests import hub_faults as faults
from tests.hub_expect import NOWHERE, REPO, refused
from tests.hub_server import Hub
from tests.spoiling import good
from training import publish as command
from training.publish import publish, publish_all, publish_space, space_files

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]


@pytest.fixture(autouse=True)
def _logged_in(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    monkeypatch.setattr(pins, "PINS", tmp_path / "revisions.json")


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
    assert checkpoints.load(REPO).revision == first.revision


def test_only_what_changed_is_sent_and_what_is_gone_is_removed(hub: Hub, good_folder: Path, good_files: Files) -> None:
    hub.add(REPO, {**good_files, "old.model": b"x", "notes.md": b"mine", "config.json": b"{}", "figures/loss.json": b"{}"})
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
    folder = good(checkpoints.bundled_folder() / "captioner", "caption")
    cnn = "efficientnet-lite0.safetensors"
    checkpoints.shared_folder().mkdir()
    shutil.move(folder / cnn, checkpoints.shared_folder() / cnn)
    checkpoints.write_manifest(folder)
    assert cnn not in json.loads((folder / MANIFEST).read_bytes())["files"]
    done = publish(folder, "owner/captioner")
    assert {cnn, "README.md"} <= set(done.sent)
    card = hub.files("owner/captioner")["README.md"]
    assert card.startswith(b"---\n") and b'load("owner/captioner")' in card and b"somebody" not in card
    shutil.rmtree(checkpoints.bundled_folder())
    assert checkpoints.load("owner/captioner").card


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
        shutil.copytree(good_folder, checkpoints.bundled_folder() / name)
    assert all(each.created and each.dry_run for each in publish_all("owner", dry_run=True))
    assert not hub.repos and not pins.PINS.exists()
    done = publish_all("owner")
    assert [each.repo for each in done] == ["owner/seqdemo-one", "owner/seqdemo-two"]
    before = pins.PINS.read_bytes()
    assert not any(each.changed for each in publish_all("owner")) and pins.PINS.read_bytes() == before
    shutil.rmtree(checkpoints.bundled_folder())
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "owner")
    assert checkpoints.names() == ["one", "two"]
    assert checkpoints.load("two").revision == done[1].revision


def test_a_model_pushes_itself(hub: Hub, good_folder: Path, good_files: Files) -> None:
    done = checkpoints.Seq2Seq.from_pretrained(good_folder).push_to_hub(REPO)
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


def test_a_space_needs_its_front_matter(hub: Hub, app: Path) -> None:
    (app / "README.md").write_text("# seqdemo\n\nsdk: gradio\n")
    with pytest.raises(InputError, match="front matter that has the line 'sdk: gradio'"):
        publish_space("owner/app", root=app)
    assert not hub.log


def test_the_project_itself_can_be_a_space(root: Path) -> None:
    names = {str(path.relative_to(root)) for path in space_files(root)}
    assert {"app.py", "README.md", "requirements.txt", "seqdemo/checkpoints/child.py"} <= names
    assert not [name for name in names if name.startswith(("tests", "training", "."))]


@pytest.mark.parametrize("line", [[], ["x"], ["--all"], ["space"], ["--all", "--owner", "a", "--repo", "b/c"]])
def test_an_incomplete_command_says_how_it_is_written(line: list[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    with pytest.raises(InputError, match="^Write: publish"):
        command.run(parser.parse_args(["publish", *line]))


def test_the_command_says_what_it_does(hub: Hub, good_folder: Path) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser.add_subparsers())
    said: list[str] = []
    assert command.run(parser.parse_args(["publish", str(good_folder), "--repo", REPO]), said.append) == 0
    assert said[0] == f"creating {REPO}" and f"{REPO}: sent 6 files" in said[-1] and "Now at " in said[-1]


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
        ("hf_old", REPO, "revoked", "no longer accepts"),
        ("hf_reader", REPO, "read-only", "may only read"),
        ("hf_other", REPO, "forbidden", "may not do this with owner/small"),
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
    begun = time.monotonic()
    publish(good_folder, REPO)
    assert arrived(hub, good_files) and hub.commits(REPO) == ["Publish good"]
    assert time.monotonic() - begun < 60


STAYING = [
    ("PUT", "/lfs/", faults.status(403, message="Request has expired"), "forbidden", "Request has expired"),
    ("POST", "/lfs/verify", faults.status(422, message="not what was announced"), "rejected", "not what was announced"),
    ("POST", "/commit/", faults.status(500), "server", "a fault of its own"),
    ("POST", "/api/validate-yaml", faults.status(400, message="bad card"), "rejected", "rejects the request"),
]


@pytest.mark.parametrize("method, path, fault, kind, says", STAYING, ids=[path for _, path, _, _, _ in STAYING])
def test_a_fault_that_stays_is_told_and_no_commit_is_made(
    hub: Hub, good_folder: Path, good_files: Files, method: str, path: str, fault: faults.Fault, kind: str, says: str
) -> None:
    hub.fault(method, path, fault)
    with refused(kind, says, 60):
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
    """The one who comes second is told, and wrote nothing; where both bring the same, nobody need be told anything."""
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
    hub.fault("PUT", "/lfs/", faults.hang(20), times=1)
    code = f"from seqdemo.checkpoints import push; push({str(good_folder)!r}, {REPO!r})"
    publisher = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not hub.count("PUT", "/lfs/") and time.monotonic() < deadline:
        time.sleep(0.05)
    publisher.send_signal(end)
    assert publisher.wait(30) != 0
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
    hub.fault("POST", "/api/repos/create", faults.hang(30))
    with refused("deadline", "owner/small: not done after 2 seconds", 10):
        publish(good_folder, REPO)
