"""Local hashing: reports, and how many of them support each value.

A hash is h(v) = ((a v + b) v + c) mod P with P <= 2**31 - 1, and a value lies in cell y when h(v)
is in the interval [first(y), first(y + 1)), first(y) = ceil(y P / g). So a support is an interval
test, and going from v to v + 1 needs two additions modulo P: h += d, d += 2 a.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.kernels.bounded import bounded
from deniable.kernels.jit import inlined, kernel
from deniable.randomness import Words

#: Users whose running hashes fit into the first-level cache.
USERS = 512


@kernel
def hashed_reports(
    out: NDArray[Any],
    values: NDArray[np.uint32],
    words: Words,
    modulus: np.uint64,
    cells: np.uint64,
    keep: np.uint64,
) -> None:
    """Five words a report, as in `LocalHashing.report`: the three coefficients, cell, coin."""
    for i in range(values.size):
        a = bounded(words[5 * i], modulus)
        b = bounded(words[5 * i + 1], modulus)
        c = bounded(words[5 * i + 2], modulus)
        v = np.uint64(values[i])
        h = (((a * v + b) % modulus) * v + c) % modulus
        drawn = bounded(words[5 * i + 3], cells)
        out[i].a = a
        out[i].b = b
        out[i].c = c
        out[i].y = (h * cells) // modulus if words[5 * i + 4] < keep else drawn


@inlined
def _add(x: Any, y: Any, modulus: Any) -> Any:
    """(x + y) mod P for x, y < P < 2**31: below P the difference wraps round and loses."""
    total = np.uint32(x + y)
    return min(total, np.uint32(total - modulus))


@kernel
def _advance(state: NDArray[np.uint32], modulus: np.uint32, counts: Counts, value: int) -> None:
    """Count the users of the state whose cell holds value .. value + 3, and move on by four."""
    n0 = n1 = n2 = n3 = np.uint32(0)
    for i in range(USERS):
        h = state[i]
        d = state[USERS + i]
        dd = state[2 * USERS + i]
        first = state[3 * USERS + i]
        width = state[4 * USERS + i]
        n0 = np.uint32(n0 + np.uint32(np.uint32(h - first) < width))
        h = _add(h, d, modulus)
        d = _add(d, dd, modulus)
        n1 = np.uint32(n1 + np.uint32(np.uint32(h - first) < width))
        h = _add(h, d, modulus)
        d = _add(d, dd, modulus)
        n2 = np.uint32(n2 + np.uint32(np.uint32(h - first) < width))
        h = _add(h, d, modulus)
        d = _add(d, dd, modulus)
        n3 = np.uint32(n3 + np.uint32(np.uint32(h - first) < width))
        state[i] = _add(h, d, modulus)
        state[USERS + i] = _add(d, dd, modulus)
    counts[value] += n0
    counts[value + 1] += n1
    counts[value + 2] += n2
    counts[value + 3] += n3


@kernel
def _start(
    state: NDArray[np.uint32], reports: NDArray[Any], modulus: np.uint64, firsts: NDArray[np.uint32]
) -> None:
    """The state of v = 0: h = c, d = a + b, 2 a, and the interval of the reported cell.

    A place without a report gets an empty interval and so never counts.
    """
    state[:] = 0
    for i in range(reports.size):
        a = np.uint64(reports[i].a)
        state[i] = reports[i].c
        state[USERS + i] = (a + np.uint64(reports[i].b)) % modulus
        state[2 * USERS + i] = (a + a) % modulus
        y = reports[i].y
        state[3 * USERS + i] = firsts[y]
        state[4 * USERS + i] = firsts[y + 1] - firsts[y]


@kernel
def support_counts(
    reports: NDArray[Any], modulus: np.uint64, firsts: NDArray[np.uint32], counts: Counts
) -> None:
    """Add to ``counts[v]`` the reports whose cell holds v. ``counts`` is a multiple of 4 long."""
    state = np.empty(5 * USERS, np.uint32)
    for begin in range(0, reports.size, USERS):
        _start(state, reports[begin : begin + USERS], modulus, firsts)
        for value in range(0, counts.size, 4):
            _advance(state, np.uint32(modulus), counts, value)
