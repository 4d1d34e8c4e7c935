"""Hadamard responses: a draw whose parity is put right or told, or any index at all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.kernels.bounded import bounded
from deniable.kernels.jit import inlined, kernel
from deniable.randomness import Words


@inlined
def _odd(word: Any) -> Any:
    """1 if ``word`` (32 bits) has an odd number of ones, else 0."""
    word ^= word >> np.uint32(16)
    word ^= word >> np.uint32(8)
    word ^= word >> np.uint32(4)
    return (np.uint32(0x6996) >> (word & np.uint32(15))) & np.uint32(1)


@kernel
def hadamard_responses(
    out: NDArray[Any],
    values: NDArray[np.uint32],
    owners: NDArray[np.uint64],
    words: Words,
    sizes: tuple[np.uint64, np.uint64],
    keep: np.uint64,
) -> None:
    """``out[i]``: an index of the own block with even parity if kept, else any index.

    ``owners[v]`` is block * 2**32 + row of value v, ``sizes`` (block size, number of blocks); three
    words a report, as in `HR.report`. Looking up first leaves a second loop without indirection,
    which the compiler turns into vector instructions.
    """
    owned = np.empty(values.size, np.uint64)
    for i in range(values.size):
        owned[i] = owners[values[i]]
    block_size = np.uint32(sizes[0])
    for i in range(values.size):
        inner = np.uint32(bounded(words[3 * i], sizes[0]))
        block = np.uint32(bounded(words[3 * i + 1], sizes[1]))
        row = np.uint32(owned[i])
        lowest = row & np.uint32(~row + np.uint32(1))
        even = inner ^ np.uint32(lowest * _odd(inner & row))
        kept = np.uint32(np.uint32(owned[i] >> np.uint64(32)) * block_size + even)
        out[i] = kept if words[3 * i + 2] < keep else np.uint32(block * block_size + inner)


@kernel
def hadamard_signs(
    out: NDArray[Any],
    columns: NDArray[Any],
    words: Words,
    shift: np.uint64,
    keep: np.uint64,
) -> None:
    """``out[i]``: a row and its sign in ``columns[i]``, flipped unless kept; 2 row + bit.

    Two words a report, as in `SignMechanism.report`; the row is a word's bits above ``shift``.
    """
    for i in range(columns.size):
        row = np.uint32(words[2 * i] >> shift)
        flipped = np.uint32(words[2 * i + 1] >= keep)
        bit = _odd(row & np.uint32(columns[i])) ^ flipped
        out[i] = np.uint32((row << np.uint32(1)) | bit)
