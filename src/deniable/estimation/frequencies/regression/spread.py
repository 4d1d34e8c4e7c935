"""How wrong a regression on cells is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats
from deniable.estimation.frequencies.evidence import Uncertainty
from deniable.estimation.frequencies.intervals import check_confidence
from deniable.mechanisms.cohorts.base import CohortMechanism


@dataclass(frozen=True, eq=False)
class Spread:
    """x with the variance noise unit_s + B f_s / n for the respondents, as `variance_line` has it.

    ``noise`` is the variance of a report as the residuals of ``freedom`` dimensions show it, so it
    holds the collisions of values that nobody listed: they are drawn anew in each cohort and
    scatter over its cells like noise. It is an average over all cells, and B (see `own_excess`) is
    what those of s have more. Chance deals the respondents to cohorts, but each of them is in one,
    so their sampling adds f (1 - f) / n only if they are a sample of everyone.
    """

    x: Floats
    unit: Floats
    noise: float
    freedom: int
    #: The part of the respondents whose own cells are looked at: f_s, or 1 - f of the outside.
    own: Floats
    n: int

    def deviations(self, m: CohortMechanism, sampling: bool) -> Floats:
        f = np.clip(self.x, 0.0, 1.0)
        variances = self.noise * self.unit + own_excess(m) * self.own / self.n
        sampled = sampling * f * (1 - f) / self.n
        return np.asarray(np.sqrt(np.maximum(variances, 0.0) + sampled))

    def errors(self, m: CohortMechanism) -> Callable[[float, bool], Uncertainty]:
        """`Decoded.own`: x plus and minus quantiles of Student's law."""

        def own(confidence: float, sampling: bool) -> Uncertainty:
            deviations = self.deviations(m, sampling)
            half = self.quantile(confidence) * deviations
            limits = np.stack([self.x - half, self.x + half], axis=1)
            return Uncertainty("regression", deviations, limits)

        return own

    def quantile(self, confidence: float) -> float:
        from scipy.special import stdtrit

        return -float(stdtrit(self.freedom, (1 - check_confidence(confidence)) / 2))


def own_excess(m: CohortMechanism) -> float:
    """B = b (p (1 - p) - q (1 - q)) / (h (p - q)^2) with h cells a value.

    With w = width b is w / (w - 1) if B is positive, as for GRR, whose cells exclude each other,
    and (w - 2) / (w - 1) if not, as for HRR: exact for both at f = 1, and never too little.
    """
    p, q, width = float(m.inner.p), float(m.inner.q), m.width
    excess = (p * (1 - p) - q * (1 - q)) / (m.hashes * (p - q) ** 2)
    return excess * (width if excess > 0 else width - 2) / (width - 1)
