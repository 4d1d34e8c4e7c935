"""Some of the answers, drawn at random, and whether the respondent ticked them: all bits together.

The bits of w answers are one of 2^w cells, which is randomised as in k-RR. There is no cap on the
number of ticks, and reports tell of pairs of answers at no price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts
from deniable.core.domain import Domain
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Bits, Index, Record
from deniable.core.mechanism import batches, mixture_keep, mixture_ratio
from deniable.core.registry import register
from deniable.mechanisms.items.base import (
    ItemMechanism,
    Law,
    PairsSupported,
    Supported,
    places_of,
    usual_shares,
)
from deniable.privacy import Guarantee
from deniable.randomness import SCALE, Coins, Keystream

#: Answers of one report at most: 2^16 cells.
MOST_W = 16


@register
class JointBits(ItemMechanism):
    """``w`` of the k items, drawn at random, and one of their 2^w cells.

    Of the i-th drawn item in ascending order, bit i of the cell is 1 if it is ticked. The cell is
    kept with probability keep / 2^64, else any cell is drawn. Which items are drawn does not
    depend on the answer. A bit is right with probability (e^eps + 2^(w-1) - 1) / (e^eps + 2^w - 1).
    """

    name = "jointbits"
    paper = "none"
    good_for = "choose all that apply, however many are ticked"
    shapes = ({}, {"w": 2})
    w = Design(1, lambda m: min(MOST_W, m.domain.items))
    keep = Threshold()

    @classmethod
    def best(cls, k: int, m: int, epsilon: float, *, pairs: bool = False) -> int:
        """The w with the least variance of a share, or of that of a pair, for the usual shares."""
        f, both = usual_shares(k, m)

        def variance(w: int) -> float:
            law, one, two = _law(w, math.expm1(epsilon)), *_asked(k, w)
            if pairs:
                found = float(law.pair_variance(both, 2 * (f - both)))
                return found / two + (1 / two - 1) * both * (1 - both)
            return float(law.variance(f)) / one + (1 / one - 1) * f * (1 - f)

        return min(range(2 if pairs else 1, min(MOST_W, k) + 1), key=variance)

    @classmethod
    def advised(
        cls, domain: Domain, epsilon: float, n: int, tasks: tuple[str, ...] = ()
    ) -> dict[str, int]:
        if "pairs" not in tasks or not isinstance(domain, cls.takes) or domain.at_most == 1:
            return {}
        return {"w": cls.best(domain.items, domain.at_most, epsilon, pairs=True)}

    def derive_w(self) -> int:
        return self.best(self.domain.items, self.domain.at_most, self.epsilon)

    def derive_keep(self) -> int:
        return mixture_keep(self.epsilon, 1 << self.w)

    # ---- the channel

    def report(self, value: Sequence[int], coins: Coins) -> tuple[bytes, int]:
        items = list(range(self.domain.items))
        for i in range(self.w):  # Fisher-Yates
            j = i + coins.choice(len(items) - i)
            items[i], items[j] = items[j], items[i]
        asked = sorted(items[: self.w])
        own = sum((place in value) << i for i, place in enumerate(asked))
        drawn = coins.choice(1 << self.w)
        return self.sets.of(asked), own if coins.below(self.keep) else drawn

    @property
    def coin_words(self) -> int:
        return self.w + 2

    @cached_property
    def sets(self) -> Bits:
        """The layout of the items that a report is about."""
        return Bits(self.domain.items, self.w)

    @cached_property
    def layout(self) -> Record:
        return Record({"asked": self.sets, "cell": Index(1 << self.w, noun="a cell")})

    @property
    def share(self) -> Fraction:
        """The probability of keeping the cell on purpose."""
        return Fraction(self.keep, SCALE)

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(mixture_ratio(self.share, 1 << self.w))

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.sets import ask_items

        for some, rows, words in batches(values, out, keystream, 2):
            n, keep = len(some), np.uint64(self.keep)
            asked = np.empty((n, self.sets.width), dtype=np.uint8)
            cells = np.empty(n, dtype=np.uint64)
            kept = words.copy()  # more words are drawn while these are read
            sizes = (self.w, self.domain.items)
            ask_items(asked, cells, places_of(some), kept, keep, *sizes, keystream)
            rows["asked"][:n], rows["cell"][:n] = asked, cells

    # ---- what counts say

    @cached_property
    def law(self) -> Law:
        return _law(self.w, float((1 << self.w) * self.share / (1 - self.share)))

    @property
    def asked(self) -> tuple[float, float]:
        return _asked(self.domain.items, self.w)

    @property
    def pair_cells(self) -> int:
        return 4 * math.comb(len(self.domain.names), 2) if self.counts_pairs else 0

    @property
    def cells(self) -> int:
        """How often each item was asked about, and was told to be ticked; then, for each pair of
        answers, how often both were asked about, both, the first, and the second were ticked."""
        return 2 * self.domain.items + self.pair_cells

    def count(self, data: NDArray[Any]) -> Counts:
        from deniable.kernels.sets import count_asked

        self.layout.check(data)
        names = len(self.domain.names) if self.pair_cells else 0
        asked = np.ascontiguousarray(data["asked"])
        cells = np.ascontiguousarray(data["cell"])
        return count_asked(asked, cells, self.domain.items, names, self.w)

    def possible_counts(self, counts: Counts, n: int) -> bool:
        """w answers of each report are asked about, and each of them is ticked or not."""
        supporting, asked = self.supported(counts, n)
        fits = bool(np.all((supporting >= 0) & (supporting <= asked) & (asked <= n)))
        if not fits or int(asked.sum()) != n * self.w:
            return False
        pairs = self.pairs_supported(counts, n)
        if pairs is None:
            return True
        neither = pairs.asked - pairs.first - pairs.second + pairs.both
        least = min(x.min(initial=0) for x in (pairs.both, neither))
        most = np.minimum(asked[pairs.u], asked[pairs.v])
        inside = np.all(pairs.both <= np.minimum(pairs.first, pairs.second))
        return bool(least >= 0 and inside and np.all(pairs.asked <= most))

    def supported(self, counts: Counts, n: int) -> Supported:
        items = self.domain.items
        return Supported(counts[items : 2 * items], counts[:items])

    def pairs_supported(self, counts: Counts, n: int) -> PairsSupported | None:
        if not self.pair_cells:
            return None
        u, v = np.triu_indices(len(self.domain.names), 1)
        asked, both, first, second = counts[2 * self.domain.items :].reshape(-1, 4).T
        return PairsSupported(u, v, both, first, second, asked)


def _law(w: int, odds: float) -> Law:
    """With odds = e^eps - 1 of keeping the cell to each of the 2^w that may be drawn."""
    drawn = 1 / (odds + (1 << w))
    right, half, quarter = odds * drawn, (1 << w) / 2 * drawn, (1 << w) / 4 * drawn
    pairs = (right + quarter, quarter, quarter) if w > 1 else (0.0, 0.0, 0.0)
    return Law(right + half, half, *pairs)


def _asked(k: int, w: int) -> tuple[float, float]:
    """How likely one given item is among the w, and two are."""
    return w / k, w * (w - 1) / (k * max(1, k - 1))
