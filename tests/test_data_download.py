"""Downloads from a server on the loopback address that breaks off, forgets ranges, changes files and refuses."""

from __future__ import annotations

import hashlib
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest

from seqdemo.errors import InputError
from tests.data_files import BOOK
from training.data import load
from training.data.download import File, cache_folder, fetch, fetch_all
from training.data.public import SOURCES, Source

WHOLE = bytes(range(256)) * 40
OTHER = WHOLE[::-1]


@dataclass
class Reply:
    """How the server answers one request."""

    body: bytes = WHOLE
    status: int = 200
    cut: int | None = None  # bytes actually sent
    ranges: bool = True
    etag: str = '"one"'
    headers: dict[str, str] = field(default_factory=dict)


class Server(ThreadingHTTPServer):
    """Answers request number i with reply i, and every later one with the last."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[Reply] = [Reply()]
        self.seen: list[dict[str, str]] = []
        self.threads_lock = threading.Lock()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("range") for headers in self.seen]


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith("/api/"):  # what the Hub's client asks about itself
            self.send_error(404)
            return
        server = self.server
        with server.threads_lock:
            reply = server.replies[min(len(server.seen), len(server.replies) - 1)]
            server.seen.append({"path": self.path} | {name.lower(): value for name, value in self.headers.items()})
        status, body, extra = reply.status, reply.body, dict(reply.headers)
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if status == 200 and reply.ranges and asked and self.headers.get("If-Range") == reply.etag:
            start = int(asked[1])
            if start >= len(body):
                status, extra["Content-Range"], body = 416, f"bytes */{len(body)}", b""
            else:
                status, extra["Content-Range"], body = 206, f"bytes {start}-{len(body) - 1}/{len(body)}", body[start:]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in ({"ETag": reply.etag} if reply.etag else {}).items() | extra.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if reply.cut is None else body[: reply.cut])
        self.close_connection = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("training.data.download.PAUSE", 0.0)
    monkeypatch.setattr("training.data.download.LONGEST_PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def file(server: Server, sha256: str = "") -> File:
    return File("folder/file.zip", f"{server.origin}/file.zip", sha256=sha256)


def left(folder: Path) -> set[str]:
    """What lies in the folder, the lock aside."""
    return {path.name for path in (folder / "folder").iterdir() if path.suffix != ".lock"}


def of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_whole_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    path = fetch(file(server, of(WHOLE)), tmp_path, lambda here, total: progress.append((here, total)))
    assert path.read_bytes() == WHOLE and left(tmp_path) == {"file.zip"}
    assert progress[-1] == (len(WHOLE), len(WHOLE))
    fetch(file(server), tmp_path)
    assert len(server.seen) == 1


@pytest.mark.parametrize("cuts", [[100], [1, 0, 4000], [9_999, 100, 100]])
def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(server: Server, tmp_path: Path, cuts: list[int]) -> None:
    server.replies = [*(Reply(cut=cut) for cut in cuts), Reply()]
    assert fetch(file(server, of(WHOLE)), tmp_path).read_bytes() == WHOLE
    starts = [None, *(f"bytes={sum(cuts[: i + 1])}-" for i in range(len(cuts)))]
    assert server.ranges == starts


def test_a_server_without_ranges_sends_it_all_again(server: Server, tmp_path: Path) -> None:
    server.replies = [Reply(cut=5000, ranges=False), Reply(ranges=False)]
    assert fetch(file(server), tmp_path).read_bytes() == WHOLE


def test_a_file_that_changed_in_between_is_not_stitched_together(server: Server, tmp_path: Path) -> None:
    server.replies = [Reply(cut=5000), Reply(OTHER, etag='"two"')]
    assert fetch(file(server), tmp_path).read_bytes() == OTHER


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_proof_that_the_file_is_the_same_it_starts_again(server: Server, tmp_path: Path, etag: str) -> None:
    server.replies = [Reply(cut=5000, etag=etag), Reply(etag=etag)]
    assert fetch(file(server), tmp_path).read_bytes() == WHOLE
    assert server.ranges == [None, None]


def test_a_date_is_proof_enough(server: Server, tmp_path: Path) -> None:
    dated = {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}
    server.replies = [Reply(cut=5000, etag="", headers=dated), Reply(etag="", headers=dated)]
    assert fetch(file(server), tmp_path).read_bytes() == WHOLE
    assert server.seen[1]["if-range"] == dated["Last-Modified"]


def test_another_run_goes_on_where_the_last_one_was_killed(server: Server, tmp_path: Path) -> None:
    server.replies = [Reply(cut=0)]
    with pytest.raises(
        InputError,
        match=r"could not be fetched .*goes on with what has arrived, or give a folder that holds folder/file.zip with --data",
    ):
        fetch(file(server), tmp_path)
    assert len(server.seen) == 5
    (tmp_path / "folder" / "file.zip.part").write_bytes(WHOLE[:7000])
    server.seen, server.replies = [], [Reply()]
    assert fetch(file(server), tmp_path).read_bytes() == WHOLE
    assert server.ranges == ["bytes=7000-"]


def test_a_run_killed_just_before_the_renaming_fetches_nothing_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.zip.part").write_bytes(WHOLE)
    (tmp_path / "folder" / "file.zip.part.etag").write_text('"one"')
    assert fetch(file(server, of(WHOLE)), tmp_path).read_bytes() == WHOLE
    assert server.ranges == [f"bytes={len(WHOLE)}-"] and left(tmp_path) == {"file.zip"}


def test_a_part_longer_than_the_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.zip.part").write_bytes(WHOLE + b"x")
    (tmp_path / "folder" / "file.zip.part.etag").write_text('"one"')
    assert fetch(file(server), tmp_path).read_bytes() == WHOLE


def test_damage_on_the_way_is_repaired_by_a_second_transfer(server: Server, tmp_path: Path) -> None:
    server.replies = [Reply(b"\0" + WHOLE[1:]), Reply()]
    assert fetch(file(server, of(WHOLE)), tmp_path).read_bytes() == WHOLE


def test_damage_twice_is_refused_and_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.replies = [Reply(b"\0" + WHOLE[1:]), Reply(b"\1" + WHOLE[1:])]
    with pytest.raises(InputError, match="arrived damaged twice"):
        fetch(file(server, of(b"what was recorded")), tmp_path)
    assert left(tmp_path) == set()


def test_a_public_file_that_has_changed_is_taken_as_it_is(server: Server, tmp_path: Path) -> None:
    server.replies = [Reply(OTHER)]
    assert fetch(file(server, of(WHOLE)), tmp_path).read_bytes() == OTHER
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_told_at_once(server: Server, tmp_path: Path, status: int) -> None:
    server.replies = [Reply(b"gone", status)]
    with pytest.raises(InputError, match=f"answers {status} .*with --data"):
        fetch(file(server), tmp_path)
    assert len(server.seen) == 1 and left(tmp_path) == set()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path, status: int) -> None:
    server.replies = [Reply(b"later", status, headers={"Retry-After": "1"}), Reply(b"later", status), Reply()]
    assert fetch(file(server), tmp_path).read_bytes() == WHOLE


def test_a_server_that_is_not_there_is_explained(server: Server, tmp_path: Path) -> None:
    with Server() as gone:
        nowhere = file(gone)
    with pytest.raises(InputError, match=r"could not be fetched \(the connection was refused\)"):
        fetch(nowhere, tmp_path)


def test_a_folder_that_cannot_be_written_is_explained(server: Server, tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file stands in the way")
    with pytest.raises(InputError, match="cannot be written .*SEQDEMO_CACHE"):
        fetch(file(server), tmp_path)


def test_several_at_once_fetch_it_once(server: Server, tmp_path: Path) -> None:
    server.replies = [Reply(cut=5000), Reply()]
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(fetch(file(server), tmp_path).read_bytes())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [WHOLE] * 4 and len(server.seen) == 2


def test_a_set_without_a_folder_comes_from_the_public_files(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEQDEMO_CACHE", str(tmp_path))
    files = (File("lm/tiny_shakespeare.txt", f"{server.origin}/input.txt"),)
    monkeypatch.setitem(SOURCES, "tiny-shakespeare", Source("Title", "home", "licence", files))
    server.replies = [Reply(BOOK.encode(), cut=500), Reply(BOOK.encode())]
    dataset = load("tiny-shakespeare")
    assert "".join(split.examples[0].references[0] for split in dataset.splits().values()) == BOOK
    assert not dataset.verified
    assert "lm/tiny_shakespeare.txt" in capsys.readouterr().err
    assert load("tiny-shakespeare") == dataset and len(server.seen) == 2


def test_the_cache_stands_where_the_person_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SEQDEMO_CACHE", raising=False)
    assert cache_folder() == tmp_path / "seqdemo" / "data"
    monkeypatch.setenv("SEQDEMO_CACHE", "~/own")
    assert cache_folder() == Path.home() / "own" / "data"


# ------------------------------------------------------------------------------------------------------------------ Hub


@pytest.fixture
def hub(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    template = server.origin + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.origin)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(Handler, "do_HEAD", head, raising=False)
    return server


def head(self: Handler) -> None:
    missing = "absent" in self.path
    self.send_response(404 if missing else 200)
    extra = {"X-Error-Code": "EntryNotFound"} if missing else {"ETag": '"0123456789abcdef"'}
    for name, value in {"X-Repo-Commit": "a" * 40, "Content-Length": str(len(WHOLE)), **extra}.items():
        self.send_header(name, value)
    self.end_headers()


def test_files_of_the_hub_come_through_its_own_client(hub: Server, tmp_path: Path) -> None:
    fetch_all([File("multi30k/train.jsonl", repo="someone/multi30k")], tmp_path)
    assert (tmp_path / "multi30k" / "train.jsonl").read_bytes() == WHOLE
    assert hub.seen[0]["path"] == "/datasets/someone/multi30k/resolve/main/train.jsonl"
    assert "authorization" not in hub.seen[0]


def test_a_file_that_the_hub_lacks_is_explained(hub: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"datasets/someone/x could not be fetched .*a folder that holds absent.zip with --data"):
        fetch(File("absent.zip", repo="someone/x"), tmp_path)


def test_a_hub_that_is_not_found_is_told_in_one_sentence(
    hub: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def unknown(*_: object, **__: object) -> None:
        logging.getLogger("huggingface_hub.utils._http").warning("thrown while requesting HEAD")
        try:
            raise socket.gaierror(-2, "Name or service not known")
        except OSError as error:
            raise ValueError("An error happened. Please check your connection.") from error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", unknown)
    with pytest.raises(InputError) as caught:
        fetch(File("x/a.jsonl", repo="someone/x"), tmp_path)
    assert str(caught.value) == (
        "https://huggingface.co/datasets/someone/x could not be fetched (its host is not found; is there a connection to the "
        "Internet?): run the command again, which goes on with what has arrived, or give a folder that holds x/a.jsonl with "
        "--data."
    )
    assert not capfd.readouterr().err


def test_every_public_file_has_one_address() -> None:
    files = [each for source in SOURCES.values() for each in source.files]
    assert all(bool(each.url) != bool(each.repo) for each in files)
    assert all(each.url.startswith("https://") for each in files if each.url)
    assert len({each.path for each in files}) == len(files)
    is_digest: Callable[[str], object] = re.compile("[0-9a-f]{64}|").fullmatch
    assert all(is_digest(each.sha256) for each in files)
