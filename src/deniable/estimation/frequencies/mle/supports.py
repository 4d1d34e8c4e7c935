"""Reports as what the likelihood sees: the set S of values that each report supports.

A report is rho times as likely under a value of S as under any other value, so up to a constant
the log-likelihood of frequencies f that sum to 1 is sum_i log x_i, x_i = 1 + (rho - 1) f(S_i).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Counts, Floats, Indices
from deniable.errors import InvalidArgument
from deniable.mechanisms.frequency import FrequencyOracle
from deniable.mechanisms.local_hashing import LocalHashing
from deniable.mechanisms.packed import PackedMechanism, unpacked

#: Up to so many values all possible supports are counted instead of kept one by one.
GROUPED = 16
#: Bytes of rows that a thread works on at a time when they are not kept.
PIECE = 1 << 21


class Sums(NamedTuple):
    """(sum w log x, sum w / x, sum w / x^2), and by value, over the reports that support it, the
    sums of w / x and, where asked for, of w / x^2."""

    totals: Floats
    by_value: Floats


class Gram(NamedTuple):
    """With D = diag(w / x^2): sum D, S^T D 1 and S^T D S for the reports x values matrix S."""

    total: float
    single: Floats
    pairs: Floats

    def plus(self, other: Gram) -> Gram:
        """Those of the reports of both."""
        return Gram(self.total + other.total, self.single + other.single, self.pairs + other.pairs)

    def times(self, factor: float) -> Gram:
        """Those of as many times the reports."""
        return Gram(factor * self.total, factor * self.single, factor * self.pairs)


class SeenGram(NamedTuple):
    """The second moments of some of the reports, and how many these are."""

    seen: int
    gram: Gram


class Subsample(NamedTuple):
    """Which reports are looked at: every ``stride``-th; or those of some cohorts.

    It does not depend on how the reports are cut into pieces, nor on chance.
    """

    stride: int
    cohorts: tuple[int, ...] = ()

    def rows(self, start: int) -> slice:
        """The rows of a piece, of which the first has this number among all reports."""
        return slice(-start % self.stride, None, self.stride)


class LikelihoodTerm(ABC):
    """``n`` reports of one mechanism, with ``gain`` = rho - 1."""

    def __init__(self, mechanism: FrequencyOracle, n: int, gain: float | None = None) -> None:
        if not mechanism.two_likelihoods and gain is None:
            raise unknown_family(mechanism)
        self.mechanism = mechanism
        self.n = n
        self.gain = float(mechanism.once.ratio - 1) if gain is None else gain

    @abstractmethod
    def sums(self, f: Floats, threads: int | None, *, squares: bool) -> Sums:
        """The sums that value, gradient and curvature at f are made of: one pass."""

    @abstractmethod
    def moments(self, f: Floats, values: Indices, sample: Subsample, start: int = 0) -> SeenGram:
        """The second moments at f for some values, of a sample.

        ``start`` is the number of the first report, if these are a piece of all.
        """

    def sample(self, most: int) -> Subsample:
        """About ``most`` of the reports."""
        return Subsample(-(-self.n // most))

    def gram(self, f: Floats, values: Indices, most: int) -> Gram:
        """The second moments at f for some values.

        From about ``most`` of the reports, and scaled up to all.
        """
        seen, found = self.moments(f, values, self.sample(most))
        return found.times(self.n / seen)

    def blocks(self, f: Floats) -> tuple[Indices, Floats]:
        """The block of each value, and the usual entry of the Hessian between values of a block.

        It is relative to that between blocks; so with one block it is 0.
        """
        return np.zeros(f.size, dtype=np.int64), np.zeros(1)


class Rows(LikelihoodTerm):
    """Supports as rows of bits, in ``words``; with ``weights`` if equal rows were brought together.

    Without ``weights`` every row counts once.
    """

    def __init__(
        self, mechanism: FrequencyOracle, words: NDArray[Any], weights: Floats | None = None
    ) -> None:
        super().__init__(mechanism, len(words) if weights is None else int(weights.sum()))
        self.words = words
        self.weights = np.empty(0) if weights is None else weights

    def sums(self, f: Floats, threads: int | None, *, squares: bool) -> Sums:
        from deniable.kernels.likelihood import packed_pass

        def work(rows: slice) -> tuple[Floats, Floats]:
            part = self.words[rows], self.weights[rows]
            return packed_pass(*part, self.gain, f, squares=squares)

        return _in_threads(work, len(self.words), threads)

    def moments(self, f: Floats, values: Indices, sample: Subsample, start: int = 0) -> SeenGram:
        """Row by row as floating-point numbers; all rows, where they have weights."""
        words = self.words if self.weights.size else self.words[sample.rows(start)]
        weights = self.weights if self.weights.size else np.ones(len(words))
        total, single, pairs = 0.0, np.zeros(values.size), np.zeros((values.size, values.size))
        for rows in pieces(0, len(words), 8 * f.size):
            supports = unpacked(words[rows], f.size).astype(np.float64)
            d = weights[rows] / (1 + self.gain * (supports @ f)) ** 2
            supports = supports[:, values]
            total += float(d.sum())
            single += d @ supports
            supports *= np.sqrt(d)[:, None]
            pairs += supports.T @ supports
        return SeenGram(int(weights.sum()), Gram(total, single, pairs))


class HashedRows(LikelihoodTerm):
    """Hashed reports whose supports would not fit into memory: made anew in every pass."""

    mechanism: LocalHashing

    def __init__(self, mechanism: LocalHashing, data: NDArray[Any]) -> None:
        super().__init__(mechanism, len(data))
        self.data = data

    def sums(self, f: Floats, threads: int | None, *, squares: bool) -> Sums:
        def work(rows: slice) -> tuple[Floats, Floats]:
            total: tuple[Floats, Floats] | None = None
            for piece in pieces(rows.start, rows.stop, f.size // 8 + 8):
                part = Rows(self.mechanism, supports_of(self.mechanism, self.data[piece]))
                sums = part.sums(f, 1, squares=squares)
                total = sums if total is None else (total[0] + sums[0], total[1] + sums[1])
            assert total is not None
            return total

        return _in_threads(work, self.n, threads)

    def moments(self, f: Floats, values: Indices, sample: Subsample, start: int = 0) -> SeenGram:
        some = supports_of(self.mechanism, self.data[sample.rows(start)])
        return Rows(self.mechanism, some).moments(f, values, Subsample(1))


@singledispatch
def term_of_reports(mechanism: FrequencyOracle, data: NDArray[Any], memory: int) -> LikelihoodTerm:
    """Reports as a part of the likelihood; made supports are kept if ``memory`` bytes hold them."""
    raise unknown_family(mechanism)


@term_of_reports.register
def _(mechanism: PackedMechanism, data: NDArray[Any], memory: int) -> LikelihoodTerm:
    from deniable.kernels.bits import as_rows

    rows = as_rows(np.ascontiguousarray(data))
    if mechanism.domain.size <= GROUPED:
        return _grouped(mechanism, np.bincount(rows[:, 0], minlength=1))
    return Rows(mechanism, rows)


@term_of_reports.register
def _(mechanism: LocalHashing, data: NDArray[Any], memory: int) -> LikelihoodTerm:
    size = mechanism.domain.size
    if size <= GROUPED:
        found = np.zeros(1 << size, dtype=np.int64)
        for rows in pieces(0, len(data), 8):
            words = supports_of(mechanism, data[rows])[:, 0].astype(np.int64)
            found += np.bincount(words, minlength=found.size)
        return _grouped(mechanism, found)
    if len(data) * -(-size // 64) * 8 > memory:
        return HashedRows(mechanism, data)
    return Rows(mechanism, supports_of(mechanism, data))


def unknown_family(mechanism: FrequencyOracle) -> InvalidArgument:
    """The refusal of a mechanism of which it is not known that its likelihood has this form."""
    return InvalidArgument("parts", mechanism, "reports of a family whose likelihood is known")


def supports_of(mechanism: LocalHashing, data: NDArray[Any]) -> NDArray[np.uint64]:
    """The supports of hashed reports as rows of words."""
    from deniable.kernels.likelihood import hashed_rows

    return hashed_rows(data, mechanism.modulus, mechanism.first_residues, mechanism.domain.size)


def pieces(start: int, stop: int, row_bytes: int) -> Iterator[slice]:
    """``start..stop`` cut into slices of about `PIECE` bytes."""
    step = max(64, PIECE // row_bytes)
    for begin in range(start, stop, step):
        yield slice(begin, min(begin + step, stop))


def _grouped(mechanism: FrequencyOracle, found: Counts) -> Rows:
    """Each support that occurs once, with how often it was found."""
    occur = np.flatnonzero(found)
    return Rows(mechanism, occur.astype("<u8")[:, None], found[occur].astype(np.float64))


def _in_threads(work: Any, n: int, threads: int | None) -> Sums:
    """``work`` on slices of 0..n, one a thread, and the sum of what it returns."""
    from deniable.kernels.threads import run, thread_count

    step = max(1024, -(-n // thread_count(threads)))
    found = run(work, [slice(start, min(start + step, n)) for start in range(0, n, step)])
    return Sums(sum(totals for totals, _ in found), sum(values for _, values in found))
