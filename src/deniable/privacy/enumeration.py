"""The exact channel of a mechanism, computed by running the very function that ships.

A verifying `Coins` object answers every draw with each possible outcome in turn and keeps the exact
integer weight of the path; the function cannot tell it from real coins.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.errors import InvalidArgument, require_int
from deniable.randomness import SCALE, Coins, choice_weight

#: Runs of the report function for one value, before enumeration gives up.
MAX_BRANCHES = 1_000_000
#: Draws of one run, before it is taken for endless.
MAX_DRAWS = 100_000

ReportFunction = Callable[[int, Coins], Any]


class PathCoins:
    """Coins that follow a given path of outcomes, then take the first outcome of each new draw.

    Of each draw the number of its outcomes and the weight, out of 2**64, of the one that was taken
    are kept.
    """

    def __init__(self, path: list[int], most_draws: int = MAX_DRAWS) -> None:
        self._path = path
        self._most_draws = most_draws
        self._checked: Sequence[int] | None = None
        self.sizes: list[int] = []
        self.weights: list[int] = []

    @property
    def weight(self) -> int:
        """The weight of the path, out of 2**64 to the power of the number of draws."""
        return math.prod(self.weights)

    def below(self, threshold: int) -> bool:
        require_int("threshold", threshold, 0, SCALE)
        outcome = self._next(2)
        self.weights.append(SCALE - threshold if outcome else threshold)
        return not outcome

    def choice(self, size: int) -> int:
        outcome = self._next(size)
        self.weights.append(choice_weight(outcome, size))
        return outcome

    def pick(self, edges: Sequence[int]) -> int:
        if edges is not self._checked:
            if list(edges) != sorted(edges) or not all(0 <= edge <= SCALE for edge in edges):
                raise InvalidArgument("edges", edges, "ascending integers of 0..2**64")
            self._checked = edges if isinstance(edges, tuple) else None
        outcome = self._next(len(edges) + 1)
        low = edges[outcome - 1] if outcome else 0
        high = edges[outcome] if outcome < len(edges) else SCALE
        self.weights.append(high - low)
        return outcome

    def _next(self, size: int) -> int:
        position = len(self.sizes)
        if position == self._most_draws:
            allowed = f"a function of at most {self._most_draws} draws"
            raise InvalidArgument("report", "endless", allowed)
        self.sizes.append(size)
        if position == len(self._path):
            self._path.append(0)
        return self._path[position]


def enumerate_reports(report: ReportFunction, value: int) -> dict[Hashable, Fraction]:
    """Every report that ``value`` can lead to, with its exact probability."""
    weights: dict[Hashable, Counter[int]] = defaultdict(Counter)
    path: list[int] = []
    for _ in range(MAX_BRANCHES):
        coins = PathCoins(path)
        outcome = report(value, coins)
        if weight := coins.weight:
            weights[outcome][len(coins.sizes)] += weight
        while path and path[-1] == coins.sizes[len(path) - 1] - 1:
            path.pop()
        if not path:
            return {outcome: _probability(found) for outcome, found in weights.items()}
        path[-1] += 1
    raise InvalidArgument("report", report, f"a function of at most {MAX_BRANCHES:,} branches")


def _probability(weights: Counter[int]) -> Fraction:
    """The sum of weights by number of draws."""
    return sum((Fraction(w, SCALE**draws) for draws, w in weights.items()), Fraction(0))


@dataclass(frozen=True)
class Channel:
    """An exact channel matrix: ``matrix[value][j]`` is the probability of ``outputs[j]``."""

    outputs: tuple[Any, ...]
    matrix: tuple[tuple[Fraction, ...], ...]

    @property
    def ratio(self) -> Fraction | None:
        """The largest likelihood ratio of one output under two values; None if it is infinite."""
        worst = Fraction(1)
        for column in zip(*self.matrix, strict=True):
            if not min(column):
                return None
            worst = max(worst, max(column) / min(column))
        return worst


def exact_channel(report: ReportFunction, values: Iterable[int]) -> Channel:
    """The channel of ``report`` on ``values``, by exhausting its coins."""
    laws = [enumerate_reports(report, value) for value in values]
    outputs = sorted(set().union(*laws))  # type: ignore[type-var]
    rows = (tuple(law.get(y, Fraction(0)) for y in outputs) for law in laws)
    return Channel(tuple(outputs), tuple(rows))
