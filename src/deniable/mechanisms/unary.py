"""Unary encodings: one bit a value, each randomised on its own.

The bit of the true value is reported as 1 with probability p, every other with q. Symmetric (SUE,
the one-time form of Basic RAPPOR, Erlingsson et al. 2014) and optimised (OUE, Wang et al. 2017).
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.arrays import Counts
from deniable.core.domain import DomainLike
from deniable.core.integers import Threshold
from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.errors import InvalidArgument, require_int
from deniable.mechanisms.frequency import Supports
from deniable.mechanisms.packed import PackedMechanism
from deniable.privacy import Guarantee, exp_below, kept_below
from deniable.randomness import SCALE, Coins, Keystream

if TYPE_CHECKING:
    from numpy.random import Generator

Probability = float | Fraction


class UnaryEncoding(PackedMechanism, Supports):
    """Bits with P(1 | own value) = ``one`` / 2**64 and P(1 | other) = ``zero`` / 2**64.

    Two values differ in two bits, so the likelihood ratio is exactly p (1 - q) / (q (1 - p)).
    """

    two_likelihoods = True
    bitwise = True
    one = Threshold()
    zero = Threshold()

    def report(self, value: int, coins: Coins) -> bytes:
        return self.randomised((value,), coins)

    def randomised(self, ones: Collection[int], coins: Coins) -> bytes:
        """A report of a row in which these bits are 1."""
        return self.sets.of(
            v for v in range(self.domain.size) if coins.below(self.one if v in ones else self.zero)
        )

    @property
    def coin_words(self) -> int:
        return self.domain.size

    @cached_property
    def guarantee(self) -> Guarantee:
        ratio = odds(self.p) / odds(self.q)
        return Guarantee(max(ratio, 1 / ratio))

    @property
    def p(self) -> Fraction:
        return Fraction(self.one, SCALE)

    @property
    def q(self) -> Fraction:
        return Fraction(self.zero, SCALE)

    @property
    def together(self) -> tuple[Fraction, Fraction]:
        """Bits are independent."""
        return self.p * self.q, self.q**2

    def simulated_counts(self, histogram: Counts, rng: Generator) -> Counts:
        """Every bit is a coin of its own: c_v = Bin(h_v, p) + Bin(n - h_v, q)."""
        others = int(histogram.sum()) - histogram
        own = rng.binomial(histogram, float(self.p))
        return own + rng.binomial(others, float(self.q))

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        self.fill_rows(values[:, None], out, keystream)

    def fill_rows(self, ones: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        """Write the reports of rows in which the bits ``ones[i]`` are 1; some may be the same."""
        from deniable.kernels.bits import fill_unary

        for some, rows, words in batches(ones, out, keystream, ones.shape[1]):
            own = words.reshape(-1, len(some)) < np.uint64(self.one)
            fill_unary(rows, some.T, self.domain.size, own, self.zero, keystream)


@register
class SUE(UnaryEncoding):
    """Symmetric unary encoding: p = s / (s + 1), q = 1 - p with s = e^(eps / 2).

    n Var = s / (s - 1)^2 for every frequency.
    """

    name = "sue"
    paper = "Erlingsson et al. 2014"
    good_for = "comparison with RAPPOR; small epsilon"

    def derive_one(self) -> int:
        return kept_below(Fraction(self.epsilon) / 2)

    def derive_zero(self) -> int:
        return SCALE - self.one


@register
class OUE(UnaryEncoding):
    """Optimised unary encoding: p = 1/2, q = 1 / (e^eps + 1).

    n Var = 4 e^eps / (e^eps - 1)^2 at f = 0, the least of all unary encodings.
    """

    name = "oue"
    paper = "Wang et al. 2017"
    good_for = "any k up to some thousands: low variance, fast to count"
    automatic = (Listed,)

    def derive_one(self) -> int:
        return SCALE // 2

    def derive_zero(self) -> int:
        return zero_for(self.p, self.epsilon)


@register
class UE(UnaryEncoding):
    """Unary encoding with any p > q, epsilon = ln p (1 - q) / (q (1 - p)).

    Give ``p`` and ``q`` (epsilon follows), or ``epsilon`` and ``p`` (q follows; p defaults to 1/2).
    Both are rounded to multiples of 2**-64, and the guarantee is that of the rounded numbers.
    """

    name = "ue"
    paper = "Wang et al. 2017"
    good_for = "studying p and q; other systems' settings"

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float | None = None,
        *,
        p: Probability | None = None,
        q: Probability | None = None,
        one: int | None = None,
        zero: int | None = None,
    ) -> None:
        if one is None:
            one = as_threshold("p", Fraction(1, 2) if p is None else p)
        if zero is None and q is not None:
            zero = as_threshold("q", q)
        one = require_int("one", one, 1, SCALE - 1)
        zero = None if zero is None else require_int("zero", zero, 1, SCALE - 1)
        if epsilon is None:
            if zero is None:
                raise InvalidArgument("epsilon", epsilon, "given unless both p and q are")
            if not zero < one:
                raise InvalidArgument("p", p, f"above q = {zero / SCALE:.6g} and below 1")
            ratio = odds(Fraction(one, SCALE)) / odds(Fraction(zero, SCALE))
            epsilon = Guarantee(ratio).epsilon
        super().__init__(domain, epsilon, one=one, zero=zero)

    def derive_zero(self) -> int:
        return zero_for(self.p, self.epsilon)


def odds(probability: Fraction) -> Fraction:
    """How much more probable than its opposite."""
    return probability / (1 - probability)


def zero_for(p: Fraction, epsilon: float) -> int:
    """The smallest threshold for q such that odds(p) / odds(q) <= e**epsilon."""
    least = odds(p) / exp_below(epsilon)
    return -int(-SCALE * least / (1 + least) // 1)


def as_threshold(name: str, probability: Any) -> int:
    """The integer out of 2**64 that is nearest to a probability of the caller."""
    try:
        number = Fraction(probability)
    except (TypeError, ValueError, OverflowError):
        number = Fraction(-1)
    threshold = round(number * SCALE)
    if not 0 < threshold < SCALE:
        raise InvalidArgument(name, probability, "a probability strictly between 0 and 1")
    return threshold
