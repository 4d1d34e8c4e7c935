"""Distributions: what estimators ask of mechanisms whose counts say how many answers are in bins.

Each report is about one of several levels, which is drawn by public weights c_l. The reports of
level l lead to z_l, unbiased for A_l f, where f are the shares of the bins and A_l has entries
-1, 0 and 1, one for each bin that is not 0 in each column.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain
from deniable.mechanisms.numbers.answered import Answered
from deniable.mechanisms.numbers.base import Moments, NumberMechanism
from deniable.mechanisms.numbers.bins import FINE, Binning, steps_of
from deniable.mechanisms.numbers.least_squares import LeastSquares, plausible
from deniable.mechanisms.numbers.observed import Linear

#: More steps would not fit beside an encoded number into 64 bits.
MOST_STEPS = 1 << (FINE - 1)
#: A level with fewer reports need not show its rare large errors.
FEW = 10
#: The mean of 1 / (the reports of a level) is at most 1 / (their average - LOST).
LOST = 3
#: Steps towards the worst of all populations, which is bounded whatever their number.
TRIES = 400


class Level(NamedTuple):
    """What the reports of one level say."""

    n: int
    #: Unbiased sums of shares; those of evenly spread answers if there is no report.
    z: Floats


class Binned(NumberMechanism):
    """A mechanism for the distribution of numbers, and so for their mean."""

    tasks = ("distribution", "mean")
    observes = Linear
    trials = 80

    @classmethod
    def unsuited(cls, domain: Domain) -> str | None:
        if other := super().unsuited(domain):
            return other
        many = (steps_of(domain) or 0) > MOST_STEPS  # type: ignore[arg-type]  # a Number
        return f"numbers in at most {MOST_STEPS:,} steps for {cls.__name__}" if many else None

    # ---- what a family says

    @property
    @abstractmethod
    def binning(self) -> Binning:
        """The bins."""

    @property
    @abstractmethod
    def chances(self) -> Floats:
        """c: how likely a report is about each level."""

    @property
    @abstractmethod
    def sums(self) -> Sequence[Floats]:
        """A: one row for each sum of each level."""

    @abstractmethod
    def observed(self, counts: Counts, n: int) -> list[Level]:
        """What the counts of n reports say about each level. Run by the analyst."""

    @abstractmethod
    def noise(self, level: int, rows: Floats) -> Floats:
        """Var(row z), one for each row, from one report of a level about an answer in each node.

        Node u of a level are the bins whose columns of A have their entry in row u.
        """

    # ---- what follows: shares

    def told(self, value: int) -> Fraction:
        """The middle of the bin."""
        return Fraction(float(self.binning.middles[self.binning.of(value)]))

    @property
    def rounding(self) -> float:
        return self.binning.reach

    @cached_property
    def weights(self) -> Floats:
        """The weights of the levels for least squares: 1 / variances of their sums.

        They are fixed: those of n c_l reports about answers that are spread evenly. Sums of one
        level may err together. If their errors have the variance v and the covariance r, least
        squares under sum f = 1 only ask for differences of sums, so v - r counts.
        """
        return self.chances / [self._usual(level) for level in range(len(self.sums))]

    @property
    def columns(self) -> int:
        """The columns of A: the bins, and a skip behind them if the question may be skipped."""
        return self.binning.size + self.domain.optional

    def _usual(self, level: int) -> float:
        """v - r, or v where there is only one sum."""
        pair = np.eye(1, len(self.sums[level])) - np.eye(1, len(self.sums[level]), 1)
        even = np.full(self.columns, 1 / self.columns)
        return float(self.variance_of(level, pair, even)[0]) / np.count_nonzero(pair)

    @cached_property
    def solved(self) -> LeastSquares:
        """Least squares with these weights."""
        return LeastSquares(self.sums, self.weights.tolist())

    def even(self, level: int) -> Floats:
        """The sums of a level where answers are spread evenly."""
        return np.asarray(self.sums[level].sum(axis=1) / self.columns)

    def variance_of(self, level: int, rows: Floats, f: Floats) -> Floats:
        """n Var(row z), one for each row, of a sample of n respondents; f are shares of bins.

        Their answers add the variance of row A_x, where A_x is the column of bin x.
        """
        a = self.sums[level]
        return np.asarray(
            (self.noise(level, rows) + rows**2) @ (np.abs(a) @ f) - (rows @ (a @ f)) ** 2
        )

    def observed_bins(self, counts: Counts, n: int, binning: Binning) -> Linear | None:
        """The sums of all levels, with the variances that `weights` stand for."""
        if binning != self.binning:
            return None
        found = [(i, one) for i, one in enumerate(self.observed(counts, n)) if one.n]
        return Linear(
            np.concatenate([one.z for _, one in found]),
            np.concatenate([self.sums[i] for i, _ in found]),
            np.concatenate([np.full(len(one.z), self._usual(i) / one.n) for i, one in found]),
        )

    # ---- what follows: the mean

    def moments(self, counts: Counts, n: int) -> Moments:
        levels, middles = self.observed(counts, n), self.binning.middles
        f = self.solved.shares([level.z for level in levels])
        largest, most = (self.worst_variance(n, sampled=sampled) for sampled in (False, True))
        if min(level.n for level in levels) < FEW:
            variance, least, covariances = most, largest, np.diag([most, 4 * most])
        else:
            reports = np.array([level.n for level in levels])
            least = float(self._noises[0].min(axis=1) @ (1 / reports))
            of_mean, of_square, of_both = self._of_sample(plausible(f)) @ (1 / reports)
            both = (of_both - of_mean - of_square) / 2
            variance = min(max(float(of_mean), least), most)
            covariances = np.array([[of_mean, both], [both, of_square]])
        return Moments(
            n=n,
            mean=float(middles @ f),
            square=float(middles**2 @ f),
            variance=variance,
            least=least,
            largest=largest,
            covariances=covariances,
            rounding=self.rounding,
        )

    def answered(self, counts: Counts, n: int) -> Answered:
        """S and N from the shares of the bins and of the skip, which sum to 1."""
        levels, middles = self.observed(counts, n), np.append(self.binning.middles, 0.0)
        f, answers = self.solved.shares([one.z for one in levels]), _answers(self.columns)
        total, share = float(middles @ f), float(answers @ f)
        mean = total / share if share > 0 else 0.5
        reports = np.maximum([one.n for one in levels], 1)
        errors = middles - mean * answers
        of_mean, of_share, of_both = self._variances_of(
            np.array([errors, answers, errors + answers]), plausible(f), reports
        )
        most, few = self._largest_of(errors, reports), min(one.n for one in levels) < FEW
        return Answered(
            n=n,
            total=total,
            share=share,
            variance=most if few else min(float(of_mean), most),
            tilt=float(of_both - of_mean - of_share) / 2,
            share_variance=self._largest_of(answers, reports) if few else float(of_share),
            square=float(middles**2 @ f) / share if share > 0 else None,
            least=most if few else 0.0,
            largest=most,
            rounding=self.rounding,
        )

    def worst_among(self, mean: float, n: int) -> float:
        errors = np.append(self.binning.middles, 0.0) - mean * _answers(self.columns)
        return self._largest_of(errors, self._expected(n))

    def _largest_of(self, row: Floats, reports: Any) -> float:
        """The largest variance of a weighted sum of shares, for a sample, whatever is answered."""
        found = 0.0
        for level, (gain, a, m) in enumerate(
            zip(self.solved.gains, self.sums, reports, strict=True)
        ):
            own = (row @ gain)[None]
            found += float(((self.noise(level, own) + own**2) @ np.abs(a)).max()) / m
        return found

    def _variances_of(self, rows: Floats, f: Floats, reports: Any) -> Floats:
        """Those of weighted sums of shares, for a sample, where levels have so many reports."""
        pairs = zip(self.solved.gains, reports, strict=True)
        each = [self.variance_of(i, rows @ gain, f) / m for i, (gain, m) in enumerate(pairs)]
        return np.asarray(sum(each))

    def variance_among(self, x: Floats, n: int, skipped: float, *, sampled: bool = False) -> float:
        f = np.append((1 - skipped) * self._shares_of(x), skipped)
        middles, answers = np.append(self.binning.middles, 0.0), _answers(self.columns)
        errors = middles - float(middles @ f) / (1 - skipped) * answers
        found = float(self._variances_of(errors[None], f, self._expected(n))[0])
        return (found - (not sampled) * float(errors**2 @ f) / n) / (1 - skipped) ** 2

    def _shares_of(self, x: Floats) -> Floats:
        """The shares of the bins, where the numbers x are equally frequent."""
        answers = self.domain.lo + np.asarray(x) * (self.domain.hi - self.domain.lo)
        places = self.binning.of(self.domain.encode(answers)).astype(np.int64)
        return np.bincount(places, minlength=self.binning.size) / len(places)

    def _expected(self, n: int) -> Floats:
        """So many reports of each level have variances as large as the n reports have."""
        expected = n * self.chances
        return np.asarray(1 / (1 / expected + (1 - self.chances) / expected**2))

    @cached_property
    def _rows(self) -> list[Floats]:
        """What each level adds to the mean, to the mean square and to their sum: a row each."""
        middles = self.binning.middles
        wanted = np.array([middles, middles**2, middles + middles**2])
        return [wanted @ gain for gain in self.solved.gains]

    @cached_property
    def _told(self) -> Floats:
        """T: what level l adds of each row for an answer in bin x, on average: row, l, x."""
        pairs = zip(self._rows, self.sums, strict=True)
        return np.stack([rows @ a for rows, a in pairs], axis=1)

    @cached_property
    def _noises(self) -> Floats:
        """N: the variance of what a report of level l adds for an answer in bin x: row, l, x."""
        levels = enumerate(zip(self._rows, self.sums, strict=True))
        return np.stack([self.noise(i, rows) @ np.abs(a) for i, (rows, a) in levels], axis=1)

    def _of_sample(self, f: Floats) -> Floats:
        """n_l Var of what each level adds of each row, for a sample."""
        return np.asarray((self._noises + self._told**2) @ f - (self._told @ f) ** 2)

    def least_variance(self, mean: float, n: int) -> float:
        return float(self._noises[0].min(axis=1) @ (1 / (n * self.chances)))

    def shows_variance(self, n: int) -> bool:
        return bool(n * self.chances.min() >= 2 * FEW)

    def variance_for(self, x: Floats, n: int) -> float:
        f, middles = self._shares_of(x), self.binning.middles
        of_sample = self._of_sample(f)[0] @ (1 / self._expected(n))
        return float(of_sample - (middles**2 @ f - (middles @ f) ** 2) / n)

    def worst_variance(self, n: int, *, sampled: bool = False) -> float:
        """That of `worst_case` for many respondents; chance moves the reports of a level.

        Where a level is without a report, all that it adds may be wrong.
        """
        of_sample, fixed = self._worst
        fewest = self._fewest(n)
        empty = float((1 - self.chances) ** n @ np.ptp(self._told[0], axis=1) ** 2)
        if sampled:
            return of_sample / fewest + empty
        return fixed / n + of_sample * (1 / fewest - 1 / n) + empty

    def _fewest(self, n: int) -> float:
        """So many reports, of which level l gets the share c_l, have variances as large as n do."""
        rarest = float(self.chances.min())
        return max(n - LOST / rarest, min(n, 1 / rarest))

    def share_variance(self, n: int, *, sampled: bool = False, skipped: float = 0.0) -> float:
        k = self.binning.size
        row, even, share = np.arange(k) < k // 2, np.full(k, 1 / k), (k // 2) / k
        if self.domain.optional:
            f = np.append((1 - skipped) * even, skipped)
            errors = np.append(row - share, 0.0)
            found = float(self._variances_of(errors[None], f, self._fewest(n) * self.chances)[0])
            return (found - (not sampled) * float(errors**2 @ f) / n) / (1 - skipped) ** 2
        rows = [(row @ gain)[None] for gain in self.solved.gains]
        each = [float(self.variance_of(level, one, even)[0]) for level, one in enumerate(rows)]
        of_sample = float(each @ (1 / self.chances)) / self._fewest(n)
        return of_sample if sampled else of_sample - share * (1 - share) / n

    @cached_property
    def _worst(self) -> tuple[float, float]:
        """The largest n Var of the mean: for a sample, and for a fixed population.

        For a sample it is sum_l (N_l f + T_l^2 f - (T_l f)^2) / c_l; a fixed population has Var(x)
        less, and as T sums to the middles but for a constant, both are concave in f.
        """
        linear = (self._noises[0] + self._told[0] ** 2) / self.chances[:, None]
        middles, added = self.binning.middles, self._told[0] / np.sqrt(self.chances)[:, None]
        centred = middles - middles.mean()
        return (
            largest_concave(linear.sum(axis=0), added),
            largest_concave(linear.sum(axis=0) - centred**2, added, centred),
        )


def _answers(columns: int) -> Floats:
    """1 for each bin, 0 for the skip behind them."""
    return np.asarray((np.arange(columns) < columns - 1) * 1.0)


def largest_concave(linear: Floats, minus: Floats, plus: Floats | None = None) -> float:
    """At least the maximum over shares f of linear f - |minus f|^2 + (plus f)^2, if concave.

    By the method of Frank and Wolfe: a concave function is below its tangents, so each step gives
    an upper bound, and the least of them is returned.
    """
    f = np.full(len(linear), 1 / len(linear))
    bound = np.inf
    for _ in range(TRIES):
        a, b = minus @ f, 0.0 if plus is None else float(plus @ f)
        slope = linear - 2 * (a @ minus) + (0.0 if plus is None else 2 * b * plus)
        best = int(slope.argmax())
        gain = float(slope[best] - slope @ f)
        bound = min(bound, float(linear @ f - a @ a) + b**2 + gain)
        move = -f
        move[best] += 1
        curve = float(np.sum((minus @ move) ** 2)) - (0.0 if plus is None else (plus @ move) ** 2)
        f = f + min(1.0, gain / (2 * curve) if curve > 0 else 1.0) * move
    return bound
