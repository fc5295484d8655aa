"""Loading from the Hub, judged with the real client against a loopback Hub: the order of places, and what every fault does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from seqdemo import checkpoints
from seqdemo.checkpoints import cache, pins
from seqdemo.checkpoints.client import SWITCHES, environment
from seqdemo.errors import InputError
from tests import hub_faults as faults
from tests.hub_server import Hub
from tests.spoiling import CHARS, Payload

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]
REPO = "owner/small"
WEIGHTS = "resolve/.*model.safetensors|/lfs/"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def sha(hub: Hub, good_files: Files) -> str:
    """The commit of a public repository with a good checkpoint."""
    return hub.add(REPO, good_files)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds


@contextmanager
def refused(kind: str, says: str, seconds: float = 10) -> Iterator[None]:
    with within(seconds), pytest.raises(checkpoints.HubError, match=says) as caught:
        yield
    assert caught.value.kind == kind
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def blob(name: str = "model.safetensors") -> Path:
    """Where the cache keeps the bytes of a file."""
    (path,) = cache.repo_folder(cache.cache_folder(), REPO).glob(f"snapshots/*/{name}")
    return path.resolve()


def partial_files() -> list[Path]:
    return list(cache.cache_folder().rglob("*.incomplete"))


# ------------------------------------------------------------------------------------------------------- order of places


def test_a_repository_is_loaded_at_the_commit_of_its_branch(hub: Hub, sha: str) -> None:
    seen: list[tuple[int, int]] = []
    loaded = checkpoints.load(REPO, progress=lambda done, total: seen.append((done, total)))
    assert (loaded.name, loaded.revision, loaded.task) == (REPO, sha, "transliterate")
    assert loaded.source_text is not None and loaded.source_text.encode("cab") == CHARS.encode("cab")
    assert seen == sorted(seen) and seen[-1][0] == seen[-1][1] > 0
    assert all("authorization" not in request.headers for request in hub.log)


@pytest.mark.parametrize("pinned", [False, True])
def test_what_is_cached_is_loaded_without_a_request(hub: Hub, sha: str, pinned: bool) -> None:
    checkpoints.load(REPO)
    before = len(hub.log)
    assert checkpoints.load(REPO, sha if pinned else None).revision == sha
    assert len(hub.log) == before


def test_a_newer_commit_is_asked_for_with_refresh_and_an_older_one_by_its_name(hub: Hub, sha: str, good_files: Files) -> None:
    checkpoints.load(REPO)
    newer = hub.add(REPO, {**good_files, "README.md": b"# newer"})
    assert checkpoints.load(REPO).revision == sha
    assert checkpoints.load(REPO, refresh=True).card == "# newer"
    assert checkpoints.load(REPO).revision == newer
    assert checkpoints.load(REPO, sha).card == "# card"


def test_bundled_comes_before_the_hub(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "owner")
    shutil.copytree(good_folder, checkpoints.bundled_folder() / "small")
    assert checkpoints.load("small").revision == ""
    assert not hub.log


def test_an_account_stands_in_for_missing_checkpoints_at_the_pinned_commit(
    hub: Hub, good_files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins, "PINS", tmp_path / "revisions.json")
    first = hub.add("owner/seqdemo-small", good_files)
    hub.add("owner/seqdemo-small", {**good_files, "README.md": b"# newer"})
    with pytest.raises(InputError, match="There is no checkpoint 'small'"):
        checkpoints.load("small")
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "owner")
    pins.pin("owner", "small", first)
    loaded = checkpoints.load("small")
    assert (loaded.name, loaded.revision, checkpoints.names()) == ("small", first, ["small"])
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "another")
    assert checkpoints.names() == []


def test_only_what_the_manifest_names_is_downloaded(hub: Hub, good_files: Files) -> None:
    hub.add(REPO, {**good_files, "pytorch_model.bin": b"x" * 1000, "deep/er.json": b"{}", "more.safetensors": b"x"})
    checkpoints.load(REPO)
    fetched = {path.name for path in cache.repo_folder(cache.cache_folder(), REPO).glob("snapshots/*/**/*") if path.is_file()}
    assert fetched == {"manifest.json", "config.json", "model.safetensors", "pieces.json", "metrics.json", "README.md"}


@pytest.mark.parametrize("name", ["../x/y", "user/..", "user/a--b", "http://x/y", "user/na me", "u/n?x=1", "-x/y", "x/y/../z"])
def test_what_is_no_repository_id_is_asked_of_nobody(hub: Hub, name: str) -> None:
    with pytest.raises(InputError):
        checkpoints.load(name)
    with pytest.raises(InputError, match="written user/name"):
        checkpoints.ModelShelf().visit(name)
    assert not hub.log


@pytest.mark.parametrize("revision", ["../../x", "/etc", "a..b", "main?x", "-x", "x" * 101])
def test_what_is_no_revision_is_asked_of_nobody(hub: Hub, revision: str) -> None:
    with pytest.raises(InputError, match="A revision is a commit"):
        checkpoints.load(REPO, revision)
    assert not hub.log


# ------------------------------------------------------------------------------------------------- tokens and strangers


def test_ones_own_token_opens_ones_private_repository(hub: Hub, good_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add(REPO, good_files, private=True)
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    assert checkpoints.load(REPO).name == REPO
    assert all("authorization" not in request.headers for request in hub.log if request.origin == "cdn")


def test_a_stranger_never_reads_with_the_token_of_this_machine(
    hub: Hub, good_files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what that token once brought into the cache."""
    hub.add(REPO, good_files, private=True)
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    checkpoints.load(REPO)
    before = len(hub.log)
    with refused("not-found", "There is no repository owner/small .* or it is private"):
        checkpoints.ModelShelf().visit(REPO)
    with refused("not-found", "or it is private"):
        checkpoints.look(REPO)
    assert len(hub.log) > before
    assert all("authorization" not in request.headers for request in hub.log[before:])


def test_a_child_for_a_stranger_is_given_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"):
        monkeypatch.setenv(name, "hf_owner")
    given = environment(anonymous=True)
    assert "hf_owner" not in given.values() and given["HF_HUB_DISABLE_IMPLICIT_TOKEN"] == "1"
    assert environment(anonymous=False)["HF_TOKEN"] == "hf_owner"
    assert {name: given[name] for name in SWITCHES if "TIMEOUT" not in name}.items() <= SWITCHES.items()


def test_a_look_tells_the_size_and_downloads_nothing(hub: Hub, sha: str, good_files: Files) -> None:
    offer = checkpoints.look(REPO)
    assert offer == checkpoints.Offer(REPO, sha, sum(map(len, good_files.values())), False)
    assert hub.count("GET", "resolve|lfs") == 0
    checkpoints.ModelShelf().visit(REPO)
    assert checkpoints.look(REPO) == checkpoints.Offer(REPO, sha, 0, True)


@pytest.mark.parametrize("size", [300 << 20, 1 << 45, None])
def test_sizes_are_asked_first_and_capped(hub: Hub, sha: str, good_files: Files, size: int | None) -> None:
    repo = hub.repos[f"models/{REPO}"]
    repo.extra.append({"rfilename": "model.safetensors", **({} if size is None else {"size": size})})
    with within(10), pytest.raises(InputError, match="does not say how large|more than the"):
        checkpoints.ModelShelf().visit(REPO)
    assert hub.count("GET", WEIGHTS) == 0


def test_a_file_larger_than_announced_is_not_kept(hub: Hub, good_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqdemo.checkpoints.library.MAX_TOTAL", 20_000)
    hub.add(REPO, {**good_files, "model.safetensors": b"x" * 50_000})
    with refused("too-big", "larger than was announced"):
        checkpoints.load(REPO)
    assert not partial_files()


def test_what_is_no_checkpoint_is_not_downloaded(hub: Hub) -> None:
    hub.add(REPO, {"config.json": b"{}", "pytorch_model.bin": b"x"})
    with within(10), pytest.raises(InputError, match=r"owner/small is not a seqdemo checkpoint: it has no manifest.json"):
        checkpoints.load(REPO)
    assert hub.count("GET", "resolve") == 0


def test_a_malformed_repository_is_refused_with_the_file_and_the_reason(hub: Hub, good_files: Files) -> None:
    hub.add(REPO, {**good_files, "model.safetensors": b"pickle"})
    with within(15), pytest.raises(InputError, match=r"model\.safetensors has 6 bytes where manifest\.json says"):
        checkpoints.ModelShelf().visit(REPO)


def test_the_visitors_cache_is_trimmed_by_age(tmp_path: Path) -> None:
    for name, age in (("old", 9000), ("older", 10_000), ("new", 5)):
        blobs = tmp_path / f"models--u--{name}" / "blobs"
        blobs.mkdir(parents=True)
        (blobs / "x").write_bytes(b"x" * 100)
        os.utime(blobs.parent, (time.time() - age,) * 2)
    assert [path.name for path in cache.trim(tmp_path, 250)] == ["models--u--older"]
    assert [path.name for path in cache.trim(tmp_path, 0)] == ["models--u--old"]


# ---------------------------------------------------------------------------------------------- faults of the connection


def test_refused_and_cold(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with refused("refused", "The Hub at http://127.0.0.1:9 refuses the connection"):
        checkpoints.load(REPO)


def test_refused_and_warm(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.load(REPO)
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with within(2):
        assert checkpoints.load(REPO).revision == sha
        assert checkpoints.load(REPO, sha).revision == sha


def test_a_name_that_is_not_found(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    with refused("no-connection", "this machine seems to be offline", 15):
        checkpoints.load(REPO)


@pytest.mark.parametrize("path", ["/api/models", "resolve/.*config.json", "/lfs/"])
def test_a_black_hole_is_left_at_the_deadline(hub: Hub, sha: str, path: str) -> None:
    for method in ("GET", "HEAD"):
        hub.fault(method, path, faults.hang(30))
    with refused("deadline", "owner/small: not done after 2 seconds", 4):
        checkpoints.load(REPO, deadline=2)
    assert not partial_files()


def test_a_first_look_that_hangs_once(hub: Hub, sha: str) -> None:
    hub.fault("HEAD", "config.json", faults.hang(3), times=1)
    assert checkpoints.load(REPO).revision == sha


def test_a_download_that_hangs_twice_comes_through(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.hang(2), times=2)
    with within(15):
        assert checkpoints.load(REPO).revision == sha


@pytest.mark.parametrize(
    "path, fault",
    [("/lfs/", fault) for fault in (faults.truncated, faults.reset, faults.status(500))]
    + [("resolve/.*config.json", fault) for fault in (faults.reset, faults.status(503))],
)
def test_a_download_that_breaks_off_once_comes_through(hub: Hub, sha: str, path: str, fault: faults.Fault) -> None:
    hub.fault("GET", path, fault, times=1)
    with within(15):
        assert checkpoints.load(REPO).revision == sha
    assert not partial_files()


def test_a_body_that_is_always_cut_short(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.truncated)
    with refused("deadline", "not done after 3 seconds", 5):
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
    assert 1 < time.monotonic() - begun < 10


@pytest.mark.parametrize("method, path", [("GET", "/api/models"), ("HEAD", "config.json"), ("GET", "/lfs/")])
def test_a_long_pause_is_told_at_once(hub: Hub, sha: str, method: str, path: str) -> None:
    hub.fault(method, path, faults.status(429, Retry_After="300"))
    with refused("rate-limited", "asks for a pause of 300 seconds", 5):
        checkpoints.load(REPO)


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_fault_on_the_first_look_passes(hub: Hub, sha: str, code: int) -> None:
    hub.fault("HEAD", "config.json", faults.status(code), times=2)
    hub.fault("GET", "/api/models", faults.status(code), times=1)
    with within(15):
        assert checkpoints.load(REPO).revision == sha


def test_a_server_fault_that_stays(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/api/models", faults.status(503, message="Service Unavailable"))
    with refused("server", "The Hub reports a fault of its own"):
        checkpoints.load(REPO)
    checkpoints_before = hub.count("GET", "/api/models")
    assert checkpoints_before == 3


def test_a_server_fault_while_the_cache_is_warm(hub: Hub, sha: str) -> None:
    checkpoints.load(REPO)
    hub.fault("GET", ".*", faults.status(503))
    hub.fault("HEAD", ".*", faults.status(503))
    assert checkpoints.load(REPO).revision == sha


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


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_is_not_there(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with refused("proxy", "The proxy that the environment names"):
        checkpoints.load(REPO)


def test_a_visitor_may_give_up(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.hang(30))
    begun = time.monotonic()
    with refused("cancelled", "Stopped", 5):
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
    with within(10), pytest.raises(InputError):
        checkpoints.load(REPO)
    assert not list(tmp_path.rglob("evil*"))


# ------------------------------------------------------------------------------------------------------ damage and disks


@pytest.mark.parametrize("path", ["/lfs/", "resolve/.*config.json", "resolve/.*manifest.json"])
def test_a_bit_flipped_on_the_way_is_found_and_the_file_fetched_again_once(hub: Hub, sha: str, path: str) -> None:
    hub.fault("GET", path, faults.flip, times=1)
    assert checkpoints.load(REPO).revision == sha


def test_bits_that_flip_every_time_are_refused(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.flip)
    with refused("damaged", "model.safetensors of owner/small arrives damaged every time"):
        checkpoints.load(REPO)
    assert hub.count("GET", "/lfs/") == 2


@pytest.mark.parametrize(
    "name, links",
    [("model.safetensors", True), ("config.json", True), ("manifest.json", True), ("model.safetensors", False)],
)
def test_a_file_cut_short_on_disk_is_fetched_again(
    hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, name: str, links: bool
) -> None:
    if not links:
        monkeypatch.setenv("HF_HUB_DISABLE_SYMLINKS", "1")
    checkpoints.load(REPO)
    os.truncate(blob(name), 100)
    assert checkpoints.load(REPO).revision == sha
    before = len(hub.log)
    assert checkpoints.load(REPO).revision == sha
    assert len(hub.log) == before


def test_damage_while_the_hub_is_away_names_both(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints.load(REPO)
    os.truncate(blob(), 100)
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with pytest.raises(InputError, match=r"damaged \(model.safetensors has 100 bytes .* did not come: .* refuses the connection"):
        checkpoints.load(REPO)


@pytest.mark.parametrize("skew", [-1000.0, 86_400.0])
def test_orphans_of_killed_downloads_are_swept(hub: Hub, sha: str, skew: float) -> None:
    """Old ones, and ones from a future that a clock once showed; not one that is being written."""
    blobs = cache.repo_folder(cache.cache_folder(), REPO) / "blobs"
    blobs.mkdir(parents=True)
    orphan, alive = blobs / "abc.12345678.incomplete", blobs / "def.12345678.incomplete"
    for path in (orphan, alive):
        path.write_bytes(b"x")
    os.utime(orphan, (time.time() + skew,) * 2)
    checkpoints.load(REPO)
    assert partial_files() == [alive]


def test_a_process_killed_in_the_middle_leaves_nothing_that_stays(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.truncated_and_silent(20), times=1)
    code = f"from seqdemo import checkpoints; checkpoints.load({REPO!r})"
    killed = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + 20
    while not partial_files() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert partial_files()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert cache.snapshot(cache.cache_folder(), REPO, "main") is None
    assert checkpoints.load(REPO).revision == sha
    cache.sweep(cache.cache_folder(), REPO, seconds=0)
    assert not partial_files()


def test_eight_at_once_download_once(hub: Hub, sha: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: checkpoints.load(REPO, deadline=40).revision, range(8)))
    assert found == [sha] * 8
    assert hub.count("GET", "/lfs/") == 1


def test_a_cache_that_cannot_be_written(hub: Hub, sha: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "file"))
    with refused("unwritable", "The cache folder .*file/hub cannot be written; set HF_HOME"):
        checkpoints.load(REPO)


def test_a_cache_that_may_only_be_read_serves_what_it_has(hub: Hub, sha: str) -> None:
    checkpoints.load(REPO)
    storage = cache.repo_folder(cache.cache_folder(), REPO)
    folders = [storage, *(path for path in storage.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    assert checkpoints.load(REPO).revision == sha
    for path in folders:
        path.chmod(0o755)


def test_without_a_home_the_cache_is_where_the_library_has_it(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    code = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert str(cache.cache_folder()) == printed == str(tmp_path / ".cache/huggingface/hub")
    assert constants.HF_HUB_CACHE


def test_a_full_disk(hub: Hub, good_files: Files, tmp_path: Path) -> None:
    """In a namespace of its own, where a file system of 100 kB may be mounted."""
    hub.add(REPO, {**good_files, "manifest.json": good_files["manifest.json"] + b" " * 150_000})
    home = tmp_path / "home"
    home.mkdir()
    code = f"from seqdemo import checkpoints; checkpoints.load({REPO!r})"
    command = f'mount -t tmpfs -o size=100k none "{home}" && exec "{sys.executable}" -c "{code}"'
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(home)], capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount a small file system")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert "The disk is full; make room in" in done.stderr


# ------------------------------------------------------------------------------------------------------ from_pretrained


def test_a_model_travels_with_all_it_needs(hub: Hub, sha: str, tmp_path: Path, good_files: Files) -> None:
    model = checkpoints.Seq2Seq.from_pretrained(REPO)
    model.save_pretrained(tmp_path / "copy")
    again = checkpoints.load(tmp_path / "copy")
    assert all(torch.equal(tensor, again.model.state_dict()[name]) for name, tensor in model.state_dict().items())
    assert again.metrics == json.loads(good_files["metrics.json"]) and again.card == "# card" and again.languages == ("hi",)


def test_a_bare_model_comes_back_and_is_no_checkpoint(tmp_path: Path) -> None:
    made = checkpoints.Seq2Seq.from_pretrained(_saved(tmp_path / "bare"))
    with pytest.raises(InputError, match="holds a bare model"):
        checkpoints.load(tmp_path / "bare")
    with pytest.raises(InputError, match="is a Seq2Seq, not a LanguageModel"):
        checkpoints.LanguageModel.from_pretrained(tmp_path / "bare")
    assert made.readout.weight.requires_grad


def _saved(folder: Path) -> Path:
    from seqdemo.config import ModelConfig
    from tests.spoiling import SIZES

    return checkpoints.Seq2Seq(ModelConfig(target_vocabulary=9, source_vocabulary=9, **SIZES)).save_pretrained(folder)


@pytest.mark.parametrize(
    "name, says",
    [("model.safetensors", "it has no model.safetensors"), ("config.json", "it has no config.json"), ("metrics.json", "")],
)
def test_from_pretrained_fills_nothing_in(hub: Hub, good_files: Files, tmp_path: Path, name: str, says: str) -> None:
    """A missing config is no default model, missing weights are no random ones and no pickle."""
    import pickle

    evil = {"pytorch_model.bin": pickle.dumps(Payload(tmp_path / "fired"))}
    hub.add(REPO, {**{path: data for path, data in good_files.items() if path != name}, **evil})
    if says:
        with pytest.raises(InputError, match=says):
            checkpoints.Seq2Seq.from_pretrained(REPO)
    else:
        assert checkpoints.Seq2Seq.from_pretrained(REPO)
    assert not (tmp_path / "fired").exists()


# ----------------------------------------------------------------------------------------------------------- the shelf


def fake_opener(sizes: dict[str, int], opened: list[str]) -> object:
    def opener(repo: str, revision: str, **_: object) -> checkpoints.Checkpoint:
        opened.append(repo)
        model = torch.nn.Linear(sizes[repo] // 4 - 1, 1)
        return checkpoints.Checkpoint(repo, "translate", model, None, None, {}, revision=f"{revision}-seen")

    return opener


def test_the_shelf_keeps_what_was_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    sizes = dict.fromkeys(("u/a", "u/b", "u/c"), 400)
    shelf = checkpoints.ModelShelf(count=2, ceiling=10_000, opener=fake_opener(sizes, opened))
    keys = {}
    for repo in ("u/a", "u/b", "u/a", "u/c", "u/a", "u/b"):
        if repo in keys:
            shelf.get(keys[repo])
        else:
            keys[repo] = checkpoints.Key(repo, shelf.visit(repo).revision)
    assert opened == ["u/a", "u/b", "u/c", "u/b"]


def test_the_shelf_never_holds_more_bytes_than_its_ceiling() -> None:
    opened: list[str] = []
    sizes = {"u/a": 600, "u/b": 600, "u/c": 2000}
    shelf = checkpoints.ModelShelf(count=9, ceiling=1000, opener=fake_opener(sizes, opened))
    for repo in ("u/a", "u/b"):
        shelf.visit(repo)
    assert [key.repo for key in shelf.held] == ["u/b"]
    with pytest.raises(InputError, match="u/c takes .* MB of memory"):
        shelf.visit("u/c")
    assert [key.repo for key in shelf.held] == ["u/b"]


def test_two_visitors_of_one_repository_open_it_once(hub: Hub, sha: str) -> None:
    shelf = checkpoints.ModelShelf()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: shelf.visit(REPO, sha), range(4)))
    assert all(each is found[0] for each in found)
    assert hub.count("GET", "/lfs/") == 1 and not shelf.opening


def test_a_crowd_of_visitors_is_asked_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[checkpoints.ModelShelf.__module__], "PATIENCE", 0.1)
    arrived, go_on = threading.Semaphore(0), threading.Event()

    def opener(repo: str, *_: str, **__: object) -> checkpoints.Checkpoint:
        arrived.release()
        go_on.wait(10)
        return checkpoints.Checkpoint(repo, "translate", torch.nn.Linear(1, 1), None, None, {}, revision="main")

    shelf = checkpoints.ModelShelf(openings=2, opener=opener)
    with ThreadPoolExecutor(2) as pool:
        first = [pool.submit(shelf.visit, f"u/{name}") for name in "ab"]
        assert all(arrived.acquire(timeout=10) for _ in first)
        with pytest.raises(InputError, match="Several other visitors"):
            shelf.visit("u/c")
        go_on.set()
        assert [each.result().name for each in first] == ["u/a", "u/b"]
    assert shelf.visit("u/c").name == "u/c"


def test_another_visitor_is_served_while_one_waits(hub: Hub, sha: str, good_files: Files) -> None:
    shelf = checkpoints.ModelShelf()
    shelf.visit(REPO, sha)
    hub.add("owner/slow", good_files)
    hub.fault("GET", "/api/models/owner/slow", faults.hang(1.5), times=1)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(shelf.visit, "owner/slow")
        with within(0.5):
            shelf.visit(REPO, sha)
        assert slow.result().name == "owner/slow"
