"""The likelihood of Bloom filters: a report is as likely under a value as each of its bits says.

With r_1 = p / q and r_0 = (1 - p) / (1 - q), w_is is the product of r over the bits of value s in
report i, and the likelihood sum_s f_s w_is up to a factor. It has no short form: every pass makes
the reports x values matrix anew, in pieces. An unknown answer has the mean of w over all filters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Indices
from deniable.estimation.frequencies.mle.supports import (
    Gram,
    LikelihoodTerm,
    SeenGram,
    Subsample,
    Sums,
    pieces,
)
from deniable.mechanisms.cohorts.base import CohortBits
from deniable.mechanisms.packed import unpacked


class BloomRows(LikelihoodTerm):
    """Rows by cohort: ``groups`` holds (cohort, rows). In the place of supports stands w - 1."""

    mechanism: CohortBits

    def __init__(self, mechanism: CohortBits, data: NDArray[Any]) -> None:
        super().__init__(mechanism, len(data), gain=1.0)
        self.data, self.groups = data, by_cohort(data)
        self.open = mechanism.domain.is_open
        p, q = float(mechanism.inner.p), float(mechanism.inner.q)
        self.ratios = np.array([(1 - p) / (1 - q), p / q])
        self.unknown = _unknown(mechanism.width, mechanism.hashes, self.ratios)

    def sums(self, f: Floats, threads: int | None, *, squares: bool) -> Sums:
        """The second sum by value is of (w^2 - 1) / 3, as a support's would be with gain 1."""
        totals, by_value = np.zeros(3), np.zeros((1 + squares, f.size))
        for weights in self._weights():
            x = weights @ f
            totals += np.log(x).sum(), (1 / x).sum(), (1 / x**2).sum()
            by_value[0] += (1 / x) @ weights - (1 / x).sum()
            if squares:
                by_value[1] += (1 / x**2 @ weights**2 - (1 / x**2).sum()) / 3
        return Sums(totals, by_value)

    def moments(self, f: Floats, values: Indices, sample: Subsample, start: int = 0) -> SeenGram:
        total, single, pairs = 0.0, np.zeros(values.size), np.zeros((values.size, values.size))
        some = BloomRows(self.mechanism, self.data[sample.rows(start)])
        for weights in some._weights():
            x = weights @ f
            extra = (weights[:, values] - 1) / x[:, None]
            total += float((1 / x**2).sum())
            single += (1 / x) @ extra
            pairs += extra.T @ extra
        return SeenGram(some.n, Gram(total, single, pairs))

    def _weights(self) -> Iterator[Floats]:
        """The rows of w, a piece at a time."""
        for cohort, rows in self.groups:
            cells = self.mechanism.cell_table(slice(cohort, cohort + 1))[0]
            for piece in pieces(0, len(rows), 8 * cells.shape[1]):
                yield self._matrix(rows[piece], cells)

    def _matrix(self, rows: NDArray[np.uint8], cells: NDArray[np.uint32]) -> Floats:
        from deniable.kernels.likelihood import bloom_weights

        size = cells.shape[1]
        weights = np.empty((len(rows), size + self.open))
        bloom_weights(rows, cells, self.ratios, weights[:, :size])
        if self.open:
            bits = unpacked(rows, self.mechanism.width)
            weights[:, size] = self.unknown[bits.sum(axis=1, dtype=np.int64)]
        return weights


def by_cohort(data: NDArray[Any]) -> list[tuple[int, NDArray[Any]]]:
    """Every cohort that reported, with its rows."""
    order = np.argsort(data["cohort"], kind="stable")
    cohorts, first = np.unique(data["cohort"][order], return_index=True)
    groups = np.split(np.ascontiguousarray(data["report"][order]), first[1:])
    return list(zip(cohorts.tolist(), groups, strict=cohorts.size > 0))


def _unknown(width: int, hashes: int, ratios: Floats) -> Floats:
    """The mean of w over all filters, for a row with 0..width ones.

    h uniform cells are m different ones with probability P_m; all sets of m are equally likely, and
    i of them are among the ones as often as the hypergeometric law says.
    """
    from scipy.stats import hypergeom

    sizes = np.arange(hashes + 1)
    different = (sizes == 0).astype(np.float64)
    for _ in range(hashes):
        again, fresh = different * sizes / width, different * (1 - sizes / width)
        different = again + np.append(0.0, fresh[:-1])
    ones = np.arange(width + 1)
    mean = np.zeros(width + 1)
    for m in range(1, min(hashes, width) + 1):
        for i in range(m + 1):
            law = hypergeom.pmf(i, width, ones, m)
            mean += different[m] * law * ratios[1] ** i * ratios[0] ** (m - i)
    return mean
