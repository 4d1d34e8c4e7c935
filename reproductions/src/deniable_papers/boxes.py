"""Several numbers at once by Duchi et al., equations 57 to 60; T+ and T- of all reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from math import comb


def duchi_law(
    v: tuple[float, ...], epsilon: float, *, text: bool = False
) -> dict[tuple[float, ...], float]:
    """All reports and their probabilities; ``text``: with P(T+) = e^eps / (e^eps + 1) for all d."""
    d = len(v)
    bound, plus, half = duchi_bound(d, epsilon), duchi_plus(d, epsilon, text=text), duchi_half(d)
    law = dict.fromkeys(product((-bound, bound), repeat=d), 0.0)
    for x in product((-1, 1), repeat=d):
        chance = math.prod((1 + a * b) / 2 for a, b in zip(x, v, strict=True))
        for t in law:
            above = sum(a * b for a, b in zip(x, t, strict=True)) > 0
            law[t] += chance * (plus / half if above else (1 - plus) / (2**d - half))
    return law


def duchi_half(d: int) -> int:
    """C_d, the size of T+ (58)."""
    return int(2 ** (d - 1) - (0 if d % 2 else comb(d, d // 2) // 2))


def duchi_plus(d: int, epsilon: float, *, text: bool = False) -> float:
    """The probability of T+ (60)."""
    e, half = math.exp(epsilon), duchi_half(d)
    return e / (e + 1) if text else e * half / ((e - 1) * half + 2**d)


def duchi_bound(d: int, epsilon: float, *, text: bool = False) -> float:
    """B (57); ``text``: with the printed binomial of odd d, C(d - 1, 2)."""
    e = math.exp(epsilon)
    lower = d // 2 if d % 2 == 0 or not text else 2
    return float((2**d + duchi_half(d) * (e - 1)) / (comb(d - 1, lower) * (e - 1)))


def duchi_epsilon(d: int, epsilon: float, *, text: bool) -> float:
    """The largest log ratio of probabilities of a report; corners of the cube are the worst."""
    laws = [duchi_law(v, epsilon, text=text) for v in product((-1.0, 1.0), repeat=d)]
    return max(math.log(max(p) / min(p)) for p in _columns(laws))


def _columns(laws: list[dict[tuple[float, ...], float]]) -> Iterator[list[float]]:
    for t in laws[0]:
        yield [law[t] for law in laws]
