"""Confidence intervals for unbiased frequencies, in closed form.

An unbiased frequency x of a value with true frequency t has Var(x) = a + b t for a fixed population
of n respondents; respondents who are themselves a random sample of a larger population add
t (1 - t) / n.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Literal

from deniable.arrays import Floats
from deniable.errors import InvalidArgument, require_int
from deniable.estimation.ratios import Residual, ratio_intervals
from deniable.mechanisms.frequency import Line


def check_confidence(confidence: Any) -> float:
    """``confidence`` as a float strictly between 0 and 1 (1e-12 away from certainty)."""
    if not isinstance(confidence, (int, float)) or not 0 < confidence <= 1 - 1e-12:
        raise InvalidArgument("confidence", confidence, "a number strictly between 0 and 1")
    return float(confidence)


def simultaneous_confidence(confidence: float, k: int) -> float:
    """The level at which each of k intervals must hold so that all do with ``confidence``.

    Bonferroni: 1 - (1 - confidence) / k, whatever the dependence of the k values.
    """
    missed = (1 - check_confidence(confidence)) / require_int("k", k, 1, 1 << 62)
    return check_confidence(1 - missed)


def analytic_kind(
    n: int, p: float, q: float, confidence: float = 0.95
) -> Literal["exact", "score"]:
    """Which interval suits supports with p and q: score intervals where the normal law is safe.

    A support count is a sum of independent coins, so its skewness is at most 1 / sd, and the
    normal law misjudges a tail at z by a factor of about exp(z^3 / (6 sd)), and by half a step of
    the count, a share z / (2 sd) of the tail. Both are small when sd >= z^3, the rule, for the
    least sd that any true frequency gives: n min(p (1 - p), q (1 - q)) >= z^6, which asks for a
    variance of 57 at 95 % and 293 at 99 %.
    """
    z = two_sided_z(confidence)
    return "score" if n * min(p * (1 - p), q * (1 - q)) >= z**6 else "exact"


def two_sided_z(confidence: float) -> float:
    """The z with P(|Z| <= z) = ``confidence`` for a standard normal Z."""
    return -NormalDist().inv_cdf((1 - check_confidence(confidence)) / 2)


def score_intervals(x: Floats, line: Line, confidence: float, *, sampling: float = 0.0) -> Floats:
    """Rows (low, high): the t that x does not reject, (x - t)^2 <= z^2 (a + b t + s t (1 - t)).

    ``sampling`` is s: 0 for a fixed population, 1/n for a sample of a larger one. The variance
    is taken at the t that is tested and not at the estimate, which keeps the coverage near its
    nominal level for rare values (Wilson's idea).
    """
    variance = Residual(line.a, line.b + sampling, -sampling)
    return ratio_intervals(x, 1.0, variance, two_sided_z(confidence))
