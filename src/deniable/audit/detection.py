"""Tests that reports are genuine: laws that honest ones obey whatever people answer.

A test that rejects shows that somebody forges; one that does not shows nothing, since a forger who
knows the tests can obey the laws (an honestly randomised lie obeys all of them). All p-values are
for the hypothesis that every report is genuine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.audit.alphabets import BLOCK, Alphabet, Products, alphabet_of
from deniable.errors import InvalidArgument, require_type
from deniable.reports import Reports

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Sizes with fewer expected reports are pooled.
LEAST_EXPECTED = 10.0
#: Values whose pairs are compared: the most frequent ones.
COMPARED = 256


@dataclass(frozen=True)
class Detection:
    """The p-value of every test that suits the mechanism, and whether they raise the alarm.

    "sizes": how much reports support in all (chi-square against the exact law). "draws": what is
    drawn whatever the answer (chi-square). "pairs": how often two values are supported together.
    "total": whether the frequencies sum to 1. "negative": whether one is below 0.
    """

    p_values: dict[str, float]
    level: float
    #: Values that are supported together too often.
    suspects: tuple[int, ...]

    @property
    def alarm(self) -> bool:
        """Whether one p-value is at most level / (number of tests): false in 1 - level of all
        genuine collections at least."""
        return min(self.p_values.values()) <= self.level / len(self.p_values)


def detect(reports: Reports, level: float = 0.01) -> Detection:
    """Test whether all reports are genuine; the rate of false alarms holds for many reports."""
    require_type("reports", reports, Reports)
    if not isinstance(level, float) or not 0 < level < 1:
        raise InvalidArgument("level", level, "a number strictly between 0 and 1")
    if not len(reports):
        raise InvalidArgument("reports", reports, "at least one report")
    alphabet, data = alphabet_of(reports.mechanism), reports.data
    found = {"negative": _negative(reports)}
    if (sizes := alphabet.sizes(data)) is not None:
        found["sizes"] = _sizes(sizes, alphabet.size_law())
    if draws := alphabet.draws(data):
        found["draws"] = min(1.0, len(draws) * min(draws))
    if alphabet.uncorrelated:
        found["total"] = _total(reports)
    products = alphabet.products()
    if products is None:
        return Detection(found, level, ())
    values, sums = _sums(alphabet, reports, products.mean)
    pairs = _pair_p_values(sums, len(reports), reports.mechanism.domain.size, products)
    found["pairs"] = float(pairs.min())
    seen = (pairs <= level / len(found)) & (sums > 0)
    return Detection(found, level, _suspects(values, seen, sums))


def _negative(reports: Reports) -> float:
    """The most negative frequency, in its standard errors at 0, times the number of values."""
    from scipy.stats import norm

    m, n = reports.mechanism, len(reports)
    counts = m.count(reports.data)
    f = m.unbiased(counts, n)
    a, _ = m.estimated_line(counts, n, f)
    lowest = float(np.min(f / np.sqrt(np.maximum(a, 1e-12) / n)))
    return min(1.0, m.domain.size * float(norm.cdf(lowest)))


def _total(reports: Reports) -> float:
    """Uncorrelated errors add up: n Var(sum f) = sum A + B with the line A + B f_v."""
    from scipy.stats import norm

    m, n = reports.mechanism, len(reports)
    f = m.unbiased(m.count(reports.data), n)
    a, b = m.variance_line(np.full(m.domain.size, 1 / m.domain.size), n)
    deviation = np.sqrt(float(a.sum() + b[0]) / n)
    return float(2 * norm.sf(abs(f.sum() - 1) / deviation))


def _sizes(sizes: Integers, law: Floats) -> float:
    """Chi-square; neighbouring sizes are pooled until enough reports are expected."""
    from scipy.stats import chisquare

    expected = law / law.sum() * len(sizes)
    counts = np.bincount(sizes, minlength=len(expected))
    groups = _groups(expected)
    if len(groups) < 2:
        return 1.0
    observed, pooled = (np.add.reduceat(part, groups) for part in (counts, expected))
    return float(chisquare(observed, pooled).pvalue)


def _groups(expected: Floats) -> list[int]:
    """Where groups begin that have at least `LEAST_EXPECTED` each."""
    starts, held = [0], 0.0
    left = float(expected.sum())
    for place, number in enumerate(expected):
        if held >= LEAST_EXPECTED and left >= LEAST_EXPECTED:
            starts.append(place)
            held = 0.0
        held += float(number)
        left -= float(number)
    return starts


def _sums(alphabet: Alphabet, reports: Reports, mean: float) -> tuple[Integers, Floats]:
    """Some values, and for each pair of them the sum of products of scores, less its mean."""
    m, n, k = reports.mechanism, len(reports), reports.mechanism.domain.size
    values = np.argsort(-m.unbiased(m.count(reports.data), n))[:COMPARED]
    sums = np.full((len(values), len(values)), -n * mean)
    step = max(1, BLOCK // k)
    for start in range(0, n, step):
        x = alphabet.scores(reports.data[start : start + step])[:, values]
        sums += x.T @ x
    np.fill_diagonal(sums, 0.0)
    return values, sums


def _pair_p_values(sums: Floats, n: int, k: int, products: Products) -> Floats:
    """By Bernstein's inequality a sum exceeds t with probability at most
    exp(-t^2 / (2 (n variance + most t / 3))); times the number of all pairs, and 2 for both signs.
    This holds for every n."""
    t = np.abs(sums)
    exponents = -(t**2) / (2 * (n * products.variance + products.most * t / 3))
    return np.asarray(np.minimum(1.0, k * (k - 1) * np.exp(exponents)))


def _suspects(values: Integers, seen: NDArray[np.bool_], sums: Floats) -> tuple[int, ...]:
    """One of the pair that is seen together most, and what is seen with it.

    Not all that is seen together: forged reports also leave the same values out.
    """
    if not seen.any():
        return ()
    first = int(np.argmax(np.where(seen, sums, -np.inf)) // len(values))
    chosen = np.union1d(np.flatnonzero(seen[first]), [first])
    return tuple(int(v) for v in np.sort(values[chosen]))
