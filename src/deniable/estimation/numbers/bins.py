"""The bins that an estimated distribution is in: on the scale of answers, and of 0..1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.answers.number import GRID, Number
from deniable.arrays import Counts, Floats
from deniable.mechanisms.numbers.bins import Binning, steps_of

#: A number so near to a step, in steps, is the step.
NEAR = 1e-6


@dataclass(frozen=True, eq=False)
class Bins:
    """k bins that begin at ``starts``: the first encoded number, or the first step, of each.

    The last start is the one of the bin after the last. Where numbers are steps apart, a bin is
    drawn half a step beyond its first and last number.
    """

    domain: Number
    starts: Counts

    @classmethod
    def of(cls, domain: Number, binnings: Sequence[Binning]) -> Bins:
        """The coarsest bins of which those of all mechanisms are made."""
        starts = np.unique(np.concatenate([binning.starts for binning in binnings]))
        return cls(domain, starts)

    @property
    def size(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def steps(self) -> int | None:
        return steps_of(self.domain)

    @property
    def _unit(self) -> int:
        """What 1 is in the units of the starts."""
        return GRID if self.steps is None else max(1, self.steps - 1)

    @property
    def low(self) -> Floats:
        """The smallest number of each bin, of 0..1."""
        return np.asarray(self.starts[:-1] / self._unit)

    @property
    def high(self) -> Floats:
        """The largest number of each bin, or the first of the next if there are no steps."""
        return np.asarray((self.starts[1:] - (self.steps is not None)) / self._unit)

    def answers(self, x: Floats) -> Floats:
        """Numbers of 0..1 on the scale of answers."""
        return np.asarray(self.domain.lo + x * (self.domain.hi - self.domain.lo))

    @property
    def edges(self) -> Floats:
        """Where bins are drawn to begin, and where the last one ends, on the scale of answers."""
        return self.answers((self.starts - (self.steps is not None) / 2) / self._unit)

    def up_to(self, answer: float) -> float:
        """How many bins hold the numbers that are at most this one; parts of bins are shares."""
        x = (answer - self.domain.lo) / (self.domain.hi - self.domain.lo)
        found = x * self._unit if self.steps is None else np.floor(x * self._unit + NEAR) + 1
        return float(np.interp(found, self.starts, np.arange(self.size + 1)))

    def below(self, answer: float) -> float:
        """How many bins hold the numbers that are less than this one."""
        if self.steps is None:
            return self.up_to(answer)
        x = (answer - self.domain.lo) / (self.domain.hi - self.domain.lo)
        found = np.ceil(x * self._unit - NEAR)
        return float(np.interp(found, self.starts, np.arange(self.size + 1)))

    def touched(self, low: float, high: float) -> tuple[int, int]:
        """From which bin on, and before which one, answers from ``low`` to ``high`` may be.

        Without steps an answer at the edge of two bins is in the upper one.
        """
        if self.steps is not None:
            first, last = self.below(low), self.up_to(high)
            return (math.floor(first), math.ceil(last)) if first < last else (0, 0)
        if high < self.domain.lo or low > self.domain.hi:
            return 0, 0
        inside = np.clip([low, high], self.domain.lo, self.domain.hi)
        found = self.domain.encode(inside).astype(np.int64)
        own, end = np.searchsorted(self.starts[:-1], found, side="right").tolist()
        return own - 1, end

    def at(self, place: float) -> float:
        """The answer that so many bins lead to: the last number of the last of them."""
        found = float(np.interp(place, np.arange(self.size + 1), self.starts))
        if self.steps is not None:
            found = max(float(np.ceil(found - NEAR)) - 1, 0.0)
        return float(self.answers(np.array(found / self._unit)))

    def matrix(self, binning: Binning) -> Counts:
        """The bin of a mechanism in which each bin is."""
        return np.searchsorted(binning.starts, self.starts[:-1], side="right") - 1
