"""The public hash functions of cohorts: which cells a value has, and sums over cells.

Every client computes the same cells. Nothing here is random or secret: the seed is published.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable.answers.text import OUTSIDE, text_code, text_codes
from deniable.arrays import Integers
from deniable.core.domain import Domain
from deniable.errors import InvalidArgument
from deniable.mechanisms.cohorts.collisions import Collisions
from deniable.randomness import SCALE
from deniable.splitmix import mixed, mixed_all, permuted

Some: TypeAlias = slice | Integers

LIMITS = {
    "cohorts": (1, 1 << 16),
    "width": (2, 1 << 16),
    "hashes": (1, 16),
    "permuted": (0, 1),
    "seed": (0, (1 << 32) - 1),
}


class PublicHashes:
    """``hashes`` functions from values to 0..width-1 for each of ``cohorts`` cohorts.

    A value is hashed by its code, 64 bits: the cell is floor(S(code xor key) width / 2**64) with a
    key for each function and SplitMix64's S. Or, for a list of answers, values are ``permuted`` and
    dealt out to the cells in turn, which makes them meet less often.
    """

    domain: Domain
    cohorts: int
    width: int
    seed: int
    hashes: int = 1
    permuted: int = 0

    @property
    def is_open(self) -> bool:
        """Whether answers may be any text."""
        return self.domain.is_open

    def cells_of(self, value: int, cohort: int) -> list[int]:
        """The cell of a value (an index, or the code of a text) under each hash of a cohort."""
        first = mixed(self.seed) + cohort * self.hashes
        keys = [mixed((first + number) % SCALE) for number in range(self.hashes)]
        if self.permuted:
            return [permuted(value, key, self.domain.size) % self.width for key in keys]
        code = self._code(value)
        return [mixed(code ^ key) * self.width >> 64 for key in keys]

    def _code(self, value: int) -> int:
        """One of `codes`, without making all."""
        if not self.domain.is_listed:
            return value
        texts = self.domain.texts
        if self.domain.is_open and value == self.domain.size - 1:
            raise InvalidArgument("value", OUTSIDE, "a candidate: the outside has no cells")
        return mixed(value) if texts is None else text_code(texts[value])

    @cached_property
    def codes(self) -> NDArray[np.uint64]:
        """What stands for each listed value where it is hashed: numbers of 64 bits."""
        if self.domain.texts is not None and not self.permuted:
            return text_codes(self.domain.texts)
        indices = np.arange(self.domain.size, dtype=np.uint64)
        return indices if self.permuted else mixed_all(indices)

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """The hash functions: one key for each cohort and hash."""
        numbers = np.arange(self.cohorts * self.hashes, dtype=np.uint64)
        keys = mixed_all(numbers + np.uint64(mixed(self.seed)))
        return keys.reshape(self.cohorts, self.hashes)

    @property
    def sizes(self) -> tuple[np.uint64, np.uint64, np.uint64]:
        """(width, size, bits) as the kernels want them; size 0 unless values are permuted."""
        size = self.domain.size if self.permuted else 0
        return np.uint64(self.width), np.uint64(size), np.uint64(size.bit_length())

    @cached_property
    def collisions(self) -> Collisions:
        """How often values meet."""
        if self.permuted:
            return Collisions.of_permutation(self.width, self.domain.size)
        return Collisions.of_hashes(self.width, self.hashes)

    def cell_table(
        self, cohorts: Some = slice(None), values: Some = slice(None)
    ) -> NDArray[np.uint32]:
        """The cells of the listed values by cohort, hash function and value."""
        from deniable.kernels.cohorts import cells_of_codes

        keys, codes = self.keys[cohorts], self.codes[values]
        table = np.empty((*keys.shape, codes.size), dtype=np.uint32)
        cells_of_codes(codes, keys, self.sizes, table)
        return table

    def sums_over_cells(self, table: NDArray[Any]) -> NDArray[Any]:
        """For each value the sum of ``table[cohort, cell]`` over its cells."""
        from deniable.kernels.cohorts import sums_over_cells
        from deniable.kernels.threads import run

        out = np.zeros(self.codes.size, dtype=table.dtype)

        def work(part: slice) -> None:
            sums_over_cells(table, self.codes[part], self.keys, self.sizes, out[part])

        run(work, _parts(self.codes.size, self.keys.size))
        return out

    def masses_of_cells(self, weights: NDArray[Any], cohorts: Some = slice(None)) -> NDArray[Any]:
        """For each cohort and cell the weight of the values that have it: the transpose."""
        from deniable.kernels.cohorts import masses_of_cells
        from deniable.kernels.threads import run

        keys = self.keys[cohorts]
        table = np.zeros((len(keys), self.width), dtype=weights.dtype)

        def work(part: slice) -> None:
            masses_of_cells(weights, self.codes, keys[part], self.sizes, table[part])

        run(work, _parts(len(keys), self.hashes * self.codes.size))
        return table


def _parts(count: int, work: int) -> list[slice]:
    """Cut ``count`` things for all cores; a thread is worth it for about a million hashes."""
    from deniable.kernels.threads import thread_count

    step = max(1, (1 << 20) // work, -(-count // thread_count(None)))
    return [slice(start, start + step) for start in range(0, count, step)]
