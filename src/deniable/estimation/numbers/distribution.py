"""The distribution of numbers: shares up to a number and between numbers, and quantiles.

Errors and intervals are those of unbiased shares of bins, which least squares make of what reports
say about them, or of bounds (`bounded`); they ask for no smoothness. A density, which does, only
says where in an interval a quantile is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from deniable.arrays import Floats
from deniable.core.tally import Tally
from deniable.estimation.frequencies.intervals import two_sided_z
from deniable.estimation.numbers.bins import Bins
from deniable.estimation.numbers.statistic import Statistic, quantile_name
from deniable.estimation.ratios import Residual, ratio_errors, ratio_intervals
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


class Ratio(NamedTuple):
    """Sums of shares over the share of those who answered, and how they err."""

    top: Floats
    bottom: float
    residual: Residual

    @property
    def values(self) -> Floats:
        return np.asarray(self.top / self.bottom)

    @property
    def errors(self) -> Floats:
        return ratio_errors(self.top, self.bottom, self.residual)

    def intervals(self, z: float) -> Floats:
        """Rows (low, high), normal where all had to answer."""
        if not np.any(self.residual.square):
            half = z * self.errors
            return np.stack([self.values - half, self.values + half], axis=-1)
        return ratio_intervals(self.top, self.bottom, self.residual, z, (-1.0, 2.0))


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

    @property
    def optional(self) -> bool:
        """Whether the question may be skipped: then a skip is one share more, behind the bins."""
        return self.bins.domain.optional

    @cached_property
    def answered(self) -> float:
        """N, the share of those who answered."""
        return float(self.values[: self.bins.size].sum()) if self.optional else 1.0

    @cached_property
    def density(self) -> Floats:
        """The likely shares of bins among those who answered."""
        found = self.likely[: self.bins.size]
        return np.asarray(found / max(found.sum(), 1 / self.n))

    def observed(self) -> Linear:
        """What all levels say of those who answered, for densities."""
        kept = -1 if self.optional else None
        z = [one.level.z[:kept] / self.answered for one in self.parts]
        sums = [one.sums[:kept, :kept] for one in self.parts]
        variances = [
            np.full(len(own), 1 / (one.weight * self.answered**2))
            for own, one in zip(z, self.parts, strict=True)
        ]
        return Linear(np.concatenate(z), np.concatenate(sums), np.concatenate(variances))

    def sum(self, row: Floats, *, everyone: bool) -> Ratio:
        """The sum of the shares of bins with these weights, among those who answered."""
        rows = np.append(row, [0.0] * self.optional)[None]
        gained = [rows @ gain for gain in self._solved.gains]
        return self._ratio(
            rows @ self.values, rows @ self.likely, rows**2 @ self.likely, gained, everyone
        )

    def edges(self, *, everyone: bool) -> Ratio:
        """The sums of the first 1, 2, ..., k - 1 bins."""
        last = self.bins.size - 1
        f = np.cumsum(self.likely)[:last]
        gained = [np.cumsum(gain, axis=0)[:last] for gain in self._solved.gains]
        return self._ratio(np.cumsum(self.values)[:last], f, f, gained, everyone)

    def _ratio(
        self, top: Floats, mean: Floats, square: Floats, gained: Sequence[Floats], everyone: bool
    ) -> Ratio:
        """T / N for rows of what each number adds to T; they are what they are on average.

        A sample of n has Var / n of an answer's own row more than itself. If all had to answer, N
        is 1, without an error. Else the variance of T - R N follows from those of T, N and T + N.
        """
        alone, own = self._of_samples(gained), square - mean**2
        if not self.optional:
            fixed = np.maximum(alone - own / self.n, LEAST_SHARE * alone)
            return Ratio(top, 1.0, Residual(alone if everyone else fixed, 0.0, 0.0))
        k, n = self.bins.size, float(self.likely[: self.bins.size].sum())
        whole = [gain[:k].sum(axis=0) for gain in self._solved.gains]
        of_share = self._of_samples([one[None] for one in whole])
        both = self._of_samples([rows + one for rows, one in zip(gained, whole, strict=True)])
        of_sample = Residual.of(alone, (both - alone - of_share) / 2, of_share)
        if everyone:
            return Ratio(top, self.answered, of_sample)
        # An answer's own row of T, times 1 as it answered, is the row itself.
        part = Residual.of(own / self.n, mean * (1 - n) / self.n, n * (1 - n) / self.n)
        pairs = zip(of_sample, part, strict=True)
        found = Residual(*(np.asarray(one) - np.asarray(other) for one, other in pairs))
        at = top / self.answered
        lift = np.maximum(LEAST_SHARE * of_sample.at(at) - found.at(at), 0.0)
        raised = found._replace(constant=np.asarray(found.constant) + lift)
        return Ratio(top, self.answered, raised)

    def _of_samples(self, gained: Sequence[Floats]) -> Floats:
        """The variances of sums for a sample."""
        pairs = zip(self.parts, gained, strict=True)
        return np.asarray(sum(self._of_sample(part, rows) / part.level.n for part, rows in pairs))

    def _of_sample(self, part: Part, rows: Floats) -> Floats:
        """n Var of weighted sums of what one level says."""
        squares = part.mechanism.noise(part.number, rows) + rows**2
        f = self.likely
        return np.asarray(squares @ (np.abs(part.sums) @ f) - (rows @ (part.sums @ f)) ** 2)


def _parts(m: Binned, tally: Tally, bins: Bins) -> list[Part]:
    places = np.append(bins.matrix(m.binning), [m.binning.size] * m.domain.optional)
    places = places.astype(np.int64)
    levels = zip(m.observed(tally.counts, tally.n), m.sums, m.weights.tolist(), strict=True)
    return [
        Part(m, number, level, a[:, places], weight * tally.n)
        for number, (level, a, weight) in enumerate(levels)
    ]


@dataclass(frozen=True, eq=False)
class Distribution(ABC):
    """Estimated shares of bins with intervals of one confidence.

    Each pointwise interval holds with `confidence`. Simultaneous ones all hold together: that of
    F at each of the k - 1 edges has the confidence ``each``, and all others follow from these.
    """

    shares: Any
    #: The shares of the density that quantiles are taken from.
    density: Floats
    #: The confidence of each interval of F at an edge.
    each: float
    everyone: bool
    simultaneous: bool = False

    #: What the intervals are, in words.
    kind: ClassVar[str]

    @property
    def bins(self) -> Bins:
        found: Bins = self.shares.bins
        return found

    @cached_property
    def z(self) -> float:
        """The standard errors that intervals of F reach over."""
        return two_sided_z(self.each)

    @property
    @abstractmethod
    def cdf(self) -> Floats:
        """F at all edges, with exactly 0 and 1 at the ends."""

    @property
    @abstractmethod
    def band(self) -> tuple[Floats, Floats]:
        """Intervals of F at all edges: low and high."""

    def between(self, name: str, first: float, last: float, touched: tuple[int, int]) -> Statistic:
        """The share of answers in bins from a place on to another one, in bins.

        Inside of a bin answers are taken to be spread evenly; its interval holds however they are:
        it reaches from the lower end for the whole bins between the places to the upper end for
        all bins that are ``touched``: from one on, and before another.
        """
        row = self.weights(first, last)
        if touched[0] >= touched[1] or row.min() == 1:
            certain = float(row.min())
            return Statistic(name, certain, 0.0, (certain, certain))
        low = self._interval(math.ceil(first), math.floor(last))[0]
        high = self._interval(*touched)[1]
        value, error = self._share(first, last, (low, high))
        return Statistic(name, value, error, (min(low, value), max(high, value)))

    def _interval(self, first: int, last: int) -> tuple[float, float]:
        """That of the share of whole bins."""
        if last <= first:
            return 0.0, 0.0
        if (first, last) == (0, self.bins.size):
            return 1.0, 1.0
        if self.simultaneous:
            low, high = self.band
            return float(low[last] - high[first]), float(high[last] - low[first])
        return self._alone(first, last)

    @abstractmethod
    def _share(self, first: float, last: float, ends: tuple[float, float]) -> tuple[float, float]:
        """The share of answers between two places and its error; ``ends`` are its interval."""

    @abstractmethod
    def _alone(self, first: int, last: int) -> tuple[float, float]:
        """The pointwise interval of the share of some bins, but not of all."""

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

    def weights(self, first: float, last: float) -> Floats:
        """How much of each bin is between two places."""
        places: Floats = np.arange(self.bins.size + 1, dtype=np.float64)
        return np.diff(np.clip(places, first, last))


class Unbiased(Distribution):
    """Shares with normal errors, or with those of ratios where the question may be skipped."""

    shares: Shares
    kind = "normal"

    @cached_property
    def _edges(self) -> Ratio:
        return self.shares.edges(everyone=self.everyone)

    @cached_property
    def cdf(self) -> Floats:
        return np.concatenate([[0.0], self._edges.values, [1.0]])

    @cached_property
    def errors(self) -> Floats:
        """Standard errors of F at all edges."""
        return np.concatenate([[0.0], self._edges.errors, [0.0]])

    @cached_property
    def band(self) -> tuple[Floats, Floats]:
        low, high = self._edges.intervals(self.z).T
        return np.concatenate([[0.0], low, [1.0]]), np.concatenate([[0.0], high, [1.0]])

    def _share(self, first: float, last: float, ends: tuple[float, float]) -> tuple[float, float]:
        found = self.shares.sum(self.weights(first, last), everyone=self.everyone)
        return float(found.values[0]), float(found.errors[0])

    def _alone(self, first: int, last: int) -> tuple[float, float]:
        found = self.shares.sum(self.weights(first, last), everyone=self.everyone)
        low, high = found.intervals(self.z)[0].tolist()
        return low, high
