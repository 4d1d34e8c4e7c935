"""One number about all answers, with its error."""

from __future__ import annotations

from typing import NamedTuple

from deniable.estimation.frequencies.intervals import two_sided_z

#: The rows of `Numbers`, of which every mechanism knows the first.
MEAN, DEVIATION = "mean", "standard deviation"
#: The quantiles among the rows.
QUANTILES = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)


class Statistic(NamedTuple):
    """One number about all answers, in their unit, or a share of the answers."""

    name: str
    value: float
    standard_error: float
    #: (low, high).
    interval: tuple[float, float]

    def scaled(self, lo: float, hi: float) -> Statistic:
        """That of answers from lo to hi, of one that is about numbers from 0 to 1."""
        width, (low, high) = hi - lo, self.interval
        ends = (lo + width * low, lo + width * high)
        return Statistic(self.name, lo + width * self.value, width * self.standard_error, ends)


def quantile_name(p: float) -> str:
    """As it is called in the rows: the median, or "5 % quantile"."""
    return "median" if p == 0.5 else f"{100 * p:.12g} % quantile"


def plain(number: float) -> str:
    """As people write it: 125,000."""
    return f"{number:,.12g}"


def rounded_half_width(error: float, rounding: float, confidence: float) -> float:
    """Half of an interval for a normal estimate that is biased by at most ``rounding``."""
    z = two_sided_z(confidence)
    if not rounding:
        return z * error
    from scipy.optimize import brentq
    from scipy.special import ndtr

    b = rounding / error

    def missing(c: float) -> float:
        return confidence - float(ndtr(c - b) - ndtr(-c - b))

    return error * float(brentq(missing, z, z + b))
