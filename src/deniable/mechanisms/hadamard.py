"""Hadamard response: an index is reported, and each value favours one half of a block of indices.

Acharya, Sun and Zhang (2019), with any number of blocks.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.arrays import Counts, Floats, Indices
from deniable.core.integers import Design, Threshold
from deniable.core.mechanism import batches, mixture_keep, mixture_ratio
from deniable.core.registry import register
from deniable.mechanisms.frequency import Line
from deniable.mechanisms.index import IndexMechanism
from deniable.privacy import Guarantee, check_epsilon, exp_below
from deniable.randomness import SCALE, Coins, Keystream
from deniable.splitmix import mixed_all

_HALF = Fraction(1, 2)
Summed = TypeVar("Summed", np.int64, np.float64)
MAX_BLOCK = 1 << 31


def power_of_two(m: object, number: int) -> str | None:
    """The rule of integers that must be one."""
    return "a power of two" if number & (number - 1) else None


@register
class HR(IndexMechanism):
    """M blocks of b = ``block`` indices; a value owns one of the rows 1..b-1 of one block.

    Its set S_v holds the b / 2 indices y of its block with an even number of ones in (row & y).
    With probability t the report is drawn from S_v, else from all M b indices; t = (e^eps - 1) /
    (e^eps - 1 + 2 M) makes that epsilon-LDP. Rows are orthogonal, so f_v = (2 c(S_v) - c(block of
    v)) / (n t) is unbiased, with n Var = (t F + (1 - t) / M) / t^2 - f_v where F is the frequency
    of the block's values together.

    ``seed`` fixes the public permutation that hands out rows: values that are neighbours
    in the domain must not be neighbours in the matrix. A negative seed leaves them in order.
    """

    name = "hr"
    paper = "Acharya et al. 2019"
    good_for = "huge domains: report and decoding cost only log k"
    automatic = (Listed,)
    two_likelihoods = True
    block = Design(2, MAX_BLOCK, rule=power_of_two)
    seed = Design(-1, (1 << 32) - 1, default=0)
    keep = Threshold()

    @staticmethod
    def suggest_block(k: int, epsilon: float) -> int:
        """The block size with the least variance, averaged over the values (f = 1/k)."""
        e = float(exp_below(check_epsilon(epsilon)))

        def average_variance(block: int) -> float:
            blocks = -(-k // (block - 1))
            return (e - 1 + 2 * blocks) * (2 + (e - 1) / blocks) / (e - 1) ** 2

        return min((1 << j for j in range(1, k.bit_length() + 1)), key=average_variance)

    def derive_block(self) -> int:
        return self.suggest_block(self.domain.size, self.epsilon)

    def derive_keep(self) -> int:
        return mixture_keep(self.epsilon, self.blocks, _HALF)

    @property
    def blocks(self) -> int:
        """The number M of blocks."""
        return -(-self.domain.size // (self.block - 1))

    @property
    def cells(self) -> int:
        return self.blocks * self.block

    def report(self, value: int, coins: Coins) -> int:
        """Draw y and, if kept, put its parity right by flipping the lowest bit of the row."""
        block, row = divmod(int(self.owners[value]), 1 << 32)
        inner = coins.choice(self.block)
        anywhere = coins.choice(self.blocks) * self.block + inner
        odd = (inner & row).bit_count() & 1
        kept = block * self.block + (inner ^ (odd * (row & -row)))
        return kept if coins.below(self.keep) else anywhere

    @property
    def coin_words(self) -> int:
        return 3

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(mixture_ratio(Fraction(self.keep, SCALE), self.blocks, _HALF))

    @property
    def p(self) -> Fraction:
        keep = Fraction(self.keep, SCALE)
        return keep + (1 - keep) / (2 * self.blocks)

    @property
    def q(self) -> Fraction:
        """1/2 with one block; with more there are two, one for the own block and one for the
        others."""
        if self.blocks > 1:
            raise AttributeError("HR with several blocks has no single q; see unbiased()")
        return _HALF

    @property
    def chances(self) -> tuple[Fraction, Fraction] | None:
        return (self.p, self.q) if self.blocks == 1 else None

    @property
    def value_places(self) -> Indices:
        """The place of each value: its block, and the row within it."""
        return public_permutation(self.domain.size, self.seed)

    @cached_property
    def owners(self) -> NDArray[np.uint64]:
        """The block and row of each value, as block * 2**32 + row."""
        block, row = np.divmod(self.value_places, self.block - 1)
        return ((block << 32) + row + 1).astype(np.uint64)

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.hadamard import hadamard_responses

        sizes = (np.uint64(self.block), np.uint64(self.blocks))
        for some, target, words in batches(values, out, keystream, self.coin_words):
            hadamard_responses(target, some, self.owners, words, sizes, np.uint64(self.keep))

    def supports(self, counts: Counts, n: int) -> Counts | None:
        return (self._contrasts(counts) + n) // 2 if self.blocks == 1 else None

    def unbiased(self, counts: Counts, n: int) -> Floats:
        return self._contrasts(counts).astype(np.float64) * (SCALE / (n * self.keep))

    def _contrasts(self, counts: Counts) -> Counts:
        """2 c(S_v) - c(block of v): row r of the block's Walsh-Hadamard transform."""
        rows = walsh_hadamard(counts.reshape(self.blocks, self.block))[:, 1:]
        return rows.reshape(-1)[self.value_places]

    def variance_line(self, f: Floats, n: int) -> Line:
        """n Var = (t F + (1 - t) / M) / t^2 - f_v."""
        owner = self.value_places // (self.block - 1)
        shares = np.bincount(owner, weights=f, minlength=self.blocks).astype(np.float64)
        return self._line(shares[owner], f)

    def variance_at(self, f: Floats, n: int) -> Line:
        """The value's block is full: block - 1 values, or all k."""
        k = self.domain.size
        neighbours = min(self.block - 1, k) - 1
        share = f + (1 - f) * neighbours / (k - 1)
        return self._line(share, f)

    def covariances(self, f: Floats, n: int, value: int) -> Floats:
        """f_u / t for the value u of the same block whose row is the sum of both rows, if any.

        Of two values of a block, f_v f_w of one report is the sign of u in it, over t^2.
        """
        own, row = divmod(int(self.value_places[value]), self.block - 1)
        block, rows = np.divmod(self.value_places, self.block - 1)
        shares = np.zeros(self.block)  # by row of the block; no value has row 0
        inside = block == own
        shares[rows[inside] + 1] = f[inside]
        found = np.where(inside, shares[(rows + 1) ^ (row + 1)], 0.0) * (SCALE / self.keep)
        found[value] = self.variance_line(f, n).at(f)[value]
        return found

    def estimated_line(self, counts: Counts, n: int, unbiased: Floats | None = None) -> Line:
        """n Var = c(block) / (n t^2) - f_v: the block's count is known, at least one is assumed."""
        in_block = np.maximum(counts.reshape(self.blocks, self.block).sum(axis=1), 1) / n
        owner = self.value_places // (self.block - 1)
        a = in_block[owner] * (SCALE / self.keep) ** 2
        return Line(a, np.full(a.shape, -1.0))

    def sum_variances(self, weights: Floats) -> Floats:
        """T_y = sum of w_v H[y, v] / t over the values v of y's block; Var T = E[T^2] - w_x^2.

        Given x, y is uniform in S_x with t, whose mean T^2 is 1 / b of that of the block and of
        the contrast of S_x; else uniform everywhere.
        """
        keep = self.keep / SCALE
        block, row = np.divmod(self.value_places, self.block - 1)
        dealt = np.zeros((len(weights), self.blocks, self.block))
        dealt[:, block, row + 1] = weights
        told = walsh_hadamard(dealt.reshape(-1, self.block)) / keep
        squares = walsh_hadamard(told**2).reshape(dealt.shape) / self.block
        own = squares[:, block, 0] + squares[:, block, row + 1]
        anywhere = squares[:, :, 0].mean(axis=1, keepdims=True)
        return np.asarray(keep * own + (1 - keep) * anywhere - weights**2)

    def _line(self, shares: Floats, f: Floats) -> Line:
        """A value's frequency is part of its block's: F = F_others + f_v; one block has F = 1."""
        keep = self.keep / SCALE
        if self.blocks == 1:
            return Line(np.full(f.shape, keep**-2), np.full(f.shape, -1.0))
        others = np.maximum(shares - f, 0.0)
        a = np.asarray((keep * others + (1 - keep) / self.blocks) / keep**2)
        return Line(a, np.full(f.shape, 1 / keep - 1))


@lru_cache(maxsize=8)
def public_permutation(size: int, seed: int) -> Indices:
    """The place of each value: its rank when 0..size-1 are sorted by a mixed 64-bit key.

    The key of v is SplitMix64's output for the state seed 2**32 + v, a bijection: no ties.
    """
    if seed < 0:
        places = np.arange(size)
    else:
        keys = mixed_all(np.arange(size, dtype=np.uint64) + np.uint64((seed << 32) % SCALE))
        places = np.empty(size, dtype=np.int64)
        places[np.argsort(keys)] = np.arange(size)
    places.setflags(write=False)
    return places


def walsh_hadamard(rows: NDArray[Summed]) -> NDArray[Summed]:
    """The Walsh-Hadamard transform of each row (a power of two long), exact for integers."""
    size = rows.shape[1]
    half = 1
    while half < size:
        pairs = rows.reshape(-1, size // (2 * half), 2, half)
        rows = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    return rows.reshape(-1, size)
