"""Sets of items: one of them by weight, random ones that share some with another, and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.kernels.bits import as_rows
from deniable.kernels.jit import inlined, kernel
from deniable.kernels.subset import bit_count
from deniable.randomness import Keystream, Words

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_LOW_SIX = np.uint64(63)


@kernel
def pick_items(
    out: NDArray[Any],
    places: NDArray[Any],
    words: Words,
    size: int,
    one: np.uint64,
    zero: np.uint64,
) -> None:
    """``out[i]``: a place of row i with weight ``one``, another with ``zero``, or else ``size``.

    A row has places in ascending order; those from ``size`` on are none.
    """
    for i in range(places.shape[0]):
        row = places[i]
        ticked = 0
        while ticked < row.size and row[ticked] < size:
            ticked += 1
        own = np.uint64(ticked) * one
        if words[i] < own:
            out[i] = row[words[i] // one]
            continue
        place = (words[i] - own) // zero
        for j in range(ticked):
            place += np.uint64(place >= np.uint64(row[j]))
        out[i] = min(place, np.uint64(size))


@inlined
def _has(row: Any, place: Any) -> Any:
    return (row[place >> _SIX] >> (place & _LOW_SIX)) & _ONE


@kernel
def _select(
    rows: NDArray[Any],
    places: NDArray[Any],
    shared: NDArray[np.int64],
    w: int,
    size: int,
    begin: int,
    words: Words,
) -> tuple[int, int]:
    """Rows ``begin..`` from scratch; return (first undone row, words used).

    Places are drawn until enough different ones of the row, and then of the others, are chosen. A
    draw that would be biased is repeated.
    """
    half = 0
    m = np.uint64(places.shape[1])
    whole = np.uint64(size)
    biased_m = (_LOW + _ONE) % m
    biased_whole = (_LOW + _ONE) % whole
    width = (size + 63) >> 6
    own = np.zeros(width, np.uint64)
    chosen = np.zeros(width, np.uint64)
    for index in range(begin, places.shape[0]):
        own[:] = np.uint64(0)
        chosen[:] = np.uint64(0)
        for place in places[index]:
            own[np.uint64(place) >> _SIX] |= _ONE << (np.uint64(place) & _LOW_SIX)
        mine, left = shared[index], w
        while left:
            if half == 2 * words.size:
                return index, words.size
            product = ((words[half >> 1] >> np.uint64(32 * (half & 1))) & _LOW) * (
                m if mine else whole
            )
            half += 1
            if (product & _LOW) < (biased_m if mine else biased_whole):
                continue
            place = product >> _HALF
            if mine:
                place = np.uint64(places[index, place])
            elif _has(own, place):
                continue
            if _has(chosen, place):
                continue
            chosen[place >> _SIX] |= _ONE << (place & _LOW_SIX)
            left -= 1
            mine -= np.int64(mine > 0)
        for word in range(width):
            rows[index, word] = chosen[word]
    return places.shape[0], (half + 1) >> 1


def select_sets(
    rows: NDArray[np.uint8],
    places: NDArray[Any],
    shared: NDArray[np.int64],
    w: int,
    size: int,
    keystream: Keystream,
) -> None:
    """Row i: a random ``w`` of ``size`` values, of which ``shared[i]`` are in ``places[i]``."""
    done, words_each = 0, as_rows(rows)
    words_each[:, (size + 63) >> 6 :] = 0
    while done < len(places):
        words = keystream.lend(1)
        done, used = _select(words_each, places, shared, w, size, done, words)
        keystream.use(used)


@kernel
def _pairs(rows: NDArray[Any], size: int, w: int, counts: NDArray[np.int64]) -> None:
    found = np.empty(w, np.int64)  # where the pairs of each value that is in the row begin
    for row in rows:
        n = 0
        for at in range(row.size):
            word = np.uint64(row[at])
            while word:
                low = word & (~word + _ONE)
                word ^= low
                place = 64 * at + bit_count(low - _ONE)
                if place >= size:
                    break
                for i in range(n):
                    counts[found[i] + place] += 1
                found[n] = size * place
                n += 1


def count_pairs(rows: NDArray[np.uint8], size: int, w: int) -> Counts:
    """How many packed rows of ``w`` values hold both of each two of the first ``size``."""
    counts = np.zeros(size * size, dtype=np.int64)
    _pairs(as_rows(np.ascontiguousarray(rows)), size, w, counts)
    return counts.reshape(size, size)[np.triu_indices(size, 1)]


@kernel
def _ask(
    rows: NDArray[Any],
    cells: Words,
    places: NDArray[Any],
    kept: Words,
    keep: np.uint64,
    w: int,
    size: int,
    begin: int,
    words: Words,
) -> tuple[int, int]:
    """Rows ``begin..`` from scratch; return (first undone row, words used)."""
    half = 0
    width = (size + 63) >> 6
    own = np.zeros(width, np.uint64)
    asked = np.zeros(width, np.uint64)
    bound = np.uint64(size)
    biased = (_LOW + _ONE) % bound
    for index in range(begin, places.shape[0]):
        own[:] = np.uint64(0)
        asked[:] = np.uint64(0)
        for place in places[index]:
            if place < size:
                own[np.uint64(place) >> _SIX] |= _ONE << (np.uint64(place) & _LOW_SIX)
        left = w
        while left:
            if half == 2 * words.size:
                return index, words.size
            product = ((words[half >> 1] >> np.uint64(32 * (half & 1))) & _LOW) * bound
            half += 1
            drawn = product >> _HALF
            if (product & _LOW) < biased or _has(asked, drawn):
                continue
            asked[drawn >> _SIX] |= _ONE << (drawn & _LOW_SIX)
            left -= 1
        cell = np.uint64(0)
        bit = np.uint64(0)
        for at in range(width):
            word = asked[at]
            rows[index, at] = word
            while word:
                low = word & (~word + _ONE)
                word ^= low
                cell |= np.uint64((own[at] & low) != 0) << bit
                bit += _ONE
        drawn = kept[2 * index] >> np.uint64(64 - w)
        cells[index] = cell if kept[2 * index + 1] < keep else drawn
    return places.shape[0], (half + 1) >> 1


def ask_items(
    rows: NDArray[np.uint8],
    cells: Words,
    places: NDArray[Any],
    kept: Words,
    keep: np.uint64,
    w: int,
    size: int,
    keystream: Keystream,
) -> None:
    """Row i: a random ``w`` of ``size`` values; cell i: which of them are in ``places[i]``.

    Or any cell, where the second of two words that were ``kept`` for it is not below ``keep``.
    """
    done, words_each = 0, as_rows(rows)
    words_each[:, (size + 63) >> 6 :] = 0
    while done < len(places):
        words = keystream.lend(1)
        done, used = _ask(words_each, cells, places, kept, keep, w, size, done, words)
        keystream.use(used)


@kernel
def _asked(
    rows: NDArray[Any],
    cells: NDArray[Any],
    size: int,
    names: int,
    w: int,
    counts: NDArray[np.int64],
    pairs: NDArray[np.int64],
) -> None:
    found = np.empty(w, np.int64)
    told = np.empty(w, np.int64)
    for index in range(rows.shape[0]):
        n = 0
        for at in range(rows.shape[1]):
            word = np.uint64(rows[index, at])
            while word:
                low = word & (~word + _ONE)
                word ^= low
                place = 64 * at + bit_count(low - _ONE)
                tick = np.int64((np.uint64(cells[index]) >> np.uint64(n)) & _ONE)
                counts[place] += 1
                counts[size + place] += tick
                if place < names:
                    for i in range(n):
                        pair = pairs[found[i], place]
                        pair[0] += 1
                        pair[1] += told[i] & tick
                        pair[2] += told[i]
                        pair[3] += tick
                found[n] = place
                told[n] = tick
                n += 1


def count_asked(
    rows: NDArray[np.uint8], cells: NDArray[Any], size: int, names: int, w: int
) -> Counts:
    """How often each of ``size`` values was asked about, and was in the cell.

    Then for each two of the first ``names`` values: how often both were asked about, and of these
    reports both, the first and the second were in the cell.
    """
    counts = np.zeros(2 * size, dtype=np.int64)
    pairs = np.zeros((names, names, 4), dtype=np.int64)
    _asked(as_rows(rows), cells, size, names, w, counts, pairs)
    return np.concatenate([counts, pairs[np.triu_indices(names, 1)].ravel()])
