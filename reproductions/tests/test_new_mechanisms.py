"""A mechanism that comes later changes no reproduction, however good it is."""

import numpy as np
import pytest

import deniable as dn
from deniable.collection.recommend import Requirements
from deniable.core.domain import Domain
from deniable.core.registry import registering
from deniable.mechanisms.frequency import Line, frequency_oracles
from deniable_papers.cells import Notebook, finish
from deniable_papers.comparative import designs as comparative
from deniable_papers.ibu import designs as ibu
from deniable_papers.kairouz import claims as kairouz
from deniable_papers.survey import study
from deniable_papers.survey.choosing import Point
from deniable_papers.survey.grids import FULL, QUICK, Grid
from deniable_papers.survey.oracles import ORACLES

TINY = Grid(
    sizes=(2, 16),
    epsilons=(1.0,),
    most_runs=40,
    shared_runs=4,
    timed=(2,),
    timed_n=100,
    repeats=1,
    mean_epsilons=(1.0,),
    draws=100,
    map_sizes={2: 3, 4: 3},
    map_epsilons=(1.0,),
    map_n=(1000,),
)


class Ahead(dn.GRR):
    """It claims to have no variance, and is the first of all names."""

    name = "ahead"

    def variance_line(self, f, n):
        return Line(np.zeros(f.shape), np.zeros(f.shape))


def survey_rows(folder):
    """All rows of the survey but those of times, which are never the same twice."""
    one, notebook = study.Survey(False, grid=TINY), Notebook(folder / "cells.jsonl", 3)
    for _, cells in one.stages(notebook):
        list(finish(cells, one.work, notebook))
    return [row for row in one.results(notebook) if "times" not in row.where]


def survey_lists():
    """The mechanisms of the survey, its cells, and what `auto` is on every point of the map."""
    both = (QUICK, FULL)
    cells = [cell for grid in both for cell in (*grid.variances(), *grid.costs(), *grid.maps())]
    return list(ORACLES), cells, [Point(*at, 1, {}).auto for grid in both for at in grid.points()]


def test_a_survey_of_today_would_choose_it():
    with registering(Ahead):
        assert "ahead" in frequency_oracles()
        assert Requirements(Domain.of(16), 1.0, 1000).choose().name == "ahead"


def test_the_lists_of_the_survey_stay():
    before = survey_lists()
    with registering(Ahead):
        assert survey_lists() == before


@pytest.mark.slow
def test_the_survey_finds_the_same(tmp_path):
    before = survey_rows(tmp_path / "before")
    with registering(Ahead):
        assert survey_rows(tmp_path / "after") == before


def test_the_other_papers_have_their_own_mechanisms():
    def found():
        people = np.array([30, 20, 0, 10])
        some = comparative.estimates(people, 1.0, np.random.default_rng(1))
        return (
            {name: f.tolist() for name, f in some.items()},
            [ibu.design(one, name, 4, 1.0) for name in ibu.MECHANISMS for one in ibu.SETTINGS],
            list(kairouz.bounds()),
        )

    before = found()
    ibu.design.cache_clear()
    with registering(Ahead):
        assert found() == before
