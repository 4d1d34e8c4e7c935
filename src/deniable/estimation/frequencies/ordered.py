"""Answers that have an order: shares up to one and from one to another, and the one in the middle.

Values are sums of the frequencies of the method. Intervals are those of the unbiased sums, whose
variance follows from all covariances; where a question may be skipped, of their ratio R = T / N to
those who answered: T - R N is x_S + R (x_skip) - R for the sum x_S, so with e = `Evidence.chance`

    v(R) = Var(x_S) + (2 Cov(x_S, x_skip) + e N) R + (Var(x_skip) - e N) R^2,

and N = 1 where everybody answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable.arrays import Floats
from deniable.core.domain import Label
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.intervals import two_sided_z
from deniable.estimation.numbers.statistic import Statistic
from deniable.estimation.ratios import Residual, ratio_errors, ratio_intervals


class Middle(NamedTuple):
    """The first answer up to which there is half of all, and the first and last that may be it."""

    answer: Label
    interval: tuple[Label, Label]


class Sums(NamedTuple):
    """Sums of shares with their errors, and rows (low, high)."""

    values: Floats
    standard_errors: Floats
    intervals: Floats


@dataclass(frozen=True, eq=False)
class Ordered:
    """What the reports of one question say about its answers in their order."""

    evidence: Evidence
    #: The frequencies of the method, among those who answered.
    frequencies: Floats
    #: The confidence of each interval, and whether those of all cumulative shares hold together.
    each: float
    simultaneous: bool
    sampling: bool

    @property
    def labels(self) -> tuple[Label, ...]:
        return self.evidence.domain.answered

    @cached_property
    def cumulative(self) -> Sums:
        """The shares up to each answer; all are up to the last."""
        k = len(self.labels)
        found = self._sums(np.tri(k)[: k - 1])
        return Sums(
            np.append(found.values, 1.0),
            np.append(found.standard_errors, 0.0),
            np.vstack([found.intervals, [1.0, 1.0]]),
        )

    def between(self, first: int, last: int) -> Statistic:
        """The share of the answers from one place to another."""
        k, name = len(self.labels), f"{self.labels[first]} to {self.labels[last]}"
        row = np.zeros((1, k))
        row[0, first : last + 1] = 1.0
        if row.all():
            return Statistic(name, 1.0, 0.0, (1.0, 1.0))
        found = self._sums(row)
        value, (low, high) = float(found.values[0]), found.intervals[0].tolist()
        if self.simultaneous:
            lows, highs = np.vstack([[[0.0, 0.0]], self.cumulative.intervals]).T
            low, high = float(lows[last + 1] - highs[first]), float(highs[last + 1] - lows[first])
        ends = (min(low, value), max(high, value))
        return Statistic(name, value, float(found.standard_errors[0]), ends)

    def middle(self) -> Middle:
        """The first answer up to which there is half of all.

        The interval has all answers that it can be if each cumulative share is in its own.
        """
        values, (low, high) = self.cumulative.values, self.cumulative.intervals.T
        possible = np.flatnonzero((np.append(0.0, low[:-1]) < 0.5) & (high >= 0.5))
        first, last = int(possible[0]), int(possible[-1])
        place = min(max(int(np.argmax(values >= 0.5)), first), last)
        return Middle(self.labels[place], (self.labels[first], self.labels[last]))

    def _sums(self, rows: Floats) -> Sums:
        """Of some of the answers each, but not of all."""
        evidence, skip = self.evidence, self.evidence.domain.skip
        x, answered = evidence.unbiased, 1.0
        weights, skips = rows, np.zeros((1, len(x)))
        if skip is not None:
            answered = float(1 - x[skip])
            weights, skips[0, skip] = np.insert(rows, skip, 0.0, axis=1), 1.0
        alone, skipped, both = map(evidence.sum_variances, (weights, skips, weights + skips))
        chance = evidence.chance(sampling=self.sampling) * answered
        residual = Residual(alone, both - alone - skipped + chance, skipped - chance)
        z, totals = two_sided_z(self.each), weights @ x
        values = rows @ self.frequencies
        errors = ratio_errors(np.clip(totals, 0.0, answered), answered, residual)
        low, high = ratio_intervals(totals, answered, residual, z, (0.0, 1.0)).T
        ends = np.stack([np.minimum(low, values), np.maximum(high, values)], axis=1)
        return Sums(values, errors, ends)
