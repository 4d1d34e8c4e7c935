"""Reports that are a set of values, packed: value v is bit v % 8 of byte v // 8 of a row."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.core.layout import Bits, Layout
from deniable.mechanisms.frequency import FrequencyOracle


class PackedMechanism(FrequencyOracle):
    """What the unary encodings and subset selection share."""

    @cached_property
    def layout(self) -> Layout:
        return self.sets

    @cached_property
    def sets(self) -> Bits:
        """The layout of one set of values."""
        return Bits(self.domain.size)

    @property
    def row_bytes(self) -> int:
        """The bytes of one set."""
        return self.sets.width

    def told(self, data: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        """Whether the value is in the set."""
        return unpacked(data, self.domain.size)[:, values]

    def empty_rows(self, n: int) -> NDArray[np.uint8]:
        """Room for n rows, and as many more as make 8 of them: kernels fill whole words."""
        return np.empty((-(-n // 8) * 8, self.row_bytes), dtype=np.uint8)


def has_bit(row: bytes, value: int) -> bool:
    """Whether the bit of the value is set."""
    return bool(row[value >> 3] >> (value & 7) & 1)


def unpacked(rows: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """The first ``size`` bits of each packed row, of bytes or of words, as zeros and ones."""
    data = np.ascontiguousarray(rows).view(np.uint8)
    return np.unpackbits(data, axis=1, count=size, bitorder="little")
