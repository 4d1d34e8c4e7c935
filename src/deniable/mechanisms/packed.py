"""Reports that are a set of values, packed: value v is bit v % 8 of byte v // 8 of a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument
from deniable.mechanisms.base import Counts, Mechanism


class PackedMechanism(Mechanism):
    """What the unary encodings and subset selection share."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype((np.uint8, (self.row_bytes,)))

    @property
    def row_bytes(self) -> int:
        """1, 2, 4 or a multiple of 8 bytes: rows then never straddle a machine word."""
        needed = -(-self.domain.size // 8)
        return -(-needed // 8) * 8 if needed > 4 else 1 << (needed - 1).bit_length()

    @property
    def bits_per_report(self) -> int:
        return self.domain.size

    def pack_bits(self, supported: Iterable[int]) -> bytes:
        """A row with the bits of the supported values set."""
        row = bytearray(self.row_bytes)
        for value in supported:
            row[value >> 3] |= 1 << (value & 7)
        return bytes(row)

    def empty_rows(self, n: int) -> NDArray[np.uint8]:
        """Room for n rows, and as many more as make 8 of them: kernels fill whole words."""
        return np.empty((-(-n // 8) * 8, self.row_bytes), dtype=np.uint8)

    def count(self, data: NDArray[Any]) -> Counts:
        from deniable.kernels.columns import column_sums

        rows = np.ascontiguousarray(data).reshape(-1)
        words = np.zeros(-(-rows.size // 8), dtype="<u8") if rows.size % 8 else rows.view("<u8")
        if rows.size % 8:
            words.view(np.uint8)[: rows.size] = rows
        sums = column_sums(words, 8 * self.row_bytes)
        if sums[self.domain.size :].any():
            allowed = f"rows whose bits from {self.domain.size} on are zero"
            raise InvalidArgument("reports", "a padding bit that is set", allowed)
        return sums[: self.domain.size]


def has_bit(row: bytes, value: int) -> bool:
    """Whether the bit of the value is set."""
    return bool(row[value >> 3] >> (value & 7) & 1)


def unpacked(rows: NDArray[Any], size: int) -> NDArray[np.uint8]:
    """The first ``size`` bits of each packed row, of bytes or of words, as zeros and ones."""
    data = np.ascontiguousarray(rows).view(np.uint8)
    return np.unpackbits(data, axis=1, count=size, bitorder="little")
