"""Tables 2 and 3, cell by cell: as run, as the text prints the mechanisms, and corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from deniable_papers.ibu.designs import settings_of
from deniable_papers.ibu.gains import AS_RUN, CORRECTED, Average, Found, How, mean_of
from deniable_papers.ibu.populations import REAL
from deniable_papers.ibu.published import AVERAGE, DISTRIBUTIONS, METRICS, TABLES
from deniable_papers.results import Cell, Result, compared

PAPER = "ibu"
#: Published gains are whole percents.
ROUNDING = 0.5
STAND_IN = "incomes of other persons and another year than in the paper"
TEXT = "as the text prints it; the authors' software does otherwise"


def rows(found: Found) -> Iterator[Result]:
    """All cells of both tables."""
    for table, (mechanisms, published) in TABLES.items():
        differing = [name for name in mechanisms if "text" in settings_of(name)]
        for metric in METRICS:
            numbers = {place[:2]: x for place, x in published.items() if place[2] == metric}
            run = _averages(found, replace(AS_RUN, metric=metric), mechanisms)
            yield from _compared(table, metric, run, numbers)
            right = _averages(found, replace(CORRECTED, metric=metric), mechanisms)
            yield from _compared(f"{table}, corrected", metric, right, {})
            text = _averages(found, How("text", "update", metric), differing)
            some = {place: one for place, one in text.items() if place[1] != AVERAGE}
            yield from _compared(f"{table}, text", metric, some, numbers, TEXT)


def label(distribution: str) -> str:
    """A distribution by the name it has in the tables."""
    return "Real" if distribution == REAL else distribution


def _averages(found: Found, how: How, mechanisms: Sequence[str]) -> dict[tuple[str, str], Average]:
    """The cells of a table, with its last row (if all distributions are there) and column."""
    names = list(found.distributions)
    cells = {
        (row, column): found.average(how, column, distribution=row)
        for row in names
        for column in mechanisms
    }
    if len(names) == len(DISTRIBUTIONS):
        for column in mechanisms:
            cells[AVERAGE, column] = mean_of([cells[row, column] for row in names])
        names.append(AVERAGE)
    for row in names:
        cells[row, AVERAGE] = mean_of([cells[row, column] for column in mechanisms])
    return cells


def _compared(
    where: str,
    metric: str,
    cells: dict[tuple[str, str], Average],
    published: dict[tuple[str, str], float],
    reason: str = "",
) -> Iterator[Result]:
    """The published numbers come from 20 runs, too: the error of a row is that of the difference
    of two numbers with our error."""
    for (row, column), average in cells.items():
        number = published.get((label(row), column))
        error = average.error * (1.0 if number is None else math.sqrt(2))
        about = "; ".join(part for part in (reason, STAND_IN if row == REAL else "") if part)
        cell: Cell = {"distribution": row, "mechanism": column, "metric": metric}
        yield compared(PAPER, where, cell, number, average.value, error, ROUNDING, about)
