"""Le and Zia 2021: the published numbers, the settings that explain them, and the whole study."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.estimation.frequencies.ibu import water_filling
from deniable_papers.cells import Notebook, finish
from deniable_papers.comparative import claims, designs, findings, grids, losses, published
from deniable_papers.comparative.grids import FULL, QUICK, Grid, label, population
from deniable_papers.comparative.hadamard import PublicHadamard
from deniable_papers.comparative.study import Comparative
from deniable_papers.datasets import Column, Dataset
from deniable_papers.results import Verdict

#: Chance breaks a bound with at most this probability.
RARE = 1e-6
SIZES = [one.d for one in published.ATTRIBUTES]


def test_tables_are_as_printed():
    """Sums of the columns of means, and some entries."""
    found = {
        epsilon: [sum(pair[0] for key, pair in table.items() if key[2] == m) for m in order]
        for order in [published.MECHANISMS]
        for epsilon, table in published.LOSSES.items()
    }
    assert found[0.5] == pytest.approx([0.287, 0.187, 0.357, 0.274, 0.259])
    assert found[1.0] == pytest.approx([0.154, 0.186, 0.185, 0.154, 0.245])
    assert found[2.0] == pytest.approx([0.063, 0.189, 0.111, 0.086, 0.203])
    assert published.LOSSES[0.5]["Statlog", "A4", "CMS"] == (0.109, 0.054)
    assert published.LOSSES[2.0]["Adult", "Race", "HR"] == (0.055, 0.002)
    assert published.LOSSES[1.0]["USCensus1990", "PoB", "k-RR"] == (0.002, 0.0)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("epsilon", published.TABLES)
def test_public_hadamard_response_is_biased_where_its_blocks_differ(d, epsilon):
    """The channel is exact: its epsilon, and the mean of the estimate when all have one value."""
    m = PublicHadamard(d, epsilon)
    channel = m.channel()
    sent = channel[:, channel[0] > 0]
    assert channel.sum(axis=1) == pytest.approx(np.ones(d))
    assert math.log((sent.max(axis=0) / sent.min(axis=0)).max()) == pytest.approx(m.epsilon)
    assert m.epsilon <= epsilon * (1 + 1e-12)
    means = np.array([m.estimate(row, 1) for row in channel])
    assert (np.abs(means - np.eye(d)).max() > 0.05) == m.biased
    assert m.biased == ((d, epsilon) in [(3, 1.0), (15, 1.0), (63, 1.0), *((s, 2.0) for s in SIZES)]
                        and (d, epsilon) != (12, 2.0))  # fmt: skip


def test_public_hadamard_response_is_simulated_by_its_channel():
    """Null: every index has the probability of the channel; exact binomial tails."""
    m, histogram, rng = PublicHadamard(5, 2.0), np.array([9, 0, 5, 1, 1]) * 10_000, np.random
    counts = m.simulate(histogram, rng.default_rng(4))
    n = int(histogram.sum())
    assert counts.sum() == n
    law = histogram @ m.channel() / n
    for value, channel in enumerate(m.channel()):
        alone = m.simulate(np.eye(5, dtype=np.int64)[value] * n, rng.default_rng(value))
        for count, share in zip(alone, channel, strict=True):
            assert binom.cdf(count, n, share) > RARE / 100
            assert binom.sf(count - 1, n, share) > RARE / 100
    # Counts of a mixed population vary less than binomial ones: Hoeffding's inequality.
    assert np.abs(counts - n * law).max() <= math.sqrt(n * math.log(200 / RARE) / 2)


@pytest.mark.parametrize("d", [3, 8, 42])
@pytest.mark.parametrize("epsilon", published.TABLES)
def test_true_epsilons(d, epsilon):
    """Corrected readings cost what they say; Basic RAPPOR as published costs ln 3."""
    for reading, choices in designs.READINGS.items():
        for mechanism, choice in choices.items():
            true = designs.true_epsilon(choice, d, epsilon)
            if (reading, mechanism) == (designs.AS_PUBLISHED, "bRAPPOR"):
                assert true == pytest.approx(math.log(3))
            elif choice.startswith(designs.PUBLIC_HR):
                assert true == PublicHadamard(d, epsilon).epsilon
            else:
                assert true == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", published.TABLES)
def test_cms_as_printed_has_another_epsilon(epsilon):
    flip = Fraction(1 / (math.exp(epsilon) / 2 + 1))
    high, low = max(flip, 1 - flip), min(flip, 1 - flip)
    true = dn.UE(4, p=high, q=low).guarantee.epsilon
    (row,) = [r for r in findings.printed_sketch() if r.cell["epsilon"] == epsilon]
    assert row.ours == pytest.approx(float(true), rel=1e-9)
    assert row.verdict is Verdict.differs


def test_subsets_of_one_value_are_randomised_response():
    for d, epsilon in ((3, 1.0), (8, 2.0)):
        assert dn.SS(d, epsilon).omega == 1
        assert designs.choices(designs.DEFAULT, d, epsilon)["k-subset"] == "GRR default"
        assert designs.choices(designs.CORRECTED, d, epsilon)["k-subset"] == "SS clipped"
    assert designs.choices(designs.DEFAULT, 42, 2.0) == designs.READINGS[designs.DEFAULT]


def test_decoders():
    m, n = dn.GRR(4, 1.0), 100
    counts = np.array([60, 30, 5, 5])
    f = m.unbiased(counts, n)
    assert f.min() < 0
    decoded = {name: designs._decode(name, m, counts, n) for name in ("ml", "clipped", "default")}
    assert np.array_equal(decoded["ml"], water_filling(counts, float(m.p), float(m.q)))
    assert np.array_equal(decoded["clipped"], np.maximum(f, 0))
    tally = dn.Tally.of_counts(m, counts, n)
    assert decoded["default"] == pytest.approx(tally.estimate().frequencies)
    normalized = designs._decode("normalized", m, counts, n)
    assert normalized == pytest.approx(decoded["clipped"] / decoded["clipped"].sum())


def test_a_run_has_every_design_of_every_reading():
    rng = np.random.default_rng(2)
    found = designs.estimates(np.array([300, 200, 0, 50, 100]), 1.0, rng)
    wanted = {choice for choices in designs.READINGS.values() for choice in choices.values()}
    assert wanted | {designs.SKETCH} == set(found)
    assert all(f.shape == (5,) and f.min() >= 0 for f in found.values())


def test_means_and_deviations_of_runs():
    runs = np.random.default_rng(1).normal(5, 2, 1000).tolist()
    mean, std, error = losses._moments(runs)
    assert (mean, std) == (np.mean(runs), np.std(runs, ddof=1))
    # Of normal numbers the error is std / sqrt(2 r); their fourth moment is known to some percent.
    assert error == pytest.approx(std / math.sqrt(2000), rel=0.2)
    assert losses.Loss(mean, std, 0.0, 2).std_error == pytest.approx(std / math.sqrt(2))
    assert losses._moments([1.0, 1.0]) == (1.0, 0.0, 0.0)


def _dataset(name, columns):
    return Dataset(name, "made up", {key: Column.of(values) for key, values in columns.items()})


def test_a_sample_becomes_the_population_of_the_paper():
    race = published.ATTRIBUTES[8]
    sample = _dataset("census1990", {"RACE": ["1"] * 5 + ["2"] * 2})
    found = population(race, sample)
    assert (found.size, found.sum()) == (63, 2_458_285)
    assert found[:3].tolist() == [1_755_918, 702_367, 0]
    assert label(race, sample) == "USCensus1990 (frequencies of a sample of 7 rows)"
    whole = _dataset("australian", {"A4": ["1"] * 500 + ["2"] * 180 + ["3"] * 10})
    assert population(published.ATTRIBUTES[0], whole).tolist() == [500, 180, 10]
    assert label(published.ATTRIBUTES[0], whole) == "Statlog"


def test_the_paper_s_settings():
    assert [one.runs for one in published.ATTRIBUTES] == [100] * 6 + [10] * 4
    assert FULL.runs[:2] == (100, 10)
    for grid in (FULL, QUICK):
        cells = grid.figures()
        assert {(c["d"], c["n"] <= 20_000) for c in cells} == {
            (20, True), (100, True), (100, False), (500, False),
        }  # fmt: skip
        assert max(c["n"] for c in cells) == 400_000


def test_claims_look_at_means_and_errors():
    field = {"a": (1.0, 0.01, 100), "b": (1.04, 0.01, 100), "c": (1.5, 0.01, 100)}
    assert claims.best("x", field, "b").value < 0
    assert claims.best("x", field, "c").against
    assert claims.ahead("x", field, ("b", "c"), ("a",)).value == pytest.approx(1.04 - 1.05)
    assert claims.comparable("x", field, "b", "a").value == pytest.approx(1.04 - 1.2)
    (row,) = claims._say("t", "r", "c", [claims.best("x", field, n) for n in "abc"])
    assert (row.published, row.ours) == (0.5, pytest.approx(2 / 3))
    assert row.verdict is Verdict.reproduced
    assert not list(claims._say("t", "r", "c", []))


def test_bits_that_fail_as_on_the_census():
    fields = {("n", 0.5): dict.fromkeys(published.MECHANISMS, (1.0, 0.1, 10))}
    found = claims._failing(5, fields)["n", 0.5]
    assert found["bRAPPOR"] == (pytest.approx(0.016 * 63 / 500), 0.0, math.inf)
    assert found["CMS"] == (pytest.approx(0.023 * 63 / 500), 0.0, math.inf)
    assert found["k-RR"] == (1.0, 0.1, 10)
    assert claims._failing(2, fields) == fields


TINY = Grid(runs=(3, 2, 2, 2), small=(500,), large=(1500,))


@pytest.fixture(scope="module")
def sets():
    """Two columns of the paper, made up."""
    answers = np.random.default_rng(0).choice(3, 690, p=[0.7, 0.2, 0.1])
    military = ["0", "1", "2", "3", "4"] * 20 + ["4"] * 100
    return {
        "australian": _dataset("australian", {"A4": [str(v) for v in answers]}),
        "census1990": _dataset("census1990", {"MILITARY": military}),
    }


def _finished(study, path):
    notebook = Notebook(path, 3)
    for _, cells in study.stages(notebook):
        list(finish(cells, study.work, notebook))
    return notebook


def test_a_study_from_cells_to_charts(sets, tmp_path, monkeypatch):
    monkeypatch.setattr(grids, "population", lambda one, data: population(one, data) // 100)
    monkeypatch.setattr(designs, "DEFAULT_METHOD", "normalized")  # faster
    study = Comparative(False, sets, TINY)
    results = study.results(_finished(study, tmp_path / "cells.jsonl"))
    means = [r for r in results if r.where in published.TABLES.values()]
    assert len(means) == 2 * 3 * 5
    assert all(r.published_error > 0 for r in means if r.cell["data"] == "Statlog")
    worth = [r for r in results if r.where == "Tables II-IV, means explained"]
    assert [r.cell["reading"] for r in worth] == [designs.AS_PUBLISHED, designs.CORRECTED]
    assert worth[0].ours == sum(r.verdict is Verdict.reproduced for r in means)
    census = [r for r in results if str(r.cell.get("data")).startswith("USCensus1990 ")]
    assert all("sample of 200 rows" in r.cell["data"] for r in census)
    (n,) = [r for r in results if r.where == "Table I, n" and r.cell["data"] == "USCensus1990"]
    assert n.verdict is Verdict.differs
    corrected = [r for r in results if r.where == "Table III, corrected"]
    assert len(corrected) == 2 * 2
    assert all(r.ours == pytest.approx(r.cell[r.cell["best"]], rel=1e-3) for r in corrected)
    places = {r.where for r in results}
    assert {"Table II, claim", "Figure 2a, claim", "Figure 5c", "section IV, claim"} <= places
    drawn = study.charts(results)
    assert set(drawn) == {"comparative-figures", "comparative-tables"}
    for chart in drawn.values():
        assert len(json.dumps(chart.to_dict())) > 1000
    alone = Comparative(False, None, TINY)
    rows = alone.results(Notebook(tmp_path / "cells.jsonl", 3))
    assert not any(r.where.startswith("Table") for r in rows)
