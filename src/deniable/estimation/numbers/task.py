"""The tasks of numbers: what all mechanisms for them estimate, their mean, their distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.core.mechanism import Mechanism
from deniable.core.stored import Source
from deniable.core.tally import Tally
from deniable.core.task import (
    SKIPPED_SHARE,
    Expectation,
    Query,
    Task,
    people_needed,
    register_task,
)
from deniable.errors import InvalidArgument, require_share, require_type
from deniable.estimation.estimate import Skipped, check_population, points
from deniable.estimation.frequencies.intervals import (
    check_confidence,
    simultaneous_confidence,
    two_sided_z,
)
from deniable.estimation.numbers.answered import mean_among, pooled_answers
from deniable.estimation.numbers.bounded import Bounded, Bounds
from deniable.estimation.numbers.density import em, ems, penalised
from deniable.estimation.numbers.distribution import Distribution, Shares, Unbiased
from deniable.estimation.numbers.estimate import Numbers
from deniable.estimation.numbers.moments import pooled
from deniable.estimation.numbers.statistic import (
    DEVIATION,
    MEAN,
    QUANTILES,
    Statistic,
    plain,
    rounded_half_width,
)
from deniable.estimation.parts import about_one_question, tally_of
from deniable.estimation.testing.planning import mean_sample_size
from deniable.mechanisms.numbers import Moments, NumberMechanism
from deniable.mechanisms.numbers.base import LARGEST
from deniable.mechanisms.numbers.observed import Counted, Observed

METHOD = "unbiased"
#: Decoders of the density that quantiles are taken from; and those among them that are for counts.
DENSITIES: dict[str, Callable[[Observed], Floats]] = {"penalised": penalised, "ems": ems, "em": em}
OF_COUNTS = ("ems", "em")
CONFIDENCE = 0.95
#: Half widths of the 95 % interval, as shares of hi - lo, or of all answers.
GOOD, HOPELESS = 0.025, 0.1
#: The variance of numbers that are evenly spread over 0..1, which weights are made for.
UNIFORM = 1 / 12
#: Errors among those who answer are told for numbers with this beta law: 0.35 on average, with a
#: standard deviation of 0.2.
PLANNED = 1.640625, 3.046875


def _has_bins(mechanism: Mechanism) -> bool:
    """Whether reports tell a distribution."""
    return "distribution" in mechanism.tasks_for(mechanism.domain)


def _two_numbers(text: str) -> tuple[float, float]:
    """From text like 10..20."""
    low, _, high = text.partition("..")
    return float(low), float(high)


@dataclass(frozen=True)
class Choices:
    """What the caller of `NumbersTask.estimate` wants, checked before any work is done."""

    confidence: float = CONFIDENCE
    population: str = "respondents"
    simultaneous: bool = False
    cdf: Sequence[float] = ()
    quantile: Sequence[float] = ()
    range: Sequence[tuple[float, float]] = ()

    @classmethod
    def of(cls, given: dict[str, Any]) -> Choices:
        if unknown := given.keys() - vars(cls()).keys():
            raise InvalidArgument("options", sorted(unknown), f"made of {', '.join(vars(cls()))}")
        return cls(**given)

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", check_confidence(self.confidence))
        check_population(self.population)
        require_type("simultaneous", self.simultaneous, bool)
        for name in ("cdf", "quantile", "range"):
            require_type(name, getattr(self, name), Sequence)
        for p in self.quantile:
            require_share("quantile", p)

    @property
    def everyone(self) -> bool:
        return self.population == "everyone"

    def each(self, bins: int) -> float:
        """The confidence of each interval: the mean, and with bins the deviation and k - 1 edges.

        Intervals of a single number are simultaneous in any case.
        """
        if not self.simultaneous or not bins:
            return self.confidence
        return simultaneous_confidence(self.confidence, bins + 1)


class NumbersTask(Task):
    """What all mechanisms for numbers estimate: `Numbers`, with the mean as its first row.

    Tasks differ in what mechanisms are chosen for and in the error that is predicted; the estimate
    has all that the reports tell, whatever they were asked for.
    """

    default = METHOD
    queries = {
        "cdf": Query(
            "Share of answers up to", "a number", several=True, read=float, suits=_has_bins
        ),
        "quantile": Query(
            "Quantile",
            "a share, such as 0.9",
            several=True,
            read=float,
            suits=_has_bins,
        ),
        "range": Query(
            "Share of answers between",
            "two numbers, such as 10..20",
            several=True,
            read=_two_numbers,
            suits=_has_bins,
        ),
    }

    def methods(self, mechanism: Mechanism) -> list[str]:
        if not _has_bins(mechanism):
            return [METHOD]
        counted = _numbers(mechanism).observes is Counted
        return [METHOD, *(name for name in DENSITIES if counted or name not in OF_COUNTS)]

    def estimate(
        self, parts: Sequence[Source], method: str | None = None, **choices: Any
    ) -> Numbers:
        """The mean of all answers with an interval, how they are spread, and quantiles.

        The mean is unbiased, so it may lie beyond lo or hi if there are few reports, and its
        interval is not cut: it is meant for computations with other unbiased numbers, as those of
        frequencies are. Parts of several mechanisms are weighted by their inverse variances.

        ``method`` is the density that says where in its interval a quantile is: "penalised" is
        smooth, "unbiased" has no model. Intervals are the same for all. Of reports that only bound
        a distribution, such as DRR's, nothing but the mean is unbiased. ``cdf``, ``quantile`` and
        ``range`` ask for more. If ``simultaneous``, all intervals hold together: by Bonferroni's
        inequality those of the mean, the standard deviation and F at the k - 1 edges of bins, and
        all others follow from these. If the question may be skipped, the mean is that of those who
        answered, with an interval for ratios (`answered`).
        """
        wanted = Choices.of(choices)
        merged = about_one_question(parts)
        asked = any((wanted.cdf, wanted.quantile, wanted.range))
        chosen = self._method(method, merged, asked)
        tallies = [tally_of(part) for part in merged]
        domain = _numbers(merged[0].mechanism).domain
        distribution = _distribution(tallies, chosen, wanted)
        if distribution is None and wanted.quantile:
            allowed = "left out: these reports tell no distribution"
            raise InvalidArgument("quantile", wanted.quantile, allowed)
        rows, deviation, skipped = _rows(tallies, distribution, wanted)
        estimate = Numbers.of(
            rows,
            deviation=deviation,
            lo=domain.lo,
            hi=domain.hi,
            clipped=domain.outside == "clip",
            n=sum(tally.n for tally in tallies),
            method=chosen,
            confidence=wanted.confidence,
            source="; ".join(dict.fromkeys(str(part.mechanism) for part in merged)),
            errors=_errors(distribution, skipped),
            population=wanted.population,
            simultaneous=wanted.simultaneous,
            skipped=skipped,
            distribution=distribution,
        )
        return estimate.with_shares(wanted.cdf, wanted.range)

    def _method(self, method: Any, parts: Sequence[Source], asked: bool) -> str:
        """The method; where shares or quantiles are ``asked`` for, one with a distribution."""
        known = self.methods(parts[0].mechanism)
        if method is None:
            default = DISTRIBUTIONS.default if asked else self.default
            return default if default in known else METHOD
        if not isinstance(method, str) or method not in known:
            raise InvalidArgument("method", method, f"one of {', '.join(known)}")
        return method

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
        m, width = _numbers(mechanism), _width(mechanism)
        error = self.error(mechanism, n, sampled=sampled, skipped=skipped) / width
        return width * rounded_half_width(error, m.rounding, CONFIDENCE)

    def expectation(
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> Expectation:
        domain, width = _numbers(mechanism).domain, _width(mechanism)
        half_width = partial(self.half_width, mechanism, sampled=sampled, skipped=skipped)
        found, good = half_width(n), GOOD * width
        middle = plain(domain.lo + width / 2)
        return Expectation(
            half_width=found,
            good=good,
            hopeless=HOPELESS * width,
            people_needed=people_needed(half_width, n, good),
            sentence=f"A mean of {middle} will show as {middle} {_error(found)}",
            error=_error(found),
            target=_error(good),
        )


class DistributionTask(NumbersTask):
    """The distribution of the answers."""

    name = "distribution"
    default = "penalised"

    def error(  # type: ignore[override]  # these are all that may be guessed
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> float:
        """That of the share in the lower half of the range, where answers are spread evenly."""
        half = self.half_width(mechanism, n, sampled=sampled, skipped=skipped)
        return half / two_sided_z(CONFIDENCE)

    def half_width(
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> float:
        share = SKIPPED_SHARE if skipped is None else skipped
        z = two_sided_z(CONFIDENCE)
        return _numbers(mechanism).share_half_width(n, z, sampled=sampled, skipped=share)

    def expectation(
        self, mechanism: Mechanism, n: int, *, sampled: bool = False, skipped: float | None = None
    ) -> Expectation:
        half_width = partial(self.half_width, mechanism, sampled=sampled, skipped=skipped)
        found = half_width(n)
        return Expectation(
            half_width=found,
            good=GOOD,
            hopeless=HOPELESS,
            people_needed=people_needed(half_width, n, GOOD),
            sentence=f"The half of the answers up to the median will show as 50 % {points(found)}",
            error=points(found),
            target=points(GOOD),
        )


def _distribution(tallies: Sequence[Tally], method: str, wanted: Choices) -> Distribution | None:
    """The distribution, if the reports tell it."""
    shares = Shares.of(tallies)
    if shares is None:
        return _bounded(tallies, method, wanted)
    kinds = {"everyone": wanted.everyone, "simultaneous": wanted.simultaneous}
    each = wanted.each(shares.bins.size)
    if shares.optional:
        _answered(tallies, each, everyone=wanted.everyone)  # refuses too few
    density = shares.density if method == METHOD else DENSITIES[method](shares.observed())
    return Unbiased(shares, density, each, **kinds)


def _bounded(tallies: Sequence[Tally], method: str, wanted: Choices) -> Distribution | None:
    """The distribution, if the reports bound it; of these only the mean is unbiased."""
    bounds = Bounds.of([(_numbers(tally.mechanism), tally) for tally in tallies])
    if bounds is None or method == METHOD:
        return None
    kinds = {"everyone": wanted.everyone, "simultaneous": wanted.simultaneous}
    density = DENSITIES[method](bounds.observed())
    return Bounded(bounds, density, wanted.each(bounds.bins.size), **kinds)


def _errors(distribution: Distribution | None, skipped: Skipped | None) -> str:
    """What the intervals of the rows are, in words."""
    if skipped is not None:
        return "ratio"
    if distribution is None or distribution.kind == "normal":
        return "normal"
    return f"normal (mean, standard deviation) and {distribution.kind}"


def _rows(
    tallies: Sequence[Tally], distribution: Distribution | None, wanted: Choices
) -> tuple[list[Statistic], Statistic | None, Skipped | None]:
    """The rows of `Numbers`, the standard deviation, and who skipped the question.

    On the scale of answers. The standard deviation is a row beside those of a distribution.
    """
    domain, everyone = _numbers(tallies[0].mechanism).domain, wanted.everyone
    lo, hi = domain.lo, domain.hi
    each = wanted.confidence if distribution is None else distribution.each
    wished = sorted({*QUANTILES, *wanted.quantile})
    quantiles = [] if distribution is None else [distribution.quantile(p) for p in wished]
    if domain.optional:
        mean, skipped = _answered(tallies, each, everyone=everyone)
        return [mean.scaled(lo, hi), *quantiles], None, skipped
    found = _pooled(tallies)
    mean = mean_of(found, each, everyone=everyone).scaled(lo, hi)
    if found.spread_variance is None:
        return [mean, *quantiles], None, None
    deviation = deviation_of(found, each).scaled(0.0, hi - lo)
    shown = [] if distribution is None else [deviation]
    return [mean, *shown, *quantiles], deviation, None


def mean_of(found: Moments, confidence: float, *, everyone: bool) -> Statistic:
    """The mean of answers of 0..1.

    Its interval is normal. Where answers are rounded it is as much wider as the largest error of
    rounding b needs: c standard errors s, with P(|Z + b / s| <= c) = ``confidence``.
    """
    error = math.sqrt(found.variance_about(everyone=everyone))
    half = rounded_half_width(error, found.rounding, confidence)
    return Statistic(MEAN, found.mean, error, (found.mean - half, found.mean + half))


def deviation_of(found: Moments, confidence: float) -> Statistic:
    """The standard deviation of answers of 0..1.

    It and its interval are the roots of the variance and of the ends of its normal interval.
    Rounding moves it by no more than the answers. Half of the interval, over z, stands for a
    standard error.
    """
    assert found.spread_variance is not None
    z = two_sided_z(confidence)
    half = z * math.sqrt(found.spread_variance)
    low, high = (math.sqrt(min(max(found.spread + d, 0.0), LARGEST)) for d in (-half, half))
    low, high = max(low - found.rounding, 0.0), high + found.rounding
    return Statistic(DEVIATION, math.sqrt(found.spread), (high - low) / (2 * z), (low, high))


def _pooled(tallies: Sequence[Tally]) -> Moments:
    """What all tallies say of the mean."""
    pairs = [(_numbers(tally.mechanism), tally) for tally in tallies]
    return pooled(
        [m.moments(tally.counts, tally.n) for m, tally in pairs],
        [m.worst_variance(tally.n) + UNIFORM / tally.n for m, tally in pairs],
    )


def _answered(
    tallies: Sequence[Tally], confidence: float, *, everyone: bool
) -> tuple[Statistic, Skipped]:
    """The mean of those who answered, of answers of 0..1, and who skipped the question."""
    pairs = [(_numbers(tally.mechanism), tally) for tally in tallies]
    answered = [m.answered(tally.counts, tally.n) for m, tally in pairs]
    usual = [m.variance_among(planned(), t.n, SKIPPED_SHARE, sampled=True) for m, t in pairs]
    return mean_among(pooled_answers(answered, usual), confidence, everyone=everyone)


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
    return f"± {plain(float(f'{half_width:.2g}'))}"


MEANS, DISTRIBUTIONS = MeanTask(), DistributionTask()
register_task(MEANS)
register_task(DISTRIBUTIONS)
