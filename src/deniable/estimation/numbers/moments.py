"""What reports about numbers say: the mean of all answers, how sure it is, how answers are spread.

Numbers here are x of 0..1, from lo to hi. With s = keep / 2**64 and a random cell of mean mu, the
reported cell z has the mean s ell x + (1 - s) mu, whatever x, so x = (z - (1 - s) mu) / (s ell) on
average. The offset t of a report is public and uniform. Reports are sorted by it into S strata of
equal weight, so that what the offset does to z is not taken for noise: each stratum is a sample of
all answers, and x = 1 / S sum_b x_b is unbiased for every population.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from deniable.arrays import Counts, Floats
from deniable.mechanisms.numbers import DRR, PER_STRATUM

#: Fewer reports, which are not sorted by offset either, or fewer cells that were drawn at random on
#: average, need not show the rare large errors: their variance is taken to be the largest possible.
FEW, FEW_DRAWN = 2 * PER_STRATUM, 10
#: The error about the respondents has this share of the variance for a sample, at least.
LEAST_SHARE = 1 / 4
#: The largest variance of numbers from 0 to 1.
LARGEST = 1 / 4


@dataclass(frozen=True)
class Moments:
    """What n reports say about answers of 0..1."""

    n: int
    mean: float
    #: Of the squares of all answers; rather too small.
    square: float
    #: That of ``mean`` where respondents are a sample of everyone.
    variance: float
    #: The least and the largest that the variance about the respondents themselves can be.
    least: float
    largest: float

    @property
    def spread(self) -> float:
        """The variance of the answers, rather too small."""
        return min(max(self.square - self.mean**2 + self.variance, 0.0), LARGEST)

    def variance_about(self, *, everyone: bool) -> float:
        """The variance of the mean about everyone, or about the respondents.

        Given who responds, the mean is unbiased for theirs. So the variance for a sample is that
        about the respondents, and the variance of their own mean: Var(x) / n.
        """
        if everyone:
            return self.variance
        found = self.variance - self.spread / self.n
        return min(max(found, LEAST_SHARE * self.variance, self.least), self.largest)


def moments(mechanism: DRR, counts: Counts, n: int) -> Moments:
    """The moments that the counts of n reports lead to."""
    table = mechanism.table(counts)
    strata = _strata(table, mechanism.strata(n))
    mean, variance = _mean(mechanism, strata)
    most, largest = (mechanism.worst_variance(n, sampled=sampled) for sampled in (True, False))
    few = n < FEW or n * (1 - mechanism.share) < FEW_DRAWN
    least = _least_variance(mechanism, mean) / n
    return Moments(
        n=n,
        mean=mean,
        square=_square(mechanism, strata),
        variance=most if few else min(max(variance, least), most),
        least=largest if few else least,
        largest=largest,
    )


def pooled(parts: Sequence[Moments], variances: Sequence[float]) -> Moments:
    """One from several, with weights 1 / ``variances``, which must not depend on the reports.

    Who is in which part is chance, as if all were sorted into parts without looking: that adds
    ``between`` times the variance of the answers to what the parts have about their respondents.
    """
    w = 1 / np.array(variances)
    w /= w.sum()
    n = sum(part.n for part in parts)
    between = max(0.0, float(w**2 @ [1 / part.n for part in parts]) - 1 / n)
    return Moments(
        n=n,
        mean=float(w @ [part.mean for part in parts]),
        square=float(w @ [part.square for part in parts]),
        variance=float(w**2 @ [part.variance for part in parts]),
        least=float(w**2 @ [part.least for part in parts]),
        largest=float(w**2 @ [part.largest for part in parts]) + between * LARGEST,
    )


def _strata(table: Counts, wanted: int) -> Counts:
    """The counts by stratum, shown offset in it, and cell: as many strata as have reports.

    Neighbours are merged in pairs, all of them, until no stratum is empty. That looks at offsets
    only, which say nothing about answers, so the mean stays unbiased.
    """
    while wanted > 1 and not table.reshape(wanted, -1).sum(axis=1).all():
        wanted //= 2
    return table.reshape(wanted, -1, table.shape[1])


def _mean(mechanism: DRR, strata: Counts) -> tuple[float, float]:
    """The mean, and its variance for a sample."""
    by_cell = strata.sum(axis=1)
    cells, sizes = np.arange(by_cell.shape[1]), by_cell.sum(axis=1)
    z = by_cell @ cells / sizes
    squares = (by_cell * (cells - z[:, None]) ** 2).sum(axis=1) / np.maximum(sizes - 1, 1)
    share = float(mechanism.share)
    scale = share * mechanism.ell
    mean = (z.mean() - (1 - share) * float(mechanism.drawn_mean)) / scale
    return float(mean), float((squares / sizes).sum() / (len(sizes) * scale) ** 2)


def _square(mechanism: DRR, strata: Counts) -> float:
    """The mean of x^2 = 2 times the integral of c [x >= c] dc, over c = (k - t) / ell, k = 1..ell.

    A cell z behind the offset t says which of these c are at most x: so x^2 is the mean of
    (z (z + 1) - 2 z t) / ell^2, the randomness of z taken out. A report shows t to h = 2**-shown.
    The middle of that makes x^2 too large, by (h / (2 ell))^2 at most, which is subtracted.
    """
    unbiased, excess = _squares_of_reports(mechanism)
    sums = (strata * unbiased.reshape(strata.shape)).sum(axis=(1, 2))
    sizes = strata.sum(axis=(1, 2))
    return float((sums / sizes).mean() - excess)


@lru_cache(maxsize=64)
def _squares_of_reports(mechanism: DRR) -> tuple[Floats, float]:
    """What a report says of x^2, by shown offset and cell; and by how much that is too large."""
    share, ell, shown = float(mechanism.share), mechanism.ell, 1 << mechanism.shown
    cells = np.arange(mechanism.outcomes)
    t = (np.arange(shown) + 0.5) / shown
    of_cell: Floats = (cells * (cells + 1) - 2 * np.outer(t, cells)) / ell**2
    unbiased = (of_cell - (1 - share) * of_cell.mean(axis=1, keepdims=True)) / share
    return unbiased, (1 / (2 * ell * shown)) ** 2


def _least_variance(mechanism: DRR, mean: float) -> float:
    """H(ell x) / (s ell)^2: the least n Var of all populations with this mean.

    Whoever has cell i reports z with the variance s i^2 + (1 - s) m2 - (s i + (1 - s) mu)^2, which
    is convex in i. So its mean over all who answer is at least the value, between the two nearest
    cells, at the mean ell x of their cells.
    """
    cells, variances = _variances_of_cells(mechanism)
    at = mechanism.ell * min(max(mean, 0.0), 1.0)
    return float(np.interp(at, cells, variances)) / (float(mechanism.share) * mechanism.ell) ** 2


@lru_cache(maxsize=64)
def _variances_of_cells(mechanism: DRR) -> tuple[Floats, Floats]:
    """The cells, and the variance of the reports of who has each."""
    share, cells = float(mechanism.share), np.arange(mechanism.ell + 1.0)
    mu, m2 = float(mechanism.drawn_mean), float(np.mean(cells**2))
    variances = share * cells**2 + (1 - share) * m2 - (share * cells + (1 - share) * mu) ** 2
    return cells, variances
