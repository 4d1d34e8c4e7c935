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

from deniable.domain import Domain, DomainLike
from deniable.errors import InvalidArgument, require_int
from deniable.mechanisms.base import Counts, Mechanism, batches, mixture_keep, mixture_ratio
from deniable.mechanisms.index import index_bits, index_dtype
from deniable.privacy import Guarantee, check_epsilon, exp_below
from deniable.randomness import SCALE, Coins, Keystream

MERSENNE_31 = (1 << 31) - 1
MAX_CELLS = 1 << 16


class LocalHashing(Mechanism):
    """A report (a, b, c, y): the hash h(v) = ((a v + b) v + c) mod P, and a cell y of 0..g-1.

    Value v lies in cell floor(h(v) g / P). The cell of the true value is kept, or any cell drawn,
    as in k-RR on g cells; a report supports the values that lie in y. With m_y residues in cell y,
    two values collide with probability C = sum_y (m_y / P)^2, so q = t C + (1 - t) / g, which is
    1/g but for terms of order (g / P)^2; p = t + (1 - t) / g. The coefficients are drawn with
    `Coins.choice`, uniform to 2**-33, and independently of the value: epsilon is that of k-RR,
    exactly.
    """

    design = ("g", "modulus")
    thresholds: ClassVar[tuple[str, ...]] = ("keep",)
    small_design = {"modulus": 5}
    two_valued = True
    g: int
    modulus: int
    keep: int

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        *,
        g: int | None = None,
        modulus: int | None = None,
        keep: int | None = None,
    ) -> None:
        design = check_hash(Domain.of(domain).size, g, modulus)
        super().__init__(domain, epsilon, **design, keep=keep)

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

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([("a", "<u4"), ("b", "<u4"), ("c", "<u4"), ("y", index_dtype(self.g))])

    @property
    def bits_per_report(self) -> int:
        return 3 * index_bits(self.modulus) + index_bits(self.g)

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
        sizes = np.diff(self._firsts.astype(object))
        return Fraction(sum(m * m for m in sizes), self.modulus**2)

    @cached_property
    def _firsts(self) -> NDArray[np.uint32]:
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

    def count(self, data: NDArray[Any]) -> Counts:
        from deniable.kernels.hashing import support_counts

        limits = {"a": self.modulus, "b": self.modulus, "c": self.modulus, "y": self.g}
        for field, limit in limits.items():
            if data.size and data[field].max() >= limit:
                allowed = f"rows whose {field!r} is below {limit}"
                raise InvalidArgument("reports", int(data[field].max()), allowed)
        counts = np.zeros(-(-self.domain.size // 4) * 4, dtype=np.int64)
        support_counts(data, np.uint64(self.modulus), self._firsts, counts)
        return counts[: self.domain.size]


class BLH(LocalHashing):
    """Binary local hashing: g = 2, q = 1/2; n Var = (e^eps + 1)^2 / (e^eps - 1)^2 at f = 0."""

    name = "blh"
    paper = "Bassily & Smith 2015"
    good_for = "comparison with OLH"

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        *,
        g: int = 2,
        modulus: int | None = None,
        keep: int | None = None,
    ) -> None:
        require_int("g", g, 2, 2)
        super().__init__(domain, epsilon, g=g, modulus=modulus, keep=keep)

    def _derive(self, name: str) -> int:
        return mixture_keep(self.epsilon, self.g)


class OLH(LocalHashing):
    """Optimal local hashing: g about e^eps + 1 (fewer for small k, see `suggest_g`).

    n Var = (e^eps + g - 1)^2 / ((g - 1) (e^eps - 1)^2) at f = 0, about OUE's 4 e^eps / (e^eps -
    1)^2.
    """

    name = "olh"
    paper = "Wang et al. 2017"
    good_for = "huge domains: OUE's variance, a report of some bytes"

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

    def _derive(self, name: str) -> int:
        if name == "g":
            return min(self.suggest_g(self.domain.size, self.epsilon), self.modulus)
        return mixture_keep(self.epsilon, self.g)


def check_hash(size: int, g: Any, modulus: Any, most: int = MAX_CELLS) -> dict[str, int | None]:
    """The design of hash functions that tell ``size`` values apart; g follows from epsilon."""
    p = MERSENNE_31 if modulus is None else require_int("modulus", modulus, 2, MERSENNE_31)
    if size > p or not _is_prime(p):
        raise InvalidArgument("modulus", modulus, f"a prime of at least {size}")
    return {"modulus": p, "g": g if g is None else require_int("g", g, 2, min(p, most))}


def _is_prime(number: int) -> bool:
    if number == MERSENNE_31:
        return True
    return number > 1 and all(number % d for d in range(2, int(number**0.5) + 1))
