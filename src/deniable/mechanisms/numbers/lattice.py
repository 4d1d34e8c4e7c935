"""Numbers that are rounded to a lattice before they are randomised: mechanisms for comparison.

One bit: Duchi, Jordan and Wainwright (2018). Noise: Dwork, McSherry, Nissim and Smith (2006).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.number import GRID
from deniable.arrays import Floats
from deniable.core.domain import Domain
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Index
from deniable.core.mechanism import batches
from deniable.core.registry import register
from deniable.mechanisms.numbers.scores import Scores
from deniable.privacy import Guarantee, exp_below, kept_below
from deniable.randomness import SCALE, Coins, Keystream, Words

MOST_STEPS = 4096
MOST_REACH = 1 << 16
#: A coin below a number of the grid, out of 2**32, is one below so many of 2**64.
_COINS = SCALE // GRID


class Lattice(Scores):
    """A number x of 0..1 is rounded to j of 0..M, up or down, so that the mean of j / M is x.

    M is ``steps``. Between two points of the lattice the noise of a score is a parabola.
    """

    on_devices = False
    trials = 150  # their decoder is that of `Scores`, and their noise is enumerated
    steps: int

    @classmethod
    def unsuited(cls, domain: Domain) -> str | None:
        other = super().unsuited(domain)
        return "numbers that nobody may skip" if other is None and domain.optional else other

    def rounded(self, value: int, coins: Coins) -> int:
        """j, with one word."""
        whole, rest = divmod(value * self.steps, GRID)
        return min(whole + coins.below(rest * _COINS), self.steps)

    def rounded_column(self, values: NDArray[Any], words: Words) -> NDArray[np.uint64]:
        """`rounded`, of many."""
        scaled = values * np.uint64(self.steps)
        fine, last = np.uint64(GRID.bit_length() - 1), np.uint64(GRID - 1)
        return (scaled >> fine) + ((words >> fine) < (scaled & last))

    @cached_property
    def layout(self) -> Index:
        return Index(len(self.exact_scores))

    @property
    @abstractmethod
    def point_noise(self) -> Floats:
        """The variance of the score of those who are rounded to each j."""

    def noise(self, x: Floats) -> Floats:
        """That of the two j, and of the rounding: r (1 - r) / M^2, with r the fraction of M x."""
        places = self.steps * np.asarray(x)
        r = places % 1
        between = np.interp(places, np.arange(self.steps + 1), self.point_noise)
        return np.asarray(between + r * (1 - r) / self.steps**2)

    @property
    def extremes(self) -> Floats:
        """The lattice, and where the parabolas between its points are highest."""
        points = np.arange(self.steps + 1) / self.steps
        low, high = points[:-1], points[1:]
        at_low, at_middle, at_high = (self.noise(x) for x in (low, (low + high) / 2, high))
        bend, slope = 2 * (at_low + at_high - 2 * at_middle), 4 * at_middle - 3 * at_low - at_high
        peaks = low + np.clip(-slope / (2 * bend), 0, 1) / self.steps
        return np.union1d(points, peaks)


@register
class Duchi(Lattice):
    """x is rounded to a bit, which is kept with p = keep / 2**64 = e^eps / (e^eps + 1), or flipped.

    With c = 1 / (2 p - 1) and v = 2 x - 1, n Var = c^2 - v^2 for a mean of v. For one number, the
    mechanism of Duchi et al., Harmony (Nguyen et al. 2016) and 1BitMean (Ding et al. 2017) are this
    one.
    """

    name = "duchi"
    also = ("harmony", "1bitmean")
    paper = "Duchi et al. 2018"
    good_for = "the mean of a number, by one bit: comparison"
    steps = 1
    keep = Threshold()

    def derive_keep(self) -> int:
        return kept_below(self.epsilon)

    def report(self, value: int, coins: Coins) -> int:
        bit = self.rounded(value, coins)
        return bit if coins.below(self.keep) else 1 - bit

    @property
    def coin_words(self) -> int:
        return 2

    @cached_property
    def guarantee(self) -> Guarantee:
        odds = Fraction(self.keep, SCALE - self.keep)
        return Guarantee(max(odds, 1 / odds))

    def _check(self) -> None:
        super()._check()
        if 2 * self.keep <= SCALE:
            self._refuse_thresholds("such that a bit is rather kept than flipped")

    @property
    def p(self) -> Fraction:
        """The probability that the bit is kept."""
        return Fraction(self.keep, SCALE)

    @cached_property
    def exact_scores(self) -> tuple[Fraction, ...]:
        return tuple((bit - (1 - self.p)) / (2 * self.p - 1) for bit in (0, 1))

    @property
    def random_share(self) -> float:
        return float(2 * (1 - self.p))

    @cached_property
    def point_noise(self) -> Floats:
        return np.full(2, float(self.p * (1 - self.p) / (2 * self.p - 1) ** 2))

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        keep = np.uint64(self.keep)
        for some, target, words in batches(values, out, keystream, self.coin_words):
            n = len(some)
            target[:n] = self.rounded_column(some, words[:n]) ^ (words[n:] >= keep)


@register
class Laplace(Lattice):
    """Two-sided geometric noise on the lattice, cut off ``reach`` = B points beyond its ends.

    y = j + Z with P(Z = z) ~ a^|z|, where a = decay / 2**64 is a little above e^(-eps / M), so that
    the rounding of weights cannot break epsilon. What would fall beyond -B or M + B is reported as
    that end, whose score is the mean of all that lies there: a / (1 - a) further out. So the noise
    that is cut off makes no bias; the rounding of weights makes one below `mean_error`. With the
    mean of v = 2 x - 1, n Var is at most 8 a / ((1 - a)^2 M^2) and the part of rounding, about
    8 / eps^2.
    """

    name = "laplace"
    paper = "Dwork et al. 2006"
    good_for = "the mean of a number, with noise: comparison"
    spends_all = False
    small_design = {"steps": 4}
    steps = Design(1, MOST_STEPS, default=32)
    reach = Design(0, MOST_REACH)
    decay = Threshold()

    def derive_reach(self) -> int:
        """Less than 2**-20 of the noise lies further out; or as far as weights are above 2**20."""
        outside = min(20 / self.epsilon, 42 / self.epsilon - 1 / math.log(2)) * math.log(2)
        return min(max(0, int(outside * self.steps)), MOST_REACH)

    def derive_decay(self) -> int:
        """a, which leaves a share of 2**-16 of epsilon to rounding."""
        spent = Fraction(self.epsilon) * (1 - Fraction(1, 1 << 16))
        return -int(-SCALE / exp_below(spent / self.steps) // 1)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """How many of 2**64 words give Z = 0, 1, ..., M + B, which holds all that is further out.

        Those of -1, -2, ... are the same. All are rounded down, and both ends share what is left.
        """
        power, near = (SCALE << 128) // (SCALE + self.decay), []
        for _ in range(self.steps + self.reach):
            near.append(power * (SCALE - self.decay) >> 128)
            power = power * self.decay >> 64
        near[0] -= near[0] % 2
        found = (*near, (SCALE + near[0]) // 2 - sum(near))
        if min(found) < 1:
            self._refuse_thresholds("such that every noise has a positive weight")
        return found

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        return tuple(accumulate((*self.weights[:0:-1], *self.weights[:-1])))

    def report(self, value: int, coins: Coins) -> int:
        j = self.rounded(value, coins)
        place = j + coins.pick(self._edges) - self.steps  # j + Z + B
        return min(max(place, 0), self.steps + 2 * self.reach)

    @property
    def coin_words(self) -> int:
        return 2

    @cached_property
    def guarantee(self) -> Guarantee:
        """The largest ratio of the weights of two noises that lie M apart, or of both tails."""
        weight, m = self.weights, self.steps
        pairs = [(weight[z], weight[z + m]) for z in range(self.reach)]
        pairs.append((sum(weight[self.reach :]), weight[-1]))
        return Guarantee(max(Fraction(near, far) for near, far in pairs))

    @property
    def _beyond(self) -> Fraction:
        """The mean of what is cut off."""
        return Fraction(self.decay, SCALE - self.decay)

    @cached_property
    def exact_scores(self) -> tuple[Fraction, ...]:
        inside = range(1 - self.reach, self.steps + self.reach)
        low = -self.reach - self._beyond
        return tuple(Fraction(y) / self.steps for y in (low, *inside, self.steps - low))

    @property
    def mean_error(self) -> float:
        return 1 / GRID

    @property
    def random_share(self) -> float:
        return math.exp(-self.epsilon / 2)

    @property
    def _noise(self) -> float:
        """The variance of Z / M where nothing is cut off: 2 a / ((1 - a)^2 M^2)."""
        a = Fraction(self.decay, SCALE)
        return float(2 * a / ((1 - a) * self.steps) ** 2)

    @property
    def point_noise(self) -> Floats:
        return np.full(self.steps + 1, self._noise)

    @cached_property
    def squares(self) -> Floats:
        """(y / M)^2 less the noise and, at most, the rounding; of an end, the mean of all there."""
        found = self.scores**2 - self._noise - self.square_error
        found[[0, -1]] += float(self._beyond * (1 + self._beyond)) / self.steps**2
        return found

    @property
    def square_error(self) -> float:
        return 1 / (2 * self.steps) ** 2

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        edges = np.array(self._edges, dtype=np.uint64)
        last = self.steps + 2 * self.reach
        for some, target, words in batches(values, out, keystream, self.coin_words):
            n = len(some)
            places = np.searchsorted(edges, words[n:], side="right") - self.steps
            places += self.rounded_column(some, words[:n]).astype(np.int64)
            target[:n] = np.clip(places, 0, last)
