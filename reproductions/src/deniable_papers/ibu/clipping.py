"""How much of an average gain is only that gains below 0 count as 0 in every run.

The signed gain is 1 less the geometric mean of the ratios of mean losses: two decoders that are
equally good have 0. A mean of clipped gains is positive even then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from deniable_papers.ibu.findings import HOWS
from deniable_papers.ibu.gains import Found, How
from deniable_papers.ibu.published import TABLES
from deniable_papers.ibu.tables import PAPER
from deniable_papers.results import Cell, Result, compared


def rows(found: Found) -> Iterator[Result]:
    """By table and number of values: clipped, and signed."""
    for table, (mechanisms, _) in TABLES.items():
        for setting, how in HOWS.items():
            for k in found.axis("k"):
                clipped = found.overall(how, mechanisms, k=k)
                both = {
                    "clipped": (clipped.value, clipped.error),
                    "signed": _signed(found, how, mechanisms, k),
                }
                for kind, value in both.items():
                    cell: Cell = {"setting": setting, "k": k, "gain": kind}
                    yield compared(PAPER, f"{table}, clipping", cell, None, *value)


def _signed(found: Found, how: How, mechanisms: tuple[str, ...], k: float) -> tuple[float, float]:
    value, error = np.mean([found.log_ratio(how, name, k=k) for name in mechanisms], axis=0)
    ratio = math.exp(value)
    return 100 * (1 - ratio), 100 * ratio * float(error)
