"""Rows about Table 9 and section 4.1: means of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from deniable_papers.boxes import duchi_bound, duchi_epsilon
from deniable_papers.cells import Notebook
from deniable_papers.results import Cell, Result, Trial, claimed, compared
from deniable_papers.survey import means
from deniable_papers.survey.grids import Grid
from deniable_papers.survey.table4 import PAPER

EPSILONS = tuple(float(e) for e in np.arange(1, 81) / 10)
#: Formulas are compared to this share.
EXACT = 1e-9
#: Half of the last digit of the thresholds.
DIGIT = 0.005


def rows(grid: Grid, notebook: Notebook) -> Iterator[Result]:
    """All of them."""
    for one in grid.means():
        values, name, epsilon = notebook[one], one["mechanism"], one["epsilon"]
        cell: Cell = {
            "mechanism": name,
            "epsilon": epsilon,
            "v": round(values["v"], 2),
            "exact": _short(means.worst(name, epsilon)),
            "average": _short(means.average(name, epsilon)),
        }
        formula = means.published(name, epsilon)
        # Where all reports are equally far from v, there is no error but that of rounding.
        error = values["error"] if values["error"] > EXACT * values["mean"] else 0.0
        yield compared(PAPER, "Table 9, variance", cell, formula, values["mean"], error)
    yield _formulas()
    yield from _thresholds()
    yield from _orders()
    yield from _communication()
    yield from _duchi()


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _formulas() -> Result:
    trials = [
        Trial(f"{name} epsilon {e:g}", abs(means.worst(name, e) / means.published(name, e) - 1), 0)
        for name in means.NAMES
        for e in EPSILONS[::2]
    ]
    rounded = [Trial(one.name, one.value, EXACT) for one in trials]
    claim = "the printed variance is the worst exact one"
    return claimed(PAPER, "Table 9, claim", claim, rounded)


def _thresholds() -> Iterator[Result]:
    """Where PM becomes better than Duchi et al., by what is compared."""
    where = "section 4.1, epsilon from which PM is better than Duchi"

    def at(measure: Callable[[str, float], float]) -> float:
        return means.crossing(lambda e: (measure("PM", e), measure("Duchi", e)))

    worst, even = at(means.worst), at(means.average)
    yield compared(PAPER, where, {"values": "worst"}, 1.29, worst, 0, DIGIT)
    yield compared(PAPER, where, {"values": "spread evenly"}, None, even)
    switch = means.hybrid_switch()
    yield compared(PAPER, where, {"values": "all 0"}, None, switch)
    yield compared(PAPER, "equation 63, switch", {"mechanism": "HM"}, 0.61, switch, 0, DIGIT)


def _orders() -> Iterator[Result]:
    """What the text says is always smaller."""
    readings = {"worst": means.worst, "evenly spread": means.average}
    for reading, measure in readings.items():
        where = "section 4.1, claim" if reading == "worst" else "section 4.1, other reading"
        trials = [_smaller("PM", "Laplace", e, measure) for e in EPSILONS]
        claim = f"PM has a smaller variance than Laplace noise ({reading} values)"
        yield claimed(PAPER, where, claim, trials)
        rivals = [name for name in means.NAMES if name != "HM"]
        trials = [_smaller("HM", rival, e, measure) for e in EPSILONS for rival in rivals]
        claim = f"HM has a smaller variance than all others ({reading} values)"
        yield claimed(PAPER, where, claim, trials, "up to 0.61 HM is Duchi's")


def _smaller(one: str, other: str, epsilon: float, measure: Callable[[str, float], float]) -> Trial:
    value = measure(one, epsilon) / measure(other, epsilon) - 1
    return Trial(f"{other} epsilon {epsilon:g}", value, EXACT)


def _communication() -> Iterator[Result]:
    """Bits of a report of d numbers (64 for a real one); nothing to measure, so no verdict."""
    bits: dict[str, tuple[str, Callable[[int], float]]] = {
        "Laplace": ("O(d)", lambda d: 64 * d),
        "Duchi": ("O(d)", lambda d: d),
        "Harmony": ("O(1)", lambda d: 1 + math.log2(d)),
        "PM": ("O(m)", lambda d: 64 + math.log2(d)),
        "HM": ("O(m)", lambda d: 64 + math.log2(d)),
    }
    for name, (order, size) in bits.items():
        cell: Cell = {"mechanism": name, "order": order, "bits at 16": size(16)}
        reason = "" if order == "O(d)" else "one number is told, but also which: log2 d bits"
        where = "Table 9, communication, bits at 1024"
        yield compared(PAPER, where, cell, None, size(1024), reason=reason)


def _duchi() -> Iterator[Result]:
    """Several numbers: the text's probability is not epsilon-LDP for even d; (57) for odd d."""
    for d in (1, 2, 3, 4):
        for text in (True, False):
            found = duchi_epsilon(d, 1.0, text=text)
            which = "e^eps / (e^eps + 1)" if text else "equation 60"
            cell: Cell = {"d": d, "P(T+)": which}
            reason = "T+ and T- are not equally large for even d" if text else ""
            where = "section 4.1, epsilon of Duchi"
            yield compared(PAPER, where, cell, 1.0, found, reason=reason)
    for d in (3, 5, 7):
        slope = duchi_bound(d, 1.0, text=True) / duchi_bound(d, 1.0)
        reason = "the binomial is C(d - 1, (d - 1) / 2)"
        where = "equation 57, mean report of 1"
        yield compared(PAPER, where, {"d": d}, 1.0, slope, reason=reason)
