"""Densities: the likelihoods, the penalised maximum and its evidence, and EM."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import deniable as dn
from deniable.answers.number import GRID
from deniable.errors import InvalidArgument
from deniable.estimation.numbers.density import Counted, Linear, em, ems, penalised
from deniable.estimation.numbers.density.penalised import (
    GAIN,
    ORDERS,
    SLOPE,
    fits,
    fitted,
    smoothness,
    splines,
)
from deniable.mechanisms.numbers.bins import Binning
from deniable.privacy import exact_channel


def hill(k: int) -> np.ndarray:
    """A smooth density of k bins."""
    x = (np.arange(k) + 0.5) / k
    f = np.exp(-((x - 0.4) ** 2) / 0.05) + 0.3
    return f / f.sum()


def counted(f: np.ndarray, n: float, kept: float = 0.6) -> Counted:
    """Counts that follow a law exactly: an output is the bin with probability kept, or any."""
    k = len(f)
    channel = kept * np.eye(k) + (1 - kept) / k
    return Counted(n * f @ channel, channel)


def linear(f: np.ndarray, error: float) -> Linear:
    """All bins, and all pairs of neighbours, with noise of this standard deviation."""
    k = len(f)
    design = np.vstack([np.eye(k), np.kron(np.eye(k // 2), [1, 1])])
    noise = np.random.default_rng(1).normal(0, error, len(design))
    return Linear(design @ f + noise, design, np.full(len(design), error**2))


@pytest.mark.parametrize("observed", [counted(hill(6), 900.0), linear(hill(6), 0.02)])
def test_gradients_and_information_are_derivatives(observed):
    f, h = hill(6), 1e-6
    steps = h * np.eye(6)
    rises = [observed.log_likelihood(f + s) - observed.log_likelihood(f - s) for s in steps]
    assert observed.gradient(f) == pytest.approx(np.array(rises) / (2 * h), rel=1e-6)
    # Where counts are as expected, the expected information is that which is observed.
    turns = [observed.gradient(f - s) - observed.gradient(f + s) for s in steps]
    root = observed.root(f)
    assert root @ root.T == pytest.approx(np.array(turns) / (2 * h), rel=1e-5)


def test_a_sparse_design_is_a_dense_one():
    dense = linear(hill(8), 0.1)
    sparse = Linear(dense.z, csr_array(dense.design), dense.variances)
    assert penalised(sparse) == pytest.approx(penalised(dense), abs=1e-9)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("strength", [0.5, 5.0])
def test_the_evidence_is_the_integral_of_likelihood_times_prior(order, strength):
    """Three bins, by quadrature over the plane in which theta sums to 0."""
    observed = counted(hill(3), 60_000.0)
    fit = fitted(observed, splines(3), np.zeros(3), order, strength)
    plane = np.linalg.qr(np.column_stack([np.ones(3), np.eye(3)[:, :2]]))[0][:, 1:]
    side = np.linspace(-0.1, 0.1, 401)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    theta = fit.theta + grid @ plane.T
    f = np.exp(theta)
    f /= f.sum(axis=1, keepdims=True)
    likelihood = np.log(f @ observed.channel) @ observed.counts
    d = np.diff(np.eye(3), order, axis=0)
    precision = strength * d.T @ d
    if order == 2:  # and the slope from the first to the last
        line = np.array([-1, 0, 1]) / SLOPE
        precision += np.outer(line, line)
    inside = plane.T @ precision @ plane
    prior = np.log(np.linalg.det(inside / (2 * np.pi))) / 2
    prior = prior - np.einsum("ij,jk,ik->i", theta, precision, theta) / 2
    peak = likelihood.max()
    exact = np.log(np.exp(likelihood + prior - peak).sum() * (side[1] - side[0]) ** 2) + peak
    assert fit.evidence == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("order", ORDERS)
def test_the_prior_is_proper(order):
    precision, log_determinant = smoothness(40, order, 3.0)
    assert np.linalg.slogdet(precision) == pytest.approx((1.0, log_determinant))


@pytest.mark.parametrize("observed", [counted(hill(40), 1e5, 0.2), linear(hill(40), 0.01)])
def test_no_other_shares_are_better(observed):
    rng = np.random.default_rng(3)
    for fit in fits(observed):
        prior = smoothness(40, fit.order, fit.strength)[0]

        def objective(theta, prior=prior):
            f = np.exp(theta) / np.exp(theta).sum()
            return observed.log_likelihood(f) - theta @ prior @ theta / 2

        best = objective(fit.theta)
        for size in (0.01, 0.1, 1.0):
            beside = fit.theta + rng.normal(0, size, (20, 40))
            assert max(map(objective, beside)) <= best + 2 * GAIN


@pytest.mark.parametrize("k", [64, pytest.param(300, marks=pytest.mark.slow)])
def test_many_precise_reports_lead_to_the_density(k):
    """Also with more bins than coefficients."""
    f = hill(k)
    assert penalised(counted(f, 1e8, 0.999)) == pytest.approx(f, rel=0.01)


def test_a_tree_and_counts_lead_to_the_same_density():
    f = hill(32)
    few, many = penalised(linear(f, 1e-4)), penalised(counted(f, 1e8, 0.9))
    assert np.abs(np.cumsum(few - f)).max() < 1e-3
    assert np.abs(np.cumsum(many - f)).max() < 1e-3


def test_reports_that_say_nothing_lead_to_equal_shares():
    k = 16
    assert penalised(Counted(np.full(k, 5.0), np.full((k, k), 1 / k))) == pytest.approx(1 / k)


def test_em_climbs_to_the_maximum():
    observed = counted(hill(24), 1e5, 0.3)
    values = [observed.log_likelihood(em(observed, gain)) for gain in (1e9, 10.0, 0.1, 1e-9)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(observed.log_likelihood(hill(24)), abs=1e-3)


def test_ems_smooths():
    rough = np.tile([1.5, 0.5], 16) / 32
    observed = counted(rough, 1e5, 0.9)
    assert np.abs(np.diff(ems(observed))).max() < 0.5 * np.abs(np.diff(em(observed))).max()
    assert ems(counted(np.full(16, 1 / 16), 1e5)) == pytest.approx(1 / 16)
    assert ems(observed).sum() == pytest.approx(1)


@pytest.mark.parametrize("decoder", [em, ems, penalised])
def test_two_bins_are_enough(decoder):
    """A number of 0 and 1 in steps of 1."""
    m = dn.DRR(dn.Number(0, 1, 1), 2.0, ell=3)
    counts = m.count(m.privatize([0] * 3_000 + [1] * 1_000, np.random.default_rng(1)).data)
    shares = decoder(m.observed_bins(counts, 4_000, m.binning))
    assert (len(shares), shares.sum()) == (2, pytest.approx(1))
    assert shares[0] > shares[1]


def test_what_is_no_observation_is_refused():
    channel = np.full((3, 2), 0.5)
    with pytest.raises(InvalidArgument, match="column for each"):
        Counted([1, 2, 3], channel)
    for counts in ([-1, 2], [0, 0], [np.nan, 1]):
        with pytest.raises(InvalidArgument, match="not all 0"):
            Counted(counts, channel)
    for wrong in ([[1.0, 0.0]], [[0.5, 0.6]]):
        with pytest.raises(InvalidArgument, match="rows sum to 1"):
            Counted([1, 2], np.array(wrong))
    with pytest.raises(InvalidArgument, match="2 rows"):
        Linear(np.ones(2), np.eye(3), np.ones(2))
    with pytest.raises(InvalidArgument, match="above 0"):
        Linear(np.ones(2), np.eye(2), np.zeros(2))


@pytest.mark.parametrize("ell", [1, 3])
def test_the_channel_of_bins_is_that_of_the_code(ell):
    """Of single numbers exactly; of bins the mean of many numbers that are spread over them."""
    m = dn.DRR(dn.Number(0, 1), 1.0, ell=ell, fine=4, shown=2)
    values = [i * GRID // 16 for i in range(17)]
    exact = exact_channel(m.report, values)
    cells = np.array([m.count(one) for one in m.pack(exact.outputs)[:, None]])
    law = np.array(exact.matrix, dtype=float) @ cells
    table = m.table(np.arange(m.cells)).ravel()

    def observed(most, step=None):
        return m.observed_bins(np.arange(m.cells), 1, Binning(dn.Number(0, 1, step), most))

    single = observed(17, 1 / 16)
    assert single.counts.tolist() == table.tolist()
    assert single.channel == pytest.approx(law[:, table], abs=1e-12)

    bins, points = observed(16).channel, observed(8193, 1 / 8192).channel
    spread = points[1::2].reshape(16, 256, -1).mean(axis=1)
    assert bins == pytest.approx(spread, abs=1e-5)

    few = observed(2)
    strata = len(few.counts) // m.outcomes
    merged = bins.reshape(2, 8, strata, -1, m.outcomes).sum(axis=3).mean(axis=1)
    assert few.channel == pytest.approx(merged.reshape(2, -1), abs=1e-12)


def test_a_hierarchy_says_what_its_levels_say():
    """Its likelihood has its maximum where least squares have theirs, for equal levels."""
    m = dn.HH(dn.Number(0, 24), 2.0, bins=7)
    x = np.random.default_rng(1).normal(9, 4, 30_000)
    reports = m.privatize(x, np.random.default_rng(2))
    levels = m.observed(m.count(reports.data), len(x))
    seen = m.observed_bins(m.count(reports.data), len(x), m.binning)
    assert seen.z.tolist() == [share for level in levels for share in level.z.tolist()]
    f = m.solved.shares([level.z for level in levels])
    # The levels are drawn, so that they are equal but for chance.
    slope = seen.gradient(f) / len(x)
    assert np.ptp(slope) < 0.02 * np.ptp(seen.gradient(np.full(7, 1 / 7)) / len(x))
    assert np.abs(np.cumsum(penalised(seen) - f)).max() < 0.02
    assert m.observed_bins(m.count(reports.data), len(x), Binning(m.domain, 6)) is None
