"""Figures 1-4: gains on incomes by mechanism and epsilon, and by distribution as one thing varies.

Figures 1-2 have the gain of the mean losses, Figures 3-4 the mean of the gains of the runs: so the
authors' software has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from deniable_papers.ibu.gains import AS_RUN, CORRECTED, Found, How
from deniable_papers.ibu.populations import REAL
from deniable_papers.ibu.published import TABLES
from deniable_papers.ibu.tables import PAPER, STAND_IN
from deniable_papers.results import Cell, Result, compared

HOWS = {"as run": AS_RUN, "corrected": CORRECTED}
#: Where Figures 1 and 2 are.
N, K = 20_000, 100


def rows(found: Found) -> Iterator[Result]:
    """All points of the figures; none of them is published as a number."""
    for number, (mechanisms, _) in enumerate(TABLES.values(), 1):
        if REAL in found.distributions:
            for setting, how in HOWS.items():
                yield from _real(found, f"Figure {number}", setting, how, mechanisms)
        for setting, how in HOWS.items():
            yield from _varied(found, f"Figure {number + 2}", setting, how, mechanisms)


def gain_of_means(found: Found, how: How, mechanism: str, epsilon: float) -> tuple[float, float]:
    """100 (1 - ratio of mean losses), 0 if negative, on incomes at the n and k of Figures 1-2."""
    ratio, error = found.log_ratio(how, mechanism, distribution=REAL, n=N, k=K, epsilon=epsilon)
    return 100 * max(0.0, 1 - math.exp(ratio)), 100 * math.exp(ratio) * error


def average_gain(
    found: Found, how: How, mechanisms: Sequence[str], epsilon: float
) -> tuple[float, float]:
    """AvgGain of a panel of Figures 1-2, whose mechanisms share their samples."""
    gains = [gain_of_means(found, how, name, epsilon) for name in mechanisms]
    value, error = np.mean(gains, axis=0)
    return float(value), float(error)


def _real(
    found: Found, where: str, setting: str, how: How, mechanisms: Sequence[str]
) -> Iterator[Result]:
    for epsilon in found.axis("epsilon"):
        for name in mechanisms:
            value, error = gain_of_means(found, how, name, epsilon)
            cell: Cell = {"setting": setting, "mechanism": name, "epsilon": epsilon}
            yield compared(PAPER, where, cell, None, value, error, reason=STAND_IN)
        value, error = average_gain(found, how, mechanisms, epsilon)
        cell = {"setting": setting, "epsilon": epsilon}
        yield compared(PAPER, f"{where}, AvgGain", cell, None, value, error, reason=STAND_IN)


def _varied(
    found: Found, where: str, setting: str, how: How, mechanisms: Sequence[str]
) -> Iterator[Result]:
    for name in found.distributions:
        for axis in ("epsilon", "n", "k"):
            for value in found.axis(axis):
                gain = found.overall(how, mechanisms, distribution=name, **{axis: value})
                cell: Cell = {"setting": setting, "distribution": name, "varied": axis, axis: value}
                about = STAND_IN if name == REAL else ""
                yield compared(PAPER, where, cell, None, gain.value, gain.error, reason=about)
