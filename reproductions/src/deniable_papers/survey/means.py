"""Table 9: five channels for a number of -1..1, as printed.

The law of a report is a mixture of uniform pieces (atoms have no width), so that its moments are
known exactly; but for Laplace noise, which is integrated numerically. One bit is the library's
`Duchi`; the library has the others on a lattice, and `reproduce numbers` compares these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

import deniable as dn
from deniable_papers.cells import Settings, Values

Floats = NDArray[np.float64]
#: (weight, low, high) of each piece.
Law = list[tuple[float, float, float]]
#: Values at which variances are looked at. They are parabolas in v: the worst is at 0 or 1.
GRID = np.linspace(0, 1, 11)


def duchi(v: float, epsilon: float) -> Law:
    """Duchi et al. with d = 1: the mechanism that the library ships."""
    m = dn.Duchi(dn.Number(-1, 1), epsilon)
    low, high = (float(2 * score - 1) for score in m.exact_scores)
    up = (v - low) / (high - low)
    return [(1 - up, low, low), (up, high, high)]


def harmony(v: float, epsilon: float) -> Law:
    """Equation 61 with d = 1."""
    e = math.exp(epsilon)
    c, up = (e + 1) / (e - 1), (v * (e - 1) + e + 1) / (2 * (e + 1))
    return [(up, c, c), (1 - up, -c, -c)]


def piecewise(v: float, epsilon: float) -> Law:
    """PM, equation 62."""
    s = math.exp(epsilon / 2)
    c = (s + 1) / (s - 1)
    low = (c + 1) / 2 * v - (c - 1) / 2
    high, inside = low + c - 1, (s * s - s) / (2 * (s + 1))
    edges = [(-c, low, inside / s**2), (low, high, inside), (high, c, inside / s**2)]
    return [((b - a) * density, a, b) for a, b, density in edges]


def hybrid(v: float, epsilon: float) -> Law:
    """HM: PM with probability 1 - e^(-eps / 2), else Duchi et al.; only that up to 0.61."""
    alpha = 1 - math.exp(-epsilon / 2) if epsilon > hybrid_switch() else 0.0
    parts = ((alpha, piecewise), (1 - alpha, duchi))
    return [(w * share, a, b) for share, law in parts for w, a, b in law(v, epsilon) if share]


@cache
def hybrid_switch() -> float:
    """Where PM at v = 0 becomes the better one: only from there on mixing it in helps."""
    return crossing(lambda epsilon: (variance("PM", 0.0, epsilon), variance("Duchi", 0.0, epsilon)))


LAWS: dict[str, Callable[[float, float], Law]] = {
    "Duchi": duchi,
    "Harmony": harmony,
    "PM": piecewise,
    "HM": hybrid,
}
NAMES = ("Laplace", *LAWS)


def variance(name: str, v: float, epsilon: float) -> float:
    """The variance of a report of v."""
    if name == "Laplace":
        return _laplace_variance(epsilon)
    law = LAWS[name](v, epsilon)
    mean = sum(w * (a + b) / 2 for w, a, b in law)
    return sum(w * (a * a + a * b + b * b) / 3 for w, a, b in law) - mean**2


def _laplace_variance(epsilon: float) -> float:
    """Noise of scale 2 / epsilon."""
    from scipy.integrate import quad

    scale = 2 / epsilon
    half, _ = quad(lambda x: x * x * math.exp(-x / scale) / (2 * scale), 0, math.inf)
    return float(2 * half)


def worst(name: str, epsilon: float) -> float:
    """The largest variance of any value."""
    return max(variance(name, float(v), epsilon) for v in GRID)


def average(name: str, epsilon: float) -> float:
    """The mean variance of values that are spread evenly; variances are parabolas in v."""
    at = [variance(name, v, epsilon) for v in (0.0, 0.5, 1.0)]
    return (at[0] + 4 * at[1] + at[2]) / 6


def crossing(pair: Callable[[float], tuple[float, float]]) -> float:
    """The epsilon at which the first of a pair becomes the smaller one."""
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        one, other = pair(epsilon)
        return one / other - 1

    return float(brentq(excess, 0.05, 5.0))


def published(name: str, epsilon: float) -> float:
    """The last column of Table 9."""
    e, s = math.exp(epsilon), math.exp(epsilon / 2)
    duchi = ((e + 1) / (e - 1)) ** 2
    if name == "Laplace":
        return 8 / epsilon**2
    if name == "PM":
        return 4 * s / (3 * (s - 1) ** 2)
    if name == "HM" and epsilon > 0.61:
        return (s + 3) / (3 * s * (s - 1)) + duchi / s
    return duchi


def simulate(settings: Settings, rng: np.random.Generator) -> Values:
    """The mean squared error of drawn reports of the worst value, with its standard error."""
    name, epsilon, draws = settings["mechanism"], settings["epsilon"], settings["draws"]
    v = float(GRID[np.argmax([variance(name, float(v), epsilon) for v in GRID])])
    squares = (_draw(name, v, epsilon, draws, rng) - v) ** 2
    return {
        "v": v,
        "mean": float(f"{squares.mean():.12g}"),
        "error": float(f"{squares.std(ddof=1) / draws**0.5:.6g}"),
    }


def _draw(name: str, v: float, epsilon: float, draws: int, rng: np.random.Generator) -> Floats:
    if name == "Laplace":
        return v + rng.laplace(scale=2 / epsilon, size=draws)
    weights, low, high = np.array(LAWS[name](v, epsilon)).T
    piece = rng.choice(len(weights), size=draws, p=weights / weights.sum())
    drawn: Floats = rng.uniform(low[piece], high[piece])
    return drawn
