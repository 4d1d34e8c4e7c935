"""The normal equations of the cells of cohorts.

A cell y of cohort j has the unbiased frequency X_jy = (c_jy / N_j - q) / (p - q), with N_j reports
of which c_jy support it, and E X_jy = sum_s f_s 1{y is a cell of s}. Values that nobody listed set
all cells of a cohort alike on average, so columns and X are centred in each cohort: then the
outside drops out, and what is left is told apart by the cells alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from deniable.arrays import Counts, Floats, Indices
from deniable.mechanisms.cohorts.base import CohortMechanism

#: CohortTable of values in memory at a time.
BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Normal:
    """With columns D, cells X and weights W = N_j: D'WD, D'WX, X'WX and the free dimensions."""

    gram: Floats
    linear: Floats
    square: float
    dimensions: int
    #: The least variance of a report that the channel allows.
    least: float

    def take(self, columns: Indices) -> Normal:
        """The equations of some columns."""
        gram = self.gram[np.ix_(columns, columns)]
        return replace(self, gram=gram, linear=self.linear[columns])

    def noise(self, f: Floats, unknowns: int) -> float:
        """The variance of a report, from what the frequencies leave of the cells.

        Candidates that were chosen to fit a few reports may leave less than the channel makes.
        """
        left = self.square - 2 * float(self.linear @ f) + float(f @ self.gram @ f)
        return max(self.least, left / max(1, self.dimensions - unknowns))


@dataclass(frozen=True, eq=False)
class CohortTable:
    """The cells of a tally of a mechanism with cohorts."""

    mechanism: CohortMechanism
    counts: Counts

    @cached_property
    def cohorts(self) -> Indices:
        """The cohorts with reports; the others say nothing."""
        return np.flatnonzero(self.mechanism.by_cohort(self.counts)[0])

    @cached_property
    def sizes(self) -> Floats:
        """N_j."""
        return self.mechanism.by_cohort(self.counts)[0][self.cohorts].astype(np.float64)

    @cached_property
    def x(self) -> Floats:
        """X_jy, centred in each cohort."""
        inner = self.mechanism.inner
        supports = self.mechanism.by_cohort(self.counts)[1][self.cohorts]
        x = supports / (self.sizes[:, None] * float(inner.p - inner.q))
        return np.asarray(x - x.mean(axis=1, keepdims=True))

    @property
    def dimensions(self) -> int:
        """Cells that differ freely: all but one of each cohort."""
        return self.sizes.size * (self.mechanism.width - 1)

    def normal(self, values: Indices) -> Normal:
        """The normal equations of the columns of some values."""
        gram, linear = np.zeros((values.size, values.size)), np.zeros(values.size)
        for part, columns in self._columns(values):
            weights = np.repeat(self.sizes[part], self.mechanism.width)
            gram += (columns.T @ columns.multiply(weights[:, None])).toarray()
            gram -= self._of_means(columns, self.sizes[part])
            linear += columns.T @ (weights * self.x[part].reshape(-1))
        square = float(np.sum(self.sizes[:, None] * self.x**2))
        p, q = float(self.mechanism.inner.p), float(self.mechanism.inner.q)
        least = min(p * (1 - p), q * (1 - q)) / (p - q) ** 2
        return Normal(gram, linear, square, self.dimensions, least)

    def residuals(self, values: Indices, f: Floats) -> Floats:
        """sqrt(N_j) (X_jy - what the frequencies of some values explain)."""
        left = self.x.copy()
        for part, columns in self._columns(values):
            fitted = (columns @ f).reshape(-1, self.mechanism.width)
            left[part] -= fitted - fitted.mean(axis=1, keepdims=True)
        return np.asarray(np.sqrt(self.sizes)[:, None] * left)

    def _of_means(self, columns: Any, sizes: Floats) -> Floats | float:
        """What centring takes from the products: N_j a_js a_jt / width for a_js cells of s in j."""
        from scipy.sparse import eye_array, kron

        if self.mechanism.hashes == 1:
            return float(sizes.sum()) / self.mechanism.width
        sums = kron(eye_array(sizes.size), np.ones((1, self.mechanism.width)), format="csr")
        held = (sums @ columns).toarray()
        return np.asarray((held * sizes[:, None]).T @ held / self.mechanism.width)

    def _columns(self, values: Indices) -> Iterator[tuple[slice, Any]]:
        """Sparse indicators 1{y is a cell of s}, rows (j, y), for some cohorts at a time."""
        step = max(1, BLOCK // max(1, self.mechanism.hashes * values.size))
        for start in range(0, self.sizes.size, step):
            part = slice(start, start + step)
            yield part, indicators(self.mechanism, self.cohorts[part], values)


def indicators(m: CohortMechanism, cohorts: Indices, values: Indices) -> Any:
    """1{y is a cell of s} for the rows (j, y) of some cohorts and the columns of some values."""
    from scipy.sparse import coo_array

    table = m.cell_table(cohorts, values)
    rows = table + np.arange(cohorts.size)[:, None, None] * m.width
    columns = np.broadcast_to(np.arange(values.size), table.shape)
    shape = cohorts.size * m.width, values.size
    matrix = coo_array((np.ones(table.size), (rows.ravel(), columns.ravel())), shape=shape).tocsr()
    matrix.data[:] = 1.0  # a cell that two hash functions of a value share is set once
    return matrix
