"""The distribution of numbers: shares up to a number and between numbers, and quantiles.

Errors and intervals are those of unbiased shares of bins, which least squares make of what reports
say about them; they ask for no smoothness. A density, which does, only says where in an interval a
quantile is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable.arrays import Floats
from deniable.core.tally import Tally
from deniable.estimation.frequencies.intervals import two_sided_z
from deniable.estimation.numbers.bins import Bins
from deniable.estimation.numbers.statistic import Statistic, quantile_name
from deniable.mechanisms.numbers.base import LEAST_SHARE
from deniable.mechanisms.numbers.binned import Binned, Level
from deniable.mechanisms.numbers.least_squares import LeastSquares, plausible
from deniable.mechanisms.numbers.observed import Linear


class Part(NamedTuple):
    """One level of one mechanism, about the bins of all."""

    mechanism: Binned
    number: int
    level: Level
    #: A, numbers x bins.
    sums: Floats
    weight: float


@dataclass(frozen=True, eq=False)
class Shares:
    """Unbiased shares of bins, and the variance of every sum of them."""

    bins: Bins
    parts: Sequence[Part]
    n: int

    @classmethod
    def of(cls, tallies: Sequence[Tally]) -> Shares | None:
        """What tallies of mechanisms for distributions say; None if a level has no reports."""
        pairs = [(one.mechanism, one) for one in tallies if isinstance(one.mechanism, Binned)]
        if not pairs:
            return None
        bins = Bins.of(pairs[0][0].domain, [m.binning for m, _ in pairs])
        parts = [part for m, tally in pairs for part in _parts(m, tally, bins)]
        if not all(part.level.n for part in parts):
            return None
        return cls(bins, parts, sum(tally.n for _, tally in pairs))

    @cached_property
    def _solved(self) -> LeastSquares:
        if len({part.mechanism for part in self.parts}) == 1:
            return self.parts[0].mechanism.solved
        sums, weights = [part.sums for part in self.parts], [part.weight for part in self.parts]
        return LeastSquares(sums, weights)

    @cached_property
    def values(self) -> Floats:
        """The shares, which may be negative."""
        return self._solved.shares([part.level.z for part in self.parts])

    @cached_property
    def likely(self) -> Floats:
        """Shares that variances are computed for."""
        return plausible(self.values)

    def observed(self) -> Linear:
        """What all levels say, for densities."""
        variances = [np.full(len(one.level.z), 1 / one.weight) for one in self.parts]
        z, sums = [one.level.z for one in self.parts], [one.sums for one in self.parts]
        return Linear(np.concatenate(z), np.concatenate(sums), np.concatenate(variances))

    def sums(self, rows: Floats) -> Floats:
        """Sums of shares, one for each row of weights."""
        return np.asarray(rows @ self.values)

    def variances(self, rows: Floats, *, everyone: bool) -> Floats:
        """Those of the sums, about everyone or about the respondents themselves."""
        spread = rows**2 @ self.likely - (rows @ self.likely) ** 2
        return self._variances([rows @ gain for gain in self._solved.gains], spread, everyone)

    def edge_variances(self, *, everyone: bool) -> Floats:
        """Those of the sums of the first 1, 2, ..., k - 1 bins."""
        f = np.cumsum(self.likely)[:-1]
        gained = [np.cumsum(gain, axis=0)[:-1] for gain in self._solved.gains]
        return self._variances(gained, f * (1 - f), everyone)

    def _variances(self, gained: Sequence[Floats], spread: Floats, everyone: bool) -> Floats:
        """Of rows of what each number adds; a sample of n has ``spread`` / n more than itself."""
        pairs = zip(self.parts, gained, strict=True)
        found = np.asarray(sum(self._of_sample(part, rows) / part.level.n for part, rows in pairs))
        return found if everyone else np.maximum(found - spread / self.n, LEAST_SHARE * found)

    def _of_sample(self, part: Part, rows: Floats) -> Floats:
        """n Var of weighted sums of what one level says."""
        squares = part.mechanism.noise(part.number, rows) + rows**2
        f = self.likely
        return np.asarray(squares @ (np.abs(part.sums) @ f) - (rows @ (part.sums @ f)) ** 2)


def _parts(m: Binned, tally: Tally, bins: Bins) -> list[Part]:
    places = bins.matrix(m.binning)
    levels = zip(m.observed(tally.counts, tally.n), m.sums, m.weights.tolist(), strict=True)
    return [
        Part(m, number, level, a[:, places], weight * tally.n)
        for number, (level, a, weight) in enumerate(levels)
    ]


@dataclass(frozen=True, eq=False)
class Distribution:
    """Estimated shares of bins with intervals of one confidence.

    Each pointwise interval holds with `confidence`. Simultaneous ones all hold together: that of
    F at each of the k - 1 edges has the confidence ``each``, and all others follow from these.
    """

    shares: Shares
    #: The shares of the density that quantiles are taken from.
    density: Floats
    #: The confidence of each interval of F at an edge.
    each: float
    everyone: bool
    simultaneous: bool = False
    z: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "z", two_sided_z(self.each))

    @property
    def bins(self) -> Bins:
        return self.shares.bins

    @cached_property
    def cdf(self) -> Floats:
        """F at all edges, with exactly 0 and 1 at the ends."""
        return np.concatenate([[0.0], np.cumsum(self.shares.values)[:-1], [1.0]])

    @cached_property
    def errors(self) -> Floats:
        """Standard errors of F at all edges."""
        inner = self.shares.edge_variances(everyone=self.everyone)
        return np.concatenate([[0.0], np.sqrt(inner), [0.0]])

    @cached_property
    def band(self) -> tuple[Floats, Floats]:
        """Intervals of F at all edges: low and high."""
        return self.cdf - self.z * self.errors, self.cdf + self.z * self.errors

    def between(self, name: str, first: float, last: float) -> Statistic:
        """The share of answers in bins from a place on to another one, in bins.

        Inside of a bin answers are taken to be spread evenly; its interval holds however they are:
        it reaches from the lower end for the whole bins between the places to the upper end for
        all that they touch.
        """
        places: Floats = np.arange(self.bins.size + 1, dtype=np.float64)
        row: Floats = np.diff(np.clip(places, first, last))[None]
        if last <= first or row.min() == 1:
            certain = float(last > first)
            return Statistic(name, certain, 0.0, (certain, certain))
        value = float(self.shares.sums(row)[0])
        error = math.sqrt(float(self.shares.variances(row, everyone=self.everyone)[0]))
        low = self._interval(math.ceil(first), math.floor(last))[0]
        high = self._interval(math.floor(first), math.ceil(last))[1]
        return Statistic(name, value, error, (min(low, value), max(high, value)))

    def _interval(self, first: int, last: int) -> tuple[float, float]:
        """That of the share of whole bins."""
        k = self.bins.size
        if last <= first:
            return 0.0, 0.0
        if (first, last) == (0, k):
            return 1.0, 1.0
        if self.simultaneous:
            low, high = self.band
            return float(low[last] - high[first]), float(high[last] - low[first])
        row = np.asarray((first <= np.arange(k)) & (np.arange(k) < last), dtype=np.float64)[None]
        value = float(self.shares.sums(row)[0])
        half = self.z * math.sqrt(float(self.shares.variances(row, everyone=self.everyone)[0]))
        return value - half, value + half

    def quantile(self, p: float) -> Statistic:
        """The number that a share p of answers is up to.

        The interval has all numbers c for which the interval of F(c) holds p. The number is that of
        the density, moved into it. Half of the interval, over z, stands for a standard error.
        """
        low, high = self.band
        possible = np.flatnonzero((low[:-1] <= p) & (p <= high[1:]))
        ends = np.array([self.bins.low[possible[0]], self.bins.high[possible[-1]]])
        start, end = self.bins.answers(ends).tolist()
        rising = np.concatenate([[0.0], np.cumsum(self.density)])
        place = float(np.interp(p, rising / rising[-1], np.arange(len(rising))))
        value = min(max(self.bins.at(place), start), end)
        return Statistic(quantile_name(p), value, (end - start) / (2 * self.z), (start, end))
