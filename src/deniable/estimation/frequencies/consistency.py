"""The post-processing catalogue of Wang et al., "Locally Differentially Private Frequency
Estimation with Consistency" (NDSS 2020).

x are unbiased frequencies: they may be negative and need not sum to 1. Where a method needs the
noise, it is normal with Var(x_v) = a_v + b_v f_v. Norm-Mul is `simplex.clip_and_normalize` and
Norm-Sub is `simplex.project`.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.estimation.frequencies.power_law import fit, posterior_mean
from deniable.estimation.frequencies.simplex import project

#: `base_cut`: the expected number of values that nobody holds and that are kept all the same.
FALSE_POSITIVES = 2.0
#: `mle_apx`: the smallest variance, as a share of the largest.
_SMALLEST = 1e-12
#: `mle_apx`: how near to 1 the sum has to come before the rest is divided away.
_EXACT = 1e-14
_STEPS = 200


def base_pos(x: Floats) -> Floats:
    """Base-Pos: max(x_v, 0), the nearest vector without negative entries; any sum."""
    return np.maximum(x, 0.0)


def post_pos(x: Floats, queries: NDArray[np.bool_] | None = None) -> Floats:
    """Post-Pos: answers max(sum of x over the values of a query, 0), one a row of ``queries``.

    The estimates stay unbiased and only an answer is made non-negative, so the noise of the
    values of a query still cancels; Base-Pos clips before it adds, and its answers grow with the
    number of rare values in a query. Without ``queries`` each value is a query of its own, which
    gives the same numbers as Base-Pos.
    """
    return np.maximum(x if queries is None else queries @ x, 0.0)


def base_cut(x: Floats, *, a: Floats, false_positives: float = FALSE_POSITIVES) -> Floats:
    """Base-Cut: x_v if x_v >= T_v, else 0; T_v = sqrt(a_v) z(1 - false_positives / k).

    z is the normal quantile and a_v the variance of a value that nobody holds, so that many such
    values are kept on average. T_v is never negative. Any sum.
    """
    tail = min(false_positives / x.size, 0.5)
    threshold = NormalDist().inv_cdf(1.0 - tail) * np.sqrt(np.maximum(a, 0.0))
    return np.where(x >= threshold, np.maximum(x, 0.0), 0.0)


def norm(x: Floats) -> Floats:
    """Norm: x_v + (1 - sum x) / k, the nearest vector with sum 1; negative entries stay."""
    return np.asarray(x + (1.0 - x.sum()) / x.size)


def norm_cut(x: Floats) -> Floats:
    """Norm-Cut: x_v if x_v >= T, else 0, with the smallest T >= 0 that makes the sum at most 1.

    What is kept is not changed, so the sum is often below 1. Equal values share their fate. If no
    T keeps anything, the largest values share the whole equally.
    """
    levels, inverse, copies = np.unique(np.maximum(x, 0.0), return_inverse=True, return_counts=True)
    sums = np.cumsum((levels * copies)[::-1])[::-1]
    kept = np.where(sums <= 1.0, levels, 0.0)
    if levels[-1] > 0 and kept[-1] == 0:
        kept[-1] = 1.0 / copies[-1]
    return np.asarray(kept[inverse])


def mle_apx(x: Floats, *, a: Floats, b: Floats) -> Floats:
    """MLE-Apx: argmin over the simplex of sum_v (x_v - f_v)^2 / (a_v + b_v f_v).

    The normal likelihood without its determinant; the line must not be negative on [0, 1].
    The objective is convex and separable. With w_v = sqrt(1 - b_v m) its stationary points are
    f_v = max(0, x_v / w_v + a_v m / (w_v (1 + w_v))), where the sum over v is 1 for one m. For a
    line common to all values, a + b f_v is proportional to a + b x_v on the active set; for b = 0
    this is Norm-Sub.
    """
    largest = float(np.max(a + np.abs(b)))
    if largest <= 0:
        return project(x)
    # The objective has no scale: the largest variance may be 1.
    a, b = np.maximum(a / largest, _SMALLEST), b / largest
    x = _possible(x, a, b)
    low, high, m = -np.inf, np.inf, 0.0
    for _ in range(_STEPS):
        f, slope = _stationary(m, x, a, b)
        excess = f.sum() - 1.0
        if abs(excess) <= _EXACT:
            break
        low, high = (low, m) if excess > 0 else (m, high)
        m = _bracketed(m - excess / slope if slope > 0 else np.inf, m, low, high)
    return np.asarray(f / f.sum())


def _possible(x: Floats, a: Floats, b: Floats) -> Floats:
    """x, moved to where a + b x is positive, as it is for every x that a mechanism can make."""
    line = a + b * x
    lack = np.maximum(_SMALLEST - line, 0.0)
    return x + np.divide(lack, b, out=np.zeros_like(x), where=lack > 0)


def _stationary(m: float, x: Floats, a: Floats, b: Floats) -> tuple[Floats, float]:
    """f(m) of `mle_apx` and the slope of its sum; beyond the pole of a value, f_v is 0 or huge."""
    w = np.sqrt(np.maximum(1.0 - b * m, 1e-30))
    f = np.maximum((x + a * m / (1.0 + w)) / w, 0.0)
    return f, float(np.sum(((a + b * x) / (2.0 * w**3))[f > 0]))


def _bracketed(newton: float, m: float, low: float, high: float) -> float:
    """The Newton step if it lies between the bounds, else a step that halves or doubles."""
    if low < newton < high:
        return newton
    if np.isfinite(low) and np.isfinite(high):
        return (low + high) / 2.0
    return 2.0 * m + 1.0 if np.isfinite(low) else 2.0 * m - 1.0


def power(x: Floats, *, a: Floats, b: Floats) -> Floats:
    """Power: the posterior mean of each frequency under a power law fitted to x; any sum.

    Shrinks most where there is most noise. Frequencies are taken as independent draws from
    `power_law.PowerLaw`, which has the mean 1 / k; `power_law.fit` finds its exponent.
    """
    return posterior_mean(x, fit(x, a, b), a, b)


def power_ns(x: Floats, *, a: Floats, b: Floats) -> Floats:
    """PowerNS: Norm-Sub of Power, so that the frequencies sum to 1."""
    return project(power(x, a=a, b=b))
