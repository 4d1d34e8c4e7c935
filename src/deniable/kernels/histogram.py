"""Bytes drawn from a table of integer weights, and the sums of their columns."""

from __future__ import annotations

from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Indices
from deniable.kernels.jit import kernel
from deniable.randomness import Keystream, Words

#: Binary digits of a number that settle nearly every draw, draws that are made together, and the
#: mark of digits that do not settle theirs.
DIGITS = 16
SPAN = 1 << 14
OPEN = 256
#: Rows whose bytes a 16-bit counter can sum: 255 * 257 = 2**16 - 1.
ROWS = 256
_PERIOD = 64
_SPREAD = 0x0001000100010001
_BYTES = np.uint64(0xFF * _SPREAD)
_CARRIES = np.uint64(0xFF00 * _SPREAD)

Bytes = NDArray[np.uint8]
Digits = NDArray[np.uint16]


@lru_cache(maxsize=16)
def guide_table(edges: tuple[int, ...]) -> tuple[Digits, Words]:
    """``guide[d]``: how many edges are at most d 2**48, plus OPEN if more lie before the next d;
    and the edges as words."""
    words = np.array(edges, dtype=np.uint64)
    starts = np.arange(1 << DIGITS, dtype=np.uint64) << np.uint64(64 - DIGITS)
    found = np.append(np.searchsorted(words, starts, side="right"), len(edges))
    return (found[:-1] + OPEN * (np.diff(found) > 0)).astype(np.uint16), words


@kernel
def _draw(out: Bytes, digits: Digits, guide: Digits, places: Indices) -> int:
    """Draw by the first digits alone; return how many of ``places`` need the others, too."""
    pending = 0
    for i in range(out.size):
        found = guide[np.uint64(digits[i])]
        out[i] = found
        if found >= OPEN:  # rare: a branch costs less than a store
            places[pending] = i
            pending += 1
    return pending


@kernel
def _settle_draws(out: Bytes, digits: Digits, places: Indices, words: Words, edges: Words) -> None:
    """Draw again with the same first digits and 48 more of a word of its own."""
    for i in range(words.size):
        place = places[i]
        first = np.uint64(digits[place]) << np.uint64(64 - DIGITS)
        number = first | (words[i] >> np.uint64(DIGITS))
        index = np.int64(out[place])
        while index < edges.size and edges[index] <= number:
            index += 1
        out[place] = index


@kernel
def _mirror(rows: Bytes, values: NDArray[np.uint32], last: np.uint8) -> None:
    """Turn the byte b of the own value into last - b."""
    for i in range(values.size):
        rows[i, values[i]] = last - rows[i, values[i]]


def fill_histograms(
    rows: Bytes, values: NDArray[np.uint32], edges: tuple[int, ...], keystream: Keystream
) -> None:
    """Rows of bytes drawn as `Coins.pick` draws from ``edges``, the own one mirrored."""
    guide, table = guide_table(edges)
    places = np.empty(SPAN, dtype=np.int64)
    flat = rows.reshape(-1)
    for start in range(0, flat.size, SPAN):
        out = flat[start : start + SPAN]
        # A copy: the words lent are overwritten when more are drawn.
        digits = keystream.words(-(-out.size * DIGITS // 64)).copy().view("<u2")
        pending = _draw(out, digits, guide, places)
        _settle_draws(out, digits, places, keystream.words(pending), table)
    _mirror(rows, values, np.uint8(len(edges)))


@kernel
def _sum_bytes(words: Words, period: int, spare: np.uint64, sums: Counts) -> np.uint64:
    """Add the bytes of stretches of ``period`` words to ``sums``, eight a word.

    Even and odd bytes go to 16-bit counters, four a word, which are emptied after ROWS stretches.
    Returns what is not 0 if a byte plus ``spare`` (four times a number of 0..255) exceeds 255.
    """
    even, odd = np.zeros(period, np.uint64), np.zeros(period, np.uint64)
    large = np.uint64(0)
    stretches = words.size // period
    for s in range(stretches):
        line = words[s * period : (s + 1) * period]
        for j in range(period):
            low = line[j] & _BYTES
            high = (line[j] >> np.uint64(8)) & _BYTES
            large |= (low + spare) | (high + spare)
            even[j] += low
            odd[j] += high
        if s % ROWS == ROWS - 1 or s == stretches - 1:
            for j in range(period):
                for i in range(4):
                    shift = np.uint64(16 * i)
                    sums[8 * j + 2 * i] += np.int64((even[j] >> shift) & np.uint64(0xFFFF))
                    sums[8 * j + 2 * i + 1] += np.int64((odd[j] >> shift) & np.uint64(0xFFFF))
                even[j] = odd[j] = 0
    return large & _CARRIES


def byte_sums(rows: NDArray[Any], last: int) -> tuple[Counts, bool]:
    """The column sums of rows of bytes, and whether no byte exceeds ``last``.

    Rows are read in stretches of whole words, at least _PERIOD; what is left over is padded.
    """
    width = rows.shape[1]
    period = lcm(width, 8) // 8
    period *= -(-_PERIOD // period)
    flat = np.ascontiguousarray(rows).reshape(-1)
    split = flat.size // (8 * period) * 8 * period
    rest = np.zeros(8 * period, dtype=np.uint8)
    rest[: flat.size - split] = flat[split:]
    sums = np.zeros(8 * period, dtype=np.int64)
    spare = np.uint64((0xFF - last) * _SPREAD)
    large = [_sum_bytes(part.view("<u8"), period, spare, sums) for part in (flat[:split], rest)]
    total: Counts = sums.reshape(-1, width).sum(axis=0)
    return total, not any(large)
