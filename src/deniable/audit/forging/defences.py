"""What a server can do about forged reports; each defence says whether it is a guarantee.

Guaranteed: validation (a report that no device can make is refused, see `Mechanism.count`), and
intervals that hold for whatever so many forgers send. Heuristic: everything that guesses what they
sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.audit.forging.admissible import admissible_reports, listed_oracle
from deniable.audit.forging.detection import detect
from deniable.audit.forging.influence import influence, weights_of
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import require_int, require_type
from deniable.estimation import FREQUENCIES
from deniable.estimation.frequencies.intervals import score_intervals
from deniable.estimation.frequencies.simplex import project
from deniable.mechanisms.frequency import require_oracle

GUARANTEED, HEURISTIC = "guaranteed", "heuristic"
#: A genuine report supports so many of the suspects with this probability at most.
UNUSUAL = 0.01


def robust_intervals(tally: Tally, forged: int, confidence: float = 0.95) -> Floats:
    """Rows (low, high) for the frequencies of the genuine, with at most ``forged`` others.

    Of N reports m are forged and n = N - m are not, so the genuine alone give a frequency between
    (N f - m high) / n and (N f - m low) / n, whatever the m sent (fewer forgers: less). What the
    coins of the genuine add is the score interval at either end, with the errors of n reports.
    """
    require_type("tally", tally, Tally)
    m, total = listed_oracle(tally.mechanism), tally.n
    genuine = total - require_int("forged", forged, 0, total - 1)
    f = m.unbiased(tally.counts, total)
    low, high = admissible_reports(m).ranges()
    line = m.estimated_line(tally.counts, total, f).over(genuine)
    least, most = (total * f - forged * high) / genuine, (total * f - forged * low) / genuine
    lower = score_intervals(least, line, confidence)[:, 0]
    upper = score_intervals(most, line, confidence)[:, 1]
    return np.clip(np.stack([lower, upper], axis=1), 0.0, 1.0)


def recovered(tally: Tally, forged: int, targets: Iterable[Any] | None = None) -> Floats:
    """Frequencies less what ``forged`` reports are guessed to have contributed, made feasible.

    In the manner of LDPRecover (Sun et al. 2024): (N f - m g) / n, then the nearest distribution.
    With known targets g is that of the maximal gain; else forgers are taken to spread evenly over
    the values with a positive frequency. Either way the contributions of a report sum to 1, as of
    one that looks genuine.
    """
    require_type("tally", tally, Tally)
    m, total = listed_oracle(tally.mechanism), tally.n
    genuine = total - require_int("forged", forged, 0, total - 1)
    f = m.unbiased(tally.counts, total)
    if targets is None:
        guess = (f > 0) / max(1, int(np.sum(f > 0)))
    else:
        targets = list(targets)
        wanted = weights_of(m, targets) > 0
        high, number = influence(m, genuine, forged, targets).high, int(wanted.sum())
        rest = (1 - high) / max(1, len(f) - number)
        guess = np.where(wanted, high / number, rest)
    return project((total * f - forged * guess) / genuine)


def without_suspects(reports: Reports, level: float = 0.01) -> Reports:
    """The reports but for those that support too many values which are too often seen together.

    As the detection of fake users by frequent item sets (Cao et al. 2021): it throws out genuine
    reports, too, and does nothing for mechanisms whose pairs say nothing (see `detect`).
    """
    suspects = list(detect(reports, level).suspects)
    if len(suspects) < 2:
        return reports
    from scipy.stats import binom

    m = reports.mechanism
    supported = (admissible_reports(m).contributions(reports.data)[:, suspects] > 0).sum(axis=1)
    usual = float(np.mean(supported)) / len(suspects)
    least = min(len(suspects), int(binom.isf(UNUSUAL, len(suspects), usual)) + 1)
    kept = supported < least
    return Reports(m, reports.data[kept]) if kept.any() else reports


@dataclass(frozen=True)
class Defence:
    """A way to frequencies from reports of which so many are forged, for some targets."""

    label: str
    about: str
    frequencies: Callable[[Reports, int, list[Any]], Floats]


def _method(name: str) -> Callable[[Reports, int, list[Any]], Floats]:
    return lambda reports, forged, targets: (
        FREQUENCIES.estimate([reports.mechanism.tally(reports)], name).frequencies
    )


def _recovered(reports: Reports, forged: int, targets: list[Any]) -> Floats:
    return recovered(reports.mechanism.tally(reports), forged)


def _recovered_targets(reports: Reports, forged: int, targets: list[Any]) -> Floats:
    return recovered(reports.mechanism.tally(reports), forged, targets)


def _dropped(reports: Reports, forged: int, targets: list[Any]) -> Floats:
    kept = without_suspects(reports)
    m = require_oracle(kept.mechanism)
    return m.unbiased(m.count(kept.data), len(kept))


DEFENCES = {
    "none": Defence("none", "unbiased frequencies", _method("unbiased")),
    "projected": Defence(HEURISTIC, "the nearest distribution", _method("projected")),
    "normalized": Defence(HEURISTIC, "negatives to 0, rescaled", _method("normalized")),
    "recovered": Defence(HEURISTIC, "forgers spread evenly", _recovered),
    "recovered, targets known": Defence(HEURISTIC, "forgers gain most", _recovered_targets),
    "suspects dropped": Defence(HEURISTIC, "pairs seen too often", _dropped),
}
