"""What every fault on the way from the Hub does: a bound in time, a sentence, and what is used instead."""

from __future__ import annotations

import errno
import os
import shutil
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from huggingface_hub import HfApi, errors
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]

from seqdemo import hub as models
from seqdemo.child.parent import Failure
from seqdemo.errors import InputError
from seqdemo.hub import cache, wire
from seqdemo.hub.asking import environment
from seqdemo.hub.faults import SENTENCES, TO_STRANGERS, WHEN_PUBLISHING, hub_error
from seqdemo.hub.loading import default_deadline
from seqdemo.hub.wire import classify
from tests import hub_faults as faults
from tests.hub_expect import NOWHERE, REPO, blob, partial_files, refused, within
from tests.hub_server import Hub
from tests.shared import PATIENCE

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]


# ---------------------------------------------------------------------------------------------- faults of the connection


def test_refused_and_cold(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with refused("refused", "The Hub at http://127.0.0.1:9 refuses the connection"):
        models.load(REPO)


def test_refused_and_warm(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models.load(REPO)
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with within():
        assert models.load(REPO).revision == sha
        assert models.load(REPO, sha).revision == sha


def test_a_name_that_is_not_found(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with refused("no-connection", "this machine seems to be offline"):
        models.load(REPO)


@pytest.mark.parametrize("path", ["/api/models", "resolve/.*config.json", "/lfs/"])
def test_a_black_hole_is_left_at_the_deadline(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("SEQDEMO_HUB_DEADLINE", "2")
    for method in ("GET", "HEAD"):
        hub.fault(method, path, faults.hang(PATIENCE))
    for load in (models.load, models.VisitorModels().visit):
        with refused("deadline", "owner/small was not loaded within 2 seconds"):
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


@pytest.mark.parametrize("table", [{}, WHEN_PUBLISHING, TO_STRANGERS], ids=["load", "publish", "stranger"])
@pytest.mark.parametrize("kind", [*{**SENTENCES, **WHEN_PUBLISHING}, "new"])
def test_every_kind_of_failure_is_one_sentence(kind: str, table: dict[str, str]) -> None:
    told = str(hub_error(Failure(kind, "7" if kind == "rate-limited" else "a\nb."), "owner/small", "main", "/cache", table))
    assert "\n" not in told and told.endswith(".") and "{" not in told and "None" not in told


def test_a_first_look_that_hangs_once(hub: Hub, sha: str, impatient: None) -> None:
    hub.fault("HEAD", "config.json", faults.hang(PATIENCE), times=1)
    assert models.load(REPO).revision == sha


def test_a_download_that_hangs_twice_comes_through(hub: Hub, sha: str, impatient: None) -> None:
    hub.fault("GET", "/lfs/", faults.hang(PATIENCE), times=2)
    with within():
        assert models.load(REPO).revision == sha


@pytest.mark.parametrize(
    "path, fault",
    [("/lfs/", fault) for fault in (faults.truncated, faults.reset, faults.status(500))]
    + [("resolve/.*config.json", fault) for fault in (faults.reset, faults.status(503))],
)
def test_a_download_that_breaks_off_once_comes_through(hub: Hub, sha: str, path: str, fault: faults.Fault) -> None:
    hub.fault("GET", path, fault, times=1)
    with within():
        assert models.load(REPO).revision == sha
    assert not partial_files()


def test_a_body_that_is_always_cut_short(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.truncated)
    with refused("deadline", "was not loaded within 3 seconds"):
        models.load(REPO, deadline=3)
    assert not partial_files() and whole_blobs()


@pytest.mark.parametrize("fault", [faults.shorter, faults.reset])
def test_a_body_that_is_always_too_short_or_reset(hub: Hub, sha: str, fault: faults.Fault) -> None:
    hub.fault("GET", "/lfs/", fault)
    with refused("cut-short", "The connection broke off each time"):
        models.load(REPO)
    assert not partial_files() and hub.count("GET", "/lfs/") == 3
    assert whole_blobs()


def test_a_wrong_announced_size(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "model.safetensors", faults.headers(X_Linked_Size="17"))
    with refused("cut-short", "broke off"):
        models.load(REPO)


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
    assert models.load(REPO).revision == sha
    assert time.monotonic() - begun > 1


@pytest.mark.parametrize(
    "header, says",
    [
        ("the date in an hour", "a pause of (60|5.) minutes;"),
        ("9" * 30, "a pause of 11,575 days;"),
        ("200000", "a pause of 3 days;"),
        ("-5", "a pause; try again after it"),
        ("Thu, 01 Jan 1970 00:00:00 GMT", "a pause; try again after it"),
        ("soon", "a pause; try again after it"),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", "a pause; try again after it"),
    ],
)
def test_a_pause_is_told_in_words_however_it_is_asked_for(hub: Hub, sha: str, header: str, says: str) -> None:
    date = formatdate(time.time() + 3_600, usegmt=True)
    hub.fault("GET", "/api/models", faults.status(429, Retry_After=header.replace("the date in an hour", date)))
    with refused("rate-limited", says):
        models.load(REPO)


@pytest.mark.parametrize("fault", [faults.flip, faults.not_text])
def test_a_listing_that_arrives_broken_is_asked_for_again(hub: Hub, sha: str, fault: faults.Fault) -> None:
    hub.fault("GET", "/api/models", fault, times=1)
    assert models.load(REPO).revision == sha
    hub.fault("GET", "/api/models", fault)
    with refused("garbled", "arrives unreadable"):
        models.load(REPO, refresh=True)


MALFORMED = [
    [],
    7,
    None,
    "x",
    {},
    {"id": 3, "sha": None, "siblings": 3},
    {"siblings": [3]},
    {"siblings": [{"rfilename": 3}]},
    {"siblings": [{"rfilename": "config.json", "size": "large"}]},
    {"siblings": [{"rfilename": "config.json", "size": -5}]},
    {"siblings": [{"rfilename": "config.json", "lfs": 3}]},
    {"siblings": [{"rfilename": "config.json", "lfs": {"sha256": [], "size": 1, "pointerSize": 1}}]},
    {"createdAt": "yesterday"},
]


@pytest.mark.parametrize("value", MALFORMED, ids=[str(number) for number in range(len(MALFORMED))])
def test_a_listing_of_another_form_has_its_sentence(sha: str, hub: Hub, value: object) -> None:
    whole = {"id": REPO, "sha": sha, "private": False, "siblings": [], **value} if isinstance(value, dict) and value else value
    hub.fault("GET", "/api/models", lambda answer: faults.js(whole))
    request = {"repo": REPO, "revision": "main"}
    with pytest.raises(Failure) as caught:
        wire.by_kind(lambda request, say: asked(request))(request, print)
    assert caught.value.kind == "garbled"


def whole_blobs() -> bool:
    """Whether every file in the cache has the bytes that its name stands for."""
    return all(cache.blob_holds(path) for path in cache.cache_folder().glob("*/blobs/*"))


def asked(request: dict[str, str]) -> wire.Listing:
    return wire.listing(HfApi(os.environ["HF_ENDPOINT"], token=False), request, wire.Deadline(5), 2)


def test_a_change_at_this_moment_is_not_told_as_if_one_had_published(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/api/models", faults.status(409, message="Conflict"))
    with refused("conflict", "The Hub is busy changing owner/small"):
        models.load(REPO)


@pytest.mark.parametrize("address", ["nonsense", "ftp://x", "http://", "http://[", "huggingface.co"])
def test_an_endpoint_that_is_no_address(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with refused("endpoint", "HF_ENDPOINT must be an address such as https://huggingface.co"):
        models.load(REPO)


@pytest.mark.parametrize("name", ["http://x/y", "https://huggingface.co/owner/small"])
def test_an_address_is_no_name(hub: Hub, name: str) -> None:
    with pytest.raises(InputError, match="written user/name, without its address"):
        models.load(name)
    assert not hub.log


def test_nothing_of_the_hub_s_text_is_obeyed_by_a_terminal(hub: Hub, sha: str) -> None:
    """Control characters from the Hub or from strangers' files never reach the terminal."""
    hub.fault("GET", "/api/models", faults.status(403, message="\x1b[2Jcleared \x9b31m"))
    with pytest.raises(models.HubError, match=r"\(403, .x1b\[2Jcleared .x9b31m\)"):
        models.load(REPO)
    assert str(InputError("a\x1b\u202eb\ud800")) == "a\\x1b\\u202eb\\ud800"


def test_a_link_of_the_store_that_has_expired(hub: Hub, sha: str) -> None:
    """A new link is asked for; if that does not help, the sentence does not blame the account."""
    hub.fault("GET", "/lfs/", faults.status(403, message="Request has expired"), times=1)
    assert models.load(REPO).revision == sha
    shutil.rmtree(cache.cache_folder())
    hub.fault("GET", "/lfs/", faults.status(403, message="Request has expired"))
    with refused("expired-link", "has expired; check this machine's clock"):
        models.load(REPO)


@pytest.mark.parametrize("packed", [True, False])
def test_a_listing_that_would_fill_the_memory(hub: Hub, sha: str, packed: bool) -> None:
    """In the process that reads it: 40 MB of JSON as they are, or 300 MB in some kilobytes."""
    import gzip

    body = gzip.compress(b" " * (300 << 20), 1) if packed else b" " * (40 << 20)
    more = {"Content-Encoding": "gzip"} if packed else {}
    hub.fault("GET", "/api/models", lambda answer: faults.Reply(200, body, {"Content-Type": "application/json", **more}))
    with refused("hostile", "is unsafe and was not used"):
        models.look(REPO)


@pytest.mark.parametrize("method, path", [("GET", "/api/models"), ("HEAD", "config.json"), ("GET", "/lfs/")])
def test_a_long_pause_is_told_at_once(hub: Hub, sha: str, method: str, path: str) -> None:
    hub.fault(method, path, faults.status(429, Retry_After="300"))
    with refused("rate-limited", "asked too often from here and wants a pause of 5 minutes; try again after it"):
        models.load(REPO)


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_fault_on_the_first_look_passes(hub: Hub, sha: str, code: int) -> None:
    hub.fault("HEAD", "config.json", faults.status(code), times=2)
    hub.fault("GET", "/api/models", faults.status(code), times=1)
    with within():
        assert models.load(REPO).revision == sha


def test_a_server_fault_that_stays(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/api/models", faults.status(503, message="Service Unavailable"))
    with refused("server", r"The Hub has a fault of its own \(503, Service Unavailable\)"):
        models.load(REPO)
    checkpoints_before = hub.count("GET", "/api/models")
    assert checkpoints_before == 3


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_fault_that_stays_on_the_first_look_is_the_hub_s(hub: Hub, sha: str, code: int) -> None:
    hub.fault("HEAD", "config.json", faults.status(code))
    with refused("server", rf"The Hub has a fault of its own \({code}, "):
        models.load(REPO)
    assert hub.count("HEAD", "config.json") == 3


@pytest.mark.parametrize("fault", [faults.status(503), faults.hang(PATIENCE), faults.reset], ids=["503", "hang", "reset"])
def test_a_fault_while_the_cache_is_warm(hub: Hub, sha: str, fault: faults.Fault, impatient: None) -> None:
    models.load(REPO)
    hub.fault("GET", ".*", fault)
    hub.fault("HEAD", ".*", fault)
    with within():
        assert models.load(REPO).revision == models.load(REPO, sha).revision == sha


@pytest.mark.parametrize("path", ["/api/models", "resolve"])
def test_a_log_in_page_of_the_network(hub: Hub, sha: str, path: str) -> None:
    hub.fault("GET", path, faults.portal)
    hub.fault("HEAD", path, faults.portal)
    with refused("not-a-hub", "is not the Hub"):
        models.load(REPO)


def test_no_commit_in_the_answer(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "resolve", faults.headers(X_Repo_Commit=""))
    with refused("not-a-hub", "is not the Hub"):
        models.load(REPO)


def test_no_password_of_an_address_is_told(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    with refused("proxy", "does not work: http://127.0.0.1:9. Correct it"):
        models.load(REPO)
    monkeypatch.delenv("HTTP_PROXY")
    monkeypatch.setenv("HF_ENDPOINT", "http://user:secret@127.0.0.1:9")
    with refused("refused", "The Hub at http://127.0.0.1:9 refuses"):
        models.load(REPO)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_is_not_there(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with refused("proxy", "The proxy that the environment names .* does not work"):
        models.load(REPO)


def test_a_visitor_may_give_up(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.hang(PATIENCE))
    begun = time.monotonic()
    with refused("cancelled", "Stopped"):
        models.load(REPO, cancelled=lambda: time.monotonic() - begun > 1.5)
    assert not partial_files()


# ------------------------------------------------------------------------------------------------------ offline, accounts


def test_offline_mode(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refused("offline-mode", "Offline mode is on"):
        models.load(REPO)
    assert not hub.log
    monkeypatch.delenv("HF_HUB_OFFLINE")
    models.load(REPO)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert models.load(REPO).revision == sha
    with refused("offline-mode", "so owner/small cannot be fetched"):
        models.load(REPO, refresh=True)
    blob().unlink()
    with refused("offline-mode", "Offline mode is on"):
        models.load(REPO)


def test_a_token_that_was_revoked(hub: Hub, sha: str, good_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not bar public repositories; for a private one it is named; what is cached is still served."""
    hub.add("owner/private", good_files, private=True)
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    models.load("owner/private")
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    assert models.load(REPO).revision == sha
    assert models.load("owner/private").name == "owner/private"
    shutil.rmtree(cache.cache_folder())
    for repo in ("owner/private", "owner/misspelt"):
        with refused("revoked", f"refuses the token of this machine, and {repo} is private or does not exist; check its name"):
            models.load(repo)
    hub.fault("GET", "/api/models", faults.status(401, message="Invalid credentials in Authorization header"), times=1)
    hub.fault("GET", "/api/models", faults.status(500))
    with refused("server", "a fault of its own"):
        models.load(REPO)


@pytest.mark.parametrize("token", ["", "hf_other"])
def test_gated(hub: Hub, good_files: Files, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    hub.add(REPO, good_files, gated=True)
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    says = f"owner/small is gated: its owner must grant access first, on {hub.url}/owner/small; then run `hf auth login` here"
    with refused("gated", says):
        models.load(REPO)
    with refused("gated", "owner/small is gated: only accounts that its owner lets in may read it, and this app has none"):
        models.VisitorModels().visit(REPO)


def test_missing_repository_and_missing_revision(hub: Hub, sha: str) -> None:
    with refused("not-found", "There is no repository owner/none at"):
        models.load("owner/none")
    with refused("no-revision", "owner/small has no revision v9"):
        models.load(REPO, "v9")


@pytest.mark.parametrize("token", ["", "hf_owner"])
def test_a_misspelt_or_private_repository_is_no_matter_of_the_token(
    hub: Hub, good_files: Files, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    """The Hub's text speaks of a password, though nobody gave one. A look, a visitor and a damaged copy get the same sentence."""
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    hub.add("other/private", good_files, private=True)
    for repo in ("owner/smalll", "other/private"):
        for ask in (models.load, models.look, models.VisitorModels().visit):
            remedy = (
                "check the spelling, or run `hf auth login` with an account" if ask == models.load else "check the spelling.$"
            )
            with refused("not-found", f"There is no repository {repo} at .*, or it is private; {remedy}"):
                ask(repo)


@pytest.mark.parametrize("name", ["owner/small/tree/main", "models/owner/small", "long/" * 60 + "x" * 300])
def test_a_part_of_an_address_is_no_folder(hub: Hub, name: str) -> None:
    with pytest.raises(InputError, match=f"There is no folder '{name[:60]}.*, and a repository on the Hub is written user/name"):
        models.load(name)
    assert not hub.log


def test_a_damaged_copy_of_a_repository_that_is_gone(hub: Hub, sha: str) -> None:
    models.load(REPO)
    blob().write_bytes(b"damaged")
    del hub.repos[f"models/{REPO}"]
    with pytest.raises(InputError, match="The cached copy of owner/small is damaged .* There is no repository owner/small at"):
        models.load(REPO)


def test_a_folder_that_was_taken_for_a_repository_is_pointed_out(
    hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(good_folder.parent.parent)
    name = f"{good_folder.parent.name}/{good_folder.name}"
    with pytest.raises(InputError, match=f"There is no repository {name} .* write ./{name} for it"):
        models.load(name)
    assert models.load(f"./{name}").config["name"] == "good"
    with pytest.raises(InputError) as caught:
        models.VisitorModels().visit(name)
    assert "folder" not in str(caught.value)


def test_a_file_that_is_listed_and_gone(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "config.json", faults.status(404, "EntryNotFound"))
    with refused("no-file", "lacks a file that it lists"):
        models.load(REPO)


def test_disabled_by_the_hub(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/api/models", faults.status(403, message="Access to this resource is disabled."))
    with refused("disabled", "The Hub has disabled owner/small"):
        models.load(REPO)


# ------------------------------------------------------------------------------------------------ answers of another kind


def page(status: int) -> faults.Fault:
    return lambda answer: faults.Reply(status, b"<html>nginx</html>", {"Content-Type": "text/html; charset=utf-8"})


def leads_to(place: str) -> faults.Fault:
    return lambda answer: faults.Reply(302, b"", {"Location": place})


ANSWERS: list[tuple[str, str, faults.Fault, str, str]] = [
    ("GET", "/api/models", page(404), "not-a-hub", "is not the Hub"),
    ("GET", "/api/models", page(403), "not-a-hub", "is not the Hub"),
    ("GET", "/api/models", leads_to("/api/models/owner/small"), "not-a-hub", "is not the Hub"),
    ("GET", "/api/models", leads_to("ftp://x/y"), "not-a-hub", "is not the Hub"),
    ("HEAD", "config.json", leads_to("/owner/small/resolve/main/config.json"), "not-a-hub", "is not the Hub"),
    ("GET", "/api/models", faults.status(407, message="Log in"), "proxy", "The proxy .* does not work: 407, Log in"),
    ("GET", "/api/models", faults.status(408), "slow", "does not answer"),
    ("GET", "/api/models", lambda answer: faults.Reply(200, b"[" * 200_000), "garbled", "arrives unreadable"),
    ("GET", "resolve/.*config.json", faults.headers(Content_Encoding="gzip"), "garbled", "arrives unreadable"),
    ("GET", "/lfs/", faults.status(404), "no-file", "lacks a file that it lists"),
    ("HEAD", "config.json", faults.status(404), "no-file", "lacks a file that it lists"),
]


@pytest.mark.parametrize("method, path, fault, kind, says", ANSWERS, ids=[str(number) for number in range(len(ANSWERS))])
def test_an_answer_of_another_kind_has_its_sentence(
    hub: Hub, sha: str, method: str, path: str, fault: faults.Fault, kind: str, says: str
) -> None:
    hub.fault(method, path, fault)
    with refused(kind, says):
        models.load(REPO)


def test_who_sent_no_token_is_not_told_of_one(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.fault("GET", "/api/models", faults.status(403, message="Not from here"))
    with refused("no-account", r"lets nobody read owner/small without an account \(403, Not from here\); run `hf auth login`"):
        models.load(REPO)
    with refused("no-account", "and this app has none for visitors"):
        models.look(REPO)
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    with refused("forbidden", "The account of this machine, or its token, may not"):
        models.load(REPO)


@pytest.mark.parametrize("token", ["hf_\u00fc", "hf_\u200bowner"])
def test_a_token_that_no_request_can_carry_is_a_bad_token(
    hub: Hub, sha: str, good_files: Files, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    hub.add("owner/private", good_files, private=True)
    monkeypatch.setenv("HF_TOKEN", token)
    assert models.load(REPO).revision == sha
    with refused("revoked", "refuses the token of this machine"):
        models.load("owner/private")


def test_a_repository_that_was_renamed_is_found_by_its_former_name(hub: Hub, good_files: Files) -> None:
    """The Hub answers with a redirect, for private ones too."""
    commit = hub.add("owner/present", good_files)
    hub.renamed[REPO] = "owner/present"
    assert models.look(REPO).revision == models.load(REPO).revision == commit
    assert models.VisitorModels().visit(REPO).name == REPO


@pytest.mark.parametrize(
    "name, value, says",
    [
        ("HF_HUB_ETAG_TIMEOUT", "soon", "must be a whole number of seconds, not 'soon'"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "1.5", "must be a whole number of seconds, not '1.5'"),
        ("SSL_CERT_FILE", "/nowhere", "SSL_CERT_FILE names '/nowhere', which is no file"),
        ("ALL_PROXY", "socks5://127.0.0.1:9", "The proxy .* does not work: SOCKS needs `pip install socksio`"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=says):
        models.load(REPO)


@pytest.mark.parametrize("address", ["", " "])
def test_an_empty_endpoint_is_none(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    assert environment(anonymous=False)["HF_ENDPOINT"] == "https://huggingface.co"


# ------------------------------------------------------------------------------------------------------- hostile answers


def test_a_hostile_path_in_the_listing_is_passed_over(hub: Hub, sha: str, tmp_path: Path) -> None:
    hub.repos[f"models/{REPO}"].extra.append({"rfilename": "../../../evil.json", "size": 3})
    assert models.load(REPO).revision == sha
    assert not list(tmp_path.rglob("evil.json"))


@pytest.mark.parametrize("header", ["X_Linked_Etag", "ETag", "X_Repo_Commit"])
def test_a_hostile_header_writes_nothing_outside_the_cache(hub: Hub, sha: str, tmp_path: Path, header: str) -> None:
    hub.fault("HEAD", "resolve", faults.headers(**{header: '"../../../../evil"'}))
    with refused("hostile", "is unsafe and was not used"):
        models.load(REPO)
    assert not list(tmp_path.rglob("evil*"))


def test_a_hostile_commit_in_the_listing(hub: Hub, sha: str, tmp_path: Path, good_files: Files) -> None:
    hub.repos[f"models/{REPO}"].commits.append(("../../../evil", good_files, "evil"))
    with refused("hostile", "is unsafe and was not used"):
        models.load(REPO)
    assert not list(tmp_path.rglob("evil*"))
