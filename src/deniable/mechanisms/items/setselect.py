"""Subset selection for sets: a report is some items, more often those that the respondent ticked.

Ye and Barg (2018) for single answers, and Wang et al. (2018, PrivSet) for sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Bits, Index, Layout, exact_sum
from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.errors import InvalidArgument
from deniable.mechanisms.items.base import (
    ItemMechanism,
    Law,
    PairsSupported,
    Supported,
    places_of,
    usual_shares,
)
from deniable.privacy import Guarantee, exp_below
from deniable.randomness import SCALE, Coins, Keystream

#: Designs that are tried: sizes of reports, and overlaps that are favoured. For pairs of more
#: answers than FEW, w and tau that are larger were never better where that was searched.
MOST_W = 400
#: More are refused: a device computes the weights of a manifest, which would take it very long.
LARGEST_W = 512
FEW, PAIRS_W, PAIRS_TAU = 20, 60, 5
#: Overlaps that are rarer could not be given their weight, an integer out of 2^64: rounding would
#: cost more than e^eps allows. With real weights w that is w 2^64 (1 - e^-eps) > 1, with room.
LEAST_WEIGHT = 2.0**-60


class Overlaps(NamedTuple):
    """The sets of w of all K items by how many items j they share with a padded set of m."""

    #: The least j, and how many sets have j, j + 1, ...
    least: int
    sets: tuple[int, ...]

    @classmethod
    def for_sizes(cls, k: int, m: int, w: int) -> Overlaps:
        """C(m, j) C(k, w - j) sets, for max(0, w - k) <= j <= min(m, w)."""
        least = max(0, w - k)
        js = range(least, min(m, w) + 1)
        return cls(least, tuple(math.comb(m, j) * math.comb(k, w - j) for j in js))


@register
class SetSelect(ItemMechanism):
    """A set t of ``w`` items, P(t) proportional to e^eps if it shares ``tau`` with the own set.

    The k items are the answers, and a skip if there may be one. Every respondent's set is padded
    to exactly m = at_most items by dummies, so there are K = k + m. With j items shared, there
    are N_j = C(m, j) C(k, w - j) sets t; j is drawn first, then t among them.

    With w = 1 the dummies are one cell, "none of these": the report is the place of one of k + 1
    cells. A ticked item has the weight ``one``, another one ``zero``, and "none of these" what is
    left of 2^64. With w > 1, ``one`` is the weight of all sets that share at least tau items, and
    ``zero`` that of all others, which is what is left. Within these j has the weight W_j, its part
    of N_j in all of them: rounded down where j >= tau, else up, and what is left goes to the
    largest W_j with j < tau. The w draws among at most K items are within a factor 1 / (1 - d),
    d = w K / 2^64, of uniform; so the ratio is at most that of W_j / N_j times 1 / (1 - d)^2.
    """

    name = "setselect"
    paper = "Wang et al. 2018 for tau = 1"
    good_for = "choose all that apply, where a few answers may be ticked"
    shapes = ({}, {"w": 2, "tau": 2}, {"w": 3})
    w = Design(1, lambda m: min(LARGEST_W, m.domain.items + m.domain.at_most - 1))
    tau = Design(lambda m: 1 + max(0, m.w - m.domain.items), lambda m: min(m.domain.at_most, m.w))
    one = Threshold()
    zero = Threshold()

    # ---- the design

    @classmethod
    def best(cls, k: int, m: int, epsilon: float, *, pairs: bool = False) -> tuple[int, int]:
        """(w, tau) with the least variance of a share, or of that of a pair, for the usual shares.

        By the formulas of `Law`, for all designs that are tried.
        """
        tried = list(_designs(k, m, epsilon, pairs))
        f, both = usual_shares(k, m)

        def variance(law: Law) -> float:
            return float(law.pair_variance(both, 2 * (f - both)) if pairs else law.variance(f))

        # Rounded: of designs that are equally good, such as one and its complement, the shorter.
        found = min(tried, key=lambda one: (float(f"{variance(one[2]):.9g}"), *one[:2]))
        return found[:2]

    @classmethod
    def advised(
        cls, domain: Domain, epsilon: float, n: int, tasks: tuple[str, ...] = ()
    ) -> dict[str, int]:
        if "pairs" not in tasks or not isinstance(domain, cls.takes) or domain.at_most == 1:
            return {}
        w, tau = cls.best(domain.items, domain.at_most, epsilon, pairs=True)
        return {"w": w, "tau": tau}

    @cached_property
    def _best(self) -> tuple[int, int]:
        return self.best(self.domain.items, self.domain.at_most, self.epsilon)

    def derive_w(self) -> int:
        return self._best[0]

    def derive_tau(self) -> int:
        """The best one for the best w; for another w the overlaps that are favoured there."""
        w, tau = self._best
        if w == self.w:
            return tau
        k, m = self.domain.items, self.domain.at_most
        f, _ = usual_shares(k, m)
        laws = list(_laws(k, m, self.w, self.epsilon, min(m, self.w)))
        if not laws:
            allowed = "another size: these reports would share some numbers of items too rarely"
            raise InvalidArgument("w", self.w, allowed)
        return min(laws, key=lambda one: (float(one[1].variance(f)), one[0]))[0]

    def derive_zero(self) -> int:
        k, m = self.domain.items, self.domain.at_most
        if self.w > 1:
            return SCALE - self.one
        return math.ceil(SCALE / (k + m * exp_below(self.epsilon)))

    def derive_one(self) -> int:
        if self.w > 1:
            return self._derive_favoured()
        # The ratio of a ticked item to another, and that of "none of these" for the empty set to
        # that for a full one, (2^64 - k zero) / (2^64 - m one - (k - m) zero), are e^eps at most.
        k, m, ratio = self.domain.items, self.domain.at_most, exp_below(self.epsilon)
        most = ((ratio - 1) * SCALE + self.zero * (k - ratio * (k - m))) / (ratio * m)
        return int(min(ratio * self.zero, most))

    def _derive_favoured(self) -> int:
        ratio = exp_below(self.epsilon) * (1 - self._slack) ** 2
        if ratio <= 1:
            raise InvalidArgument("epsilon", self.epsilon, f"larger for {self.domain}")
        others, favoured = (sum(sets) for sets in self._classes)
        odds = ratio * favoured / others
        # Room for what rounding up takes from the largest of the others.
        rounded = (len(self._classes[0]) - 1) * len(self._classes[0])
        return int(SCALE * odds / (1 + odds)) - rounded

    # ---- the channel

    @cached_property
    def overlaps(self) -> Overlaps:
        """How many sets share how many items with the own one."""
        return Overlaps.for_sizes(self.domain.items, self.domain.at_most, self.w)

    @property
    def _classes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """N_j for j < tau, and for j >= tau."""
        first = self.tau - self.overlaps.least
        return self.overlaps.sets[:first], self.overlaps.sets[first:]

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """W_j, for w > 1."""
        others, favoured = self._classes
        zero, one = sum(others), sum(favoured)
        found = [-(-self.zero * sets // zero) for sets in others]
        found += [self.one * sets // one for sets in favoured]
        found[max(range(len(others)), key=others.__getitem__)] += SCALE - sum(found)
        return tuple(found)

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """What j is picked with, for w > 1."""
        return tuple(accumulate(self.weights[:-1]))

    @property
    def _slack(self) -> Fraction:
        return Fraction(self.w * (self.domain.items + self.domain.at_most), SCALE)

    def report(self, value: Sequence[int], coins: Coins) -> Any:
        k, total = self.domain.items, self.domain.items + self.domain.at_most
        if self.w == 1:
            weights = (self.one if place in value else self.zero for place in range(k))
            return coins.pick(tuple(accumulate(weights)))
        own = list(value)
        others = [place for place in range(total) if place not in value]
        shared = self.overlaps.least + coins.pick(self.edges)
        for of, drawn in ((own, shared), (others, self.w - shared)):
            for i in range(drawn):  # Fisher-Yates
                j = i + coins.choice(len(of) - i)
                of[i], of[j] = of[j], of[i]
        return self.sets.of(own[:shared] + others[: self.w - shared])

    @property
    def coin_words(self) -> int:
        return 1 if self.w == 1 else self.w + 1

    @cached_property
    def sets(self) -> Bits:
        """The layout of a report of several items."""
        return Bits(self.domain.items + self.domain.at_most, self.w)

    @cached_property
    def layout(self) -> Layout:
        return Index(self.domain.items + 1) if self.w == 1 else self.sets

    @cached_property
    def guarantee(self) -> Guarantee:
        if self.w > 1:
            pairs = zip(self.weights, self.overlaps.sets, strict=True)
            each = [Fraction(weight, sets) for weight, sets in pairs]
            if min(each) <= 0:
                self._refuse_thresholds("such that all overlaps are possible")
            return Guarantee(max(each) / min(each) / (1 - self._slack) ** 2)
        # "None of these" is most likely for the empty set, and least for a full one.
        k, m = self.domain.items, self.domain.at_most
        empty, full = SCALE - k * self.zero, SCALE - m * self.one - (k - m) * self.zero
        if min(empty, full) <= 0:
            self._refuse_thresholds("such that a report may be none of the items")
        odds = (Fraction(self.one, self.zero), Fraction(empty, full))
        return Guarantee(max(ratio for one in odds for ratio in (one, 1 / one)))

    def _check(self) -> None:
        if self.w > 1 and self.one + self.zero != SCALE:
            self._refuse_thresholds("two that sum to 2**64")
        super()._check()
        p, q = self.chances
        if p <= q:
            self._refuse_thresholds("such that a report holds ticked items more often than others")

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.sets import pick_items, select_sets

        for some, rows, words in batches(values, out, keystream, 1):
            places = places_of(some)
            if self.w == 1:
                one, zero = np.uint64(self.one), np.uint64(self.zero)
                pick_items(rows, places, words, self.domain.items, one, zero)
                continue
            edges = np.array(self.edges, dtype=np.uint64)
            shared = self.overlaps.least + np.searchsorted(edges, words, side="right")
            total = self.domain.items + self.domain.at_most
            select_sets(rows, places, shared, self.w, total, keystream)

    # ---- what counts say

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """(p, q)."""
        if self.w == 1:
            return Fraction(self.one, SCALE), Fraction(self.zero, SCALE)
        least = self.overlaps.least
        shared = Fraction(sum(j * w for j, w in enumerate(self.weights, least)), SCALE)
        return shared / self.domain.at_most, (self.w - shared) / self.domain.items

    @cached_property
    def law(self) -> Law:
        k, m, w = self.domain.items, self.domain.at_most, self.w
        p, q = map(float, self.chances)
        if w == 1:
            return Law(p, q, 0.0, 0.0, 0.0)
        j = np.arange(self.overlaps.least, min(m, w) + 1)
        weights = np.array(self.weights, dtype=np.float64) / SCALE
        return Law(p, q, *_together(k, m, w, j, weights))

    @property
    def asked(self) -> tuple[float, float]:
        return 1.0, 1.0

    @property
    def cells(self) -> int:
        """How often each item was reported; and, where they are few, each pair of answers."""
        return self.layout.cells + self.pair_cells

    @property
    def pair_cells(self) -> int:
        return math.comb(len(self.domain.names), 2) if self.counts_pairs else 0

    def count(self, data: NDArray[Any]) -> Counts:
        counts = self.layout.count(data)
        if not self.pair_cells:
            return counts
        from deniable.kernels.sets import count_pairs

        return np.concatenate([counts, count_pairs(data, len(self.domain.names), self.w)])

    def possible_counts(self, counts: Counts, n: int) -> bool:
        """Each pair at most as often as either answer, and an answer with w - 1 others at most."""
        cells = self.layout.cells
        if not self.layout.possible(counts[:cells], n):
            return False
        if not self.pair_cells:
            return True
        pairs = self.pairs_supported(counts, n)
        assert pairs is not None
        least = np.maximum(pairs.first + pairs.second - n, 0)
        fits = np.all((least <= pairs.both) & (pairs.both <= np.minimum(*pairs[3:5])))
        most = exact_sum(counts[:cells]) * (self.w - 1)
        return bool(fits) and 2 * exact_sum(pairs.both) <= most

    def supported(self, counts: Counts, n: int) -> Supported:
        own = counts[: self.domain.items]
        return Supported(own, np.full(len(own), n))

    def pairs_supported(self, counts: Counts, n: int) -> PairsSupported | None:
        if not self.pair_cells:
            return None
        u, v = np.triu_indices(len(self.domain.names), 1)
        both = counts[self.layout.cells :]
        return PairsSupported(u, v, both, counts[u], counts[v], np.full(len(u), n))


# ---- designs


def _designs(k: int, m: int, epsilon: float, pairs: bool) -> Iterator[tuple[int, int, Law]]:
    """(w, tau, law) of all designs that are tried."""
    few = k <= FEW
    most_w = min(k + m - 1, PAIRS_W if pairs and not few else MOST_W)
    for w in range(2 if pairs else 1, most_w + 1):
        most = min(m, w, PAIRS_TAU if pairs and not few else m)
        for tau, law in _laws(k, m, w, epsilon, most):
            if law.tells_pairs or not pairs:
                yield w, tau, law


def _laws(k: int, m: int, w: int, epsilon: float, most: int) -> Iterator[tuple[int, Law]]:
    """(tau, law) for this w, with real numbers in place of the integers."""
    least = max(0, w - k)
    j = np.arange(least, min(m, w) + 1)
    sets = np.array([math.lgamma(x + 1) for x in range(max(k, m, w) + 1)])
    logs = -(sets[j] + sets[m - j] + sets[w - j] + sets[k - w + j])
    for tau in range(least + 1, most + 1):
        weights = np.exp(logs - logs.max() + np.where(j >= tau, epsilon, 0.0))
        weights /= weights.sum()
        shared = float(weights @ j)
        p, q = shared / m, (w - shared) / k
        if p > q and weights.min() * -math.expm1(-epsilon) > LEAST_WEIGHT:
            yield tau, Law(p, q, *_together(k, m, w, j, weights))


def _together(k: int, m: int, w: int, j: Floats | Counts, weights: Floats) -> tuple[float, ...]:
    """p2, p1 and p0 of sets that share j items with these weights."""
    others = w - j
    two = float(weights @ (j * (j - 1))) / max(1, m * (m - 1))
    one = float(weights @ (j * others)) / (m * k)
    none = float(weights @ (others * (others - 1))) / max(1, k * (k - 1))
    return two, one, none
