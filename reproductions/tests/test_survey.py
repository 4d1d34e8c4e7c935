"""The survey of T. Wang et al. 2020: formulas are exact, choices follow from losses."""

import json
import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import deniable as dn
from deniable.cli import app
from deniable.mechanisms.frequency import frequency_oracles
from deniable_papers import boxes
from deniable_papers.cells import Notebook, finish
from deniable_papers.results import Verdict, read
from deniable_papers.survey import costs, losses, means, study, variances
from deniable_papers.survey.choosing import Point
from deniable_papers.survey.grids import FULL, Grid
from deniable_papers.survey.oracles import ORACLES
from deniable_papers.survey.table4 import markdown
from places import ROOT

PAGES = ROOT / "docs" / "papers"
#: Chance breaks a bound with at most this probability.
RARE = 1e-6


def test_the_table_names_oracles_of_the_registry():
    """Others may come: a new mechanism is none of the paper's."""
    assert {oracle.family for oracle in ORACLES.values()} <= set(frequency_oracles())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_what_table_4_has_right_and_wrong(epsilon):
    """By the exact variance at f = 0 of the channel that ships."""
    e = math.exp(epsilon)
    for name, k in (("BRR", 2), ("GRR", 16), ("SUE", 16), ("OUE", 16), ("BLH", 16)):
        m = ORACLES[name].build(k, epsilon)
        assert ORACLES[name].published(m, epsilon) == pytest.approx(float(m.variance(1, 0.0)))
    wrong = {"S-Hist": (e + 1) ** 2 / e, "HRR": (e + 1) ** 2 / (4 * e)}
    for name, factor in wrong.items():
        m = ORACLES[name].build(16, epsilon)
        ratio = float(m.variance(1, 0.0)) / ORACLES[name].published(m, epsilon)
        assert ratio == pytest.approx(factor)


def test_collections_are_made_of_reports():
    """Null: a value that nobody has is supported with q; exact binomial tails over all runs."""
    m = dn.OUE(4, 1.0)
    histogram = variances.population(m)
    assert histogram.tolist() == [0, 256, 0, 256]
    rng = np.random.default_rng(5)
    counts = sum(variances._collections(m, histogram, 100, rng))
    reports = 100 * 512
    for value in (0, 2):
        tails = (
            binom.cdf(counts[value], reports, float(m.q)),
            binom.sf(counts[value] - 1, reports, float(m.q)),
        )
        assert min(tails) > RARE / 4


def test_growth_of_reports():
    powers = {name: costs.growth(ORACLES[name], 1.0) for name in ("BRR", "GRR", "OUE", "RAPPOR")}
    assert powers["BRR"] is None
    assert powers["GRR"] == pytest.approx(math.log(16 / 10) / math.log(64))
    assert powers["OUE"] == pytest.approx(1.0)
    assert powers["RAPPOR"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", means.LAWS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_channels_of_table_9(name, epsilon):
    """Their laws sum to 1 and are unbiased; the printed variance is the worst."""
    for v in (-1.0, -0.4, 0.0, 0.7, 1.0):
        law = means.LAWS[name](v, epsilon)
        assert sum(w for w, _, _ in law) == pytest.approx(1.0)
        assert sum(w * (a + b) / 2 for w, a, b in law) == pytest.approx(v)
        assert means.variance(name, v, epsilon) <= means.worst(name, epsilon) * (1 + 1e-12)
    assert means.worst(name, epsilon) == pytest.approx(means.published(name, epsilon))


def test_densities_of_pm_differ_by_epsilon():
    for v in (-1.0, 0.3, 1.0):
        pieces = [(w / (b - a)) for w, a, b in means.piecewise(v, 1.0) if b - a > 1e-9]
        assert math.log(max(pieces) / min(pieces)) == pytest.approx(1.0)


def test_hm_does_not_depend_on_the_value():
    found = [means.variance("HM", v, 2.0) for v in (0.0, 0.3, 1.0)]
    assert found == pytest.approx([found[0]] * 3)
    assert means.average("HM", 2.0) == pytest.approx(found[0])
    assert means.hybrid_switch() == pytest.approx(0.6094, abs=1e-4)
    assert means.variance("Laplace", 0.2, 2.0) == pytest.approx(2.0)


@pytest.mark.parametrize("name", means.NAMES)
def test_drawn_reports_have_the_right_mean(name):
    """Null: it is v. Hoeffding for bounded reports; Laplace noise by its Chernoff bound."""
    draws, v, epsilon = 200_000, 0.4, 1.0
    mean = means._draw(name, v, epsilon, draws, np.random.default_rng(2)).mean()
    s = math.exp(epsilon / 2)
    reach = (s + 1) / (s - 1)
    allowed = reach * math.sqrt(2 * math.log(2 / RARE) / draws)
    if name == "Laplace":
        # log E exp(t x) <= 2 t^2 b^2 for |t b| <= 1/2, b = 2 / eps.
        allowed = 2 * (2 / epsilon) * math.sqrt(2 * math.log(2 / RARE) / draws)
    assert abs(mean - v) <= allowed


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_duchi_of_several_numbers(d):
    """Enumerated: equation 60 is right, the text is not for even d."""
    v = (0.3, -0.8, 0.0, 1.0)[:d]
    law = boxes.duchi_law(v, 1.0)
    assert sum(law.values()) == pytest.approx(1.0)
    for j in range(d):
        assert sum(p * t[j] for t, p in law.items()) == pytest.approx(v[j])
    assert boxes.duchi_epsilon(d, 1.0, text=False) == pytest.approx(1.0)
    text = boxes.duchi_epsilon(d, 1.0, text=True)
    assert text == pytest.approx(1.0) if d % 2 else text > 1.4


def test_distributions():
    for name, k in product(losses.DISTRIBUTIONS, (2, 64)):
        p = losses.DISTRIBUTIONS[name](k)
        assert p.shape == (k,)
        assert p.sum() == pytest.approx(1)
        assert p.min() > 0
    assert losses.DISTRIBUTIONS["sparse"](64)[:4].sum() == pytest.approx(0.95)


def test_the_control_tells_what_chance_did():
    control = np.array([0.5, -1.0, 2.0, 0.1])
    mean, error = losses._adjusted(3 + 0.7 * control, control, 0.25)
    assert mean == pytest.approx(3.25)
    assert error == pytest.approx(0.0, abs=1e-9)


def point(k=16, epsilon=1.0, **special):
    """All choices have the loss 1, but for the special ones: {"ss": 0.5}; GRR is hopeless."""
    loss = {name: special.get(name, 1.0) for name in losses.MECHANISMS} | {"grr": 9.0}
    table = {
        name: {decoder: [value, 0.01, 0.2] for decoder in losses.DECODERS}
        for name, value in loss.items()
    }
    cell = {"losses": table, "uniform": special.get("uniform", 1.0)}
    return Point(epsilon, k, 1000, 1000, dict.fromkeys(losses.DISTRIBUTIONS, cell))


def test_of_equals_the_shortest_report_is_chosen():
    assert point().chosen == ("hrr", "bayes")
    assert point(oue=0.98).chosen == ("hrr", "bayes")
    assert point(ss=0.5).best[0] == "ss"
    assert point(ss=0.5).chosen == ("ss", "bayes")
    assert not point().drowned
    assert point(uniform=0.2).drowned


def test_what_auto_loses():
    one = point(ss=0.5)
    assert one.auto == ("ss", "bayes")
    assert one.excess(one.best) == (1.0, 0.0)
    value, error = one.excess(("hr", "bayes"))
    assert value == pytest.approx(2.0)
    assert 0.01 < error < 0.1
    assert one.worst(("hr", "bayes")) == pytest.approx(2.0)
    assert point(k=2).auto == ("grr", "bayes")


def test_subsets_of_one_value_are_not_compared():
    assert ("ss", "bayes") in point().choices
    assert ("ss", "bayes") not in point(epsilon=4.0).choices


TINY = Grid(
    sizes=(2, 16),
    epsilons=(1.0,),
    most_runs=40,
    shared_runs=4,
    timed=(16,),
    timed_n=100,
    repeats=1,
    mean_epsilons=(1.0,),
    draws=1000,
    map_sizes={4: 3},
    map_epsilons=(1.0,),
    map_n=(1000,),
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A finished tiny study."""
    notebook = Notebook(tmp_path_factory.mktemp("survey") / "cells.jsonl", 3)
    one = study.Survey(False, grid=TINY)
    for _, cells in one.stages(notebook):
        list(finish(cells, one.work, notebook))
    return one, notebook


def test_a_study_from_cells_to_table_and_charts(tiny):
    one, notebook = tiny
    results = one.results(notebook)
    rows = [result for result in results if result.where == "Table 4, variance"]
    assert {str(row.cell["mechanism"]) for row in rows} == set(ORACLES)
    # By formulas: few runs differ by chance, too.
    wrong = {str(row.cell["mechanism"]) for row in rows if row.reason}
    assert all(row.verdict is Verdict.differs for row in rows if row.reason)
    assert {"S-Hist", "HRR", "w-SM"} <= wrong
    assert not wrong & {"BRR", "GRR", "SUE", "OUE", "BLH"}
    assert {"map", "map, auto", "map, claim"} <= {result.where for result in results}
    for chart in one.charts(results).values():
        assert len(json.dumps(chart.to_dict())) > 1000
    table = one.texts(results)["survey-table.md"]
    assert table.count("\n") == len(ORACLES) + 2


def test_the_command_writes_the_table(tiny, tmp_path, monkeypatch):
    _, notebook = tiny
    monkeypatch.setattr(study.Survey, "grids", (TINY, TINY))
    (tmp_path / "cells.jsonl").write_bytes(notebook.path.read_bytes())
    command = ["reproduce", "survey", "--processes", "1", "--no-charts", "--seed", "3"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    results = read(tmp_path / "survey.json")
    assert (tmp_path / "survey-table.md").read_text() == markdown(results)


def test_the_page_shows_the_table_of_its_results():
    page = (PAGES / "survey.md").read_text()
    shown = page.split("<!-- table -->\n")[1].split("<!-- end of table -->")[0]
    assert shown == markdown(read(PAGES / "survey.json"))


def test_the_whole_grid():
    assert FULL.sizes == (2, 16, 128, 1024)
    assert FULL.epsilons == (0.5, 1.0, 2.0, 4.0)
    assert len(list(FULL.points())) == 7 * 6 * 4
    assert len(FULL.maps()) == 7 * 6 * 4 * len(losses.DISTRIBUTIONS)
