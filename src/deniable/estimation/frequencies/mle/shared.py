"""The likelihood of reports with shared hash functions: it goes through the cells of each cohort.

With one cell a value, the frequencies of the cells of cohort j are g_j = M_j f, and its reports are
those of the inner mechanism under g_j. What lies outside of the candidates is spread evenly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats, Indices
from deniable.estimation.frequencies.mle.bloom import BloomRows, by_cohort
from deniable.estimation.frequencies.mle.cells import CountedTerm, HadamardTerm, term_of_counts
from deniable.estimation.frequencies.mle.supports import (
    Gram,
    LikelihoodTerm,
    SeenGram,
    Subsample,
    Sums,
    term_of_reports,
)
from deniable.mechanisms.cohorts.base import CohortBits, CohortIndices, CohortMechanism
from deniable.mechanisms.frequency import FrequencyOracle

__all__ = ["held_by_reports", "term_of_counts", "term_of_reports"]


class Shared(LikelihoodTerm):
    """Reports of cohorts, each a part of its own: ``parts`` holds (cohort, part)."""

    mechanism: CohortMechanism
    parts: list[tuple[int, LikelihoodTerm]]

    def __init__(self, mechanism: CohortMechanism, n: int) -> None:
        super().__init__(mechanism, n)
        self.open = mechanism.domain.is_open

    def masses(self, f: Floats) -> Floats:
        """g: the frequency of each cell in each cohort."""
        if self.open:
            return np.asarray(self.mechanism.masses_of_cells(f[:-1]) + f[-1] / self.mechanism.width)
        return self.mechanism.masses_of_cells(f)

    def gathered(self, table: Floats) -> Floats:
        """The transpose: for each value the sum of ``table`` over its cells."""
        sums = self.mechanism.sums_over_cells(np.ascontiguousarray(table))
        return np.append(sums, table.sum() / self.mechanism.width) if self.open else sums

    @abstractmethod
    def cell_sums(self, g: Floats, threads: int | None, *, squares: bool) -> Sums:
        """`sums` with the cells of all cohorts in the place of the values."""

    def sums(self, f: Floats, threads: int | None, *, squares: bool) -> Sums:
        g = self.masses(f)
        totals, by_cell = self.cell_sums(g, threads, squares=squares)
        return Sums(totals, np.array([self.gathered(row.reshape(g.shape)) for row in by_cell]))

    def sample(self, most: int) -> Subsample:
        """All reports of some of the cohorts."""
        return cohort_sample([cohort for cohort, _ in self.parts], self.n, most)

    def moments(self, f: Floats, values: Indices, sample: Subsample, start: int = 0) -> SeenGram:
        g, cells = self.masses(f), np.arange(self.mechanism.width)
        seen, used = 0, set(sample.cohorts)
        total, single, pairs = 0.0, np.zeros(values.size), np.zeros((values.size, values.size))
        for cohort, part in self.parts:
            if cohort in used:
                more, gram = part.moments(g[cohort], cells, Subsample(1))
                places = self._places(cohort, values)
                seen += more
                total += gram.total
                single += _with_mean(gram.single)[places]
                pairs += _with_mean(_with_mean(gram.pairs).T).T[np.ix_(places, places)]
        return SeenGram(seen, Gram(total, single, pairs))

    def _places(self, cohort: int, values: Indices) -> Indices:
        """The cell of each value; for what lies outside of the candidates, the place after all."""
        cells = self.mechanism.cell_table(slice(cohort, cohort + 1))[0, 0]
        return np.append(cells, self.mechanism.width)[values]


def _with_mean(rows: Floats) -> Floats:
    """And their mean after the last."""
    return np.concatenate((rows, rows.mean(axis=0, keepdims=True)))


def cohort_sample(cohorts: Sequence[int], n: int, most: int) -> Subsample:
    """Some of the cohorts that reported, so that about ``most`` of n reports are looked at."""
    return Subsample(1, tuple(cohorts[:: -(-n // most)]))


class SharedCells(Shared):
    """Inner reports that are an index: their counts are all that the likelihood needs."""

    def __init__(self, mechanism: CohortIndices, counts: Counts) -> None:
        table = counts.reshape(mechanism.cohorts, -1)
        super().__init__(mechanism, int(table[:, 0].sum()))
        found = [cohort for cohort in range(mechanism.cohorts) if table[cohort, 0]]
        self.parts = [
            (cohort, term_of_counts(mechanism.inner, table[cohort, 1:])) for cohort in found
        ]
        self.flat = _flat(mechanism, table[:, 1:])

    def cell_sums(self, g: Floats, threads: int | None, *, squares: bool) -> Sums:
        return self.flat.sums(g.reshape(-1), threads, squares=squares)


def _flat(mechanism: CohortMechanism, table: Counts) -> CountedTerm:
    """The cells of all cohorts at once; for signs, each cohort is a block."""
    counts = np.ascontiguousarray(table).reshape(-1)
    if mechanism.inner.direct:
        return CountedTerm(mechanism, counts)
    block, cell = np.divmod(np.arange(mechanism.cohorts * mechanism.width), mechanism.width)
    return HadamardTerm(mechanism, counts, table.shape, block, 2 * cell + 1)


class SharedRows(Shared):
    """Inner reports that are rows of bits, brought together by cohort."""

    def __init__(self, mechanism: CohortBits, data: NDArray[Any], memory: int) -> None:
        super().__init__(mechanism, len(data))
        self.parts = [
            (cohort, term_of_reports(mechanism.inner, rows, memory))
            for cohort, rows in by_cohort(data)
        ]

    def cell_sums(self, g: Floats, threads: int | None, *, squares: bool) -> Sums:
        totals, by_cell = np.zeros(3), np.zeros((1 + squares, *g.shape))
        for cohort, part in self.parts:
            found = part.sums(g[cohort], threads, squares=squares)
            totals += found.totals
            by_cell[:, cohort] = found.by_value
        return Sums(totals, by_cell)


@term_of_counts.register
def _(mechanism: CohortIndices, counts: Counts) -> LikelihoodTerm:
    return SharedCells(mechanism, counts)


@term_of_reports.register
def _(mechanism: CohortBits, data: NDArray[Any], memory: int) -> LikelihoodTerm:
    if mechanism.hashes > 1:
        return BloomRows(mechanism, data)
    return SharedRows(mechanism, data, memory)


def held_by_reports(mechanism: FrequencyOracle) -> bool:
    """Whether the exact likelihood of the reports is known, and they can be read for it."""
    read = term_of_reports.dispatch(type(mechanism)) is not term_of_reports.dispatch(object)
    return mechanism.counts_suffice or (read and mechanism.known_likelihood)
