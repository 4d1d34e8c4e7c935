"""Confidence intervals with guaranteed coverage, from the exact law of a support count.

A value's count is c = Bin(N, p) + Bin(n - N, q) when N of the n respondents have the value, and
Bin(n, q + (p - q) f) when the respondents are a sample of a population that has it with frequency
f. Both laws grow with N or f because p > q, so a test that leaves at most (1 - confidence) / 2 on
either side is inverted by bisection, or with the quantiles of the beta law.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.errors import InvalidArgument, require_int
from deniable.estimation.frequencies.intervals import check_confidence

#: The part of a binomial law that is left out weighs at most 2 exp(-LEFT_OUT).
LEFT_OUT = 45.0
#: A tail this much (relatively) below its limit still counts as reached: rounding never rejects.
SLACK = 1e-9
#: Terms summed at once; bounds the memory.
TERMS = 1 << 21


def exact_intervals(
    counts: Any, n: int, p: float, q: float, confidence: float, *, sampling: bool
) -> Floats:
    """Rows (low, high) that hold the true frequency with at least ``confidence``, for every truth.

    ``sampling`` is False for the fixed population of the n respondents (limits are multiples of
    1/n) and True for the population they are a sample of (Clopper and Pearson 1934). A count
    that is too extreme for every frequency gets 0 or 1, whichever is nearer, for both limits.
    A fixed population takes some sqrt(n) log(n) steps for each distinct count: below a millisecond
    for n = 1,000, tens of milliseconds for n = 1,000,000.
    """
    n = require_int("n", n, 1, 1 << 53)
    if not 0 <= q < p <= 1:
        raise InvalidArgument("p", p, f"above q = {q} and at most 1, and q at least 0")
    array = np.asarray(counts)
    if array.dtype.kind not in "iu" or array.ndim != 1 or np.any((array < 0) | (array > n)):
        raise InvalidArgument("counts", counts, f"a row of integers of 0..{n}")
    tail = (1 - check_confidence(confidence)) / 2 * (1 - SLACK)
    distinct, place = np.unique(array.astype(np.int64), return_inverse=True)
    limits = (_sampled if sampling else _fixed)(distinct, n, float(p), float(q), tail)
    return limits[place]


def _sampled(c: Integers, n: int, p: float, q: float, tail: float) -> Floats:
    """Limits of m = q + (p - q) f, as limits of f."""
    limits = np.stack(binomial_bounds(c, n, tail), axis=1)
    return np.clip((limits - q) / (p - q), 0.0, 1.0)


def binomial_bounds(hits: NDArray[Any], n: int, error: float) -> tuple[Floats, Floats]:
    """Lower and upper bounds of probabilities, each wrong with at most this error.

    ``hits`` of n trials, inverted with the quantiles of the beta law (Clopper and Pearson 1934).
    """
    from scipy.special import betaincinv

    c = np.asarray(hits)
    low = np.where(c > 0, betaincinv(np.maximum(c, 1), n - c + 1, error), 0.0)
    high = np.where(c < n, 1 - betaincinv(np.maximum(n - c, 1), c + 1, error), 1.0)
    return low, high


def _fixed(c: Integers, n: int, p: float, q: float, tail: float) -> Floats:
    """The least and the largest N / n not rejected.

    The upper limit is a lower one of those who do not have the value: n - c = Bin(n - N, 1 - q) +
    Bin(N, 1 - p). Between the extremes the interval is never empty: one respondent more moves c by
    at most 1, so N - 1 and N cannot be rejected for opposite reasons.
    """
    rows = max(1, TERMS // (1 + 2 * int(_reach(np.array(n / 4)))))
    parts = [c[start : start + rows] for start in range(0, len(c), rows)]
    low = [_least(part, n, p, q, tail) for part in parts]
    high = [n - _least(n - part, n, 1 - q, 1 - p, tail) for part in parts]
    return np.stack([np.concatenate(low), np.concatenate(high)], axis=1) / n


def _least(c: Integers, n: int, p: float, q: float, tail: float) -> Integers:
    """The least N of 0..n with P(Bin(N, p) + Bin(n - N, q) >= c) > tail; n if there is none."""
    low, high = np.zeros_like(c), np.full_like(c, n)
    while (active := np.flatnonzero(low < high)).size:
        middle = (low[active] + high[active]) // 2
        reached = upper_tail(c[active], middle, n, p, q) > tail
        high[active] = np.where(reached, middle, high[active])
        low[active] = np.where(reached, low[active], middle + 1)
    return low


def upper_tail(c: Integers, own: Integers, n: int, p: float, q: float) -> Floats:
    """P(X + Y >= c) for independent X ~ Bin(own, p) and Y ~ Bin(n - own, q), one for each row.

    It is sum_j P(X = j) P(Y >= c - j). X becomes the one with the smaller variance, and j runs
    over all but exp(-LEFT_OUT) of its law on either side.
    """
    swap = own * p * (1 - p) > (n - own) * q * (1 - q)
    size, other = np.where(swap, n - own, own), np.where(swap, own, n - own)
    chance, other_chance = np.where(swap, q, p), np.where(swap, p, q)
    centre, reach = size * chance, _reach(size * chance * (1 - chance))
    first = np.maximum(np.floor(centre - reach), 0).astype(np.int64)
    last = np.minimum(np.ceil(centre + reach), size).astype(np.int64)
    j = first[:, None] + np.arange(int((last - first).max()) + 1)
    terms = _pmf(c[:, None] - j, other[:, None], other_chance[:, None])
    # P(Y >= c - j) grows with j by the probability of the point that is new.
    beyond = _at_least(c - first + 1, other, other_chance)
    result: Floats = np.sum(
        _pmf(j, size[:, None], chance[:, None]) * (beyond[:, None] + np.cumsum(terms, axis=1)),
        axis=1,
    )
    return result


def _reach(variance: Floats) -> Floats:
    """Bernstein: a sum of coins strays this far from its mean with at most exp(-LEFT_OUT)."""
    return np.asarray(LEFT_OUT / 3 + np.sqrt(LEFT_OUT**2 / 9 + 2 * LEFT_OUT * variance))


def _pmf(j: Integers, size: Integers, chance: Floats) -> Floats:
    """P(Bin(size, chance) = j); 0 for impossible j."""
    from scipy.special import gammaln, xlog1py, xlogy

    possible = (j >= 0) & (j <= size)
    hits = np.where(possible, j, 0)
    ways = gammaln(size + 1) - gammaln(hits + 1) - gammaln(size - hits + 1)
    logs = ways + xlogy(hits, chance) + xlog1py(size - hits, -chance)
    return np.where(possible, np.exp(logs), 0.0)


def _at_least(j: Integers, size: Integers, chance: Floats) -> Floats:
    """P(Bin(size, chance) >= j)."""
    from scipy.special import betainc

    inner = np.clip(j, 1, np.maximum(size, 1))
    tail = betainc(inner, np.maximum(size - inner, 0) + 1.0, chance)
    return np.where(j <= 0, 1.0, np.where(j > size, 0.0, tail))
