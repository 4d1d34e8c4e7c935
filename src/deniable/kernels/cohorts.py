"""Public hash functions shared by cohorts: the cells of values, and sums over cells.

The hash function of a cohort is a 64-bit key. A code (64 bits that stand for a value) goes to cell
floor(S(code xor key) width / 2**64), S being SplitMix64's output; or, for ``size`` > 0, values
0..size-1 are permuted by a keyed bijection and dealt out modulo the width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.bounded import bounded
from deniable.kernels.jit import inlined, kernel
from deniable.randomness import Words
from deniable.splitmix import FIRST, GOLDEN, RANKED, ROUNDS, SECOND

_GOLDEN, _FIRST, _SECOND = np.uint64(GOLDEN), np.uint64(FIRST), np.uint64(SECOND)


@inlined
def _mixed(x: Any) -> Any:
    """SplitMix64's output for the state x."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@inlined
def _permuted(value: Any, key: Any, size: Any, bits: Any) -> Any:
    """`splitmix.permuted`, with the number of bits of the size."""
    if size <= np.uint64(RANKED):
        own = _mixed(key + value)
        rank = np.uint64(0)
        for other in range(size):
            rank += np.uint64(_mixed(key + np.uint64(other)) < own)
        return rank
    mask = (np.uint64(1) << bits) - np.uint64(1)
    half = (bits + np.uint64(1)) >> np.uint64(1)
    x = value
    while True:
        for step in range(ROUNDS):
            word = _mixed(key + np.uint64(step))
            x = (x * (word | np.uint64(1)) + (word >> np.uint64(32))) & mask
            x ^= x >> half
        if x < size:
            return x


@inlined
def _cell(code: Any, key: Any, width: Any, size: Any, bits: Any) -> Any:
    if size == np.uint64(0):
        return bounded(_mixed(code ^ key), width)
    return _permuted(code, key, size, bits) % width


@kernel
def cohort_cells(
    cohorts: NDArray[np.uint32],
    cells: NDArray[np.uint32],
    codes: Words,
    words: Words,
    keys: NDArray[np.uint64],
    sizes: tuple[np.uint64, np.uint64, np.uint64],
) -> None:
    """One word a report draws its cohort; then the cell of the code under each of its hashes.

    ``keys[cohort, hash]``; ``cells[report, hash]``; ``sizes`` is (width, size, bits).
    """
    width, size, bits = sizes
    for i in range(codes.size):
        cohort = bounded(words[i], np.uint64(keys.shape[0]))
        cohorts[i] = cohort
        for j in range(keys.shape[1]):
            cells[i, j] = _cell(codes[i], keys[cohort, j], width, size, bits)


@kernel
def _hashed_cells(
    codes: Words, key: np.uint64, width: np.uint64, cells: NDArray[np.uint32]
) -> None:
    """The cells of some codes under one hash function."""
    for v in range(codes.size):
        cells[v] = np.uint32(bounded(_mixed(codes[v] ^ key), width))


@kernel
def _dealt_cells(
    codes: Words,
    key: np.uint64,
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    cells: NDArray[np.uint32],
) -> None:
    """The cells of some values under one permutation: `_permuted` modulo the width.

    The words of the rounds are drawn once for all values, and numbers have 32 bits, as many as a
    size: both leave a loop for vector instructions. Those who must walk on do so together.
    """
    width, size, bits = sizes
    places = np.arange(codes.size)
    walking = np.empty(codes.size, np.uint32)
    for v in range(codes.size):
        walking[v] = np.uint32(codes[v])
    left = codes.size
    while left:
        for step in range(ROUNDS):
            _round(walking[:left], _mixed(key + np.uint64(step)), bits)
        still = 0
        for i in range(left):
            place, x = places[i], walking[i]
            cells[place] = x
            places[still] = place
            walking[still] = x
            still += x >= size
        left = still
    _remainders(cells, width)


@kernel
def _round(x: NDArray[np.uint32], word: np.uint64, bits: np.uint64) -> None:
    """One round of `_permuted` on many numbers."""
    multiplier = np.uint32(word | np.uint64(1))
    summand = np.uint32(word >> np.uint64(32))
    mask = np.uint32((np.uint64(1) << bits) - np.uint64(1))
    half = np.uint32((bits + np.uint64(1)) >> np.uint64(1))
    for v in range(x.size):
        y = np.uint32(np.uint32(x[v] * multiplier) + summand) & mask
        x[v] = y ^ (y >> half)


@kernel
def _remainders(x: NDArray[np.uint32], width: np.uint64) -> None:
    """x mod width for x < 2**31 without division.

    With 2**(s - 1) < width <= 2**s, floor(x ceil(2**(31 + s) / width) / 2**(31 + s)) is the
    quotient for all these x (Granlund and Montgomery 1994), and the product is below 2**63.
    """
    shift = np.uint64(31)
    while (np.uint64(1) << (shift - np.uint64(31))) < width:
        shift += np.uint64(1)
    inverse = ((np.uint64(1) << shift) + width - np.uint64(1)) // width
    for v in range(x.size):
        quotient = (np.uint64(x[v]) * inverse) >> shift
        x[v] = np.uint32(np.uint64(x[v]) - quotient * width)


@kernel
def _cells(
    codes: Words,
    key: np.uint64,
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    cells: NDArray[np.uint32],
) -> None:
    """The cells of some codes under one hash function of either kind."""
    if sizes[1] == np.uint64(0):
        _hashed_cells(codes, key, sizes[0], cells)
    elif sizes[1] <= np.uint64(RANKED):
        for v in range(codes.size):
            cells[v] = _permuted(codes[v], key, sizes[1], sizes[2]) % sizes[0]
    else:
        _dealt_cells(codes, key, sizes, cells)


@kernel
def cells_of_codes(
    codes: Words,
    keys: NDArray[np.uint64],
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    out: NDArray[np.uint32],
) -> None:
    """``out[cohort, hash, v]``: the cell of every code."""
    for cohort in range(keys.shape[0]):
        for j in range(keys.shape[1]):
            _cells(codes, keys[cohort, j], sizes, out[cohort, j])


@inlined
def _piece(width: Any) -> Any:
    """Values whose cells are found together: in the cache, and enough for a row of the table."""
    return min(8192, max(1024, 4 * np.int64(width)))


@kernel
def sums_over_cells(
    table: NDArray[Any],
    codes: Words,
    keys: NDArray[np.uint64],
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    out: NDArray[Any],
) -> None:
    """Add to ``out[v]`` the entries of ``table[cohort, cell]`` in the cells of v."""
    piece = _piece(sizes[0])
    buffer = np.empty(piece, np.uint32)
    for start in range(0, codes.size, piece):
        some = codes[start : start + piece]
        sums = out[start : start + piece]
        cells = buffer[: some.size]
        for cohort in range(keys.shape[0]):
            row = table[cohort]
            for j in range(keys.shape[1]):
                _cells(some, keys[cohort, j], sizes, cells)
                for v in range(some.size):
                    sums[v] += row[cells[v]]


@kernel
def masses_of_cells(
    weights: NDArray[Any],
    codes: Words,
    keys: NDArray[np.uint64],
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    table: NDArray[Any],
) -> None:
    """Add the weight of every value to ``table[cohort, cell]`` in its cells: the transpose."""
    piece = _piece(sizes[0])
    buffer = np.empty(piece, np.uint32)
    for start in range(0, codes.size, piece):
        some = codes[start : start + piece]
        masses = weights[start : start + piece]
        cells = buffer[: some.size]
        for cohort in range(keys.shape[0]):
            row = table[cohort]
            for j in range(keys.shape[1]):
                _cells(some, keys[cohort, j], sizes, cells)
                for v in range(some.size):
                    row[cells[v]] += masses[v]
