"""Errors and divergences of estimates."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

import deniable as dn
from deniable.audit.forging.suite import manipulation_report
from deniable.errors import InvalidArgument
from deniable.estimation.metrics import (
    METRICS,
    chi_square,
    jensen_shannon,
    jensen_shannon_distance,
    kl,
    l1,
    l2,
    l_infinity,
    mae,
    mse,
    top_k_recall,
    utility_gain,
)

weights = st.one_of(st.just(0.0), st.floats(1e-3, 1))


@st.composite
def pairs(draw, strictly_positive=False):
    k = draw(st.integers(2, 12))
    found = []
    for _ in range(2):
        w = draw(arrays(np.float64, k, elements=weights))
        w = w + 1e-3 if strictly_positive or not w.any() else w
        found.append(w / w.sum())
    return found


ERRORS = {"mse": mse, "mae": mae, "l1": l1, "l2": l2, "l_infinity": l_infinity}


def test_values_by_hand():
    f, g = [0.5, 0.5, 0.0], [0.25, 0.5, 0.25]
    assert mse(f, g) == pytest.approx(0.125 / 3)
    assert mae(f, g) == pytest.approx(0.5 / 3)
    assert l1(f, g) == 0.5
    assert l2(f, g) == pytest.approx(math.sqrt(0.125))
    assert l_infinity(f, g) == 0.25
    assert kl(f, g) == pytest.approx(0.5 * math.log(2))
    assert kl(f, g, base=2) == pytest.approx(0.5)
    assert kl(g, f) == math.inf
    assert chi_square(f, g) == pytest.approx(0.5)
    assert chi_square(g, f) == math.inf
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(1)
    assert jensen_shannon([1, 0], [0, 1], base=math.e) == pytest.approx(math.log(2))
    assert jensen_shannon_distance([1, 0], [0, 1]) == pytest.approx(1)
    assert l1([0.5, 0.5], [-0.25, 1.25]) == 1.5  # unbiased estimates may leave the simplex


@pytest.mark.slow
@given(pairs(strictly_positive=True), st.sampled_from([2.0, math.e, 10.0]))
def test_divergences_agree_with_scipy(pair, base):
    f, g = pair
    assert kl(f, g, base) == pytest.approx(entropy(f, g, base), abs=1e-12)
    if l1(f, g) > 1e-4:  # nearer, SciPy takes the root of a rounding error of either sign
        js = jensenshannon(f, g, base)
        assert jensen_shannon_distance(f, g, base) == pytest.approx(js, rel=1e-6)


@pytest.mark.slow
@given(pairs())
def test_zeros_follow_the_conventions(pair):
    f, g = pair
    missed = np.any((f > 0) & (g == 0))
    assert (kl(f, g) == math.inf) == missed
    assert (chi_square(f, g) == math.inf) == missed
    assert math.isfinite(jensen_shannon(f, g))


@pytest.mark.slow
@given(pairs())
def test_symmetry_and_bounds(pair):
    f, g = pair
    k = f.size
    for name in (*ERRORS, "jensen_shannon", "jensen_shannon_distance"):
        assert METRICS[name](f, g) == pytest.approx(METRICS[name](g, f), abs=1e-15), name
    assert 0 <= jensen_shannon(f, g) <= 1 + 1e-12
    assert l_infinity(f, g) <= l2(f, g) + 1e-12 <= l1(f, g) + 2e-12 <= 2 + 3e-12
    assert l1(f, g) == pytest.approx(k * mae(f, g))
    assert l2(f, g) ** 2 == pytest.approx(k * mse(f, g))
    # Pinsker; KL below the logarithm of 1 + chi-square; Lin's bound by total variation.
    assert l1(f, g) ** 2 / 2 <= kl(f, g) + 1e-12
    assert kl(f, g) <= math.log1p(chi_square(f, g)) + 1e-12
    assert jensen_shannon(f, g) <= l1(f, g) / 2 + 1e-12


@pytest.mark.slow
@given(pairs(), st.randoms(use_true_random=False))
def test_zero_exactly_for_equals_and_blind_to_order(pair, random):
    f, g = pair
    order = random.sample(range(f.size), f.size)
    for name, metric in METRICS.items():
        if name == "top_k_recall":
            assert metric(f, f) == 1
            continue
        assert metric(f, f) == 0
        if np.abs(f - g).max() > 1e-6:
            assert metric(f, g) > 0
        assert metric(f[order], g[order]) == pytest.approx(metric(f, g), rel=1e-9, abs=1e-15)


def test_the_smallest_floats_do_no_harm():
    f, g = [1.0, 5e-324], [1.0, 0.0]
    assert jensen_shannon(f, g) == 0
    assert kl(f, g) == math.inf
    assert kl(g, f) == 0


def test_recall_of_the_most_frequent():
    truth = [0.4, 0.3, 0.2, 0.1]
    assert top_k_recall(truth, [0.1, 0.2, 0.3, 0.4], 2) == 0
    assert top_k_recall(truth, [0.4, 0.2, 0.3, 0.1], 2) == 0.5
    assert top_k_recall(truth, [0.2, 0.4, 0.3, 0.1], 3) == 1
    # All equal: the first of the domain are taken, in both lists.
    assert top_k_recall(truth, [0.25] * 4, 2) == 1
    assert top_k_recall(truth[::-1], [0.25] * 4, 2) == 0
    assert top_k_recall(truth, [0.0] * 4) == 1  # 10 of 4 values are all of them


def test_utility_gain_of_the_paper():
    assert utility_gain(0.4, 0.1) == pytest.approx(75)
    assert utility_gain(0.1, 0.4) == 0
    assert utility_gain(0.4, 0.0) == 100
    assert utility_gain(0.0, 0.0) == 0
    for reference, error in ((-1.0, 1.0), (1.0, math.nan), (math.inf, 1.0), ("1", 1.0)):
        with pytest.raises(InvalidArgument, match="a finite error"):
            utility_gain(reference, error)


@pytest.mark.parametrize("name", METRICS)
def test_bad_input_is_refused(name):
    metric = METRICS[name]
    for truth in ([], [[0.5, 0.5]], [math.nan, 1.0], [math.inf, 0.0], "ab", 1.0):
        with pytest.raises(InvalidArgument, match="'truth'"):
            metric(truth, [0.5, 0.5])
    for estimate in ([1.0], [0.2, 0.3, 0.5], [math.nan, 1.0], None, [[0.5], [0.5]]):
        with pytest.raises(InvalidArgument, match="'estimate'"):
            metric([0.5, 0.5], estimate)


@pytest.mark.parametrize("divergence", [kl, jensen_shannon, jensen_shannon_distance, chi_square])
def test_divergences_need_distributions(divergence):
    for wrong in ([1.1, -0.1], [0.5, 0.4]):
        with pytest.raises(InvalidArgument, match="'truth' must be frequencies that are not"):
            divergence(wrong, [0.5, 0.5])
        with pytest.raises(InvalidArgument, match="'estimate' must be frequencies that are not"):
            divergence([0.5, 0.5], wrong)


def test_bad_options_are_refused():
    for base in (1.0, 0.5, math.inf, math.nan, "e"):
        with pytest.raises(InvalidArgument, match="'base'"):
            kl([0.5, 0.5], [0.5, 0.5], base)
    for k in (0, -1, 1.5, True):
        with pytest.raises(InvalidArgument, match="'k'"):
            top_k_recall([0.5, 0.5], [0.5, 0.5], k)


LABELS = ["car", "train", "other"]
SHUFFLED = {"other": 0.1, "car": 0.6, "train": 0.3}
WRONG = [
    ({"car": 0.6, "train": 0.4}, r"missing: \['other'\]"),
    ({**SHUFFLED, "bus": 0.0}, r"unknown: \['bus'\]"),
    (pd.Series([0.6, 0.3, 0.1]), r"missing: \['car', 'train', 'other'\], unknown: \[0, 1, 2\]"),
    (pd.Series([0.6, 0.3, 0.05, 0.05], [*LABELS, "other"]), r"repeated: \['other'\]"),
]


def estimated():
    m = dn.GRR(LABELS, 4.0)
    return m.estimate(m.privatize(["car"] * 60 + ["train"] * 30 + ["other"] * 10))


def truths(chart):
    return [row["truth"] for row in chart["data"]["values"]]


def takers():
    """Everything that takes one number for each answer, and what it makes of it."""
    m, e = dn.GRR(LABELS, 4.0), estimated()
    rounds = dn.Series.of({"spring": m.tally(m.privatize(LABELS * 9))})
    return {
        "plot": lambda truth: truths(e.chart(truth)),
        "table": lambda truth: [list(column.cells) for column in e.table(truth).columns],
        "series": lambda truth: truths(rounds.chart(truth)),
        "variance": lambda truth: m.variance(100, truth).tolist(),
        "manipulation": lambda truth: manipulation_report(
            m, 40, 4, ["car"], rng=np.random.default_rng(1), frequencies=truth, runs=1
        ).rows(),
        "prior": lambda truth: dn.inference_risk(m, prior=truth).rows(),
        **{name: (lambda truth, f=f: f(truth, e)) for name, f in METRICS.items()},
        "top_k_recall": lambda truth: top_k_recall(truth, e, 1),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", list(takers()))
def test_labels_are_aligned_and_wrong_ones_are_refused(name):
    take = takers()[name]
    plain = take([0.6, 0.3, 0.1])
    assert take(SHUFFLED) == plain
    assert take(pd.Series(SHUFFLED)) == plain
    assert take(np.array([0.6, 0.3, 0.1])) == plain
    assert take(pl.Series([0.6, 0.3, 0.1])) == plain
    assert take([0.1, 0.3, 0.6]) != plain
    for wrong, words in WRONG:
        with pytest.raises(InvalidArgument, match=words):
            take(wrong)


def test_a_truth_of_rounds_is_aligned_by_rounds_and_labels():
    m = dn.GRR(LABELS, 4.0)
    series = dn.Series.of({name: m.tally(m.privatize(LABELS * 9)) for name in ("spring", "autumn")})
    table = pd.DataFrame({"spring": [0.6, 0.3, 0.1], "autumn": [0.5, 0.3, 0.2]}, LABELS).T
    assert truths(series.chart(table.iloc[::-1, [2, 0, 1]])) == truths(
        series.chart(table.to_numpy())
    )
    with pytest.raises(InvalidArgument, match=r"missing: \['spring'\]"):
        series.plot(table.drop("spring"))


@pytest.mark.parametrize("kind", [dict, pl.DataFrame, pa.table], ids=["lists", "polars", "arrow"])
def test_columns_of_rounds_are_not_taken_for_rows(kind):
    """As many rounds as values: a column of rounds has the length of a row of values."""
    m = dn.GRR(LABELS, 4.0)
    series = dn.Series.of({i: m.tally(m.privatize(LABELS * 9)) for i in range(3)})
    rows = np.array([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.4, 0.3, 0.3]])
    columns = {"other": [0.1, 0.2, 0.3], "car": [0.6, 0.5, 0.4], "train": [0.3] * 3}
    assert truths(series.chart(kind(columns))) == truths(series.chart(rows))
    with pytest.raises(InvalidArgument, match="'truth' must be frequencies"):
        series.plot(kind({name: column[:2] for name, column in columns.items()}))


@pytest.mark.parametrize("wrong", [[60, 30, 10], [0.6, 0.4, math.nan], [1.2, -0.1, -0.1]], ids=str)
def test_counts_and_missing_numbers_are_no_truth(wrong):
    """A chart of counts beside shares would be of counts alone."""
    series = dn.Series.of({"spring": dn.GRR(LABELS, 4.0).privatize(LABELS * 9)})
    for take in (estimated().plot, estimated().table, series.plot):
        with pytest.raises(InvalidArgument, match="'truth' must be frequencies from 0 to 1"):
            take(truth=wrong)


def test_labels_that_nothing_can_be_aligned_with_are_refused():
    """Frequencies as pandas counts them are in the order of their size."""
    with pytest.raises(InvalidArgument, match="without labels here"):
        mse(pd.Series(SHUFFLED), estimated().frequencies)
    assert mse(pd.Series([0.6, 0.3, 0.1]), [0.6, 0.3, 0.1]) == 0


def test_histograms_are_aligned_by_label():
    m = dn.GRR(LABELS, 4.0)
    drawn = [
        m.simulate(histogram, np.random.default_rng(1)).tolist()
        for histogram in ([60, 30, 10], {"other": 10, "train": 30, "car": 60})
    ]
    assert drawn[0] == drawn[1]
