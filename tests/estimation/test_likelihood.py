"""The exact-likelihood maximum against the plain definition of the likelihood."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

import deniable as dn
from deniable.errors import InvalidArgument, MismatchError
from deniable.estimation.frequencies import simplex
from deniable.estimation.frequencies.mle import cells, gradients, likelihood, newton, supports
from deniable.estimation.frequencies.mle.likelihood import efficient, information, maximise
from deniable.estimation.frequencies.mle.objective import Objective
from deniable.mechanisms.frequency import frequency_oracles

FALSE_ALARM = 1e-9
#: Those with cohorts have tests of their own.
FAMILIES = {
    name: m
    for name, m in frequency_oracles().items()
    if m.two_likelihoods and m.independent_supports
}
NAMES = [name for name in FAMILIES if name != "brr"]


def supports_by_definition(m, data):
    """S as a matrix of zeros and ones, reports x values, from what the papers say."""
    v = np.arange(m.domain.size, dtype=np.uint64)
    if m.name in ("brr", "grr", "lgrr"):
        return (data[:, None] == v).astype(float)
    if m.name == "hr":
        block, row = np.divmod(m.owners, np.uint64(1 << 32))
        own, inner = np.divmod(data.astype(np.uint64), np.uint64(m.block))
        even = np.bitwise_count(inner[:, None] & row) % 2 == 0
        return (even & (own[:, None] == block)).astype(float)
    if m.name in ("hrr", "shist"):
        row, bit = np.divmod(data[:, None].astype(np.uint64), np.uint64(2))
        column = v if m.name == "hrr" else m._dealt.astype(np.uint64)
        return (np.bitwise_count(row & column) % 2 == bit).astype(float)
    if m.name in ("blh", "olh", "lblh", "lolh"):
        a, b, c, y = (data[name].astype(np.uint64)[:, None] for name in "abcy")
        p, g = np.uint64(m.modulus), np.uint64(m.g)
        return (((a * v + b) % p * v + c) % p * g // p == y).astype(float)
    bits = np.unpackbits(data, axis=1, bitorder="little")
    return bits[:, : m.domain.size].astype(float)


def likelihoods(*parts):
    """W with w_iv = 1 + (rho - 1) [v in S_i], all parts under one another."""
    return np.concatenate(
        [
            1 + float(r.mechanism.once.ratio - 1) * supports_by_definition(r.mechanism, r.data)
            for r in parts
        ]
    )


def certificate(w, f):
    return float((w / (w @ f)[:, None]).mean(axis=0).max() - 1)


def value(w, f):
    return float(np.log(w @ f).mean())


def expectation_maximisation(w, steps):
    f = np.full(w.shape[1], 1 / w.shape[1])
    for _ in range(steps):
        f = f * (w / (w @ f)[:, None]).mean(axis=0)
    return f


def population(shape, k):
    rank = np.arange(1, k + 1)
    weights = {
        "uniform": np.ones(k),
        "zipf": rank**-1.5,
        "geometric": np.exp(-10.0 * rank / k),
        "spikes": (rank <= 5).astype(float),
    }[shape]
    return weights / weights.sum()


def draw(m, n, shape="zipf", seed=1):
    rng = np.random.default_rng(seed)
    return m.privatize(rng.choice(m.domain.size, n, p=population(shape, m.domain.size)), rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "brr"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_ratio_is_that_of_the_guarantee(name, epsilon):
    """By enumeration: under the values of S a report is rho times as likely as under the others."""
    family = dn.mechanisms()[name]
    m = family(2 if name == "brr" else 4, epsilon, **family.small_design)
    channel = m.channel()
    inside = supports_by_definition(m, m.pack(channel.outputs)).astype(bool)
    for column, support in zip(zip(*channel.matrix, strict=True), inside, strict=True):
        law = np.array([float(p) for p in column])
        expected = np.where(support, float(m.once.ratio), 1.0)
        expected *= law.sum() / expected.sum()
        np.testing.assert_allclose(law, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "brr"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_certificate_holds_everywhere(name, epsilon):
    sizes = [2] if name == "brr" else [2, 17, 200]
    cases = itertools.product(sizes, ["uniform", "zipf", "geometric", "spikes"], [1, 7, 100, 3000])
    for seed, (k, shape, n) in enumerate(cases):
        reports = draw(dn.mechanism(name, k, epsilon), n, shape, seed)
        found = maximise([reports], threads=1)
        w = likelihoods(reports)
        case = (k, shape, n, found)
        assert found.certificate < 1e-8, case
        assert certificate(w, found.frequencies) < 1e-8, case
        assert found.frequencies.min() >= 0, case
        assert abs(found.frequencies.sum() - 1) < 1e-12, case
        assert found.passes <= 20, case


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sue", "oue", "olh", "hr", "hrr"])
@pytest.mark.parametrize("epsilon", [2.0**-10, 8.0, 32.0])
def test_extreme_budgets(name, epsilon):
    for n in (1, 40, 2000):
        reports = draw(dn.mechanism(name, 40, epsilon), n)
        found = maximise([reports])
        assert certificate(likelihoods(reports), found.frequencies) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_other_estimate_is_likelier(name):
    reports = draw(dn.mechanism(name, 12, 1.0), 2000)
    found = maximise([reports])
    w = likelihoods(reports)
    unbiased = reports.mechanism.estimate(reports, "unbiased").frequencies
    others = [
        simplex.project(unbiased),
        simplex.clip_and_normalize(unbiased),
        np.full(12, 1 / 12),
        expectation_maximisation(w, 3000),
    ]
    best = value(w, found.frequencies)
    assert best == pytest.approx(found.loglikelihood, rel=1e-12)
    assert all(best >= value(w, f) - 1e-14 for f in others)


@pytest.mark.parametrize(("solve", "most"), [(newton.newton, 12), (gradients.accelerated, 60)])
@pytest.mark.parametrize("name", ["grr", "oue", "olh", "hr", "shist"])
def test_both_solvers_find_the_maximum(solve, most, name):
    reports = draw(dn.mechanism(name, 30, 2.0), 5000, "geometric")
    objective, _ = likelihood._open([reports], 1, 1 << 30)
    point = solve(objective, np.full(30, 1 / 30), 1e-10, most)
    assert certificate(likelihoods(reports), point.f) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "ss", "olh", "hr", "hrr"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize(("shape", "n"), [("zipf", 3000), ("spikes", 3000), ("uniform", 30)])
def test_large_domains(name, epsilon, shape, n):
    """First derivatives, and Newton's method on the values in use where they do not suffice."""
    reports = draw(dn.mechanism(name, 700, epsilon), n, shape)
    found = maximise([reports])
    assert certificate(likelihoods(reports), found.frequencies) < 1e-8
    assert found.passes <= 60


@pytest.mark.parametrize("counts", [[5, 0, 0], [10, 9, 0, 1], [3, 3, 3], [100, 50, 1, 1, 1, 0]])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_the_closed_form_of_randomised_response(counts, epsilon):
    m = dn.GRR(len(counts), epsilon)
    tally = m.tally(dn.Reports(m, np.repeat(np.arange(m.domain.size, dtype=np.uint8), counts)))
    found = maximise([tally])
    objective, _ = likelihood._open([tally], 1, 0)
    point = newton.newton(objective, np.full(len(counts), 1 / len(counts)), 1e-13, 50)
    assert found.passes == 1
    assert found.certificate < 1e-14
    np.testing.assert_allclose(found.frequencies, point.f, atol=1e-12)


@pytest.mark.parametrize(("k", "block"), [(3, 4), (20, 8), (20, 32), (9, 2)])
def test_transforms_equal_the_plain_sums(k, block):
    """Values, gradients and Hessians of Hadamard responses, with one block and with many."""
    m = dn.HR(k, 1.0, block=block)
    reports = draw(m, 500)
    objective, _ = likelihood._open([reports], 1, 0)
    check_sums(objective, likelihoods(reports))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grr", "sue", "ss", "blh", "olh"])
@pytest.mark.parametrize("k", [3, 16, 17, 32, 64, 130])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_passes_equal_the_plain_sums(name, k, memory):
    reports = draw(dn.mechanism(name, k, 1.3), 2100)
    objective, _ = likelihood._open([reports], 2, memory)
    check_sums(objective, likelihoods(reports))


def check_sums(objective, w):
    f = np.random.default_rng(0).dirichlet(np.ones(w.shape[1]))
    point = objective.at(f, curvature=True)
    x = w / (w @ f)[:, None]
    np.testing.assert_allclose(point.value, value(w, f), rtol=1e-12)
    np.testing.assert_allclose(point.gradient, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(point.curvature, (x**2).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(objective.information(f, 1 << 20), x.T @ x / len(w), rtol=1e-11)


def test_equal_reports_are_brought_together():
    reports = draw(dn.OUE(10, 1.0), 5000)
    m = reports.mechanism
    grouped = supports.term_of_reports(m, reports.data, 0)
    single = supports.Rows(m, reports.data.view("<u2"))
    assert len(grouped.words) < 1024
    assert grouped.n == single.n == 5000
    f = population("zipf", 10)
    a, b = (Objective([part], 1).at(f, curvature=True) for part in (grouped, single))
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-13)
    np.testing.assert_allclose(a.curvature, b.curvature, rtol=1e-13)
    assert a.value == pytest.approx(b.value, rel=1e-13)


@pytest.mark.slow
def test_supports_need_not_be_kept(monkeypatch):
    """Hashed reports read in pieces, with several threads: the same maximum."""
    monkeypatch.setattr(supports, "PIECE", 1 << 14)
    reports = draw(dn.OLH(100, 2.0), 20_000)
    kept, made = maximise([reports]), maximise([reports], memory=0, threads=3)
    assert isinstance(likelihood._open([reports], 1, 0)[0].parts[0], supports.HashedRows)
    assert made.certificate < 1e-9
    np.testing.assert_allclose(kept.frequencies, made.frequencies, atol=1e-6)
    assert kept.loglikelihood == pytest.approx(made.loglikelihood, abs=1e-9)


def test_a_sample_of_the_reports_has_nearly_their_information():
    for name in ("oue", "olh"):
        reports = draw(dn.mechanism(name, 20, 1.0), 20_000)
        f = population("zipf", 20)
        whole, part = (information([reports], f, sample=m) for m in (20_000, 5000))
        assert not np.array_equal(whole, part)
        np.testing.assert_allclose(part, whole, rtol=0.2)


def test_several_mechanisms_together():
    """The joint maximum, and it is that of the whole even where a part is counts only."""
    ms = [dn.OUE(9, 0.5), dn.OLH(9, 1.0), dn.GRR(9, 2.0), dn.HR(9, 1.0), dn.OUE(9, 3.0)]
    parts = [draw(m, 400 + i, seed=i) for i, m in enumerate(ms)]
    found = maximise(parts)
    w = likelihoods(*parts)
    assert certificate(w, found.frequencies) < 1e-9
    assert value(w, found.frequencies) >= value(w, expectation_maximisation(w, 3000)) - 1e-14
    counted = [p.mechanism.tally(p) if p.mechanism.name in ("grr", "hr") else p for p in parts]
    again = maximise(counted)
    np.testing.assert_array_equal(found.frequencies, again.frequencies)


def test_parts_of_one_mechanism_are_one():
    reports = draw(dn.GRR(9, 2.0), 300)
    halves = [reports[:100], reports.mechanism.tally(reports[100:]), reports[:0]]
    found = maximise(halves)
    np.testing.assert_array_equal(found.frequencies, maximise([reports]).frequencies)
    assert found.passes == 1


@pytest.mark.parametrize("name", NAMES)
def test_equal_reports_point_to_what_they_support(name):
    one = draw(dn.mechanism(name, 20, 1.0), 1)
    many = dn.Reports(one.mechanism, np.repeat(one.data, 50, axis=0))
    for reports in (one, many):
        found = maximise([reports])
        support = supports_by_definition(one.mechanism, one.data)[0]
        assert found.frequencies @ support == pytest.approx(1, abs=1e-8)
        assert found.certificate < 1e-8


@pytest.mark.slow
def test_a_start_does_not_change_the_maximum():
    reports = draw(dn.OUE(40, 2.0), 4000)
    corner = np.eye(40)[7]
    found, again = maximise([reports]), maximise([reports], start=corner)
    np.testing.assert_allclose(found.frequencies, again.frequencies, atol=1e-6)
    assert maximise([reports], start=found.frequencies).passes == 1
    assert maximise([reports], most_passes=1, start=corner).frequencies[7] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "olh"])
@pytest.mark.parametrize(("k", "shape"), [(6, "zipf"), (20, "spikes")])
def test_the_efficient_estimate_has_the_stated_covariance(name, k, shape):
    """Chi-square of many collections from one fixed population, on both sides.

    Where most values are absent the maximum is far from unbiased, but one step from it is not.
    """
    m, n, runs = dn.mechanism(name, k, 3.0), 4000, 250
    rng = np.random.default_rng(11)
    values = rng.choice(k, n, p=population(shape, k))
    truth = np.bincount(values, minlength=k) / n
    errors, inverses = [], []
    for _ in range(runs):
        reports = m.privatize(values, rng)
        x, covariance = efficient([reports], maximise([reports], threads=1))
        assert abs(x.sum() - 1) < 1e-12
        errors.append((x - truth)[1:])
        inverses.append(np.linalg.inv(covariance[1:, 1:]))
    spread = sum(e @ inverse @ e for e, inverse in zip(errors, inverses, strict=True))
    degrees = runs * (k - 1)
    assert min(chi2.sf(spread, degrees), chi2.cdf(spread, degrees)) > FALSE_ALARM
    mean = np.mean(errors, axis=0)
    assert chi2.sf(runs * mean @ np.mean(inverses, axis=0) @ mean, k - 1) > FALSE_ALARM


def test_the_efficient_estimate_of_randomised_response_is_the_unbiased_one():
    """Inside the simplex the maximum is the unbiased estimate; so is its variance."""
    m = dn.GRR(4, 2.0)
    reports = draw(m, 5000, "uniform")
    found = maximise([reports])
    x, covariance = efficient([reports], found)
    f = m.estimate(reports, "unbiased").frequencies
    np.testing.assert_allclose(found.frequencies, f, atol=1e-12)
    np.testing.assert_allclose(x, f, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(covariance), m.variance(5000, f), rtol=1e-9)


def test_refusals():
    oue, olh, grr = dn.OUE(5, 1.0), dn.OLH(5, 1.0), dn.GRR(5, 1.0)
    for m in (oue, olh, dn.SS(5, 1.0)):
        with pytest.raises(InvalidArgument, match="must be reports: the counts of"):
            maximise([m.tally(draw(m, 10))])
    with pytest.raises(InvalidArgument, match="at least one report"):
        maximise([])
    with pytest.raises(InvalidArgument, match="at least one report"):
        maximise([grr.tally()])
    with pytest.raises(InvalidArgument, match="of type Reports"):
        maximise([[0, 1]])
    with pytest.raises(MismatchError, match="different questions"):
        maximise([draw(grr, 5), draw(dn.OUE(6, 1.0), 5)])
    with pytest.raises(InvalidArgument, match="'start' must be 5 frequencies"):
        maximise([draw(oue, 5)], start=[1.0])
    with pytest.raises(InvalidArgument, match="'tolerance' must be"):
        maximise([draw(oue, 5)], tolerance=float("nan"))
    with pytest.raises(InvalidArgument, match="'f' must be 5 frequencies"):
        information([draw(oue, 5)], [1.0])
    with pytest.raises(InvalidArgument, match="too few"):
        efficient([draw(oue, 2)], maximise([draw(oue, 2)]))
    broken = dn.Reports(oue, np.full((3, 1), 0xFF, dtype=np.uint8))
    with pytest.raises(InvalidArgument, match="bits from 5 on that are zero"):
        maximise([broken])


def test_families_without_a_known_likelihood_are_refused():
    class Other(dn.Mechanism):
        pass

    with pytest.raises(InvalidArgument, match="likelihood is known"):
        supports.term_of_reports.dispatch(Other)(None, None, 0)
    with pytest.raises(InvalidArgument, match="likelihood is known"):
        cells.term_of_counts(dn.OUE(5, 1.0), np.zeros(5, dtype=np.int64))
