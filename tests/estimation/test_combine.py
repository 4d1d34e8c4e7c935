"""Reports of one question with several epsilons and mechanisms."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

import deniable as dn
from deniable.estimation.frequencies.evidence import Evidence
from deniable.estimation.frequencies.ibu import pooled_supports
from deniable.estimation.frequencies.mle.likelihood import loglikelihood

K = 6
SHARES = np.array([0.4, 0.25, 0.2, 0.1, 0.04, 0.01])
MIX = [(dn.GRR(K, 0.5), 3_000), (dn.OUE(K, 2.0), 1_000), (dn.HR(K, 1.0), 2_000)]


def collect(rng):
    """Respondents are dealt to the parts by chance; their answers are fixed."""
    n = sum(size for _, size in MIX)
    answers = rng.permutation(np.repeat(np.arange(K), np.rint(SHARES * n).astype(int)))
    cuts = np.cumsum([0] + [size for _, size in MIX])
    return [
        m.privatize(answers[start:stop], rng, threads=1)
        for (m, _), start, stop in zip(MIX, cuts, cuts[1:], strict=False)
    ]


@pytest.fixture(scope="module")
def collections():
    rng = np.random.default_rng(21)
    return [collect(rng) for _ in range(400)]


def tallies(parts):
    return [part.mechanism.tally(part) for part in parts]


@pytest.mark.slow
def test_unbiased_with_the_stated_variance(collections):
    """Null hypothesis: errors are normal with the stated variance (chi-square, value by value)."""
    evidence = [Evidence.of(tallies(parts)) for parts in collections]
    errors = np.array([e.unbiased for e in evidence]) - SHARES
    line = evidence[0].line.at(SHARES)
    variance = line + evidence[0].between * SHARES * (1 - SHARES)
    runs = len(errors)
    mean = runs * errors.mean(axis=0) ** 2 / variance
    assert chi2.sf(mean, 1).min() > 1e-7
    spread = (errors**2).sum(axis=0) / variance
    assert min(chi2.sf(spread, runs).min(), chi2.cdf(spread, runs).min()) > 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("method", ["unbiased", "projected", "bayes", "likelihood"])
def test_intervals_cover(collections, method):
    """Null hypothesis: 95 % intervals cover each value with at least 0.92."""
    hits = np.zeros(K)
    some = collections[: 200 if method in ("likelihood", "bayes") else None]
    for parts in some:
        low, high = dn.combine(parts, method).intervals.T
        hits += (low <= SHARES) & (high >= SHARES)
    runs = len(some)
    assert binom.cdf(hits, runs, 0.92).min() > 1e-7


def test_together_is_better_than_any_part(collections):
    parts = collections[0]
    for method in ("unbiased", "likelihood"):
        joint = dn.combine(parts, method)
        alone = [dn.combine([part], method) for part in parts]
        assert joint.n == sum(e.n for e in alone)
        assert joint.standard_errors.mean() < min(e.standard_errors.mean() for e in alone)


def test_the_joint_maximum_is_more_likely_than_anything_else(collections):
    parts = collections[1]
    joint = dn.combine(parts, "likelihood")
    assert joint.certificate < 1e-8
    best = loglikelihood(parts, joint.frequencies)
    for name in ("bayes", "ibu", "projected", "normalized", "james-stein"):
        assert loglikelihood(parts, dn.combine(parts, name).frequencies) <= best + 1e-8


def test_ibu_pools_the_supports_of_all_parts(collections):
    parts = tallies(collections[2])
    pooled = pooled_supports(
        [
            (t.mechanism.supports(t.counts, t.n), float(t.mechanism.p), float(t.mechanism.q))
            for t in parts
        ]
    )
    assert dn.combine(parts, "ibu").frequencies == pytest.approx(pooled, abs=1e-12)


@pytest.mark.parametrize(
    ("small", "large"), [((8.0, 100), (1.0, 100_000)), ((6.0, 1_000), (2.0, 100_000))]
)
def test_a_small_part_does_not_spoil_a_large_one(small, large):
    """However precise its reports, it is a small sample."""
    stated = []
    for sizes in ([small, large], [large]):
        tallies = []
        for epsilon, n in sizes:
            m = dn.GRR(5, epsilon)
            tallies.append(m.tally(m.privatize(np.arange(n) % 5, np.random.default_rng(1))))
        stated.append(dn.combine(tallies, "unbiased").standard_errors.mean())
    assert stated[0] <= stated[1] * 1.001


def test_order_does_not_matter_and_one_part_is_itself(collections):
    parts = tallies(collections[3])
    forth, back = dn.combine(parts), dn.combine(parts[::-1])
    assert forth.frequencies == pytest.approx(back.frequencies, abs=1e-9)
    assert dn.combine(parts[:1]).to_json() == parts[0].estimate().to_json()


def test_equal_parts_count_as_one_collection():
    m = dn.OUE(K, 1.0)
    reports = m.privatize(np.repeat(np.arange(K), 200), np.random.default_rng(1))
    whole = m.tally(reports).estimate("unbiased")
    for cut in (lambda part: part, m.tally):
        halves = dn.combine([cut(reports[:600]), cut(reports[600:])], "unbiased")
        assert halves.to_json() == whole.to_json()
