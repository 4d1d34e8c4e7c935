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
from deniable.mechanisms.mixing import FIRST, GOLDEN, ROUNDS, SECOND
from deniable.randomness import Words

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
    """`mechanisms.mixing.permuted`, with the number of bits of the size."""
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
def cells_of_codes(
    codes: Words,
    keys: NDArray[np.uint64],
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    out: NDArray[np.uint32],
) -> None:
    """``out[cohort, hash, v]``: the cell of every code."""
    width, size, bits = sizes
    for cohort in range(keys.shape[0]):
        for j in range(keys.shape[1]):
            for v in range(codes.size):
                out[cohort, j, v] = _cell(codes[v], keys[cohort, j], width, size, bits)


@kernel
def sums_over_cells(
    table: NDArray[Any],
    codes: Words,
    keys: NDArray[np.uint64],
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    out: NDArray[Any],
) -> None:
    """Add to ``out[v]`` the entries of ``table[cohort, cell]`` in the cells of v."""
    width, size, bits = sizes
    for cohort in range(keys.shape[0]):
        row = table[cohort]
        for j in range(keys.shape[1]):
            key = keys[cohort, j]
            for v in range(codes.size):
                out[v] += row[_cell(codes[v], key, width, size, bits)]


@kernel
def masses_of_cells(
    weights: NDArray[Any],
    codes: Words,
    keys: NDArray[np.uint64],
    sizes: tuple[np.uint64, np.uint64, np.uint64],
    table: NDArray[Any],
) -> None:
    """Add the weight of every value to ``table[cohort, cell]`` in its cells: the transpose."""
    width, size, bits = sizes
    for cohort in range(keys.shape[0]):
        row = table[cohort]
        for j in range(keys.shape[1]):
            key = keys[cohort, j]
            for v in range(codes.size):
                row[_cell(codes[v], key, width, size, bits)] += weights[v]


@kernel
def bit_sums(rows: NDArray[np.uint8], cohorts: NDArray[Any], table: NDArray[np.int64]) -> None:
    """Add the bits of every packed row to ``table[cohort]``, as wide as a row has bits."""
    for i in range(rows.shape[0]):
        sums = table[cohorts[i]]
        for byte in range(rows.shape[1]):
            bits = np.int64(rows[i, byte])
            for bit in range(8):
                sums[8 * byte + bit] += (bits >> bit) & 1
