"""How far sums of independent numbers stray: p-values that hold for every number of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deniable.arrays import Floats


def binomial_pvalue(counts: ArrayLike, n: int, chances: ArrayLike) -> float:
    """That each count is binomial with its chance: exact, both sides, times the number of counts.

    The counts may depend on each other.
    """
    from scipy.stats import binom

    seen = np.asarray(counts)
    tails = np.minimum(binom.cdf(seen, n, chances), binom.sf(seen - 1, n, chances))
    return float(min(1.0, 2 * tails.size * tails.min()))


def bernstein(excess: Floats, variance: float, most: float) -> Floats:
    """Bernstein: a sum of this variance, no term of which is further than ``most`` from its mean,
    exceeds its mean by t with probability at most exp(-t^2 / (2 (variance + most t / 3)))."""
    t = np.maximum(excess, 0.0)
    return np.asarray(np.exp(-(t**2) / (2 * (variance + most * t / 3))))


def chernoff(share: Floats, mean: Floats, n: int) -> Floats:
    """Hoeffding (1963), theorem 1: the mean of n numbers in 0..1, expected to be at least
    ``mean``, is at most u with probability at most exp(-n KL(u | mean))."""
    from scipy.special import rel_entr

    u = np.clip(np.minimum(share, mean), 0.0, 1.0)
    return np.asarray(np.exp(-n * (rel_entr(u, mean) + rel_entr(1 - u, 1 - mean))))
