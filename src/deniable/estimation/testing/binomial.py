"""An exact test of the mean behind reports that are one of two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms.numbers import Binary


@dataclass(frozen=True)
class BinomialTest:
    """Whether the mean of numbers of 0..1 is ``value``, from n reports of which each is one of two.

    The number of upper reports is Bin(n, P) with the P of that mean. A two-sided p-value is twice
    the smaller tail, so that intervals are those of Clopper and Pearson (1934).
    """

    measure: ClassVar[str] = "upper reports"
    method: ClassVar[str] = "exact"

    binary: Binary
    n: int
    value: float
    alternative: str
    confidence: float

    @property
    def statistic(self) -> float:
        """How many reports are the upper one."""
        return float(self.binary.upper)

    @property
    def effect(self) -> float:
        """The estimated mean less the one that is tested."""
        return self.binary.mean(self.binary.upper / self.n) - self.value

    @property
    def spread(self) -> float:
        """The standard error of the effect, at most."""
        return (self.binary.high - self.binary.low) / (2 * math.sqrt(self.n))

    @property
    def p_value(self) -> float:
        return float(self._p_values(np.array(self.binary.upper)))

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """The differences that are not refuted; one-sided ones end where they do, low or high."""
        from scipy.stats import binomtest

        found = binomtest(self.binary.upper, self.n, alternative=self.alternative)
        ends: Any = found.proportion_ci(self.confidence, method="exact")
        left, right = (self.binary.mean(float(end)) - self.value for end in ends)
        ends_of = {
            "two-sided": (left, right),
            "greater": (left, max(high, self.effect)),
            "less": (min(low, self.effect), right),
        }
        return ends_of[self.alternative]

    def power(self, effect: float) -> float:
        """How likely p <= 1 - confidence is if this is the effect, on a side where it can be."""
        from scipy.stats import binom

        k = np.arange(self.n + 1)
        below = self.alternative == "less" or self.value + abs(effect) > 1
        chance = self.binary.chance(self.value + (-abs(effect) if below else abs(effect)))
        law = binom.pmf(k, self.n, chance)
        return float(law[self._p_values(k) <= 1 - self.confidence].sum())

    def _p_values(self, upper: Any) -> Floats:
        """Those of some numbers of upper reports."""
        from scipy.stats import binom

        chance = self.binary.chance(self.value)
        below = binom.cdf(upper, self.n, chance)
        above = binom.sf(upper - 1, self.n, chance)
        two_sided = np.minimum(1.0, 2 * np.minimum(below, above))
        tails = {"two-sided": two_sided, "greater": above, "less": below}
        return np.asarray(tails[self.alternative])
