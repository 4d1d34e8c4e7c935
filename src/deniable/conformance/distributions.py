"""The laws of distributions: what holds for every mechanism whose sums tell shares of bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.answers.number import Number
from deniable.arrays import Floats
from deniable.conformance.members import FALSE_ALARM, check
from deniable.conformance.numbers import VALUES, small
from deniable.core.tally import Tally
from deniable.estimation import DISTRIBUTIONS, Numbers
from deniable.estimation.frequencies.intervals import simultaneous_confidence
from deniable.estimation.numbers.bounded import Bounded, Bounds
from deniable.estimation.numbers.distribution import Shares
from deniable.estimation.numbers.task import CONFIDENCE, METHOD
from deniable.mechanisms.numbers import Binned, NumberMechanism
from deniable.privacy import exact_channel

Family = type[NumberMechanism]

#: Collections that are simulated, at most.
MOST_RUNS = 150
#: Shares of answers up to which coverage is looked at.
DECILES = np.arange(1, 10) / 10


def exact_shares(family: Family) -> None:
    """From the exact channel: shares of bins without bias, and the variances of all sums.

    Or bounds of F, if the reports tell no more.
    """
    rng = np.random.default_rng(1)
    for m in small(family):
        channel = exact_channel(m.report, VALUES)
        column = m.pack(channel.outputs)
        cells = np.array([m.count(column[i : i + 1]) for i in range(len(column))])
        law = np.array(channel.matrix, dtype=np.float64)
        for value, weights in zip(VALUES, channel.matrix, strict=True):
            counts = np.array([round(weight * (1 << 40)) for weight in weights]) @ cells
            if not isinstance(m, Binned):
                _check_bounds(m, counts, float(m.told(value)))
                continue
            shares = Shares.of([Tally.of_counts(m, counts, 1 << 40)])
            own = np.arange(m.binning.size) == m.binning.of(value)
            found = None if shares is None else shares.values
            wrong = found is None or not np.allclose(found, own, atol=1e-9)
            check(wrong, "exact_shares", m, f"{value} is estimated as {found}")
        if isinstance(m, Binned):
            _check_variances(m, rng.dirichlet(np.ones(len(VALUES))) @ law, cells, rng)


def _check_bounds(m: NumberMechanism, counts: Any, x: float) -> None:
    """Where all answers are x, F is 0 below it and 1 from there on."""
    u = np.linspace(0.0, 1.0, 49)
    found, true = m.cdf(counts, 1 << 40, u), u >= x
    wrong = found is None or np.any(found.low > true + 1e-9) or np.any(found.high < true - 1e-9)
    check(wrong, "exact_shares", m, f"F of {x} is not between {found}")


def _check_variances(m: Binned, law: Floats, cells: Any, rng: np.random.Generator) -> None:
    """``law`` are the probabilities of all reports of a population."""
    one = [m.observed(counts, 1) for counts in cells]
    levels = np.array([[level.n for level in each] for each in one])
    f = m.solved.shares([
        np.average([each[i].z for each in one], axis=0, weights=law * levels[:, i])
        for i in range(levels.shape[1])
    ])  # fmt: skip
    for i, a in enumerate(m.sums):
        rows = rng.normal(size=(3, len(a)))
        weights = law * levels[:, i] / (law @ levels[:, i])
        told = rows @ np.array([each[i].z for each in one]).T
        exact = told**2 @ weights - (told @ weights) ** 2
        stated = m.variance_of(i, rows, f)
        wrong = not np.allclose(exact, stated, rtol=1e-9, atol=1e-9)
        check(wrong, "exact_shares", m, f"level {i}: variances {exact}, stated {stated}")


def covered_shares(family: Family) -> None:
    """95 % intervals of F cover at the deciles, and all of F if they are simultaneous.

    Null hypothesis: each interval covers with probability 0.93, and all together with 0.94.
    """
    from scipy.stats import binom

    runs, n = min(family.trials, MOST_RUNS), 3_000
    x = np.minimum(-np.log1p(-(np.arange(n) + 0.5) / n) / 5, 1.0)
    for epsilon in (1.0, 4.0):
        m = family(Number(0, 1), epsilon)
        data = m.privatize(np.tile(x, runs), np.random.default_rng(2)).data
        true = np.bincount(m.binning.of(m.domain.encode(x)).astype(int), minlength=m.binning.size)
        f = np.concatenate([[0.0], np.cumsum(true / n)])
        places = np.searchsorted(f, DECILES)
        inside = np.array([_inside(m, data[i : i + n], f) for i in range(0, len(data), n)])
        alone, together = inside[:, 0, places].sum(axis=0), inside[:, 1].all(axis=1).sum()
        for hits, least in ((alone.min(), 0.93), (together, 0.94)):
            p_value = float(binom.cdf(hits, runs, least))
            found = f"{hits / runs:.3f} of the intervals cover, p-value {p_value:.1e}"
            check(p_value < FALSE_ALARM, "covered_shares", m, found)


def _inside(m: NumberMechanism, data: Any, f: Floats) -> list[Any]:
    """Which of the intervals of F at the edges of bins cover: pointwise, and simultaneous ones."""
    alone = _intervals(m, Tally.of_counts(m, m.count(data), len(data)))
    each = simultaneous_confidence(CONFIDENCE, m.binning.size + 1)
    bands = (alone.band, replace(alone, each=each, simultaneous=True).band)
    return [(low <= f + 1e-12) & (f <= high + 1e-12) for low, high in bands]


def _intervals(m: NumberMechanism, tally: Tally) -> Any:
    """The distribution without a density: that takes long, and intervals do not depend on it."""
    if isinstance(m, Binned):
        return DISTRIBUTIONS.estimate([tally], METHOD).distribution
    return Bounded(Bounds.of([(m, tally)]), np.array([]), CONFIDENCE, everyone=False)


def _estimate(m: NumberMechanism, data: Any, method: str = METHOD) -> Any:
    return DISTRIBUTIONS.estimate([Tally.of_counts(m, m.count(data), len(data))], method)


def quantiles(family: Family) -> None:
    """Every decoder: quantiles rise, lie in their intervals, and come again; shares sum to 1."""
    for domain in (Number(-40, 60, 5), Number(0, 10, 0.1)):
        m = family(domain, 1.0)
        x = np.random.default_rng(4).triangular(domain.lo, domain.lo, domain.hi, 5_000)
        data = m.privatize(x, np.random.default_rng(5)).data
        for method in DISTRIBUTIONS.methods(m):
            if method == METHOD and not isinstance(m, Binned):
                continue  # only the mean is unbiased
            _check_quantiles(m, *(_estimate(m, data, method) for _ in range(2)))


def _check_quantiles(m: NumberMechanism, e: Numbers, again: Numbers) -> None:
    found = [e.quantile(p) for p in DECILES.tolist()]
    check(e.to_json() != again.to_json(), "quantiles", m, "two answers to one question")
    rising = [one.value for one in found]
    check(rising != sorted(rising), "quantiles", m, f"quantiles fall: {rising}")
    for one in found:
        low, high = one.interval
        outside = not m.domain.lo <= low <= one.value <= high <= m.domain.hi
        check(outside, "quantiles", m, f"{one} is not in its interval, or beyond the range")
    shares = e.density.shares
    wrong = shares.min() < 0 or abs(shares.sum() - 1) > 1e-9
    check(wrong, "quantiles", m, f"the density sums to {shares.sum()}")


DISTRIBUTION_LAWS: tuple[Callable[[Any], None], ...] = (exact_shares, covered_shares, quantiles)
