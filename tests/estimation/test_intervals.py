"""Intervals hold the truth as often as they claim, above all in the hard cases.

Where the law of a count is known, its coverage is computed and not simulated. Elsewhere a test
states a null hypothesis and fails when the result, or a worse one, has a probability below 1e-9.
"""

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.stats import binom, chi2

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.errors.bootstrap import (
    belt,
    fixed_population,
    generator_of,
    with_frequency,
)
from deniable.estimation.frequencies.errors.exact import exact_intervals, upper_tail
from deniable.estimation.frequencies.intervals import (
    analytic_kind,
    score_intervals,
    simultaneous_confidence,
)
from deniable.estimation.frequencies.simplex import clip_and_normalize, project
from deniable.mechanisms.frequency import Line

FALSE_ALARM = 1e-9
#: What is left out of a law and counted as missed, and room for rounding.
LEFT_OUT = 1e-10
#: How far score intervals may fall short where the rule chooses them.
SCORE_MARGINS = {0.95: 0.01, 0.99: 0.002}
NAMES = ("brr", "grr", "sue", "oue", "ss", "olh", "hr")
EPSILONS = (0.5, 1.0, 4.0)


def family(name, epsilon, k=20):
    return dn.mechanism(
        name, 2 if name == "brr" else k, epsilon, **{"hr": {"block": 32}}.get(name, {})
    )


def count_law(n, own, p, q, sampling):
    """The counts of a value that ``own`` of n respondents have, and their probabilities."""
    coins = lambda size, chance: binom.pmf(np.arange(size + 1), size, chance)  # noqa: E731
    if sampling:
        law = coins(n, q + (p - q) * own / n)
    else:
        law = fftconvolve(coins(own, p), coins(n - own, q))
    counts = np.flatnonzero(law > LEFT_OUT / n)
    return counts, law[counts]


def score(counts, n, p, q, confidence, sampling):
    x = (counts / n - q) / (p - q)
    a = np.full(x.shape, q * (1 - q) / (p - q) ** 2 / n)
    b = np.full(x.shape, (1 - p - q) / (p - q) / n)
    return score_intervals(x, Line(a, b), confidence, sampling=sampling / n)


def automatic(counts, n, p, q, confidence, sampling):
    if analytic_kind(n, p, q, confidence) == "exact":
        return exact_intervals(counts, n, p, q, confidence, sampling=sampling)
    return score(counts, n, p, q, confidence, sampling)


def coverage(kind, n, own, p, q, confidence, sampling):
    counts, weights = count_law(n, own, p, q, sampling)
    low, high = kind(counts, n, p, q, confidence, sampling).T
    return float(weights[(low <= own / n) & (own / n <= high)].sum()) + LEFT_OUT


def exact(counts, n, p, q, confidence, sampling):
    return exact_intervals(counts, n, p, q, confidence, sampling=sampling)


def hard_truths(m, n):
    """Absent, one respondent, half and two standard deviations, half of all, all but one, all."""
    sd = float(np.sqrt(m.variance(n, 0.0)))
    rare = {0, 1, round(0.5 * sd * n), round(2 * sd * n)}
    return sorted(own for own in {*rare, n // 2, n - 1, n} if own <= n)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [False, True], ids=["fixed", "sample"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", NAMES)
def test_exact_intervals_never_cover_less(name, epsilon, sampling):
    m = family(name, epsilon)
    for n in (20, 100):
        for own in hard_truths(m, n):
            for level in (0.95, 0.99, simultaneous_confidence(0.99, 20)):
                found = coverage(exact, n, own, float(m.p), float(m.q), level, sampling)
                assert found >= level, (n, own, level, found)


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [False, True], ids=["fixed", "sample"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", NAMES)
def test_automatic_intervals_cover_everywhere(name, epsilon, sampling):
    """Exact ones at least as often as they say, score ones but for the margin."""
    m = family(name, epsilon)
    p, q = float(m.p), float(m.q)
    for n in (20, 400, 20_000):
        for own in hard_truths(m, n):
            for level, margin in SCORE_MARGINS.items():
                allowed = margin if analytic_kind(n, p, q, level) == "score" else 0.0
                found = coverage(automatic, n, own, p, q, level, sampling)
                assert found >= level - allowed, (n, own, level, found)


def test_score_intervals_alone_would_not_do():
    """The reason for the rule: with 20 respondents they hold a rare value in 94 % instead of 99."""
    m = dn.GRR(50, 0.5)
    p, q = float(m.p), float(m.q)
    assert coverage(score, 20, 0, p, q, 0.99, False) < 0.95
    assert analytic_kind(20, p, q, 0.99) == "exact"
    assert coverage(automatic, 20, 0, p, q, 0.99, False) >= 0.99


@pytest.mark.slow
def test_intervals_hold_together():
    """Null hypothesis: all 20 intervals hold at once in at least 95 % of the runs."""
    m, n, runs = dn.OUE(20, 1.0), 1000, 500
    population = np.array([600, 200, 100, 50, 25, 15, 9, 1, *[0] * 12])
    rng, held = np.random.default_rng(7), 0
    level = simultaneous_confidence(0.95, 20)
    table = exact_intervals(np.arange(n + 1), n, float(m.p), float(m.q), level, sampling=False)
    for _ in range(runs):
        low, high = table[m.simulate(population, rng)].T
        held += bool(np.all((low <= population / n) & (population / n <= high)))
    assert binom.cdf(held, runs, 0.95) > FALSE_ALARM, held / runs


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.27), (0.9, 0.01), (1.0, 0.0), (0.999, 0.5)])
def test_tails_are_those_of_the_convolution(p, q):
    for n in (1, 30, 700):
        for own in {0, 1, n // 3, n}:
            coins = lambda size, chance: binom.pmf(np.arange(size + 1), size, chance)  # noqa: E731
            law = np.convolve(coins(own, p), coins(n - own, q))
            tails = np.cumsum(law[::-1])[::-1]
            found = upper_tail(np.arange(n + 1), np.full(n + 1, own), n, p, q)
            np.testing.assert_allclose(found, tails, atol=1e-11)


def test_without_noise_an_exact_interval_is_the_count():
    rows = exact_intervals(np.arange(11), 10, 1.0, 0.0, 0.95, sampling=False)
    np.testing.assert_array_equal(rows, np.stack([np.arange(11), np.arange(11)], axis=1) / 10)


def test_impossible_counts_get_the_nearest_end():
    for sampling in (False, True):
        rows = exact_intervals([0, 1000], 1000, 0.6, 0.4, 0.95, sampling=sampling)
        assert rows.tolist() == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("sampling", [0.0, 0.01])
def test_score_limits_solve_their_equation(sampling):
    z = 1.959963984540054
    x, b = (grid.ravel() for grid in np.meshgrid(np.linspace(-0.2, 1.2, 29), [-0.01, 0.0, 0.02]))
    rows = score_intervals(x, Line(np.full(x.shape, 0.015), b), 0.95, sampling=sampling)
    for t in rows.T:
        variance = 0.015 + b * t + sampling * t * (1 - t)
        np.testing.assert_allclose((x - t) ** 2, z * z * variance, rtol=1e-9)
    assert np.all(rows[:, 0] <= x)
    assert np.all(x <= rows[:, 1])


def test_score_limits_where_everything_is_rejected():
    a, b = np.array([0.01, 0.0]), np.array([-0.01, 0.01])
    rows = score_intervals(np.array([5.0, -5.0]), Line(a, b), 0.95)
    np.testing.assert_allclose(rows, [[1.0, 1.0], [0.0, 0.0]])
    rows = score_intervals(
        np.array([5.0, -5.0]), Line(np.zeros(2), np.zeros(2)), 0.95, sampling=0.01
    )
    np.testing.assert_allclose(rows, [[1.0, 1.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("counts", {"counts": [11]}),
        ("counts", {"counts": [-1]}),
        ("counts", {"counts": [0.5]}),
        ("n", {"n": 0}),
        ("p", {"p": 0.2}),
        ("confidence", {"confidence": 1.0}),
    ],
)
def test_bad_arguments_are_refused(name, wrong):
    right = {"counts": [3], "n": 10, "p": 0.5, "q": 0.25, "confidence": 0.95}
    with pytest.raises(InvalidArgument, match=f"'{name}' must be"):
        exact_intervals(**{**right, **wrong}, sampling=False)


# ---- simulated counts


@pytest.mark.parametrize("wrong", [[1, 2], [1, -1, 0], [0.5, 1, 1], [[1, 2, 3]], "abc", None])
def test_simulation_refuses_bad_populations(wrong):
    with pytest.raises(InvalidArgument, match="'histogram' must be 3 integers"):
        dn.GRR(3, 1.0).simulate(wrong, np.random.default_rng(1))
    with pytest.raises(InvalidArgument, match="'rng' must be"):
        dn.GRR(3, 1.0).simulate([1, 2, 3], 7)


def test_a_simulated_population_may_be_empty():
    for name in NAMES:
        m = family(name, 1.0)
        empty = np.zeros(m.domain.size, dtype=int)
        assert not m.simulate(empty, np.random.default_rng(1)).any()


# ---- belts


def pooled_likelihood(m):
    """The maximiser of sum_v c_v log(q + (p - q) f_v) over the simplex (converged IBU)."""
    ratio = float(m.q / (m.p - m.q))

    def decode(counts):
        descending = np.sort(counts)[::-1]
        scales = (1 + np.arange(1, counts.size + 1) * ratio) / np.cumsum(descending)
        scale = scales[np.flatnonzero(descending * scales > ratio)[-1]]
        return np.maximum(counts * scale - ratio, 0.0)

    return decode


def decoders(m, n):
    return {
        "projected": lambda counts: project(m.unbiased(counts, n)),
        "normalized": lambda counts: clip_and_normalize(m.unbiased(counts, n)),
        "likelihood": pooled_likelihood(m),
    }


def hard_population(m, n):
    """Absent, one respondent, half and two deviations, 30 %; the rest falls off in steps."""
    sd = float(np.sqrt(m.variance(n, 0.0)))
    f = np.array([0.0, 1 / n, 0.5 * sd, 2 * sd, 0.3])
    steps = np.arange(m.domain.size - f.size, 0.0, -1.0)
    return fixed_population(np.concatenate([f, (1 - f.sum()) * steps / steps.sum()]), n)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize("method", ["projected", "normalized", "likelihood"])
@pytest.mark.parametrize("m", [dn.OUE(12, 2.0), dn.GRR(12, 1.0)], ids=["oue", "grr"])
def test_belts_cover(m, method, level):
    """Null hypothesis: over the data sets that make the plug-in, belts cover level - 0.015.

    Estimates are drawn afresh for each belt, so that few belts suffice.
    """
    n, belts, draws, rng = 1000, 5, 300, np.random.default_rng(5)
    population, decode = hard_population(m, n), decoders(m, n)[method]
    truth, hits = population / n, np.zeros(m.domain.size)
    for _ in range(belts):
        plugin = project(m.unbiased(m.simulate(population, rng), n))
        found = belt(decode, m, n, plugin, confidence=level, largest=0.5, runs=200, rng=rng)
        for _ in range(draws):
            low, high = found.intervals(decode(m.simulate(population, rng))).T
            hits += (low <= truth) & (truth <= high)
    worst = hits.min()
    assert binom.cdf(worst, belts * draws, level - 0.015) > FALSE_ALARM / truth.size, hits


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [False, True], ids=["fixed", "sample"])
def test_belts_of_their_own_data_cover(sampling):
    """Null hypothesis: plug-in and estimate from the same 400 answers, coverage at least 0.935."""
    m, n, runs, rng = dn.GRR(8, 2.0), 400, 30, np.random.default_rng(6)
    truth = hard_population(m, n) / n
    decode, hits = decoders(m, n)["projected"], np.zeros(8)
    for _ in range(runs):
        people = rng.multinomial(n, truth) if sampling else np.rint(truth * n).astype(int)
        y = decode(m.simulate(people, rng))
        low, high = belt(decode, m, n, y, runs=100, sampling=sampling).intervals(y).T
        hits += (low <= truth) & (truth <= high)
    assert binom.cdf(hits.min(), runs, 0.935) > FALSE_ALARM / truth.size, hits


@pytest.mark.slow
def test_belts_cover_a_value_that_nearly_all_have():
    """Null hypothesis: coverage of 0.935 for a value with f = 1 - 1/n, and for the absent ones."""
    m, n, draws, rng = dn.OUE(6, 1.0), 400, 1500, np.random.default_rng(8)
    population = np.array([n - 1, 1, 0, 0, 0, 0])
    decode, hits = decoders(m, n)["projected"], np.zeros(6)
    plugin = decode(m.simulate(population, rng))
    found = belt(decode, m, n, plugin, largest=1.0, runs=400, rng=rng)
    for _ in range(draws):
        low, high = found.intervals(decode(m.simulate(population, rng))).T
        hits += (low <= population / n) & (population / n <= high)
    assert binom.cdf(hits.min(), draws, 0.935) > FALSE_ALARM / 6, hits


@pytest.mark.slow
def test_belts_of_an_unbiased_decoder_know_its_error():
    """Null hypothesis: the variance is the stated one (chi-square), the bias 0 (6.5 sigma)."""
    m, n, runs = dn.OUE(6, 1.0), 5000, 1000
    plugin = np.array([0.5, 0.3, 0.2, 0.0, 0.0, 0.0])
    found = belt(lambda c: m.unbiased(c, n), m, n, plugin, runs=runs)
    for level, deviation, mean in zip(found.levels, found.deviations, found.means, strict=True):
        variance = float(m.variance(n, level))
        square = (runs - 1) * deviation**2 / variance
        assert min(chi2.cdf(square, runs - 1), chi2.sf(square, runs - 1)) > FALSE_ALARM
        assert abs(mean - level) < 6.5 * np.sqrt(variance / runs)
    y = np.array([0.1, 0.4])
    stated = np.sqrt([float(m.variance(n, f)) for f in y])
    np.testing.assert_allclose(found.standard_errors(y), stated, rtol=0.15)


def test_the_same_tally_has_the_same_belt():
    m, plugin = dn.GRR(3, 1.0), np.array([0.5, 0.5, 0.0])
    decode = decoders(m, 100)["projected"]
    one, two = (belt(decode, m, 100, plugin, runs=50).intervals(plugin) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert generator_of([1, 2]).random() != generator_of([2, 1]).random()


def test_populations_keep_their_size_and_the_value_that_matters():
    f = with_frequency(np.array([0.2, 0.3, 0.5]), 1, 0.1)
    np.testing.assert_allclose(f, [0.9 * 2 / 7, 0.1, 0.9 * 5 / 7])
    assert with_frequency(np.array([1.0, 0.0, 0.0]), 0, 0.5).tolist() == [0.5, 0.25, 0.25]
    people = fixed_population(f, 30, 1)
    assert people[1] == 3
    assert people.sum() == 30
    for n in (1, 2, 7, 1001):
        for level in range(n + 1):
            people = fixed_population(with_frequency(f, 1, level / n), n, 1)
            assert people[1] == level
            assert people.sum() == n
            assert people.min() >= 0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("plugin", {"plugin": np.array([0.5, 0.6, -0.1])}),
        ("plugin", {"plugin": np.array([0.5, 0.5])}),
        ("runs", {"runs": 10}),
        ("n", {"n": 0}),
        ("confidence", {"confidence": 95}),
    ],
)
def test_belts_refuse_bad_arguments(name, wrong):
    m = dn.GRR(3, 1.0)
    right = {"n": 10, "plugin": np.array([0.5, 0.5, 0.0]), "runs": 50}
    with pytest.raises(InvalidArgument, match=f"'{name}' must be"):
        belt(decoders(m, 10)["projected"], m, **{**right, **wrong})
