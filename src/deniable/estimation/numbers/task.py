"""The tasks of numbers: what all mechanisms for them estimate, and the task of their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from deniable.core.mechanism import Mechanism
from deniable.core.stored import Source
from deniable.core.task import Expectation, Task, people_needed, register_task
from deniable.errors import InvalidArgument, require_type
from deniable.estimation.estimate import check_population
from deniable.estimation.frequencies.intervals import check_confidence, two_sided_z
from deniable.estimation.numbers.estimate import MEAN, Numbers, Statistic
from deniable.estimation.numbers.moments import pooled
from deniable.estimation.parts import about_one_question, tally_of
from deniable.estimation.testing.planning import mean_sample_size
from deniable.mechanisms.numbers import Moments, NumberMechanism

METHOD = "unbiased"
CONFIDENCE = 0.95
#: Half widths of the 95 % interval, as shares of hi - lo.
GOOD, HOPELESS = 0.025, 0.1
#: The variance of numbers that are evenly spread over 0..1, which weights are made for.
UNIFORM = 1 / 12


class NumbersTask(Task):
    """What all mechanisms for numbers estimate: `Numbers`, with the mean as its first row.

    Tasks differ in what mechanisms are chosen for and in the error that is predicted; the estimate
    has all that the reports tell, whatever they were asked for.
    """

    default = METHOD

    def methods(self, mechanism: Mechanism) -> list[str]:
        return [METHOD]

    def estimate(
        self,
        parts: Sequence[Source],
        method: str | None = None,
        *,
        confidence: float = CONFIDENCE,
        population: str = "respondents",
        simultaneous: bool = False,
        **options: Any,
    ) -> Numbers:
        """The mean of all answers with a normal interval.

        It is unbiased, so it may lie beyond lo or hi if there are few reports, and intervals are
        not cut: they are meant for computations with other unbiased numbers, as those of
        frequencies are. Parts of several mechanisms are weighted by their inverse variances.
        Intervals of a single number are ``simultaneous`` in any case.
        """
        _check(method, options)
        level = check_confidence(confidence)
        everyone = check_population(population) == "everyone"
        require_type("simultaneous", simultaneous, bool)
        merged = about_one_question(parts)
        found = _pooled(merged)
        domain, width = _numbers(merged[0].mechanism).domain, _width(merged[0].mechanism)
        error = width * math.sqrt(found.variance_about(everyone=everyone))
        mean = _statistic(MEAN, domain.lo + width * found.mean, error, level)
        return Numbers.of(
            [mean],
            lo=domain.lo,
            hi=domain.hi,
            clipped=domain.outside == "clip",
            n=found.n,
            method=METHOD,
            confidence=level,
            source="; ".join(dict.fromkeys(str(part.mechanism) for part in merged)),
            errors="normal",
            population=population,
            simultaneous=simultaneous,
        )

    def sample_size(self, mechanism: Mechanism, difference: float, **plan: Any) -> int:
        return mean_sample_size(_numbers(mechanism), difference, **plan)


class MeanTask(NumbersTask):
    """The mean of the answers."""

    name = "mean"

    def error(  # type: ignore[override]  # these are all that may be guessed
        self, mechanism: Mechanism, n: int, *, sampled: bool = False
    ) -> float:
        """That of the worst of all populations."""
        variance = _numbers(mechanism).worst_variance(n, sampled=sampled)
        return _width(mechanism) * math.sqrt(variance)

    def half_width(self, mechanism: Mechanism, n: int, *, sampled: bool = False) -> float:
        return two_sided_z(CONFIDENCE) * self.error(mechanism, n, sampled=sampled)

    def expectation(self, mechanism: Mechanism, n: int, *, sampled: bool = False) -> Expectation:
        domain, width = _numbers(mechanism).domain, _width(mechanism)
        half_width = partial(self.half_width, mechanism, sampled=sampled)
        found, good = half_width(n), GOOD * width
        middle = _plain(domain.lo + width / 2)
        return Expectation(
            half_width=found,
            good=good,
            hopeless=HOPELESS * width,
            people_needed=people_needed(half_width, n, good),
            sentence=f"A mean of {middle} will show as {middle} {_error(found)}",
            error=_error(found),
            target=_error(good),
        )


def _check(method: Any, options: dict[str, Any]) -> None:
    if method is not None and (not isinstance(method, str) or method != METHOD):
        raise InvalidArgument("method", method, f"{METHOD!r} for a mean")
    if options:
        allowed = "confidence, population or simultaneous for a mean"
        raise InvalidArgument("options", sorted(options), allowed)


def _pooled(parts: Sequence[Source]) -> Moments:
    """What all parts say."""
    tallies = [tally_of(part) for part in parts]
    mechanisms = [_numbers(tally.mechanism) for tally in tallies]
    if mechanisms[0].domain.optional:
        allowed = "one that nobody may skip: what a mean does with skips is not decided yet"
        raise InvalidArgument("question", mechanisms[0].domain, allowed)
    pairs = list(zip(mechanisms, tallies, strict=True))
    return pooled(
        [mechanism.moments(tally.counts, tally.n) for mechanism, tally in pairs],
        [mechanism.worst_variance(tally.n) + UNIFORM / tally.n for mechanism, tally in pairs],
    )


def _numbers(mechanism: Mechanism) -> NumberMechanism:
    if not isinstance(mechanism, NumberMechanism):
        raise InvalidArgument("mechanism", mechanism, "one that estimates means of numbers")
    return mechanism


def _statistic(name: str, value: float, error: float, confidence: float) -> Statistic:
    """One with a normal interval."""
    half = two_sided_z(confidence) * error
    return Statistic(name, value, error, (value - half, value + half))


def _width(mechanism: Mechanism) -> float:
    domain = _numbers(mechanism).domain
    return domain.hi - domain.lo


def _error(half_width: float) -> str:
    """An error in words, rounded to two digits."""
    return f"± {_plain(float(f'{half_width:.2g}'))}"


def _plain(number: float) -> str:
    """As people write it: 125,000."""
    return f"{number:,.12g}"


MEANS = MeanTask()
register_task(MEANS)
