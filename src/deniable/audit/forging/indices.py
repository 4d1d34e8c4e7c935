"""Forged reports that are an index, or a hash function and an index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from deniable.arrays import Data, Floats, Integers
from deniable.audit.forging.admissible import AdmissibleReports, SupportReports, highest
from deniable.audit.forging.tails import binomial_pvalue
from deniable.mechanisms import BRR, GRR, HR
from deniable.mechanisms.hadamard import walsh_hadamard
from deniable.mechanisms.hadamard_signs import SignMechanism
from deniable.mechanisms.local_hashing import LocalHashing
from deniable.randomness import SCALE

#: Hash functions that a forger looks through, and parts of their range that are compared.
SEARCHED, PARTS = 1 << 14, 16


class IndexReports(AdmissibleReports):
    """Any index is admissible."""

    def any(self, weights: Integers, rng: Generator) -> Data:
        return rng.integers(0, self.mechanism.cells, len(weights)).astype(self.mechanism.dtype)


class ValueReports(IndexReports, SupportReports):
    """Randomised response: a report supports one value."""

    def supported(self, weights: Integers) -> tuple[Any, Any]:
        return weights.min(axis=-1), weights.max(axis=-1)

    def diameter(self) -> float:
        return 2 / float(self.mechanism.p - self.mechanism.q)

    def contributions(self, data: Data) -> Floats:
        m = self.mechanism
        supports = data[:, None] == np.arange(m.domain.size)
        return np.asarray((supports - float(m.q)) / float(m.p - m.q))

    def best(self, weights: Integers, rng: Generator) -> Data:
        return highest(weights, rng).astype(self.mechanism.dtype)

    hidden = best


class SignReports(IndexReports, SupportReports):
    """A row and a sign: the sign +1 of row 0 supports every value, -1 none."""

    uncorrelated = True

    def _contrasts(self, weights: Integers) -> Integers:
        """sum_v w_v H[j, c_v] for every row j."""
        m = self.mechanism
        placed = np.zeros((*weights.shape[:-1], m.rows), dtype=np.int64)
        placed[..., m.columns(np.arange(m.domain.size))] = weights
        return walsh_hadamard(placed.reshape(-1, m.rows)).reshape(placed.shape)

    def supported(self, weights: Integers) -> tuple[Any, Any]:
        total = weights.sum(axis=-1)
        most = np.abs(self._contrasts(weights)).max(axis=-1)
        return (total - most) / 2, (total + most) / 2

    def best(self, weights: Integers, rng: Generator) -> Data:
        contrasts = self._contrasts(weights)
        rows = highest(np.abs(contrasts), rng)
        return self._indices(rows, contrasts, rng)

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """The row is drawn as it should be; the sign supports the larger part."""
        rows = rng.integers(0, self.mechanism.rows, len(weights))
        return self._indices(rows, self._contrasts(weights), rng)

    def _indices(self, rows: Integers, contrasts: Integers, rng: Generator) -> Data:
        found = np.take_along_axis(contrasts, rows[:, None], axis=1)[:, 0]
        tie = rng.integers(0, 2, len(rows))
        odd = np.where(found == 0, tie, found < 0)
        return np.asarray(2 * rows + odd).astype(self.mechanism.dtype)

    def contributions(self, data: Data) -> Floats:
        m = self.mechanism
        columns = m.columns(np.arange(m.domain.size)).astype(np.uint64)
        index = data.astype(np.uint64)
        odd = np.bitwise_count(index[:, None] >> np.uint64(1) & columns) + (index[:, None] & 1)
        return np.asarray((1.0 - 2.0 * (odd & 1)) / float(2 * m.p - 1))

    def draws(self, data: Data) -> list[float]:
        rows = self.mechanism.rows
        counts = np.bincount(data >> 1, minlength=rows)
        return [binomial_pvalue(counts, len(data), 1 / rows)] if rows > 1 else []


class HadamardReports(IndexReports):
    """Blocks: x_v = +-1 / t for the values of the report's block and 0 for others.

    The first index of a block is in the sets of all its values.
    """

    alike = True

    @property
    def _share(self) -> float:
        return float(self.mechanism.keep / SCALE)

    def _contrasts(self, weights: Integers) -> Integers:
        """t times the weighted sum of contributions, for every index."""
        m = self.mechanism
        blocks, rows = np.divmod(m.owners.astype(np.int64), 1 << 32)
        placed = np.zeros((*weights.shape[:-1], m.cells), dtype=np.int64)
        placed[..., blocks * m.block + rows] = weights
        return walsh_hadamard(placed.reshape(-1, m.block)).reshape(placed.shape)

    def extremes(self, weights: Integers) -> tuple[float, float]:
        contrasts = self._contrasts(weights)
        return float(contrasts.min()) / self._share, float(contrasts.max()) / self._share

    def diameter(self) -> float:
        """In one block the values whose signs differ count twice; in two all count once."""
        m = self.mechanism
        contrasts = self._contrasts(np.ones(m.domain.size, dtype=np.int64))
        table = contrasts.reshape(m.blocks, m.block)
        inside = (table[:, :1] - table).max()
        return float(max(inside, np.sort(table[:, 0])[-2:].sum() * (m.blocks > 1))) / self._share

    def best(self, weights: Integers, rng: Generator) -> Data:
        return highest(self._contrasts(weights), rng).astype(self.mechanism.dtype)

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """Any index that supports a target, as of a device that never lies about it."""
        m = self.mechanism
        blocks, rows = np.divmod(m.owners[highest(weights, rng)].astype(np.int64), 1 << 32)
        inner = rng.integers(0, m.block, len(weights))
        odd = np.bitwise_count(inner & rows) & 1
        return np.asarray(blocks * m.block + (inner ^ odd * (rows & -rows))).astype(m.dtype)


class HashedReports(SupportReports):
    """A hash function of the forger's choice: a constant one supports all values, or none.

    With weights of both signs the extremes are bounds.
    """

    uncorrelated = True

    def supported(self, weights: Integers) -> tuple[Any, Any]:
        return np.minimum(weights, 0).sum(axis=-1), np.maximum(weights, 0).sum(axis=-1)

    def any(self, weights: Integers, rng: Generator) -> Data:
        m = self.mechanism
        data = np.empty(len(weights), dtype=m.dtype)
        for name, size in zip("abcy", (m.modulus, m.modulus, m.modulus, m.g), strict=True):
            data[name] = rng.integers(0, size, len(weights))
        return data

    def best(self, weights: Integers, rng: Generator) -> Data:
        """Of many hash functions those with all targets in one cell; if there are none, constant
        ones."""
        wanted = weights[0]
        found = self.any(np.empty((SEARCHED, 0), dtype=np.int64), rng)
        found["y"], held = self._fullest(found, wanted, rng)
        found = found[held == np.maximum(wanted, 0).sum()]
        if not len(found):
            found = self.any(weights, rng)
            found["a"], found["b"] = 0, 0
            found["y"] = self._cells(found, np.zeros(1, dtype=np.int64))[:, 0]
        return found[rng.integers(0, len(found), len(weights))]

    def hidden(self, weights: Integers, rng: Generator) -> Data:
        """The hash function is drawn as it should be; the cell is that with most targets."""
        data = self.any(weights, rng)
        data["y"] = self._fullest(data, weights[0], rng)[0]
        return data

    def _fullest(self, data: Data, wanted: Integers, rng: Generator) -> tuple[Integers, Integers]:
        """The cell of each hash function with most of the wanted weight, and that weight."""
        values = np.flatnonzero(wanted)
        n, g = len(data), self.mechanism.g
        places = np.arange(n)[:, None] * g + self._cells(data, values)
        weights = np.broadcast_to(wanted[values], places.shape)
        sums = np.bincount(places.ravel(), weights.ravel(), minlength=n * g).reshape(n, g)
        return highest(sums, rng), sums.max(axis=1).astype(np.int64)

    def _cells(self, data: Data, values: Integers) -> Integers:
        return np.asarray(self.mechanism.keys_of(data[:, None], values), dtype=np.int64)

    def contributions(self, data: Data) -> Floats:
        m = self.mechanism
        supports = self._cells(data, np.arange(m.domain.size)) == data["y"][:, None]
        return np.asarray((supports - float(m.q)) / float(m.p - m.q))

    def draws(self, data: Data) -> list[float]:
        """Coefficients spread evenly over parts of their range, and no hash function twice."""
        modulus, n = self.mechanism.modulus, len(data)
        edges = -(-np.arange(PARTS + 1) * modulus // PARTS)
        found = []
        for name in "abc":
            parts = data[name].astype(np.int64) * PARTS // modulus
            counts = np.bincount(parts, minlength=PARTS)
            some = np.diff(edges) > 0
            found.append(binomial_pvalue(counts[some], n, np.diff(edges)[some] / modulus))
        twice = n - len(np.unique(data[["a", "b", "c"]]))
        chance = n**2 / (2 * float(modulus) ** 3)
        return [*found, min(1.0, chance) if twice else 1.0]


INDICES: dict[type, type[AdmissibleReports]] = {
    GRR: ValueReports,
    BRR: ValueReports,
    SignMechanism: SignReports,
    HR: HadamardReports,
    LocalHashing: HashedReports,
}
