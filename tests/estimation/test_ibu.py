"""Maximum likelihood from counts: closed forms, and the iteration that approaches them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.ibu import (
    RULES,
    iterate,
    pooled_supports,
    pure_channel,
    water_filling,
)

some_counts = arrays(
    np.float64,
    st.integers(2, 30),
    elements=st.one_of(st.just(0.0), st.integers(1, 1000).map(float), st.floats(1e-3, 1e6)),
)


@st.composite
def probabilities(draw):
    q = draw(st.one_of(st.just(0.0), st.floats(1e-4, 0.6)))
    return q + draw(st.floats(0.01, 1)) * (1 - q), q


@st.composite
def collections(draw):
    k = draw(st.integers(2, 12))
    counts = arrays(np.float64, k, elements=st.integers(0, 1000).map(float))
    parts = draw(st.integers(1, 4))
    return [(draw(counts), *draw(probabilities())) for _ in range(parts)]


def kkt_residual(parts, f):
    """How far the slopes of the log-likelihood are from equal (f > 0) or lower (f = 0).

    Relative to the multiplier of the sum; an infinite slope at f = 0 is infinitely wrong.
    """
    slopes = np.zeros(f.size)
    for c, p, q in parts:
        with np.errstate(divide="ignore"):
            slopes += np.where(c > 0, c / np.where(c > 0, q / (p - q) + f, 1), 0)
    multiplier = float(np.sum((slopes * f)[f > 0]))
    off = slopes / multiplier - 1
    return float(np.max(np.where(f > 0, np.abs(off), off)))


def log_likelihood(parts, f):
    with np.errstate(divide="ignore"):
        return sum(np.sum(c[c > 0] * np.log((q + (p - q) * f)[c > 0])) for c, p, q in parts)


def noisy_supports(k, epsilon, n, seed, p=None):
    """Counts of n reports for f proportional to 1 / rank, and p, q: GRR, or UE with p given."""
    rng, e = np.random.default_rng(seed), math.exp(epsilon)
    f = 1 / np.arange(1, k + 1)
    holders = rng.multinomial(n, f / f.sum())
    if p is None:
        p, q = e / (e + k - 1), 1 / (e + k - 1)
        counts = np.sum(
            [
                rng.multinomial(h, np.full(k, q) + (p - q) * row)
                for h, row in zip(holders, np.eye(k), strict=True)
            ],
            axis=0,
        )
        return counts.astype(float), p, q
    q = p / (p + e * (1 - p))
    return (rng.binomial(holders, p) + rng.binomial(n - holders, q)).astype(float), p, q


@pytest.mark.slow
@given(some_counts, probabilities())
def test_water_filling_is_optimal(counts, pq):
    f = water_filling(counts, *pq)
    assert f.min() >= 0
    assert f.sum() == pytest.approx(1, abs=1e-12)
    if counts.any():
        assert kkt_residual([(counts, *pq)], f) < 1e-12
    else:
        np.testing.assert_allclose(f, 1 / counts.size)


@pytest.mark.slow
@given(some_counts, probabilities(), st.integers(0, 2**32))
def test_no_random_point_of_the_simplex_is_more_likely(counts, pq, seed):
    part = [(counts, *pq)]
    found = water_filling(counts, *pq)
    best = log_likelihood(part, found)
    others = np.random.default_rng(seed).dirichlet(np.full(counts.size, 0.5), 20)
    mixed = 0.99 * found + 0.01 * others
    for f in (*others, *mixed):
        assert log_likelihood(part, f) <= best + 1e-12 * (1 + abs(best) + counts.sum())


@pytest.mark.slow
@given(some_counts, probabilities(), st.randoms(use_true_random=False))
def test_water_filling_knows_no_labels_and_no_scale(counts, pq, random):
    found = water_filling(counts, *pq)
    order = random.sample(range(counts.size), counts.size)
    np.testing.assert_allclose(water_filling(counts[order], *pq), found[order], atol=1e-14)
    np.testing.assert_allclose(water_filling(counts * 7, *pq), found, atol=1e-13)
    # Equal counts get equal shares, and larger counts no smaller ones.
    ranked = found[np.argsort(counts, kind="stable")]
    assert np.all(np.diff(ranked) >= 0)
    for c in np.unique(counts):
        assert np.ptp(found[counts == c]) == 0


def test_water_filling_by_hand():
    np.testing.assert_allclose(water_filling([3, 1], 1.0, 0.0), [0.75, 0.25])
    # r = 1: (1 + 2) / 4 t = ..., f = (3, 1) 3 / 4 - 1 = (1.25, -.25), so one value holds it all.
    np.testing.assert_allclose(water_filling([3, 1], 1.0, 0.5), [1, 0])
    np.testing.assert_allclose(water_filling([2, 2, 0], 0.5, 0.25), [0.5, 0.5, 0])
    np.testing.assert_allclose(water_filling([0, 0, 0], 0.5, 0.25), [1 / 3] * 3)
    np.testing.assert_allclose(water_filling([0, 0, 1e-300], 0.5, 0.25), [0, 0, 1])
    np.testing.assert_allclose(water_filling([1e300, 1e300], 0.5, 0.25), [0.5, 0.5])


@pytest.mark.slow
@given(some_counts, probabilities())
def test_one_part_is_water_filling(counts, pq):
    found = pooled_supports([(counts, *pq)])
    np.testing.assert_allclose(found, water_filling(counts, *pq), atol=1e-12)


@pytest.mark.slow
@given(collections())
def test_pooled_supports_are_optimal(parts):
    f = pooled_supports(parts)
    assert f.min() >= 0
    assert f.sum() == pytest.approx(1, abs=1e-12)
    if any(c.any() for c, _, _ in parts):
        assert kkt_residual(parts, f) < 1e-12


@pytest.mark.slow
@given(collections(), st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_pooled_supports_beat_random_points_and_know_no_labels(parts, seed, random):
    found = pooled_supports(parts)
    best = log_likelihood(parts, found)
    total = sum(c.sum() for c, _, _ in parts)
    others = np.random.default_rng(seed).dirichlet(np.full(found.size, 0.5), 20)
    for f in (*others, *(0.99 * found + 0.01 * others)):
        assert log_likelihood(parts, f) <= best + 1e-12 * (1 + abs(best) + total)
    order = random.sample(range(found.size), found.size)
    moved = [(c[order], p, q) for c, p, q in reversed(parts)]
    np.testing.assert_allclose(pooled_supports(moved), found[order], atol=1e-11)


def test_pooling_equal_collections_adds_their_counts():
    (c, p, q), (d, _, _) = noisy_supports(20, 1.0, 5000, 1), noisy_supports(20, 1.0, 5000, 2)
    together = water_filling(c + d, p, q)
    np.testing.assert_allclose(pooled_supports([(c, p, q), (d, p, q)]), together, atol=1e-12)


def test_pooling_many_values_and_very_different_parts():
    parts = [noisy_supports(300, e, n, 3, 0.5) for e, n in ((0.1, 10**6), (4.0, 2000), (1.0, 10))]
    f = pooled_supports([*parts, (np.zeros(300), 1.0, 0.0)])
    assert kkt_residual(parts, f) < 1e-12


@pytest.mark.parametrize(
    ("k", "epsilon", "p"), [(4, 2, None), (10, 2, 0.5), (100, 4, None), (50, 4, 0.5), (40, 3, 0.5)]
)
def test_the_iteration_converges_to_the_closed_form(k, epsilon, p):
    counts, p, q = noisy_supports(k, epsilon, 20_000, 7, p)
    exact = water_filling(counts, p, q)
    result = iterate(counts, pure_channel(k, p, q), iterations=400_000, tolerance=1e-15)
    assert result.converged
    np.testing.assert_allclose(result.frequencies, exact, atol=1e-9)


@st.composite
def channels(draw):
    k, m = draw(st.integers(2, 6)), draw(st.integers(2, 9))
    matrix = draw(arrays(np.float64, (k, m), elements=st.floats(0.01, 1)))
    if draw(st.booleans()):
        matrix /= matrix.sum(axis=1, keepdims=True)
    counts = draw(arrays(np.float64, m, elements=st.integers(0, 100).map(float)))
    return counts, matrix


@pytest.mark.slow
@given(channels(), st.integers(0, 2**32))
def test_every_step_climbs_and_stays_on_the_simplex(case, seed):
    counts, matrix = case
    start = np.random.default_rng(seed).dirichlet(np.full(len(matrix), 5.0)) + 0.1
    start /= start.sum()
    likelihood = [counts @ np.log(start @ matrix)]
    for steps in range(1, 8):
        f = iterate(counts, matrix, iterations=steps, tolerance=0, start=start).frequencies
        assert f.min() >= 0
        assert f.sum() == pytest.approx(1, abs=1e-12)
        likelihood.append(counts @ np.log(f @ matrix))
    assert np.all(np.diff(likelihood) >= -1e-12 * (1 + np.abs(likelihood[0])))


@pytest.mark.slow
@given(channels(), st.randoms(use_true_random=False))
def test_the_iteration_knows_no_labels(case, random):
    counts, matrix = case
    k, m = matrix.shape
    rows, columns = random.sample(range(k), k), random.sample(range(m), m)
    found = iterate(counts, matrix, iterations=20).frequencies
    moved = iterate(counts[columns], matrix[rows][:, columns], iterations=20).frequencies
    np.testing.assert_allclose(moved, found[rows], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_channel_with_more_outputs_than_inputs(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(7, 0.5), 3)
    counts = rng.multinomial(5000, np.array([0.6, 0.3, 0.1]) @ matrix)
    result = iterate(counts, matrix, tolerance=1e-15, iterations=100_000)
    assert result.converged
    best = minimize(
        lambda f: -counts @ np.log(f @ matrix) / 5000,
        np.full(3, 1 / 3),
        method="SLSQP",
        jac=lambda f: -matrix @ (counts / (f @ matrix)) / 5000,
        bounds=[(1e-12, 1)] * 3,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-15},
    )
    np.testing.assert_allclose(result.frequencies, best.x, atol=1e-6)


def test_stopping_rules():
    """Of the same change, from the strictest rule to the laxest: max_abs, mae, ..., mse."""
    counts, p, q = noisy_supports(20, 2.0, 20_000, 5)
    steps = {
        rule: iterate(counts, pure_channel(20, p, q), tolerance=1e-6, rule=rule) for rule in RULES
    }
    assert all(result.converged for result in steps.values())
    assert list(RULES) == ["max_abs", "mae", "max_squared", "mse"]
    assert steps["max_abs"].iterations >= steps["mae"].iterations > steps["max_squared"].iterations
    assert steps["max_squared"].iterations >= steps["mse"].iterations
    # max_squared < t^2 and max_abs < t are the same condition.
    squared = iterate(counts, pure_channel(20, p, q), tolerance=1e-12, rule="max_squared")
    assert squared.iterations == steps["max_abs"].iterations


def test_the_end_of_the_iteration():
    counts, p, q = noisy_supports(20, 1.0, 1000, 5)
    channel = pure_channel(20, p, q)
    few = iterate(counts, channel, iterations=3)
    assert (few.iterations, few.converged) == (3, False)
    first = iterate(counts, channel, iterations=1).frequencies
    twice = iterate(counts, channel, iterations=2, start=first)
    np.testing.assert_allclose(twice.frequencies, few.frequencies, atol=1e-15)
    nothing = iterate(np.zeros(20), channel)
    assert (nothing.iterations, nothing.converged) == (0, True)
    np.testing.assert_allclose(nothing.frequencies, 0.05)
    exact = iterate([3, 1], np.eye(2))
    np.testing.assert_allclose(exact.frequencies, [0.75, 0.25])


@settings(max_examples=20)
@given(st.integers(2, 8), probabilities())
def test_the_matrix_of_the_paper(k, pq):
    p, q = pq
    matrix = pure_channel(k, p, q)
    assert matrix.shape == (k, k)
    np.testing.assert_allclose(np.diag(matrix), p)
    np.testing.assert_allclose(matrix.sum(axis=1), p + (k - 1) * q)


def test_bad_input_is_refused():
    eye = np.eye(3)
    for counts in ([1, 2], [[1, 2, 3]], [1, 2, -1], [1, 2, math.nan], [1, 2, math.inf], "abc", []):
        with pytest.raises(InvalidArgument, match="'counts'"):
            iterate(counts, eye)
        if counts != [1, 2]:
            with pytest.raises(InvalidArgument, match="'counts'"):
                water_filling(counts, 0.5, 0.2)
    for channel in ([1, 2, 3], -eye, eye * math.nan, eye + math.inf, "a", np.zeros((0, 3))):
        with pytest.raises(InvalidArgument, match="'channel'"):
            iterate([1, 2, 3], channel)
    with pytest.raises(InvalidArgument, match="outputs that the channel can make"):
        iterate([1, 2, 3], [[0.5, 0.5, 0], [0.2, 0.8, 0]])
    for start in ([0.5, 0.5], [0.5, 0.5, 0], [0.5, 0.6, -0.1], [0.5, 0.4, 0.2], [math.nan] * 3):
        with pytest.raises(InvalidArgument, match="'start' must be 3 positive"):
            iterate([1, 2, 3], eye, start=start)
    for name, values in {
        "iterations": (0, -1, 1.5, True, "many"),
        "tolerance": (-1e-9, math.nan, math.inf, "small", None),
        "rule": ("max", None, 3, ["mse"]),
    }.items():
        for value in values:
            with pytest.raises(InvalidArgument, match=f"'{name}'"):
                iterate([1, 2, 3], eye, **{name: value})
    for p, q in ((0.5, 0.5), (0.2, 0.5), (1.1, 0.5), (0.5, -0.1), (math.nan, 0.1), ("p", "q")):
        with pytest.raises(InvalidArgument, match="'p, q'"):
            water_filling([1, 2], p, q)
        with pytest.raises(InvalidArgument, match="'p, q'"):
            pure_channel(3, p, q)
    good = ([1, 2], 0.5, 0.2)
    for parts in ([], None, [good, ([1, 2, 3], 0.5, 0.2)], [([1, 2], 0.5)], [([-1, 2], 0.5, 0.2)]):
        with pytest.raises(InvalidArgument, match="'parts'"):
            pooled_supports(parts)


@pytest.mark.parametrize("p", [None, 0.5])
def test_agrees_with_another_implementation(p):
    peer = pytest.importorskip("multi_freq_ldpy.estimators.Histogram_estimator")
    counts, p, q = noisy_supports(10, 3.0, 20_000, 11, p)
    channel = pure_channel(10, p, q)
    theirs = peer.IBU(10, channel, counts / counts.sum(), 100_000, 1e-15, "max_abs")
    np.testing.assert_allclose(theirs, water_filling(counts, p, q), atol=1e-9)
    for rule in RULES:
        theirs = peer.IBU(10, channel, counts / counts.sum(), 10_000, 1e-7, rule)
        ours = iterate(counts, channel, tolerance=1e-7, rule=rule).frequencies
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
