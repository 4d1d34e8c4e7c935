"""One randomised sign of a random row: HRR and S-Hist."""

from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.mle import likelihood
from deniable.estimation.frequencies.mle.likelihood import maximise
from deniable.randomness import ByteCoins, Keystream

MEMBERS = [
    dn.HRR(2, 1.0),
    dn.HRR(5, 0.5),
    dn.HRR(8, 3.0),
    dn.SHist(2, 1.0, b=2),
    dn.SHist(5, 2.0),
    dn.SHist(5, 1.0, b=32, seed=7),
    dn.SHist(3, 4.0, b=8, seed=-1),
]


@pytest.mark.parametrize("m", MEMBERS, ids=repr)
def test_half_of_the_rows_agree_for_every_pair(m):
    channel, k = m.channel(), m.domain.size
    for u in range(k):
        supports = [Fraction(0)] * k
        for weight, y in zip(channel.matrix[u], channel.outputs, strict=True):
            for v, s in enumerate(m.supports(m.count(m.pack([y])), 1).tolist()):
                supports[v] += weight * s
        assert supports == [m.p if v == u else m.q for v in range(k)]
    assert channel.ratio == m.guarantee.ratio == m.p / (1 - m.p)


@pytest.mark.parametrize("k", [2, 5, 8, 9])
def test_hrr_is_the_succinct_histogram_in_order(k):
    one, other = dn.HRR(k, 1.5), dn.SHist(k, 1.5, seed=-1)
    assert one.channel() == other.channel()
    values = np.arange(1000) % k
    a, b = (m.privatize(values, np.random.default_rng(3)) for m in (one, other))
    np.testing.assert_array_equal(a.data, b.data)
    found = [m.tally(r).estimate().frequencies for m, r in ((one, a), (other, b))]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("m", [dn.HRR(1000, 1.0), dn.SHist(1000, 1.0, b=1 << 16)], ids=repr)
def test_many_reports_are_those_of_one_by_one(m):
    """The kernel reads the words that `report` reads."""
    values = np.arange(5000, dtype=np.uint32) % 1000
    out = np.empty(5000, dtype=m.dtype)
    m.fill(values, out, Keystream(bytes(32)))
    coins = Keystream(bytes(32))
    single = [m.report(v, ByteCoins(coins.bytes(16))) for v in values.tolist()]
    np.testing.assert_array_equal(out, single)


def test_columns_are_dealt_once_each():
    for k, b in ((2, 2), (21, 32), (21, 2048)):
        m = dn.SHist(k, 1.0, b=b, seed=9)
        columns = m.columns(np.arange(k))
        assert len(set(columns.tolist())) == k
        assert columns.max() < b
        assert m.bits_per_report == b.bit_length()
    assert dn.SHist(1000, 1.0).b == 1024
    assert dn.SHist(1024, 1.0).b == dn.HRR(1024, 1.0).rows == 1024


@pytest.mark.parametrize("b", [0, 3, 8, 12, 33, 1 << 32, -1, 2.0, "16"])
def test_a_wrong_number_of_rows_is_refused_by_name(b):
    with pytest.raises(InvalidArgument) as refusal:
        dn.SHist(9, 1.0, b=b)
    assert refusal.value.name == "b"


@pytest.mark.parametrize("seed", [-2, 1 << 32, 0.5])
def test_a_wrong_seed_is_refused_by_name(seed):
    with pytest.raises(InvalidArgument) as refusal:
        dn.SHist(9, 1.0, seed=seed)
    assert refusal.value.name == "seed"


def test_flipping_more_often_than_keeping_is_refused():
    with pytest.raises(InvalidArgument, match="supports its own value more than others"):
        dn.HRR(9, 1.0, keep=(1 << 63) - 1)
    with pytest.raises(InvalidArgument, match="such that epsilon"):
        dn.HRR(9, 1.0, keep=dn.HRR(9, 1.0).keep + 1)


@pytest.mark.parametrize("m", [dn.HRR(2**31 - 2, 1.0), dn.HRR(3 * 10**8, 1.0)], ids=repr)
def test_a_device_needs_no_table_for_a_huge_domain(m):
    values = [0, m.domain.size // 3, m.domain.size - 1] * 20
    reports = m.privatize(values, np.random.default_rng(1))
    assert reports.data.dtype == np.uint32
    assert int(reports.data.max()) < m.cells


def likelihoods(m, data):
    """P(report | value) of each report, reports x values, from the exact channel."""
    channel = m.channel()
    law = np.array(channel.matrix, dtype=np.float64).T
    place = {y: i for i, y in enumerate(channel.outputs)}
    return law[[place[y] for y in data.tolist()]]


@pytest.mark.slow
@pytest.mark.parametrize("m", [m for m in MEMBERS if m.domain.size > 2], ids=repr)
def test_the_maximum_of_the_likelihood_is_that_of_expectation_maximisation(m):
    values = np.minimum(np.arange(3000) % m.domain.size, np.arange(3000) % 3)
    reports = m.privatize(values, np.random.default_rng(8))
    w = likelihoods(m, reports.data)
    w, weights = np.unique(w, axis=0, return_counts=True)
    f = np.full(m.domain.size, 1 / m.domain.size)
    for _ in range(50_000):
        f = f * (weights / (w @ f) @ w) / len(reports)
    found = maximise([m.tally(reports)], tolerance=1e-13)
    np.testing.assert_allclose(found.frequencies, f, atol=1e-8)


@pytest.mark.parametrize("m", MEMBERS, ids=repr)
def test_transforms_equal_the_plain_sums(m):
    k = m.domain.size
    reports = m.privatize(np.arange(500) % k, np.random.default_rng(6))
    objective, _ = likelihood._open([reports], 1, 0)
    f = np.random.default_rng(0).dirichlet(np.ones(k))
    w = likelihoods(m, reports.data)
    x = w / (w @ f)[:, None]
    point = objective.at(f, curvature=True)
    np.testing.assert_allclose(point.gradient, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(point.curvature, (x**2).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(objective.information(f, 1 << 20), x.T @ x / 500, rtol=1e-11)


def test_every_method_of_supports_reads_the_counts():
    m = dn.SHist(20, 2.0, b=64)
    tally = m.tally(m.privatize(np.arange(20_000) % 4, np.random.default_rng(1)))
    for method in ("ibu", "likelihood", "bayes"):
        e = tally.estimate(method)
        assert abs(e.frequencies[:4] - 0.25).max() < 0.1  # more than 8 standard errors
        assert e.frequencies.sum() == pytest.approx(1)
