"""Independent bits with an exact probability, sixty-four at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.jit import kernel
from deniable.randomness import Keystream, Words

#: Binary digits of the threshold that are compared for all bits at once. A bit is still undecided
#: after them with probability 2**-PLANES and is then settled by a word of its own.
PLANES = 8
#: Output words a block.
BLOCK = 64
_WORST = BLOCK * (PLANES + 64)


@kernel
def _compare_digits(words: Words, threshold: np.uint64, less: Words, equal: Words) -> None:
    """Compare 64 * BLOCK numbers u with T by their first PLANES binary digits.

    ``less`` gets the lanes where the first digit that differs says u < T, ``equal`` those where
    none differs yet. Word ``plane * BLOCK + j`` holds one digit of the 64 numbers of lane word j.
    """
    for j in range(BLOCK):
        smaller = np.uint64(0)
        same = ~smaller
        for plane in range(PLANES):
            digit = np.uint64(0) - ((threshold >> np.uint64(63 - plane)) & np.uint64(1))
            word = words[plane * BLOCK + j]
            smaller |= same & digit & ~word
            same &= ~(word ^ digit)
        less[j] = smaller
        equal[j] = same


@kernel
def _settle(
    less: Words, equal: Words, words: Words, threshold: np.uint64, open_words: NDArray[np.int64]
) -> int:
    """Decide the lanes left in ``equal``, each with a word of its own; return how many there
    were."""
    pending = 0
    for j in range(BLOCK):  # collect without a branch: most words have no open lane
        open_words[pending] = j
        pending += equal[j] != 0
    used = 0
    while pending:  # one lane of every open word a round
        still = 0
        for i in range(pending):
            j = open_words[i]
            lanes = equal[j]
            lane = lanes & (~lanes + np.uint64(1))
            below = np.uint64(words[used + i] >> np.uint64(PLANES) < threshold)
            less[j] |= lane & (np.uint64(0) - below)
            equal[j] = lanes ^ lane
            open_words[still] = j
            still += lanes != lane
        used += pending
        pending = still
    return used


@kernel
def _bernoulli(out: Words, start: int, words: Words, threshold: np.uint64) -> tuple[int, int]:
    """Fill ``out[start:]`` block by block while ``words`` last; return (next start, words used)."""
    less = np.empty(BLOCK, np.uint64)
    equal = np.empty(BLOCK, np.uint64)
    open_words = np.empty(BLOCK + 1, np.int64)
    low_threshold = (threshold << np.uint64(PLANES)) >> np.uint64(PLANES)
    used = 0
    while start < out.size and words.size - used >= _WORST:
        _compare_digits(words[used : used + BLOCK * PLANES], threshold, less, equal)
        used += BLOCK * PLANES
        if low_threshold:
            used += _settle(less, equal, words[used:], low_threshold, open_words)
        size = min(BLOCK, out.size - start)
        for j in range(size):
            out[start + j] = less[j]
        start += size
    return start, used


def fill_bernoulli(out: Words, threshold: int, keystream: Keystream) -> None:
    """Make every bit of ``out`` an independent coin with probability ``threshold / 2**64``."""
    done = 0
    while done < out.size:
        done, used = _bernoulli(out, done, keystream.lend(_WORST), np.uint64(threshold))
        keystream.use(used)


def as_words(rows: NDArray[np.uint8]) -> Words:
    """Packed rows as one flat run of words; the number of rows is a multiple of 8."""
    return rows.reshape(-1).view("<u8")


def as_rows(rows: NDArray[np.uint8]) -> NDArray[Any]:
    """Packed rows of 1, 2, 4 or 8m bytes as one 8, 16 or 32-bit word each, or m 64-bit words."""
    return rows.view(f"<u{min(8, rows.shape[1])}")


@kernel
def _place_in_word(rows: NDArray[Any], values: NDArray[np.uint32], own: NDArray[np.bool_]) -> None:
    """As `_place`, for rows of one word: a loop without indirection, for vector instructions."""
    for i in range(values.size):
        shift = np.uint64(values[i])
        others = np.uint64(rows[i]) & ~(np.uint64(1) << shift)
        rows[i] = others | (np.uint64(own[i]) << shift)


@kernel
def _place(rows: NDArray[Any], values: NDArray[np.uint32], own: NDArray[np.bool_]) -> None:
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
    values: NDArray[np.uint32],
    size: int,
    own: NDArray[np.bool_],
    zero: int,
    keystream: Keystream,
) -> None:
    """Unary encodings of ``values``, whose own bits are ``own``."""
    fill_bernoulli(as_words(rows), zero, keystream)
    if rows.shape[1] <= 8:
        _place_in_word(as_rows(rows)[:, 0], values, own)
    else:
        _place(as_rows(rows), values, own)
    clear_padding(rows, size)
