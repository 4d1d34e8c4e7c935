"""RAPPOR's decoder (Erlingsson et al. 2014): select candidates, then test what is left of them.

A positive LASSO finds the few candidates that explain the cells, least squares estimates them, and
a candidate is kept if it is above zero at a level with Bonferroni's correction for all that were
asked about. Everything else, dropped candidates included, scatters evenly over the cells.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from deniable.arrays import Floats, Indices
from deniable.errors import InvalidArgument, is_number
from deniable.estimation.frequencies.errors.score import analytic
from deniable.estimation.frequencies.evidence import Decoded, Evidence, Uncertainty
from deniable.estimation.frequencies.regression.least_squares import (
    cohort_cells,
    indistinct,
    own_part,
)
from deniable.estimation.frequencies.regression.normal import CohortTable, Normal
from deniable.estimation.frequencies.regression.spread import Spread
from deniable.estimation.frequencies.solvers import Singular, inverse, non_negative

#: Candidates that are looked at together: the most frequent ones by the mean of their cells.
SCREENED = 2000
#: Beyond FEW, only those CLEAR deviations above 0; to be significant among as many takes over 3.7.
FEW, CLEAR = 500, 2.5
#: Cohorts with reports; in fewer, a collision in all of them is too likely.
FEWEST = 16
#: Rounds in which noise and penalty find each other, and when they have.
ROUNDS, SETTLED = 20, 0.005
#: A relative ridge, so that candidates that share all their cells do not stop the search.
RIDGE = 1e-9


def lasso(evidence: Evidence, significance: float, penalty: float | None) -> Decoded:
    """Frequencies of the candidates that are significant; 0 for the others.

    ``significance`` bounds the probability that any candidate is reported that nobody answered.
    ``penalty`` is the frequency by which a candidate is lowered in the selection (and dropped if
    nothing is left); by default sigma sqrt(2 log S) / |D_s|, the most that noise makes of S.
    """
    _check(significance, penalty)
    cells = cohort_cells(evidence, "lasso")
    if cells.sizes.size < FEWEST:
        allowed = f"another with reports of fewer than {FEWEST} cohorts: they do not tell chance"
        raise InvalidArgument("method", "lasso", allowed)
    candidates = cells.mechanism.codes.size
    z = evidence.unbiased / np.sqrt(np.maximum(evidence.line.a, np.finfo(float).tiny))
    screened = _screened(z[:candidates], cells.dimensions)
    normal = cells.normal(screened)
    chosen = np.arange(0)
    try:
        chosen = _selected(normal, candidates, penalty)
        found = _least_squares(normal.take(chosen), evidence.n)
    except Singular:
        raise indistinct("lasso", cells, chosen.size) from None
    limits = np.sqrt(found.noise * found.unit[:-1])
    limits *= _quantile(cells, screened[chosen], found.x[:-1], significance / candidates)
    kept = chosen[found.x[:-1] > limits]
    return _decoded(evidence, cells, screened[kept], _least_squares(normal.take(kept), evidence.n))


def _check(significance: Any, penalty: Any) -> None:
    if not is_number(significance) or not 0 < significance < 1:
        allowed = "a number strictly between 0 and 1"
        raise InvalidArgument("significance", significance, allowed)
    if penalty is None:
        return
    if not is_number(penalty) or not 0 <= penalty < math.inf:
        raise InvalidArgument("penalty", penalty, "a frequency of at least 0")


def _screened(z: Floats, dimensions: int) -> Indices:
    """The candidates that are most frequent by the mean of their cells, in order.

    Of many candidates only those that exceed the noise somewhat. At most half as many as there are
    dimensions, so that they can be told apart.
    """
    clear = int(np.count_nonzero(z > CLEAR))
    most = min(SCREENED, dimensions // 2, max(FEW, clear))
    return np.sort(np.argsort(-z, kind="stable")[:most])


def _selected(normal: Normal, candidates: int, penalty: float | None) -> Indices:
    """The columns with f_s > 0 at the minimum of |X - D f|^2 / 2 + sum_s penalty_s |D_s|^2 f_s.

    Without a penalty it is that of the noise, which is judged by the residuals, and these by the
    penalty, in turns (the scaled LASSO of Sun & Zhang 2012): from the largest noise downwards.
    """
    norms = np.diag(normal.gram)
    gram = normal.gram + np.diag(RIDGE * norms)
    if penalty is not None:
        return np.flatnonzero(non_negative(gram, normal.linear - penalty * norms))
    scale = np.sqrt(2 * math.log(max(2, candidates)) * norms)
    noise = normal.noise(np.zeros(norms.size), 0)
    for _ in range(ROUNDS):
        f = non_negative(gram, normal.linear - math.sqrt(noise) * scale)
        before, noise = noise, normal.noise(f, int(np.count_nonzero(f)))
        if noise > (1 - SETTLED) * before:
            break
    return np.flatnonzero(f)


def _least_squares(normal: Normal, n: int) -> Spread:
    """Least squares on some columns; the last entry is the rest, 1 - sum."""
    inverted = inverse(normal.gram) if normal.linear.size else np.zeros((0, 0))
    x = inverted @ normal.linear
    unit = np.append(np.diag(inverted), inverted.sum())
    noise, freedom = normal.noise(x, x.size), normal.dimensions - x.size
    whole = np.append(x, 1 - x.sum())
    return Spread(whole, unit, noise, freedom, own_part(whole, 1), n)


def _quantile(cells: CohortTable, values: Indices, x: Floats, level: float) -> float:
    """How many deviations noise exceeds with probability ``level``.

    Far out the normal law is not good enough: counts of rare cells and collisions with frequent
    values that nobody listed are skewed. z + (z^2 - 1) skewness / 6 (Cornish & Fisher 1938) for a
    mean over the cells of a value, with the skewness of the residuals.
    """
    z = -NormalDist().inv_cdf(level)
    left = cells.residuals(values, x)
    square = float(np.mean(left**2))
    skewness = float(np.mean(left**3)) / square**1.5 if square > 0 else 0.0
    averaged = cells.sizes.size * cells.mechanism.hashes
    return float(z + (z**2 - 1) / 6 * max(0.0, skewness) / math.sqrt(averaged))


def _decoded(evidence: Evidence, cells: CohortTable, kept: Indices, found: Spread) -> Decoded:
    """The estimate; a candidate that was dropped has errors of the mean of its cells, from 0 on."""
    places = np.append(kept, evidence.k - 1) if cells.mechanism.is_open else kept
    frequencies = np.zeros(evidence.k)
    frequencies[places] = found.x[: places.size]

    def own(confidence: float, sampling: bool) -> Uncertainty:
        marginal = analytic(evidence, confidence, sampling, "score")
        deviations = marginal.standard_errors.copy()
        intervals = np.maximum(marginal.intervals, 0.0)
        intervals[:, 0] = 0.0
        regression = found.errors(cells.mechanism)(confidence, sampling)
        least = marginal.intervals[-1, 0], marginal.standard_errors[-1]
        deviations[places] = regression.standard_errors[: places.size]
        intervals[places] = regression.intervals[: places.size]
        if cells.mechanism.is_open:
            # Dropped candidates are counted with the outside, but lie in it or not.
            intervals[-1, 0] = min(intervals[-1, 0], least[0])
            deviations[-1] = max(deviations[-1], least[1])
        return Uncertainty("regression", deviations, intervals)

    return Decoded(frequencies, own)
