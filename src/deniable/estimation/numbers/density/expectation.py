"""Expectation maximisation, with smoothing and without: for comparison with `penalised`.

EMS is the decoder that Li, Wang, Lopuhaa-Zwakenberg, Skoric and Li (SIGMOD 2020) proposed for the
Square Wave mechanism.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms.numbers.observed import Observed

#: The iteration stops as soon as the log-likelihood changes by less, or after so many steps.
GAIN = 1e-3
MOST_STEPS = 10_000


def em(observed: Observed, gain: float = GAIN) -> Floats:
    """Of counts: f <- f * (P (N / (f P))) / n from equal shares; no step lowers the likelihood.

    It stops when a step changes the log-likelihood by less than ``gain``.
    """
    return _maximise(observed, gain, lambda f: f)


def ems(observed: Observed, gain: float = GAIN) -> Floats:
    """As `em`, and after each step a bin takes 1/4 of both neighbours, and keeps 1/2.

    The first and the last bin keep 2/3. With smoothing nothing is maximised.
    """
    return _maximise(observed, gain, _smoothed)


def _maximise(observed: Observed, gain: float, smooth: Callable[[Floats], Floats]) -> Floats:
    f = np.full(observed.bins, 1 / observed.bins)
    value = observed.log_likelihood(f)
    for _ in range(MOST_STEPS):
        f = smooth(f * observed.gradient(f))
        f /= f.sum()
        before, value = value, observed.log_likelihood(f)
        if abs(value - before) < gain:
            break
    return f


def _smoothed(f: Floats) -> Floats:
    """The binomial weights 1/4, 1/2, 1/4, which at both ends are 2/3 and 1/3."""
    found = np.convolve(f, (0.25, 0.5, 0.25))[1:-1]
    found[0], found[-1] = (2 * f[0] + f[1]) / 3, (2 * f[-1] + f[-2]) / 3
    return found
