"""Decoders, intervals, and the ways out of an estimate."""

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rich.console import Console
from scipy.stats import binom

import deniable as dn
from deniable.errors import InvalidArgument
from deniable.estimation.frequencies.simplex import clip_and_normalize, project

vectors = arrays(np.float64, st.integers(2, 30), elements=st.floats(-2, 2))


@pytest.mark.slow
@given(vectors, st.randoms(use_true_random=False))
def test_projection_is_the_nearest_point_of_the_simplex(f, random):
    found = project(f)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    # Optimality: no point of the simplex lies on the far side of the supporting plane.
    assert np.max(f - found) <= (f - found) @ found + 1e-9
    np.testing.assert_allclose(project(found), found, atol=1e-12)
    order = random.sample(range(f.size), f.size)
    np.testing.assert_allclose(project(f[order]), found[order], atol=1e-12)


@given(vectors)
def test_clipping_gives_a_distribution(f):
    found = clip_and_normalize(f)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(clip_and_normalize(found), found, atol=1e-12)


@pytest.fixture(scope="module")
def estimate():
    m = dn.OUE(["yes", "no", "<b>maybe</b>"], epsilon=2.0)
    answers = ["yes"] * 300 + ["no"] * 600 + ["<b>maybe</b>"] * 100
    return m.estimate(m.privatize(answers, np.random.default_rng(3)), "unbiased")


def test_ways_out_agree(estimate):
    frame = estimate.to_pandas()
    assert frame["frequency"].tolist() == estimate.frequencies.tolist()
    table = estimate.to_arrow()
    assert table["low"].to_pylist() == estimate.intervals[:, 0].tolist()
    assert table.schema.metadata[b"deniable.method"] == b"unbiased"
    parsed = json.loads(estimate.to_json())
    assert parsed["n"] == 1000
    assert [row["value"] for row in parsed["values"]] == list(estimate.labels)
    lines = estimate.to_csv().splitlines()
    assert lines[0] == "value,frequency,standard_error,low,high"
    assert len(lines) == 4


@pytest.mark.slow
def test_views_for_people(estimate):
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    console.print(estimate)
    text = console.export_text()
    assert "95 % interval" in text
    assert "yes" in text
    page = estimate._repr_html_()
    assert "&lt;b&gt;maybe" in page
    assert "<b>maybe" not in page
    chart = estimate.plot(truth=[0.3, 0.6, 0.1]).to_dict()
    assert chart["layer"]


@pytest.mark.slow
def test_labels_are_text_and_nothing_else(tmp_path):
    """Neither a terminal's markup nor a page's script can be reached from a label."""
    from rich.console import Console

    labels = ["[/]", "[bold]x", "\x1b[31m", "</script><b>", 'a,"b"\nc']
    m = dn.GRR(labels, 2.0)
    e = m.estimate(m.privatize(labels * 40, np.random.default_rng(1)))
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(e)
    text = console.export_text()
    assert "[/]" in text
    assert "[bold]x" in text
    assert "\\x1b[31m" in text
    page = e.save(tmp_path / "chart.html").read_text()
    assert "</script><b>" not in page
    assert "\\u003c/script>" in page
    assert list(csv.reader(io.StringIO(e.to_csv())))[5][0] == 'a,"b"\nc'


def test_labels_of_several_kinds_leave_as_text():
    m = dn.GRR([1, "a", 2], 2.0)
    e = m.estimate(m.privatize([1, "a", 2] * 50, np.random.default_rng(1)))
    assert e.to_arrow()["value"].to_pylist() == ["1", "a", "2"]
    assert e.plot().to_dict()
    assert e.to_pandas()["value"].tolist() == ["1", "a", "2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "epsilon", "block", "n"),
    [(3, 2.0, 4, 60), (3, 3.0, 2, 60), (64, 5.0, 2, 500), (20, 3.0, 8, 400), (1000, 4.0, 64, 2000)],
)
def test_hadamard_intervals_cover(k, epsilon, block, n):
    """Null hypothesis: 95 % intervals cover the most frequent value with 0.925..0.975."""
    m, runs = dn.HR(k, epsilon, block=block), 2000
    values = np.where(np.arange(n) < 0.3 * n, 0, np.arange(n) % k)
    truth = np.mean(values == 0)
    rng = np.random.default_rng(4)
    tallies = [m.tally(m.privatize(values, rng, threads=1), threads=1) for _ in range(runs)]
    intervals = np.array([t.estimate("unbiased").intervals[0] for t in tallies])
    hits = int(np.sum((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])))
    assert binom.cdf(hits, runs, 0.925) > 1e-9, hits / runs
    assert binom.sf(hits - 1, runs, 0.975) > 1e-9, hits / runs


def test_charts_of_large_domains_are_cut(estimate):
    m = dn.GRR(500, 4.0)
    large = m.estimate(m.privatize(np.arange(2000) % 500, np.random.default_rng(1)))
    assert len(large.chart()["data"]["values"]) == 60
    assert len(large._repr_html_().split("<tr>")) == 42
    assert len(large.to_pandas()) == 500


@pytest.mark.parametrize("method", ["normalized", "projected", None])
def test_constrained_estimates_are_distributions(method):
    m = dn.GRR(50, 0.5)
    e = m.estimate(m.privatize([0] * 500, np.random.default_rng(2)), method)
    assert e.frequencies.min() >= 0
    assert e.frequencies.sum() == pytest.approx(1)
    assert e.intervals.min() >= 0
    assert e.intervals.max() <= 1
    assert e.method == (method or "bayes")


def test_bad_arguments_are_refused(estimate):
    tally = dn.GRR(4, 1.0).tally(dn.GRR(4, 1.0).privatize([0, 1, 2]))
    with pytest.raises(InvalidArgument, match="'method' must be one of bayes, likelihood"):
        tally.estimate("magic")
    for wrong in (0, 1, 95, "high", None, "0.9", 0.9999999999999999):
        with pytest.raises(InvalidArgument, match="'confidence'"):
            tally.estimate(confidence=wrong)
    with pytest.raises(InvalidArgument, match="at least one report"):
        dn.GRR(4, 1.0).tally().estimate()
    with pytest.raises(InvalidArgument, match="'truth' must be 3 frequencies"):
        estimate.plot(truth=[1.0])
    for wrong in ([200, 700, 100], [-0.1, 0.6, 0.5], [0.5, float("nan"), 0.5], [None] * 3):
        for show in (estimate.plot, estimate.table):
            with pytest.raises(InvalidArgument, match="'truth' must be frequencies from 0 to 1"):
                show(truth=wrong)
    estimate.table(truth=[1 + 1e-12, -1e-12, 0])


def test_intervals_widen_with_confidence_and_shrink_with_n():
    m = dn.OUE(10, 1.0)
    few, many = (m.tally(m.privatize([0] * n, np.random.default_rng(1))) for n in (500, 50_000))
    for choices in ({"errors": "score"}, {"errors": "exact"}, {"method": "bayes"}):
        width = [
            np.ptp(tally.estimate(confidence=confidence, **choices).intervals, axis=1).mean()
            for tally, confidence in ((few, 0.99), (few, 0.95), (many, 0.95))
        ]
        assert width[0] > width[1] > width[2]


@pytest.mark.parametrize("block", [2, 4, 8, 16, 32])
def test_hadamard_response_with_every_block_size(block):
    m = dn.HR(13, 1.5, block=block)
    truth = np.bincount(np.arange(100_000) % 7, minlength=13) / 100_000
    e = m.estimate(m.privatize(np.arange(100_000) % 7, np.random.default_rng(9)), "unbiased")
    z = (e.frequencies - truth) / np.sqrt(m.variance(100_000, truth))
    assert np.abs(z).max() < 6.5  # 13 normal values: probability of a false alarm about 1e-9


def test_variances_of_the_papers():
    """The closed forms of the literature at f = 0, for the real (not rounded) probabilities."""
    e = np.exp(1.0)
    k = 20
    expected = {
        "grr": (e + k - 2) / (e - 1) ** 2,
        "sue": np.sqrt(e) / (np.sqrt(e) - 1) ** 2,
        "oue": 4 * e / (e - 1) ** 2,
        "blh": (e + 1) ** 2 / (e - 1) ** 2,
        "olh": (e + 3) ** 2 / (3 * (e - 1) ** 2),
        "hr": (e + 1) ** 2 / (e - 1) ** 2,
    }
    for name, value in expected.items():
        m = dn.mechanism(name, k, 1.0, **({"block": 32} if name == "hr" else {}))
        assert float(m.variance(1, 0.0)) == pytest.approx(value, rel=1e-9), name


@pytest.mark.parametrize("f", [[0.5], 2.0, -0.1, [0.1] * 5, [0.5] * 4, "x", {}, np.nan])
def test_variance_refuses_bad_frequencies(f):
    with pytest.raises(InvalidArgument, match="'f' must be"):
        dn.GRR(4, 1.0).variance(10, f)


def test_suggestions_beat_their_neighbours():
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        for k in (4, 16, 100):
            best = dn.SS(k, epsilon)
            for omega in {max(1, best.omega - 1), min(k - 1, best.omega + 1)}:
                other = dn.SS(k, epsilon, omega=omega)
                assert best.variance(1).mean() <= other.variance(1).mean() * (1 + 1e-9)
            hashed = dn.OLH(k, epsilon)
            for g in {max(2, hashed.g - 1), hashed.g + 1}:
                other = dn.OLH(k, epsilon, g=g)
                assert hashed.variance(1).mean() <= other.variance(1).mean() * (1 + 1e-9)
            response = dn.HR(k, epsilon)
            for block in (2, 4, 8, 16, 32, 64, 128):
                other = dn.HR(k, epsilon, block=block)
                assert response.variance(1).mean() <= other.variance(1).mean() * (1 + 1e-2)


def test_a_table_with_a_truth_fits_into_80_characters():
    """Also with the longest label that the library itself makes."""
    m = dn.GRR(["(anything else)", "60 or more"], 1.0)
    estimate = m.estimate(m.privatize(["60 or more"] * 50))
    console = Console(width=80, file=io.StringIO())
    console.print(estimate.table(truth=[0.0, 1.0]))
    shown = console.file.getvalue()
    assert "(anything else)" in shown
    assert "60 or more" in shown
    assert "1.0000" in shown
