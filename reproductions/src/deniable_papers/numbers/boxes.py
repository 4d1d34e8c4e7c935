"""Means of several numbers of one person: one report about all, or about some that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

import deniable as dn
from deniable.arrays import Bools, Floats
from deniable.mechanisms.numbers import NumberMechanism
from deniable_papers.boxes import duchi_bound, duchi_half, duchi_plus

#: So many respondents that sorting reports by public chance costs nothing.
MANY = 10**9
#: The mean of v^2, and the variance of v, for numbers that are spread evenly over 0..1.
SQUARE, SPREAD = 1 / 3, 1 / 12


class Box(NamedTuple):
    """A way to the means of d numbers v of -1..1."""

    #: The means, from a row for each respondent.
    estimate: Callable[[Floats, float, Generator], Floats]
    #: n Var of the mean of one of d numbers v that are spread evenly over 0..1.
    variance: Callable[[int, float], float]


def numbers_of_boxes(n: int) -> Floats:
    """n numbers spread evenly over 0..1, in no order."""
    return np.random.default_rng(1).permutation((np.arange(n) + 0.5) / n)


def estimated(m: NumberMechanism, x: Floats, rng: Generator) -> float:
    """The mean of numbers of 0..1 that a mechanism finds."""
    return m.moments(m.count(m.privatize(x, rng).data), len(x)).mean


def _corner(v: Floats, epsilon: float, rng: Generator) -> Floats:
    """Duchi et al.: a corner t of the cube, more likely one with t x > 0 for a random corner x."""
    n, d = v.shape
    x = np.where(rng.random((n, d)) < (1 + v) / 2, 1, -1)
    # t agrees with x in k places: all t with as many are equally likely.
    k = np.arange(d + 1)
    plus, half = duchi_plus(d, epsilon), duchi_half(d)
    each = np.where(2 * k > d, plus / half, (1 - plus) / (2**d - half))
    agreeing = rng.choice(k, n, p=each * [math.comb(d, one) for one in k.tolist()])
    t = np.where(_some(agreeing[:, None], v.shape, rng), x, -x)
    return np.asarray(duchi_bound(d, epsilon) * t.mean(axis=0))


def _some(m: int | Floats, shape: tuple[int, ...], rng: Generator) -> Bools:
    """m places of every row, drawn with equal chances."""
    return np.asarray(rng.random(shape).argsort(axis=1).argsort(axis=1) < m)


def _drawn(family: type[NumberMechanism], most: Callable[[int, float], int], *, own: bool) -> Box:
    """m numbers by a mechanism with epsilon / m each.

    The papers take 0 for those that are not drawn, and multiply by d / m. ``own`` takes the mean of
    those that were.
    """

    def mechanism(d: int, epsilon: float) -> NumberMechanism:
        return family(dn.Number(0, 1), epsilon / most(d, epsilon))

    def estimate(v: Floats, epsilon: float, rng: Generator) -> Floats:
        d = v.shape[1]
        m, drawn = mechanism(d, epsilon), _some(most(d, epsilon), v.shape, rng)
        pairs = zip(v.T, drawn.T, strict=True)
        means = [2 * estimated(m, (1 + own_v[rows]) / 2, rng) - 1 for own_v, rows in pairs]
        return np.array(means) * (1 if own else drawn.mean(axis=0) * d / most(d, epsilon))

    def variance(d: int, epsilon: float) -> float:
        one = mechanism(d, epsilon)
        x = (1 + (np.arange(1_000) + 0.5) / 1_000) / 2
        rarer, between = d / most(d, epsilon), SPREAD if own else SQUARE
        return rarer * (4 * MANY * one.variance_for(x, MANY) + between) - between

    return Box(estimate, variance)


def _one(d: int, epsilon: float) -> int:
    return 1


def _piecewise(d: int, epsilon: float) -> int:
    """m as printed."""
    return max(1, min(d, math.floor(epsilon / 2.5)))


def _dithered(d: int, epsilon: float) -> int:
    return max(1, min(d, round(epsilon / 3.5)))


BOXES = {
    "Duchi et al.": Box(_corner, lambda d, epsilon: duchi_bound(d, epsilon) ** 2 - SQUARE),
    "Harmony": _drawn(dn.Duchi, _one, own=False),
    "PM": _drawn(dn.PM, _piecewise, own=False),
    "HM": _drawn(dn.HM, _piecewise, own=False),
    "DRR, one number": _drawn(dn.DRR, _one, own=True),
    "DRR, epsilon / 3.5 numbers": _drawn(dn.DRR, _dithered, own=True),
}
