"""Local hashing: hash the value into g cells with a hash of one's own, then randomise the cell.

Bassily and Smith (2015) with g = 2; Wang et al. (2017) with the best g. The hash family is the
quadratic polynomials modulo a prime P (Carter and Wegman): any three values hash independently,
which is what unbiasedness and the stated variance rest on.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.arrays import Counts
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Index, Record
from deniable.core.mechanism import batches, mixture_keep, mixture_ratio
from deniable.core.registry import register
from deniable.mechanisms.frequency import Supports
from deniable.privacy import Guarantee, check_epsilon, exp_below
from deniable.randomness import SCALE, Coins, Keystream

MERSENNE_31 = (1 << 31) - 1
MAX_CELLS = 1 << 16


def _tells_apart(m: LocalHashing, modulus: int) -> str | None:
    """Whether hash functions modulo this number tell all values apart."""
    fits = m.domain.size <= modulus and _is_prime(modulus)
    return None if fits else f"a prime of at least {m.domain.size}"


class LocalHashing(Supports):
    """A report (a, b, c, y): the hash h(v) = ((a v + b) v + c) mod P, and a cell y of 0..g-1.

    Value v lies in cell floor(h(v) g / P). The cell of the true value is kept, or any cell drawn,
    as in k-RR on g cells; a report supports the values that lie in y. With m_y residues in cell y,
    two values collide with probability C = sum_y (m_y / P)^2, so q = t C + (1 - t) / g, which is
    1/g but for terms of order (g / P)^2; p = t + (1 - t) / g. The coefficients are drawn with
    `Coins.choice`, uniform to 2**-33, and independently of the value: epsilon is that of k-RR,
    exactly.
    """

    small_design = {"modulus": 5}
    two_likelihoods = True
    #: The most cells that hash functions may have.
    most_cells: ClassVar[int] = MAX_CELLS
    g = Design(2, lambda m: min(m.modulus, m.most_cells))
    modulus = Design(2, MERSENNE_31, default=MERSENNE_31, rule=_tells_apart)
    keep = Threshold()

    def derive_keep(self) -> int:
        return mixture_keep(self.epsilon, self.g)

    def report(self, value: int, coins: Coins) -> tuple[int, int, int, int]:
        hashed = self.begin(coins)
        own = self.key(hashed, value)
        drawn = coins.choice(self.g)
        return *hashed, own if coins.below(self.keep) else drawn

    def begin(self, coins: Coins) -> tuple[int, int, int]:
        """The coefficients of a hash function."""
        return coins.choice(self.modulus), coins.choice(self.modulus), coins.choice(self.modulus)

    def key(self, begun: tuple[int, int, int], value: int) -> int:
        """The cell of the value."""
        a, b, c = begun
        return (((a * value + b) * value + c) % self.modulus) * self.g // self.modulus

    def keys_of(self, begun: NDArray[Any], values: NDArray[Any]) -> NDArray[np.uint64]:
        """`key` of many values: arrays that broadcast; all products stay below 2**64."""
        a, b, c = (begun[name].astype(np.uint64) for name in ("a", "b", "c"))
        v, modulus = values.astype(np.uint64), np.uint64(self.modulus)
        hashed = ((a * v + b) % modulus * v + c) % modulus
        return np.asarray(hashed * np.uint64(self.g) // modulus)

    @property
    def coin_words(self) -> int:
        return 5

    @cached_property
    def layout(self) -> Record:
        coefficient = Index(self.modulus, 4, "a coefficient")
        cell = Index(self.g, noun="a cell")
        return Record({"a": coefficient, "b": coefficient, "c": coefficient, "y": cell})

    @property
    def cells(self) -> int:
        return self.domain.size

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(mixture_ratio(self.share, self.g))

    @property
    def share(self) -> Fraction:
        """t, the probability of keeping the cell on purpose."""
        return Fraction(self.keep, SCALE)

    @property
    def p(self) -> Fraction:
        return self.share + (1 - self.share) / self.g

    @property
    def q(self) -> Fraction:
        return self.share * self.collide + (1 - self.share) / self.g

    @cached_property
    def collide(self) -> Fraction:
        """C, the probability that two values share a cell."""
        return self._share_cell(2)

    def _share_cell(self, values: int) -> Fraction:
        """The probability that two or three given values share a cell."""
        sizes = np.diff(self.first_residues.astype(object))
        return Fraction(sum(m**values for m in sizes), self.modulus**values)

    @cached_property
    def together(self) -> tuple[Fraction, Fraction]:
        """The cell of two values is that of the own answer by chance, or drawn."""
        drawn = (1 - self.share) * self.collide / self.g
        return self.share * self.collide + drawn, self.share * self._share_cell(3) + drawn

    @cached_property
    def first_residues(self) -> NDArray[np.uint32]:
        """The first residue of each cell, ceil(y P / g), and P at the end."""
        firsts = [-(-y * self.modulus // self.g) for y in range(self.g + 1)]
        return np.array(firsts, dtype=np.uint32)

    def fill(self, values: NDArray[np.uint32], out: NDArray[Any], keystream: Keystream) -> None:
        self.fill_hashed(values, out, self.keep, keystream)

    def fill_hashed(
        self, values: NDArray[Any], out: NDArray[Any], keep: int, keystream: Keystream
    ) -> None:
        """Write hash functions and cells, each kept with keep / 2**64."""
        from deniable.kernels.hashing import hashed_reports

        integers = (np.uint64(self.modulus), np.uint64(self.g), np.uint64(keep))
        for some, target, words in batches(values, out, keystream, 5):
            hashed_reports(target, some, words, *integers)

    def told(self, data: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        """Whether the hash function maps the value to the cell."""
        cells = self.keys_of(data[:, None], values.astype(np.int64))
        return np.asarray(cells == data["y"][:, None], dtype=np.uint8)

    def count(self, data: NDArray[Any]) -> Counts:
        from deniable.kernels.hashing import support_counts

        self.layout.check(data)
        counts = np.zeros(-(-self.domain.size // 4) * 4, dtype=np.int64)
        support_counts(data, np.uint64(self.modulus), self.first_residues, counts)
        return counts[: self.domain.size]


@register
class BLH(LocalHashing):
    """Binary local hashing: g = 2, q = 1/2; n Var = (e^eps + 1)^2 / (e^eps - 1)^2 at f = 0."""

    name = "blh"
    paper = "Bassily & Smith 2015"
    good_for = "comparison with OLH"
    most_cells = 2

    def derive_g(self) -> int:
        return 2


@register
class OLH(LocalHashing):
    """Optimal local hashing: g about e^eps + 1 (fewer for small k, see `suggest_g`).

    n Var = (e^eps + g - 1)^2 / ((g - 1) (e^eps - 1)^2) at f = 0, about OUE's 4 e^eps / (e^eps -
    1)^2.
    """

    name = "olh"
    paper = "Wang et al. 2017"
    good_for = "huge domains: OUE's variance, a report of some bytes"
    automatic = (Listed,)

    @staticmethod
    def suggest_g(k: int, epsilon: float) -> int:
        """The number of cells with the least variance, averaged over the values (f = 1/k).

        With h = g - 1 that is (e - 1)^2 n Var = a / h + b h + const, e = e^eps, where a = e^2 - e
        (e - 1) / k and b = 1 + (e - 1) / k: least at h = sqrt(a / b), about e for large k.
        """
        e = float(exp_below(check_epsilon(epsilon)))
        a, b = e * e - e * (e - 1) / k, 1 + (e - 1) / k
        ideal = min(MAX_CELLS - 2, max(1, int((a / b) ** 0.5)))
        return 1 + min((ideal, ideal + 1), key=lambda h: a / h + b * h)

    def derive_g(self) -> int:
        return min(self.suggest_g(self.domain.size, self.epsilon), self.modulus)


def _is_prime(number: int) -> bool:
    if number == MERSENNE_31:
        return True
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))
