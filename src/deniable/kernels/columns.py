"""Column sums of packed bit rows, at the speed of memory.

The rows are read as lines of LINE words. Sixteen lines go through a tree of carry-save adders
(Harley and Seal): bit-sliced counters hold the ones, twos, fours and eights of every column, and
what overflows, a line of sixteens, goes through a second tree of the same kind. Only its
overflow, once in 256 lines, is added to the columns' counters bit by bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.arrays import Counts
from deniable.kernels.jit import inlined, kernel
from deniable.randomness import Words

LINE = 16
_TREE = 16
_LINES = _TREE * LINE
_OVERFLOW = 4 * LINE
_COUNTER = _OVERFLOW + LINE
_WIDE = 1024
_LONG = 1 << 18
#: Words whose bits are faster spread out and summed than prepared for the trees.
_SHORT = 256


@inlined
def _add(a: Any, b: Any, c: Any) -> Any:
    """Carry-save adder: a + b + c = sum + 2 carry, in every bit position."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@inlined
def _add_eight(lines: Any, at: int, ones: Any, twos: Any, fours: Any) -> Any:
    """Add the words of eight lines to the bit-sliced counter (ones, twos, fours) with its carry."""
    ones, a = _add(ones, lines[at], lines[at + LINE])
    ones, b = _add(ones, lines[at + 2 * LINE], lines[at + 3 * LINE])
    twos, c = _add(twos, a, b)
    ones, a = _add(ones, lines[at + 4 * LINE], lines[at + 5 * LINE])
    ones, b = _add(ones, lines[at + 6 * LINE], lines[at + 7 * LINE])
    twos, d = _add(twos, a, b)
    fours, carry = _add(fours, c, d)
    return ones, twos, fours, carry


@kernel
def _add_lines(lines: Words, counter: Words) -> None:
    """Add sixteen consecutive lines to a bit-sliced counter of four digits and an overflow.

    Two flat arrays and constant offsets: the compiler sees that nothing overlaps and works on
    whole vector registers.
    """
    for j in range(LINE):
        ones, twos, fours = counter[j], counter[LINE + j], counter[2 * LINE + j]
        ones, twos, fours, a = _add_eight(lines, j, ones, twos, fours)
        ones, twos, fours, b = _add_eight(lines, j + 8 * LINE, ones, twos, fours)
        eights, carry = _add(counter[3 * LINE + j], a, b)
        counter[j] = ones
        counter[LINE + j] = twos
        counter[2 * LINE + j] = fours
        counter[3 * LINE + j] = eights
        counter[_OVERFLOW + j] = carry


@kernel
def _drain(digit: Words, weight: int, sums: Counts) -> None:
    """Add ``weight`` to the sum of every column whose bit is set in ``digit``."""
    for j in range(LINE):
        word = digit[j]
        column = sums[64 * j : 64 * j + 64]
        for bit in range(64):
            column[bit] += np.int64((word >> np.uint64(bit)) & np.uint64(1)) * weight


@kernel
def _gather(words: Words, start: int, stride: int, lines: Words) -> None:
    """Copy sixteen lines that lie ``stride`` words apart side by side."""
    for row in range(_TREE):
        source = np.uint64(start + row * stride)
        for j in range(LINE):
            lines[np.uint64(row * LINE + j)] = words[source + np.uint64(j)]


@kernel
def _sum_lines(words: Words, period: int, count: int, sums: Counts) -> None:
    """Column sums of the first ``count`` stretches of ``period`` words (count: a multiple of 16).

    A stretch is ``period / LINE`` lines side by side, each with counters of its own, so that the
    words are read once and in order.
    """
    blocks = period // LINE
    low = np.zeros((blocks, _COUNTER), np.uint64)
    high = np.zeros((blocks, _COUNTER), np.uint64)
    sixteens = np.zeros((blocks, _LINES), np.uint64)
    lines = np.empty(_LINES, np.uint64)
    groups = count // _TREE
    for group in range(groups):
        start = group * _TREE * period
        slot = group % _TREE
        for b in range(blocks):
            _gather(words, start + b * LINE, period, lines)
            _add_lines(lines, low[b])
            sixteens[b, slot * LINE : (slot + 1) * LINE] = low[b, _OVERFLOW:]
            if slot == _TREE - 1 or group == groups - 1:
                sixteens[b, (slot + 1) * LINE :] = 0
                _add_lines(sixteens[b], high[b])
                _drain(high[b, _OVERFLOW:], _TREE * _TREE, sums[64 * LINE * b :])
    for b in range(blocks):
        for i in range(4):
            digit = slice(i * LINE, (i + 1) * LINE)
            _drain(low[b, digit], 1 << i, sums[64 * LINE * b :])
            _drain(high[b, digit], _TREE << i, sums[64 * LINE * b :])


def _folded_sums(words: Words, period: int, row_bits: int) -> Counts:
    """Column sums of rows that repeat after ``period`` words."""
    sums = np.zeros(64 * period, dtype=np.int64)
    if words.size:
        _sum_lines(words, period, words.size // period, sums)
    folded: Counts = sums.reshape(-1, row_bits).sum(axis=0)
    return folded


def column_sums(words: Words, row_bits: int) -> Counts:
    """Sums of the bit columns of packed rows: ``row_bits`` is 8, 16, 32 or a multiple of 64.

    Rows shorter than a word share one; the columns of all rows in it are folded at the end, like
    those of the rows that share a stretch. Long inputs are read in wide stretches: sixteen streams
    a few pages apart keep the memory busier than one.
    """
    if words.size <= _SHORT:
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        return np.asarray(bits.reshape(-1, row_bits).sum(axis=0, dtype=np.int64))
    narrow = math.lcm(LINE, max(1, row_bits // 64))
    wide = narrow * -(-_WIDE // narrow)
    split = words.size // (wide * _TREE) * wide * _TREE if words.size >= _LONG else 0
    rest = np.zeros(-(-(words.size - split) // (narrow * _TREE)) * narrow * _TREE, np.uint64)
    rest[: words.size - split] = words[split:]
    return _folded_sums(words[:split], wide, row_bits) + _folded_sums(rest, narrow, row_bits)
