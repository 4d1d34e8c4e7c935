"""Means from scores: each report has a score whose mean is the number, whatever it is."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from deniable.arrays import Counts, Floats
from deniable.mechanisms.numbers.base import Binary, Moments, NumberMechanism
from deniable.randomness import SCALE, choice_weight

#: Reports that a stratum has on average, at least.
PER_STRATUM = 50
#: Fewer reports, which are not sorted into strata either, or fewer that were drawn at random on
#: average, need not show the rare large errors: their variance is taken to be the largest possible.
FEW, FEW_DRAWN = 2 * PER_STRATUM, 10
#: Numbers from 0 to 1 at which noise is looked at, unless a family knows better.
GRID = np.linspace(0.0, 1.0, 1025)


class Scores(NumberMechanism):
    """Reports are cells, and the score of the cell that is reported has the mean x.

    The cells may stand in rows: which one is public chance, equally likely for all, and says
    nothing about x. Then reports are sorted by rows into S strata of equal weight, so that what a
    row does to scores is not taken for noise. Each stratum is a sample of all answers, so
    x = 1 / S sum_b x_b, of the mean score x_b of each, is unbiased for every population.
    """

    # ---- what a family says

    @property
    @abstractmethod
    def exact_scores(self) -> tuple[Fraction, ...]:
        """The score of each cell of a row; its mean is 0 for those who skip the question."""

    @property
    def exact_answers(self) -> tuple[Fraction, ...]:
        """The score of each cell with the mean 1 for those who answered, and 0 for all others."""
        return (Fraction(1),) * len(self.exact_scores)

    @property
    @abstractmethod
    def random_share(self) -> float:
        """How likely a report is drawn without looking at the answer."""

    @abstractmethod
    def noise(self, x: Floats) -> Floats:
        """The variance of the scores of respondents with these numbers, given the row; its mean."""

    @property
    def mean_error(self) -> float:
        """By how much the mean may be wrong on average."""
        return 0.0

    @property
    def extremes(self) -> Floats:
        """Numbers from 0 to 1 among which the noise is largest, and smallest."""
        return GRID

    @property
    def squares(self) -> Floats | None:
        """What each cell (of each row) says of x^2, so that the mean is rather too small."""
        return None

    def table(self, counts: Counts) -> Counts:
        """The counts by row and cell."""
        return counts[None, :]

    def strata(self, n: int) -> int:
        """Into how many strata n reports are sorted, a power of two."""
        return 1

    # ---- what follows

    @cached_property
    def scores(self) -> Floats:
        """`exact_scores` as floating-point numbers."""
        return np.array([float(score) for score in self.exact_scores])

    def moments(self, counts: Counts, n: int) -> Moments:
        strata = merged(self.table(counts), self.strata(n))
        mean, variance = stratified(strata.sum(axis=1), self.scores)
        most, largest = (self.worst_variance(n, sampled=sampled) for sampled in (True, False))
        few = not self.shows_variance(n)
        least = self.least_variance(mean, n)
        return Moments(
            n=n,
            mean=mean,
            variance=most if few else min(max(variance, least), most),
            least=largest if few else least,
            largest=largest,
            **self._square(strata, few),
        )

    def _square(self, strata: Counts, few: bool) -> dict[str, Any]:
        """The mean square, and its covariances with the mean."""
        if self.squares is None:
            return {"square": None}
        by_cell = strata.reshape(len(strata), -1)
        scores = np.tile(self.scores, strata.shape[1])
        squares = self.squares.reshape(len(strata), -1)
        (square, of_square), (_, of_mean), (_, of_both) = (
            stratified(by_cell, one) for one in (squares, scores, squares + scores)
        )
        both = (of_both - of_square - of_mean) / 2
        if few:
            most = np.square([np.ptp(scores), np.ptp(squares)]) / (4 * by_cell.sum())
            return {"square": square, "covariances": np.diag(most)}
        return {"square": square, "covariances": np.array([[of_mean, both], [both, of_square]])}

    @cached_property
    def _least_noise(self) -> tuple[Floats, Floats]:
        """H: the corners of the largest convex function below the noise.

        n Var is the mean noise of all respondents, at least, and that is at least H(their mean).
        """
        return lower_hull(self.extremes, self.noise(self.extremes))

    def least_variance(self, mean: float, n: int) -> float:
        return float(np.interp(mean, *self._least_noise)) / n

    def shows_variance(self, n: int) -> bool:
        return n >= FEW and n * self.random_share >= FEW_DRAWN

    def binary(self, counts: Counts) -> Binary | None:
        if len(self.exact_scores) != 2:
            return None
        return Binary(int(self.table(counts)[:, 1].sum()), *self.scores.tolist())

    def variance_for(self, x: Floats, n: int) -> float:
        return float(self.noise(np.asarray(x)).mean()) / n

    def worst_variance(self, n: int, *, sampled: bool = False) -> float:
        return (self._worst_of_sample if sampled else self._worst_noise) / n

    @cached_property
    def _worst_noise(self) -> float:
        return float(self.noise(self.extremes).max())

    @cached_property
    def _worst_of_sample(self) -> float:
        """The largest variance of a score of anybody: E[noise + x^2] - E[x]^2, at most."""
        x, upper = lower_hull(self.extremes, -self.noise(self.extremes) - self.extremes**2)
        return float((-np.interp(GRID, x, upper) - GRID**2).max())


def merged(table: Counts, wanted: int) -> Counts:
    """The counts by stratum, row in it, and cell: as many strata as have reports.

    Neighbours are merged in pairs, all of them, until no stratum is empty. That looks at rows only,
    which say nothing about answers, so the mean stays unbiased.
    """
    while wanted > 1 and not table.reshape(wanted, -1).sum(axis=1).all():
        wanted //= 2
    return table.reshape(wanted, -1, table.shape[1])


def stratified(by_cell: Counts, scores: Floats) -> tuple[float, float]:
    """The mean score of all strata, and its variance for a sample.

    Strata may have ``scores`` of their own, a row for each.
    """
    sizes = by_cell.sum(axis=1)
    means = (by_cell * scores).sum(axis=1) / sizes
    squares = (by_cell * (scores - means[:, None]) ** 2).sum(axis=1) / np.maximum(sizes - 1, 1)
    return float(means.mean()), float((squares / sizes).sum() / len(sizes) ** 2)


def drawn_mean(size: int) -> Fraction:
    """The mean of `Coins.choice`, whose weights are not all equal."""
    return Fraction(sum(index * choice_weight(index, size) for index in range(size)), SCALE)


def lower_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners of the largest convex function that is at most y at the ascending x."""
    corners: list[int] = []
    for place in range(len(x)):
        while len(corners) > 1 and _above(x, y, corners[-2], corners[-1], place):
            corners.pop()
        corners.append(place)
    return x[corners], y[corners]


def _above(x: Floats, y: Floats, left: int, middle: int, right: int) -> bool:
    """Whether the middle point is not below the line through the others."""
    rise = (y[middle] - y[left]) * (x[right] - x[left])
    return bool(rise >= (y[right] - y[left]) * (x[middle] - x[left]))
