"""Damage on the way and on the disk, processes that are killed, caches that cannot be written."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from seqdemo import hub as models
from seqdemo.errors import InputError
from seqdemo.hub import cache
from seqdemo.ui import launch
from tests import hub_faults as faults
from tests.hub_expect import NOWHERE, REPO, blob, partial_files, refused, within
from tests.hub_server import Hub
from tests.shared import PATIENCE

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]
PUT: dict[str, Callable[[Path], object]] = {  # what may stand at a path of the cache
    "file": lambda path: path.write_text("x"),
    "folder": lambda path: (path.mkdir(), (path / "x").write_text("x")),
    "pipe": os.mkfifo,
    "socket": lambda path: os.mknod(path, 0o600 | stat.S_IFSOCK),
    "circle": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("path", ["/lfs/", "resolve/.*config.json", "resolve/.*manifest.json"])
def test_a_bit_flipped_on_the_way_is_found_and_the_file_fetched_again_once(hub: Hub, sha: str, path: str) -> None:
    hub.fault("GET", path, faults.flip, times=1)
    assert models.load(REPO).revision == sha


def test_bits_that_flip_every_time_are_refused(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.flip)
    with refused("damaged", "model.safetensors of owner/small arrives damaged each time"):
        models.load(REPO)
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
    models.load(REPO)
    os.truncate(blob(name), 100)
    assert models.load(REPO).revision == sha
    before = len(hub.log)
    assert models.load(REPO).revision == sha
    assert len(hub.log) == before


def test_damage_while_the_hub_is_away_names_both(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models.load(REPO)
    os.truncate(blob(), 100)
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with pytest.raises(InputError, match=r"damaged \(model.safetensors has 100 bytes .* did not come: .* refuses the connection"):
        models.load(REPO)


@pytest.mark.parametrize("place", ["refs", "blob", "link"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "circle", "outside", "socket", "device"])
def test_what_is_no_file_in_the_cache_is_put_right_in_time(hub: Hub, sha: str, tmp_path: Path, place: str, kind: str) -> None:
    models.load(REPO)
    storage = cache.repo_folder(cache.cache_folder(), REPO)
    (link,) = storage.glob("snapshots/*/model.safetensors")
    path = {"refs": storage / "refs" / "main", "blob": blob(), "link": link}[place]
    path.unlink()
    (tmp_path / "other").write_text("x")
    {**PUT, "outside": lambda path: path.symlink_to(tmp_path / "other")}[kind](path)
    with within():
        assert models.load(REPO).revision == sha
    before = len(hub.log)
    assert models.load(REPO).revision == sha and (tmp_path / "other").read_text() == "x"
    assert len(hub.log) == before


@pytest.mark.parametrize(
    "place, kind",
    [
        ("", "file"),
        ("refs", "pipe"),
        ("blobs", "circle"),
        ("snapshots", "pipe"),
        ("snapshots/commit", "file"),
    ],
)
def test_what_is_no_folder_in_the_cache_is_put_right_in_time(hub: Hub, sha: str, place: str, kind: str) -> None:
    models.load(REPO)
    storage = cache.repo_folder(cache.cache_folder(), REPO)
    path = storage / place.replace("commit", sha)
    shutil.rmtree(path)
    PUT[kind](path)
    assert models.load(REPO, refresh=True).revision == sha
    assert models.load(REPO).revision == sha


@pytest.mark.parametrize(
    "place, kind", [(".locks", "file"), (".locks", "circle"), (".locks/repository", "pipe"), (".locks/repository", "device")]
)
def test_what_is_no_folder_of_locks_is_put_right_in_time(hub: Hub, sha: str, place: str, kind: str) -> None:
    path = cache.cache_folder() / place.replace("repository", cache.repo_folder(cache.cache_folder(), REPO).name)
    path.parent.mkdir(parents=True)
    PUT[kind](path)
    with within():
        assert models.load(REPO).revision == sha


@pytest.mark.parametrize("kind", ["pipe", "folder", "circle", "device"])
def test_what_is_no_lock_is_put_right_in_time(hub: Hub, sha: str, kind: str) -> None:
    models.load(REPO)
    locks = list((cache.cache_folder() / ".locks").glob("*/*.lock"))
    assert locks
    for path in locks:
        path.unlink()
        PUT[kind](path)
    blob().unlink()
    blob("config.json").unlink()
    with within():
        assert models.load(REPO).revision == sha


@pytest.mark.parametrize("links", [True, False])
def test_damaged_bytes_do_not_stay_where_other_programs_read_them(
    hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Bytes that arrived damaged are removed, and so are bytes that were damaged on the disk while the Hub is away."""
    if not links:
        monkeypatch.setenv("HF_HUB_DISABLE_SYMLINKS", "1")
    hub.fault("GET", "/lfs/", faults.flip)
    with refused("damaged", "arrives damaged"):
        models.load(REPO)
    storage = cache.repo_folder(cache.cache_folder(), REPO)
    assert not [path for path in storage.rglob("*") if path.is_file() and path.stat().st_size == size_of_weights(hub)]
    hub.faults.clear()
    models.load(REPO)
    blob().write_bytes(b"\0" * size_of_weights(hub))
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    with pytest.raises(InputError, match="is damaged .* refuses the connection"):
        models.load(REPO)
    assert not [path for path in storage.rglob("model.safetensors") if path.exists()]


def size_of_weights(hub: Hub) -> int:
    return len(hub.files(REPO)["model.safetensors"])


@pytest.mark.parametrize("skew", [-1000.0, 86_400.0])
def test_orphans_of_killed_downloads_are_swept(hub: Hub, sha: str, skew: float) -> None:
    """Old ones, and ones from a future that a clock once showed; not one that is being written."""
    blobs = cache.repo_folder(cache.cache_folder(), REPO) / "blobs"
    blobs.mkdir(parents=True)
    orphan, alive = blobs / "abc.12345678.incomplete", blobs / "def.12345678.incomplete"
    for path in (orphan, alive):
        path.write_bytes(b"x")
    os.utime(orphan, (time.time() + skew,) * 2)
    models.load(REPO)
    assert partial_files() == [alive]


@pytest.mark.parametrize("when", ["next visitor", "next start"])
def test_orphans_of_any_visitor_are_swept(hub: Hub, sha: str, when: str) -> None:
    blobs = cache.repo_folder(cache.visitors_folder(), "somebody/else") / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "abc.12345678.incomplete").write_bytes(b"x")
    os.utime(blobs / "abc.12345678.incomplete", (time.time() - 1000,) * 2)
    if when == "next visitor":
        models.load(REPO, anonymous=True)
    else:
        launch.after_start(SimpleNamespace(warm=lambda names: None), [])
    assert not list(blobs.iterdir())


def test_a_process_killed_in_the_middle_leaves_nothing_that_stays(hub: Hub, sha: str) -> None:
    hub.fault("GET", "/lfs/", faults.truncated_and_silent(PATIENCE), times=1)
    code = f"from seqdemo.hub import load; load({REPO!r})"
    killed = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + PATIENCE
    while not partial_files() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert partial_files()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert cache.snapshot(cache.cache_folder(), REPO, "main") is None
    assert models.load(REPO).revision == sha
    cache.sweep(cache.cache_folder(), REPO, seconds=0)
    assert not partial_files()


def test_eight_at_once_download_once(hub: Hub, sha: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: models.load(REPO, deadline=100).revision, range(8)))
    assert found == [sha] * 8
    assert hub.count("GET", "/lfs/") == 1


def test_a_cache_that_cannot_be_written(hub: Hub, sha: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "file"))
    with refused("unwritable", "The cache folder .*file/hub cannot be written; set HF_HOME"):
        models.load(REPO)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has a folder in which nothing can be made")
def test_a_cache_on_a_drive_that_is_gone(hub: Hub, sha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", "/proc/gone")
    with refused("unwritable", "The cache folder /proc/gone/hub cannot be written; set HF_HOME"):
        models.load(REPO)


def test_a_cache_that_may_only_be_read_serves_what_it_has(hub: Hub, sha: str) -> None:
    models.load(REPO)
    storage = cache.repo_folder(cache.cache_folder(), REPO)
    folders = [storage, *(path for path in storage.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    assert models.load(REPO).revision == sha
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
    load = f'"{sys.executable}" -c "from seqdemo.hub import load; print(load({REPO!r}).name)"'
    command = f'mount -t tmpfs -o {option} none "{home}" && ! {load} && mount -o remount,rw,size=9m "{home}" && {load}'
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(home)], capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount a small file system")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
    assert re.search(says, done.stderr) and done.stdout.split() == [REPO], done.stderr
