"""The law of the frequencies, learnt from noisy estimates of all of them.

It is a mixture of an atom at 0, an atom at 1/k and hat functions of log f on a grid of ratio R,
with weights of a Dirichlet law of total weight A. For each value the weights are those that the
OTHER values suggest (collapsed variational Bayes), so that no value confirms itself; fits with
several R and A are averaged by how well they predict each value from the others. The noise has the
quasi-likelihood of a variance that is linear in f, which is normal for large counts and Poisson for
small ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats

#: The grids (ratio of neighbouring hats) and the weights of the Dirichlet law that are tried.
RATIOS = (1.6, 2.5, 5.0)
TOTALS = (1.0, 4.0)
#: Prior weight of the atoms at 0 and at 1/k; all hats together weigh 1.
ATOMS = (0.4, 0.2)
_OUTER, _INNER = 6, 8
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class _Fit:
    """One fitted prior: how well it predicts, and the law of each distinct value under it."""

    score: float
    law: Floats


def learnt_laws(likelihood: Floats, copies: Floats, nodes: Floats, k: int, scale: float) -> Floats:
    """The posterior of each distinct estimate on the nodes, a row each.

    ``copies`` says how many of the k values have that estimate, ``scale`` how large the noise is.
    The laws under the fits are averaged with weights proportional to exp(score).
    """
    fits = [
        _fit(likelihood, copies, nodes, *_hats(nodes, k, ratio, scale), total)
        for ratio in RATIOS
        for total in TOTALS
    ]
    scores = np.array([fit.score for fit in fits])
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    return np.asarray(sum(w * fit.law for w, fit in zip(weights, fits, strict=True)))


def quasi_likelihood(y: Floats, a: Floats, b: Floats, f: Floats) -> Floats:
    """exp of the quasi-likelihood with d/df = (y - f) / (a + b f), a row for each y; largest 1.

    With V = a + b y and u = b (f - y) / V it is V / b^2 (log(1 + u) - u), for small u nearly
    -(f - y)^2 / (2 V).
    """
    variance = np.maximum(a + b * y, 1e-3 * a + _SMALLEST)[:, None]
    away = f - y[:, None]
    u = np.maximum(b[:, None] * away / variance, -1 + 1e-6)
    small = np.abs(u) < 1e-4
    with np.errstate(divide="ignore", invalid="ignore"):
        large = variance / b[:, None] ** 2 * (np.log1p(u) - u)
    log = np.where(small, -(away**2) / (2 * variance) * (1 - 2 * u / 3), large)
    return np.asarray(np.exp(np.maximum(log - log.max(axis=1, keepdims=True), -500.0)))


def _hats(f: Floats, k: int, ratio: float, scale: float) -> tuple[Floats, Floats]:
    """The components of the prior as columns over the nodes, and their prior weights.

    Hats stand at (1/k) ratio^i from half the noise to the largest node. Those above 1/k weigh
    1 / (k f): that many values can be so frequent.
    """
    step = np.log(ratio)
    lowest = -np.ceil(np.log(max(2.0, 2 / (k * scale + _SMALLEST))) / step)
    centres = np.arange(lowest, np.ceil(np.log(k * f[-1]) / step) + 1) * step - np.log(k)
    edges = np.concatenate([f[1:2] / 2, (f[1:-1] + f[2:]) / 2, f[-1:]])
    widths = np.diff(np.log(edges))
    hats = np.zeros((f.size, centres.size))
    gaps = np.abs(np.log(f[1:, None]) - centres)
    hats[1:] = np.maximum(0.0, 1 - gaps / step) * np.maximum(widths, _SMALLEST)[:, None]
    used = hats.sum(axis=0) > 0
    weights = np.minimum(1.0, np.exp(-centres[used]) / k)
    atoms = np.zeros((f.size, 2))
    atoms[0, 0] = atoms[np.searchsorted(f, 1 / k), 1] = 1.0
    columns = np.hstack([atoms, hats[:, used] / hats[:, used].sum(axis=0)])
    prior = np.concatenate([ATOMS, weights / weights.sum()])
    return columns, prior / prior.sum()


def _fit(
    likelihood: Floats, copies: Floats, f: Floats, columns: Floats, prior: Floats, total: float
) -> _Fit:
    """Learn the weights of the columns; each value is then judged by what the others say.

    r_v proportional to (A prior + sum_{u != v} r_u) P_v, repeated, where P_v are the likelihoods
    of the columns. All frequencies sum to 1: while learning, a factor exp(tilt f), tilt <= 0,
    holds back a prior that is too heavy. (A positive one would let the noise make up a single huge
    value, and in the result it would pull at those that the reports know well.)
    """
    pseudo = total * prior
    tilt = _tilt(likelihood, copies, f, columns @ prior, 0.0)
    shares = prior
    for _ in range(_OUTER):
        tilted = columns * np.exp(tilt * f)[:, None]
        column_likelihoods = likelihood @ tilted
        for _ in range(_INNER):
            shares = _others(pseudo, copies, shares) * column_likelihoods
            shares = shares / shares.sum(axis=1, keepdims=True)
        new = _tilt(likelihood, copies, f, columns @ (pseudo + copies @ shares), tilt)
        if abs(new - tilt) <= 0.01 * (abs(tilt) + 0.1 / f[-1]):
            break
        tilt = new
    weights = _others(pseudo, copies, shares)
    law = likelihood * (weights @ columns.T)
    evidence = law.sum(axis=1)
    score = copies @ np.log(evidence / weights.sum(axis=1))
    return _Fit(float(score), law / evidence[:, None])


def _others(pseudo: Floats, copies: Floats, shares: Floats) -> Floats:
    """The weight of each column without the value that is judged."""
    if shares.ndim == 1:
        return shares[None, :]
    return np.maximum(pseudo + copies @ shares - shares, 1e-12 * pseudo)


def _tilt(likelihood: Floats, copies: Floats, f: Floats, prior: Floats, start: float) -> float:
    """The tilt <= 0 that makes the posterior means sum to 1 (or 0, if they sum to less)."""
    low, high, tilt = -300.0 / f[-1], 0.0, start
    powers = np.stack([np.ones_like(f), f, f * f], axis=1)
    for _ in range(30):
        mass, first, second = (likelihood @ (powers * (prior * np.exp(tilt * f))[:, None])).T
        means = first / mass
        variance = copies @ np.maximum(second / mass - means**2, 0.0) + _SMALLEST
        gap = 1 - copies @ means
        low, high = (tilt, high) if gap > 0 else (low, tilt)
        if abs(gap) < 1e-3 * np.sqrt(variance) or high - low < 1e-3 * abs(low):
            break
        step = tilt + gap / variance
        tilt = step if low < step < high else (low + high) / 2
    return float(tilt)
