"""The mean of those who answered, where a question may be skipped: S / N and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from deniable.estimation.estimate import Skipped
from deniable.estimation.frequencies.intervals import two_sided_z
from deniable.estimation.numbers.statistic import MEAN, Statistic, rounded_half_width
from deniable.estimation.ratios import Residual, ratio_errors, ratio_intervals, require_enough
from deniable.mechanisms.numbers.answered import Answered
from deniable.mechanisms.numbers.base import LARGEST


class MeanAmong(NamedTuple):
    """The mean of numbers of 0..1, and who skipped the question."""

    mean: Statistic
    skipped: Skipped


def mean_among(found: Answered, confidence: float, *, everyone: bool) -> MeanAmong:
    """R = S / N, refused where N is not clearly above 0.

    The variance of S - r N is V - 2 (r - R) C + (r - R)^2 Var(N), with V = Var(S - R N) and its
    covariance C with N: that of the respondents' own is 0. Where numbers are rounded, the interval
    is as much wider as a normal one.
    """
    r, z = found.mean, two_sided_z(confidence)
    of_share = found.share_variance_about(everyone=everyone)
    require_enough("people who answered", found.share, math.sqrt(of_share), found.n)
    v, c = found.variance_about(everyone=everyone), found.tilt
    residual = Residual(v + 2 * r * c + r**2 * of_share, -2 * (c + r * of_share), of_share)
    limits = (min(0.0, r), max(1.0, r))
    error = float(ratio_errors(found.total, found.share, residual))
    wider = rounded_half_width(error, found.rounding, confidence) / error if error else z
    low, high = ratio_intervals(found.total, found.share, residual, wider, limits).tolist()
    half, skipped = z * math.sqrt(of_share), 1 - found.share
    ends = (min(max(skipped - half, 0.0), skipped), max(min(skipped + half, 1.0), skipped))
    return MeanAmong(
        Statistic(MEAN, r, error, (low, high)), Skipped(skipped, math.sqrt(of_share), ends)
    )


def pooled_answers(parts: Sequence[Answered], variances: Sequence[float]) -> Answered:
    """One from several, with weights as `moments.pooled` has them."""
    w = 1 / np.array(variances)
    w /= w.sum()
    n = sum(part.n for part in parts)
    total, share = (float(w @ [getattr(p, name) for p in parts]) for name in ("total", "share"))
    between = max(0.0, float(w**2 @ [1 / part.n for part in parts]) - 1 / n)
    known = [(weight * p.share, p.square) for weight, p in zip(w, parts, strict=True)]
    squares = [(weight, square) for weight, square in known if square is not None]
    one = Answered(
        n=n,
        total=total,
        share=share,
        variance=0.0,
        tilt=0.0,
        share_variance=float(w**2 @ [part.share_variance for part in parts]),
        square=sum(a * b for a, b in squares) / sum(a for a, _ in squares) if squares else None,
        least=float(w**2 @ [part.least for part in parts]),
        rounding=float(w @ [part.rounding for part in parts]),
        largest=float(w**2 @ [part.largest for part in parts]) + between * LARGEST,
    )
    apart = np.array([one.mean - part.mean for part in parts])
    tilts = np.array([part.tilt for part in parts])
    shares = np.array([part.share_variance for part in parts])
    errors = [part.variance for part in parts] - 2 * apart * tilts + apart**2 * shares
    return replace(one, variance=float(w**2 @ errors), tilt=float(w**2 @ (tilts - apart * shares)))
