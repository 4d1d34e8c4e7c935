"""Randomised response: the report is a value of the domain.

Warner (1965) for two values; Kairouz, Bonawitz and Ramage (2016) for k (k-RR, also called GRR).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.arrays import Counts
from deniable.core.integers import Threshold
from deniable.core.mechanism import batches, mixture_keep, mixture_ratio
from deniable.core.registry import register
from deniable.mechanisms.frequency import Supports
from deniable.mechanisms.index import IndexMechanism, RandomisedBit
from deniable.privacy import Guarantee
from deniable.randomness import SCALE, Coins, Keystream

if TYPE_CHECKING:
    from numpy.random import Generator


@register
class BRR(RandomisedBit):
    """Binary randomised response: tell the truth with probability p, else the opposite.

    p = e^eps / (e^eps + 1), q = 1 - p; exactly epsilon-LDP; n Var = e^eps / (e^eps - 1)^2.
    """

    name = "brr"
    paper = "Warner 1965"
    good_for = "a yes/no question: optimal, one bit"
    only_size = 2
    direct = True
    automatic = (Listed,)

    def report(self, value: int, coins: Coins) -> int:
        return value if coins.below(self.keep) else 1 - value

    @property
    def coin_words(self) -> int:
        return 1

    @property
    def q(self) -> Fraction:
        return 1 - self.p

    @property
    def blanket(self) -> Fraction:
        return self.q

    def simulated_counts(self, histogram: Counts, rng: Generator) -> Counts:
        """Each group keeps Bin(h_v, p) of its answers; the rest goes to the other."""
        kept = rng.binomial(histogram, float(self.p))
        return kept + (histogram - kept)[::-1]

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.direct import keep_or_flip

        for some, target, words in batches(values, out, keystream, self.coin_words):
            keep_or_flip(target, some, words, np.uint64(self.keep))


@register
class GRR(IndexMechanism, Supports):
    """Generalised randomised response (k-RR): keep the value or draw uniformly from all k.

    Keeping with t = (e^eps - 1) / (e^eps - 1 + k) gives p = t + (1 - t) / k = e^eps / (e^eps + k -
    1) and q = (1 - t) / k = 1 / (e^eps + k - 1); n Var = (e^eps + k - 2) / (e^eps - 1)^2 at f = 0.
    """

    name = "grr"
    paper = "Kairouz et al. 2016"
    good_for = "few values (k < 3 e^eps + 2): the smallest report"
    automatic = (Listed,)
    two_likelihoods = True
    direct = True
    keep = Threshold()

    def derive_keep(self) -> int:
        return mixture_keep(self.epsilon, self.domain.size)

    def report(self, value: int, coins: Coins) -> int:
        drawn = coins.choice(self.domain.size)
        return value if coins.below(self.keep) else drawn

    @property
    def coin_words(self) -> int:
        return 2

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(mixture_ratio(self.share, self.domain.size))

    @property
    def share(self) -> Fraction:
        """t, the probability of keeping the value on purpose."""
        return Fraction(self.keep, SCALE)

    @property
    def p(self) -> Fraction:
        return self.share + self.q

    @property
    def q(self) -> Fraction:
        return (1 - self.share) / self.domain.size

    @property
    def blanket(self) -> Fraction:
        """A little below q: `Coins.choice` rounds."""
        return (1 - self.share) * (SCALE // self.domain.size) / SCALE

    def simulated_counts(self, histogram: Counts, rng: Generator) -> Counts:
        """Each group keeps Bin(h_v, t) of its answers; the rest falls anywhere."""
        k = self.domain.size
        kept = rng.binomial(histogram, float(self.share))
        drawn = int(histogram.sum() - kept.sum())
        return kept + rng.multinomial(drawn, np.full(k, 1 / k))

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.direct import keep_or_draw

        size, keep = np.uint64(self.domain.size), np.uint64(self.keep)
        for some, target, words in batches(values, out, keystream, self.coin_words):
            keep_or_draw(target, some, words, size, keep)
