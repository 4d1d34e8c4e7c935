"""Tests that reports are genuine: laws that honest ones obey whatever people answer.

A test that rejects shows that somebody forges; one that does not shows nothing, since a forger who
knows the tests can obey the laws (an honestly randomised lie obeys all of them). All p-values are
for the hypothesis that every report is genuine, and hold for every number of reports: they are
exact binomial tails or bounds of `tails`, times the number of things that were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.arrays import Bools, Floats, Integers
from deniable.audit.forging.admissible import BLOCK, AdmissibleReports, Products, admissible_reports
from deniable.audit.forging.tails import bernstein, binomial_pvalue, chernoff
from deniable.core.reports import Reports
from deniable.errors import InvalidArgument, require_type
from deniable.mechanisms.frequency import require_oracle

#: The tests, and what they look at.
TESTS = {
    "negative": "whether a frequency is below 0",
    "sizes": "how much reports support in all",
    "draws": "what is drawn whatever the answer",
    "total": "whether the frequencies sum to 1",
    "pairs": "how often two values are supported together",
}
#: Sizes with fewer expected reports are pooled: they would say little each.
LEAST_EXPECTED = 10.0
#: Values whose pairs are compared: the most frequent ones.
COMPARED = 256


@dataclass(frozen=True)
class Detection:
    """The p-value of every one of the `TESTS` that suits the mechanism, and the alarm.

    The tests that are ``left_out`` have nothing to look at in reports of this mechanism.
    """

    p_values: dict[str, float]
    level: float
    #: Values that are supported together too often.
    suspects: tuple[int, ...]

    @property
    def alarm(self) -> bool:
        """Whether one p-value is at most level / (number of tests): false in 1 - level of all
        genuine collections at least, of any size."""
        return min(self.p_values.values()) <= self.level / len(self.p_values)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The tests that were not made."""
        return tuple(name for name in TESTS if name not in self.p_values)

    @property
    def words(self) -> str:
        """The outcome in one sentence."""
        name, least = min(self.p_values.items(), key=lambda item: item[1])
        found = f"the least p-value is {least:.2g}, of {name!r} ({TESTS[name]})"
        made = f"{len(self.p_values)} tests" if len(self.p_values) > 1 else "one test"
        verdict = "somebody forges" if self.alarm else "nothing shows forged reports"
        rest = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return f"{verdict}: {found}; {made} at level {self.level:g} together{rest}"

    def __str__(self) -> str:
        return self.words


def detect(reports: Reports, level: float = 0.01) -> Detection:
    """Test whether all reports are genuine: a false alarm has at most the probability ``level``."""
    require_type("reports", reports, Reports)
    if not isinstance(level, float) or not 0 < level < 1:
        raise InvalidArgument("level", level, "a number strictly between 0 and 1")
    if not len(reports):
        raise InvalidArgument("reports", reports, "at least one report")
    admissible, data = admissible_reports(reports.mechanism), reports.data
    found = {"negative": _negative(admissible, reports)}
    if (sizes := admissible.sizes(data)) is not None:
        found["sizes"] = _sizes(sizes, admissible.size_law())
    if draws := admissible.draws(data):
        found["draws"] = min(1.0, len(draws) * min(draws))
    if admissible.uncorrelated:
        found["total"] = _total(admissible, reports)
    products = admissible.products()
    if products is None:
        return Detection(found, level, ())
    values, sums = _sums(admissible, reports, products.mean)
    pairs = _pair_p_values(sums, len(reports), reports.mechanism.domain.size, products)
    found["pairs"] = float(pairs.min())
    seen = (pairs <= level / len(found)) & (sums > 0)
    return Detection(found, level, _suspects(values, seen, sums))


def _negative(admissible: AdmissibleReports, reports: Reports) -> float:
    """The least likely of all low frequencies, times their number.

    A report contributes to a value at least its least mean on average, between two extremes. Where
    contributions are uncorrelated their variance is known, too: A, or A + B of the own value.
    """
    m, n = require_oracle(reports.mechanism), len(reports)
    f = m.unbiased(m.count(reports.data), n)
    low, high = admissible.ranges()
    least = admissible.least_means()
    known = np.isfinite(least)
    f, low, high, least = (part[known] for part in (f, low, high, least))
    tails = chernoff((f - low) / (high - low), (least - low) / (high - low), n)
    if admissible.uncorrelated:
        a, b = (float(part[0]) for part in m.variance_line(np.full(m.domain.size, 0.0), 1))
        spread = float(np.max(high - low))
        tails = np.minimum(tails, bernstein(-n * f, n * max(a, a + b), spread))
    return min(1.0, len(tails) * float(tails.min()))


def _total(admissible: AdmissibleReports, reports: Reports) -> float:
    """The contributions of a report sum to 1 on average; uncorrelated ones with the variance
    sum A + B of the line A + B f_v."""
    m, n = require_oracle(reports.mechanism), len(reports)
    k = m.domain.size
    f = m.unbiased(m.count(reports.data), n)
    a, b = m.variance_line(np.full(k, 1 / k), 1)
    low, high = admissible.extremes(np.ones(k, dtype=np.int64))
    excess = n * np.abs(f.sum() - 1)
    tail = bernstein(excess, n * float(a.sum() + b[0]), max(high - 1, 1 - low))
    return min(1.0, 2 * float(tail))


def _sizes(sizes: Integers, law: Floats) -> float:
    """How many reports have each size, and how many at most that size; neighbours are pooled."""
    n, shares = len(sizes), law / law.sum()
    groups = _groups(shares * n)
    if len(groups) < 2:
        return 1.0
    counts = np.bincount(sizes, minlength=len(shares))
    seen, chances = (np.add.reduceat(part, groups) for part in (counts, shares))
    below, chance_below = np.cumsum(seen)[:-1], np.minimum(np.cumsum(chances)[:-1], 1.0)
    return binomial_pvalue(np.append(seen, below), n, np.append(chances, chance_below))


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


def _sums(admissible: AdmissibleReports, reports: Reports, mean: float) -> tuple[Integers, Floats]:
    """Some values, and for each pair of them the sum of products of scores, less its mean."""
    m, n = require_oracle(reports.mechanism), len(reports)
    values = np.argsort(-m.unbiased(m.count(reports.data), n))[:COMPARED]
    sums = np.full((len(values), len(values)), -n * mean)
    step = max(1, BLOCK // m.domain.size)
    for start in range(0, n, step):
        x = admissible.scores(reports.data[start : start + step])[:, values]
        sums += x.T @ x
    np.fill_diagonal(sums, 0.0)
    return values, sums


def _pair_p_values(sums: Floats, n: int, k: int, products: Products) -> Floats:
    """A tail for each pair; times the number of all pairs, and 2 for both signs."""
    tails = bernstein(np.abs(sums), n * products.variance, products.most)
    return np.asarray(np.minimum(1.0, k * (k - 1) * tails))


def _suspects(values: Integers, seen: Bools, sums: Floats) -> tuple[int, ...]:
    """One of the pair that is seen together most, and what is seen with it.

    Not all that is seen together: forged reports also leave the same values out.
    """
    if not seen.any():
        return ()
    first = int(np.argmax(np.where(seen, sums, -np.inf)) // len(values))
    chosen = np.union1d(np.flatnonzero(seen[first]), [first])
    return tuple(int(v) for v in np.sort(values[chosen]))
