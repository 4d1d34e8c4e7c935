"""Tables 2 and 3, cell by cell: as run, as the text prints the mechanisms, and corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from deniable.studio.papers.ibu.designs import settings_of
from deniable.studio.papers.ibu.gains import AS_RUN, CORRECTED, Average, Found, How, mean_of
from deniable.studio.papers.ibu.populations import REAL
from deniable.studio.papers.ibu.published import AVERAGE, DISTRIBUTIONS, METRICS, TABLES
from deniable.studio.papers.results import Result, compared

PAPER = "ibu"
#: Published gains are whole percents.
ROUNDING = 0.5
STAND_IN = "incomes of other persons and another year than in the paper"
TEXT = "as the text prints it; the authors' software does otherwise"


def rows(found: Found) -> Iterator[Result]:
    """All cells of both tables."""
    for table, (mechanisms, published) in TABLES.items():
        for metric in METRICS:
            numbers = {place[:2]: x for place, x in published.items() if place[2] == metric}
            for how, where in ((AS_RUN, ""), (CORRECTED, ", corrected")):
                whole = _Table(found, How(how.setting, how.decoder, metric), mechanisms)
                yield from _compared(table + where, whole, {} if where else numbers)
            differing = [name for name in mechanisms if "text" in settings_of(name)]
            whole = _Table(found, How("text", "update", metric), differing)
            yield from _compared(f"{table}, text", whole, numbers, TEXT)


def label(distribution: str) -> str:
    """A distribution by the name it has in the tables."""
    return "Real" if distribution == REAL else distribution


class _Table:
    """The averages of a table, with its last row and last column."""

    def __init__(self, found: Found, how: How, mechanisms: Sequence[str]) -> None:
        self.how, self.mechanisms = how, mechanisms
        self.names = found.distributions
        self.cells: dict[tuple[str, str], Average] = {
            (row, column): found.average(how, column, distribution=row)
            for row in self.names
            for column in mechanisms
        }
        self.between = {row: self._between(row) for row in self.names}
        if len(self.names) == len(DISTRIBUTIONS):
            for column in mechanisms:
                self.cells[AVERAGE, column] = mean_of(
                    [self.cells[row, column] for row in self.names]
                )
            self.between[AVERAGE] = sum(self.between.values()) / len(self.names) ** 2

    def with_averages(self) -> dict[tuple[str, str], Average]:
        """All cells, and the averages over the mechanisms."""
        across = {
            (row, AVERAGE): mean_of([self.cells[row, column] for column in self.mechanisms])
            for row in dict.fromkeys(row for row, _ in self.cells)
        }
        return {**self.cells, **across}

    def _between(self, row: str) -> float:
        """The variance of a gain between samples: what two mechanisms in one run have in common."""
        runs = [self.cells[row, column].runs for column in self.mechanisms]
        common = [float(np.cov(a, b)[0, 1]) for a, b in combinations(runs, 2)]
        return max(0.0, float(np.mean(common)))


def _compared(
    where: str, table: _Table, published: dict[tuple[str, str], float], reason: str = ""
) -> Iterator[Result]:
    """The published numbers have errors like ours, and one sample for all of their runs.

    The error of a row is that of the difference.
    """
    cells = table.cells if reason else table.with_averages()
    for (row, column), average in cells.items():
        number = published.get((label(row), column))
        error = average.error
        if number is not None:
            error = math.hypot(error, error, math.sqrt(table.between[row]))
        about = "; ".join(part for part in (reason, STAND_IN if row == REAL else "") if part)
        cell = {"distribution": row, "mechanism": column, "metric": table.how.metric}
        yield compared(PAPER, where, cell, number, average.value, error, ROUNDING, about)
