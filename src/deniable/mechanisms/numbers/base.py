"""What the estimator of means asks of a mechanism for numbers.

Numbers here are x of 0..1, from lo to hi; the task puts them back on the scale of the answers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from deniable.answers.number import GRID, Number
from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain
from deniable.core.mechanism import Mechanism
from deniable.errors import InvalidArgument
from deniable.mechanisms.numbers.bins import USUAL_BINS, Binning
from deniable.mechanisms.numbers.observed import Observed

if TYPE_CHECKING:
    from deniable.mechanisms.numbers.answered import Answered

#: The largest variance of numbers from 0 to 1.
LARGEST = 1 / 4
#: The error about the respondents has this share of the variance for a sample, at least.
LEAST_SHARE = 1 / 4


@dataclass(frozen=True)
class Moments:
    """What n reports say about answers of 0..1."""

    n: int
    mean: float
    #: Of the squares of all answers, rather too small; None if the reports do not tell it.
    square: float | None
    #: That of ``mean`` where respondents are a sample of everyone.
    variance: float
    #: The least and the largest that the variance about the respondents themselves can be.
    least: float
    largest: float
    #: The covariances of the mean and ``square`` where respondents are a sample, as observed.
    covariances: Floats | None = None
    #: `NumberMechanism.rounding`.
    rounding: float = 0.0

    @property
    def spread(self) -> float:
        """The variance of the answers, rather too small; 0 if nothing is known."""
        if self.square is None:
            return 0.0
        return min(max(self.square - self.mean**2 + self.variance, 0.0), LARGEST)

    @property
    def spread_variance(self) -> float | None:
        """That of ``square - mean**2``, where respondents are a sample; None if nothing is known.

        Rather too large for the spread among the respondents themselves. To first order it is that
        of ``square`` minus 2 E[x] times the mean; where all answer lo or hi little is left but the
        second order, 2 Var(mean)^2.
        """
        if self.covariances is None:
            return None
        turn = np.array([-2 * self.mean, 1.0])
        return float(turn @ self.covariances @ turn) + 2 * self.variance**2

    def variance_about(self, *, everyone: bool) -> float:
        """The variance of the mean about everyone, or about the respondents.

        Given who responds, the mean is unbiased for theirs. So the variance for a sample is that
        about the respondents, and the variance of their own mean: Var(x) / n.
        """
        if everyone:
            return self.variance
        found = self.variance - self.spread / self.n
        return min(max(found, LEAST_SHARE * self.variance, self.least), self.largest)


@dataclass(frozen=True)
class Binary:
    """Reports that are one of two, the upper with probability (x - low) / (high - low) for all x.

    So of respondents who are a sample of everyone it is binomial how many are the ``upper`` one,
    and depends on the mean only.
    """

    upper: int
    low: float
    high: float

    def chance(self, mean: float) -> float:
        """How likely a report is the upper one if this is the mean; a probability in any case."""
        return min(max((mean - self.low) / (self.high - self.low), 0.0), 1.0)

    def mean(self, chance: float) -> float:
        """The mean with which a report is the upper one with this probability."""
        return self.low + (self.high - self.low) * chance


class Between(NamedTuple):
    """Estimates, unbiased and nearly normal, of two numbers with another one between them.

    With no less than the wanted probability that one is between the lower end of an interval for
    ``low`` and the upper end of one for ``high``. Variances are those for a sample.
    """

    low: Floats
    low_variance: Floats
    high: Floats
    high_variance: Floats


class NumberMechanism(Mechanism):
    """A mechanism for numbers of a range, whose counts have a mean.

    One for distributions names that task, too: ``tasks = ("distribution", "mean")``.
    """

    takes = (Number,)
    tasks: ClassVar[tuple[str, ...]] = ("mean",)
    #: Designs that the laws of means try.
    shapes: ClassVar[tuple[dict[str, int], ...]] = ({},)
    #: What `observed_bins` returns.
    observes: ClassVar[type[Observed] | None] = None
    #: Collections of each kind that they simulate: fewer where decoding takes longer.
    trials: ClassVar[int] = 600
    #: Whether a question may be skipped: then `answered` takes the place of `moments`.
    skips: ClassVar[bool] = False

    domain: Number

    @classmethod
    def unsuited(cls, domain: Domain) -> str | None:
        if isinstance(domain, Number) and domain.optional and not cls.skips:
            return f"numbers of a question that nobody may skip for {cls.__name__}"
        return super().unsuited(domain)

    def told(self, value: int) -> Fraction:
        """The number x of an encoded answer, as exactly as the channel tells it."""
        return Fraction(value, GRID)

    @property
    def rounding(self) -> float:
        """How far an answer of 0..1 may be from the number that the channel tells.

        Answers in a bin count as its middle, so the mean may be wrong by as much, however many
        reports there are.
        """
        return 0.0

    @property
    def binning(self) -> Binning:
        """The bins of an estimated distribution."""
        return Binning(self.domain, USUAL_BINS)

    @property
    def square_error(self) -> float:
        """By how much `Moments.square` may be too small on average."""
        return 0.0

    def observed_bins(self, counts: Counts, n: int, binning: Binning) -> Observed | None:
        """What the counts of n reports say about the shares of bins, for densities.

        The numbers of a bin are spread evenly between its ends. None if the reports do not tell
        their shares. Run by the analyst.
        """
        return None

    def cdf(self, counts: Counts, n: int, u: Floats) -> Between | None:
        """F(u), the shares of numbers that are at most u, each between two estimates.

        None if reports do not tell it. Run by the analyst.
        """
        return None

    @abstractmethod
    def moments(self, counts: Counts, n: int) -> Moments:
        """The moments that the counts of n reports lead to. Run by the analyst."""

    def answered(self, counts: Counts, n: int) -> Answered:
        """What the counts of n reports say of those who answered. Run by the analyst."""
        raise NotImplementedError

    def least_variance(self, mean: float, n: int) -> float:
        """The least variance that the mean of n respondents can have whose mean is this one.

        0 if nothing is known. Estimated variances are not less: where nearly all answers are at
        one end, reports need not show the rare ones. Run by the analyst.
        """
        return 0.0

    def shows_variance(self, n: int) -> bool:
        """Whether n reports show how large the variance is; of fewer the largest is taken.

        Run by the analyst.
        """
        return True

    def binary(self, counts: Counts) -> Binary | None:
        """The counts of reports that are one of two; None if there are more. Run by the analyst."""
        return None

    def share_variance(self, n: int, *, sampled: bool = False, skipped: float = 0.0) -> float:
        """The variance of the share of n answers in the lower half of the range, spread evenly.

        That of a fixed population, or, with ``sampled``, of one that the respondents are a sample
        of. Where the question may be skipped, and a share ``skipped`` of the respondents do, it is
        the share of those who answer. For mechanisms for distributions. Run by the analyst, before
        anybody is asked.
        """
        raise InvalidArgument("mechanism", self, "one for distributions")

    def share_half_width(
        self, n: int, z: float, *, sampled: bool = False, skipped: float = 0.0
    ) -> float:
        """Half of the interval of that share, which reaches over z standard errors.

        Run by the analyst, before anybody is asked.
        """
        return z * math.sqrt(self.share_variance(n, sampled=sampled, skipped=skipped))

    @abstractmethod
    def variance_for(self, x: Floats, n: int) -> float:
        """The variance of the mean of n respondents among whom the numbers x are equally frequent.

        That of a fixed population. Run by the analyst.
        """

    def variance_among(self, x: Floats, n: int, skipped: float, *, sampled: bool = False) -> float:
        """The variance of the mean of those who answer, among whom the numbers x are as frequent.

        Of n respondents, of whom a share ``skipped`` does not. Of a fixed population, or of one
        that the respondents are a sample of. Run by the analyst, before anybody is asked.
        """
        raise NotImplementedError

    def worst_among(self, mean: float, n: int) -> float:
        """The largest that `Answered.variance` can be of n reports where this is the ratio.

        It is taken where n reports do not show their variance. Run by the analyst.
        """
        raise NotImplementedError

    @abstractmethod
    def worst_variance(self, n: int, *, sampled: bool = False) -> float:
        """The largest variance that the mean of n respondents can have.

        Either of a fixed population, or, with ``sampled``, of one that the respondents are a sample
        of. Never more for a larger n. Run by the analyst, before anybody is asked.
        """
