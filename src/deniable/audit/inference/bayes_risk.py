"""How often the best guesser is right, and how sure a report can make anybody.

With prior f and channel P the best guesser is right with probability sum_y max_v f_v P(y|v) (Bayes
vulnerability), and the posterior of v after y is f_v P(y|v) / sum_u f_u P(y|u). If no report is
more than r times as likely under one value as under another, the posterior odds of v are at most r
times its prior odds: the posterior is at most r f_v / (r f_v + 1 - f_v), and the best guesser is
right with at most that of the most frequent value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats
from deniable.audit.exact.branches import few_runs
from deniable.core.reports import Reports
from deniable.errors import InvalidArgument
from deniable.mechanisms.frequency import FrequencyOracle, require_oracle

#: Runs of `report` for all values together, up to which a channel is enumerated.
BRANCHES = 10_000


@dataclass(frozen=True, eq=False)
class Guessing:
    """The best guesser's success, and the largest posterior of every value."""

    success: float
    largest: Floats
    #: Whether they are reached, or bounds.
    exact: bool


def guessing(mechanism: FrequencyOracle, prior: Floats) -> Guessing:
    """What one report gives away: exact where the channel is small or of a simple kind."""
    ratio = float(mechanism.once.ratio)
    if enumerable(mechanism):
        joint = prior[:, None] * np.array(mechanism.channel().matrix, dtype=np.float64)
        largest = (joint / joint.sum(axis=0)).max(axis=1)
        return Guessing(float(joint.max(axis=0).sum()), largest, exact=True)
    if mechanism.chances is None or not (mechanism.direct or mechanism.bitwise):
        return bounded(ratio, prior)
    p, q = map(float, mechanism.chances)
    success = _direct(prior, p, q) if mechanism.direct else _unary(prior, p, q, ratio)
    return Guessing(success, raised(ratio, prior), exact=True)


def bounded(ratio: float, prior: Floats) -> Guessing:
    """What holds for every mechanism with this likelihood ratio."""
    largest = raised(ratio, prior)
    return Guessing(float(largest.max()), largest, exact=False)


def raised(ratio: float, prior: Floats) -> Floats:
    """r f / (r f + 1 - f)."""
    if math.isinf(ratio):
        return np.where(prior > 0, 1.0, 0.0)
    return ratio * prior / (ratio * prior + (1 - prior))


def enumerable(mechanism: FrequencyOracle) -> bool:
    """Whether the channel is small enough; what lies outside of candidates has no reports."""
    if mechanism.domain.is_open and mechanism.domain.is_listed:
        return False
    return few_runs(mechanism.report, range(mechanism.domain.size), BRANCHES)


def _direct(prior: Floats, p: float, q: float) -> float:
    """k-RR: report y is best read as y, or as the most frequent value."""
    return float(np.maximum(p * prior, q * prior.max()).sum())


def _unary(prior: Floats, p: float, q: float, ratio: float) -> float:
    """Unary encoding: what counts is the most frequent value among the ones of the report.

    A report is (1 - p) / (1 - q) times as likely under a value whose bit is 0 as if all bits were 1
    with q, and r times that under a value whose bit is 1. With values by falling frequency, bit j
    is the first one with q (1 - q)^(j - 1), if all bits are 1 with q.
    """
    falling = np.sort(prior)[::-1]
    none = (1 - q) ** np.arange(len(falling) + 1)
    best = np.maximum(ratio * falling, falling[0])
    return float((1 - p) / (1 - q) * (q * none[:-1] @ best + none[-1] * falling[0]))


def posteriors(reports: Reports, prior: Floats) -> Floats:
    """Row i: the posterior of every value after report i alone."""
    m = require_oracle(reports.mechanism)
    weights = _enumerated(reports) if enumerable(m) else _supported(m, reports)
    joint = weights * prior
    posterior: Floats = joint / joint.sum(axis=1, keepdims=True)
    return posterior


def _enumerated(reports: Reports) -> Floats:
    m = reports.mechanism
    channel = m.channel()
    places = {row.tobytes(): j for j, row in enumerate(m.pack(channel.outputs))}
    found = [places.get(row.tobytes()) for row in reports.data]
    if None in found:
        raise InvalidArgument("reports", reports, f"reports that {m} can make")
    law = np.array(channel.matrix, dtype=np.float64).T
    likelihoods: Floats = law[np.array(found, dtype=np.int64)]
    return likelihoods


def _supported(m: FrequencyOracle, reports: Reports) -> Floats:
    """A report is `once.ratio` times as likely under what it supports."""
    counts = [m.supports(m.count(reports.data[i : i + 1]), 1) for i in range(len(reports))]
    if not m.two_likelihoods or any(row is None for row in counts):
        raise InvalidArgument("mechanism", m, "one whose reports have two likelihoods, or smaller")
    supports = np.array(counts, dtype=np.float64).reshape(len(reports), m.domain.size)
    return 1 + (float(m.once.ratio) - 1) * supports
