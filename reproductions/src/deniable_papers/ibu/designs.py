"""The fourteen mechanisms: what their reports are, and what the two decoders believe they are.

A design has the true probabilities p and q that a report supports the own and another value, and
the p and q that matrix inversion and IBU use. They differ where the paper's formulas are wrong.
With a = e^eps_inf and b = e^eps_1, and c the ratio of the second step:

* text: as printed. SS and OLH round down. L-GRR and L-LH have c = (a b - 1) / (a - b), which is
  right for two values only, and p = p1 p2 + q1 q2, q = p1 q2 + q1 p2 in both decoders, where L-LH
  takes q1 = 1 / g.
* software: as in multi-freq-ldpy. SS, OLH and L-OLH round to the nearest. The same c, but matrix
  inversion is right, and only IBU has p = p1 p2 + (1 - p1) q2 and q = p1 q2 + q1 p2.
* corrected: the mechanisms of this library, and their own p and q everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from deniable.mechanisms import mechanism

ONE_TIME = ("GRR", "SUE", "OUE", "SS", "THE", "BLH", "OLH")
LONGITUDINAL = ("L-GRR", "L-SUE", "L-OUE", "L-SOUE", "L-OSUE", "L-BLH", "L-OLH")
MECHANISMS = ONE_TIME + LONGITUDINAL
SETTINGS = ("text", "software", "corrected")
Pair = tuple[float, float]


@dataclass(frozen=True)
class Design:
    """How counts arise (``law``: direct, bits or subset) and what the decoders are told."""

    law: str
    p: float
    q: float
    inverse: Pair
    update: Pair
    omega: int = 1


@cache
def design(setting: str, name: str, k: int, epsilon: float) -> Design:
    """A mechanism for k values, at epsilon or, if longitudinal, epsilon_1 and twice that."""
    if setting == "corrected" or name not in _PUBLISHED:
        return _corrected(name, k, epsilon)
    return _PUBLISHED[name](setting == "text", k, epsilon)


def settings_of(name: str) -> tuple[str, ...]:
    """The settings in which a mechanism differs; the others are as the first of these."""
    if name not in _PUBLISHED:
        return ("corrected",)
    return ("software", "corrected") if name == "THE" else SETTINGS


def _honest(law: str, p: float, q: float, omega: int = 1) -> Design:
    return Design(law, p, q, (p, q), (p, q), omega)


def _corrected(name: str, k: int, epsilon: float) -> Design:
    """Ideal hashing makes the bits "v is supported" of a report independent, as in UE."""
    budget = {"epsilon": epsilon}
    if name in LONGITUDINAL:
        budget = {"epsilon_inf": 2 * epsilon, "epsilon_1": epsilon}
    m: Any = mechanism(name.replace("-", "").lower(), k, **budget)
    law = "direct" if name.endswith("GRR") else "subset" if name == "SS" else "bits"
    return _honest(law, float(m.p), float(m.q), int(getattr(m, "omega", 1)))


def _subset(text: bool, k: int, epsilon: float) -> Design:
    """omega = k / (e^eps + 1), which the text rounds down; 0 would be no report at all."""
    e = math.exp(epsilon)
    omega = max(1, (math.floor if text else round)(k / (e + 1)))
    p = omega * e / (omega * e + k - omega)
    return _honest("subset", p, (omega - p) / (k - 1), omega)


def _thresholded(text: bool, k: int, epsilon: float) -> Design:
    """The threshold that has the least variance at f = 0, by the paper's objective."""
    from scipy.optimize import minimize_scalar

    def variance(theta: float) -> float:
        x = math.exp(epsilon * theta / 2)
        return float((2 * x - 1) / (1 + math.exp(epsilon * (theta - 0.5)) - 2 * x) ** 2)

    theta = float(minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded").x)
    p = 1 - math.exp(epsilon * (theta - 1) / 2) / 2
    return _honest("bits", p, math.exp(-epsilon * theta / 2) / 2)


def _hashed(text: bool, k: int, epsilon: float) -> Design:
    e = math.exp(epsilon)
    g = (math.floor if text else round)(e) + 1
    return _honest("bits", e / (e + g - 1), 1 / g)


def _chain(size: int, epsilon: float) -> tuple[float, float, float, float]:
    """p1, q1, p2, q2 of the published chain of k-RR on ``size`` outcomes."""
    a, b = math.exp(2 * epsilon), math.exp(epsilon)
    c = (a * b - 1) / (a - b)
    p1, p2 = a / (a + size - 1), c / (c + size - 1)
    return p1, (1 - p1) / (size - 1), p2, (1 - p2) / (size - 1)


def _direct_chain(text: bool, k: int, epsilon: float) -> Design:
    p1, q1, p2, q2 = _chain(k, epsilon)
    p = p1 * p2 + (1 - p1) * q2
    true = p, q1 * (p2 - q2) + q2
    wrong = p1 * q2 + q1 * p2
    if text:
        printed = p1 * p2 + q1 * q2, wrong
        return Design("direct", *true, printed, printed)
    return Design("direct", *true, true, (p, wrong))


def _hashed_chain(g: int, text: bool, epsilon: float) -> Design:
    p1, _, p2, q2 = _chain(g, epsilon)
    p = p1 * p2 + (1 - p1) * q2
    true = p, 1 / g
    wrong = p1 * q2 + p2 / g
    if text:
        printed = p1 * p2 + q2 / g, wrong
        return Design("bits", *true, printed, printed)
    return Design("bits", *true, true, (p, wrong))


def _binary_chain(text: bool, k: int, epsilon: float) -> Design:
    return _hashed_chain(2, text, epsilon)


def _best_chain(text: bool, k: int, epsilon: float) -> Design:
    """g = 1 + x, which the text rounds down."""
    a, b = math.exp(2 * epsilon), math.exp(epsilon)
    root = math.sqrt(a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1)
    x = (1 - a**2 + root) / (6 * (a - b))
    return _hashed_chain(1 + max(1, (math.floor if text else round)(x)), text, epsilon)


#: Those in which there is something to correct.
_PUBLISHED: dict[str, Callable[[bool, int, float], Design]] = {
    "SS": _subset,
    "THE": _thresholded,
    "OLH": _hashed,
    "L-GRR": _direct_chain,
    "L-BLH": _binary_chain,
    "L-OLH": _best_chain,
}
