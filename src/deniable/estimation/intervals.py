"""Confidence intervals for unbiased frequencies."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument

Floats = NDArray[np.float64]


def check_confidence(confidence: Any) -> float:
    """``confidence`` as a float strictly between 0 and 1 (1e-12 away from certainty)."""
    number = float(confidence) if isinstance(confidence, (int, float)) else -1.0
    if not 0 < number <= 1 - 1e-12:
        raise InvalidArgument("confidence", confidence, "a number strictly between 0 and 1")
    return number


def score_intervals(f: Floats, n: int, a: Floats, b: Floats, confidence: float) -> Floats:
    """Rows (low, high): the x that f does not reject, (f - x)^2 <= z^2 (a + b x) / n.

    The variance is taken at the x that is tested and not at the estimate, which keeps the
    coverage near its nominal level for rare values and small n (Wilson's idea).
    """
    z = NormalDist().inv_cdf((1 + check_confidence(confidence)) / 2)
    shift = z * b / (2 * n)
    half = z * np.sqrt(np.maximum((a + b * f) / n + shift**2, 0.0))
    centre = f + z * shift
    return np.stack([centre - half, centre + half], axis=1)
