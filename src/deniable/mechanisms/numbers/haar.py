"""Distributions from Haar's wavelet: one sign of one level of it. For comparison."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Index
from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.mechanisms.hadamard import walsh_hadamard
from deniable.mechanisms.numbers.binned import Binned, Level
from deniable.mechanisms.numbers.bins import USUAL_BINS, Binning
from deniable.mechanisms.numbers.hh import MOST_BINS, most_bins
from deniable.privacy import Guarantee, kept_below
from deniable.randomness import SCALE, Coins, Keystream, choice_weight


@register
class Haar(Binned):
    """Level l of ``levels`` is drawn; the report tells in which half of which node the number is.

    The 2^levels bins are halved level by level, so node u of level l (from 0) has 2^l of them
    beside it; the sign is +1 in its left half. As in HRR, row r of the Walsh-Hadamard matrix H is
    drawn, and the bit of H[r, u] times the sign is kept with keep / 2**64 = e^eps / (e^eps + 1).
    With c = 1 / (2 p - 1), the mean of c H[r, u] y over reports y is what the left half of u has
    more than the right one, unbiased, and Var = c^2 - 1 given an answer in u, c^2 in another node.
    Bins that no answer falls into are the last ones, and are not estimated.
    """

    name = "haar"
    paper = "Cormode et al. 2019 (HaarHRR)"
    good_for = "comparison with HH"
    on_devices = False
    trials = 20
    small_design = {"levels": 2}
    shapes = ({"levels": 1}, {"levels": 2}, {"levels": 3})
    levels = Design(1, MOST_BINS.bit_length() - 1)
    keep = Threshold()

    @classmethod
    def unsuited(cls, domain: Domain) -> str | None:
        skipped = f"numbers that nobody may skip for {cls.__name__}" if domain.optional else None
        return super().unsuited(domain) or skipped

    def derive_levels(self) -> int:
        return (min(USUAL_BINS, most_bins(self.domain)) - 1).bit_length()

    def derive_keep(self) -> int:
        return kept_below(self.epsilon)

    def report(self, value: int, coins: Coins) -> int:
        level = coins.choice(self.levels)
        row = coins.choice(1 << level)
        place: int = self.binning.of(value)
        node, half = divmod(place >> (self.levels - 1 - level), 2)
        odd = ((row & node).bit_count() + half) & 1
        bit = odd if coins.below(self.keep) else 1 - odd
        return self._first(level) + 2 * row + bit

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        # `choice` of the levels: the least word w with floor(w levels / 2^64) = level, and on.
        firsts = [-(-level * SCALE // self.levels) for level in range(1, self.levels)]
        for some, target, words in batches(values, out, keystream, self.coin_words):
            drawn, rows, kept = words.reshape(3, -1)
            level = np.searchsorted(np.array(firsts, dtype=np.uint64), drawn, side="right")
            row = (rows >> np.uint64(1)) >> (63 - level).astype(np.uint64)
            node = self.binning.of(some) >> (self.levels - 1 - level).astype(np.uint64)
            odd = np.bitwise_count(row & (node >> np.uint64(1))) + node & np.uint64(1)
            bit = odd ^ (kept >= np.uint64(self.keep))
            target[: len(some)] = 2 * ((1 << level) - 1) + 2 * row.astype(np.int64) + bit

    @staticmethod
    def _first(level: int) -> int:
        """The first cell of a level, whose reports are 2 row + bit."""
        return 2 * ((1 << level) - 1)

    @property
    def coin_words(self) -> int:
        return 3

    @cached_property
    def layout(self) -> Index:
        return Index(self._first(self.levels))

    @cached_property
    def guarantee(self) -> Guarantee:
        odds = Fraction(self.keep, SCALE - self.keep)
        return Guarantee(max(odds, 1 / odds))

    @cached_property
    def binning(self) -> Binning:
        return Binning(self.domain, 1 << self.levels)

    @property
    def chances(self) -> Floats:
        return np.array([choice_weight(level, self.levels) / SCALE for level in range(self.levels)])

    @cached_property
    def sums(self) -> Sequence[Floats]:
        bins, found = np.arange(self.binning.size), []
        for level in range(self.levels):
            half = bins >> (self.levels - 1 - level)
            own = np.arange(1 << level)[:, None] == half >> 1
            found.append(own * (1.0 - 2 * (half & 1)))
        return found

    def observed(self, counts: Counts, n: int) -> list[Level]:
        found = []
        for level in range(self.levels):
            own = counts[self._first(level) : self._first(level + 1)]
            m, balance = int(own.sum()), walsh_hadamard(own[None, 0::2] - own[None, 1::2])[0]
            found.append(Level(m, balance * (self._scale / m) if m else self.even(level)))
        return found

    @property
    def _scale(self) -> float:
        """c."""
        return float(1 / (2 * Fraction(self.keep, SCALE) - 1))

    def noise(self, level: int, rows: Floats) -> Floats:
        squares = rows**2
        return np.asarray(self._scale**2 * squares.sum(axis=1, keepdims=True) - squares)
