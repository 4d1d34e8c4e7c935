"""Hierarchical histograms: reports about a tree of bins, for distributions of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from deniable.answers.number import Number
from deniable.arrays import Counts, Floats
from deniable.core.domain import Domain
from deniable.core.drawn import WEIGHTS, Branch, Drawn
from deniable.core.integers import Design
from deniable.core.registry import check_keys, from_leaf, register
from deniable.errors import BrokenPromise, InvalidArgument
from deniable.mechanisms.frequency import FrequencyOracle, frequency_oracles, require_oracle
from deniable.mechanisms.numbers.binned import Binned, Level
from deniable.mechanisms.numbers.bins import USUAL_BINS, Binning, steps_of
from deniable.randomness import Coins

#: Bins at most: least squares are solved densely.
MOST_BINS = 1024
#: Variances that differ by less count as equal; the shortest report wins.
EQUAL = 1.02


@dataclass(frozen=True)
class Tree:
    """Bins, grouped by ``fan_out`` on h levels until there are at most so many groups.

    On level l of 1..h, bin i is in node floor(i / fan_out^(h - l)). Where the bins are no power of
    the fan-out, the last nodes are smaller; there is no node without a bin.
    """

    binning: Binning
    fan_out: int

    @cached_property
    def widths(self) -> list[int]:
        """The bins in a node of each level, the coarsest first."""
        found = [1]
        while found[0] * self.fan_out < self.binning.size:
            found.insert(0, found[0] * self.fan_out)
        return found

    @cached_property
    def sizes(self) -> list[int]:
        """The number of nodes of each level."""
        return [-(-self.binning.size // width) for width in self.widths]

    @cached_property
    def answers(self) -> list[Domain]:
        """What is answered at each level: a node, or the skip, which is one more, the last."""
        skip = int(self.binning.domain.optional)
        return [Domain.of(size + skip) for size in self.sizes]


@register
class HH(Binned, Drawn):
    """The number's bin is reported on one level of a tree of bins, which is drawn by public chance.

    Branch b of h is any frequency oracle with all of epsilon, over the nodes of level b + 1 (see
    `Tree`); if the question may be skipped, a skip is one node more. The likelihood ratio is the
    largest of the branches'. Unless they are given, branches are drawn with equal chances, and each
    has the oracle with the least variance. With as many bins as ``fan_out`` there is one level: the
    histogram of one oracle.
    """

    name = "hh"
    paper = "Hay et al. 2010; Cormode et al. 2019 (range queries)"
    good_for = "the distribution of a number: quantiles, ranges, a mean; intervals without models"
    automatic = (Number,)
    skips = True
    small_design = {"bins": 3}
    shapes = ({"bins": 2}, {"bins": 3}, {"bins": 6}, {"bins": 5, "fan_out": 3})
    bins = Design(2, lambda m: most_bins(m.domain))
    fan_out = Design(2, lambda m: m.bins, default=2)

    def derive_bins(self) -> int:
        return min(USUAL_BINS, most_bins(self.domain))

    @cached_property
    def tree(self) -> Tree:
        """The nodes."""
        return Tree(self.binning, self.fan_out)

    @cached_property
    def binning(self) -> Binning:
        return Binning(self.domain, self.bins)

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        share, left = divmod(WEIGHTS, len(self.tree.sizes))
        return tuple(
            Branch(share + (place < left), (), best_oracle(answers, self.epsilon))
            for place, answers in enumerate(self.tree.answers)
        )

    def _check(self) -> None:
        self._check_branches()
        found = [branch.mechanism.domain for branch in self.branches]
        if found != self.tree.answers or any(branch.of for branch in self.branches):
            allowed = f"one for each level of {', '.join(map(str, self.tree.sizes))} nodes"
            raise InvalidArgument("branches", found, allowed)
        for part in self.parts:
            require_oracle(part)
        super()._check()

    def asks(self, of: tuple[str, ...], coins: Coins) -> tuple[str, ...]:
        return of

    def seen(self, place: int, values: Any) -> Any:
        node = self.binning.of(values) // self.tree.widths[place]
        if not self.domain.optional:
            return node
        return node + (self.tree.sizes[place] - node) * (values == self.domain.skip)

    # ---- what the counts say

    @property
    def chances(self) -> Floats:
        return np.array([self.chance(place) for place in range(self.places)])

    @cached_property
    def sums(self) -> Sequence[Floats]:
        bins = np.arange(self.binning.size)
        pairs = zip(self.tree.sizes, self.tree.widths, strict=True)
        found = [(np.arange(size)[:, None] == bins // width) * 1.0 for size, width in pairs]
        return [np.pad(a, (0, 1)) + _corner(a) for a in found] if self.domain.optional else found

    def observed(self, counts: Counts, n: int) -> list[Level]:
        pairs = enumerate(zip(self._oracles, self.by_branch(counts), strict=True))
        return [
            Level(m, oracle.unbiased(own, m) if m else self.even(place))
            for place, (oracle, (m, own)) in pairs
        ]

    def noise(self, level: int, rows: Floats) -> Floats:
        return self._oracles[level].sum_variances(rows)

    @cached_property
    def _oracles(self) -> list[FrequencyOracle]:
        return [require_oracle(part) for part in self.parts]

    # ---- a value that can be shared

    @classmethod
    def _read(cls, domain: Domain, design: Mapping[str, int], branches: list[Any]) -> list[Branch]:
        most = most_bins(domain)
        if not 2 <= design["fan_out"] <= design["bins"] <= most:
            raise BrokenPromise("design", design, f"2 to {most} bins, and a fan_out of 2 to these")
        tree = Tree(Binning(domain, design["bins"]), design["fan_out"])  # type: ignore[arg-type]
        if len(branches) != len(tree.sizes):
            raise InvalidArgument("branches", len(branches), f"{len(tree.sizes)}, one a level")
        return [cls._branch(*pair) for pair in zip(tree.answers, branches, strict=True)]

    @classmethod
    def _branch(cls, answers: Domain, branch: Any) -> Branch:
        check_keys("branch", branch, {"weight", "mechanism"})
        return Branch(branch["weight"], (), from_leaf(answers, branch["mechanism"]))


def _corner(a: Floats) -> Floats:
    """1 in the row and the column of a skip, behind those of the nodes and of the bins."""
    return np.pad(np.zeros(a.shape), (0, 1)) + np.outer(
        np.arange(len(a) + 1) == len(a), np.arange(a.shape[1] + 1) == a.shape[1]
    )


def most_bins(domain: Domain) -> int:
    """The most bins that answers may have."""
    steps = steps_of(domain) if isinstance(domain, Number) else None
    return min(MOST_BINS, steps or MOST_BINS)


@lru_cache(maxsize=256)
def best_oracle(answers: Domain, epsilon: float) -> FrequencyOracle:
    """The oracle with the least variance where answers are spread evenly.

    Of those that are nearly as good, the one with the shortest report.
    """
    tried = [
        family(answers, epsilon)
        for family in frequency_oracles().values()
        if isinstance(answers, family.automatic) and family.unsuited(answers) is None
        if family.on_devices and not family.remembers
    ]
    variances = [float(oracle.variance(1).mean()) for oracle in tried]
    near = EQUAL * min(variances)
    pairs = [pair for pair in zip(tried, variances, strict=True) if pair[1] <= near]
    return min(pairs, key=lambda pair: (pair[0].bits_per_report, pair[1]))[0]
