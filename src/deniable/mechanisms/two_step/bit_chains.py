"""Chains of unary encodings: every bit is randomised for ever, and again for every report.

L-SUE (which is Basic RAPPOR, Erlingsson et al. 2014), L-OUE, L-SOUE and L-OSUE: symmetric or
optimised bits in either step (Arcolezi et al. 2022).
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.core.integers import Threshold
from deniable.core.mechanism import batches, pieces
from deniable.core.registry import register
from deniable.mechanisms.packed import has_bit
from deniable.mechanisms.two_step.memoised import Longitudinal, MemoisedSupports
from deniable.mechanisms.unary import OUE, SUE, UnaryEncoding, odds
from deniable.privacy import KeptBit, MemoisedGuarantee, exp_below
from deniable.randomness import SCALE, Coins, Keystream


class ChainedBits(MemoisedSupports, UnaryEncoding):
    """Bits that are kept as 1 with p1 = permanent_one / 2**64 (own) or q1 = permanent_zero / 2**64
    (other), and reported as 1 with p2 = one / 2**64 (kept as 1) or q2 = zero / 2**64 (kept as 0).

    A first report is a unary encoding with p = p1 p2 + (1 - p1) q2 and q = q1 p2 + (1 - q1) q2.
    """

    permanent_one: Any
    permanent_zero: Any

    def memoise(self, begun: Any, key: int, coins: Coins) -> bytes:
        return self.permanent_row((key,), coins)

    def instant(self, begun: Any, kept: bytes, coins: Coins) -> bytes:
        return self.reported_row(kept, coins)

    def permanent_row(self, ones: Collection[int], coins: Coins) -> bytes:
        """The row that a device keeps of a row in which these bits are 1: one word a bit."""
        return self.sets.of(
            v
            for v in range(self.domain.size)
            if coins.below(self.permanent_one if v in ones else self.permanent_zero)
        )

    def reported_row(self, row: bytes, coins: Coins) -> bytes:
        """A report of a kept row: one word a bit."""
        return self.sets.of(
            v
            for v in range(self.domain.size)
            if coins.below(self.one if has_bit(row, v) else self.zero)
        )

    def randomised(self, ones: Collection[int], coins: Coins) -> bytes:
        return self.reported_row(self.permanent_row(ones, coins), coins)

    @property
    def memoise_words(self) -> int:
        return self.domain.size

    @property
    def instant_words(self) -> int:
        return self.domain.size

    @property
    def permanent_p(self) -> Fraction:
        return Fraction(self.permanent_one, SCALE)

    @property
    def permanent_q(self) -> Fraction:
        return Fraction(self.permanent_zero, SCALE)

    @property
    def p(self) -> Fraction:
        return Fraction(self._chained(self.permanent_one), SCALE**2)

    @property
    def q(self) -> Fraction:
        return Fraction(self._chained(self.permanent_zero), SCALE**2)

    def _chained(self, first: int) -> int:
        """P(1), out of 2**128, if the kept bit is 1 with probability ``first`` / 2**64."""
        return first * self.one + (SCALE - first) * self.zero

    @cached_property
    def permanent_guarantee(self) -> MemoisedGuarantee:
        """Two answers differ in two bits: one is kept as 1 more often, one as 0."""
        p1, q1 = self.permanent_p, self.permanent_q
        if not p1 > q1:
            self._refuse_thresholds("such that a bit is kept more often than flipped")
        kept_bits = (
            KeptBit(p1, q1, Fraction(self.one, self.zero)),
            KeptBit(1 - q1, 1 - p1, Fraction(SCALE - self.zero, SCALE - self.one)),
        )
        return MemoisedGuarantee.of(kept_bits, self.domain.size)

    def fill_rows(self, ones: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        """One coin a bit with the chained probability, to all its 128 digits."""
        from deniable.kernels.bits import fill_unary

        high, low = (np.uint64(x) for x in divmod(self._chained(self.permanent_one), SCALE))
        zero, tail = divmod(self._chained(self.permanent_zero), SCALE)
        for some, rows, words in batches(ones, out, keystream, 2 * ones.shape[1]):
            first, second = words.reshape(2, -1, len(some))
            own = (first < high) | ((first == high) & (second < low))
            fill_unary(rows, some.T, self.domain.size, own, zero, keystream, tail)

    def memoise_all(
        self, begun: NDArray[Any], keys: NDArray[np.uint64], keystream: Keystream
    ) -> NDArray[Any]:
        from deniable.kernels.bits import fill_unary

        kept = self.empty_rows(len(keys))
        for some, rows, words in batches(keys.astype(np.uint32)[:, None], kept, keystream, 1):
            own = words[None, :] < np.uint64(self.permanent_one)
            fill_unary(rows, some.T, self.domain.size, own, self.permanent_zero, keystream)
        return kept[: len(keys)]

    def instant_all(
        self, begun: NDArray[Any], kept: NDArray[Any], keystream: Keystream
    ) -> NDArray[Any]:
        """A coin for the bits that are 1, another for those that are 0; the kept bit chooses."""
        from deniable.kernels.bits import as_words, clear_padding, fill_bernoulli

        out = self.empty_rows(len(kept))
        for some, rows in pieces(kept, out):
            other = np.empty_like(rows)
            fill_bernoulli(as_words(rows), self.one, keystream)
            fill_bernoulli(as_words(other), self.zero, keystream)
            mine = rows[: len(some)]
            mine[:] = (some & mine) | (~some & other[: len(some)])
            clear_padding(rows, self.domain.size)
        return out[: len(kept)]


class LongitudinalUnary(Longitudinal, ChainedBits):
    """A unary encoding for ever, that of ``first``, and bits with one free number after it.

    The second step is symmetric (p2 = 1 - q2) or has p2 = 1/2. Either way it is the sharper the
    smaller q2 is; q2 is the smallest threshold that keeps epsilon_1. t reports of one answer have
    the ratio [(p1 p2^t + (1 - p1) q2^t) / (q1 p2^t + (1 - q1) q2^t)] [(q1 (1 - p2)^t + (1 - q1) (1
    - q2)^t) / (p1 (1 - p2)^t + (1 - p1) (1 - q2)^t)].
    """

    permanent_one = Threshold()
    permanent_zero = Threshold()
    first: ClassVar[type[UnaryEncoding]]
    symmetric: ClassVar[bool]

    def derive_permanent_one(self) -> int:
        return self.first(2, self.epsilon_inf).one

    def derive_permanent_zero(self) -> int:
        return self.first(2, self.epsilon_inf).zero

    def derive_one(self) -> int:
        return self._one(self.zero)

    def _one(self, zero: int) -> int:
        return SCALE - zero if self.symmetric else SCALE // 2

    def derive_zero(self) -> int:
        """The smallest q2, by bisection, that keeps epsilon_1."""
        most = exp_below(self.epsilon_1)
        self._check_feasible(self._ratio(0))
        low, high = 0, SCALE // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._ratio(middle) <= most else (middle, high)
        return high

    def _ratio(self, zero: int) -> Fraction:
        """The likelihood ratio of a first report with this q2."""
        p2, q2 = Fraction(self._one(zero), SCALE), Fraction(zero, SCALE)
        p1, q1 = self.permanent_p, self.permanent_q
        return odds(p1 * p2 + (1 - p1) * q2) / odds(q1 * p2 + (1 - q1) * q2)


@register
class LSUE(LongitudinalUnary):
    """Symmetric bits twice, Basic RAPPOR: a first report is exactly SUE(epsilon_1).

    p2 / q2 = (A B - 1) / (A - B) with A = e^(eps_inf / 2), B = e^(eps_1 / 2).
    """

    name = "lsue"
    paper = "Erlingsson et al. 2014"
    good_for = "comparison with RAPPOR"
    first = SUE
    symmetric = True


@register
class LOSUE(LongitudinalUnary):
    """Optimised bits for ever, symmetric ones after: a first report is exactly OUE(epsilon_1).

    p2 / q2 = (a b - 1) / (a - b) with a = e^eps_inf, b = e^eps_1; the least variance of the four.
    """

    name = "losue"
    paper = "Arcolezi et al. 2022"
    good_for = "any k up to some thousands, asked for again and again: low variance"
    automatic = (Listed,)
    first = OUE
    symmetric = True


@register
class LOUE(LongitudinalUnary):
    """Optimised bits twice: p1 = p2 = 1/2, which allows e^eps_1 < (2 e^eps_inf + 1) / 3 only."""

    name = "loue"
    paper = "Arcolezi et al. 2022"
    good_for = "comparison with LOSUE"
    automatic = (Listed,)
    first = OUE
    symmetric = False


@register
class LSOUE(LongitudinalUnary):
    """Symmetric bits for ever, optimised ones after.

    With A = e^(eps_inf / 2) this allows e^eps_1 < A (2 A + 1) / (A + 2) only.
    """

    name = "lsoue"
    paper = "Arcolezi et al. 2022"
    good_for = "comparison with LOSUE"
    automatic = (Listed,)
    first = SUE
    symmetric = False
