"""Subset selection: the report is a set of omega values, more often with the true one than without.

Ye and Barg (2018), Wang et al. (2016).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Bits
from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.errors import InvalidArgument
from deniable.mechanisms.frequency import Supports
from deniable.mechanisms.packed import PackedMechanism
from deniable.privacy import Guarantee, check_epsilon, exp_below
from deniable.randomness import SCALE, Coins, Keystream


@register
class SS(PackedMechanism, Supports):
    """A set of ``omega`` values, with probability p one that holds the true value.

    p = omega e^eps / (omega e^eps + k - omega) and q = (omega - p) / (k - 1). With or without the
    value, all sets are equally likely, up to the rounding of the bounded draws: omega draws from at
    most k - 1 values are within a factor 1 / (1 - d), d = omega (k - 1) / 2**64, of uniform either
    way. The guarantee carries that factor twice and so bounds the exact ratio, tightly: d is below
    1e-13 for k <= 1000.
    """

    name = "ss"
    paper = "Ye & Barg 2018"
    good_for = "lowest variance of all for middling k"
    automatic = (Listed,)
    two_likelihoods = True
    omega = Design(1, lambda m: m.domain.size - 1)
    keep = Threshold()

    @staticmethod
    def suggest_omega(k: int, epsilon: float) -> int:
        """The size with the least variance, averaged over the values (f = 1/k)."""
        ideal = k / (float(exp_below(check_epsilon(epsilon))) + 1)
        candidates = {max(1, min(k - 1, int(ideal) + step)) for step in (0, 1)}
        return min(candidates, key=lambda omega: _average_variance(k, epsilon, omega))

    def derive_omega(self) -> int:
        return self.suggest_omega(self.domain.size, self.epsilon)

    def derive_keep(self) -> int:
        k = self.domain.size
        ratio = exp_below(self.epsilon) * (1 - self._slack) ** 2
        if ratio <= 1:
            raise InvalidArgument("epsilon", self.epsilon, f"larger for subsets of {k} values")
        odds = ratio * self.omega / (k - self.omega)
        return int(SCALE * odds / (1 + odds))

    @property
    def _slack(self) -> Fraction:
        return Fraction(self.omega * (self.domain.size - 1), SCALE)

    def report(self, value: int, coins: Coins) -> bytes:
        """Partial Fisher-Yates over the others; the last drawn may give way to the value."""
        others = [v for v in range(self.domain.size) if v != value]
        for i in range(self.omega):
            j = i + coins.choice(len(others) - i)
            others[i], others[j] = others[j], others[i]
        chosen = others[: self.omega]
        if coins.below(self.keep):
            chosen[-1] = value
        return self.sets.of(chosen)

    @property
    def coin_words(self) -> int:
        return self.omega + 1

    @cached_property
    def guarantee(self) -> Guarantee:
        odds = Fraction(
            self.keep * (self.domain.size - self.omega), (SCALE - self.keep) * self.omega
        )
        return Guarantee(max(odds, 1 / odds) / (1 - self._slack) ** 2)

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, SCALE)

    @property
    def q(self) -> Fraction:
        return (self.omega - self.p) / (self.domain.size - 1)

    @property
    def together(self) -> tuple[Fraction, Fraction]:
        """Of the other k - 1 values a set holds omega - 1 beside the own one, else omega."""
        others, p, w = self.domain.size - 1, self.p, self.omega
        pairs = p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)
        return p * Fraction(w - 1, others), pairs / max(1, others * (others - 1))

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.subset import fill_subsets

        for some, rows, words in batches(values, out, keystream, 1):
            kept = words < np.uint64(self.keep)
            fill_subsets(rows, some, self.domain.size, self.omega, kept, keystream)

    @cached_property
    def sets(self) -> Bits:
        return Bits(self.domain.size, self.omega)


def _average_variance(k: int, epsilon: float, omega: int) -> float:
    weight = omega * float(exp_below(epsilon))
    p = weight / (weight + k - omega)
    q = (omega - p) / (k - 1)
    return (q * (1 - q) + (p - q) * (1 - p - q) / k) / (p - q) ** 2
