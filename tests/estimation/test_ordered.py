"""Answers that have an order: cumulative shares, the middle one, and shares of ranges."""

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.evidence import Evidence

LABELS = ["never", "rarely", "sometimes", "often", "daily"]
SHARES = np.array([0.35, 0.1, 0.25, 0.2, 0.1])


def tally(m, n, rng):
    """Reports of people with these shares, in a tally; every sixth skips if that is possible."""
    histogram = np.round(SHARES * n).astype(int)
    if m.domain.optional:
        histogram = np.append(histogram * 5 // 6, n - (histogram * 5 // 6).sum())
    counts = m.simulate(histogram, rng)
    return dn.Tally.of_counts(m, counts, int(histogram.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grr", "ss", "hr"])
@pytest.mark.parametrize("optional", [False, True])
def test_intervals_of_sums_cover(name, optional):
    """Null hypothesis: each covers with probability 0.93. They would not without covariances."""
    rng, runs, n = np.random.default_rng(1), 100, 6_000
    m = dn.mechanism(name, dn.Choice(LABELS, ordered=True, optional=optional), 1.0)
    up_to, middle, ranged = np.zeros(5), 0, 0
    for _ in range(runs):
        e = tally(m, n, rng).estimate("unbiased")
        low, high = e.cumulative().quantities["cumulative"].intervals.T
        truth = np.cumsum(SHARES)
        up_to += (low <= truth + 1e-3) & (truth - 1e-3 <= high)
        low, high = e.range("rarely", "often").interval
        ranged += low <= SHARES[1:4].sum() <= high
        first, last = (LABELS.index(label) for label in e.median.interval)
        middle += first <= 2 <= last
    for hits in (*up_to, middle, ranged):
        assert binom.cdf(hits, runs, 0.93) > 1e-7, (hits / runs, up_to)


def test_variances_of_sums_are_those_of_simulated_counts():
    """Null hypothesis: estimates of a sum have the stated variance, so their squares chi-square."""
    from scipy.stats import chi2

    rng, runs, n = np.random.default_rng(2), 300, 5_000
    m = dn.OUE(dn.Choice(LABELS, ordered=True), 1.0)
    row = np.array([[1.0, 1.0, 0.0, 0.0, -2.0]])
    found = [Evidence.of([tally(m, n, rng)]) for _ in range(runs)]
    stated = float(m.sum_variances(row)[0] @ SHARES) / n
    square = sum((row @ (one.unbiased - SHARES))[0] ** 2 for one in found) / stated
    assert 1e-7 < chi2.cdf(square, runs) < 1 - 1e-7
    assert float(found[0].sum_variances(row)[0]) == pytest.approx(stated, rel=0.1)


def test_ordered_answers_have_cumulative_shares_and_a_middle():
    m = dn.GRR(dn.Choice(LABELS, ordered=True), 3.0)
    e = tally(m, 20_000, np.random.default_rng(3)).estimate()
    up_to = e.cumulative()
    assert up_to.labels == tuple(LABELS)
    found = up_to.quantities["cumulative"]
    assert found.values == pytest.approx(np.cumsum(e.frequencies))
    assert found.values[-1] == 1
    assert found.intervals[-1].tolist() == [1, 1]
    assert list(up_to.to_pandas()) == ["value", "cumulative", "standard_error", "low", "high"]
    assert e.median.answer == "sometimes"
    assert e.median.interval == ("sometimes", "sometimes")
    assert e.remarks == ["The median answer is sometimes; its 95 % interval holds no other answer."]
    assert e.range("never", "daily") == ("never to daily", 1.0, 0.0, (1.0, 1.0))
    one, row = e.range("rarely", "rarely"), 1
    assert one.value == pytest.approx(e.frequencies[row])
    assert one.standard_error == pytest.approx(e.standard_errors[row], rel=0.05)


def test_ranges_of_bins_come_from_several_mechanisms():
    bins, rng = dn.Bins([10, 20, 30, 40]), np.random.default_rng(4)
    parts = [tally(m, 10_000, rng) for m in (dn.OUE(bins, 1.0), dn.GRR(bins, 2.0))]
    e = dn.combine(parts, simultaneous=True)
    first, last = e.labels[1], e.labels[3]
    found = e.range(first, last)
    assert abs(found.value - SHARES[1:4].sum()) < 6 * found.standard_error
    assert found.interval[0] < found.value < found.interval[1]
    alone = dn.combine(parts).range(first, last)
    assert found.interval[0] < alone.interval[0]
    with pytest.raises(InvalidArgument, match="no answer before"):
        e.range(last, first)
    with pytest.raises(InvalidArgument, match="'first' must be one of below 10"):
        e.range("10", last)


def test_answers_without_an_order_are_refused():
    e = tally(dn.GRR(LABELS, 1.0), 1_000, np.random.default_rng(5)).estimate()
    for action in (e.cumulative, lambda: e.median, lambda: e.range("never", "daily")):
        with pytest.raises(InvalidArgument, match="have an order"):
            action()
