"""Arcolezi et al. 2023: the laws of the counts, the update, the readings, and a tiny study."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import deniable as dn
from deniable.cli import app
from deniable.estimation.frequencies.ibu import iterate, pure_channel, water_filling
from deniable_papers.cells import Notebook, finish
from deniable_papers.datasets import Column, Dataset
from deniable_papers.ibu import findings, simulation, study
from deniable_papers.ibu.designs import MECHANISMS, SETTINGS, design, settings_of
from deniable_papers.ibu.gains import AS_RUN, Average, Found, How, mean_of
from deniable_papers.ibu.populations import (
    FULL,
    QUICK,
    REAL,
    SYNTHETIC,
    Grid,
    buckets,
    histograms,
    incomes,
    seeded,
)
from deniable_papers.ibu.published import METRICS, TABLES
from deniable_papers.ibu.simulation import count_all, iterate_all, simulate
from deniable_papers.results import Verdict, read

#: Chance breaks a bound with at most this probability.
RARE = 1e-6


def test_the_update_is_that_of_the_library():
    """All rows at once, with the rule applied to each on its own."""
    rng = np.random.default_rng(1)
    p, q = np.array([0.5, 0.6, 0.9]), np.array([0.2, 0.1, 0.01])
    counts = rng.multinomial(3000, rng.dirichlet(np.ones(7)), size=3).astype(float)
    found = iterate_all(counts, p, q, iterations=400)
    for row, c, a, b in zip(found, counts, p, q, strict=True):
        one = iterate(c, pure_channel(7, a, b), iterations=400)
        assert row == pytest.approx(one.frequencies, abs=1e-13)
    assert iterate_all(counts[2:], p[2:], q[2:])[0] == pytest.approx(
        water_filling(counts[2], p[2], q[2]), abs=1e-9
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_corrected_designs_are_the_mechanisms_of_the_library(name):
    one = design("corrected", name, 20, 1.0)
    assert one.inverse == one.update == (one.p, one.q)
    if not name.startswith("L-"):
        m = dn.mechanism(name.lower(), 20, 1.0)
        assert (one.p, one.q) == (float(m.p), float(m.q))
    assert settings_of(name)[-1] == "corrected"


@pytest.mark.parametrize("setting", SETTINGS)
def test_published_designs(setting):
    """All settings agree for two values, but for L-LH, whose q is wrong for every g."""
    for name in ("SS", "L-GRR"):
        right = design("corrected", name, 2, 1.0)
        one = design(setting, name, 2, 1.0)
        assert one.inverse == pytest.approx(right.inverse, rel=1e-9)
        assert one.update == pytest.approx(right.update, rel=1e-9)
    known = {"text": (1, 3), "software": (2, 4)}.get(setting, (2, 4))
    assert design(setting, "SS", 100, 4.0).omega == known[0]
    assert 1 / design(setting, "OLH", 100, 1.0).q == pytest.approx(known[1])


@pytest.mark.parametrize(("name", "long"), [("L-GRR", dn.LGRR), ("L-BLH", dn.LBLH)])
def test_true_laws_of_published_chains(name, long):
    """The library has the paper's calibration, too, with its true p and q."""
    m = long(30, 4.0, 2.0, calibration="paper")
    for setting in ("text", "software"):
        one = design(setting, name, 30, 2.0)
        assert (one.p, one.q) == pytest.approx((float(m.p), float(m.q)), rel=1e-9)
    assert design("software", name, 30, 2.0).inverse == pytest.approx((one.p, one.q))
    assert design("software", name, 30, 2.0).update[1] != pytest.approx(one.q, rel=0.1)


def test_printed_formulas_of_l_grr():
    """Section 3.2 (with errata 22), at k = 5, eps_inf = 2, eps_1 = 1."""
    a, b, k = math.exp(2), math.exp(1), 5
    p1, p2 = a / (a + k - 1), (a * b - 1) / (-k * b + (k - 1) * a + b + a * b - 1)
    q1, q2 = (1 - p1) / (k - 1), (1 - p2) / (k - 1)
    one = design("text", "L-GRR", k, 1.0)
    assert one.inverse == pytest.approx((p1 * p2 + q1 * q2, p1 * q2 + q1 * p2))
    true = p1 * p2 + (k - 1) * q1 * q2, p1 * q2 + q1 * p2 + (k - 2) * q1 * q2
    assert (one.p, one.q) == pytest.approx(true)


@pytest.mark.parametrize("name", ["GRR", "OUE", "SS", "L-GRR", "L-OLH"])
def test_counts_have_their_law(name):
    """Null: a value's count is Bin(h, p) + Bin(n - h, q). Exact tails of an all-or-nothing value,
    over many collections; so is the law of the values of nobody."""
    k, runs, n = 12, 400, 50
    one = design("software", name, k, 1.0)
    people = np.zeros((runs, k), dtype=np.int64)
    people[:, 0] = n
    counts = count_all(one, people, 1.0, np.random.default_rng(5))
    for value, share in ((0, one.p), (1, one.q), (k - 1, one.q)):
        total = int(counts[:, value].sum())
        tail = min(binom.cdf(total, n * runs, share), binom.sf(total - 1, n * runs, share))
        assert tail > RARE / 30
    if one.law != "bits":
        assert (counts.sum(axis=1) == n * one.omega).all()


def test_buckets():
    """Of k + 1 buckets of equal width the last two are one."""
    assert buckets(np.array([0.0, 0.9, 1.1, 2.1, 3.0]), 2).tolist() == [2, 3]
    assert buckets(np.arange(7), 6).tolist() == [1, 1, 1, 1, 1, 2]
    assert buckets(np.arange(6), 6, equal=True).tolist() == [1] * 6
    sparse = buckets(np.array([0, 1, 1, 5]), 50)
    assert (sparse > 0).sum() == 3


def test_a_run_has_one_sample_at_every_size():
    settings = {"distribution": "Poiss.", "n": 300, "k": 2, "runs": 3}
    few = histograms(settings, np.random.default_rng(1))
    again = histograms({**settings, "k": 200}, np.random.default_rng(2))
    assert (few.sum(axis=1) == 300).all()
    assert (again.max(axis=1) < 100).all()
    assert np.array_equal(few, histograms(settings, np.random.default_rng(3)))
    (other,) = seeded([settings], 7)
    assert not np.array_equal(few, histograms(other, np.random.default_rng(3)))
    assert seeded([settings], 0) == [settings]
    assert set(SYNTHETIC) == {"Gauss.", "Exp.", "Unif.", "Poiss.", "Triang."}


@pytest.fixture(scope="module")
def survey():
    """Incomes of three states."""
    rng = np.random.default_rng(4)
    amounts = [str(int(x)) for x in rng.exponential(30_000, 300)]
    states = ["AL", "AK", "CA"] * 100
    columns = {"pincp": Column.of(amounts), "stabbr": Column.of(states)}
    return Dataset("acs-income", "made up", columns)


def test_incomes_are_of_the_first_states(survey):
    amounts = np.array([float(x) for x in survey.column("pincp").labels])
    codes = survey.column("pincp").codes
    wanted = np.arange(300) % 3 != 2
    assert np.array_equal(incomes(survey), amounts[codes][wanted & (amounts[codes] > 100)])
    alone = Dataset("acs-income", "", {"PINCP": Column.of(["50", "", "900"])})
    assert incomes(alone).tolist() == [900.0]


def test_averages_know_what_runs_share():
    shared = np.array([1.0, -1.0, 2.0, -2.0])
    a, b = Average(5 + shared, 0.1), Average(3 + shared, 0.1)
    assert (a - b).value == pytest.approx(2.0)
    assert (a - b).error == pytest.approx(math.hypot(0.1, 0.1))
    assert a.error == pytest.approx(shared.std(ddof=1) / 2)
    assert mean_of([a, b]).value == pytest.approx(4.0)


def test_published_tables():
    assert TABLES["Table 2"][1]["Poiss.", "OLH", "MSE"] == 46
    assert TABLES["Table 3"][1]["Unif.", "L-BLH", "MAE"] == 43
    for mechanisms, table in TABLES.values():
        assert len(table) == 7 * 8 * 2
        for metric in METRICS:
            row = [table["Avg.", name, metric] for name in mechanisms]
            assert table["Avg.", "Avg.", metric] == pytest.approx(np.mean(row), abs=0.75)
    assert AS_RUN.key("GRR") == How("text", "update").key("GRR") == "GRR corrected"


TINY = Grid(runs=2, learned=0, sizes=(2, 100), respondents=(20_000, 20_001))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, survey):
    """A finished tiny study."""
    notebook = Notebook(tmp_path_factory.mktemp("ibu") / "cells.jsonl", 3)
    one = study.Ibu(False, {"acs-income": survey}, grid=TINY)
    for _, cells in one.stages(notebook):
        list(finish(cells, one.work, notebook))
    return one, notebook, one.results(notebook)


@pytest.fixture(scope="module", autouse=True)
def few_steps():
    """10^4 steps take long."""
    patch = pytest.MonkeyPatch()
    patch.setattr(simulation, "iterate_all", lambda c, p, q: iterate_all(c, p, q, iterations=50))
    yield
    patch.undo()


def test_a_cell_knows_all_decoders():
    """Matrix inversion gains nothing over itself; the default decoder has its own runs."""
    settings = {"distribution": "Unif.", "n": 2000, "k": 6, "epsilon": 1.0, "runs": 3, "learned": 2}
    values = simulate(settings, np.random.default_rng(9))
    assert set(values) == {f"{m} {setting}" for m in MECHANISMS for setting in settings_of(m)}
    entry = values["SUE corrected"]["MAE"]
    assert entry["inverse"]["gains"] == [0.0, 0.0, 0.0]
    assert entry["inverse"]["log"] == [0.0, 0.0]
    assert len(entry["bayes"]["gains"]) == 2
    assert "bayes" not in values["L-SUE corrected"]["MAE"]
    ratio = entry["limit"]["loss"][0] / entry["inverse"]["loss"][0]
    assert entry["limit"]["log"][0] == pytest.approx(math.log(ratio), abs=1e-4)


def test_a_study_from_cells_to_charts(tiny):
    one, _, results = tiny
    places = {result.where for result in results}
    for where in ("Table 2", "Table 3, text", "Table 2, corrected", "Figure 1", "Figure 4"):
        assert where in places
    for result in results:
        if result.cell.get("distribution") == REAL:
            assert "other persons" in result.reason
    assert sum(result.where == "Table 3" for result in results) == 7 * 8 * 2
    for chart in one.charts(results).values():
        assert len(json.dumps(chart.to_dict())) > 1000


def test_readings_are_told_apart(tiny):
    """The distances of all readings; here both kinds of buckets are the same cells."""
    one, notebook, _ = tiny
    found = Found(one.cells(notebook), notebook)
    rows = {(r.where, r.cell["reading"]): r.ours for r in findings.readings(found, found)}
    assert len(rows) == 2 * 5
    where = "Table 3, distance to the published cells"
    assert rows[where, "as run"] == rows[where, "k buckets of equal width"] > 0
    names = [f"formulas of the {kind}, where they differ" for kind in ("text", "software")]
    assert rows[where, names[0]] > rows[where, names[1]]


def test_promises_of_the_published_l_grr(tiny):
    """ln((a c + k - 1) / (a + c + k - 2)) with the published c; right for two values."""
    rows = [r for r in tiny[2] if r.where == "section 3.2, epsilon of a first report"]
    for row in rows:
        k, epsilon = int(row.cell["k"]), float(row.cell["epsilon_1"])
        a, b = math.exp(2 * epsilon), math.exp(epsilon)
        c = (a * b - 1) / (a - b)
        assert row.ours == pytest.approx(math.log((a * c + k - 1) / (a + c + k - 2)), rel=1e-9)
        assert row.verdict is (Verdict.reproduced if k == 2 else Verdict.differs)


def test_without_incomes_the_rest_is_there(tiny):
    whole, notebook, everything = tiny
    alone = study.Ibu(False, grid=TINY)
    results = alone.results(notebook)
    left_out = set(whole.charts(everything)) - set(alone.charts(results))
    assert left_out == {"ibu-figure-1-2"}
    rows = [result for result in results if result.where == "Table 2"]
    assert len(rows) == 5 * 8 * 2
    assert "Figure 1" not in {result.where for result in results}
    assert {str(result.verdict) for result in rows} <= {str(verdict) for verdict in Verdict}


def test_the_command_writes(tiny, tmp_path, monkeypatch):
    """All cells but those of real data, which is not given, are finished."""
    _, notebook, _ = tiny
    monkeypatch.setattr(study.Ibu, "grids", (TINY, TINY))
    (tmp_path / "cells.jsonl").write_bytes(notebook.path.read_bytes())
    command = ["reproduce", "ibu", "--processes", "1", "--no-charts", "--seed", "3"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "psam_p*.csv" in done.stderr
    assert any(one.where == "Table 3, claim" for one in read(tmp_path / "ibu.json"))


def test_the_papers_settings_are_in_the_full_grid():
    assert FULL.runs == 20
    for grid in (QUICK, FULL):
        assert grid.sizes == (2, 50, 100, 200)
        assert grid.respondents == (20_000, 100_000)
        assert grid.epsilons == (1.0, 2.0, 4.0)
    assert len(FULL.cells()) == len(FULL.equal()) == 5 * 24
    assert not QUICK.equal()
    assert len(FULL.cells(np.array([1.0, 2.0]))) == 6 * 24
