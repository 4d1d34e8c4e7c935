"""One mean from the reports of several mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms.numbers import Moments
from deniable.mechanisms.numbers.base import LARGEST


def pooled(parts: Sequence[Moments], variances: Sequence[float]) -> Moments:
    """One from several, with weights 1 / ``variances``, which must not depend on the reports.

    Who is in which part is chance, as if all were sorted into parts without looking: that adds
    ``between`` times the variance of the answers to what the parts have about their respondents.
    """
    w = 1 / np.array(variances)
    w /= w.sum()
    n = sum(part.n for part in parts)
    between = max(0.0, float(w**2 @ [1 / part.n for part in parts]) - 1 / n)
    return Moments(
        n=n,
        mean=float(w @ [part.mean for part in parts]),
        variance=float(w**2 @ [part.variance for part in parts]),
        least=float(w**2 @ [part.least for part in parts]),
        largest=float(w**2 @ [part.largest for part in parts]) + between * LARGEST,
        rounding=float(w @ [part.rounding for part in parts]),
        **_squares(w, parts),
    )


def _squares(w: Floats, parts: Sequence[Moments]) -> dict[str, Any]:
    """The mean square of the parts that know it, and its covariances with the mean."""
    known = np.array([one.square is not None for one in parts])
    if not known.any():
        return {"square": None}
    both = np.column_stack([w, w * known / w[known].sum()])
    square, covariances = 0.0, np.zeros((2, 2))
    for weights, one in zip(both, parts, strict=True):
        square += weights[1] * (one.square or 0.0)
        own = np.diag([one.variance, 0.0]) if one.covariances is None else one.covariances
        covariances += np.outer(weights, weights) * own
    return {"square": float(square), "covariances": covariances}
