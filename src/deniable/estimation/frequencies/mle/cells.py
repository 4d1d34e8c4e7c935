"""The likelihood of reports that are one cell: counts say as much about it as the reports."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from deniable.arrays import Counts, Floats, Indices
from deniable.estimation.frequencies.mle.supports import (
    Gram,
    LikelihoodTerm,
    SeenGram,
    Subsample,
    Sums,
    unknown_family,
)
from deniable.mechanisms import HR
from deniable.mechanisms.frequency import FrequencyOracle
from deniable.mechanisms.hadamard_signs import SignMechanism


class CountedTerm(LikelihoodTerm):
    """Reports that are one cell: their counts are all that the likelihood needs."""

    def __init__(self, mechanism: FrequencyOracle, counts: Counts) -> None:
        super().__init__(mechanism, int(counts.sum()))
        self.counts = counts

    def sums(self, f: Floats, threads: int | None, *, squares: bool) -> Sums:
        x = 1 + self.gain * self.forward(f)
        shares = self.counts / x
        value = float(self.counts @ np.log(x))
        by_value = [self.backward(shares)]
        if squares:
            by_value.append(self.backward(shares / x))
        return Sums(np.array([value, shares.sum(), (shares / x).sum()]), np.array(by_value))

    def moments(self, f: Floats, values: Indices, sample: Subsample, start: int = 0) -> SeenGram:
        d = self.counts / (1 + self.gain * self.forward(f)) ** 2
        gram = Gram(float(d.sum()), self.backward(d)[values], self.pairs(d, values))
        return SeenGram(self.n, gram)

    def forward(self, f: Floats) -> Floats:
        """The frequency f(S_y) of the values that cell y supports; here only y itself."""
        return f

    def backward(self, shares: Floats) -> Floats:
        """The sum of ``shares`` over the cells that support v."""
        return shares

    def pairs(self, d: Floats, values: Indices) -> Floats:
        """The sum of d over the cells that support both of two values."""
        return np.diag(d[values])


class HadamardTerm(CountedTerm):
    """Cell (block, y) supports the rows r of its block with H[r, y] = 1, i.e. (1 + H[r, y]) / 2.

    So every sum over supports is half the Walsh-Hadamard transform plus half the block's total.
    Row 0 belongs to no value: it is where the block's total goes in, and comes out. ``shape`` is
    (number of blocks, size of a block); value v owns row ``row[v]`` of block ``block[v]``.
    """

    def __init__(
        self,
        mechanism: FrequencyOracle,
        counts: Counts,
        shape: tuple[int, int],
        block: Indices,
        row: Indices,
    ) -> None:
        super().__init__(mechanism, counts)
        self.shape, self.block, self.row = shape, block, row

    @classmethod
    def of_responses(cls, mechanism: HR, counts: Counts) -> HadamardTerm:
        block, row = np.divmod(mechanism.value_places, mechanism.block - 1)
        return cls(mechanism, counts, (mechanism.blocks, mechanism.block), block, row + 1)

    @classmethod
    def of_signs(cls, mechanism: SignMechanism, counts: Counts) -> HadamardTerm:
        """One block of all cells: cell 2 j + bit supports column c if H[2 c + 1, 2 j + bit] = 1."""
        values = np.arange(mechanism.domain.size)
        row = 2 * mechanism.columns(values).astype(np.int64) + 1
        return cls(mechanism, counts, (1, mechanism.cells), np.zeros_like(values), row)

    def forward(self, f: Floats) -> Floats:
        placed = np.zeros(self.shape)
        placed[self.block, self.row] = f
        placed[:, 0] = placed.sum(axis=1)
        return _transformed(placed).reshape(-1) / 2

    def backward(self, shares: Floats) -> Floats:
        contrasts = self._contrasts(shares)
        sums: Floats = contrasts[self.block, 0] + contrasts[self.block, self.row]
        return sums / 2

    def pairs(self, d: Floats, values: Indices) -> Floats:
        """(1 + H[r]) (1 + H[s]) / 4 and H[r] H[s] = H[r xor s]."""
        contrasts = self._contrasts(d)
        block, row = self.block[values], self.row[values]
        single = contrasts[block, row]
        joint = contrasts[block, 0] + single + single[:, None]
        joint += contrasts[block[:, None], row[:, None] ^ row]
        same = block[:, None] == block
        return np.where(same, joint / 4, 0.0)

    def blocks(self, f: Floats) -> tuple[Indices, Floats]:
        d = self.counts / (1 + self.gain * self.forward(f)) ** 2
        own = d.reshape(self.shape).sum(axis=1) * self.gain**2 / 4
        return self.block, own * (1 - 1 / self.shape[0])

    def _contrasts(self, shares: Floats) -> Floats:
        return _transformed(shares.reshape(self.shape).copy())


def _transformed(rows: Floats) -> Floats:
    from deniable.kernels.likelihood import transform

    transform(rows)
    return rows


@singledispatch
def term_of_counts(mechanism: FrequencyOracle, counts: Counts) -> LikelihoodTerm:
    """Counts as a part of the likelihood; families say which values a cell supports."""
    if not mechanism.direct:
        raise unknown_family(mechanism)
    return CountedTerm(mechanism, counts)


@term_of_counts.register
def _(mechanism: HR, counts: Counts) -> LikelihoodTerm:
    return HadamardTerm.of_responses(mechanism, counts)


@term_of_counts.register
def _(mechanism: SignMechanism, counts: Counts) -> LikelihoodTerm:
    return HadamardTerm.of_signs(mechanism, counts)
