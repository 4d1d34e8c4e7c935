"""What several releases about one person promise together, exact as the parts are.

Independent reports y_1, ..., y_d of the answers x_1, ..., x_d have the likelihood
P_1(y_1 | x_1) ... P_d(y_d | x_d). Every answer may differ between two people, so the largest
likelihood ratio is the product of the largest ratios: it is reached, not only bounded. If a
person gives only one of the reports, and which one does not depend on any answer, the weight
of that choice cancels, and the largest of the ratios remains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from numbers import Rational
from typing import Any

from deniable.errors import InvalidArgument, is_number
from deniable.privacy.guarantee import CONTEXT, Guarantee, check_epsilon, float_below


@dataclass(frozen=True)
class Sequential(Guarantee):
    """One person gives a report of every part."""

    parts: tuple[Guarantee, ...]

    def log_after(self, reports: int | None, changes: int) -> Decimal:
        """So many reports and changes of every part: their sum."""
        return reduce(CONTEXT.add, (part.log_after(reports, changes) for part in self.parts))


@dataclass(frozen=True)
class Parallel(Guarantee):
    """One person gives reports of one part only, always of the same."""

    parts: tuple[Guarantee, ...]

    def log_after(self, reports: int | None, changes: int) -> Decimal:
        """So many reports and changes of the part that costs most."""
        return max(part.log_after(reports, changes) for part in self.parts)


def sequential(guarantees: Iterable[Guarantee]) -> Sequential:
    """Several reports about one person: the ratios multiply."""
    parts = _parts(guarantees)
    return Sequential(math.prod((part.ratio for part in parts), start=Fraction(1)), parts)


def parallel(guarantees: Iterable[Guarantee]) -> Parallel:
    """Each person is asked only one of several: the largest ratio."""
    parts = _parts(guarantees)
    return Parallel(max(part.ratio for part in parts), parts)


def split(epsilon: float, shares: Mapping[str, float | Fraction]) -> dict[str, float]:
    """``epsilon`` divided in proportion to ``shares``, each part rounded down.

    Hence the parts never add up to more than the whole.
    """
    whole = Fraction(check_epsilon(epsilon))
    if not isinstance(shares, Mapping) or not shares:
        raise InvalidArgument("shares", shares, "a share for each of some names")
    exact = {name: _share(share) for name, share in shares.items()}
    total = sum(exact.values())
    parts = {name: float_below(whole * share / total) for name, share in exact.items()}
    return {name: check_epsilon(part, f"epsilon of {name}") for name, part in parts.items()}


def _parts(guarantees: Iterable[Guarantee]) -> tuple[Guarantee, ...]:
    parts = tuple(guarantees)
    if not parts or not all(isinstance(part, Guarantee) for part in parts):
        raise InvalidArgument("guarantees", parts, "at least one Guarantee, and nothing else")
    return parts


def _share(share: Any) -> Fraction:
    if not is_number(share) or not 0 < share < math.inf:
        raise InvalidArgument("share", share, "a number above 0")
    return Fraction(share if isinstance(share, Rational) else float(share))
