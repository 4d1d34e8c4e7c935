"""The public code of Hadamard response that the tables point to, as an experiment, not to be used.

It plans for B blocks of b indices, B = 2^floor(log2 min(e^eps, 2 d)) and b the least power of two
with b - 1 >= d / B, but needs only M = ceil(d / (b - 1)) <= B of them. The randomiser weighs by B,
the estimate by M: where they differ the estimate is biased, and the true epsilon is smaller.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms.hadamard import walsh_hadamard

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class PublicHadamard:
    """Value v owns row 1 + v mod (b - 1) of block v div (b - 1).

    S_v: the b / 2 indices of the block with an odd number of ones in (row & index). Index 0 of a
    block is never sent. A report is drawn from S_v with probability t, else from all M (b - 1)
    indices; before index 0 is taken out, 1 - t is w = 2 B / (2 B - 1 + e^eps).
    """

    def __init__(self, d: int, epsilon: float) -> None:
        self.d, self.e = d, math.exp(epsilon)
        self.planned = 1 << int(math.log2(min(self.e, 2 * d)))
        self.block = 1 << math.ceil(math.log2(d / self.planned + 1))
        self.blocks = -(-d // (self.block - 1))
        w = 2 * self.planned / (2 * self.planned - 1 + self.e)
        self.t = (1 - w) / (1 - w / self.block)

    @property
    def epsilon(self) -> float:
        """The true one, ln(1 + (e^eps - 1) M / B)."""
        return math.log1p((self.e - 1) * self.blocks / self.planned)

    @property
    def biased(self) -> bool:
        """Whether randomiser and estimate disagree."""
        return self.blocks != self.planned

    def favoured(self) -> NDArray[np.bool_]:
        """Row v: which indices are in S_v."""
        owner, row = np.divmod(np.arange(self.d), self.block - 1)
        columns = walsh_hadamard(np.eye(self.block, dtype=np.int64)) < 0
        found = np.zeros((self.d, self.blocks, self.block), dtype=np.bool_)
        found[np.arange(self.d), owner] = columns[row + 1]
        return found.reshape(self.d, -1)

    def channel(self) -> Floats:
        """P(index | value)."""
        anywhere = np.arange(self.blocks * self.block) % self.block > 0
        return self.t * self.favoured() / (self.block / 2) + (1 - self.t) * anywhere / (
            self.blocks * (self.block - 1)
        )

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """How many reports have each index."""
        counts = np.zeros(self.blocks * self.block, dtype=np.int64)
        kept = rng.binomial(histogram, self.t)
        half = np.full(self.block // 2, 2 / self.block)
        places = np.nonzero(self.favoured())[1].reshape(self.d, -1)
        np.add.at(counts, places, rng.multinomial(kept, half))
        inner = np.full(self.blocks * (self.block - 1), 1 / (self.blocks * (self.block - 1)))
        rest = rng.multinomial(int(histogram.sum() - kept.sum()), inner)
        counts.reshape(self.blocks, self.block)[:, 1:] += rest.reshape(self.blocks, -1)
        return counts

    def estimate(self, counts: Counts, n: int) -> Floats:
        """(c (2 F(S_v) - F(block)) - 2 / b) / (e^eps - 1), c = e^eps - 1 + 2 M (b - 1) / b.

        Unbiased if M = B. The transform of a block holds F(block) - 2 F(S_v).
        """
        c = self.e - 1 + 2 * self.blocks * (self.block - 1) / self.block
        contrasts = -walsh_hadamard(counts.reshape(self.blocks, self.block))[:, 1:].reshape(-1)
        found: Floats = (c * contrasts[: self.d] / n - 2 / self.block) / (self.e - 1)
        return found
