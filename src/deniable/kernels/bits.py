"""Independent bits with an exact probability, sixty-four at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Bools, Indices
from deniable.kernels.jit import kernel
from deniable.randomness import Keystream, Words

#: Binary digits of the threshold that are compared for all bits at once. A bit is still undecided
#: after them with probability 2**-PLANES and is then settled by a word of its own.
PLANES = 8
#: Output words whose digits are compared together.
SPAN = 512


@kernel
def _compare_digits(words: Words, threshold: np.uint64, less: Words, equal: Words) -> None:
    """Compare 64 * SPAN numbers u with T by their first PLANES binary digits.

    ``less`` gets the lanes where the first digit that differs says u < T, ``equal`` those where
    none differs yet. Word ``plane * SPAN + j`` holds one digit of the 64 numbers of lane word j.
    """
    for j in range(SPAN):
        smaller = np.uint64(0)
        same = ~smaller
        for plane in range(PLANES):
            digit = np.uint64(0) - ((threshold >> np.uint64(63 - plane)) & np.uint64(1))
            word = words[plane * SPAN + j]
            smaller |= same & digit & ~word
            same &= ~(word ^ digit)
        less[j] = smaller
        equal[j] = same


@kernel
def _settle(
    out: Words,
    places: Indices,
    lanes: Words,
    pending: int,
    words: Words,
    low: np.uint64,
    tail: np.uint64,
) -> int:
    """Decide one open lane of each of ``pending`` words by a word of its own; return what is left.

    ``lanes[i]`` are the open lanes of ``out[places[i]]``, ``low`` the digits of T not compared yet.
    If T has a ``tail`` a second word settles what the first leaves equal.
    """
    still = 0
    stride = 1 + (tail != 0)
    for i in range(pending):
        place = places[i]
        lane = lanes[i] & (~lanes[i] + np.uint64(1))
        digits = words[stride * i] >> np.uint64(PLANES)
        equal = (digits == low) & (words[stride * i + stride - 1] < tail)
        below = np.uint64((digits < low) | equal)
        out[place] |= lane & (np.uint64(0) - below)
        places[still] = place
        lanes[still] = lanes[i] ^ lane
        still += lanes[still] != 0
    return still


@kernel
def _bernoulli(
    out: Words,
    start: int,
    pending: int,
    words: Words,
    threshold: np.uint64,
    tail: np.uint64,
    places: Indices,
    lanes: Words,
) -> tuple[int, int, int]:
    """Go on while ``words`` last; return (next word to draw, words still open, words used)."""
    less = np.empty(SPAN, np.uint64)
    equal = np.empty(SPAN, np.uint64)
    low = (threshold << np.uint64(PLANES)) >> np.uint64(PLANES)
    used = 0
    while True:
        while pending:
            needed = pending * (1 + (tail != 0))
            if words.size - used < needed:
                return start, pending, used
            pending = _settle(out, places, lanes, pending, words[used:], low, tail)
            used += needed
        if start == out.size or words.size - used < SPAN * PLANES:
            return start, pending, used
        _compare_digits(words[used : used + SPAN * PLANES], threshold, less, equal)
        used += SPAN * PLANES
        size = min(SPAN, out.size - start)
        for j in range(size):
            out[start + j] = less[j]
            places[pending] = start + j
            lanes[pending] = equal[j]
            pending += (equal[j] != 0) & ((low | tail) != 0)
        start += size


def fill_bernoulli(out: Words, threshold: int, keystream: Keystream, tail: int = 0) -> None:
    """Make every bit of ``out`` an independent coin.

    Its probability is (``threshold`` + ``tail`` / 2**64) / 2**64, exactly.
    """
    places = np.empty(SPAN + 1, dtype=np.int64)
    lanes = np.empty(SPAN + 1, dtype=np.uint64)
    start = pending = 0
    while start < out.size or pending:
        words = keystream.lend(SPAN * PLANES)
        start, pending, used = _bernoulli(
            out, start, pending, words, np.uint64(threshold), np.uint64(tail), places, lanes
        )
        keystream.use(used)


def as_words(rows: NDArray[np.uint8]) -> Words:
    """Packed rows as one flat run of words; the number of rows is a multiple of 8."""
    return rows.reshape(-1).view("<u8")


def as_rows(rows: NDArray[np.uint8]) -> NDArray[Any]:
    """Packed rows of 1, 2, 4 or 8m bytes as one 8, 16 or 32-bit word each, or m 64-bit words."""
    return rows.view(f"<u{min(8, rows.shape[1])}")


@kernel
def _place_in_word(rows: NDArray[Any], values: NDArray[np.uint32], own: Bools) -> None:
    """As `_place`, for rows of one word: a loop without indirection, for vector instructions."""
    for i in range(values.size):
        shift = np.uint64(values[i])
        others = np.uint64(rows[i]) & ~(np.uint64(1) << shift)
        rows[i] = others | (np.uint64(own[i]) << shift)


@kernel
def _place(rows: NDArray[Any], values: NDArray[np.uint32], own: Bools) -> None:
    """Set in row i the bit of ``values[i]`` to ``own[i]``."""
    for i in range(values.size):
        at = values[i] >> np.uint32(6)
        shift = np.uint64(values[i] & np.uint32(63))
        others = np.uint64(rows[i, at]) & ~(np.uint64(1) << shift)
        rows[i, at] = others | (np.uint64(own[i]) << shift)


@kernel
def _mask_last_word(rows: NDArray[Any], mask: np.uint64) -> None:
    last = rows.shape[1] - 1
    for i in range(rows.shape[0]):
        rows[i, last] = np.uint64(rows[i, last]) & mask


def clear_padding(rows: NDArray[np.uint8], size: int) -> None:
    """Clear the bits ``size..`` of every row."""
    if size % (8 * rows.shape[1]):
        _mask_last_word(as_rows(rows), np.uint64((1 << (size - 1) % 64 + 1) - 1))


def fill_unary(
    rows: NDArray[np.uint8],
    ones: NDArray[np.uint32],
    size: int,
    own: Bools,
    zero: int,
    keystream: Keystream,
    tail: int = 0,
) -> None:
    """Unary encodings: the bits ``ones[:, i]`` of row i are ``own``, others as `fill_bernoulli`."""
    fill_bernoulli(as_words(rows), zero, keystream, tail)
    for values, bits in zip(ones, own, strict=True):
        if rows.shape[1] <= 8:
            _place_in_word(as_rows(rows)[:, 0], np.ascontiguousarray(values), bits)
        else:
            _place(as_rows(rows), np.ascontiguousarray(values), bits)
    clear_padding(rows, size)
