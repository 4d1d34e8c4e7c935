"""Public pseudo-randomness that every client computes alike: SplitMix64, and permutations from it.

Nothing here hides anything: seeds are published with the mechanism.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.randomness import SCALE

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
#: Up to so many values `permuted` ranks them; the rounds of others.
RANKED = 64
ROUNDS = 6


def mixed(x: int) -> int:
    """SplitMix64's output for the state x."""
    x = (x + GOLDEN) % SCALE
    x = (x ^ (x >> 30)) * FIRST % SCALE
    x = (x ^ (x >> 27)) * SECOND % SCALE
    return x ^ (x >> 31)


def mixed_all(states: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mixed` of each state."""
    x = states + np.uint64(GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(SECOND)
    return np.asarray(x ^ (x >> np.uint64(31)))


def permuted(value: int, key: int, size: int) -> int:
    """The place of a value of 0..size-1 under the public permutation of this key.

    Of a few it is the rank of S(key + v). Of many it comes from rounds, each a bijection of the
    numbers with as many bits as ``size``; whoever ends at ``size`` or above walks on until back
    below. (Such rounds do not deal few values out evenly.)
    """
    if size <= RANKED:
        own = mixed((key + value) % SCALE)
        return sum(mixed((key + other) % SCALE) < own for other in range(size))
    bits = size.bit_length()
    x = value
    while True:
        for step in range(ROUNDS):
            word = mixed((key + step) % SCALE)
            x = (x * (word | 1) + (word >> 32)) % (1 << bits)
            x ^= x >> (bits + 1) // 2
        if x < size:
            return x
