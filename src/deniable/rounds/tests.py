"""Two rounds beside each other: is a value as frequent in one as in the other?

Of fresh respondents, each round is a sample of everyone. Where a count of supports is a sum of
independent coins, it is exactly Bin(n_r, m) with m = q + (p - q) f, so if f did not change, then
given the sum c_r + c_s the first count is hypergeometric, whatever m: an exact test (Fisher 1935).
It takes twice the smaller tail. Where there are no such counts, the difference of the unbiased
frequencies is compared with its standard deviation.

The same respondents keep their sampling error, and their permanent noise, in both rounds:

    Var(x_s - x_r) = V_r + V_s - 2 C / max(n_r, n_s) + f (1 - f) |1 / n_r - 1 / n_s|,

with C = n Cov of two rounds (`FrequencyOracle.repeated_line`) where the people of the smaller round
are a random part of those of the larger one and nobody changes the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.core.tally import Tally
from deniable.estimation.frequencies.evidence import Part
from deniable.estimation.frequencies.intervals import score_intervals
from deniable.mechanisms.frequency import Line


@dataclass(frozen=True, eq=False)
class RoundEstimate:
    """One round: unbiased frequencies x, and the ``line`` of n Var for its respondents."""

    part: Part
    n: int
    x: Floats
    line: Line

    @classmethod
    def of(cls, tally: Tally) -> RoundEstimate:
        part = Part.of(tally)
        x = part.mechanism.unbiased(tally.counts, tally.n)
        line = part.mechanism.estimated_line(tally.counts, tally.n, x)
        return cls(part, tally.n, x, line)

    def variance(self, f: Floats, sampling: bool) -> Floats:
        """At the frequencies f; ``sampling`` if the respondents are a sample of everyone."""
        own = np.maximum(self.line.at(f), 0.0)
        return np.asarray((own + sampling * f * (1 - f)) / self.n)

    def distances(self, confidence: float, sampling: float) -> tuple[Floats, Floats]:
        """How far the ends of the score intervals are below and above x; ``sampling`` is the part
        of the variance of a sample that counts."""
        line = self.line.over(self.n)
        limits = score_intervals(self.x, line, confidence, sampling=sampling / self.n)
        return np.maximum(self.x - limits[:, 0], 0.0), np.maximum(limits[:, 1] - self.x, 0.0)

    @property
    def supports(self) -> Any:
        """Counts of supports that are sums of independent coins, if there are any."""
        known = self.part.supports if self.part.mechanism.independent_supports else None
        return None if known is None else known[0]


def p_values(before: RoundEstimate, after: RoundEstimate, same: bool) -> Floats:
    """How surprising the counts of each value are if its frequency did not change."""
    if not same and before.supports is not None:
        return conditional_p_values(before.supports, before.n, after.supports, after.n)
    from scipy.special import ndtr

    f = _common(before, after)
    variance = before.variance(f, not same) + after.variance(f, not same)
    if same:
        variance += _apart(before, after) * f * (1 - f) - 2 * _covariance(before, after, f)
    # What cannot differ by chance at all has a variance of 0: any difference is a change.
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(after.x - before.x) / np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(2 * ndtr(-np.where(after.x == before.x, 0.0, z)))


def conditional_p_values(c: Any, n: int, d: Any, m: int) -> Floats:
    """Exact: twice the smaller tail of c among n draws of the c + d supports in n + m reports."""
    from scipy.stats import hypergeom

    law = (n + m, c + d, n)
    tails = np.minimum(hypergeom.cdf(c, *law), hypergeom.sf(c - 1, *law))
    return np.asarray(np.minimum(1.0, 2 * tails))


def difference_intervals(
    before: RoundEstimate, after: RoundEstimate, same: bool, confidence: float
) -> Floats:
    """Rows (low, high) for the change of each frequency.

    The distances of both score intervals from their estimates stand for standard deviations
    (Newcombe 1998): low = d - sqrt(u^2 + l^2) with the distance u of the upper limit before and l
    of the lower limit after; high likewise. Errors of the same respondents are correlated as far as
    nobody moves; here anybody may have, and nothing is subtracted for it.
    """
    largest = max(before.n, after.n)
    parts = [1 - side.n / largest if same else 1.0 for side in (before, after)]
    (down, up), (lower, upper) = (
        side.distances(confidence, part) for side, part in zip((before, after), parts, strict=True)
    )
    difference = after.x - before.x
    limits = difference - np.hypot(up, lower), difference + np.hypot(down, upper)
    return np.clip(np.stack(limits, axis=1), -1.0, 1.0)


def _common(before: RoundEstimate, after: RoundEstimate) -> Floats:
    """The frequencies of both rounds together."""
    return np.clip((before.n * before.x + after.n * after.x) / (before.n + after.n), 0.0, 1.0)


def _covariance(before: RoundEstimate, after: RoundEstimate, f: Floats) -> Floats:
    shared = np.maximum(before.part.mechanism.repeated_line(f).at(f), 0.0)
    return np.asarray(shared / max(before.n, after.n))


def _apart(before: RoundEstimate, after: RoundEstimate) -> float:
    """What the answers of a random part of some people add, over f (1 - f)."""
    return abs(1 / before.n - 1 / after.n)
