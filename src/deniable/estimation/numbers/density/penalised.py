"""Penalised likelihood (PLe): the smoothness of a density is chosen by its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms.numbers.observed import Observed

#: Penalties are on differences of these orders.
ORDERS = (1, 2)
#: The strengths lambda that are tried, from the strongest; and after how many falls of the evidence
#: no weaker one is.
STRENGTHS = tuple(10.0**power for power in range(6, -3, -1))
FALLS = 2
#: The standard deviation, before any report, of log f at hi minus log f at lo along a line.
SLOPE = 10.0
#: Coefficients at most: with more bins the logarithm of the density is a cubic spline.
MOST_COEFFICIENTS = 256
#: The longest step of one coefficient, the gain at which steps end, and their largest number.
LONGEST, GAIN, MOST_STEPS = 5.0, 1e-2, 100


class Fit(NamedTuple):
    """The maximum for one penalty."""

    shares: Floats
    theta: Floats
    order: int
    strength: float
    #: log of the integral of likelihood times prior, by Laplace's method.
    evidence: float


def penalised(observed: Observed) -> Floats:
    """The shares of all bins that maximise l(f) - theta^T Q theta / 2, f = softmax(B theta).

    Q = lambda D^T D, with D the differences of order 1 or 2. So theta has a normal prior: a random
    walk, or one whose slopes walk. Of all orders and strengths lambda the most probable is taken.
    The shares are smooth, so they are biased, and no interval follows from them.
    """
    return max(fits(observed), key=lambda fit: fit.evidence).shares


def fits(observed: Observed) -> Iterator[Fit]:
    """The maxima for all penalties that are tried, each started from the one before."""
    basis = splines(observed.bins)
    for order in ORDERS:
        theta, best, falls = np.zeros(min(observed.bins, MOST_COEFFICIENTS)), -np.inf, 0
        for strength in STRENGTHS:
            fit = fitted(observed, basis, theta, order, strength)
            yield fit
            theta, falls = fit.theta, falls + 1 if fit.evidence < best else 0
            best = max(best, fit.evidence)
            if falls == FALLS:
                break


def fitted(observed: Observed, basis: Any, theta: Floats, order: int, strength: float) -> Fit:
    """Newton's method from theta, with the expected information instead of the Hessian.

    With the Jacobian J = (diag(f) - f f^T) B of the shares, H = J^T I J + Q. As shares do not tell
    the mean of theta, 1 1^T / k holds it. By Laplace's method the evidence is
    l(f) - theta^T Q theta / 2 + (log det Q - log det H) / 2.
    """
    from scipy.linalg import cho_factor, cho_solve

    prior, log_determinant = smoothness(len(theta), order, strength)
    f, value = _evaluated(observed, basis, theta, prior)
    for _ in range(MOST_STEPS):
        inside, root = observed.gradient(f), observed.root(f)
        slope = basis.T @ (f * (inside - f @ inside)) - prior @ theta
        root = basis.T @ (f[:, None] * (root - f @ root))
        factor = cho_factor(root @ root.T + prior, lower=True)
        step = cho_solve(factor, slope)
        if slope @ step / 2 < GAIN:
            break
        step *= min(1.0, LONGEST / float(np.abs(step).max()))
        theta, f, value = _searched(observed, basis, theta, prior, step, value)
    spread = 2 * float(np.log(np.diagonal(factor[0])).sum())
    return Fit(f, theta, order, strength, value + (log_determinant - spread) / 2)


def _searched(
    observed: Observed, basis: Any, theta: Floats, prior: Floats, step: Floats, value: float
) -> tuple[Floats, Floats, float]:
    """The first point on the way back from theta + step that is no worse than theta."""
    while True:
        f, found = _evaluated(observed, basis, theta + step, prior)
        if found >= value:
            return theta + step, f, found
        step = step / 3


def _evaluated(
    observed: Observed, basis: Any, theta: Floats, prior: Floats
) -> tuple[Floats, float]:
    """The shares, and what is maximised."""
    from scipy.special import softmax

    f = np.asarray(softmax(basis @ theta))
    return f, observed.log_likelihood(f) - float(theta @ prior @ theta) / 2


def smoothness(k: int, order: int, strength: float) -> tuple[Floats, float]:
    """Q and log det Q, for k coefficients.

    D^T D says nothing of polynomials below the order. The mean of theta has 1 1^T / k, and a slope
    b (from first to last) the precision 1 / SLOPE^2. On what is left det(D^T D) is k for the first
    order, and k^2 (k^2 - 1) / 12 for the second.
    """
    d = np.diff(np.eye(k), order, axis=0)
    prior = strength * d.T @ d + 1 / k
    rest = np.log([k, k**2 * (k**2 - 1) / 12])[order - 1]
    if order == 1:
        return prior, (k - 1) * np.log(strength) + rest
    line = np.linspace(-0.5, 0.5, k)
    line /= (line @ line) * SLOPE
    prior += np.outer(line, line)
    return prior, (k - 2) * np.log(strength) + rest + np.log(line @ line)


def splines(bins: int) -> Any:
    """B: each bin has a coefficient; for more bins, cubic splines at the middles of bins."""
    from scipy.interpolate import BSpline
    from scipy.sparse import csr_array, eye_array

    if bins <= MOST_COEFFICIENTS:
        return eye_array(bins, format="csr")
    inside = MOST_COEFFICIENTS - 3
    knots = np.arange(-3, inside + 4) / inside
    return csr_array(BSpline.design_matrix((np.arange(bins) + 0.5) / bins, knots, 3))
