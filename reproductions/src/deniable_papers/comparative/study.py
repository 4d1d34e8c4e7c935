"""The whole study: its cells in two stages, and the rows and charts made from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from deniable_papers.cells import Notebook, Settings, Values
from deniable_papers.comparative import losses
from deniable_papers.comparative.grids import FULL, QUICK, Grid
from deniable_papers.comparative.published import COLUMNS
from deniable_papers.results import Result
from deniable_papers.study import Study


class Comparative(Study[Grid]):
    """What `deniable reproduce comparative` runs."""

    title = "Le and Zia, Discrete Distribution Estimation with LDP: A Comparative Analysis"
    data = COLUMNS
    grids = (QUICK, FULL)

    @staticmethod
    def work(settings: Settings, rng: np.random.Generator) -> Values:
        return losses.simulate(settings, rng)

    def stages(self, notebook: Notebook) -> Iterator[tuple[str, list[Settings]]]:
        yield "real data (Tables II-IV)", list(self.grid.tables(self.sets).values())
        yield "synthetic data (Figures 2-5)", self.grid.figures()

    def results(self, notebook: Notebook) -> list[Result]:
        from deniable_papers.comparative import claims, findings

        return [
            *findings.data_sets(self.sets),
            *findings.printed_sketch(),
            *findings.tables(self.grid, self.sets, notebook),
            *findings.explained(self.grid, self.sets, notebook),
            *findings.figures(self.grid, notebook),
            *claims.all_claims(self.grid, self.sets, notebook),
        ]

    def charts(self, results: list[Result]) -> dict[str, Any]:
        from deniable_papers.comparative import charts

        drawn = {"comparative-figures": charts.figures(results)}
        if any(one.where.startswith("Table II") for one in results):
            drawn["comparative-tables"] = charts.tables(results)
        return drawn
