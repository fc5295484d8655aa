"""What the loopback Hub answers: the wire protocol of huggingface_hub 2.4, as far as models and Spaces need it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.hub_faults import Reply, Request, error, js

if TYPE_CHECKING:
    from tests.hub_server import Hub

LFS_SUFFIXES = (".safetensors", ".model", ".jpg", ".png")


def is_lfs(name: str, data: bytes) -> bool:
    return name.endswith(LFS_SUFFIXES) or len(data) > 10_000_000


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def whoami(hub: Hub, request: Request) -> Reply:
    account, role = hub.account(request)
    if not account:
        return error(401, message="Invalid username or password.")
    return js({"name": account, "type": "user", "orgs": [], "auth": {"accessToken": {"role": role}}})


def create(hub: Hub, request: Request) -> Reply:
    asked = request.json()
    kind = asked.get("type") or "model"
    name = f"{asked.get('organization') or hub.account(request)[0]}/{asked['name']}"
    prefix = "spaces/" if kind == "space" else ""
    url = {"url": f"{hub.url}/{prefix}{name}"}
    if f"{kind}s/{name}" in hub.repos:
        return js({"error": "You already created this repo", **url}, 409)
    refused = hub.may_write(request, name)
    if refused:
        return refused
    hub.add(name, {}, kind, private=asked.get("visibility") == "private")
    return js(url)


def delete(hub: Hub, request: Request) -> Reply:
    asked = request.json()
    name = f"{asked.get('organization') or hub.account(request)[0]}/{asked['name']}"
    return hub.may_write(request, name) or js({"ok": bool(hub.repos.pop(f"{asked.get('type') or 'model'}s/{name}", None))})


def validate_yaml(hub: Hub, request: Request) -> Reply:
    content = request.json()["content"]
    found = re.match(r"---\n(.*?)\n---", content, re.DOTALL)
    wrong = found and [line for line in found[1].splitlines() if "\t" in line]
    if wrong:
        return js({"errors": [{"message": "YAML: tabs are not allowed"}], "warnings": []}, 400)
    return js({"errors": [], "warnings": []})


def oid_of(name: str, files: dict[str, bytes]) -> str | None:
    if name not in files:
        return None
    return sha256(files[name]) if is_lfs(name, files[name]) else git_hash(files[name])


def preupload(hub: Hub, request: Request, kind: str, name: str, revision: str) -> Reply:
    refused = hub.may_write(request, name)
    repo = hub.open(request, kind, name)
    if refused or isinstance(repo, Reply):
        return refused or repo  # type: ignore[return-value]
    files = repo.at(revision)[1]  # type: ignore[index]
    return js({"files": [preupload_entry(entry, files) for entry in request.json()["files"]]})


def preupload_entry(entry: dict[str, Any], files: dict[str, bytes]) -> dict[str, Any]:
    lfs = entry["path"].endswith(LFS_SUFFIXES) or entry["size"] > 10_000_000
    mode = "lfs" if lfs else "regular"
    return {"path": entry["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid_of(entry["path"], files)}


def lfs_batch(hub: Hub, request: Request, kind: str, name: str) -> Reply:
    refused = hub.may_write(request, name)
    if refused:
        return refused
    objects = []
    for entry in request.json()["objects"]:
        oid, size = entry["oid"], int(entry["size"])
        upload = {"href": f"{hub.cdn}/lfs/{oid}", "header": {}}
        verify = {"href": f"{hub.url}/lfs/verify/{oid}"}
        known = oid in hub.objects
        objects.append({"oid": oid, "size": size, **({} if known else {"actions": {"upload": upload, "verify": verify}})})
    return js({"transfer": "basic", "objects": objects})


def lfs_put(hub: Hub, request: Request, oid: str) -> Reply:
    hub.objects[oid] = request.body
    return Reply()


def lfs_verify(hub: Hub, request: Request, oid: str) -> Reply:
    data = hub.objects.get(oid, b"")
    if sha256(data) != oid or len(data) != request.json()["size"]:
        hub.objects.pop(oid, None)
        return error(422, message="The object is not what was announced")
    return js({})


def commit(hub: Hub, request: Request, kind: str, name: str, revision: str) -> Reply:
    refused = hub.may_write(request, name)
    repo = hub.open(request, kind, name)
    if refused or isinstance(repo, Reply):
        return refused or repo  # type: ignore[return-value]
    lines = [json.loads(line) for line in request.body.splitlines() if line]
    header = lines[0]["value"]
    head, files = repo.at("main")  # type: ignore[misc]
    if header.get("parentCommit") not in (None, head):
        return error(412, message="A commit has happened since. Please refresh and try again.")
    files = dict(files)
    for line in lines[1:]:
        refused = apply(hub, files, line["key"], line["value"])
        if refused:
            return refused
    sha = repo.commit(files, header["summary"])
    return js({"commitUrl": f"{hub.url}/{name}/commit/{sha}", "commitOid": sha, "success": True})


def apply(hub: Hub, files: dict[str, bytes], key: str, value: dict[str, Any]) -> Reply | None:
    if key == "file":
        files[value["path"]] = base64.b64decode(value["content"])
    elif key == "lfsFile":
        if value["oid"] not in hub.objects:
            return error(400, message="Unknown LFS object")
        files[value["path"]] = hub.objects[value["oid"]]
    elif key == "deletedFile":
        files.pop(value["path"])
    return None


def sibling(name: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": git_hash(data)}
    return {**entry, "lfs": {"sha256": sha256(data), "size": len(data), "pointerSize": 130}} if is_lfs(name, data) else entry


def info(hub: Hub, request: Request, kind: str, name: str, revision: str = "main") -> Reply:
    repo = hub.open(request, kind, name)
    if isinstance(repo, Reply):
        return repo
    found = repo.at(revision)
    if found is None:
        return error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
    siblings = [*(sibling(path, data) for path, data in found[1].items()), *repo.extra]
    return js({"id": name, "sha": found[0], "private": repo.private, "gated": repo.gated, "siblings": siblings, "tags": []})


def resolve(hub: Hub, request: Request, kind: str | None, name: str, revision: str, path: str) -> Reply:
    repo = hub.open(request, (kind or "models/").rstrip("/"), name)
    if isinstance(repo, Reply):
        return repo
    if repo.gated and hub.account(request)[0] != name.split("/")[0]:
        says = f"Access to model {name} is restricted"
        if not request.token:
            return error(
                401, "GatedRepo", f"{says}. You must have access to it and be authenticated to access it. Please log in."
            )
        says = f"{says} and you are not in the authorized list."
        return error(403, "GatedRepo", f"{says} Visit {hub.url}/{name} to ask for access.")
    found = repo.at(revision)
    if found is None:
        return error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
    sha, files = found
    if path not in files:
        return error(404, "EntryNotFound", "Entry not found", **{"X-Repo-Commit": sha})
    data = files[path]
    if not is_lfs(path, data):
        return ranged(request, data, {"X-Repo-Commit": sha, "ETag": f'"{git_hash(data)}"', "Accept-Ranges": "bytes"})
    oid = sha256(data)
    hub.objects[oid] = data
    linked = {"X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data)), "X-Repo-Commit": sha}
    return Reply(302, b"", {"Location": f"{hub.cdn}/lfs/{oid}", **linked})


def lfs_get(hub: Hub, request: Request, oid: str) -> Reply:
    return ranged(request, hub.objects[oid], {"ETag": f'"{oid}"', "Accept-Ranges": "bytes"})


def ranged(request: Request, data: bytes, named: dict[str, str]) -> Reply:
    found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
    if not found:
        return Reply(200, data, named)
    start = int(found[1])
    return Reply(206, data[start:], {**named, "Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"})


def variable(hub: Hub, request: Request, name: str) -> Reply:
    asked = request.json()
    kept = hub.variables.setdefault(name, {})
    kept[asked["key"]] = asked["value"]
    return hub.may_write(request, name) or js({key: {"key": key, "value": value} for key, value in kept.items()})


KIND, ID, REV = "(models|spaces|datasets)", "([^/]+/[^/]+)", "([^/]+)"
ROUTES: list[tuple[str, str, Callable[..., Reply]]] = [
    ("GET", "/api/agent-harnesses", lambda hub, request: js({"standardEnvVars": [], "harnesses": {}})),
    ("GET", "/api/whoami-v2", whoami),
    ("POST", "/api/repos/create", create),
    ("DELETE", "/api/repos/delete", delete),
    ("POST", "/api/validate-yaml", validate_yaml),
    ("POST", f"/api/{KIND}/{ID}/preupload/{REV}", preupload),
    (
        "POST",
        f"/(spaces/|datasets/)?{ID}\\.git/info/lfs/objects/batch",
        lfs_batch,
    ),
    ("PUT", "/lfs/([0-9a-f]{64})", lfs_put),
    ("GET", "/lfs/([0-9a-f]{64})", lfs_get),
    ("POST", "/lfs/verify/([0-9a-f]{64})", lfs_verify),
    ("POST", f"/api/{KIND}/{ID}/commit/{REV}", commit),
    ("GET", f"/api/{KIND}/{ID}", info),
    ("GET", f"/api/{KIND}/{ID}/revision/{REV}", info),
    ("POST", f"/api/spaces/{ID}/variables", variable),
    ("HEAD", f"/(spaces/|datasets/)?{ID}/resolve/{REV}/(.+)", resolve),
    ("GET", f"/(spaces/|datasets/)?{ID}/resolve/{REV}/(.+)", resolve),
]
