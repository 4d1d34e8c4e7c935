"""Distributions of which reports tell bounds: F at each edge is between two unbiased numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import Floats
from deniable.core.tally import Tally
from deniable.estimation.frequencies.intervals import two_sided_z
from deniable.estimation.numbers.bins import Bins
from deniable.estimation.numbers.distribution import Distribution
from deniable.mechanisms.numbers import NumberMechanism
from deniable.mechanisms.numbers.base import Between
from deniable.mechanisms.numbers.bins import Binning
from deniable.mechanisms.numbers.observed import Observed, Together


@dataclass(frozen=True, eq=False)
class Bounds:
    """What tallies say of F at the k - 1 inner edges of bins, if nothing but that F rises is known.

    What is up to an edge is less than the first number after it, and at most the last before it.
    """

    bins: Bins
    binning: Binning
    pairs: Sequence[tuple[NumberMechanism, Tally]]
    between: Between

    @classmethod
    def of(cls, pairs: Sequence[tuple[NumberMechanism, Tally]]) -> Bounds | None:
        """From those mechanisms that tell it; None if there are none, or too few reports.

        Bounds are weighted by 1 / variances that do not depend on reports.
        """
        domain, binning = pairs[0][0].domain, pairs[0][0].binning
        bins = Bins.of(domain, [binning])
        known = [(m, t) for m, t in pairs if m.shows_variance(t.n)]
        found = [
            (m, tally, lower, upper)
            for m, tally in known
            if (lower := m.cdf(tally.counts, tally.n, bins.low[1:])) is not None
            and (upper := m.cdf(tally.counts, tally.n, bins.high[:-1])) is not None
        ]
        if not found or domain.optional:
            return None
        w = np.array([1 / m.worst_variance(tally.n) for m, tally, _, _ in found])
        w /= w.sum()
        between = Between(
            w @ [lower.low for _, _, lower, _ in found],
            w**2 @ [lower.low_variance for _, _, lower, _ in found],
            w @ [upper.high for _, _, _, upper in found],
            w**2 @ [upper.high_variance for _, _, _, upper in found],
        )
        return cls(bins, binning, [(m, tally) for m, tally, _, _ in found], between)

    def observed(self) -> Observed:
        """What all reports say, for densities."""
        found = [m.observed_bins(tally.counts, tally.n, self.binning) for m, tally in self.pairs]
        return Together.of([one for one in found if one is not None])


class Bounded(Distribution):
    """Shares of the density, with conservative intervals: they hold without any smoothness.

    The interval of F reaches from the lower end of that of one bound to the upper end of the other.
    Where F does not rise the bounds are equal, and by chance these ends may have changed places: F
    is still between them. Half of an interval, over z, stands for a standard error.
    """

    shares: Bounds
    kind = "conservative"

    @cached_property
    def cdf(self) -> Floats:
        """That of the density, moved into the band; the nearest that rises if the band falls."""
        from scipy.optimize import isotonic_regression

        found = np.concatenate([[0.0], np.cumsum(self.density)[:-1], [1.0]])
        return np.asarray(isotonic_regression(np.clip(found, *self.band)).x)

    @cached_property
    def band(self) -> tuple[Floats, Floats]:
        return self._reach(self.z)

    def _reach(self, z: float) -> tuple[Floats, Floats]:
        found = self.shares.between
        low = found.low - z * np.sqrt(found.low_variance)
        high = found.high + z * np.sqrt(found.high_variance)
        ends = (np.minimum(low, high), np.maximum(low, high))
        edges = (np.concatenate([[0.0], np.clip(one, 0.0, 1.0), [1.0]]) for one in ends)
        return next(edges), next(edges)

    def _share(self, first: float, last: float, ends: tuple[float, float]) -> tuple[float, float]:
        value = float(self.weights(first, last) @ np.diff(self.cdf))
        low, high = ends
        return value, (max(high, value) - min(low, value)) / (2 * self.z)

    def _alone(self, first: int, last: int) -> tuple[float, float]:
        """From the intervals of F at both edges, which hold together (Bonferroni)."""
        inner = first > 0 and last < self.bins.size
        z = two_sided_z((1 + self.each) / 2) if inner else self.z
        low, high = self._reach(z)
        return max(float(low[last] - high[first]), 0.0), float(high[last] - low[first])
