"""What every fault on the way from the Hub does: a bound in time, a sentence, and what is used instead."""

from __future__ import annotations

import errno
import shutil
import time
from pathlib import Path

import pytest
from huggingface_hub import errors
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

from seqdemo import checkpoints
from seqdemo.checkpoints import cache
from seqdemo.checkpoints.client import Failure
from seqdemo.checkpoints.library import default_deadline
from seqdemo.checkpoints.sentences import SENTENCES, hub_error
from seqdemo.checkpoints.wire import classify
from seqdemo.errors import InputError
from tests import hub_faults as faults
from tests.hub_expect import NOWHERE, REPO, blob, partial_files, refused, within
from tests.hub_server import Hub

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]


# ---------------------------------------------------------------------------------------------- faults of the connection


def test_refused_and_cold(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with refused("refused", "The Hub at http://127.0.0.1:9 refuses the connection"):
        checkpoints.load(REPO)


def test_refused_and_warm(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.load(REPO)
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with within(10):
        assert checkpoints.load(REPO).revision == sha
        assert checkpoints.load(REPO, sha).revision == sha


def test_a_name_that_is_not_found(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with refused("no-connection", "this machine seems to be offline"):
        checkpoints.load(REPO)


@pytest.mark.parametrize("path", ["/api/models", "resolve/.*config.json", "/lfs/"])
def test_a_black_hole_is_left_at_the_deadline(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("SEQDEMO_HUB_DEADLINE", "2")
    for method in ("GET", "HEAD"):
        hub.fault(method, path, faults.hang(30))
    for load in (checkpoints.load, checkpoints.ModelShelf().visit):
        with refused("deadline", "owner/small: not done after 2 seconds", 10):
            load(REPO)
    assert not partial_files()


def test_the_deadline_is_half_a_minute_or_a_number_of_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEQDEMO_HUB_DEADLINE", raising=False)
    assert default_deadline() == 30
    for wrong in ("soon", "nan", "inf", "0", "-1", "1e9"):
        monkeypatch.setenv("SEQDEMO_HUB_DEADLINE", wrong)
        with pytest.raises(InputError, match=f"must be a number of seconds from 0 to 86,400, not '{wrong}'"):
            default_deadline()


@pytest.mark.parametrize(
    "kind, error",
    [
        ("certificate", httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate is not yet valid")),
        ("slow", httpx.ReadTimeout("timed out")),
        ("cut-short", httpx.RemoteProtocolError("peer closed connection")),
        ("unwritable", PermissionError(errno.EACCES, "Permission denied", "/x")),
        ("unwritable", OSError(errno.EROFS, "Read-only file system", "/x")),
        ("disk-full", OSError(errno.ENOSPC, "No space left on device")),
    ],
)
def test_what_a_test_can_hardly_bring_about_has_its_kind(kind: str, error: Exception) -> None:
    wrapped = errors.LocalEntryNotFoundError("as the library wraps it")
    wrapped.__cause__ = error
    assert classify(error)[0] == classify(wrapped)[0] == kind


@pytest.mark.parametrize("kind", [*SENTENCES, "new"])
def test_every_kind_of_failure_is_one_sentence(kind: str) -> None:
    told = str(hub_error(Failure(kind, "a\nb."), "owner/small", "main", "/cache"))
    assert "\n" not in told and told.endswith(".") and "{" not in told and "None" not in told


def test_a_first_look_that_hangs_once(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "config.json", faults.hang(3), times=1)
    assert checkpoints.load(REPO).revision == sha


def test_a_download_that_hangs_twice_comes_through(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.hang(2), times=2)
    with within(40):
        assert checkpoints.load(REPO).revision == sha


@pytest.mark.parametrize(
    "path, fault",
    [("/lfs/", fault) for fault in (faults.truncated, faults.reset, faults.status(500))]
    + [("resolve/.*config.json", fault) for fault in (faults.reset, faults.status(503))],
)
def test_a_download_that_breaks_off_once_comes_through(hub: Hub, sha: str, path: str, fault: faults.Fault) -> None:
    hub.fault("GET", path, fault, times=1)
    with within(40):
        assert checkpoints.load(REPO).revision == sha
    assert not partial_files()


def test_a_body_that_is_always_cut_short(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.truncated)
    with refused("deadline", "not done after 3 seconds", 10):
        checkpoints.load(REPO, deadline=3)
    assert not partial_files()


@pytest.mark.parametrize("fault", [faults.shorter, faults.reset])
def test_a_body_that_is_always_too_short_or_reset(hub: Hub, sha: str, fault: faults.Fault) -> None:
    hub.fault("GET", "/lfs/", fault)
    with refused("cut-short", "The connection broke off several times"):
        checkpoints.load(REPO)
    assert not partial_files() and hub.count("GET", "/lfs/") == 3


def test_a_wrong_announced_size(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "model.safetensors", faults.headers(X_Linked_Size="17"))
    with refused("cut-short", "broke off"):
        checkpoints.load(REPO)


@pytest.mark.parametrize(
    "method, path, limit",
    [
        ("GET", "/api/models", {"ratelimit": '"api";r=0;t=1'}),
        ("HEAD", "config.json", {"Retry_After": "1"}),
        ("GET", "/lfs/", {"Retry_After": "1"}),
    ],
)
def test_a_short_pause_is_kept(hub: Hub, sha: str, method: str, path: str, limit: dict[str, str]) -> None:
    hub.fault(method, path, faults.status(429, **limit), times=1)
    begun = time.monotonic()
    assert checkpoints.load(REPO).revision == sha
    assert 1 < time.monotonic() - begun < 40


@pytest.mark.parametrize("method, path", [("GET", "/api/models"), ("HEAD", "config.json"), ("GET", "/lfs/")])
def test_a_long_pause_is_told_at_once(hub: Hub, sha: str, method: str, path: str) -> None:
    hub.fault(method, path, faults.status(429, Retry_After="300"))
    with refused("rate-limited", "asks for a pause of 300 seconds"):
        checkpoints.load(REPO)


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_fault_on_the_first_look_passes(hub: Hub, sha: str, code: int) -> None:
    hub.fault("HEAD", "config.json", faults.status(code), times=2)
    hub.fault("GET", "/api/models", faults.status(code), times=1)
    with within(40):
        assert checkpoints.load(REPO).revision == sha


def test_a_server_fault_that_stays(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/api/models", faults.status(503, message="Service Unavailable"))
    with refused("server", "The Hub reports a fault of its own"):
        checkpoints.load(REPO)
    checkpoints_before = hub.count("GET", "/api/models")
    assert checkpoints_before == 3


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_fault_that_stays_on_the_first_look_ends_at_the_deadline(hub: Hub, sha: str, code: int) -> None:
    hub.fault("HEAD", "config.json", faults.status(code))
    with refused("deadline", "not done after 3 seconds", 10):
        checkpoints.load(REPO, deadline=3)


@pytest.mark.parametrize("fault", [faults.status(503), faults.hang(30), faults.reset], ids=["503", "hang", "reset"])
def test_a_fault_while_the_cache_is_warm(hub: Hub, sha: str, fault: faults.Fault) -> None:
    checkpoints.load(REPO)
    hub.fault("GET", ".*", fault)
    hub.fault("HEAD", ".*", fault)
    with within(15):
        assert checkpoints.load(REPO).revision == checkpoints.load(REPO, sha).revision == sha


@pytest.mark.parametrize("path", ["/api/models", "resolve"])
def test_a_log_in_page_of_the_network(hub: Hub, sha: str, path: str) -> None:
    hub.fault("GET", path, faults.portal)
    hub.fault("HEAD", path, faults.portal)
    with refused("not-a-hub", "is not the Hub"):
        checkpoints.load(REPO)


def test_no_commit_in_the_answer(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "resolve", faults.headers(X_Repo_Commit=""))
    with refused("not-a-hub", "is not the Hub"):
        checkpoints.load(REPO)


def test_no_password_of_an_address_is_told(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    with refused("proxy", "cannot be used: http://127.0.0.1:9. Correct it"):
        checkpoints.load(REPO)
    monkeypatch.delenv("HTTP_PROXY")
    monkeypatch.setenv("HF_ENDPOINT", "http://user:secret@127.0.0.1:9")
    with refused("refused", "The Hub at http://127.0.0.1:9 refuses"):
        checkpoints.load(REPO)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_is_not_there(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with refused("proxy", "The proxy that the environment names"):
        checkpoints.load(REPO)


def test_a_visitor_may_give_up(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.hang(30))
    begun = time.monotonic()
    with refused("cancelled", "Stopped", 10):
        checkpoints.load(REPO, cancelled=lambda: time.monotonic() - begun > 1.5)
    assert not partial_files()


# ------------------------------------------------------------------------------------------------------ offline, accounts


def test_offline_mode(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refused("offline-mode", "Offline mode is on"):
        checkpoints.load(REPO)
    assert not hub.log
    monkeypatch.delenv("HF_HUB_OFFLINE")
    checkpoints.load(REPO)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert checkpoints.load(REPO).revision == sha
    blob().unlink()
    with refused("offline-mode", "Offline mode is on"):
        checkpoints.load(REPO)


def test_a_token_that_was_revoked(hub: Hub, sha: str, good_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not bar public repositories; for a private one it is named; what is cached is still served."""
    hub.add("owner/private", good_files, private=True)
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    checkpoints.load("owner/private")
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    assert checkpoints.load(REPO).revision == sha
    assert checkpoints.load("owner/private").name == "owner/private"
    shutil.rmtree(cache.cache_folder())
    with refused("revoked", "no longer accepts this machine's token"):
        checkpoints.load("owner/private")


def test_gated(hub: Hub, good_files: Files) -> None:
    hub.add(REPO, good_files, gated=True)
    with refused("gated", f"owner/small is gated: its owner must grant access first, on {hub.url}/owner/small"):
        checkpoints.load(REPO)


def test_missing_repository_and_missing_revision(hub: Hub, sha: str) -> None:
    with refused("not-found", "There is no repository owner/none at"):
        checkpoints.load("owner/none")
    with refused("no-revision", "owner/small has no revision v9"):
        checkpoints.load(REPO, "v9")


def test_a_folder_that_was_taken_for_a_repository_is_pointed_out(
    hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_folder.parent.parent)
    name = f"{good_folder.parent.name}/{good_folder.name}"
    with pytest.raises(InputError, match=f"There is no repository {name} .* write ./{name} for it"):
        checkpoints.load(name)
    assert checkpoints.load(f"./{name}").config["name"] == "good"
    with pytest.raises(InputError) as caught:
        checkpoints.ModelShelf().visit(name)
    assert "folder" not in str(caught.value)


def test_a_file_that_is_listed_and_gone(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "config.json", faults.status(404, "EntryNotFound"))
    with refused("no-file", "lacks a file that it lists"):
        checkpoints.load(REPO)


def test_disabled_by_the_hub(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/api/models", faults.status(403, message="Access to this resource is disabled."))
    with refused("disabled", "The Hub has disabled owner/small"):
        checkpoints.load(REPO)


# ------------------------------------------------------------------------------------------------------- hostile answers


def test_a_hostile_path_in_the_listing_is_passed_over(hub: Hub, sha: str, tmp_path: Path) -> None:
    hub.repos[f"models/{REPO}"].extra.append({"rfilename": "../../../evil.json", "size": 3})
    assert checkpoints.load(REPO).revision == sha
    assert not list(tmp_path.rglob("evil.json"))


@pytest.mark.parametrize("header", ["X_Linked_Etag", "ETag", "X_Repo_Commit"])
def test_a_hostile_header_writes_nothing_outside_the_cache(hub: Hub, sha: str, tmp_path: Path, header: str) -> None:
    hub.fault("HEAD", "resolve", faults.headers(**{header: '"../../../../evil"'}))
    with refused("hostile", "is unsafe and was not used"):
        checkpoints.load(REPO)
    assert not list(tmp_path.rglob("evil*"))


def test_a_hostile_commit_in_the_listing(hub: Hub, sha: str, tmp_path: Path, good_files: Files) -> None:
    hub.repos[f"models/{REPO}"].commits.append(("../../../evil", good_files, "evil"))
    with refused("hostile", "is unsafe and was not used"):
        checkpoints.load(REPO)
    assert not list(tmp_path.rglob("evil*"))
