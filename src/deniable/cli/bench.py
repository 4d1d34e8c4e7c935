"""How fast this machine is, and how near the kernels come to its limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.mechanisms import Mechanism
from deniable.randomness import BLOCK_WORDS, WORD_BYTES, Keystream, draw_key

#: A measurement is repeated so many times, and then on until it took so many seconds.
REPEATS = 5
SECONDS = 0.5


@dataclass(frozen=True)
class Bounds:
    """What one core can do, in GB/s: no kernel can be faster."""

    keystream: float
    memcpy: float


class CountingKeystream(Keystream):
    """A keystream that knows how much of it was used."""

    used = 0

    def use(self, count: int) -> None:
        self.used += count
        super().use(count)


def best_time(work: Callable[[], Any], repeats: int = REPEATS, seconds: float = SECONDS) -> float:
    """The shortest of some runs, in seconds: the others were disturbed by something else."""
    spent: list[float] = []
    while len(spent) < repeats or sum(spent) < seconds:
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return min(spent)


def bounds() -> Bounds:
    """Measure the random-number and the memory bound of one core."""
    keystream = Keystream(draw_key(None))
    blocks = 100

    def draw() -> None:
        for _ in range(blocks):
            keystream.words(BLOCK_WORDS)

    source = np.ones(16_000_000, dtype=np.uint64)
    target = np.zeros_like(source)
    return Bounds(
        keystream=blocks * BLOCK_WORDS * WORD_BYTES / best_time(draw) / 1e9,
        memcpy=source.nbytes / best_time(lambda: np.copyto(target, source)) / 1e9,
    )


def random_bytes(mechanism: Mechanism) -> float:
    """Keystream bytes that the bulk path uses for one report, on average."""
    n = 1 << 13
    values = np.arange(n, dtype=np.uint32) % mechanism.domain.size
    keystream = CountingKeystream(draw_key(None))
    mechanism.fill(values, np.empty(n, dtype=mechanism.dtype), keystream)
    return keystream.used * WORD_BYTES / n


def times(mechanism: Mechanism, n: int, threads: int | None) -> tuple[float, float]:
    """Nanoseconds a report: (privatising, counting)."""
    k = mechanism.domain.size
    values = np.random.default_rng(1).integers(0, k, n).astype(np.uint32)
    reports = mechanism.privatize(values)  # compiles, too
    mechanism.tally(reports)
    client = best_time(lambda: mechanism.privatize(values, threads=threads))
    server = best_time(lambda: mechanism.tally(reports, threads=threads))
    return client / n * 1e9, server / n * 1e9


def measure(
    mechanism: Mechanism, n: int, threads: int | None, limits: Bounds
) -> list[dict[str, Any]]:
    """Two rows, client and aggregation, each beside the bound of one core."""
    client, server = times(mechanism, n, threads)
    drawing = random_bytes(mechanism) / limits.keystream
    reading = mechanism.dtype.itemsize / limits.memcpy
    steps = (("client", client, "random numbers", drawing), ("server", server, "memory", reading))
    return [
        {
            "mechanism": mechanism.name,
            "k": mechanism.domain.size,
            "step": step,
            "ns_per_report": spent,
            "bound": bound,
            "bound_ns": least,
            "of_bound": least / spent,
        }
        for step, spent, bound, least in steps
    ]
