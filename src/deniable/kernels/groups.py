"""Counts by group: the indices, or the bit columns of packed rows, of each cohort.

Rows come in any order of their groups, so each group has bit-sliced counters of its own: eight
digits a column, enough for 255 rows. A row is added with a ripple of carries, 64 columns an
instruction or more, and only a full counter is added to the table bit by bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.kernels.bits import as_rows
from deniable.kernels.jit import kernel
from deniable.randomness import Words

#: Words whose counters lie side by side, digit after digit; a constant, so that the compiler sees
#: that digits do not overlap and works on whole vector registers.
LINE = 16
DIGITS = 8
FULL = (1 << DIGITS) - 1
#: Bytes of rows that are copied out of their records at once: what the cache holds.
PIECE_BYTES = 1 << 18


@kernel
def index_counts(groups: NDArray[Any], indices: NDArray[Any], table: Counts) -> None:
    """Add one to ``table[group, index]`` for every report."""
    for i in range(groups.size):
        table[np.uint64(groups[i]), np.uint64(indices[i])] += 1


@kernel
def _add_words(digits: Words, row: NDArray[Any], count: int) -> None:
    """Add the bits of ``count`` (at most LINE) words to their counters."""
    for lane in range(count):
        carry = np.uint64(row[lane])
        for digit in range(DIGITS):
            old = digits[digit * LINE + lane]
            digits[digit * LINE + lane] = old ^ carry
            carry &= old


@kernel
def _drain(digits: Words, sums: Counts) -> None:
    """Add the counters of at most 64 LINE columns to their sums, and clear them."""
    for lane in range(-(-sums.size // 64)):
        columns = sums[64 * lane : 64 * lane + 64]
        for bit in range(columns.size):
            count = np.uint64(0)
            for digit in range(DIGITS):
                one = (digits[digit * LINE + lane] >> np.uint64(bit)) & np.uint64(1)
                count += one << np.uint64(digit)
            columns[bit] += np.int64(count)
    digits[:] = 0


@kernel
def _drain_group(lines: NDArray[np.uint64], sums: Counts) -> None:
    for line in range(lines.shape[0]):
        _drain(lines[line], sums[64 * LINE * line : 64 * LINE * (line + 1)])


@kernel
def _add_rows(
    rows: NDArray[Any],
    groups: NDArray[Any],
    digits: NDArray[np.uint64],
    held: Counts,
    table: Counts,
) -> None:
    """Add rows to ``digits[group, line]``, which hold ``held[group]`` rows so far."""
    words = rows.shape[1]
    for i in range(rows.shape[0]):
        group = groups[i]
        for line in range(digits.shape[1]):
            start = line * LINE
            _add_words(digits[group, line], rows[i, start:], min(LINE, words - start))
        held[group] += 1
        if held[group] == FULL:
            _drain_group(digits[group], table[group])
            held[group] = 0


@kernel
def _drain_all(digits: NDArray[np.uint64], held: Counts, table: Counts) -> None:
    for group in range(held.size):
        if held[group]:
            _drain_group(digits[group], table[group])


def bit_counts(rows: NDArray[np.uint8], groups: NDArray[Any], size: int) -> Counts:
    """``table[group, bit]``: the column sums of the packed rows of each of ``size`` groups.

    Rows may lie apart, as in records; they have 1, 2, 4 or a multiple of 8 bytes.
    """
    width = rows.shape[1]
    table = np.zeros((size, 8 * width), dtype=np.int64)
    lines = -(-width // (8 * LINE))
    digits = np.zeros((size, lines, DIGITS * LINE), dtype=np.uint64)
    held = np.zeros(size, dtype=np.int64)
    step = max(1, PIECE_BYTES // width)
    for start in range(0, len(rows), step):
        piece = np.ascontiguousarray(rows[start : start + step])
        some = np.ascontiguousarray(groups[start : start + step])
        _add_rows(as_rows(piece), some, digits, held, table)
    _drain_all(digits, held, table)
    return table
