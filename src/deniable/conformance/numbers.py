"""The laws of means: what must hold for every mechanism whose sums are estimated as a mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.answers.number import FINE, GRID, Number
from deniable.arrays import Counts, Floats
from deniable.conformance.members import FALSE_ALARM, check
from deniable.core.tally import Tally
from deniable.estimation import MEAN, Numbers
from deniable.estimation.numbers.moments import moments
from deniable.mechanisms.numbers import DRR
from deniable.privacy import exact_channel

Family = type[DRR]

EPSILONS = (0.5, 1.0, 4.0)
#: Encoded numbers of small designs: the ends, and where cells begin and end.
VALUES = sorted({0, 1, GRID // 8, GRID // 3, GRID // 2, GRID - 1, GRID})


def small(family: Family) -> Iterator[DRR]:
    """Members whose channel can be enumerated, with few and with many steps."""
    for epsilon in EPSILONS:
        for ell in (1, 2, 3, 7):
            yield family(Number(0, 1), epsilon, ell=ell, shown=2, **family.small_design)


def large(family: Family) -> Iterator[DRR]:
    """Members as they are used."""
    for epsilon in EPSILONS:
        yield family(Number(-40, 60), epsilon)


def exact_moments(family: Family) -> None:
    """As fractions: the offset is uniform whatever the number, and the mean has no bias.

    And in floating point: what is estimated from counts that follow the law exactly is the mean,
    its square, and no variance that is larger than the largest.
    """
    for m in small(family):
        channel = exact_channel(m.report, VALUES)
        for value, law in zip(VALUES, channel.matrix, strict=True):
            x = Fraction(m.ell * value >> (FINE - m.fine), m.ell << m.fine)
            table = _table(m, dict(zip(channel.outputs, law, strict=True)))
            offsets = {sum(row) for row in table}
            check(offsets != {Fraction(1, 1 << m.shown)}, "exact_moments", m, "offsets tell")
            z = sum(cell * weight for row in table for cell, weight in enumerate(row))
            found = (z - (1 - m.share) * m.drawn_mean) / (m.share * m.ell)
            check(found != x, "exact_moments", m, f"{x} is {found} on average")
            squares = sum(cell**2 * weight for row in table for cell, weight in enumerate(row))
            variance = float((squares - z**2) / (m.share * m.ell) ** 2)
            too_large = variance > m.worst_variance(1)
            check(too_large, "exact_moments", m, f"{variance} exceeds the largest variance")
            _check_estimate(m, table, float(x))


def _table(m: DRR, law: dict[Any, Fraction]) -> list[list[Fraction]]:
    """The law of one number by shown offset and cell."""
    rows = range(1 << m.shown)
    places = [[(cell << m.shown) | row for cell in range(m.outcomes)] for row in rows]
    return [[law.get(place, Fraction(0)) for place in row] for row in places]


def _check_estimate(m: DRR, table: list[list[Fraction]], x: float) -> None:
    scale = 1 << 40
    weights = np.array([[round(weight * scale) for weight in row] for row in table])
    n = int(weights.sum())
    found = moments(m, weights.T.reshape(-1), n)
    check(abs(found.mean - x) > 1e-9, "exact_moments", m, f"{x} is estimated as {found.mean}")
    # The offset is shown to h = 1/4, which may cost (h / (2 ell))^2 on both sides.
    near = -2e-9 < x**2 - found.square <= (1 / (1 << m.shown) / m.ell) ** 2 / 4 + 2e-9
    check(not near, "exact_moments", m, f"{x**2} is estimated as {found.square}")


def simulated_errors(family: Family) -> None:
    """Squared errors of means are as the formula says for the numbers that were answered.

    Null hypothesis: they have that variance and are normal, which makes their sum chi-square.
    """
    from scipy.stats import chi2

    runs, n = 300, 5_000
    for m in large(family):
        for x in _populations(n).values():
            errors = [mean - x.mean() for mean, *_ in _simulated(m, x, runs)]
            square = float(np.sum(np.square(errors))) / _variance(m, x)
            p_value = 2 * min(float(chi2.cdf(square, runs)), float(chi2.sf(square, runs)))
            found = f"errors are {square / runs:.3f} of the formula, p-value {p_value:.1e}"
            check(p_value < FALSE_ALARM, "simulated_errors", m, found)


def _variance(m: DRR, x: Floats) -> float:
    """The variance of the mean of n respondents with these numbers, exactly.

    (E_t Var(z | t) (1 + (S - 1) / n) / (s ell)^2 - Var(x)) / n, with t in one of S strata.
    """
    n = len(x)
    s, strata, cells = float(m.share), m.strata(n), np.arange(m.outcomes)
    whole, rest = np.divmod(m.ell * x, 1)
    edges = np.arange(strata + 1) / strata
    # Those offsets of a stratum, as a share of it, that lift a number to the next cell.
    lifted = np.clip((edges[1:] - (1 - rest[:, None])) * strata, 0.0, 1.0)
    law = np.zeros((strata, m.outcomes))
    for number, share in zip(whole.astype(int), lifted, strict=True):
        law[:, number] += (1 - share) / n
        law[:, min(number + 1, m.ell)] += share / n
    law = s * law + (1 - s) / m.outcomes
    variances = law @ cells**2 - (law @ cells) ** 2
    sample = float(variances.mean()) * (1 + (strata - 1) / n) / (s * m.ell) ** 2
    return (sample - float(x.var())) / n


def coverage(family: Family) -> None:
    """95 % intervals cover the mean of the respondents, also of skewed numbers.

    Null hypothesis: each covers with probability 0.925 at least; floors make some cover more.
    """
    from scipy.stats import binom

    runs = 600
    for n in (60, 400, 2_000):
        for m in large(family):
            for name, x in _populations(n).items():
                found = _simulated(m, x, runs)
                hits = sum(low <= x.mean() <= high for _, low, high in found)
                p_value = float(binom.cdf(hits, runs, 0.925))
                words = f"{hits / runs:.3f} of the intervals cover ({name}, n = {n})"
                check(p_value < FALSE_ALARM, "coverage", m, words)


def _populations(n: int) -> dict[str, Floats]:
    """Numbers of 0..1: even, skewed, nearly all at one end, all at both ends, all the same."""
    rank = (np.arange(n) + 0.5) / n
    return {
        "even": rank,
        "skewed": np.minimum(-np.log1p(-rank) / 20, 1.0),
        "nearly all lo": np.where(rank > 0.98, 1.0, 0.0),
        "both ends": np.round(rank),
        "one number": np.full(n, 1 / 3),
    }


def _simulated(m: DRR, x: Floats, runs: int) -> list[tuple[float, float, float]]:
    """Means of 0..1 with their intervals, of several collections of the same answers."""
    lo, width = m.domain.lo, m.domain.hi - m.domain.lo
    answers = np.tile(lo + width * x, runs)
    data = m.privatize(answers, np.random.default_rng(21)).data.reshape(runs, -1)
    found = []
    for reports in data:
        e = _estimate(m, m.count(reports), len(x))
        low, high = e.interval
        found.append(((e.mean - lo) / width, (low - lo) / width, (high - lo) / width))
    return found


def _estimate(m: DRR, counts: Counts, n: int) -> Numbers:
    return MEAN.estimate([Tally.of_counts(m, counts, n)])


def decoders(family: Family) -> None:
    """Estimates are finite, in their intervals, the same again, and no worse than was predicted."""
    for m in large(family):
        for n in (1, 7, 60, 1_000, 30_000):
            x = np.random.default_rng(4).uniform(m.domain.lo, m.domain.hi, n)
            counts = m.count(m.privatize(x, np.random.default_rng(5)).data)
            e, again = (_estimate(m, counts, n) for _ in range(2))
            low, high = e.interval
            numbers = (e.mean, e.standard_error, low, high)
            check(not np.isfinite(numbers).all(), "decoders", m, f"not finite: {numbers}")
            check(not low < e.mean < high, "decoders", m, "an interval without its estimate")
            same = (e.mean, e.interval) == (again.mean, again.interval)
            check(not same, "decoders", m, "two answers to one question")
            predicted = MEAN.half_width(m, n)
            wider = (high - low) / 2 > predicted * (1 + 1e-9)
            check(wider, "decoders", m, f"{(high - low) / 2} exceeds {predicted}, n = {n}")


MEAN_LAWS: tuple[Callable[[Any], None], ...] = (
    exact_moments,
    simulated_errors,
    coverage,
    decoders,
)
