"""Laws of frequencies: what mechanisms obey whose sums say how often each answer was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.answers.choice import Choice
from deniable.arrays import Floats
from deniable.audit.exact.branches import few_runs
from deniable.audit.exact.checks import SLACK
from deniable.conformance import members
from deniable.conformance.channel import WIDE_BRANCHES, WIDE_WORDS, one_by_one
from deniable.conformance.members import (
    FALSE_ALARM,
    WIDE,
    channel_of,
    check,
    design_of,
    reports_of,
    same,
    suited,
)
from deniable.core.reports import Reports
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument
from deniable.estimation import METHODS, combine
from deniable.estimation.frequencies.errors.score import analytic
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.methods import Method, methods_for
from deniable.estimation.frequencies.mle.likelihood import loglikelihood, maximise
from deniable.mechanisms.frequency import FrequencyOracle
from deniable.privacy import exact_channel

#: Some have p and q, which the laws about supports ask for.
Oracle = Any
Family = type[FrequencyOracle]

#: The log-likelihood of a report may be so far from its maximum.
CERTIFIED = 1e-8


def small(family: Family) -> Iterator[Oracle]:
    """Members whose channel can be enumerated."""
    return (m for m in members.small(family) if m.domain.is_listed)


def large(family: Family, n: int = 2_000) -> Iterator[Oracle]:
    """Members of realistic sizes."""
    return (m for m in members.large(family, n) if m.domain.is_listed)


def wide(family: Family) -> Iterator[Oracle]:
    """Members with many answers."""
    return (m for m in members.wide(family) if m.domain.is_listed)


def redrawn(m: Oracle, number: int) -> Oracle:
    """The same with other hash functions, if respondents share any: errors are about these, too."""
    if m.independent_supports:
        return m
    return type(m)(m.domain, m.epsilon, **{**design_of(m), "seed": number})


def _binomial(m: Oracle) -> bool:
    """Whether values have supports that follow a law of their own, with p and q."""
    return m.independent_supports and m.supports(m.tally().counts, 0) is not None


# ---- moments


def exact_moments(family: Family) -> None:
    """From the exact channel: supports as p and q say, no bias, the variance of the formula.

    With shared hash functions: the bias that these cause, and no more.
    """
    rng = np.random.default_rng(5)
    for m in small(family):
        channel, k = channel_of(m), m.domain.size
        law = np.array(channel.matrix, dtype=np.float64)
        counts = np.array([m.count(m.pack([y])) for y in channel.outputs])
        decoded = np.array([m.unbiased(c, 1) for c in counts])
        if _binomial(m):
            found = law @ np.array([m.supports(c, 1) for c in counts])
            supports = np.where(np.eye(k, dtype=bool), float(m.p), float(m.q))
            check(_differ(found, supports), "exact_moments", m, "supports are not p and q")
        wrong = _differ(law @ decoded, m.response())
        check(wrong, "exact_moments", m, f"biased: {law @ decoded}")
        if not m.independent_supports:
            continue
        f = rng.dirichlet(np.ones(k))
        variance = f @ (law @ decoded**2 - np.eye(k))
        stated = m.variance(1, f)
        check(
            _differ(variance, stated), "exact_moments", m, f"variance {variance}, stated {stated}"
        )
        _check_covariances(m, f, f @ (law @ (decoded * decoded[:, -1:])))


def _check_covariances(m: Oracle, f: Floats, products: Floats) -> None:
    """Those with the last value, from the mean products of two estimates of one report.

    A family states them, or the largest that they can be.
    """
    last = m.domain.size - 1
    exact, variances = products - f * (np.arange(last + 1) == last), m.variance_line(f, 1).at(f)
    stated, largest = m.covariances(f, 1, last), np.sqrt(variances * variances[last])
    wrong = _differ(stated, exact) and _differ(stated, largest)
    check(wrong, "exact_moments", m, f"covariances {exact}, stated {stated}")


def exact_sums(family: Family) -> None:
    """From the exact channel: the variance of a weighted sum of frequencies, given the answer.

    Of families that state it (`FrequencyOracle.sum_variances`), which may not hold at all where
    respondents share hash functions.
    """
    rng = np.random.default_rng(6)
    for m in small(family):
        weights = rng.normal(size=(4, m.domain.size))
        try:
            stated = m.sum_variances(weights)
        except InvalidArgument:
            continue
        channel = channel_of(m)
        law = np.array(channel.matrix, dtype=np.float64)
        decoded = np.array([m.unbiased(m.count(m.pack([y])), 1) for y in channel.outputs])
        told = weights @ decoded.T
        found = told**2 @ law.T - (told @ law.T) ** 2
        wrong = not m.independent_supports or _differ(found, stated)
        check(wrong, "exact_sums", m, f"variances {found}, stated {stated}")


def unbiased_at_scale(family: Family) -> None:
    """With many answers, too, the exact law of one answer leads to its frequency, 1.

    `unbiased` is linear in counts, so it is asked about 2**40 reports that follow the law exactly.
    """
    scale = 1 << 40
    for m in wide(family):
        ends = [0, m.domain.size - 1]
        if not m.independent_supports or not few_runs(m.report, ends, WIDE_BRANCHES * len(ends)):
            continue
        for value in ends:
            channel = exact_channel(m.report, [value])
            weights = [round(weight * scale) for weight in channel.matrix[0]]
            pairs = zip(weights, channel.outputs, strict=True)
            counts = sum(weight * m.count(m.pack([output])) for weight, output in pairs)
            found, own = m.unbiased(counts, scale), np.arange(m.domain.size) == value
            check(_differ(found, own), "unbiased_at_scale", m, f"biased: {found}")


def _differ(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return not np.allclose(a, b, rtol=1e-9, atol=1e-9)


def two_likelihoods(family: Family) -> None:
    """If a family says so: a report is `once.ratio` times as likely under what it supports."""
    for m in small(family):
        if not m.two_likelihoods:
            continue
        channel, rho = channel_of(m), float(m.once.ratio)
        law = np.array(channel.matrix, dtype=np.float64).T
        low, high = law.min(axis=1), law.max(axis=1)
        ratios = high / low
        wrong = _differ(ratios[ratios > 1 + SLACK], np.array(rho))
        check(wrong, "two_likelihoods", m, f"ratios {ratios}, stated {rho}")
        for probabilities, output in zip(law, channel.outputs, strict=True):
            counts = m.supports(m.count(m.pack([output])), 1)
            known = counts is not None and probabilities.min() < probabilities.max()
            other = known and np.any((counts == 1) != (probabilities > probabilities.mean()))
            check(other, "two_likelihoods", m, f"report {output!r} supports other values")


# ---- supports


def bulk_supports(family: Family) -> None:
    """On realistic domains every value is supported as often as p or q say (exact binomial)."""
    for m in filter(_binomial, (*large(family), *wide(family))):
        last = m.domain.size - 1
        for value in {0, last} if last + 1 in WIDE else {0, last // 2, last}:
            data = reports_of(m, [value], 200_000, value).data
            _check_supports("bulk_supports", m, value, data)


def single_supports(family: Family) -> None:
    """So they are if reports are made one by one for many answers, as on a device."""
    for m in filter(_binomial, wide(family)):
        n = min(40_000, WIDE_WORDS // (2 * m.coin_words))
        for value in (0, m.domain.size - 1):
            _check_supports("single_supports", m, value, one_by_one(m, value, n))


def _check_supports(law: str, m: Oracle, value: int, data: NDArray[Any]) -> None:
    """Each value is supported by so many reports of ``value`` as p and q say."""
    n, k = len(data), m.domain.size
    counts = np.asarray(m.supports(m.count(data), n))
    p_values = two_sided(counts, n, np.where(np.arange(k) == value, float(m.p), float(m.q)))
    other = int(p_values.argmin())
    found = f"{counts[other]} of {n} reports of {value} support {other}"
    check(p_values[other] < FALSE_ALARM / k, law, m, f"{found}: p-value {p_values[other]:.1e}")


def two_sided(count: Any, n: int, p: Any) -> Any:
    """Twice the smaller exact binomial tail."""
    from scipy.stats import binom

    return np.minimum(1.0, 2 * np.minimum(binom.cdf(count, n, p), binom.sf(count - 1, n, p)))


# ---- errors


def simulated_errors(family: Family) -> None:
    """On realistic domains: squared errors as the variance says (chi-square, value by value)."""
    runs, n = 200, 5_000
    for m in large(family, n):
        rng = np.random.default_rng(3)
        k = m.domain.size
        values = rng.choice(k, n, p=rng.dirichlet(np.full(k, 0.3)))
        truth = np.bincount(values, minlength=k) / n
        tallies = (d.tally(d.privatize(values, rng)) for d in _drawn(m, runs))
        estimates = np.array([t.mechanism.unbiased(t.counts, n) for t in tallies])
        _check_errors("simulated_errors", m, estimates - truth, m.variance(n, truth))


def simulated_counts(family: Family) -> None:
    """Counts that are drawn without reports have the law of counted ones, as `simulated_errors`."""
    if family.simulated_counts is FrequencyOracle.simulated_counts:  # of reports that it makes
        return
    runs = 200
    for m in large(family):
        k, rng = m.domain.size, np.random.default_rng(4)
        histogram = np.array([150, 0, 40, 1, 9, 600])[np.arange(k) % 6]
        n = int(histogram.sum())
        counts = [m.simulate(histogram, rng) for _ in range(runs)]
        possible = all(m.possible_counts(c, n) for c in counts)
        check(not possible, "simulated_counts", m, "counts that no reports have")
        errors = np.array([m.unbiased(c, n) for c in counts]) - histogram / n
        _check_errors("simulated_counts", m, errors, m.variance(n, histogram / n))


def _check_errors(law: str, m: Oracle, errors: Floats, variance: Floats) -> None:
    """Null hypothesis: each row of errors is one draw, unbiased, with this variance."""
    from scipy.stats import chi2

    runs, k = errors.shape
    squares = np.sum(errors**2, axis=0) / variance
    p_values = 2 * np.minimum(chi2.cdf(squares, runs), chi2.sf(squares, runs))
    worst = float(p_values.min())
    check(worst < FALSE_ALARM / k, law, m, f"p-value {worst:.1e}")


def _drawn(m: Oracle, runs: int) -> Iterator[Oracle]:
    return (redrawn(m, number) for number in range(runs))


def coverage(family: Family) -> None:
    """Score intervals cover a rare and a frequent value as often as they claim, for n = 400.

    Null hypothesis: the coverage is within 0.015 (at 95 %) or 0.008 (at 99 %) of its nominal level.
    """
    from scipy.stats import binom

    runs, n = 1_000, 400
    for epsilon in (1.0, 3.0):
        m: Oracle = suited(family, Choice(family.only_size or 20), epsilon, n)
        values = np.where(np.arange(n) < 0.02 * n, 0, 1)
        truth = np.bincount(values, minlength=m.domain.size) / n
        rng = np.random.default_rng(11)
        found = [Evidence.of([tally]) for tally in _collected(m, values, runs, rng)]
        for level, margin in ((0.95, 0.015), (0.99, 0.008)):
            intervals = np.array([analytic(e, level, False, "score").intervals for e in found])
            covered = (intervals[:, :, 0] <= truth) & (truth <= intervals[:, :, 1])
            for value in (0, 1):
                hits = int(covered[:, value].sum())
                few = float(binom.cdf(hits, runs, level - margin))
                many = float(binom.sf(hits - 1, runs, level + margin))
                text = f"{hits / runs:.3f} of the {level:.0%} intervals cover value {value}"
                check(min(few, many) < FALSE_ALARM, "coverage", m, text)


def _collected(
    m: Oracle, values: NDArray[Any], runs: int, rng: np.random.Generator
) -> Iterator[Tally]:
    """Several collections of the same answers: made at once, where nothing else is drawn."""
    if not m.independent_supports:
        for d in _drawn(m, runs):
            yield d.tally(d.privatize(values, rng, threads=1), threads=1)
        return
    reports, n = m.privatize(np.tile(values, runs), rng), len(values)
    for start in range(0, runs * n, n):
        yield m.tally(reports[start : start + n], threads=1)


# ---- decoders


def decoders(family: Family) -> None:
    """Every method gives finite numbers with errors, and a distribution where it claims to."""
    for m in large(family):
        reports = _skewed(m)
        for name, method in _suiting(m):
            e, again = _decoded(reports, name), _decoded(reports, name)
            law, f = f"decoders: {name}", e.frequencies
            low, high = e.intervals.T
            finite = all(np.isfinite(x).all() for x in (f, e.standard_errors, low, high))
            check(not finite, law, m, "not finite")
            check(np.any(e.standard_errors < 0), law, m, "a negative standard error")
            check(np.any((low > f) | (f > high)), law, m, "an interval without its estimate")
            feasible = f.min() >= 0 and abs(f.sum() - 1) < 1e-9
            check(method.feasible and not feasible, law, m, f"{f.min()}, sum {f.sum()}")
            alike = same(f, again.frequencies) and same(e.intervals, again.intervals)
            check(not alike, law, m, "two answers to one question")


def largest_likelihood(family: Family) -> None:
    """No method finds frequencies that are more likely than the maximum, which is certified."""
    for m in large(family):
        if not m.two_likelihoods:
            continue
        reports = _skewed(m)
        best = maximise([reports])
        check(best.certificate > CERTIFIED, "largest_likelihood", m, f"gap {best.certificate:.1e}")
        for name, method in _suiting(m):
            if method.feasible:
                f = _decoded(reports, name).frequencies
                gap = loglikelihood([reports], f) - best.loglikelihood
                check(gap > CERTIFIED, "largest_likelihood", m, f"{name} is better by {gap:.1e}")


def _decoded(reports: Reports, method: str) -> Any:
    return combine([reports], method)


def _suiting(m: Oracle) -> list[tuple[str, Method]]:
    return [(name, METHODS[name]) for name in methods_for(m)]


def _skewed(m: Oracle) -> Reports:
    k = m.domain.size
    values = np.minimum(np.arange(2_000) % (k + 7), np.arange(2_000) % k // 2)
    reports: Reports = m.privatize(values, np.random.default_rng(12))
    return reports


FREQUENCY_LAWS: tuple[Callable[[Any], None], ...] = (
    exact_moments,
    exact_sums,
    unbiased_at_scale,
    two_likelihoods,
    bulk_supports,
    single_supports,
    simulated_errors,
    simulated_counts,
    coverage,
    decoders,
    largest_likelihood,
)
