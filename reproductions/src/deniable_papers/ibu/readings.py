"""How near each reading of the experiment comes to the published tables (synthetic data only).

The text leaves open what a bucket is and of what an average gain is the average; and it prints
other formulas than the authors' software has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from deniable_papers.ibu.designs import settings_of
from deniable_papers.ibu.gains import AS_RUN, Found, How
from deniable_papers.ibu.populations import SYNTHETIC
from deniable_papers.ibu.published import METRICS, TABLES
from deniable_papers.ibu.tables import PAPER
from deniable_papers.results import Cell, Result, compared

#: (how, mechanism, distribution) -> percent.
Reading = Callable[[How, str, str], float]


def rows(found: Found, equal: Found) -> Iterator[Result]:
    """The mean distance, in points, between our cells and the published ones."""

    def runs(how: How, mechanism: str, distribution: str) -> float:
        return found.average(how, mechanism, distribution=distribution).value

    def even(how: How, mechanism: str, distribution: str) -> float:
        return equal.average(how, mechanism, distribution=distribution).value

    def means(how: How, mechanism: str, distribution: str) -> float:
        entry = how.key(mechanism)
        cells = [values[entry] for _, values in found.where(distribution=distribution)]
        logs = [values[how.metric][how.decoder]["log"][0] for values in cells]
        return 100 * float(np.mean([max(0.0, 1 - math.exp(log)) for log in logs]))

    for table in TABLES:
        yield _distance(table, "as run", "software", runs)
        yield _distance(table, "gains of mean losses", "software", means)
        differing = [name for name in TABLES[table][0] if "text" in settings_of(name)]
        for name, setting in (("software", "software"), ("text", "text")):
            title = f"formulas of the {name}, where they differ"
            yield _distance(table, title, setting, runs, differing)
        if equal.cells:
            yield _distance(table, "k buckets of equal width", "software", even)


def _distance(
    table: str, name: str, setting: str, reading: Reading, some: Sequence[str] = ()
) -> Result:
    """Over all mechanisms, or some."""
    mechanisms, published = TABLES[table]
    distances = [
        abs(reading(How(setting, AS_RUN.decoder, metric), one, row) - published[row, one, metric])
        for one in some or mechanisms
        for row in SYNTHETIC
        for metric in METRICS
    ]
    cell: Cell = {"reading": name, "cells": len(distances)}
    where = f"{table}, distance to the published cells"
    return compared(PAPER, where, cell, None, float(np.mean(distances)))
