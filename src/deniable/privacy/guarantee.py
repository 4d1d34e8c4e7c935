"""What a mechanism promises, as data: a ratio of integers, and its logarithm rounded up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from deniable.errors import InvalidArgument, is_number, require_int
from deniable.randomness import SCALE

#: Below, the rounding of bounded draws (about 2**-64 each) could no longer be neglected; above,
#: thresholds out of 2**64 become coarse and the answer is hardly protected anyway.
MIN_EPSILON = 2.0**-20
MAX_EPSILON = 32.0
#: Reports of one respondent that are reckoned with.
MOST_REPORTS = 1 << 64

#: Decimal's exp and ln are correctly rounded, hence the same on every platform.
CONTEXT = Context(prec=60)
_MARGIN_DOWN = 1 - Fraction(1, 10**45)
_MARGIN_UP = Decimal("1e-50")


def check_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """``epsilon`` as a float of the allowed range."""
    try:
        number = float(epsilon) if is_number(epsilon) else math.nan
    except OverflowError:
        number = math.inf
    if not MIN_EPSILON <= number <= MAX_EPSILON:
        allowed = f"a number between 0.000001 and {MAX_EPSILON:g}"
        raise InvalidArgument(name, epsilon, allowed)
    return number


def exp_below(x: float | Fraction) -> Fraction:
    """A rational number just below e**x."""
    x = Fraction(x)
    power = CONTEXT.exp(CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return Fraction(power) * _MARGIN_DOWN


def kept_below(epsilon: float | Fraction) -> int:
    """The largest threshold T out of 2**64 with T / (2**64 - T) <= e**epsilon, for a bit that is
    kept or flipped."""
    likely = exp_below(epsilon)
    return int(SCALE * likely / (1 + likely))


def log_above(ratio: Fraction) -> float:
    """The smallest float that is not below ln(ratio)."""
    return 0.0 if ratio == 1 else float_above(CONTEXT.ln(as_decimal(ratio)))


def as_decimal(number: Fraction) -> Decimal:
    """A rational number to 60 digits."""
    return CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))


def float_above(number: Decimal) -> float:
    """The smallest float that is not below a number that was computed to almost 60 digits."""
    exact = CONTEXT.add(number, _MARGIN_UP)
    nearest = float(exact)
    return nearest if Decimal(nearest) >= exact else math.nextafter(nearest, math.inf)


def float_below(number: Fraction) -> float:
    """The largest float that is not above a number."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, 0.0)


def check_history(reports: Any, changes: Any) -> None:
    """Refuse what no respondent's history has."""
    if reports is not None:
        require_int("reports", reports, 1, MOST_REPORTS)
    require_int("changes", changes, 0, MOST_REPORTS)


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

    def exactly(self, reports: int) -> Guarantee:
        """What a few reports cost, as a ratio of integers."""
        return Guarantee(self.ratio**reports)

    def after(self, reports: int | None = None, changes: int = 0) -> float:
        """Epsilon after ``changes`` changes of the answer and ``reports`` reports of each answer.

        None stands for any number of reports.
        """
        check_history(reports, changes)
        return 0.0 if self.ratio == 1 else float_above(self.log_after(reports, changes))

    def log_after(self, reports: int | None, changes: int) -> Decimal:
        """`after` to almost 60 digits, not yet rounded up.

        Every report has coins of its own, so it is exactly epsilon times their number.
        """
        log = CONTEXT.ln(as_decimal(self.ratio))
        if reports is None:
            return Decimal("Infinity") if self.ratio > 1 else log
        return CONTEXT.multiply(log, reports * (changes + 1))

    def __str__(self) -> str:
        return f"epsilon-LDP with epsilon <= {self.epsilon:.15g}"
