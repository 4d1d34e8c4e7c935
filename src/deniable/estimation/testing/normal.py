"""Tests of one number that was estimated with a normal error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

from deniable.errors import InvalidArgument

#: What the truth may be if a hypothesis does not hold: another number, a larger or a smaller one.
ALTERNATIVES = ("two-sided", "greater", "less")


def check_alternative(alternative: Any) -> str:
    """The alternative, if it is one."""
    if not isinstance(alternative, str) or alternative not in ALTERNATIVES:
        raise InvalidArgument("alternative", alternative, f"one of {', '.join(ALTERNATIVES)}")
    return alternative


def critical(alternative: str, confidence: float) -> float:
    """The z beyond which a statistic has the probability 1 - ``confidence`` by chance."""
    missed = 1 - confidence
    return -NormalDist().inv_cdf(missed / 2 if alternative == "two-sided" else missed)


def clear_distance(power: float, confidence: float, alternative: str) -> float:
    """How many standard errors an effect must be to be found with this power.

    Two-sided tests add what they find on the wrong side, which is next to nothing.
    """
    distance = critical(alternative, confidence) + NormalDist().inv_cdf(power)
    if distance <= 0:
        raise InvalidArgument("power", power, "larger: this many are found by chance")
    return distance


@dataclass(frozen=True)
class NormalTest:
    """Whether an ``effect`` is 0, where ``error`` is its standard error if it is.

    ``spread`` is its standard error wherever the truth is, for intervals. An effect of ``rounding``
    may have no other reason than that answers were rounded: it is never evidence.
    """

    measure: ClassVar[str] = "z"
    method: ClassVar[str] = "normal"

    effect: float
    error: float
    spread: float
    alternative: str
    confidence: float
    rounding: float = 0.0

    @property
    def statistic(self) -> float:
        """z: the effect in standard errors."""
        return math.copysign(self._distance(self.effect), self.effect)

    @property
    def p_value(self) -> float:
        z = self.statistic
        tails = {"two-sided": 2 * _beyond(abs(z)), "greater": _beyond(z), "less": _beyond(-z)}
        return tails[self.alternative]

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """The effects that are not refuted; one-sided ones end where effects do, low or high."""
        half = critical(self.alternative, self.confidence) * self.spread + self.rounding
        ends = {
            "two-sided": (self.effect - half, self.effect + half),
            "greater": (self.effect - half, max(high, self.effect)),
            "less": (min(low, self.effect), self.effect + half),
        }
        return ends[self.alternative]

    def power(self, effect: float) -> float:
        """How likely p <= 1 - confidence is if this is the effect, on the side that is asked."""
        z, distance = critical(self.alternative, self.confidence), self._distance(effect)
        other = _beyond(z + distance) if self.alternative == "two-sided" else 0.0
        return _beyond(z - distance) + other

    def _distance(self, effect: float) -> float:
        return max(abs(effect) - self.rounding, 0.0) / self.error


def _beyond(z: float) -> float:
    """P(Z > z), also where it is tiny."""
    return math.erfc(z / math.sqrt(2)) / 2
