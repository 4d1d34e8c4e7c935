"""What is estimated of answers that are numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from deniable.arrays import Floats
from deniable.errors import InvalidArgument, is_number, require_share
from deniable.estimation.estimate import Estimate, Quantity
from deniable.estimation.numbers.distribution import Distribution
from deniable.estimation.numbers.statistic import DEVIATION, MEAN, Statistic, plain
from deniable.exports import SHOWN, Exports


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Numbers(Estimate):
    """The mean of answers that are numbers from ``lo`` to ``hi``, and how they are spread.

    Where answers are ``clipped``, those outside count as the nearer end. If the reports tell the
    distribution, quantiles and the standard deviation are rows, too.
    """

    heading = "statistic"
    noun = "statistics"
    title = "Estimated mean"
    chosen = "first"

    lo: float
    hi: float
    clipped: bool = True
    #: The standard deviation of the answers, if the reports tell it.
    deviation: Statistic | None = None
    distribution: Distribution | None = None
    #: Shares of answers that were asked for.
    asked: tuple[Statistic, ...] = ()

    @classmethod
    def of(cls, statistics: Sequence[Statistic], **about: Any) -> Self:
        """An estimate with these rows, the mean first."""
        names, values, errors, intervals = zip(*statistics, strict=True)
        lo, hi = about["lo"], about["hi"]
        words = f"answers {'clipped to' if about['clipped'] else 'in'} [{plain(lo)}, {plain(hi)}]"
        columns = (np.array(values), np.array(errors), np.array(intervals))
        one = Quantity(*columns, limits=(lo, hi), words=words)
        return cls(labels=names, quantities={"estimate": one}, **about)

    @property
    def mean(self) -> float:
        return self.statistic(MEAN).value

    @property
    def standard_error(self) -> float:
        """That of the mean."""
        return self.statistic(MEAN).standard_error

    @property
    def mean_interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.statistic(MEAN).interval

    @property
    def variance(self) -> float:
        """The variance of the answers."""
        return self._deviation.value**2

    @property
    def variance_interval(self) -> tuple[float, float]:
        """(low, high): the squares of those of the standard deviation."""
        low, high = self._deviation.interval
        return low**2, high**2

    @property
    def _deviation(self) -> Statistic:
        if self.deviation is None:
            allowed = "one that tells the variance, of a question that nobody may skip"
            raise InvalidArgument("mechanism", self.source, allowed)
        return self.deviation

    def statistic(self, name: str) -> Statistic:
        """One of the rows."""
        if name not in self.labels:
            raise InvalidArgument("name", name, f"one of {', '.join(map(str, self.labels))}")
        row, one = self.labels.index(name), self.quantities["estimate"]
        low, high = one.intervals[row].tolist()
        return Statistic(name, float(one.values[row]), float(one.standard_errors[row]), (low, high))

    # ---- the distribution

    def cdf(self, x: float) -> Statistic:
        """The share of answers that are at most ``x``.

        Without a step, answers are taken to be spread evenly inside of bins, and an answer at the
        edge of two is in the upper one. The interval holds however they are: also if many are x.
        """
        bins, name = self._known.bins, f"share up to {plain(_number('x', x))}"
        return self._known.between(name, 0.0, bins.up_to(x), bins.touched(-math.inf, x))

    def range(self, low: float, high: float) -> Statistic:
        """The share of answers from ``low`` to ``high``, both included; see `cdf` for ends."""
        bins = self._known.bins
        first, last = bins.below(_number("low", low)), bins.up_to(_number("high", high))
        if low > high:
            raise InvalidArgument("high", high, f"at least low = {low:g}")
        name = f"share from {plain(low)} to {plain(high)}"
        return self._known.between(name, first, max(first, last), bins.touched(low, high))

    def quantile(self, p: float) -> Statistic:
        """The number that a share ``p`` of all answers is up to: 0.5 for the median.

        Its interval has all numbers c for which the interval of `cdf` holds p. Half of its width,
        over z, stands for a standard error.
        """
        return self._known.quantile(require_share("p", p))

    @property
    def median(self) -> Statistic:
        """`quantile` of 0.5."""
        return self.quantile(0.5)

    def with_shares(self, cdf: Sequence[float], ranges: Sequence[tuple[float, float]]) -> Self:
        """The same with shares of answers below the rows."""
        for pair in ranges:
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise InvalidArgument("range", pair, "two numbers")
        found = (*map(self.cdf, cdf), *(self.range(*pair) for pair in ranges))
        return replace(self, asked=found) if found else self

    @property
    def density(self) -> Bars:
        """The shares of all bins by the method, and the intervals of the CDF, as a table."""
        return Bars(self, self._known)

    @property
    def bins(self) -> Floats:
        """The edges of the bins, from the first to the last."""
        return self._known.bins.edges

    @property
    def at_ends(self) -> tuple[Statistic, Statistic]:
        """The shares of the first and of the last bin, where answers are that were clipped."""
        found, k = self._known, self._known.bins.size
        return (
            found.between("share in the first bin", 0.0, 1.0, (0, 1)),
            found.between("share in the last bin", k - 1.0, float(k), (k - 1, k)),
        )

    @property
    def _known(self) -> Distribution:
        if self.distribution is None:
            allowed = "one for distributions, such as HH, with some reports about each level"
            raise InvalidArgument("mechanism", self.source, allowed)
        return self.distribution

    # ---- exports

    @property
    def views(self) -> tuple[str, ...]:
        return () if self.distribution is None else ("density", "cdf")

    def columns(self) -> dict[str, list[Any]]:
        """The rows, and below them the shares that were asked for."""
        found = super().columns()
        for name, value, error, (low, high) in self.asked:
            for column, one in zip(found.values(), (name, value, error, low, high), strict=True):
                column.append(one)
        return found

    def shown(self, most: int = SHOWN) -> list[int]:
        """The first rows."""
        return list(range(min(most, len(self.labels))))

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are, and the standard deviation if it is no row."""
        found = {**super().about, "of": self.words, "lo": self.lo, "hi": self.hi}
        if (beside := self._beside) is not None:
            low, high = beside.interval
            found |= {"standard_deviation": beside.value}
            found |= {"standard_deviation_low": low, "standard_deviation_high": high}
        return found

    @property
    def _beside(self) -> Statistic | None:
        """The standard deviation, if it is known and no row."""
        return None if DEVIATION in self.labels else self.deviation

    @property
    def remarks(self) -> list[str]:
        """Also the standard deviation, unless it may be anything that it can be."""
        if self._beside is None or self._beside.interval == (0.0, (self.hi - self.lo) / 2):
            return super().remarks
        low, high = (plain(float(f"{end:.3g}")) for end in self._beside.interval)
        found = f"between {low} and {high} ({self.level} interval)"
        return [f"The standard deviation of the answers is {found}.", *super().remarks]

    @property
    def words(self) -> str:
        """Which answers the numbers are about."""
        return self.quantities["estimate"].words

    def measured(self, unit: str) -> Self:
        if not unit:
            return self
        one = self.quantities["estimate"]
        return self._of(self.labels, {"estimate": replace(one, words=f"{one.words} {unit}")})


@dataclass(frozen=True, eq=False)
class Bars(Exports):
    """The estimated distribution, bin by bin."""

    numbers: Numbers = field(repr=False)
    distribution: Distribution = field(repr=False)

    entries = "bins"
    chosen = "first"

    @cached_property
    def shares(self) -> Floats:
        """The share of each bin, by the method."""
        return self.distribution.density

    def columns(self) -> dict[str, list[Any]]:
        """For each bin its ends, its share, and F at its upper end: unbiased, cut to 0..1."""
        edges, found = self.distribution.bins.edges, self.distribution
        low, high = np.minimum(found.band[0], found.cdf), np.maximum(found.band[1], found.cdf)
        low, high = (np.clip(end, 0.0, 1.0)[1:] for end in (low, high))
        return {
            "low": edges[:-1].tolist(),
            "high": edges[1:].tolist(),
            "share": self.shares.tolist(),
            "density": (self.shares / np.diff(edges)).tolist(),
            "cdf": np.clip(found.cdf, 0.0, 1.0)[1:].tolist(),
            "cdf_low": low.tolist(),
            "cdf_high": high.tolist(),
        }

    @property
    def about(self) -> dict[str, Any]:
        """What the numbers are."""
        return self.numbers.about

    @property
    def interval_words(self) -> str:
        """What the intervals are, in words."""
        return self.numbers.interval_words

    def shown(self, most: int = SHOWN) -> list[int]:
        """The first rows."""
        return list(range(min(most, len(self.shares))))


def _number(name: str, x: float) -> float:
    if not is_number(x) or math.isnan(x):
        raise InvalidArgument(name, x, "a number")
    return float(x)
