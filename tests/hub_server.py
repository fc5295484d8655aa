"""A small Hub on loopback: two origins (the hub and its CDN), tokens, LFS, commits, and faults on demand.

    hub = Hub()
    hub.fault("GET", "/resolve/.*model.safetensors", flip, times=1)
    os.environ["HF_ENDPOINT"] = hub.url

What is answered follows the wire protocol of huggingface_hub 2.4. `hub.log` holds every request.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub_faults import Fault, Reply, Request, error
from tests.hub_routes import ROUTES

ATTRIBUTES = b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"


@dataclass
class Repo:
    kind: str
    name: str
    private: bool = False
    gated: bool = False
    commits: list[tuple[str, dict[str, bytes], str]] = field(default_factory=list)
    extra: list[dict[str, Any]] = field(default_factory=list)  # made-up entries of the listing

    def commit(self, files: dict[str, bytes], title: str) -> str:
        seed = f"{self.name} {len(self.commits)} {title}".encode() + b"".join(sorted(files.values()))
        self.commits.append((hashlib.sha1(seed).hexdigest(), files, title))
        return self.commits[-1][0]

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        if revision == "main":
            return self.commits[-1][:2]
        return next((commit[:2] for commit in self.commits if commit[0] == revision), None)


class Hub:
    """Starts at once; `close` ends it. `tokens`: token -> (account, role)."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.tokens = {"hf_owner": ("owner", "write"), "hf_reader": ("owner", "read"), "hf_other": ("other", "write")}
        self.objects: dict[str, bytes] = {}
        self.renamed: dict[str, str] = {}  # former name -> present one
        self.variables: dict[str, dict[str, str]] = {}
        self.log: list[Request] = []
        self.faults: list[list[Any]] = []
        self.lock = threading.RLock()
        self.closing = threading.Event()
        self.servers = [self._serve("hub"), self._serve("cdn")]
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_address[1]}" for server in self.servers)

    def _serve(self, origin: str) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self, origin))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    def close(self) -> None:
        self.closing.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def fault(self, method: str, path: str, fault: Fault, times: int = 1_000) -> None:
        """The next `times` requests of this method whose path matches are answered by `fault`."""
        self.faults.append([method, re.compile(path), fault, times])

    def add(self, name: str, files: dict[str, bytes], kind: str = "model", **flags: bool) -> str:
        """A repository with these files; the commit."""
        repo = self.repos.setdefault(f"{kind}s/{name}", Repo(kind, name, **flags))
        return repo.commit({".gitattributes": ATTRIBUTES, **files}, "first")

    def files(self, name: str, kind: str = "model") -> dict[str, bytes]:
        return self.repos[f"{kind}s/{name}"].commits[-1][1]

    def commits(self, name: str, kind: str = "model") -> list[str]:
        """Titles, the first commit (made with the repository) left out."""
        return [title for _, _, title in self.repos[f"{kind}s/{name}"].commits[1:]]

    def count(self, method: str, path: str = "") -> int:
        return sum(request.method == method and re.search(path, request.path) is not None for request in self.log)

    def answer(self, request: Request) -> Reply:
        with self.lock:
            self.log.append(request)
            fault = self._fault_for(request)

        def truth() -> Reply:
            with self.lock:
                return self.route(request)

        return fault(truth) if fault else truth()

    def _fault_for(self, request: Request) -> Fault | None:
        for rule in self.faults:
            if rule[0] == request.method and rule[1].search(request.path) and rule[3] > 0:
                rule[3] -= 1
                return rule[2]  # type: ignore[no-any-return]
        return None

    def route(self, request: Request) -> Reply:
        for former, present in self.renamed.items():
            if former in request.path:
                return Reply(307, b"", {"Location": request.path.replace(former, present)})
        for method, pattern, function in ROUTES:
            found = re.fullmatch(pattern, request.path)
            if found and method == request.method:
                if request.token and request.token not in self.tokens and request.origin == "hub":
                    return error(401, message="Invalid credentials in Authorization header")
                return function(self, request, *(unquote(group or "") for group in found.groups()))  # type: ignore[no-any-return]
        return error(404, message=f"no route {request.method} {request.path}")

    def account(self, request: Request) -> tuple[str, str]:
        return self.tokens.get(request.token, ("", ""))

    def open(self, request: Request, kind: str, name: str) -> Repo | Reply:
        """The repository, where this token may read it."""
        repo, owner = self.repos.get(f"{kind}/{name}"), name.split("/")[0]
        if repo is None or (repo.private and self.account(request)[0] != owner):
            if not request.token:  # the text speaks of passwords, though nobody gave one
                return error(401, "RepoNotFound", "Invalid username or password.")
            return error(404, "RepoNotFound", "Repository not found")
        return repo

    def may_write(self, request: Request, name: str) -> Reply | None:
        account, role = self.account(request)
        if not account:
            return error(401, message="Invalid username or password.")
        if role != "write" or account != name.split("/")[0]:
            return error(403, message="You don't have the rights to write here")
        return None


def handler_of(hub: Hub, origin: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def read_body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            lower = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, parts.path, parse_qs(parts.query), lower, self.read_body(), origin)
            self.send(hub.answer(request), request)

        def handle(self) -> None:
            with contextlib.suppress(OSError):
                super().handle()

        do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = handle_any

        def send(self, reply: Reply, request: Request) -> None:
            if reply.wait:
                hub.closing.wait(reply.wait)
            if reply.end == "silence":
                self.close_connection = True
                return
            self.send_response(reply.status)
            length = len(reply.body) if reply.announced is None else reply.announced
            trace = request.headers.get("x-amzn-trace-id", "none")
            for name, value in {"Content-Length": str(length), "X-Request-Id": trace, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if request.method != "HEAD":
                for _ in range(reply.times):
                    self.wfile.write(reply.body[: len(reply.body) // 2] if reply.end == "reset" else reply.body)
            if reply.pause:
                self.wfile.flush()
                hub.closing.wait(reply.pause)
            if reply.end:
                self.wfile.flush()
                self.close_connection = True
            if reply.end == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

        def finish(self) -> None:
            with contextlib.suppress(OSError):  # the connection that was reset, or left by the client
                super().finish()

    return Handler
