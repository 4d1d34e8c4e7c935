"""One mean from the reports of several mechanisms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
        square=_square(w.tolist(), parts),
        variance=float(w**2 @ [part.variance for part in parts]),
        least=float(w**2 @ [part.least for part in parts]),
        largest=float(w**2 @ [part.largest for part in parts]) + between * LARGEST,
    )


def _square(weights: Sequence[float], parts: Sequence[Moments]) -> float | None:
    """That of the parts that know it."""
    known = [
        (w, one.square) for w, one in zip(weights, parts, strict=True) if one.square is not None
    ]
    total = sum(w for w, _ in known)
    return sum(w * square for w, square in known) / total if known else None
