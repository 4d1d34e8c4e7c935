"""Estimates that trade a little bias for much less variance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deniable.arrays import Floats
from deniable.core.mechanism import as_floats
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.power_law import fit, posterior_mean
from deniable.estimation.frequencies.simplex import project

#: The values that a prior gives to a frequency, and their weights.
Prior = tuple[ArrayLike, ArrayLike]

_BLOCK = 1 << 20


def calibrate(x: Floats, *, a: Floats, b: Floats, prior: Prior | None = None) -> Floats:
    """Calibrate (Jia and Gong, INFOCOM 2019): the posterior mean of each frequency; any sum.

    A frequency is theta_j with probability w_j; x_v is normal around it with variance
    a_v + b_v theta_j. The estimate is sum_j theta_j w_j N_vj / sum_j w_j N_vj. ``prior`` is
    (theta, w), what is known of frequencies before the collection; weights need not sum to 1.
    Without it a power law is fitted to x (`power_law.fit`), which is the method Power.
    """
    if prior is None:
        return posterior_mean(x, fit(x, a, b), a, b)
    values, weights = _checked(prior)
    rows = max(1, _BLOCK // values.size)
    parts = [slice(start, start + rows) for start in range(0, x.size, rows)]
    return np.concatenate([_discrete(x[p], values, weights, a[p], b[p]) for p in parts])


def james_stein(x: Floats, *, a: Floats, b: Floats) -> Floats:
    """Positive-part James-Stein shrinkage to uniform, then projection onto the simplex.

    u + s (x - u) with u = 1 / k and s = max(0, 1 - sum_v Var(x_v) / |x - u|^2). Much better than
    projection alone on flat frequencies in heavy noise, worse on skewed ones.
    """
    u = 1.0 / x.size
    noise = np.maximum(a + b * np.clip(x, 0.0, 1.0), 0.0).sum()
    spread = ((x - u) ** 2).sum()
    s = max(0.0, 1.0 - noise / spread) if spread > 0 else 0.0
    return project(u + s * (x - u))


def _checked(prior: Prior) -> tuple[Floats, Floats]:
    allowed = "(values of 0..1, weights that are not negative), equally many, with weight on some"
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        raise InvalidArgument("prior", prior, allowed)
    values, weights = (as_floats("prior", part) for part in prior)
    fits = values.ndim == 1 and values.shape == weights.shape
    fits = fits and bool(np.all((values >= 0) & (values <= 1) & (weights >= 0)))
    if not fits or not 0 < weights.sum() < np.inf:
        raise InvalidArgument("prior", prior, allowed)
    return values[weights > 0], weights[weights > 0]


def _discrete(x: Floats, values: Floats, weights: Floats, a: Floats, b: Floats) -> Floats:
    variance = np.maximum(a[:, None] + b[:, None] * values, 1e-18)
    log = np.log(weights) - 0.5 * np.log(variance) - (x[:, None] - values) ** 2 / (2.0 * variance)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weight @ values / weight.sum(axis=1))
