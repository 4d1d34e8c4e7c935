"""Reports that are one index: keep the value or draw uniformly; and their histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.kernels.bounded import bounded
from deniable.kernels.jit import kernel
from deniable.randomness import Words

_LANES = 8
_UNROLLED_CELLS = 1 << 12


@kernel
def draw(out: NDArray[Any], words: Words, size: np.uint64) -> None:
    """``out[i]``: a draw of 0..size-1."""
    for i in range(words.size):
        out[i] = bounded(words[i], size)


@kernel
def keep_or_draw(
    out: NDArray[Any], values: NDArray[Any], words: Words, size: np.uint64, keep: np.uint64
) -> None:
    """``out[i]``: the value if its second word is below ``keep``, else a draw of 0..size-1."""
    for i in range(values.size):
        drawn = bounded(words[2 * i], size)
        out[i] = np.uint64(values[i]) if words[2 * i + 1] < keep else drawn


@kernel
def keep_or_flip(
    out: NDArray[Any], values: NDArray[np.uint32], words: Words, keep: np.uint64
) -> None:
    """``out[i]``: the bit if its word is below ``keep``, else the other bit."""
    for i in range(values.size):
        out[i] = values[i] ^ np.uint32(words[i] >= keep)


@kernel
def _histogram(cells: NDArray[Any], counts: Counts) -> None:
    """Count ``cells`` into ``counts[lane, cell]``; lanes keep equal neighbours apart."""
    lanes = counts.shape[0]
    whole = cells.size // lanes * lanes
    for i in range(0, whole, lanes):
        for lane in range(lanes):
            counts[lane, np.uint64(cells[i + lane])] += 1
    for i in range(whole, cells.size):
        counts[0, np.uint64(cells[i])] += 1


def histogram(cells: NDArray[Any], size: int) -> Counts:
    """How often each of 0..size-1 occurs. Every cell must be below ``size``."""
    lanes = _LANES if size <= _UNROLLED_CELLS else 1
    counts = np.zeros((lanes, size), dtype=np.int64)
    _histogram(cells, counts)
    total: Counts = counts.sum(axis=0)
    return total
