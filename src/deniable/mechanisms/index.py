"""Reports that are one index of 0..cells-1, in the smallest unsigned integer that holds it."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from deniable.core.integers import Threshold
from deniable.core.layout import Index
from deniable.mechanisms.frequency import FrequencyOracle, Supports
from deniable.privacy import Guarantee, kept_below
from deniable.randomness import SCALE


class IndexMechanism(FrequencyOracle):
    """What randomised response and Hadamard response share."""

    counts_suffice = True

    @property
    def cells(self) -> int:
        return self.domain.size

    @cached_property
    def layout(self) -> Index:
        return Index(self.cells)


class RandomisedBit(IndexMechanism, Supports):
    """A bit of the value is kept with p = keep / 2**64 = e^eps / (e^eps + 1), else flipped."""

    two_likelihoods = True
    keep = Threshold()

    def derive_keep(self) -> int:
        return kept_below(self.epsilon)

    @cached_property
    def guarantee(self) -> Guarantee:
        odds = Fraction(self.keep, SCALE - self.keep)
        return Guarantee(max(odds, 1 / odds))

    @property
    def p(self) -> Fraction:
        return Fraction(self.keep, SCALE)
