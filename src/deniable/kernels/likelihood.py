"""Passes over reports for the likelihood: sums over supports, forward from f and backward to it.

A packed row is read byte by byte. Forward, a table gives the frequency of each of the 256 sets of
eight values; backward, a histogram collects what belongs to each set. Both cost one memory access
a byte of the row, whatever the number of values in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.kernels.hashing import USERS, _add, _start
from deniable.kernels.jit import kernel

#: Rows whose sums stay in the first-level cache between the two halves of a pass.
ROWS = 1024
#: Factors 1 + gain f(S) multiplied before a logarithm is taken: e^32 to this power is finite.
_FACTORS = 16
#: ``_BITS[b, s]`` is 1 if the set (byte) s holds the value (bit) b.
_BITS = (np.arange(256) >> np.arange(8)[:, None] & 1).astype(np.float64)


@kernel
def _look_up(words: NDArray[Any], table: Floats, inside: Floats) -> None:
    """Add to ``inside[i]`` the table's entries for the eight bytes of ``words[i]``."""
    for i in range(words.size):
        word = np.uint64(words[i])
        total = inside[i]
        for j in range(8):
            total += table[j, (word >> np.uint64(8 * j)) & np.uint64(255)]
        inside[i] = total


@kernel
def _collect(words: NDArray[Any], shares: Floats, table: Floats) -> None:
    """Add ``shares[i]`` to the table's entries for the eight bytes of ``words[i]``."""
    for i in range(words.size):
        word = np.uint64(words[i])
        share = shares[i]
        for j in range(8):
            table[j, (word >> np.uint64(8 * j)) & np.uint64(255)] += share


@kernel
def _logarithms(inside: Floats, weights: Floats, gain: float) -> float:
    """Turn f(S_i) into x_i = 1 + gain f(S_i); return the sum of w_i log x_i."""
    value = 0.0
    product = 1.0
    for i in range(inside.size):
        x = 1.0 + gain * inside[i]
        inside[i] = x
        if weights.size:
            value += weights[i] * np.log(x)
        else:
            product *= x
            if i % _FACTORS == _FACTORS - 1:
                value += np.log(product)
                product = 1.0
    return value + float(np.log(product))


@kernel
def _shares(x: Floats, weights: Floats, out: Floats) -> float:
    """``out[i]`` = w_i / x_i (``out`` may be ``weights``); returns their sum."""
    total = 0.0
    for i in range(x.size):
        out[i] = (weights[i] if weights.size else 1.0) / x[i]
        total += out[i]
    return total


@kernel
def _packed_pass(
    words: NDArray[Any], weights: Floats, gain: float, table: Floats, sums: Floats
) -> tuple[float, float, float]:
    """One pass over packed rows: (sum w log x, sum w / x, sum w / x^2), x_i = 1 + gain f(S_i).

    ``sums[0]`` collects w / x and ``sums[1]``, where there is one, w / x^2 by bytes of the rows.
    """
    value = first = second = 0.0
    memory = np.empty(ROWS)
    shares = np.empty(ROWS)
    for start in range(0, words.shape[0], ROWS):
        block = words[start : start + ROWS]
        w = weights[start : start + ROWS]
        x = memory[: block.shape[0]]
        x[:] = 0.0
        for j in range(words.shape[1]):
            _look_up(block[:, j], table[8 * j : 8 * j + 8], x)
        value += _logarithms(x, w, gain)
        share = shares[: x.size]
        first += _shares(x, w, share)
        for j in range(words.shape[1]):
            _collect(block[:, j], share, sums[0, 8 * j : 8 * j + 8])
        if sums.shape[0] > 1:
            second += _shares(x, share, share)
            for j in range(words.shape[1]):
                _collect(block[:, j], share, sums[1, 8 * j : 8 * j + 8])
    return value, first, second


def packed_pass(
    words: NDArray[Any], weights: Floats, gain: float, f: Floats, *, squares: bool
) -> tuple[Floats, Floats]:
    """Sums over reports with x_i = 1 + gain f(S_i) and weights w_i (none: all 1).

    ``words`` has one row of unsigned words a report, bit v of the row for value v. Returns the
    totals (sum w log x, sum w / x, sum w / x^2), and for each value v the sums of w / x and, with
    ``squares``, of w / x^2 over the reports that support v.
    """
    columns = 8 * words.shape[1]
    padded = np.zeros(8 * columns)
    padded[: f.size] = f
    table = padded.reshape(columns, 8) @ _BITS
    sums = np.zeros((2 if squares else 1, columns, 256))
    totals = np.array(_packed_pass(words, weights, gain, table, sums))
    return totals, (sums @ _BITS.T).reshape(len(sums), -1)[:, : f.size]


@kernel
def _mark(state: NDArray[np.uint32], modulus: np.uint32, values: int, out: Any) -> None:
    """The next ``values`` (at most 32) values of the users of the state, as bits; and move on."""
    out[:] = 0
    for value in range(values):
        shift = np.uint32(value)
        for i in range(USERS):
            h = state[i]
            d = state[USERS + i]
            holds = np.uint32(h - state[3 * USERS + i]) < state[4 * USERS + i]
            out[i] |= np.uint32(np.uint32(holds) << shift)
            state[i] = _add(h, d, modulus)
            state[USERS + i] = _add(d, state[2 * USERS + i], modulus)


@kernel
def _hashed_rows(
    reports: NDArray[Any],
    modulus: np.uint64,
    firsts: NDArray[np.uint32],
    size: int,
    halves: NDArray[np.uint32],
) -> None:
    state = np.empty(5 * USERS, np.uint32)
    marks = np.empty(USERS, np.uint32)
    for begin in range(0, reports.size, USERS):
        users = min(USERS, reports.size - begin)
        _start(state, reports[begin : begin + users], modulus, firsts)
        for j in range((size + 31) // 32):
            _mark(state, np.uint32(modulus), min(32, size - 32 * j), marks)
            for i in range(users):
                halves[begin + i, j] = marks[i]


def hashed_rows(
    reports: NDArray[Any], modulus: int, firsts: NDArray[np.uint32], size: int
) -> NDArray[np.uint64]:
    """The supports of hashed reports as rows of 64-bit words, bit v for value v."""
    words = np.zeros((len(reports), -(-size // 64)), dtype="<u8")
    _hashed_rows(reports, np.uint64(modulus), firsts, size, words.view("<u4"))
    return words


@kernel
def transform(rows: Floats) -> None:
    """The Walsh-Hadamard transform of each row (a power of two long), in place."""
    for i in range(rows.shape[0]):
        row = rows[i]
        half = 1
        while half < row.size:
            for start in range(0, row.size, 2 * half):
                for j in range(start, start + half):
                    a = row[j]
                    b = row[j + half]
                    row[j] = a + b
                    row[j + half] = a - b
            half *= 2


@kernel
def bloom_weights(
    rows: NDArray[np.uint8],
    cells: NDArray[np.uint32],
    ratios: Floats,
    out: Floats,
) -> None:
    """``out[i, s]``: how much more likely row i is with the bits ``cells[:, s]`` than with none.

    ``ratios`` are those of a bit that is 0 and of one that is 1. Equal cells count once.
    """
    for i in range(rows.shape[0]):
        for s in range(cells.shape[1]):
            weight = 1.0
            for j in range(cells.shape[0]):
                cell = cells[j, s]
                new = True
                for earlier in range(j):
                    new = new and cells[earlier, s] != cell
                if new:
                    weight *= ratios[(rows[i, cell >> 3] >> (cell & 7)) & 1]
            out[i, s] = weight
