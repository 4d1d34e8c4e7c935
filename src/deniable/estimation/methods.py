"""The estimators by name, and the one function that runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument
from deniable.estimation.estimate import Estimate
from deniable.estimation.intervals import check_confidence, score_intervals
from deniable.estimation.simplex import clip_and_normalize, project

if TYPE_CHECKING:
    from deniable.tally import Tally

Floats = NDArray[np.float64]

#: Post-processing of the unbiased frequencies, by name.
METHODS: dict[str, Callable[[Floats], Floats]] = {
    "unbiased": lambda f: f,
    "normalized": clip_and_normalize,
    "projected": project,
}
DEFAULT_METHOD = "projected"


def estimate(tally: Tally, method: str | None = None, confidence: float = 0.95) -> Estimate:
    """Frequencies of the respondents (a fixed population) from a tally.

    Standard errors and intervals are those of the unbiased frequencies whatever the
    method; for a method that respects 0 <= f <= 1 the intervals are cut to that range, which
    loses no coverage.
    """
    method = DEFAULT_METHOD if method is None else method
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidArgument("method", method, f"one of {', '.join(METHODS)}")
    check_confidence(confidence)
    if not tally.n:
        raise InvalidArgument("tally", tally, "a tally with at least one report")
    unbiased = tally.mechanism.unbiased(tally.counts, tally.n)
    possible = np.clip(unbiased, 0.0, 1.0)
    a, b = tally.mechanism.estimated_line(tally.counts, tally.n)
    intervals = score_intervals(unbiased, a / tally.n, b / tally.n, confidence)
    domain = tally.mechanism.domain
    return Estimate(
        labels=tuple(domain.label(i) for i in range(domain.size)),
        frequencies=METHODS[method](unbiased),
        standard_errors=np.sqrt(np.maximum(a + b * possible, 0.0) / tally.n),
        intervals=intervals if method == "unbiased" else np.clip(intervals, 0.0, 1.0),
        n=tally.n,
        method=method,
        confidence=float(confidence),
        source=str(tally.mechanism),
    )
