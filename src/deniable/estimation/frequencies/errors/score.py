"""Standard errors and intervals of the unbiased frequencies, which hold whatever the method."""

from __future__ import annotations

from typing import Literal

import numpy as np

from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.errors.exact import exact_intervals
from deniable.estimation.frequencies.evidence import Evidence, Uncertainty
from deniable.estimation.frequencies.intervals import analytic_kind, score_intervals

Kind = Literal["exact", "score"]


def analytic(
    evidence: Evidence, confidence: float, sampling: bool, kind: Kind | None = None
) -> Uncertainty:
    """Score intervals, or exact ones where the normal law is not safe (or as ``kind`` says).

    ``sampling`` says that the respondents are a sample of the population that is asked about.
    """
    one = evidence.parts[0] if len(evidence.parts) == 1 else None
    supports = one.supports if one and one.mechanism.independent_supports else None
    if kind is None and supports is not None:
        kind = analytic_kind(evidence.n, supports[1], supports[2], confidence)
    extra = evidence.chance(sampling=sampling)
    deviations = np.sqrt(evidence.variances_about(sampling=sampling))
    if kind != "exact":
        x, line = evidence.unbiased, evidence.line
        return Uncertainty(
            "score", deviations, score_intervals(x, line, confidence, sampling=extra)
        )
    if supports is None:
        raise InvalidArgument("errors", kind, "used with one tally of supports, with one p and q")
    limits = exact_intervals(supports[0], evidence.n, *supports[1:], confidence, sampling=sampling)
    return Uncertainty("exact", deviations, limits)
