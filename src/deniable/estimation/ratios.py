"""Ratios R = T / N of two estimates that err together: what is true of some of the respondents.

N is the share of these people among all respondents (those who answered, those of a group), and T
is what they add. Neither R nor its error is simple, but T - R N is: at the true R its mean is 0.
With the variance v(R) of that difference, {R: (T - R N)^2 <= z^2 v(R)} holds the true R as often as
|Z| <= z for a normal Z (Fieller 1954). As v is quadratic in R, so is the condition. It describes an
interval unless N is within z standard errors of 0. Ratios are refused before that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deniable.arrays import Floats
from deniable.core.task import two_digits
from deniable.errors import TooFew

#: N must be so many of its standard errors: an empty group passes once in 30,000 times.
CLEAR = 4.0


class Residual(NamedTuple):
    """v(R) = Var(T - R N) = constant + linear R + square R^2; numbers, or one for each ratio."""

    constant: ArrayLike
    linear: ArrayLike
    square: ArrayLike

    @classmethod
    def of(cls, top: ArrayLike, both: ArrayLike, bottom: ArrayLike) -> Residual:
        """From Var(T), Cov(T, N) and Var(N)."""
        return cls(top, -2 * np.asarray(both), bottom)

    def at(self, ratio: ArrayLike) -> Floats:
        """The variance at this ratio."""
        r, linear, square = map(np.asarray, (ratio, self.linear, self.square))
        return np.asarray(self.constant + linear * r + square * r**2, dtype=np.float64)


def ratio_errors(top: ArrayLike, bottom: ArrayLike, residual: Residual) -> Floats:
    """The standard errors of T / N, to first order: sqrt v(T / N) / N."""
    ratio = np.asarray(top) / np.asarray(bottom)
    return np.asarray(np.sqrt(np.maximum(residual.at(ratio), 0.0)) / bottom)


def ratio_intervals(
    top: ArrayLike,
    bottom: ArrayLike,
    residual: Residual,
    z: float,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Floats:
    """The ends (low, high), on the last axis, of the R with (T - R N)^2 <= z^2 v(R).

    They are cut to the ``limits`` of R, and are these limits where N is within z standard errors of
    0. The condition is A R^2 - 2 h R + C <= 0, with A = N^2 - z^2 square, h = T N + z^2 linear / 2
    and C = T^2 - z^2 constant. If every R is rejected, which takes v(T / N) < 0, both ends are the
    R next to T / N whose variance is not negative.
    """
    t, n, constant, linear, square = np.broadcast_arrays(top, bottom, *residual)
    leading = n**2 - z**2 * square
    h = t * n + z**2 * linear / 2
    discriminant = h**2 - leading * (t**2 - z**2 * constant)
    half = np.sqrt(np.maximum(discriminant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([h - half, h + half], axis=-1) / leading[..., None]
        if np.any(discriminant < 0):
            nearest = _nearest_possible(t / n, constant, linear, square)
            ends = np.where((discriminant < 0)[..., None], nearest[..., None], ends)
    ends = np.where((leading > 0)[..., None], ends, limits)
    return np.asarray(np.clip(ends, *limits))


def _nearest_possible(r: Floats, constant: Floats, linear: Floats, square: Floats) -> Floats:
    """The zero of v next to r, where v(r) < 0; r itself if v is negative everywhere."""
    root = np.sqrt(np.maximum(linear**2 - 4 * square * constant, 0.0))
    # Both zeros of a quadratic without cancellation; those of a line are the second and infinity.
    sum_ = -(linear + np.copysign(root, linear)) / 2
    zeros = np.stack([sum_ / square, constant / sum_])
    far = np.where(np.isfinite(zeros), np.abs(zeros - r), np.inf)
    nearest = np.take_along_axis(zeros, far.argmin(axis=0)[None], axis=0)[0]
    return np.where(np.isfinite(far).any(axis=0) & (root > 0), nearest, r)


def require_enough(people: str, share: float, error: float, n: int) -> None:
    """Refuse a ratio among ``people`` who are too small a share of n respondents.

    ``people`` is what they are called: "people who answered".
    """
    if reason := too_few(people, share, error, n):
        raise TooFew(reason)


def too_few(people: str, share: float, error: float, n: int) -> str:
    """Why nothing is said about ``people``: their share is less than `CLEAR` standard errors.

    Empty if it is more. The n that would do is told where the share is clearly above 0.
    """
    if share >= CLEAR * error:
        return ""
    share = min(share, 1.0)
    found = f"{_two(100 * max(share, 0.0))} % ± {_two(100 * 2 * error)} points"
    words = f"too few {people} to tell: they are {found} of {n:,} respondents"
    return f"{words}; about {people_needed(share, error, n):,} would do" if share > error else words


def people_needed(share: float, error: float, n: int) -> int:
    """How many respondents bring the share to `CLEAR` standard errors: 16 n Var(N) / N^2."""
    return two_digits(math.ceil(n * (CLEAR * error / share) ** 2))


def _two(number: float) -> str:
    """Two digits, all of a large number."""
    return f"{number:.0f}" if number >= 9.95 else f"{number:.2g}"
