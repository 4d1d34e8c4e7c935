"""Mechanisms for means that are there for comparison: their variances are those of the papers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from pyarrow import parquet
from scipy.stats import chi2

import deniable as dn
from deniable.answers.number import GRID
from deniable.core.registry import register, registering
from deniable.errors import InvalidArgument, Unsupported
from deniable.mechanisms.numbers.bins import Binning
from deniable.mechanisms.numbers.window import ideal_variance
from deniable.privacy import exact_channel
from places import SHARED

UNIT = dn.Number(0, 1)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
FAMILIES = (dn.DRR, dn.PMSub)
#: Numbers v of -1..1 at which variances are compared.
V = np.linspace(-1, 1, 21)


def n_var(m):
    """Of a mean of v = 2 x - 1, of respondents who all have one v; for each of `V`."""
    return 4 * m.noise((V + 1) / 2)


def published(name, v, epsilon):
    """Section 4 and Table 3 of the papers, for v of -1..1."""
    e, s = math.exp(epsilon), math.exp(epsilon / 2)
    c = (e + 1) / (e - 1)
    if name == "duchi":
        return c**2 - v**2
    if name == "pm":
        return v**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    if name == "hm":
        mixed = (s + 3) / (3 * s * (s - 1)) + c**2 / s + 0 * v
        return mixed if epsilon > 0.61 else c**2 - v**2
    if name == "laplace":
        return 8 / epsilon**2 + 0 * v
    t = math.exp(epsilon / 3)  # PM-SUB
    rest = (t + e) * ((t + 1) ** 3 + e - 1) / (3 * t**2 * (e - 1) ** 2)
    return v**2 * (t + 1) / (e - 1) + rest


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ["duchi", "pm", "hm", "laplace", "pmsub"])
def test_variances_are_the_published_ones(name, epsilon):
    """But for the lattice: 0.3 % where it has 1024 points, and none for one bit."""
    found = n_var(dn.mechanism(name, UNIT, epsilon))
    lattice = 1e-12 if name == "duchi" else 3e-3
    assert found == pytest.approx(published(name, V, epsilon), rel=lattice)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("family", [dn.Window, dn.SW, dn.PM, dn.PMSub])
def test_windows_have_the_variance_of_their_width(family, epsilon):
    m = family(UNIT, epsilon)
    expected = ideal_variance(m.width / m.steps, (V + 1) / 2, epsilon)
    assert n_var(m) == pytest.approx(expected, rel=3e-3)


@pytest.mark.parametrize(
    ("name", "worst"),
    [
        ("pmsub", (21.08, 5.082, 1.105, 0.394, 0.167, 0.0761, 0.0362)),
        ("window", (21.06, 5.066, 1.092, 0.386, 0.162, 0.0735, 0.0348)),
        ("hm", (16.67, 4.289, 1.042, 0.432, 0.219, 0.1215, 0.0704)),
    ],
)
def test_the_worst_case_of_the_best_published(name, worst):
    for epsilon, expected in zip((0.5, 1, 2, 3, 4, 5, 6), worst, strict=True):
        found = 4 * dn.mechanism(name, UNIT, epsilon).worst_variance(1)
        assert found == pytest.approx(expected, rel=5e-3)


def test_no_other_window_is_better_in_the_worst_case():
    best = dn.Window(UNIT, 2.0, steps=64)
    found = [dn.Window(UNIT, 2.0, steps=64, width=w).worst_variance(1) for w in range(1, 65)]
    assert min(found) == pytest.approx(best.worst_variance(1), rel=1e-3)


@pytest.mark.skipif(not SHARED.exists(), reason="the copies of the data are not beside the project")
@pytest.mark.parametrize(
    ("epsilon", "drr", "pmsub"),
    [(1.0, 3.916, 3.865), (2.0, 0.683, 0.702), (4.0, 0.0962, 0.0884)],
)
@pytest.mark.slow
def test_means_of_ages_beside_the_best_published(epsilon, drr, pmsub):
    """Ages / 100 of adults, by the exact formulas, where strata cost nothing."""
    ages = parquet.read_table(SHARED / "adult_train.parquet", columns=["age"])["age"].to_numpy()
    n = 10**9
    found = [4 * n * family(UNIT, epsilon).variance_for(ages / 100, n) for family in FAMILIES]
    assert found == pytest.approx([drr, pmsub], rel=2e-3)


@pytest.mark.slow
def test_several_numbers_of_one_person():
    """Each device answers one question that it draws, with all of epsilon.

    Null: 120 errors of each mean about everyone are normal with the variance of the estimate.
    """
    questions = {name: dn.DRR(dn.Number(0, 1), 1.0) for name in ("sleep", "work", "sport")}
    m = dn.Joint.of_questions(questions)
    assert m.guarantee.epsilon == questions["sleep"].guarantee.epsilon
    n, runs, rng = 1_000, 120, np.random.default_rng(5)
    squares = 0.0
    for _ in range(runs):
        x = {name: rng.random(n) ** power for power, name in enumerate(questions, 1)}
        answers = [dict(zip(questions, row, strict=True)) for row in zip(*x.values(), strict=True)]
        tally = m.tally(m.privatize(answers, rng))
        for power, name in enumerate(questions, 1):
            e = m.about(name, tally).estimate(population="everyone")
            squares += (e.mean - 1 / (power + 1)) ** 2 / e.standard_error**2
    assert chi2.cdf(squares, 3 * runs) > 1e-7
    assert chi2.sf(squares, 3 * runs) > 1e-7


SMALL = [
    dn.Duchi(UNIT, 1.0),
    dn.Window(UNIT, 0.5, steps=3, width=2),
    dn.Window(UNIT, 4.0, steps=5, width=1),
    dn.HM(UNIT, 2.0, steps=4),
    dn.HM(UNIT, 0.5, steps=4),
]


@pytest.mark.parametrize("m", SMALL, ids=repr)
def test_the_noise_is_the_variance_of_the_channel_itself(m):
    """Also between the points of the lattice, and nowhere more than at the extremes."""
    values = sorted({GRID * k // 40 for k in range(41)} | {round(GRID * x) for x in m.extremes})
    channel = exact_channel(m.report, values)
    exact = []
    for law in channel.matrix:
        pairs = [(m.exact_scores[y], w) for y, w in zip(channel.outputs, law, strict=True)]
        mean = sum(score * w for score, w in pairs)
        exact.append(float(sum(score**2 * w for score, w in pairs) - mean**2))
    assert m.noise(np.array(values) / GRID) == pytest.approx(exact, rel=1e-9)
    assert m.worst_variance(1) == pytest.approx(max(exact), rel=1e-9)


def test_noise_that_is_cut_off_makes_less_variance_and_no_bias():
    m = dn.Laplace(UNIT, 1.0, steps=4, reach=3)
    (law,) = exact_channel(m.report, [GRID // 8]).matrix
    mean = sum(w * score for w, score in zip(law, m.exact_scores, strict=True))
    square = sum(w * score**2 for w, score in zip(law, m.exact_scores, strict=True))
    assert abs(mean - Fraction(1, 8)) < 1e-17
    noise = m.noise(np.array([1 / 8]))[0]
    assert 0.4 * noise < float(square - mean**2) < noise


@pytest.mark.parametrize("epsilon", [2.0**-20, 1e-4, 0.01, 16.0, 32.0])
def test_every_epsilon_has_its_mechanism(epsilon):
    for name in ("duchi", "window", "pm", "pmsub", "sw", "hm", "laplace"):
        m = dn.mechanism(name, UNIT, epsilon, **({"steps": 16} if name != "duchi" else {}))
        assert (1 - 2**-15) * epsilon < m.guarantee.epsilon <= epsilon


@pytest.mark.parametrize("bins", [1, 2, 4])
def test_the_law_of_a_bin_is_the_average_over_it(bins):
    """The law of a report is linear between multiples of 1/8: the trapezoid rule is exact."""
    m = dn.Window(UNIT, 1.0, steps=4, width=3)
    x = np.arange(9) / 8
    channel = exact_channel(m.report, (GRID * x).astype(int).tolist())
    rows = np.array(channel.matrix, dtype=np.float64)
    between = (rows[1:] + rows[:-1]) / 2
    expected = between.reshape(bins, -1, rows.shape[1]).mean(axis=1)
    counts, points = np.ones(m.cells), Binning(dn.Number(0, 1, 1 / 8), 9)
    found = m.observed_bins(counts, m.cells, Binning(UNIT, bins))
    assert found.channel == pytest.approx(expected, abs=1e-15)
    assert m.observed_bins(counts, m.cells, points).channel == pytest.approx(rows, abs=1e-15)


def test_one_mechanism_may_have_several_names():
    for name in ("harmony", "1BitMean", "duchi"):
        m = dn.mechanism(name, UNIT, epsilon=1.0)
        assert m == dn.Duchi(UNIT, 1.0)
        assert m.to_spec()["mechanism"]["name"] == "duchi"
    assert "harmony" not in dn.mechanisms()
    with pytest.raises(Unsupported) as refused:
        dn.mechanism("none", UNIT, epsilon=1.0)
    assert "harmony" not in str(refused.value)

    class Another(dn.Duchi):
        name = "another"
        also = ("harmony",)

    with pytest.raises(InvalidArgument, match="harmony"):
        register(Another)


def test_names_are_forgotten_with_the_family():
    class Passing(dn.Duchi):
        name = "passing"
        also = ("gone",)

    with registering(Passing):
        assert dn.mechanism("gone", UNIT, epsilon=1.0) == Passing(UNIT, 1.0)
    with pytest.raises(Unsupported):
        dn.mechanism("gone", UNIT, epsilon=1.0)


@pytest.mark.parametrize("name", ["duchi", "window", "hm", "laplace"])
def test_nobody_may_skip(name):
    with pytest.raises(InvalidArgument, match="nobody may skip"):
        dn.mechanism(name, dn.Number(0, 1, optional=True), epsilon=1.0)


def test_thresholds_that_break_epsilon_are_refused():
    for m in (dn.Duchi(UNIT, 1.0), dn.Window(UNIT, 1.0), dn.HM(UNIT, 1.0), dn.Laplace(UNIT, 1.0)):
        spec = m.to_spec()
        for name in set(m.thresholds) - {"mix"}:
            more = (1 << 44) * (-1 if name == "decay" else 1)
            broken = {**spec["mechanism"]["thresholds"], name: str(getattr(m, name) + (more << 6))}
            with pytest.raises(InvalidArgument, match="epsilon"):
                dn.from_spec({**spec, "mechanism": {**spec["mechanism"], "thresholds": broken}})
