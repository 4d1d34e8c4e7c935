"""The tasks of numbers: what all mechanisms for them estimate, and the task of their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.core.mechanism import Mechanism
from deniable.core.stored import Source
from deniable.core.task import SKIPPED_SHARE, Expectation, Task, people_needed, register_task
from deniable.errors import InvalidArgument, require_type
from deniable.estimation.estimate import Skipped, check_population
from deniable.estimation.frequencies.intervals import check_confidence, two_sided_z
from deniable.estimation.numbers.answered import mean_among, pooled_answers
from deniable.estimation.numbers.estimate import MEAN, Numbers, Statistic
from deniable.estimation.numbers.moments import pooled
from deniable.estimation.parts import about_one_question, tally_of
from deniable.estimation.testing.planning import mean_sample_size
from deniable.mechanisms.numbers import NumberMechanism

METHOD = "unbiased"
CONFIDENCE = 0.95
#: Half widths of the 95 % interval, as shares of hi - lo.
GOOD, HOPELESS = 0.025, 0.1
#: The variance of numbers that are evenly spread over 0..1, which weights are made for.
UNIFORM = 1 / 12
#: Errors among those who answer are told for numbers with this beta law: 0.35 on average, with a
#: standard deviation of 0.2.
PLANNED = 1.640625, 3.046875


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
        Intervals of a single number are ``simultaneous`` in any case. If the question may be
        skipped, the mean is that of those who answered, with an interval for ratios (`answered`).
        """
        _check(method, options)
        level = check_confidence(confidence)
        everyone = check_population(population) == "everyone"
        require_type("simultaneous", simultaneous, bool)
        merged = about_one_question(parts)
        domain = _numbers(merged[0].mechanism).domain
        n, mean, skipped = _mean(merged, level, everyone=everyone)
        return Numbers.of(
            [mean.scaled(domain.lo, domain.hi)],
            lo=domain.lo,
            hi=domain.hi,
            clipped=domain.outside == "clip",
            n=n,
            method=METHOD,
            confidence=level,
            source="; ".join(dict.fromkeys(str(part.mechanism) for part in merged)),
            errors="normal" if skipped is None else "ratio",
            population=population,
            simultaneous=simultaneous,
            skipped=skipped,
        )

    def sample_size(self, mechanism: Mechanism, difference: float, **plan: Any) -> int:
        return mean_sample_size(_numbers(mechanism), difference, **plan)


class MeanTask(NumbersTask):
    """The mean of the answers."""

    name = "mean"

    def error(  # type: ignore[override]  # these are all that may be guessed
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> float:
        """That of the worst of all populations; of `PLANNED` if the question may be skipped.

        Also if a share ``skipped`` is given, to compare it with a question that may be.
        """
        m = _numbers(mechanism)
        if m.domain.optional:
            share = SKIPPED_SHARE if skipped is None else skipped
            variance = m.variance_among(planned(), n, share, sampled=sampled)
        elif skipped is not None:
            variance = m.variance_for(planned(), n) + sampled * float(planned().var()) / n
        else:
            variance = m.worst_variance(n, sampled=sampled)
        return _width(mechanism) * math.sqrt(variance)

    def half_width(
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> float:
        error = self.error(mechanism, n, sampled=sampled, skipped=skipped)
        return two_sided_z(CONFIDENCE) * error

    def expectation(
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> Expectation:
        domain, width = _numbers(mechanism).domain, _width(mechanism)
        half_width = partial(self.half_width, mechanism, sampled=sampled, skipped=skipped)
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


def _mean(
    parts: Sequence[Source], confidence: float, *, everyone: bool
) -> tuple[int, Statistic, Skipped | None]:
    """The number of reports, the mean of answers of 0..1 in them, and who skipped the question."""
    tallies = [tally_of(part) for part in parts]
    pairs = [(_numbers(tally.mechanism), tally) for tally in tallies]
    n = sum(tally.n for tally in tallies)
    if pairs[0][0].domain.optional:
        answered = [m.answered(tally.counts, tally.n) for m, tally in pairs]
        usual = [m.variance_among(planned(), t.n, SKIPPED_SHARE, sampled=True) for m, t in pairs]
        return (n, *mean_among(pooled_answers(answered, usual), confidence, everyone=everyone))
    moments = pooled(
        [m.moments(tally.counts, tally.n) for m, tally in pairs],
        [m.worst_variance(tally.n) + UNIFORM / tally.n for m, tally in pairs],
    )
    error = math.sqrt(moments.variance_about(everyone=everyone))
    half = two_sided_z(confidence) * error
    ends = (moments.mean - half, moments.mean + half)
    return n, Statistic(MEAN, moments.mean, error, ends), None


@cache
def planned() -> Floats:
    """Numbers with the law of `PLANNED`, as many of each."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(*PLANNED, (np.arange(512) + 0.5) / 512))


def _numbers(mechanism: Mechanism) -> NumberMechanism:
    if not isinstance(mechanism, NumberMechanism):
        raise InvalidArgument("mechanism", mechanism, "one that estimates means of numbers")
    return mechanism


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
