"""Published experiments, run again: one folder a paper, one command each (`deniable reproduce`)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from deniable.errors import InvalidArgument

#: Where the study of each paper is. It has a name, a title, the data sets that it uses with
#: their columns, stages of cells, work for a cell, and makes results and charts of what it found;
#: and it may make texts of the results, which are saved beside them.
STUDIES = {
    "comparative": ("deniable.studio.papers.comparative.study", "Comparative"),
    "kairouz": ("deniable.studio.papers.kairouz.study", "Kairouz"),
    "ibu": ("deniable.studio.papers.ibu.study", "Ibu"),
    "survey": ("deniable.studio.papers.survey.study", "Survey"),
}


def find(paper: str) -> Any:
    """The study of a paper by its short name; called with True for the whole grid, and its data.

    Without its data a study leaves out the cells that need them.
    """
    if paper not in STUDIES:
        raise InvalidArgument("paper", paper, f"one of {', '.join(STUDIES)}")
    module, name = STUDIES[paper]
    return getattr(import_module(module), name)
