"""Reports that are one index of 0..cells-1, in the smallest unsigned integer that holds it."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument
from deniable.mechanisms.base import Counts, Mechanism
from deniable.privacy import Guarantee, kept_below
from deniable.randomness import SCALE


class IndexMechanism(Mechanism):
    """What randomised response and Hadamard response share."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return index_dtype(self.cells)

    @property
    def bits_per_report(self) -> int:
        return index_bits(self.cells)

    def possible_counts(self, counts: Counts, n: int) -> bool:
        return super().possible_counts(counts, n) and int(counts.sum()) == n

    def count(self, data: NDArray[Any]) -> Counts:
        from deniable.kernels.direct import histogram

        if data.size and (highest := int(data.max())) >= self.cells:
            raise InvalidArgument("reports", highest, f"indices of 0..{self.cells - 1}")
        return histogram(data, self.cells)


class KeptBit(IndexMechanism):
    """A bit of the value is kept with p = keep / 2**64 = e^eps / (e^eps + 1), else flipped."""

    thresholds = ("keep",)
    two_valued = True
    keep: int

    def _derive(self, name: str) -> int:
        return kept_below(self.epsilon)

    @cached_property
    def guarantee(self) -> Guarantee:
        odds = Fraction(self.keep, SCALE - self.keep)
        return Guarantee(max(odds, 1 / odds))

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, SCALE)


def index_dtype(size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds 0..size-1."""
    return np.min_scalar_type(size - 1)


def index_bits(size: int) -> int:
    """The bits that an index of 0..size-1 needs."""
    return (size - 1).bit_length()
