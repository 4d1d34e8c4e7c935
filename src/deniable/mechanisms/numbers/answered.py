"""What reports say about the numbers of those who answered, where a question may be skipped.

Of n respondents a share N answered, with numbers of 0..1 that add to S per respondent; their mean
is R = S / N. Reports have scores with these two means, so that S and N are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Counts, Floats
from deniable.mechanisms.numbers.base import LARGEST, LEAST_SHARE


@dataclass(frozen=True)
class Answered:
    """S and N of n reports, and how S - R N errs; variances are those for a sample of everyone.

    At another ratio r, S - r N = (S - R N) - (r - R) N. So Var(S - R N), Cov(S - R N, N) and Var(N)
    say how all of these err.
    """

    n: int
    total: float
    share: float
    variance: float
    tilt: float
    share_variance: float
    #: The mean square of the numbers of those who answered, rather too small; None if not known.
    square: float | None
    #: The least and the largest that Var(S - R N) about the respondents themselves can be.
    least: float
    largest: float
    #: The farthest that the mean is moved by rounding the numbers.
    rounding: float = 0.0

    @property
    def mean(self) -> float:
        """R; the middle of the range where nobody seems to have answered."""
        return self.total / self.share if self.share > 0 else 0.5

    @property
    def spread(self) -> float:
        """The variance of the numbers of those who answered, rather too small."""
        if self.square is None or self.share <= 0:
            return 0.0
        found = self.square - self.mean**2 + self.variance / self.share**2
        return min(max(found, 0.0), LARGEST)

    def variance_about(self, *, everyone: bool) -> float:
        """Var(S - R N) about everyone, or about the respondents.

        Given who responds, S - R N is unbiased for theirs. So the variance for a sample has the
        variance of their own S - R N beside that about the respondents: N Var(x) / n.
        """
        if everyone:
            return self.variance
        found = self.variance - self.share * self.spread / self.n
        return min(max(found, LEAST_SHARE * self.variance, self.least), self.largest)

    def share_variance_about(self, *, everyone: bool) -> float:
        """Var(N); given who responds, that is N (1 - N) / n less."""
        share = min(max(self.share, 0.0), 1.0)
        return max(self.share_variance - (not everyone) * share * (1 - share) / self.n, 0.0)


@dataclass(frozen=True)
class ScoreSums:
    """The law of cells by stratum of n reports, and scores for them, a row for each stratum.

    Strata have equal weight, whatever their ``sizes``.
    """

    law: Floats
    sizes: Counts

    @classmethod
    def of_table(cls, table: Counts) -> ScoreSums:
        sizes = table.sum(axis=1)
        return cls(table / sizes[:, None], sizes)

    def mean(self, scores: Floats) -> float:
        """The mean of the strata's mean scores."""
        return float((self.law * scores).sum(axis=1).mean())

    def covariance(self, one: Floats, other: Floats) -> float:
        """That of two such means, for a sample of everyone."""
        both = (self.law * one * other).sum(axis=1)
        own = both - (self.law * one).sum(axis=1) * (self.law * other).sum(axis=1)
        return float((own / np.maximum(self.sizes - 1, 1)).sum() / len(self.sizes) ** 2)
