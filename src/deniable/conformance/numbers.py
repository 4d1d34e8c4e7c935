"""The laws of means: what must hold for every mechanism whose sums are estimated as a mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np

from deniable.answers.number import GRID, Number
from deniable.arrays import Counts, Floats
from deniable.conformance.members import FALSE_ALARM, check
from deniable.core.tally import Tally
from deniable.estimation import MEANS, Numbers
from deniable.estimation.numbers.statistic import rounded_half_width
from deniable.estimation.numbers.task import CONFIDENCE, mean_of
from deniable.mechanisms.numbers import NumberMechanism
from deniable.mechanisms.numbers.scores import Scores
from deniable.privacy import exact_channel

Family = type[NumberMechanism]

EPSILONS = (0.5, 1.0, 4.0)
#: Encoded numbers of small designs: the ends, and where cells begin and end.
VALUES = sorted({0, 1, GRID // 8, GRID // 3, GRID // 2, GRID - 1, GRID})


def small(family: Family) -> Iterator[NumberMechanism]:
    """Members whose channel can be enumerated, with few and with many steps."""
    for epsilon in EPSILONS:
        for design in family.shapes:
            yield family(Number(0, 1), epsilon, **{**family.small_design, **design})


def large(family: Family) -> Iterator[NumberMechanism]:
    """Members as they are used."""
    for epsilon in EPSILONS:
        yield family(Number(-40, 60), epsilon)


def exact_moments(family: Family) -> None:
    """What is estimated from counts that follow the law exactly: the mean and its square.

    And where reports have scores, as fractions: rows are equally likely whatever the number, the
    mean has no bias, and its variance is not larger than the largest.
    """
    for m in small(family):
        channel = exact_channel(m.report, VALUES)
        column = m.pack(channel.outputs)
        cells = np.array([m.count(column[i : i + 1]) for i in range(len(column))])
        for value, law in zip(VALUES, channel.matrix, strict=True):
            x = m.told(value)
            _check_estimate(m, cells, law, float(x))
            if isinstance(m, Scores):
                _check_scores(m, m.table(np.arange(m.cells)), _by_cell(cells, law), x)


def exact_skips(family: Family) -> None:
    """If a question may be skipped: S and N of counts that follow the law exactly, without bias.

    Where reports have scores, as fractions.
    """
    if not family.skips:
        return
    domain = Number(0, 1, optional=True)
    skip = int(domain.encode([None])[0])
    for epsilon, design in zip(EPSILONS, family.shapes, strict=False):
        m = family(domain, epsilon, **{**family.small_design, **design})
        values = [*VALUES, skip]
        channel = exact_channel(m.report, values)
        column = m.pack(channel.outputs)
        cells = np.array([m.count(column[i : i + 1]) for i in range(len(column))])
        for value, law in zip(values, channel.matrix, strict=True):
            x, answers = (Fraction(0), 0) if value == skip else (m.told(value), 1)
            weights = np.array([round(weight * (1 << 40)) for weight in law])
            found = m.answered(weights @ cells, int(weights.sum()))
            apart = abs(found.total - x) + abs(found.share - answers)
            check(apart > 1e-9, "exact_skips", m, f"{x}, {answers} are estimated as {found}")
            if isinstance(m, Scores):
                _check_skip_scores(m, _by_cell(cells, law), x, answers)


def _check_skip_scores(m: Scores, law: list[Fraction], x: Fraction, answers: int) -> None:
    rows = [[law[place] for place in row] for row in m.table(np.arange(m.cells)).tolist()]
    by_cell = [sum(column) for column in zip(*rows, strict=True)]
    for scores, mean in ((m.exact_scores, x), (m.exact_answers, answers)):
        found = sum(map(mul, scores, by_cell))
        check(found != mean, "exact_skips", m, f"{mean} is {found} on average")


def _by_cell(cells: Counts, law: Sequence[Fraction]) -> list[Fraction]:
    """The probability of each cell, where every report is one."""
    places = cells.argmax(axis=1).tolist()
    found = [Fraction(0)] * cells.shape[1]
    for place, weight in zip(places, law, strict=True):
        found[place] += weight
    return found


def _check_scores(m: Scores, table: Any, law: list[Fraction], x: Fraction) -> None:
    rows = [[law[place] for place in row] for row in table.tolist()]
    equal = {sum(row) for row in rows} == {Fraction(1, len(rows))}
    check(not equal, "exact_moments", m, "which row is reported tells something")
    pairs = [pair for row in rows for pair in zip(m.exact_scores, row, strict=True)]
    mean = sum(score * weight for score, weight in pairs)
    wrong = abs(mean - x) > m.mean_error
    check(wrong, "exact_moments", m, f"{x} is {mean} on average")
    variance = float(sum(score**2 * weight for score, weight in pairs) - mean**2)
    too_large = variance > m.worst_variance(1) * (1 + 1e-9)
    check(too_large, "exact_moments", m, f"{variance} exceeds the largest variance")


def _check_estimate(m: NumberMechanism, cells: Counts, law: Sequence[Fraction], x: float) -> None:
    weights = np.array([round(weight * (1 << 52)) for weight in law])
    found = m.moments(weights @ cells, int(weights.sum()))
    check(abs(found.mean - x) > 1e-9, "exact_moments", m, f"{x} is estimated as {found.mean}")
    if found.square is not None:
        near = -2e-9 < x**2 - found.square <= m.square_error + 2e-9
        check(not near, "exact_moments", m, f"{x**2} is estimated as {found.square}")


def simulated_errors(family: Family) -> None:
    """Squared errors of means are as the formula says for the numbers that were answered.

    And that is not less than the least variance of means that are the same. Null hypothesis: they
    have that variance and are normal, which makes their sum chi-square.
    """
    from scipy.stats import chi2

    runs, n = family.trials // 2, 2_000
    for m in large(family):
        for x in _populations(n).values():
            least, formula = m.least_variance(float(x.mean()), n), m.variance_for(x, n)
            found = f"the variance {formula} is below the least, {least}"
            check(formula < least * (1 - 1e-9), "simulated_errors", m, found)
            told = np.mean([float(m.told(v)) for v in m.domain.encode(_answers(m, x)).tolist()])
            errors = [mean - told for mean, _ in _simulated(m, x, runs)]
            square = float(np.sum(np.square(errors))) / formula
            p_value = 2 * min(float(chi2.cdf(square, runs)), float(chi2.sf(square, runs)))
            found = f"errors are {square / runs:.3f} of the formula, p-value {p_value:.1e}"
            check(p_value < FALSE_ALARM, "simulated_errors", m, found)


def coverage(family: Family) -> None:
    """95 % intervals cover the mean of the respondents, also of skewed numbers.

    Null hypothesis: each covers with probability 0.925 at least; floors make some cover more.
    """
    from scipy.stats import binom

    runs = family.trials
    for m in large(family):
        for n in (60, 400, 1_000):
            for name, x in _populations(n).items():
                found = _simulated(m, x, runs)
                hits = sum(abs(mean - x.mean()) <= half for mean, half in found)
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


def _simulated(m: NumberMechanism, x: Floats, runs: int) -> list[tuple[float, float]]:
    """Means of several collections of the same answers, and half widths: numbers of 0..1."""
    data, n = m.privatize(np.tile(_answers(m, x), runs), np.random.default_rng(21)).data, len(x)
    found = []
    for first in range(0, len(data), n):
        moments = m.moments(m.count(data[first : first + n]), n)
        one = mean_of(moments, CONFIDENCE, everyone=False)
        found.append((one.value, one.interval[1] - one.value))
    return found


def _answers(m: NumberMechanism, x: Floats) -> Floats:
    return m.domain.lo + (m.domain.hi - m.domain.lo) * x


def _estimate(m: NumberMechanism, counts: Any, n: int) -> Numbers:
    return MEANS.estimate([Tally.of_counts(m, counts, n)])


def decoders(family: Family) -> None:
    """Estimates are finite, in their intervals, the same again, and no worse than was predicted."""
    for m in large(family):
        for n in (1, 7, 60, 1_000, 30_000):
            x = np.random.default_rng(4).uniform(m.domain.lo, m.domain.hi, n)
            counts = m.count(m.privatize(x, np.random.default_rng(5)).data)
            e, again = (_estimate(m, counts, n) for _ in range(2))
            low, high = e.mean_interval
            numbers = (e.mean, e.standard_error, low, high)
            check(not np.isfinite(numbers).all(), "decoders", m, f"not finite: {numbers}")
            check(not low < e.mean < high, "decoders", m, "an interval without its estimate")
            error = m.moments(counts, n).variance_about(everyone=False) ** 0.5
            half, width = (high - low) / 2, m.domain.hi - m.domain.lo
            usual = rounded_half_width(error, m.rounding, CONFIDENCE)
            other = abs(half / width / usual - 1) > 1e-9
            check(other, "decoders", m, f"{half} is not the half width of a normal interval")
            same = (e.mean, e.mean_interval) == (again.mean, again.mean_interval)
            check(not same, "decoders", m, "two answers to one question")
            predicted = MEANS.half_width(m, n)
            wider = half > predicted * (1 + 1e-9)
            check(wider, "decoders", m, f"{half} exceeds {predicted}, n = {n}")


MEAN_LAWS: tuple[Callable[[Any], None], ...] = (
    exact_moments,
    exact_skips,
    simulated_errors,
    coverage,
    decoders,
)
