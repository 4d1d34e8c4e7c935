"""Distributions of numbers: bins, least squares, and what they say about a number."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import deniable as dn
from deniable.answers.number import GRID
from deniable.core.drawn import Branch
from deniable.core.registry import from_leaf
from deniable.errors import BrokenPromise, InvalidArgument
from deniable.estimation.numbers.bins import Bins
from deniable.estimation.numbers.distribution import Shares
from deniable.estimation.numbers.task import DISTRIBUTIONS, rounded_half_width
from deniable.mechanisms.numbers.bins import Binning
from deniable.mechanisms.numbers.hh import Tree
from deniable.mechanisms.numbers.least_squares import LeastSquares, plausible


def rng():
    return np.random.default_rng(1)


def noiseless(m, answers):
    """A tally as if the reports of these answers followed the law exactly, each 2^20 times."""
    places = m.tree.binning.of(m.domain.encode(answers)).astype(int)
    counts = []
    for part, width in zip(m.parts, m.tree.widths, strict=True):
        n = len(answers) << 20
        f = np.bincount(places // width, minlength=part.domain.size) / len(answers)
        # Of mechanisms with p and q the expected number of supports.
        supports = n * (float(part.q) + f * float(part.p - part.q))
        counts += [[n], np.round(supports).astype(np.int64)]
    whole = np.concatenate(counts)
    return dn.Tally.of_counts(m, whole, (len(answers) << 20) * len(m.parts))


# ---- bins


@pytest.mark.parametrize("most", [2, 3, 100, 256, 1024])
def test_bins_are_those_of_the_manifest(most):
    binning = Binning(dn.Number(0, 1), most)
    values = [0, 1, GRID - 1, GRID, *rng().integers(0, GRID, 200).tolist()]
    values += [v + d for v in binning.starts[1:-1].tolist() for d in (-1, 0)]
    direct = [min(most - 1, v * most // GRID) for v in values]
    assert [binning.of(v) for v in values] == direct
    assert binning.of(np.array(values, dtype=np.uint64)).tolist() == direct
    assert all(binning.of(v) == b for b, v in enumerate(binning.starts[:-1].tolist()))


@pytest.mark.parametrize(("hi", "step", "most"), [(100, 1, 256), (300, 1, 256), (1, 0.1, 4)])
def test_bins_are_whole_numbers_of_steps(hi, step, most):
    domain = dn.Number(0, hi, step)
    binning, n = Binning(domain, most), round(hi / step) + 1
    steps = np.arange(n)
    found = binning.of(domain.encode(steps * step))
    assert found.tolist() == (steps // math.ceil(n / most)).tolist()
    assert binning.size == found.max() + 1
    assert [binning.of(v) for v in domain.encode(steps * step).tolist()] == found.tolist()
    middles = [np.mean(steps[found == b]) / (n - 1) for b in range(binning.size)]
    assert binning.middles == pytest.approx(middles)
    farthest = np.abs(binning.middles[found.astype(int)] - steps / (n - 1)).max()
    assert binning.reach == pytest.approx(farthest)


def test_trees_have_no_node_without_a_bin():
    tree = Tree(Binning(dn.Number(0, 1), 5), 2)
    assert (tree.widths, tree.sizes) == ([4, 2, 1], [2, 3, 5])
    assert Tree(Binning(dn.Number(0, 1), 256), 256).sizes == [256]
    m = dn.HH(dn.Number(0, 1), 1.0, bins=5)
    assert [m.seen(level, GRID) for level in range(3)] == [1, 2, 4]
    assert [part.domain.size for part in m.parts] == [2, 3, 5]
    assert sum(branch.weight for branch in m.branches) == 65536


def test_places_of_answers_and_back():
    bins = Bins.of(dn.Number(0, 10), [Binning(dn.Number(0, 10), 4), Binning(dn.Number(0, 10), 5)])
    assert bins.edges == pytest.approx([0, 2, 2.5, 4, 5, 6, 7.5, 8, 10])
    found = [bins.up_to(2.25), bins.below(2.25), bins.up_to(-1), bins.up_to(11)]
    assert found == pytest.approx([1.5, 1.5, 0, 8])
    assert bins.at(1.5) == pytest.approx(2.25)
    whole = Bins.of(dn.Number(0, 9, 1), [Binning(dn.Number(0, 9, 1), 5)])
    assert whole.edges == pytest.approx([-0.5, 1.5, 3.5, 5.5, 7.5, 9.5])
    assert (whole.up_to(3), whole.below(3), whole.up_to(3.9)) == (2, 1.5, 2)
    assert [whole.at(place) for place in (0, 0.5, 0.6, 1, 2, 5)] == [0, 0, 1, 1, 3, 9]


# ---- the mechanism


def test_a_leaf_has_its_levels_and_is_read_again():
    m = dn.HH(dn.Number(0, 250_000), epsilon=1.0, bins=6)
    leaf = m.to_leaf()
    assert (leaf["name"], leaf["design"]) == ("hh", {"bins": 6, "fan_out": 2})
    assert [set(branch) for branch in leaf["branches"]] == [{"weight", "mechanism"}] * 3
    assert from_leaf(m.domain, leaf) == m
    first, *rest = leaf["branches"]
    for wrong, kind in (
        ({"branches": rest}, InvalidArgument),
        ({"branches": [*rest, first]}, InvalidArgument),
        ({"branches": [{**first, "weight": 1}, *rest]}, InvalidArgument),
        ({"design": {"bins": 6, "fan_out": 1}}, BrokenPromise),
        ({"design": {"bins": 2000, "fan_out": 2}}, BrokenPromise),
        ({"design": {"bins": 6}}, InvalidArgument),
        ({"epsilon": 0.9}, BrokenPromise),
        ({"branches": [{**first, "mechanism": leaf}, *rest]}, InvalidArgument),
        ({"branches": [{**first, "of": ["a"]}, *rest]}, InvalidArgument),
    ):
        with pytest.raises(kind):
            from_leaf(m.domain, {**leaf, **wrong})
    other = [Branch(branch.weight, (), dn.GRR(7, 1.0)) for branch in m.branches]
    with pytest.raises(InvalidArgument, match="one for each level of 2, 3, 6 nodes"):
        dn.HH(m.domain, 1.0, other, bins=6)


def test_each_level_has_the_oracle_with_the_least_variance():
    m = dn.HH(dn.Number(0, 1), 1.0)
    for part in m.parts:
        for name in ("grr", "oue", "ss", "olh"):
            other = dn.mechanism(name, part.domain, 1.0).variance(1).mean()
            assert part.variance(1).mean() <= 1.02 * other


@pytest.mark.parametrize(("bins", "fan_out"), [(2, 2), (7, 2), (27, 3), (64, 64)])
def test_least_squares_are_those_of_lagrange(bins, fan_out):
    """They solve the equations of Lagrange, and undo sums of shares without noise."""
    m = dn.HH(dn.Number(0, 1), 1.0, bins=bins, fan_out=fan_out)
    z = [rng().normal(size=len(a)) for a in m.sums]
    k, weights = bins, m.weights.tolist()
    normal = sum(w * a.T @ a for w, a in zip(weights, m.sums, strict=True))
    border = np.block([[normal, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
    right = sum(w * a.T @ one for w, a, one in zip(weights, m.sums, z, strict=True))
    expected = np.linalg.solve(border, np.append(right, 1.0))[:-1]
    found = LeastSquares(m.sums, weights).shares(z)
    assert found == pytest.approx(expected, abs=1e-9)
    assert found.sum() == pytest.approx(1)
    f = rng().dirichlet(np.ones(k))
    assert m.solved.shares([a @ f for a in m.sums]) == pytest.approx(f, abs=1e-9)


def test_plausible_shares_are_shares():
    f = np.array([0.5, -0.2, 0.4, 0.5, -0.2])
    found = plausible(f)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert plausible(np.full(4, 0.25)) == pytest.approx(0.25)


# ---- what is estimated


def test_without_noise_everything_is_right():
    answers = rng().integers(0, 21, 1_000)
    m = dn.HH(dn.Number(0, 20, 1), 1.0)
    e = noiseless(m, answers).estimate("unbiased")
    assert e.mean == pytest.approx(answers.mean(), abs=1e-4)
    assert math.sqrt(e.variance) == pytest.approx(answers.std(), abs=1e-3)
    for x in (-1, 0, 7, 7.5, 20, 30):
        assert e.cdf(x).value == pytest.approx((answers <= x).mean(), abs=1e-4)
    assert e.range(3, 9).value == pytest.approx(((answers >= 3) & (answers <= 9)).mean(), abs=1e-4)
    assert e.cdf(20)[1:] == (1.0, 0.0, (1.0, 1.0))
    assert e.range(3, 2.5 + 0.5).value == pytest.approx((answers == 3).mean(), abs=1e-4)
    for p in (0.04, 0.33, 0.5, 0.97):
        assert e.quantile(p).value == np.quantile(answers, p, method="inverted_cdf")
    first, last = e.at_ends
    assert first.value == pytest.approx((answers == 0).mean(), abs=1e-4)
    assert last.value == pytest.approx((answers == 20).mean(), abs=1e-4)
    shares = np.bincount(answers, minlength=21) / len(answers)
    assert e.density.shares == pytest.approx(shares, abs=1e-3)


def test_inside_of_a_bin_intervals_hold_whatever_the_answers():
    """All answers are next to the lower end of their bin: F jumps there."""
    answers = np.repeat([0.2501, 0.5001], 500)
    e = noiseless(dn.HH(dn.Number(0, 1), 1.0, bins=4), answers).estimate("unbiased")
    assert e.cdf(0.3).value == pytest.approx(0.1, abs=1e-3)
    low, high = e.cdf(0.3).interval
    assert low <= 0 < 0.5 <= high
    low, high = e.cdf(0.5).interval  # many may have answered 0.5 exactly
    assert 0.49 < low <= 0.5 <= 1 <= high
    assert e.cdf(0.4999).interval[1] == pytest.approx(0.5, abs=0.01)
    assert e.range(0.1, 1).value == pytest.approx(1, abs=1e-3)
    assert e.range(0.1, 1).standard_error > 0
    low, high = e.range(0.3, 0.6).interval
    assert low <= 0.5 <= high
    assert e.quantile(0.25).interval[0] <= 0.2501 <= e.quantile(0.25).interval[1]


def test_intervals_hold_where_answers_are_at_an_edge():
    """Answers that are clipped are at lo and hi; round ones are where bins meet."""
    e = noiseless(dn.HH(dn.Number(0, 1), 1.0, bins=10), np.repeat([0, 0.3, 1], [5, 3, 2]))
    found = e.estimate("unbiased")
    shares = [(found.cdf(x), share) for x, share in ((0, 0.5), (0.3, 0.8), (0.29, 0.5))]
    ends = (
        (0, 0, 0.5),
        (0.3, 0.3, 0.3),
        (1, 1, 0.2),
        (0.2, 0.3, 0.3),
        (0.3, 1, 0.5),
        (0.4, 2, 0.2),
    )
    shares += [(found.range(low, high), share) for low, high, share in ends]
    for one, share in shares:
        assert one.interval[0] - 1e-3 <= share <= one.interval[1] + 1e-3, one
        assert one.interval[0] <= one.value <= one.interval[1]
    assert found.cdf(-0.1)[1:] == found.range(1.5, 2)[1:] == (0.0, 0.0, (0.0, 0.0))
    steps = noiseless(dn.HH(dn.Number(0, 20, 1), 1.0, bins=7), np.array([3, 5])).estimate()
    assert steps.range(3.2, 3.8)[1:] == (0.0, 0.0, (0.0, 0.0))
    assert steps.range(3, 3).interval == pytest.approx((0, 1), abs=0.01)


def test_an_estimate_has_rows_and_bins():
    m = dn.HH(dn.Number(0, 24), 1.0, bins=32)
    x = rng().normal(8, 2, 20_000)
    t = m.tally(m.privatize(x, np.random.default_rng(2)))
    e = t.estimate(cdf=[6, 30], quantile=[0.5, 0.3], range=[(6, 9)])
    assert (e.method, e.errors) == ("penalised", "normal")
    names = ["mean", "standard deviation", "5 % quantile", "10 % quantile", "25 % quantile"]
    names += ["30 % quantile", "median", "75 % quantile", "90 % quantile", "95 % quantile"]
    assert list(e.labels) == names
    asked = ["share up to 6", "share up to 30", "share from 6 to 9"]
    assert e.to_pandas()["statistic"].tolist() == names + asked
    assert e.median == e.statistic("median")
    columns = ["low", "high", "share", "density", "cdf", "cdf_low", "cdf_high"]
    assert list(e.density.to_pandas()) == columns
    assert len(e.density.rows()) == 32
    shown = [list(map(str, column.cells)) for column in e.table().columns]
    assert shown[0] == names + asked
    assert shown[1][-2:] == ["100.0 %", f"{100 * e.range(6, 9).value:.1f} %"]
    assert len(e.bins) == 33
    assert e.variance_interval[0] < e.variance < e.variance_interval[1]
    together = t.estimate("unbiased", simultaneous=True, confidence=0.9)
    assert together.distribution.each == pytest.approx(1 - 0.1 / 33)
    wide, low = together.range(6, 9).interval, together.cdf(6).interval[0]
    assert wide[0] < e.range(6, 9).interval[0]
    assert low == pytest.approx(together.distribution.band[0][8])
    assert t.estimate(population="everyone").standard_error > e.standard_error


def test_several_mechanisms_are_decoded_together():
    """With no noise they agree; with noise each is weighed by what it tells."""
    answers = rng().beta(2, 5, 1_000) * 0.999
    domain = dn.Number(0, 1)
    parts = [noiseless(dn.HH(domain, e, bins=b), answers) for e, b in ((1.0, 8), (2.0, 6))]
    found = Shares.of(parts)
    edges = found.bins.edges
    assert edges == pytest.approx(np.unique(np.round([*np.arange(9) / 8, *np.arange(7) / 6], 12)))
    exact = [(answers < edge).mean() for edge in edges[1:-1]]
    assert np.cumsum(found.values)[:-1] == pytest.approx(exact, abs=1e-4)
    alone = Shares.of(parts[1:]).edges(everyone=True).errors[2]
    row = (found.bins.starts[:-1] < GRID // 2) * 1.0
    assert found.sum(row, everyone=True).errors[0] < alone
    both = dn.combine(parts, "unbiased")
    assert both.n == parts[0].n + parts[1].n
    mixed = [parts[0], dn.HH(domain, 1.0).tally(dn.HH(domain, 1.0).privatize(answers, rng()))]
    assert len(dn.combine(mixed, "unbiased").bins) == 257


def test_few_reports_have_a_mean_and_no_distribution():
    m = dn.HH(dn.Number(0, 1), 1.0)
    e = m.tally(m.privatize([0.5] * 3, rng())).estimate()
    assert list(e.labels) == ["mean"]
    assert np.isfinite([*e.mean_interval]).all()
    with pytest.raises(InvalidArgument, match="no distribution"):
        m.tally(m.privatize([0.5] * 3, rng())).estimate(quantile=[0.5])
    for action in (lambda: e.cdf(0.5), lambda: e.density, lambda: e.median, lambda: e.bins):
        with pytest.raises(InvalidArgument, match="some reports about each level"):
            action()


def test_what_cannot_be_asked_is_refused_by_name():
    m = dn.HH(dn.Number(0, 24), 1.0, bins=8)
    t = m.tally(m.privatize(rng().uniform(0, 24, 2_000), rng()))
    for named, words in (
        ({"cdf": ["six"]}, "'x' must be a number"),
        ({"cdf": [math.nan]}, "'x' must be a number"),
        ({"quantile": [1.5]}, "'quantile' must be a number strictly between 0 and 1"),
        ({"range": [(9, 6)]}, "'high' must be at least low = 9"),
        ({"range": [9]}, "'range' must be two numbers"),
        ({"method": "bayes"}, "'method' must be one of"),
        ({"median": True}, "made of confidence, population"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            t.estimate(**named)


def test_queries_are_read_from_text():
    m = dn.HH(dn.Number(0, 24), 1.0, bins=8)
    queries = DISTRIBUTIONS.queries_of(m)
    assert list(queries) == ["cdf", "quantile", "range"]
    assert queries["range"].parse("range", ["6..9", "-3..1e2"]) == ((6.0, 9.0), (-3.0, 100.0))
    assert queries["cdf"].parse("cdf", ["6"]) == (6.0,)
    for name, text in (("range", "6"), ("cdf", "six")):
        with pytest.raises(InvalidArgument, match=name):
            queries[name].parse(name, [text])


@pytest.mark.parametrize("bias", [0.0, 0.3, 1.0, 5.0])
def test_intervals_hold_for_the_largest_bias(bias):
    """They cover with exactly their confidence where the bias is largest, and more elsewhere."""
    half = rounded_half_width(2.0, 2.0 * bias, 0.95)
    covered = norm.cdf(half / 2 - bias) - norm.cdf(-half / 2 - bias)
    assert covered == pytest.approx(0.95, abs=1e-9)
    assert norm.cdf(half / 2) - norm.cdf(-half / 2) >= 0.95 - 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_largest_variance_of_a_mean_is_the_largest(epsilon):
    """No population tried has more, and some come close."""
    m = dn.HH(dn.Number(0, 1), epsilon, bins=32)
    worst, n = [m.worst_variance(10**9, sampled=sampled) for sampled in (False, True)], 10**9
    k = np.arange(32)
    tried = [
        np.eye(32)[0],
        np.full(32, 1 / 32),
        (k % 31 == 0) / 2.0,
        *rng().dirichlet(k * 0 + 1, 50),
    ]
    tried += list(rng().dirichlet(np.full(32, 0.05), 200))
    samples = np.array([m._of_sample(f)[0] @ (1 / m.chances) for f in tried]) / n
    middles = m.binning.middles
    fixed = samples - [(middles**2 @ f - (middles @ f) ** 2) / n for f in tried]
    for found, largest in ((fixed, worst[0]), (samples, worst[1])):
        assert found.max() <= largest * (1 + 1e-6)
        assert found.max() >= 0.93 * largest
