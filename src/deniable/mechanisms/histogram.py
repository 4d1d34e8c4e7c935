"""Histogram encodings: Laplace noise on every cell of a one-hot histogram.

Wang et al. (2017) either sum the noisy cells (SHE) or only report which of them exceed a threshold
(THE). Both are drawn here from integer weights: there is no continuous noise on a device.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Bytes
from deniable.core.mechanism import pieces
from deniable.core.registry import register
from deniable.mechanisms.discrete_laplace import clamped_laplace
from deniable.mechanisms.frequency import FrequencyOracle, Line
from deniable.mechanisms.unary import UnaryEncoding
from deniable.privacy import Guarantee, check_epsilon, exp_below
from deniable.randomness import SCALE, Coins, Keystream

if TYPE_CHECKING:
    from numpy.random import Generator

#: THE's threshold is a multiple of 1 / UNIT.
UNIT = 1024
MOST_STEPS = 16
#: The largest value of a byte.
TOP = 255


@register
class THE(UnaryEncoding):
    """Thresholded histogram encoding: the bit of v says 1{v = own} + Laplace(2 / eps) > theta.

    Such a bit is a coin: p = 1 - e^(eps (theta - 1) / 2) / 2 and q = e^(-eps theta / 2) / 2, so no
    noise is drawn. ``theta`` is in units of 1/1024, by default the one with the least variance.

    ``epsilon`` is that of the noise, by which THE is known. The bits reveal less, and that is what
    ``guarantee`` says: 0.472, 0.896, 1.636 and 2.859 for many values at 0.5, 1, 2 and 4. A unary
    encoding that spends all of epsilon is better: n Var is 4.81 at epsilon 1, that of OUE 3.68.
    """

    name = "the"
    paper = "Wang et al. 2017"
    good_for = "comparison; OUE is better at every epsilon"
    spends_all = False
    theta = Design(UNIT // 2, UNIT)

    @staticmethod
    def suggest_theta(k: int, epsilon: float) -> int:
        """The threshold with the least variance, averaged over the values (f = 1/k)."""
        half = check_epsilon(epsilon) / 2
        theta = np.arange(UNIT // 2, UNIT + 1)
        p = 1 - np.exp(half * (theta / UNIT - 1)) / 2
        q = np.exp(-half * theta / UNIT) / 2
        variance = (q * (1 - q) / (p - q) + (1 - p - q) / k) / (p - q)
        return int(theta[np.argmin(variance)])

    def derive_theta(self) -> int:
        return self.suggest_theta(self.domain.size, self.epsilon)

    # p is rounded down and q up: both make the likelihood ratio smaller.

    def derive_one(self) -> int:
        half = Fraction(self.epsilon) / 2
        return int(SCALE - SCALE / (2 * exp_below(half * (UNIT - self.theta) / UNIT)))

    def derive_zero(self) -> int:
        half = Fraction(self.epsilon) / 2
        return -int(-SCALE / (2 * exp_below(half * self.theta / UNIT)) // 1)


@register
class SHE(FrequencyOracle):
    """Summed histogram encoding, on a lattice: y_v = L 1{v = own} + Z_v, clamped to -B..L+B.

    Z_v is discrete Laplace, P(Z = z) ~ a^|z| with a = e^(-eps / (2 L)), L = ``steps`` lattice steps
    a unit and B = ``reach``. A report holds y_v + B, one byte a value. The weights are integers out
    of 2**64 (`clamped_laplace`), and those of the own value are the mirror image of the others'.
    Two values differ in two cells, so the likelihood ratio is (max_y W(L - y) / W(y))^2.

    The clamped law is known exactly, so f_v = (mean y_v - mu) / (L - 2 mu), where mu is the mean of
    the clamped noise around 0, is unbiased for every reach, and n Var = Var(y) / (L - 2 mu)^2 for
    every frequency. With L = 1 and a far reach that is 1 / (2 sinh^2(eps / 4)), less than the
    8 / eps^2 of continuous noise, which more steps approach. The extreme clamp, B = 0 with L = 1,
    is SUE.
    """

    name = "she"
    paper = "Wang et al. 2017"
    good_for = "comparison with Laplace noise; OUE is better and shorter"
    small_design = {"reach": 1}
    steps = Design(1, MOST_STEPS, default=1)
    reach = Design(0, lambda m: m.most_reach(m.epsilon, m.steps))
    decay = Threshold()

    def _check(self) -> None:
        super()._check()
        if not self.gap:
            self._refuse_thresholds("such that a report tells its own value from others")

    @staticmethod
    def most_reach(epsilon: float, steps: int = 1) -> int:
        """The largest reach: a report is a byte, and its rarest value has weight e^-40 or more."""
        return min((TOP - steps) // 2, int(80 * steps / Fraction(epsilon)) - steps)

    def derive_reach(self) -> int:
        """The reach that leaves 2**-30 of the noise outside."""
        far = -int(-Fraction(416, 10) * self.steps / Fraction(self.epsilon) // 1)
        return min(far, self.most_reach(self.epsilon, self.steps))

    def derive_decay(self) -> int:
        """a, rounded up for privacy."""
        return -int(-SCALE / exp_below(Fraction(self.epsilon) / (2 * self.steps)) // 1)

    def told(self, data: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        """The byte of the value."""
        return data[:, values]

    @property
    def last(self) -> int:
        """The largest byte of a report, 2 B + L."""
        return 2 * self.reach + self.steps

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """How many of 2**64 words give the byte 0, 1, ... of a value that is not the own."""
        weights = clamped_laplace(self.decay, self.steps, self.reach)
        if min(weights) < 1:
            self._refuse_thresholds("such that every report has a positive weight")
        return weights

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        return tuple(accumulate(self.weights[:-1]))

    def report(self, value: int, coins: Coins) -> bytes:
        row = bytearray(coins.pick(self._edges) for _ in range(self.domain.size))
        row[value] = self.last - row[value]
        return bytes(row)

    @property
    def coin_words(self) -> int:
        return self.domain.size

    @cached_property
    def layout(self) -> Bytes:
        return Bytes(self.domain.size, self.last)

    @cached_property
    def guarantee(self) -> Guarantee:
        pairs = zip(reversed(self.weights), self.weights, strict=True)
        return Guarantee(max(Fraction(own, other) for own, other in pairs) ** 2)

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.histogram import fill_histograms

        for some, rows in pieces(values, out):
            fill_histograms(rows, some, self._edges, keystream)

    def moment(self, power: int) -> Fraction:
        """The mean of byte^power for a value that is not the own."""
        return Fraction(sum(w * y**power for y, w in enumerate(self.weights)), SCALE)

    @cached_property
    def gap(self) -> Fraction:
        """How much larger the mean byte of the own value is: L - 2 mu."""
        return self.last - 2 * self.moment(1)

    def unbiased(self, counts: Counts, n: int) -> Floats:
        """f_v = (mean y_v - mu) / (L - 2 mu)."""
        return (counts / n - float(self.moment(1))) / float(self.gap)

    def variance_line(self, f: Floats, n: int) -> Line:
        """n Var = Var(y) / (L - 2 mu)^2 for every f: the own noise mirrors that of the others."""
        variance = (self.moment(2) - self.moment(1) ** 2) / self.gap**2
        return Line(np.full(f.shape, float(variance)), np.zeros(f.shape))

    def sum_variances(self, weights: Floats) -> Floats:
        """Each value has noise of its own, as large for all."""
        line = self.variance_line(np.zeros(self.domain.size), 1)
        return np.repeat(weights**2 @ line.a[:, None], self.domain.size, axis=1)

    def simulated_counts(self, histogram: Counts, rng: Generator) -> Counts:
        """Every cell sums bytes of its own: h_v mirrored ones, and n - h_v others."""
        others = int(histogram.sum()) - histogram
        own = self.last * histogram - self._sums(histogram, rng)
        return own + self._sums(others, rng)

    def _sums(self, numbers: Counts, rng: Generator) -> Counts:
        """Random sums of so many bytes each, one binomial for each byte there is."""
        total, left = np.zeros_like(numbers), numbers
        for byte, share in enumerate(self._shares):
            found = rng.binomial(left, share)
            total, left = total + byte * found, left - found
        return total

    @cached_property
    def _shares(self) -> list[float]:
        """The probability of each byte among those that are not smaller."""
        before = (0, *self._edges)
        return [w / (SCALE - start) for w, start in zip(self.weights, before, strict=True)]
