from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch
from torch import Tensor

from seqdemo.checkpoints import folder
from seqdemo.errors import InputError
from training.run import runstate


def tensors(step: int) -> dict[str, Tensor]:
    return {"w": torch.full((3, 2), float(step)), "random/cpu": torch.arange(step, dtype=torch.uint8), "n": torch.tensor(step)}


def save(folder: Path, step: int) -> Path:
    return runstate.save(folder, step, tensors(step), {"step": step})


def step_of(folder: Path) -> int:
    saved = runstate.load(folder)
    assert saved
    assert all(torch.equal(saved.tensors[name], tensor) for name, tensor in tensors(saved.values["step"]).items())
    return int(saved.values["step"])


def test_the_newest_of_two_kept_states_is_loaded(tmp_path: Path) -> None:
    for step in (1, 2, 30, 4_000):
        save(tmp_path, step)
        assert step_of(tmp_path) == step
    assert [path.name[6:14] for path in runstate.states(tmp_path)] == ["00004000", "00000030"]


def test_there_may_be_no_state_yet(tmp_path: Path) -> None:
    assert runstate.load(tmp_path) is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied", "unreadable"])
def test_a_damaged_newest_state_gives_way_to_the_one_before(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 1)
    newest = save(tmp_path, 2)
    data = newest.read_bytes()
    newest.unlink()
    if damage == "unreadable":
        newest.mkdir()
    else:
        newest.write_bytes({"cut": data[:-1], "flipped": bytes([data[0] ^ 1]) + data[1:], "emptied": b""}[damage])
    saved = runstate.load(tmp_path)
    assert saved and saved.values["step"] == 1
    assert saved.complaints == (f"{newest.name} is damaged; going back to the state before it.",)


def test_a_damaged_state_that_was_passed_over_never_pushes_out_a_whole_one(tmp_path: Path) -> None:
    save(tmp_path, 10)
    damaged = save(tmp_path, 20)
    damaged.write_bytes(b"")
    save(tmp_path, 15)
    assert [path.name[6:14] for path in runstate.states(tmp_path)] == ["00000015", "00000010"]


def test_a_damaged_older_state_never_pushes_out_a_whole_one(tmp_path: Path) -> None:
    save(tmp_path, 140)
    save(tmp_path, 149).write_bytes(b"half")
    save(tmp_path, 187)
    assert [path.name[6:14] for path in runstate.states(tmp_path)] == ["00000187", "00000140"]


def test_all_damaged_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    save(tmp_path, 1).write_bytes(b"?")
    with pytest.raises(InputError, match="No whole state is left .* --fresh"):
        runstate.load(tmp_path)


@pytest.mark.parametrize("moment", ["write", "fsync", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_write_that_fails_leaves_the_state_before_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, number: int
) -> None:
    save(tmp_path, 1)

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    if moment == "write":
        monkeypatch.setattr(folder, "open", fail, raising=False)
    else:
        monkeypatch.setattr(runstate.os, "fsync" if moment == "fsync" else "replace", fail)
    with pytest.raises(OSError) as caught:
        save(tmp_path, 2)
    monkeypatch.undo()
    said = str(runstate.unwritable(caught.value, tmp_path))
    assert ("the disk is full" if number == errno.ENOSPC else "read-only") in said
    assert "state-00000001" in said and "is intact" in said and "--resume" in said
    assert step_of(tmp_path) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_device_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 1)
    opened = open
    monkeypatch.setattr(folder, "open", lambda path, mode: opened("/dev/full", mode), raising=False)
    with pytest.raises(OSError) as caught:
        save(tmp_path, 2)
    assert "the disk is full" in str(runstate.unwritable(caught.value, tmp_path))
    assert step_of(tmp_path) == 1


def test_what_a_killed_process_left_in_the_middle_of_a_write_is_cleared_away(tmp_path: Path) -> None:
    save(tmp_path, 1)
    (tmp_path / ".state-00000002-0123456789abcdef.safetensors.77.part").write_bytes(b"half")
    assert step_of(tmp_path) == 1
    save(tmp_path, 3)
    assert not list(tmp_path.glob(".*"))


def test_a_log_loses_what_came_later_and_what_was_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for step in range(1, 6):
        runstate.append(log, {"step": step, "said": "ä\n"})
    before = log.read_bytes()
    runstate.append(log, {"step": 6})
    with open(log, "ab") as file:
        file.write('{"step": 7, "said": "ä'.encode()[:-1])
    assert [line["step"] for line in runstate.lines(log)] == [1, 2, 3, 4, 5, 6]
    runstate.truncate(log, 5)
    assert log.read_bytes() == before
    runstate.truncate(log, 0)
    assert log.read_bytes() == b""


def test_nested_names_come_back() -> None:
    tree = {"a": {"b": torch.ones(1), "c": {"d": torch.zeros(2)}}, "e": {}}
    flat = runstate.flatten(tree)
    assert set(flat) == {"a/b", "a/c/d"}
    assert set(runstate.under(flat, "a")) == {"b", "c/d"}


def test_random_states_come_back() -> None:
    device = torch.device("cpu")
    kept = runstate.random_states(device)
    drawn = torch.rand(3)
    runstate.restore_random_states(kept, device)
    assert torch.equal(torch.rand(3), drawn)


def test_a_state_without_a_gpus_random_numbers_goes_on_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = runstate.random_states(torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *_: pytest.fail("there is nothing to restore"))
    drawn = torch.rand(3)
    runstate.restore_random_states(kept, torch.device("cuda"))
    assert torch.equal(torch.rand(3), drawn)
