"""Damage on the way and on the disk, processes that are killed, caches that cannot be written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seqdemo import checkpoints
from seqdemo.checkpoints import cache
from seqdemo.errors import InputError
from tests import hub_faults as faults
from tests.hub_expect import NOWHERE, REPO, blob, partial_files, refused
from tests.hub_server import Hub

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]


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
    deadline = time.monotonic() + 60
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
        found = list(pool.map(lambda _: checkpoints.load(REPO, deadline=100).revision, range(8)))
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


@pytest.mark.parametrize(
    "option, says",
    [("size=100k", "The disk is full; make room in"), ("ro", "The cache folder .* cannot be written; set HF_HOME")],
)
def test_a_full_disk_and_one_that_may_only_be_read(hub: Hub, good_files: Files, tmp_path: Path, option: str, says: str) -> None:
    """In a namespace of its own, where a file system may be mounted; with room, and writable, the next try succeeds."""
    hub.add(REPO, {**good_files, "manifest.json": good_files["manifest.json"] + b" " * 150_000})
    home = tmp_path / "home"
    home.mkdir()
    load = f'"{sys.executable}" -c "from seqdemo import checkpoints; print(checkpoints.load({REPO!r}).name)"'
    command = f'mount -t tmpfs -o {option} none "{home}" && ! {load} && mount -o remount,rw,size=9m "{home}" && {load}'
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(home)], capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount a small file system")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert re.search(says, done.stderr) and done.stdout.split() == [REPO], done.stderr
