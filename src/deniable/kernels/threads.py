"""Parts of work on all cores. Kernels drop the interpreter lock, so plain threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from deniable.errors import require_int

Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """``threads`` if given, else the cores this process may use."""
    if threads is not None:
        return require_int("threads", threads, 1, 1024)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(work: Callable[[Any], Result], parts: Sequence[Any]) -> list[Result]:
    """``[work(part) for part in parts]``, each in a thread of its own."""
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(work, parts))
