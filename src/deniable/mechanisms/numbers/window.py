"""Mechanisms that report a point of a window around the number, or any: for comparison.

PM and HM: N. Wang et al. (2019). PM-SUB and PM-OPT: Zhao et al. (2020). SW: Z. Li et al. (2020).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats
from deniable.core.integers import Design, Threshold
from deniable.core.mechanism import batches, mixture_keep, mixture_ratio, pieces
from deniable.core.registry import register
from deniable.mechanisms.numbers.base import Between
from deniable.mechanisms.numbers.bins import Binning
from deniable.mechanisms.numbers.lattice import MOST_STEPS, Duchi, Lattice
from deniable.mechanisms.numbers.observed import RESOLUTION, Counted
from deniable.mechanisms.numbers.scores import drawn_mean
from deniable.privacy import Guarantee, exp_below
from deniable.randomness import SCALE, Coins, Keystream


@register
class Window(Lattice):
    """A point of the window j..j + w - 1, or, more rarely, any of 0..M + w - 1; M x rounds to j.

    The window has w = ``width`` points, each about e^eps times as likely as a point outside. With
    probability keep / 2**64 =: s one of the window is drawn, else any: a report y has the mean s M
    x + const. With R = w / M, s = t := (e^eps - 1) R / (1 + e^eps R), and for a mean of v = 2 x - 1

        n Var = 4 [t (R^2 / 12 + x^2) + (1 - t) ((1 + R)^2 / 12 + 1/4) - (t x + (1 - t) / 2)^2]
        / t^2

    as M grows. The default is the best width for the worst x: PM-OPT of Zhao et al.
    """

    name = "window"
    also = ("pmopt",)
    paper = "Zhao et al. 2020"
    good_for = "the mean of a number, by a point near it (PM-OPT, the best window): comparison"
    observes = Counted
    small_design = {"steps": 4}
    shapes = ({"width": 1}, {"width": 3}, {"width": 4})
    steps = Design(1, MOST_STEPS, default=1024)
    width = Design(1, lambda m: m.steps)
    keep = Threshold()

    def derive_width(self) -> int:
        widths = np.arange(1, self.steps + 1)
        return int(widths[np.argmin(ideal_variance(widths / self.steps, 1.0, self.epsilon))])

    def _rounded_width(self, share: float) -> int:
        return min(max(1, round(share * self.steps)), self.steps)

    def derive_keep(self) -> int:
        return mixture_keep(self.epsilon, self._points, self._favoured)

    @property
    def _points(self) -> int:
        return self.steps + self.width

    @property
    def _favoured(self) -> Fraction:
        """The points of the window, if all were as likely as the likeliest."""
        return Fraction(SCALE, -(-SCALE // self.width))

    def report(self, value: int, coins: Coins) -> int:
        near = self.rounded(value, coins) + coins.choice(self.width)
        anywhere = coins.choice(self._points)
        return near if coins.below(self.keep) else anywhere

    @property
    def coin_words(self) -> int:
        return 4

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(mixture_ratio(self.share, self._points, self._favoured))

    @property
    def share(self) -> Fraction:
        """s, the probability of drawing from the window on purpose."""
        return Fraction(self.keep, SCALE)

    @cached_property
    def exact_scores(self) -> tuple[Fraction, ...]:
        s = self.share
        const = s * drawn_mean(self.width) + (1 - s) * drawn_mean(self._points)
        return tuple((y - const) / (s * self.steps) for y in range(self._points))

    @property
    def random_share(self) -> float:
        return float(1 - self.share)

    @cached_property
    def point_noise(self) -> Floats:
        s, j = float(self.share), np.arange(self.steps + 1.0)
        (near, near_square), (mean, square) = (_uniform(m) for m in (self.width, self._points))
        squares = s * (j**2 + 2 * j * near + near_square) + (1 - s) * square
        means = s * (j + near) + (1 - s) * mean
        return np.asarray((squares - means**2) / (s * self.steps) ** 2)

    @cached_property
    def squares(self) -> Floats:
        """What y^2 says of j^2, less 2 j (w - 1) / 2 by the score, and the most of the rounding."""
        s, y = float(self.share), np.arange(self._points)
        (near, near_square), (_, square) = (_uniform(m) for m in (self.width, self._points))
        of_j = (y**2 - (1 - s) * square) / s - near_square - 2 * near * self.steps * self.scores
        return np.asarray(of_j / self.steps**2 - self.square_error)

    @property
    def square_error(self) -> float:
        return 1 / (2 * self.steps) ** 2

    def observed_bins(self, counts: Counts, n: int, binning: Binning) -> Counted:
        (low, high), share, m = binning.ends, float(self.share), self.steps
        points = np.arange(self._points)
        # Of M x, j has the share max(0, 1 - |M x - j|): that, or its mean over a bin.
        left, right = (np.clip(m * x[:, None] - np.arange(m + 1), -1, 1) for x in (low, high))
        width = m * (high - low)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (_area(right) - _area(left)) / width
        of_j = np.where(width > 0, mean, 1 - np.abs(left))
        below = np.pad(np.cumsum(of_j, axis=1), ((0, 0), (1, 0)))
        first, after = np.maximum(points + 1 - self.width, 0), np.minimum(points, m) + 1
        near = (below[:, after] - below[:, first]) / self.width
        law, starts = share * near + (1 - share) / self._points, points[:: -(-m // RESOLUTION)]
        return Counted(np.add.reduceat(counts, starts), np.add.reduceat(law, starts, axis=1))

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.direct import draw, keep_or_draw

        for some, target, words in batches(values, out, keystream, self.coin_words):
            n = len(some)
            near, found = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
            draw(near, words[n : 2 * n], np.uint64(self.width))
            near += self.rounded_column(some, words[:n])
            keep_or_draw(found, near, words[2 * n :], np.uint64(self._points), np.uint64(self.keep))
            target[:n] = found


@register
class PM(Window):
    """The piecewise mechanism of N. Wang et al.: the window has M e^(-eps / 2) points.

    With s = e^(eps / 2), n Var = v^2 / (s - 1) + (s + 3) / (3 (s - 1)^2) for a mean of v, as M
    grows.
    """

    name = "pm"
    paper = "N. Wang et al. 2019"
    good_for = "the mean of a number (piecewise mechanism): comparison"

    def derive_width(self) -> int:
        return self._rounded_width(math.exp(-self.epsilon / 2))


@register
class PMSub(Window):
    """PM-SUB of Zhao et al.: the window has M e^(-eps / 3) points, nearly the best."""

    name = "pmsub"
    good_for = "the mean of a number (PM-SUB, nearly the best window): comparison"

    def derive_width(self) -> int:
        return self._rounded_width(math.exp(-self.epsilon / 3))


@register
class SW(Window):
    """The square wave of Z. Li et al., made for distributions: the window has 2 b M points.

    b = (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)) is what maximises the mutual
    information. For means it is too narrow. Its own decoder is ``tally.estimate("ems")``.
    """

    tasks = ("distribution", "mean")
    name = "sw"
    also = ("squarewave",)
    paper = "Z. Li et al. 2020"
    good_for = "the distribution of a number (square wave): comparison"

    def derive_width(self) -> int:
        epsilon, e = Fraction(self.epsilon), exp_below(self.epsilon)
        return self._rounded_width(float((epsilon * e - e + 1) / (e * (e - 1 - epsilon))))

    def cdf(self, counts: Counts, n: int, u: Floats) -> Between:
        """F(u) is between 1 - S_k of two k, whatever the distribution.

        S_k is the probability that the point of the window is k or one above, which a report is
        with s S_k + (1 - s) (M + w - k) / (M + w). It is sure for j >= k, and impossible for j <=
        k - w, so F((k - w) / M) <= 1 - S_k, which is at most the share of numbers below k / M.
        """
        s, k = float(self.share), np.arange(self._points + 1)
        above = np.append(counts[::-1].cumsum()[::-1], 0) / n
        never = (1 - s) * (1 - k / self._points)
        possible = np.clip(above, never, never + s)
        means, variances = 1 - (above - never) / s, possible * (1 - possible) / (n * s**2)
        at = np.clip(np.asarray(u, dtype=np.float64), 0.0, 1.0) * self.steps
        low, high = np.floor(at).astype(np.int64), np.ceil(at).astype(np.int64) + self.width
        return Between(means[low], variances[low], means[high], variances[high])

    def share_half_width(
        self, n: int, z: float, *, sampled: bool = False, skipped: float = 0.0
    ) -> float:
        return self.width / (2 * self.steps) + z / (2 * float(self.share) * math.sqrt(n))


@register
class HM(Lattice):
    """The hybrid of N. Wang et al.: PM with probability mix / 2**64 =: a, else Duchi et al.'s bit.

    a = 1 - e^(-eps / 2) makes the variance the same for all numbers, if that is below the worst of
    the bit alone (from epsilon 0.61 on); else a is the least there is. The report says which of the
    two it is from: y of PM, or the number of its points plus the bit. With s = e^(eps / 2) and c =
    (e^eps + 1) / (e^eps - 1), n Var = (s + 3) / (3 s (s - 1)) + c^2 / s for any mean of v.
    """

    name = "hm"
    paper = "N. Wang et al. 2019"
    good_for = "the mean of a number (hybrid mechanism): comparison"
    small_design = {"steps": 4}
    steps = Design(1, MOST_STEPS, default=1024)
    width = Design(1, lambda m: m.steps)
    keep = Threshold()
    kept = Threshold()
    mix = Threshold()

    def derive_width(self) -> int:
        return PM(self.domain, self.epsilon, steps=self.steps).width

    def derive_keep(self) -> int:
        return PM(self.domain, self.epsilon, steps=self.steps, width=self.width).keep

    def derive_kept(self) -> int:
        return Duchi(self.domain, self.epsilon).keep

    def derive_mix(self) -> int:
        middle = np.array([0.5])
        helps = self.piecewise.noise(middle) < self.bit.noise(middle)
        return int(SCALE * (1 - 1 / exp_below(self.epsilon / 2))) if helps else 1

    @cached_property
    def piecewise(self) -> Window:
        """The one of both that reports a point."""
        integers = {"steps": self.steps, "width": self.width, "keep": self.keep}
        return Window(self.domain, self.epsilon, **integers)

    @cached_property
    def bit(self) -> Duchi:
        """The one of both that reports a bit."""
        return Duchi(self.domain, self.epsilon, keep=self.kept)

    def report(self, value: int, coins: Coins) -> int:
        point, bit = self.piecewise.report(value, coins), self.bit.report(value, coins)
        return point if coins.below(self.mix) else self.piecewise.cells + bit

    @property
    def coin_words(self) -> int:
        return self.piecewise.coin_words + self.bit.coin_words + 1

    @cached_property
    def guarantee(self) -> Guarantee:
        return max(self.piecewise.guarantee, self.bit.guarantee, key=lambda one: one.ratio)

    @property
    def share(self) -> Fraction:
        """a, the probability of a point."""
        return Fraction(self.mix, SCALE)

    @cached_property
    def exact_scores(self) -> tuple[Fraction, ...]:
        return (*self.piecewise.exact_scores, *self.bit.exact_scores)

    def _mixed(self, of_point: Any, of_bit: Any) -> Any:
        a = float(self.share)
        return a * of_point + (1 - a) * of_bit

    @property
    def random_share(self) -> float:
        return float(self._mixed(self.piecewise.random_share, self.bit.random_share))

    @cached_property
    def point_noise(self) -> Floats:
        of_bit = self.bit.noise(np.arange(self.steps + 1) / self.steps)
        return np.asarray(self._mixed(self.piecewise.point_noise, of_bit))

    @cached_property
    def squares(self) -> Floats | None:
        """What points say, where there are any."""
        if self.mix == 1:
            return None
        of_points = self.piecewise.squares / float(self.share)
        return np.concatenate([of_points, np.zeros(self.bit.cells)])

    @property
    def square_error(self) -> float:
        return self.piecewise.square_error

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        for some, target in pieces(values, out):
            n = len(some)
            bits = np.empty(n, dtype=self.bit.dtype)
            self.piecewise.fill(some, target, keystream)
            self.bit.fill(some, bits, keystream)
            short = keystream.words(n) >= np.uint64(self.mix)
            target[:n][short] = self.piecewise.cells + bits[short].astype(target.dtype)


def ideal_variance(width: Any, x: Any, epsilon: float) -> Any:
    """n Var of a `Window` of this width, as a share of M, with a lattice of any fineness."""
    odds = math.expm1(epsilon) * width
    s = odds / (1 + width + odds)
    squares = s * (width**2 / 12 + x**2) + (1 - s) * ((1 + width) ** 2 / 12 + 1 / 4)
    return 4 * (squares - (s * x + (1 - s) / 2) ** 2) / s**2


def _area(x: Floats) -> Floats:
    """The integral of 1 - |x| from -1 on."""
    return np.asarray(1 / 2 + x - x * np.abs(x) / 2)


def _uniform(size: int) -> tuple[float, float]:
    """The means of an index below ``size``, and of its square."""
    return (size - 1) / 2, (size - 1) * (2 * size - 1) / 6
