"""What a mechanism promises, as data: a ratio of integers, and its logarithm rounded up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

from deniable.errors import InvalidArgument

#: Below, the rounding of bounded draws (about 2**-64 each) could no longer be neglected; above,
#: thresholds out of 2**64 become coarse and the answer is hardly protected anyway.
MIN_EPSILON = 2.0**-20
MAX_EPSILON = 32.0

# Decimal's exp and ln are correctly rounded, hence the same on every platform.
_CONTEXT = Context(prec=60)
_MARGIN_DOWN = 1 - Fraction(1, 10**45)
_MARGIN_UP = Decimal("1e-50")


def check_epsilon(epsilon: Any) -> float:
    """``epsilon`` as a float of the allowed range."""
    is_number = isinstance(epsilon, Real) and not isinstance(epsilon, bool)
    try:
        number = float(epsilon) if is_number else math.nan
    except OverflowError:
        number = math.inf
    if not MIN_EPSILON <= number <= MAX_EPSILON:
        allowed = f"a number of 2**-20..{MAX_EPSILON:g}"
        raise InvalidArgument("epsilon", epsilon, allowed)
    return number


def exp_below(x: float | Fraction) -> Fraction:
    """A rational number just below e**x."""
    x = Fraction(x)
    power = _CONTEXT.exp(_CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return Fraction(power) * _MARGIN_DOWN


def log_above(ratio: Fraction) -> float:
    """The smallest float that is not below ln(ratio)."""
    quotient = _CONTEXT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    exact = _CONTEXT.add(_CONTEXT.ln(quotient), _MARGIN_UP)
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


@dataclass(frozen=True)
class Guarantee:
    """No report is more than ``ratio`` times as likely under one value as under another.

    That is pure epsilon-local differential privacy with epsilon = ln(ratio). The ratio belongs to
    the integer channel that runs on the device, not to the real numbers it was designed from.
    """

    ratio: Fraction

    def __post_init__(self) -> None:
        if self.ratio < 1:
            raise InvalidArgument("ratio", self.ratio, "the larger likelihood over the smaller one")

    @property
    def epsilon(self) -> float:
        """ln(ratio), rounded up."""
        return log_above(self.ratio)

    def __str__(self) -> str:
        return f"epsilon-LDP with epsilon <= {self.epsilon:.15g}"
