"""Mechanisms for sets of answers, from whose counts the share of every answer follows.

A report supports some answers and not others. Whatever set a respondent has, it supports an answer
of the set with probability p and another one with q, and two answers together with p2, p1 or p0:
both, one or none of them are in the set. Shares, shares of pairs and all errors follow from these.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.answers.items import Items
from deniable.arrays import Counts, Floats
from deniable.core.integers import Design
from deniable.core.mechanism import Mechanism

#: Items of which all pairs are counted, at most.
MOST_PAIRED = 256
#: Where p2 - 2 p1 + p0 is smaller, reports say nothing about pairs.
LEAST_CURVATURE = 1e-9


class Supported(NamedTuple):
    """How many reports support each item, and how many could have."""

    supporting: Counts
    asked: Counts


class PairsSupported(NamedTuple):
    """For the items u < v of each pair: of the reports that could support both, so many do.

    ``first`` and ``second`` count those that support u, and v, whatever else they support.
    """

    u: Counts
    v: Counts
    both: Counts
    first: Counts
    second: Counts
    asked: Counts


@dataclass(frozen=True)
class Law:
    """The probabilities of a report: p, q of an item, and p2, p1, p0 of two items together."""

    p: float
    q: float
    p2: float
    p1: float
    p0: float

    def variance(self, f: ArrayLike) -> Floats:
        """The variance of (y - q) / (p - q), where a share f has the item."""
        f, p, q = np.asarray(f), self.p, self.q
        return np.asarray((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)

    def covariance(self, either: ArrayLike) -> Floats:
        """That of two items which nobody has both; ``either`` is the share with one of them."""
        either, p, q = np.asarray(either), self.p, self.q
        found = either * (self.p1 - p * q) + (1 - either) * (self.p0 - q**2)
        return np.asarray(found / (p - q) ** 2)

    @property
    def tells_pairs(self) -> bool:
        """Whether reports say anything about pairs."""
        return abs(self.p2 - 2 * self.p1 + self.p0) > LEAST_CURVATURE

    @cached_property
    def scores(self) -> Floats:
        """What a report scores for a pair of which it supports none, one, or both.

        a, a + b and a + 2 b + c, with a mean of 1 for those who have both, and else of 0:

            a + 2 b p + c p2 = 1,  a + b (p + q) + c p1 = 0,  a + 2 b q + c p0 = 0.
        """
        c = 1 / (self.p2 - 2 * self.p1 + self.p0)
        b = -c * (self.p1 - self.p0) / (self.p - self.q)
        a = -2 * b * self.q - c * self.p0
        return np.array([a, a + b, a + 2 * b + c])

    def outcomes(self) -> Floats:
        """How likely a report supports none, only u, only v, and both (columns).

        Rows: the respondent has both of u and v, only u, only v, none.
        """
        p, q = self.p, self.q
        states = ((p, p, self.p2), (p, q, self.p1), (q, p, self.p1), (q, q, self.p0))
        return np.array([[1 - u - v + w, u - w, v - w, w] for u, v, w in states])

    def pair_variance(self, both: ArrayLike, one: ArrayLike) -> Floats:
        """The variance of the score where these shares have both items, and one of them."""
        both, one = np.asarray(both), np.asarray(one)
        squares = self.outcomes() @ self.scores[[0, 1, 1, 2]] ** 2
        return np.asarray(
            both * (squares[0] - 1) + one * squares[1] + (1 - both - one) * squares[3]
        )


class ItemMechanism(Mechanism):
    """A mechanism for sets of answers."""

    takes = automatic = (Items,)
    tasks = ("shares", "pairs")
    #: Designs that the laws of shares try.
    shapes: ClassVar[tuple[dict[str, int], ...]] = ({},)

    domain: Items
    #: The number of items that a report is about, or that it has.
    w: Design

    @cached_property
    @abstractmethod
    def law(self) -> Law:
        """The probabilities that everything is estimated with."""

    @property
    @abstractmethod
    def asked(self) -> tuple[float, float]:
        """How likely a report is about a given item, and about two given ones."""

    @abstractmethod
    def supported(self, counts: Counts, n: int) -> Supported:
        """What the counts of n reports say about each item. Run by the analyst."""

    @property
    @abstractmethod
    def pair_cells(self) -> int:
        """How many counts are about pairs."""

    @abstractmethod
    def pairs_supported(self, counts: Counts, n: int) -> PairsSupported | None:
        """The same about each pair of answers; None if that was not counted. Run by the analyst."""

    @property
    def counts_pairs(self) -> bool:
        """Whether reports are about several answers, and pairs of them are few enough to count."""
        several = min(self.w, self.domain.at_most) > 1
        return several and self.domain.items <= MOST_PAIRED

    @property
    def paired(self) -> bool:
        """Whether the counts say anything about pairs."""
        return self.pair_cells > 0 and self.law.tells_pairs


def usual_shares(k: int, m: int) -> tuple[float, float]:
    """The shares of an answer, and of a pair, that designs are made for.

    They are those of a half of all people that ticks m answers at random, the others none.
    """
    one = m / (2 * k)
    return one, one * (m - 1) / max(1, k - 1)


def places_of(values: NDArray[Any]) -> NDArray[Any]:
    """Encoded sets as rows of places."""
    whole = np.ascontiguousarray(values)
    return whole.view(values.dtype[0]).reshape(len(values), -1)
