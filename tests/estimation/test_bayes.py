"""Empirical Bayes: always a distribution, never far from the truth, and intervals that cover."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import deniable as dn
from deniable.core.tally import Tally
from deniable.estimation.frequencies.bayes import bayes_estimate, posterior
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.simplex import project


def simulated(m, people, rng):
    return Tally.of_counts(m, m.simulate(people, rng), int(people.sum()))


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=30),
    st.floats(1e-9, 1.0),
    st.floats(-0.9, 3.0),
)
def test_always_a_distribution(x, a, slope):
    """Whatever the reports say; a variance is positive on 0..1."""
    k = len(x)
    found = posterior(np.array(x), np.full(k, a), np.full(k, slope * a))
    assert found.frequencies.min() >= 0
    assert found.frequencies.sum() == pytest.approx(1)
    assert np.all(found.standard_errors >= 0)
    alone = np.tile([0.0, 1.0], (k, 1))
    low, high = found.intervals(0.95, alone).T
    assert np.all((low >= 0) & (low <= high) & (high <= 1))


def test_labels_do_not_matter():
    rng = np.random.default_rng(2)
    x, a = rng.normal(0.02, 0.05, 50), rng.uniform(1e-3, 2e-3, 50)
    order = rng.permutation(50)
    straight, mixed = posterior(x, a, 0 * a), posterior(x[order], a[order], 0 * a)
    assert mixed.frequencies == pytest.approx(straight.frequencies[order], abs=1e-12)


def test_two_values_are_left_to_the_reports():
    m = dn.GRR(2, 1.0)
    tally = m.tally(m.privatize([0] * 300 + [1] * 700, np.random.default_rng(1)))
    assert tally.estimate().frequencies == pytest.approx(tally.estimate("projected").frequencies)


def test_a_strong_signal_is_believed():
    m, truth = dn.GRR(30, 4.0), np.random.default_rng(1).dirichlet(np.ones(30))
    tally = simulated(m, np.rint(truth * 10**7).astype(int), np.random.default_rng(2))
    e, unbiased = tally.estimate(), tally.estimate("unbiased")
    assert np.all(np.abs(e.frequencies - unbiased.frequencies) < 0.5 * unbiased.standard_errors)


def test_noise_is_not_believed():
    """1024 equal values under noise of a hundred times their frequency."""
    m = dn.OUE(1024, 0.5)
    tally = simulated(m, np.full(1024, 2), np.random.default_rng(3))
    ours, theirs = (
        np.linalg.norm(tally.estimate(name).frequencies - 1 / 1024) for name in (None, "projected")
    )
    assert ours < theirs / 10


@pytest.mark.slow
def test_reports_sharpen_the_counts():
    """Five values of 100, epsilon 4: the likelihood knows more than the counts of SUE."""
    m, truth = dn.SUE(100, 4.0), np.where(np.arange(100) < 5, 0.2, 0.0)
    answers = np.repeat(np.arange(5), 4_000)
    errors = {"reports": 0.0, "counts": 0.0, "projected": 0.0}
    rng = np.random.default_rng(4)
    for _ in range(10):
        reports = m.privatize(answers, rng)
        tally = m.tally(reports)
        found = {
            "reports": m.estimate(reports),
            "counts": tally.estimate(),
            "projected": tally.estimate("projected"),
        }
        for name, e in found.items():
            errors[name] += float(((e.frequencies - truth) ** 2).sum())
    assert errors["reports"] < 0.8 * errors["counts"]
    assert errors["counts"] < 0.8 * errors["projected"]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [4.0, 6.0, 8.0])
def test_few_reports_of_a_large_epsilon_are_not_oversharpened(epsilon):
    """There the likelihood is not quadratic, and its one-step estimate is far off."""
    m, truth = dn.SUE(50, epsilon), np.where(np.arange(50) < 5, 0.2, 0.0)
    rng, errors = np.random.default_rng(7), {"bayes": 0.0, "projected": 0.0}
    for _ in range(10):
        reports = m.privatize(np.repeat(np.arange(5), 400), rng)
        for name in errors:
            f = m.estimate(reports, name).frequencies
            errors[name] += float(((f - truth) ** 2).sum())
    assert errors["bayes"] < errors["projected"]


@pytest.mark.parametrize(("k", "epsilon", "n"), [(40, 30.0, 5), (3, 20.0, 100), (100, 8.0, 10**6)])
def test_noise_that_is_next_to_nothing_is_affordable(k, epsilon, n):
    m = dn.GRR(k, epsilon)
    people = np.bincount(np.arange(n) % k, minlength=k)
    e = simulated(m, people, np.random.default_rng(1)).estimate()
    assert e.frequencies == pytest.approx(people / n, abs=1e-2)


@pytest.mark.slow
def test_the_default_beats_projection_in_a_large_domain():
    size = 200_000
    m = dn.HR(size, 2.0)
    people = np.rint(100_000 / np.arange(1, size + 1)).astype(int)
    e = simulated(m, people, np.random.default_rng(5)).estimate()
    truth = people / people.sum()
    worse = project(simulated(m, people, np.random.default_rng(5)).estimate("unbiased").frequencies)
    assert np.sum((e.frequencies - truth) ** 2) < np.sum((worse - truth) ** 2)


POPULATIONS = {
    "zipf": 1 / np.arange(1, 65),
    "uniform": np.ones(64),
    "spike": np.where(np.arange(64) < 4, 1.0, 0.0),
    "dirichlet": np.random.default_rng(0).dirichlet(np.ones(64)),
}


@pytest.mark.slow
def test_posterior_intervals_cover_on_average_over_the_values():
    """Null hypothesis: the interval of a value drawn by chance covers with level - 0.02 or more.

    One value of each collection is looked at, so that the hits are independent.
    """
    rng, hits, runs, n = np.random.default_rng(6), {0.95: 0, 0.99: 0}, 0, 5_000
    for shape in POPULATIONS.values():
        people = np.diff(np.rint(np.cumsum(shape / shape.sum()) * n).astype(int), prepend=0)
        for name in ("grr", "oue", "hr"):
            for epsilon in (0.5, 1.0, 2.0, 4.0) * 12:
                tally = simulated(dn.mechanism(name, 64, epsilon), people, rng)
                found = bayes_estimate(Evidence.of([tally]))
                value = rng.integers(64)
                runs += 1
                for level in hits:
                    low, high = found.own(level, False).intervals[value]
                    hits[level] += bool(low <= people[value] / n <= high)
    for level, covered in hits.items():
        assert binom.cdf(covered, runs, level - 0.02) > 1e-7, (level, covered / runs)
