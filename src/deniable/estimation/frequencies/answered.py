"""Shares among those who answered, where a question may be skipped.

For the channel a skip s is one value more. With its frequency f_s, N = 1 - f_s is the share of
those who answered, and R = f_v / N is that of an answer v among them. Of unbiased frequencies x,
x_v - R (1 - x_s) has the mean 0 and the variance of x_v + R x_s. With Var(x_v) = a_v + b_v f_v, C_v
= Cov(x_v, x_s), and e f (1 - f) for the chance that chooses respondents (`Evidence.chance`), that
is at f_v = R N

    v(R) = a_v + (b_v N + e N + 2 C_v) R + (a_s + b_s f_s - e N) R^2,

from which `ratios` makes errors and intervals. Other decoders see one value more, too: their
f_v / N is what they say given that somebody answered. As elsewhere, intervals are those of the
unbiased ratio, whatever the decoder.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deniable.arrays import Floats
from deniable.estimation.estimate import Skipped
from deniable.estimation.frequencies.evidence import Decoded, Evidence, Uncertainty
from deniable.estimation.frequencies.intervals import score_intervals, two_sided_z
from deniable.estimation.ratios import Residual, ratio_errors, ratio_intervals, require_enough
from deniable.mechanisms.frequency import FrequencyOracle, Line


class Shares(NamedTuple):
    """Frequencies of answers with their errors, and of skips if there may be any."""

    values: Floats
    errors: Uncertainty
    skipped: Skipped | None = None


def among_answered(
    evidence: Evidence, decoded: Decoded, each: float, confidence: float, *, sampling: bool
) -> Shares:
    """The shares of those who answered, and of those who did not.

    ``each`` is the confidence of the interval of one answer, ``confidence`` that of the skips.
    """
    skip = evidence.domain.skip
    assert skip is not None
    x, line, chance = evidence.unbiased, evidence.line, evidence.chance(sampling=sampling)
    answered, among = float(1 - x[skip]), np.delete(x, skip)
    residual = _residual(line, evidence.covariances(skip), chance, skip, x[skip])
    error = float(np.sqrt(evidence.variances_about(sampling=sampling)[skip]))
    require_enough("people who answered", answered, error, evidence.n)
    errors = Uncertainty(
        "score",
        ratio_errors(np.clip(among, 0.0, answered), answered, residual),
        ratio_intervals(among, answered, residual, two_sided_z(each), (0.0, 1.0)),
    )
    own = float(decoded.frequencies[skip])
    low, high = score_intervals(x, line, confidence, sampling=chance)[skip].tolist()
    return Shares(
        np.delete(decoded.frequencies, skip) / (1 - own),
        errors,
        Skipped(own, error, (min(max(low, 0.0), own), max(min(high, 1.0), own))),
    )


def planned_variances(
    oracle: FrequencyOracle, n: int, f: Floats, *, sampled: bool = False
) -> Floats:
    """The variance of each share among those who answer, of n people with frequencies f."""
    skip = oracle.domain.skip
    assert skip is not None
    line, both = oracle.variance_line(f, n).over(n), oracle.covariances(f, n, skip) / n
    residual = _residual(line, both, sampled / n, skip, f[skip])
    return ratio_errors(np.delete(f, skip), 1 - f[skip], residual) ** 2


def _residual(line: Line, both: Floats, chance: float, skip: int, f: float) -> Residual:
    """v(R) of each answer, where skips have the frequency f."""
    noise = max(float(line.at(np.full(both.shape, min(max(f, 0.0), 1.0)))[skip]), 0.0)
    a, b, c = (np.delete(column, skip) for column in (*line, both))
    answered = 1 - f
    return Residual(a, (b + chance) * answered + 2 * c, noise - chance * answered)
