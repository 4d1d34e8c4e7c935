"""The catalogue of post-processings: feasible, optimal where they claim it, blind to labels."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm as normal

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.consistency import (
    base_cut,
    base_pos,
    mle_apx,
    norm,
    norm_cut,
    post_pos,
    power,
    power_ns,
)
from deniable.estimation.frequencies.power_law import STARTS, PowerLaw, fit, posterior_mean
from deniable.estimation.frequencies.shrinkage import calibrate, james_stein
from deniable.estimation.frequencies.simplex import clip_and_normalize as norm_mul
from deniable.estimation.frequencies.simplex import project as norm_sub

GRID = (np.linspace(0, 1, 101), np.linspace(1, 0.01, 101))
#: Each as a function of x, a and b.
CATALOGUE = {
    "base_pos": lambda x, a, b: base_pos(x),
    "post_pos": lambda x, a, b: post_pos(x),
    "base_cut": lambda x, a, b: base_cut(x, a=a),
    "norm": lambda x, a, b: norm(x),
    "norm_mul": lambda x, a, b: norm_mul(x),
    "norm_cut": lambda x, a, b: norm_cut(x),
    "norm_sub": lambda x, a, b: norm_sub(x),
    "mle_apx": lambda x, a, b: mle_apx(x, a=a, b=b),
    "power": lambda x, a, b: power(x, a=a, b=b),
    "power_ns": lambda x, a, b: power_ns(x, a=a, b=b),
    "calibrate": lambda x, a, b: calibrate(x, a=a, b=b, prior=GRID),
    "james_stein": lambda x, a, b: james_stein(x, a=a, b=b),
}
SUM_ONE = {"norm", "norm_mul", "norm_sub", "mle_apx", "power_ns", "james_stein"}
NOT_NEGATIVE = set(CATALOGUE) - {"norm"}
IDEMPOTENT = {"base_pos", "post_pos", "norm", "norm_mul", "norm_cut", "norm_sub", "base_cut"}


def line(k, p, q, n):
    """The variance line of supports with p and q from n reports, one entry a value."""
    a, b = q * (1 - q) / (p - q) ** 2, (1 - p - q) / (p - q)
    return np.full(k, a / n), np.full(k, b / n)


@st.composite
def noisy(draw, largest=20):
    """Frequencies with their line, as supports can have them: x >= -q / (p - q)."""
    q = draw(st.floats(0.01, 0.5))
    p = q + draw(st.floats(0.1, 0.95)) * (1 - q)
    n = draw(st.sampled_from([10, 1000, 10**6]))
    k = draw(st.integers(2, largest))
    shares = draw(arrays(np.float64, k, elements=st.floats(0, 1)))
    return (shares - q) / (p - q), *line(k, p, q, n)


any_vector = arrays(np.float64, st.integers(2, 20), elements=st.floats(-2, 2))
orders = st.randoms(use_true_random=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
@settings(max_examples=40)
@given(noisy(), orders)
def test_laws_of_every_method(name, case, random):
    x, a, b = case
    method = CATALOGUE[name]
    before = x.copy()
    found = method(x, a, b)
    assert np.array_equal(x, before)
    assert found.shape == x.shape
    assert np.all(np.isfinite(found))
    if name in NOT_NEGATIVE:
        assert found.min() >= 0
    if name in SUM_ONE:
        assert found.sum() == pytest.approx(1, abs=1e-9)
    if name in IDEMPOTENT:
        np.testing.assert_allclose(method(found, a, b), found, atol=1e-12)
    order = random.sample(range(x.size), x.size)
    moved = method(x[order], a[order], b[order])
    np.testing.assert_allclose(moved, found[order], atol=1e-9)


EXTREMES = {
    "all negative": [-0.5, -0.3, -0.4, -0.2],
    "all equal": [0.1] * 5,
    "all zero": [0.0] * 3,
    "one huge": [1e6, 0.1, -0.1, 0.0],
    "one hugely negative": [-1e6, 0.1, 0.2],
    "all hugely negative": [-1e12, -1e12],
    "two values": [0.7, 0.4],
    "a certain answer": [1.0, 0.0, 0.0],
    "many": np.linspace(-0.01, 0.02, 200),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("spread", [0.0, 1e-15, 1e-4, 1.0, 1e6])
@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("name", CATALOGUE)
def test_nothing_breaks_on_extremes(name, extreme, spread):
    x = np.array(EXTREMES[extreme])
    for slope in (0.0, 0.5, -0.5):
        a, b = np.full(x.size, spread), np.full(x.size, slope * spread)
        found = CATALOGUE[name](x, a, b)
        assert np.all(np.isfinite(found)), slope
        if name in NOT_NEGATIVE:
            assert found.min() >= 0
        if name in SUM_ONE:
            # Norm adds to x, so it keeps the rounding errors of x.
            rounding = 1e-15 * x.size * np.abs(x).max() if name == "norm" else 0
            assert found.sum() == pytest.approx(1, abs=1e-12 + rounding)


# ---- the simple ones


@given(any_vector)
def test_norm_is_the_nearest_vector_of_sum_one(x):
    found = norm(x)
    others = np.random.default_rng(0).normal(size=(20, x.size))
    others += (1 - others.sum(axis=1, keepdims=True)) / x.size
    assert np.all(np.linalg.norm(x - others, axis=1) >= np.linalg.norm(x - found) - 1e-12)


@given(any_vector, st.integers(0, 2**32))
def test_post_pos_clips_answers_and_base_pos_clips_values(x, seed):
    queries = np.random.default_rng(seed).random((6, x.size)) < 0.5
    answers = post_pos(x, queries)
    assert answers.min() >= 0
    for row, answer in zip(queries, answers, strict=True):
        assert answer == pytest.approx(max(x[row].sum(), 0), abs=1e-12)
        assert answer <= base_pos(x)[row].sum() + 1e-12
    assert np.array_equal(post_pos(x), base_pos(x))


def test_base_cut_keeps_as_many_false_values_as_it_says():
    """Null hypothesis: the values kept of pure noise are binomial with mean 2."""
    k = 1000
    x = np.random.default_rng(1).normal(0, 0.01, (1000, k))
    kept = sum(np.count_nonzero(base_cut(row, a=np.full(k, 1e-4))) for row in x)
    assert abs(kept - 2000) < 6 * np.sqrt(2000)  # false alarm about 2e-9
    # Three values, half a false one allowed: T = z(5 / 6) / 10 = 0.097.
    few = base_cut(np.array([0.09, 0.1, 0.3]), a=np.full(3, 0.01), false_positives=0.5)
    assert few.tolist() == [0, 0.1, 0.3]
    # Never below 0, however many may be false.
    assert base_cut(np.array([-0.1, 0.3]), a=np.full(2, 0.01)).tolist() == [0, 0.3]


@given(any_vector)
def test_norm_cut_keeps_the_most_that_fits(x):
    found = norm_cut(x)
    assert found.sum() <= 1 + 1e-12
    kept = found > 0
    positive = np.maximum(x, 0)
    if not positive.any():
        assert not kept.any()
    elif positive[positive == positive.max()].sum() > 1:
        assert np.array_equal(kept, x == x.max())
        assert found.sum() == pytest.approx(1)
    else:
        assert np.array_equal(found[kept], x[kept])
        left = positive[~kept]
        if left.any():  # one level more would be too much
            assert found.sum() + left[left == left.max()].sum() > 1 - 1e-12
            assert left.max() < x[kept].min()


def test_norm_cut_by_hand():
    assert norm_cut(np.array([0.6, 0.3, 0.2, -0.1])).tolist() == [0.6, 0.3, 0, 0]
    assert norm_cut(np.array([0.4, 0.3, -0.1])).tolist() == [0.4, 0.3, 0]
    assert norm_cut(np.array([0.6, 0.3, 0.3])).tolist() == [0.6, 0, 0]
    assert norm_cut(np.array([1.2, 0.1])).tolist() == [1, 0]
    assert norm_cut(np.array([0.8, 0.8, 0.1])).tolist() == [0.5, 0.5, 0]


# ---- MLE-Apx


def misfit(f, x, a, b):
    return np.sum((x - f) ** 2 / (a + b * f))


def uneven(case, seed):
    """The same x with lines that differ from value to value."""
    x, a, b = case
    scale = np.random.default_rng(seed).uniform(0.2, 5, x.size)
    return x, a * scale, b * scale


@pytest.mark.slow
@given(noisy(), st.integers(0, 2**32), st.booleans())
def test_mle_apx_is_optimal(case, seed, same):
    x, a, b = case if same else uneven(case, seed)
    found = mle_apx(x, a=a, b=b)
    best = misfit(found, x, a, b)
    others = np.random.default_rng(seed).dirichlet(np.full(x.size, 0.5), 20)
    for f in (*others, *(0.99 * found + 0.01 * others)):
        assert misfit(f, x, a, b) >= best * (1 - 1e-12)
    # KKT: equal slopes where f > 0, none lower where f = 0.
    variance = a + b * found
    slopes = (found - x) * (a + b * x + variance) / variance**2
    scale = np.abs(slopes).max() + 1 / a.min()
    level = slopes[np.argmax(found)]
    assert np.abs(slopes - level)[found > 1e-9].max() <= 1e-9 * scale
    assert (slopes - level).min() >= -1e-9 * scale


@settings(max_examples=20)
@given(noisy(largest=5), st.integers(0, 2**32))
def test_mle_apx_agrees_with_a_general_solver(case, seed):
    x, a, b = uneven(case, seed)
    k, unit = x.size, a.max()
    best = minimize(
        lambda f: misfit(f, x, a / unit, b / unit),
        norm_sub(x),
        method="SLSQP",
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    found = mle_apx(x, a=a, b=b)
    assert misfit(found, x, a, b) <= misfit(best.x / best.x.sum(), x, a, b) * (1 + 1e-7) + 1e-9
    np.testing.assert_allclose(found, best.x, atol=1e-3)


@pytest.mark.slow
@given(noisy())
def test_mle_apx_has_the_closed_form_of_a_common_line(case):
    x, a, b = case
    found = mle_apx(x, a=a, b=b)
    held = found > 0
    before, after = (a + b * x)[held], (a + b * found)[held]
    share = after.sum() / before.sum()
    np.testing.assert_allclose(after, share * before, atol=1e-9 * a[0] + 1e-9 * abs(b[0]))
    np.testing.assert_allclose(mle_apx(x, a=a, b=0 * b), norm_sub(x), atol=1e-12)
    feasible = norm_sub(x)
    np.testing.assert_allclose(mle_apx(feasible, a=a, b=b), feasible, atol=1e-12)


# ---- priors


@given(st.integers(2, 10**5), st.floats(1e-5, 0.95))
def test_power_laws_have_the_mean_that_is_asked_for(k, share):
    law = PowerLaw.with_mean(1 / k, share / k)
    assert law.exponent >= 0
    # The mean by quadrature in log f, in units of the lower end.
    end, s = np.log(k / share), law.exponent
    top, bottom = (quad(lambda u, t=t: np.exp((t - s) * u), 0, end, epsabs=0, limit=200)[0]
                   for t in (2, 1))  # fmt: skip
    assert law.low * top / bottom == pytest.approx(1 / k, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.7, 3.0, 12.0])
@pytest.mark.parametrize("low", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("x", [-0.05, 0.0, 0.003, 0.02, 0.1, 0.6, 1.1])
def test_posterior_means_by_quadrature(exponent, low, x):
    a, b = np.array([1e-4]), np.array([2e-4])
    nearest = min(max(x, low), 1)

    def weight(u, moment):
        f, at = np.exp(u), a[0] + b[0] * nearest
        v = a[0] + b[0] * f
        tilt = (x - nearest) ** 2 / (2 * at) - (x - f) ** 2 / (2 * v)
        return f**moment * np.exp((1 - exponent) * np.log(f / nearest) + tilt) / np.sqrt(v)

    marks = np.clip([nearest - 0.05, nearest, nearest + 0.05], low, 1)
    edges = np.unique(np.log([low, *np.geomspace(low, 1, 60), *marks, 1]))
    first, zeroth = (
        sum(quad(weight, s, e, (m,), epsabs=0)[0] for s, e in pairwise(edges)) for m in (1, 0)
    )
    found = posterior_mean(np.array([x]), PowerLaw(low, exponent), a, b)[0]
    assert found == pytest.approx(first / zeroth, rel=1e-6)


def test_the_fit_tells_flat_from_skewed():
    k, n = 500, 100_000
    a, b = line(k, 0.5, 0.1, n)
    rng = np.random.default_rng(2)
    exponents = []
    for truth in (np.full(k, 1.0), 1 / np.arange(1, k + 1) ** 1.5):
        f = truth / truth.sum()
        exponents.append(fit(rng.normal(f, np.sqrt(a + b * f)), a, b).exponent)
    flat, zipf = exponents
    assert flat > 5
    # Zipf's law with exponent s is the density f^-(1 + 1 / s) of frequencies.
    assert 1.3 < zipf < 2.1


@pytest.mark.slow
def test_large_domains_stay_exact():
    k = 20_000
    f = 1 / np.arange(1, k + 1) ** 1.2
    a, b = line(k, 0.5, 0.1, 10**7)
    x = np.random.default_rng(4).normal(f / f.sum(), np.sqrt(a))
    for method in (norm_sub(x), mle_apx(x, a=a, b=b), power_ns(x, a=a, b=b)):
        assert method.sum() == pytest.approx(1, abs=1e-12)
    # Ranks of the values stand for all of them: one step of the exponents at most.
    laws = sorted(PowerLaw.with_mean(1 / k, s / k).exponent for s in STARTS)
    few = laws.index(fit(x, a, b).exponent)
    every = laws.index(fit(x, a, b, enough=k).exponent)
    assert abs(few - every) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("skew", [1.0, 1.5, 2.5])
def test_priors_pay_where_they_fit(skew):
    """On noisy Zipf data the mean squared error falls; 10 runs, far from chance."""
    k, n = 300, 20_000
    f = 1 / np.arange(1, k + 1) ** skew
    f /= f.sum()
    a, b = line(k, 0.5, 1 / (1 + np.e), n)
    x = np.random.default_rng(3).normal(f, np.sqrt(a + b * f), (10, k))
    error = {
        name: np.mean([np.square(CATALOGUE[name](row, a, b) - f).sum() for row in x])
        for name in ("norm", "norm_sub", "power", "power_ns")
    }
    assert error["power"] < 0.5 * error["norm"]
    assert error["power_ns"] < error["norm_sub"]


def test_calibrate_is_the_posterior_mean_of_its_prior():
    values, weights = np.array([0.0, 0.1, 0.5]), np.array([3.0, 2.0, 1.0])
    x, a, b = np.array([0.02, 0.3]), np.array([1e-2, 4e-2]), np.array([1e-2, 0.0])
    for v in range(2):
        joint = weights * normal.pdf(x[v], values, np.sqrt(a[v] + b[v] * values))
        found = calibrate(x, a=a, b=b, prior=(values, weights))[v]
        assert found == pytest.approx(joint @ values / joint.sum(), rel=1e-12)
    np.testing.assert_array_equal(calibrate(x, a=a, b=b), power(x, a=a, b=b))
    only = calibrate(x, a=a, b=b, prior=([0.2, 0.9], [1, 0]))
    np.testing.assert_allclose(only, 0.2)


@given(noisy())
def test_calibrate_follows_x_and_stays_within_its_prior(case):
    x, a, _ = case
    found = calibrate(x, a=a, b=0 * a, prior=GRID)
    assert np.all((found >= 0) & (found <= 1))
    assert np.all(np.diff(found[np.argsort(x)]) >= -1e-12)


@pytest.mark.parametrize(
    "prior",
    [
        (),
        ([0.1],),
        ([0.1], [1, 2]),
        ([1.1], [1]),
        ([-0.1], [1]),
        ([0.1], [-1]),
        ([0.1], [0]),
        ([np.nan], [1]),
        ([0.1], [np.inf]),
        ([[0.1]], [[1]]),
        ("a", "b"),
        [0.1, 1],
        3,
    ],
)
def test_bad_priors_are_refused(prior):
    with pytest.raises(InvalidArgument, match="'prior'"):
        calibrate(np.array([0.5, 0.5]), a=np.ones(2), b=np.ones(2), prior=prior)


def test_james_stein():
    x, b = np.array([0.7, 0.3]), np.zeros(2)
    # |x - u|^2 = 0.08 and the variances sum to 0.02: three quarters of the way remain.
    np.testing.assert_allclose(james_stein(x, a=np.full(2, 0.01), b=b), [0.65, 0.35])
    np.testing.assert_allclose(james_stein(x, a=np.full(2, 1.0), b=b), [0.5, 0.5])
    np.testing.assert_allclose(james_stein(x, a=b, b=b), x)


def test_the_catalogue_on_real_reports():
    m = dn.OUE(50, 1.0)
    f = np.bincount(np.arange(20_000) % 50 % 7, minlength=50) / 20_000
    tally = m.tally(m.privatize(np.arange(20_000) % 50 % 7, np.random.default_rng(5)))
    x = m.unbiased(tally.counts, tally.n)
    a, b = (part / tally.n for part in m.estimated_line(tally.counts, tally.n))
    noise = np.sum(m.variance(tally.n, f))
    for name in ("norm_sub", "mle_apx", "power_ns", "base_cut"):
        assert np.square(CATALOGUE[name](x, a, b) - f).sum() < 0.7 * noise, name
