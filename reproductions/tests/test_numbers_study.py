"""The numeric and ordinal systems of the survey: what runs is what was published."""

import json
import math

import numpy as np
import pytest

import deniable as dn
from deniable_papers.boxes import duchi_law
from deniable_papers.cells import Notebook, finish
from deniable_papers.numbers import boxes, simulations, study, systems
from deniable_papers.numbers.grids import Grid
from deniable_papers.numbers.sets import histograms
from deniable_papers.numbers.tables import markdown
from deniable_papers.results import Verdict, read
from places import ROOT

PAGES = ROOT / "docs" / "papers"
TINY = Grid(
    epsilons=(1.0,),
    mean_n=500,
    mean_runs=30,
    sizes=(3,),
    box_epsilons=(1.0, 6.0),
    box_n=600,
    box_runs=30,
    sets=("normal",),
    n=3_000,
    runs=2,
)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("name", ["Laplace", "Duchi et al.", "PM", "HM", "1BitMean"])
def test_printed_variances_are_those_of_the_channels(name, epsilon):
    system = systems.MEANS[name]
    worst = 4 * system.build(epsilon).worst_variance(1)
    assert worst == pytest.approx(system.published(epsilon), rel=0.01)


def test_corners_are_drawn_as_enumerated():
    """Null: n Var of each of three means is that of the exact law; 400 runs, 7 standard errors."""
    v = boxes.numbers_of_boxes(3 * 200).reshape(3, 200).T
    rng = np.random.default_rng(3)
    box = boxes.BOXES["Duchi et al."]
    errors = [box.estimate(v, 1.0, rng) - v.mean(axis=0) for _ in range(400)]
    measured = 200 * np.square(errors).mean()
    exact = np.mean([[w * t[0] ** 2 for t, w in duchi_law(tuple(one), 1.0).items()] for one in v])
    exact = exact * 8 - np.square(v).mean()
    assert box.variance(3, 1.0) == pytest.approx(exact, rel=1e-3)
    assert abs(measured / exact - 1) < 7 * math.sqrt(2 / 1_200)


def test_how_many_numbers_are_drawn():
    rng = np.random.default_rng(1)
    drawn = boxes._some(2, (1_000, 5), rng)
    assert set(drawn.sum(axis=1)) == {2}
    assert drawn.mean(axis=0) == pytest.approx(np.full(5, 0.4), abs=0.1)
    assert [boxes._piecewise(16, e) for e in (1.0, 4.9, 5.0, 8.0)] == [1, 1, 2, 3]
    assert [boxes._dithered(16, e) for e in (1.0, 5.0, 6.0, 9.0)] == [1, 1, 2, 3]


def test_respondents_have_the_shares_of_the_histogram():
    f = histograms({})["exponential"]
    x = simulations.respondents(f, 10_000)
    found = np.bincount(np.round(255 * x).astype(int), minlength=256) / 10_000
    assert found == pytest.approx(np.array(f), abs=1.01e-4)


def test_small_members_have_the_stated_epsilon():
    for name in (*systems.MEANS, *systems.DISTRIBUTIONS):
        found = systems.exact_epsilon(systems.small(name, 2.0))
        assert 2.0 * (1 - 2**-15) < found <= 2.0 + 1e-12, name


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A finished tiny study, without data."""
    notebook = Notebook(tmp_path_factory.mktemp("numbers") / "cells.jsonl", 1)
    one = study.NumbersStudy(False, grid=TINY)
    one.histograms = {"normal": [1 / 16] * 16}
    for _, cells in one.stages(notebook):
        list(finish(cells, one.work, notebook))
    return one, notebook


def test_a_study_from_cells_to_tables_and_charts(tiny):
    one, notebook = tiny
    results = one.results(notebook)
    assert all(
        row.verdict is Verdict.reproduced
        for row in results
        if row.where in ("true epsilon, enumerated", "n Var of a mean, claim")
    )
    for chart in one.charts(results).values():
        assert len(json.dumps(chart.to_dict())) > 1_000
    table = one.texts(results)["numbers-systems.md"]
    known = len(systems.MEANS) + len(systems.DISTRIBUTIONS)
    assert table.count("\n") == known + len(systems.MISSING) + 2
    assert table.count("not determined by the text") == len(systems.MISSING)


def test_estimated_distributions_are_shares():
    domain, rng = dn.Number(0, 15, 1), np.random.default_rng(2)
    x = rng.integers(0, 16, 2_000)
    for system in systems.DISTRIBUTIONS.values():
        m = system.build(domain, 2.0)
        f = system.decode(m, m.count(m.privatize(x, rng).data), len(x))
        assert f.shape == (16,)
        assert f.min() >= -1e-12
        assert f.sum() == pytest.approx(1.0)


def test_the_page_shows_the_table_of_its_results():
    page = (PAGES / "numbers.md").read_text()
    shown = page.split("<!-- table -->\n")[1].split("<!-- end of table -->")[0]
    assert shown == markdown(read(PAGES / "numbers.json"))
