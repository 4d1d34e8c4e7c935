"""Coins that repeat: what equal reports of different respondents say about their seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bits that a report must have before its collisions are judged without a stated entropy, and how
#: many times more collisions than independent bits would have are then suspicious.
MANY_BITS, FAR_ABOVE = 16, 1000


@dataclass(frozen=True)
class Alarm:
    """Something that independent reports do with probability at most ``p_value``."""

    kind: str
    words: str
    p_value: float


def neighbours(keys: Sequence[Any]) -> tuple[int, float, float]:
    """How many reports equal the one before, with mean and variance if all orders are alike.

    The number of runs of n things of several kinds, n_i of kind i, has mean n + 1 - s2 / n and
    variance (s2 (s2 + n (n + 1)) - 2 n s3 - n^3) / (n^2 (n - 1)), with the sums s2 and s3 of the
    squares and cubes of the n_i (Barton and David 1957); equal neighbours are n less the runs.
    """
    n = len(keys)
    found = sum(a == b for a, b in pairwise(keys))
    counts = Counter(keys).values()
    s2, s3 = sum(c**2 for c in counts), sum(c**3 for c in counts)
    variance = (s2 * (s2 + n * (n + 1)) - 2 * n * s3 - n**3) / (n**2 * (n - 1))
    return found, s2 / n - 1, variance


def repeats(value: Any, keys: Sequence[Any]) -> Alarm:
    """Reports that repeat the one before, as clocks in seeds make them; p-value by Cantelli."""
    found, mean, variance = neighbours(keys)
    excess = found - mean
    p = variance / (variance + excess**2) if excess > 0 else 1.0
    words = f"{found:,} of {len(keys):,} reports of {value!r} equal the one before, {mean:.3g}"
    return Alarm("repeats", f"{words} expected", float(p) if variance > 0 else 1.0)


def collisions(value: Any, keys: Sequence[Any], chance: float, why: str) -> Alarm:
    """Equal reports among all pairs, each equal with probability at most ``chance``.

    If D pairs are equal and m are expected, P(D or more) <= m / D (Markov), whatever depends on
    what.
    """
    n = len(keys)
    found = sum(c * (c - 1) // 2 for c in Counter(keys).values())
    expected = n * (n - 1) / 2 * chance
    p = min(1.0, expected / found) if found else 1.0
    words = f"{found:,} pairs of {n:,} reports of {value!r} are equal, {expected:.2g} expected"
    return Alarm("collisions", f"{words} ({why})", p)


def bit_chance(places: NDArray[Any]) -> float | None:
    """The probability that two rows of independent bits are equal; None if they are no bits."""
    if places.dtype != np.uint8 or places.shape[1] < MANY_BITS or places.max() > 1:
        return None
    p = places.mean(axis=0)
    return float(np.prod(p**2 + (1 - p) ** 2)) * FAR_ABOVE
