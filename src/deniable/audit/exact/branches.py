"""Runs of a report function with coins that nobody tossed: all of them, or a few to count them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from deniable.audit.black_box.encoding import frozen
from deniable.audit.exact.checks import Worst
from deniable.errors import InvalidArgument
from deniable.privacy import PathCoins, enumerate_reports
from deniable.randomness import Coins

Report = Callable[[Any, Coins], Any]

#: Random walks to estimate the number of branches from, of each of two values.
WALKS = 20


def worst_pair(report: Report, values: Iterable[Any]) -> Worst:
    """The report, and the two values, with the largest ratio of likelihoods."""
    names = list(values)
    laws = [enumerate_reports(_frozen(report), value) for value in names]
    if any(sum(law.values()) != 1 for law in laws):
        raise InvalidArgument("report", report, "a function that draws with probabilities of 0..1")
    worst = Worst(Fraction(1), names[0], names[1], None)
    for output in dict.fromkeys(y for law in laws for y in law):
        column = [law.get(output, Fraction(0)) for law in laws]
        high, low = max(column), min(column)
        ratio = high / low if low else None
        if ratio is None or (worst.ratio is not None and ratio > worst.ratio):
            pair = names[column.index(high)], names[column.index(low)]
            worst = Worst(ratio, *pair, output)
        if ratio is None:
            break
    return worst


def _frozen(report: Report) -> Report:
    return lambda value, coins: frozen(report(value, coins))


def few_runs(report: Report, values: Sequence[Any], most: int) -> bool:
    """Whether all branches of all values are about ``most`` runs, or fewer.

    Their number is estimated without bias by the mean size of random walks (Knuth 1975); the walk
    that makes it too large is not walked to its end.
    """
    walks = [(value, seed) for value in values[:2] for seed in range(WALKS)]
    left = most * len(walks) / len(values)
    for value, seed in walks:
        coins = WalkingCoins(Random(seed), left)
        try:
            report(value, coins)
        except _TooMany:
            return False
        left -= coins.branches
    return left >= 0


class _TooMany(Exception):
    """A walk passed more branches than it may."""


class WalkingCoins(PathCoins):
    """Coins that take any outcome of each draw, all being equally likely, up to ``most`` branches.

    The branches of a walk are the product of the numbers of outcomes.
    """

    def __init__(self, rng: Random, most: float) -> None:
        super().__init__([])
        self._rng = rng
        self._most = most
        self.branches = 1

    def _next(self, size: int) -> int:
        self.branches *= size
        if self.branches > self._most:
            raise _TooMany
        return self._rng.randrange(size)


def remembered(m: Any, reports: int, value: int, coins: Coins) -> Any:
    """What an observer learns from some reports made from one draw; for 0 reports, the draw."""
    begun = m.begin(coins)
    kept = m.memoise(begun, m.key(begun, value), coins)
    if not reports:
        return begun, kept
    return tuple(m.instant(begun, kept, coins) for _ in range(reports))
