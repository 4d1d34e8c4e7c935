"""Cohorts: respondents share public hash functions, and randomise the cell of their value.

A respondent draws a cohort, hashes the value into ``width`` cells with the cohort's public hash
functions, and randomises the cell with a mechanism for few values, the `inner` one. Answers may be
any text; what the reports say about a value is found when somebody asks about it. Apple's sketches
(2017), RAPPOR (Erlingsson et al. 2014), O-RAPPOR and O-RR (Kairouz et al. 2016) are of this kind.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Listed
from deniable.answers.text import Text
from deniable.arrays import Counts, Floats
from deniable.core.domain import MAX_SIZE, Domain
from deniable.core.integers import Design, Threshold
from deniable.core.layout import Index, Record
from deniable.core.mechanism import batches
from deniable.errors import InvalidArgument, is_number, require_int
from deniable.mechanisms.cohorts.collisions import mean_square
from deniable.mechanisms.cohorts.public_hashes import LIMITS, PublicHashes
from deniable.mechanisms.frequency import Line, Supports
from deniable.privacy import Guarantee, check_epsilon
from deniable.randomness import Coins, Keystream

#: Cohorts that are compared; more would show how they differ better than to about 2 %.
COMPARED_COHORTS = 1 << 12


def listed_once(m: CohortMechanism, permuted: int) -> str | None:
    """The rule of ``permuted``: only listed values can be dealt out, to one cell each."""
    if permuted and (m.is_open or m.hashes > 1):
        return "0 for answers that may be any text, and for several hash functions"
    return None


class CohortMechanism(PublicHashes, Supports):
    """A report (cohort, inner report); the cohort is drawn whatever the value.

    Let C be the number of cohorts, p and q those of the inner mechanism, and P the probability that
    another value sets a given cell: 1 / width for one hash function. The report of another value
    then supports a value with q* = q + P (p - q), and f_v = (c_v / n - q*) / (p - q*) is unbiased
    over the choice of the hash functions, whatever else was answered. But people with the same
    value in the same cohort collide with the same others, which adds about (r / C) sum_{u != v}
    f_u^2 to the variance, r = P / (1 - P): it does not vanish with n (see `variance_line`).
    """

    takes = (Listed, Text)
    small_design = {"cohorts": 2, "width": 4, "seed": 3}
    independent_supports = False
    inner_family: ClassVar[type[Supports]]

    #: Whether listed values are dealt out by permutations unless the caller says otherwise.
    permutes_lists: ClassVar[bool] = False
    #: Numbers of hash functions that `suggest` compares.
    hashes_to_try: ClassVar[tuple[int, ...]] = (1,)

    cohorts = Design(*LIMITS["cohorts"])
    width = Design(*LIMITS["width"])
    seed = Design(*LIMITS["seed"], default=0)

    # ---- the channel

    def derive_cohorts(self) -> int:
        return self._suggested(width=self.width)["cohorts"]

    def derive_width(self) -> int:
        return self._suggested()["width"]

    def _suggested(self, **fixed: int) -> dict[str, int]:
        size = None if self.is_open else self.domain.size
        return self.suggest(self.epsilon, size=size, hashes=self.hashes, **fixed)

    @cached_property
    def inner(self) -> Any:
        """What randomises a cell."""
        return self._inner(**{name: getattr(self, name) for name in self.thresholds})

    def _inner(self, **thresholds: int) -> Any:
        return self.inner_family(self.width, share_of(self.epsilon, self.hashes), **thresholds)

    @classmethod
    def advised(
        cls, domain: Domain, epsilon: float, n: int, tasks: tuple[str, ...] = ()
    ) -> dict[str, int]:
        return cls.suggest(epsilon, n) if domain.is_open else {}

    @classmethod
    def suggest(
        cls,
        epsilon: float,
        n: int = 20_000,
        second_moment: float = 0.05,
        size: int | None = None,
        *,
        width: int | None = None,
        hashes: int | None = None,
    ) -> dict[str, int]:
        """The integers of the design that suit n respondents, by the formula of the variance.

        ``second_moment`` is sum f^2 of what is expected, 1 / k for k equally frequent values;
        ``size`` the number of answers, if they are listed. Of the reports whose variance is within
        3 % of the least, with as many cohorts as there may be, the shortest is taken; and then as
        few cohorts as make what they share a tenth of the noise. ``width`` and ``hashes`` are
        taken as they are, if given.
        """
        from deniable.mechanisms.cohorts.advice import suggested

        n = require_int("n", n, 1, 1 << 53)
        if size is not None:
            size = require_int("size", size, 2, MAX_SIZE)
        if not is_number(second_moment) or not 0 < second_moment <= 1:
            raise InvalidArgument("second_moment", second_moment, "a number above 0, at most 1")
        for name, given in (("width", width), ("hashes", hashes)):
            if given is not None:
                require_int(name, given, *LIMITS[name])
        expected = n, float(second_moment), size
        return dict(suggested(cls, check_epsilon(epsilon), *expected, width, hashes))

    def report(self, value: int, coins: Coins) -> tuple[int, Any]:
        cohort = coins.choice(self.cohorts)
        return cohort, self._randomised(self.cells_of(value, cohort), coins)

    @abstractmethod
    def _randomised(self, cells: Sequence[int], coins: Coins) -> Any:
        """The inner report of a value with these cells."""

    @property
    def coin_words(self) -> int:
        words: int = self.inner.coin_words
        return 1 + words

    @cached_property
    def layout(self) -> Record:
        cohort = Index(self.cohorts, noun="a cohort")
        return Record({"cohort": cohort, "report": self.inner.layout})

    @cached_property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.inner.guarantee.ratio**self.hashes)

    def fill(self, values: NDArray[Any], out: NDArray[Any], keystream: Keystream) -> None:
        from deniable.kernels.cohorts import cohort_cells

        for some, target, words in batches(values, out, keystream, 1):
            codes = some if isinstance(self.domain, Text) else self.codes[some]
            cohorts = np.empty(len(some), dtype=np.uint32)
            cells = np.empty((len(some), self.hashes), dtype=np.uint32)
            cohort_cells(cohorts, cells, codes, words, self.keys, self.sizes)
            rows = np.empty(len(target), dtype=self.inner.dtype)
            self._fill_inner(cells, rows, keystream)
            target["cohort"][: len(some)] = cohorts
            target["report"][: len(some)] = rows[: len(some)]

    @abstractmethod
    def _fill_inner(
        self, cells: NDArray[np.uint32], rows: NDArray[Any], keystream: Keystream
    ) -> None:
        """Write the inner reports of many values, whose cells are the rows of ``cells``."""

    # ---- counts: one row a cohort, the number of its reports and then the inner counts

    @property
    def cells(self) -> int:
        inner: int = self.inner.cells
        return self.cohorts * (1 + inner)

    def count(self, data: NDArray[Any]) -> Counts:
        # Copied once: records are far apart, and each pass over them reads all of their memory.
        cohorts = np.ascontiguousarray(data["cohort"])
        self.layout.fields["cohort"].check(cohorts)
        table = np.zeros((self.cohorts, 1 + self.inner.cells), dtype=np.int64)
        table[:, 0] = np.bincount(cohorts, minlength=self.cohorts)
        self._count_inner(cohorts, data["report"], table[:, 1:])
        return table.reshape(-1)

    @abstractmethod
    def _count_inner(self, cohorts: NDArray[Any], inner: NDArray[Any], table: Counts) -> None:
        """Write the counts of the inner reports, a row for each cohort, over zeros."""

    def possible_counts(self, counts: Counts, n: int) -> bool:
        table = counts.reshape(self.cohorts, -1)
        sizes = table[:, 0].tolist()
        inner = (
            self.inner.possible_counts(row, size)
            for row, size in zip(table[:, 1:], sizes, strict=True)
        )
        return min(sizes) >= 0 and sum(sizes) == n and all(inner)

    def by_cohort(self, counts: Counts) -> tuple[Counts, Counts]:
        """The number of reports of each cohort, and how many of them support each cell."""
        table = counts.reshape(self.cohorts, -1)
        return table[:, 0], self._cell_supports(table[:, 1:], table[:, :1])

    def _cell_supports(self, counts: Counts, sizes: Counts) -> Counts:
        return counts

    # ---- numbers

    @property
    def p(self) -> Fraction:
        p: Fraction = self.inner.p
        return p

    @cached_property
    def q(self) -> Fraction:
        """q* = q + P (p - q): others collide with probability P."""
        q: Fraction = self.inner.q
        return q + self.collisions.share * (self.p - q)

    def supports(self, counts: Counts, n: int) -> Counts | None:
        """The reports whose cell holds the value (a mean over several hash functions has none)."""
        if self.is_open or self.hashes > 1:
            return None
        return self.sums_over_cells(self.by_cohort(counts)[1])

    def unbiased(self, counts: Counts, n: int) -> Floats:
        """(c_v / n - q*) / (p - q*) with the mean c_v over the cells of v; the rest is outside."""
        sums = self.sums_over_cells(self.by_cohort(counts)[1])
        f = (sums / (n * self.hashes) - float(self.q)) / float(self.p - self.q)
        return np.append(f, 1 - f.sum()) if self.is_open else f

    def response(self) -> Floats:
        """(C_uv - P) / (1 - P), where C_uv is the part of the cells of v that u sets."""
        k, share = self.codes.size, float(self.collisions.share)
        rows = [self.masses_of_cells(one) > 0 for one in np.eye(k, dtype=np.int64)]
        parts = np.array([self.sums_over_cells(row.astype(np.int64)) for row in rows])
        return np.asarray((parts / (self.cohorts * self.hashes) - share) / (1 - share))

    def variance_line(self, f: Floats, n: int) -> Line:
        """n Var = A + B f_v + (n / C) (s (F - (1 - f_v) / n) + d ((1 - f_v)^2 - F)).

        A and B are those of reports that share no hash function, F = sum_{u != v} f_u^2; s and d
        are `Collisions.same` and `different` over (1 - P)^2.
        """
        return self._line(f, n, float(np.sum(f * f)))

    def variance_at(self, f: Floats, n: int) -> Line:
        return self._line(f, n, float(f * f + (1 - f) ** 2 / (self.domain.size - 1)))

    def estimated_line(self, counts: Counts, n: int, unbiased: Floats | None = None) -> Line:
        """`variance_line` with F estimated from the cells; outside as cohorts differ about it."""
        f = np.clip(self.unbiased(counts, n) if unbiased is None else unbiased, 0.0, 1.0)
        # F may come out too small, but not smaller than what is clearly more than noise.
        listed = f[: self.codes.size]
        deviations = 2 + math.sqrt(2 * math.log(listed.size))
        clear = listed[listed > deviations * math.sqrt(self.moments[1] / n)]
        line = self._line(f, n, max(second_moment(self, counts), float(clear @ clear)))
        if self.is_open:
            line.a[-1] = max(line.a[-1], n * self._outside_variance(counts))
        return line

    def _line(self, f: Floats, n: int, square: float) -> Line:
        own, other, same, different = self.moments
        others = np.maximum(square - f * f, 0.0)
        shared = n * (same * others + different * ((1 - f) ** 2 - others)) - same * (1 - f)
        line = Line(np.asarray(other + shared / self.cohorts), np.full(f.shape, own - other))
        return self._with_outside(line, f)

    def _with_outside(self, line: Line, f: Floats) -> Line:
        """The outside is 1 less all candidates, whose errors are not correlated."""
        a, b = line
        if self.is_open and f.ndim:
            a[-1], b[-1] = float(a[:-1].sum() + b[:-1] @ f[:-1]), 0.0
        return line

    @cached_property
    def moments(self) -> tuple[float, float, float, float]:
        """The variance of the mean of a value's bits in a report, if it is about the value and if
        not, and the (co)variance of its collisions: all over the squared slope of that mean."""
        return self.moments_of(self.inner.p, self.inner.q)

    def moments_of(self, p: Fraction, q: Fraction) -> tuple[float, float, float, float]:
        """`moments` of bits with this p and q."""
        met = self.collisions
        gain, shape = p - q, (self.width, self.hashes)
        own = mean_square(p, p * p, *shape) - p * p
        pair = q * q + 2 * q * gain * met.share + gain * gain * met.both
        mean = q + met.share * gain
        other = mean_square(mean, pair, *shape) - mean**2
        slope, left = (gain * (1 - met.share)) ** 2, (1 - met.share) ** 2
        found = (own / slope, other / slope, met.same / left, met.different / left)
        return float(found[0]), float(found[1]), float(found[2]), float(found[3])

    def _outside_variance(self, counts: Counts) -> float:
        """The variance of the sum of all candidates, from how much C cohorts differ.

        Times the variance of Student's t with C - 1 degrees of freedom, since few cohorts do not
        tell it well; three tell nothing. Of very many the first stand for all.
        """
        sizes, supports = self.by_cohort(counts)
        some = np.flatnonzero(sizes)[:COMPARED_COHORTS]
        if some.size <= 3:
            return 1.0
        held = self.masses_of_cells(np.ones(self.codes.size, dtype=np.int64), some)
        weights = sizes[some] / sizes[some].sum()
        means = (held * supports[some]).sum(axis=1) / (sizes[some] * self.hashes)
        means /= float(self.p - self.q)
        spread = np.sum(weights**2 * (means - weights @ means) ** 2) / np.sum(weights**2)
        squares = np.sum((sizes / sizes.sum()) ** 2)
        return float(spread * squares * some.size / (some.size - 3))


class CohortIndices(CohortMechanism):
    """Cohorts whose inner reports are an index."""

    counts_suffice = True
    keep = Threshold()

    def derive_keep(self) -> int:
        keep: int = self._inner().keep
        return keep

    def _randomised(self, cells: Sequence[int], coins: Coins) -> Any:
        return self.inner.report(cells[0], coins)

    def _fill_inner(
        self, cells: NDArray[np.uint32], rows: NDArray[Any], keystream: Keystream
    ) -> None:
        self.inner.fill(np.ascontiguousarray(cells[:, 0]), rows, keystream)

    def _count_inner(self, cohorts: NDArray[Any], inner: NDArray[Any], table: Counts) -> None:
        from deniable.kernels.groups import index_counts

        self.inner.layout.check(inner)
        index_counts(cohorts, inner, table)


class CohortBits(CohortMechanism):
    """Cohorts whose cells are bits, each randomised on its own.

    With h hash functions a value sets up to h bits (a Bloom filter), two values differ in at most 2
    h, and the inner mechanism gets epsilon / h. Then a report has no set of values that it
    supports, but each value has the mean of its bits.
    """

    one = Threshold()
    zero = Threshold()

    def derive_one(self) -> int:
        one: int = self._inner().one
        return one

    def derive_zero(self) -> int:
        zero: int = self._inner().zero
        return zero

    @property
    def two_likelihoods(self) -> bool:  # type: ignore[override]
        """A report is as likely as the bits of the value say; so two likelihoods for one bit."""
        return self.hashes == 1

    @property
    def known_likelihood(self) -> bool:
        """It has a factor for each bit of the Bloom filter."""
        return True

    def _randomised(self, cells: Sequence[int], coins: Coins) -> Any:
        return self.inner.randomised(cells, coins)

    def _fill_inner(
        self, cells: NDArray[np.uint32], rows: NDArray[Any], keystream: Keystream
    ) -> None:
        self.inner.fill_rows(cells, rows, keystream)

    def _count_inner(self, cohorts: NDArray[Any], inner: NDArray[Any], table: Counts) -> None:
        from deniable.kernels.groups import bit_counts

        table[:] = self.inner.sets.without_padding(bit_counts(inner, cohorts, self.cohorts))


def share_of(epsilon: float, hashes: int) -> float:
    """Two values differ in ``hashes`` cells each, so each gets epsilon / hashes, rounded down."""
    share = epsilon / hashes
    fits = Fraction(share) * hashes <= Fraction(epsilon)
    return share if fits else math.nextafter(share, 0.0)


def second_moment(mechanism: CohortMechanism, counts: Counts) -> float:
    """sum_u f_u^2 over all values, also unknown ones, from how uneven the cells are.

    The squares of the frequencies x of the cells sum to own F + cross (1 - F) (see `Collisions`),
    and their estimates have the variance m (1 - m) / ((p - q)^2 (N - 1)) in a cohort of N.
    """
    sizes, supports = mechanism.by_cohort(counts)
    several = sizes > 1
    if not several.any():
        return 1.0
    size = sizes[several].astype(np.float64)
    m = supports[several] / size[:, None]
    gain = float(mechanism.inner.p - mechanism.inner.q)
    squares = ((m - float(mechanism.inner.q)) ** 2).sum(axis=1)
    noise = (m * (1 - m)).sum(axis=1) / (size - 1)
    total = np.average((squares - noise) / gain**2, weights=size * (size - 1))
    own, cross = float(mechanism.collisions.own), float(mechanism.collisions.cross)
    return float(np.clip((total - cross) / (own - cross), 0.0, 1.0))
