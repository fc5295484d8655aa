"""The resources that a child process may use. Where a system has no such limits, the parent's time limit remains."""

from __future__ import annotations

import contextlib
from pathlib import Path


def limit(**values: int) -> None:
    """Set limits by their names in `resource`."""
    with contextlib.suppress(ImportError):
        import resource

        for name, value in values.items():
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(getattr(resource, name), (value, value))


def limit_memory(more: int) -> None:
    """Allow `more` bytes beyond those in use now."""
    limit(RLIMIT_AS=memory_in_use() + more, RLIMIT_CORE=0)


def memory_in_use() -> int:
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[0]) * 4096 if pages.exists() else 0
