"""Tests of means: is the mean of everyone a given number, and are the means of two groups equal?

Respondents are a sample of everyone, so the variance V of an estimated mean x has both their
answers and the randomness of their reports in it. Against a number c,

    z = (x - c) / sqrt max(V, H(c) / n),

where H(c) / n is the least variance that reports with the mean c can have: V is estimated from the
reports, which need not show rare answers that are far away. Of two samples of different people

    z = (x1 - x2) / sqrt (V1 + V2),

whatever their mechanisms, epsilons and sizes. A report that is one of two is binomial. Its test is
exact, and is used where the normal law is not good enough yet. Where a question may be skipped the
mean is that of those who answered, and V is taken at c.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from deniable.core.reports import Reports
from deniable.core.stored import Source
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument, MismatchError, TooFew, is_number
from deniable.estimation.frequencies.intervals import check_confidence
from deniable.estimation.parts import refuse_shared_files, tally_of
from deniable.estimation.ratios import require_enough
from deniable.estimation.testing.binomial import BinomialTest
from deniable.estimation.testing.normal import NormalTest, check_alternative
from deniable.estimation.testing.planning import LEAST_REPORTS
from deniable.estimation.testing.result import TestResult
from deniable.mechanisms.numbers import Binary, NumberMechanism

#: From so many reports on the normal law is used where an exact one is known, too.
ENOUGH = 200
#: One-sided tests of fewer reports are said to be less exact for answers that are mostly equal.
ENOUGH_ONE_SIDED = 1_000
#: Results say how likely a difference of this share of hi - lo is to be found.
DETECTABLE = 0.05
#: A power that rounds to 1 in two digits is told in words.
MOST_POWER = 0.995

_CLAIMS = {
    "two-sided": ("the mean differs from {0}", "the means differ"),
    "greater": ("the mean is above {0}", "the first mean is above the second"),
    "less": ("the mean is below {0}", "the first mean is below the second"),
}
_HYPOTHESES = {
    "two-sided": ("the mean is {0}", "the means are equal"),
    "greater": ("the mean is at most {0}", "the first mean is at most the second"),
    "less": ("the mean is at least {0}", "the first mean is at least the second"),
}


def mean_test(
    sample: Source,
    other: Source | float,
    *,
    alternative: str = "two-sided",
    confidence: float = 0.95,
) -> TestResult:
    """Whether the mean of everyone is a number, or equal in the groups of two samples.

    A sample is a tally, or reports, of one question about a number. Two samples must be of
    different people: no strata that overlap, and no two rounds of one collection. They may have
    different mechanisms and epsilons. With ``alternative`` "greater" only a larger mean (of the
    first sample) speaks against the hypothesis, with "less" only a smaller one.
    """
    sides = check_alternative(alternative), check_confidence(confidence)
    one = _Sample.of("sample", sample)
    if not isinstance(other, Source):
        return _of_one(one, one.number(other), *sides)
    _refuse_same_people(sample, other)
    return _of_two(one, _Sample.of("other", other), *sides)


@dataclass(frozen=True)
class _Sample:
    """The mean of numbers of 0..1, how it errs, and the reports if they are one of two."""

    mechanism: NumberMechanism
    n: int
    mean: float
    #: The variance of the mean, if it is truly this one.
    variance: Callable[[float], float]
    rounding: float = 0.0
    binary: Binary | None = None

    @classmethod
    def of(cls, name: str, source: Any) -> Self:
        if not isinstance(source, Source):
            raise InvalidArgument(name, source, "a tally or reports of one round")
        m, tally = source.mechanism, tally_of(source)
        if not isinstance(m, NumberMechanism):
            raise InvalidArgument("mechanism", m, "one that estimates means of numbers")
        if tally.n < LEAST_REPORTS:
            raise TooFew(f"{tally.n} reports are too few for a test: {LEAST_REPORTS} would do")
        return cls._answered(m, tally) if m.domain.optional else cls._whole(m, tally)

    @classmethod
    def _whole(cls, m: NumberMechanism, tally: Tally) -> Self:
        moments = m.moments(tally.counts, tally.n)

        def variance(mean: float) -> float:
            return max(moments.variance, m.least_variance(mean, tally.n))

        binary = m.binary(tally.counts)
        return cls(m, tally.n, moments.mean, variance, moments.rounding, binary)

    @classmethod
    def _answered(cls, m: NumberMechanism, tally: Tally) -> Self:
        """Of S / N: at the true ratio r, S - r N is 0 on average (`estimation.ratios`)."""
        found = m.answered(tally.counts, tally.n)
        of_share = found.share_variance_about(everyone=True)
        require_enough("people who answered", found.share, math.sqrt(of_share), tally.n)

        def variance(mean: float) -> float:
            apart = mean - found.mean
            return (found.variance - 2 * apart * found.tilt + apart**2 * of_share) / found.share**2

        return cls(m, tally.n, found.mean, variance, found.rounding)

    @property
    def width(self) -> float:
        """What 1 is in the unit of the answers."""
        return self.mechanism.domain.hi - self.mechanism.domain.lo

    def number(self, other: Any) -> float:
        """A mean to be tested, if answers can have it."""
        domain = self.mechanism.domain
        if not is_number(other) or not domain.lo <= other <= domain.hi:
            allowed = f"a number from {domain.lo:.12g} to {domain.hi:.12g}, a tally or reports"
            raise InvalidArgument("other", other, allowed)
        return float(other)

    def answer(self, x: float, error: float) -> str:
        """A number of 0..1 in the unit of the answers, to the second digit of its error."""
        places = 1 - math.floor(math.log10(self.width * error))
        return _plain(round(self.mechanism.domain.lo + self.width * x, places))


def _of_one(one: _Sample, value: float, alternative: str, confidence: float) -> TestResult:
    c = (value - one.mechanism.domain.lo) / one.width
    if one.binary is not None and one.n < ENOUGH:
        exact = BinomialTest(one.binary, one.n, c, alternative, confidence)
        return _result((one,), (c + exact.effect,), exact, (-c, 1 - c), _plain(value))
    error, spread = (math.sqrt(one.variance(mean)) for mean in (c, one.mean))
    test = NormalTest(one.mean - c, error, spread, alternative, confidence, one.rounding)
    return _result((one,), (one.mean,), test, (-c, 1 - c), _plain(value))


def _of_two(one: _Sample, two: _Sample, alternative: str, confidence: float) -> TestResult:
    domains = [sample.mechanism.domain for sample in (one, two)]
    if domains[0] != domains[1]:
        first, second = map(repr, domains)
        raise MismatchError(f"these are answers to different questions: {first}, {second}")
    error = math.sqrt(one.variance(one.mean) + two.variance(two.mean))
    effect, rounding = one.mean - two.mean, one.rounding + two.rounding
    test = NormalTest(effect, error, error, alternative, confidence, rounding)
    return _result((one, two), (one.mean, two.mean), test, (-1.0, 1.0), None)


def _result(
    samples: tuple[_Sample, ...],
    means: tuple[float, ...],
    test: NormalTest | BinomialTest,
    limits: tuple[float, float],
    value: str | None,
) -> TestResult:
    """What a test of numbers of 0..1 found, in the unit of the answers.

    ``limits`` are the least and the largest effect, ``value`` is the mean that was tested.
    """
    first, case = samples[0], value is None
    detectable = DETECTABLE * first.width
    claim, hypothesis = (
        words[test.alternative][case].format(value) for words in (_CLAIMS, _HYPOTHESES)
    )
    found = test.p_value <= 1 - test.confidence
    power = test.power(DETECTABLE)
    low, high = test.interval(*limits)
    return TestResult(
        hypothesis=hypothesis,
        sentence=_sentence(
            claim, [first.answer(x, test.spread) for x in means], test.p_value, found
        ),
        note=_note(samples, test, None if found else power),
        measure=test.measure,
        statistic=test.statistic,
        p_value=test.p_value,
        effect_name="difference",
        effect=first.width * test.effect,
        interval=(first.width * low, first.width * high),
        confidence=test.confidence,
        power=power,
        detectable=detectable,
        n=tuple(sample.n for sample in samples),
        method=test.method,
        source="; ".join(dict.fromkeys(str(sample.mechanism) for sample in samples)),
    )


def _sentence(claim: str, means: list[str], p_value: float, found: bool) -> str:
    """The result as a person would say it."""
    are = "it is" if len(means) == 1 else "they are"
    p = f"p = {p_value:.2g}" if p_value >= 1e-6 else "p < 0.000001"
    shown = claim[0].upper() + claim[1:] if found else f"The reports do not show that {claim}"
    return f"{shown}: {are} estimated as {' and '.join(means)} ({p})."


def _note(
    samples: tuple[_Sample, ...], test: NormalTest | BinomialTest, power: float | None
) -> str:
    """What to keep in mind; with the power where nothing was found."""
    notes = []
    if power is not None:
        difference = _plain(DETECTABLE * samples[0].width)
        chance = f"probability {power:.2g}" if power < MOST_POWER else "near certainty"
        notes.append(f"A difference of {difference} would be found with {chance}.")
    if len(samples) > 1:
        notes.append("This holds if nobody is in both samples.")
    few = min(sample.n for sample in samples) < ENOUGH_ONE_SIDED
    if few and test.alternative != "two-sided" and test.method == NormalTest.method:
        notes.append(
            f"Where most answers are at one end of the range, one-sided tests need "
            f"{ENOUGH_ONE_SIDED:,} reports."
        )
    return " ".join(notes)


def _plain(number: float) -> str:
    """As people write it: 43,120."""
    return f"{number:,.12g}"


def _refuse_same_people(one: Source, two: Source) -> None:
    """Refuse two samples that are known to share reports."""
    tallies = [part for part in (one, two) if isinstance(part, Tally) and part.fingerprint]
    same = len({tally.fingerprint for tally in tallies}) < len(tallies)
    columns = [
        part.ids for part in (one, two) if isinstance(part, Reports) and part.ids is not None
    ]
    if len(columns) == 2:
        first, second = ({row.tobytes() for row in ids} for ids in columns)
        same = not first.isdisjoint(second)
    if one is two or same:
        raise InvalidArgument("other", two, "of other people: these reports are in both samples")
    refuse_shared_files([one, two])
