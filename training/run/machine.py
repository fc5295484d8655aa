"""The machine of a run: device, precision, memory, and the signals that stop it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch

from seqdemo.errors import InputError

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of malloc.h
KEPT = ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 2**24))
MUCH = 2.5e9  # bytes; a step of any recipe needs less, and memory returned after a step must be requested again in the next
CACHES, SHAPES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"), "64"
CPUINFO = Path("/proc/cpuinfo")


def choose_device(name: str = "") -> torch.device:
    """The device asked for; by default a GPU if there is one, and for each process of torchrun its own."""
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError("There is no CUDA device here that PyTorch can use; leave --device out to train on the CPU.")
    if name == "cuda" or (not name and torch.cuda.is_available()):
        name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    try:
        device = torch.device(name or "cpu")
        torch.ones(1, device=device).tolist()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(f"There is no device {name!r} here that works; write cpu, cuda or cuda:1.") from None
    return device


def bf16_pays(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 faster than float32, not only as well."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    fast = cpu_has("_is_avx512_bf16_supported", "avx512_bf16") or has_amx()
    return fast and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def has_amx() -> bool:
    """Whether the CPU has tiles for bfloat16."""
    return cpu_has("_is_amx_tile_supported", "amx_tile")


def cpu_has(probe: str, flag: str) -> bool:
    """Whether the CPU has this feature, by PyTorch's own test, or by what Linux reports if PyTorch has no test."""
    if hasattr(torch.cpu, probe):
        return bool(getattr(torch.cpu, probe)())
    return CPUINFO.exists() and flag in CPUINFO.read_text(errors="replace").split()


def set_up_memory() -> None:
    """Call this before the first operation. It tells glibc to keep freed memory, because steps need about the same amount and
    page faults would cost a fifth of the time; and oneDNN to keep code for few shapes, because that for a thousand shapes takes
    half a gigabyte."""
    for cache in CACHES:
        os.environ.setdefault(cache, SHAPES)
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)
        for option, value in KEPT:
            mallopt(option, value)


def give_back(above: float = 0) -> None:
    """Return free memory to the system if this process holds more than `above` bytes: batches of many shapes leave gaps in it."""
    if sys.platform == "linux" and own_memory() > above:
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)


def own_memory() -> int:
    """The memory of this process in bytes. Mapped files do not count, because trimming cannot return them."""
    with open("/proc/self/statm", "rb") as file:
        _, resident, shared = map(int, file.read().split()[:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def product_precision(device: torch.device) -> str:
    """How torch may multiply float32. "medium" lets oneDNN do it: the quicker way on AMD's processors, of which MKL leaves half
    unused, the slower one on Intel's. With AMX it would compute in bfloat16."""
    if device.type == "cuda":
        return "high"
    return "medium" if made_by_amd() and not has_amx() else torch.get_float32_matmul_precision()


def made_by_amd() -> bool:
    return CPUINFO.exists() and "AuthenticAMD" in CPUINFO.read_text(errors="replace")


def peak_memory() -> float:
    """The peak memory of this process in bytes; 0 on Windows, which does not report it."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextmanager
def tuned(device: torch.device) -> Iterator[None]:
    """Inside this context: float32 products by oneDNN (TF32 on a GPU), and deterministic algorithms on a GPU."""
    precision = torch.get_float32_matmul_precision()
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision(product_precision(device))
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.cuda.set_device(device)
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.use_deterministic_algorithms(deterministic)


class Stop:
    """Inside this context, SIGTERM and Ctrl-C make the loop stop at the next step; a second Ctrl-C stops at once. `asked` is the
    resulting exit code, 143 or 130."""

    def __init__(self) -> None:
        self.asked = 0
        self.before: dict[int, object] = {}

    def __enter__(self) -> Stop:
        self.before = {number: signal.signal(number, self.ask) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def ask(self, number: int, _: FrameType | None) -> None:
        if self.asked == 128 + number == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = 128 + number
