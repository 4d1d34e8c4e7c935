"""Means of numbers: dithered randomised response, decoded by its public offsets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

import deniable as dn
from deniable.answers.number import GRID
from deniable.collection.recommend import Requirements
from deniable.conformance import numbers as laws
from deniable.errors import InvalidArgument, MismatchError
from deniable.estimation import DISTRIBUTIONS
from deniable.estimation.numbers.moments import pooled
from deniable.mechanisms.numbers.base import Between
from deniable.mechanisms.numbers.bins import Binning
from deniable.mechanisms.numbers.drr import DRR, worst_case
from deniable.mechanisms.numbers.scores import PER_STRATUM, merged, stratified
from deniable.privacy import exact_channel

FALSE_ALARM = 1e-7
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def skewed(n):
    """Numbers of 0..1 on which a normal interval is put to the test."""
    rng = np.random.default_rng(17)
    return {
        "zeros": np.zeros(n),
        "rare": (np.arange(n) < 0.02 * n) * 1.0,
        "exponential": np.minimum(rng.exponential(0.05, n), 1.0),
        "income": np.minimum(rng.lognormal(10.5, 0.9, n) / 250_000, 1.0),
        "uniform": rng.random(n),
        "ends": np.arange(n) % 2 * 1.0,
    }


def simulated(m, x, runs, seed, **choices):
    """Estimates of several collections from the same people."""
    data = m.privatize(np.tile(x, runs), np.random.default_rng(seed)).data.reshape(runs, -1)
    return [dn.Tally.of_counts(m, m.count(row), len(x)).estimate(**choices) for row in data]


class Early(DRR):
    """Rounds down a little more often than it should."""

    name = "early"

    def cell(self, value, offset):
        return super().cell(max(0, value - GRID // 8), offset)


class Telling(DRR):
    """Shows a 0 instead of the offset for small numbers."""

    name = "telling"

    def report(self, value, coins):
        report = super().report(value, coins)
        return report if value else report >> self.shown << self.shown


class Noisier(DRR):
    """Keeps cells less often than it claims."""

    name = "noisier"

    def fill(self, values, out, keystream):
        super().fill(values, out, keystream)
        some = out[: len(values) : 5]
        some[:] = np.roll(some, 1)
        some %= 1 << self.shown

    @property
    def share(self):
        return super().share


@pytest.mark.parametrize(
    ("family", "law"),
    [
        (Early, laws.exact_moments),
        (Telling, laws.exact_moments),
        (Noisier, laws.simulated_errors),
        (Noisier, laws.coverage),
    ],
)
def test_planted_bugs_are_caught(family, law):
    with pytest.raises(AssertionError, match=law.__name__):
        law(family)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("ell", [1, 2, 3])
def test_sorting_by_offset_has_no_bias_at_all(ell, epsilon):
    """All outcomes of three respondents, weighed exactly: also where strata are empty or merged."""
    m = DRR(dn.Number(0, 1), epsilon, ell=ell, fine=2, shown=1)
    values = (0, 5 * GRID // 8, GRID - 1)
    truth = sum(Fraction(ell * v >> 30, ell << 2) for v in values) / len(values)
    channel = exact_channel(m.report, values)
    total = Fraction(0)
    for told in itertools.product(range(len(channel.outputs)), repeat=len(values)):
        weight = Fraction(1)
        for row, place in zip(channel.matrix, told, strict=True):
            weight *= row[place]
        counts = m.count(m.pack([channel.outputs[place] for place in told]))
        total += weight * _exact_mean(m, merged(m.table(counts), 2))
    assert total == truth


def _exact_mean(m, strata):
    """The mean as `stratified` has it, in fractions."""
    by_cell = strata.sum(axis=1)
    score = m.exact_scores
    z = [sum(a * c for a, c in zip(score, row, strict=True)) / sum(row) for row in by_cell.tolist()]
    exact = sum(z) / len(z)
    assert stratified(by_cell, m.scores)[0] == pytest.approx(float(exact), abs=1e-12)
    return exact


@pytest.mark.parametrize(
    ("epsilon", "steps"),
    [(0.25, 1), (0.5, 1), (1, 1), (1.25, 1), (1.5, 1), (2, 2), (2.5, 2), (3, 2), (4, 3), (5, 4),
     (6, 6)],
)  # fmt: skip
def test_the_default_steps_have_the_least_worst_case(epsilon, steps):
    m = DRR(dn.Number(0, 1), epsilon)
    assert m.ell == steps
    found = [worst_of_all(DRR(dn.Number(0, 1), epsilon, ell=ell)) for ell in range(1, 9)]
    assert int(np.argmin(found)) + 1 == steps


def worst_of_all(m):
    """n Var of the worst population in units of v = 2 x - 1, with as many strata as one likes."""
    ends, rise = worst_case(float(m.share), m.ell)
    return 4 * float(ends + rise**3 / (12 * m.ell**2))


@pytest.mark.parametrize(
    ("epsilon", "worst"),
    [(0.25, 64.00), (0.5, 16.00), (1, 4.016), (2, 0.943), (3, 0.329), (4, 0.142), (5, 0.0666),
     (6, 0.0323)],
)  # fmt: skip
def test_the_worst_case_is_that_of_the_saddle_point(epsilon, worst):
    assert worst_of_all(DRR(dn.Number(0, 1), epsilon)) == pytest.approx(worst, rel=2.5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "steps", "uniform"),
    [(0.25, 1, 64.00), (0.5, 1, 16.00), (1, 1, 4.016), (1.25, 2, 2.456), (1.5, 2, 1.584),
     (2, 2, 0.778), (2.5, 2, 0.444), (3, 3, 0.263), (4, 4, 0.107), (5, 5, 0.0478), (6, 7, 0.0224),
     (8, 14, 0.0053)],
)  # fmt: skip
def test_the_variance_for_uniform_numbers(epsilon, steps, uniform):
    m = DRR(dn.Number(0, 1), epsilon, ell=steps)
    n = 20_000
    rank = (np.arange(n) + 0.5) / n
    loss = (m.strata(n) - 1) / n * (uniform + 1 / 3)  # of the variance for a sample
    assert 4 * n * m.variance_for(rank, n) == pytest.approx(uniform + loss, rel=0.01)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("ell", [1, 2, 3, 5, 9])
def test_no_population_is_worse_than_the_worst(ell, epsilon):
    """A convex program over all populations on a grid, by steps towards the steepest one.

    The variance is concave in the population, so its gradient bounds how much more there could be.
    """
    m = DRR(dn.Number(0, 1), epsilon, ell=ell)
    s, offsets = float(m.share), 64
    y = np.arange(ell * offsets + 1) / offsets
    cells = np.floor(y[:, None] + np.arange(offsets) / offsets)
    mean, square = ell / 2, ell * (2 * ell + 1) / 6
    linear = (
        s * (cells**2).mean(axis=1) + (1 - s) * square
        - 2 * s * (1 - s) * mean * y - (1 - s) ** 2 * mean**2
    ) / s**2 - y**2  # fmt: skip

    def value(f):
        by_offset = f @ cells
        return f @ linear - by_offset.var(), linear - 2 * cells @ (by_offset - f @ y) / offsets

    f = np.full(y.size, 1 / y.size)
    for step in range(20_000):
        found, gradient = value(f)
        best = gradient == gradient.max()
        gap = gradient.max() - f @ gradient
        if gap < 1e-3:
            break
        f += 2 / (step + 2) * (best / best.sum() - f)
    ends, rise = worst_case(s, ell)
    claimed = float(ends * ell**2 + rise**3 / 12)
    assert found <= claimed * (1 + 1e-9)
    assert claimed <= found + gap + 1 / offsets


@pytest.mark.parametrize("n", [100, 150, 1_000, 12_800, 100_000])
def test_how_many_reports_a_stratum_has_by_chance_costs_no_more_than_is_allowed_for(n):
    m = DRR(dn.Number(0, 1), 1.0)
    size = np.arange(1, n + 1)
    law = binom(n, 1 / m.strata(n))
    average = n / m.strata(n)
    cost = float((law.pmf(size) / size).sum() / law.sf(0)) * average - 1
    assert average >= PER_STRATUM
    assert cost <= 1 / (average - 3)


@pytest.mark.slow
def test_predictions_never_grow_with_the_number_of_people():
    m = DRR(dn.Number(0, 24), 2.0)
    widths = [m.task.half_width(m, n) for n in range(1, 30_000, 7)]
    assert all(later < earlier for earlier, later in itertools.pairwise(widths))


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "variance"), [(1.0, 3.916), (2.0, 0.683), (4.0, 0.0962)])
def test_errors_are_those_of_the_formula(epsilon, variance):
    """Null hypothesis: 400 errors are normal with the exact variance; two-sided.

    Ages up to 100 that resemble those of adults: the formula, too, is within a tenth of the figure
    for the census.
    """
    n, runs = 10_000, 400
    x = np.clip(17 + np.random.default_rng(2).gamma(2.4, 9.0, n), 17, 90) / 100
    m = DRR(dn.Number(0, 1), epsilon)
    exact = m.variance_for(x, n)
    assert 4 * n * exact == pytest.approx(variance, rel=0.1)
    found = simulated(m, x, runs, seed=3)
    square = sum((e.mean - x.mean()) ** 2 for e in found) / exact
    assert 2 * min(chi2.cdf(square, runs), chi2.sf(square, runs)) > FALSE_ALARM
    hits = sum(e.mean_interval[0] <= x.mean() <= e.mean_interval[1] for e in found)
    assert binom.cdf(hits, runs, 0.93) > FALSE_ALARM
    assert binom.sf(hits - 1, runs, 0.985) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 40, 200, 1_000, 10_000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_cover_means_of_skewed_numbers(epsilon, n):
    """Null hypothesis: an interval covers with probability 0.93 (0.90 for five people) or more."""
    m = DRR(dn.Number(0, 1), epsilon)
    runs, least = (500 if n < 10_000 else 200), (0.93 if n > 5 else 0.9)
    for name, x in skewed(n).items():
        found = simulated(m, x, runs, seed=n)
        hits = sum(e.mean_interval[0] <= x.mean() <= e.mean_interval[1] for e in found)
        assert binom.cdf(hits, runs, least) > FALSE_ALARM, (name, hits / runs)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_intervals_about_everyone_cover_their_mean(epsilon):
    """Null hypothesis: coverage of 0.93 to 0.97, each collection from another sample."""
    m, n, runs = DRR(dn.Number(0, 1), epsilon), 1_000, 600
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(runs):
        x = np.minimum(rng.exponential(0.2, n), 1.0)
        e = m.tally(m.privatize(x, rng)).estimate(population="everyone")
        hits += e.mean_interval[0] <= 0.2 * (1 - np.exp(-5)) <= e.mean_interval[1]
    assert binom.cdf(hits, runs, 0.93) > FALSE_ALARM
    assert binom.sf(hits - 1, runs, 0.97) > FALSE_ALARM


@pytest.mark.slow
def test_the_spread_of_answers_is_estimated_without_bias():
    """Null hypothesis: the mean of 300 estimates is within a small bias of the variance of x."""
    n, runs = 10_000, 300
    for epsilon in (1.0, 4.0):
        m = DRR(dn.Number(0, 1), epsilon)
        x = skewed(n)["income"]
        data = m.privatize(np.tile(x, runs), np.random.default_rng(1)).data.reshape(runs, n)
        found = [m.moments(m.count(row), n) for row in data]
        spreads = np.array([one.square - one.mean**2 + one.variance for one in found])
        error = spreads.std() / np.sqrt(runs)
        assert abs(spreads.mean() - x.var()) < 5.5 * error + 1e-5


def test_an_estimate_says_what_it_is():
    m = dn.DRR(dn.Number(0, 24), epsilon=1.0)
    x = np.random.default_rng(3).uniform(2, 14, 20_000)
    e = m.tally(m.privatize(x, np.random.default_rng(4))).estimate()
    assert isinstance(e, dn.Numbers)
    assert e.mean_interval[0] < e.mean < e.mean_interval[1]
    assert abs(e.mean - x.mean()) < 6 * e.standard_error
    assert (e.n, e.method, e.errors, e.population) == (20_000, "unbiased", "normal", "respondents")
    assert e.words == "answers clipped to [0, 24]"
    assert e.rows() == [
        {
            "statistic": "mean",
            "estimate": e.mean,
            "standard_error": e.standard_error,
            "low": e.mean_interval[0],
            "high": e.mean_interval[1],
        }
    ]
    everyone = m.tally(m.privatize(x, np.random.default_rng(4))).estimate(population="everyone")
    assert everyone.standard_error > e.standard_error
    sure = m.tally(m.privatize(x, np.random.default_rng(4))).estimate(confidence=0.99)
    assert sure.mean_interval[0] < e.mean_interval[0] < e.mean_interval[1] < sure.mean_interval[1]


def test_numbers_are_encoded_clipped_and_scaled_back():
    wide = dn.DRR(dn.Number(-1_000, 3_000), epsilon=8.0)
    x = np.full(5_000, 4_000.0)
    e = wide.tally(wide.privatize(x, np.random.default_rng(1))).estimate()
    assert e.mean == pytest.approx(3_000, abs=6 * e.standard_error)
    strict = dn.DRR(dn.Number(0, 10, outside="refuse"), epsilon=8.0)
    with pytest.raises(InvalidArgument, match="from 0 to 10"):
        strict.privatize([11.0])
    e = strict.tally(strict.privatize(np.full(300, 4.0))).estimate()
    assert e.words == "answers in [0, 10]"


@pytest.mark.slow
def test_parts_with_several_epsilons_are_combined():
    """Null hypothesis: 300 errors have the variance that the combination claims, about."""
    domain, n, runs = dn.Number(0, 1), 2_000, 300
    x = skewed(n)["income"]
    cautious, open_ = dn.DRR(domain, 0.5), dn.DRR(domain, 3.0)
    rng, squares = np.random.default_rng(6), []
    for _ in range(runs):
        order = rng.permutation(n)
        first = cautious.tally(cautious.privatize(x[order[:1_500]], rng))
        second = open_.privatize(x[order[1_500:]], rng)
        both = dn.combine([first, second])
        squares.append((both.mean - x.mean()) ** 2 / both.standard_error**2)
    total = float(np.sum(squares))
    assert chi2.sf(total, runs) > FALSE_ALARM
    assert chi2.cdf(total, runs) > FALSE_ALARM
    assert both.n == n
    assert both.source == f"{cautious}; {open_}"
    both, *alone = (
        dn.combine(parts, population="everyone").standard_error
        for parts in ([first, second], [first], [second])
    )
    assert both < min(alone)


def test_parts_of_one_mechanism_are_one():
    m = dn.DRR(dn.Number(0, 1), 1.0)
    reports = m.privatize(np.linspace(0, 1, 900), np.random.default_rng(1))
    whole = m.tally(reports).estimate()
    parts = dn.combine([m.tally(reports[:300]), m.tally(reports[300:])])
    assert (parts.mean, parts.mean_interval) == (whole.mean, whole.mean_interval)


def test_mechanisms_for_a_mean_and_for_a_distribution_are_combined():
    """Also those that are advised for both, of which one has as few steps as for a mean."""
    domain, tasks = dn.Number(0, 10, 1), ("mean", "distribution")
    both = [DRR(domain, e, **DRR.advised(domain, e, 1_000, tasks)) for e in (0.5, 2.0)]
    assert [m.task.name for m in both] == list(tasks)
    tree = dn.HH(domain, 1.0, bins=4)
    x = np.arange(2_002) % 11
    parts = [m.tally(m.privatize(x, np.random.default_rng(1))) for m in (*both, tree)]
    for some in (parts, parts[::-1], parts[:2]):
        e = dn.combine(some)
        assert e.method == "penalised"
        assert e.mean_interval[0] < 5 < e.mean_interval[1]


def test_what_cannot_be_estimated_is_refused():
    m = dn.DRR(dn.Number(0, 1), 1.0)
    t = m.tally(m.privatize([0.5] * 40))
    other = dn.DRR(dn.Number(0, 2), 1.0)
    with pytest.raises(MismatchError, match="different questions"):
        dn.combine([t, other.tally(other.privatize([0.5] * 40))])
    oracle = dn.GRR(4, 1.0)
    with pytest.raises(MismatchError, match="frequencies and mean"):
        dn.combine([t, oracle.tally(oracle.privatize([1] * 40))])
    with pytest.raises(InvalidArgument, match="unbiased"):
        t.estimate("bayes")
    with pytest.raises(InvalidArgument, match="options"):
        t.estimate(bins=7)
    with pytest.raises(InvalidArgument, match="population"):
        t.estimate(population="all")
    with pytest.raises(InvalidArgument, match="confidence"):
        t.estimate(confidence=1.0)
    with pytest.raises(InvalidArgument, match="at least one report"):
        m.tally().estimate()
    with pytest.raises(InvalidArgument, match="one is there twice"):
        dn.combine([t, t])
    with pytest.raises(InvalidArgument, match="means of numbers"):
        m.task.error(oracle, 100)


def test_what_to_expect_is_said_before_anybody_is_asked():
    m = dn.DRR(dn.Number(0, 24), 1.0)
    found = m.task.expectation(m, 20_000)
    assert found.sentence == "A mean of 12 will show as 12 ± 0.34"
    assert (found.verdict, found.people_needed, found.target) == ("good", None, "± 0.6")
    few = m.task.expectation(m, 1_000)
    assert few.verdict == "rough"
    assert few.people_needed == pytest.approx(6_300, rel=0.05)
    assert m.task.expectation(m, few.people_needed).verdict == "good"
    assert m.task.expectation(m, 20).verdict == "too few people"
    sampled = m.task.expectation(m, 20_000, sampled=True)
    assert sampled.half_width > found.half_width
    income = dn.DRR(dn.Number(0, 250_000), 1.0)
    assert income.task.expectation(income, 20_000).sentence == (
        "A mean of 125,000 will show as 125,000 ± 3,500"
    )


def test_few_reports_have_an_estimate_too():
    m = dn.DRR(dn.Number(0, 1), 1.0)
    for n in (1, 2, 3):
        e = m.tally(m.privatize([0.5] * n)).estimate()
        assert np.isfinite([e.mean, *e.mean_interval]).all()
        assert e.mean_interval[0] <= 0 < 1 <= e.mean_interval[1] or n > 1


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "ell"), [(1.0, 1), (4.0, 16)])
def test_intervals_cover_the_spread_of_answers(epsilon, ell):
    """Null hypothesis: they cover the variance of x with probability 0.92 or more."""
    m, n, runs = DRR(dn.Number(0, 1), epsilon, ell=ell), 1_000, 300
    for name, x in skewed(n).items():
        data = m.privatize(np.tile(x, runs), np.random.default_rng(1)).data.reshape(runs, n)
        found = [pooled([m.moments(m.count(row), n)], [1.0]) for row in data]
        errors = [abs(one.spread - x.var()) / math.sqrt(one.spread_variance) for one in found]
        hits = sum(error <= 1.96 for error in errors)
        assert binom.cdf(hits, runs, 0.92) > FALSE_ALARM, (name, hits / runs)


@pytest.mark.parametrize("ell", [1, 3])
def test_the_share_below_a_number_is_between_two_means(ell):
    """What is estimated from counts that follow the law exactly, of a single number."""
    m = DRR(dn.Number(0, 1), 1.0, ell=ell, fine=4, shown=2)
    values, u = [i * GRID // 16 for i in range(17)], np.linspace(0, 1, 49)
    channel = exact_channel(m.report, values)
    cells = np.array([m.count(one) for one in m.pack(channel.outputs)[:, None]])
    for value, law in zip(values, channel.matrix, strict=True):
        weights = np.array([round(weight * (1 << 40)) for weight in law])
        found = m.cdf(weights @ cells, int(weights.sum()), u)
        true = 1.0 * (u >= float(m.told(value)))
        assert np.all(found.low <= true + 1e-9)
        assert np.all(found.high >= true - 1e-9)
        # With so many reports a place is as wide as 1 / (4 ell), and only one is used.
        far = np.abs(u - float(m.told(value))) > 2 / (4 * ell)
        assert found.low[far] == pytest.approx(true[far], abs=1e-9)
        assert found.high[far] == pytest.approx(true[far], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "ell", "n"), [(0.5, 1, 2_000), (1.0, 2, 10_000), (4.0, 16, 500)]
)
def test_conservative_intervals_cover_the_share_below_a_number(epsilon, ell, n):
    """Null hypothesis: each covers with probability 0.93 or more.

    Where all answer lo or hi nothing is conservative but the variance, which is one for samples.
    """
    m, runs, u = DRR(dn.Number(0, 1), epsilon, ell=ell), 200, np.array([0.0, 0.02, 0.3, 0.5, 0.9])
    for name in ("ends", "income", "uniform"):
        x = skewed(n)[name]
        true = np.searchsorted(np.sort(x), u, side="right") / n
        data = m.privatize(np.tile(x, runs), np.random.default_rng(2)).data.reshape(runs, n)
        found = Between(*np.array([m.cdf(m.count(row), n, u) for row in data]).swapaxes(0, 1))
        low = found.low - 1.96 * np.sqrt(found.low_variance)
        high = found.high + 1.96 * np.sqrt(found.high_variance)
        hits = ((low <= true) & (true <= high)).sum(axis=0)
        assert binom.cdf(hits.min(), runs, 0.93) > FALSE_ALARM, (name, hits / runs)
        if name == "ends":
            assert binom.sf(hits[2] - 1, runs, 0.98) > FALSE_ALARM


@pytest.mark.parametrize(
    "domain",
    [dn.Number(0, 1), dn.Number(0, 24, 0.5), dn.Number(0, 1, 2.0**-32), dn.Number(0, 3, 0.1)],
    ids=repr,
)
@pytest.mark.parametrize("most", [2, 7, 31])
def test_the_bins_of_a_column_are_those_of_its_numbers(domain, most):
    """Also where products of 64 bits are hardly enough; the ends are in the first and last bin."""
    binning = Binning(domain, most)
    values = [0, 1, GRID // 3, GRID // 2 - 1, GRID // 2, GRID - 1, GRID]
    values += [place * GRID // most for place in range(most)]
    found = [binning.of(value) for value in values]
    assert found == binning.of(np.array(values, dtype=np.uint64)).tolist()
    assert (min(found), max(found)) == (0, binning.size - 1)
    assert (found[0], found[6]) == (0, binning.size - 1)


@pytest.mark.slow
def test_reports_for_a_mean_tell_a_distribution_too():
    domain = dn.Number(0, 24)
    design = DRR.advised(domain, 2.0, 1_000, ("mean", "distribution"))
    m = DRR(domain, 2.0, **design)
    assert (m.ell, m.task.name, DRR(domain, 2.0).task.name) == (3, "distribution", "mean")
    assert DRR.advised(domain, 2.0, 1_000, ("distribution",)) == {"ell": 4}
    x = np.random.default_rng(3).normal(8, 2, 20_000).clip(0, 24)
    t = m.tally(m.privatize(x, np.random.default_rng(4)))
    e, mean = t.estimate(), t.estimate("unbiased")
    assert (e.method, e.mean) == ("penalised", mean.mean)
    assert mean.labels == ("mean",)
    assert e.interval_words == (
        "95 % normal (mean, standard deviation) and conservative intervals about respondents"
    )
    for found, true in (
        (e.median, np.median(x)),
        (e.cdf(10), np.mean(x <= 10)),
        (e.range(6, 9), np.mean((x >= 6) & (x <= 9))),
        (e.statistic("standard deviation"), x.std()),
    ):
        low, high = found.interval
        assert low <= true <= high
        assert low < found.value < high
    assert e.range(0, 24).interval == (1.0, 1.0)
    together = t.estimate("ems", simultaneous=True)
    assert np.all(together.distribution.band[0] <= e.distribution.band[0])
    assert np.abs(np.cumsum(together.density.shares - e.density.shares)).max() < 0.03
    assert mean.distribution is None
    few = DRR(domain, 2.0)
    assert few.tally(few.privatize(x)).estimate(cdf=[10.0]).asked[0].value > 0.7


def test_conservative_intervals_are_in_order_where_shares_do_not_rise():
    """Half are 0.1 and half 0.9: F is 1/2 between them, and chance is all that bounds differ by."""
    m, x = DRR(dn.Number(0, 1), 1.0, ell=2), np.repeat([0.1, 0.9], 10_000)
    for seed in range(2):
        tally = m.tally(m.privatize(x, np.random.default_rng(seed)))
        e = DISTRIBUTIONS.estimate([tally], "em", confidence=0.5)
        (low, high), cdf, bounds = e.distribution.band, e.distribution.cdf, e.distribution.shares
        assert np.any(bounds.between.low > bounds.between.high)
        assert np.all(low <= high)
        assert np.any(np.diff(low) < 0)
        assert np.all(np.diff(cdf) >= 0)
        shown = e.density.columns()
        assert np.all(np.array(shown["cdf_low"]) <= shown["cdf"])
        assert np.all(np.array(shown["cdf_high"]) >= shown["cdf"])
        assert e.range(0.3, 0.7).value >= 0
        assert e.median.interval[0] <= e.median.value <= e.median.interval[1]


@pytest.mark.slow
def test_the_width_of_conservative_intervals_is_predicted():
    """The mean of 60 at the middle of the range, within 5 standard errors."""
    m, n, runs = DRR(dn.Number(0, 1), 2.0, ell=3), 20_000, 60
    data = m.privatize(np.tile(np.linspace(0, 1, n), runs), np.random.default_rng(5)).data
    found = [m.cdf(m.count(row), n, np.array([0.5])) for row in data.reshape(runs, n)]
    ends = [(b.high - b.low + 1.96 * (b.low_variance**0.5 + b.high_variance**0.5)) for b in found]
    halves = np.array(ends)[:, 0] / 2
    error = halves.std() / np.sqrt(runs)
    assert abs(halves.mean() - m.share_half_width(n, 1.96)) < 5 * error


@pytest.mark.slow
def test_distributions_of_several_mechanisms_are_combined():
    domain, rng = dn.Number(0, 24, 1), np.random.default_rng(6)
    x = np.round(rng.normal(8, 2, 20_000).clip(0, 24))
    parts = [DRR(domain, 1.0, ell=2), DRR(domain, 3.0, ell=6)]
    tallies = [m.tally(m.privatize(x, rng)) for m in parts]
    both, *alone = (dn.combine(some, method="penalised") for some in (tallies, *zip(tallies)))
    true, widths = np.mean(x <= 8), [np.diff(e.cdf(8).interval)[0] for e in (both, *alone)]
    assert both.cdf(8).interval[0] <= true <= both.cdf(8).interval[1]
    assert widths[0] < widths[1]
    assert both.median.value in (7.0, 8.0, 9.0)


def test_a_distribution_is_not_asked_of_a_question_that_may_be_skipped():
    domain = dn.Number(0, 1, optional=True)
    asked = Requirements(domain, 1.0, 10_000, tasks=("mean", "distribution"))
    with pytest.raises(InvalidArgument, match="one that estimates the distribution"):
        asked.build("drr")
    assert type(asked.choose()) is dn.HH
    m = DRR(domain, 1.0, ell=5)
    assert m.task.methods(m) == ["unbiased"]


def test_a_mean_comes_with_the_standard_deviation_of_the_answers():
    """H0: the estimated variance is normal around the true one; false alarms below 1e-6."""
    x = np.tile([1.0, 5.0, 9.0, 9.0], 5_000)
    m = dn.DRR(dn.Number(0, 10), 4.0)
    e = m.tally(m.privatize(x, np.random.default_rng(3))).estimate()
    assert e.labels == ("mean",)
    low, high = e.variance_interval
    assert low < e.variance < high < 2 * x.var()
    assert abs(e.variance - x.var()) < 5 * (high - low) / (2 * 1.96)
    assert e.about["standard_deviation"] == pytest.approx(e.variance**0.5)
    (remark,) = e.remarks
    assert remark.startswith("The standard deviation of the answers is between ")
    few = m.tally(m.privatize(x[:5], np.random.default_rng(3))).estimate()
    assert few.remarks == []  # it may be anything
    bit = dn.Duchi(dn.Number(0, 10), 4.0)
    with pytest.raises(InvalidArgument, match="one that tells the variance"):
        _ = bit.tally(bit.privatize(x)).estimate().variance
