"""The whole study: its cells, and the rows, charts and table made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from deniable.datasets import Dataset
from deniable.studio.papers.cells import Notebook, Settings, Values
from deniable.studio.papers.results import Result
from deniable.studio.papers.survey import costs, losses, means, variances
from deniable.studio.papers.survey.grids import FULL, QUICK, Grid

_KINDS = {
    "variance": variances.simulate,
    "cost": costs.simulate,
    "mean": means.simulate,
    "map": losses.simulate,
}


def work(settings: Settings, rng: np.random.Generator) -> Values:
    """Simulate one cell."""
    return _KINDS[settings["kind"]](settings, rng)


class Survey:
    """What `deniable reproduce survey` runs."""

    name = "survey"
    title = "T. Wang et al., A Comprehensive Survey on Local Differential Privacy"
    data: Mapping[str, tuple[str, ...]] = {}
    work = staticmethod(work)

    def __init__(
        self, full: bool, data: Mapping[str, Dataset] | None = None, grid: Grid | None = None
    ) -> None:
        self.grid = grid or (FULL if full else QUICK)

    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        """(name, cells) of each stage."""
        yield "times (Table 4)", self.grid.costs()
        yield "variances (Table 4)", self.grid.variances()
        yield "means (Table 9)", self.grid.means()
        yield "losses (map)", self.grid.maps()

    def results(self, notebook: Notebook) -> list[Result]:
        """All rows."""
        from deniable.studio.papers.survey import mapping, table4, table9

        return [
            *table4.rows(self.grid, notebook),
            *table9.rows(self.grid, notebook),
            *mapping.rows(self.grid, notebook),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        """Charts by the name of their file."""
        from deniable.studio.papers.survey import charts

        return {
            "survey-variances": charts.variances(results),
            "survey-map": charts.practice(results),
        }

    def texts(self, results: list[Result]) -> dict[str, str]:
        """The one table of all mechanisms, as Markdown."""
        from deniable.studio.papers.survey.table import markdown

        return {"survey-table.md": markdown(results)}
