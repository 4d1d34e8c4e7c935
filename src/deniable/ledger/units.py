"""Epsilons as integers: costs are rounded up and budgets down, so nothing is under-charged."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational
from typing import Any

from deniable.core.mechanism import Mechanism
from deniable.errors import InvalidArgument, is_number
from deniable.privacy import Guarantee

#: Units of an epsilon of 1.
MICRO = 10**6
#: The largest epsilon that is reckoned with; far more than protects anyone.
MOST = 10**6


def micro_cost(cost: Any) -> int:
    """A cost in micro-epsilon, rounded up.

    A mechanism costs what it guarantees; one whose devices remember costs what all reports of an
    answer do, for t reports from one draw may cost more than t times the first.
    """
    if isinstance(cost, Mechanism):
        cost = cost.lasting
    if isinstance(cost, Guarantee):
        return math.ceil(Fraction(cost.epsilon) * MICRO)
    allowed = f"a mechanism, a guarantee, or an epsilon above 0 and up to {MOST:,}"
    return math.ceil(_exact("cost", cost, allowed) * MICRO)


def micro_budget(name: str, budget: Any) -> int:
    """A budget in micro-epsilon, rounded down."""
    allowed = f"an epsilon of 0.000001..{MOST:,}"
    units = math.floor(_exact(name, budget, allowed) * MICRO)
    if not units:
        raise InvalidArgument(name, budget, allowed)
    return units


def epsilon_of(units: int) -> float:
    """The float nearest to so many micro-epsilon."""
    return units / MICRO


def _exact(name: str, number: Any, allowed: str) -> Fraction:
    if not is_number(number) or not 0 < number <= MOST:
        raise InvalidArgument(name, number, allowed)
    return Fraction(number if isinstance(number, Rational) else float(number))
