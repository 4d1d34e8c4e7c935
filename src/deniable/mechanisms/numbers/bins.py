"""Bins of numbers: which bin an encoded number falls into, in integers, and where bins begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable.answers.number import GRID, Number
from deniable.arrays import Counts, Floats

#: Bits of an encoded number.
FINE = GRID.bit_length() - 1
#: Bins at most, unless somebody asks for others.
USUAL_BINS = 256


@dataclass(frozen=True)
class Binning:
    """The range of a domain in at most ``most`` bins.

    Without a step, v of 0..2^32 falls into bin min(most - 1, floor(v most / 2^32)). With N numbers
    that are steps apart, the number of the step is j = floor((v (N - 1) + 2^31) / 2^32), and bins
    of ceil(N / most) steps each begin with the first. There may be fewer than ``most``.
    """

    domain: Number
    most: int

    @cached_property
    def steps(self) -> int | None:
        """N, if the numbers are steps apart."""
        return steps_of(self.domain)

    @cached_property
    def per_bin(self) -> int:
        """The steps in a bin."""
        return -(-(self.steps or self.most) // self.most)

    @cached_property
    def size(self) -> int:
        """The number of bins."""
        return -(-(self.steps or self.most) // self.per_bin)

    def of(self, value: Any) -> Any:
        """The bin of an encoded number, or of a column of them; of a skip it means nothing."""
        top = value >> FINE
        if self.steps is None:
            return ((value - top) * self.most) >> FINE  # hi is the last of its bin
        last, rest = self.steps - 1, value - (top << FINE)  # products stay below 2^64
        return (top * last + ((rest * last + GRID // 2) >> FINE)) // self.per_bin

    @cached_property
    def starts(self) -> Counts:
        """The first v, or the first step, of each bin; and the one after the last."""
        bins = np.arange(self.size + 1, dtype=np.int64)
        if self.steps is None:
            return -(-bins * GRID // self.most)
        return np.minimum(bins * self.per_bin, self.steps)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """Between which numbers of 0..1 each bin is; with a step, the first and the last in it."""
        if self.steps is None:
            edges = np.arange(self.size + 1) / self.size
            return edges[:-1], edges[1:]
        return self.starts[:-1] / (self.steps - 1), (self.starts[1:] - 1) / (self.steps - 1)

    @cached_property
    def middles(self) -> Floats:
        """The middle of each bin, as numbers of 0..1."""
        if self.steps is None:
            return np.asarray((np.arange(self.size) + 0.5) / self.size)
        return np.asarray((self.starts[:-1] + self.starts[1:] - 1) / 2 / (self.steps - 1))

    @cached_property
    def reach(self) -> float:
        """The farthest that a number of 0..1 is from the middle of its bin."""
        if self.steps is None:
            return 1 / (2 * self.size)
        return (self.per_bin - 1) / 2 / (self.steps - 1)


def steps_of(domain: Number) -> int | None:
    """How many numbers there are, if they are steps apart."""
    if domain.step is None:
        return None
    return round((domain.hi - domain.lo) / domain.step) + 1
