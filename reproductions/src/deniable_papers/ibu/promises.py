"""What a first report of L-GRR costs with the published second step: less than it may."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.mechanisms import LGRR
from deniable_papers.ibu.gains import Found
from deniable_papers.ibu.tables import PAPER
from deniable_papers.results import Cell, Result, compared

REASON = "the second step is calibrated for two values; more privacy than asked for, less accuracy"


def rows(found: Found) -> Iterator[Result]:
    """The exact epsilon of one report beside the epsilon_1 that it is designed for."""
    for k in found.axis("k"):
        for epsilon in found.axis("epsilon"):
            m = LGRR(int(k), 2 * epsilon, epsilon, calibration="paper")
            cell: Cell = {"mechanism": "L-GRR", "k": k, "epsilon_1": epsilon}
            where = "section 3.2, epsilon of a first report"
            yield compared(PAPER, where, cell, epsilon, m.once.epsilon, 0, 1e-6, REASON)
