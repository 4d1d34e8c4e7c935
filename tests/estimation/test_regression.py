"""Regression on the cells of cohorts: exact without noise, honest with it, and what it refuses."""

import numpy as np
import pytest
from scipy.stats import binom, chi2, t

import deniable as dn
from deniable.core.tally import Tally
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.regression.normal import CohortTable
from deniable.estimation.frequencies.regression.spread import own_excess
from deniable.estimation.frequencies.solvers import Singular, inverse, non_negative

METHODS = ("least-squares", "nnls", "lasso")
KNOWN = [f"known {i}" for i in range(30)]
UNKNOWN = [f"unknown {i}" for i in range(200)]


class Bloom(dn.CMS):
    """Two hash functions a cohort."""

    name = "bloom"
    hashes = 2


def open_tally(m, people, candidates, rng):
    """The tally of these people (a number for each text), asked about the candidates."""
    values = [text for text, number in people.items() for _ in range(number)]
    counts = m.tally(m.privatize(values, rng))
    return Tally.of_counts(m.among(candidates), counts.counts, counts.n)


def expected_tally(m, f, n):
    """The counts that are expected from the values f, all other answers spread over all cells."""
    table = m.cell_table()
    x = np.zeros((m.cohorts, m.width))
    for cohort, cells in enumerate(table):
        for value, share in enumerate(f[: table.shape[2]]):
            x[cohort, np.unique(cells[:, value])] += share
    x += (1 - f[: table.shape[2]].sum()) * (1 - (1 - 1 / m.width) ** m.hashes)
    sizes = np.linspace(1, 2, m.cohorts)[:, None]
    sizes *= n / sizes.sum()
    p, q = float(m.inner.p), float(m.inner.q)
    tally = Tally(m)
    tally.counts, tally.n = np.hstack([sizes, sizes * (q + (p - q) * x)]).ravel(), n  # no integers
    return tally


@pytest.mark.parametrize("family", [dn.ORR, dn.CMS, Bloom])
def test_without_noise_the_frequencies_are_recovered(family):
    f = np.random.default_rng(1).dirichlet(np.ones(31))
    m = family(dn.Text(), 2.0, cohorts=8, width=16).among(KNOWN)
    listed = family(30, 2.0, cohorts=8, width=16)
    for mechanism, truth in ((m, f), (listed, f[:30] / f[:30].sum())):
        tally = expected_tally(mechanism, truth, 10_000)
        for method in ("least-squares", "nnls"):
            e = tally.estimate(method)
            np.testing.assert_allclose(e.frequencies, truth, atol=1e-12)
            assert e.errors == "regression"


@pytest.mark.slow
@pytest.mark.parametrize("family", [dn.ORR, dn.CMS])
def test_least_squares_is_unbiased_and_its_intervals_cover(family):
    """150 runs with other hash functions; a third of the answers are not among the candidates.

    Null hypotheses, for each of 31 frequencies: mean error 0 (Student's t), squared errors as the
    standard errors say (chi-square), coverage within 0.02 of 95 % (exact binomial). Each fails
    with probability 2e-9.
    """
    runs, rng = 150, np.random.default_rng(7)
    people = dict.fromkeys(KNOWN, 440) | dict.fromkeys(UNKNOWN, 34)
    n = sum(people.values())
    truth = np.append(np.full(30, 440 / n), 6_800 / n)
    errors, scaled, covered = np.empty((3, runs, 31))
    for run in range(runs):
        m = family(dn.Text(), 2.0, cohorts=64, width=32, seed=run)
        e = open_tally(m, people, KNOWN, rng).estimate("least-squares")
        errors[run] = e.frequencies - truth
        scaled[run] = (errors[run] / e.standard_errors) ** 2
        covered[run] = (e.intervals[:, 0] <= truth) & (truth <= e.intervals[:, 1])
    means = errors.mean(axis=0) / errors.std(axis=0, ddof=1) * np.sqrt(runs)
    assert 2 * t.sf(np.abs(means), runs - 1).min() > 2e-9
    squares = scaled.sum(axis=0)
    assert np.minimum(chi2.cdf(squares, runs), chi2.sf(squares, runs)).min() > 1e-9
    hits = covered.sum(axis=0)
    assert min(binom.cdf(hits, runs, 0.93).min(), binom.sf(hits - 1, runs, 0.97).min()) > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("family", [dn.ORR, dn.CMS, dn.HCMS])
@pytest.mark.parametrize("population", ["respondents", "everyone"])
def test_errors_of_a_frequent_answer_tell_respondents_from_everyone(family, population):
    """Squared errors of f = 0.5 and of the outside: as the standard errors say (chi-square).

    At epsilon 4 the sampling of respondents is up to half of the variance. Null hypothesis: the
    variance is right up to 10 %.
    """
    runs, n, rng = 300, 2_000, np.random.default_rng(8)
    shares = np.append([0.5, 0.1, 0.05], np.full(35, 0.01))
    texts = [*KNOWN[:3], *UNKNOWN[:35]]
    truth = np.append(shares[:3], 0.35)
    squares = np.zeros(4)
    for run in range(runs):
        numbers = rng.multinomial(n, shares) if population == "everyone" else n * shares
        people = dict(zip(texts, np.rint(numbers).astype(int).tolist(), strict=True))
        m = family(dn.Text(), 4.0, cohorts=32, width=16, seed=run)
        tally = open_tally(m, people, KNOWN[:3], rng)
        e = tally.estimate("least-squares", population=population)
        squares += ((e.frequencies - truth) / e.standard_errors) ** 2
    assert chi2.cdf(squares * 1.1, runs).min() > 1e-8
    assert chi2.sf(squares / 1.1, runs).min() > 1e-8


def test_a_frequent_answer_has_the_variance_of_its_own_cells():
    """At f = 1: own p (1 - p) for GRR (all reports are of one value), exact for one cohort."""
    m = dn.ORR(dn.Text(), 1.0, cohorts=1, width=4).among(["a"])
    p, q, gain = float(m.inner.p), float(m.inner.q), float(m.inner.p - m.inner.q)
    pooled = (p * (1 - p) + 3 * q * (1 - q)) / 3 / gain**2 / (3 / 4)
    assert pooled + own_excess(m) == pytest.approx(p * (1 - p) / gain**2 / (3 / 4) ** 2)
    assert own_excess(dn.CMS(9, 1.0)) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_collisions_of_candidates_are_taken_out():
    """Few cohorts and many reports: what is left of the squared error is far below a tenth."""
    people = dict(zip(KNOWN[:10], (300_000, 200_000, 150_000, *[50_000] * 7), strict=True))
    n, rng, squares = sum(people.values()), np.random.default_rng(9), {}
    truth = np.append(np.array(list(people.values())) / n, np.zeros(21))
    for seed in range(2):
        m = dn.ORR(dn.Text(), 2.0, cohorts=16, width=32, seed=seed)
        tally = open_tally(m, people, KNOWN, rng)
        for method in ("unbiased", *METHODS):
            e = tally.estimate(method)
            squares[method] = squares.get(method, 0) + np.sum((e.frequencies - truth)[:-1] ** 2)
    assert squares["least-squares"] < squares["unbiased"] / 20
    assert squares["nnls"] < squares["least-squares"]
    assert squares["lasso"] < squares["least-squares"]


@pytest.mark.slow
@pytest.mark.parametrize("sum_to_one", [False, True])
@pytest.mark.parametrize("size", [1, 7, 200])
def test_non_negative_least_squares_is_optimal(size, sum_to_one):
    """The conditions of Karush, Kuhn and Tucker, which are enough for a convex problem."""
    rng = np.random.default_rng(size)
    for _ in range(20):
        columns = rng.normal(size=(size + 3, size))
        gram, linear = columns.T @ columns, columns.T @ rng.normal(size=size + 3)
        f = non_negative(gram, linear, sum_to_one=sum_to_one)
        gradient = gram @ f - linear
        multiplier = f @ gradient if sum_to_one else 0.0
        assert f.min() >= 0
        assert not sum_to_one or f.sum() == pytest.approx(1, abs=1e-9)
        assert (gradient - multiplier).min() > -1e-8
        assert np.abs((gradient - multiplier)[f > 0]).max(initial=0) < 1e-8


def test_nnls_is_a_distribution_and_the_best_one():
    m = dn.CMS(dn.Text(), 1.0, cohorts=32, width=16)
    people = {KNOWN[0]: 1_500, KNOWN[1]: 500}
    tally = open_tally(m, people, KNOWN, np.random.default_rng(3))
    free, f = (tally.estimate(method) for method in ("least-squares", "nnls"))
    assert free.frequencies.min() < 0 <= f.frequencies.min()
    assert free.frequencies.sum() == pytest.approx(1)
    assert f.frequencies.sum() == pytest.approx(1)
    cells = CohortTable(tally.mechanism, tally.counts)
    known = np.arange(30)

    def squares(x):
        return np.sum(cells.residuals(known, x[:-1]) ** 2)

    projected = np.maximum(free.frequencies, 0) / np.maximum(free.frequencies, 0).sum()
    assert squares(free.frequencies) < squares(f.frequencies) < squares(projected)


@pytest.mark.slow
def test_lasso_reports_no_absent_candidate_more_often_than_it_says():
    """100 runs, 2,000 candidates of which 20 occur, beside one frequent answer that is unknown.

    Null hypothesis: a run reports an absent candidate with probability at most 0.05 (exact
    binomial, p-value 1e-7).
    """
    runs, rng = 100, np.random.default_rng(10)
    candidates = [f"candidate {i}" for i in range(2_000)]
    people = dict(zip(candidates[:20], [1_500] * 4 + [100] * 16, strict=True)) | {"hidden": 3_000}
    wrong, found = 0, np.zeros(4)
    for run in range(runs):
        m = dn.ORR(dn.Text(), 2.0, cohorts=64, width=32, seed=run)
        f = open_tally(m, people, candidates, rng).estimate("lasso").frequencies
        wrong += bool(np.any(f[20:-1]))
        found += f[:4] > 0
    assert binom.sf(wrong - 1, runs, 0.05) > 1e-7
    assert found.min() > 0.9 * runs


@pytest.mark.slow
def test_lasso_of_many_candidates_and_what_it_says_of_the_dropped():
    people = dict(zip(KNOWN, [4_000] * 5 + [0] * 25, strict=True)) | dict.fromkeys(UNKNOWN, 50)
    m = dn.ORR(dn.Text(), 2.0, cohorts=64, width=128)
    candidates = [*KNOWN, *(f"absent {i}" for i in range(49_970))]
    tally = open_tally(m, people, candidates, np.random.default_rng(11))
    e = tally.estimate("lasso")
    assert np.all(e.frequencies[:5] > 0.08)
    assert e.frequencies.sum() == pytest.approx(1)
    dropped = e.frequencies == 0
    assert dropped.sum() >= 49_990
    assert np.all(e.intervals[dropped, 0] == 0)
    assert np.mean(e.intervals[dropped, 1] > 0) > 0.9
    nothing = tally.estimate("lasso", penalty=10.0)
    assert np.flatnonzero(nothing.frequencies).tolist() == [50_000]
    more = tally.estimate("lasso", significance=0.9999, penalty=0)
    assert np.count_nonzero(more.frequencies) >= np.count_nonzero(e.frequencies)


def test_every_candidate_present_and_nothing_outside():
    people = dict.fromkeys(KNOWN[:5], 8_000)
    for family in (dn.ORR, dn.CMS, dn.HCMS):
        m = family(dn.Text(), 3.0, cohorts=32, width=32)
        tally = open_tally(m, people, KNOWN[:5], np.random.default_rng(12))
        for method in METHODS:
            e = tally.estimate(method)
            np.testing.assert_allclose(e.frequencies, [*[0.2] * 5, 0], atol=0.05)


def test_lasso_needs_several_cohorts():
    m = dn.ORR(dn.Text(), 1.0, cohorts=15, width=4)
    tally = open_tally(m, {"a": 100}, ["a", "b"], np.random.default_rng(1))
    with pytest.raises(InvalidArgument, match="fewer than 16 cohorts"):
        tally.estimate("lasso")


def test_lasso_that_finds_nothing_knows_nothing_of_the_outside():
    m = dn.ORR(dn.Text(), 1.0, cohorts=64, width=4)
    counts = {f"w{i}": 10 for i in range(200)}
    tally = open_tally(m, counts, [f"w{i}" for i in range(100)], np.random.default_rng(1))
    e = tally.estimate("lasso", significance=1e-8)
    assert e.frequencies[-1] == 1
    assert e.intervals[-1, 0] <= 0.5
    assert e.standard_errors[-1] > 0.1


def test_what_is_refused():
    m = dn.ORR(["a", "b", "c"], 1.0, cohorts=16, width=4)
    tally = m.tally(m.privatize(["a", "b", "c"] * 50, np.random.default_rng(1)))
    other = dn.CMS(["a", "b", "c"], 1.0)
    second = other.tally(other.privatize(["a"] * 9))
    grr = dn.GRR(["a", "b", "c"], 1.0)
    for method in METHODS:
        with pytest.raises(InvalidArgument, match=f"one mechanism.*{method}"):
            dn.combine([tally, second], method)
        with pytest.raises(InvalidArgument, match=f"cohorts.*{method}"):
            grr.tally(grr.privatize(["a"])).estimate(method)
        with pytest.raises(InvalidArgument, match="errors of its own"):
            tally.estimate(method, errors="bootstrap")
    for wrong in (0, 1, -0.1, float("nan"), "0.05"):
        with pytest.raises(InvalidArgument, match="'significance' must be"):
            tally.estimate("lasso", significance=wrong)
    for wrong in (-1, float("inf"), float("nan"), "1"):
        with pytest.raises(InvalidArgument, match="'penalty' must be"):
            tally.estimate("lasso", penalty=wrong)
    with pytest.raises(InvalidArgument, match="used with the method 'least-squares' or"):
        tally.estimate("unbiased", errors="regression")


def test_candidates_that_cannot_be_told_apart_are_refused():
    m = dn.ORR(dn.Text(), 1.0, cohorts=2, width=4)
    counts = m.tally(m.privatize(["a"] * 500, np.random.default_rng(1))).counts
    many = [f"c{i}" for i in range(9)]
    for method in ("least-squares", "nnls"):
        with pytest.raises(InvalidArgument, match=r"'lasso' or 'unbiased'.* 10 answers"):
            Tally.of_counts(m.among(many), counts, 500).estimate(method)
        huge = [f"c{i}" for i in range(5_000)]
        with pytest.raises(InvalidArgument, match="more than 4095 candidates"):
            Tally.of_counts(m.among(huge), counts, 500).estimate(method)
    with pytest.raises(Singular):
        inverse(np.ones((2, 2)))
