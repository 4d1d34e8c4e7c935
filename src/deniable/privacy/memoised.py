"""What a device that remembers promises: epsilon after any number of reports, and in the limit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import mul

from deniable.exports import Shown
from deniable.privacy.guarantee import CONTEXT, Guarantee, as_decimal
from deniable.randomness import SCALE

#: Beyond 10**DIGITS the odds are as good as certainty: they are counted as that.
DIGITS = 100


@dataclass(frozen=True)
class KeptBit:
    """A kept bit, and what reports tell about it.

    It is 1 with probability ``own`` under one answer and ``other`` < own under another; the report
    that points to 1 most is ``odds`` times as likely if it is 1 (None: it tells the bit). After t
    such reports the likelihoods of the two answers have the ratio (a r^t + 1 - a) / (b r^t + 1 - b)
    with a = own, b = other, r = odds, which grows with t towards a / b.
    """

    own: Fraction
    other: Fraction
    odds: Fraction | None

    def ratio(self, reports: int | None) -> Decimal:
        """The ratio after so many reports (None: of any number)."""
        own, other = as_decimal(self.own), as_decimal(self.other)
        if self.odds is None or reports is None or self._certain(reports):
            return CONTEXT.divide(own, other)
        told = CONTEXT.subtract(CONTEXT.power(as_decimal(self.odds), reports), 1)
        more = CONTEXT.add(CONTEXT.multiply(own, told), 1)
        return CONTEXT.divide(more, CONTEXT.add(CONTEXT.multiply(other, told), 1))

    def _certain(self, reports: int) -> bool:
        return self.odds is not None and reports * math.log10(self.odds) > DIGITS

    def exactly(self, reports: int) -> Fraction:
        """The ratio after a few reports, as it is."""
        if self.odds is None:
            return self.own / self.other
        told = self.odds**reports - 1
        return (self.own * told + 1) / (self.other * told + 1)


@dataclass(frozen=True)
class MemoisedGuarantee(Guarantee, Shown):
    """``ratio`` holds for any number of reports of one answer, all made from one kept draw.

    The ``kept_bits`` are those in which two answers differ; they are independent, so their ratios
    multiply. A device keeps one draw a key (the answer, or the cell it is hashed to),
    and no more than ``keys`` of them tell two histories apart. The guarantee is about which answers
    were given, where it is known which reports were made from the same draw: two histories with the
    same partition of reports into keys. That partition (when the key changed, and that an old one
    came back) is not protected: it shows in enough reports.
    """

    kept_bits: tuple[KeptBit, ...]
    keys: int

    @classmethod
    def of(cls, kept_bits: tuple[KeptBit, ...], keys: int) -> MemoisedGuarantee:
        """The guarantee that follows from the kept bits."""
        return cls(_product(bit.own / bit.other for bit in kept_bits), kept_bits, keys)

    @property
    def once(self) -> Guarantee:
        """What one report costs."""
        return self.exactly(1)

    def exactly(self, reports: int) -> Guarantee:
        """What a few reports cost, as a ratio of integers."""
        return Guarantee(_product(bit.exactly(reports) for bit in self.kept_bits))

    def log_after(self, reports: int | None, changes: int) -> Decimal:
        """The largest log-likelihood ratio of two histories with ``changes`` changes to a new key.

        They have the same partition of reports into keys, ``reports`` reports of each. Histories
        with other partitions can be told apart with more.
        """
        each = reduce(CONTEXT.add, (CONTEXT.ln(bit.ratio(reports)) for bit in self.kept_bits))
        return CONTEXT.multiply(min(changes + 1, self.keys), each)

    def log_always(self, rounds: int, changes: int) -> Decimal:
        """`log_after` where there are ``rounds`` reports, made as `Memo.report_always` does.

        Answers that need more than changes + 1 keys are reported from a key in use: see
        `log_replaced`.
        """
        most = changes + 1
        replaced = log_replaced(rounds, most) if most < self.keys else Decimal(0)
        return CONTEXT.add(self.log_after(None, changes), replaced)

    def __str__(self) -> str:
        first = f"<= {self.once.epsilon:.15g} for the first"
        return f"epsilon-LDP with epsilon <= {self.epsilon:.15g} for all reports, {first}"


def log_replaced(rounds: int, most: int) -> Decimal:
    """What it can tell that answers without a key are reported from one of ``most`` in use.

    The key is drawn with `Coins.choice` among those in use in ascending order. That order depends
    on the answers, and the weights are not all the same: each round in which all keys are in use
    before it can tell the largest over the smallest of them.
    """
    weights = Fraction(-(-SCALE // most), SCALE // most)
    return CONTEXT.multiply(CONTEXT.ln(as_decimal(weights)), max(0, rounds - most))


def _product(ratios: Iterable[Fraction]) -> Fraction:
    return reduce(mul, ratios)
