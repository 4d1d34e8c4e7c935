"""Uniformly random subsets of a fixed size, as packed bits.

Small subsets of small domains are drawn by Floyd's algorithm on one machine word. Otherwise every
row starts as independent bits of roughly the right density; then random members leave or random
outsiders join until the size is right. Neither step prefers one value to another, so by symmetry
every subset of the final size is equally likely, exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Bools, Integers
from deniable.kernels.bits import as_rows, as_words, clear_padding
from deniable.kernels.jit import inlined, kernel
from deniable.randomness import BLOCK_WORDS, Keystream, Words

#: Densities are multiples of 1/8: three words make 64 such bits.
_EIGHTHS = 3
_SMALL_SUBSET = 8
_LOW = np.uint64(0xFFFFFFFF)
_SIX = np.uint64(6)
_LOW_SIX = np.uint64(63)


@kernel
def _sprinkle(out: Words, words: Words, eighths: np.uint64) -> None:
    """Independent bits with probability ``eighths / 8``, by comparing three binary digits."""
    for j in range(out.size):
        less = np.uint64(0)
        equal = ~less
        for plane in range(_EIGHTHS):
            digit = np.uint64(0) - ((eighths >> np.uint64(_EIGHTHS - 1 - plane)) & np.uint64(1))
            word = words[plane * out.size + j]
            less |= equal & digit & ~word
            equal &= ~(word ^ digit)
        out[j] = less


@inlined
def bit_count(word: Any) -> Any:
    """The number of ones of a 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def row_sizes(rows: NDArray[Any], sizes: Integers) -> None:
    """How many bits of each row are set."""
    for row in range(rows.shape[0]):
        size = 0
        for word in rows[row]:
            size += bit_count(np.uint64(word))
        sizes[row] = size


@kernel
def _resize(
    rows: NDArray[Any],
    sizes: Integers,
    values: NDArray[np.uint32],
    kept: Bools,
    omega: int,
    size: np.uint64,
    begin: int,
    words: Words,
) -> tuple[int, int]:
    """Bring rows ``begin..`` from ``sizes`` to ``omega``; return (first open row, words used).

    The value itself is in its row exactly if ``kept``. A row that is cut off when the words run out
    simply goes on with the next ones: what is left to do depends on the row alone.
    """
    half = 0
    biased = (_LOW + np.uint64(1)) % size
    one = np.uint64(1)
    for index in range(begin, values.size):
        row = rows[index]
        own = np.uint64(values[index])
        own_word = np.uint64(row[own >> _SIX])
        missing = omega - sizes[index] - np.int64(kept[index])
        missing += np.int64((own_word >> (own & _LOW_SIX)) & one)
        wanted = np.uint64(missing > 0)
        left = abs(missing)
        while left:
            if half == 2 * words.size:
                sizes[index] += missing - (left if missing > 0 else -left)
                return index, words.size
            product = ((words[half >> 1] >> np.uint64(32 * (half & 1))) & _LOW) * size
            half += 1
            at = product >> np.uint64(32)
            word = np.uint64(row[at >> _SIX])
            changes = ((word >> (at & _LOW_SIX)) & one) != wanted
            changes &= (product & _LOW) >= biased
            changes &= at != own
            row[at >> _SIX] = word ^ (np.uint64(changes) << (at & _LOW_SIX))
            left -= np.int64(changes)
        own_word = np.uint64(row[own >> _SIX]) & ~(one << (own & _LOW_SIX))
        row[own >> _SIX] = own_word | (np.uint64(kept[index]) << (own & _LOW_SIX))
    return values.size, (half + 1) >> 1


@kernel
def _floyd(
    rows: NDArray[Any],
    values: NDArray[np.uint32],
    kept: Bools,
    omega: int,
    size: int,
    begin: int,
    words: Words,
) -> tuple[int, int]:
    """Rows ``begin..`` from scratch, for one word a row; return (first undone row, words used).

    Floyd: for j = m - omega .. m - 1 draw t of 0..j and add t, or j if t is in already: a uniform
    subset of 0..m-1, here of the m = size - 1 other values. A kept value takes the place of the
    first member. A draw that would be biased is repeated.
    """
    half = 0
    one = np.uint64(1)
    for index in range(begin, values.size):
        chosen = np.uint64(0)
        for j in range(size - 1 - omega, size - 1):
            bound = np.uint64(j + 1)
            product = np.uint64(0)
            while True:
                if half == 2 * words.size:
                    return index, words.size
                product = ((words[half >> 1] >> np.uint64(32 * (half & 1))) & _LOW) * bound
                half += 1
                if (product & _LOW) >= bound or (product & _LOW) >= (_LOW + one) % bound:
                    break
            member = one << (product >> np.uint64(32))
            member = one << np.uint64(j) if chosen & member else member
            skipped = kept[index] and j == size - 1 - omega
            chosen |= np.uint64(0) if skipped else member
        own = np.uint64(values[index])
        below = (one << own) - one
        others = (chosen & below) | ((chosen & ~below) << one)
        rows[index, 0] = others | (np.uint64(kept[index]) << own)
    return values.size, (half + 1) >> 1


def fill_subsets(
    rows: NDArray[np.uint8],
    values: NDArray[np.uint32],
    size: int,
    omega: int,
    kept: Bools,
    keystream: Keystream,
) -> None:
    """Row i: a random ``omega`` of ``size`` values, ``values[i]`` among them if ``kept[i]``."""
    done = 0
    if omega <= _SMALL_SUBSET and size <= 64:
        while done < values.size:
            words = keystream.lend(1)
            done, used = _floyd(as_rows(rows), values, kept, omega, size, done, words)
            keystream.use(used)
        return
    sizes = _sprinkle_rows(rows, size, omega, keystream)
    while done < values.size:
        words = keystream.lend(1)
        done, used = _resize(
            as_rows(rows), sizes, values, kept, omega, np.uint64(size), done, words
        )
        keystream.use(used)


def _sprinkle_rows(
    rows: NDArray[np.uint8], size: int, omega: int, keystream: Keystream
) -> Integers:
    """Fill rows with independent bits of a density just below omega / size; return their sizes."""
    flat = as_words(rows)
    step = BLOCK_WORDS // _EIGHTHS
    for start in range(0, flat.size, step):
        part = flat[start : start + step]
        _sprinkle(part, keystream.words(_EIGHTHS * part.size), np.uint64(8 * omega // size))
    clear_padding(rows, size)
    sizes = np.empty(len(rows), dtype=np.int64)
    row_sizes(as_rows(rows), sizes)
    return sizes


def sizes_differ(rows: NDArray[np.uint8], omega: int) -> bool:
    """Whether any row has another number of bits set than ``omega``."""
    sizes = np.empty(len(rows), dtype=np.int64)
    row_sizes(as_rows(np.ascontiguousarray(rows)), sizes)
    return bool((sizes != omega).any())
