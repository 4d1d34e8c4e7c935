"""How well a report hides among the reports of others: an exact law, and its divergence.

Let r = e^epsilon0 and let x, x' be two values of one person. Split the law of a report as

    R(x) = a A + b B + (1 - a - b) N,   R(x') = b A + a B + (1 - a - b) N,

such that the law of everybody else's report, whatever they answer, is at least c A + c B + d N. So
another person's report could be called a clone of A or of B (probability c each), of N (d), or
none. Tell the analyst who is no clone and what these sent; the rest is a shuffled batch in which
only the numbers i of A, j of B and e of N depend on x, because who is a clone does not. If the
reports of n people are called clones at random, i, j, e are multinomial with (n; c, c, d), and one
of the e + i + j is the person's, with weights a / c, b / c and w = (1 - a - b) / d by its kind.
Hence P / Q = (a i + b j + c w e) / (b i + a j + c w e), and (in the form of Balle et al. 2019)

    delta(epsilon) = E [ (a - e^eps b) i + (b - e^eps a) j - (e^eps - 1) c w e ]+ / (c n).

With s = i + j that is (a - b) (1 + e^eps) / (c n) times E [i - s / 2 - k V]+, where i is
Bin(s, 1/2), V = s (a + b) / 2c + w e, and k = c (e^eps - 1) / ((a - b) (e^eps + 1)). The mean of
(i - s / 2 - k V)+ falls with V and grows with s, so that a block of many s and e is bounded by one
of its corners. Nothing is cut off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats

#: Blocks within nine standard deviations; wider ones follow on either side.
BLOCKS = 120
NEUTRAL_BLOCKS = 60
SEEN_BLOCKS = 2_000
#: Far above the rounding errors of the binomial laws, measured below 1e-12, relatively.
MARGIN = 1e-6
#: The same for a difference, relative to what is subtracted: large ratios magnify its rounding.
SLACK = 1e-11


@dataclass(frozen=True)
class Clones:
    """The numbers a, b, c, d of a split."""

    own: Fraction
    other: Fraction
    cover: Fraction
    neutral: Fraction

    @classmethod
    def general(cls, ratio: Fraction) -> Clones:
        """The split that every mechanism with this likelihood ratio r has (Feldman et al. 2021).

        Kairouz, Oh and Viswanath (2015): a pair of laws with ratio r is a = r / (r + 1) and b = 1 /
        (r + 1) of some A and B. Anybody's law is at least R(x) / r and R(x') / r, hence at least
        their mean, (A + B) / 2r. It also holds if people use different mechanisms, each chosen
        after the reports before it were seen.
        """
        return cls(ratio / (ratio + 1), 1 / (ratio + 1), 1 / (2 * ratio), Fraction(0))

    @classmethod
    def varied(cls, ratio: Fraction, variation: Fraction) -> Clones:
        """The split of two laws at total variation distance t, if all use one mechanism.

        A and B are the positive and negative part of R(x) - R(x'), divided by t; c = t / (r - 1), a
        = r c, b = c. What remains of R(x) is (r R(x') - R(x)) / (r - 1) where R(x) > R(x'), (r R(x)
        - R(x')) / (r - 1) where it is smaller, and R(x) elsewhere: not negative, and the same for
        R(x'). Anybody's law is at least max(R(x), R(x')) / r = c A + c B + (1 - a - b) N / r.
        """
        cover = variation / (ratio - 1)
        return cls(ratio * cover, cover, cover, (1 - (ratio + 1) * cover) / ratio)

    @classmethod
    def drawn(cls, keep: Fraction, cover: Fraction) -> Clones:
        """The split of "the value itself with probability t, else a draw that ignores it".

        ``cover`` is the least probability of any report among the draws, (1 - t) / k in k-RR. The
        draws are everybody's: c A + c B + (1 - t - 2c) N in all laws, and t A or t B is the
        person's own (the blanket of Balle et al. 2019).
        """
        return cls(keep + cover, cover, cover, 1 - keep - 2 * cover)

    @property
    def weights(self) -> tuple[float, float]:
        """(a + b) / 2c and w, the terms of V."""
        rest = 1 - self.own - self.other
        shared = (self.own + self.other) / (2 * self.cover)
        return float(shared), float(rest / self.neutral) if self.neutral else 0.0

    @cached_property
    def gain(self) -> float:
        """(a - b) / c."""
        return float((self.own - self.other) / self.cover)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of (s, e): their probabilities, and the s and V that stand for them."""

    probability: Floats
    trials: Floats
    total: Floats

    def divergence(self, clones: Clones, n: int, epsilon: float, slack: float) -> float:
        """The formula above."""
        power = math.expm1(epsilon)
        k = power / (clones.gain * (power + 2))
        mean = _mean_excess(self.trials, k * self.total, slack)
        return float(self.probability @ mean) * clones.gain * (power + 2) / n


def delta_above(clones: Clones, n: int, epsilon: float) -> float:
    """An upper bound on delta: blocks at their worst corners, and the margin for rounding."""
    if math.exp(epsilon) >= clones.own / clones.other:
        return 0.0
    found = _blocked(clones, n).divergence(clones, n, epsilon, SLACK)
    return min(1.0, found * (1 + MARGIN))


def delta_seen(clones: Clones, n: int, epsilon: float) -> float:
    """At most delta if d = 1 - 2c, that is, if everybody else's law is known to be the bound.

    Then e = n - s, and blocks of s are taken at their best corner.
    """
    if math.exp(epsilon) >= clones.own / clones.other:
        return 0.0
    return _seen(clones, n).divergence(clones, n, epsilon, -SLACK) * (1 - MARGIN)


def delta_counted(own: Fraction, other: Fraction, n: int, epsilon: float) -> float:
    """Delta of Bin(n - 1, b) + Bern(a) and Bin(n, b), the larger of both directions.

    A count of reports that n - 1 people send with probability b, and one with a or b. The ratio of
    the two laws at i is (i a / b + (n - i) (1 - a) / (1 - b)) / n.
    """
    a, b, power = float(own), float(other), math.exp(epsilon)
    i, law = _counts(b, n)
    ratio = (i * a / b + (n - i) * (1 - a) / (1 - b)) / n
    gains = ratio - power - SLACK * (ratio + power), 1 - power * ratio - SLACK * (1 + power * ratio)
    found = max(float(law @ np.maximum(gain, 0.0)) for gain in gains)
    return found * (1 - MARGIN)


@lru_cache(maxsize=8)
def _counts(rate: float, n: int) -> tuple[Floats, Floats]:
    """The law of Bin(n, rate), within ten standard deviations."""
    from scipy.stats import binom

    far = 10 * math.sqrt(n * rate) + 20
    i = np.arange(max(0, int(n * rate - far)), min(n, int(n * rate + far)) + 1, dtype=np.float64)
    return i, binom.pmf(i, n, rate)


def _mean_excess(trials: Floats, level: Floats, slack: float) -> Floats:
    """E (X - s / 2 - l)+ for X = Bin(s, 1/2): s / 4 P(Y = m - 1) - l P(X >= m), where Y is
    Bin(s - 1, 1/2) and m the least integer above s / 2 + l; and some slack for the difference.
    """
    from scipy.stats import binom

    mean = np.zeros(trials.shape)
    some = (trials > 0) & (level < trials / 2 * (1 + SLACK))
    s, low = trials[some], level[some]
    least = np.minimum(np.floor(s / 2 + low), s - 1)
    more, less = s / 4 * binom.pmf(least, s - 1, 0.5), low * binom.sf(least, s, 0.5)
    mean[some] = np.maximum(np.maximum(more - less, 0.0) + slack * (more + less), 0.0)
    return mean


@lru_cache(maxsize=64)
def _blocked(clones: Clones, n: int) -> Blocks:
    """All of (s, e): s is Bin(n, 2c), and e given s is Bin(n - s, d / (1 - 2c)).

    The more s, the smaller e: a block takes the law of e at its largest s.
    """
    shared, neutral = clones.weights
    first, last, probability = _blocks(np.array([n]), float(2 * clones.cover), BLOCKS)
    s_low, s_high, p = first[0], last[0], probability[0]
    keep = p > 0
    s_low, s_high, p = s_low[keep], s_high[keep], p[keep]
    if not clones.neutral:
        return Blocks(p, s_high, shared * s_low)
    rate = float(clones.neutral / (1 - 2 * clones.cover))
    e_low, _, given = _blocks(n - s_high, rate, NEUTRAL_BLOCKS)
    both = p[:, None] * given
    least = shared * s_low[:, None] + neutral * e_low
    trials = np.broadcast_to(s_high[:, None], both.shape)
    keep = both > 0
    return Blocks(both[keep], trials[keep], least[keep])


@lru_cache(maxsize=64)
def _seen(clones: Clones, n: int) -> Blocks:
    shared, neutral = clones.weights
    first, last, probability = (
        part[0] for part in _blocks(np.array([n]), float(2 * clones.cover), SEEN_BLOCKS)
    )
    keep = probability > 0
    ends = [shared * s + neutral * (n - s) for s in (first[keep], last[keep])]
    return Blocks(probability[keep], first[keep], np.maximum(*ends))


def _blocks(trials: NDArray[np.generic], rate: float, number: int) -> tuple[Floats, Floats, Floats]:
    """Row by row: 0..n cut into blocks, the first and last of each, and its probability.

    Blocks that are empty have probability 0. Probabilities come from the nearer tail.
    """
    from scipy.stats import binom

    n = np.asarray(trials, dtype=np.float64)[:, None]
    wide = 9 * 1.5 ** np.arange(1, 50)
    steps = np.concatenate([-wide[::-1], np.linspace(-9, 9, number), wide])
    cuts = np.floor(n * rate + np.sqrt(n * rate * (1 - rate)) * steps)
    ends = np.hstack([np.full(n.shape, -1.0), np.clip(cuts, -1, n), n])
    before, last = ends[:, :-1], ends[:, 1:]
    left = binom.cdf(last, n, rate) - binom.cdf(before, n, rate)
    right = binom.sf(before, n, rate) - binom.sf(last, n, rate)
    probability = np.where(last <= n * rate, left, right)
    return before + 1, last, np.where(last > before, np.maximum(probability, 0.0), 0.0)
