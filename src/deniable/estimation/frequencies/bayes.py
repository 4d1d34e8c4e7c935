"""Empirical Bayes: the reports themselves tell how frequencies are spread, which steadies each.

The k frequencies are taken as draws from an unknown law, which is learnt from all of them
(`prior.learnt_laws`). The means of their posteriors are moved to sum 1 where the prior, and not the
reports, made them. The papers have no such decoder; benchmarks/decoders.py compares it with theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.estimation.frequencies.errors.score import analytic
from deniable.estimation.frequencies.evidence import Decoded, Evidence, Uncertainty
from deniable.estimation.frequencies.mle.maximum import sharper
from deniable.estimation.frequencies.prior import learnt_laws, quasi_likelihood
from deniable.estimation.frequencies.regression.least_squares import sharper_cells
from deniable.estimation.frequencies.simplex import project

#: Nodes a standard deviation, and how many deviations they reach beyond the estimates.
NODES, REACH = 2, 6
#: Estimates are told apart to this share of a standard deviation when there are very many.
FINE, MANY = 1 / 32, 4096
#: The prior says this much of 2 values: of k, 2/k of the estimate is left to the reports alone.
ALONE = 2.0
#: Up to so many values that matters.
SMALL = 16
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is believed of each frequency: a mean, a deviation, and a law on common nodes."""

    frequencies: Floats
    standard_errors: Floats
    nodes: Floats
    #: Cumulative weight of the nodes, a row for each value (equal values share a row).
    cumulative: Floats
    rows: NDArray[np.intp]
    #: The final estimates minus the means of the law, and how much of an estimate is the law's.
    shift: Floats
    trust: float

    def intervals(self, confidence: float, alone: Floats) -> Floats:
        """Rows (low, high) that leave (1 - confidence) / 2 of the law on either side.

        ``alone`` are the intervals of the reports alone, which take over when k is small.
        """
        tail = (1 - confidence) / 2
        low, high = (self._quantiles(level) for level in (tail, 1 - tail))
        limits = np.stack([np.where(low > 0, low + self.shift, 0.0), high + self.shift], axis=1)
        return np.asarray(np.clip(self.trust * limits + (1 - self.trust) * alone, 0.0, 1.0))

    def _quantiles(self, level: float) -> Floats:
        """The law of a node is spread over its cell, but for the atom at 0."""
        middles = (self.nodes[1:] + self.nodes[:-1]) / 2
        left = np.concatenate([[0.0, 0.0], middles[1:]])
        right = np.concatenate([[0.0], middles[1:], self.nodes[-1:]])
        at = np.minimum((self.cumulative < level).sum(axis=1), self.nodes.size - 1)
        rows = np.arange(len(at))
        until = self.cumulative[rows, at]
        before = np.where(at > 0, self.cumulative[rows, at - 1], 0.0)
        share = np.clip((level - before) / np.maximum(until - before, _SMALLEST), 0.0, 1.0)
        found: Floats = left[at] + share * (right[at] - left[at])
        return found[self.rows]


def bayes_estimate(evidence: Evidence) -> Decoded:
    """Posterior means, moved to sum 1; the posterior gives their errors.

    Where the likelihood is at hand, its one-step estimate takes the place of the unbiased
    frequencies: it has less variance. So has a regression where answers were any text.
    """
    x, a, b = evidence.unbiased, evidence.line.a, evidence.line.b + evidence.between
    is_open = evidence.domain.is_open
    sharp = sharper_cells(evidence) if is_open else sharper(evidence)
    if sharp is not None:
        x, a, b = *sharp, np.zeros_like(b)
    if is_open:
        # The outside is 1 less all others: the reports do not know it on their own.
        listed = posterior(x[:-1], a[:-1], b[:-1], part=True).frequencies
        return Decoded(np.append(listed, 1 - listed.sum()))
    found = posterior(x, a, b)

    def own(confidence: float, sampling: bool) -> Uncertainty:
        # f (1 - f) / n of a sample is at most f / n, which keeps the variance a line.
        law = posterior(x, a, b + 1 / evidence.n) if sampling else found
        # Where they hardly weigh, intervals of the reports alone need not be exact.
        alone = analytic(evidence, confidence, sampling, None if x.size <= SMALL else "score")
        return Uncertainty(
            "posterior", law.standard_errors, law.intervals(confidence, alone.intervals)
        )

    return Decoded(found.frequencies, own)


def posterior(x: Floats, a: Floats, b: Floats, *, part: bool = False) -> Posterior:
    """The posterior of frequencies with unbiased estimates x, Var(x_v) = a_v + b_v f_v.

    They sum to 1, or, as ``part`` of all frequencies, to at most 1.
    """
    k = x.size
    y, variances = _summing_to_one(x, a, b, part)
    distinct, rows, copies = _distinct(y, a, b)
    nodes = _nodes(y, variances, a, b)
    likelihood = quasi_likelihood(*distinct, nodes)
    law = learnt_laws(likelihood, copies, nodes, k, float(np.sqrt(np.median(variances))))
    means = law @ nodes
    deviations = np.sqrt(np.maximum(law @ nodes**2 - means**2, 0.0))
    alone = _weighted_projection(x, variances, part)
    trust = 1 - min(1.0, ALONE / k)
    loose = _looseness(means, deviations, variances, rows)
    learnt = _weighted_projection(means[rows], loose, part)
    mixed = trust * learnt + (1 - trust) * alone
    return Posterior(
        frequencies=mixed if part else project(mixed),
        standard_errors=trust * deviations[rows] + (1 - trust) * np.sqrt(variances),
        nodes=nodes,
        cumulative=np.cumsum(law, axis=1),
        rows=rows,
        shift=learnt - means[rows],
        trust=trust,
    )


def _summing_to_one(x: Floats, a: Floats, b: Floats, part: bool) -> tuple[Floats, Floats]:
    """x moved to sum 1, each by a share of its variance (generalised least squares); variances."""
    y = x
    for _ in range(2):
        variances = np.maximum(a + b * np.clip(y, 0.0, 1.0), 1e-2 * a + _SMALLEST)
        y = x if part else x - variances * ((x.sum() - 1) / variances.sum())
    return y, variances


def _weighted_projection(x: Floats, variances: Floats, part: bool) -> Floats:
    """The point f of the simplex with the least sum of (x - f)^2 / variance: max(x - t var, 0)."""
    positive = np.maximum(x, 0.0)
    if part and positive.sum() <= 1:
        return np.asarray(positive)
    weights = variances + 1e-6 * variances.mean() + _SMALLEST
    order = np.argsort(-x / weights)
    t = (np.cumsum(x[order]) - 1) / np.cumsum(weights[order])
    last = np.flatnonzero(x[order] / weights[order] > t)
    return project(np.maximum(x - t[last[-1] if last.size else 0] * weights, 0.0))


def _looseness(
    means: Floats, deviations: Floats, variances: Floats, rows: NDArray[np.intp]
) -> Floats:
    """How far each mean may move to make the sum 1: the row sums of the posterior covariance.

    A value's own variance t^2, and what all values share because one prior made them: of a mean m
    the prior made g = m (1 - t^2 / s^2), s^2 the variance of the reports alone. If the prior is
    wrong in scale, all g are wrong together: the covariance of two values is g g'.
    """
    own = deviations[rows] ** 2
    made = means[rows] * (1 - np.minimum(1.0, own / variances))
    return np.asarray(own + made * made.sum())


def _distinct(
    y: Floats, a: Floats, b: Floats
) -> tuple[tuple[Floats, Floats, Floats], NDArray[np.intp], Floats]:
    """Equal rows (y, a, b) only once, with their places and numbers: counts repeat."""
    if _once(y, a)[0].shape[1] > MANY:
        level = float(np.median(a)) + _SMALLEST
        y = np.round(y / (FINE * np.sqrt(level))) * (FINE * np.sqrt(level))
        a = np.maximum(np.round(a / (FINE * level)), 1) * (FINE * level)
    table, rows = _once(y, a, b)
    return (table[0], table[1], table[2]), rows, np.bincount(rows).astype(np.float64)


def _once(*columns: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The different rows of columns in order, and where each row went.

    As `np.unique` does it, but column by column: to compare whole rows keeps all other threads of
    the process waiting, for seconds if there are a million.
    """
    order = np.lexsort(columns[::-1])
    table = np.stack(columns)[:, order]
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (table[:, 1:] != table[:, :-1]).any(axis=0)
    rows = np.empty(order.size, dtype=np.intp)
    rows[order] = np.cumsum(new) - 1
    return table[:, new], rows


def _nodes(y: Floats, variances: Floats, a: Floats, b: Floats) -> Floats:
    """0 and 1/k, geometric steps below the noise, and lattices near the estimates.

    Estimates whose noise differs much need lattices of several steps, each half of the last.
    """
    k, slope = y.size, float(np.median(b))
    top = min(1.0, max(float((y + REACH * np.sqrt(variances)).max()), 8 / k))
    fine = np.geomspace(0.02 / k, top, 2 + int(np.log(50 * k * top) / np.log(1.15)))
    highest = float(a.max()) + _SMALLEST
    lowest = max(float(a.min()), 1e-6 * highest)
    levels = highest / 4.0 ** np.arange(1 + int(np.log(highest / lowest) / np.log(4)))
    even = [_lattice(y, top, float(level), slope) for level in levels]
    noise = float(np.sqrt(np.median(variances)))
    return np.unique(np.concatenate([[0.0, 1 / k, top], fine[fine <= 2 * noise], *even]))


def _lattice(y: Floats, top: float, level: float, slope: float) -> Floats:
    """Steps of equal length in s(f), the integral of df / sd(f), around each estimate.

    A lattice of one standard deviation already integrates a normal likelihood to nine digits.
    """
    f = np.linspace(0.0, top, 1 << 12)
    density = 1 / np.sqrt(np.maximum(level + slope * f, 0.02 * level + _SMALLEST))
    length = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2) * f[1]])
    places = np.unique(np.rint(NODES * np.interp(np.clip(y, 0.0, top), f, length)))
    reach = np.arange(-NODES * REACH, NODES * REACH + 1)
    lattice = np.unique(places[:, None] + reach)
    return np.interp(lattice / NODES, length, f)
