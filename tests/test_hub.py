"""Loading from the Hub, judged with the real client against a loopback Hub: the order of places, strangers, models in memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import seqdemo
from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.checkpoints.folder import MANIFEST, manifest_of
from seqdemo.errors import InputError
from seqdemo.hub import cache, places
from seqdemo.hub.asking import SWITCHES, environment
from seqdemo.network.model import LanguageModel, Seq2Seq
from tests import hub_faults as faults
from tests import tiny
from tests.hub_expect import REPO, WEIGHTS, partial_files, refused, within
from tests.hub_server import Hub
from tests.shared import PATIENCE
from tests.spoiling import CHARS, Payload, tensors

pytest_plugins = ("tests.hub_fixtures",)
Files = dict[str, bytes]


# ------------------------------------------------------------------------------------------------------- order of places


def test_a_repository_is_loaded_at_the_commit_of_its_branch(hub: Hub, sha: str) -> None:
    seen: list[tuple[int, int]] = []
    loaded = models.load(REPO, progress=lambda done, total: seen.append((done, total)))
    assert (loaded.name, loaded.revision, loaded.task) == (REPO, sha, "transliterate")
    assert loaded.source_text is not None and loaded.source_text.encode("cab") == CHARS.encode("cab")
    assert seen == sorted(seen) and seen[-1][0] == seen[-1][1] > 0
    assert all("authorization" not in request.headers for request in hub.log)


@pytest.mark.parametrize("pinned", [False, True])
def test_what_is_cached_is_loaded_without_a_request(hub: Hub, sha: str, pinned: bool) -> None:
    models.load(REPO)
    before = len(hub.log)
    assert models.load(REPO, sha if pinned else None).revision == sha
    assert len(hub.log) == before


def test_a_newer_commit_is_asked_for_with_refresh_and_an_older_one_by_its_name(hub: Hub, sha: str, good_files: Files) -> None:
    models.load(REPO)
    newer = hub.add(REPO, {**good_files, "README.md": b"# newer"})
    assert models.load(REPO).revision == sha
    assert models.load(REPO, refresh=True).card == "# newer"
    assert models.load(REPO).revision == newer
    assert models.load(REPO, sha).card == "# card"


def test_bundled_comes_before_the_hub(hub: Hub, good_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "owner")
    shutil.copytree(good_folder, checkpoints.shipped_folder() / "small")
    assert models.load("small").revision == ""
    assert not hub.log


def test_what_names_no_checkpoint_has_its_sentence(hub: Hub) -> None:
    for name, words in ((5, "a name, a folder or user/name, not 5"), ("~nobody-of-this-name/x", "home folder .* is not known")):
        with pytest.raises(InputError, match=words):
            models.load(name)  # type: ignore[arg-type]
    assert not hub.log


def test_a_deadline_that_is_no_number_of_seconds_has_its_sentence(hub: Hub) -> None:
    for deadline in ("x", True, float("nan"), 0, -1):
        for asked in (models.load, models.Seq2Seq.from_pretrained, models.look):
            with pytest.raises(InputError, match="deadline must be a number of seconds above 0, not"):
                asked("someone/model", deadline=deadline)  # type: ignore[operator]
    assert not hub.log


def test_a_folder_that_is_no_checkpoint_is_told_so_whatever_links_it_holds(tmp_path: Path) -> None:
    (tmp_path / "away").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="is not a checkpoint: manifest.json is missing"):
        models.load(tmp_path)


def test_a_revision_of_a_folder_is_refused_with_a_sentence(hub: Hub, good_folder: Path) -> None:
    shutil.copytree(good_folder, checkpoints.shipped_folder() / "small")
    for name in ("small", good_folder, f"{good_folder}"):
        for load in (models.load, models.Seq2Seq.from_pretrained):
            with pytest.raises(InputError, match="is a folder here, which has one version; leave the revision out"):
                load(name, "v1.0")
    assert not hub.log


def test_an_account_stands_in_for_missing_checkpoints_at_the_pinned_commit(
    hub: Hub, good_files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PINS", tmp_path / "revisions.json")
    first = hub.add("owner/seqdemo-small", good_files)
    hub.add("owner/seqdemo-small", {**good_files, "README.md": b"# newer"})
    with pytest.raises(InputError, match="There is no checkpoint 'small'"):
        models.load("small")
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "owner")
    places.pin("owner", "small", first)
    loaded = models.load("small")
    assert (loaded.name, loaded.revision, models.names()) == ("small", first, ["small"])
    monkeypatch.setenv("SEQDEMO_HUB_OWNER", "another")
    assert models.names() == []


def test_only_what_the_manifest_names_is_downloaded(hub: Hub, good_files: Files) -> None:
    hub.add(REPO, {**good_files, "pytorch_model.bin": b"x" * 1000, "deep/er.json": b"{}", "more.safetensors": b"x"})
    models.load(REPO)
    fetched = {path.name for path in cache.repo_folder(cache.cache_folder(), REPO).glob("snapshots/*/**/*") if path.is_file()}
    assert fetched == {"manifest.json", "config.json", "model.safetensors", "pieces.json", "metrics.json", "README.md"}


@pytest.mark.parametrize("name", ["../x/y", "user/..", "user/a--b", "http://x/y", "user/na me", "u/n?x=1", "-x/y", "x/y/../z"])
def test_what_is_no_repository_id_is_asked_of_nobody(hub: Hub, name: str) -> None:
    with pytest.raises(InputError):
        models.load(name)
    with pytest.raises(InputError, match="written user/name"):
        models.VisitorModels().visit(name)
    assert not hub.log


@pytest.mark.parametrize("revision", ["../../x", "/etc", "a..b", "main?x", "-x", "x" * 101])
def test_what_is_no_revision_is_asked_of_nobody(hub: Hub, revision: str) -> None:
    with pytest.raises(InputError, match="A revision is a commit"):
        models.load(REPO, revision)
    assert not hub.log


# ------------------------------------------------------------------------------------------------- tokens and strangers


def log_in(kept: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token of this machine, as a variable, as `hf auth login` keeps it, or where other programs look."""
    if kept == "variable":
        monkeypatch.setenv("HF_TOKEN", "hf_owner")
    home.mkdir()
    if kept == "file":
        (home / "token").write_text("hf_owner")
    if kept == "netrc":
        (home / "netrc").write_text("machine 127.0.0.1 login owner password hf_owner")
        monkeypatch.setenv("NETRC", str(home / "netrc"))


@pytest.mark.parametrize("kept", ["variable", "file", "netrc"])
def test_a_stranger_s_public_repository_is_read_without_a_token_on_both_origins(
    hub: Hub, sha: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    log_in(kept, tmp_path / "home", monkeypatch)
    assert models.look(REPO).revision == sha
    assert models.VisitorModels().visit(REPO).revision == sha
    assert {request.origin for request in hub.log} == {"hub", "cdn"}
    assert not [request.path for request in hub.log if {"authorization", "cookie"} & set(request.headers)]


def test_strangers_models_lie_apart_from_ones_own(hub: Hub, sha: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both lie below HF_HOME. The token is sent only for one's own."""
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    home = tmp_path / "home"
    models.VisitorModels().visit(REPO)
    assert {path.name for path in home.iterdir()} == {"seqdemo-visitors"} and {each.token for each in hub.log} == {""}
    models.load(REPO)
    assert {path.name for path in home.iterdir()} >= {"seqdemo-visitors", "hub"}
    assert {each.token for each in hub.log} == {"", "hf_owner"}


@pytest.mark.parametrize("kept", ["variable", "file"])
def test_ones_own_token_opens_ones_private_repository(
    hub: Hub, good_files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    hub.add(REPO, good_files, private=True)
    log_in(kept, tmp_path / "home", monkeypatch)
    assert models.load(REPO).name == REPO
    assert all("authorization" not in request.headers for request in hub.log if request.origin == "cdn")


def test_a_stranger_never_reads_with_the_token_of_this_machine(
    hub: Hub, good_files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the token nor the files that it once brought into the cache are used."""
    hub.add(REPO, good_files, private=True)
    monkeypatch.setenv("HF_TOKEN", "hf_owner")
    models.load(REPO)
    before = len(hub.log)
    with refused("not-found", "There is no repository owner/small .* or it is private"):
        models.VisitorModels().visit(REPO)
    with refused("not-found", "or it is private"):
        models.look(REPO)
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
    offer = models.look(REPO)
    assert offer == models.Offer(REPO, sha, sum(map(len, good_files.values())), False)
    assert hub.count("GET", "resolve|lfs") == 0
    models.VisitorModels().visit(REPO)
    assert models.look(REPO) == models.Offer(REPO, sha, 0, True)


@pytest.mark.parametrize("size", [300 << 20, 1 << 45, None])
def test_sizes_are_asked_first_and_capped(hub: Hub, sha: str, good_files: Files, size: int | None) -> None:
    repo = hub.repos[f"models/{REPO}"]
    repo.extra.append({"rfilename": "model.safetensors", **({} if size is None else {"size": size})})
    with within(), pytest.raises(InputError, match="does not say how large|more than the"):
        models.VisitorModels().visit(REPO)
    assert hub.count("GET", WEIGHTS) == 0


def test_files_that_are_small_each_and_large_together_are_not_downloaded(hub: Hub, good_files: Files) -> None:
    names = ("one.safetensors", "two.safetensors")
    hub.add(REPO, {**good_files, MANIFEST: manifest_of({**good_files, **dict.fromkeys(names, b"")})})
    hub.repos[f"models/{REPO}"].extra.extend({"rfilename": name, "size": 120 << 20} for name in names)
    with within(), pytest.raises(InputError, match="owner/small has 240 MB of files; at most 200 MB"):
        models.VisitorModels().visit(REPO)
    assert hub.count("GET", WEIGHTS) == 0


def test_a_look_refuses_what_is_too_large_or_no_checkpoint(hub: Hub, sha: str) -> None:
    hub.repos[f"models/{REPO}"].extra.append({"rfilename": "model.safetensors", "size": 300 << 20})
    with within(), pytest.raises(InputError, match="model.safetensors has 314,572,800 bytes, more than"):
        models.look(REPO)
    hub.add("owner/other", {"config.json": b"{}"})
    with within(), pytest.raises(InputError, match="is not a seqdemo checkpoint"):
        models.look("owner/other")


def test_a_file_larger_than_announced_is_not_kept(hub: Hub, good_files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqdemo.hub.loading.MAX_TOTAL", 20_000)
    hub.add(REPO, {**good_files, "model.safetensors": b"x" * 50_000})
    with refused("too-big", "larger than was announced"):
        models.load(REPO)
    assert not partial_files()


def test_what_is_no_checkpoint_is_not_downloaded(hub: Hub) -> None:
    hub.add(REPO, {"config.json": b"{}", "pytorch_model.bin": b"x"})
    with within(), pytest.raises(InputError, match=r"owner/small is not a seqdemo checkpoint: it has no manifest.json"):
        models.load(REPO)
    assert hub.count("GET", "resolve") == 0


def test_a_malformed_repository_is_refused_with_the_file_and_the_reason(hub: Hub, good_files: Files) -> None:
    hub.add(REPO, {**good_files, "model.safetensors": b"pickle"})
    with within(), pytest.raises(InputError, match=r"model\.safetensors has 6 bytes where manifest\.json says"):
        models.VisitorModels().visit(REPO)


def test_the_visitors_cache_is_trimmed_by_age(tmp_path: Path) -> None:
    for name, age in (("old", 9000), ("older", 10_000), ("new", 5)):
        blobs = tmp_path / f"models--u--{name}" / "blobs"
        blobs.mkdir(parents=True)
        (blobs / "x").write_bytes(b"x" * 100)
        os.utime(blobs.parent, (time.time() - age,) * 2)
    assert [path.name for path in cache.trim(tmp_path, 250)] == ["models--u--older"]
    assert [path.name for path in cache.trim(tmp_path, 0)] == ["models--u--old"]


def gone_for(look: Callable[..., os.stat_result], links: bool) -> Callable[..., os.stat_result]:
    """The function, for which files named "gone" went just after they were listed."""

    def looked(path: object, *given: object, follow_symlinks: bool = True, **named: object) -> os.stat_result:
        if str(path).endswith("gone") and (links or not follow_symlinks):
            raise FileNotFoundError(2, "gone", str(path))
        return look(path, *given, **named) if links else look(path, *given, follow_symlinks=follow_symlinks, **named)

    return looked


def test_a_file_that_goes_while_the_cache_is_measured_disturbs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the partial files of another visitor's download do."""
    blobs = tmp_path / "models--u--n" / "blobs"
    blobs.mkdir(parents=True)
    for name in ("kept", "gone"):
        (blobs / name).write_bytes(b"x" * 100)
    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, gone_for(getattr(os, name), links=name == "lstat"))
    assert cache.trim(tmp_path, 50, untouched=-1.0) == [blobs.parent]


def test_a_repository_that_is_being_fetched_is_not_trimmed(hub: Hub, sha: str, good_files: Files) -> None:
    """Though it was used long ago."""
    shelf = models.VisitorModels()
    shelf.visit(REPO)
    storage = cache.repo_folder(cache.visitors_folder(), REPO)
    os.utime(storage, (0, 0))
    newer = hub.add(REPO, {**good_files, "README.md": b"# newer"})
    hub.fault("GET", "/api/models", faults.status(404, "RepoNotFound"))
    with pytest.raises(models.HubError, match="There is no repository"):
        shelf.visit(REPO, newer)
    assert time.time() - storage.stat().st_mtime < 3600


# ------------------------------------------------------------------------------------------------------ from_pretrained


def test_a_model_travels_with_all_it_needs(hub: Hub, sha: str, tmp_path: Path, good_files: Files) -> None:
    model = models.Seq2Seq.from_pretrained(REPO)
    model.save_pretrained(tmp_path / "copy")
    again = models.load(tmp_path / "copy")
    assert all(torch.equal(tensor, again.model.state_dict()[name]) for name, tensor in model.state_dict().items())
    assert again.metrics == json.loads(good_files["metrics.json"]) and again.card == "# card" and again.languages == ("hi",)


@pytest.mark.parametrize("task", ["translate", "complete"])
def test_there_is_one_seq2seq_and_one_language_model(hub: Hub, tmp_path: Path, task: str) -> None:
    """What load returns, what is public and what training builds is the same class; each may be saved, searched and replayed."""
    folder = tiny.MAKERS[task](tmp_path / "tiny")
    loaded = seqdemo.load(folder)
    kind = seqdemo.Seq2Seq if task == "translate" else seqdemo.LanguageModel
    assert kind is {"translate": Seq2Seq, "complete": LanguageModel}[task] and type(loaded.model) is kind
    network = kind.from_pretrained(folder).train()
    given = "Hund katze." if task == "translate" else "The "
    found, expected = seqdemo.run(network, given), seqdemo.run(loaded, given)
    assert found.texts == expected.texts and not network.training
    tokens = found.hypotheses[0].tokens
    assert seqdemo.replay(network, found, tokens).total == pytest.approx(seqdemo.replay(loaded, found, tokens).total, abs=1e-4)
    assert seqdemo.score(network, given, "cat").total == pytest.approx(seqdemo.score(loaded, given, "cat").total, abs=1e-4)
    for one in (network, loaded.model):  # the second is one for inference, saved as what it was made from
        again = seqdemo.load(one.save_pretrained(tmp_path / "again"))
        assert again.config == loaded.config and seqdemo.run(again, given).texts == expected.texts
        assert one.push_to_hub("owner/tiny", dry_run=True).created
    with torch.no_grad():
        network.readout.b += torch.randn_like(network.readout.b) * 20
    assert seqdemo.run(network, given).hypotheses[0].total != found.hypotheses[0].total


def test_a_network_without_tokenizers_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="This network has no tokenizers; take one by from_pretrained"):
        seqdemo.run(models.Seq2Seq.from_pretrained(_saved(tmp_path / "bare")), "a")


def test_a_network_taken_from_its_own_room_says_what_it_lacks() -> None:
    code = "from seqdemo.network.model import Seq2Seq; Seq2Seq.from_pretrained('x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "write: from seqdemo import LanguageModel, Seq2Seq." in done.stderr


def test_a_bare_model_comes_back_and_is_no_checkpoint(tmp_path: Path) -> None:
    made = models.Seq2Seq.from_pretrained(_saved(tmp_path / "bare"))
    with pytest.raises(InputError, match="holds a bare model"):
        models.load(tmp_path / "bare")
    with pytest.raises(InputError, match=r"is a Seq2Seq, not a LanguageModel; .* write load\(...\).model.bare\(\)"):
        models.LanguageModel.from_pretrained(tmp_path / "bare")
    assert made.readout.weight.requires_grad


def _saved(folder: Path) -> Path:
    from seqdemo.config import ModelConfig
    from tests.spoiling import SIZES

    return models.Seq2Seq(ModelConfig(target_vocabulary=9, source_vocabulary=9, **SIZES)).save_pretrained(folder)


@pytest.mark.parametrize(
    "name, says",
    [("model.safetensors", "it has no model.safetensors"), ("config.json", "it has no config.json"), ("metrics.json", "")],
)
def test_from_pretrained_fills_nothing_in(hub: Hub, good_files: Files, tmp_path: Path, name: str, says: str) -> None:
    """A default model does not replace a missing config; neither random numbers nor a pickle replace missing weights."""
    import pickle

    evil = {"pytorch_model.bin": pickle.dumps(Payload(tmp_path / "fired"))}
    hub.add(REPO, {**{path: data for path, data in good_files.items() if path != name}, **evil})
    if says:
        with pytest.raises(InputError, match=says):
            models.Seq2Seq.from_pretrained(REPO)
    else:
        assert models.Seq2Seq.from_pretrained(REPO)
    assert not (tmp_path / "fired").exists()


def test_from_pretrained_wants_every_tensor_and_no_other(good_folder: Path, tmp_path: Path) -> None:
    for number, (change, says) in enumerate(
        [
            (lambda found: found.pop("readout.b"), "readout.b is missing"),
            (lambda found: found.update(more=torch.zeros(2)), "more is not part"),
            (lambda found: found.update({"readout.b": torch.zeros(3)}), "readout.b has shape"),
        ]
    ):
        folder = shutil.copytree(good_folder, tmp_path / str(number))
        tensors(change)(folder)
        checkpoints.write_manifest(folder)
        with pytest.raises(InputError, match=says):
            models.Seq2Seq.from_pretrained(folder)


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
    shelf = models.VisitorModels(count=2, ceiling=10_000, opener=fake_opener(sizes, opened))
    keys = {}
    for repo in ("u/a", "u/b", "u/a", "u/c", "u/a", "u/b"):
        if repo in keys:
            shelf.get(keys[repo])
        else:
            keys[repo] = models.Key(repo, shelf.visit(repo).revision)
    assert opened == ["u/a", "u/b", "u/c", "u/b"]


def test_the_shelf_never_holds_more_bytes_than_its_ceiling() -> None:
    opened: list[str] = []
    sizes = {"u/a": 600, "u/b": 600, "u/c": 2000}
    shelf = models.VisitorModels(count=9, ceiling=1000, opener=fake_opener(sizes, opened))
    for repo in ("u/a", "u/b"):
        shelf.visit(repo)
    assert [key.repo for key in shelf.held] == ["u/b"]
    with pytest.raises(InputError, match="u/c takes .* MB of memory"):
        shelf.visit("u/c")
    assert [key.repo for key in shelf.held] == ["u/b"]


def test_two_visitors_of_one_repository_open_it_once(hub: Hub, sha: str) -> None:
    shelf = models.VisitorModels()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: shelf.visit(REPO, sha), range(4)))
    assert all(each is found[0] for each in found)
    assert hub.count("GET", "/lfs/") == 1 and not shelf.opening


def test_a_crowd_of_visitors_is_asked_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[models.VisitorModels.__module__], "PATIENCE", 0.1)
    arrived, go_on = threading.Semaphore(0), threading.Event()

    def opener(repo: str, *_: str, **__: object) -> checkpoints.Checkpoint:
        arrived.release()
        go_on.wait(PATIENCE)
        return checkpoints.Checkpoint(repo, "translate", torch.nn.Linear(1, 1), None, None, {}, revision="main")

    shelf = models.VisitorModels(openings=2, opener=opener)
    with ThreadPoolExecutor(2) as pool:
        first = [pool.submit(shelf.visit, f"u/{name}") for name in "ab"]
        assert all(arrived.acquire(timeout=PATIENCE) for _ in first)
        with pytest.raises(InputError, match="Several other visitors"):
            shelf.visit("u/c")
        go_on.set()
        assert [each.result().name for each in first] == ["u/a", "u/b"]
    assert shelf.visit("u/c").name == "u/c"


def test_another_visitor_is_served_while_one_waits(hub: Hub, sha: str, good_files: Files) -> None:
    shelf = models.VisitorModels()
    shelf.visit(REPO, sha)
    hub.add("owner/slow", good_files)
    go_on = threading.Event()
    hub.fault("GET", "/api/models/owner/slow", faults.until(go_on), times=1)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(shelf.visit, "owner/slow")
        shelf.visit(REPO, sha)
        assert not slow.done()
        go_on.set()
        assert slow.result().name == "owner/slow"
