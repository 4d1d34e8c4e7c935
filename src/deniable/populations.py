"""Simulated populations: the share of each of k answers, by the name of a distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats
from deniable.errors import InvalidArgument, is_number, require_int, require_share, require_type

#: What a simulation can hold in memory.
MOST_ANSWERS = 1 << 24


def uniform(k: int) -> Floats:
    """All answers are equally frequent."""
    return _shares(np.ones(_size(k)))


def zipf(k: int, exponent: float = 1.0) -> Floats:
    """Answer i = 1..k weighs i ** -exponent."""
    if not is_number(exponent) or not 0 <= exponent < math.inf:
        raise InvalidArgument("exponent", exponent, "a number of at least 0")
    return _shares(np.arange(1.0, _size(k) + 1) ** -float(exponent))


def geometric(k: int, ratio: float = 0.9) -> Floats:
    """Every answer is ``ratio`` times as frequent as the one before.

    If nothing were cut off at k, the mean would be k / m at a ratio of k / (k + m).
    """
    return _shares(require_share("ratio", ratio) ** np.arange(_size(k)))


def gaussian(k: int, centre: float = 0.5, width: float = 0.125) -> Floats:
    """A bell about ``centre`` with the standard deviation ``width``, both as parts of k."""
    middle, deviation = require_share("centre", centre), require_share("width", width)
    away = np.arange(_size(k)) - k * middle
    return _shares(np.exp(-(away**2) / (2 * (k * deviation) ** 2)))


def step(k: int, few: int, rest: float) -> Floats:
    """The first few answers are equally frequent; all others share ``rest`` equally."""
    require_int("few", few, 1, _size(k) - 1)
    if not is_number(rest) or not 0 <= rest < 1:
        raise InvalidArgument("rest", rest, "a number of at least 0 and below 1")
    return _shares(np.where(np.arange(k) < few, (1 - rest) / few, rest / (k - few)))


def spike(k: int) -> Floats:
    """The first five answers have everything; of five or fewer, all but the last."""
    return step(k, min(5, _size(k) - 1), 0.0)


def binomial(k: int, chance: float) -> Floats:
    """How many of k - 1 trials succeed."""
    from scipy.stats import binom

    chance = require_share("chance", chance)
    return _shares(binom.pmf(np.arange(_size(k)), k - 1, chance))


def dirichlet(k: int, rng: np.random.Generator) -> Floats:
    """A random distribution: all of them are equally likely."""
    require_type("rng", rng, np.random.Generator)
    return _shares(rng.exponential(size=_size(k)))


#: What a command calls them, with their usual parameters.
POPULATIONS: dict[str, Callable[[int], Floats]] = {
    "uniform": uniform,
    "zipf": zipf,
    "geometric": geometric,
    "gaussian": gaussian,
    "spike": spike,
}


def people(shares: Floats, n: int) -> Counts:
    """n people, whose answers have these shares as nearly as whole people allow."""
    edges = np.rint(np.cumsum(shares) * n).astype(np.int64)
    return np.asarray(np.diff(edges, prepend=0))


def _size(k: Any) -> int:
    return require_int("k", k, 2, MOST_ANSWERS)


def _shares(weights: NDArray[np.floating[Any]]) -> Floats:
    return np.asarray(weights / weights.sum(), dtype=np.float64)
