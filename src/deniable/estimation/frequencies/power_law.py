"""A power law as the prior of frequencies: its fit to noisy frequencies, and posterior means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats

#: Shares of 1 / k at which the priors that are tried begin: from nearly uniform to very sparse.
STARTS = 1.0 / (1.0 + np.exp(np.arange(-4.0, 13.0)))
#: Values that `fit` looks at.
ENOUGH = 4096
#: Gauss-Legendre quadrature on [0, 1], for each panel.
_POINTS, _WIDTHS = (np.polynomial.legendre.leggauss(48) + np.array([[1.0], [0.0]])) / 2.0
_THIN = 1e-12
_DEVIATIONS = 8.0
_BLOCK = 4096


@dataclass(frozen=True)
class PowerLaw:
    """The density proportional to f^-exponent on [low, 1]."""

    low: float
    exponent: float

    @classmethod
    def with_mean(cls, mean: float, low: float) -> PowerLaw:
        """The exponent >= 0 that gives this mean (low < mean <= 1 / 2), by bisection."""
        flat, steep = 0.0, 1.0
        while _mean(low, steep) > mean:
            flat, steep = steep, 2.0 * steep
        for _ in range(100):
            middle = (flat + steep) / 2.0
            flat, steep = (middle, steep) if _mean(low, middle) > mean else (flat, middle)
        return cls(low, (flat + steep) / 2.0)


def fit(x: Floats, a: Floats, b: Floats, enough: int = ENOUGH) -> PowerLaw:
    """The power law of mean 1 / k under which x is most likely.

    The k frequencies sum to 1, so the mean of the prior is known. It ties the exponent to the
    lower end; of the pairs that `STARTS` gives, the one with the largest marginal likelihood of x
    (normal noise, variance a + b f) is taken. Of more values than ``enough``,
    evenly spaced ranks are taken.
    """
    mean = 1.0 / x.size
    if x.size > enough:
        ranks = np.argsort(x)[np.linspace(0, x.size - 1, enough).astype(int)]
        x, a, b = x[ranks], a[ranks], b[ranks]
    laws = [PowerLaw.with_mean(mean, mean * float(start)) for start in STARTS]
    evidence = [sum(float(e.sum()) for e, _ in _posterior(x, law, a, b)) for law in laws]
    return laws[int(np.argmax(evidence))]


def posterior_mean(x: Floats, law: PowerLaw, a: Floats, b: Floats) -> Floats:
    """E[f | x] for f of the law and x normal around f with variance a + b f."""
    return np.concatenate([mean for _, mean in _posterior(x, law, a, b)])


def _mean(low: float, exponent: float) -> float:
    """The mean of a power law on [low, 1]; in units of low, so that nothing overflows."""
    return low * _power_integral(2.0 - exponent, low) / _power_integral(1.0 - exponent, low)


def _power_integral(t: float, low: float) -> float:
    """The integral of g^(t - 1) over [1, 1 / low]."""
    log = -np.log(low)
    return float(log if abs(t) < 1e-12 else np.expm1(t * log) / t)


def _posterior(x: Floats, law: PowerLaw, a: Floats, b: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Log evidence and posterior mean, a block of values at a time to bound the memory."""
    norm = np.log(_power_integral(1.0 - law.exponent, law.low))
    for start in range(0, x.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        value, level, slope = x[part, None], a[part, None], b[part, None]
        u, width = _nodes(value, law.low, level, slope)
        f = law.low * np.exp(u)
        variance = _floor(level + slope * f)
        log = (1.0 - law.exponent) * u - (value - f) ** 2 / (2.0 * variance)
        top = log.max(axis=1, keepdims=True)
        weight = np.exp(log - top) * width / np.sqrt(variance)
        total = weight.sum(axis=1)
        yield top[:, 0] + np.log(total) - norm, (weight * f).sum(axis=1) / total


def _nodes(x: Floats, low: float, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Points u = log(f / low) and widths for the integral over [low, 1], a row for each x.

    Gauss-Legendre on two panels: near x, within some standard deviations, where the likelihood
    changes fast; and from there down to low, where the prior does. What lies above is negligible.
    """
    near = np.clip(x, low, 1.0)
    deviation = np.sqrt(_floor(a + b * near))
    high = np.minimum(near + _DEVIATIONS * deviation, 1.0)
    middle = np.clip(np.maximum(near - _DEVIATIONS * deviation, deviation / 2.0), low, high)
    split, end = np.log(middle / low), np.log(high / low)
    # A panel may be empty, but all weight may lie at its end: some width has to remain.
    lower, upper = np.maximum(split, _THIN), np.maximum(end - split, _THIN)
    u = np.hstack([lower * _POINTS, split + upper * _POINTS])
    return u, np.hstack([lower * _WIDTHS, upper * _WIDTHS])


def _floor(variance: Floats) -> Floats:
    """Variances away from 0, where a density would not be finite."""
    return np.maximum(variance, 1e-18)
