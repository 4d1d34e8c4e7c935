"""Coins that repeat: what equal reports of different respondents say about their seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Bools, Floats
from deniable.audit.black_box.encoding import Encoded, whole_bits

#: Tests beside the events: repeats and collisions.
TESTS = 2
#: Bits that a report must have before its collisions are judged without a stated entropy, and how
#: many times more collisions than independent bits would have are then suspicious.
MANY_BITS, FAR_ABOVE = 16, 1000
#: A code of at most so many reports is not judged by its bits, whatever these look like.
CODE = 256
#: A position is looked at for repeats if the rarer of its two halves was seen so often.
REGULAR = 20


@dataclass(frozen=True)
class Alarm:
    """Something that independent reports do with probability at most ``p_value``."""

    kind: str
    words: str
    p_value: float


def alarms(
    drawn: Sequence[Encoded],
    values: Sequence[Any],
    error: float,
    entropy: float | None,
    judge_bits: bool,
) -> tuple[Alarm, ...]:
    """Alarms whose p-value is below the error, divided by the number of values."""
    tests = []
    for value, part in zip(values, drawn, strict=True):
        tests.append(repeats(value, part.keys, part.places))
        first = part.keys if part.places.shape[1] == 1 else [key[0] for key in part.keys]
        if entropy is not None:
            why = f"entropy {entropy:g} bits"
            tests.append(collisions(value, first, 2.0**-entropy, why))
        elif judge_bits:
            tests.extend(unlike_bits(value, first, part.places[:, 0]))
    return tuple(test for test in tests if test.p_value <= error / len(values))


# ---- repeats


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


def repeats(value: Any, keys: Sequence[Any], places: NDArray[Any]) -> Alarm:
    """Reports that repeat the one before, as clocks in seeds make them; p-value by Cantelli.

    A clock that is told in the report repeats, too, and is no fault. Null hypothesis: whole reports
    are independent, or at least one regular position is. So the p-value is the largest of all.
    """
    found, mean, variance = neighbours(keys)
    excess = found - mean
    p = variance / (variance + excess**2) if excess > 0 and variance > 0 else 1.0
    if p < 1:
        p = max([p, *(few_runs(half) for half in _halves(places))])
    words = f"{found:,} of {len(keys):,} reports of {value!r} equal the one before, {mean:.3g}"
    return Alarm("repeats", f"{words} expected", float(p))


def _halves(places: NDArray[Any]) -> Iterator[Bools]:
    """Whether each regular position lies above the middle of its values."""
    for column in places.reshape(len(places), -1).T:
        middle = np.sort(column)[len(column) // 2]
        above = column >= middle if column.min() < middle else column > middle
        if min(above.sum(), len(above) - above.sum()) >= REGULAR:
            yield above


def few_runs(bits: Bools) -> float:
    """The probability of so few runs or fewer, if all orders are alike (Wald and Wolfowitz 1940).

    r runs of a ones and b zeros: ceil(r / 2) runs of the one, floor(r / 2) of the other, which
    C(a - 1, . - 1) C(b - 1, . - 1) orders have, and the same with ones and zeros exchanged.
    """
    from scipy.special import logsumexp

    ones, runs = int(bits.sum()), 1 + int((bits[1:] != bits[:-1]).sum())
    r = np.arange(2, runs + 1)
    more, less = (r + 1) // 2 - 1, r // 2 - 1
    a, b = ones - 1, len(bits) - ones - 1
    orders = [_log_choose(a, x) + _log_choose(b, y) for x, y in ((more, less), (less, more))]
    return float(min(1.0, np.exp(logsumexp(orders) - _log_choose(len(bits), np.array(ones)))))


def _log_choose(n: int, k: NDArray[Any]) -> Floats:
    """ln C(n, k); nothing can be chosen where k > n."""
    from scipy.special import gammaln

    inside = np.minimum(k, n)
    found = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    return np.where(k <= n, found, -np.inf)


# ---- collisions


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


def unlike_bits(value: Any, keys: Sequence[Any], places: NDArray[Any]) -> Iterator[Alarm]:
    """Collisions beside those of independent bits, learned from one half, judged on the other.

    A code of opaque words collides like a weak seed, and nothing but its size tells it from one. So
    the null hypothesis is: bits as good as independent, or a code whose words are at most `CODE` or
    mostly come again. (Where seeds come again as often, the events find what they leak.)
    """
    bits, half = as_bits(places), len(keys) // 2
    if bits is None or is_code(keys):
        return
    why = "a thousand times what independent bits have"
    yield collisions(value, keys[half:], bit_chance(bits[:half]), why)


def is_code(keys: Sequence[Any]) -> bool:
    """Whether there are few different reports, or most were seen more than once."""
    seen = Counter(keys)
    return len(seen) <= CODE or 2 * sum(c == 1 for c in seen.values()) < len(keys)


def as_bits(places: NDArray[Any]) -> NDArray[Any] | None:
    """Reports that are rows of many bits, or one integer of so many; None if they are neither."""
    if places.shape[1] == 1 and (width := whole_bits(places)) >= MANY_BITS:
        return places.astype(np.uint64) >> np.arange(width, dtype=np.uint64) & np.uint64(1)
    if places.dtype != np.uint8 or places.shape[1] < MANY_BITS or places.max() > 1:
        return None
    return places


def bit_chance(bits: NDArray[Any]) -> float:
    """How likely two rows of independent bits are equal, times what is far above that."""
    p = bits.mean(axis=0)
    return float(np.prod(p**2 + (1 - p) ** 2)) * FAR_ABOVE
