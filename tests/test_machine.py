from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from seqdemo.errors import InputError
from training.run import machine

CPU = torch.device("cpu")
PROBES = {"amx": "_is_amx_tile_supported", "avx512_bf16": "_is_avx512_bf16_supported"}


def processor(patch: pytest.MonkeyPatch, *has: str) -> None:
    for name, probe in PROBES.items():
        patch.setattr(torch.cpu, probe, lambda name=name: name in has, raising=False)


@pytest.mark.parametrize(("has", "pays"), [((), False), (("avx512_bf16",), True), (("amx",), True)])
def test_bfloat16_pays_where_the_processor_multiplies_it(
    has: tuple[str, ...], pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor(monkeypatch, *has)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    assert machine.bf16_pays(CPU) is pays
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    assert machine.bf16_pays(CPU) is False


@pytest.mark.parametrize(
    ("maker", "has", "precision"),
    [
        ("AuthenticAMD", (), "medium"),
        ("AuthenticAMD", ("avx512_bf16",), "medium"),
        ("AuthenticAMD", ("amx", "avx512_bf16"), "highest"),
        ("GenuineIntel", (), "highest"),
        ("GenuineIntel", ("amx", "avx512_bf16"), "highest"),
    ],
)
def test_float32_products_stay_float32_and_take_the_quicker_way(
    maker: str, has: tuple[str, ...], precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor(monkeypatch, *has)
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {maker}\n")
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "highest")
    chosen: list[str] = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", chosen.append)
    with machine.tuned(CPU):
        assert chosen == [precision]
    assert chosen == [precision, "highest"]


def test_a_gpu_has_tf32_beside_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda:0")
    for has in ((), ("amx",)):
        processor(monkeypatch, *has)
        assert machine.product_precision(gpu) == "high"


def test_the_most_memory_held_is_known() -> None:
    before = machine.peak_memory()
    held = torch.ones(round(before / 4) + 10_000_000)  # more than ever, whatever was freed since
    assert len(held) and before + 4e7 < machine.peak_memory() < 64e9
    del held


def test_a_device_that_does_not_work_is_told_so() -> None:
    for name in ("mps", "meta", "toaster"):
        with pytest.raises(InputError, match=f"There is no device '{name}' here that works; write cpu"):
            machine.choose_device(name)


def test_without_the_probes_of_torch_the_flags_of_linux_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for probe in PROBES.values():
        monkeypatch.delattr(torch.cpu, probe, raising=False)
    monkeypatch.setattr(machine, "CPUINFO", tmp_path / "cpuinfo")
    assert not machine.has_amx() and not machine.bf16_pays(CPU)
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu avx512f avx512_bf16 amx_tile amx_bf16\n")
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    assert machine.has_amx() and machine.bf16_pays(CPU)


MANY_SHAPES = """
import torch
from training.run import machine

def learn(rows):
    with torch.autocast("cpu", torch.bfloat16):
        linear(torch.randn(rows, 64)).sum().backward()

torch.set_num_threads(1)
machine.set_up_memory()
linear = torch.nn.Linear(64, 64)
for rows in range(10, 110):
    learn(rows)
machine.give_back()
before = machine.own_memory()
for rows in range(110, 310):
    learn(rows)
machine.give_back()
print(machine.own_memory() - before)
"""


@pytest.mark.skipif(not machine.bf16_pays(CPU), reason="this processor has no code for bfloat16 to keep")
def test_batches_of_many_shapes_do_not_fill_the_memory() -> None:
    """By the limits that oneDNN and PyTorch set themselves it would be 230 MB."""
    run = subprocess.run([sys.executable, "-c", MANY_SHAPES], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 20e6


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux reports")
def test_mapped_files_are_no_memory_of_one_s_own(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.zeros(25_000_000))
    before = machine.own_memory()
    features = np.load(tmp_path / "features.npy", mmap_mode="r")
    assert features.sum() == 0
    assert machine.own_memory() - before < 50e6
