"""The whole study: its cells, and the rows, charts and table made from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from deniable_papers.cells import Notebook, Settings, Values
from deniable_papers.results import Result
from deniable_papers.study import Study
from deniable_papers.survey import costs, losses, means, variances
from deniable_papers.survey.grids import FULL, QUICK, Grid

_KINDS = {
    "variance": variances.simulate,
    "cost": costs.simulate,
    "mean": means.simulate,
    "map": losses.simulate,
}


class Survey(Study[Grid]):
    """What `deniable reproduce survey` runs."""

    title = "T. Wang et al., A Comprehensive Survey on Local Differential Privacy"
    grids = (QUICK, FULL)

    @staticmethod
    def work(settings: Settings, rng: np.random.Generator) -> Values:
        return _KINDS[settings["kind"]](settings, rng)

    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        yield "times (Table 4)", self.grid.costs()
        yield "variances (Table 4)", self.grid.variances()
        yield "means (Table 9)", self.grid.means()
        yield "losses (map)", self.grid.maps()

    def results(self, notebook: Notebook) -> list[Result]:
        from deniable_papers.survey import mapping, table4, table9

        return [
            *table4.rows(self.grid, notebook),
            *table9.rows(self.grid, notebook),
            *mapping.rows(self.grid, notebook),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        from deniable_papers.survey import charts

        return {
            "survey-variances": charts.variances(results),
            "survey-map": charts.practice(results),
        }

    def texts(self, results: list[Result]) -> dict[str, str]:
        """The one table of all mechanisms, as Markdown."""
        from deniable_papers.survey.table4 import markdown

        return {"survey-table.md": markdown(results)}
